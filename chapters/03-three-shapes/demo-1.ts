// Chapter 3.1: a request, and its answer, which no call waits for yet.

import * as mcp from '../../mcp.ts';

const show = (direction: string, message: unknown) =>
  console.log(direction === 'out' ? '→' : '←', JSON.stringify(message));
const config = { command: 'node', args: ['fixtures/server.mjs'] };
const params = { name: 'add', arguments: { a: 2, b: 40 } };
const request: mcp.Message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };

console.log('A request, written by hand, and its answer:');
const pipe = new mcp.StdioTransport('calculator', config, 2 ** 26);
if (mcp.Connection) await byConnection();
else await byPipe();

async function byConnection(): Promise<void> {
  const heard = new Promise<void>((done) => {
    const onWarning = (warning: string) => done(console.log(`  ${warning}`));
    const options = { transports: { stdio: () => pipe }, onWire: show, onWarning };
    const calculator = new mcp.Connection('calculator', config, options);
    void calculator.connect().then(send);
  });
  await heard;
}

async function byPipe(): Promise<void> {
  const heard = new Promise<void>((done) => {
    const message = (came: unknown) => done(show('in', came));
    void pipe.start({ message, closed: () => {} }).then(send);
  });
  await heard;
  console.log('  a pipe moves messages, and knows nothing about them');
}

async function send(): Promise<void> {
  show('out', request);
  await pipe.send(request);
}
