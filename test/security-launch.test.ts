// Attack cases A20 to A24 and F5: where a server starts, where its command is looked for, and what
// a person is shown before they approve it.

import assert from 'node:assert/strict';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { afterEach, test } from 'node:test';
import { Trust } from '../agent.ts';
import { cautions } from '../chapters/17-the-gate/cautions.ts';
import { hostsIn, quoted, withHosts } from '../chapters/17-the-gate/safe-text.ts';
import { launchLines } from '../chapters/17-the-gate/trust.ts';
import { McpManager, type Json } from '../mcp.ts';
import { person } from './help/agent-with-gate.ts';
import { cleanUp, folder, goodServer, habit, later } from './help/basics.ts';
import { jsonLines, place, run, Terminal, userServers } from './help/terminal.ts';

afterEach(cleanUp);

const good = { command: process.execPath, args: [goodServer] };

function write(file: string, content: string, mode = 0o644): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
  chmodSync(file, mode);
}

type Setting = { user?: Json; project?: Json; home?: string; cwd?: string; answers?: string[] };

/** A manager with these servers, as the program has it. Without answers nobody can be asked. */
async function manage({ user = {}, project = {}, answers, ...places }: Setting) {
  const { home = realpathSync(folder()), cwd = realpathSync(folder()) } = places;
  write(join(home, '.claude', 'settings.json'), JSON.stringify({ mcpServers: user }));
  write(join(cwd, '.mcp.json'), JSON.stringify({ mcpServers: project }));
  const warnings: string[] = [];
  const warn = (text: string) => void warnings.push(text);
  const { user: someone, questions } = person(...(answers ?? []));
  const trust = new Trust({ home, cwd, warn, person: answers && someone });
  const approve = trust.approve.bind(trust);
  const manager = new McpManager({ home, cwd, approve, onWarning: warn });
  later(() => manager.disconnectAll());
  await manager.loadAndConnect();
  const states = Object.fromEntries(manager.status().map(({ name, state }) => [name, state]));
  /** What a server of fixtures/habits.mjs sees around it. */
  const where = async (name: string) => {
    const { text } = await manager.callTool(`mcp__${name}__where`);
    return JSON.parse(text) as { cwd: string; env: Record<string, string> };
  };
  return { home, cwd, manager, states, where, warnings, questions, trust };
}

// ─── A20: where it starts ───

test('A20: code of a clone does not run through npx, python -m or ./ of your servers', async () => {
  const script = (marker: string) => `#!/bin/sh\ntouch "${marker}"\n`;
  const markers = folder();
  const [npx, python, dot] = ['npx', 'python', 'dot'].map((name) => join(markers, name));
  const where = place(
    {},
    userServers({
      npx: { command: 'npx', args: ['--offline', '-y', 'some-server'] },
      python: { command: 'python3', args: ['-m', 'some_server'] },
      dot: { command: './start' },
    }),
  );
  write(join(where.cwd, 'node_modules', '.bin', 'some-server'), script(npx!), 0o755);
  write(join(where.cwd, 'some_server.py'), `open(${JSON.stringify(python)}, 'w')`);
  write(join(where.cwd, 'start'), script(dot!), 0o755);
  const { out } = await run(where, ['mcp', 'list', '--json']);
  assert.deepEqual(readdirSync(markers), []);
  const states = jsonLines(out)[0].map(({ state }: Json) => state);
  assert.deepEqual(states, ['failed', 'failed', 'failed']);
});

test('A20: your own start in an empty folder and are told of the project', async () => {
  const user = { mine: habit(), there: { ...habit(), cwd: '/' } };
  const project = { its: habit() };
  const { home, cwd, where } = await manage({ user, project, answers: ['y'] });
  const [mine, there, its] = await Promise.all(['mine', 'there', 'its'].map(where));
  assert.equal(mine!.cwd, join(home, '.mcp-by-hand', 'empty', 'mine'));
  assert.deepEqual(readdirSync(mine!.cwd), []);
  assert.deepEqual([there!.cwd, its!.cwd], ['/', cwd]);
  for (const { env } of [mine!, there!, its!]) assert.equal(env.CLAUDE_PROJECT_DIR, cwd);
});

