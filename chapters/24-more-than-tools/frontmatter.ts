// frontmatter.ts: what a SKILL.md says of itself, between two lines of "---". It is YAML, of which
// this knows the part that people write there. What it does not know it refuses, with the line: a
// guess could differ from what others read, and the fields are compared with what was approved.

import type { Json } from '../../mcp.ts';

const MAX_FRONTMATTER = 65_536; // characters
const MAX_LEVELS = 20;
const MAX_FLOW_LINES = 100; // of one [list] or {mapping}

/** The fields, and the text behind them. Throws with the line that cannot be read. */
export function parseFrontmatter(text: string): { fields: Json; body: string } {
  const lines = text
    .replace(/^\ufeff/, '')
    .split('\n')
    .map((line) => line.replace(/\r$/, ''));
  if (!isRule(lines[0] ?? '')) throw new Error('it does not begin with a line "---"');
  const end = lines.findIndex((line, n) => n > 0 && isRule(line));
  if (end === -1) throw new Error('no second line "---" ends its frontmatter');
  const inside = lines.slice(1, end);
  if (inside.join('\n').length > MAX_FRONTMATTER)
    throw new Error(`its frontmatter has more than ${MAX_FRONTMATTER} characters`);
  const fields = new Yaml(inside).document();
  return { fields, body: lines.slice(end + 1).join('\n') };
}

const isRule = (line: string) => line.startsWith('---') && line.slice(3).trim() === '';
const indentOf = (line: string) => line.length - line.trimStart().length;
const isEmpty = (line: string) => line.trim() === '' || line.trimStart().startsWith('#');
const isItem = (text: string) => text === '-' || text.startsWith('- ');

/** Reads lines by their indentation. */
class Yaml {
  private lines: string[];
  private at = 0;

  constructor(lines: string[]) {
    this.lines = lines;
  }

  document(): Json {
    const tabbed = this.lines.findIndex((line) => line.includes('\t'));
    if (tabbed !== -1) throw this.error('a tab; write blanks, or \\t in double quotes', tabbed);
    const indent = this.nextIndent();
    if (indent === undefined) throw new Error('its frontmatter is empty');
    if (isItem(this.text())) throw this.error('a list, where there should be fields');
    const fields = this.mapping(indent, 1);
    if (this.nextIndent() !== undefined) throw this.error('a line that belongs to nothing');
    return fields;
  }

  // ── Blocks ──

  private block(indent: number, level: number): unknown {
    if (level > MAX_LEVELS) throw this.error(`more than ${MAX_LEVELS} levels`);
    return isItem(this.text()) ? this.sequence(indent, level) : this.mapping(indent, level);
  }

  private mapping(indent: number, level: number): Json {
    const entries = new Map<string, unknown>();
    while (this.nextIndent() === indent && !isItem(this.text())) {
      const { key, rest } = this.key(this.text());
      if (entries.has(key)) throw this.error(`the field ${key} twice`);
      this.at++;
      entries.set(key, this.value(rest, indent, level));
    }
    this.mustNotBeDeeper(indent);
    return Object.fromEntries(entries); // also of "__proto__" this makes a field like any other
  }

  private sequence(indent: number, level: number) {
    const items: unknown[] = [];
    while (this.nextIndent() === indent && isItem(this.text()))
      items.push(this.item(indent, level));
    this.mustNotBeDeeper(indent);
    return items;
  }

  /** "- name: x" begins a mapping whose fields are below "name". */
  private item(indent: number, level: number): unknown {
    const rest = this.text().slice(1);
    const within = indent + 1 + indentOf(rest);
    const isNested = isItem(rest.trimStart()) || this.isField(rest.trimStart());
    if (!isNested) {
      this.at++;
      return this.value(rest.trimStart(), indent, level, 'item');
    }
    this.lines[this.at] = ' '.repeat(within) + rest.trimStart();
    return this.block(within, level + 1);
  }

