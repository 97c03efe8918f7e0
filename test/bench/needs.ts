// How often does a search find what is needed? The needs are in tool-needs.txt, each with the tools
// that would do.

import { readFileSync } from 'node:fs';
import type { ToolIndex } from '../../chapters/28-a-thousand-tools/tool-search.ts';

export type Need = { words: string; labels: string[]; set: 'tune' | 'test' | 'fresh' };

export function readNeeds(): Need[] {
  const text = readFileSync(new URL('tool-needs.txt', import.meta.url), 'utf8');
  const lines = text.split('\n').filter(Boolean);
  const fresh = lines.findIndex((line) => line.startsWith('# Fresh'));
  return lines.flatMap((line, n) => {
    if (line.startsWith('#')) return [];
    const [labels = '', words = ''] = line.split(' | ');
    const half = n % 2 === 0 ? 'tune' : 'test';
    const set = fresh !== -1 && n > fresh ? 'fresh' : half;
    return { words, labels: labels.trim().split(' ').map((label) => `mcp__${label}`), set };
  });
}

/** The share of needs that were met by the first, the first five and the first ten, in percent. */
export function judgeNeeds(index: ToolIndex, needs: Need[]) {
  const ranks = needs.map(({ words, labels }) => {
    return index.search(words, 10).findIndex((label) => labels.includes(label));
  });
  const within = (most: number) => {
    const met = ranks.filter((rank) => rank !== -1 && rank < most).length;
    return Math.round((1000 * met) / needs.length) / 10;
  };
  return { at: { 1: within(1), 5: within(5), 10: within(10) } as Record<number, number>, ranks };
}