test('A20: the empty folder is ours and empty, or it is not used', async () => {
  const home = realpathSync(folder());
  const ours = join(home, '.mcp-by-hand');
  write(join(ours, 'empty', 'mine', 'node_modules', '.bin', 'x'), '');
  const again = await manage({ home, user: { mine: habit() } });
  const found = readdirSync((await again.where('mine')).cwd);
  assert.deepEqual(found, [], 'what was left there is out of the way');
  const kept = readdirSync(join(ours, 'empty')).filter((name) => name.startsWith('mine-'));
  assert.equal(kept.length, 1, 'and not lost');
  const planted = [
    (path: string) => symlinkSync(folder(), path),
    (path: string) => writeFileSync(path, ''),
    (path: string) => {
      mkdirSync(path);
      chmodSync(path, 0o777);
    },
  ];
  for (const plant of planted) {
    const other = realpathSync(folder());
    mkdirSync(join(other, '.mcp-by-hand'), { mode: 0o700 });
    plant(join(other, '.mcp-by-hand', 'empty'));
    const user = { mine: habit(), there: { ...good, cwd: '/' } };
    const { states, manager } = await manage({ home: other, user });
    assert.deepEqual(states, { mine: 'failed', there: 'connected' });
    assert.match(manager.status()[0]!.reason!, /"mine" in .*settings\.json: .*empty.*"cwd"/);
  }
});

test('A20: one of your own that follows the project is asked about, once in each', async () => {
  later(() => delete process.env.A20_HERE);
  const follows: Json[] = [
    { ...habit(), cwd: '.' },
    { ...habit(), cwd: '${NOT_SET:-.}/' },
    { ...habit(), cwd: '${CLAUDE_PROJECT_DIR}' },
    { ...habit(), cwd: '${A20_HERE}/sub/..' },
    { ...habit(), args: [...habit().args, '${A20_HERE}/server.js'] },
    { ...habit(), env: { PYTHONPATH: '${CLAUDE_PROJECT_DIR}' } },
  ];
  for (const config of follows) {
    const home = realpathSync(folder());
    const cwd = realpathSync(folder());
    const link = join(folder(), 'link');
    symlinkSync(cwd, link);
    mkdirSync(join(cwd, 'sub'));
    process.env.A20_HERE = link;
    const at = { home, cwd, user: { mine: config } };
    const what = JSON.stringify(config);
    assert.equal((await manage(at)).states.mine, 'pending', `nobody to ask: ${what}`);
    const asked = await manage({ ...at, answers: ['y'] });
    assert.equal(asked.states.mine, 'connected', what);
    assert.ok(asked.questions[0]!.text.includes(cwd), 'the folder is named');
    if (config.cwd) assert.equal((await asked.where('mine')).cwd, cwd);
    assert.equal((await manage(at)).states.mine, 'connected', `agreed to: ${what}`);
    process.env.A20_HERE = realpathSync(folder());
    const elsewhere = { ...at, cwd: process.env.A20_HERE };
    assert.equal((await manage(elsewhere)).states.mine, 'pending', `another folder: ${what}`);
  }
});

test('A20: a relative word in an entry of your own is warned of', async () => {
  const words = ['./x', '../x', '.', 'server.js', '--root=.', 'sub/server.js'];
  const cwd = realpathSync(folder());
  write(join(cwd, 'server.js'), '');
  write(join(cwd, 'sub', 'server.js'), '');
  const others = ['data', '-y', '/etc/hosts'];
  const user = { mine: { ...habit(), args: [...habit().args, ...words, ...others] } };
  const { manager, warnings } = await manage({ cwd, user });
  const [warning = ''] = manager.status()[0]!.warnings;
  for (const word of words) assert.ok(warning.includes(JSON.stringify(word)), word);
  for (const word of others) assert.ok(!warning.includes(JSON.stringify(word)), word);
  assert.match(warning, /"cwd": "\."/);
  assert.deepEqual(warnings, [warning]);
  const add = ['mcp', 'add', '-s', 'user', 'mine', '--', 'node', './server.js'];
  const added = await run(place(), add);
  assert.equal(added.code, 0);
  assert.match(added.err, /"\.\/server\.js"/);
});

// ─── A21: where its command is looked for ───

