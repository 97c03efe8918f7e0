// wrong.ts: wrong solutions of an exercise, kept beside it in wrong.md, so that we know what its judge refuses. Each is a
// heading (the mistake), the inside of the hole, the rule that it breaks, and the words that the verdict must contain:
//
//   ## the timer is not cleared
//   ```ts
//       this.pending.delete(id);
//   ```
//   Rule: 2: no timer keeps the program alive
//   Verdict: `ends by itself`
//
// Where it depends on the machine which of two faults shows first, the verdict is `one` or `the other`.
//
// The rules are on the page: the first numbered list under "## Exercise: …", at most three, with the line that says what
// is to be written before it. `Rule: 2` is the second of them. Where a rule has several sentences, words of one of them
// follow, as they are on the page, so that who changes the page sees what hangs on it. Each sentence needs a wrong solution
// of its own; what only explains is in brackets, or below the list. What only the judge teaches is `Rule: taught`.
//
// right.md, in the same form without Rule and Verdict, has solutions that must pass: ours is not the only right one.

import { withInside, type Exercise } from './exercise.ts';
import { isFile, linesOf, read } from './files.ts';
import { fencesIn, root, type Book } from './pages.ts';

export type Wrong = { mistake: string; inside: string[]; words: string[]; rule: string };

const FEWEST = 20;
const FEWEST_YET = 8; // of those in the list below
const MOST_RULES = 3;
/** What only the judge teaches: its verdict is where a learner hears of it. */
const TAUGHT = 'taught';

/** Exercises whose rules are not numbered yet, or not yet broken one by one. The list only gets shorter: what is done and
 *  still in it is a problem, too. */
export const NOT_YET: string[] = [];

export const wrongSolutions = (book: Book, { chapter, wrong }: Exercise): Wrong[] =>
  solutionsIn(book, `${chapter.folder}/${wrong}`);

/** Other right ones than ours; the heading says how each differs. */
export const rightSolutions = (book: Book, { chapter, right }: Exercise): Wrong[] =>
  solutionsIn(book, `${chapter.folder}/${right}`);

function solutionsIn(book: Book, file: string): Wrong[] {
  if (!isFile(book.root, file)) return [];
  const sections = `\n${read(book.root, file)}`.split('\n## ').slice(1);
  return sections.map((text) => {
    const [mistake = ''] = linesOf(text);
    const inside = fencesIn(text)[0]?.body ?? [];
    const words = /^Verdict: `(.*)`$/m.exec(text)?.[1]?.split('` or `') ?? [];
    const rule = /^Rule: (.*)$/m.exec(text)?.[1]?.trim() ?? '';
    return { mistake, inside, words, rule };
  });
}

/** The learner's program, had they written this. */
export const solvedSo = (book: Book, exercise: Exercise, { inside }: Wrong): string =>
  withInside(book, exercise, inside);

