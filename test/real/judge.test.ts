// `npm run judge`: a client, a transport or a server of somebody's own under our judges. It is among the slower tests,
// because each of these is a program that is judged; one short run is in ../layout.test.ts.

import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { cleanUp, folder, goodServer, root } from '../help/basics.ts';

afterEach(cleanUp);

const LONG = { timeout: 150_000 };
type Run = { code: number; output: string };

function program(file: string, args: string[], env = {}): Promise<Run> {
  const given = ['--import', 'tsx', join(root, 'chapters', file), ...args];
  const options = { cwd: root, env: { ...process.env, ...env } };
  return new Promise((done) => {
    execFile(process.execPath, given, options, (error, stdout, stderr) => {
      done({ code: error ? Number(error.code) : 0, output: stdout + stderr });
    });
  });
}
const judge = (...args: string[]) => program('judge.ts', args);

async function asJson(...args: string[]) {
  const { code, output } = await judge('--json', ...args);
  return { code, ...JSON.parse(output) };
}

/** A copy of one of our files with some words replaced. Of mcp.ts, with the parts that it is made of. */
function broken(file: string, from: string, to: string): string {
  const names = readdirSync(join(root, 'chapters'), { recursive: true }) as string[];
  const parts = names.filter((name) =>
    /^(0\d|1[0-4])-[^/]+\/(?!demo|exercise)[\w-]+\.ts$/.test(name),
  );
  const files = file === 'mcp.ts' ? [file, ...parts.map((name) => `chapters/${name}`)] : [file];
  const at = folder();
  let found = 0;
  for (const name of files) {
    const text = readFileSync(join(root, name), 'utf8');
    if (text.includes(from)) found++;
    const here = pathToFileURL(join(root, name)).href;
    const absolute = (_: string, path: string) => `from '${new URL(path, here).href}'`;
    const moved = file === 'mcp.ts' ? text : text.replace(/from '(\.[^']+)'/g, absolute);
    mkdirSync(dirname(join(at, name)), { recursive: true });
    writeFileSync(join(at, name), moved.replace(from, to));
  }
  writeFileSync(join(at, 'package.json'), '{ "type": "module" }');
  assert.equal(found, 1, `${file} and its parts have ${from} once`);
  return join(at, file);
}

async function faultsOf(...args: string[]): Promise<string[]> {
  const { code, chapters } = await asJson(...args);
  assert.equal(code, 1);
  const verdicts: any[] = chapters[0].verdicts;
  return verdicts.filter(({ state }) => state === 'broken').map(({ fault }) => fault);
}