  private isField(text: string) {
    if (/^["'[{|>&*!%@`#]/.test(text)) return false;
    return text.endsWith(':') || text.includes(': ');
  }

  private key(text: string): { key: string; rest: string } {
    const isQuoted = text.startsWith('"') || text.startsWith("'");
    const end = isQuoted ? closing(text) + 1 : colonIn(text);
    if (end <= 0) throw this.error('neither a field ("name: value") nor a part of one');
    const key = isQuoted ? this.unquoted(text.slice(0, end)) : text.slice(0, end).trimEnd();
    const after = text.slice(end).trimStart();
    const isName = isQuoted || (/^\w[\w ./-]*$/.test(key) && typeof scalar(key) === 'string');
    if (!isName || !/^:(\s|$)/.test(after))
      throw this.error(`a name that it does not know: ${key}`);
    return { key, rest: after.slice(1).trim() };
  }

  /** `rest` is what is behind the colon or the dash. Its line has been taken. */
  private value(rest: string, indent: number, level: number, of = 'field'): unknown {
    if (rest === '' || rest.startsWith('#')) return this.below(indent, level, of);
    const [first = ''] = rest;
    if (first === '|' || first === '>') return this.blockScalar(rest, indent);
    if (first === '"' || first === "'") return this.quotedScalar(rest, indent);
    if (first === '[' || first === '{') return this.flow(rest, indent, level);
    if (/^([&*!%@`,\]}]|[-?:]( |$))/.test(rest)) {
      this.at--; // its line is the one to name
      throw this.error(`a value that begins with ${first}, which it does not know`);
    }
    return this.plainScalar(rest, indent);
  }

  /** A list may be as far to the left as the field that it belongs to. */
  private below(indent: number, level: number, of: string): unknown {
    const next = this.nextIndent();
    const isList = of === 'field' && next === indent && isItem(this.text());
    if (next === undefined || (next <= indent && !isList)) return null;
    return this.block(next, level + 1);
  }

  // ── Texts ──

  private plainScalar(rest: string, indent: number): unknown {
    const parts = [withoutComment(rest)];
    const isWhole = parts[0] === rest; // a comment ends it
    while (isWhole && this.goesOn(indent)) parts.push(this.lines[this.at++]!.trim());
    while (parts.at(-1) === '') parts.pop();
    if (parts.some((part) => /:( |$)| #|^#/.test(part))) {
      this.at--;
      throw this.error('": " or "#" in a text without quotes; put the text into quotes');
    }
    const value = parts.length === 1 ? scalar(parts[0]!) : folded(parts);
    if (!isNoJson(value)) return value;
    this.at--;
    throw this.error('a number that JSON cannot write');
  }

  private quotedScalar(rest: string, indent: number) {
    const parts = [rest];
    let end = closing(rest);
    let text = rest;
    while (end === -1 && this.goesOn(indent)) {
      parts.push(this.lines[this.at++]!.trim());
      const [quote = '', last = ''] = [rest[0], parts.at(-1)];
      if (closing(quote + last) !== -1 || this.at === this.lines.length) {
        text = folded(parts);
        end = closing(text);
      }
    }
    if (end === -1) throw this.error('a quote that does not end');
    if (parts.slice(0, -1).some((part) => part.endsWith('\\')))
      throw this.error('a backslash at the end of a line, which it does not know');
    if (withoutComment(text.slice(end + 1)) !== '')
      throw this.error('something behind the quote that ends a text');
    return this.unquoted(text.slice(0, end + 1));
  }

  private unquoted(text: string) {
    const inner = text.slice(1, -1);
    if (text.startsWith("'")) return inner.replaceAll("''", "'");
    return inner.replace(/\\(x[\da-f]{2}|u[\da-f]{4}|U[\da-f]{8}|[^])/gi, (_, code: string) => {
      const known = ESCAPES[code];
      if (known !== undefined) return known;
      const point = code.length > 1 ? parseInt(code.slice(1), 16) : NaN;
      if (!(point <= 0x10ffff)) throw this.error(`an escape that it does not know: \\${code}`);
      return String.fromCodePoint(point);
    });
  }

  /** "|" keeps the line ends, ">" makes one line of them. Both end with one, or none ("-"). */
  private blockScalar(rest: string, indent: number) {
    const [, style, end = ''] = /^([|>])([+-]?)$/.exec(withoutComment(rest)) ?? [];
    if (style === undefined) {
      this.at--;
      throw this.error(`a text that begins with ${rest}, which it does not know`);
    }
    const raw: string[] = [];
    while (this.at < this.lines.length && this.isInside(indent)) raw.push(this.lines[this.at++]!);
    const within = indentOf(raw.find((line) => line.trim() !== '') ?? '');
    const first = raw.findIndex((line) => line.trim() !== '');
    const isOdd = (line: string, n: number) =>
      (line.trim() !== '' && indentOf(line) < within) || (n < first && line.length > within);
    if (raw.some(isOdd)) throw this.error('a text whose lines are not indented alike');
    const lines = raw.map((line) => (first === -1 ? '' : line.slice(within)));
    const last = lines.findLastIndex((line) => line !== '');
    const content = lines.slice(0, last + 1);
    const body = style === '|' ? content.join('\n') : folded(content);
    if (end === '-') return body;
    const ends = end === '+' ? lines.length - content.length : 0;
    return body === '' ? '\n'.repeat(ends) : body + '\n'.repeat(1 + ends);
  }

  // ── Lists and mappings in brackets, as JSON has them, and with texts without quotes ──

  private flow(rest: string, indent: number, level: number): unknown {
    let text = rest;
    let found = flowParts(text);
    for (let lines = 1; !found; lines++) {
      if (lines > MAX_FLOW_LINES || !this.goesOn(indent))
        throw this.error('a bracket that does not end');
      text += ` ${withoutComment(this.lines[this.at++]!.trim())}`;
      found = flowParts(text);
    }
    this.at--; // its last line, for the errors
    const value = this.flowValue(found.parts, level);
    if (withoutComment(found.rest).trim() !== '')
      throw this.error('something behind a closed bracket');
    this.at++;
    return value;
  }

  /** Takes the first value out of these parts. */
  private flowValue(parts: string[], level: number): unknown {
    if (level > MAX_LEVELS) throw this.error(`more than ${MAX_LEVELS} levels`);
    const [first = ''] = parts.splice(0, 1);
    if (first === '[') return this.flowItems(parts, level);
    if (first === '{') return this.flowFields(parts, level);
    if (/^["']/.test(first)) return this.unquoted(first);
    const value = scalar(first);
    if (isNoJson(value) || /^([&*!%@`|>#?]|-( |$)|[,:\]}]?$)| #/.test(first))
      throw this.error(`a value in brackets that it does not know: ${first}`);
    return value;
  }

  private flowItems(parts: string[], level: number) {
    const items: unknown[] = [];
    while (!this.flowEnds(parts, ']', items.length)) items.push(this.flowValue(parts, level + 1));
    return items;
  }

  private flowFields(parts: string[], level: number): Json {
    const entries = new Map<string, unknown>();
    while (!this.flowEnds(parts, '}', entries.size)) {
      const [name = '', colon] = parts.splice(0, 2);
      const key = /^["']/.test(name) ? this.unquoted(name) : name;
      if (colon !== ':') throw this.error('a field in braces without a colon');
      if (entries.has(key)) throw this.error(`the field ${key} twice`);
      entries.set(key, this.flowValue(parts, level + 1));
    }
    return Object.fromEntries(entries);
  }

  /** Behind the first there is a comma, which may also be the last before the end. */
  private flowEnds(parts: string[], end: string, count: number) {
    const hasComma = count > 0 && parts[0] === ',';
    if (hasComma) parts.shift();
    const isEnd = parts[0] === end;
    if (isEnd) parts.shift();
    if (isEnd || count === 0 || hasComma) return isEnd;
    throw this.error(`"${parts[0]}" where a comma or ${end} should be`);
  }

  // ── Lines ──

  private text() {
    return this.lines[this.at]!.trim();
  }

  /** How far the next line with something in it is indented. */
  private nextIndent() {
    while (this.at < this.lines.length && isEmpty(this.lines[this.at]!)) this.at++;
    const line = this.lines[this.at];
    if (line === undefined) return undefined;
    return indentOf(line);
  }

  private mustNotBeDeeper(indent: number) {
    const next = this.nextIndent();
    if (next !== undefined && next > indent) throw this.error('a line that is indented too far');
  }

  /** Is the present line part of a text that began further left? */
  private isInside(indent: number) {
    const line = this.lines[this.at]!;
    return line.trim() === '' || indentOf(line) > indent;
  }

  private goesOn(indent: number) {
    return this.at < this.lines.length && this.isInside(indent);
  }

  /** With the number of the line in its file. */
  private error(what: string, at = this.at) {
    const line = Math.min(at, this.lines.length - 1) + 2;
    return new Error(`its frontmatter has ${what} (line ${line})`);
  }
}

// ─── Small parts ───────────────────────────────────────────────────────────────────────────────

const ESCAPES: Record<string, string | undefined> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  ' ': ' ',
  n: '\n',
  t: '\t',
  r: '\r',
  0: '\0',
  b: '\b',
  f: '\f',
};

const NUMBER = /^([-+]?(\.\d+|\d+(\.\d*)?)([eE][-+]?\d+)?|0x[\da-fA-F]+|0o[0-7]+)$/;

/** The core schema of YAML 1.2: "yes" and dates are texts there, unlike in 1.1. */
function scalar(text: string): unknown {
  if (/^(~|null|Null|NULL)$/.test(text)) return null;
  if (/^(true|True|TRUE)$/.test(text)) return true;
  if (/^(false|False|FALSE)$/.test(text)) return false;
  if (NUMBER.test(text)) return Number(text);
  return /^([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$/.test(text) ? NaN : text;
}

/** Infinity and the like are numbers in YAML, and nothing in JSON. */
const isNoJson = (value: unknown) => typeof value === 'number' && !Number.isFinite(value);

/** Where the quote ends that begins a text; -1 if it does not. */
const closing = (text: string) =>
  (/^(?:"(?:\\[^]|[^"\\])*"|'(?:''|[^'])*'(?!'))/.exec(text)?.[0].length ?? 0) - 1;

/** The colon behind a name: one with a blank or nothing behind it. */
const colonIn = (text: string) => text.search(/: |:$/);

/** A comment begins with " #". Texts in quotes are not given to this. */
const withoutComment = (text: string) => text.split(' #', 1)[0]!.trimEnd();

// A text in quotes, a sign, or a text without quotes, which ends before a sign.
const FLOW_PART =
  / *("(?:\\.|[^"\\])*"|'(?:''|[^'])*'|[[\]{},]|:(?=[ ,[\]{}]|$)|(?!["'])(?:[^,[\]{}:]|:(?![ ,[\]{}]|$))+)/gy;

/** What is between brackets, with them, and what is behind. Nothing if they do not close. */
function flowParts(text: string): { parts: string[]; rest: string } | undefined {
  const parts: string[] = [];
  let depth = 0;
  for (const { 0: whole, 1: part = '', index } of text.matchAll(FLOW_PART)) {
    parts.push(part.trim());
    if ('[{'.includes(part)) depth++;
    if (']}'.includes(part)) depth--;
    if (depth === 0) return { parts, rest: text.slice(index + whole.length) };
  }
  return undefined;
}

/** One line end becomes a blank, each further one stays. So do the ends of lines that are indented
 *  further than the others. */
function folded(lines: string[]): string {
  let text = '';
  let ends = ''; // the line ends since the last line that was not empty
  let wasFlush = false;
  for (const [at, line] of lines.entries()) {
    if (at > 0) ends += '\n';
    if (line === '') continue;
    const isFlush = /^\S/.test(line);
    text += wasFlush && isFlush ? ends.slice(1) || ' ' : ends;
    text += line;
    wasFlush = isFlush;
    ends = '';
  }
  return text + ends;
}