test('A21: relative, empty and project-owned parts of PATH are not searched', async () => {
  const where = place();
  const marker = join(folder(), 'marker');
  const link = join(folder(), 'link');
  const parts = ['', '.', 'bin', join(where.cwd, 'bin'), link, '~/bin'];
  symlinkSync(join(where.cwd, 'bin'), link);
  for (const name of ['only-here', 'npx', 'node'])
    for (const at of ['.', 'bin', '~/bin'])
      write(join(where.cwd, at, name), `#!/bin/sh\ntouch "${marker}"\n`, 0o755);
  const PATH = [...parts, process.env.PATH].join(delimiter);
  const servers = {
    gone: { command: 'only-here', cwd: '.' },
    own: { command: 'only-here', cwd: '.', env: { PATH: `bin:${join(where.cwd, 'bin')}` } },
    inner: { command: 'env', args: ['only-here'], cwd: '.' },
    good: { command: 'node', args: [goodServer], cwd: '.' },
  };
  write(join(where.cwd, '.mcp.json'), JSON.stringify(servers));
  for (const [name, config] of Object.entries(servers))
    new Trust(where).allow({ name, config, file: '', scope: 'project', authority: 'project' });
  const { out } = await run(where, ['mcp', 'list', '--json'], { env: { PATH } });
  const states = jsonLines(out)[0].map(({ name, state }: Json) => [name, state]);
  const expected = { gone: 'failed', own: 'failed', inner: 'failed', good: 'connected' };
  assert.deepEqual(Object.fromEntries(states), expected);
  assert.ok(!existsSync(marker));
});

test('A21: a server gets a clean PATH, also where its entry sets one', async () => {
  const clone = realpathSync(folder());
  const cwd = join(clone, 'packages', 'app');
  for (const path of [cwd, join(clone, '.git')]) mkdirSync(path, { recursive: true });
  const dirty = ['', '.', 'bin', join(cwd, 'bin'), join(clone, 'node_modules', '.bin')];
  const entry = (...parts: string[]) => ({ ...habit(), env: { PATH: parts.join(delimiter) } });
  const user = { some: entry(...dirty, '/opt/tools'), none: entry(...dirty) };
  const { where } = await manage({ cwd, user });
  const [some, none] = await Promise.all(['some', 'none'].map(where));
  assert.equal(some!.env.PATH, '/opt/tools');
  assert.match(none!.env.PATH!, /^\/usr\/bin:/);
});

// ─── A22, A23: what is approved is what was shown ───

const swapped = { command: '/bin/false', args: ['swapped'] };

test('A22: trust allow shows an entry first, and approves what it showed', async () => {
  const where = place({ '.mcp.json': { s: { ...good, env: { LD_PRELOAD: 'x.so' } } } });
  const file = join(where.cwd, '.mcp.json');
  const shown = new Terminal(where, ['trust', 'allow', 's']);
  await shown.see('Approve it?');
  assert.match(shown.text, /command: .*\n[^]*! it sets "LD_PRELOAD"[^]*fingerprint: sha256:/);
  assert.deepEqual(new Trust(where).list().servers, [], 'nothing is approved before the answer');
  writeFileSync(file, JSON.stringify({ s: swapped }));
  shown.enter('y');
  assert.equal(await shown.ended(), 0);
  assert.deepEqual(new Trust(where).list().servers[0]!.config.command, good.command);
  const again = new Terminal(where, ['trust', 'allow', 's']);
  await again.see(/It has changed since you last decided on it:[^]*Approve it\?/);
  again.enter('');
  assert.equal(await again.ended(), 3);
  assert.deepEqual(new Trust(where).list().servers[0]!.config.command, good.command);
});

test('A22: with a fingerprint, trust allow approves that entry and no other', async () => {
  const where = place({ '.mcp.json': { s: good } });
  const refused = await run(where, ['probe', 's']);
  const [pair = ''] = /s=sha256:[0-9a-f]{64}/.exec(refused.err) ?? [];
  writeFileSync(join(where.cwd, '.mcp.json'), JSON.stringify({ s: swapped }));
  const late = await run(where, ['trust', 'allow', pair]);
  assert.equal(late.code, 3);
  assert.deepEqual(new Trust(where).list().servers, []);
  writeFileSync(join(where.cwd, '.mcp.json'), JSON.stringify({ s: good }));
  assert.equal((await run(where, ['trust', 'allow', pair])).code, 0);
  assert.equal(new Trust(where).list().servers.length, 1);
});

