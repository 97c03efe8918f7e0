// Judges exercise 15: does a chat go on until text, and come to an end whatever happens? "On the
// wire" are its turns.

import { syncBuiltinESMExports } from 'node:module';
import timers, { setTimeout as wait } from 'node:timers/promises';
import type { Judge } from '../book.ts';

export const judge: Judge = async ({ load, see, expect }) => {
  const { Agent, Scripted } = await load('agent.ts');
  setInterval(() => {}, 1000); // so that a chat which never ends is seen not to

  type Run = (args: any, context: { signal: AbortSignal }) => Promise<unknown>;
  const row = (name: string, run: Run) => {
    const definition = { name, description: '', inputSchema: { type: 'object' } };
    return { definition, readOnly: true, run };
  };
  const say = (text: string) => ({ blocks: [{ type: 'text', text }], isError: false });
  const tools = [
    row('add', async ({ a, b }) => say(`${a + b}`)),
    row('sleep', async (_, { signal }) => say(`${await wait(60_000, 'awake', { signal })}`)),
    row('erase', async () => say('Everything is gone.')),
  ];
  const start = (script: unknown[], more: object = {}) => {
    const model = new Scripted(script);
    const events: any[] = [];
    const agent = new Agent({
      model,
      tools,
      gate: async () => ({ allowed: true }),
      resultsFolder: 'results',
      record: (turn: any) => see(turn.role === 'assistant' ? 'in' : 'out', turn),
      emit: (event: unknown) => events.push(event),
      ...more,
    });
    return { agent, model, events };
  };
  const add = (a = 2, b = 40) => ({ name: 'add', args: { a, b } });
  const sleep = { name: 'sleep', args: {} };
  const roles = (turns: any[] = []) => turns.map(({ role }) => role).join();
  /** The ids of the calls, and of the results that follow them: "call_1 call_2 call_1 call_2". */
  const pairs = (turns: any[] = []) => {
    const rows = turns.flatMap(({ calls, results }) => calls ?? results ?? []);
    return rows.map(({ id }) => id).join(' ');
  };
  const ended = (ending: string, text?: string) => (came: any) =>
    came?.ending === ending && (text === undefined || came.text === text);
  const lot = (below: number) => Math.floor(Math.random() * below);
  /** An answer that does not come, and ends when it is told to. */
  const silence = ({ signal }: { signal: AbortSignal }) => wait(60_000, 'Never said.', { signal });
  const dones = (events: any[]) => events.filter(({ type }) => type === 'done');

  // Until text

  const greeting = start(['Hello.']);
  await expect(
    'an answer without calls ends the chat',
    '{ ending: "done", text: "Hello." }',
    greeting.agent.chat('hi'),
    ended('done', 'Hello.'),
  );
  await expect(
    'the prompt was the first turn, the answer the second',
    'turns of: user,assistant',
    roles(greeting.agent.turns),
    /^user,assistant$/,
  );
  await expect(
    'the end is told',
    'the last event is { type: "done", ending: "done", text: "Hello.", turns: 1 }',
    greeting.events.at(-1),
    (came) => came?.type === 'done' && came.turns === 1 && ended('done', 'Hello.')(came),
  );
  await expect(
    'the end is told once',
    'one event "done"',
    dones(greeting.events).length,
    (came) => came === 1,
  );

  const unknown = { name: 'subtract', args: {} };
  const sum = start([
    { text: 'I add.', calls: [add(), unknown] },
    { calls: [add(1, 1)] },
    'It is 42.',
  ]);
  await expect(
    'with calls it goes on, as often as need be, until there is text',
    '{ ending: "done", text: "It is 42." }',
    sum.agent.chat('add'),
    ended('done', 'It is 42.'),
  );
  const seen = sum.model.requests[1]?.turns;
  await expect(
    'the model sees the results, in one turn behind its own',
    'its second request has the turns: user, assistant, tools, with 42 in the last',
    seen,
    () => roles(seen) === 'user,assistant,tools' && seen[2].results[0].blocks[0].text === '42',
  );
  await expect(
    'every call has one result',
    'ids: call_1 call_2 call_1 call_2 call_3 call_3',
    pairs(sum.agent.turns),
    /^call_1 call_2 call_1 call_2 call_3 call_3$/,
  );

  for (let runs = 0; runs < 5; runs++) {
    const words = ['tools', 'done', 'refusal', 'odd', 'pause'];
    const script = Array.from({ length: lot(12) }, () => {
      const calls = Array.from({ length: 1 + lot(3) }, () => add(lot(9), lot(9)));
      return { text: `${lot(1e9)}`, calls, stop: words[lot(words.length)] };
    });
    const [text, many] = [`${lot(1e9)}`, script.flatMap(({ calls }) => calls).length];
    const { agent, model, events } = start([...script, { text, stop: 'tools' }, 'One too many.']);
    await expect(
      'however many answers have calls, whatever their stop says: the first without calls ends it',
      `ending "done", text "${text}", ${script.length + 1} requests, ${many} results, told as well`,
      agent.chat('go').then((end: any) => {
        const results = agent.turns.flatMap(({ results = [] }: any) => results).length;
        const { type, ...told } = events.at(-1) ?? {};
        return { ...end, requests: model.requests.length, results, type, told };
      }),
      (came) =>
        ended('done', text)(came) &&
        came.requests === script.length + 1 &&
        came.results === many &&
        came.type === 'done' &&
        ended('done', text)(came.told) &&
        came.told.turns === script.length + 1,
    );
  }

  // Before the first request

  const left = start(['Hello.']);
  left.agent.turns.push(
    { role: 'user', text: 'add' },
    { role: 'assistant', text: '', calls: [{ id: 'lost', ...add() }] },
  );
  await left.agent.chat('hi');
  await expect(
    'begin is called: it closes a call that an earlier chat left open',
    'in its request, a call "lost" and behind it a result "lost": lost lost',
    pairs(left.model.requests[0]?.turns),
    /^lost lost$/,
  );

  // The calls count, not the word

  for (const stop of ['done', 'pause', 'refusal', 'odd']) {
    const liar = start([{ calls: [add()], stop }, 'It is 42.']);
    await expect(
      `an answer with calls is not the end, although its stop says "${stop}"`,
      '{ ending: "done", text: "It is 42." } after two requests',
      liar.agent.chat('add'),
      (came) => ended('done', 'It is 42.')(came) && liar.model.requests.length === 2,
    );
    await expect(
      `and its calls are run, although its stop says "${stop}"`,
      'a call and its result: call_1 call_1',
      pairs(liar.agent.turns),
      /^call_1 call_1$/,
    );
  }
  await expect(
    'an answer without calls is the end, although its stop says "tools"',
    '{ ending: "done", text: "That was all." }, and no further request',
    start([{ text: 'That was all.', stop: 'tools' }, 'One too many.']).agent.chat('hi'),
    ended('done', 'That was all.'),
  );
  const half = start([{ calls: [{ name: 'erase', args: {} }], stop: 'length' }, 'Sorry.']);
  await expect(
    'after calls that were cut off (stop "length") the model is queried again',
    '{ ending: "done", text: "Sorry." }',
    half.agent.chat('erase a.txt'),
    ended('done', 'Sorry.'),
  );
  await expect(
    'runCalls is told the stop: what was cut off is not run',
    'a result that says that the answer was cut off',
    half.agent.turns[2]?.results?.[0]?.blocks[0].text,
    /cut off/,
  );

  // Pauses

  const slow = start([{ text: 'I thi', stop: 'pause' }, 'There.']);
  await expect(
    'a model that pauses is queried again',
    '{ ending: "done", text: "There." }',
    slow.agent.chat('think'),
    ended('done', 'There.'),
  );
  const pause = { text: 'Hm.', stop: 'pause' };
  const pausing = start(Array.from({ length: 20 }, () => pause));
  await expect(
    'a model that pauses without end is queried again five times (MAX_PAUSES), and no more',
    '{ ending: "done", text: "Hm." } after six requests',
    pausing.agent
      .chat('think')
      .then((end: any) => ({ ...end, requests: pausing.model.requests.length })),
    (came) => ended('done', 'Hm.')(came) && came.requests === 6,
  );
  await expect(
    'an answer that pauses counts as an answer',
    '{ type: "done", turns: 6 }',
    pausing.events.at(-1),
    (came) => came?.type === 'done' && came.turns === 6,
  );
  const between = [
    pause,
    pause,
    pause,
    { calls: [add()] },
    ...Array.from({ length: 20 }, () => pause),
  ];
  const mixed = start(between);
  await expect(
    'all pauses of a chat are counted together, also if there are calls between them',
    '{ ending: "done" } after seven requests: three pauses, a call, three pauses',
    mixed.agent
      .chat('think')
      .then((end: any) => ({ ...end, requests: mixed.model.requests.length })),
    (came) => ended('done')(came) && came.requests === 7,
  );
  const callsToo = { calls: [add()], stop: 'pause' };
  const busyPauses = start([...Array.from({ length: 6 }, () => callsToo), pause, 'There.']);
  await expect(
    'an answer with calls is no pause, and does not count as one, although its stop says "pause"',
    '{ ending: "done", text: "There." } after six answers with calls, one pause, one text',
    busyPauses.agent.chat('think'),
    ended('done', 'There.'),
  );
  await expect(
    'the pauses of an earlier chat do not count',
    '{ ending: "done", text: "There." } for a chat with one pause after a chat with six',
    (async () => {
      const again = start([...Array.from({ length: 7 }, () => pause), 'There.']);
      await again.agent.chat('think');
      return again.agent.chat('think');
    })(),
    ended('done', 'There.'),
  );

  // Answers that are none, or not whole

  const noKey = Object.assign(new Error('no such key'), { kind: 'auth' });
  const broken = start([
    () => {
      throw noKey;
    },
    'Hello again.',
  ]);
  await expect(
    'a model that fails is an ending, and no exception',
    '{ ending: "error" }',
    broken.agent.chat('hi'),
    ended('error'),
  );
  await expect(
    'what went wrong is told, once',
    'an event { type: "error", kind: "auth", message: "no such key" }',
    broken.events.filter(({ type }) => type === 'error'),
    (came) => came.length === 1 && came[0].kind === 'auth' && came[0].message === 'no such key',
  );
  await expect(
    'after an error the end is told as well, as the last event',
    '{ type: "done", ending: "error", text: "", turns: 1 }',
    broken.events.at(-1),
    (came) => came?.type === 'done' && ended('error', '')(came) && came.turns === 1,
  );
  await expect(
    'after an error the end is told once',
    'one event "done"',
    dones(broken.events).length,
    (came) => came === 1,
  );
  await expect(
    'the next chat works',
    '{ ending: "done", text: "Hello again." }',
    broken.agent.chat('hi'),
    ended('done', 'Hello again.'),
  );
  const words = start([
    { text: 'I add.', calls: [add()] },
    () => {
      throw noKey;
    },
  ]);
  await expect(
    'after an error the text is that of the last answer, and not of the one before it',
    '{ ending: "error", text: "" }, returned and told',
    words.agent.chat('hi').then((end: any) => ({ ...end, told: words.events.at(-1)?.text })),
    (came) => ended('error', '')(came) && came.told === '',
  );
  const midway = async (more: object, then: (signal: AbortSignal) => Promise<unknown>) => {
    const stop = new AbortController();
    let heard = '';
    const model = {
      name: 'halting',
      query: async function* ({ signal }: { signal: AbortSignal }) {
        yield { type: 'text', text: 'Once upon' };
        setTimeout(() => stop.abort(), 50);
        await then(signal);
      },
    };
    let told: any;
    const emit = (event: any) => {
      if (event.type === 'text') heard += event.text;
      told = event;
    };
    const stopped = 'maxMs' in more ? undefined : stop.signal; // time shall end that one
    const { ending, text } = await start([], { model, emit, ...more }).agent.chat('hi', stopped);
    return {
      ending,
      text,
      told: { type: told?.type, ending: told?.ending, text: told?.text },
      heard,
    };
  };
  const isTold = (ending: string) => (came: any) =>
    ended(ending, came?.heard)(came) &&
    came.told.type === 'done' &&
    ended(ending, came.heard)(came.told);
  const sleeping = (signal: AbortSignal) => wait(60_000, undefined, { signal });
  for (const [ending, when, more, then] of [
    [
      'error',
      'fails',
      {},
      async () => {
        throw noKey;
      },
    ],
    ['aborted', 'is stopped', {}, sleeping],
    ['time', 'runs out of time', { maxMs: 200 }, sleeping],
  ] as const)
    await expect(
      `what a model said before it ${when} in mid-sentence is returned, and told`,
      `ending "${ending}" and text "Once upon", both in what is returned and in the event "done"`,
      midway(more, then),
      isTold(ending),
    );
  const long = start([{ text: 'Once upon a', stop: 'length' }]);
  await expect(
    'an answer that was cut off is told from a whole one',
    '{ ending: "length", text: "Once upon a" }',
    long.agent.chat('a story'),
    ended('length', 'Once upon a'),
  );
  await expect(
    'and so is a refusal',
    '{ ending: "refusal", text: "I will not." }',
    start([{ text: 'I will not.', stop: 'refusal' }]).agent.chat('a bomb'),
    ended('refusal', 'I will not.'),
  );

  // Limits

  const endless = async () => {
    await wait(1);
    return { text: 'More.', calls: [add()] };
  };
  const busy = start(
    Array.from({ length: 500 }, () => endless),
    { maxTurns: 3 },
  );
  await expect(
    'a model that never comes to an end is stopped',
    '{ ending: "turns", text: "More." } after three answers (maxTurns: 3)',
    busy.agent.chat('go').then((end: any) => ({ ...end, requests: busy.model.requests.length })),
    (came) => ended('turns', 'More.')(came) && came.requests === 3,
  );
  await expect(
    'the number of its answers is told',
    '{ type: "done", ending: "turns", turns: 3 }',
    busy.events.at(-1),
    (came) => came?.type === 'done' && ended('turns')(came) && came.turns === 3,
  );
  await expect(
    'the last calls have their results, too',
    'three turns of results',
    roles(busy.agent.turns),
    /^user(,assistant,tools){3}$/,
  );
  await expect(
    'the limit is for each prompt',
    '{ ending: "turns" } after three more answers, six in all',
    busy.agent.chat('go').then((end: any) => ({ ...end, requests: busy.model.requests.length })),
    (came) => ended('turns')(came) && came.requests === 6,
  );
  const justInTime = start([{ calls: [add()] }, 'It is 42.'], { maxTurns: 2 });
  await expect(
    'an answer that ends the chat may be the last one allowed',
    '{ ending: "done" }, with maxTurns: 2 and two answers',
    justInTime.agent.chat('add'),
    ended('done', 'It is 42.'),
  );
  const unlimited = start(Array.from({ length: 80 }, () => endless));
  await expect(
    'without maxTurns the limit is 50 answers',
    '{ ending: "turns" } after 50 requests',
    unlimited.agent
      .chat('go')
      .then((end: any) => ({ ...end, requests: unlimited.model.requests.length })),
    (came) => ended('turns')(came) && came.requests === 50,
  );

  const maxTurns = 1 + lot(5);
  const resting = start(
    Array.from({ length: 20 }, () => pause),
    { maxTurns },
  );
  await expect(
    'a pause is an answer, and so it counts towards maxTurns',
    `{ ending: "turns" } after ${maxTurns} pauses (maxTurns: ${maxTurns})`,
    resting.agent
      .chat('go')
      .then((end: any) => ({ ...end, requests: resting.model.requests.length })),
    (came) => ended('turns')(came) && came.requests === maxTurns,
  );
  const none = start(['Never said.'], { maxTurns: 0 });
  await expect(
    'at most maxTurns answers, also if that is none',
    '{ ending: "turns" } and no request (maxTurns: 0)',
    none.agent.chat('hi').then((end: any) => ({ ...end, requests: none.model.requests.length })),
    (came) => ended('turns', '')(came) && came.requests === 0,
  );

  const stop = new AbortController();
  const stopped = start([{ calls: [sleep, sleep] }, 'Never said.', 'Still here.']);
  setTimeout(() => stop.abort(), 100);
  await expect(
    'a chat can be stopped in the midst of its calls',
    '{ ending: "aborted" }',
    stopped.agent.chat('sleep', stop.signal),
    ended('aborted'),
  );
  await expect(
    'and even then every call has its result',
    'ids: call_1 call_2 call_1 call_2',
    pairs(stopped.agent.turns),
    /^call_1 call_2 call_1 call_2$/,
  );
  await expect(
    'after that the model is not queried any more',
    'one request',
    stopped.model.requests.length,
    (came) => came === 1,
  );
  await expect(
    'a chat that was stopped tells its end as well, as the last event',
    '{ type: "done", ending: "aborted", turns: 1 }, once, and no event "error"',
    stopped.events.filter(({ type }) => type === 'done' || type === 'error'),
    (came) => came.length === 1 && ended('aborted')(came[0]) && came[0].turns === 1,
  );
  await expect(
    'a chat can be stopped while the model is silent',
    '{ ending: "aborted" }',
    start([silence]).agent.chat('hi', AbortSignal.timeout(100)),
    ended('aborted'),
  );
  const before = start(['Never said.', 'Here I am.']);
  await expect(
    'a chat that is stopped before it begins ends like any other, and queries nobody',
    '{ ending: "aborted" }, and no request',
    before.agent
      .chat('hi', AbortSignal.abort())
      .then((end: any) => ({ ...end, requests: before.model.requests.length })),
    (came) => ended('aborted', '')(came) && came.requests === 0,
  );
  await expect(
    'it too tells its end, with no answers',
    '{ type: "done", ending: "aborted", text: "", turns: 0 }',
    before.events.at(-1),
    (came) => came?.type === 'done' && ended('aborted', '')(came) && came.turns === 0,
  );
  const late = start([{ calls: [sleep] }], { maxMs: 100 });
  await expect(
    'it ends when its time is over',
    '{ ending: "time" } (maxMs: 100)',
    late.agent.chat('sleep'),
    ended('time'),
  );
  await expect(
    'that end is told, too',
    '{ type: "done", ending: "time", turns: 1 }, and no event "error"',
    late.events.filter(({ type }) => type === 'done' || type === 'error'),
    (came) => came.length === 1 && ended('time')(came[0]) && came[0].turns === 1,
  );
  await expect(
    'time also runs for a caller who brought a signal, and for a model that is silent',
    '{ ending: "time" } (maxMs: 100)',
    start([silence], { maxMs: 100 }).agent.chat('hi', new AbortController().signal),
    ended('time'),
  );
  await expect(
    'and for its calls: what runCalls is handed obeys the clock and the caller',
    '{ ending: "time" } for a tool that sleeps (maxMs: 100, and a signal of the caller)',
    start([{ calls: [sleep] }], { maxMs: 100 }).agent.chat('sleep', new AbortController().signal),
    ended('time'),
  );

  // Which clock does a chat set?

  const real = { timeout: AbortSignal.timeout, timer: setTimeout, wait: timers.setTimeout };
  let set: unknown[] = [];
  AbortSignal.timeout = (ms) => (set.push(ms), real.timeout.call(AbortSignal, ms));
  const timer = (run: any, ms?: number, ...more: any[]) => (
    set.push(ms), real.timer(run, ms, ...more)
  );
  globalThis.setTimeout = Object.assign(timer, real.timer) as typeof setTimeout;
  timers.setTimeout = ((ms: number, ...more: any[]) => (
    set.push(ms), real.wait(ms, ...more)
  )) as any;
  syncBuiltinESMExports();
  for (const [what, wanted, more] of [
    ['without maxMs the limit is half an hour', 30 * 60_000, {}],
    ['a short maxMs is taken as it is', 456, { maxMs: 456 }],
    ['and so is a long one', 3_600_000, { maxMs: 3_600_000 }],
  ] as const) {
    set = [];
    await start(['Hello.'], more).agent.chat('hi');
    const clocks = [...set];
    await expect(
      what,
      `a clock of ${wanted} ms (AbortSignal.timeout)`,
      `clocks of these milliseconds: ${clocks.join(', ') || 'none'}`,
      () => clocks.includes(wanted),
    );
  }
  [AbortSignal.timeout, globalThis.setTimeout, timers.setTimeout] = [
    real.timeout,
    real.timer,
    real.wait,
  ];
  syncBuiltinESMExports();

  const unhurried = async ({ signal }: { signal: AbortSignal }) => {
    await wait(60, undefined, { signal });
    return { text: 'More.', calls: [add()] };
  };
  const slowly = start(
    Array.from({ length: 15 }, () => unhurried),
    { maxMs: 300, maxTurns: 15 },
  );
  await expect(
    'the clock runs for the whole chat, and does not start again with each answer',
    '{ ending: "time" } (maxMs: 300, and up to 15 answers, each of 60 ms)',
    slowly.agent.chat('go'),
    ended('time'),
  );
  await expect(
    'no time at all is a limit, too',
    '{ ending: "time" } (maxMs: 0)',
    start([silence], { maxMs: 0 }).agent.chat('hi'),
    ended('time'),
  );
};
