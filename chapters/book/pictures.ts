// pictures.ts: npm run book pictures. Draws what pages show beside code and wires, and tells whether a file is as drawn.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isFile, read } from './files.ts';
import type { Book } from './pages.ts';
import { PICTURES } from './pictures/drawn.ts';

export function drawPictures(book: Book): void {
  for (const [file, draw] of Object.entries(PICTURES)) writeFileSync(join(book.root, file), draw());
}

export function problemsOfPictures(book: Book): string[] {
  if (!isFile(book.root, 'chapters/book/pictures/drawn.ts')) return []; // a book of a test
  return Object.entries(PICTURES).flatMap(([file, draw]) => {
    const isAsDrawn = isFile(book.root, file) && read(book.root, file) === draw();
    return isAsDrawn ? [] : [`${file}:1: not as it is drawn: npm run book pictures`];
  });
}
