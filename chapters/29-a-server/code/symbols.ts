// symbols.ts: what a line defines. A pattern for each way to say it, not a parser for each
// language.

import type { LineFacts } from './line-facts.ts';

const MAX_NAMES = 20; // of one piece
const MAX_LINE = 300; // further to the right nothing is defined

const MODIFIERS =
  '(?:export|default|public|private|protected|internal|static|abstract|final|async|' +
  'override|readonly|declare|pub(?:\\([a-z]+\\))?|unsafe|extern|inline|virtual|sealed|partial|' +
  'const|open|suspend|data|local|get|set)';
const KEYWORDS =
  'function\\*?|class|interface|type|enum|struct|trait|impl(?:<[^>]*>)?|def|fn|func|fun|' +
  'module|namespace|record|object|protocol|extension|union|macro_rules!|defmodule|defp|sub|proc';

const NAME = '([A-Za-z_$][\\w$]*)';

const DEFINES: RegExp[] = [
  // function name, class Name, def name, func (receiver) name
  new RegExp(`^(?:${MODIFIERS}\\s+)*(?:${KEYWORDS})\\s+(?:\\([^)]*\\)\\s*)?([A-Za-z_$][\\w$]*)`),
  // const name = function, const name = async (…) =>
  new RegExp(
    `^(?:export\\s+)?(?:const|let|var|val)\\s+${NAME}\\s*(?::[^=]*)?=\\s*(?:async\\s*)?` +
      '(?:function\\b|class\\b|\\(|[\\w$]+\\s*=>|<)',
  ),
  // module.exports = function name
  new RegExp(`^module\\.exports\\s*=\\s*(?:async\\s+)?(?:function\\*?|class)\\s+${NAME}`),
  // exports.name = function, Name.prototype.name = function
  /^[\w$.]*\.([A-Za-z_$][\w$]*)\s*=\s*(?:async\s*)?(?:function\b|class\b|\([^)]*\)\s*=>|[\w$]+\s*=>)/,
  // name: function (…), name = (…) =>
  new RegExp(
    `^(?:(?:static|readonly|private|public|async)\\s+)*['"]?#?${NAME}['"]?\\s*[:=]\\s*` +
      '(?:async\\s*)?(?:function\\b|\\([^)]*\\)\\s*(?::[^=]*)?=>|[\\w$]+\\s*=>)',
  ),
];
/** name(…) { and int name(…) {: a method, and a function of C. What is before the name are its type
 *  and its modifiers. */
const CALL_OR_METHOD = /^((?:[\w<>[\],:*&]+\s+){0,5})[*&#~]?([A-Za-z_$][\w$]*)\s*(?:<[^>()]*>)?\(/;
const BODY = /^\s*(?:(?::|->|const\b|noexcept\b|throws\b|where\b)[^={]*)?\{/;
const NOT_NAMES = new Set(
  (
    'if for while switch catch return function with do else new throw await typeof ' +
    'super require import case sizeof elif except yield'
  ).split(' '),
);

/** The name that this line defines, or "". */
export function definedIn(line: string): string {
  if (line.length > MAX_LINE * 4) return '';
  const words = line.trimStart().slice(0, MAX_LINE);
  for (const pattern of DEFINES) {
    const name = pattern.exec(words)?.[1];
    if (name && !NOT_NAMES.has(name)) return name;
  }
  return methodIn(words);
}

/** A call looks like a method until behind its parentheses. */
function methodIn(words: string) {
  const [begin, before = '', name = ''] = CALL_OR_METHOD.exec(words) ?? [];
  const isCall = /\b(?:return|new|await|throw|else)\s/.test(before);
  if (begin === undefined || isCall || NOT_NAMES.has(name)) return '';
  let open = 1;
  for (let at = begin.length; at < words.length; at++) {
    if (words[at] === '(') open++;
    if (words[at] === ')') open--;
    if (open === 0) return BODY.test(words.slice(at + 1)) ? name : '';
  }
  const goesOn = /[(,]\s*$/.test(words); // its parameters are on lines of their own
  return before !== '' && goesOn ? name : '';
}

/** All names that some lines define, the outermost first. */
export function namesDefined(
  { lines, kind, depth }: LineFacts,
  from: number,
  to: number,
): string[] {
  const found: { name: string; depth: number }[] = [];
  for (let n = from; n < to && found.length < MAX_NAMES; n++) {
    if (kind[n] !== 0) continue; // blank, inside of something, a comment or an end
    const name = definedIn(lines[n]!);
    if (name) found.push({ name, depth: depth[n]! });
  }
  found.sort((one, two) => one.depth - two.depth);
  return [...new Set(found.map(({ name }) => name))];
}
