// wrong.ts: wrong solutions of an exercise, kept beside it in wrong.md, so that we know what its judge refuses. Each is a
// heading (the mistake), the inside of the hole, and the words that the verdict must contain:
//
//   ## the timer is not cleared
//   ```ts
//       this.pending.delete(id);
//   ```
//   Verdict: `ends by itself`
//
// Where it depends on the machine which of two faults shows first, the verdict is `one` or `the other`.

import { withInside, type Exercise } from './exercise.ts';
import { isFile, linesOf, read } from './files.ts';
import { fencesIn, type Book } from './pages.ts';

export type Wrong = { mistake: string; inside: string[]; words: string[] };

const FEWEST = 8;

export function wrongSolutions(book: Book, { chapter, wrong }: Exercise): Wrong[] {
  const file = `${chapter.folder}/${wrong}`;
  if (!isFile(book.root, file)) return [];
  const sections = `\n${read(book.root, file)}`.split('\n## ').slice(1);
  return sections.map((text) => {
    const [mistake = ''] = linesOf(text);
    const inside = fencesIn(text)[0]?.body ?? [];
    const words = /^Verdict: `(.*)`$/m.exec(text)?.[1]?.split('` or `') ?? [];
    return { mistake, inside, words };
  });
}

/** The learner's program, had they written this. */
export const solvedSo = (book: Book, exercise: Exercise, { inside }: Wrong): string =>
  withInside(book, exercise, inside);

export function problemsOfWrong(book: Book, exercise: Exercise): string[] {
  const {
    chapter: { folder },
    quotation: { page },
  } = exercise;
  const all = wrongSolutions(book, exercise);
  const file = `${folder}/${exercise.wrong}`;
  if (all.length < FEWEST)
    return [`${page}:1: ${file} has ${all.length} wrong solutions of the exercise, not ${FEWEST}`];
  const odd = all.filter(
    ({ inside, words }) => words.length === 0 || words.includes('') || inside.length === 0,
  );
  return odd.map(
    ({ mistake }) =>
      `${file}:1: "${mistake}" has no code, or no words that the verdict must contain`,
  );
}
