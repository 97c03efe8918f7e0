// shapes.ts: long functions, and classes and types with many fields. Biome has formatted every
// file, so what begins at some column ends with the next closing bracket at the same column.

import type { Source } from './sources.ts';
import { bareCode } from './tokens.ts';

/** `size` is a number of lines, or of fields. */
export type Shape = { name: string; file: string; line: number; size: number };

const OPENS_FUNCTION = /=> (?:\{|\(\{|\[|\(\[)$|\)(?:: .+)? \{$/;
const CONTROL = /^(?:\} )?(?:if|else|for|while|switch|try|catch|finally|do)\b/;
const MODIFIERS =
  /^(?:(?:export|default|async|static|private|protected|override|readonly|const|let|get|set|function\*?) )*\*?/;
const CLASS = /^(?:export )?(?:default )?(?:abstract )?class (\w+)/;
const TYPE = /^(?:export )?(?:type|interface) (\w+).*\{$/;
const MEMBER =
  /^(?:(?:private|protected|public|readonly|override|declare) )*#?([\w$]+)[?!]?(?::|;| =)/;
const IS_FUNCTION = / = (?:async )?(?:\(|\w+ =>|function\b)/;

/** Every function with a body of several lines, in the order of their ends. */
export function functionsIn({ file, text }: Source): Shape[] {
  const lines = bareCode(text).split('\n');
  return lines.flatMap((line, n) => {
    if (!OPENS_FUNCTION.test(line)) return [];
    const start = headOf(lines, n);
    const head = lines[start]!.trim();
    if (CONTROL.test(head)) return [];
    const named = /^[\w.$#]+/.exec(head.replace(MODIFIERS, ''))?.[0] ?? '(no name)';
    const owner = classAround(lines, start);
    const name = owner ? `${owner}.${named}` : named;
    return [{ name, file, line: start + 1, size: endOf(lines, n) - start + 1 }];
  });
}

/** Fields, not methods; a field that holds a function is a method that keeps its `this`. */
export function classesIn(source: Source): Shape[] {
  return blocksOf(source, CLASS, (line) => MEMBER.test(line) && !IS_FUNCTION.test(line));
}

export function typesIn(source: Source): Shape[] {
  return blocksOf(source, TYPE, (line) => /^(?:readonly )?\w+\??[:(<]/.test(line));
}

/** The blocks at the left margin that begin so, with the number of their own lines that count. */
function blocksOf({ file, text }: Source, begins: RegExp, counts: (line: string) => boolean) {
  const lines = bareCode(text).split('\n');
  return lines.flatMap((line, n): Shape[] => {
    const name = begins.exec(line)?.[1];
    if (!name) return [];
    const inside = lines.slice(n + 1, endOf(lines, n)).filter((each) => /^ {2}\S/.test(each));
    return [
      { name, file, line: n + 1, size: inside.map((each) => each.trim()).filter(counts).length },
    ];
  });
}

const indentOf = (line: string) => line.search(/\S/);

/** Parameters may have lines of their own: then `) {` is below the line with the name. */
function headOf(lines: string[], at: number): number {
  if (!/^\s*[)\]}]/.test(lines[at]!)) return at;
  const indent = indentOf(lines[at]!);
  let start = at - 1;
  while (start > 0 && indentOf(lines[start]!) !== indent) start--;
  return start;
}

function endOf(lines: string[], at: number): number {
  const indent = indentOf(lines[at]!);
  const closes = (line: string) => indentOf(line) === indent && /^\s*[)\]}]/.test(line);
  const length = lines.slice(at + 1).findIndex(closes);
  return at + 1 + length;
}

function classAround(lines: string[], at: number): string | undefined {
  if (indentOf(lines[at]!) === 0) return undefined;
  const above = lines.slice(0, at).findLast((line) => /^[^\s})\]]/.test(line));
  return CLASS.exec(above ?? '')?.[1];
}
