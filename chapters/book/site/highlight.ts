// highlight.ts: code in colours: one pattern for each kind of word. The book's code is regular, and
// where a pattern is wrong a colour is, never a letter.

import { escapeHtml } from './ink.ts';

const WORDS =
  'abstract as async await break case catch class const continue default delete do else export ' +
  'extends false finally for from function get if implements import in instanceof interface is ' +
  'let new null of override private protected public readonly return satisfies set static super ' +
  'switch this throw true try type typeof undefined unknown void while yield';

/** A class of the page's style → what has it. */
const KINDS: Record<string, string> = {
  c: String.raw`\/\/[^\n]*|\/\*[^]*?\*\/`,
  s: [
    String.raw`'(?:\\.|[^'\\\n])*'`,
    String.raw`"(?:\\.|[^"\\\n])*"`,
    '`(?:\\\\[^]|[^`\\\\])*`',
    String.raw`(?<=[=(,:&|?!] ?)\/(?![*/ ])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\n\\[])+\/[a-z]*`,
  ].join('|'),
  k: String.raw`\b(?:${WORDS.replaceAll(' ', '|')})\b(?! ?[:(])`,
  n: String.raw`\b\d[\d_]*(?:\.\d+)?\b`,
  t: String.raw`\b[A-Z]\w*`,
  f: String.raw`\b[a-z]\w*(?=\()`,
};
const TOKEN = new RegExp(
  Object.entries(KINDS)
    .map(([name, pattern]) => `(?<${name}>${pattern})`)
    .join('|'),
  'g',
);

/** The HTML of a block. Without its tags it is the block. */
export function highlight(code: string, language: string): string {
  return /^(ts|js|mjs|json)$/.test(language) ? inColours(code) : lineByLine(code);
}

function inColours(code: string): string {
  let html = '';
  let at = 0;
  for (const { 0: text, index, groups } of code.matchAll(TOKEN)) {
    const kind = Object.keys(KINDS).find((name) => groups![name] !== undefined)!;
    html += escapeHtml(code.slice(at, index)) + marked(text, kind);
    at = index + text.length;
  }
  return html + escapeHtml(code.slice(at));
}

/** A tag ends with its line, so that lines can be shown one by one. */
const marked = (text: string, kind: string) =>
  text
    .split('\n')
    .map((part) => part && `<i class="${kind}">${escapeHtml(part)}</i>`)
    .join('\n');

/** A console, or a wire: what we type and send, and what comes. */
function lineByLine(text: string): string {
  const lines = text.split('\n').map((line) => {
    if (line.startsWith('$ ')) return marked(line, 'typed');
    if (line.startsWith('→')) return marked(line, 'out');
    return line.startsWith('←') ? marked(line, 'in') : escapeHtml(line);
  });
  return lines.join('\n');
}

/** What a reader sees of such HTML: a check compares it with the block. */
export function textIn(html: string): string {
  const text = html.replace(/<[^<>]*>/g, '');
  const chars: Record<string, string> = { lt: '<', gt: '>', quot: '"', amp: '&' };
  return text.replace(/&(lt|gt|quot|amp);/g, (_, name: string) => chars[name]!);
}
