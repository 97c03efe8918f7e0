// How good is the search by meaning? The task: from the first sentence of a function's comment, find that function among
// all functions of the tree, with every comment taken out. And how good are the chunks?
//
//   npm run retrieval                     eslint and webpack, from npm, at pinned versions
//   npm run retrieval folder…             trees of your own, in JavaScript or TypeScript
//   npm run retrieval chunks [folder…]    chunks instead: whole functions, and how far an edit reaches
//
//   words        how many words of the sentence are somewhere in the function: what a search for words can do
//   ours         the ranking of chapter 29, with one document for each function
//   end to end   the tool itself, on a copy of the tree without comments; a result counts if the function begins in it

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Roots } from '../../chapters/16-hands/paths.ts';
import { CodeIndex } from '../../chapters/29-a-server/code/code-index.ts';
import { best, Ranking } from '../../chapters/29-a-server/ranking.ts';
import { CodeTree } from '../../chapters/29-a-server/tree.ts';
import { installed } from '../help/installed.ts';
import { wordsOf } from '../help/words.ts';
import { measureChunks } from './chunks.ts';
import { Parser, queriesFor, sourcesIn, type Found, type Query } from './functions.ts';

const MOST = 10; // results that count
const GOALS = { mrr: 0.5, recall: 0.75, factor: 2.5, memory: 3 };
const CHUNK_GOALS = { whole: 0.99, local: 0.95 };

type Score = { mrr: number; recall: number };
const scoreOf = (ranks: number[]): Score => ({
  mrr: ranks.reduce((sum, rank) => sum + (rank <= MOST ? 1 / rank : 0), 0) / ranks.length,
  recall: ranks.filter((rank) => rank <= MOST).length / ranks.length,
});
const mean = (scores: Score[]): Score => ({
  mrr: scores.reduce((sum, { mrr }) => sum + mrr, 0) / scores.length,
  recall: scores.reduce((sum, { recall }) => sum + recall, 0) / scores.length,
});

// ─── Three ways to search ─────────────────────────────────────────────────────────────────────────────────────

/** Words of three letters and less are in every text. */
function byWords(functions: Found[], queries: Query[]): number[] {
  const texts = functions.map(({ text }) => text.toLowerCase());
  return queries.map(({ sentence, target }) => {
    const words = [...new Set(sentence.toLowerCase().match(/\w{4,}/g) ?? [])];
    const scores = Float64Array.from(
      texts,
      (text) => words.filter((word) => text.includes(word)).length,
    );
    return rankOf(functions.indexOf(target), scores);
  });
}

function byRanking(functions: Found[], queries: Query[]): number[] {
  const ranking = new Ranking();
  for (const { name, holder, path, text } of functions)
    ranking.add({ name, holder, path, body: text });
  ranking.settle();
  return queries.map(({ sentence, target }) =>
    rankOf(functions.indexOf(target), ranking.scores(sentence)),
  );
}

function rankOf(target: number, scores: Float64Array): number {
  const place = best(scores, MOST).findIndex(({ document }) => document === target);
  return place === -1 ? Infinity : place + 1;
}

async function endToEnd(
  index: CodeIndex,
  queries: Query[],
  signal: AbortSignal,
): Promise<number[]> {
  const ranks: number[] = [];
  for (const { sentence, target } of queries) {
    const { results } = await index.search(sentence, MOST, signal);
    const place = results.findIndex(
      ({ file_path, start_line, end_line }) =>
        file_path === target.path && start_line <= target.first && end_line >= target.first,
    );
    ranks.push(place === -1 ? Infinity : place + 1);
  }
  return ranks;
}

// ─── Trees ────────────────────────────────────────────────────────────────────────────────────────────────────

function prepare(folder: string, parser: Parser) {
  const bare = mkdtempSync(join(tmpdir(), 'retrieval-'));
  const functions = sourcesIn(folder).flatMap((file) => {
    const path = relative(folder, file);
    const text = readFileSync(file, 'utf8');
    mkdirSync(dirname(join(bare, path)), { recursive: true });
    writeFileSync(join(bare, path), parser.withoutComments(text));
    return parser.functionsOf(path, text);
  });
  return { bare, functions };
}

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

