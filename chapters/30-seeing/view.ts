// view.ts: the page that draws a conversation: as a file with the trace inside, and live.

import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileOfOurs } from '../16-hands/aside.ts';

/** The page without a trace. */
const viewerPage = () => sealed(readFileSync(fileOfOurs('30-seeing/viewer.html'), 'utf8'));

/** The page allows the one script and the one style that are in it, by their hashes. */
export function sealed(page: string): string {
  const hashOf = (tag: string) => {
    const [, text = ''] = new RegExp(`<${tag}>([^]*?)</${tag}>`).exec(page) ?? [];
    return createHash('sha256').update(text).digest('base64');
  };
  return page
    .replace(/script-src 'sha256-[^']*'/, () => `script-src 'sha256-${hashOf('script')}'`)
    .replace(/style-src 'sha256-[^']*'/, () => `style-src 'sha256-${hashOf('style')}'`);
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
const MAX_BEHIND = 16 * 2 ** 20; // bytes that wait for a reader; one that is slower is let go

/** Serves the page to this machine alone: on 127.0.0.1, at a path that cannot be guessed, and only
 *  to requests that name this address. Another page in the browser can do none of that. */
export class LivePage {
  private server: Server;
  private token = randomBytes(16).toString('hex');
  private readers = new Set<ServerResponse>();
  private lines: string[] = [];
  private kept = 0;
  private page = viewerPage();

  constructor() {
    this.server = createServer((request, response) => this.answer(request, response));
  }

  async start(): Promise<string> {
    await new Promise<void>((done, fail) => {
      this.server.once('error', fail);
      this.server.listen(0, '127.0.0.1', done);
    });
    this.server.unref(); // the program does not go on for it
    return this.url;
  }

  get url(): string {
    return `http://${this.host}/${this.token}/`;
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

  private send(reader: ServerResponse, line: string): void {
    reader.write(`data: ${line}\n\n`);
    if (reader.writableLength > MAX_BEHIND) reader.destroy();
  }

  close(): void {
    for (const reader of this.readers) reader.end();
    this.server.close();
    this.server.closeAllConnections();
  }

  private answer(request: IncomingMessage, response: ServerResponse): void {
    const { host, origin } = request.headers;
    const isOurs = host === this.host && (origin === undefined || origin === `http://${this.host}`);
    const refuse = (status: number, text: string) => {
      response.writeHead(status, { 'content-type': 'text/plain', ...HEADERS });
      response.end(`${text}\n`);
    };
    if (!isOurs) return refuse(403, 'this page is for the browser on this machine');
    if (request.method !== 'GET') return refuse(405, 'only GET');
    if (request.url === `/${this.token}/`) return this.sendPage(response);
    if (request.url === `/${this.token}/events`) return this.sendEvents(response);
    refuse(404, 'not here');
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

const HEADERS = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'x-frame-options': 'DENY',
};
