// record.ts: is put between any client and a server on stdio, and writes down what they say. Every
// byte goes on as it came; only the copy for the trace is parsed, and secrets are masked in it.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:os';
import type { Readable, Writable } from 'node:stream';
import { findCommand, LineBuffer, parseMessage, type Json } from '../../mcp.ts';
import type { Direction } from './more/read-trace.ts';

/** Is given a record, or what makes one of it later: to parse a message takes time. */
export type Write = (record: Json | (() => Json), size?: number) => void;

export const MAX_COPIED = 64 * 2 ** 20; // bytes; a longer line goes on, but not into the trace
const SIGNALS: NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'];

type StdioStreams = { stdin: Readable & { isTTY?: boolean }; stdout: Writable; stderr: Writable };

/** Runs a server between these streams. Resolves with the code to exit with. */
export async function recordBetween(
  command: string,
  args: string[],
  server: string,
  write: Write,
  ways: StdioStreams = process,
): Promise<number> {
  const child = spawn(findCommand(command, process.env), args, {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: process.env, // it is the user's own command, and the client's choice what it may see
  });
  const ended = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>;
  const stopPassing = passSignals(child, ways.stdin.isTTY ?? false);
  write({ type: 'server', server, state: 'started', transport: 'stdio' });
  copy(ways.stdin, child.stdin, (text) => write(() => seen('out', server, text), text.length));
  copy(child.stdout, ways.stdout, (text) => write(() => seen('in', server, text), text.length));
  copy(child.stderr, ways.stderr, (text) => write({ server, stderr: text }, text.length));
  const [code, signal] = await ended;
  stopPassing();
  write({ type: 'server', server, state: 'ended', code, signal });
  return code ?? 128 + (signal ? constants.signals[signal] : 0);
}

/** What we are told to do, the server is told. It decides when to end, and we end after it: so until
 *  then the listeners of the program, which would exit, are put aside. At a terminal Ctrl-C reaches
 *  both, and many servers take a second one for "at once". */
function passSignals(child: ChildProcess, isAtTerminal: boolean) {
  const pass = (signal: NodeJS.Signals) => {
    if (!isAtTerminal || signal === 'SIGTERM') child.kill(signal);
  };
  const aside = SIGNALS.map((signal) => [signal, process.listeners(signal)] as const);
  for (const signal of SIGNALS) process.removeAllListeners(signal).on(signal, pass);
  return () => {
    for (const [signal, listeners] of aside) {
      process.off(signal, pass);
      for (const listener of listeners) process.on(signal, listener);
    }
  };
}

export function seen(dir: Direction, server: string, text: string): Json {
  const message = parseMessage(text);
  const isMessage = typeof message === 'object' && message !== null;
  return isMessage ? { dir, server, msg: message } : { dir, server, noise: text };
}

/** Passes bytes on at once, respecting a slow reader, and tells the whole lines in them. */
function copy(from: Readable, to: Writable, tell: (line: string) => void): void {
  const read = lineReader(tell);
  from.on('data', (chunk: Buffer) => {
    if (!to.write(chunk)) {
      from.pause();
      to.once('drain', () => from.resume());
    }
    read(chunk);
  });
  from.on('end', () => {
    const isOurs = to === process.stdout || to === process.stderr;
    if (!isOurs) to.end();
  });
  from.on('close', () => read(Buffer.from('\n')));
  from.on('error', () => {}); // then it closes
  to.on('error', () => from.destroy()); // the reader has left, and the writer must learn that
}

/** Takes bytes, and tells each line that is whole. */
function lineReader(tell: (line: string) => void): (chunk: Buffer) => void {
  const buffer = new LineBuffer();
  let isTooLong = false;
  const take = (line: string) => {
    if (isTooLong) tell(`(a line of more than ${MAX_COPIED} bytes)`);
    else if (line.trim() !== '') tell(line.replace(/\r$/, ''));
    isTooLong = false;
  };
  return (chunk) => {
    const whole = buffer.takeWhole(chunk).toString('utf8');
    whole.split('\n').slice(0, -1).forEach(take); // behind the last LF is nothing
    isTooLong ||= buffer.unreadBytes > MAX_COPIED;
    if (isTooLong) buffer.clear();
  };
}
