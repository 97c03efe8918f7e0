// aimock, a server of models that others wrote, at a pinned version: it answers by fixtures.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { folder, later, until } from './basics.ts';
import { installed } from './installed.ts';

const PACKAGE = '@copilotkit/aimock';

/** Starts it on this machine, and returns its address. */
export async function startAimock(fixtures: unknown[]): Promise<string> {
  const program = join(installed(`${PACKAGE}@1.43.0`), 'node_modules', PACKAGE, 'dist', 'cli.js');
  const file = join(folder(), 'fixtures.json');
  writeFileSync(file, JSON.stringify({ fixtures }));
  const flags = ['-p', '0', '-h', '127.0.0.1', '-f', file, '--log-level', 'info'];
  const child = spawn(process.execPath, [program, ...flags]);
  later(() => child.kill());
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text) => (output += text));
  const found = () => /http:\/\/[\w.]+:\d+/.exec(output);
  await until(() => found() || child.exitCode !== null, 'the address of aimock');
  return found()?.[0] ?? assert.fail(output);
}
