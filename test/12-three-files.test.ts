// Chapter 12: three files. The order of merging, the origin, a bad file named.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, test } from 'node:test';
import type { Extension, Json } from '../mcp.ts';
import { cleanUp, folder, rejection } from './help/basics.ts';
import { McpConnection, fillIn, loadEntries, transportType } from './help/subject.ts';

afterEach(cleanUp);

function files(contents: Record<string, unknown>) {
  const base = folder();
  const [home, cwd] = [join(base, 'home'), join(base, 'project')];
  for (const path of [home, cwd]) mkdirSync(path);
  const places: Record<string, string> = {
    user: join(home, '.claude/settings.json'),
    settings: join(cwd, '.claude/settings.json'),
    mcp: join(cwd, '.mcp.json'),
  };
  for (const [place, content] of Object.entries(contents)) {
    mkdirSync(dirname(places[place]!), { recursive: true });
    writeFileSync(
      places[place]!,
      typeof content === 'string' || Buffer.isBuffer(content) ? content : JSON.stringify(content),
    );
  }
  const load = () => {
    const problems: string[] = [];
    return { entries: loadEntries(home, cwd, (problem) => problems.push(problem)), problems };
  };
  return { home, cwd, places, load };
}
/** Fills in the variables of one value, as if it stood in a file of the user's. */
function expand(value: unknown, env: NodeJS.ProcessEnv): unknown {
  return fillIn({ name: 'x', file: '/f', scope: 'user', authority: 'user', config: { value } }, env)
    .value;
}
const server = (command: string) => ({ mcpServers: { [command]: { command } } });

test('three files are merged, each entry remembers its file and its scope', () => {
  const { load, places } = files({ user: server('a'), settings: server('b'), mcp: server('c') });
  const { entries, problems } = load();
  assert.deepEqual(
    [...entries.values()].map(({ name, file, scope, authority }) => [name, file, scope, authority]),
    [
      ['a', places.user, 'user', 'user'],
      ['b', places.settings, 'project', 'project'],
      ['c', places.mcp, 'project', 'project'],
    ],
  );
  assert.deepEqual(problems, []);
});

test('of one name the later file wins, and tells whom it replaces', () => {
  const one = (command: string) => ({ mcpServers: { x: { command } } });
  const { load, places } = files({
    user: one('from-user'),
    settings: one('from-settings'),
    mcp: one('from-mcp'),
  });
  const entry = load().entries.get('x')!;
  assert.deepEqual(
    [entry.config.command, entry.file, entry.shadows],
    ['from-mcp', places.mcp, places.settings],
  );
});

test('no file is no problem', () => {
  const { load } = files({});
  const { entries, problems } = load();
  assert.deepEqual([entries.size, problems], [0, []]);
});

test('fault 3: in a settings file only mcpServers counts; .mcp.json may be the bare mapping', () => {
  const settings = { statusLine: { type: 'command', command: 'date' }, hooks: {}, model: 'x' };
  const { load } = files({ user: settings, settings, mcp: { bare: { command: 'node' } } });
  assert.deepEqual([...load().entries.keys()], ['bare']);
  const flat = files({
    mcp: { $schema: 'https://example.org/x.json', inputs: [], bare: { command: 'node' } },
  });
  assert.deepEqual([...flat.load().entries.keys()], ['bare']);
  const nested = files({
    mcp: { statusLine: { command: 'date' }, mcpServers: { real: { command: 'node' } } },
  });
  assert.deepEqual([...nested.load().entries.keys()], ['real']);
});

