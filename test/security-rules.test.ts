// Attack cases D17 to D19: how far a rule reaches, and whose programs a command means.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { afterEach, test } from 'node:test';
import type { Json } from '../mcp.ts';
import { calls, prepareAgent } from './help/agent-with-gate.ts';
import { cleanUp, folder } from './help/basics.ts';
import { judges } from './help/gate.ts';

afterEach(cleanUp);

const ruled = (...programs: string[]) => ({
  allow: programs.map((program) => `bash(${program}:*)`),
});

/** Rules for these programs, in a folder with a few files, a link that leads out, and a secret. */
function inFolder(...programs: string[]) {
  const found = judges({
    files: { f: 'a\nb\n', g: 'c\n', 'x.tar': '', 'src/a.ts': 'x', '.env': 'S=1', 'a.json': '{}' },
    rules: ruled(...programs),
  });
  const outside = join(folder(), 'secret');
  writeFileSync(outside, 'secret');
  symlinkSync(outside, join(found.cwd, 'link'));
  return found;
}

test('D17: a rule for a program reaches the options of its row, spelled in full, and nothing else', () => {
  const { effect } = inFolder(
    ...['sed', 'sort', 'awk', 'tar', 'uniq', 'xxd', 'grep', 'find', 'cut', 'tr', 'diff', 'jq'],
    ...['mkdir', 'touch', 'unzip', 'stat', 'rg', 'ls', 'echo', 'cat', 'cd'],
  );
  const allowed = [
    'sed -n 1,20p f',
    "sed 's/a/b/g' f",
    'sed -ne 1p f',
    "sed --quiet --expression='s/a/b/' f",
    'sed -E -n -e /a/p -e 3d f g',
    'sort -u f',
    'sort -rnk2 f',
    'sort -t, -k 2 f',
    'sort --key=2 f g',
    'sort f | uniq -c | sort -rn',
    'uniq -c f',
    "awk '{print $1}' f",
    "awk -F: '{print $1, $NF}' f",
    'awk \'/a b/ {print NR ": " $0}\' f',
    "cat f | awk 'NR==1'",
    'tar tf x.tar',
    'tar -tzf x.tar',
    'tar -tvf x.tar',
    'tar --list --file=x.tar',
    'xxd -l 16 f',
    'grep -n a f',
    'grep -rn a src',
    "grep -E -A3 -e 'a|b' f",
    'grep -i a f --color=never',
    "find . -name '*.ts' -not -path './x/*' -type f",
    'find src -maxdepth 2 -mtime -1',
    "cut -d/ -f1 f | tr a-z A-Z | tr -d '\\r'",
    'diff -u f g',
    'jq -r .name a.json',
    "jq '[.[] | .a]' a.json",
    'mkdir -p src/new',
    'touch src/b.ts',
    'unzip -l x.zip',
    'stat -c %s f',
    'rg -n a src',
    'ls -la src',
    'cd src && sed p',
    'sort',
    'sort - <f',
    'sort -- f',
  ];
  for (const line of allowed) assert.equal(effect(line), 'allow', line);
  const asked = [
    // of the issue
    "sed -l 1p 'e touch M' f",
    "sed -e 1p -be 'e touch M' f",
    "sed --line-length 1p 'w M' f",
    "sed -e 1p --exp 'w M' f",
    'sort --co=./x f',
    // abbreviations, clusters, both forms of a value
    'sort --compress-program=./x f',
    'sort --compress-program ./x f',
    'sort -uoM f',
    'sort -u -oM f',
    'sort f -o M',
    'sort --ke=2 f',
    'sort -T . f',
    'sort --files0-from=f',
    'sort --random-source=f f',
    'sed -n -fx f',
    'sed -nf x f',
    'sed --null-data=1 p f',
    'sed -i.bak p f',
    'sed -n -e p -s -i f',
    "sed -n '$!N;P;D' f",
    "sed '1~2e touch M' f",
    "sed 's/a/b/ew' f",
    'uniq f g',
    'uniq --all-repeated f M',
    'awk \'BEGIN{system("touch M")}\'',
    'awk \'{print > "M"}\' f',
    'awk \'{print | "sh"}\' f',
    'awk \'"touch M" | getline\' f',
    'awk -f x f',
    'awk -fx f',
    "awk -e 'BEGIN{}' f",
    "awk -i x '{print}' f",
    'awk \'a/1; system("touch M") /b\' f',
    'awk --exec x f',
    'awk \'@load "x"\' f',
    "mawk '{print}' f",
    'tar xf x.tar',
    'tar -xf x.tar',
    'tar cf M f',
    'tar tf host:x.tar',
    'tar -tf x.tar --to-command=./x',
    'tar -tf x.tar -I ./x',
    'tar tIf ./x x.tar',
    'tar -tf x.tar --use-compress-prog=./x',
    'tar -tf x.tar --checkpoint-action=exec=./x',
    'tar -tFf ./x x.tar',
    'split -l1 f',
    'split --filter=./x f',
    'xxd f M',
    'xxd -r f M',
    'xxd -rp f',
    'grep -f .env f',
    'grep -R a src',
    'grep -r a .',
    'grep -r a',
    'rg a',
    'rg --pr ./x a',
    'grep -d recurse a .',
    'find . -exec touch M +',
    'find . -fprintf M x',
    'find . -files0-from f',
    'find -L .',
    'find -D exec .',
    'find -f . -delete',
    // to find, what is behind "--" is an expression all the same
    'find -- . -delete',
    'find . -- -exec ./x +',
    'sort -- -odd',
    'cut --output-delimiter=x -f1 f .env',
    'jq -f x a.json',
    'jq \'import "x" as $d; $d\' a.json',
    'jq -L. . a.json',
    'jq -rL. . a.json',
    'jq --rawfile a .env . a.json',
    'mkdir .git/hooks',
    'mkdir ../x',
    'touch .bashrc',
    'touch package.json',
    'unzip x.zip',
    'unzip -lo x.zip f',
    // files that are not ours to read, by whatever way
    'sed p link',
    'sort link',
    'sort /etc/passwd',
    'sort .env',
    'sort ../x',
    'grep a link',
    'tar tf link',
    'tar -tflink',
    'diff f link',
    'diff f .env',
    'cut -f1 link',
    'awk 1 link',
    'jq . link',
    'cd /',
    'cd link',
    'cd src && sort a.ts',
    'sort *',
    'sort $x',
    'sort "$(ls)"',
    'sort {f,g}',
    'sort ~/x',
  ];
  for (const line of asked) assert.equal(effect(line), 'ask', line);
});

