// How good are the chunks? Against an independent parser, and after edits.
// `npm run retrieval chunks` prints it.

import { readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { codeChunks, type Chunk } from '../../chapters/29-a-server/chunks.ts';
import { type Parser, sourcesIn } from './functions.ts';

const MAX = 1500;
const EDITS = 3; // lines inserted in each file, one at a time

export type ChunkFigures = {
  files: number;
  functions: number;
  whole: number;
  edits: number;
  local: number;
  covered: number;
};

/** A random number from a seed: the same edits each time. */
function dice(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

export function measureChunks(folder: string, parser: Parser, each = 1): ChunkFigures {
  const figures = { files: 0, functions: 0, whole: 0, edits: 0, local: 0, covered: 0 };
  const next = dice(29);
  for (const [n, file] of sourcesIn(folder).entries()) {
    if (n % each !== 0) continue;
    const path = relative(folder, file);
    const text = readFileSync(file, 'utf8');
    const lines = text.split('\n');
    const chunks = codeChunks(path, text);
    figures.files++;
    figures.covered += Number(isCovered(text, chunks));
    for (const { first, last, name } of parser.functionsOf(path, text)) {
      const size = lines
        .slice(first - 1, last)
        .join('')
        .replace(/\s/g, '').length;
      if (size > MAX) continue;
      figures.functions++;
      const isWhole = chunks.some(
        ({ start_line, end_line }) => start_line <= first && end_line >= last,
      );
      figures.whole += Number(isWhole);
      if (!isWhole && process.env.SHOW) console.log(`${path}:${first}-${last} ${name}`);
    }
    for (let k = 0; k < EDITS; k++) {
      figures.edits++;
      const at = Math.floor(next() * lines.length);
      const indent = /^\s*/.exec(lines[at]!)![0];
      const edited = lines.toSpliced(at, 0, `${indent}const inserted = ${k};`).join('\n');
      const changed = changedIn(chunks, codeChunks(path, edited));
      figures.local += Number(changed <= 2);
      if (changed > 2 && process.env.SHOW) console.log(`${path}:${at + 1} changes ${changed}`);
    }
  }
  return figures;
}

/** Every line exactly once, in order. */
export function isCovered(text: string, chunks: Chunk[]): boolean {
  const joined = chunks.map((chunk) => chunk.text).join('\n');
  const follows = chunks.every(
    ({ start_line }, k) => start_line === (chunks[k - 1]?.end_line ?? 0) + 1,
  );
  return follows && joined === text.replace(/\n$/, '');
}

export function changedIn(before: Chunk[], after: Chunk[]): number {
  const known = new Set(before.map(({ text }) => text));
  return after.filter(({ text }) => !known.has(text)).length;
}
