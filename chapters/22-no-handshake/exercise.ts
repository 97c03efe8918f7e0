// Judges exercise 22: are the questions inside a result answered, and does the request go out again
// as it should?

import { randomInt } from 'node:crypto';
import type { Bench, Judge } from '../book.ts';

const anyWord = (prefix: string) => `${prefix}.${randomInt(36 ** 5).toString(36)}`;

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
const roots = { roots: [{ uri: 'file:///work', name: 'Work' }], _meta: { 'example.org/n': 1 } };
const longAnswer = { action: 'accept', content: { said: 'Long' }, _meta: { 'example.org/at': 7 } };
const accepted = (said: string) => ({ action: 'accept', content: { said } });

const isSame = (wanted: unknown) => (came: unknown) =>
  JSON.stringify(came) === JSON.stringify(wanted);
const is = (wanted: unknown) => (came: unknown) => came === wanted;
const fields = (call: object = {}) => Object.keys(call).join(', ');
const hasNo =
  (...names: string[]) =>
  (came: string) =>
    came.includes('name') && !names.some((name) => came.includes(name));
const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion';
/** What introduces us in each request is not what these checks are about. */
const brief = (message: unknown) =>
  JSON.parse(
    JSON.stringify(message, (key, value) =>
      key === '_meta' && value && VERSION_KEY in value ? '…' : value,
    ),
  );
const quietly = (promise: Promise<unknown>) => promise.catch(() => {}); // looked at below

export const judge: Judge = async (bench) => {
  await judgeOneQuestion(bench);
  await judgeState(bench);
  await judgeManyQuestions(bench);
  await judgeSomeQuestions(bench);
  await judgeAnswers(bench);
  await judgeRest(bench);
  await judgeKeys(bench);
  await judgePatience(bench);
  await judgeRounds(bench);
  await judgePauses(bench);
  await judgeLimits(bench);
  await judgeSideBySide(bench);
};

/** A server that lives in this process: it describes itself, refuses the handshake, and answers the
 *  calls of a tool with these results, one after the other. */
async function script({ load, see, expect }: Bench, ...results: object[]) {
  const { McpConnection } = await load('mcp.ts');
  const { inBothEras } = await load('chapters/22-no-handshake/era.ts');
  const calls: any[] = [];
  const seen: any[] = []; // the same calls, with their options
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
        if (/^(tools.call|prompts.get)$/.test(method))
          calls.push({ id, method, ...JSON.parse(JSON.stringify(params)) });
        const answer = { jsonrpc: '2.0', id, ...answerTo(method) };
        if (id !== undefined) setImmediate(() => events.message(answer));
      },
    };
  };
  const asked: { id: unknown; signal?: AbortSignal }[] = [];
  const thinkAndAnswer = async ({ message }: any, given: any) => {
    asked.push(given);
    answered.push(`${message}?`);
    if (message === 'Forever')
      await new Promise((after) => given.signal.addEventListener('abort', after));
    await new Promise((after) => setTimeout(after, 20));
    answered.push(`${message}!`);
    if (message === 'Long') return longAnswer;
    if (message === 'Cancel') return { action: 'cancel' };
    return message === 'No' ? { action: 'decline' } : accepted(message);
  };
  const user = () => ({
    capabilities: { elicitation: {}, roots: {} },
    handlers: { 'elicitation/create': thinkAndAnswer, 'roots/list': async () => roots },
  });
  const spy = () => ({
    layer: (given: any, next: any) => {
      if (calls.length > 0 || /^(tools.call|prompts.get)$/.test(given.method)) seen.push(given);
      return next(given);
    },
  });
  const connection = new McpConnection(
    'demo',
    { type: 'script' },
    {
      transports: { script: transport },
      extensions: [...inBothEras({ pause }), spy, user],
      onWire: (direction: string, message: unknown) => {
        log.push([direction, brief(message)]);
        see(direction, brief(message));
      },
    },
  );
  await connection.connect();
  await connection.initialize();
  const call = async (options = {}) =>
    (await connection.callTool('add', { a: 2, b: 40 }, options)).text;
  /** A second look at what has come over this wire. */
  const expectToo: Bench['expect'] = (...given) => {
    for (const line of log) see(...line);
    return expect(...given);
  };
  return { calls, seen, asked, answered, pauses, call, connection, expectToo };
}