test('D17: a rule may spell what is not in the row, and a launcher hands on what it was told', () => {
  const { effect } = inFolder(
    'sed -i',
    'sort -o out',
    'sudo -n sort',
    'xargs sort',
    'tar xf x.tar',
  );
  for (const line of ['sed -i s/a/b/ f', 'sort -o out f', 'sudo -n sort f', 'tar xf x.tar'])
    assert.equal(effect(line), 'allow', line);
  for (const line of [
    "sed -i 'w M' f",
    'sed -i -f x f',
    'sort -o M f',
    'sort -o out --compress-program=./x f',
    'sudo -n sort -o M f',
    'xargs sort',
    'xargs sort f',
    'tar xf x.tar --to-command=./x',
  ])
    assert.equal(effect(line), 'ask', line);
});

test('D17: what one program reads otherwise than the next is not guessed', () => {
  const found = inFolder('sed', 'awk', 'unzip', 'xxd', 'diff', 'printf', 'sort', 'find', 'git');
  const { effect, cwd } = found;
  writeFileSync(join(cwd, '5'), 'x');
  spawnSync('git', ['init', '-q'], { cwd });
  const asked = [
    // in [ ] the "/" is no end: e runs the rest
    "sed '/[/s#]/e touch M ##' f",
    "sed '/[^]/s/]/w src/p' f",
    "sed '1,/[/s/]/w src/p' f",
    `awk '/[/"]/{system($0)}#"' f`,
    'unzip -l- -l x.tar', // the second -l takes the first one back
    'unzip -la- -l x.tar',
    'xxd -bl 5 f', // -b, and two files: the second is written
    'xxd -pl 5 f',
    'diff -N . src', // all files of both, and links are followed
    'diff f src',
    'printf -v PATH ./src; sort -u',
    'git blame -ML --contents=/etc/passwd f', // -M may have a value
    'git blame -L --contents=.env f',
    'git log -pL --output=M', // refused, after M was emptied
    'git rev-list -L --output=M HEAD',
    'git shortlog -L --output=M',
    'git show HEAD:.env',
    'git show :0:.env',
  ];
  for (const line of asked) assert.equal(effect(line), 'ask', line);
  const allowed = [
    "sed -n '/^[a-z_]*[[:space:]]/,/[^ab]/p' f",
    "awk '/[ab]/ {print}' f",
    'unzip -l x.tar',
    'xxd -p -l 5 f',
    'printf "%s\\n" $x',
    'find . -mtime -1',
    'git shortlog -sn',
    'git log -p -S a -L 1,2:f',
    'git show HEAD:f',
    "git commit -m '- one'",
  ];
  for (const line of allowed) assert.equal(effect(line), 'allow', line);
});

