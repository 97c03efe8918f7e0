// Judges exercise 22: are the questions inside a result answered, and does the request go out again
// as it should?

import type { Bench, Judge } from '../book.ts';

const description = {
  resultType: 'complete',
  supportedVersions: ['2026-07-28'],
  capabilities: { tools: {} },
};
const done = { resultType: 'complete', content: [{ type: 'text', text: '42' }] };
const ask = (message: string) => ({ method: 'elicitation/create', params: { message } });
const wants = (inputRequests?: object, requestState?: unknown) => ({
  resultType: 'input_required',
  inputRequests,
  requestState,
});
const accepted = (said: string) => ({ action: 'accept', content: { said } });

const isSame = (wanted: unknown) => (came: unknown) =>
  JSON.stringify(came) === JSON.stringify(wanted);
const is = (wanted: unknown) => (came: unknown) => came === wanted;
const fields = (call: object = {}) => Object.keys(call).join(', ');
const hasNo = (...names: string[]) => (came: string) =>
  came.includes('name') && !names.some((name) => came.includes(name));
const quietly = (promise: Promise<unknown>) => promise.catch(() => {}); // looked at below

export const judge: Judge = async (bench) => {
  await judgeOneQuestion(bench);
  await judgeState(bench);
  await judgeManyQuestions(bench);
  await judgeKeys(bench);
  await judgeRounds(bench);
  await judgePatience(bench);
  await judgePauses(bench);
  await judgeLimits(bench);
};

/** A server that lives in this process: it describes itself, refuses the handshake, and answers the
 *  calls of a tool with these results, one after the other. */
async function script({ load, see, expect }: Bench, ...results: object[]) {
  const { McpConnection } = await load('mcp.ts');
  const { inBothEras } = await load('chapters/22-no-handshake/era.ts');
  const calls: any[] = [];
  const answered: string[] = [];
  const log: [string, unknown][] = [];
  type Paused = { ms: number; signal?: AbortSignal; callsAtEnd?: number };
  const pauses: Paused[] = []; // after a call was made
  const pause = async (ms: number, signal?: AbortSignal) => {
    const paused: Paused = { ms, signal };
    if (calls.length > 0) pauses.push(paused);
    await new Promise((after) => setTimeout(after, 10));
    paused.callsAtEnd = calls.length;
  };
  const answerTo = (method: string) => {
    if (method === 'initialize') return { error: { code: -32022, message: 'No handshake.' } };
    if (method === 'server/discover') return { result: description };
    return { result: results[calls.length - 1] ?? done };
  };
  const transport = () => {
    let events: any;
    return {
      start: async (given: unknown) => void (events = given),
      close: async () => {},
      send: async ({ id, method, params }: any) => {
        if (method === 'tools/call') calls.push({ id, ...JSON.parse(JSON.stringify(params)) });
        const answer = { jsonrpc: '2.0', id, ...answerTo(method) };
        if (id !== undefined) setImmediate(() => events.message(answer));
      },
    };
  };
  const thinkAndAnswer = async ({ message }: any) => {
    answered.push(`${message}?`);
    await new Promise((after) => setTimeout(after, 20));
    answered.push(`${message}!`);
    return message === 'No' ? { action: 'decline' } : accepted(message);
  };
  const user = () => ({
    capabilities: { elicitation: {} },
    handlers: { 'elicitation/create': thinkAndAnswer },
  });
  const connection = new McpConnection('demo', { type: 'script' }, {
    transports: { script: transport },
    extensions: [...inBothEras({ pause }), user],
    onWire: (direction: string, message: unknown) => {
      log.push([direction, message]);
      see(direction, message);
    },
  });
  await connection.connect();
  await connection.initialize();
  const call = async (options = {}) =>
    (await connection.callTool('add', { a: 2, b: 40 }, options)).text;
  /** A second look at what has come over this wire. */
  const expectToo: Bench['expect'] = (...given) => {
    for (const line of log) see(...line);
    return expect(...given);
  };
  return { calls, answered, pauses, call, connection, expectToo };
}

async function judgeOneQuestion(bench: Bench): Promise<void> {
  const asking = await script(bench, wants({ sure: ask('Sure') }, 's1.9f2c'));
  const { calls, pauses, call, expectToo } = asking;
  await bench.expect(
    'a question in a result is answered, and the call goes on', '42', call(), /^42$/,
  );
  await expectToo('by sending it again', 'two calls', calls.length, is(2));
  const [first, again] = calls;
  const isOther = (came: unknown) => came !== undefined && came !== first.id;
  await expectToo('under an id of its own', 'an id that is not the first one', again.id, isOther);
  const same = { name: 'add', arguments: { a: 2, b: 40 } };
  await expectToo(
    'with the same tool and arguments', JSON.stringify(same),
    { name: again.name, arguments: again.arguments }, isSame(same),
  );
  const answers = { sure: accepted('Sure') };
  await expectToo(
    'and the answer under its key, without an envelope', JSON.stringify(answers),
    again.inputResponses, isSame(answers),
  );
  await expectToo(
    'and the state of the server', '"s1.9f2c"', again.requestState, is('s1.9f2c'),
  );
  await expectToo(
    'at once: the user has waited enough', 'no pause', pauses.length, is(0),
  );
  await expectToo(
    'the first call had neither', 'no inputResponses, no requestState',
    fields(first), hasNo('inputResponses', 'requestState'),
  );
}

