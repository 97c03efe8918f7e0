// demo.ts: runs the demo of a chapter on a program that was written into a folder.

import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

export const STOPPED = 'Stopped after five seconds:';

/** Runs a demo in this process. It may wait without end where something is still missing: we do not. */
export async function runDemo(folder: string, demo: string, limitMs = 5000): Promise<void> {
  process.chdir(folder);
  let isOver = false;
  const end = (what: string, error: unknown) => {
    const missing = /'([^']+)' imported from/.exec(`${error}`)?.[1]; // in words that are the same in every Node
    const text = missing === undefined ? `${error}` : `there is no ${missing}`;
    const words = text.replaceAll(pathToFileURL(folder).href, '.').replaceAll(folder, '.');
    if (!isOver) console.log(`${what} ${words}`);
    isOver = true;
    process.exit(1);
  };
  process.on('uncaughtException', (error) => end('The whole program ended:', error));
  process.on('exit', () => {
    if (isOver) return;
    console.log('The program ended, but not its demo: what it waits for can no longer come.');
    process.exitCode = 1;
  });
  const stop = () => end(STOPPED, 'it still waits.');
  setTimeout(stop, limitMs).unref();
  await import(pathToFileURL(join(folder, demo)).href).catch((error) =>
    end('The demo failed:', error),
  );
  isOver = true;
  process.exit(0); // the programs of the first chapters cannot say goodbye; their servers see the end of stdin
}

// The check of the console blocks has written the program already: then this file alone is quicker than the whole command.
const [, started = '', folder = '', demo = '', limitMs] = process.argv;
if (resolve(started) === fileURLToPath(import.meta.url))
  await runDemo(resolve(folder), demo, Number(limitMs));
