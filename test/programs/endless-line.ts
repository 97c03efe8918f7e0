// Prints how a server that never ends its line is refused, and by how much this process grew.

import { McpConnection } from '../help/subject.ts';
import { habit } from '../help/basics.ts';

const connection = new McpConnection('demo', habit('endless-line'), { maxLineBytes: 10 * 2 ** 20 });
await connection.connect();
const before = process.memoryUsage().rss;
let highest = before;
const watch = setInterval(() => (highest = Math.max(highest, process.memoryUsage().rss)), 2);
const error: any = await connection
  .request('tools/call', { name: 'echo' })
  .catch((reason) => reason);
clearInterval(watch);
console.log(
  JSON.stringify({
    error: `${error.kind}: ${error.message}`,
    grownMiB: (highest - before) / 2 ** 20,
  }),
);
await connection.close?.();
