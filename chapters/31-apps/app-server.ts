// app-server.ts: where browsers get apps. One port, two names: our page is at 127.0.0.1 only, and each
// app at a random name below localhost. The `Host` of a request decides which of the two it gets.

import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { asList, asObject, isObject, textOf, type Json } from '../../mcp.ts';
import { fileOfOurs } from '../16-hands/aside.ts';
import { PageDoor, TurnedAway } from '../30-seeing/door.ts';
import { hashIn } from '../30-seeing/view.ts';
import type { App, PageOrder } from './app.ts';

const MAX_POST = 64 * 2 ** 20; // bytes; the page sends less
const MAX_BEHIND = 32 * 2 ** 20; // bytes that wait for a page
const MAX_PORTS = 10; // that we try
const SANDBOX = 'sandbox allow-scripts allow-forms';

const page = (name: string) => readFileSync(fileOfOurs(`31-apps/${name}`), 'utf8');

/** What the page asks of us besides carrying: a page where a question can be answered. */
type NewAnswerPage = () => Promise<string | undefined>;

/** The page of one app: who may be it, and what waits for it. */
class Seat {
  readonly app: App;
  readonly door: PageDoor;
  private reader?: ServerResponse;
  private answerPage: NewAnswerPage;

  constructor(app: App, door: PageDoor, answerPage: NewAnswerPage) {
    this.app = app;
    this.door = door;
    this.answerPage = answerPage;
    app.carry = (order) => this.write(order);
  }

  private write(order: PageOrder): void {
    const { reader } = this;
    if (!reader || reader.writableEnded) return;
    reader.write(`${JSON.stringify(order)}\n`);
    if (reader.writableLength > MAX_BEHIND) reader.destroy();
  }

  /** The page that came last has the app. */
  async listen(response: ServerResponse, frame: string): Promise<void> {
    this.write({ closed: 'it is open in another window now' });
    this.reader?.end();
    this.reader = response;
    response.writeHead(200, { ...HEADERS, 'content-type': 'application/x-ndjson' });
    const { app } = this;
    try {
      this.write({ show: { ...(await app.described()), frame } });
    } catch (error) {
      this.write({ closed: textOf(error) });
      response.end();
    }
  }

  /** In the order in which they came. */
  async take(items: unknown): Promise<void> {
    for (const item of asList(items).filter(isObject)) await this.takeOne(item);
  }

  private async takeOne({ app: message, begin, room, close, answer }: Json): Promise<void> {
    const { app } = this;
    if (begin && app.ended === undefined) await app.begin(asObject(begin));
    if (message !== undefined) app.hear(message);
    if (room) app.rearrange(asObject(room));
    if (close) void app.close(String(close));
    const address = answer ? await this.answerPage() : undefined;
    if (address) this.write({ page: address });
  }

  end(): void {
    this.reader?.end();
  }
}

export class AppServer {
  private servers: Server[] = [];
  private seats = new Map<string, Seat>(); // by the id of the app
  private port = 0;
  private warn: (text: string) => void;
  private answerPage: NewAnswerPage;
  private proxy = '';

  constructor(warn: (text: string) => void, answerPage: NewAnswerPage = async () => undefined) {
    this.warn = warn;
    this.answerPage = answerPage;
  }

  /** A browser asks for `localhost` at ::1 first. Another program must not be what answers there: so
   *  the port has to be ours at both addresses. */
  async start(): Promise<void> {
    for (let tries = 1; this.servers.length === 0; tries++) {
      const first = await this.listen(0, '127.0.0.1');
      this.port = (first.address() as AddressInfo).port;
      try {
        this.servers = [first, await this.listen(this.port, '::1')];
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        if (code !== 'EADDRINUSE')
          this.servers = [first]; // there is no ::1 here
        else first.close();
        if (code === 'EADDRINUSE' && tries === MAX_PORTS) throw error;
      }
    }
    this.proxy = page('app-frame.html').replace('%HOST%', `http://${this.host}`);
  }

  private listen(port: number, address: string): Promise<Server> {
    const server = createServer((request, response) => void this.answer(request, response));
    server.unref(); // the program does not go on for it
    return new Promise((done, fail) => {
      server.once('error', fail);
      server.listen(port, address, () => done(server));
    });
  }

