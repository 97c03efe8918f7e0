// helper.ts: a command of the configuration that prints something secret: headers, a token, a list.
// What it prints goes where it is needed, and is shown nowhere, not even in an error.

import { spawn } from 'node:child_process';
import { findCommand, safeEnv, withSafePath, type Json } from '../../mcp.ts';
import { commandEnd } from '../23-the-server-asks/more/hooks.ts';

export const COMMAND_MS = 10_000;

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
