// What many tests need: servers to start, a record of the wire, and nothing left running afterwards.

import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type http from 'node:http';
import type net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type * as mcp from '../../mcp.ts';
import { programArgs } from './compiled.ts';
import { root } from './installed.ts';
import { McpConnection, StdioTransport } from './subject.ts';

export { root };
/** What a runtime cannot do, in the words of the reference's table. */
export const notIn = (runtime: 'bun' | 'deno', why: string) => ({
  skip: runtime in process.versions && why,
});

export const goodServer = join(root, 'fixtures', 'server.mjs');

/** The configuration of a server with one bad habit; `good` is the one without. */
export function habit(name = 'good', argument = ''): { command: string; args: string[] } {
  return {
    command: process.execPath,
    args: [join(root, 'fixtures', 'habits.mjs'), name, argument],
  };
}

const cleaners: (() => unknown)[] = [];
export function later(clean: () => unknown): void {
  cleaners.push(clean);
}
/** For `afterEach(cleanUp)`: undoes what the test began, the last thing first. */
export async function cleanUp(): Promise<void> {
  for (const clean of cleaners.splice(0).reverse()) await clean();
}

/** Starts a server with nothing but the pipe, as in chapters 1 and 2. `call` waits for the answer under its id. */
export async function start(config: mcp.Json) {
  const transport = new StdioTransport('demo', config, 64 * 2 ** 20);
  const messages: any[] = [];
  const ends: Error[] = [];
  later(() => transport.close?.());
  const started = transport.start({
    message: (message) => messages.push(message),
    closed: (why) => ends.push(why),
  });
  await started.catch((error) => Promise.reject(ends[0] ?? error)); // the event tells more than the rejection
  let lastId = 0;
  const call = async (name: string, args?: mcp.Json): Promise<any> => {
    const id = ++lastId;
    await transport.send(toolCall(id, name, args));
    const answer = () => messages.find((message) => message?.id === id && message.result);
    await until(answer);
    return answer().result;
  };
  return { transport, messages, ends, call };
}

export function toolCall(id: number, name: string, args: mcp.Json = {}): mcp.Message {
  return { jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: args } };
}

export type Wire = [direction: 'out' | 'in', message: any][];
export type Opened = { connection: mcp.McpConnection; wire: Wire; warnings: string[] };

/** Options with one extension that has these parts. */
export const plugged = (
  parts: mcp.Parts,
  options: mcp.ConnectionOptions = {},
): mcp.ConnectionOptions => ({
  ...options,
  extensions: [() => parts, ...(options.extensions ?? [])],
});

/** Starts a server without shaking hands. */
export async function connect(
  config: mcp.Json,
  options: mcp.ConnectionOptions = {},
): Promise<Opened> {
  const wire: Wire = [];
  const warnings: string[] = [];
  const connection = new McpConnection('demo', config, {
    onWire: (direction, message) => wire.push([direction, message]),
    onWarning: (warning) => warnings.push(warning),
    ...options,
  });
  later(() => connection.close?.()); // the programs of the first chapters cannot say goodbye
  await connection.connect();
  return { connection, wire, warnings };
}

/** Calls a tool with `request` alone, which is all that the chapters before `callTool` have, and returns its text. */
export async function call(
  connection: mcp.McpConnection,
  name: string,
  args: mcp.Json = {},
  options?: mcp.CallOptions,
): Promise<string> {
  const { content }: any = await connection.request(
    'tools/call',
    { name, arguments: args },
    options,
  );
  return content[0].text;
}

/** Starts a server and shakes hands. */
export async function open(config: mcp.Json, options?: mcp.ConnectionOptions): Promise<Opened> {
  const opened = await connect(config, options);
  await opened.connection.initialize();
  return opened;
}

/** The error of a promise that must fail. */
export async function rejection(promise: Promise<unknown>): Promise<any> {
  const nothing = Symbol();
  const error = await promise.then(
    () => nothing,
    (reason) => reason,
  );
  if (error === nothing)
    throw new Error('the promise should have been rejected, but it was fulfilled');
  return error;
}

export async function until(condition: () => unknown, what = `${condition}`): Promise<void> {
  for (const start = Date.now(); !condition(); await pause(10))
    if (Date.now() - start > 30_000) throw new Error(`waited 30 s in vain for: ${what}`);
}

export function pause(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, ms));
}

/** Lets a server of the test listen on this machine until the test is over. Returns its address. */
export async function onLoopback(server: http.Server | net.Server): Promise<string> {
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  later(() => {
    server.close();
    if ('closeAllConnections' in server) server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as net.AddressInfo).port}`;
}

export function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'mcp by hand ')); // with spaces, as on many people's machines
  later(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** The numbers in a file, one per line; none while there is no such file. */
export function pidsIn(file: string): number[] {
  try {
    return readFileSync(file, 'utf8').trim().split('\n').map(Number);
  } catch {
    return [];
  }
}

/** Is this process running? One that has died but that nobody has waited for (a zombie) is not. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return (
      process.platform !== 'linux' ||
      !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
    );
  } catch {
    return false;
  }
}

/** Waits until the processes that wrote their pids into a file are gone. A file without any is a mistake of the test. */
export async function allGone(file: string): Promise<void> {
  const pids = pidsIn(file);
  if (pids.length === 0) throw new Error(`no process has written its pid into ${file}`);
  await until(() => pids.every((pid) => !isRunning(pid)), `the end of ${pids}`);
}

/** The process behind a connection to fixtures/habits.mjs. */
export async function pidOf(connection: mcp.McpConnection): Promise<number> {
  return JSON.parse(await call(connection, 'where')).pid;
}

/** Runs a program of test/programs/ in a process of its own. */
export function run(program: string, args: string[] = [], env: NodeJS.ProcessEnv = {}) {
  const file = join(root, 'test', 'programs', program);
  const child = spawn(process.env.RUNTIME ?? process.execPath, [...programArgs(file), ...args], {
    cwd: root,
    env: { ...process.env, ...env },
  });
  later(() => child.kill('SIGKILL'));
  const seen = { output: '' };
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text) => (seen.output += text));
  const ended = new Promise<{ code: number | null; signal: NodeJS.Signals | null; output: string }>(
    (done) => child.on('close', (code, signal) => done({ code, signal, output: seen.output })),
  );
  return { child, seen, ended };
}