test('A23: a refusal without a person shows the entry and its fingerprint', async () => {
  const config = { command: 'npx', args: ['-y', 'some\nserver'], env: { NODE_OPTIONS: '-r ./x' } };
  const { warnings, states } = await manage({ project: { s: config } });
  assert.deepEqual([states, warnings.length], [{ s: 'pending' }, 1]);
  const { lines } = (await manage({ project: { s: config }, answers: ['n'] })).questions[0]!;
  for (const line of lines.slice(1)) assert.ok(warnings[0]!.includes(line), line);
  assert.match(warnings[0]!, /fingerprint: (sha256:[0-9a-f]{64})\n.*--allow-server s=\1$/);
});

// ─── A24, F5: what it really means ───

test('F5, A24: a host that is not what it looks like is shown in ASCII beside its text', () => {
  const cyrillic = 'xn--80ak6aa92e.com';
  const disguised: [text: string, host: string][] = [
    ['https://аррӏе.com/mcp', cyrillic],
    ['https:аррӏе.com', cyrillic],
    ['https:\\\\аррӏе.com', cyrillic],
    ['wss://x@аррӏе.com:8443/', cyrillic],
    ['--url=https://аррӏе.com?a', cyrillic],
    ['git@аррӏе.com:a/b.git', cyrillic],
    ['see https://аррӏе.com.', cyrillic],
    ['https://ｅxample.com', 'example.com'],
    ['https://example。com', 'example.com'],
    ['https://%65xample.com', 'example.com'],
    ['http://2130706433/', '127.0.0.1'],
    ['http://0x7f.1:80', '127.0.0.1'],
  ];
  for (const [text, host] of disguised) {
    assert.ok(quoted(text).endsWith(`" (that is ${host})`), quoted(text));
    assert.ok(
      launchLines({ url: text, args: [text], deep: { list: [text] } }).every(
        (line) => line === '  deep:' || line.endsWith(`(that is ${host})`),
      ),
      text,
    );
    assert.ok(withHosts(`first\n${text}\nlast`).includes(`${text} (that is ${host})\n`), text);
  }
  const plain = [
    'https://example.com',
    'HTTPS://EXAMPLE.com:443/ä?ö',
    'pkg@1.2.3',
    'http://127.0.0.1',
    'Übersicht.md',
    'http://[::1]:80',
    'https://${HOST}/mcp',
    'https:',
    'http://',
    `https://аррӏе.com (that is ${cyrillic})`,
  ];
  for (const text of plain) assert.equal(hostsIn(text), '', text);
});

test('F5: to look for hosts takes no time, whatever the text', () => {
  const time = (text: string) => {
    const start = performance.now();
    hostsIn(text);
    return performance.now() - start;
  };
  const hard = (size: number) => [
    `https://${'ф'.repeat(size)}.com`,
    'https:'.repeat(size / 6),
    `https://x${'.'.repeat(size)}y`,
    '@'.repeat(size),
    `@${'a'.repeat(size)}`,
    `${'a+'.repeat(size / 2)}://`,
    Array.from({ length: size / 20 }, (_, n) => `http://${n}.1.1/`).join(' '),
  ];
  const sum = (size: number) =>
    hard(size)
      .map(time)
      .reduce((a, b) => a + b);
  sum(20_000); // warm
  const isLinear = sum(400_000) < 200 * Math.max(sum(20_000), 1);
  assert.ok(isLinear, 'twenty times the text, and not 400 times the work');
});

const NAMES = {
  'which decides what code is loaded': `
    PATH Path NODE_OPTIONS node_path LD_PRELOAD LD_AUDIT DYLD_INSERT_LIBRARIES BASH_ENV ENV ZDOTDIR
    PYTHONPATH PYTHONSTARTUP PERL5OPT RUBYOPT JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS
    CLASSPATH DOTNET_STARTUP_HOOKS PHPRC LUA_INIT`,
  'which decides where packages come from': `
    npm_config_registry NPM_CONFIG_REGISTRY Npm_Config_X PIP_INDEX_URL UV_INDEX_URL
    UV_DEFAULT_INDEX GOPROXY YARN_REGISTRY`,
  'which names commands that other programs run': `
    GIT_SSH_COMMAND GIT_SSH GIT_EXTERNAL_DIFF GIT_CONFIG_COUNT GIT_PAGER SSH_ASKPASS EDITOR`,
  'which decides whose certificates are believed': `
    NODE_TLS_REJECT_UNAUTHORIZED GIT_SSL_NO_VERIFY NODE_EXTRA_CA_CERTS REQUESTS_CA_BUNDLE`,
  'which decides whose settings programs read': 'HOME USERPROFILE XDG_CONFIG_HOME',
  'which decides where its traffic goes': 'HTTPS_PROXY all_proxy OPENAI_BASE_URL DOCKER_HOST',
};

