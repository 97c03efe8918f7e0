// sources.ts: which files there are, and what each is for. By patterns, so that files may move.

import { basename, join } from 'node:path';
import { readdirSync } from 'node:fs';
import { filesIn, read } from '../../chapters/book/files.ts';
import { root } from '../../chapters/book/pages.ts';

export { root };
export type Source = { file: string; text: string };

/** What shows, judges and packs the program is no part of it. */
const BESIDE =
  /^chapters\/(book|judge)\/|^chapters\/(book|judge|tour|build)\.ts$|\/(exercise|demo|breaks)[^/]*\.ts$|^chapters\/00-/;
const PART = /^chapters\/(0[1-9]|1[0-5])-[^/]+\//;

const atTheTop = readdirSync(root).filter((name) => /^(?!vitest).*\.ts$/.test(name));
const inChapters = typescriptIn('chapters');

export const program: Source[] = [
  ...atTheTop.sort().reverse(), // mcp.ts, then agent.ts, as they are read
  ...inChapters.filter((file) => !BESIDE.test(file)),
].map(asSource);
export const beside: Source[] = inChapters.filter((file) => BESIDE.test(file)).map(asSource);
export const tests: Source[] = typescriptIn('test').map(asSource);

export const top = program.filter(({ file }) => atTheTop.includes(file));
/** The files that mcp.ts and agent.ts are made of, in the folders of chapters 1 to 15. */
export const parts = program.filter(({ file }) => PART.test(file));
export const spine = [...top, ...parts];

export const chapterFolders = readdirSync(join(root, 'chapters'))
  .filter((name) => /^\d\d-/.test(name))
  .sort();

function typescriptIn(folder: string): string[] {
  const files = filesIn(join(root, folder), root).filter((file) => file.endsWith('.ts'));
  return files.filter((file) => !basename(file).startsWith('.')).sort();
}

function asSource(file: string): Source {
  return { file, text: read(root, file) };
}
