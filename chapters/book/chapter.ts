// chapter.ts: npm run chapter 5 [-- --before | --diff | --code]

import { join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { pad, usage } from './files.ts';
import type { Book, Chapter } from './pages.ts';
import { cached, diff, refuseIfChanged, withDemo, workFolder, writeProgram } from './program.ts';

export async function chapterCommand(book: Book, which: string, given = ''): Promise<void> {
  // Without the lone -- before it, npm keeps a flag for itself.
  const kept = ['diff', 'code'].find((name) => process.env[`npm_config_${name}`]);
  const flag = given.replace(/^(?=[a-z])/, '--') || (kept ? `--${kept}` : '');
  const chapter = book.chapters.find(({ n }) => n === Number(which));
  if (!chapter) {
    for (const { n, title } of book.chapters) console.log(`${pad(n)}  ${title}`);
    if (which) throw usage(`there is no chapter ${which}`);
    return console.log('\nnpm run chapter 1 runs a chapter; add -- --before, -- --diff or -- --code');
  }
  const { n, title } = chapter;
  refuseIfChanged(book, n);
  if (flag === '--diff') return console.log(diff(book, n).join('\n'));
  if (flag === '--code') {
    const folder = join(workFolder(book), `program-${pad(n)}`);
    writeProgram(book, n, folder, withDemo(book, chapter));
    return console.log(`The program as of chapter ${n} is in ${relative(process.cwd(), folder)}.`);
  }
  if (flag !== '' && flag !== '--before') throw usage(`there is no ${flag}; there are --before, --diff and --code`);
  const on = flag === '--before' ? n - 1 : n;
  if (on === 0) return console.log('Before chapter 1 there is no program.');
  console.log(`# ${title}, on the program as of chapter ${on}\n`);
  await runDemo(book, chapter, on);
}

/** Runs a demo in this process, on the program as of chapter n. That may wait for ever where something is still
 *  missing: we do not. */
export async function runDemo(book: Book, chapter: Chapter, n: number): Promise<void> {
  const folder = cached(book, `demo-${pad(chapter.n)}-on-${pad(n)}`);
  writeProgram(book, n, folder, withDemo(book, chapter));
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
  await import(pathToFileURL(join(folder, chapter.folder, 'demo.ts')).href).catch((error) => end('The demo failed:', error));
  isOver = true;
  process.exit(0); // the programs of the first chapters cannot say goodbye; their servers see the end of stdin
}
