// view.ts: the page that draws a conversation: as a file with the trace inside, and live. The live one
// can act, if the program lets it.

import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { textOf, type Json } from '../../mcp.ts';
import { fileOfOurs } from '../16-hands/aside.ts';
import { PageDoor, TurnedAway } from './door.ts';

/** The page without a trace. */
const viewerPage = () => sealed(readFileSync(fileOfOurs('30-seeing/viewer.html'), 'utf8'));

/** The page allows the one script and the one style that are in it, by their hashes. */
export function sealed(page: string): string {
  return page
    .replace(/script-src 'sha256-[^']*'/, () => `script-src ${hashIn(page, 'script')}`)
    .replace(/style-src 'sha256-[^']*'/, () => `style-src ${hashIn(page, 'style')}`);
}

/** Of the one script, or style, of a page: as a policy has it. */
export function hashIn(page: string, tag: string): string {
  const [, text = ''] = new RegExp(`<${tag}>([^]*?)</${tag}>`).exec(page) ?? [];
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}

/** The page with a trace inside: one file, to be sent to someone. `<` can only be in a text of the
 *  JSON, so it can be written in another way; with it no tag can begin. */
export function pageWith(trace: string, name: string): string {
  const inert = (text: string) => text.replaceAll('<', '\\u003c');
  const title = name.replace(/[^\w. -]/g, '_');
  const data = `<script type="application/json" id="trace" data-name="${title}">${inert(trace)}</script>`;
  return viewerPage().replace('<script>', () => `${data}\n<script>`);
}

// ─── Live ───────────────────────────────────────────────────────────────────────────────────────

const MAX_KEPT = 64 * 2 ** 20; // characters of the trace, for a page that is opened late
const MAX_READERS = 10;
const REQUEST_MS = 30_000; // for a request to come in
const MAX_BEHIND = 16 * 2 ** 20; // bytes that wait for a reader; one that is slower is let go

/** Serves the page to this machine alone: on 127.0.0.1, at a path that cannot be guessed, and only
 *  to requests that name this address. Another page in the browser can do none of that. */
export class LivePage {
  /** What the page asks for, if it may act. */
  act?: (wanted: Json) => Promise<Json>;
  private server: Server;
  private door: PageDoor;
  private token = randomBytes(16).toString('hex');
  private readers = new Set<ServerResponse>();
  private lines: string[] = [];
  private kept = 0;
  private page = viewerPage();

  constructor(warn: (text: string) => void = () => {}) {
    this.server = createServer((request, response) => void this.answer(request, response));
    this.server.requestTimeout = REQUEST_MS;
    this.door = new PageDoor(() => this.host, warn);
  }

  async start(): Promise<string> {
    await once(this.server.listen(0, '127.0.0.1'), 'listening');
    this.server.unref(); // the program does not go on for it
    return this.url;
  }

  get url(): string {
    return `http://${this.host}/${this.token}/`;
  }

  /** For one page, which may act. */
  get addressToAct(): string {
    return `${this.url}#${this.door.newCode()}`;
  }

  private get host(): string {
    return `127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** One line of the trace. */
  write(line: string): void {
    this.lines.push(line);
    this.kept += line.length;
    while (this.kept > MAX_KEPT) this.kept -= this.lines.shift()!.length;
    for (const reader of this.readers) this.send(reader, line);
  }

  /** There is something new to ask for: what it is, only the page with the key gets to know. */
  nudge(): void {
    for (const reader of this.readers) reader.write('event: questions\ndata:\n\n');
  }

  private send(reader: ServerResponse, line: string): void {
    reader.write(`data: ${line}\n\n`);
    if (reader.writableLength > MAX_BEHIND) reader.destroy();
  }

  close(): void {
    for (const reader of this.readers) reader.end();
    this.server.close();
    this.server.closeAllConnections();
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      if (!this.door.isOurs(request))
        throw new TurnedAway(403, 'only for the browser on this machine');
      if (request.method === 'POST') return sendJson(response, 200, await this.posted(request));
      if (request.method !== 'GET') throw new TurnedAway(405, 'only GET and POST');
      if (request.url === `/${this.token}/`) return this.sendPage(response);
      if (request.url === `/${this.token}/events`) return this.sendEvents(response);
      throw new TurnedAway(404, 'not here');
    } catch (error) {
      const status = error instanceof TurnedAway ? error.status : 500;
      request.resume(); // what is left of its body is not read
      sendJson(response, status, { error: textOf(error) });
    }
  }

  private async posted(request: IncomingMessage): Promise<Json> {
    const { act, door, token } = this;
    if (!act) throw new TurnedAway(405, 'this page only shows');
    if (request.url === `/${token}/key`) return { key: await door.trade(request) };
    if (request.url === `/${token}/act`) return act(await door.bodyOf(request));
    throw new TurnedAway(404, 'not here');
  }

  private sendPage(response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', ...HEADERS });
    response.end(this.page);
  }

  private sendEvents(response: ServerResponse): void {
    if (this.readers.size >= MAX_READERS) return void response.writeHead(503, HEADERS).end();
    response.writeHead(200, { 'content-type': 'text/event-stream', ...HEADERS });
    response.write(': the trace, line by line\n\n');
    this.readers.add(response);
    response.on('close', () => this.readers.delete(response));
    for (const line of this.lines) this.send(response, line);
  }
}

function sendJson(response: ServerResponse, status: number, body: Json): void {
  response.writeHead(status, { 'content-type': 'application/json', ...HEADERS });
  response.end(JSON.stringify(body));
}

const HEADERS = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'x-frame-options': 'DENY',
  'content-security-policy': "frame-ancestors 'none'", // the page itself has the rest of it
  'cross-origin-opener-policy': 'same-origin',
};
