// Attack cases D16: git, and what a folder makes it run.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import type { Json } from '../mcp.ts';
import { calls, prepareAgent } from './help/agent-with-gate.ts';
import { cleanUp, folder } from './help/basics.ts';
import { judges } from './help/gate.ts';

afterEach(cleanUp);

/** A repository with a change in it, and a program that leaves a mark. */
function repository(
  prepare: (git: (...args: string[]) => void, put: (path: string, text: string) => string) => void,
) {
  const [home, cwd] = [folder(), folder()];
  const env = { PATH: process.env.PATH, HOME: home, GIT_CONFIG_NOSYSTEM: '1' };
  const git = (...args: string[]) => void spawnSync('git', args, { cwd, env });
  const put = (path: string, text: string) => {
    mkdirSync(join(cwd, path, '..'), { recursive: true });
    writeFileSync(join(cwd, path), text, { mode: 0o755 });
    return join(cwd, path);
  };
  put('evil', `#!/bin/sh\ntouch '${cwd}/M'\n`);
  put('f.txt', 'one\n');
  git('init', '-q');
  for (const [key, value] of [
    ['user.name', 'a'],
    ['user.email', 'a@b'],
  ])
    git('config', key!, value!);
  git('add', 'f.txt');
  git('commit', '-qm', 'one');
  put('f.txt', 'two\n');
  prepare(git, put);
  rmSync(join(cwd, 'M'), { force: true });
  return { home, cwd };
}
const runGit = async (
  place: { home: string; cwd: string },
  commands: string[],
  allow: string[],
  settings?: Json,
) => {
  const { agent, outcomes, results, file } = prepareAgent({
    ...place,
    settings,
    rules: { allow },
    script: calls(...commands.map((command): [string, Json] => ['bash', { command }])),
  });
  const before = process.env.HOME;
  process.env.HOME = place.home; // no configuration of ours
  try {
    await agent.chat('go');
  } finally {
    process.env.HOME = before;
  }
  return {
    outcomes: outcomes(),
    text: results()
      .map(({ text }) => text)
      .join('\n'),
    isMarked: file('M') !== undefined,
  };
};

test('D16: where a rule allows git, what the folder names for looking at files does not run', async () => {
  const place = repository((git, put) => {
    git('config', 'core.fsmonitor', './evil');
    git('config', 'diff.external', './evil');
    put('.git/hooks/post-index-change', '#!/bin/sh\ntouch M\n');
    const same = put('same', 'x\n');
    git('add', 'same');
    utimesSync(same, 1, 1); // so that git diff would write the index
    put('--from-file=/etc/hostname', '1\n'); // as an option of diff, that would be another file
    git('add', '--', './--from-file=');
    put('--from-file=/etc/hostname', 'CHANGED\n');
  });
  const { outcomes, text, isMarked } = await runGit(
    place,
    ['git status', 'git diff', 'g"i"t diff | head -n 20', 'git log --oneline'],
    ['Bash(git status:*)', 'bash(git diff *)', 'bash(git log:*)'],
  );
  assert.deepEqual(outcomes, ['worked', 'worked', 'worked', 'worked'], text);
  assert.match(text, /modified:\s+f\.txt[^]*\n-one\n\+two\n/);
  assert.match(text, /\n\+CHANGED\n/);
  assert.ok(!isMarked);
});

