// Judges exercise 29.2: what is a yes? A server with one tool that asks, and clients that answer in many ways.

import type { Judge } from '../book.ts';

const META = 'io.modelcontextprotocol/';
const SAYS_YES = { action: 'accept', content: { allow: true } };
const LONG_MS = 60_000; // a busy machine may need its time
const MAX = 100_000; // characters of a message

type Asked = { message: string; requestedSchema: any };
type Visit = {
  lines?: string[];
  answerMs?: number;
  answer?: (id: unknown, asked: Asked) => object | undefined; // a message; nothing: it is silent
};

/** In small steps: if the machine stops us for seconds, the others still have their turns. */
async function patience(seconds: number): Promise<void> {
  for (let steps = 0; steps < seconds * 20; steps++) {
    await new Promise((done) => setTimeout(done, 50));
  }
}

export const judge: Judge = async ({ load, see, expect }) => {
  const { linkedPair } = await load('chapters/25-other-pipes/in-process.ts');
  const { ClientsPerson } = await load('chapters/29-a-server/clients-person.ts');
  const { overPipe } = await load('chapters/29-a-server/pipe.ts');
  const { McpServer } = await load('chapters/29-a-server/server.ts');

  /** A client on a pipe of its own, and what its messages were answered with. */
  const client = async (answerMs = LONG_MS) => {
    const ended: string[] = []; // how each call has come out of its question
    const run = async ({ lines }: any, call: any) => {
      const person = new ClientsPerson(call, answerMs);
      const question = { title: 'May it?', lines, prompt: 'Allow it?', choices: [] };
      const chosen = await person.choose(question).catch((error: Error) => {
        ended.push('it throws');
        throw error;
      });
      ended.push('it goes on');
      return JSON.stringify({ key: chosen?.key, refusal: person.refusal });
    };
    const server = new McpServer({
      name: 'asks',
      version: '1',
      tools: [{ name: 'ask', description: 'Asks.', run }],
    });
    const [ours, theirs] = linkedPair();
    const heard: any[] = [];
    let wake = () => {};
    const message = (each: any) => {
      see('in', each);
      heard.push(each);
      wake();
    };
    await ours.start({ message, closed: () => {} });
    overPipe(server)(theirs);
    const say = (each: object) => {
      see('out', each);
      return ours.send({ jsonrpc: '2.0', ...each });
    };
    const hear = async (fits: (each: any) => boolean) => {
      while (!heard.some(fits)) await new Promise<void>((done) => (wake = done));
      return heard.find(fits);
    };
    return { say, hear, heard, ended };
  };

  const isQuestion = ({ method }: any) => method === 'elicitation/create';
  const tool = (lines: string[]) => ({ name: 'ask', arguments: { lines } });

  /** One call with a handshake: what the tool returned, and the questions on the way. */
  const visit = async ({ lines = ['rm -r build'], answerMs, answer }: Visit) => {
    const { say, hear, heard } = await client(answerMs);
    const capabilities = { elicitation: {} };
    await say({
      id: 0,
      method: 'initialize',
      params: { protocolVersion: '2025-11-25', capabilities, clientInfo: {} },
    });
    await say({ id: 1, method: 'tools/call', params: tool(lines) });
    const first = await hear((each) => isQuestion(each) || each.id === 1);
    const reply = isQuestion(first) ? answer?.(first.id, first.params) : undefined;
    if (reply) await say(reply);
    const { result, error } = await hear(({ id, method }) => id === 1 && !method);
    const questions: Asked[] = heard.filter(isQuestion).map(({ params }) => params);
    const [{ text: said }] = result?.content ?? [{ text: '' }];
    const came = error || result.isError ? { thrown: error ?? said } : JSON.parse(said);
    return { questions, ...came };
  };
  const answered = (result: object) => visit({ answer: (id) => ({ id, result }) });

  const yes = (id: unknown) => ({ id, result: SAYS_YES });
  const questionsTo = async (lines: string[]) => (await visit({ lines, answer: yes })).questions;

  // ── What is asked ──

  const several = ['a', 'b', 'rm -r build', ''].slice(0, 2 + Math.floor(Math.random() * 3));
  const wanted = [...several, 'Allow it?'].join('\n');
  await expect(
    'the person sees the lines, and then the prompt',
    wanted,
    questionsTo(several),
    ([one]) => one?.message === wanted,
  );
  await expect(
    'and is asked once',
    'one question',
    questionsTo(several),
    (all) => all.length === 1,
  );
  await expect(
    'in a form whose box is not ticked',
    'ALLOW, as it is',
    questionsTo(several),
    ([one]) =>
      one?.requestedSchema?.properties?.allow?.default === false &&
      one.requestedSchema.properties.allow.type === 'boolean' &&
      one.requestedSchema.required?.includes('allow'),
  );

  // ── What is a yes ──

  await expect(
    'a ticked box in a form that was sent off is a yes',
    "{ key: 'y' }",
    answered(SAYS_YES),
    ({ key, refusal }) => key === 'y' && refusal === undefined,
  );
  const noes: [string, object][] = [
    ['a form with the box as it was', { action: 'accept', content: { allow: false } }],
    ['a form without the box', { action: 'accept', content: {} }],
    ['a form that is not there', { action: 'accept' }],
    ['the word "true"', { action: 'accept', content: { allow: 'true' } }],
    ['the number 1', { action: 'accept', content: { allow: 1 } }],
    ['a ticked box in a form that was declined', { action: 'decline', content: { allow: true } }],
    ['a ticked box in a form that was closed', { action: 'cancel', content: { allow: true } }],
    ['a form that was closed', { action: 'cancel' }],
    ['an action of no name', { action: 'ACCEPT', content: { allow: true } }],
  ];
  for (const [what, result] of noes)
    await expect(`${what} is a no`, "{ key: 'n' }", answered(result), ({ key }) => key === 'n');
  await expect(
    'a no is an answer, and no refusal of ours',
    'no refusal',
    answered({ action: 'decline' }),
    ({ refusal }) => refusal === undefined,
  );

  // ── There is no answer ──

  const ms = 30 + Math.floor(Math.random() * 50);
  const seconds = `within ${ms / 1000} s`;
  const silent = await Promise.race([
    visit({ answerMs: ms }),
    patience(2.5).then(() => 'the question still waits'),
  ]);
  await expect(
    'a client that does not answer has its time, and no more',
    'an answer of choose',
    silent,
    (came) => came !== 'the question still waits',
  );
  const isRefused = (words: string) => (came: any) =>
    came.key === undefined &&
    `${came.refusal}`.startsWith('Not allowed: ') &&
    came.refusal.includes(words);
  await expect(
    'then it is refused, and the model hears that it was late',
    `no key; Not allowed: … ${seconds}`,
    silent,
    isRefused(seconds),
  );
  const failures: [string, object][] = [
    ['one that answers with an error', { error: { code: -1, message: 'no window' } }],
    ['one that speaks of time', { error: { code: -1, message: 'TimeoutError: timed out' } }],
    ['one whose answer is none', { result: { allow: true } }],
  ];
  for (const [what, answer] of failures) {
    const failing = visit({ answer: (id) => ({ id, ...answer }) });
    const counts = 'in a way that counts';
    const refused = `${what} is refused, and not told that it was late`;
    await expect(refused, `no key; Not allowed: … ${counts}`, failing, isRefused(counts));
  }

  // ── What is too long ──

  const tooLong = [
    ['x'.repeat(MAX)],
    ['x'.repeat(MAX - 5)],
    ['x'.repeat(MAX / 2), 'x'.repeat(MAX / 2)],
  ];
  for (const lines of tooLong) {
    const long = visit({ lines, answer: yes });
    await expect(
      'what is too long to be read is not asked, and not cut',
      'no question',
      long,
      ({ key, questions }) => key !== 'y' && questions.length === 0,
    );
    const told = 'and the model hears that it was too long';
    await expect(told, 'no key; Not allowed: … too long', long, isRefused('too long'));
  }
  for (const letter of ['x', 'é']) {
    const lines = [letter.repeat(MAX - '\nAllow it?'.length)];
    const longest = visit({ lines, answer: yes });
    const short = `what is just short enough is asked (${letter.repeat(3)}…)`;
    await expect(short, "{ key: 'y' }", longest, ({ key }) => key === 'y');
  }

  // Without a handshake: the call ends with the question, and comes again.
  const stateless = await client();
  let id = 10;
  const call = async (more: object = {}) => {
    const _meta = {
      [`${META}protocolVersion`]: '2026-07-28',
      [`${META}clientCapabilities`]: { elicitation: {} },
    };
    const mine = ++id;
    await stateless.say({
      id: mine,
      method: 'tools/call',
      params: { ...tool(['rm -r build']), ...more, _meta },
    });
    const { result, error } = await stateless.hear((each) => each.id === mine && !each.method);
    return result ?? { error };
  };
  await expect(
    'without a handshake the call ends with the question',
    'resultType: input_required',
    call(),
    ({ resultType }) => resultType === 'input_required',
  );
  const inputResponses = { answer: SAYS_YES };
  await expect(
    'a yes that was never asked for does not count: it is asked',
    'resultType: input_required',
    call({ inputResponses }),
    ({ resultType }) => resultType === 'input_required',
  );
  const { requestState } = await call();
  await expect(
    'a yes beside our state counts',
    "{ key: 'y' }",
    call({ inputResponses, requestState }),
    ({ content }) => JSON.parse(content?.[0]?.text ?? '{}').key === 'y',
  );

  // A client that cancels the call while it is asked.
  const fickle = await client();
  await fickle.say({
    id: 0,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: { elicitation: {} }, clientInfo: {} },
  });
  await fickle.say({ id: 1, method: 'tools/call', params: tool(['rm -r build']) });
  await fickle.hear(isQuestion);
  await fickle.say({ method: 'notifications/cancelled', params: { requestId: 1 } });
  const over = async () => {
    while (fickle.ended.length === 0) await new Promise(setImmediate);
    return fickle.ended.join();
  };
  await expect(
    'a call that is cancelled while it is asked goes no further',
    'it throws',
    over(),
    (how) => how === 'it throws',
  );
};
