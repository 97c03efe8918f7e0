// Chapter 4.2: how long do a hundred calls at once take, and how long does one alone? The median of three hundred runs.

import { McpConnection } from '../../mcp.ts';

const calculator = new McpConnection('calculator', { command: 'node', args: ['fixtures/server.mjs'] });
await calculator.connect();
const add = () => calculator.request('tools/call', { name: 'add', arguments: { a: 2, b: 40 } });

async function median(work: () => Promise<unknown>): Promise<string> {
  const times: number[] = [];
  for (let run = 0; run < 300; run++) {
    const start = performance.now();
    await work();
    times.push(performance.now() - start);
  }
  times.sort((a, b) => a - b);
  return `${times[150]!.toFixed(2)} ms`;
}

await median(add); // Node gets quicker with what it does often
console.log('100 calls at once:', await median(() => Promise.all(Array.from({ length: 100 }, add))));
console.log('one call alone:   ', await median(add));
