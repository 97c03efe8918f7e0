// Judges exercise 25: a server at a path that answers, cuts its lines, breaks off, and talks too
// much.

import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TransportEvents } from '../../mcp.ts';
import type { Judge } from '../book.ts';

const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));

function answer(id: number, text: string): Buffer {
  const result = { content: [{ type: 'text', text }] };
  return Buffer.from(`${JSON.stringify({ jsonrpc: '2.0', id, result })}\n`);
}

async function inPieces(socket: Socket, bytes: Buffer): Promise<void> {
  for (let at = 0; at < bytes.length; at += 7) {
    socket.write(bytes.subarray(at, at + 7));
    await pause(2);
  }
}

export const judge: Judge = async ({ load, see, expect }) => {
  const { McpConnection } = await load('mcp.ts');
  const { UnixSocketTransport } = await load('chapters/25-other-pipes/unix-socket.ts');
  const place = mkdtempSync(join(tmpdir(), 'pipes-'));
  process.on('exit', () => rmSync(place, { recursive: true, force: true }));

  const ends: string[] = []; // what transports say of their end
  const unix = (...given: unknown[]) => {
    const transport = new UnixSocketTransport(...given);
    const start = (events: TransportEvents) => {
      return transport.start({
        ...events,
        closed: (why: Error) => {
          ends.push(why.message);
          events.closed(why);
        },
      });
    };
    return {
      start,
      send: (message: unknown) => transport.send(message),
      close: () => transport.close(),
    };
  };
  const transports = { unix };

  let count = 0;
  /** A server with a habit, and a connection to it. The habit gets every request, as it comes. */
  const reach = (habit: (socket: Socket, request: any) => unknown, maxLineBytes = 1000) => {
    const path = join(place, `${++count}.sock`);
    const seen = { isOver: false };
    const server = createServer((socket) => {
      socket.on('error', () => {});
      socket.on('close', () => (seen.isOver = true));
      socket.on('data', (chunk) => {
        const lines = chunk.toString().trim().split('\n');
        for (const line of lines) habit(socket, JSON.parse(line));
      });
    });
    const options = { transports, maxLineBytes, onWire: see };
    const connection = new McpConnection('demo', { type: 'unix', path }, options);
    const connect = async () => {
      await new Promise<void>((done) => server.listen(path, done));
      await connection.connect();
      return 'connected';
    };
    const call = async (name = 'add', args: object = { a: 2, b: 40 }) => {
      const result = await connection.request('tools/call', { name, arguments: args });
      return result.content[0].text;
    };
    return { connection, isConnected: connect(), call, seen };
  };
  const isClosed = (came: any) => came?.kind === 'closed';
  const isTrue = (came: unknown) => came === true;

  const sum = reach((socket, { id, params }) => {
    socket.write(answer(id, `${params.arguments.a + params.arguments.b}`));
  });
  await expect(
    'start() resolves when the server is there',
    'connect() resolves',
    sum.isConnected,
    (came) => came === 'connected',
  );
  await expect('a message goes out, and its answer comes back', '42', sum.call(), /^42$/);
  const leaving = async () => {
    await sum.connection.close();
    await pause(50);
    return sum.seen.isOver;
  };
  await expect(
    'after close() the server sees that we are gone',
    'the end of the connection',
    leaving(),
    isTrue,
  );

  ends.length = 0;
  const config = { type: 'unix', path: join(place, 'nothing.sock') };
  const lonely = new McpConnection('demo', config, { transports, onWire: see });
  await expect(
    'where no server listens, start() rejects',
    'a McpError of kind "unreachable", with the reason (ENOENT) in its words',
    lonely.connect(),
    (came) => came?.kind === 'unreachable' && /ENOENT/.test(came.message),
  );

  await pause(50);
  await expect(
    'and that is all: closed() is for what was open',
    'no closed()',
    ends,
    (came) => came.length === 0,
  );

  const cutter = reach((socket, { id }) => inPieces(socket, answer(id, '€'.repeat(9))));
  await cutter.isConnected;
  await expect(
    'an answer that comes in pieces is put together',
    '€€€€€€€€€: some of the cuts go through a character',
    cutter.call(),
    /^€{9}$/,
  );
  const waiting: Buffer[] = [];
  const both = reach((socket, { id, params }) => {
    waiting.push(answer(id, params.name));
    if (waiting.length === 2) socket.write(Buffer.concat(waiting));
  });
  await both.isConnected;
  await expect(
    'two answers in one piece are two answers',
    '[ "one", "two" ]',
    Promise.all([both.call('one'), both.call('two')]),
    (came) => came?.[0] === 'one' && came[1] === 'two',
  );

  ends.length = 0;
  const quitter = reach((socket) => socket.end('{"half":'));
  await quitter.isConnected;
  await expect(
    'when the server breaks off, the call that waits fails',
    'a McpError of kind "closed"',
    quitter.call(),
    isClosed,
  );
  await expect('and so does a later one', 'a McpError of kind "closed"', quitter.call(), isClosed);
  /** What a server has not read makes its end an error on our side. */
  const reset = async (unreadBytes: number) => {
    const { connection, isConnected, call } = reach((socket) => {
      socket.pause();
      setTimeout(() => socket.destroy(), 50);
    });
    await isConnected;
    const waiting = call();
    await pause(20);
    connection.notify('unread', { filler: 'x'.repeat(unreadBytes) }).catch(() => {});
    return waiting;
  };
  await expect(
    'a connection that is reset ends, and does not end our program',
    'a McpError of kind "closed"',
    reset(100_000), // more than it reads at once, less than the system keeps for it
    isClosed,
  );
  await expect(
    'nor does one that is reset while we send',
    'a McpError of kind "closed"',
    reset(2 ** 20),
    isClosed,
  );
  await pause(100);
  await expect(
    'each end was told once, with this.end',
    'closed() three times, for three connections',
    ends,
    (came) => came.length === 3,
  );

  const talker = reach((socket) => socket.write('x'.repeat(1100)));
  await talker.isConnected;
  await expect(
    'a line that is too long ends the connection',
    'a McpError of kind "limit"',
    talker.call(),
    (came) => came?.kind === 'limit',
  );
  const over = async () => {
    await pause(100);
    return talker.seen.isOver;
  };
  await expect('and the server sees it', 'the end of the connection', over(), isTrue);
};