test('a file in the form of VS Code is read; a server that is called "servers" is a server', () => {
  const code = files({
    mcp: {
      inputs: [],
      servers: { a: { type: 'stdio', command: 'node' }, b: { url: 'http://127.0.0.1' } },
    },
  });
  assert.deepEqual([...code.load().entries.keys()], ['a', 'b']);
  for (const server of [{ command: 'node' }, { url: 'http://127.0.0.1' }, { type: 'http' }]) {
    const bare = files({ mcp: { servers: server, other: { command: 'node' } } });
    assert.deepEqual([...bare.load().entries.keys()], ['servers', 'other']);
  }
  const list = files({ mcp: { servers: [{ command: 'node' }] } });
  assert.match(
    list.load().problems.join(),
    /\.mcp\.json is ignored: its "servers" is not an object/,
  );
  const settings = files({ user: { servers: { a: { command: 'node' } } } });
  assert.deepEqual(
    [...settings.load().entries.keys()],
    [],
    'in a settings file it may be anything',
  );
});

test('a file of five megabytes is read: those of people grow', () => {
  const history = Array.from({ length: 50_000 }, (_, n) => ({ display: 'x'.repeat(100), n }));
  const { load } = files({ user: { ...server('mine'), history } });
  const { entries, problems } = load();
  assert.deepEqual([[...entries.keys()], problems], [['mine'], []]);
});

test('A16: a project cannot read the variables that are hidden from it, in either case; the user can', () => {
  const entry = (authority: 'user' | 'project', text: string) => ({
    name: 'x',
    file: '/f',
    scope: 's',
    authority,
    config: { text },
  });
  const env = { THE_KEY: 'secret', the_key: 'secret', OTHER: 'fine' };
  const hidden = ['the_Key']; // however the model's row spells it
  for (const text of ['${THE_KEY}', '${the_key}']) {
    assert.throws(
      () => fillIn(entry('project', text), env, hidden),
      /is the key of a model, which a project cannot read/,
    );
    assert.deepEqual(fillIn(entry('user', text), env, hidden), { text: 'secret' });
  }
  assert.deepEqual(fillIn(entry('project', '${THE_KEY:-none} ${OTHER}'), env, hidden), {
    text: 'none fine',
  });
});

test('which transport an entry wants: its type, else an address means HTTP or a WebSocket', () => {
  const types: [Json, string][] = [
    [{ command: 'node' }, 'stdio'],
    [{ url: 'https://x' }, 'http'],
    [{ url: 'wss://x' }, 'ws'],
    [{ type: 'sse', url: 'https://x' }, 'sse'],
    [{ command: 'node', url: 'https://x' }, 'stdio'],
    [{ type: 'stdio' }, 'stdio'],
    [{}, 'stdio'],
    [{ url: 7 }, 'stdio'],
  ];
  for (const [config, type] of types)
    assert.equal(transportType(config), type, JSON.stringify(config));
});

test('fault 23: comments and a byte order mark are read', () => {
  const text = `\uFEFF// servers of mine
    { /* two
         of them */
      "mcpServers": { // here
        "a": { "command": "node", "args": ["http://x/*not a comment*/", "\\"// nor this"] }
      } }`;
  const { load } = files({ user: text });
  const { entries, problems } = load();
  assert.deepEqual(problems, []);
  assert.deepEqual(entries.get('a')?.config.args, ['http://x/*not a comment*/', '"// nor this']);
});

test('fault 23: a broken file is named, and the others count', () => {
  for (const broken of [
    '',
    '{',
    '{"mcpServers": {"a": {"command": "node"},}}',
    '[]',
    '7',
    'null',
    '{"mcpServers": []}',
    '{"mcpServers": "x"}',
  ]) {
    const { load, places } = files({ user: broken, mcp: server('fine') });
    const { entries, problems } = load();
    assert.deepEqual([...entries.keys()], ['fine'], broken);
    assert.equal(problems.length, 1, broken);
    assert.ok(problems[0]!.startsWith(`${places.user} is ignored: `), problems[0]);
  }
});

