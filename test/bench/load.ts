// What servers do under somebody else's load: wrk, from Debian (apt-get install wrk). Ours of chapter 29 and `serve`, beside
// those of both SDKs, each alone on a core, sixteen connections from the other one. Answers are JSON.

import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { installed, root } from '../help/installed.ts';
import { unpacked } from './call.ts';
import { compiled, compileServer, onCore, startServer } from './server.ts';

const SECONDS = 5;
const CONNECTIONS = 16;
const META = 'io.modelcontextprotocol/';
const LATER = '2026-07-28';
const EARLIER = '2025-11-25';

type Started = { child: ChildProcess; url: string; token?: string };
type Subject = { what: string; era: string; call: object; start: () => Promise<Started> };
type Load = { perSecond: number; p50: number; p99: number; bad: number };

/** What one request says. */
function request({ era, call }: Subject, token?: string) {
  const isLater = era === 'stateless';
  const { name } = call as { name: string };
  const _meta = { [`${META}protocolVersion`]: LATER, [`${META}clientCapabilities`]: {} };
  const params = isLater ? { ...call, _meta } : call;
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': isLater ? LATER : EARLIER,
    ...(isLater && { 'mcp-method': 'tools/call', 'mcp-name': name }),
    ...(token && { authorization: `Bearer ${token}` }),
  };
  return { headers, body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params } };
}

async function post(url: string, headers: Record<string, string>, body: object) {
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
  return { response, text: await response.text() };
}

/** The session's id, where there is one. */
async function shakeHands(url: string, headers: Record<string, string>) {
  const clientInfo = { name: 'load', version: '1' };
  const params = { protocolVersion: EARLIER, capabilities: {}, clientInfo };
  const hello = { jsonrpc: '2.0', id: 0, method: 'initialize', params };
  const { response } = await post(url, headers, hello);
  const session = { 'mcp-session-id': response.headers.get('mcp-session-id')! };
  await post(
    url,
    { ...headers, ...session },
    {
      jsonrpc: '2.0',
      method: 'notifications/initialized',
    },
  );
  return session;
}

const SCRIPT = `
wrk.method = 'POST'
local id = 1
function request() -- of two that are under way in one session the ids must differ
  id = id + 1
  return wrk.format(nil, nil, nil, (wrk.body:gsub('"id":1', '"id":' .. id, 1)))
end
function done(summary, latency)
  local each = summary.errors
  io.write(string.format('{"perSecond": %f, "p50": %f, "p99": %f, "bad": %d}\\n',
    summary.requests / summary.duration * 1e6, latency:percentile(50), latency:percentile(99),
    each.connect + each.read + each.write + each.status + each.timeout))
end
`;

function runWrk(url: string, headers: Record<string, string>, body: object): Load {
  const folder = mkdtempSync(join(tmpdir(), 'wrk-'));
  const script = join(folder, 'call.lua');
  const lines = Object.entries(headers).map(
    ([name, value]) => `wrk.headers[${JSON.stringify(name)}] = ${JSON.stringify(value)}`,
  );
  writeFileSync(
    script,
    [SCRIPT, ...lines, `wrk.body = [==[${JSON.stringify(body)}]==]`].join('\n'),
  );
  const flags = ['-t1', `-c${CONNECTIONS}`, `-d${SECONDS}s`, '-s', script, url];
  const [command = '', ...rest] = onCore(1, ['wrk', ...flags]);
  try {
    return JSON.parse(`${execFileSync(command, rest)}`.trim().split('\n').at(-1)!);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** What the process has in memory, in MB. Linux only. */
function memoryOf({ pid }: ChildProcess): number {
  const [, kilobytes] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))!;
  return Number(kilobytes) / 1024;
}

async function measure(subject: Subject): Promise<Load & { memory: number }> {
  const { child, url, token } = await subject.start();
  try {
    const { headers, body } = request(subject, token);
    const session = subject.era === 'handshake' ? await shakeHands(url, headers) : {};
    const all = { ...headers, ...session };
    const { response, text } = await post(url, all, body);
    if (response.status !== 200 || /"isError":true|"error"/.test(text))
      throw new Error(`${subject.what}: ${response.status} ${text.slice(0, 300)}`);
    runWrk(url, all, body); // until it is warm
    return { ...runWrk(url, all, body), memory: memoryOf(child) };
  } finally {
    child.stdin?.end();
    child.kill();
  }
}

/** The program itself, as the package has it. */
async function startServe(program: string): Promise<Started> {
  const folder = mkdtempSync(join(tmpdir(), 'served-'));
  writeFileSync(join(folder, 'note.txt'), '42\n');
  const args = [program, 'serve', folder, '--http', '0'];
  const [command = '', ...rest] = onCore(0, [process.execPath, ...args]);
  const child = spawn(command, rest, {
    cwd: folder,
    env: { ...process.env, HOME: folder },
    stdio: ['pipe', 'ignore', 'pipe'],
  });
  let said = '';
  const url = await new Promise<string>((done, fail) => {
    child.on('exit', () => fail(new Error(said)));
    child.stderr.setEncoding('utf8').on('data', (text) => {
      said += text;
      const [address] = /http:\/\/\S+/.exec(said) ?? [];
      if (address && /Bearer \S+\n/.test(said)) done(address);
    });
  });
  const token = /Bearer (\S+)/.exec(said)?.[1];
  return { child, url, token };
}

export async function benchLoad(): Promise<number> {
  if (spawnSync('wrk', ['--version']).error) throw new Error('apt-get install wrk');
  compileServer();
  const peer = (name: string) => join(root, 'test', 'real', 'peers', name);
  const v1 = installed('@modelcontextprotocol/sdk@1.32.2');
  const v2 = installed('@modelcontextprotocol/server@2.4.0', '@modelcontextprotocol/node@2.1.2');
  const ours = [join(root, 'test', 'bench', 'our-server.mjs'), compiled];
  const program = unpacked();
  const add = { name: 'add', arguments: { a: 2, b: 40 } };
  const read = { name: 'read', arguments: { path: 'note.txt' } };
  const adding = (what: string, era: string, args: string[]): Subject => ({
    what,
    era,
    call: add,
    start: () => startServer(args),
  });
  const serving = (era: string): Subject => ({
    what: '`serve`, read',
    era,
    call: read,
    start: () => startServe(program),
  });
  const subjects = [
    adding('chapter 29, add', 'handshake', ours),
    adding('SDK v1, add', 'handshake', [peer('sdk-v1.mjs'), v1, '--sessions', '--json']),
    adding('SDK v2, add', 'handshake', [peer('sdk-v2.mjs'), v2, '--sessions', '--json']),
    serving('handshake'),
    adding('chapter 29, add', 'stateless', ours),
    adding('SDK v2, add', 'stateless', [peer('sdk-v2.mjs'), v2, '--modern', '--json']),
    serving('stateless'),
  ];
  console.log('\n| wrk, 16 connections | era | calls | p50 | p99 | memory |');
  console.log('| --- | --- | --- | --- | --- | --- |');
  let failures = 0;
  for (const subject of subjects) {
    const { perSecond, p50, p99, bad, memory } = await measure(subject);
    if (bad > 0) failures++;
    const cells = [
      subject.what,
      subject.era,
      `${Math.round(perSecond).toLocaleString('en')} /s${bad > 0 ? `, ${bad} failed` : ''}`,
      `${(p50 / 1000).toFixed(2)} ms`,
      `${(p99 / 1000).toFixed(2)} ms`,
      `${Math.round(memory)} MB`,
    ];
    console.log(`| ${cells.join(' | ')} |`);
  }
  return failures;
}
