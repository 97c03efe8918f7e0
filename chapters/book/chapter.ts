// chapter.ts: npm run chapter 5 [before | diff | code | page], or 15.1 for a stop inside a page.

import { join, relative } from 'node:path';
import { runDemo } from './demo.ts';
import { drawDemo } from './draw.ts';
import { pad, usage } from './files.ts';
import { chapterOf, nameOf, stepBefore, stepOf, type Book, type Step } from './pages.ts';
import {
  cached,
  demoOf,
  diff,
  refuseIfChanged,
  withDemo,
  workFolder,
  writeProgram,
} from './program.ts';

export async function chapterCommand(book: Book, args: string[]): Promise<void> {
  const [which = '', given = ''] = args.filter((arg) => arg !== '--');
  // Typed as a flag, npm may have kept it for itself.
  const kept = ['diff', 'code', 'page'].find((name) => process.env[`npm_config_${name}`]) ?? '';
  const word = given.replace(/^--/, '') || kept;
  const step = stepOf(which);
  const chapter = which === '' ? undefined : chapterOf(book, step);
  if (!chapter) {
    for (const { n, title, stops } of book.chapters)
      console.log(
        `${pad(n)}  ${title}${stops.length > 0 ? ` (also ${stops.map(nameOf).join(', ')})` : ''}`,
      );
    if (which) throw usage(`there is no chapter ${which}`);
    return console.log(
      '\nnpm run chapter 1 runs a chapter; behind the number: before, diff, code or page',
    );
  }
  if (step === 0) {
    console.log(`# ${chapter.title}\n`);
    return runDemo(book.root, demoOf(chapter), 60_000); // one file, which is no part of the program
  }
  refuseIfChanged(book, step);
  if (word === 'diff') return console.log(diff(book, step).join('\n'));
  if (word === 'code') {
    const folder = join(workFolder(book), `program-${which.padStart(2, '0')}`);
    writeProgram(book, step, folder, withDemo(book, chapter, step));
    return console.log(
      `The program as of chapter ${which} is in ${relative(process.cwd(), folder)}.`,
    );
  }
  const isRun = word === '' || word === 'before' || word === 'page';
  if (!isRun) throw usage(`there is no "${word}"; there are before, diff, code and page`);
  const on = word === 'before' ? stepBefore(book, step) : step;
  if (on === 0) return console.log('Before chapter 1 there is no program.');
  const { title, folder, demo } = stageDemo(book, step, on);
  if (word === 'page') return drawDemo(book, title, folder, demo);
  console.log(title);
  await runDemo(folder, demo);
}

/** The title that a demo is printed under, and where its program is. */
export function stageDemo(
  book: Book,
  step: Step,
  on: Step,
): { title: string; folder: string; demo: string } {
  const chapter = chapterOf(book, step)!;
  const folder = cached(book, `demo-${nameOf(step)}-on-${nameOf(on)}`);
  writeProgram(book, on, folder, withDemo(book, chapter, step));
  const title = `# ${chapter.title}, on the program as of chapter ${nameOf(on)}\n`;
  return { title, folder, demo: demoOf(chapter, step) };
}
