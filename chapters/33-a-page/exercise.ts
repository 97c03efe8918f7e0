// Judges exercise 33: a worker that we play, post by post, since some orders cannot be forced; and
// at the end a real one, a thread of Node's or a Web Worker, wherever this runs.

import type { Json, Message, Transport } from '../../mcp.ts';
import type { Judge } from '../book.ts';
import type { WorkerLike } from './worker-transport.ts';

const turn = () => new Promise((done) => setTimeout(done, 0));
const short = () => Math.random().toString(36).slice(2, 8);

/** A worker whose posts and errors we decide. What it throws at us, a real one would have to
 *  bear. */
class Played implements WorkerLike {
  told: unknown[] = [];
  isTerminated = false;
  private listeners: { type: string; listener: (event: any) => void }[] = [];

  postMessage(data: unknown) {
    this.told.push(data);
  }
  addEventListener(type: string, listener: (event: any) => void) {
    this.listeners.push({ type, listener });
  }
  terminate() {
    this.isTerminated = true;
  }
  /** What the listeners threw, if they did. */
  happen(type: 'message' | 'error', event: object): unknown {
    try {
      for (const each of this.listeners) if (each.type === type) each.listener(event);
    } catch (error) {
      return error;
    }
    return 'nothing thrown';
  }
  post(data: unknown) {
    return this.happen('message', { data });
  }
}

const line = (message: unknown) => `${JSON.stringify(message)}\n`;

