// line-facts.ts: one pass over a text says of each line how deep it is, how much is in it, and
// whether something can begin there. The cutter asks nothing else of a line.

export const BLANK = 1; // nothing is in it
export const INSIDE = 2; // it goes on with a comment or a string of the lines above
export const CLOSER = 4; // } or else: it belongs to what is above
export const COMMENT = 8; // it and a decorator belong to what is below

export type LineFacts = {
  lines: string[]; // without their ends
  depth: Int32Array; // of the first character, in columns
  size: Int32Array; // characters that are not blank
  kind: Uint8Array; // the bits above
};

const TAB = 9;
const SPACE = 32;
const TAB_WIDTH = 4;
const MAX_DEPTH = 10_000;
const HEADING_DEPTH = 8; // of what is below headings, which have 1 to 6

/** What a family of languages has. A language that is not here still has indentation. */
type Syntax = { block: boolean; hash: boolean; template: boolean; triple: boolean; prose: boolean };
const NONE: Syntax = { block: false, hash: false, template: false, triple: false, prose: false };
const BRACES = { ...NONE, block: true };
const SCRIPT = { ...BRACES, template: true };
const HASH = { ...NONE, hash: true };
const FAMILIES: [names: string, syntax: Syntax][] = [
  ['js jsx mjs cjs ts tsx mts cts vue svelte go', SCRIPT],
  ['java c h cc cpp hpp cs rs php swift kt kts scala dart css scss less proto groovy zig', BRACES],
  ['py pyi', { ...HASH, triple: true }],
  ['rb sh bash zsh fish pl r yaml yml toml ini conf tf nix ex exs cmake make mk jl', HASH],
  ['md markdown mdx rst txt adoc', { ...NONE, prose: true }],
];
const SYNTAX = new Map(
  FAMILIES.flatMap(([names, syntax]) =>
    names.split(' ').map((name): [string, Syntax] => [name, syntax]),
  ),
);

