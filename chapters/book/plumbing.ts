// plumbing.ts: what ties the files of a program together. A statement `import … from '…'` or `export … from '…'` need not
// be quoted: it is there in every program that has the file it names, with the names that are used there.

import { posix } from 'node:path';

/** Such a statement: lines `start` to `end` of its file. Without `names` it takes or gives everything. */
export type Tie = {
  start: number;
  end: number;
  text: string;
  verb: 'import' | 'export';
  isType: boolean;
  names?: TiedName[];
  path: string;
};
/** `name` is what the other file calls it, `local` what this one does. */
type TiedName = { isType: boolean; name: string; local: string };

const BEGINS = /^(import|export) (type )?(\{|\*|\w+ from )/;
const ENDS = / from '([^']+)';/;

export function tiesIn(source: string[]): Tie[] {
  const ties: Tie[] = [];
  for (let start = 0; start < source.length; start++) {
    if (!BEGINS.test(source[start]!)) continue;
    const end = source.findIndex(
      (line, n) => n >= start && /[;}]$/.test(line.replace(/\s*\/\/.*/, '')),
    );
    const text = source.slice(start, end + 1).join('\n');
    const path = ENDS.exec(text)?.[1];
    if (path === undefined) continue; // export { x }; or a declaration
    const verb = text.startsWith('import') ? 'import' : 'export';
    ties.push({
      start,
      end,
      text,
      verb,
      isType: / type /.test(text.slice(0, 12)),
      names: namesIn(text),
      path,
    });
    start = end;
  }
  return ties;
}

function namesIn(text: string): TiedName[] | undefined {
  const [, list] = /^[^{']*\{([^}]*)\}/.exec(text) ?? [];
  const written = list?.split(',').map((each) => each.trim());
  return written?.filter(Boolean).map((each) => {
    const isType = each.startsWith('type ');
    const [name = '', local = name] = each.replace(/^type /, '').split(' as ');
    return { isType, name, local };
  });
}

/** How many lines the comment at the top of a file has, with the blank ones around it. */
export function headIn(source: string[]): number {
  const end = source.findIndex((line) => line !== '' && !/^(\/\/|#!)/.test(line));
  return end === -1 ? source.length : end;
}

export const targetOf = (file: string, path: string) => posix.join(posix.dirname(file), path);

export function pathTo(file: string, target: string): string {
  const path = posix.relative(posix.dirname(file), target);
  return path.startsWith('.') ? path : `./${path}`;
}

/** The statement with these of its names; undefined if none is left. */
export function withNames(tie: Tie, names: TiedName[]): string | undefined {
  if (names.length === 0) return undefined;
  if (names.length === tie.names?.length) return tie.text;
  const start = `${tie.verb} ${tie.isType ? 'type ' : ''}`;
  const written = names.map(({ isType, name, local }) => {
    const both = name === local ? name : `${name} as ${local}`;
    return isType ? `type ${both}` : both;
  });
  return folded(start, written, tie.path);
}

/** As the formatter writes it: in one line, or one name a line. */
export function folded(start: string, names: string[], path: string): string {
  const line = `${start}{ ${names.join(', ')} } from '${path}';`;
  if (line.length <= 100) return line;
  return `${start}{\n${names.map((name) => `  ${name},\n`).join('')}} from '${path}';`;
}

const DECLARED =
  /^(?:export )?(?:declare )?(?:abstract )?(?:async )?(type|interface|class|const|let|function)\*? (\w+)/;

export type Declared = { name: string; isType: boolean; isExported: boolean };

/** What these lines declare at the top of a file. */
export function declaredIn(lines: string[]): Declared[] {
  return lines.flatMap((line) => {
    const [, kind = '', name] = DECLARED.exec(line) ?? [];
    if (!name) return [];
    return [
      { name, isType: /^(type|interface)$/.test(kind), isExported: line.startsWith('export ') },
    ];
  });
}

/** The identifiers in the code of some lines, without those in comments. */
export function wordsIn(lines: string[]): Set<string> {
  const code = lines
    .filter((line) => !/^\s*(\/\/|\/?\*)/.test(line))
    .map((line) => line.replace(/\s\/\/ .*$/, ''));
  return new Set(code.join('\n').match(/[A-Za-z_$][\w$]*/g));
}
