// budget.ts: how much of the model's context the results of one answer may take, all together.
//
// Chapter 16 cuts each result by itself. An answer may have fifty calls, and fifty results of
// 90,000 characters fit no model. The largest is cut first: small ones are mostly what was wanted.

import type { Block, Result } from '../../../agent.ts';
import { fitResult, saveBlob } from '../../16-hands/results.ts';

const MAX_TURN = 200_000; // characters of all results of one answer
const MAX_TURN_IMAGES = 20 * 2 ** 20; // of base64; a request of more than some 30 MB is refused
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
  dropImages(results, folder);
}

function textIn({ blocks }: Result) {
  return blocks.reduce((sum, block) => sum + (block.type === 'text' ? block.text.length : 0), 0);
}

/** The largest go first, here as well. */
function dropImages(results: Result[], folder: string) {
  const images = results.flatMap(({ blocks }) => blocks.filter((block) => imageIn(block) > 0));
  let all = images.reduce((sum, block) => sum + imageIn(block), 0);
  const dropped = new Set<Block>();
  for (const block of images.sort((a, b) => imageIn(b) - imageIn(a))) {
    if (all <= MAX_TURN_IMAGES) break;
    dropped.add(block);
    all -= imageIn(block);
  }
  for (const result of results)
    result.blocks = result.blocks.map((block) =>
      dropped.has(block) ? saved(block, folder) : block,
    );
}

const imageIn = (block: Block) => (block.type === 'image' ? block.data.length : 0);

const LEFT_OUT = '[an image, left out: those of this answer are too large together]';
const saved = (block: Block, folder: string): Block =>
  block.type === 'image'
    ? { type: 'text', text: saveBlob(LEFT_OUT, block.data, block, folder) }
    : block;
