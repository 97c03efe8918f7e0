// Chapter 4.2: how long do a hundred calls at once take, and how long does one alone? The quickest of three hundred runs, because
// the others show what else the machine had to do; and the processor time that a run takes us, without the server's.

import { McpConnection } from '../../mcp.ts';

const calculator = new McpConnection('calculator', {
  command: 'node',
  args: ['fixtures/server.mjs'],
});
await calculator.connect();
const add = () => calculator.request('tools/call', { name: 'add', arguments: { a: 2, b: 40 } });

async function measure(work: () => Promise<unknown>): Promise<string> {
  const times: number[] = [];
  const before = process.cpuUsage();
  for (let run = 0; run < 300; run++) {
    const start = performance.now();
    await work();
    times.push(performance.now() - start);
  }
  const { user, system } = process.cpuUsage(before);
  const ours = (user + system) / 1000 / times.length;
  return `${Math.min(...times).toFixed(2)} ms, ${ours.toFixed(2)} ms of processor time`;
}

await measure(add); // Node gets quicker with what it does often
const many = () => Promise.all(Array.from({ length: 100 }, add));
await measure(many);
console.log('100 calls at once:', await measure(many));
console.log('one call alone:   ', await measure(add));
