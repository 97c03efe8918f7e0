// worker-process.ts: as much of a process as a small server needs, for one that runs in a worker. The
// servers of this book are started as they are: the same file, and below this.

/** The whole script of the worker. Not a module: a page that was opened as a file may not start one. */
export const serverScript = (source: string, args: string[] = []) =>
  `'use strict';\n{ const args = ${JSON.stringify(args)};\n${PROCESS} }\n${source}`;

const PROCESS = `
  const listeners = { data: [], end: [] };
  const stdin = {
    setEncoding: () => stdin,
    on: (name, listener) => { listeners[name]?.push(listener); return stdin; },
  };
  const stream = (name) => ({ write: (text) => { postMessage({ [name]: text }); return true; } });
  const exit = (code = 0) => { postMessage({ exit: code }); close(); };
  globalThis.process = {
    argv: ['node', 'server.mjs', ...args], env: {}, stdin, exit,
    stdout: stream('out'), stderr: stream('err'), on: () => process,
  };
  console.error = (...words) => void process.stderr.write(words.join(' ') + '\\n');
  addEventListener('message', ({ data }) => {
    for (const listener of listeners.data) listener(data.in);
  });
  addEventListener('unhandledrejection', ({ reason }) => {
    console.error(reason?.stack ?? reason);
    exit(1); // as Node does
  });
`;
