// small.mjs: a client that fits on a screen. It speaks the museum's contract when it's started:
//
//   npm run museum client 'node chapters/32-other-peoples-bugs/small.mjs' without http,modern

import { spawn } from 'node:child_process';
import { StringDecoder } from 'node:string_decoder';
import { pathToFileURL } from 'node:url';

export class SmallClient {
  waiting = new Map(); // id → { resolve, reject }
  lastId = 0;

  /** `write` sends one message. */
  constructor(write) {
    this.write = write;
  }

  request(method, params) {
    const id = ++this.lastId;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.write({ jsonrpc: '2.0', id, method, params });
    });
  }

  /** One line of the server's. */
  take(line) {
    let message;
    try {
      message = JSON.parse(line);
    } catch {
      return;
    }
    if (message?.jsonrpc !== '2.0') return;
    const { id, method, result, error } = message;
    if (method !== undefined) {
      if (id !== undefined) this.write({ jsonrpc: '2.0', id, ...answerTo(method) });
      return;
    }
    const waiter = this.waiting.get(id);
    if (!waiter) return;
    this.waiting.delete(id);
    if (error) waiter.reject(new Error(error.message));
    else waiter.resolve(result);
  }
}

/** What we say when the server asks. */
export const answerTo = (method) =>
  method === 'ping' ? { result: {} } : { error: { code: -32601, message: 'Method not found' } };

// ── On stdio, as a program that the museum can start ──

const LIMIT_MS = Number(process.env.MUSEUM_TIMEOUT_MS) || 10_000;
const HELLO = {
  protocolVersion: '2025-11-25',
  capabilities: {},
  clientInfo: { name: 'small', version: '1.0.0' },
};

export async function speak(Client, target, steps) {
  const { command, args } = target;
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.on('error', () => {});
  const gone = new Promise((done) => child.once('exit', done));
  const client = new Client((message) => child.stdin.write(`${JSON.stringify(message)}\n`));
  const decoder = new StringDecoder('utf8');
  let rest = '';
  child.stdout.on('data', (chunk) => {
    const lines = (rest + decoder.write(chunk)).split('\n');
    rest = lines.pop();
    for (const line of lines) if (line.trim()) client.take(line);
  });
  const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
  const inTime = (answer) => {
    const late = new Promise((_, reject) =>
      setTimeout(reject, LIMIT_MS, new Error('no answer in time')).unref(),
    );
    return Promise.race([answer, late]);
  };
  say({ ready: 0 });
  for (const [index, step] of steps.entries()) {
    const began = Date.now();
    try {
      if (index === 0) {
        await inTime(client.request('initialize', HELLO));
        client.write({ jsonrpc: '2.0', method: 'notifications/initialized' });
      }
      const params = { name: step.call, arguments: step.args ?? {} };
      const request = step.list ? ['tools/list', {}] : ['tools/call', params];
      const out = JSON.stringify(await inTime(client.request(...request)));
      say({ step: index, ok: true, out, ms: Date.now() - began });
    } catch (error) {
      say({ step: index, ok: false, error: error.message, ms: Date.now() - began });
    }
  }
  child.stdin.end();
  await gone;
  say({ done: 1 });
}

const [, started = '', ...words] = process.argv;
if (started && import.meta.url === pathToFileURL(started).href)
  await speak(SmallClient, ...words.map((word) => JSON.parse(word)));