const LAUNCHERS =
  'taskset setarch prlimit chrt unshare setpriv script ssh-agent runuser chroot choom linux64 ' +
  'nsenter strace gdb xvfb-run dbus-run-session start-stop-daemon systemd-run firejail entr npx uvx';

test('D17: of a program without a row, a rule of its name means no word that could be a program', () => {
  const names = LAUNCHERS.split(' ');
  const found = inFolder(...names, 'pytest', 'make', 'cargo test', 'taskset 1 npm', 'enable');
  const { effect, cwd, warnings } = found;
  writeFileSync(join(cwd, 'run'), '#!/bin/sh\ntouch M\n', { mode: 0o755 });
  writeFileSync(join(cwd, 'touch'), '');
  for (const name of names) {
    const lines = [
      `${name} touch M`,
      `${name} 1 touch M`,
      `${name} x86_64 sh -c 'touch M'`,
      `${name} -c 'touch M'`,
      `${name} -ctouch`,
      `${name} --command=touch`,
      `${name} -- touch M`,
      `${name} ./run`,
      `${name} run`,
      `${name} touch`,
      `${name} -a ./run`,
      `${name} .`,
      `${name} src`,
      `${name} $x`,
      `${name} *`,
      `echo 'touch M' | ${name}`,
      `echo 'touch M' | ( ${name} )`,
      `{ ${name}; } < f`,
      `${name} < f`,
      `${name} <<< 'touch M'`,
      `${name} <<'E'\ntouch M\nE`,
      `echo 'touch M' >(${name})`,
      `cat f | echo "$(${name})"`,
    ];
    for (const line of lines) assert.equal(effect(line), 'ask', line);
  }
  const allowed = [
    'pytest',
    'pytest -q src/a.ts',
    'make --silent',
    'make | tail -n 5',
    'pytest -v f && make',
    'cargo test --all -- x *',
    'taskset 1 npm test',
  ];
  for (const line of allowed) assert.equal(effect(line), 'allow', line);
  for (const line of [
    'make all',
    'pytest link',
    'pytest .env',
    'make -j4',
    'enable -f f',
    'make && pytest f',
  ])
    assert.equal(effect(line), 'ask', line);
  // It is told once, in one sentence, and names the rules that it is about.
  const told = warnings.filter((text) => text.includes('nothing is known here of these programs'));
  assert.equal(told.length, 1);
  assert.match(told[0]!, /such a rule means .*; spell more, .*: "bash\(taskset:\*\)", /);
  const quiet = judges({ rules: ruled('sed', 'git', 'git log', 'npm test', 'cargo build') });
  assert.deepEqual(quiet.warnings, []);
});

test('D17: a line changes neither the PATH nor the folder of what comes behind it, and lists no other folder', () => {
  const { effect } = inFolder('printf', 'sort', 'cd', 'find', 'ls', 'echo', 'uniq', 'xxd', 'test');
  const asked = [
    "printf 'abc%n' PATH && sort", // PATH is "3" then
    "printf '%*n' 3 PATH && sort",
    'cd && find -name id_rsa', // at home
    'cd; ls -la',
    'cd -; ls',
    'echo ~/.ssh/*',
    'echo $HOME/.ssh/*',
    'echo {/etc,x}/*',
    'echo src/../../*',
    "printf '%s\\n' /etc/*",
    '[ -e /*/x ]',
    'xxd f -p', // writes a file of that name
    'uniq f -d', // so does this on a Mac
  ];
  for (const line of asked) assert.equal(effect(line), 'ask', line);
  const allowed = [
    "printf '%s: %5.2f%%\\n' a 1 && sort",
    'cd src && find',
    'echo *.ts src/*',
    'echo $HOME "a*" \\*',
    'xxd -p f',
    'uniq -d f',
  ];
  for (const line of allowed) assert.equal(effect(line), 'allow', line);
});

