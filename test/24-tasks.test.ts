// Chapter 24, Tasks: a call that is answered with a task, over both transports that the later era has.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { ScriptedPerson, type PersonAnswer } from '../chapters/17-the-gate/person.ts';
import { httpTransports } from '../chapters/20-streamable-http/http.ts';
import { inBothEras } from '../chapters/22-no-handshake/era.ts';
import { Counts } from '../chapters/23-the-server-asks/asking.ts';
import { problemsFound } from '../chapters/23-the-server-asks/schema.ts';
import { elicitation } from '../chapters/23-the-server-asks/elicitation.ts';
import { sampling } from '../chapters/23-the-server-asks/sampling.ts';
import { tasks, type TaskOptions } from '../chapters/24-more-than-tools/tasks.ts';
import type { CallOptions, Extension, Json } from '../mcp.ts';
import { cleanUp, later, open, rejection, root, until } from './help/basics.ts';
import { SwappablePerson } from './help/swappable-person.ts';

afterEach(cleanUp);

const fixture = join(root, 'fixtures', 'tasker.mjs');
const WIRES = ['stdio', 'http'] as const;
type Wire = (typeof WIRES)[number];

async function configOf(wire: Wire | 'old'): Promise<Json> {
  if (wire === 'old') return { command: process.execPath, args: [fixture, '--old'] };
  if (wire === 'stdio') return { command: process.execPath, args: [fixture] };
  const child = spawn(process.execPath, [fixture, 'http']);
  later(() => child.kill('SIGKILL'));
  const url = await new Promise<string>((done) =>
    child.stdout.setEncoding('utf8').once('data', (line: string) => done(line.trim())),
  );
  return { type: 'http', url };
}

/** A connection to the server with tasks. The pauses between looks are noted, and take no time. */
async function connected(
  wire: Wire | 'old' = 'stdio',
  options: TaskOptions = {},
  outer: Extension[] = [],
) {
  const stage = new SwappablePerson();
  const pauses: number[] = [];
  const pause = async (ms: number) => void pauses.push(ms);
  const [answers, ...others] = inBothEras();
  const extensions = [
    ...outer,
    elicitation({ person: stage, problemsFound, counts: new Counts(Infinity, Infinity) }),
    sampling({
      person: stage,
      model: () => ({ name: 'none', query: async function* () {} }) as never,
    }),
    answers!,
    tasks({ pause, ...options }), // inside of answerWithin
    ...others,
  ];
  const transports = {
    http: httpTransports.http,
  };
  const opened = await open(await configOf(wire), { extensions, transports });
  const { connection, wire: trace } = opened;
  const run = (script: Json[], seed: Json = {}, more?: CallOptions) =>
    connection.callTool('run', { script, seed }, more);
  const seen = async (): Promise<string[]> =>
    JSON.parse((await connection.callTool('seen')).text).seen;
  const sent = (method: string) =>
    trace
      .filter(([way, message]) => way === 'out' && message.method === method)
      .map(([, { params }]) => params);
  const act = (answers: PersonAnswer[]) => (stage.actor = new ScriptedPerson(answers));
  return { ...opened, run, seen, sent, act, pauses };
}

const text = (words: string) => ({ content: [{ type: 'text', text: words }] });
const done = (words: string): Json => ({ status: 'completed', result: text(words) });
const working = { status: 'working' };
const form = (message: string) => ({
  method: 'elicitation/create',
  params: { message, requestedSchema: { type: 'object', properties: { ok: { type: 'boolean' } } } },
});
const asks = (inputRequests: Json, more: Json = {}): Json => ({
  status: 'input_required',
  inputRequests,
  ...more,
});

for (const wire of WIRES)
  test(`a task is looked at until it is done, and its result is that of the call (${wire})`, async () => {
    const { run, seen, sent, warnings } = await connected(wire);
    const { text: words, isError } = await run([
      working,
      { ...working, looks: 3 },
      done('it is 42'),
    ]);
    assert.deepEqual([words, isError], ['it is 42', false]);
    assert.deepEqual(await seen(), Array(5).fill('tasks/get'));
    const [call] = sent('tools/call');
    assert.deepEqual(call._meta['io.modelcontextprotocol/clientCapabilities'].extensions, {
      'io.modelcontextprotocol/tasks': {},
    });
    const failed = await run([
      { status: 'completed', result: { ...text('no such file'), isError: true } },
    ]);
    assert.deepEqual([failed.text, failed.isError], ['no such file', true]);
    assert.deepEqual(warnings, []);
  });