test('the program of chapter 9 is told that 10 is missing, within two minutes', LONG, async () => {
  const work = folder();
  await program('book.ts', ['chapter', '9', '--code'], { WORK: work });
  const { code, output } = await judge(join(work, 'program-09'));
  assert.equal(code, 1);
  assert.match(output, /^✓ {2}9 calling {8}7 of 7$/m);
  assert.match(
    output,
    /^✗ 10 talking back {3}\d of 7\n +✗ a ping is not answered \(expected .*, came/m,
  );
  assert.match(output, /^· 11 to 14 {10}not there yet: 11 needs McpConnection\.close\(\)$/m);
  assert.match(output, /\n\n\d+ of 66 kept; next: 10, a ping is not answered\.\n$/);
  assert.ok(
    output.split('\n').every((line) => line.length <= 80),
    output,
  );
});

test('our own client keeps what the later chapters promise', LONG, async () => {
  const { code, summary, seconds } = await asJson('mcp.ts', '10', '11', '12', '13', '14');
  assert.deepEqual([code, summary], [0, '33 of 33 kept.']);
  assert.ok(seconds < 120);
});

test('a broken client is told its fault by name', LONG, async () => {
  const cases: [chapter: string, from: string, to: string, fault: string][] = [
    [
      '4',
      "typeof code === 'number' ? code",
      'code === 7 ? code',
      'a refusal loses its code, its words or its data',
    ],
    [
      '11',
      "['SIGTERM', 'SIGKILL'] as const",
      "['SIGKILL'] as const",
      'a server that ignores the end of its stdin is not ended by SIGTERM',
    ],
    [
      '13',
      'name.length <= length',
      'true',
      "a label is not fit for a model's wire: 1 to 64 of A-Z a-z 0-9 _ -",
    ],
  ];
  await Promise.all(
    cases.map(async ([chapter, from, to, fault]) => {
      assert.deepEqual(await faultsOf(broken('mcp.ts', from, to), chapter), [fault]);
    }),
  );
});

test('a client that loops, or exits, costs the judge one promise', LONG, async () => {
  const notify = 'notify(method: string, params?: Json): Promise<void> {';
  const loops = broken('mcp.ts', notify, `${notify} if (method.endsWith('/two')) while (true);`);
  const exits = broken('mcp.ts', notify, `${notify} if (method.endsWith('/two')) process.exit(5);`);
  const cases = [
    [loops, /^no end: a loop/],
    [exits, /ended with code 5/],
  ] as const;
  await Promise.all(
    cases.map(async ([file, how]) => {
      const { chapters } = await asJson(file, '3');
      const states = chapters[0].verdicts.map(({ state }: any) => state);
      assert.deepEqual(states, ['kept', 'broken', 'kept', 'kept', 'kept']);
      assert.match(chapters[0].verdicts[1].came, how);
    }),
  );
});

test('a client that signals its group, or speaks for the judge, harms no other', LONG, async () => {
  const notify = 'notify(method: string, params?: Json): Promise<void> {';
  const signals = broken(
    'mcp.ts',
    notify,
    `${notify} if (method.endsWith('/two')) process.kill(0);`,
  );
  const lie = "{ verdict: { id: 'not-a-message', kind: 'safety', promise: '', state: 'kept' } }";
  const lies = broken('mcp.ts', notify, `${notify} process.send!(${lie}); process.exit(0);`);
  const [signalled, lied] = await Promise.all([asJson(signals, '3'), asJson(lies, '3')]);
  assert.match(signalled.chapters[0].verdicts[1].came, /was ended by SIGTERM/);
  assert.ok(lied.chapters[0].verdicts.every(({ state }: any) => state !== 'kept'));
});

test('courtesy is no fault, and needs are those of each promise', LONG, async () => {
  const rude = await asJson(
    broken('mcp.ts', "return this.warn('noise',", "return void ('noise',"),
    '3',
  );
  assert.deepEqual([rude.code, rude.chapters[0].state], [0, 'holds']);
  assert.match(rude.summary, /^4 of 5 kept; next: 3, noise on stdout is not reported/);
  const notify = 'notify(method: string, params?: Json): Promise<void> {';
  const silent = broken('mcp.ts', notify, notify.replace('notify', 'say'));
  const { chapters, summary } = await asJson(silent, '3', '4');
  assert.deepEqual(
    chapters.map(({ state }: any) => state),
    ['absent', 'holds'],
  );
  assert.equal(summary, '8 of 8 kept; next: 3 needs McpConnection.notify().');
});

test('a client of another style needs no transport; fields may be its methods', LONG, async () => {
  const file = join(folder(), 'client.mjs');
  writeFileSync(
    file,
    `
    import { spawn } from 'node:child_process';
    export class McpConnection {
      waiting = new Map();
      constructor(name, config) { this.config = config; }
      connect = async () => {
        const { command, args, cwd, env } = this.config;
        const { PATH } = process.env;
        const stdio = ['pipe', 'pipe', 'ignore'];
        this.child = spawn(command, args, { cwd, env: { PATH, ...env }, stdio });
        let rest = '';
        this.child.stdout.setEncoding('utf8').on('data', (text) => {
          const lines = (rest + text).split('\\n');
          rest = lines.pop();
          const messages = lines.map((line) => JSON.parse(line));
          for (const { id, result } of messages) this.waiting.get(id)?.(result);
        });
      };
      notify = async (method, params) => this.send({ method, params });
      request = (method, params) => new Promise((done) => {
        const id = this.waiting.size + 1;
        this.waiting.set(id, done);
        this.send({ id, method, params });
      });
      send = (message) => {
        this.child.stdin.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
      };
    }`,
  );
  const { code, summary, chapters } = await asJson(file, '1', '2', '7');
  assert.deepEqual(
    chapters.map(({ state }: any) => state),
    ['holds', 'broken', 'absent'],
  );
  assert.equal(code, 1);
  assert.match(
    summary,
    /^\d+ of 12 kept; next: 2, CRLF, blank lines or a byte order mark do harm\.$/,
  );
});

test('exit codes: a wrong command is 2, a module that fails to load is 1', LONG, async () => {
  const bad = join(folder(), 'bad.ts');
  writeFileSync(bad, "throw new TypeError('no good');");
  const unreadable = join(folder(), 'unreadable.ts');
  writeFileSync(unreadable, 'const a = 1;\nconst b = = 2;\n');
  const [none, missing, odd, unloadable, broken, many, gone] = await Promise.all([
    judge(),
    judge('no/such/file.ts'),
    judge('mcp.ts', '15'),
    judge(bad),
    judge(unreadable),
    judge('transport', 'chapters/25-other-pipes/in-process.ts'),
    judge('server', 'no-such-command'),
  ]);
  assert.deepEqual(
    [none, missing, odd, many].map(({ code }) => code),
    [2, 2, 2, 2],
  );
  assert.match(odd.output, /1 to 14, not 15/);
  assert.match(many.output, /which is the transport\? .* there is \w+, \w+/);
  assert.match(broken.output, /unreadable\.ts:2:\d+/);
  assert.deepEqual(
    [gone.code, /It cannot be started: .*ENOENT/.test(gone.output)],
    [1, true],
    gone.output,
  );
  assert.match(missing.output, /there is no .*no.such.file\.ts/);
  assert.equal(unloadable.code, 1);
  assert.match(unloadable.output, /It cannot be loaded: .* code 1: TypeError: no good\./);
});

const UNIX = 'chapters/25-other-pipes/unix-socket.ts';

test('a transport is judged: those of chapters 1 and 25 keep all promises', LONG, async () => {
  await Promise.all(
    ['mcp.ts', UNIX, 'chapters/25-other-pipes/websocket.ts'].map(async (file) => {
      const { code, summary } = await asJson('transport', file);
      assert.deepEqual([code, summary], [0, '11 of 11 kept.'], file);
    }),
  );
});

test('a broken transport is told its fault by name', LONG, async () => {
  const once = 'if (this.ended) return; // report the end once';
  const cases: [from: string, to: string, faults: string[]][] = [
    [
      once,
      '',
      [
        'after close() something still comes, or closing twice does harm',
        'the end is not told once and with a reason',
      ],
    ],
    [
      "new Promise((done) => socket.once('close', done).end())",
      'undefined',
      ['after close() something still comes, or closing twice does harm'],
    ],
    [
      'this.events = events;',
      'this.events = events; setInterval(() => {}, 1e6);',
      ['after close() a process, a socket or a timer is left'],
    ],
    [
      'this.isClosing) return gone();',
      'this.isClosing) return;',
      ['a send after the end waits, or seems to arrive'],
    ],
    [
      'this.lines.takeWhole(chunk)',
      'chunk',
      [
        'a message of a megabyte does not arrive whole',
        'characters of several bytes do not arrive whole',
      ],
    ],
  ];
  await Promise.all(
    cases.map(async ([from, to, faults]) => {
      const found = await faultsOf('transport', broken(UNIX, from, to));
      assert.deepEqual(
        faults.filter((fault) => !found.includes(fault)),
        [],
        `${found}`,
      );
    }),
  );
});

/** A server in a file of its own. */
function serverFile(name: string, text: string): string {
  const file = join(folder(), name);
  writeFileSync(file, text);
  return file;
}

test('a server without a handshake is judged in its own era', LONG, async () => {
  const file = serverFile(
    'stateless.mjs',
    `
    import { createInterface } from 'node:readline';
    const KEY = 'io.modelcontextprotocol/protocolVersion';
    const tools = [{ name: 'add', inputSchema: { type: 'object', required: ['a'] } }];
    const complete = (result) => ({ result: { resultType: 'complete', ...result } });
    const refuse = (code, message) => ({ error: { code, message } });
    const methods = {
      'server/discover': () =>
        complete({ supportedVersions: ['2026-07-28'], capabilities: { tools: {} } }),
      'tools/list': () => complete({ tools }),
      'tools/call': ({ name }) => name === 'add'
        ? complete({ content: [], isError: true }) : refuse(-32602, 'Unknown tool'),
    };
    createInterface({ input: process.stdin }).on('line', (line) => {
      let message;
      try { message = JSON.parse(line); } catch { return; }
      const { id, method, params } = message ?? {};
      if (id === undefined) return;
      let answer = refuse(-32601, 'Method not found');
      if (Object.hasOwn(methods, method)) answer = methods[method](params);
      if (params?._meta?.[KEY] !== '2026-07-28') answer = refuse(-32022, 'Unsupported version');
      console.log(JSON.stringify({ jsonrpc: '2.0', id, ...answer }));
    });`,
  );
  const { code, chapters } = await asJson('server', process.execPath, file);
  const left = chapters[0].verdicts.filter(({ state }: any) => state !== 'kept');
  assert.deepEqual([code, left.map(({ why }: any) => why)], [0, ['its revision has no ping']]);
});

test('a broken server is told its faults by name', LONG, async () => {
  const text = readFileSync(goodServer, 'utf8');
  const odd = text
    .replace("if (id === undefined) return '';", 'if (id === undefined) id = null;')
    .replace('throw { code: -32601, message:', 'return answer({ id, method: "tools/list", unused:')
    .replace('not found: ${method}` };', 'not found: ${method}` });')
    .replace('ping: () => ({})', 'ping: () => fail("what?")')
    .replace('({ run, ...tool }) => tool', '({ run, inputSchema, ...tool }) => tool');
  const file = serverFile('odd.mjs', `console.log('ready'); setTimeout(() => {}, 60_000);\n${odd}`);
  assert.deepEqual(await faultsOf('server', process.execPath, file), [
    'an unknown method is not refused with -32601',
    'a notification gets an answer',
    'a ping is not answered with {}',
    'tools/list is not a list of tools with names and schemas',
    'there is something else than messages on stdout',
    'it does not end when its stdin ends',
  ]);
});

const hasPython = spawnSync('python3', ['--version']).status === 0;

test('a server in Python is judged like any other', { ...LONG, skip: !hasPython }, async () => {
  const file = serverFile(
    'server.py',
    `
import json, sys

def answer(method):
    if method == 'initialize':
        return {'result': {'protocolVersion': '2025-06-18', 'capabilities': {'tools': {}}}}
    if method == 'ping':
        return {'result': {}}
    if method == 'tools/list':
        schema = {'type': 'object', 'required': ['a']}
        return {'result': {'tools': [{'name': 'add', 'inputSchema': schema}]}}
    if method == 'tools/call':
        return {'error': {'code': -32602, 'message': 'no'}}
    return {'error': {'code': -32601, 'message': 'Method not found'}}

for line in sys.stdin:
    try:
        message = json.loads(line)
    except ValueError:
        continue
    if not isinstance(message, dict) or 'id' not in message:
        continue
    outcome = answer(message.get('method'))
    print(json.dumps({'jsonrpc': '2.0', 'id': message['id'], **outcome}), flush=True)
`,
  );
  const { code, summary } = await asJson('server', 'python3', file);
  assert.deepEqual([code, summary], [0, '13 of 13 kept.']);
});
