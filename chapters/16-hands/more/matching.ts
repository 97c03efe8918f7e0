// matching.ts: patterns of others against texts and paths, as work for a thread (aside.ts).

import { aside, type AsideOptions } from '../aside.ts';
import { globMatcher, globSize } from './glob.ts';

const MAX_SMALL = 1_000_000; // characters of a pattern × characters of paths

/** The numbers of the lines that match a regular expression. */
export function linesMatching(source: string, flags: string, lines: string[]): number[] {
  const pattern = new RegExp(source, flags);
  return lines.flatMap((line, n) => (pattern.test(line) ? [n] : []));
}

export function searchLines(options: AsideOptions, ...given: Parameters<typeof linesMatching>) {
  const job = { ...options, module: '16-hands/more/matching', name: 'linesMatching' };
  return aside<typeof linesMatching>(job, ...given);
}

/** The paths that fit a pattern with stars. */
export function pathsMatching(pattern: string, paths: string[]): string[] {
  return paths.filter(globMatcher(pattern));
}

/** What is little work is done here, and else in a thread. */
export function findPaths(options: AsideOptions, pattern: string, paths: string[]) {
  const isSmall = globSize(pattern) * paths.join('').length <= MAX_SMALL;
  if (isSmall) return pathsMatching(pattern, paths);
  const job = { ...options, module: '16-hands/more/matching', name: 'pathsMatching' };
  return aside<typeof pathsMatching>(job, pattern, paths);
}
