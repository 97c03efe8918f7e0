// diagram.ts: the diagrams of the pages, which are written in Mermaid's words for GitHub, as SVG
// for the site.

import { drawFlow } from './flow.ts';
import { drawGantt } from './gantt.ts';
import { drawSequence } from './sequence.ts';

/** Throws at a line that it does not know: a picture without it would be wrong. */
export function drawDiagram(source: string): string {
  const [head = '', ...lines] = source
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  if (head === 'sequenceDiagram') return drawSequence(lines);
  if (head === 'gantt') return drawGantt(lines);
  if (head === 'stateDiagram-v2' || head.startsWith('flowchart ')) return drawFlow(head, lines);
  throw new Error(`a diagram cannot be drawn: ${head}`);
}
