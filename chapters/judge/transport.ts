// transport.ts: what a transport promises, whatever wire it is: see `Transport` in mcp.ts. Any
// server answers a ping under the id that came, so an id can carry what must arrive whole.

import { McpConnection, transportType } from '../../mcp.ts';
import type { Json, Message, Transport, TransportFactory } from '../../mcp.ts';
import {
  failure,
  holds,
  Mismatch,
  NotTried,
  pause,
  same,
  show,
  soon,
  until,
  type Bench,
  type Chapter,
} from './bench.ts';
import { HANG_UP, PEER } from './peer.ts';

const MAX_BYTES = 64 * 2 ** 20;

/** The default export, or the only function; of several, the one that is called a transport. */
function factoryIn(subject: Record<string, any>): TransportFactory {
  const functions = Object.entries(subject).filter(([, value]) => typeof value === 'function');
  const named = functions.filter(([name]) => /transport$/i.test(name));
  const candidates = functions.length === 1 ? functions : named;
  const make = subject.default ?? candidates[0]?.[1];
  if (typeof make !== 'function' || (!subject.default && candidates.length > 1)) {
    const names = functions.map(([name]) => name).join(', ') || 'none';
    throw new Mismatch('a default export, or one function or class', `the functions: ${names}`);
  }
  const isClass = /^class\b/.test(`${make}`);
  return (...given) => (isClass ? new make(...given) : make(...given));
}

type Started = { transport: Transport; messages: any[]; ends: any[] };

function prepare(bench: Bench, config: Json = bench.config) {
  const transport = factoryIn(bench.subject)('judge', config, MAX_BYTES);
  const messages: any[] = [];
  const ends: any[] = [];
  bench.later(() => transport.close());
  const events = {
    message: (each: unknown) => messages.push(each),
    closed: (why: unknown) => ends.push(why),
  };
  const start = () => soon(transport.start(events), 'start() to end', 10_000);
  return { transport, messages, ends, start };
}

async function started(bench: Bench): Promise<Started> {
  const { start, ...rest } = prepare(bench);
  await start();
  return rest;
}

const ping = (id: string | number): Message => ({ jsonrpc: '2.0', id, method: 'ping' });
const hello = {
  protocolVersion: '2025-11-25',
  capabilities: {},
  clientInfo: { name: 'judge', version: '1.0.0' },
};

/** Sends a request, and returns its answer. */
async function exchange({ transport, messages }: Started, message: Message): Promise<any> {
  await soon(transport.send(message), 'send() to end');
  const answer = () => messages.find((each) => each?.id === message.id);
  const shown = () => messages.slice(-2).map(show);
  await until(answer, `an answer to ${message.method}`, shown);
  return answer();
}

/** Some promises need a server that does as it is told. */
async function ours(bench: Bench): Promise<Started> {
  const wire = await started(bench);
  const first: Message = { jsonrpc: '2.0', id: 'hello', method: 'initialize', params: hello };
  const { result } = await exchange(wire, first);
  const isOurs = result?.serverInfo?.name === PEER;
  if (!isOurs) throw new NotTried("it needs the judge's own server at the other end");
  return wire;
}

/** Lets the server hang up, and waits until that is told. */
async function hungUp(bench: Bench): Promise<Started> {
  const wire = await ours(bench);
  await soon(wire.transport.send({ jsonrpc: '2.0', method: HANG_UP }), 'send() to end');
  await until(
    () => wire.ends.length > 0,
    'the event "closed"',
    () => 'no event',
  );
  return wire;
}

async function comesBack(bench: Bench, id: string, what: string): Promise<void> {
  const { messages, transport } = await started(bench);
  await soon(transport.send(ping(id)), 'send() to end');
  await until(() => messages.length > 0, `an answer under ${what}`);
  const [message] = messages;
  holds(message?.id === id, `an answer under ${what}`, message);
}

/** What would keep a program from ending. */
const resources = () =>
  process.getActiveResourcesInfo().filter((name) => /Socket|Pipe|Process|TLS|Timeout/.test(name));

