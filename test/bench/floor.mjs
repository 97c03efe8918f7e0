// What one call of a tool costs at least: a fresh process that starts the same server and makes the same call, by hand and
// without a check of anything. `node floor.mjs COMMAND ARGS`

import { spawn } from 'node:child_process';

const [command, ...args] = process.argv.slice(2);
const server = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
const send = (message) => server.stdin.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\n');
let text = '';
server.stdout.on('data', (chunk) => {
  const lines = (text += chunk).split('\n');
  text = lines.pop();
  for (const line of lines) hear(JSON.parse(line));
});
const clientInfo = { name: 'floor', version: '1' };
send({
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo },
});

function hear({ id, result }) {
  if (id === 1) send({ method: 'notifications/initialized' });
  if (id === 1)
    send({ id: 2, method: 'tools/call', params: { name: 'add', arguments: { a: 2, b: 40 } } });
  if (id === 2) console.log(result.content[0].text);
  if (id === 2) server.stdin.end();
}
