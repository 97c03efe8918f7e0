// patterns.ts: a pattern that a client wrote may take years, as ^(a+)+$ does for some texts, and
// nothing interrupts it but the end of its thread. So it gets a thread of its own, for a while.

import { Worker } from 'node:worker_threads';

const MAX_PATTERN = 1000; // characters
const PATTERN_MS = 1000;

// JavaScript in a string: it starts in the same way from .ts files and from compiled ones.
const MATCHER = `
  const { parentPort, workerData: { source, texts } } = require('node:worker_threads');
  const pattern = new RegExp(source, 'iu');
  parentPort.postMessage(texts.map((text) => pattern.test(text)));
`;

/** Which of the texts match? Throws if the pattern is not one, or takes too long. */
export async function matching(source: string, texts: string[], signal: AbortSignal) {
  if (source.length > MAX_PATTERN) throw new Error('the pattern is too long');
  const workerData = { source, texts };
  const worker = new Worker(MATCHER, { eval: true, execArgv: [], workerData });
  let timer: NodeJS.Timeout | undefined;
  try {
    return await new Promise<boolean[]>((resolve, reject) => {
      const stop = () => reject(new Error(`the pattern takes longer than ${PATTERN_MS} ms`));
      worker.once('online', () => (timer = setTimeout(stop, PATTERN_MS))); // it has begun
      worker.once('message', resolve);
      worker.once('error', reject);
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
  } finally {
    clearTimeout(timer);
    void worker.terminate();
  }
}