test('A12: what is no ordinary file is refused at once', {
  skip: process.platform === 'win32',
}, () => {
  const odd: [string, (path: string) => void, RegExp][] = [
    ['directory', (path) => mkdirSync(path), /not a file/],
    ['FIFO', (path) => execFileSync('mkfifo', [path]), /not a file/],
    ['link to /dev/zero', (path) => symlinkSync('/dev/zero', path), /not a file/],
    [
      'link to a file of /proc that does not end',
      (path) => symlinkSync('/proc/self/pagemap', path),
      /is empty|not a file/,
    ],
    [
      '50 MB',
      (path) => writeFileSync(path, Buffer.alloc(50_000_000, ' ')),
      /more than 16777216 bytes/,
    ],
    [
      'bad UTF-8',
      (path) => writeFileSync(path, Buffer.from([0x7b, 0xff, 0xfe, 0x7d])),
      /encoded|utf-8/i,
    ],
  ];
  for (const [what, make, why] of odd) {
    const { load, places } = files({ user: server('fine') });
    make(places.mcp!);
    const { entries, problems } = load();
    assert.deepEqual([...entries.keys()], ['fine'], what);
    assert.match(problems.join(), why, what);
  }
});

test('A14: odd names and keys pollute nothing', () => {
  const text =
    '{"mcpServers":{"__proto__":{"command":"x","polluted":1},"constructor":{"command":"y"},"toString":{"command":"z"}}}';
  const { load } = files({ user: text });
  const { entries } = load();
  assert.deepEqual([...entries.keys()], ['__proto__', 'constructor', 'toString']);
  const filled = expand(JSON.parse('{"__proto__":{"polluted":"1"},"a":"b"}'), {}) as object;
  assert.deepEqual(Object.keys(filled), ['__proto__', 'a']);
  assert.equal(({} as Record<string, unknown>).polluted, undefined);
});

test('A11: a file in a parent folder is not read', () => {
  const { home, cwd } = files({ mcp: server('planted') });
  const below = join(cwd, 'packages', 'app');
  mkdirSync(below, { recursive: true });
  assert.equal(loadEntries(home, below, () => {}).size, 0);
});

test("a project in the home folder does not turn the user's own file into a project's", () => {
  const { home } = files({ user: server('mine') });
  const link = join(folder(), 'link');
  symlinkSync(home, link);
  for (const cwd of [`${home}/.`, link]) {
    const entries = loadEntries(home, cwd, () => {});
    assert.deepEqual(
      [entries.get('mine')?.scope, entries.get('mine')?.shadows],
      ['user', undefined],
    );
  }
});

test('I3: a home that is not an absolute path is not used', () => {
  const { cwd } = files({ settings: server('hostile') });
  const before = process.cwd();
  process.chdir(cwd);
  try {
    for (const home of ['', '.'])
      assert.deepEqual([...loadEntries(home, join(cwd, 'x'), () => {}).keys()], []);
  } finally {
    process.chdir(before);
  }
});

test('${VAR} and ${VAR:-default} are filled in everywhere, and nothing else is', () => {
  const env = { NAME: 'Ada', EMPTY: '', TRICKY: '${NAME} $(touch x)' };
  assert.deepEqual(
    expand(
      {
        command: '${NAME}',
        args: ['a-${NAME}-${NAME}', '${EMPTY:-none}', '${GONE:-}', '${GONE:-a b}'],
        n: 7,
        deep: { x: ['${NAME}'] },
      },
      env,
    ),
    {
      command: 'Ada',
      args: ['a-Ada-Ada', 'none', '', 'a b'],
      n: 7,
      deep: { x: ['Ada'] },
    },
  );
  for (const text of ['$NAME', '${NAME', '$(NAME)', '%NAME%', '${na-me}'])
    assert.equal(expand(text, env), text);
  assert.equal(expand('${TRICKY}', env), '${NAME} $(touch x)', 'a value is not expanded again');
});

