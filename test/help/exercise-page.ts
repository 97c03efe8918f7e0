// Exercises of the site in a browser: a solution is written into the page, and its verdict read.

import { pathToFileURL } from 'node:url';
import { join } from 'node:path';
import { exerciseFiles, exercisesInPage } from '../../chapters/book/site/exercises.ts';
import type { Exercise } from '../../chapters/book/exercise.ts';
import { put } from '../../chapters/book/files.ts';
import type { Verdict } from '../../chapters/book/judge.ts';
import { readBook } from '../../chapters/book/pages.ts';
import { wrongSolutions } from '../../chapters/book/wrong.ts';
import { folder } from './basics.ts';
import type { Page } from './chromium.ts';

export const book = readBook();

let written: Promise<string> | undefined;
/** The pages in a folder of the test's own: the address that `exercise-2.html` has as a file. */
async function exerciseAddress(name: string): Promise<string> {
  written ??= exerciseFiles(book).then((files) => {
    const at = folder();
    for (const [file, text] of files) put(join(at, file), text);
    return pathToFileURL(at).href;
  });
  return `${await written}/exercise-${name}.html`;
}

/** As if it had never been there: what the page before it shows is not looked at. */
export async function openExercise(page: Page, name: string): Promise<void> {
  await page.goTo('about:blank');
  await page.when('location.href === "about:blank"');
  await page.goTo(await exerciseAddress(name));
  await page.see(/Begin again/);
}

const LONGEST_MS = 80_000; // a page gives up before

/** Types a solution, or takes what is there; checks it, and waits for the verdict. */
export async function verdictIn(page: Page, inside?: string): Promise<Verdict> {
  const value = inside === undefined ? 'yours.value' : JSON.stringify(inside);
  await page.evaluate(
    `yours.value = ${value}, yours.dispatchEvent(new Event('input')), check.click()`,
  );
  const state = 'JSON.stringify([verdict.dataset.state, verdict.textContent])';
  for (const begin = Date.now(); Date.now() - begin < LONGEST_MS; ) {
    const [now, output] = JSON.parse(await page.evaluate(state));
    if (now !== 'judging') return { isGreen: now === 'green', output };
    await new Promise((done) => setTimeout(done, 20));
  }
  throw new Error('no verdict');
}

export type PageTrial = { exercise: Exercise; mistake: string; inside: string; words: string[] };

/** The wrong solutions of these exercises, or of all that the site has. */
export const wrongOnes = (names: string[]): PageTrial[] =>
  exercisesInPage(book)
    .filter(({ name }) => names.length === 0 || names.includes(name))
    .flatMap((exercise) =>
      wrongSolutions(book, exercise).map(({ mistake, inside, words }) => {
        return { exercise, mistake, inside: inside.join('\n'), words };
      }),
    );

/** What is odd about a verdict of a page, compared with what wrong.md says that Node's is. */
export function oddVerdict({ words }: PageTrial, { isGreen, output }: Verdict): string | undefined {
  if (isGreen) return 'green';
  if (words.some((each) => output.includes(each))) return undefined;
  return `red, but not for ${words.join(' or ')}:\n${output.slice(output.indexOf('✗'))}`;
}
