// fifty.ts: npm run book fifty [6]. A right solution is never refused: each judge is run fifty times with our solution and
// with other right ones, beside work that takes all cores. A judge that counts on time is found here.

import { availableParallelism } from 'node:os';
import { trialsOfExercises } from './deep.ts';
import { sideBySide } from './files.ts';
import { endGroup, nodeInOwnGroup } from './own-group.ts';
import type { Book } from './pages.ts';

const TIMES = 50;
const ENDLESS_WORK = ['-e', 'for (;;);'];

export async function fifty(book: Book, only = ''): Promise<string[]> {
  delete process.env.NODE_EXTRA_CA_CERTS; // as in deep.ts
  const chapters = book.chapters.filter(({ n }) => (only ? n === Number(only) : n > 0));
  const trials = chapters
    .flatMap((chapter) => trialsOfExercises(book, chapter))
    .filter(({ wanted }) => wanted === 'green');
  const others = Array.from({ length: availableParallelism() }, () =>
    nodeInOwnGroup(ENDLESS_WORK, { stdio: 'ignore' }),
  );
  const refusals: string[] = [];
  await sideBySide(trials, async ({ name, came }) => {
    const verdicts: string[] = [];
    while (verdicts.length < TIMES) verdicts.push(await came('as typed'));
    const bad = verdicts.filter((verdict) => verdict !== 'green');
    console.log(`${bad.length === 0 ? '✓' : '✗'} ${name} refused ${bad.length} of ${TIMES} times`);
    if (bad[0]) refusals.push(`${name} was refused ${bad.length} times: ${bad[0]}`);
  });
  others.forEach(endGroup);
  return refusals;
}