test('D17: what a rule forbids to read, or asks about, is no value of an option and no file of a commit', () => {
  const files = { 'secrets/x': 'x', f: 'f' };
  const allow = ruled('git', 'tar', 'sort').allow;
  for (const forbidding of ['deny', 'ask'] as const) {
    const { effect } = judges({ files, rules: { allow, [forbidding]: ['read(secrets/**)'] } });
    const lines = [
      'git commit -Fsecrets/x',
      'tar -tfsecrets/x',
      'git show HEAD:secrets/x',
      'git show HEAD:secrets/gone',
      'git log -p -- secrets/gone',
    ];
    for (const line of lines) assert.notEqual(effect(line), 'allow', line);
    assert.equal(effect('git commit -Ff'), 'allow');
  }
  const { effect } = judges({ files, rules: { allow } });
  assert.equal(effect('git show HEAD:secrets/x'), 'allow');
  assert.equal(effect('git show HEAD:.env'), 'ask', 'a secret that is only in the history');
});

test('D17: a rule for a launcher names a program, and not only a user, a signal or a variable', () => {
  const words = [
    'sudo -u me',
    'env -u FOO',
    'stdbuf -o L',
    'timeout -s TERM 60',
    'bash -o pipefail',
    'su me',
  ];
  const open = judges({ rules: ruled(...words) });
  assert.match(open.warnings.join(), /too broad to allow anything.*"bash\(su me:\*\)"/);
  for (const word of words) assert.equal(open.effect(`${word} touch M`), 'ask', word);
  const named = ['sudo -u me git status', 'bash scripts/test.sh', 'sh ./run', 'env A=b node x'];
  const { effect, warnings } = judges({ rules: ruled(...named) });
  assert.deepEqual(warnings, []);
  for (const word of named.slice(1)) assert.equal(effect(`${word} y`), 'allow', word);
});

test('D17: of a program without a row, the name of a file is no command line', () => {
  const files = { 'touch M': '', 'a;b': '', '$(x)': '', 'über.txt': '' };
  const { effect } = judges({ files, rules: ruled('script', 'perl') });
  for (const line of ["script -c 'touch M'", "perl -e 'a;b'", "script -c '$(x)'"])
    assert.equal(effect(line), 'ask', line);
  assert.equal(effect('script über.txt'), 'allow');
});

test('J30: a line of ten thousand commands, or words, is judged soon, and asked about', () => {
  const { effect } = judges({ files: { f: '' }, rules: ruled('make') });
  const cpu = (line: string, expected: string) => {
    const before = process.cpuUsage();
    assert.equal(effect(line), expected);
    return process.cpuUsage(before).user;
  };
  cpu('ls', 'allow');
  for (const line of [(n: number) => 'ls;'.repeat(n), (n: number) => `make ${'f '.repeat(n)}`]) {
    const few = cpu(line(50), 'allow');
    const long = cpu(line(9999), 'ask');
    assert.ok(long < 20 * few, `${long} µs, and ${few} µs for fifty`); // it was 200 times
  }
});

test('D17: what is denied is found behind if, while, for and their like, in groups and in functions', () => {
  const { effect } = judges({ mode: 'yolo', rules: { deny: ['bash(rm:*)'] } });
  const denied = [
    'if rm x; then true; fi',
    'if ! rm x; then true; fi',
    'if true; then rm x; elif rm y; then :; fi',
    'while rm x; do :; done',
    'until rm x; do :; done',
    'for i in 1 2; do rm $i; done',
    'case x in x) rm y;; esac',
    'select x in a; do rm $x; done',
    'f() { rm x; }; f',
    'function f { rm x; }\nf',
    '{ rm x; }',
    '( rm x )',
    'coproc rm x',
    'while A=1 rm x; do :; done',
    'if /bin/rm x; then :; fi',
    "if 'rm' x; then :; fi",
    'if { ! rm x; }; then :; fi',
    'time if rm x; then :; fi',
    'find . -name y -exec rm {} +',
    "find . -execdir rm '{}' ';'",
  ];
  for (const line of denied) assert.equal(effect(line), 'deny', line);
  for (const line of ['if true; then ls; fi', 'git rm x', 'echo rm'])
    assert.equal(effect(line), 'allow', line);
});

