// A model's server that counts: what it read, and what of it it had read before. Its tokens are its own,
// and nothing that we could guess from our side.

import type { Usage } from '../../agent.ts';
import type { Json } from '../../mcp.ts';
import type { Seen, Step } from './model-server.ts';

/** Gives each answer its usage. One cache for each beginning that it has seen, as services have it. */
export function counting(output = 7) {
  const known: string[] = [];
  const counts: Usage[] = []; // of every request, in order
  const count = ({ body }: Seen): Usage => {
    const text = readBy(body);
    const kept = Math.max(0, ...known.map((before) => sharedBeginning(before, text)));
    known.push(text);
    const usage = { input: tokens(text.length), cached: tokens(kept), output };
    counts.push(usage);
    return usage;
  };
  const answering =
    (step: Step) =>
    (seen: Seen): Step => ({ ...step, usage: count(seen) });
  return { counts, answering };
}

const tokens = (characters: number) => Math.floor(characters / 3.3);

/** In the order in which services read. */
function readBy({ system, tools, messages }: Json): string {
  return JSON.stringify([tools, system, messages], (key, value) =>
    key === 'cache_control' ? undefined : value,
  );
}

function sharedBeginning(one: string, other: string): number {
  let n = 0;
  while (n < one.length && one[n] === other[n]) n++;
  return n;
}
