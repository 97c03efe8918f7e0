// seal.ts: writes the hashes of its script and its style into viewer.html, after either was changed.

import { readFileSync, writeFileSync } from 'node:fs';
import { sealed } from './view.ts';

const file = new URL('viewer.html', import.meta.url);
writeFileSync(file, sealed(readFileSync(file, 'utf8')));