for (const wire of WIRES)
  test(`its questions are put once each, like any other of this server, and answered by tasks/update (${wire})`, async () => {
    const { run, act, seen, sent } = await connected(wire);
    const actor = act(['y', 'y', 'y', 'n']); // fill it in, ok, send; and no
    const both = asks({ first: form('Go on?'), __proto__x: form('Really?') });
    const { text: answers } = await run([
      working,
      both,
      working,
      { status: 'completed', result: text('$answers') },
    ]);
    assert.deepEqual(JSON.parse(answers), {
      first: { action: 'accept', content: { ok: true } },
      __proto__x: { action: 'decline' },
    });
    const asked = actor.questions
      .filter(({ prompt }) => prompt.startsWith('Fill it in?'))
      .map(({ text: each }) => each);
    assert.equal(asked.length, 2);
    assert.match(asked[0]!, /^The MCP server "demo" asks:\nwhile it runs "run":\n  │ Go on\?/);
    const updates = sent('tasks/update');
    assert.deepEqual(
      updates.map(({ inputResponses }) => Object.keys(inputResponses)),
      [['first'], ['__proto__x']],
    );
    assert.ok((await seen()).length >= 5);
  });

test('a question that the task no longer has disappears, and nothing is sent for it', async () => {
  let asked: AbortSignal | undefined;
  const { run, act, sent } = await connected('stdio', { pause: () => new Promise(setImmediate) });
  let looks = 0; // when it disappeared
  const actor = act([
    ({ signal }) => {
      asked = signal;
      signal.addEventListener('abort', () => (looks = sent('tasks/get').length));
      return new Promise(() => {});
    },
  ]);
  const { text: words } = await run([
    asks({ key: form('Still there?') }, { looks: 40 }),
    { ...working, looks: 20 },
    done('never mind'),
  ]);
  assert.equal(words, 'never mind');
  assert.equal(asked?.aborted, true);
  assert.ok(looks <= 50 && sent('tasks/get').length > 60, `${looks}: while the task went on`);
  assert.deepEqual(actor.said, ['"demo" no longer wants to know']);
  assert.deepEqual(sent('tasks/update'), []);
});

test('what cannot be answered ends the task: it is cancelled, and the call fails with the reason', async () => {
  const { run, act, sent } = await connected();
  const roots = { method: 'roots/list', params: {} };
  const borrow = { method: 'sampling/createMessage', params: { messages: [], maxTokens: 1 } };
  for (const [question, words] of [
    [roots, /asks for "roots\/list", which we have not offered/],
    [borrow, /there is no message to answer/],
  ] as const) {
    act([]);
    assert.match((await rejection(run([asks({ key: question }), working]))).message, words);
  }
  await until(() => sent('tasks/cancel').length === 2);
  assert.deepEqual(sent('tasks/update'), []);
  const many = Object.fromEntries(Array.from({ length: 101 }, (_, n) => [`${n}`, form(`${n}`)]));
  act([() => new Promise(() => {})]);
  assert.match((await rejection(run([asks(many)]))).message, /asks more than 100 times/);
});

test("the pace is the server's, within bounds; where it gives none, looks become rarer", async () => {
  const { run, pauses } = await connected();
  const at = (pollIntervalMs: unknown) => ({ ...working, pollIntervalMs });
  await run([at(3000), at(0), at(1e12), at(-5), done('')], { pollIntervalMs: 5000 });
  assert.deepEqual(pauses.splice(0).slice(0, 4), [5000, 3000, 100, 600_000]);
  await run([...Array(9).fill(at('soon')), done('')], { pollIntervalMs: null });
  const own = pauses.splice(0);
  assert.ok(
    own.every((ms, n) => n === 0 || ms >= own[n - 1]!),
    `${own}`,
  );
  assert.deepEqual([own[0], own.at(-1)], [1500, 10_000]);
});

test('a seed that is more than "working" is looked at at once', async () => {
  const { run, pauses } = await connected();
  assert.equal((await run([done('quick')], { status: 'completed' })).text, 'quick');
  assert.deepEqual(pauses, []);
});

test('a call that is aborted cancels its task by tasks/cancel, and by nothing else', async () => {
  for (const wire of WIRES) {
    const { run, sent, seen } = await connected(wire, { pause: undefined });
    const stop = new AbortController();
    const call = run([working], { pollIntervalMs: 600_000 }, { signal: stop.signal });
    await until(async () => sent('tools/call').length > 0);
    await seen(); // by then, the call has become a task
    stop.abort();
    const error = await rejection(call);
    assert.deepEqual(
      [error.kind, /has cancelled the task of "run"/.test(error.message)],
      ['aborted', true],
    );
    await until(() => sent('tasks/cancel').length === 1);
    assert.deepEqual(sent('notifications/cancelled'), []);
    const late = new AbortController();
    late.abort();
    await rejection(run([working], {}, { signal: late.signal }));
  }
});

