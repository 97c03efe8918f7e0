// helper.ts: a command of the configuration that prints something secret: headers, a token, a list.
// What it prints goes where it is needed, and is shown nowhere, not even in an error.

import { spawn, type ChildProcess } from 'node:child_process';
import type { Readable } from 'node:stream';
import {
  findCommand,
  leaveNoOrphan,
  living,
  safeEnv,
  signalGroup,
  withSafePath,
  type Json,
} from '../../mcp.ts';

export const COMMAND_MS = 10_000;
const MAX_OUTPUT = 2 ** 20; // characters

export type HelperCommand = string | string[];
type HelperOptions = { cwd?: string; env?: NodeJS.ProcessEnv; timeoutMs?: number };

/** A list is started as it is; a text is a line for the shell, as Claude Code has it. */
export function isLine(value: unknown): value is HelperCommand {
  const isText = (each: unknown) => typeof each === 'string' && each !== '' && !each.includes('\0');
  return Array.isArray(value) ? value.length > 0 && value.every(isText) : isText(value);
}

/** What it prints. An error says how it ended, and nothing that it said. */
export async function outputOf(line: HelperCommand, place: HelperOptions = {}): Promise<string> {
  const { cwd = process.cwd(), timeoutMs = COMMAND_MS } = place;
  const env = withSafePath({
    ...safeEnv(),
    CLAUDE_PROJECT_DIR: process.cwd(),
    ...place.env,
  });
  const [command, ...args] = typeof line === 'string' ? shellFor(line) : line;
  const child = spawn(findCommand(command!, env), args, {
    cwd,
    env,
    stdio: ['ignore', 'pipe', 'ignore'],
    detached: process.platform !== 'win32',
  });
  const { code, killedBy, output } = await commandEnd(child, timeoutMs);
  if (code === 0) return output;
  throw new Error(`it ended with ${killedBy ?? `exit code ${code}`}`);
}

function shellFor(line: string) {
  return process.platform === 'win32'
    ? ['cmd.exe', '/d', '/s', '/c', line]
    : ['/bin/sh', '-c', line];
}

type CommandEnd = { code: number | null; killedBy: string | null; output: string };

/** Waits for a command that leads a group of its own. An error says nothing that it printed. */
function commandEnd(
  child: ChildProcess & { stdout: Readable },
  timeoutMs: number,
): Promise<CommandEnd> {
  leaveNoOrphan(child);
  return new Promise((done, fail) => {
    let output = '';
    const stop = (why: string) => {
      signalGroup(child, 'SIGKILL');
      fail(new Error(why));
    };
    const timer = setTimeout(() => stop(`it took longer than ${timeoutMs / 1000} s`), timeoutMs);
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      if (output.length > MAX_OUTPUT) stop(`it printed more than ${MAX_OUTPUT} characters`);
    });
    child.on('error', ({ code }: NodeJS.ErrnoException) =>
      fail(new Error(`it could not be started (${code})`)),
    );
    child.on('close', (code, killedBy) => {
      living.delete(child);
      clearTimeout(timer);
      done({ code, killedBy, output });
    });
  });
}

/** JSON.parse quotes what it cannot read, and that may be a token. */
export function parsedQuietly(text: string): unknown {
  try {
    return JSON.parse(text) as Json;
  } catch {
    throw new Error('it printed something that is not JSON');
  }
}
