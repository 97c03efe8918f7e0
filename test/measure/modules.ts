// modules.ts: what imports what, and which names are there more than once.

import { basename, posix } from 'node:path';
import type { Source } from './sources.ts';

const FROM = /^(import|export)( type)?\b[^;'"]*?\bfrom '(\.[^']+)';|^import '(\.[^']+)';/gm;
const EXPORTED =
  /^export (?:declare )?(?:abstract )?(?:async )?(?:class|function\*?|const|let|type|interface) (\w+)/gm;

/** Groups of modules that need each other's values to load. Types are gone by then. */
export function cyclesIn(sources: Source[]): string[][] {
  const imports = new Map(sources.map((source) => [source.file, valuesFrom(source)]));
  const reach = new Map([...imports.keys()].map((file) => [file, reachableFrom(file, imports)]));
  const groups = new Set<string>();
  for (const [file, others] of reach) {
    const group = [...others].filter((other) => reach.get(other)?.has(file));
    if (group.length > 0) groups.add(group.sort().join(' '));
  }
  return [...groups].map((group) => group.split(' '));
}

function valuesFrom({ file, text }: Source): string[] {
  const found = [...text.matchAll(FROM)].filter(([, , type]) => !type);
  return found.map(([, , , from, bare]) => posix.join(posix.dirname(file), from ?? bare!));
}

/** A file reaches itself only by way of others. */
function reachableFrom(file: string, imports: Map<string, string[]>): Set<string> {
  const reached = new Set<string>();
  const queue = [...(imports.get(file) ?? [])];
  for (let next = queue.pop(); next; next = queue.pop()) {
    if (reached.has(next)) continue;
    reached.add(next);
    queue.push(...(imports.get(next) ?? []));
  }
  return reached;
}

/** Names that several files export, each with those files. */
export function exportedTwice(sources: Source[]): [name: string, files: string[]][] {
  return severalOf(sources, ({ text }) => {
    return new Set([...text.matchAll(EXPORTED)].map(([, name]) => name!)); // overloads are one
  });
}

export function basenamesTwice(sources: Source[]): [name: string, files: string[]][] {
  return severalOf(sources, ({ file }) => [basename(file)]);
}

function severalOf(sources: Source[], namesOf: (source: Source) => Iterable<string>) {
  const homes = new Map<string, string[]>();
  for (const source of sources)
    for (const name of namesOf(source)) homes.set(name, [...(homes.get(name) ?? []), source.file]);
  const several = [...homes].filter(([, files]) => files.length > 1);
  return several.sort(([, a], [, b]) => b.length - a.length);
}