async function judgeOneQuestion(bench: Bench): Promise<void> {
  const [key, state] = [anyWord('key'), anyWord('s1')];
  const asking = await script(bench, wants({ [key]: ask('Sure') }, state));
  const { calls, pauses, call, expectToo } = asking;
  await bench.expect(
    'a question in a result is answered, and the call goes on',
    '42',
    call(),
    /^42$/,
  );
  await expectToo('by sending it again', 'two calls', calls.length, is(2));
  const [first, again] = calls;
  const isOther = (came: unknown) => came !== undefined && came !== first.id;
  await expectToo('under an id of its own', 'an id that is not the first one', again.id, isOther);
  const same = { name: 'add', arguments: { a: 2, b: 40 } };
  await expectToo(
    'with the same tool and arguments',
    JSON.stringify(same),
    { name: again.name, arguments: again.arguments },
    isSame(same),
  );
  const answers = { [key]: accepted('Sure') };
  await expectToo(
    'and the answer under its key, without an envelope',
    JSON.stringify(answers),
    again.inputResponses,
    isSame(answers),
  );
  await expectToo('and the state of the server', state, again.requestState, is(state));
  await expectToo(
    'at once: the user has waited enough',
    'no pause',
    pauses.map(({ ms }) => `a pause of ${ms} ms`).join(', ') || 'no pause',
    is('no pause'),
  );
  await expectToo(
    'the first call had neither',
    'no inputResponses, no requestState',
    fields(first),
    hasNo('inputResponses', 'requestState'),
  );
}

async function judgeState(bench: Bench): Promise<void> {
  const json = ' { "step": 1.0, "a":"\\u00e9 e\u0301" }\n';
  const text = await script(bench, wants({ q: ask('Yes') }, json));
  await quietly(text.call());
  await bench.expect(
    'a state that looks like JSON goes back as it came, to the letter',
    json,
    text.calls[1]?.requestState,
    is(json),
  );
  const empty = await script(bench, wants({ q: ask('Yes') }, ''));
  await quietly(empty.call());
  await bench.expect('an empty state is a state', '""', empty.calls[1]?.requestState, is(''));
  for (const [name, state] of [
    ['null', null],
    ['a number', 0],
    ['false', false],
    ['an object', { a: [1] }],
  ]) {
    const any = await script(bench, wants({ q: ask('Yes') }, state));
    await quietly(any.call());
    await bench.expect(
      `a state goes back as it came, whatever it is: ${name}`,
      JSON.stringify(state),
      any.calls[1]?.requestState,
      isSame(state),
    );
  }
  const none = await script(bench, wants({ q: ask('Yes') }));
  await quietly(none.call());
  await bench.expect(
    'no state is none',
    'no requestState',
    fields(none.calls[1]),
    hasNo('requestState'),
  );
}

async function judgeManyQuestions(bench: Bench): Promise<void> {
  const two = await script(bench, wants({ first: ask('Yes'), second: ask('No') }));
  await quietly(two.call());
  const answers = { first: accepted('Yes'), second: { action: 'decline' } };
  await bench.expect(
    'every question is answered, and a no is an answer, too',
    JSON.stringify(answers),
    two.calls[1]?.inputResponses,
    isSame(answers),
  );
  await two.expectToo(
    'one question after the other: there is one user',
    'Yes? Yes! No? No!',
    two.answered.join(' '),
    is('Yes? Yes! No? No!'),
  );
}

async function judgeSomeQuestions(bench: Bench): Promise<void> {
  const keys = Array.from({ length: randomInt(4, 9) }, () => anyWord('q'));
  const many = await script(bench, wants(Object.fromEntries(keys.map((key) => [key, ask(key)]))));
  await quietly(many.call());
  const wanted = Object.fromEntries(keys.map((key) => [key, accepted(key)]));
  await bench.expect(
    `however many questions there are: ${keys.length}`,
    JSON.stringify(wanted),
    many.calls[1]?.inputResponses,
    isSame(wanted),
  );
  await many.expectToo(
    'each is asked under its key: this.answerTo(key, …)',
    keys.join(', '),
    many.asked.map(({ id }) => id).join(', '),
    is(keys.join(', ')),
  );
  const controller = new AbortController();
  const open = await script(bench, wants({ q: ask('Forever') }));
  const call = quietly(open.call({ signal: controller.signal }));
  while (open.asked.length === 0 && open.calls.length < 2)
    await new Promise((after) => setTimeout(after, 1));
  controller.abort();
  await bench.expect(
    'a call that is cancelled takes its open question along',
    'the signal of the question aborts: this.answerTo(…, call)',
    open.asked[0]?.signal?.aborted,
    is(true),
  );
  await call;
}