export const judge: Judge = async ({ load, see, expect }) => {
  const { McpError, Connection } = await load('mcp.ts');
  const { WorkerTransport, workerTransport } = await load('chapters/33-a-page/worker-transport.ts');
  const { serverScript } = await load('chapters/33-a-page/worker-process.ts');
  const { startThread } = await load('chapters/33-a-page/more/thread.mjs');

  /** A transport with a played worker, and all that it tells. */
  const make = ({ hasStderr = true, maxBytes = 10 ** 6 } = {}) => {
    const workers: Played[] = [];
    const begin = () => {
      workers.push(new Played());
      return workers.at(-1)!;
    };
    const transport: Transport = new WorkerTransport('demo', begin, maxBytes);
    const got: any[] = [];
    const logs: unknown[] = [];
    const ends: Error[] = [];
    const late: unknown[] = [];
    const stderr = (text: unknown) => void (ends.length > 0 ? late : logs).push(text);
    const start = () =>
      transport.start({
        message: (message) => {
          see('in', message);
          (ends.length > 0 ? late : got).push(message);
        },
        dropped: (why) => see('in', `(dropped: ${why.message})`),
        closed: (why) => {
          see('in', `(closed: ${why.message})`);
          ends.push(why);
        },
        ...(hasStderr ? { stderr: stderr as (text: string) => void } : {}),
      });
    return { transport, start, workers, got, logs, ends, late };
  };
  const started = async (options = {}) => {
    const made = make(options);
    await Promise.race([made.start(), turn()]);
    return { ...made, worker: made.workers[0] ?? new Played() };
  };
  const kindOf = (error: unknown) =>
    error instanceof McpError ? (error as { kind?: string }).kind : `${error}`;
  const once = (ends: Error[]) => ends.length === 1 && kindOf(ends[0]) === 'closed';
  const post = (worker: Played, data: unknown) => {
    see('in', data);
    return worker.post(data);
  };

  // Rule 1: the beginning.
  const first = make();
  await expect(
    'start() resolves, though the worker has said nothing yet',
    'it resolves',
    Promise.race([first.start().then(() => 'it resolves'), turn().then(turn)]),
    /it resolves/,
  );
  await expect('one worker was begun', '1', first.workers.length, (count: number) => count === 1);
  const ping: Message = { jsonrpc: '2.0', id: 1, method: 'ping' };
  await expect(
    'what we send is posted to that worker',
    `{ in: ${JSON.stringify(line(ping))} }`,
    first.transport.send(ping).then(() => first.workers[0]!.told),
    (told) => JSON.stringify(told) === JSON.stringify([{ in: line(ping) }]),
  );
  await expect(
    'close() ends that worker',
    'it is terminated',
    first.transport.close().then(() => first.workers[0]!.isTerminated),
    (isSo) => isSo === true,
  );
  const again = await first.start().catch((error: unknown) => error);
  await expect(
    'a transport that has ended does not start again',
    'the error that it ended with',
    again,
    (error) => error === first.ends[0],
  );
  await expect(
    'and no other worker was begun for it',
    '1',
    first.workers.length,
    (count: number) => count === 1,
  );

  // Rule 2: what is posted.
  const words = [short(), `${short()}€`, short()];
  const cut = await started();
  const text = words.map((word) => line({ word })).join('');
  const at = [3, text.length - 4];
  for (const piece of [text.slice(0, at[0]), text.slice(at[0], at[1]), text.slice(at[1])])
    post(cut.worker, { out: piece });
  await expect(
    'three messages in three posts that are cut elsewhere',
    words.join(', '),
    cut.got.map((message) => message.word),
    (came: string[]) => came.join() === words.join(),
  );
  const log = `${short()}\n`;
  const loud = await started();
  post(loud.worker, { err: log });
  await expect(
    'what it writes to stderr is told as that, and is no message',
    JSON.stringify([log]),
    loud.got.length === 0 ? loud.logs : [...loud.logs, 'and a message'],
    (came: unknown[]) => came.length === 1 && came[0] === log,
  );
  const deaf = await started({ hasStderr: false });
  const thrown = post(deaf.worker, { err: log });
  await expect(
    'where stderr is not wanted, it is not missed',
    'nothing thrown',
    thrown,
    /^nothing thrown$/,
  );
  const odd = await started();
  const oddPosts = [
    null,
    undefined,
    'text',
    5,
    [],
    {},
    { out: 5 },
    { err: { text: 1 } },
    { out: null },
  ];
  const problems = oddPosts.map((each) => post(odd.worker, each));
  await expect(
    'posts of other shapes change nothing',
    'nothing thrown, nothing told',
    [...problems.filter((each) => each !== 'nothing thrown'), ...odd.logs, ...odd.got, ...odd.ends],
    (told: unknown[]) => told.length === 0,
  );
  post(odd.worker, { out: line({ word: 'after' }) });
  await expect(
    'and what comes after them is read',
    'after',
    odd.got.map((message) => message.word),
    (came: string[]) => came.join() === 'after',
  );

  // Rule 3: the ends.
  for (const code of [0, 7, null]) {
    const left = await started();
    post(left.worker, { exit: code });
    await expect(
      `it exits with ${code}: that is reported once`,
      'closed(), with a McpError of kind "closed"',
      left.ends,
      once,
    );
    await expect(
      `and the code is in the words: ${code}`,
      `… ${code}`,
      left.ends[0]?.message,
      (message: string) => message.split(' ').includes(`${code}`),
    );
    for (const each of [{ out: line({ word: 'late' }) }, { err: 'late' }, { exit: 1 }])
      post(left.worker, each);
    await expect(
      `what comes after the end is not passed on (${code})`,
      'nothing',
      left.late,
      (late: unknown[]) => late.length === 0 && left.ends.length === 1,
    );
  }
  const broken = await started();
  const mistake = `${short()} is not defined`;
  see('in', `(error: ${mistake})`);
  broken.worker.happen('error', { message: mistake });
  await expect(
    'it breaks down: that is reported once',
    'closed(), with a McpError of kind "closed"',
    broken.ends,
    once,
  );
  await expect(
    'and what the browser says of it is in the words',
    mistake,
    broken.ends[0]?.message,
    (message: string) => message.includes(mistake),
  );
  post(broken.worker, { out: line({ word: 'late' }) });
  await expect(
    'what comes after that is not passed on',
    'nothing',
    broken.late,
    (late: unknown[]) => late.length === 0 && broken.ends.length === 1,
  );

  // A whole conversation.
  const source = `process.stdin.on('data', (text) => {
    const { id, method } = JSON.parse(text);
    const info = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 'real' } };
    const result = method === 'initialize' ? info : { content: [{ type: 'text', text: '42' }] };
    if (id === undefined) return;
    const answer = JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n';
    process.stdout.write(answer.slice(0, 9));
    process.stdout.write(answer.slice(9));
  });`;
  const worker = workerTransport(() => startThread(serverScript(source)));
  const config: Json = { type: 'worker' };
  const onWire = see;
  const connection = new Connection('real', config, { transports: { worker }, onWire });
  const talk = async () => {
    await connection.connect();
    await connection.initialize();
    const { text: sum } = await connection.callTool('add', { a: 2, b: 40 });
    await connection.close();
    return sum;
  };
  await expect('a call, with a server in a real worker', '42', talk(), /^42$/);
};