export const transport: Chapter = {
  n: 0,
  title: 'transport',
  needs: [],
  promises: [
    {
      id: 'transport-works',
      promise: 'a handshake and a call work through our own client',
      fault: 'a handshake and a call do not work through our own client',
      play: async (bench) => {
        const type = transportType(bench.config);
        const transports = { [type]: factoryIn(bench.subject) };
        const connection = new McpConnection('judge', bench.config, { transports, onWarning() {} });
        bench.later(() => connection.close());
        await soon(connection.connect(), 'connect() to end', 10_000);
        const { serverInfo } = await soon(connection.initialize(), 'initialize() to end');
        const tools = await soon(connection.listTools(), 'listTools() to end');
        if (serverInfo?.name !== PEER) return;
        same(
          tools.map(({ name }) => name),
          ['echo'],
        );
        const { text } = await soon(connection.callTool('echo', { a: 1 }), 'callTool() to end');
        same(text, '{"a":1}');
      },
    },
    {
      id: 'transport-hundred',
      promise: 'a hundred requests at once are each answered once',
      fault: 'of a hundred requests at once some are not answered once',
      play: async (bench) => {
        const { transport, messages } = await started(bench);
        const ids = Array.from({ length: 100 }, (_, n) => n + 1);
        await soon(Promise.all(ids.map((id) => transport.send(ping(id)))), 'send() to end');
        const count = () => `${messages.length} answers`;
        await until(() => messages.length >= 100, '100 answers', count);
        const came = messages.map(({ id }) => id).sort((a, b) => a - b);
        same(came, ids, 'one answer for each of 100 ids');
      },
    },
    {
      id: 'transport-megabyte',
      promise: 'a message of a megabyte arrives whole, both ways',
      fault: 'a message of a megabyte does not arrive whole',
      play: (bench) => comesBack(bench, 'x'.repeat(2 ** 20), 'an id of a megabyte'),
    },
    {
      id: 'transport-characters',
      promise: 'characters of several bytes arrive whole',
      fault: 'characters of several bytes do not arrive whole',
      play: (bench) => comesBack(bench, 'Zoë 🦊 日本 € '.repeat(9000), 'the id "Zoë 🦊 日本 €" …'),
    },
    {
      id: 'transport-separators',
      promise: 'U+2028 and a line feed inside a message arrive whole',
      fault: 'U+2028 or a line feed inside a message does not arrive whole',
      play: (bench) => comesBack(bench, 'a\u2028b\u2029c\nd\r\ne', 'the id "a U+2028 b …"'),
    },
    {
      id: 'transport-order',
      promise: 'messages arrive in the order in which they were sent',
      fault: 'messages do not arrive in the order in which they were sent',
      play: async (bench) => {
        const { transport, messages } = await ours(bench);
        const ids = Array.from({ length: 20 }, (_, n) => `${n} ${'x'.repeat(n % 2 ? 50_000 : 1)}`);
        await soon(Promise.all(ids.map((id) => transport.send(ping(id)))), 'send() to end');
        await until(
          () => messages.length === 21,
          '20 answers',
          () => `${messages.length - 1}`,
        );
        const numbers = messages.slice(1).map(({ id }) => parseInt(id, 10));
        same(
          numbers,
          numbers.map((_, n) => n),
        );
      },
    },
    {
      id: 'transport-nobody',
      kind: 'safety',
      promise: 'start() rejects where nothing listens',
      fault: 'start() does not reject where nothing listens',
      play: async (bench) => {
        await ours(bench);
        const nowhere = {
          path: `${bench.scratch}/nothing.sock`,
          url: 'ws://127.0.0.1:9/mcp',
          port: 9, // "discard", which no machine has any more
          command: 'no-such-command-here',
        };
        const { start } = prepare(bench, { ...bench.config, ...nowhere });
        await failure(start, 'an error');
      },
    },
    {
      id: 'transport-close',
      kind: 'safety',
      promise: 'after close() nothing comes any more, and closing twice does no harm',
      fault: 'after close() something still comes, or closing twice does harm',
      play: async (bench) => {
        const { transport, messages, ends } = await started(bench);
        transport.send(ping(1)).catch(() => {}); // it may be lost
        const both = Promise.all([transport.close(), transport.close()]);
        await soon(both, 'close() to end');
        await soon(transport.close(), 'close() to end');
        const before = messages.length;
        await pause(400);
        same(messages.length, before, 'no message after close()');
        holds(ends.length <= 1, 'the event "closed" once', `${ends.length} times`);
      },
    },
    {
      id: 'transport-end',
      kind: 'safety',
      promise: 'the end is told once, and with a reason',
      fault: 'the end is not told once and with a reason',
      play: async (bench) => {
        const { transport, ends } = await hungUp(bench);
        await transport.close();
        await pause(400); // several signs of the end may come
        same(ends.length, 1, 'the event "closed" once');
        holds(ends[0] instanceof Error && ends[0].message, 'an Error with a message', ends[0]);
      },
    },
    {
      id: 'transport-send-late',
      kind: 'safety',
      promise: 'a send after the end does not wait, and nobody is left to believe that it arrived',
      fault: 'a send after the end waits, or seems to arrive',
      play: async (bench) => {
        const { transport } = await hungUp(bench); // so `closed` has told
        await soon(
          transport.send(ping(2)).catch(() => {}),
          'send() to end after the server hung up',
        );
        const { transport: closed, ends } = await started(bench);
        await soon(closed.close(), 'close() to end');
        const sent = closed.send(ping(3)).then(
          () => true,
          () => false,
        );
        const seemsSent = await soon(sent, 'send() to end after close()');
        const isTold = !seemsSent || ends.length > 0;
        holds(isTold, 'an error after close(), or the event "closed"', 'neither');
      },
    },
    {
      id: 'transport-leaves-nothing',
      kind: 'safety',
      promise: 'after close() no process, socket or timer is left',
      fault: 'after close() a process, a socket or a timer is left',
      play: async (bench) => {
        const before = resources().length;
        const wire = await started(bench);
        await exchange(wire, ping(1));
        await soon(wire.transport.close(), 'close() to end');
        const left = () => resources().slice(before);
        await until(() => left().length === 0, 'nothing left', left);
      },
    },
  ],
};