test('D16: what cannot be overridden takes the rule away, and is told', {
  timeout: 180_000, // git is started for each of them, again and again
}, async () => {
  const inside: Parameters<typeof repository>[0] = (git, put) => {
    git('init', '-q', 'sub');
    put('sub/x', '1');
    git('-C', 'sub', 'add', 'x');
    git('-C', 'sub', '-c', 'user.name=a', '-c', 'user.email=a@b', 'commit', '-qm', 's');
    git('-C', 'sub', 'config', 'filter.x.clean', '../evil');
    put('sub/.gitattributes', '* filter=x');
    put('sub/x', '3');
  };
  const traps: [string, Parameters<typeof repository>[0], string?, string[]?][] = [
    [
      'filter.x.clean',
      (git, put) => (
        git('config', 'filter.x.clean', './evil'), put('.gitattributes', '* filter=x')
      ),
    ],
    [
      'diff.x.textconv',
      (git, put) => (git('config', 'diff.x.textconv', './evil'), put('.gitattributes', '* diff=x')),
    ],
    [
      'diff.x.command',
      (git, put) => (git('config', 'diff.x.command', './evil'), put('.gitattributes', '* diff=x')),
    ],
    [
      'include.path',
      (git, put) => (
        git('config', 'include.path', '../more'),
        put('more', '[filter "x"]\nclean=./evil'),
        put('.gitattributes', '* filter=x')
      ),
    ],
    [
      'extensions.partialclone',
      (git) =>
        [
          ['core.repositoryFormatVersion', '1'],
          ['extensions.partialClone', 'e'],
          ['remote.e.url', '/none'],
          ['remote.e.promisor', 'true'],
          ['remote.e.uploadpack', './evil'],
        ].forEach(([key, value]) => git('config', key!, value!)),
    ],
    ['alias.st', (git) => git('config', 'alias.st', '!./evil'), 'git st'],
    [
      'repository inside',
      (git, put) => (
        git('init', '-q', 'sub'),
        put('sub/x', ''),
        git('-C', 'sub', 'config', 'user.email', 'a@b'),
        git('-C', 'sub', 'config', 'user.name', 'a'),
        git('-C', 'sub', 'add', 'x'),
        git('-C', 'sub', 'commit', '-qm', 's'),
        git('add', 'sub')
      ),
    ],
    [
      'hook post-index-change',
      (_, put) => put('.git/hooks/post-index-change', '#!/bin/sh\ntouch M\n'),
      'git describe --always --dirty',
    ],
    [
      'hooks of the repository that it pushes to',
      (git) => (
        git('init', '-q', '--bare', 'there'), git('config', 'remote.origin.url', './there')
      ),
      'git push origin',
    ],
    ['repository inside', inside, 'git add . ; git status'],
    [
      'repository inside',
      (git, put) => (
        inside(git, put),
        git('checkout', '-qb', 'x'),
        git('add', 'sub'),
        git('commit', '-qm', 's'),
        git('checkout', '-q', '-'),
        put('sub/x', '2')
      ),
      'git checkout x',
    ],
    [
      'repository inside',
      (git, put) => (inside(git, put), put('.gitignore', 'sub')),
      'git switch x',
    ],
    [
      'repository inside',
      (git, put) => (inside(git, put), put('.gitignore', 'sub')),
      'git add -f sub; git status',
    ],
    [
      'folder that the line goes to',
      (git, put) => (inside(git, put), git('-C', 'sub', 'config', 'diff.external', '../evil')),
      'git -C sub diff',
      ['bash(git -C sub:*)'],
    ],
    ['that cannot be read', (_, put) => put('.git/config', '[broken')],
    ['folder that the line goes to', () => {}, 'GIT_DIR=x git diff', ['bash(GIT_DIR=x git diff)']],
    [
      'what the line itself sets up',
      (_, put) => put('post-commit', '#!/bin/sh\ntouch M\n'),
      'git mv post-commit .git/hooks/ ; git commit -qam x',
    ],
    [
      'what the line itself sets up',
      (git, put) => (put('post-commit', '#!/bin/sh\ntouch M\n'), git('add', 'post-commit')),
      'git checkout-index --prefix=.git/hooks/ post-commit && git commit -qam x',
      ['bash(git:*)', 'bash(git checkout-index:*)'],
    ],
    [
      'what the line itself sets up',
      (git, put) => (
        git('init', '-q', '--bare', 'there'),
        put('there/hooks/pre-receive', '#!/bin/sh\ntouch ../M\n')
      ),
      'git remote add x ./there && git push x HEAD',
    ],
    [
      'hooks of the repository that it pushes to',
      (git, put) => (
        git('init', '-q', '--bare', 'there'),
        put('there/hooks/pre-receive', '#!/bin/sh\ntouch ../M\n')
      ),
      'git pull --set-upstream ./there x; git push',
    ],
    [
      'hook pre-commit',
      (_, put) => put('.git/hooks/pre-commit', '#!/bin/sh\ntouch M\n'),
      'git commit -am x',
    ],
  ];
  for (const [
    named,
    prepare,
    command = 'git diff',
    allow = ['Bash(git:*)', `bash(${command})`],
  ] of traps) {
    const place = repository(prepare);
    const { outcomes, text, isMarked } = await runGit(place, [command], [], {
      permissions: { allow },
    });
    assert.deepEqual(outcomes, ['denied'], named);
    assert.ok(text.includes(named) && text.includes('no rule for git covers it'), text);
    assert.ok(!isMarked, named);
  }
});

test('D16: a repository in an ignored folder is in the way of another branch, and not of a commit', () => {
  const place = repository(
    (git, put) => (put('.gitignore', 'modules'), git('init', '-q', 'modules/x')),
  );
  const { effect } = judges({ ...place, rules: { allow: ['Bash(git:*)'] } });
  assert.equal(
    judges({ rules: { allow: ['Bash(git:*)'] } }).effect('git add . && git commit -m x'),
    'allow',
    'where no repository is',
  );
  assert.deepEqual(
    ['git add . && git commit -m x', 'git status', 'git checkout x', 'git pull'].map(effect),
    ['allow', 'allow', 'ask', 'ask'],
  );
  const open = judges({
    ...repository((git) => git('init', '-q', 'sub')),
    rules: { allow: ['Bash(git:*)'] },
  });
  assert.deepEqual(
    ['git status', 'git add .', 'git commit -m x'].map(open.effect),
    ['allow', 'ask', 'ask'],
    'one that is not ignored',
  );
});

