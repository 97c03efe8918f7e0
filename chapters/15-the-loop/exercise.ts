// Judges exercise 15: does a chat go on until text, and come to an end whatever happens? "On the
// wire" are its turns.

import { setTimeout as wait } from 'node:timers/promises';
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

  const unknown = { name: 'subtract', args: {} };
  const sum = start([{ calls: [add(), unknown] }, { calls: [add(1, 1)] }, 'It is 42.']);
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

  // Limits

  const endless = async () => {
    await wait(1);
    return { calls: [add()] };
  };
  const busy = start(Array.from({ length: 500 }, () => endless), { maxTurns: 3 });
  await expect(
    'a model that never comes to an end is stopped',
    '{ ending: "turns" } after three answers (maxTurns: 3)',
    busy.agent.chat('go'),
    (came) => ended('turns')(came) && busy.model.requests.length === 3,
  );
  await expect(
    'the number of its answers is told',
    '{ type: "done", ending: "turns", turns: 3 }',
    busy.events.at(-1),
    (came) => ended('turns')(came) && came.turns === 3,
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
  const late = start([{ calls: [sleep] }], { maxMs: 100 });
  await expect(
    'it ends when its time is over',
    '{ ending: "time" } (maxMs: 100)',
    late.agent.chat('sleep'),
    ended('time'),
  );

  // Answers that are none, or not whole

  const noKey = Object.assign(new Error('no such key'), { kind: 'auth' });
  const broken = start([() => { throw noKey; }, 'Hello again.']);
  await expect(
    'a model that fails is an ending, and no exception',
    '{ ending: "error" }',
    broken.agent.chat('hi'),
    ended('error'),
  );
  await expect(
    'what went wrong is told',
    'an event { type: "error", kind: "auth", message: "no such key" }',
    broken.events.find(({ type }) => type === 'error'),
    (came) => came?.kind === 'auth' && came.message === 'no such key',
  );
  await expect(
    'the next chat works',
    '{ ending: "done", text: "Hello again." }',
    broken.agent.chat('hi'),
    ended('done', 'Hello again.'),
  );
  const long = start([{ text: 'Once upon a', stop: 'length' }]);
  await expect(
    'an answer that was cut off is told from a whole one',
    '{ ending: "length", text: "Once upon a" }',
    long.agent.chat('a story'),
    ended('length', 'Once upon a'),
  );
  const slow = start([{ stop: 'pause' }, 'There.']);
  await expect(
    'a model that pauses is queried again',
    '{ ending: "done", text: "There." }',
    slow.agent.chat('think'),
    ended('done', 'There.'),
  );

  // Before the first request

  const left = start(['Hello.']);
  left.agent.turns.push(
    { role: 'user', text: 'add' },
    { role: 'assistant', text: '', calls: [{ id: 'lost', ...add() }] },
  );
  await left.agent.chat('hi');
  await expect(
    'a call that an earlier chat left open is closed first',
    'the model sees a result with the id "lost"',
    pairs(left.model.requests[0]?.turns),
    /^lost lost$/,
  );
  const order: string[] = [];
  const mcp = {
    loadAndConnect: async () => void order.push('servers'),
    status: () => [],
    getToolDefinitions: () => [],
  };
  const greet = () => {
    order.push('model');
    return 'Hello.';
  };
  await start([greet], { mcp }).agent.chat('hi');
  await expect(
    'servers are connected before the model is queried',
    'servers, then model',
    order.join(', then '),
    /^servers, then model$/,
  );
  const never = start(['Hello.'], { mcp: { ...mcp, loadAndConnect: () => new Promise(() => {}) } });
  await expect(
    'a chat can be stopped while a server is still starting',
    '{ ending: "aborted" }',
    never.agent.chat('hi', AbortSignal.timeout(100)),
    ended('aborted'),
  );
};
