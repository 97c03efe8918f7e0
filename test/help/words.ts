// Our commands take plain words, `npm run bench calls since 0866eeb`: see withDashes.

import { withDashes } from '../../chapters/book/files.ts';

export const wordsOf = (options: object) => withDashes(process.argv.slice(2), Object.keys(options));
