// `up`: servers that live from one call to the next, for every command that talks to a server.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import type { UpFile } from '../chapters/29-a-server/attach.ts';
import { VERSION, type Json } from '../mcp.ts';
import { cleanUp, later, root } from './help/basics.ts';
import { command, place, run, Terminal, userServers, type Place } from './help/terminal.ts';

afterEach(cleanUp);

const fixture = (name: string, ...args: string[]) => ({
  command: process.execPath,
  args: [join(root, 'fixtures', name), ...args],
});
const counter = fixture('counter.mjs');

/** A folder in which these servers are up. Whatever the test does, in the end they are not. */
async function raised(where: Place, ...words: string[]): Promise<Status> {
  const { code, out, err } = await run(where, ['up', '--json', ...words]);
  const up: Status = JSON.parse(out || '{}');
  later(async () => {
    if (!up.pid || !lives(up.pid)) return;
    await run(where, ['down']);
    await gone(up.pid);
  });
  assert.equal(code, 0, err);
  return up;
}

type Status = { pid?: number; clients?: number; servers?: Json[] };

async function status(where: Place): Promise<Status> {
  return JSON.parse((await run(where, ['up', '--status', '--json'])).out);
}

const folderOf = ({ home }: Place) => join(home, '.mcp-by-hand');
const nameIn = (where: Place) => readdirSync(folderOf(where)).find((name) => /^up-/.test(name));
const fileOf = (where: Place) => join(folderOf(where), nameIn(where)!);
const upFile = (where: Place): UpFile => JSON.parse(readFileSync(fileOf(where), 'utf8'));

