// The command `call`: one call of a tool, and its result alone on stdout.

import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { afterEach, test } from 'node:test';
import {
  allGone,
  cleanUp,
  folder,
  goodServer,
  habit,
  isRunning,
  later,
  pidsIn,
  root,
  until,
} from './help/basics.ts';
import { calculator, peer } from './help/http-servers.ts';
import { place, run, start, userServers } from './help/terminal.ts';

afterEach(cleanUp);

const node = process.execPath;
const good = ['--', node, goodServer];
const server = (...args: string[]) => ['--', node, ...habit(...args).args];
const number = { type: 'number' };

/** A server may be there before the trace is. */
function records(file: string) {
  const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}

/** The arguments that a tool with this schema gets. */
const echoing = (inputSchema: object) =>
  server(
    'tools',
    JSON.stringify([{ name: 'echo', inputSchema: { type: 'object', ...inputSchema } }]),
  );

test('a command: the result and nothing else, as text or as the server sent it', async () => {
  const where = place();
  const odd = 'a=b & "c" می‌خواهم 👩‍👩‍👧 \u202e';
  const result = {
    content: [{ type: 'text', text: 'two\nlines\n' }],
    structuredContent: { n: 2 },
    _meta: { x: 1 },
  };
  const [sum, odds, mixed, lines, whole, picture, nothing] = await Promise.all([
    run(where, ['call', 'add', 'a=2', 'b=40', ...good]),
    run(where, ['call', 'greet', `name=${odd}`, ...good]),
    run(where, ['call', 'add', '{"a": 1, "b": 1}', 'b=40', ...good]),
    run(where, ['call', 'result', JSON.stringify({ result }), ...server()]),
    run(where, ['call', '--json', 'result', JSON.stringify({ result }), ...server()]),
    run(where, [
      'call',
      'result',
      'result={"content":[{"type":"image","mimeType":"image/png","data":"AAAA"}]}',
      ...server(),
    ]),
    run(where, ['call', 'result', 'result={"content":[]}', ...server()]),
  ]);
  assert.deepEqual([sum.code, sum.out, sum.err], [0, '42\n', '']);
  assert.equal(odds.out, `Hello, ${odd.replace('\u202e', '\\u{202e}')}!\n`);
  assert.equal(mixed.out, '41\n');
  assert.deepEqual([lines.out, lines.err], ['two\nlines\n', '']);
  assert.deepEqual([JSON.parse(whole.out), whole.err], [result, '']);
  assert.equal(picture.out, '[image: image/png, 3 bytes]\n');
  assert.deepEqual([nothing.code, nothing.out], [0, '']);
});

