// Judges exercise 10: does every request of a server get exactly one answer, or none if the server has cancelled it?

import type { Judge } from '../book.ts';

export const judge: Judge = async ({ load, see, expect }) => {
  /** A handler that goes on until it is told to stop; then it returns, or throws. */
  const stoppable = (method: string) => (_: unknown, { signal }: { signal: AbortSignal }) =>
    new Promise((done, fail) => {
      const stop = () => {
        stopped.push(method);
        if (method === 'stop/politely') done({});
        else fail(new Error('stopped'));
      };
      signal.addEventListener('abort', stop);
    });
  const { McpConnection, RpcError } = await load('mcp.ts');
  const warnings: string[] = [];
  const stopped: unknown[] = [];
  const handlers = {
    'roots/list': async ({ of }: { of: string }) => ({ roots: [{ uri: `file:///home/${of}` }] }),
    'who/am-i': (_: unknown, { id }: { id: unknown }) => ({ id }),
    'say/nothing': () => undefined,
    'refuse/me': () => Promise.reject(new RpcError(-1, 'The user said no.', { by: 'Ada' })),
    'break/me': () => { throw new Error('my mistake'); },
    'take/long': () => new Promise(() => {}),
    'notifications/message': () => 'to a notification this is no answer',
    ...Object.fromEntries(['stop/politely', 'stop/angrily'].map((method) => [method, stoppable(method)])),
  };
  const onWarning = (warning: string) => void warnings.push(warning);
  const start = async (...habit: string[]) => {
    const config = { command: 'node', args: ['fixtures/habits.mjs', ...habit] };
    const connection = new McpConnection('curious', config, { onWire: see, onWarning, extensions: [() => ({ handlers })], handshakeTimeoutMs: 2000 });
    await connection.connect();
    await connection.initialize();
    return connection;
  };
  const early = start('asks-first');
  await expect('ping is answered, also with id 0 and before the handshake', 'three pongs, → {"jsonrpc":"2.0","id":0,"result":{}} and so on, and then the handshake', early, (came) => came instanceof McpConnection);

  const curious = await start();
  const ask = async (method: string, params = {}) => JSON.parse((await curious.callTool('ask', { id: method, method, params })).text);
  await expect('a request without a handler is refused', '→ "error":{"code":-32601,"message":"Method not found: sampling/createMessage"}', ask('sampling/createMessage'), (came) =>
    came?.error?.code === -32601 && /sampling/.test(came.error.message) && came.result === undefined);
  await expect('what a handler returns is the result', '→ "result":{"roots":[{"uri":"file:///home/ada"}]}', ask('roots/list', { of: 'ada' }), (came) => came?.result?.roots?.[0]?.uri === 'file:///home/ada');
  await expect('a handler knows the id of the request', '→ "result":{"id":"who/am-i"}', ask('who/am-i'), (came) => came?.result?.id === 'who/am-i');
  await expect('a handler that returns nothing has answered, too', '→ "result":{}, because an answer needs a result', ask('say/nothing'), (came) => came?.result && Object.keys(came.result).length === 0);
  await expect('a RpcError that a handler throws is the refusal', '→ "error":{"code":-1,"message":"The user said no.","data":{"by":"Ada"}}', ask('refuse/me'), ({ error } = {} as any) =>
    error?.code === -1 && error.message === 'The user said no.' && error.data?.by === 'Ada');
  await expect('any other error of a handler is an internal one', '→ "error":{"code":-32603,"message":"my mistake"}', ask('break/me'), ({ error } = {} as any) => error?.code === -32603 && error.message === 'my mistake');
  void ask('take/long').catch(() => {}); // nobody ever answers this one
  await expect('a slow handler keeps nobody waiting', '→ the answer to the ping, at once', ask('ping'), (came) => came?.result !== undefined);

  const tell = (method: string, params: object) => curious.callTool('tell', { method, params });
  const answered = async () => {
    const received = JSON.parse((await curious.callTool('log')).text) as { id?: unknown; method?: string }[];
    return received.filter(({ method }) => method === undefined).map(({ id }) => id);
  };
  const cancel = async () => {
    for (const method of ['stop/politely', 'stop/angrily']) {
      void ask(method).catch(() => {}); // the server gets no answer, and so do we
      await tell('notifications/cancelled', { requestId: method });
    }
    return stopped;
  };
  await expect('when the server cancels its request, the handler is told', 'the signals of stop/politely and stop/angrily abort', cancel(), (came) => came.length === 2);
  const asked = ['sampling/createMessage', 'roots/list', 'who/am-i', 'say/nothing', 'refuse/me', 'break/me', 'ping'];
  const count = () => tell('notifications/message', {}).then(answered);
  await expect('each request has had one answer; those that were cancelled, and notifications, have none', `answers to ${asked.join(', ')}, and no others`, count(), (came) => `${came}` === `${asked}`);

  // A server that does not read: what is sent to it leaves only when `read` is called.
  let events: any;
  let sent = 0;
  let read = () => {};
  const reading = new Promise<void>((done) => (read = done));
  const pipe = { start: async (its: unknown) => void (events = its), send: () => (sent++, reading), close: async () => {} };
  const deaf = new McpConnection('deaf', { type: 'pipe' }, { transports: { pipe: () => pipe }, onWarning });
  await deaf.connect();
  const flood = async () => {
    for (let n = 0; n < 5000; n++) {
      events.message({ jsonrpc: '2.0', id: n, method: n % 2 === 0 ? 'ping' : 'no/such' });
      if (n % 100 === 0) await new Promise((done) => setImmediate(done)); // so that answers can be sent meanwhile
    }
    await new Promise((done) => setTimeout(done, 50));
    return `${sent} answers wait, of 5000 requests`;
  };
  await expect('what waits for a server that does not read is bounded', `at most 1000 answers (MAX_UNANSWERED) wait, and a warning`, flood(), () => sent > 0 && sent <= 1001 && warnings.length === 1);
  const calm = async () => {
    read();
    await new Promise((done) => setTimeout(done, 50));
    sent = 0;
    events.message({ jsonrpc: '2.0', id: 'calm', method: 'ping' });
    await new Promise((done) => setTimeout(done, 50));
    return `${sent} answers`;
  };
  await expect('when it has read them, it is answered again', '1 answer, to the ping', calm(), () => sent === 1);
};
