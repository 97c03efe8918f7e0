// A server in a worker as it is often begun: `node chapters/33-a-page/naive.mjs posts`, or `quit`.

import { readFileSync } from 'node:fs';
import { startThread } from './more/thread.mjs';

/** process.stdin and process.stdout are two posts away. */
const PROCESS = `
  const stdin = { setEncoding: () => stdin, on: (name, listener) => {
    if (name === 'data') addEventListener('message', ({ data }) => listener(data));
  } };
  globalThis.process = { argv: [], stdin, stdout: { write: (text) => postMessage(text) } };
`;
const request = (id, method, params) =>
  `${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`;

const mistakes = {
  // Each post is a message.
  posts() {
    const banner =
      'process.stdout.write(\'{"jsonrpc":"2.0","method":"notifications/hi"}\\n{"json\');';
    const end = 'process.stdout.write(\'rpc":"2.0","id":1,"result":{"sum":42}}\\n\');';
    const worker = startThread(`{ ${PROCESS} } ${banner} ${end}`);
    worker.addEventListener('message', ({ data }) => {
      try {
        console.log('a message:', JSON.parse(data));
      } catch {
        console.log('no message:', JSON.stringify(data));
      }
    });
    setTimeout(() => worker.terminate(), 300);
  },

  // We ask it to leave.
  quit() {
    const source = readFileSync('fixtures/server.mjs', 'utf8');
    const worker = startThread(`{ ${PROCESS} } ${source}\nfor (;;);`);
    let isGone = false;
    worker.addEventListener('message', () => {
      isGone = true;
    });
    worker.postMessage(request(1, 'shutdown'));
    setTimeout(() => {
      console.log(isGone ? 'it is gone' : 'it has not even heard us');
      worker.terminate();
    }, 300);
  },
};

const mistake = mistakes[process.argv[2]];
if (mistake) mistake();
else console.log(`which mistake? ${Object.keys(mistakes).join(', ')}`);
