// Judges exercise 29.2: what is a yes? A server with one tool that asks, and clients that answer in many ways.

import type { Judge } from '../book.ts';

const META = 'io.modelcontextprotocol/';
const SAYS_YES = { action: 'accept', content: { allow: true } };

type Asked = { message: string; requestedSchema: any };
type Visit = {
  lines?: string[];
  answerMs?: number;
  answer?: (id: unknown, asked: Asked) => object | undefined; // a message; nothing: it is silent
};

export const judge: Judge = async ({ load, see, expect }) => {
  const { linkedPair } = await load('chapters/25-other-pipes/in-process.ts');
  const { ClientsPerson } = await load('chapters/29-a-server/clients-person.ts');
  const { overPipe } = await load('chapters/29-a-server/pipe.ts');
  const { McpServer } = await load('chapters/29-a-server/server.ts');
  let wentOn = 0; // calls that have an answer, or know that there is none

  /** A client on a pipe of its own, and what its messages were answered with. */
  const client = async (answerMs = 1000) => {
    const run = async ({ lines }: any, call: any) => {
      const person = new ClientsPerson(call, answerMs);
      const question = { title: 'May it?', lines, prompt: 'Allow it?', choices: [] };
      const chosen = await person.choose(question);
      wentOn++;
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
    return { say, hear, heard };
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
    const said = isQuestion(first) ? answer?.(first.id, first.params) : undefined;
    if (said) await say(said);
    const { result, error } = await hear(({ id, method }) => id === 1 && !method);
    const questions: Asked[] = heard.filter(isQuestion).map(({ params }) => params);
    return { questions, ...(error ? { error } : JSON.parse(result.content[0].text)) };
  };
  const answered = (result: object) => visit({ answer: (id) => ({ id, result }) });

  const asked = async () =>
    (await visit({ lines: ['a', 'b'], answer: (id) => ({ id, result: SAYS_YES }) })).questions;
  await expect(
    'the person sees the lines, and then the prompt',
    'a, b, Allow it?',
    asked(),
    ([one, ...more]) => more.length === 0 && one?.message === 'a\nb\nAllow it?',
  );
  await expect(
    'in a form whose box is not ticked',
    'default: false',
    asked(),
    ([one]) => one?.requestedSchema?.properties?.allow?.default === false,
  );
  await expect(
    'a ticked box in a form that was sent off is a yes',
    "{ key: 'y' }",
    answered(SAYS_YES),
    ({ key }) => key === 'y',
  );
  const noes: [string, object][] = [
    ['a form with the box as it was', { action: 'accept', content: { allow: false } }],
    ['a form without the box', { action: 'accept', content: {} }],
    ['a form that is not there', { action: 'accept' }],
    ['the word "true"', { action: 'accept', content: { allow: 'true' } }],
    ['the number 1', { action: 'accept', content: { allow: 1 } }],
    ['a ticked box in a form that was declined', { action: 'decline', content: { allow: true } }],
    ['a form that was closed', { action: 'cancel' }],
    ['an action of no name', { action: 'ACCEPT', content: { allow: true } }],
  ];
  for (const [what, result] of noes)
    await expect(`${what} is a no`, "{ key: 'n' }", answered(result), ({ key }) => key === 'n');

  const silent = visit({ answerMs: 50 });
  await expect(
    'a client that does not answer is refused in time, and the model hears why',
    'within 0.05 s',
    silent,
    ({ key, refusal }) => key === undefined && /^Not allowed: .*within 0\.05 s/.test(refusal),
  );
  const failing = visit({ answer: (id) => ({ id, error: { code: -1, message: 'no window' } }) });
  await expect(
    'one that answers with an error is refused, too, and not told that it was late',
    'in a way that counts',
    failing,
    ({ key, refusal }) => key === undefined && /^Not allowed: .*in a way that counts/.test(refusal),
  );
  const long = visit({ lines: ['x'.repeat(100_000)], answer: (id) => ({ id, result: SAYS_YES }) });
  await expect(
    'what is too long to be read is not asked, and not cut',
    'no question; Not allowed: … too long',
    long,
    ({ key, refusal, questions }) =>
      key === undefined && questions.length === 0 && /^Not allowed: .*too long/.test(refusal),
  );
  const longest = visit({
    lines: ['x'.repeat(100_000 - '\nAllow it?'.length)],
    answer: (id) => ({ id, result: SAYS_YES }),
  });
  await expect(
    'what is just short enough is asked',
    "{ key: 'y' }",
    longest,
    ({ key }) => key === 'y',
  );

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
  const before = wentOn;
  await fickle.say({ method: 'notifications/cancelled', params: { requestId: 1 } });
  await fickle.say({ id: 2, method: 'ping' });
  await fickle.hear((each) => each.id === 2);
  await new Promise((done) => setTimeout(done, 20));
  await expect(
    'a call that is cancelled while it is asked goes no further',
    'choose throws',
    wentOn - before,
    (more) => more === 0,
  );
};
