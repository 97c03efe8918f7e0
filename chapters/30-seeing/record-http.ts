// record-http.ts: the same for a server at an address. Clients use an address of this machine instead;
// what they send goes on, and what the bodies say is written down.

import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { asObject, parseMessage, type Json } from '../../mcp.ts';
import { EventParser } from '../18-minds/sse.ts';
import { sendRequest, type NodeReply } from '../18-minds/send.ts';
import { checkOneHost, checkOrigin, doorFor, Refused } from '../29-a-server/guard.ts';
import { readBody } from '../29-a-server/serve-http.ts';
import { MAX_COPIED, seen, type Write } from './record.ts';

/** Headers of one connection, not of the message in it. */
const OF_THE_WAY =
  /^(host|origin|connection|keep-alive|te|trailer|upgrade|transfer-encoding|accept-encoding|content-(length|encoding)|proxy-.*)$/;

type RecordedAddress = {
  url: URL;
  server: string; // its name in the trace
  write: Write;
  learn: (words: string[]) => void; // of what may be secret
};

export class HttpRecorder {
  private target: RecordedAddress;
  private http = createServer((request, response) => void this.handle(request, response));
  private door = doorFor('127.0.0.1');
  private origin = '';
  private sessions = new Map<unknown, string>(); // those that go on, and their names in the trace

  constructor(target: RecordedAddress) {
    this.target = target;
  }

  /** The address for clients, with the path that the server has. */
  async listen(port = 0): Promise<string> {
    await once(this.http.listen(port, '127.0.0.1'), 'listening');
    const { pathname, search } = this.target.url;
    this.origin = `http://127.0.0.1:${(this.http.address() as AddressInfo).port}`;
    return `${this.origin}${pathname}${search}`;
  }

  close(): void {
    this.http.close();
    this.http.closeAllConnections();
  }

  private async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('error', () => {}); // the client has left
    try {
      await this.pass(request, response);
    } catch (error) {
      const { status = 502, message } = error as Partial<Refused>;
      if (response.headersSent) return void response.destroy(); // cut off, as it came
      response.writeHead(status, { 'content-type': 'text/plain' }).end(`${message}\n`);
    }
  }

  private async pass(request: IncomingMessage, response: ServerResponse) {
    const { method = '', headers, rawHeaders, url: path = '' } = request;
    const { url, learn } = this.target;
    checkOneHost(rawHeaders);
    checkOrigin(headers, this.door);
    const wanted = new URL(path, url);
    if (wanted.origin !== url.origin) throw new Refused(404, 'not here'); // //elsewhere/mcp
    const body = await readBody(request, MAX_COPIED);
    if (body === undefined) return; // the client has left
    learn(Object.entries(headers).map(([header, value]) => `${header}: ${value}`));
    const name = this.nameFor(headers['mcp-session-id'], body);
    this.see('out', name, body);
    const gone = new AbortController();
    response.on('close', () => gone.abort());
    const options = { method, headers: passed(headers), body, signal: gone.signal };
    const reply = await sendRequest(wanted, options);
    const { 'mcp-session-id': session, location } = reply.headers;
    if (session !== undefined) this.sessions.set(session, name);
    if (method === 'DELETE') this.sessions.delete(headers['mcp-session-id']);
    const here = location && { location: location.replace(url.origin, this.origin) };
    response.writeHead(reply.status, { ...passed(reply.headers), ...here }).flushHeaders();
    await this.passBack(reply, response, name, gone.signal);
  }

  /** At once, and then a look at it. */
  private async passBack(
    { headers, body }: NodeReply,
    response: ServerResponse,
    name: string,
    signal: AbortSignal,
  ) {
    const isStream = `${headers['content-type']}`.includes('text/event-stream');
    const events = new EventParser({ maxEventBytes: MAX_COPIED });
    const chunks: Uint8Array[] = [];
    for await (const chunk of body as AsyncIterable<Uint8Array>) {
      if (!response.write(chunk)) await once(response, 'drain', { signal });
      if (!isStream) chunks.push(chunk);
      for (const { event, data } of isStream ? events.parse(chunk) : [])
        if (event === 'message') this.see('in', name, data);
    }
    response.end();
    this.see('in', name, `${Buffer.concat(chunks)}`);
  }

  private see(dir: 'out' | 'in', name: string, text: string) {
    if (text.trim() !== '') this.target.write(() => seen(dir, name, text), text.length);
  }

  /** Each client counts its requests from 1. So two sessions at a time are two servers in the trace. */
  private nameFor(session: unknown, body: string) {
    const { server, write } = this.target;
    const { method } = asObject(parseMessage(body));
    if (method !== 'initialize') return this.sessions.get(session) ?? server;
    const taken = [...this.sessions.values()];
    let name = server;
    for (let n = 2; taken.includes(name); n++) name = `${server}-${n}`;
    write({ type: 'server', server: name, state: 'started', transport: 'http' });
    return name;
  }
}

function passed(headers: Json) {
  const kept = Object.entries(headers).filter(([name]) => !OF_THE_WAY.test(name));
  return Object.fromEntries(kept) as Record<string, string>;
}