const ENDS = 'end|else|elif|elsif|except|catch|finally|rescue|ensure|then|do|fi|done|esac';
const CLOSES = new RegExp(`^(?:[)\\]}]|(?:${ENDS})\\b|</|while\\b.*;$)`);
const COMMENTS = /^(?:\/\/|\/\*|\*|#|@\w|--|;;|%|"""|'''|\[[A-Z]\w*)/;
const HEADING = /^\ufeff?(#{1,6})\s/;

export function lineFactsOf(text: string, extension: string): LineFacts {
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop(); // the end of the last line, not a line
  const syntax = SYNTAX.get(extension) ?? NONE;
  const facts: LineFacts = {
    lines,
    depth: new Int32Array(lines.length),
    size: new Int32Array(lines.length),
    kind: new Uint8Array(lines.length),
  };
  const scanner = new Scanner(syntax);
  for (let n = 0; n < lines.length; n++) look(facts, n, scanner, syntax);
  return facts;
}

function look(facts: LineFacts, n: number, scanner: Scanner, syntax: Syntax) {
  const line = facts.lines[n]!;
  const start = indentation(facts, n);
  const wasInside = scanner.isInside;
  scanner.pass(line, start);
  if (start === line.length) facts.kind[n] = BLANK;
  else if (wasInside) facts.kind[n] = INSIDE;
  else if (syntax.prose) facts.kind[n] = prose(facts, n);
  else facts.kind[n] = kindOf(line.slice(start, start + 80).trimEnd(), syntax);
}

/** Counts what is in a line, and returns where it begins. */
function indentation(facts: LineFacts, n: number) {
  const line = facts.lines[n]!;
  let start = -1;
  let depth = 0;
  let size = 0;
  for (let i = 0; i < line.length; i++) {
    const code = line.charCodeAt(i);
    const isBlank = code === SPACE || (code >= TAB && code <= 13) || code === 0xfeff;
    if (!isBlank) size++;
    if (!isBlank && start === -1) start = i;
    if (start === -1) depth += code === TAB ? TAB_WIDTH : Number(code === SPACE);
  }
  facts.depth[n] = Math.min(depth, MAX_DEPTH);
  facts.size[n] = size;
  return start === -1 ? line.length : start;
}

function kindOf(begin: string, { hash }: Syntax): number {
  if (CLOSES.test(begin)) return CLOSER;
  if (!COMMENTS.test(begin)) return 0;
  const isDirective = begin.startsWith('#') && !hash && !begin.startsWith('#['); // #include, #endif
  return isDirective ? 0 : COMMENT;
}

/** In prose a section belongs to its heading, and a paragraph begins after a blank line. */
function prose(facts: LineFacts, n: number): number {
  const level = HEADING.exec(facts.lines[n]!)?.[1]?.length;
  if (level) facts.depth[n] = level;
  else facts.depth[n] = Math.min(HEADING_DEPTH + facts.depth[n]!, MAX_DEPTH);
  if (level || n === 0) return 0;
  const isFirst = (facts.kind[n - 1]! & BLANK) !== 0 || facts.depth[n - 1]! < HEADING_DEPTH;
  return isFirst ? 0 : CLOSER;
}

// ─── Comments and strings that go on over lines ───────────────────────────────────────────────

const MAX_REGEX = 200; // characters
const BACKTICK = '`';
const BEFORE_REGEX = /(?:^|[(,=:[!&|?{};+*%<>~^-]|\b(?:return|typeof|case|in|of))\s*$/;

/** Knows after each line whether the next one begins inside of something. */
class Scanner {
  private syntax: Syntax;
  private end = ''; // what ends the thing that we are in
  private braces: number[] = []; // open { of each ${ in a template

  constructor(syntax: Syntax) {
    this.syntax = syntax;
  }

  get isInside(): boolean {
    return this.end !== '';
  }

  pass(line: string, from: number) {
    let at = from;
    while (at < line.length) at = this.end ? this.inside(line, at) : this.outside(line, at);
  }

  private inside(line: string, at: number) {
    if (this.end !== BACKTICK) {
      const end = line.indexOf(this.end, at);
      if (end === -1) return line.length;
      const after = end + this.end.length;
      this.end = '';
      return after;
    }
    const char = line[at];
    if (char === '\\') return at + 2;
    if (char === BACKTICK) this.end = '';
    if (char !== '$' || line[at + 1] !== '{') return at + 1;
    this.braces.push(0);
    this.end = '';
    return at + 2;
  }

  private outside(line: string, at: number) {
    const { block, hash, template, triple } = this.syntax;
    const char = line[at]!;
    if (char === '/' && block) return this.slash(line, at);
    if (char === '#' && hash) return line.length;
    if (char === '"' || char === "'") {
      const three = char.repeat(3);
      if (!triple || !line.startsWith(three, at)) return endOfString(line, at);
      this.end = three;
      return at + 3;
    }
    if (template) this.templates(char);
    return at + 1;
  }

  private templates(char: string) {
    if (char === BACKTICK) this.end = BACKTICK;
    const depth = this.braces.length - 1;
    if (depth < 0) return;
    if (char === '{') this.braces[depth]!++;
    if (char !== '}') return;
    if (this.braces[depth] === 0) {
      this.braces.pop();
      this.end = BACKTICK; // back in the template
    } else this.braces[depth]!--;
  }

  private slash(line: string, at: number) {
    const next = line[at + 1];
    if (next === '/') return line.length;
    if (next === '*') {
      this.end = '*/';
      return at + 2;
    }
    // A regular expression may have a quote or a backtick in it, which begins nothing.
    const isRegex = this.syntax.template && BEFORE_REGEX.test(line.slice(Math.max(0, at - 12), at));
    return isRegex ? endOfRegex(line, at) : at + 1;
  }
}

/** A string ends with its line at the latest: it may be an apostrophe in a comment. */
function endOfString(line: string, from: number) {
  const quote = line[from];
  for (let at = from + 1; at < line.length; at++)
    if (line[at] === '\\') at++;
    else if (line[at] === quote) return at + 1;

  return line.length;
}

/** Looked for nearby only: a line of a megabyte may hold a slash in every third place. */
function endOfRegex(line: string, from: number) {
  let isInClass = false;
  const end = Math.min(line.length, from + MAX_REGEX);
  for (let at = from + 1; at < end; at++)
    if (line[at] === '\\') at++;
    else if (line[at] === '[') isInClass = true;
    else if (line[at] === ']') isInClass = false;
    else if (line[at] === '/' && !isInClass) return at + 1;

  return from + 1; // it was a division
}