// ─── git ───

type Git = (...args: string[]) => string;

/** A repository with a remote in the network, and a bare one beside the files, whose hook leaves a mark. */
function repository(prepare: (git: Git, put: (path: string, text: string) => void) => void) {
  const [home, cwd] = [folder(), folder()];
  const env = { PATH: process.env.PATH, HOME: home, GIT_CONFIG_NOSYSTEM: '1' };
  const git: Git = (...args) => spawnSync('git', args, { cwd, env, encoding: 'utf8' }).stdout;
  const put = (path: string, text: string) => {
    mkdirSync(join(cwd, path, '..'), { recursive: true });
    writeFileSync(join(cwd, path), text, { mode: 0o755 });
  };
  put('f', 'one\n');
  git('init', '-q', '-b', 'main');
  git('config', 'user.name', 'a');
  git('config', 'user.email', 'a@b');
  put('.gitignore', 'x.git\nhome\n');
  git('add', 'f', '.gitignore');
  git('commit', '-qm', 'one');
  git('init', '-q', '--bare', 'x.git');
  put('x.git/hooks/pre-receive', `#!/bin/sh\ntouch '${cwd}/M'\n`);
  git('remote', 'add', 'origin', 'https://host.test/x.git');
  prepare(git, put);
  return { home, cwd };
}

/** As `judges`, with a HOME of its own, for git reads that, too. */
function judging(place: { home: string; cwd: string }, lines: string[]): string[] {
  const before = process.env.HOME;
  process.env.HOME = place.home;
  try {
    return lines.map(judges({ ...place, rules: ruled('git') }).effect);
  } finally {
    process.env.HOME = before;
  }
}

test('D17: git pushes by a rule to remotes in the network only, by all the addresses that git itself tells', () => {
  const place = repository((git) => {
    git('remote', 'add', 'two', 'git@host.test:x/y.git');
    git('remote', 'add', 'three', 'ssh://git@host.test/x.git');
    git('remote', 'add', 'folder', './x.git');
    git('remote', 'add', 'file', 'file:///x.git');
    git('remote', 'add', 'helper', 'ext::sh -c touch% M');
    git('remote', 'add', 'lying', 'https://host.test/x.git');
    git('remote', 'set-url', '--push', '--add', 'lying', 'https://host.test/x.git');
    git('remote', 'set-url', '--push', '--add', 'lying', './x.git');
  });
  const allowed = [
    'git push origin main',
    'git push -u origin HEAD',
    'git push origin HEAD:refs/heads/x',
    'git push two',
    'git push three',
  ];
  const asked = [
    'git push ./x HEAD:refs/heads/z',
    'git push x HEAD:refs/heads/z',
    'git push x.git HEAD',
    `git push -- ${place.cwd}/x.git HEAD`,
    'git push -- $PWD/x.git HEAD',
    'git push -- x.gi* HEAD',
    'git push {./x,HEAD:refs/heads/z}',
    'git push folder',
    'git push file HEAD',
    'git push helper HEAD',
    'git push lying HEAD',
    'git push', // which one it takes is not said, and one of them is a folder
    'git push . HEAD:refs/heads/z',
    'git push --repo=./x.git',
    'git push --force origin main',
    'git push origin +main',
    'git push origin :main', // deletes it there
    'git push origin -- +main',
    'git push --mirror origin',
    'git push ext::x HEAD',
    'git fetch folder',
    'git fetch helper',
    'git fetch ./x.git',
    'git pull folder main',
    'git ls-remote ./x.git',
    'git -c remote.origin.pushurl=./x.git push origin',
    'git remote add y ./x.git && git push y HEAD',
  ];
  assert.deepEqual(
    judging(place, allowed),
    allowed.map(() => 'allow'),
  );
  const found = judging(place, asked);
  for (const [n, line] of asked.entries()) assert.equal(found[n], 'ask', line);
  const alone = repository(() => {});
  assert.deepEqual(judging(alone, ['git push', 'git pull', 'git fetch']), [
    'allow',
    'allow',
    'allow',
  ]);
  const none = repository((git) => git('remote', 'remove', 'origin'));
  assert.deepEqual(judging(none, ['git push', 'git push origin']), ['ask', 'ask']);
  // A branch may name a folder as its remote.
  const branch = repository((git) => git('config', 'branch.main.pushRemote', './x.git'));
  assert.deepEqual(judging(branch, ['git push', 'git push origin']), ['ask', 'allow']);
});

