// The suite imports globSync from node:fs, which exists from Node 22 on. Only a command that we never use calls it, so
// on Node 20 it gets a function that finds nothing:  node --import ./shim.mjs …/conformance/dist/index.js

import fs from 'node:fs';
import { register } from 'node:module';
import { isMainThread } from 'node:worker_threads';

if (isMainThread && !fs.globSync) register(import.meta.url); // the thread of the hooks loads this file again

export async function load(url, context, next) {
  const loaded = await next(url, context);
  if (!url.endsWith('/conformance/dist/index.js')) return loaded;
  let name = '';
  const source = `${loaded.source}`.replace(
    /\bglobSync as (\w+),/,
    (_, alias) => ((name = alias), ''),
  );
  return { ...loaded, source: `${source}\nfunction ${name}() { return []; }` };
}
