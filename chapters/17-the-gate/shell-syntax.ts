// shell-syntax.ts: a command line taken apart into the commands that a shell would run. It knows
// the part of the grammar that can be read with certainty: what it does not know for sure, it does
// not guess. bash, dash and the old bash of a Mac must all agree with it, for one of them will run
// it.

/** A word after its quotes are removed. */
export type Word = {
  text: string;
  isPlain: boolean; // the shell makes exactly this of it: no variable, no pattern, no substitution
  isGlob?: boolean; // it is not plain because of *, ? or [ alone
};
/** A file that the shell itself opens: `< file`, `> file`. Never /dev/null. */
type Redirection = { kind: 'read' | 'write'; file: Word };
/** One simple command, wherever it is in the line: in a pipe, in ( ), in $( ), in backticks. */
export type SimpleCommand = {
  words: Word[];
  assigns: boolean; // FOO=x before it: that may change what the command does
  redirections: Redirection[];
  isFed?: boolean; // it reads what the line gives it: a pipe, a file, a text
};

/** The commands of a line; nothing if we cannot be sure of all of them. */
export function takeApart(line: string): SimpleCommand[] | undefined {
  if (line.length > MAX_LINE || isOdd(line)) return undefined;
  try {
    const parts = new LineReader(line).read();
    const size = parts.reduce((sum, { words }) => sum + 1 + words.length, 0);
    return size > MAX_SIZE ? undefined : parts;
  } catch (error) {
    if (error instanceof Unsure) return undefined;
    throw error;
  }
}

class Unsure extends Error {}

