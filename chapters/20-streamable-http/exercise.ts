// Judges exercise 20: does the answer arrive, also if its stream breaks off? "On the wire" are messages, and what the
// server gets and gives.

import { randomInt } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text as textOf } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import type { Judge } from '../book.ts';

const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion';
const MAX_RESUMES = 5;
const EARLY_MS = 10; // a timer may ring a little before its time
const answer =
  'data: {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"42"}]}}\n\n';
const news = (n: number) =>
  `data: {"jsonrpc":"2.0","method":"notifications/message","params":{"data":"news ${n}"}}\n\n`;
/** Ids have no order. They begin alike, and are equally long. */
const newId = () => `event-${randomInt(10 ** 9, 10 ** 10)}`;
/** An event that only names its id, and how long to wait. */
const mark = (id: string, retryMs = 100) => `id: ${id}\nretry: ${retryMs}\ndata:\n\n`;

/** A body; a connection that breaks, or does not come about; or a status, with a body that does not end. */
type ScriptedReply = string | 0 | -1 | { status: number };

export const judge: Judge = async ({ load, see, expect }) => {
  const { McpConnection, McpError } = await load('mcp.ts');
  const { httpTransportsBy } = await load('chapters/20-streamable-http/streamable.ts');
  const { fetchHttp } = await load('chapters/20-streamable-http/request.ts');

  /** A server whose answers are scripted: one for the POST, then one for each GET. The last is given again and again. */
  const script = async (...replies: ScriptedReply[]) => {
    const asked: { verb: string; lastEventId: unknown; at: number }[] = [];
    let hungUp = 0; // replies that we closed before their end
    const next = () => replies[Math.min(asked.length, replies.length - 1)]!;
    const server = createServer(async (request: IncomingMessage, response: ServerResponse) => {
      const body = await textOf(request);
      const { method: verb = '', headers } = request;
      const lastEventId = headers['last-event-id'];
      if (body.includes('notifications/')) return void response.writeHead(202).end();
      const reply = next();
      asked.push({ verb, lastEventId, at: performance.now() });
      see('out', `${verb}${lastEventId ? `, last-event-id: ${lastEventId}` : ''}`);
      see('in', reply === 0 ? '(the connection breaks)' : reply);
      response.on('close', () => (hungUp += response.writableEnded ? 0 : 1));
      const events = { 'content-type': 'text/event-stream' };
      if (reply === 0 || reply === -1) request.socket.destroy();
      else if (typeof reply === 'string') response.writeHead(200, events).end(reply);
      else if (reply.status === 204 || reply.status === 206)
        response.writeHead(reply.status, events).end();
      else response.writeHead(reply.status, events).write(': wait\n\n');
    });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
    const heard: unknown[] = [];
    const happened = new EventEmitter();
    const firstNews = once(happened, 'news');
    const firstGet = once(happened, 'GET'); // it is on its way
    const fetch = async (who: string, address: URL, options: { method: string; headers: any }) => {
      if (options.method === 'GET') happened.emit('GET');
      if (next() !== -1 || options.method !== 'GET') return fetchHttp(who, address, options);
      const lastEventId = options.headers['last-event-id'];
      asked.push({ verb: 'GET', lastEventId, at: performance.now() });
      see('out', `GET, last-event-id: ${lastEventId}`);
      see('in', '(there is no connection)');
      throw new McpError('unreachable', `${who} cannot be reached`);
    };
    const handlers = {
      'notifications/message': ({ data }: { data: unknown }) => {
        heard.push(data);
        happened.emit('news');
      },
    };
    const connection = new McpConnection(
      'demo',
      { type: 'http', url },
      {
        transports: httpTransportsBy(() => fetch),
        onWire: see,
        extensions: [() => ({ handlers })],
      },
    );
    await connection.connect();
    const call = async (params = {}, options = {}) =>
      (await connection.callTool('add', { a: 2, b: 40, ...params }, options)).text;
    const closed = async (replies: number) => {
      for (let n = 0; n < 40 && hungUp < replies; n++) await pause(50);
      return hungUp;
    };
    /** Both timers are of this process, so a machine that is slow changes nothing. */
    const resumesWithin = async (ms: number) => {
      await firstNews;
      const tooLate = pause(ms, `not yet, after ${ms} ms`, { ref: false });
      return Promise.race([firstGet.then(() => 'in time'), tooLate]);
    };
    return { asked, heard, call, connection, closed, resumesWithin };
  };
  type Script = Awaited<ReturnType<typeof script>>;
  const verbs = ({ asked }: Script) => asked.map(({ verb }) => verb).join(', ');
  const named = ({ asked }: Script) => asked.slice(1).map(({ lastEventId }) => `${lastEventId}`);
  /** Between one request and the next. */
  const gaps = ({ asked }: Script) =>
    asked.slice(1).map(({ at }, k) => Math.round(at - asked[k]!.at));
  /** Not for ever: a solution may ask without end, or leave its caller without a word. */
  const outcome = async ({ asked }: Script, call: Promise<unknown>) => {
    const came = call.catch((error: unknown) => error);
    const tooMany = async () => {
      for (let n = 0; n < 100 && asked.length < 2 * MAX_RESUMES; n++)
        await pause(50, undefined, { ref: false }); // timers are counted below
      return asked.length < 2 * MAX_RESUMES ? 'nothing, in five seconds' : 'more and more GETs';
    };
    return Promise.race([came, tooMany()]);
  };
  const isLost = (came: any) => came?.kind === 'lost';
  const lost = 'a McpError of kind "lost"';

  const whole = await script(
    `id: ${newId()}\nretry: 100\n${news(1)}id: ${newId()}\n${answer}${news(2)}`,
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
  await expect(
    'what comes before and after the answer is passed on',
    'news 1, news 2',
    whole.heard.join(', '),
    /^news 1, news 2$/,
  );

  const id = newId();
  const cut = await script(`${mark(id, 1200)}${news(0)}`, answer);
  const isInTime = cut.resumesWithin(2300);
  await expect('a stream that ends before the answer is taken up', '42', cut.call(), /^42$/);
  await expect(
    'by a GET that names the last event',
    `POST, then GET with last-event-id ${id}`,
    `${verbs(cut)} ${named(cut)}`,
    (came) => came === `POST, GET ${id}`,
  );
  await expect(
    'after the pause that the server wants: retry: 1200',
    'at least 1200 ms',
    gaps(cut)[0],
    (ms) => ms >= 1200 - EARLY_MS,
  );
  await expect('and not much later', 'a GET within 2300 ms', isInTime, /^in time$/);
  const patient = await script(mark(newId(), 100), mark(newId(), 300), mark(newId(), 0), answer);
  await expect(
    'a server may want another pause each time: retry: 100, then 300, then 0',
    '42',
    patient.call(),
    /^42$/,
  );
  await expect(
    'and each is kept (for 0 it is 100 ms all the same: pauseBefore)',
    'at least 100, 300 and 100 ms',
    gaps(patient),
    (ms) => [100, 300, 100].every((wanted, k) => ms[k] >= wanted - EARLY_MS),
  );
  const silent = await script(`id: ${newId()}\ndata:\n\n`, answer);
  await expect('a server that names no pause is taken up, too', '42', silent.call(), /^42$/);
  await expect(
    'after a pause of ours: RETRY_MS',
    'at least 1000 ms',
    gaps(silent)[0],
    (ms) => ms >= 1000 - EARLY_MS,
  );

  const without = await script(news(1), answer);
  const withoutId = await outcome(without, without.call());
  await expect(
    'a stream without ids is not taken up: there is nothing to go on from',
    'one POST',
    verbs(without),
    /^POST$/,
  );
  await expect('a call whose answer can no longer come fails', lost, withoutId, isLost);

  const modern = await script(mark(newId()), answer);
  const _meta = { [VERSION_KEY]: '2026-07-28' };
  const request = modern.connection.request('tools/call', { name: 'add', _meta });
  const later = await outcome(modern, request);
  await expect('since 2026 nothing is taken up', 'one POST', verbs(modern), /^POST$/);
  await expect('that call fails, too', lost, later, isLost);

  const stuck = await script(mark(newId()), news(7));
  const noNews = await outcome(stuck, stuck.call());
  await expect(
    'a server that brings no new id is asked MAX_RESUMES times, whatever else it sends',
    `${MAX_RESUMES} GETs`,
    stuck.asked.length - 1,
    (times) => times === MAX_RESUMES,
  );
  await expect('and then the call fails', lost, noNews, isLost);

  const ids = Array.from({ length: 14 }, newId);
  const long = await script(...ids.map((each, n) => `${mark(each)}${news(n)}`), answer);
  const inTheEnd = await Promise.race([long.call().catch((error) => error), pause(15_000)]);
  await expect(
    'a server that has a new id each time may break off fourteen times',
    '42',
    inTheEnd,
    /^42$/,
  );
  await expect(
    'each GET names the newest event',
    ids.join(' '),
    named(long).join(' '),
    (came) => came === ids.join(' '),
  );
  await expect(
    'and all news is heard, once',
    'news 0 to news 13',
    long.heard.join(),
    (came) => came === ids.map((_, n) => `news ${n}`).join(),
  );
  const [first, second] = [newId(), newId()];
  const nothing = ': nothing new\n\n';
  const slow = await script(
    mark(first),
    ...Array<string>(MAX_RESUMES - 1).fill(nothing),
    mark(second),
    ...Array<string>(MAX_RESUMES - 1).fill(nothing),
    answer,
  );
  await expect(
    `a new id begins the count again: ${MAX_RESUMES} GETs from one event, and ${MAX_RESUMES} from the next`,
    '42',
    slow.call(),
    /^42$/,
  );

  const away = await script(mark(newId()), 0, 0, answer);
  await expect('a server that is away for a moment is asked again', '42', away.call(), /^42$/);
  await expect(
    'after a pause each time',
    'at least 100 ms before each GET',
    gaps(away),
    (all) => all.length === 3 && all.every((ms: number) => ms >= 100 - EARLY_MS),
  );
  const down = await script(mark(newId()), -1, 0, answer);
  await expect('so is one that cannot be reached for a moment', '42', down.call(), /^42$/);
  const gone = await script(mark(newId()), 0);
  const noServer = await outcome(gone, gone.call());
  await expect(
    'a server that stays away is asked MAX_RESUMES times',
    `${MAX_RESUMES} GETs`,
    gone.asked.length - 1,
    (times) => times === MAX_RESUMES,
  );
  await expect('and then that call fails', lost, noServer, isLost);

  for (const status of [204, 206]) {
    const empty = await script(mark(newId()), { status }, answer);
    await expect(
      `a GET with another status than 200 (${status}) is the last`,
      lost,
      empty.call(),
      isLost,
    );
    await expect('also after it nothing is asked', 'POST, GET', verbs(empty), /^POST, GET$/);
  }
  for (const status of [404, 202, 503]) {
    const refused = await script(mark(newId()), { status }, answer);
    await expect(`a GET that is refused (${status}) is the last`, lost, refused.call(), isLost);
    await expect('it was asked once, and no more', 'POST, GET', verbs(refused), /^POST, GET$/);
    await expect(
      'and a body that does not end is not left open: reply.body.destroy()',
      'one reply that we closed',
      refused.closed(1),
      (replies) => replies === 1,
    );
  }

  const noise = await script(`${mark(newId())}data: {"not": JSON}\n\n`, answer);
  await expect(
    'a message that is not JSON fails the call: this.parse(text)',
    'a McpError of kind "protocol"',
    noise.call(),
    (came) => came?.kind === 'protocol',
  );

  const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
  const stopped = await script(mark(newId(), 60_000), answer);
  for (let n = 0; n < 40 && timers() > 0; n++) await pause(50, undefined, { ref: false });
  const before = timers();
  await expect(
    'a call can be cancelled in the pause',
    'a McpError of kind "aborted"',
    stopped.call({}, { signal: AbortSignal.timeout(300) }),
    (came) => came?.kind === 'aborted',
  );
  const isBack = async () => {
    for (let n = 0; n < 40 && timers() > before; n++) await pause(50, undefined, { ref: false });
    return timers() - before;
  };
  await expect(
    'then nothing waits for that pause to end: it has the signal of the request',
    'no timer of a minute',
    isBack(),
    (left) => left <= 0,
  );
  await expect('and nothing is asked', 'one POST', verbs(stopped), /^POST$/);

  const late = await script(mark(newId()), { status: 200 });
  const cancel = new AbortController();
  const cancelled = outcome(late, late.call({}, { signal: cancel.signal }));
  for (let n = 0; n < 40 && late.asked.length < 2; n++) await pause(50);
  cancel.abort();
  await expect(
    'a call can be cancelled while a GET is open',
    'a McpError of kind "aborted"',
    cancelled,
    (came) => came?.kind === 'aborted',
  );
  await expect(
    'then the GET is closed: it has the signal of the request',
    'one reply that we closed',
    late.closed(1),
    (replies) => replies === 1,
  );
};