function memory(): number {
  collect();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

/** Bytes that the index takes for each byte of text, the texts included. */
async function indexed(folder: string, signal: AbortSignal) {
  const before = memory();
  const tree = new CodeTree({ roots: new Roots(folder) });
  const index = new CodeIndex(tree);
  await index.update(signal);
  const text = [...tree.files.values()].reduce((sum, { bytes }) => sum + bytes.length, 0);
  return { index, factor: (memory() - before) / text, text };
}

const show = ({ mrr, recall }: Score) => `${mrr.toFixed(3)} / ${recall.toFixed(3)}`;

async function measure(folder: string, parser: Parser) {
  const { signal } = new AbortController();
  const { bare, functions } = prepare(folder, parser);
  try {
    const queries = queriesFor(functions);
    if (queries.length === 0) throw new Error(`${folder} has no function with a sentence above it`);
    const { index, factor, text } = await indexed(bare, signal);
    const words = scoreOf(byWords(functions, queries));
    const ours = scoreOf(byRanking(functions, queries));
    const whole = scoreOf(await endToEnd(index, queries, signal));
    const cells = [
      basename(folder),
      functions.length,
      queries.length,
      show(words),
      show(ours),
      show(whole),
    ];
    console.log(`| ${cells.join(' | ')} | ${factor.toFixed(1)} × ${(text / 1e6).toFixed(1)} MB |`);
    return { words, ours, whole, factor };
  } finally {
    rmSync(bare, { recursive: true });
  }
}

async function retrieval(folders: string[], hasGoals: boolean): Promise<boolean> {
  const parser = new Parser();
  console.log(
    '| tree | functions | sentences | words: MRR@10 / recall@10 | ours | end to end | memory |',
  );
  console.log('|---|---|---|---|---|---|---|');
  const all: Awaited<ReturnType<typeof measure>>[] = [];
  for (const folder of folders) all.push(await measure(folder, parser));
  const [words, ours, whole] = (['words', 'ours', 'whole'] as const).map((key) =>
    mean(all.map((each) => each[key])),
  );
  const factor = ours!.mrr / words!.mrr;
  const memory = Math.max(...all.map((each) => each.factor));
  console.log(`| mean | | | ${show(words!)} | ${show(ours!)} | ${show(whole!)} | |`);
  const reaches = ({ mrr, recall }: Score) => mrr >= GOALS.mrr && recall >= GOALS.recall;
  const isGood =
    reaches(ours!) && reaches(whole!) && factor >= GOALS.factor && memory <= GOALS.memory;
  console.log(
    `\n${factor.toFixed(1)} times the MRR of words; goals: MRR@10 ${GOALS.mrr}, recall@10 ${GOALS.recall} for both, ` +
      `${GOALS.factor} times words, memory ${GOALS.memory} times the text: ${isGood ? 'reached' : 'NOT reached'}`,
  );
  return isGood || !hasGoals;
}

function chunks(folders: string[]): boolean {
  const parser = new Parser();
  const percent = (part: number) => `${(100 * part).toFixed(2)} %`;
  let isGood = true;
  console.log(
    '| tree | files, every line exactly once | functions that fit and are whole | edits that change at most two chunks |',
  );
  console.log('|---|---|---|---|');
  for (const folder of folders) {
    const { files, covered, functions, whole, edits, local } = measureChunks(folder, parser);
    console.log(
      `| ${basename(folder)} | ${covered} of ${files} | ${percent(whole / functions)} of ${functions} | ${percent(local / edits)} of ${edits} |`,
    );
    isGood &&=
      covered === files &&
      whole / functions >= CHUNK_GOALS.whole &&
      local / edits >= CHUNK_GOALS.local;
  }
  console.log(`\ngoals: every file, 99 %, 95 %: ${isGood ? 'reached' : 'NOT reached'}`);
  return isGood;
}

const options = { chunks: { type: 'boolean' } } as const;
const args = wordsOf(options);
const { values, positionals } = parseArgs({ args, options, allowPositionals: true });
const from = (name: string, version: string) =>
  join(installed(`${name}@${version}`), 'node_modules', name);
const hasGoals = positionals.length === 0;
const folders = hasGoals ? [from('eslint', '9.39.5'), from('webpack', '5.112.2')] : positionals;
const isGood = values.chunks ? chunks(folders) : await retrieval(folders, hasGoals);
process.exitCode = isGood ? 0 : 1;