test('D17: git reads no file behind a link, and goes on with nothing that the folder has begun', () => {
  const place = repository(() => {});
  const secret = join(folder(), 'secret');
  writeFileSync(secret, 'secret');
  symlinkSync(secret, join(place.cwd, 'link'));
  writeFileSync(join(place.cwd, '.env'), 'S=1');
  const allowed = [
    'git commit -m x',
    'git commit -qam "x: y"',
    'git commit -F f',
    'git status',
    'git rebase main',
  ];
  const asked = [
    'git commit -F link',
    'git commit -Flink',
    'git commit -qFlink',
    'git commit --file=link',
    'git commit --file link',
    'git commit --fil=link',
    'git tag -F link x',
    'git tag -aF link x',
    'git diff f link',
    'git diff --no-ind f link',
    'git add .env',
    'git blame --contents link f',
    'git commit -t link',
    'git commit --template=link',
    'git commit -S -m x',
    'git commit --trailer x:y -m x',
    'git log --show-signature',
    'git rebase -i main',
    'git rebase -x ./x main',
    'git merge -s x main',
    'git diff -O link',
    'git grep -f link',
    'git mv f .git/hooks/pre-commit',
    'git diff -- f $x',
    'echo /etc/passwd; git diff -- f $_',
  ];
  assert.deepEqual(
    judging(place, allowed),
    allowed.map(() => 'allow'),
  );
  const found = judging(place, asked);
  for (const [n, line] of asked.entries()) assert.equal(found[n], 'ask', line);
  const states = [
    'rebase-merge/git-rebase-todo',
    'rebase-apply/next',
    'sequencer/todo',
    'BISECT_LOG',
  ];
  for (const state of states) {
    const begun = repository((_, put) => put(`.git/${state}`, 'exec touch M\n'));
    assert.deepEqual(
      judging(begun, ['git rebase --continue', 'git commit -m x', 'git status']),
      ['ask', 'ask', 'allow'],
      state,
    );
  }
});

test('D17: git takes in no secret that is neither ignored nor named, and compares no folders that are no repository', () => {
  const place = repository(() => {});
  const lines = ['git add .', 'git add -A && git diff --cached', 'git add -- .e*', 'git stash -u'];
  assert.deepEqual(
    judging(place, lines),
    lines.map(() => 'allow'),
  );
  writeFileSync(join(place.cwd, '.env'), 'S=1');
  assert.deepEqual(
    judging(place, lines),
    lines.map(() => 'ask'),
  );
  assert.deepEqual(judging(place, ['git commit -m x', 'git diff']), ['allow', 'allow']);
  writeFileSync(join(place.cwd, '.gitignore'), '.env\nx.git\nhome\n');
  assert.deepEqual(
    judging(place, lines),
    lines.map(() => 'allow'),
  );
  const { effect } = judges({ files: { 'a/.env': 'S=1', 'b/x': '' }, rules: ruled('git') });
  assert.deepEqual(['git diff a b', 'git diff --stat a b'].map(effect), ['ask', 'ask']);
});

test('D17: a .git that leads to a repository elsewhere is no repository of the folder, but for one that knows it', () => {
  const lines = ['git log -p', 'git commit -m x'];
  const mine = repository(() => {}); // another one of the user's
  const leading = (make: (git: string) => void) => {
    const place = repository(() => {});
    make(join(place.cwd, '.git'));
    return judging(place, lines);
  };
  const inPlace = (make: (git: string) => void) => (git: string) => {
    rmSync(git, { recursive: true });
    make(git);
  };
  const theirs = join(mine.cwd, '.git');
  assert.deepEqual(leading(inPlace((git) => writeFileSync(git, `gitdir: ${theirs}\n`))), [
    'ask',
    'ask',
  ]);
  assert.deepEqual(leading(inPlace((git) => symlinkSync(theirs, git))), ['ask', 'ask']);
  assert.deepEqual(
    leading((git) => writeFileSync(join(git, 'commondir'), theirs)),
    ['ask', 'ask'],
  );
  const tree = join(folder(), 'tree');
  spawnSync('git', ['worktree', 'add', '-q', tree], { cwd: mine.cwd });
  assert.deepEqual(judging({ ...mine, cwd: tree }, lines), ['allow', 'allow'], 'a worktree of git');
  mkdirSync(join(tree, 'sub'));
  assert.deepEqual(judging({ ...mine, cwd: join(tree, 'sub') }, lines), ['allow', 'allow']);
});

