// The official suite as a program, for both judges: client and server.

import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { installed, root } from '../help/installed.ts';

const SUITE = '@modelcontextprotocol/conformance';
const VERSION = '0.2.0-alpha.12';
export const SIDE_BY_SIDE = 4;

export type Ended = { code: number; stdout: string; stderr: string };

/** Runs it with these arguments. It needs a newer Node than we do, or a little help (shim.mjs). */
export function runSuite(options: string[], more: NodeJS.ProcessEnv = {}): Promise<Ended> {
  const env = { ...process.env, NODE_EXTRA_CA_CERTS: '', ...more }; // as in vitest.config.ts
  const suite = join(installed(`${SUITE}@${VERSION}`), 'node_modules', SUITE, 'dist', 'index.js');
  const shim = new URL('shim.mjs', import.meta.url).href;
  const args = ['--import', shim, suite, ...options];
  const limits = { timeout: 120_000, killSignal: 'SIGKILL', maxBuffer: 2 ** 28 } as const;
  return new Promise((done) =>
    execFile(process.execPath, args, { cwd: root, env, ...limits }, (error, stdout, stderr) =>
      done({ code: error ? Number(error.code) || 1 : 0, stdout, stderr }),
    ),
  );
}

export async function inParallel<T, R>(
  items: T[],
  workers: number,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  const queue = items.entries();
  const worker = async () => {
    for (const [n, item] of queue) results[n] = await work(item);
  };
  await Promise.all(Array.from({ length: workers }, worker));
  return results;
}
