// Chapter 4.2: how long do a hundred calls at once take, and how long does one alone? The quickest of three hundred runs, because
// the others show what else the machine had to do.

import { McpConnection } from '../../mcp.ts';

const calculator = new McpConnection('calculator', { command: 'node', args: ['fixtures/server.mjs'] });
await calculator.connect();
const add = () => calculator.request('tools/call', { name: 'add', arguments: { a: 2, b: 40 } });

async function quickest(work: () => Promise<unknown>): Promise<string> {
  const times: number[] = [];
  for (let run = 0; run < 300; run++) {
    const start = performance.now();
    await work();
    times.push(performance.now() - start);
  }
  return `${Math.min(...times).toFixed(2)} ms`;
}

await quickest(add); // Node gets quicker with what it does often
console.log('100 calls at once:', await quickest(() => Promise.all(Array.from({ length: 100 }, add))));
console.log('one call alone:   ', await quickest(add));
