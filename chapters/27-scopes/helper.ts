// helper.ts: a command of the configuration that prints something secret: headers, a token, a list.
// What it prints goes where it is needed, and is shown nowhere, not even in an error.

import { spawn } from 'node:child_process';
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
const MAX_BYTES = 2 ** 20;

export type Line = string | string[];
export type Place = { cwd?: string; env?: NodeJS.ProcessEnv; timeoutMs?: number };

/** A list is started as it is; a text is a line for the shell, as Claude Code has it. */
export function isLine(value: unknown): value is Line {
  const isText = (each: unknown) =>
    typeof each === 'string' && each !== '' && !each.includes('\0');
  return Array.isArray(value) ? value.length > 0 && value.every(isText) : isText(value);
}

/** What it prints. An error says how it ended, and nothing that it said. */
export async function outputOf(line: Line, place: Place = {}): Promise<string> {
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
  leaveNoOrphan(child);
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const stop = (why: string) => {
      signalGroup(child, 'SIGKILL');
      reject(new Error(why));
    };
    const timer = setTimeout(
      () => stop(`it took longer than ${timeoutMs / 1000} s`),
      timeoutMs,
    );
    child.stdout.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      size += chunk.length;
      if (size > MAX_BYTES) stop(`it printed more than ${MAX_BYTES} bytes`);
    });
    child.on('error', (error: NodeJS.ErrnoException) =>
      reject(new Error(`it could not be started (${error.code})`)),
    );
    child.on('close', (code, signal) => {
      living.delete(child);
      clearTimeout(timer);
      if (code === 0) resolve(Buffer.concat(chunks).toString('utf8'));
      else reject(new Error(`it ended with ${signal ?? `exit code ${code}`}`));
    });
  });
}

function shellFor(line: string): string[] {
  return process.platform === 'win32'
    ? ['cmd.exe', '/d', '/s', '/c', line]
    : ['/bin/sh', '-c', line];
}

/** JSON.parse quotes what it cannot read, and that may be a token. */
export function parsedQuietly(text: string): unknown {
  try {
    return JSON.parse(text) as Json;
  } catch {
    throw new Error('it printed something that is not JSON');
  }
}
