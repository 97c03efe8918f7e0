// How often does a search find what is needed? The needs are in tool-needs.txt, each with the tools
// that would do.

import { readFileSync } from 'node:fs';
import type { SearchableTool, ToolIndex } from '../../chapters/28-a-thousand-tools/tool-search.ts';
import { Lexicon } from '../../chapters/28-a-thousand-tools/lexicon.ts';
import { asObject } from '../../mcp.ts';

export type Need = { words: string; labels: string[]; set: 'known' | 'untouched' };

export function readNeeds(): Need[] {
  const text = readFileSync(new URL('tool-needs.txt', import.meta.url), 'utf8');
  const lines = text.split('\n').filter(Boolean);
  const untouched = lines.findIndex((line) => line.startsWith('# Untouched'));
  return lines.flatMap((line, n) => {
    if (line.startsWith('#')) return [];
    const [labels = '', words = ''] = line.split(' | ');
    const set = n > untouched ? 'untouched' : 'known';
    return {
      words,
      labels: labels
        .trim()
        .split(' ')
        .map((label) => `mcp__${label}`),
      set,
    };
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

/** To compare with: the formula alone, over name, description and argument names as one text. It
 *  takes words apart and cuts endings as ours does. */
export function plainIndex(tools: readonly SearchableTool[]): ToolIndex {
  const [k1, b] = [1.2, 0.75];
  const lexicon = new Lexicon();
  const documents = tools.map(({ name, description = '', inputSchema }) => {
    const names = Object.keys(asObject(asObject(inputSchema).properties));
    return lexicon.terms([name, description, ...names].join(' '));
  });
  const average = documents.reduce((sum, { length }) => sum + length, 0) / documents.length;
  const postings = new Map<string, Map<number, number>>();
  for (const [n, terms] of documents.entries()) {
    for (const term of terms) {
      const counts = postings.get(term) ?? new Map<number, number>();
      postings.set(term, counts.set(n, (counts.get(n) ?? 0) + 1));
    }
  }
  const search = (query: string, limit = 10) => {
    const scores = new Map<number, number>();
    for (const term of new Set(lexicon.terms(query))) {
      const counts = postings.get(term) ?? new Map<number, number>();
      const rarity = Math.log(1 + (tools.length - counts.size + 0.5) / (counts.size + 0.5));
      for (const [n, count] of counts) {
        const length = k1 * (1 - b + (b * documents[n]!.length) / average);
        const score = (rarity * count * (k1 + 1)) / (count + length);
        scores.set(n, (scores.get(n) ?? 0) + score);
      }
    }
    const best = [...scores].sort(([, one], [, two]) => two - one).slice(0, limit);
    return best.map(([n]) => tools[n]!.label);
  };
  return { search };
}