/** The rules on the page, each as its sentences, without what is in brackets. */
export function rulesOf(book: Book, { quotation: { page } }: Exercise): string[][] {
  const [, below = ''] = read(book.root, page).split(/^## Exercise: .*$/m);
  const [text = ''] = below.split(/^(?:## |<details>)/m);
  const rules: string[] = [];
  let isInside = false;
  for (const line of linesOf(text)) {
    const [, first] = /^\d+\. (.*)$/.exec(line) ?? [];
    if (first !== undefined) rules.push(first);
    else if (isInside && /^ +\S/.test(line)) rules[rules.length - 1] += ` ${line.trim()}`;
    else if (rules.length > 0 && line !== '') break; // a second list is another thing
    isInside = line !== '';
  }
  return rules.map(sentencesIn);
}

function sentencesIn(rule: string): string[] {
  const bracketsOrCode = /`[^`]*`|\s*\((?:`[^`]*`|[^()`])*\)/g;
  const plain = rule.replace(bracketsOrCode, (found) => (found.startsWith('`') ? found : ''));
  return plain.split(/(?<=[.!?]['"”)*]*) +(?=[\p{Lu}`"*])/u).map((sentence) => sentence.trim());
}

const plainly = (text: string) => text.replace(/\s+/g, ' ').trim();

/** What is missing before each sentence of an exercise's rules is broken alone by a wrong solution. */
export function missingOf(book: Book, exercise: Exercise): string[] {
  const all = wrongSolutions(book, exercise);
  const rules = rulesOf(book, exercise);
  const missing: string[] = [];
  if (all.length < FEWEST)
    missing.push(`it has ${all.length} wrong solutions of the exercise, not ${FEWEST}`);
  if (rules.length === 0)
    missing.push(`${exercise.quotation.page} has no numbered rules under "## Exercise: …"`);
  if (rules.length > MOST_RULES)
    missing.push(`${exercise.quotation.page} has ${rules.length} rules, not ${MOST_RULES} at most`);
  const broken = new Set<string>();
  for (const { mistake, rule } of all) {
    if (rule === TAUGHT) continue;
    const [, n = '', words = ''] = /^(\d+)(?:: (.*))?$/.exec(rule) ?? [];
    const sentences = rules[Number(n) - 1] ?? [];
    const hit = sentences.filter((sentence) => plainly(sentence).includes(plainly(words)));
    if (sentences.length === 0) missing.push(`"${mistake}" names no rule of the page: "${rule}"`);
    else if (hit.length !== 1 && (words !== '' || sentences.length > 1))
      missing.push(`"${mistake}": ${hit.length} sentences of rule ${n} have its words: "${words}"`);
    for (const sentence of hit.length === 1 ? hit : []) broken.add(`${n} ${sentence}`);
  }
  for (const [k, sentences] of rules.entries())
    for (const sentence of sentences)
      if (!broken.has(`${k + 1} ${sentence}`))
        missing.push(`no wrong solution breaks this sentence of rule ${k + 1} alone: ${sentence}`);
  return [...missing, ...sharedVerdicts(all)];
}

/** What is refused for the same words breaks the same rule: else one of them is not refused for its own. */
function sharedVerdicts(all: Wrong[]): string[] {
  const numbered = all.filter(({ rule }) => /^\d/.test(rule));
  return numbered.flatMap((one, k) => {
    const number = ({ rule }: Wrong) => rule.split(':')[0];
    const isTwin = (other: Wrong) =>
      number(other) !== number(one) && other.words.some((words) => one.words.includes(words));
    const twin = numbered.slice(k + 1).find(isTwin);
    return twin
      ? [`"${one.mistake}" and "${twin.mistake}" break two rules, and have one verdict`]
      : [];
  });
}

export function problemsOfWrong(book: Book, exercise: Exercise): string[] {
  const {
    name,
    chapter: { folder },
    quotation: { page },
  } = exercise;
  const all = wrongSolutions(book, exercise);
  const file = `${folder}/${exercise.wrong}`;
  const isLater = NOT_YET.includes(name) && book.root === root;
  if (all.length < FEWEST_YET)
    return [
      `${page}:1: ${file} has ${all.length} wrong solutions of the exercise, not ${FEWEST_YET}`,
    ];
  const odd = all.filter(
    ({ inside, words }) => words.length === 0 || words.includes('') || inside.length === 0,
  );
  const problems = odd.map(
    ({ mistake }) => `"${mistake}" has no code, or no words that the verdict must contain`,
  );
  const empty = rightSolutions(book, exercise).filter(({ inside }) => inside.length === 0);
  problems.push(...empty.map(({ mistake }) => `in ${exercise.right} "${mistake}" has no code`));
  const missing = missingOf(book, exercise);
  if (!isLater) problems.push(...missing);
  else if (missing.length === 0)
    problems.push(`exercise ${name} is done: take it out of NOT_YET in chapters/book/wrong.ts`);
  return problems.map((what) => `${file}:1: ${what}`);
}