async function judgeState(bench: Bench): Promise<void> {
  const json = '{ "step": 1.0, "a":"\\u00e9" }';
  const text = await script(bench, wants({ q: ask('Yes') }, json));
  await quietly(text.call());
  await bench.expect(
    'a state that looks like JSON goes back as it came, to the letter', json,
    text.calls[1]?.requestState, is(json),
  );
  const empty = await script(bench, wants({ q: ask('Yes') }, ''));
  await quietly(empty.call());
  await bench.expect('an empty state is a state', '""', empty.calls[1]?.requestState, is(''));
  const none = await script(bench, wants({ q: ask('Yes') }));
  await quietly(none.call());
  await bench.expect(
    'no state is none', 'no requestState', fields(none.calls[1]), hasNo('requestState'),
  );
}

async function judgeManyQuestions(bench: Bench): Promise<void> {
  const two = await script(bench, wants({ first: ask('Yes'), second: ask('No') }));
  await quietly(two.call());
  const answers = { first: accepted('Yes'), second: { action: 'decline' } };
  await bench.expect(
    'every question is answered, and a no is an answer, too', JSON.stringify(answers),
    two.calls[1]?.inputResponses, isSame(answers),
  );
  await two.expectToo(
    'one question after the other: there is one user', 'Yes? Yes! No? No!',
    two.answered.join(' '), is('Yes? Yes! No? No!'),
  );
}

async function judgeKeys(bench: Bench): Promise<void> {
  const odd = JSON.parse('{ "__proto__": null, "a b": null }');
  for (const key of Object.keys(odd)) Object.defineProperty(odd, key, { value: ask(key) });
  const any = await script(bench, wants(odd));
  await quietly(any.call());
  await bench.expect(
    'a key is any text of the server, also "__proto__"', '__proto__, a b',
    fields(any.calls[1]?.inputResponses), is('__proto__, a b'),
  );
}

async function judgeRounds(bench: Bench): Promise<void> {
  const rounds = await script(bench, wants({ a: ask('One') }, 'r1'), wants({ b: ask('Two') }));
  await quietly(rounds.call());
  const answers = { b: accepted('Two') };
  await bench.expect(
    'in a second round only its own answers go out', JSON.stringify(answers),
    rounds.calls[2]?.inputResponses, isSame(answers),
  );
  await rounds.expectToo(
    'and not the state of the first', 'no requestState',
    fields(rounds.calls[2]), hasNo('requestState'),
  );
}

async function judgePatience(bench: Bench): Promise<void> {
  const { calls, pauses, call, expectToo } = await script(bench, wants(undefined, 'busy'));
  await bench.expect('a result without questions asks for patience', '42', call(), /^42$/);
  await expectToo(
    'so there is a pause before the call is sent again', 'one this.pause(…), of at least 50 ms',
    pauses.map(({ ms }) => ms), (came) => came.length === 1 && came[0]! >= 50,
  );
  await expectToo(
    'and its end is awaited', 'no second call before the end of the pause',
    pauses[0]?.callsAtEnd, is(1),
  );
  await expectToo(
    'with the state, and without answers', 'requestState "busy", and no inputResponses',
    calls[1],
    ({ requestState, inputResponses } = {}) =>
      requestState === 'busy' && inputResponses === undefined,
  );
  const neither = await script(bench, wants({}));
  await quietly(neither.call());
  await bench.expect(
    'no question in the list is no question', 'no inputResponses',
    fields(neither.calls[1]), hasNo('inputResponses'),
  );
}

async function judgePauses(bench: Bench): Promise<void> {
  const nothing = await script(bench, wants(null as never));
  await bench.expect('null in the place of the list is no question', '42', nothing.call(), /^42$/);

  const busy = await script(bench, ...Array(9).fill(wants()));
  await quietly(busy.call());
  const given = busy.pauses.map(({ ms }) => ms);
  await bench.expect(
    'the more rounds, the longer the pause', 'each of the first four longer than the one before',
    given.join(', '), () => [1, 2, 3].every((n) => given[n]! > given[n - 1]!),
  );
  await bench.expect(
    'but never more than MAX_PAUSE_MS', 'nine pauses, of at most 5000 ms', given.join(', '),
    () => given.length === 9 && given.every((ms) => ms <= 5000),
  );
  const controller = new AbortController();
  const stopped = await script(bench, wants());
  const call = quietly(stopped.call({ signal: controller.signal }));
  while (stopped.pauses.length === 0 && stopped.calls.length < 2)
    await new Promise((after) => setTimeout(after, 1));
  controller.abort();
  await bench.expect(
    'a call that is cancelled does not wait for the end of a pause',
    'this.pause(…) got the signal of the call', stopped.pauses[0]?.signal?.aborted, is(true),
  );
  await call;
}

async function judgeLimits(bench: Bench): Promise<void> {
  const asking = { q: { method: 'sampling/createMessage', params: {} } };
  const uninvited = await script(bench, wants(asking));
  await bench.expect(
    'what we have not offered is not answered', 'a McpError of kind "protocol"',
    uninvited.call(), (came) => came?.kind === 'protocol',
  );
  await uninvited.expectToo(
    'and the call is not sent again', 'one call', uninvited.calls.length, is(1),
  );

  const { calls, connection } = await script(bench, wants({ q: ask('Yes') }, 'mine'));
  const params = Object.freeze({ name: 'add', arguments: {} });
  await quietly(connection.request('tools/call', params));
  await quietly(connection.request('tools/call', params));
  await bench.expect(
    'the next call knows nothing of this one', 'no inputResponses, no requestState',
    fields(calls[2]), hasNo('inputResponses', 'requestState'),
  );
}
