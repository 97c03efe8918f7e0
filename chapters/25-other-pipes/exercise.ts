// Judges exercise 25: servers at paths that answer, cut their lines, speak first, break off, reset
// the connection, or talk too much. Texts and pieces are drawn by lot.

import { randomInt, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Json, Message, Transport } from '../../mcp.ts';
import type { Judge } from '../book.ts';

const turn = () => new Promise((done) => setImmediate(done));

async function turns(count = 20): Promise<void> {
  for (let n = 0; n < count; n++) await turn();
}

/** Waits for a fact; `expect` gives up after a while. */
async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((done) => setTimeout(done, 5));
}

const line = (message: unknown) => Buffer.from(`${JSON.stringify(message)}\n`);

/** Cut anywhere, also through a character; each piece leaves when the one before has been read. */
async function inPieces(socket: Socket, bytes: Buffer): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    const size = 1 + randomInt(5);
    socket.write(bytes.subarray(at, at + size));
    at += size;
    await turns(3);
  }
}

type Peer = { server: Server; path: string; sockets: Socket[]; heard: Json[] };

export const judge: Judge = async ({ load, see, expect }) => {
  const { McpError } = await load('mcp.ts');
  const { UnixSocketTransport } = await load('chapters/25-other-pipes/unix-socket.ts');
  const place = mkdtempSync(join(tmpdir(), 'pipes-'));
  process.on('exit', () => rmSync(place, { recursive: true, force: true }));
  let count = 0;
  const somewhere = () => join(place, `${++count}-${randomUUID().slice(0, 4)}.sock`);

  /** A server that listens, and does this with each connection, and with each message. */
  const listen = async (
    welcome: (socket: Socket) => void = () => {},
    hear: (socket: Socket, message: Json) => void = () => {},
  ): Promise<Peer> => {
    const path = somewhere();
    const peer: Peer = { server: createServer(), path, sockets: [], heard: [] };
    peer.server.on('connection', (socket) => {
      peer.sockets.push(socket);
      socket.on('error', () => {});
      socket.on('data', (chunk) => {
        for (const text of chunk.toString().trim().split('\n')) {
          const message = text.startsWith('{') ? (JSON.parse(text) as Json) : {};
          peer.heard.push(message);
          hear(socket, message);
        }
      });
      welcome(socket);
    });
    await new Promise<void>((done) => peer.server.listen(path, done));
    return peer;
  };

  /** A transport, and all that it tells. */
  const make = (path: string, maxBytes = 10 ** 6) => {
    const transport: Transport = new UnixSocketTransport('demo', { type: 'unix', path }, maxBytes);
    const got: Message[] = [];
    const ends: Error[] = [];
    let isLate = false; // something came after the end
    const start = () =>
      transport.start({
        message: (message) => {
          see('in', message);
          if (ends.length > 0) isLate = true;
          got.push(message as Message);
        },
        closed: (why) => {
          see('in', `(closed: ${why.message})`);
          ends.push(why);
        },
        dropped: (why) => see('in', `(dropped: ${why.message})`),
      });
    const send = (message: Json) => {
      see('out', message);
      return transport.send(message as Message);
    };
    return { transport, start, send, got, ends, isInOrder: () => !isLate };
  };
  const request = (method: string): Json => ({ jsonrpc: '2.0', id: 1, method });
  const kindOf = (error: unknown) =>
    error instanceof McpError ? (error as { kind?: string }).kind : `${error}`;
  /** What came until the end was told. */
  const untilEnd = async ({ ends }: ReturnType<typeof make>) => {
    await until(() => ends.length > 0);
    await turns();
    return ends;
  };
  const isOneEnd = (ends: Error[]) => ends.length === 1 && kindOf(ends[0]) === 'closed';

  // Promise 1: start settles.
  const echo = (socket: Socket, message: Json) => void socket.write(line({ echo: message }));
  const friendly = await listen(undefined, echo);
  const pipe = make(friendly.path);
  await expect(
    'start() resolves when the server is there',
    'it resolves',
    pipe.start().then(() => 'resolved'),
    /^resolved$/,
  );
  await expect(
    'a message goes out, and its answer comes back',
    'the answer',
    pipe
      .send(request('add'))
      .then(() => until(() => pipe.got.length > 0))
      .then(() => pipe.got),
    (got) => JSON.stringify(got) === JSON.stringify([{ echo: request('add') }]),
  );
  await expect(
    'there is one connection to the server',
    '1',
    friendly.sockets.length,
    (came) => came === 1,
  );
  const left = new Promise((done) => friendly.sockets[0]!.once('close', () => done('it is over')));
  await expect(
    'after close() the server sees that we are gone',
    'the end of the connection',
    pipe.transport.close().then(() => left),
    /it is over/,
  );

  const plainFile = somewhere();
  writeFileSync(plainFile, '');
  for (const [where, path, reason] of [
    ['there is no such file', somewhere(), /ENOENT/],
    ['a file at which no server listens', plainFile, /ECONNREFUSED|ENOTSOCK|EACCES/],
  ] as const) {
    const lonely = make(path);
    const starting = async () => lonely.start().catch((error: unknown) => error);
    const came = starting();
    await expect(
      `where no server listens, start() rejects: ${where}`,
      'a McpError of kind "unreachable"',
      came,
      (error) => kindOf(error) === 'unreachable',
    );
    await expect(
      `and the system's reason is in its words: ${where}`,
      `${reason}`,
      came.then((error) => `${error}`),
      reason,
    );
    await turns(50);
    await expect(
      `and that is all, closed() is for what was open: ${where}`,
      'no closed()',
      lonely.ends,
      (ends) => ends.length === 0,
    );
  }

  // Promise 3: whole messages, in their order.
  const words = Array.from({ length: 9 }, () => `€ü${randomUUID().slice(0, 4)}𝄞`);
  const cutter = await listen(undefined, (socket) => {
    void inPieces(socket, Buffer.concat(words.map((text) => line({ text }))));
  });
  const cut = make(cutter.path);
  await cut.start();
  const isWhole = (got: Json[]) =>
    JSON.stringify(got.map(({ text }) => text)) === JSON.stringify(words);
  const nine = (from: typeof cut) => until(() => from.got.length >= 9).then(() => from.got);
  await expect(
    'messages that come in pieces are put together, in their order',
    `${words}: some of the cuts go through a character`,
    cut.send(request('list')).then(() => nine(cut)),
    isWhole,
  );
  const crowd = await listen(undefined, (socket) => {
    socket.write(Buffer.concat(words.map((text) => line({ text }))));
  });
  const crowded = make(crowd.path);
  await crowded.start();
  await expect(
    'nine messages in one piece are nine messages',
    `${words}`,
    crowded.send(request('list')).then(() => nine(crowded)),
    isWhole,
  );
  const eager = await listen((socket) => void socket.write(line({ text: words[0] })));
  const listener = make(eager.path);
  await listener.start();
  await expect(
    'a server may speak first',
    words[0]!,
    until(() => listener.got.length > 0).then(() => listener.got[0]),
    (came) => came.text === words[0],
  );
  const long = 'x'.repeat(300_000 + randomInt(1000));
  const talkative = await listen((socket) => void socket.write(line({ text: long })));
  const patient = make(talkative.path);
  await patient.start();
  await expect(
    'a long message arrives whole, in many pieces',
    `${long.length} characters`,
    until(() => patient.got.length > 0).then(() => (patient.got[0] as Json).text),
    (came) => came === long,
  );
  const [one, two] = [make(crowd.path), make(eager.path)];
  await Promise.all([one.start(), two.start()]);
  await one.send(request('list'));
  await expect(
    'two connections do not mix',
    'nine messages here, one there',
    Promise.all([nine(one), until(() => two.got.length > 0)]).then(() => [one.got, two.got]),
    ([first, second]) => isWhole(first) && second.length === 1 && second[0].text === words[0],
  );

  // Promise 4: the end, once.
  const quick = await listen(undefined, (socket) => {
    socket.write(line({ text: 'my last words' }));
    socket.end('{"half":');
  });
  const cutOff = make(quick.path);
  await cutOff.start();
  await cutOff.send(request('add'));
  await expect(
    'a server that ends the connection, in the middle of a line: that is reported, once',
    'closed() with a McpError of kind "closed"',
    untilEnd(cutOff),
    isOneEnd,
  );
  await expect(
    'what it said before has arrived before',
    'my last words, then the end',
    cutOff.got,
    (got) => got.length === 1 && got[0].text === 'my last words' && cutOff.isInOrder(),
  );
  await expect(
    'a later message is lost, and its sender hears that',
    'a McpError of kind "closed"',
    cutOff.send(request('add')),
    (error) => kindOf(error) === 'closed',
  );
  const rude = await listen((socket) => void socket.end());
  const unwanted = make(rude.path);
  await unwanted.start().catch(() => {}); // it was there, and is gone
  await expect(
    'a server that hangs up at once: that is reported, once',
    'closed() with a McpError of kind "closed"',
    untilEnd(unwanted),
    isOneEnd,
  );
  /** What a server has not read makes its end an error on our side. */
  const reset = async (unreadBytes: number) => {
    const busy = await listen(undefined, (socket) => void socket.pause());
    const broken = make(busy.path);
    await broken.start();
    await broken.send(request('add'));
    await until(() => busy.heard.length > 0);
    const unread = { ...request('unread'), params: { filler: 'x'.repeat(unreadBytes) } };
    broken.send(unread).catch(() => {});
    await turns();
    busy.sockets[0]!.destroy();
    return untilEnd(broken);
  };
  await expect(
    'a connection that is reset does not end our program, and is reported once',
    'closed() with a McpError of kind "closed"',
    reset(100_000), // more than it reads at once, less than the system keeps for it
    isOneEnd,
  );
  await expect(
    'nor does one that is reset while we send',
    'closed() with a McpError of kind "closed"',
    reset(2 ** 22),
    isOneEnd,
  );

  const talker = await listen((socket) => void socket.write('x'.repeat(1100)));
  const flooded = make(talker.path, 1000);
  await flooded.start();
  await expect(
    'a line that is too long ends the connection, and that is all that is reported',
    'closed() once, with a McpError of kind "limit"',
    untilEnd(flooded),
    (ends) => ends.length === 1 && kindOf(ends[0]) === 'limit',
  );
  await expect(
    'nobody has come back by themselves',
    'one connection to each server',
    [quick, rude, talker].map(({ sockets }) => sockets.length),
    (counts) => counts.every((each: number) => each === 1),
  );
};
