// leaver.ts: a small program with the client under judgement and a server that does not want to
// leave. It ends as it is told; the judge looks whether the server has outlived it.

import { pathToFileURL } from 'node:url';
import { habit, linesIn, until } from './bench.ts';

const [client = '', way, file = ''] = process.argv.slice(2);
const { McpConnection } = await import(pathToFileURL(client).href);
const connection = new McpConnection('judge', habit('stubborn', file), {});
await connection.connect();
await connection.initialize();
await until(() => linesIn(file).length === 2, 'two processes');
if (way === 'exit') process.exit(0);
setInterval(() => {}, 1e9);
console.log('ready');