const MAX_LINE = 30_000; // characters: the shell tool takes no more
const MAX_DEPTH = 20;
const MAX_SIZE = 300; // commands and words: for each we look at files
export const SHELL_KEYWORDS = new Set(
  (
    'if then else elif fi case esac for select while until do done in function coproc ' +
    '[[ ]] { } !'
  ).split(' '),
);
// A line goes on behind a blank. Elsewhere the two characters are gone before tokens are made, and
// `(\` and `(` on the next line are `((`.
const BLANKS = /(?:[ \t]|(?<=[ \t\n])\\\n)*/y;
const OPERATOR = /&&|\|\||\|&|[|;&\n]/y;
const REDIRECTION = /\d?(?:<<<|<<-?|<&|<>|<|>>|>&|>\||>)|&>>?/y;
const DELIMITER = /[ \t]*(?:'([\w.-]+)'|"([\w.-]+)"|([\w.-]+))(?=[ \t\n;&|<>()]|$)/y;
const VARIABLE = /[A-Za-z_]\w*|\{[A-Za-z_]\w*\}|[\d?#$!@*_-]/y;
const ASSIGNMENT = /^[A-Za-z_]\w*\+?=/;
const SUBSCRIPT = /^[A-Za-z_]\w*\[/; // a[$(…)]=x: bash reads that in its own way
const WORD_END = /[ \t\n;&|<>()]/;
const BEFORE_HOME = /(^|[=:])$/; // x=~ may be a home folder, and HEAD~1 is not

/** Some shells take more for a blank than others: a no-break space, a vertical tab, and in one byte
 *  of "à" a Mac's bash sees a blank. */
function isOdd(line: string) {
  if (/[^\P{Cc}\t\n]|[\p{Cf}\p{Cs}\p{Zl}\p{Zp}\u2800\u3164]/u.test(line)) return true;
  if (/[^\P{White_Space} \t\n]/u.test(line)) return true;
  // Where texts are in GBK or Shift-JIS, the last byte of "é" and a "\\" behind it are one character.
  if (/[^\0-\x7f][[\\\]^`{|}~]/.test(line)) return true;
  const foreign = Buffer.from(line.replace(/[\0-\x7f]/g, ''));
  return foreign.includes(0x85) || foreign.includes(0xa0);
}

class LineReader {
  private text: string;
  private at = 0;
  private depth: number;
  private inside = 0; // how many $( ) or <( ) we are in
  private parts: SimpleCommand[];
  private isFed = false; // behind a pipe, and in all that is in there
  private documents: { end: string; isQuoted: boolean; isIndented: boolean }[] = []; // begun by <<

  constructor(text: string, parts: SimpleCommand[] = [], depth = 0) {
    this.text = text;
    this.parts = parts;
    this.depth = depth;
  }

  read() {
    this.list('');
    if (this.documents.length > 0) throw new Unsure(); // it ends with the text, or does it?
    return this.parts;
  }

  // ── Commands, and what is between them ──

  /** Commands up to the end of the text, to a `)` or to a `}`. */
  private list(closing: '' | ')' | '}') {
    if (++this.depth > MAX_DEPTH) throw new Unsure();
    let operator = ';';
    let count = 0;
    this.skipLines();
    while (!this.isClosed(closing)) {
      if (operator === '') throw new Unsure(); // two commands, and nothing between them
      const isPiped = operator.startsWith('|') && operator !== '||';
      const wasFed = this.isFed;
      this.isFed ||= isPiped;
      this.command(isPiped);
      this.isFed = wasFed;
      count++;
      operator = this.operator();
      const wantsMore = !['', ';', '&', '\n'].includes(operator);
      if (operator !== '') this.skipLines();
      if (wantsMore && this.isClosed(closing)) throw new Unsure();
    }
    if (closing !== '' && count === 0) throw new Unsure();
    this.depth--;
  }

  private isClosed(closing: '' | ')' | '}') {
    if (this.at >= this.text.length) {
      if (closing !== '') throw new Unsure();
      return true;
    }
    if (closing === ')') return this.text[this.at] === ')';
    return closing === '}' && /^\}($|[ \t\n;&|<>()])/.test(this.text.slice(this.at, this.at + 2));
  }

  private operator() {
    const found = this.match(OPERATOR) ?? '';
    if (found === ';' && /[;&]/.test(this.text[this.at] ?? '')) throw new Unsure(); // of `case`
    if (found === '\n') this.readDocuments();
    return found;
  }

  private command(isPiped: boolean) {
    if (/^![ \t]/.test(this.text.slice(this.at, this.at + 2))) {
      if (isPiped) throw new Unsure();
      this.at++;
      this.skipBlanks();
    }
    const start = this.text.slice(this.at, this.at + 2);
    if (start === '((') throw new Unsure(); // arithmetic, or two subshells
    if (start.startsWith('(')) this.group(')');
    else if (/^\{[ \t\n]/.test(start)) this.group('}');
    else this.simple();
  }

  private group(closing: ')' | '}') {
    this.at++;
    const first = this.parts.length;
    this.list(closing);
    this.at++;
    const part = this.newPart();
    this.skipBlanks();
    while (this.redirection(part)) this.skipBlanks();
    this.parts.push(part);
    if (part.isFed) for (const inner of this.parts.slice(first)) inner.isFed = true;
  }

  private newPart() {
    const part: SimpleCommand = { words: [], assigns: false, redirections: [] };
    return this.isFed ? { ...part, isFed: true } : part;
  }

  private simple() {
    const part = this.newPart();
    const begin = this.at;
    let isTimed = false; // `time` is a keyword: what comes next is the command
    let isComplete = false;
    for (;;) {
      this.skipBlanks();
      const from = this.at;
      if (from >= this.text.length || /[\n;|)]/.test(this.text[from]!)) break;
      if (this.text[from] === '&' && this.text[from + 1] !== '>') break;
      const redirected = this.redirection(part);
      if (redirected) {
        isComplete ||= redirected.startsWith('&'); // in dash, `a &> b c` would be two commands
        continue;
      }
      if (isComplete) throw new Unsure();
      const word = this.word();
      const source = this.text.slice(from, this.at);
      const isFirst = part.words.length === 0 || isTimed;
      isTimed = false;
      if (isFirst && (SHELL_KEYWORDS.has(source) || SUBSCRIPT.test(source))) throw new Unsure();
      const isAssignment = isFirst && ASSIGNMENT.test(source);
      if (isAssignment && part.words.length > 0) throw new Unsure();
      if (isAssignment) part.assigns = true;
      else part.words.push(word);
      isTimed = part.words.length === 1 && source === 'time';
    }
    if (this.at === begin) throw new Unsure();
    this.parts.push(part);
  }

  // ── Redirections ──

  /** Takes one, if there is one here, and gives back its sign. */
  private redirection(part: SimpleCommand) {
    if (/^[<>]\(/.test(this.text.slice(this.at, this.at + 2))) return undefined; // a word: <(…)
    const found = this.match(REDIRECTION);
    if (found === undefined) return undefined;
    const sign = found.replace(/^\d/, '');
    if (sign.startsWith('<')) part.isFed = true;
    if (sign === '<<' || sign === '<<-') this.beginDocument(sign === '<<-');
    else this.redirectedTo(sign, part);
    return found;
  }

  private redirectedTo(sign: string, part: SimpleCommand) {
    this.skipBlanks();
    const file = this.word();
    if (sign === '<<<') return; // a text, not a file
    const isNumber = file.isPlain && /^(\d|-)$/.test(file.text); // 2>&1
    if (sign.endsWith('&') && !isNumber) throw new Unsure(); // bash expands it a second time
    if (sign.endsWith('&')) return;
    if (file.isPlain && file.text === '/dev/null') return;
    part.redirections.push({ kind: sign === '<' ? 'read' : 'write', file });
  }

  /** `<<END`: the text begins with the next line. */
  private beginDocument(isIndented: boolean) {
    if (this.inside > 0) throw new Unsure(); // shells differ in where it begins then
    DELIMITER.lastIndex = this.at;
    const found = DELIMITER.exec(this.text);
    if (!found) throw new Unsure();
    this.at = DELIMITER.lastIndex;
    const [, single, double, bare] = found;
    const end = single ?? double ?? bare!;
    this.documents.push({ end, isQuoted: bare === undefined, isIndented });
  }

  /** At the beginning of a line. */
  private readDocuments() {
    if (this.documents.length > 0 && this.inside > 0) throw new Unsure();
    for (const { end, isQuoted, isIndented } of this.documents) {
      let line = this.line();
      const isEnd = () => (isIndented ? line.replace(/^\t+/, '') : line) === end;
      while (!isEnd()) {
        if (!isQuoted && /[$`\\]/.test(line)) throw new Unsure(); // commands may be in there
        if (this.at >= this.text.length) throw new Unsure();
        line = this.line();
      }
    }
    this.documents = [];
  }

  private line() {
    const found = this.text.indexOf('\n', this.at);
    const end = found === -1 ? this.text.length : found;
    const line = this.text.slice(this.at, end);
    this.at = Math.min(end + 1, this.text.length);
    return line;
  }

  // ── Words ──

  private word() {
    const word: Word = { text: '', isPlain: true };
    const from = this.at;
    if (/^[<>]\(/.test(this.text.slice(from, from + 2))) {
      this.substitution();
      word.isPlain = word.isGlob = false;
    }
    while (this.at < this.text.length && !WORD_END.test(this.text[this.at]!)) this.piece(word);
    if (this.at === from) throw new Unsure(); // a parenthesis where no word can be
    const isBefore = /[<>]/.test(this.text[this.at] ?? '');
    const source = this.text.slice(from, this.at);
    if (isBefore && /^(\d+|\{\w+\})$/.test(source)) throw new Unsure(); // 12>x, {fd}>x
    if (isBefore && this.text[this.at + 1] === '(') throw new Unsure(); // x<(…)
    return word;
  }

  /** A character, or what is in quotes. */
  private piece(word: Word) {
    const char = this.text[this.at++]!;
    if (char === "'") word.text += this.upTo("'");
    else if (char === '"') this.doubleQuoted(word);
    else if (char === '\\') word.text += this.escaped();
    else if (char === '$') this.dollar(word, false);
    else if (char === '`') this.backticks(word, false);
    else {
      const isOpen = char === '{' || (char === '~' && BEFORE_HOME.test(word.text));
      if (isOpen || /[*?[]/.test(char)) {
        word.isPlain = false;
        word.isGlob = !isOpen && word.isGlob !== false;
      }
      word.text += char;
    }
  }

  private escaped() {
    const char = this.text[this.at++];
    if (char === undefined || char === '\n') throw new Unsure(); // in the middle of a word
    return char;
  }

  private upTo(quote: string) {
    const end = this.text.indexOf(quote, this.at);
    if (end === -1) throw new Unsure();
    const inner = this.text.slice(this.at, end);
    this.at = end + 1;
    return inner;
  }

  private doubleQuoted(word: Word) {
    for (;;) {
      const char = this.text[this.at++];
      if (char === undefined) throw new Unsure();
      if (char === '"') return;
      if (char === '$') this.dollar(word, true);
      else if (char === '`') this.backticks(word, true);
      else if (char === '\\') word.text += this.escapedInQuotes();
      else word.text += char;
    }
  }

  private escapedInQuotes() {
    const char = this.text[this.at++];
    if (char === undefined) throw new Unsure();
    if (char === '\n') return '';
    return /[$`"\\]/.test(char) ? char : `\\${char}`;
  }

  /** $name and $(…); a dollar before a blank is one. $'…', $((…)) and ${x:-…} are not for us. */
  private dollar(word: Word, isQuoted: boolean) {
    const next = this.text[this.at];
    const isAlone = next === undefined || /[ \t\n]/.test(next) || (isQuoted && next === '"');
    if (isAlone) {
      word.text += '$';
      return;
    }
    word.isPlain = word.isGlob = false;
    if (next === '(' && this.text[this.at + 1] !== '(') {
      this.at--;
      this.substitution();
    } else if (this.match(VARIABLE) === undefined) throw new Unsure();
  }

  /** $(…), <(…) or >(…). */
  private substitution() {
    const wasFed = this.isFed;
    this.isFed ||= this.text[this.at] === '>';
    this.at += 2;
    this.inside++;
    this.list(')');
    this.inside--;
    this.at++;
    this.isFed = wasFed;
  }

  private backticks(word: Word, isQuoted: boolean) {
    word.isPlain = word.isGlob = false;
    const inner = this.upTo('`');
    // Backslashes mean something else in there, and so do quotes inside of quotes.
    if (inner.includes('\\') || (isQuoted && inner.includes('"'))) throw new Unsure();
    const reader = new LineReader(inner, this.parts, this.depth + 1);
    reader.inside = 1;
    reader.isFed = this.isFed;
    reader.read();
  }

  // ── What is between ──

  private match(pattern: RegExp) {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text)?.[0];
    if (found === undefined) return undefined;
    this.at += found.length;
    return found;
  }

  private skipBlanks() {
    this.match(BLANKS);
    if (this.text[this.at] !== '#') return;
    const end = this.text.indexOf('\n', this.at);
    const comment = this.text.slice(this.at, end === -1 ? undefined : end);
    // Where does $( # ) end? Shells differ.
    if (this.inside > 0 || comment.endsWith('\\')) throw new Unsure();
    this.at += comment.length;
  }

  private skipLines() {
    this.skipBlanks();
    while (this.text[this.at] === '\n') {
      this.at++;
      this.readDocuments();
      this.skipBlanks();
    }
  }
}

// ─── What a prefix of words means ──────────────────────────────────────────────────────────────

/** Words that start the command behind them and change nothing about it. */
export function unwrapped(words: Word[]): Word[] {
  const [first, second, third] = words.map(({ text, isPlain }) => (isPlain ? text : undefined));
  if (first === 'time' || first === 'nohup') return withoutFirst(words, 1);
  const isNumber = (text = '') => /^\d+(\.\d+)?[smhd]?$/.test(text);
  if (first === 'timeout' && isNumber(second)) return withoutFirst(words, 2);
  if (first === 'nice' && second === '-n' && isNumber(third)) return withoutFirst(words, 3);
  return first === 'nice' ? withoutFirst(words, 1) : words;
}

function withoutFirst(words: Word[], count: number) {
  const [next] = words.slice(count);
  const isCommand = next?.isPlain && /^[\w./]/.test(next.text); // not an option
  return isCommand ? unwrapped(words.slice(count)) : words;
}