test('D17: a link inside of .git leads git to any file, to read and to write, so no rule covers it', () => {
  const lines = ['git commit -m x', 'git status'];
  for (const path of ['COMMIT_EDITMSG', 'rebase-merge/head-name', 'logs/refs/heads/x']) {
    const place = repository((_, put) => put(`.git/${path}/../y`, ''));
    const link = join(place.cwd, '.git', path);
    rmSync(link, { force: true });
    symlinkSync(join(folder(), 'file'), link);
    assert.deepEqual(judging(place, lines), ['ask', 'ask'], path);
  }
});

test('D17: git fetches from all remotes only if all were looked at', () => {
  const place = repository((git, put) => {
    const remotes = Array.from({ length: 20 }, (_, n) => `[remote "r${n}"]\n\turl = ssh://h/x\n`);
    put('.git/config', `[core]\n\tbare = false\n${remotes.join('')}`);
    git('remote', 'add', 'z', './x.git');
    git('remote', 'add', 'origin', 'ssh://h/x');
  });
  assert.deepEqual(judging(place, ['git fetch r1', 'git fetch --all']), ['allow', 'ask']);
});

test('D17: hooks are where git says: a relative core.hooksPath of yours means a folder of the project', () => {
  const place = repository((_, put) => put('hooks/pre-commit', '#!/bin/sh\ntouch M\n'));
  const config = (path: string) =>
    writeFileSync(join(place.home, '.gitconfig'), `[core]\n\thooksPath = ${path}\n`);
  const lines = ['git commit -m x', 'git status'];
  assert.deepEqual(judging(place, lines), ['allow', 'allow']);
  config('hooks');
  assert.deepEqual(judging(place, lines), ['ask', 'allow']);
  mkdirSync(join(place.cwd, 'sub'));
  assert.deepEqual(judging({ ...place, cwd: join(place.cwd, 'sub') }, lines), ['ask', 'allow']);
  const own = folder();
  writeFileSync(join(own, 'pre-commit'), '#!/bin/sh\n', { mode: 0o755 });
  config(own);
  assert.deepEqual(judging(place, lines), ['allow', 'allow'], 'your own hooks are yours');
});

// ─── One PATH ───

test('D18: by a rule or freely, a command gets no program of the project; who is asked keeps the PATH, and is told', async () => {
  const [cwd, elsewhere] = [folder(), folder()];
  const program = (path: string, text: string) => {
    mkdirSync(join(cwd, path, '..'), { recursive: true });
    writeFileSync(join(cwd, path), `#!/bin/sh\n${text}\n`);
    chmodSync(join(cwd, path), 0o755);
  };
  program('.venv/bin/tool', 'echo from the project >> M');
  program('.venv/bin/seq', 'echo from the project >> M');
  const before = process.env.PATH;
  const parts = [join(cwd, '.venv/bin'), 'bin', '', elsewhere, before];
  process.env.PATH = parts.join(delimiter);
  try {
    const script = calls(
      ...['printf %s "$PATH" > path', 'tool', 'ls', 'seq 1'].map((command): [string, Json] => [
        'bash',
        { command },
      ]),
    );
    const rules = { allow: ['bash(printf %s "$PATH" > path)', 'bash(tool:*)', 'bash(seq:*)'] };
    const byRule = prepareAgent({ cwd, rules, script });
    await byRule.agent.chat('go');
    assert.deepEqual(byRule.outcomes(), ['worked', 'denied', 'worked', 'denied']);
    const path = readFileSync(join(cwd, 'path'), 'utf8').split(delimiter);
    assert.ok(path.includes(elsewhere) && !path.includes(join(cwd, '.venv/bin')), `${path}`);
    assert.ok(!path.includes('') && !path.includes('bin'), `${path}`);
    const [, refused] = byRule.results();
    assert.match(refused!.text, /this project has put on your PATH: ".*\/\.venv\/bin\/tool"/);
    assert.equal(byRule.file('M'), undefined);

    const answers = ['y', 'y'] as const;
    const again = calls(
      ['bash', { command: 'printf %s "$PATH" >path' }],
      ['bash', { command: 'if true; then tool; fi' }],
    );
    const asked = prepareAgent({ cwd, answers: [...answers], script: again });
    await asked.agent.chat('go');
    assert.deepEqual(asked.outcomes(), ['worked', 'worked']);
    assert.equal(readFileSync(join(cwd, 'path'), 'utf8'), process.env.PATH);
    assert.equal(asked.file('M'), 'from the project\n');
    const shown = asked.questions.flatMap(({ lines }) => lines).join('\n');
    assert.match(shown, /! it starts what this project has put on your PATH: ".*\/bin\/tool"/);
  } finally {
    process.env.PATH = before;
  }
});