test('a variable that is not set is named', () => {
  assert.throws(() => expand({ env: { T: '${GONE}' } }, {}), /"x" in \/f: \$\{GONE\} is not set/);
  assert.throws(() => expand('${toString}', {}), /toString\} is not set/);
  assert.equal(expand('${EMPTY}', { EMPTY: '' }), '', 'an empty variable is set');
});

test('A12: a file made to be hard to read takes no time', () => {
  const hard = [
    '/* '.repeat(300_000),
    `"${'\\\\"'.repeat(300_000)}`,
    '"'.repeat(900_001),
    '['.repeat(1_000_000),
    '{"a":'.repeat(150_000),
    '/'.repeat(900_000),
  ];
  for (const text of hard) {
    const { load } = files({ mcp: text, user: server('fine') });
    const { entries, problems } = load();
    assert.deepEqual([[...entries.keys()], problems.length], [['fine'], 1], text.slice(0, 20));
  }
});

test('fault 22, A13: wrong types in a configuration are named, and nothing starts', async () => {
  const wrong: [Json, RegExp][] = [
    [{}, /"command"/],
    [{ command: '' }, /"command"/],
    [{ command: ['node', 'x'] }, /"command"/],
    [{ command: 'no\0de' }, /"command"/],
    [{ command: 'node', args: {} }, /"args"/],
    [{ command: 'node', args: '--version' }, /"args"/],
    [{ command: 'node', args: [1] }, /"args"/],
    [{ command: 'node', args: ['a\0b'] }, /"args"/],
    [{ command: 'node', env: { PORT: 8080 } }, /"env"/],
    [{ command: 'node', env: null }, /"env"/],
    [{ command: 'node', env: ['A=1'] }, /"env"/],
    [{ command: 'node', env: { 'A\0B': '1' } }, /"env"/],
    [{ command: 'node', cwd: 7 }, /"cwd"/],
    [{ command: 'node', type: 7 }, /"type"/],
    [{ command: 'node', timeout: 0 }, /"timeout"/],
    [{ command: 'node', timeout: '5000' }, /"timeout"/],
  ];
  for (const [config, named] of wrong) {
    const { kind, message } = await rejection(new McpConnection('demo', config).connect());
    assert.equal(kind, 'config', JSON.stringify(config));
    assert.match(message, named);
  }
});

test('words of an entry that nobody reads are told once, by name; a remark is none', async () => {
  const warnings: string[] = [];
  const options = { onWarning: (text: string) => void warnings.push(text) };
  const start = async (more: Json, extensions: Extension[] = []) => {
    const config = { command: 'no-such-command-here', ...more };
    await rejection(new McpConnection('demo', config, { ...options, extensions }).connect());
    return warnings.splice(0).join();
  };
  assert.equal(await start({ description: 'mine', timeout: 5, env: {}, enabled: true }), '');
  const odd = await start({ timeOut: 5, 'a\u001bb': 1, url: 'x' });
  assert.match(
    odd,
    /^MCP server "demo" has an entry .*nobody here reads "timeOut", "a\\u001bb", "url"$/,
  );
  const pulse: Extension = () => ({});
  assert.match(await start({ pulse: 5 }, [pulse]), /nobody here reads "pulse"/);
  pulse.words = { pulse: { form: 'a number', fits: (value) => typeof value === 'number' } };
  assert.equal(await start({ pulse: 5 }, [pulse]), '');
  const wrong = new McpConnection('demo', { command: 'x', pulse: '5' }, { extensions: [pulse] });
  assert.match(
    (await rejection(wrong.connect())).message,
    /^MCP server "demo": "pulse" is not a number$/,
  );
});

test('a type for which there is no transport is named, with those there are', async () => {
  for (const type of ['http', '__proto__', 'constructor']) {
    const error = await rejection(
      new McpConnection('demo', { type, url: 'http://127.0.0.1' }).connect(),
    );
    assert.match(
      error.message,
      new RegExp(
        `^MCP server "demo": its type is "${type}", but we have transports only for stdio$`,
      ),
    );
  }
});
