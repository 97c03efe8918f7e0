// Judges exercise 20: does the answer arrive, also if its stream breaks off? "On the wire" are messages, and what the
// server gets and gives.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text as textOf } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import type { Judge } from '../book.ts';

const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion';
const answer =
  'data: {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"42"}]}}\n\n';
const news = (n: number) =>
  `data: {"jsonrpc":"2.0","method":"notifications/message","params":{"data":"news ${n}"}}\n\n`;

export const judge: Judge = async ({ load, see, expect }) => {
  const { McpConnection } = await load('mcp.ts');
  const { httpTransports } = await load('chapters/20-streamable-http/http.ts');

  /** A server whose answers are scripted: one for the POST, then one for each GET. The last is given again and again.
   *  0 breaks the connection; a list is a status, and a body that does not end. */
  const script = async (...replies: (string | number | [number])[]) => {
    const asked: { verb: string; lastEventId: unknown; at: number }[] = [];
    let hungUp = 0; // replies that we closed before their end
    const server = createServer(async (request: IncomingMessage, response: ServerResponse) => {
      const body = await textOf(request);
      const {
        method: verb = '',
        headers: { 'last-event-id': lastEventId },
      } = request;
      if (body.includes('notifications/')) return void response.writeHead(202).end();
      const reply = replies[Math.min(asked.length, replies.length - 1)]!;
      asked.push({ verb, lastEventId, at: Date.now() });
      see('out', `${verb}${lastEventId ? `, last-event-id: ${lastEventId}` : ''}`);
      see('in', reply === 0 ? '(the connection breaks)' : reply);
      response.on('close', () => (hungUp += response.writableEnded ? 0 : 1));
      if (reply === 0) request.socket.destroy();
      else if (Array.isArray(reply))
        response.writeHead(reply[0], { 'content-type': 'text/event-stream' }).write(': wait\n\n');
      else if (typeof reply === 'number') response.writeHead(reply).end();
      else response.writeHead(200, { 'content-type': 'text/event-stream' }).end(reply);
    });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
    const heard: unknown[] = [];
    const handlers = {
      'notifications/message': ({ data }: { data: unknown }) => void heard.push(data),
    };
    const connection = new McpConnection(
      'demo',
      { type: 'http', url },
      { transports: httpTransports, onWire: see, extensions: [() => ({ handlers })] },
    );
    await connection.connect();
    const call = async (params = {}, options = {}) =>
      (await connection.callTool('add', { a: 2, b: 40, ...params }, options)).text;
    const closed = async (replies: number) => {
      for (let n = 0; n < 20 && hungUp < replies; n++) await pause(50);
      return hungUp;
    };
    return { asked, heard, call, connection, closed };
  };
  const verbs = ({ asked }: { asked: { verb: string }[] }) =>
    asked.map(({ verb }) => verb).join(', ');
  const isLost = (came: any) => came?.kind === 'lost';

  const whole = await script(
    `id: e-1\nretry: 100\n${news(1)}id: e-2\n${answer}`,
    ': nothing new\n\n',
  );
  await expect('an answer among other events of its stream arrives', '42', whole.call(), /^42$/);
  await pause(300);
  await expect(
    'with that it is over: nothing more is asked for',
    'one POST',
    verbs(whole),
    /^POST$/,
  );

  const cut = await script('id: e-1\nretry: 400\ndata:\n\n', answer);
  await expect('a stream that ends before the answer is taken up', '42', cut.call(), /^42$/);
  await expect(
    'by a GET that names the last event',
    'POST, then GET with last-event-id e-1',
    cut.asked.map(({ verb, lastEventId }) => `${verb} ${lastEventId}`).join(', '),
    /^POST undefined, GET e-1$/,
  );
  await expect(
    'after the pause that the server wants: retry: 400',
    '400 ms, and not a second of ours',
    cut.asked[1]!.at - cut.asked[0]!.at,
    (ms) => ms >= 390 && ms < 980,
  );

  const without = await script(news(1), answer);
  await expect(
    'a stream without ids is not taken up: there is nothing to go on from',
    'a McpError of kind "lost"',
    without.call(),
    isLost,
  );
  await expect('and nothing is asked', 'one POST', verbs(without), /^POST$/);

  const modern = await script('id: e-1\nretry: 100\ndata:\n\n', answer);
  const later = modern.connection.request('tools/call', {
    name: 'add',
    _meta: { [VERSION_KEY]: '2026-07-28' },
  });
  await expect('since 2026 nothing is taken up', 'a McpError of kind "lost"', later, isLost);
  await expect('and nothing is asked', 'one POST', verbs(modern), /^POST$/);

  const stuck = await script('id: e-1\nretry: 100\ndata:\n\n', ': nothing new\n\n');
  await expect(
    'a server that brings nothing new is asked a few times, and no more',
    'a McpError of kind "lost", soon',
    stuck.call(),
    isLost,
  );
  await expect(
    'that is',
    'between 2 and 10 times',
    stuck.asked.length - 1,
    (times) => times >= 2 && times <= 10,
  );

  const pieces = Array.from({ length: 9 }, (_, n) => `id: e-${n}\nretry: 100\n${news(n)}`);
  const long = await script(...pieces, answer);
  await expect(
    'a server that has news each time may break off nine times',
    '42',
    long.call(),
    /^42$/,
  );
  await expect(
    'each GET names the newest event',
    'e-0 to e-8, in their order',
    long.asked
      .slice(1)
      .map(({ lastEventId }) => lastEventId)
      .join(' '),
    /^e-0 e-1 e-2 e-3 e-4 e-5 e-6 e-7 e-8$/,
  );
  await expect(
    'and all news is heard, once',
    'news 0 to news 8',
    long.heard.join(),
    (came) => came === pieces.map((_, n) => `news ${n}`).join(),
  );

  const away = await script('id: e-1\nretry: 100\ndata:\n\n', 0, 0, answer);
  await expect('a server that is away for a moment is asked again', '42', away.call(), /^42$/);

  const refused = await script('id: e-1\nretry: 100\ndata:\n\n', 404, answer);
  await expect(
    'a server that refuses the GET is not',
    'a McpError of kind "lost"',
    refused.call(),
    isLost,
  );
  await expect(
    'it was asked once, and no more',
    'one POST and one GET',
    verbs(refused),
    /^POST, GET$/,
  );

  const rude = await script('id: e-1\nretry: 100\ndata:\n\n', [404]);
  await expect(
    'a refusal whose body does not end',
    'a McpError of kind "lost"',
    rude.call(),
    isLost,
  );
  await expect(
    'is not left open: reply.body.destroy()',
    'one reply that we closed',
    rude.closed(1),
    (replies) => replies === 1,
  );

  const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
  const stopped = await script('id: e-1\nretry: 60000\ndata:\n\n', answer);
  const before = timers();
  await expect(
    'a call can be cancelled in the pause',
    'a McpError of kind "aborted"',
    stopped.call({}, { signal: AbortSignal.timeout(200) }),
    (came) => came?.kind === 'aborted',
  );
  await pause(100);
  await expect(
    'then nothing waits for that pause to end: it has the signal of the request',
    'no timer of a minute',
    timers() - before,
    (left) => left <= 0,
  );
  await expect('and nothing is asked', 'one POST', verbs(stopped), /^POST$/);

  const late = await script('id: e-1\nretry: 100\ndata:\n\n', [200]);
  await expect(
    'a call can be cancelled while a GET is open',
    'a McpError of kind "aborted"',
    late.call({}, { signal: AbortSignal.timeout(600) }),
    (came) => came?.kind === 'aborted',
  );
  await expect(
    'then the GET is closed: it has the signal of the request',
    'one reply that we closed',
    late.closed(1),
    (replies) => replies === 1,
  );
};