function lives(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

async function gone(pid: number): Promise<void> {
  while (lives(pid)) await wait(20);
}

/** How often it was called, and its process. */
function told({ out, err }: { out: string; err: string }) {
  const [, calls, pid] = /(\d+) calls, process (\d+)/.exec(out) ?? assert.fail(out + err);
  return { calls: Number(calls), pid: Number(pid) };
}

test('calls meet the same server, by every command; down ends it', async () => {
  const where = place({}, userServers({ c: counter, other: fixture('server.mjs') }));
  const { pid, servers } = await raised(where, 'c');
  assert.deepEqual(servers, [{ name: 'c', state: 'connected' }]);

  const first = told(await run(where, ['call', 'c', 'count']));
  assert.equal(first.calls, 1);
  const again = await run(where, ['call', 'c', 'count']);
  assert.deepEqual(told(again), { calls: 2, pid: first.pid });
  assert.equal(again.err, '');
  const terminal = new Terminal(where, ['call', 'c', 'count']);
  assert.equal(await terminal.ended(), 0, terminal.text);
  assert.match(terminal.text, new RegExp(`^3 calls, process ${first.pid}$`));
  const chat = ['-p', 'mcp__c__count', '--allow', 'mcp__c__count', '--verbose'];
  const { out, err } = await run(where, chat);
  assert.deepEqual(told({ out: out + err, err }), { calls: 4, pid: first.pid });

  const others = [
    ['read', 'c', 'counter://now'],
    ['prompt', 'c', 'report'],
    ['resources', 'c'],
  ];
  const [read, prompt, resources] = await Promise.all(others.map((words) => run(where, words)));
  assert.deepEqual(told(read!), { calls: 4, pid: first.pid });
  assert.deepEqual(told(prompt!), { calls: 4, pid: first.pid });
  assert.match(resources!.out, /counter:\/\/now/);
  const all = await run(where, ['prompts']);
  assert.match(all.out, /c report/);

  // What is not up is started, and nothing is said about it.
  const sum = await run(where, ['call', 'other', 'add', 'a=2', 'b=40']);
  assert.deepEqual([sum.out, sum.err], ['42\n', '']);

  assert.equal((await run(where, ['down'])).code, 0);
  assert.ok(!lives(first.pid));
  await gone(pid!);
  assert.equal(nameIn(where), undefined);
  assert.equal((await run(where, ['up', '--status'])).code, 4);
  assert.equal(told(await run(where, ['call', 'c', 'count'])).calls, 1);
});

test('a refusal reads as it does without it', async () => {
  const where = place({}, userServers({ c: counter }));
  const direct = await run(where, ['call', 'c', 'refuse']);
  await raised(where);
  const through = await run(where, ['call', 'c', 'refuse']);
  assert.match(direct.err, /refused tools\/call: not today \(ever\) \(-32601\)/);
  assert.deepEqual(through, direct);
});

/** Says something to the socket, and returns the answer; the text `closed` if that is the answer. */
async function toSocket(where: Place, ...messages: Json[]): Promise<unknown[]> {
  const wire = connect(upFile(where).socket);
  await once(wire, 'connect');
  wire.on('error', () => {}); // it may be closed
  const lines = createInterface({ input: wire })[Symbol.asyncIterator]();
  const answers: unknown[] = [];
  for (const [id, message] of messages.entries()) {
    wire.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...message })}\n`);
    const { done, value } = await lines.next();
    const { result, error } = done ? { result: 'closed' } : JSON.parse(value);
    answers.push(result ?? error.message);
  }
  wire.destroy();
  return answers;
}

test('D32 only who has the token, and our version, gets in; modes of folders and files', async () => {
  const where = place({}, userServers({ c: counter }));
  await raised(where);
  const { token, socket } = upFile(where);
  const modes = [folderOf(where), fileOf(where), dirname(socket)].map(
    (path) => statSync(path).mode & 0o777,
  );
  assert.deepEqual(modes, [0o700, 0o600, 0o700]);

  const count = { method: 'tools/call', params: { name: 'count' } };
  const stop = { method: 'up/stop' };
  const hello = (params: Json) => ({ method: 'up/hello', params: { server: 'c', ...params } });
  const foreign = hello({ token: 'f'.repeat(token.length), version: VERSION });
  const [refusal, ...after] = await toSocket(where, foreign, count, stop);
  assert.deepEqual([refusal, ...after], ['this is not the token', 'closed', 'closed']);
  const [mute, unstopped] = await toSocket(where, count, stop);
  assert.match(`${mute}`, /hello/);
  assert.match(`${unstopped}`, /hello/);
  const [old] = await toSocket(where, hello({ token, version: '0.0.1' }));
  assert.match(`${old}`, /up is version .*mcp-by-hand down, then up/);
  assert.equal(told(await run(where, ['call', 'c', 'count'])).calls, 1);
});

test('A35 what is not exactly the entry that is up is connected directly, and told', async () => {
  const entry = { ...counter, env: { LANGUAGE: '${TONGUE:-en}' } };
  const where = place({}, userServers({ c: entry }));
  await raised(where);
  const call = ['call', 'c', 'count'];
  const up = told(await run(where, call));
  const mustBeDirect = async (words: string[], env?: NodeJS.ProcessEnv) => {
    const ended = await run(where, words, { env });
    assert.match(ended.err, /^! c is connected directly: up has it with another entry/);
    assert.equal(told(ended).calls, 1);
    assert.notEqual(told(ended).pid, up.pid);
  };
  await mustBeDirect(call, { TONGUE: 'de' });
  await mustBeDirect([...call, '-e', 'A=1']);
  assert.deepEqual(told(await run(where, call)), { calls: 2, pid: up.pid });
  const changed = { mcpServers: { c: { ...entry, args: [...entry.args, 'more'] } } };
  writeFileSync(join(where.home, '.claude', 'settings.json'), JSON.stringify(changed));
  await mustBeDirect(call);
});

test("A35 a project's server: only the approved entry, and only as long as it is approved", async () => {
  const where = place({ '.mcp.json': { mcpServers: { c: counter } } });
  const refused = await run(where, ['up']);
  assert.equal(refused.code, 4);
  assert.match(refused.err, /you have not approved it/);
  assert.equal((await run(where, ['trust', 'allow', 'c'])).code, 0);
  await raised(where);
  const call = ['call', 'c', 'count'];
  assert.equal(told(await run(where, call)).calls, 1);
  assert.equal(told(await run(where, call)).calls, 2);
  assert.equal((await run(where, ['trust', 'revoke', 'c'])).code, 0);
  const after = await run(where, call);
  assert.equal(after.code, 3, after.out);
  assert.match(after.err, /not approved/);
});

test('D32 what a server asks is asked at the terminal of the call that caused it, in both eras', async () => {
  const asker = (...args: string[]) => fixture('asker.mjs', ...args);
  const where = place({}, userServers({ old: asker(), modern: asker('modern') }));
  await raised(where);
  const properties = { name: { type: 'string' } };
  const params = { message: 'Who is it?', requestedSchema: { type: 'object', properties } };
  const ask = JSON.stringify({ method: 'elicitation/create', params });
  const { command, args } = asker();
  const typed = await run(where, ['call', 'ask', ask, '--', command, ...args]);
  assert.match(typed.out, /"action":"cancel"/, typed.err); // an extension is known by its name
  for (const server of ['old', 'modern']) {
    const words = ['call', server, 'ask', ask];
    const [ada, bob] = [new Terminal(where, words), new Terminal(where, words)];
    const isFirst = (terminal: Terminal) => terminal.see('Who is it?').then(() => terminal);
    const first = await Promise.race([isFirst(ada), isFirst(bob)]);
    const second = first === ada ? bob : ada;
    if (server === 'old') {
      // On a pipe a question does not say to which call it belongs: so the other call waits.
      await second.see('another call is under way');
      assert.doesNotMatch(second.text, /Who is it/);
    } else await isFirst(second); // in a result it does
    const script = run(where, words); // and nobody is there for a script
    await answer(first, 'Ada');
    await answer(second, 'Bob');
    assert.match((await script).out, /"action":"cancel"/);
  }
});

test('D32 a model is borrowed at the terminal of the call, and roots are those of its folder', async () => {
  const where = place({}, userServers({ old: fixture('asker.mjs') }));
  await raised(where);
  const content = { type: 'text', text: 'Say hello.' };
  const params = { messages: [{ role: 'user', content }], maxTokens: 5 };
  const borrow = JSON.stringify({ method: 'sampling/createMessage', params });
  const terminal = new Terminal(where, ['call', 'old', 'ask', borrow], { ANTHROPIC_API_KEY: 'k' });
  await terminal.see(/Say hello\.[^]*Ask the model\?.*: *$/);
  terminal.enter('n');
  await terminal.ended();
  assert.match(terminal.text, /"code":-1,/);
  const roots = await run(where, ['call', 'old', 'ask', '{"method":"roots/list"}']);
  assert.match(roots.out, new RegExp(`"roots":\\[\\{"uri":"${pathToFileURL(where.cwd)}"`));
});

async function answer(terminal: Terminal, name: string): Promise<void> {
  await terminal.see(/Fill it in\?.*: *$/);
  terminal.enter('y');
  await terminal.see(/^"name" .*: *$/);
  terminal.enter(name);
  await terminal.see(/Send it\?.*: *$/);
  terminal.enter('y');
  await terminal.ended();
  assert.match(terminal.text, new RegExp(`"name":"${name}"`));
}

test('it ends when it is idle, and with the last terminal that stays', async () => {
  const where = place({}, userServers({ c: counter }));
  const idle = await raised(where, '--idle', '0.01');
  await gone(idle.pid!);
  assert.equal(nameIn(where), undefined);

  const terminals = [new Terminal(where, ['up', '--stay'])];
  await terminals[0]!.see('they end with this command');
  terminals.push(new Terminal(where, ['up', '--stay']));
  await terminals[1]!.see('they end with this command');
  const { pid } = await status(where);
  const server = told(await run(where, ['call', 'c', 'count']));
  terminals[0]!.close();
  while ((await status(where)).clients! > 2) await wait(20); // the other, and who asks
  assert.equal(told(await run(where, ['call', 'c', 'count'])).calls, 2);
  terminals[1]!.close();
  await gone(pid!);
  assert.ok(!lives(server.pid));
});

test('two that are started at once are one program, with the servers of both', async () => {
  const where = place({}, userServers({ a: counter, b: counter }));
  const names = ['a', 'b', 'a', 'b'];
  const ended = await Promise.all(names.map((name) => run(where, ['up', name])));
  later(() => run(where, ['down']).then(() => {}));
  assert.deepEqual(
    ended.map(({ code, err, out }) => (code ? `${code} ${err} ${out}` : 0)),
    [0, 0, 0, 0],
  );
  const { servers } = await status(where);
  assert.deepEqual(servers!.map(({ name, state }) => `${name} ${state}`).sort(), [
    'a connected',
    'b connected',
  ]);
  const sockets = readdirSync(folderOf(where)).filter((name) => /^up-[0-9a-f]{16}$/.test(name));
  assert.equal(sockets.length, 1, `${sockets}`);
});

test('what started it was killed before it said anything: it ends soon', async () => {
  const where = place({}, userServers({ c: counter }));
  const env = { PATH: process.env.PATH, HOME: where.home };
  const starter = spawn(command[0], [...command.slice(1), 'up', '--daemon'], {
    cwd: where.cwd,
    env,
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  await once(starter, 'disconnect'); // now it listens, as for one who is gone
  await gone(starter.pid!);
  assert.equal(nameIn(where), undefined);
});

test('kill -9 leaves no server, and the next call works', async () => {
  const where = place({}, userServers({ c: counter }));
  const { pid } = await raised(where);
  const before = told(await run(where, ['call', 'c', 'count']));
  process.kill(pid!, 'SIGKILL');
  await gone(before.pid);
  const next = await run(where, ['call', 'c', 'count']);
  assert.match(next.err, /^! c is connected directly: what was up is gone/);
  assert.equal(told(next).calls, 1);
  const second = await run(where, ['call', 'c', 'count']);
  assert.deepEqual([second.err, existsSync(join(folderOf(where), 'up'))], ['', false]);
  await raised(where);
  assert.equal(told(await run(where, ['call', 'c', 'count'])).calls, 1);
});

/** A server that cannot start while there is a file beside it. */
function fragileServer({ cwd }: Place) {
  const [script, broken] = [join(cwd, 'fragile.mjs'), join(cwd, 'broken')];
  const from = JSON.stringify(join(root, 'fixtures', 'counter.mjs'));
  const exit = `if ((await import('node:fs')).existsSync(${JSON.stringify(broken)})) process.exit(7)`;
  writeFileSync(script, `${exit};\nawait import(${from});\n`);
  return { broken, entry: { command: process.execPath, args: [script] } };
}

const setServers = ({ home }: Place, mcpServers: Json) =>
  writeFileSync(join(home, '.claude', 'settings.json'), JSON.stringify({ mcpServers }));

test('a server that dies takes no other along, is started by the next call, and what it says is told', async () => {
  const where = place({}, userServers({}));
  const { broken, entry } = fragileServer(where);
  setServers(where, { c: counter, fragile: entry });
  await raised(where);
  const call = ['call', 'fragile', 'count'];
  const before = told(await run(where, call));
  const other = told(await run(where, ['call', 'c', 'count']));
  writeFileSync(broken, '');
  process.kill(before.pid, 'SIGKILL');
  await gone(before.pid);
  const dead = await run(where, call);
  assert.deepEqual([dead.code, dead.out], [4, '']);
  assert.match(dead.err, /exited with code 7/);
  const { servers } = await status(where);
  assert.match(`${servers!.find(({ name }) => name === 'fragile')!.reason}`, /exited with code 7/);
  assert.deepEqual(told(await run(where, ['call', 'c', 'count'])), { calls: 2, pid: other.pid });
  rmSync(broken);
  const again = told(await run(where, call));
  assert.equal(again.calls, 1);
  assert.deepEqual(told(await run(where, call)), { calls: 2, pid: again.pid });
});

test('D32 what up says of the end of a server, no server can say', async () => {
  const where = place({}, userServers({}));
  const file = join(where.cwd, 'liar.mjs');
  const note = (method: string) => JSON.stringify({ jsonrpc: '2.0', method, params: {} });
  const lies = [note('notifications/up/ended'), note('notifications/tools/list_changed')];
  const tell = `process.stdin.on('data', () => console.log(${JSON.stringify(lies.join('\n'))}));`;
  writeFileSync(file, `${tell}\nimport ${JSON.stringify(counter.args[0])};\n`);
  setServers(where, { c: { command: process.execPath, args: [file] } });
  await raised(where);
  const { socket, token } = upFile(where);
  const wire = connect(socket);
  later(() => void wire.destroy());
  const ask = (id: number, method: string, params: Json) =>
    wire.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
  ask(0, 'up/hello', { server: 'c', token, version: VERSION });
  const passed = new Set<string>();
  for await (const line of createInterface({ input: wire })) {
    const { id, method } = JSON.parse(line);
    passed.add(method ?? 'an answer');
    if (id === 0) ask(1, 'tools/call', { name: 'count' });
    if (passed.has('notifications/tools/list_changed')) break; // the lie came before it
  }
  assert.ok(!passed.has('notifications/up/ended'));
});

test('up adds to what is up; the servers of the home folder are there in every folder', async () => {
  const where = place({}, userServers({ c: counter, other: counter }));
  const { pid } = await raised(where, 'c');
  const count = (name: string, from = where) => run(from, ['call', name, 'count']).then(told);
  const first = await count('c');
  const more = await raised(where, 'other');
  assert.equal(more.pid, pid);
  assert.deepEqual(await count('c'), { calls: 2, pid: first.pid });
  assert.equal((await count('other')).calls, 1);
  assert.equal((await count('other')).calls, 2);
  assert.equal((await run(where, ['up', 'nosuch'])).code, 3);
  assert.equal((await run(where, ['down'])).code, 0);

  const atHome = { ...where, cwd: where.home };
  await raised(atHome, 'c');
  const shared = await count('c');
  assert.deepEqual(await count('c', atHome), { calls: 2, pid: shared.pid });
  const ended = await run(where, ['call', 'c', 'count']);
  assert.deepEqual([told(ended), ended.err], [{ calls: 3, pid: shared.pid }, '']);
});

test('D32 a socket is in no folder that others can enter: a path that is too long is refused', async () => {
  const where = place({}, userServers({ c: counter }));
  const home = join(where.home, 'x'.repeat(100));
  mkdirSync(home);
  const { code, err } = await run({ ...where, home }, ['up']);
  assert.equal(code, 3);
  assert.match(err, /at most 100 bytes/);
  const relative = await run(where, ['up'], { env: { HOME: 'relative' } });
  assert.deepEqual([relative.code, relative.out], [3, '']);
});

test('through it an era is passed on as it is, and remembered so; a task goes on', async () => {
  const modern = fixture('asker.mjs', 'modern');
  const where = place({}, userServers({ modern, tasker: fixture('tasker.mjs') }));
  await raised(where);
  const wire = await run(where, [
    '-p',
    'mcp__modern__ask',
    '--allow',
    'mcp__modern__ask',
    '--wire',
  ]);
  assert.match(wire.err, /→ modern .*"server\/discover"/);
  assert.doesNotMatch(wire.err, /→ modern .*"initialize"/);
  const meta = JSON.parse((await run(where, ['call', 'modern', 'ask', 'method=meta'])).out);
  const theirs = meta['io.modelcontextprotocol/clientCapabilities'];
  assert.deepEqual(theirs.elicitation, { form: {} }); // of a script, which has no person
  const script = [{ status: 'working' }, { status: 'completed', result: { content: [] } }];
  const task = ['call', 'tasker', 'run', JSON.stringify({ script }), '--wire', '--json'];
  const ended = await run(where, task);
  assert.equal(ended.code, 0, ended.err);
  assert.match(ended.err, /tasks\/get/);
  await run(where, ['down']);
  const probe = await run(where, ['probe', 'modern', '--wire']);
  assert.doesNotMatch(probe.err, /"initialize"/);
});
