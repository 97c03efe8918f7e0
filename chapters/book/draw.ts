// draw.ts: npm run chapter 5 -- --page. Runs a demo, takes the messages from what it prints, and
// writes a page that draws them (chapter 30).

import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { pageWith } from '../30-seeing/view.ts';
import { workFolder } from './program.ts';
import type { Book } from './pages.ts';

const WIRE = /^\s*([→←])\s*(?:(\S+) )?(\{.*\})$/;

/** An arrow and JSON, as our demos print a message; with the name of a server if there are several. */
export function recordIn(line: string, at: number): string | undefined {
  const [, arrow, server = 'server', json = ''] = WIRE.exec(line) ?? [];
  if (!arrow) return undefined;
  try {
    const msg: unknown = JSON.parse(json);
    return JSON.stringify({ at, dir: arrow === '→' ? 'out' : 'in', server, msg });
  } catch {
    return undefined; // it was cut, to fit on the page of a book
  }
}

export async function drawDemo(book: Book, title: string, folder: string, demo: string) {
  const runner = fileURLToPath(new URL('demo.ts', import.meta.url));
  const args = ['--import', import.meta.resolve('tsx'), runner, folder, demo];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const begin = performance.now();
  const records = [JSON.stringify({ trace: 1, program: title.trim() })];
  let rest = '';
  for await (const text of child.stdout.setEncoding('utf8')) {
    const lines = `${rest}${text}`.split('\n');
    rest = lines.pop()!;
    const found = lines.map((line) => recordIn(line, Math.round(performance.now() - begin)));
    records.push(...found.filter((line) => line !== undefined));
  }
  if (records.length === 1) return console.log('This demo shows no messages, so there is nothing to draw.');
  const name = title.replace(/^# /, '').split(',')[0]!;
  const file = join(workFolder(book), `${name.toLowerCase().replace(/\W+/g, '-')}.html`);
  mkdirSync(workFolder(book), { recursive: true });
  writeFileSync(file, pageWith(records.join('\n'), name));
  console.log(`${records.length - 1} messages are drawn; open this file in a browser:`);
  console.log(pathToFileURL(file).href);
}
