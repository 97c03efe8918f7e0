// draw.ts: npm run chapter 5 page. Runs a demo, watches its wire, and writes a page that draws
// it (chapter 30).

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { launch } from '../19-the-terminal/person-at-terminal.ts';
import { pageWith } from '../30-seeing/view.ts';
import { workFolder } from './program.ts';
import type { Book } from './pages.ts';

export const MESSAGE = /^\{"at":[\d.]+,("dir":|"type":"(prompt|query|answer)")/; // on a wire, or with a model

export async function drawDemo(book: Book, title: string, folder: string, demo: string) {
  const name = title.replace(/^# /, '').split(',')[0]!;
  const file = join(workFolder(book), name.toLowerCase().replace(/\W+/g, '-'));
  mkdirSync(workFolder(book), { recursive: true });
  const { trace } = await watched(`${file}.jsonl`, title, folder, demo);
  const count = trace.split('\n').filter((line) => MESSAGE.test(line)).length;
  const nothing = JSON.stringify({ type: 'heading', text: 'This demo sends no message.' });
  writeFileSync(`${file}.html`, pageWith(count === 0 ? `${trace}${nothing}` : trace, name));
  const url = pathToFileURL(`${file}.html`);
  const drawn = count === 1 ? '1 message is drawn' : `${count} messages are drawn`;
  const what = count === 0 ? 'This demo sends no message' : drawn;
  const isOpened = process.stdout.isTTY && launch(url);
  console.log(
    `${what}; ${isOpened ? 'this file opens' : 'open this file'} in a browser:\n${url.href}`,
  );
}

/** Runs the demo, and returns the trace of it and what it prints. */
export async function watched(
  file: string,
  title: string,
  folder: string,
  demo: string,
  { env = process.env, limitMs = 5000 } = {},
): Promise<{ trace: string; printed: string }> {
  writeFileSync(file, `${JSON.stringify({ trace: 1, program: title.trim() })}\n`);
  const descriptor = openSync(file, 'a');
  const runner = fileURLToPath(new URL('watch.ts', import.meta.url));
  const args = ['--import', import.meta.resolve('tsx'), runner, folder, demo, `${limitMs}`];
  const child = spawn(process.execPath, args, {
    env,
    stdio: ['ignore', 'pipe', 'inherit', descriptor],
  });
  closeSync(descriptor);
  const [printed] = await Promise.all([text(child.stdout!), once(child, 'close')]);
  const trace = readFileSync(file, 'utf8');
  rmSync(file);
  return { trace, printed };
}
