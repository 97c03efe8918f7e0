// Attack cases E of files, by their ids: links, files that make programs run, files that hold
// secrets. What the tools refuse by themselves (E1 E2 E3 E5 E6 E10 E11 E12) is in
// security-files.test.ts.

import assert from 'node:assert/strict';
import { linkSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import type { Json } from '../mcp.ts';
import { calls, prepareAgent } from './help/agent-with-gate.ts';
import { cleanUp, folder } from './help/basics.ts';

afterEach(cleanUp);

// ─── E: files and shell ───

test('E4: a question about a link shows where it leads, also if the names are alike', async () => {
  const outside = folder();
  for (const name of ['notes.md', '.bashrc', 'id_rsa'])
    writeFileSync(join(outside, name), 'secret');
  const { agent, questions, outcomes, cwd } = prepareAgent({
    answers: ['n', 'n', 'n', 'n'],
    script: calls(
      ['read', { path: 'notes.md' }],
      ['read', { path: './.bashrc' }],
      ['read', { path: 'dir/id_rsa' }],
      ['write', { path: 'inside', content: 'x' }],
    ),
  });
  symlinkSync(join(outside, 'notes.md'), join(cwd, 'notes.md'));
  symlinkSync(join(outside, '.bashrc'), join(cwd, '.bashrc'));
  symlinkSync(outside, join(cwd, 'dir'));
  mkdirSync(join(cwd, 'sub'));
  symlinkSync(join(cwd, 'sub', 'inside'), join(cwd, 'inside'));
  await agent.chat('go');
  assert.deepEqual(outcomes(), ['denied', 'denied', 'denied', 'denied']);
  const really = ['notes.md', '.bashrc', 'id_rsa'].map((name) => join(outside, name));
  for (const [n, path] of [...really, join(cwd, 'sub', 'inside')].entries())
    assert.ok(
      questions[n]!.lines.includes(`  ! that is really ${JSON.stringify(path)}`),
      questions[n]!.text,
    );
});

test('E4, E5: a link that is turned while the question stands open leads nowhere', async () => {
  const outside = join(folder(), 'secret');
  writeFileSync(outside, 'TOP SECRET');
  for (const [tool, args] of [
    ['read', { path: 'a' }],
    ['write', { path: 'a', content: 'owned' }],
  ] as const) {
    const { agent, outcomes, results, cwd } = prepareAgent({
      files: { b: 'harmless' },
      rules: { ask: ['read', 'write'] },
      script: calls([tool, args]),
      answers: [
        () => {
          rmSync(join(cwd, 'a'));
          symlinkSync(outside, join(cwd, 'a'));
          return 'y';
        },
      ],
    });
    symlinkSync(join(cwd, 'b'), join(cwd, 'a'));
    await agent.chat('go');
    assert.deepEqual(outcomes(), ['failed']);
    assert.ok(!results()[0]!.text.includes('TOP SECRET'));
    assert.equal(readFileSync(outside, 'utf8'), 'TOP SECRET');
  }
});

test('E7: files that other programs run are asked about, also in accept-edits, and by any spelling', async () => {
  const paths = [
    '.git/hooks/pre-commit',
    '.git/config',
    '.GIT/config',
    'sub/.git/hooks/x',
    '.husky/pre-push',
    '.vscode/tasks.json',
    '.idea/x.xml',
    '.devcontainer/devcontainer.json',
    '.bashrc',
    '.zshenv',
    '.profile',
    '.envrc',
    '.npmrc',
    '.yarnrc.yml',
    '.github/workflows/ci.yml',
    '.gitmodules',
    '.pre-commit-config.yaml',
    '.git ./config',
  ];
  const { agent, outcomes, questions, file } = prepareAgent({
    mode: 'accept-edits',
    answers: paths.map(() => 'n'),
    script: calls(...paths.map((path): [string, Json] => ['write', { path, content: 'x' }]), [
      'write',
      { path: 'src/git.ts', content: 'x' },
    ]),
  });
  await agent.chat('go');
  assert.deepEqual(outcomes(), [...paths.map(() => 'denied'), 'worked']);
  assert.equal(questions.length, paths.length);
  assert.ok(paths.every((path) => file(path) === undefined));
});

// ─── E15, E16: files that make programs run, and files that hold secrets ───

const writes = (paths: string[]) =>
  calls(...paths.map((path): [string, Json] => ['write', { path, content: 'x' }]));
const reads = (paths: string[]) =>
  calls(...paths.map((path): [string, Json] => ['read', { path }]));

const FENCED = [
  'CLAUDE.md',
  'AGENTS.md',
  'sub/Agents.MD',
  'GEMINI.md',
  '.cursorrules',
  '.cursor/rules/x.mdc',
  '.windsurfrules',
  '.github/copilot-instructions.md',
  '.github/agents/x.md',
  '.codex/config.toml',
  '.claude/commands/x.md',
  '.gemini/settings.json',
  '.vscode/mcp.json',
  'mcp.json',
  'opencode.json',
  '.gitattributes',
  '.gitmodules',
  'sub/.git',
  'bare/HEAD',
  'lefthook.yml',
  '.lefthook.toml',
  '.lintstagedrc.json',
  '.husky/_/x',
  '.gitlab-ci.yml',
  'ci/x.gitlab-ci.yml',
  'Jenkinsfile',
  'azure-pipelines.yml',
  '.buildkite/pipeline.yml',
  '.circleci/config.yml',
  '.travis.yml',
  'action.yml',
  '.devcontainer.json',
  'x.code-workspace',
  '.exrc',
  '.dir-locals.el',
  '.gdbinit',
  '.pnpmfile.cjs',
  '.yarn/plugins/x.cjs',
  '.cargo/config.toml',
  'pip.conf',
  '.mvn/jvm.config',
  '.zshrc',
  '.bash_aliases',
  '.config/fish/config.fish',
  'sitecustomize.py',
  'x.pth',
  '.envrc',
  'netlify.toml',
  'Procfile',
  '.CURSOR/mcp.json',
  'claude.md.',
  'CLAUDE\u200b.md',
  'ＡＧＥＮＴＳ.md',
];
const BUILT = [
  'package.json',
  'sub/Package.json',
  'package-lock.json',
  'Makefile',
  'GNUmakefile',
  'justfile',
  'Taskfile.yml',
  'vite.config.ts',
  'next.config.mjs',
  '.eslintrc.js',
  '.prettierrc.cjs',
  'tsconfig.json',
  'tsconfig.build.json',
  'Cargo.toml',
  'build.rs',
  'pyproject.toml',
  'setup.py',
  'conftest.py',
  'requirements-dev.txt',
  'Gemfile',
  'Rakefile',
  'build.gradle.kts',
  'gradlew',
  'gradle/wrapper/gradle-wrapper.properties',
  'pom.xml',
  'CMakeLists.txt',
  '.tool-versions',
  'mise.toml',
  'Dockerfile',
  'Dockerfile.dev',
  'docker-compose.yml',
  'compose.yaml',
  'BUILD.bazel',
  'App.csproj',
  'Directory.Build.targets',
  'binding.gyp',
  'node_modules/x/index.js',
  'flake.nix',
  '.pylintrc',
  'go.mod',
];
const FREE = ['src/package.ts', 'docs/makefile.md', 'config.ts', 'src/build/x.ts', 'src/ahead.ts'];
const SECRETS = [
  'prod.tfvars',
  'terraform.tfstate',
  'x.tfstate.backup',
  'kubeconfig',
  '.kube/config',
  '.docker/config.json',
  '.netrc',
  '.pgpass',
  'service-account-prod.json',
  'client_secret_1.json',
  'x.p12',
  'x.pfx',
  'x.jks',
  'x.keystore',
  'x.kdbx',
  '.aws/credentials',
  '.ssh/known_hosts',
  '.gnupg/x',
  'secrets.yml',
  'config/secrets.yaml',
  '.env.production',
  '.env.local',
  '.env-prod',
  '.mcp.json',
  '.vscode/mcp.json',
  '.claude/settings.local.json',
  '.git/config',
  '.bash_history',
  '.mcp-by-hand/logins.json',
  'deploy_rsa',
  '.cargo/credentials.toml',
  'AUTH.json',
  '.dev.vars',
  'Secrets.YAML',
  '.env\u200b',
  'id_rsa ',
  'SE\u0301CRET/../.netrc.',
];
const HARMLESS = [
  '.env.example',
  '.env-sample',
  '.env.prod.template',
  'id_rsa.pub',
  'src/secrets.ts',
  'AGENTS.md',
  'package.json',
  '.github/workflows/ci.yml',
  'Makefile',
  '.git/HEAD',
  '.gitattributes',
];

test('E15: what runs by itself, or steers an agent, is asked about every time', async () => {
  const { agent, outcomes, questions } = prepareAgent({
    mode: 'accept-edits',
    maxCalls: 200,
    rules: { allow: ['write', 'write(**)'] },
    script: writes([...FENCED, ...FREE]),
    answers: FENCED.map(() => 'n'),
  });
  await agent.chat('go');
  const expected = [...FENCED.map(() => 'denied'), ...FREE.map(() => 'worked')];
  const wrong = outcomes().findIndex((outcome, n) => outcome !== expected[n]);
  assert.equal(wrong, -1, [...FENCED, ...FREE][wrong]);
  for (const { text, prompt } of questions) {
    assert.match(text, /call write \(.*(runs?|obey|steers).*\):/);
    assert.ok(!prompt.includes('lways'), text);
  }
});

test('E15: a build file is asked about, until the user has allowed this very file', async () => {
  const again = ['package.json', 'Makefile', 'pom.xml', 'sub/pom.xml'];
  const { agent, outcomes, questions } = prepareAgent({
    mode: 'accept-edits',
    maxCalls: 200,
    rules: { allow: ['write', 'write(**)', 'write(pom.xml)'] },
    script: writes([...BUILT.filter((path) => path !== 'pom.xml'), ...again]),
    answers: [...BUILT.slice(1).map((_, n) => (n === 0 ? 'always' : 'n')), 'n', 'n'],
  });
  await agent.chat('go');
  const first = BUILT.slice(1).map((_, n) => (n === 0 ? 'worked' : 'denied'));
  const wrong = outcomes().findIndex((outcome, n) => n < first.length && outcome !== first[n]);
  assert.equal(wrong, -1, BUILT.filter((path) => path !== 'pom.xml')[wrong]);
  assert.deepEqual(outcomes().slice(-4), ['worked', 'denied', 'worked', 'denied']);
  assert.ok(questions.every(({ prompt }) => prompt.includes('[a]lways this file')));
  assert.match(questions[0]!.text, /\(a package manager runs what it names\)/);
});

test('E15: with nobody to ask, a build file stays as it is', async () => {
  const mode = 'accept-edits';
  const { agent, outcomes, results } = prepareAgent({ mode, script: writes(['package.json']) });
  await agent.chat('go');
  assert.deepEqual(outcomes(), ['denied']);
  assert.match(results()[0]!.text, /a package manager runs what it names, and there is nobody/);
  assert.match(results()[0]!.text, /--allow 'write\(package\.json\)'/);
});

test('E16: what may hold secrets is not read unasked; what only steers programs is', async () => {
  const files = Object.fromEntries(HARMLESS.map((path) => [path, 'x']));
  const { agent, outcomes } = prepareAgent({
    files,
    maxCalls: 200,
    script: reads([...SECRETS, ...HARMLESS]),
  });
  await agent.chat('go');
  const expected = [...SECRETS.map(() => 'denied'), ...HARMLESS.map(() => 'worked')];
  const wrong = outcomes().findIndex((outcome, n) => outcome !== expected[n]);
  assert.equal(wrong, -1, [...SECRETS, ...HARMLESS][wrong]);
});

test('E16: a second name does not open a file, and a search passes it over', async () => {
  const files = { '.env': 'TOP SECRET', 'plain.txt': 'TOP', 'node_modules/p/index.js': 'TOP' };
  const { agent, outcomes, results, questions, cwd } = prepareAgent({
    files,
    answers: ['n'],
    script: calls(
      ['read', { path: 'notes.txt' }],
      ['read', { path: 'node_modules/p/index.js' }],
      ['grep', { pattern: 'TOP' }],
    ),
  });
  linkSync(join(cwd, '.env'), join(cwd, 'notes.txt'));
  linkSync(join(cwd, 'node_modules/p/index.js'), join(cwd, 'node_modules/p/twin.js'));
  await agent.chat('go');
  assert.deepEqual(outcomes(), ['denied', 'worked', 'worked']);
  assert.match(questions[0]!.text, /it has a second name \(a hard link\)/);
  assert.match(results()[2]!.text, /^plain\.txt:1:TOP\n/);
  assert.doesNotMatch(results()[2]!.text, /SECRET/);
});

test('E14: files that may hold secrets are asked about, by every tool; with nobody to ask they stay closed', async () => {
  const secrets = [
    '.env',
    '.env.local',
    'prod.env',
    'server.pem',
    'x.key',
    'id_rsa',
    'id_ed25519',
    '.npmrc',
    '.git-credentials',
    '.netrc',
    '.aws/credentials',
    '.ssh/config',
    '.ENV',
    'sub/.env',
  ];
  const files = Object.fromEntries(secrets.map((path) => [path, 'TOP SECRET']));
  const script = calls(
    ...secrets.flatMap((path): [string, Json][] => [
      ['read', { path }],
      ['grep', { pattern: 'S', path }],
      ['edit', { path, old: 'TOP', new: 'x' }],
    ]),
    ['grep', { pattern: 'SECRET' }],
    ['read', { path: 'link' }],
    ['read', { path: '.env.example' }],
  );
  for (const mode of ['ask', 'accept-edits'] as const) {
    const { agent, outcomes, cwd, results } = prepareAgent({
      mode,
      files: { ...files, '.env.example': 'FILL=ME' },
      script,
      maxCalls: 100,
    });
    symlinkSync(join(cwd, '.env'), join(cwd, 'link'));
    await agent.chat('go');
    assert.deepEqual(outcomes(), [
      ...secrets.flatMap(() => ['denied', 'denied', 'denied']),
      'worked',
      'denied',
      'worked',
    ]);
    assert.ok(results().every(({ text }) => !text.includes('TOP SECRET')));
  }
  const asked = prepareAgent({ files, script: calls(['read', { path: '.env' }]), answers: ['y'] });
  await asked.agent.chat('go');
  assert.equal(asked.results()[0]!.text, 'TOP SECRET', 'a person may say yes');
});

// ─── F: what is shown ───

test('E17: hooks of a repository by any name, and what starts with a program, are asked about', async () => {
  const fenced = [
    '.bare/hooks/pre-commit',
    'x.git/hooks/post-checkout',
    '.jj/config.toml',
    '.sl/config',
    '.pdbrc',
    '.ghci',
    '.ocamlinit',
    '.iex.exs',
    '.local/bin/git',
    '.lvimrc',
    '.ycm_extra_conf.py',
    'x.desktop',
  ];
  const built = [
    '.eleventy.js',
    '.storybook/main.ts',
    'wdio.conf.ts',
    '.bazeliskrc',
    '.bazelversion',
    'build.zig',
    'dune',
    'project.clj',
    'tasks.py',
    'fabfile.py',
    'global.json',
    'rebar.config',
    'knexfile.js',
  ];
  const free = ['src/hooks/useList.ts', 'hooks/post.ts', 'dune.md', 'bin/x', 'tasks/a.py'];
  const paths = [...fenced, ...built, ...free];
  const { agent, outcomes } = prepareAgent({
    mode: 'accept-edits',
    maxCalls: 200,
    rules: { allow: ['write(**)'] },
    script: writes(paths),
  });
  await agent.chat('go');
  const worked = paths.filter((_, n) => outcomes()[n] === 'worked');
  assert.deepEqual(worked, free);
  const secret = [
    '.yarnrc.yml',
    '.bundle/config',
    'pip.conf',
    'nuget.config',
    '.condarc',
    'bunfig.toml',
    'local.settings.json',
    '.authinfo',
    '.kaggle/kaggle.json',
    '.cache/huggingface/token',
    'rclone.conf',
    '.sentryclirc',
    'key.asc',
    'x.gpg',
    'wp-config.php',
    '.vault_pass',
    '.config/hub',
  ];
  const reading = prepareAgent({ maxCalls: 200, script: reads(secret) });
  await reading.agent.chat('go');
  const open = reading.results().filter(({ text }) => !text.includes('nobody to ask'));
  assert.deepEqual(open, []);
});
