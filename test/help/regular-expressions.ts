// For the fuzz run: every regular expression of the program, found in its sources, and inputs that
// make a bad one slow. There is no list to keep: an expression that is added is tried, too.
//
// Import this file before those of the program: it also notes what they make by `new RegExp`.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './basics.ts';

export type Expression = { where: string; source: string; flags: string };

/** The program, without its demos and exercises, and without the machinery of the book. */
export function sources(): string[] {
  const isPart = (name: string) =>
    /^\d\d-.*\.ts$/.test(name) && !/(demo|exercise)(-\d+)?\.ts$/.test(name);
  const all = readdirSync(join(root, 'chapters'), { recursive: true, encoding: 'utf8' });
  const chapters = all.map((name) => name.replaceAll('\\', '/')).filter(isPart);
  return ['mcp.ts', 'agent.ts', ...chapters.map((name) => `chapters/${name}`)];
}

// ─── Those that are made when a module is loaded ───────────────────────────────────────────────

const made = new Map<string, Expression>();
const NativeRegExp = RegExp;

globalThis.RegExp = new Proxy(NativeRegExp, {
  construct(target, args) {
    const regex = new target(...(args as [string, string]));
    const where = /(?:chapters\/[\w./-]+|mcp\.ts|agent\.ts)(?=:\d)/.exec(
      new Error().stack ?? '',
    )?.[0];
    if (where) made.set(`${regex}`, { where, source: regex.source, flags: regex.flags });
    return regex;
  },
});

/** Loads the whole program, gives back what it made on the way, and takes no more notes. */
export async function madeExpressions(): Promise<Expression[]> {
  for (const file of sources()) await import(join(root, file));
  globalThis.RegExp = NativeRegExp;
  return [...made.values()];
}

// ─── Those that are written between slashes ────────────────────────────────────────────────────

