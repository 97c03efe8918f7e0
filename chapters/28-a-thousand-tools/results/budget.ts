// budget.ts: how much of the model's context the results of one answer may take, all together.
//
// Chapter 16 cuts each result by itself. An answer may have fifty calls, and fifty results of
// 90,000 characters fit no model. The largest is cut first: small ones are mostly what was wanted.

import type { Result } from '../../../agent.ts';
import { fitResult, imageLimit } from '../../16-hands/results.ts';

const MAX_TURN = 200_000; // characters of all results of one answer
const CUT = 4096; // what is shorter stays as it is

/** Cuts the results of one answer where they are too much together. `room`: what the most demanding
 *  of their tools was promised for itself. */
export function fitTurn(results: Result[], folder: string, room: number): void {
  if (results.length < 2) return; // it has been cut already
  const most = Math.max(MAX_TURN, room);
  const bySize = [...results].sort((a, b) => textIn(b) - textIn(a));
  let length = results.reduce((sum, result) => sum + textIn(result), 0);
  for (const result of bySize) {
    if (length <= most || textIn(result) <= CUT) break;
    length -= textIn(result);
    const { blocks, cut = 0 } = fitResult(result, folder, result.name, CUT);
    result.blocks = blocks;
    result.cut = (result.cut ?? 0) + cut;
    length += textIn(result);
  }
  const limit = imageLimit(folder, Infinity);
  for (const result of results) result.blocks = result.blocks.map(limit);
}

function textIn({ blocks }: Result) {
  return blocks.reduce((sum, block) => sum + (block.type === 'text' ? block.text.length : 0), 0);
}
