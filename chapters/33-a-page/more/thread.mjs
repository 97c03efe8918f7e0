// A Web Worker for a program on Node, where it is a thread; and a real one where there are such. What it is
// given is the whole script.

import { Worker as Thread } from 'node:worker_threads';

/** What a worker has, and a thread of Node's has under other names. */
const PRELUDE = `
  const { parentPort } = require('node:worker_threads');
  globalThis.postMessage = (data) => parentPort.postMessage(data);
  globalThis.close = () => parentPort.close();
  globalThis.addEventListener = (name, listener) => {
    if (name === 'message') parentPort.on(name, (data) => listener({ data }));
  };
`;

export function startThread(script) {
  if (typeof globalThis.Worker === 'function') {
    const address = URL.createObjectURL(new Blob([script], { type: 'text/javascript' }));
    return new Worker(address);
  }
  const thread = new Thread(`{ ${PRELUDE} }\n${script}`, { eval: true, env: {} });
  thread.unref(); // the program does not go on for it
  return {
    postMessage: (data) => thread.postMessage(data),
    terminate: () => thread.terminate(),
    addEventListener(name, listener) {
      thread.on(name, (it) =>
        listener(name === 'message' ? { data: it } : { message: it.message }),
      );
    },
  };
}
