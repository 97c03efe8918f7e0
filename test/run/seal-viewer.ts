// seal-viewer.ts: writes the hashes of its script and its style into viewer.html, after either was
// changed: `npm run seal`.

import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { sealed } from '../../chapters/30-seeing/view.ts';

const file = new URL('../../chapters/30-seeing/viewer.html', import.meta.url);
const isProgram = process.argv[1] === fileURLToPath(import.meta.url); // and not imported by a test
if (isProgram) writeFileSync(file, sealed(readFileSync(file, 'utf8')));
