// Starts the program beside it, without compiling what has been compiled before. With LEARN it
// leaves behind what V8 has made of the program so far, for all other starts.

const { existsSync, readFileSync, writeFileSync } = require('node:fs');
const { pathToFileURL } = require('node:url');
const { constants, Script } = require('node:vm');

const file = __filename.replace('.cjs', '-itself.cjs');
const cache = `${file}.cache`;
const cachedData = existsSync(cache) ? readFileSync(cache) : undefined;
const importModuleDynamically = constants.USE_MAIN_CONTEXT_DEFAULT_LOADER;
const options = { filename: file, cachedData, importModuleDynamically };
// It has no other letters than ASCII: V8 needs half the memory for it, and nothing is decoded.
const script = new Script(readFileSync(file, 'latin1'), options);
if (process.env.LEARN) process.on('exit', () => writeFileSync(cache, script.createCachedData()));
script.runInThisContext()(require, module, exports, pathToFileURL(file).href);
