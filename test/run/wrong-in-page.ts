// npm run wrong [2 28 …]: all wrong solutions of the exercises that the site has, in Chromium. Each must
// be refused there with the words that wrong.md has; `npm run book deep` says the same of Node.

import { browse } from '../help/chromium.ts';
import { cleanUp } from '../help/basics.ts';
import { oddVerdict, openExercise, verdictIn, wrongOnes } from '../help/exercise-page.ts';

const trials = wrongOnes(process.argv.slice(2));
const page = await browse();
let isAt = '';
const odd = new Map<string, number>();
for (const trial of trials) {
  const { name } = trial.exercise;
  if (name !== isAt) {
    await openExercise(page, name);
    isAt = name;
  }
  const begin = Date.now();
  const problem = oddVerdict(trial, await verdictIn(page, trial.inside));
  const seconds = ((Date.now() - begin) / 1000).toFixed(1);
  console.log(`${problem ? '✗' : '✓'} ${name}: ${trial.mistake} (${seconds} s)`);
  if (problem) console.log(problem);
  if (problem) odd.set(name, (odd.get(name) ?? 0) + 1);
}
const all = [...odd.values()].reduce((sum, count) => sum + count, 0);
console.log(`${trials.length - all} of ${trials.length} have the verdict of Node`);
for (const [name, count] of odd) console.log(`  exercise ${name}: ${count} have another`);
await cleanUp();
process.exit(all > 0 ? 1 : 0);