test('how a task can end: refused, cancelled over there, forgotten, out of time, out of sight', async () => {
  const { run } = await connected();
  const error = { code: -32603, message: 'API rate limit exceeded' };
  const failed = await rejection(run([{ status: 'failed', error }]));
  assert.deepEqual(
    [failed.name, failed.code, /failed in "run": API rate limit exceeded/.test(failed.message)],
    ['RpcError', -32603, true],
  );
  assert.match(
    (await rejection(run([{ status: 'cancelled', statusMessage: 'for the night' }]))).message,
    /cancelled the task of "run": for the night/,
  );
  const gone = await rejection(
    run([working, { error: { code: -32602, message: 'Task has expired' } }]),
  );
  assert.deepEqual([gone.code, /Task has expired/.test(gone.message)], [-32602, true]); // a refusal, and no other look
  const away = { error: { code: -32603, message: 'busy' } };
  assert.equal((await run([{ ...away, looks: 4 }, done('back')])).text, 'back'); // four times in a row is no reason
  assert.match(
    (await rejection(run([away]))).message,
    /does not tell of the task of "run" any more: .*busy.*It may still be at work/,
  );
  assert.match((await rejection(run([{ status: 'dancing' }]))).message, /answered tasks\/get with/);
  assert.match(
    (await rejection(run([{ ...working, ttlMs: 0 }], { ttlMs: 0 }))).message,
    /its time is over/,
  );
});

test('C23: a task that is lost sight of does not make the call again, not even where twice does no harm', async () => {
  const LOSSES = ['closed', 'lost', 'unreachable', 'expired'];
  const repeat: Extension = () => ({
    // as chapter 26 does
    layer: (call, next) =>
      next(call).catch((error) => {
        if (LOSSES.includes(error.kind)) return next(call);
        throw error;
      }),
  });
  const { connection, run, sent } = await connected('stdio', {}, [repeat]);
  const dead = rejection(run([working]));
  await until(() => sent('tasks/get').length > 3);
  await connection.close();
  const error = await dead;
  assert.deepEqual([error.kind, sent('tools/call').length], ['timeout', 1]);
});

test('a task in answer to anything but a call, without an id, or unasked for is no result', async () => {
  const { connection, run } = await connected();
  for (const taskId of [undefined, '', 7, 'x'.repeat(1001)]) {
    const ended = rejection(run([done('x')], { taskId: taskId ?? null }));
    assert.match((await ended).message, /answered with a task of the id/);
  }
  const odd: Extension = () => ({
    layer: (call, next) =>
      call.method === 'prompts/get'
        ? Promise.resolve({ resultType: 'task', taskId: 'x' })
        : next(call),
  });
  const [first, ...others] = inBothEras();
  const plain = await open(await configOf('stdio'), {
    extensions: [first!, tasks(), odd, ...others],
  });
  assert.match(
    (await rejection(plain.connection.request('prompts/get', { name: 'x' }))).message,
    /answered prompts\/get with a result of type "task"/,
  );
  const without = await open(await configOf('stdio'), { extensions: inBothEras() });
  assert.match(
    (await rejection(without.connection.callTool('run', {}))).message,
    /Missing required client capability/,
  );
  await connection.close();
});

test('in 2025-11-25 a tool that runs as a task only is called as one, and its result fetched; others are not', async () => {
  const { connection, run, sent, pauses } = await connected('old');
  assert.match((await rejection(run([done('x')]))).message, /requires task augmentation/); // nobody has told us yet
  await connection.listTools();
  assert.equal(
    (await run([working, { ...working, pollInterval: 3000 }, done('it is 42')])).text,
    'it is 42',
  );
  assert.deepEqual(
    sent('tools/call').map(({ task }) => task),
    [undefined, {}],
  );
  assert.ok(pauses.length >= 2);
  assert.match(
    (await rejection(run([{ status: 'failed', error: { code: -32603, message: 'no paper' } }])))
      .message,
    /no paper/,
  );
  const stop = new AbortController();
  stop.abort();
  assert.equal((await rejection(run([working], {}, { signal: stop.signal }))).kind, 'aborted');
  assert.deepEqual([sent('tasks/result').length, sent('tasks/update')], [2, []]);
});
