// A peer that follows a script: what it does at each method, on whichever wire it is mounted. On stdio it is a child
// process that gets the script as text, so what a script does must need nothing from outside of itself.

import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import type { Json } from '../../mcp.ts';
import { folder, onLoopback } from './basics.ts';

/** `status`, `type` and `body` are for HTTP: an answer that may be no message at all. `id` replaces the right one. */
export type Reply = {
  result?: unknown;
  error?: Json;
  id?: unknown;
  status?: number;
  type?: string;
  body?: string;
};
export type Peer = {
  id: unknown; // of the request that this is about
  seen: any[]; // every message up to now
  isTurned: boolean; // has the test turned it into its other self?
  send(message: Json): void; // on HTTP: on the stream that answers this request
  reply(reply: Reply): void; // later than at once
  hangUp(): void; // exits; on HTTP, ends the stream
};
/** A reply, or an arrow function that returns one. No reply is silence. `memory` lasts as long as the process. */
export type Act = Reply | ((params: any, peer: Peer, memory: any) => Reply | undefined | void);
/** By method. `(answer)` is for what the client answers; methods that are not named here are refused. */
export type Script = Record<string, Act>;
export type Mounted = { config: Json; turn(): void; hasHeard(): boolean };

/** Plays a script. `peer/seen` is answered with all messages so far, and is not one of them. */
function player(script: Script) {
  const memory = {};
  const seen: any[] = [];
  return (message: any, peer: Pick<Peer, 'send' | 'reply' | 'hangUp' | 'isTurned'>): void => {
    const { id, method, params = {} } = message;
    if (method === 'peer/seen') return peer.reply({ result: { seen } });
    seen.push(message);
    const unknown = { error: { code: -32601, message: `Method not found: ${method}` } };
    const act =
      script[method ?? '(answer)'] ??
      (method !== undefined && id !== undefined ? unknown : undefined);
    const about = method === undefined ? message : params;
    const reply = typeof act === 'function' ? act(about, { ...peer, id, seen }, memory) : act;
    if (reply) peer.reply(reply);
  };
}

function playOnStdio(play: ReturnType<typeof player>): void {
  const send = (message: Json) =>
    void process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\n');
  const isTurned = () => require('node:fs').existsSync(process.argv[1]!);
  let rest = '';
  process.stdin.setEncoding('utf8').on('data', (chunk) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop()!;
    for (const message of lines.map((line) => JSON.parse(line))) {
      const reply = (given: Reply) => send({ id: message.id, ...given });
      play(message, { send, reply, hangUp: () => process.exit(), isTurned: isTurned() });
    }
  });
  process.stdin.on('end', () => process.exit());
}

/** The text of a script. The compiler of our tests may wrap functions into __name(…). */
function textOf(script: Script): string {
  const acts = Object.entries(script).map(([method, act]) => {
    return `${JSON.stringify(method)}: ${typeof act === 'function' ? `(${act})` : JSON.stringify(act)}`;
  });
  return `const __name = (f) => f; (${playOnStdio})((${player})({ ${acts.join(', ')} }));`;
}

async function onStdio(script: Script): Promise<Mounted> {
  const file = join(folder(), 'turned'); // also makes each configuration one of its kind
  const config = { command: process.execPath, args: ['-e', textOf(script), file] };
  return { config, turn: () => writeFileSync(file, ''), hasHeard: () => true }; // for it hears in our order
}

async function onHttp(script: Script): Promise<Mounted> {
  const play = player(script);
  let [isTurned, hasHeard] = [false, false];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request.setEncoding('utf8')) body += chunk;
    if (request.method !== 'POST') return void response.writeHead(405).end();
    const message = JSON.parse(body);
    const event = (each: Json) => `data: ${JSON.stringify({ jsonrpc: '2.0', ...each })}\n\n`;
    const send = (each: Json) => {
      if (!response.headersSent) response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(event(each));
    };
    const reply = ({ status, type = 'application/json', body, ...given }: Reply) => {
      const answer = { jsonrpc: '2.0', id: message.id, ...given };
      const isLater = [-32020, -32021, -32022].includes((answer.error as any)?.code);
      if (response.headersSent) return void response.end(event(answer));
      response
        .writeHead(status ?? (isLater ? 400 : 200), { 'content-type': type })
        .end(body ?? JSON.stringify(answer));
    };
    const hangUp = () => void (response.headersSent ? response.end() : response.destroy());
    play(message, { send, reply, hangUp, isTurned });
    hasHeard = true;
    if (message.id === undefined || message.method === undefined) response.writeHead(202).end();
  });
  const config = { type: 'http', url: `${await onLoopback(server)}/mcp` };
  return { config, turn: () => void (isTurned = true), hasHeard: () => hasHeard };
}

export type WireName = 'stdio' | 'http';
export const mount: Record<WireName, (script: Script) => Promise<Mounted>> = {
  stdio: onStdio,
  http: onHttp,
};