async function judgeAnswers(bench: Bench): Promise<void> {
  const questions = { a: ask('No'), b: ask('Cancel'), c: ask('Yes') };
  const noFirst = await script(bench, wants(questions));
  await quietly(noFirst.call());
  const answers = { a: { action: 'decline' }, b: { action: 'cancel' }, c: accepted('Yes') };
  await bench.expect(
    'after a no the other questions are asked all the same',
    JSON.stringify(answers),
    noFirst.calls[1]?.inputResponses,
    isSame(answers),
  );
  const long = await script(bench, wants({ a: ask('Long'), b: { method: 'roots/list' } }));
  await quietly(long.call());
  const asTheyAre = { a: longAnswer, b: roots };
  await bench.expect(
    'an answer goes out as it is, with all of its fields',
    JSON.stringify(asTheyAre),
    long.calls[1]?.inputResponses,
    isSame(asTheyAre),
  );
}

async function judgeRest(bench: Bench): Promise<void> {
  const results = [wants({ q: ask('Yes') }, 's'), wants(undefined, 's')];
  const { calls, seen, connection, expectToo } = await script(bench, ...results);
  const params = { name: 'add', arguments: {}, _meta: { 'example.org/trace': 't1' }, more: [1] };
  const options = {
    signal: new AbortController().signal,
    timeoutMs: 54_321,
    onProgress: () => {},
    headers: { 'x-own': '1' },
  };
  await quietly(connection.request('prompts/get', params, options));
  for (const [n, when] of [
    [1, 'with answers'],
    [2, 'after a pause'],
  ] as const) {
    await expectToo(
      `the call that goes out again ${when} has the same method`,
      '"prompts/get"',
      calls[n]?.method,
      is('prompts/get'),
    );
    const meta = calls[n]?._meta ?? {};
    await expectToo(
      `and the _meta of the caller, ${when}`,
      '"example.org/trace": "t1" in it',
      `its keys are ${fields(meta)}`,
      () => meta['example.org/trace'] === 't1',
    );
    await expectToo(
      `and what else is in its params, ${when}`,
      '"more": [1]',
      calls[n]?.more,
      isSame([1]),
    );
    const came = seen[n]?.options ?? {};
    for (const name of ['signal', 'timeoutMs', 'onProgress'] as const)
      await expectToo(
        `and its options, ${when}: ${name}`,
        `the ${name} of the call`,
        `the options ${fields(came)}`,
        () => came[name] === options[name],
      );
    await expectToo(
      `and its options, ${when}: headers`,
      '"x-own" among them',
      came.headers,
      (headers) => headers?.['x-own'] === '1',
    );
  }
}

async function judgeKeys(bench: Bench): Promise<void> {
  const odd = JSON.parse('{ "__proto__": null, "a b": null }');
  for (const key of Object.keys(odd)) Object.defineProperty(odd, key, { value: ask(key) });
  const any = await script(bench, wants(odd));
  await quietly(any.call());
  await bench.expect(
    'a key is any text of the server, also "__proto__"',
    '__proto__, a b',
    fields(any.calls[1]?.inputResponses),
    is('__proto__, a b'),
  );
}

async function judgePatience(bench: Bench): Promise<void> {
  const { calls, pauses, call, expectToo } = await script(bench, wants(undefined, 'busy'));
  await bench.expect('a result without questions asks for patience', '42', call(), /^42$/);
  await expectToo(
    'so there is a pause before the call is sent again',
    'one this.pause(…), of at least 50 ms',
    pauses.map(({ ms }) => ms),
    (came) => came.length === 1 && came[0]! >= 50,
  );
  await expectToo(
    'and its end is awaited',
    'no second call before the end of the pause',
    pauses[0]?.callsAtEnd,
    is(1),
  );
  await expectToo(
    'with the state, and without answers',
    'requestState "busy", and no inputResponses',
    { requestState: calls[1]?.requestState, inputResponses: calls[1]?.inputResponses },
    ({ requestState, inputResponses }) => requestState === 'busy' && inputResponses === undefined,
  );
  const neither = await script(bench, wants({}));
  await quietly(neither.call());
  await bench.expect(
    'no question in the list is no question',
    'no inputResponses',
    fields(neither.calls[1]),
    hasNo('inputResponses'),
  );
}