test('E7: files that make programs run elsewhere are asked about in accept-edits', () => {
  const cwd = folder();
  const before = process.env.PATH;
  process.env.PATH = [before, join(cwd, 'tools'), 'sub/bin', ''].join(delimiter);
  const { gate, agent } = prepareAgent({ mode: 'accept-edits', cwd });
  process.env.PATH = before;
  const effect = (path: string) =>
    gate.judge(agent.table.get('write')!, { path, content: '' }).effect;
  const names =
    '.gitpod.yml devfile.yaml .replit .huskyrc .huskyrc.json Guardfile Dangerfile dangerfile.js ' +
    'renovate.json renovate.json5 .renovaterc .codesandbox/tasks.json tools/ls sub/bin/ls';
  for (const name of names.split(' ')) assert.equal(effect(name), 'ask', name);
  for (const name of ['bin/x', 'src/bin.ts', 'guard.ts', 'tools/x/y', 'ls'])
    assert.equal(effect(name), 'allow', name);
});

test("E10: a project's thousand deny rules hide their files and no others, and a search comes to its end", async () => {
  const patterns = ['x*', '**/y*z', 'd{a,b}/k', '{x,y}', '[a-c]q*', './w', 'v/**'];
  const deny = Array.from({ length: 1000 }, (_, n) => {
    const pattern = patterns[n % patterns.length]!;
    return `read(${pattern}${n < 7 ? '' : n})`;
  });
  const sources = Array.from({ length: 200 }, (_, n) => [`src/deep/p${n}.ts`, 'needle\n'] as const);
  const hidden = ['x1', 'sub/yz', 'da/k', 'aq', 'w', 'v/a/b'];
  const files = {
    ...Object.fromEntries([...sources, ...hidden.map((name) => [name, 'needle\n'] as const)]),
    '.claude/settings.json': JSON.stringify({ permissions: { deny } }),
  };
  const { agent, results } = prepareAgent({
    files,
    script: calls(['grep', { pattern: 'needle', limit: 1000 }]),
  });
  await agent.chat('go');
  const { text } = results()[0]!;
  assert.equal(text.match(/p\d+\.ts:1:needle/g)?.length, 200, text.slice(-300));
  for (const name of hidden) assert.ok(!text.includes(`${name}:1:`), name);
});

test('J30: the rules of a project, which nobody has approved, make neither the start nor a judgement long', () => {
  const deny = (patterns: string[], count: number) => {
    const rules = Array.from(
      { length: count },
      (_, n) => `read(${patterns[n % patterns.length]}${n})`,
    );
    return JSON.stringify({ permissions: { deny: rules } });
  };
  // Of 35 kB of these, 200 rules, the start took 30 s, and the first judgement the memory.
  const braces = deny(['*a'.repeat(45) + '{x,y}'.repeat(9)], 2000);
  const wide = judges({ files: { '.claude/settings.json': braces } });
  assert.equal(wide.effect('ls'), 'allow');
  assert.match(wide.warnings.join('\n'), /stand for too many patterns \(its rules do not count\)/);
  // Many files by many rules: what was not seen to its end is asked about.
  const names = Array.from({ length: 4500 }, (_, n) => [`s/aa/bb${n % 9}/ab${n}`, ''] as const);
  const stars = deny(['x*', '**/*a*b*c', 'd{a,b}/k', '[a-c]q*'], 1000);
  const files = { ...Object.fromEntries(names), '.claude/settings.json': stars };
  assert.equal(judges({ files, rules: ruled('grep') }).effect('grep -r a s'), 'ask');
});