const LINES = {
  'runs code that is in the arguments': `
    node -e x; node --eval=x; node --eval x; node -pe x; node -p x; NODE.EXE -e x;
    /usr/bin/node --require ./x a.js; node -r ./x a.js; node --import=./x a.js; node22 -e x;
    node --experimental-loader ./x a.js; python -c x; python3.12 -Ic x; py -c x; perl -e x;
    ruby -rx a.rb; php -r x; bun --preload ./x; deno eval x; npx -c x; npm exec --call=x a@1.2.3;
    java -javaagent:x.jar A; osascript -e x; node --inspect=0.0.0.0 a.js; git -c core.pager=x log`,
  'it says where packages come from': `
    npx --registry=http://x a@1.2.3; npm exec --@a:registry x; uvx --index-url x a==1.0;
    pipx run --pip-args=-i a==1.0 -i x; npx --userconfig x a@1.2.3`,
  'runs a package, or a script of package.json': `
    npm exec a@1.2.3; npm x a@1.2.3; npm run a; yarn dlx a@1.2.3`,
  'starts another program': `
    env X=1 a; /usr/bin/env a; cross-env X=1 a; xargs a; timeout 5 a`,
  'which decides what code is loaded': `
    env NODE_OPTIONS=x node; docker run -e LD_PRELOAD=x a:1; x --env=PATH=y`,
  'starts a shell': `
    sh -c x; /bin/bash -lc x; cmd.exe /c x; CMD /c x; pwsh x; busybox sh; env sh`,
  'rights of another user': `
    sudo a; env sudo a; doas a; pkexec a`,
  'reaches out of its container': `
    docker run -v /:/x a:1; docker run --volume=/:/x a:1; docker run --mount type=bind a:1;
    podman run --privileged a:1; docker run --network=host a:1; docker run --pid host a:1;
    docker run -itv /:/x a:1`,
  'no version is named': `
    npx a; npx -y a@latest; npx a@1; npx a@^1.2.3; npx --package=a@1.2.3 -p b c;
    npx a --port=8080; npx a b@1.2.3; bunx a; pnpm dlx a; yarn dlx a; npm exec a; npm x -- a;
    uvx a; uvx --from a b; pipx run a; uv tool run a; cmd /c npx a; docker run a;
    docker run --rm -it --name x:1 a; docker run -e A=1 a:latest; npx cross-env@7.0.3 npx a;
    NPX.CMD a; go run a@latest`,
};

const listed = (text: string) => text.split(';').map((line) => line.trim());

test('A24: what changes the meaning of a program is pointed out, however it is written', () => {
  const configOf = (line: string) => {
    const [command, ...args] = line.split(' ');
    return { command, args };
  };
  for (const [why, names] of Object.entries(NAMES))
    for (const name of names.trim().split(/\s+/)) {
      const found = cautions({ command: 'x', env: { [name]: '1' } });
      assert.deepEqual(found, [`it sets "${name}", ${why}`]);
    }
  for (const [why, each] of Object.entries(LINES))
    for (const line of listed(each)) {
      const found = cautions(configOf(line));
      assert.ok(
        found.some((text) => text.includes(why)),
        `${line}: ${found}`,
      );
    }
  const harmless = `
    node a.js; node a.js --port 80; python3 -m a; npx -y a@1.2.3; npx -p a@1.2.3 b; uvx a==1.0;
    uvx --from=a==1.0 b; docker run --rm -i a:1.2; bunx @a/b@1.2.3; pipx run a==1.0;
    deno run a.ts;
    docker run a@sha256:${'0'.repeat(64)}`;
  for (const line of listed(harmless)) assert.deepEqual(cautions(configOf(line)), [], line);
  const env = { GIT_AUTHOR_NAME: 'a', PORT: '1', TOKEN: 'x' };
  assert.deepEqual(cautions({ command: 'x', env }), []);
});