  private get host(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** Its address, with a code that one page can use, once. */
  addressOf(app: App): URL {
    const seat = this.seats.get(app.id) ?? this.newSeat(app);
    return new URL(`http://${this.host}/${app.id}/#${seat.door.newCode()}`);
  }

  private newSeat(app: App): Seat {
    const door = new PageDoor(() => this.host, this.warn, '/apps');
    const seat = new Seat(app, door, this.answerPage);
    this.seats.set(app.id, seat);
    return seat;
  }

  forget({ id }: App): void {
    this.seats.get(id)?.end();
    this.seats.delete(id);
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const [, id = ''] = /^([\da-f]{20})\.localhost:\d+$/.exec(request.headers.host ?? '') ?? [];
      const seat = this.seats.get(id);
      if (seat && request.headers.host === this.frameHost(id))
        return await this.sendFrame(request, response, seat.app, id);
      await this.answerPageOf(request, response);
    } catch (error) {
      const status = error instanceof TurnedAway ? error.status : 500;
      request.resume(); // what is left of its body is not read
      sendJson(response, status, { error: textOf(error) });
    }
  }

  private frameHost(id: string): string {
    return `${id}.localhost:${this.port}`;
  }

  // ── Under our own name ──

  private async answerPageOf(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [, id = '', what] = /^\/([\da-f]{20})\/(\w*)$/.exec(request.url ?? '') ?? [];
    const seat = this.seats.get(id);
    const anyDoor = seat?.door ?? new PageDoor(() => this.host, this.warn);
    if (!anyDoor.isOurs(request)) throw new TurnedAway(403, 'only for the browser on this machine');
    if (!seat) throw new TurnedAway(404, 'there is no such app, or it was closed');
    const { door } = seat;
    if (request.method === 'GET' && what === '') return this.sendPage(response, id);
    if (request.method !== 'POST') throw new TurnedAway(405, 'only POST');
    if (what === 'key') return sendJson(response, 200, { key: await door.trade(request) });
    const { items } = await door.bodyOf(request, MAX_POST);
    if (what === 'down') return seat.listen(response, `http://${this.frameHost(id)}`);
    if (what !== 'up') throw new TurnedAway(404, 'not here');
    await seat.take(items);
    sendJson(response, 200, {});
  }

  private sendPage(response: ServerResponse, id: string): void {
    const text = page('app-page.html');
    const policy = [
      `default-src 'none'; script-src ${hashIn(text, 'script')}; style-src ${hashIn(text, 'style')}`,
      `connect-src 'self'; frame-src http://${this.frameHost(id)}`,
      `frame-ancestors 'none'; base-uri 'none'; form-action 'none'`,
    ];
    sendHtml(response, text, policy, {
      'x-frame-options': 'DENY',
      'cross-origin-opener-policy': 'same-origin',
    });
  }

  // ── Under the name of an app ──

  /** The proxy, and in it the app: with a policy as narrow as its server declared. */
  private async sendFrame(
    { url, method }: IncomingMessage,
    response: ServerResponse,
    app: App,
    id: string,
  ): Promise<void> {
    const { html, policy } = await app.load();
    const ours = `http://${this.host}`;
    const own = `http://${this.frameHost(id)}`;
    if (method !== 'GET') throw new TurnedAway(405, 'only GET');
    if (url === '/') {
      const { proxy } = this;
      return sendHtml(response, proxy, [
        `default-src 'none'; script-src ${hashIn(proxy, 'script')}; style-src ${hashIn(proxy, 'style')}`,
        `frame-src ${[own, ...policy.allowed.frameDomains].join(' ')}; frame-ancestors ${ours}`,
      ]);
    }
    if (url?.split('?')[0] !== '/view') throw new TurnedAway(404, 'not here');
    sendHtml(response, html, [policy.header, SANDBOX, `frame-ancestors ${ours} ${own}`], {
      'connection-allowlist': policy.connections,
    });
  }
}

const HEADERS = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
};

function sendHtml(response: ServerResponse, text: string, policy: string[], more: Json = {}): void {
  const headers = { ...HEADERS, ...more, 'content-security-policy': policy.join('; ') };
  response.writeHead(200, { ...headers, 'content-type': 'text/html; charset=utf-8' }).end(text);
}

function sendJson(response: ServerResponse, status: number, body: Json): void {
  response.writeHead(status, { ...HEADERS, 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}