const BEFORE_REGEX =
  /(^|[(,=:[!&|?{};+\-*%<>~^\n]|\b(return|typeof|case|in|of|void|throw|new|else|do|await|yield))$/;

/** Literals of TypeScript, without those in strings, templates and comments. */
export function literalsIn(text: string, where = ''): Expression[] {
  const found: Expression[] = [];
  const braces: boolean[] = []; // is the open brace that of `${` ?
  let code = ''; // what came before on this way, without spaces
  let at = 0;
  const skipTemplate = () => {
    while (at < text.length && text[at] !== '`' && !text.startsWith('${', at))
      at += text[at] === '\\' ? 2 : 1;
    const isEnd = text[at] === '`';
    at += isEnd ? 1 : 2;
    if (!isEnd) braces.push(true);
    code = isEnd ? 'x' : '('; // after `${` there is an expression
  };
  while (at < text.length) {
    const char = text[at]!;
    const line = text.indexOf('\n', at) + 1 || text.length;
    const isComment = text.startsWith('//', at) || (at === 0 && text.startsWith('#!'));
    if (isComment) at = line;
    else if (text.startsWith('/*', at)) at = text.indexOf('*/', at + 2) + 2;
    else if (char === '"' || char === "'") {
      for (at++; text[at] !== char; at++) if (text[at] === '\\') at++;
      at++;
      code = 'x';
    } else if (char === '`') {
      at++;
      skipTemplate();
    } else if (char === '}' && braces.pop()) {
      at++;
      skipTemplate();
    } else if (char === '/' && BEFORE_REGEX.test(code.slice(-12))) {
      const start = at++;
      for (let isClass = false; text[at] !== '/' || isClass; at++) {
        if (text[at] === '\\') at++;
        else if (text[at] === '[') isClass = true;
        else if (text[at] === ']') isClass = false;
      }
      const flags = /^[a-z]*/.exec(text.slice(at + 1, at + 9))![0];
      const number = text.slice(0, start).split('\n').length;
      found.push({ where: `${where}:${number}`, source: text.slice(start + 1, at), flags });
      at += 1 + flags.length;
      code = 'x';
    } else {
      if (char === '{') braces.push(false);
      if (char.trim() !== '') code = `${code.slice(-12)}${char}`;
      else if (/\w$/.test(code) && /\w/.test(text[at + 1] ?? '')) code += ' ';
      at++;
    }
  }
  return found;
}

export function allLiterals(): Expression[] {
  return sources().flatMap((file) => literalsIn(readFileSync(join(root, file), 'utf8'), file));
}

// ─── Inputs that make them work ────────────────────────────────────────────────────────────────

/** Without a repetition there is nothing that could take longer than the text is long. */
export const isRepeating = ({ source }: Expression) => /[*+]|\{\d+,|\\[1-9]/.test(source);

const PALETTE = [...' \n\ta1Z<>"\'\\=,/.-_{}[]()*:;@#$%&|!?~+^`é漢\u200b'];
const CLASSES: Record<string, string[]> = {
  s: [' ', '\n'],
  S: ['x'],
  w: ['a', '_'],
  W: ['-'],
  d: ['1'],
  D: ['x'],
  b: [],
  B: [],
};

/** What can stand for each part of an expression, in order: characters, and runs of literal ones. */
function atoms(source: string): string[] {
  const found: string[] = [];
  let run = '';
  const flush = () => {
    if (run.length > 1) found.push(run);
    run = '';
  };
  const part =
    /\\[pP]\{[^}]*\}|\\u\{?[\da-f]+\}?|\\x[\da-f]{2}|\\[^]|\[(?:\\[^]|[^\]\\])*\]|\(\?(?:[:!=]|<[!=]?)|\{\d*,?\d*\}|[^]/gi;
  for (const [piece] of source.matchAll(part)) {
    const isGroup = piece.startsWith('(?') || /^\{\d/.test(piece) || '()|*+?^$'.includes(piece);
    const isLiteral = piece.length === 1 && !isGroup && piece !== '.';
    if (isLiteral || /^\\[^\w]$/.test(piece)) {
      run += piece.at(-1);
      found.push(piece.at(-1)!);
      continue;
    }
    flush();
    if (isGroup) continue;
    if (piece === '.') found.push('x');
    else if (/^\\[a-z]$/i.test(piece)) found.push(...(CLASSES[piece[1]!] ?? []));
    else found.push(...membersOf(piece).slice(0, 3));
  }
  flush();
  return found;
}

function membersOf(piece: string): string[] {
  try {
    const one = new NativeRegExp(`^(?:${piece})$`, 'u');
    return PALETTE.filter((char) => one.test(char));
  } catch {
    return PALETTE.slice(0, 3);
  }
}

export type Input = { prefix: string; pump: string; suffix: string };
export const textOf = ({ prefix, pump, suffix }: Input, size: number) =>
  prefix + pump.repeat(Math.ceil(size / pump.length)) + suffix;

/** Repetitions of what the expression speaks of, alone and in pairs, behind what it begins with. */
export function* inputsFor(source: string, random: () => number, more: number): Generator<Input> {
  const parts = [...new Set(atoms(source))];
  const pick = <T>(list: T[]): T => list[Math.floor(random() * list.length)]!;
  const suffixes = ['\u0001', '', '\n'];
  const pumps = parts.length > 0 ? parts : ['a'];
  for (const pump of [...pumps, ' ', 'a']) yield { prefix: '', pump, suffix: '\u0001' };
  for (let n = 0; n < more; n++) {
    const any = () => (random() < 0.8 ? pick(pumps) : pick(PALETTE));
    const start = random() < 0.5 ? '' : pumps.slice(0, Math.ceil(random() * pumps.length)).join('');
    const pump = Array.from({ length: 1 + Math.floor(random() * 3) }, any).join('');
    yield { prefix: start, pump, suffix: pick(suffixes) };
  }
}

// ─── Is it slow? ───────────────────────────────────────────────────────────────────────────────

const SIZES = [16, 20, 24, 30, 40, 52, 68, 90, 125, 500, 8000];
const FLOOR_US = 8000;
const TIMES = 8;
const TOO_MUCH = 20; // 8 would be linear, 64 is the square
const TWICE_IS_TOO_MUCH = 2.8;

/** In CPU time of this process, so that a busy machine makes no difference. */
function cpu(work: () => unknown): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

const best = (work: (size: number) => unknown, size: number) =>
  Math.min(...[1, 2, 3].map(() => cpu(() => work(size))));

/** Does eight times the input take more than twenty times the work? */
function grows(work: (size: number) => unknown, size: number): string | undefined {
  const large = best(work, size);
  const small = Math.max(best(work, Math.ceil(size / TIMES)), 20);
  if (large < FLOOR_US || large < TOO_MUCH * small) return undefined;
  // What is slow with so little, or so much slower, needs no more proof. Else once more, with twice
  // as much: linear is 2, the square is 4.
  const isSure = size < 500 || large > 2 * TOO_MUCH * small;
  const isSquare = () => best(work, 2 * size) > TWICE_IS_TOO_MUCH * best(work, size);
  if (!isSure && !isSquare()) return undefined;
  return `${size} characters take ${large} µs, ${TIMES} times fewer ${small} µs`;
}

/** Sizes grow slowly, so that what would take for ever is noticed while it takes a moment. Asked
 *  three times, with work in between: the collector of garbage comes now and then, but not always. */
export function slowness(work: (size: number) => unknown, most = Infinity): string | undefined {
  for (const size of SIZES.map((each) => Math.min(each, most))) {
    if (cpu(() => work(size)) < FLOOR_US) continue;
    const found = [1, 2, 3].map(() => grows(work, size));
    if (found.every((each) => each !== undefined)) return found[0];
  }
  return undefined;
}