test('A25: a variable that leads into the project is found wherever it does; a plain one asks nothing', async () => {
  const cwd = realpathSync(folder());
  const names = ['A25_PLAIN', 'A25_LIST', 'A25_FLAG', 'A25_URL'];
  later(() => names.forEach((name) => delete process.env[name]));
  process.env.A25_PLAIN = 'a-token';
  process.env.A25_LIST = ['/opt', join(cwd, 'lib')].join(delimiter);
  process.env.A25_FLAG = `--no-warnings --require=${join(cwd, 'x.cjs')}`;
  process.env.A25_URL = `file://${cwd}/x.mjs`;
  const user = Object.fromEntries(
    names.map((name) => [name, { ...good, env: { X: `\${${name}}` } }]),
  );
  const before = process.cwd();
  later(() => process.chdir(before));
  process.chdir(cwd); // as the program does: a relative path would be one of the project
  const { states } = await manage({ cwd, user });
  const [plain, ...leading] = names.map((name) => states[name]);
  assert.deepEqual([plain, leading], ['connected', ['pending', 'pending', 'pending']]);
});

test('A25: nor is a command looked for in a repository around that of the project', async () => {
  const outer = realpathSync(folder());
  const cwd = join(outer, 'sub');
  write(join(cwd, '.git'), 'gitdir: ../.git/modules/sub'); // a submodule
  mkdirSync(join(outer, '.git'));
  const PATH = [join(outer, 'bin'), '/opt/tools'].join(delimiter);
  const { where } = await manage({ cwd, user: { mine: { ...habit(), env: { PATH } } } });
  assert.equal((await where('mine')).env.PATH, '/opt/tools');
});

test('A28: no server of yours starts, or starts again, among what another has left behind', async () => {
  const user = { one: habit(), 'other ..': habit(), '..': habit() };
  const { where, home } = await manage({ user });
  assert.equal((await where('one')).cwd, join(home, '.mcp-by-hand', 'empty', 'one'));
  const folders = readdirSync(join(home, '.mcp-by-hand', 'empty')).sort();
  assert.deepEqual(folders, ['__', 'one', 'other___']);
});

test('A26: a look-alike is spelled out also where no address tells that it is a host', () => {
  const texts = [
    'curl аррӏе.com',
    'ssh -p 22 аррӏе.com',
    './а',
    'rm -rf ΑΒ',
    'docker pull сс/x',
    'echo привет; curl аррӏе.com # привет',
  ];
  for (const text of texts) assert.match(quoted(text), /\\u\{/, text);
  const honest = [
    'привет мир',
    'echo привет',
    'Файл а.txt и о нём',
    'Ελλάδα',
    'cat отчёт.txt',
    '東京',
  ];
  for (const text of honest) assert.equal(quoted(text), `"${text}"`, text);
});

test('A27: more ways to start a program that is not the one in sight', () => {
  const lines = `
    npx -yc x a@1.2.3; node --run x; node --env_file=x a.js; rbash x; bash5 x; bash-5.2 x;
    deno run -A https://x.test/a.ts; deno run npm:a; uv run --with a b; uv run --script x;
    jbang a@b; nix run github:a/b; dnx a; script -c x; find . -exec x; strace x; unshare x;
    nsenter x; systemd-run x; flatpak-spawn x; rsync -e x a b; tar --checkpoint-action=exec=x;
    git clone ext::x; npx --reg=http://x a@1.2.3; npx --cal=x a@1.2.3; bundle exec x; make x;
    poetry run x; docker compose up; docker run --env-file=x a:1`;
  for (const line of listed(lines)) {
    const [command, ...args] = line.split(' ');
    assert.notDeepEqual(cautions({ command, args }), [], line);
  }
  const names = `
    SHELL AWS_CONFIG_FILE DOCKER_CONFIG TAR_OPTIONS GOENV RUSTUP_HOME VIMINIT GNUPGHOME CURL_HOME
    TF_CLI_CONFIG_FILE AWS_ENDPOINT_URL OLLAMA_HOST GTK_MODULES QT_PLUGIN_PATH MAVEN_ARGS ANT_OPTS
    MISE_CONFIG_FILE CLOUDSDK_CONFIG CC HOSTALIASES`;
  for (const name of names.trim().split(/\s+/))
    assert.notDeepEqual(cautions({ command: 'x', env: { [name]: '1' } }), [], name);
});
