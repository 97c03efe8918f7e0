// chapter.ts: npm run chapter 5 [-- --before | --diff | --code], or 15.1 for a stop inside a page.

import { join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { pad, usage } from './files.ts';
import { chapterOf, nameOf, stepBefore, stepOf, type Book, type Step } from './pages.ts';
import { cached, demoOf, diff, refuseIfChanged, withDemo, workFolder, writeProgram } from './program.ts';

export async function chapterCommand(book: Book, which: string, given = ''): Promise<void> {
  // Without the lone -- before it, npm keeps a flag for itself.
  const kept = ['diff', 'code'].find((name) => process.env[`npm_config_${name}`]);
  const flag = given.replace(/^(?=[a-z])/, '--') || (kept ? `--${kept}` : '');
  const step = stepOf(which);
  const chapter = chapterOf(book, step);
  if (!chapter) {
    for (const { n, title, stops } of book.chapters)
      console.log(`${pad(n)}  ${title}${stops.length > 0 ? ` (also ${stops.map(nameOf).join(', ')})` : ''}`);
    if (which) throw usage(`there is no chapter ${which}`);
    return console.log('\nnpm run chapter 1 runs a chapter; add -- --before, -- --diff or -- --code');
  }
  refuseIfChanged(book, step);
  if (flag === '--diff') return console.log(diff(book, step).join('\n'));
  if (flag === '--code') {
    const folder = join(workFolder(book), `program-${which.padStart(2, '0')}`);
    writeProgram(book, step, folder, withDemo(book, chapter, step));
    return console.log(`The program as of chapter ${which} is in ${relative(process.cwd(), folder)}.`);
  }
  if (flag !== '' && flag !== '--before') throw usage(`there is no ${flag}; there are --before, --diff and --code`);
  const on = flag === '--before' ? stepBefore(book, step) : step;
  if (on === 0) return console.log('Before chapter 1 there is no program.');
  console.log(`# ${chapter.title}, on the program as of chapter ${nameOf(on)}\n`);
  await runDemo(book, step, on);
}

/** Runs the demo of a step in this process, on the program as of that step or another. That may wait without end where
 *  something is still missing: we do not. */
export async function runDemo(book: Book, step: Step, on: Step): Promise<void> {
  const chapter = chapterOf(book, step)!;
  const folder = cached(book, `demo-${nameOf(step)}-on-${nameOf(on)}`);
  writeProgram(book, on, folder, withDemo(book, chapter, step));
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
  setTimeout(() => end('Stopped after five seconds:', 'it still waits.'), 5000).unref();
  await import(pathToFileURL(join(folder, demoOf(chapter, step))).href).catch((error) => end('The demo failed:', error));
  isOver = true;
  process.exit(0); // the programs of the first chapters cannot say goodbye; their servers see the end of stdin
}
