// A program whose observers all throw. It tells how the call went, whether the server is gone, and what surfaced.

import { McpConnection } from '../../mcp.ts';
import { habit, isRunning } from '../helpers.ts';

const surfaced: string[] = [];
process.on('uncaughtException', (error) => surfaced.push(error.message));
const failing = (name: string) => () => {
  throw new Error(`from ${name}`);
};
const connection = new McpConnection('demo', habit('chatty'), {
  onWire: failing('onWire'),
  onWarning: failing('onWarning'),
  onClosed: failing('onClosed'),
});
await connection.connect();
await connection.initialize();
const { text } = await connection.callTool('echo', { a: 1 });
const { pid } = JSON.parse((await connection.callTool('where')).text);
await connection.close();
console.log(JSON.stringify({ text, isRunningAfterwards: isRunning(pid), surfaced }));