async function judgeRounds(bench: Bench): Promise<void> {
  const results = [wants({ a: ask('One') }, 'r1'), wants({ b: ask('Two') }), wants()];
  const rounds = await script(bench, ...results);
  await quietly(rounds.call());
  const answers = { b: accepted('Two') };
  await bench.expect(
    'in a second round only its own answers go out',
    JSON.stringify(answers),
    rounds.calls[2]?.inputResponses,
    isSame(answers),
  );
  await rounds.expectToo(
    'and not the state of the first',
    'no requestState',
    fields(rounds.calls[2]),
    hasNo('requestState'),
  );
  await rounds.expectToo(
    'in a third round, without questions, nothing of the first two goes out',
    'no inputResponses, no requestState',
    fields(rounds.calls[3]),
    hasNo('inputResponses', 'requestState'),
  );
}

async function judgePauses(bench: Bench): Promise<void> {
  const nothing = await script(bench, wants(null as never));
  await bench.expect('null in the place of the list is no question', '42', nothing.call(), /^42$/);

  for (const odd of ['no list', 7, true]) {
    const strange = await script(bench, wants(odd as never));
    await quietly(strange.call());
    await bench.expect(
      `what is not a list is no question: ${JSON.stringify(odd)}`,
      'a pause, and a call without inputResponses',
      `${strange.pauses.length} pause(s), then ${fields(strange.calls[1])}`,
      (came) => came.startsWith('1 pause') && hasNo('inputResponses')(came),
    );
  }

  const busy = await script(bench, ...Array(9).fill(wants()));
  await quietly(busy.call());
  const given = busy.pauses.map(({ ms }) => ms);
  await bench.expect(
    'the more rounds, the longer the pause',
    'each longer than the one before, or MAX_PAUSE_MS',
    given.join(', '),
    () => given.every((ms, n) => n === 0 || ms > given[n - 1]! || ms === 5000),
  );
  await bench.expect(
    'but never more than MAX_PAUSE_MS',
    'nine pauses, of at most 5000 ms',
    given.join(', '),
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
    'this.pause(…) got the signal of the call',
    stopped.pauses[0]?.signal?.aborted,
    is(true),
  );
  await call;
}

async function judgeLimits(bench: Bench): Promise<void> {
  const asking = { q: { method: 'sampling/createMessage', params: {} } };
  const uninvited = await script(bench, wants(asking));
  await bench.expect(
    'what we have not offered is not answered',
    'a McpError of kind "protocol"',
    uninvited.call(),
    (came) => came?.kind === 'protocol',
  );
  await uninvited.expectToo(
    'and the call is not sent again',
    'one call',
    uninvited.calls.length,
    is(1),
  );

  const nothing = await script(bench, wants({ q: null }));
  await bench.expect(
    'a question that is null asks for what we have not offered',
    'a McpError of kind "protocol"',
    nothing.call(),
    (came) => came?.kind === 'protocol',
  );

  const { calls, connection } = await script(bench, wants({ q: ask('Yes') }, 'mine'));
  const params = Object.freeze({ name: 'add', arguments: Object.freeze({ a: 2 }) });
  await quietly(connection.request('tools/call', params));
  await quietly(connection.request('tools/call', params));
  await bench.expect(
    'the next call knows nothing of this one',
    'no inputResponses, no requestState',
    fields(calls[2]),
    hasNo('inputResponses', 'requestState'),
  );
}

/** What belongs to one call is kept nowhere but in that call. */
async function judgeSideBySide(bench: Bench): Promise<void> {
  const [one, two] = [anyWord('one'), anyWord('two')];
  const results = [wants({ [one]: ask('One') }, one), wants({ [two]: ask('Two') }, two)];
  const { calls, connection } = await script(bench, ...results);
  const both = ['first', 'second'].map((which) => connection.callTool('add', { which }));
  await quietly(Promise.all(both));
  const again = calls.slice(2).map((call) => ({
    which: call.arguments.which,
    answers: fields(call.inputResponses),
    state: call.requestState,
  }));
  const wanted = [
    { which: 'first', answers: one, state: one },
    { which: 'second', answers: two, state: two },
  ];
  await bench.expect(
    "two calls at once do not get each other's answers",
    JSON.stringify(wanted),
    again.sort((a, b) => (a.which < b.which ? -1 : 1)),
    isSame(wanted),
  );
}
