// names.ts: one name, one meaning. A file of the program has a name that no other has; what a file
// exports, and every type, is declared in no second file. Small functions and limits may share a
// name as long as they stay in their files.

import { basename } from 'node:path';
import { linesOf, read } from './files.ts';
import { spineOf, type Book } from './pages.ts';
import { modulesOf } from './program.ts';

/** The files of the whole program. */
function programOf(book: Book): string[] {
  const modules = book.chapters.flatMap((chapter) => modulesOf(book, chapter, chapter.n));
  return [...new Set([...spineOf(book), ...modules])];
}

/** Files of one name: who says `headers.ts`, in an error or on a page, should mean one of them. */
export function twinFiles(book: Book): string[] {
  const files = programOf(book);
  const twinsOf = (one: string) => files.filter((file) => basename(file) === basename(one));
  const names = new Set(files.map((file) => twinsOf(file).join(' and ')));
  return [...names].filter((name) => name.includes(' and '));
}

const DECLARED =
  /^(export )?(?:declare |abstract |async )*(function\*?|class|const|let|type|interface) (\w+)/;

type Declared = { name: string; file: string; isShared: boolean };

/** What the files of the program declare, each once: an overloaded function is one. `isShared`:
 *  others may import it, or it is a type, whose name a reader takes for one thing. */
function declaredIn(book: Book): Declared[] {
  return programOf(book).flatMap((file) => {
    const found = new Map<string, Declared>();
    for (const line of linesOf(read(book.root, file))) {
      const [, exported, kind, name] = DECLARED.exec(line) ?? [];
      if (!name) continue;
      const isShared = exported !== undefined || /^(class|type|interface)$/.test(kind!);
      found.set(name, { name, file, isShared: isShared || (found.get(name)?.isShared ?? false) });
    }
    return [...found.values()];
  });
}

/** Names with two meanings. `agreed` are those that are known to have them. */
export function twinNames(book: Book, agreed: string[] = []): string[] {
  const all = declaredIn(book);
  const shared = new Set(all.filter(({ isShared }) => isShared).map(({ name }) => name));
  return [...shared].flatMap((name) => {
    const files = all.filter((each) => each.name === name).map(({ file }) => file);
    if (files.length === 1 || agreed.includes(name)) return [];
    return [`${name}: ${files.join(' and ')}`];
  });
}