test('arguments are typed by the schema: text where text is allowed, else JSON', async () => {
  const properties = {
    n: number,
    text: { type: 'string' },
    on: { type: 'boolean' },
    list: { type: 'array' },
    any: {},
    maybe: { anyOf: [{ type: 'string' }, { type: 'null' }] },
    pick: { enum: ['1', '2'] },
    unit: { $ref: '#/$defs/Unit' },
    texts: { anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' } }] },
  };
  const schema = {
    properties,
    $defs: { Unit: { type: 'string' } },
    required: ['n'],
    additionalProperties: false,
  };
  const words = [
    'n=7',
    'text=7',
    'on=true',
    'list=[1,"x"]',
    'any=x=y',
    'maybe=7',
    'pick=1',
    'unit=7',
    'texts=["a"]',
  ];
  const where = place();
  const [typed, probed, missing, mistyped, lost] = await Promise.all([
    run(where, ['call', 'echo', ...words, ...echoing(schema)]),
    run(where, ['probe', '--json', '--call', 'echo', ...words, ...echoing(schema)]),
    run(where, [
      'call',
      'echo',
      'text=x',
      ...echoing({ ...schema, required: ['n', 'text', 'unit'] }),
    ]),
    run(where, ['call', 'echo', 'n=7', 'txet=x', ...echoing(schema)]),
    run(where, ['call', 'echo', 'n', ...echoing(schema)]),
  ]);
  const sent = {
    n: 7,
    text: '7',
    on: true,
    list: [1, 'x'],
    any: 'x=y',
    maybe: '7',
    pick: '1',
    unit: '7',
    texts: ['a'],
  };
  assert.deepEqual(JSON.parse(typed.out), sent, typed.err);
  assert.deepEqual(JSON.parse(JSON.parse(probed.out).result.text), sent);
  assert.deepEqual(
    [missing.code, missing.out, missing.err],
    [2, '', 'echo needs n=number unit=string\n'],
  );
  assert.deepEqual(
    [mistyped.code, mistyped.err],
    [2, 'echo takes no argument txet; did you mean text? (--no-check sends it as it is)\n'],
  );
  assert.match(lost.err, /^what is n\? Arguments are key=value, or a JSON object/);
});

test('what a schema does not name is refused, unless it says that it is open, or names more elsewhere', async () => {
  const properties = { text: { type: 'string' } };
  const elsewhere = [{ properties: { texts: { type: 'array' } } }];
  const where = place();
  const call = (word: string, schema: object) =>
    run(where, ['call', 'echo', word, ...echoing(schema)]);
  const [open, composed, slip, other] = await Promise.all([
    call('n=7', { type: 'object', properties, additionalProperties: true }),
    call('texts=["a"]', { type: 'object', properties, allOf: elsewhere }),
    call('txet=x', { type: 'object', properties }),
    call('n=7', { type: 'object', properties }),
  ]);
  assert.deepEqual(JSON.parse(open.out), { n: 7 }, open.err);
  assert.deepEqual(JSON.parse(composed.out), { texts: ['a'] }, composed.err);
  assert.match(slip.err, /^echo takes no argument txet; did you mean text\?/);
  assert.match(other.err, /^echo takes no argument n; it takes text/);
});

test("a server of the files: the user's runs, a project's must be approved first", async () => {
  const demo = { command: node, args: [goodServer] };
  const where = place({ '.mcp.json': { theirs: demo } }, userServers({ mine: demo }));
  const call = (name: string) => run(where, ['call', name, 'add', 'a=2', 'b=40']);
  const [mine, theirs, unknown] = await Promise.all([call('mine'), call('theirs'), call('mime')]);
  assert.deepEqual([mine.code, mine.out, mine.err], [0, '42\n', '']);
  assert.deepEqual([theirs.code, theirs.out], [3, '']);
  assert.match(theirs.err, /theirs is not approved/);
  assert.deepEqual(
    [unknown.code, /no MCP server is called "mime"; did you mean "mine"\?/.test(unknown.err)],
    [3, true],
  );
  const print = /theirs=(sha256:[0-9a-f]{64})/.exec(theirs.err)![1];
  const named = await run(where, [
    'call',
    '--allow-server',
    `theirs=${print}`,
    'theirs',
    'greet',
    'name=Ada',
  ]);
  assert.equal(named.out, 'Hello, Ada!\n');
});

test('an address, also one with = in it; --header and -e reach the server', async () => {
  const where = place();
  const tools = [{ name: 'add', inputSchema: { type: 'object' } }];
  const web = await peer({ 'tools/list': () => ({ tools }) }); // it answers with the arguments
  const remote = await calculator('ws');
  const address = `${web.url}?key=a=b&c=d`;
  const [byHttp, probed, byWs, env] = await Promise.all([
    run(where, ['call', address, 'add', `to=${address}`, '--header', 'X-Key: k=v: w']),
    run(where, ['probe', '--call', 'add', 'a=1', address]),
    run(where, ['call', remote.url, 'add', 'a=2', 'b=40']),
    run(where, ['call', '-e', 'GIVEN=x=y', 'where', ...server()]),
  ]);
  assert.deepEqual([byHttp.code, JSON.parse(byHttp.out), byHttp.err], [0, { to: address }, '']);
  const called = web.asked('tools/call').find(({ headers }) => headers['x-key'] === 'k=v: w');
  assert.equal(called?.path, '/mcp?key=a=b&c=d');
  assert.equal(probed.code, 0, probed.out + probed.err);
  assert.deepEqual([byWs.code, byWs.out], [0, '42\n'], byWs.err);
  assert.equal(JSON.parse(env.out).env.GIVEN, 'x=y');
});

test('every way to fail has its exit code, and leaves stdout empty', async () => {
  const canary = join(folder(), 'canary');
  const cases: [number, string[], RegExp][] = [
    [2, [], /which tool, of which server\?\nwrite call SERVER TOOL/],
    [2, ['add', '--'], /there is no command after --/],
    [2, ['ad', ...good], /has no tool ad; did you mean add\?/],
    [2, ['zzz', ...good], /has no tool zzz; it has add, greet/],
    [
      2,
      ['--jsno', 'add', ...server('canary', canary)],
      /there is no option --jsno; did you mean --json\?/,
    ],
    [2, ['add', '{"a":', ...good], /this is not a JSON object: \{"a":/],
    [2, ['-e', 'A=b', 'http://127.0.0.1:1/mcp', 'add'], /--env is for a command/],
    [2, ['--header', 'A: b', 'add', ...good], /--header is for an address/],
    [2, ['-e', 'NOT_SET_HERE', 'add', ...good], /NOT_SET_HERE: it is not set here/],
    [2, ['--era', 'stone', 'add', ...good], /--era is handshake or stateless/],
    [2, ['add', 'a=@no-such-file', 'b=1', ...good], /@no-such-file cannot be read/],
    [2, ['--args', '[1]', 'add', ...good], /--args is a JSON object/],
    [2, ['add', 'a=x', 'b=1', ...good], /a should be a number \(given: "x"\)/],
    [5, ['--era', 'stateless', 'add', 'a=1', 'b=1', ...good], /does not speak the stateless/],
    [2, ['--timeout', 'soon', 'add', ...good], /--timeout is a number of seconds, not soon/],
    [3, ['add', '--trace', folder(), ...good], /cannot write the trace/],
    [4, ['add', '--', 'no-such-command'], /command not found/],
    [
      4,
      ['add', ...server('dies-at-once', 'API key')],
      /exited with code 3[^]*cannot find my API key/,
    ],
    [
      4,
      ['--timeout', '0.3', 'sleep', 'ms=60000', ...server()],
      /did not answer tools\/call within 0\.3 s/,
    ],
    [4, ['http://127.0.0.1:1/mcp', 'add'], /127\.0\.0\.1/],
    [5, ['--no-check', 'add', 'a=x', 'b=1', ...good], /^a and b must be numbers$/m],
    [5, ['--data', 'add', 'a=1', 'b=1', ...good], /add has answered without structured content/],
    [5, ['add', ...server('refuses-initialize')], /Not today/],
  ];
  const where = place();
  const ends = await Promise.all(cases.map(([, args]) => run(where, ['call', ...args])));
  assert.deepEqual(
    ends.map(({ code }) => code),
    cases.map(([code]) => code),
    JSON.stringify(ends),
  );
  for (const [n, { out, err }] of ends.entries()) {
    assert.equal(out, '');
    assert.match(err, cases[n]![2]);
    assert.doesNotMatch(err, /^ +at /m);
  }
  assert.throws(() => readFileSync(canary), 'a mistake in the words starts nothing');
  const failed = await run(where, ['call', '--json', '--no-check', 'add', 'a=x', 'b=1', ...good]);
  assert.deepEqual([failed.code, JSON.parse(failed.out).isError, failed.err], [5, true, '']);
});

test('a value may be a file, stdin or a list; --args brings all; @@ is one @', async () => {
  const schema = {
    type: 'object',
    properties: {
      text: { type: 'string' },
      tags: { type: 'array', items: { type: 'string' } },
      ids: { type: 'array', items: { type: 'number' } },
      unit: { enum: ['m', 'km'] },
    },
    additionalProperties: false,
  };
  const where = place({ 'note.txt': 'from a file\n', 'all.json': '{"text": "t", "unit": "m"}' });
  const echo = async (words: string[], input = '') => {
    const { out, err } = await run(where, ['call', 'echo', ...words, ...echoing(schema)], {
      input,
    });
    return err === '' ? JSON.parse(out) : err;
  };
  const cases: [words: string[], sent: unknown][] = [
    [['text=@note.txt'], { text: 'from a file\n' }],
    [['text=@-'], { text: 'from stdin' }],
    [['text=@@alice'], { text: '@alice' }],
    [['tags=a', 'tags=b'], { tags: ['a', 'b'] }],
    [['tags=a'], { tags: ['a'] }],
    [['ids=1', 'ids=2'], { ids: [1, 2] }],
    [['--args', '@all.json', 'unit=km'], { text: 't', unit: 'km' }],
    [['--args', '-'], { text: 'typed' }],
  ];
  const inputs = new Map([
    ['text=@-', 'from stdin'],
    ['--args -', '{"text": "typed"}'],
  ]);
  const came = await Promise.all(cases.map(([words]) => echo(words, inputs.get(words.join(' ')))));
  assert.deepEqual(
    came,
    cases.map(([, sent]) => sent),
  );
  assert.match(await echo(['unit=mile']), /unit should be one of "m", "km"|"m"/);
});

test('--data is the structured content alone; --save writes files and names them', async () => {
  const data = Buffer.from('not really a picture').toString('base64');
  const result = {
    content: [
      { type: 'text', text: 'two' },
      { type: 'image', mimeType: 'image/png', data },
      { type: 'resource', resource: { uri: 'a:b', mimeType: 'application/pdf', blob: data } },
    ],
    structuredContent: { n: 2 },
  };
  const where = place();
  const all = JSON.stringify({ result });
  const [alone, saved] = await Promise.all([
    run(where, ['call', '--data', 'result', all, ...server()]),
    run(where, ['call', '--save', 'kept', 'result', all, ...server()]),
  ]);
  assert.deepEqual([alone.code, alone.out], [0, '{"n":2}\n'], alone.err);
  const names = readdirSync(join(where.cwd, 'kept')).sort();
  assert.deepEqual([names.length, saved.code], [2, 0], saved.err);
  for (const name of names) {
    assert.match(saved.err, new RegExp(name));
    assert.equal(readFileSync(join(where.cwd, 'kept', name), 'utf8'), 'not really a picture');
  }
});

test('a mistyped verb is not a prompt; a sentence is; each verb has its help', async () => {
  const where = place();
  const wrong = ['prob -- node s.mjs', 'list', 'tools -- node s.mjs', 'cal mine add', 'Probe x'];
  const ends = await Promise.all(wrong.map((words) => run(where, words.split(' '))));
  assert.deepEqual(
    ends.map(({ code, out }) => [code, out]),
    wrong.map(() => [2, '']),
  );
  assert.match(
    ends[0]!.err,
    /^there is no command prob; did you mean probe\? For a prompt: quotes/,
  );
  const prompts = [['-p', 'list'], ['what is here'], ['hello', 'there'], ['-p', 'cal', 'me']];
  for (const words of prompts) assert.equal((await run(where, words)).code, 0, words.join(' '));
  const help = await run(where, ['call', '--help']);
  assert.match(help.out, /^ {2}mcp-by-hand call SERVER TOOL[^]*--env NAME\[=VALUE\]/);
  assert.match(
    help.out,
    /list is tag=a tag=b[^]*--no-check +\w[^]*--data +\w[^]*--save FOLDER +\w/,
  );
  assert.match((await run(where, ['trust', '-h'])).out, /^ {2}mcp-by-hand trust list/);
});

test('Ctrl-C cancels on the wire, and no server outlives it; the trace tells, without secrets', async () => {
  const file = join(folder(), 'pids');
  later(() =>
    pidsIn(file)
      .filter(isRunning)
      .forEach((pid) => process.kill(pid, 'SIGKILL')),
  );
  const where = place();
  const trace = join(where.cwd, 'trace');
  const secret = 'sk-0123456789abcdef0123456789';
  const args = [
    'call',
    '--trace',
    'trace',
    '-e',
    `KEY=${secret}`,
    'sleep',
    'ms=60000',
    ...server('notes-its-pid', file),
  ];
  const calling = start(where, args);
  const sent = (method: string) => () => records(trace).some(({ msg }) => msg?.method === method);
  await until(() => pidsIn(file).length === 1);
  await until(sent('tools/call'));
  calling.child.kill('SIGINT');
  const { code, out } = await calling.ended;
  assert.deepEqual([code, out], [130, '']);
  assert.ok(sent('notifications/cancelled')());
  assert.doesNotMatch(readFileSync(trace, 'utf8'), new RegExp(secret));
  await allGone(file);

  const starting = start(where, ['call', 'add', ...server('stubborn', file)]);
  await until(() => pidsIn(file).length === 3);
  starting.child.kill('SIGINT');
  await starting.ended;
  await allGone(file);
});

/** The files that an import of these loads, and the modules of Node. */
function loadedBy(...files: string[]): Set<string> {
  const found = new Set<string>();
  const visit = (file: string) => {
    if (found.has(file)) return;
    found.add(file);
    if (file.startsWith('node:')) return;
    const text = readFileSync(join(root, file), 'utf8');
    for (const [statement, name] of text.matchAll(
      /^(?:import|export|\})[^;'(]*?from '([^']+)';$/gm,
    )) {
      const isType = /^(import|export) type /.test(statement!) || isOfTypes(text, name!);
      if (!isType)
        visit(
          name!.startsWith('node:') ? name! : relative(root, resolve(root, dirname(file), name!)),
        );
    }
  };
  files.forEach(visit);
  return found;
}

/** `import type { … } from` over several lines. */
function isOfTypes(text: string, name: string): boolean {
  const whole = new RegExp(
    `^(import(?: type)?) [^;]*? from '${name.replaceAll('.', '\\.')}';`,
    'gm',
  );
  return [...text.matchAll(whole)].every(([, how]) => how === 'import type');
}

test('a start loads what it needs: no agent, no HTTP, and for the version not even the rows', () => {
  const chapter = (name: string) => join('chapters', '19-the-terminal', name);
  const isPart = (name: string) => /^chapters\/(0\d|1[0-4])-/.test(name); // mcp.ts is made of them
  const first = loadedBy('chapters/start.ts');
  const isOwn = (name: string) => !name.startsWith('node:') && !isPart(name);
  const beside = [...first].filter(isOwn);
  assert.ok(first.has('mcp.ts') && beside.length < 14, beside.join(' '));
  for (const dear of ['node:crypto', chapter('screen.ts'), chapter('one-call.ts')])
    assert.ok(!first.has(dear), dear);
  const era = ['era.ts', 'verdicts.ts'].map((name) => join('chapters', '22-no-handshake', name));
  const rest = ['exit.ts', join('more', 'plain-screen.ts'), 'one-call.ts'].map(chapter);
  const all = loadedBy('chapters/start.ts', ...rest, ...era);
  const own = [...all].filter(isOwn);
  assert.ok(own.length < 30, `${own.length}: ${own.join(' ')}`);
  for (const dear of [
    'agent.ts',
    'chapters/composition.ts',
    chapter('program.ts'),
    chapter('screen.ts'),
    'node:http',
    'node:https',
    'node:worker_threads',
  ])
    assert.ok(!all.has(dear), dear);
});