test('D16: a rule for git means no options that start programs, and none before the subcommand', () => {
  const place = repository((git) => {
    git('init', '-q', '--bare', 'sub.git');
    git('remote', 'add', 'origin', 'https://host.test/x.git');
  });
  const { effect } = judges({
    ...place,
    rules: {
      allow: [
        'Bash(git:*)',
        'bash(git diff *)',
        'bash(cd:*)',
        'bash(xargs git diff:*)',
        'bash(env git:*)',
        'bash(timeout 60 git:*)',
        'bash(git --no-pager:*)',
        'bash(git -P grep:*)',
        'bash(git -c color.ui=never diff:*)',
      ],
    },
  });
  const allowed = [
    'git push',
    'git push origin sub',
    'git diff main..HEAD',
    'git log -SOAuth',
    'git status',
    'git diff HEAD -- *.ts',
    'git log --oneline',
    'git commit -m "x y"',
    'git diff --stat',
    'git show --output-indicator-new=x',
    'git diff HEAD~1',
    'timeout 60 git diff',
    'git --no-pager log',
    'git -P grep x',
    'git -c color.ui=never diff',
    'git log -- sub.git',
    'git add . && git commit -m "x: y" && git status',
    'git mv a b',
    "git commit -F - <<'E'\nx\nE",
  ];
  for (const line of allowed) assert.equal(effect(line), 'allow', line);
  const asked = [
    'git -c core.pager=x log',
    'git -C .. status',
    'git --exec-path=. status',
    'git --git-dir=x status',
    'git -p log',
    'git diff --output=M',
    'git diff --outp M',
    'git log --out=M',
    'git diff --ext-diff',
    'git diff --ext',
    'git diff --no-index /dev/null .env',
    'git grep --no-ind x',
    'git grep -Ox y',
    'git grep --open-files=x y',
    'git grep -O',
    'git fetch --upload-pack=x',
    'git fetch --upl x',
    'git grep -nO./evil y',
    'git grep -e -- -O./evil -e y',
    'git grep -e -- $_',
    'git push --e=./evil',
    'git rebase -x ./evil',
    'git rebase -kx./evil',
    'git clone -u ./evil . x',
    'git clone -c core.hooksPath=. . x',
    'git clone --conf=core.hooksPath=. . x',
    'git config alias.x !./evil; git x',
    'git bisect run ./evil',
    'git submodule foreach ./evil',
    'git diff /dev/null /etc/passwd',
    'git diff -- /dev/null /etc/passwd',
    'git diff ../x a',
    'git blame --contents=/etc/passwd f.txt',
    'git blame --cont /etc/passwd f.txt',
    'git blame --ignore-revs-file=/etc/passwd f.txt',
    'git blame -S /etc/passwd f.txt',
    'git push ./sub.git',
    'git push file:///x',
    'cd sub && git diff',
    'time cd sub && git diff',
    // A command that is not an everyday one must be spelled by the rule.
    'git credential fill <<< url=https://x',
    "git remote-ext x 'touch M' <<'E'\nconnect git-upload-pack\nE",
    'git merge-index ./evil -a',
    'git checkout-index --prefix=.git/hooks/ x',
    'git receive-pack sub.git',
    'git filter-branch',
    'git hook run x',
    'git st',
    'git maintenance start',
    'git web--browse http://x',
    'git help -w x',
    'git apply --unsafe-paths x',
    'git clone x',
    'git worktree add ../x',
    'git',
    'git diff a b --submodule=diff',
    'git log -p --subm=diff',
    'git pull --recurse-submodules',
    'git commit -F /etc/passwd',
    'git commit -F/etc/passwd',
    'git commit --file=../x',
    'git tag -F /etc/passwd x',
    'git fetch ../other',
    'git pull /other',
    'git push --exec=x',
    'git push --receive-pack=x',
    'git diff *',
    'git --no-pager config x y',
    'git --no-pager -c core.fsmonitor=./evil status',
    'git -P grep -O./evil y',
    'git -c color.ui=never diff /etc/passwd x',
    'git --no-pager',
    'xargs git diff',
    'timeout 60 git -c core.fsmonitor=./evil status',
    'timeout 60 git config x',
    'timeout 60 git diff --output=M',
    'env git diff',
    'env git -c core.pager=x diff',
    'git diff $x',
    'git $x',
    'git log $(ls)',
    'GIT_PAGER=x git log',
    'GIT_EXTERNAL_DIFF=x git diff',
    'git-evil',
    'gits',
  ];
  for (const line of asked) assert.equal(effect(line), 'ask', line);
});
