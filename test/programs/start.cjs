// Starts the program beside it, without compiling it where that has been done.

const { existsSync, readFileSync, writeFileSync } = require('node:fs');
const { pathToFileURL } = require('node:url');
const { constants, Script } = require('node:vm');

const file = __filename.replace('.cjs', '-itself.cjs');
const cache = `${file}.cache`;
const cachedData = existsSync(cache) ? readFileSync(cache) : undefined;
const importModuleDynamically = constants.USE_MAIN_CONTEXT_DEFAULT_LOADER;
const options = { filename: file, cachedData, importModuleDynamically };
// Not latin1: esbuild leaves the characters in regular expressions as they are.
const script = new Script(readFileSync(file, 'utf8'), options);
if (!cachedData) process.on('exit', () => writeFileSync(cache, script.createCachedData()));
script.runInThisContext()(require, module, exports, pathToFileURL(file).href);
