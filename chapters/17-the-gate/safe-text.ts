// What others wrote, made safe to show. Nothing foreign reaches a terminal, a question or a file but through here.

import type { Block } from '../../agent.ts';
import { copyOf, isObject, type Json } from '../../mcp.ts';
import { middleOf } from '../16-hands/diff.ts';
import { keysIn } from './addresses.ts';
import { isInPlace, isTextInFile, REACH } from './invisible.ts';

// Characters that do something instead of showing something: they move the cursor, colour, ring, hide, turn round.
// Node's own util.stripVTControlCharacters leaves many of them (DCS, C1, CR, bidi).
const HIDDEN = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{DI}\p{NChar}\u2800\u{16fe4}\u{1d159}]/gu;
// In a question, also every blank that is not the space bar's: "rm\u00a0x" is one word, and looks like two.
const NOT_AS_IT_LOOKS = new RegExp(`${HIDDEN.source}|(?! )\\p{Zs}`, 'gu');

const WAITING = new RegExp(`(?![\\n\\t])${HIDDEN.source}`, 'gu');

const escapeOf = (char: string) => {
  const code = char.codePointAt(0)!;
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u{${code.toString(16)}}`;
};

/** For a model: hidden characters are left out. Line breaks and tabs stay, and what is part of the writing. */
export function plain(text: string): string {
  return text.replace(HIDDEN, (char, at: number) =>
    char === '\n' || char === '\t' || isInPlace(text, at) ? char : '',
  );
}

const SPELLED = '[hidden characters in it are shown here as \\x… and \\u{…}]';

/** For a model that must see exactly what is there: they are spelled, and the last line says so. */
export function exact(text: string): string {
  const shown = printable(text);
  return shown === text.replaceAll('\r\n', '\n') ? shown : `${shown}\n${SPELLED}`;
}

/** Results on their way to a model: those of servers, and those of this machine, which are exact. */
export function cleanBlocks(blocks: Block[], isForeign: boolean): Block[] {
  const clean = isForeign ? plain : exact;
  return blocks.map((block) =>
    block.type === 'text' ? { ...block, text: clean(block.text) } : block,
  );
}

const MAX_WORDS = 2048;

/** What a server says of itself goes to a model with every request: bounded, and without hidden characters. */
function shorten(text: string) {
  if (text.length <= MAX_WORDS) return plain(text);
  const shown = plain(copyOf(text.slice(0, MAX_WORDS)));
  return `${shown}… [${text.length - MAX_WORDS} characters more]`;
}

/** The same, as a quotation: whatever it says, no line of it can pass for one of ours. */
export function cited(text: string): string {
  return shorten(text).replace(/^/gm, '> ');
}

type ChangeText = (text: string) => string;

/** The same value with other texts in it, and other names. */
export function withTexts(
  value: unknown,
  change: ChangeText,
  rename: ChangeText = (name) => name,
): unknown {
  if (typeof value === 'string') return change(value);
  if (Array.isArray(value)) return value.map((each) => withTexts(each, change, rename));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [rename(key), withTexts(inner, change, rename)]),
  );
}

/** Every text in a schema, names included. It needs no mark: JSON has its own, the quotes. */
export const plainJson = (value: unknown) => withTexts(value, shorten, plain);

/** Text that flows. Hidden characters become visible, but for line breaks, tabs, and what is part of the writing: on
 *  a terminal where it is in its place, in a pipe or a file everywhere. */
export function printable(
  text: string,
  { isPipe = false, from = 0, to = text.length } = {},
): string {
  return text.slice(from, to).replace(HIDDEN, (char, offset: number) => {
    const at = from + offset;
    if (char === '\n' || char === '\t') return char;
    if (char === '\r' && text[at + 1] === '\n') return '';
    const isText = isInPlace(text, at) || (isPipe && isTextInFile(char));
    return isText ? char : escapeOf(char);
  });
}

/** The same in pieces, wherever they are cut: even a character, a line end or a flag may be. A hidden character waits
 *  until what follows it is there. */
export class PrintableStream {
  private isPipe: boolean;
  private before = ''; // the end of what was given back
  private held = '';

  constructor({ isPipe = false } = {}) {
    this.isPipe = isPipe;
  }

  take(piece: string): string {
    const text = this.held + piece;
    WAITING.lastIndex = Math.max(0, text.length - REACH);
    return this.give(text, WAITING.exec(text)?.index ?? text.length);
  }

  /** What was held, now that nothing follows. */
  end(): string {
    const rest = this.give(this.held, this.held.length);
    this.before = '';
    return rest;
  }

  private give(text: string, length: number) {
    const known = this.before + text;
    const from = this.before.length;
    const to = from + length;
    this.held = text.slice(length);
    this.before = known.slice(Math.max(0, to - REACH), to);
    return printable(known, { isPipe: this.isPipe, from, to });
  }
}

/** As `quoted` below, for a line that is not in quotes: nothing invisible is part of a question. */
export function visible(text: string): string {
  const isBreak = (char: string) => char === '\n' || char === '\t';
  return text
    .replaceAll('\r\n', '\n')
    .replace(HIDDEN, (char) => (isBreak(char) ? char : escapeOf(char)));
}

/** For a question that somebody must be able to judge: one line, in quotes, nothing left out, nothing disguised. */
export function quoted(text: string): string {
  const escaped = text.replace(/[\\"]/g, '\\$&').replaceAll('\n', '\\n').replaceAll('\t', '\\t');
  return `"${undisguised(escaped)}"${hostsIn(text)}`;
}

// An address, also without its slashes, which the parser does not need; or after an @ what is not ASCII.
const ADDRESS =
  /\b(?:(?:https?|wss?):|[a-z][a-z\d+.-]{0,20}:\/\/)[^\s"'`<>]+|(?<=@)[^\s@/:"'`<>]*[^ -~\s][^\s@/:"'`<>]*/gi;
const MAX_HOST = 1000; // characters; no name is longer than 253, and the parser is slow with those that are

/** Beside a text: each host in it that is not what it looks like, as the network knows it. "аррӏе.com" is
 *  Cyrillic, and 2130706433 is this machine. */
export function hostsIn(text: string): string {
  const hosts = [...text.matchAll(ADDRESS)].flatMap(([address]) => disguisedHost(address) ?? []);
  if (hosts.length === 0) return '';
  const shown = new Set(text.match(/[\w.:[\]-]+/g));
  const missing = [...new Set(hosts)].filter((host) => !shown.has(host));
  return missing.map((host) => ` (that is ${host})`).join('');
}

function disguisedHost(address: string) {
  const rest = address.replace(/^[a-z][a-z\d+.-]{0,20}:[\\/]*/i, '');
  const [authority = ''] = rest.split(/[\\/?#]/, 1);
  const written = authority.slice(authority.lastIndexOf('@') + 1).replace(/[),.;!?]{1,3}$/, '');
  const url = `http://${written}`;
  if (written.length > MAX_HOST || !URL.canParse(url)) return undefined;
  const { hostname } = new URL(url);
  return written.toLowerCase().startsWith(hostname) ? undefined : hostname;
}

/** The same beside every line, for what we say to a person. */
export function withHosts(text: string): string {
  const lines = text.split('\n');
  return lines.map((line) => line + hostsIn(line)).join('\n');
}

// Cyrillic and Greek letters that a font draws like Latin ones.
const ALIKE = '[аеорсухіјѕһԁԛԝӏАВЕКМНОРСТУХІЈЅԌԚԜοαρυνΑΒΕΖΗΙΚΜΝΟΡΤΥΧ]';
const NATIVE = `(?!${ALIKE})[\\p{Script=Cyrillic}\\p{Script=Greek}]`; // the others
const LIKE_LATIN = new RegExp(`^${ALIKE}+$`, 'u');
const AFTER_NATIVE = new RegExp(`${NATIVE}\\p{L}{0,30} $`, 'u');
const BEFORE_NATIVE = new RegExp(`^ \\p{L}{0,30}${NATIVE}`, 'u');

/** Is a word beside it, with a blank between them, one that nobody takes for Latin? */
function isAmongNative(word: string, at: number, text: string) {
  const end = at + word.length;
  return (
    AFTER_NATIVE.test(text.slice(Math.max(0, at - 32), at)) ||
    BEFORE_NATIVE.test(text.slice(end, end + 32))
  );
}

/** In a word that mixes alphabets, as in "pаypal" with a Cyrillic а, what is not Latin is escaped. So is a whole word
 *  of look-alikes, as in "curl аррӏе.com", but not the о in a sentence that is Russian to the eye. */
export function withoutDisguise(text: string): string {
  // 1000, for without an end a word of a million letters overflows the stack of the regular expression.
  return text.replace(/[\p{L}\p{M}]{1,1000}/gu, (word, at: number) => {
    const isMixed = /\p{Script=Latin}/u.test(word);
    const isDisguise = isMixed || (LIKE_LATIN.test(word) && !isAmongNative(word, at, text));
    if (!isDisguise) return word;
    return word.replace(/[^\p{Script=Latin}\p{Script=Common}\p{M}]/gu, escapeOf);
  });
}

const undisguised = (text: string) =>
  withoutDisguise(text.replace(NOT_AS_IT_LOOKS, (char) => (char === '\t' ? char : escapeOf(char))));

/** A line of a question that is not in quotes. */
export const line = (text: string) => undisguised(text) + hostsIn(text);

/** What another has to say, in a question: behind a bar, so that no line of it can pass for ours. */
export function told(text: string, indent = '  '): string[] {
  return text.split('\n').map((each) => `${indent}│ ${line(each)}`);
}

/** The name of a value: a project chose it, or a model. */
export const named = (key: string) => (/^[\w-]+$/.test(key) ? key : quoted(key));

/** Every value of an object on lines of its own, in full. Text of many lines is shown as such. */
export function spelledOut(value: Json, indent = '  '): string[] {
  return Object.entries(value).flatMap(([key, inner]) => {
    const name = `${indent}${named(key)}:`;
    if (typeof inner !== 'string') return [`${name} ${line(JSON.stringify(inner) ?? 'nothing')}`];
    if (!inner.includes('\n')) return [`${name} ${quoted(inner)}`];
    return [name, ...told(inner, `${indent}  `)];
  });
}

/** From the first line that differs to the last. Not a set of lines: two that change places would be no change. */
export function changes(before: string, after: string): string[] {
  const [old, fresh] = [before.split('\n'), after.split('\n')];
  const { from, to, newTo } = middleOf(old, fresh);
  const signed = (sign: string, lines: string[]) => lines.map((each) => `${sign} ${line(each)}`);
  return [...signed('-', old.slice(from, to)), ...signed('+', fresh.slice(from, newTo))];
}

const SECRET_VARIABLE =
  /(key|token|secret|passw(or)?d|passphrase|credentials?|auth|(?<=_)(pass|pwd|pat))(_?\d)?$/i;
const SECRET_FIELD =
  /(api|access|secret|private)[-_]?key$|(?<!progress|page)token$|secret$|passw(or)?d$|passphrase$|authorization$|cookie$/i;
// Keys of models, of GitHub and GitLab, npm, Slack, Stripe, Hugging Face, Google and Amazon; a signed token (JWT); and
// whatever follows "Bearer".
const SECRET_SHAPE = new RegExp(
  '\\b(?:sk-[\\w-]{16,}|g(h[opusr]|ithub_pat)_\\w{20,}|glpat-[\\w-]{20,}|npm_\\w{36}|xox[abprs]-[\\w-]{10,}' +
    '|[sr]k_(live|test)_\\w{16,}|hf_\\w{30,}|AIza[\\w-]{35}|A[KS]IA[A-Z0-9]{16})\\b' +
    '|(?<![\\w-])eyJ[\\w-]{10,}\\.eyJ[\\w-]+\\.[\\w-]+|(?<=\\bBearer )[\\w.~+/=-]{8,}',
  'gi',
);
// In an address, such as that of a company's proxy: what is between :// and the last @ before a slash.
const SECRET_ADDRESS = /\b([a-z][a-z\d+.-]{1,20}:\/\/)[^\s/?#@:]*:[^\s/?#]+@/gi;
// Behind ?api_key= and its like, wherever an address is part of a text.
const SECRET_PARAMETER =
  /([?&][\w.-]{0,40}(?:api[-_]?key|(?<!progress|page)token|secret|passw(?:or)?d|signature|(?<=[?&])sig)=)[\w.~%+/-]{8,2000}/gi;
const MASK = '***';
const typed = new Set<string>(); // by the user, as a secret; these are never forgotten
const given = new Map<string, Set<string>>(); // what came up while the program runs, by the server that it is of
let secretsKept = 0; // ever
const MAX_GIVEN = 200; // of one server, which may give another token with every answer; its oldest are forgotten

const MIN_SECRET = 8;
const MAX_WORDS_LENGTH = 24;

/** Does this look like a secret that was written down, and not like ${VAR}? */
export function isWrittenSecret(name: string, value: string): boolean {
  const isNamed = SECRET_VARIABLE.test(name) || SECRET_FIELD.test(name);
  const isShaped = value.replace(SECRET_SHAPE, '') !== value;
  return value.trim() !== '' && !/\$\{\w+/.test(value) && (isNamed || isShaped);
}

/** What can be a secret of a value that others chose. A word of ours must not be missing from what we say because a
 *  project or a server calls it a secret: so nothing with blanks in it, no date, and no one, two or three words. */
function secretsIn(value: string) {
  return value.split(/\s+/).filter((part) => {
    const words = part.match(/\p{L}+/gu) ?? [];
    const hasDigits = /\p{N}/u.test(part);
    const isPlain = hasDigits ? words.length === 0 : words.length <= 3;
    const isLong = (part.match(/[\p{L}\p{N}]/gu)?.length ?? 0) >= MAX_WORDS_LENGTH;
    return part.length >= MIN_SECRET && (isLong || !isPlain);
  });
}

/** From now on, no Masker lets these through. Others chose them, such as a token that this server gave us. */
export function keepSecrets(server: string, ...found: (string | undefined)[]): void {
  const kept = given.get(server) ?? new Set();
  given.set(server, kept);
  for (const secret of found.flatMap((value) => secretsIn(value ?? ''))) {
    kept.delete(secret); // so that it becomes the newest
    kept.add(secret);
    secretsKept++;
    const [oldest] = kept;
    if (kept.size > MAX_GIVEN) kept.delete(oldest!);
  }
}

/** What the user types as a secret is one, whatever it looks like. Short ones are words that occur anywhere. */
export function keepTyped(secret = ''): void {
  if (secret.trim().length < MIN_SECRET) return;
  typed.add(secret);
  secretsKept++;
}

const allSecrets = () => [...typed, ...[...given.values()].flatMap((each) => [...each])];

const inForms = new Set<string>();
let anyInForms = /(?!)/gu; // of these, so far none
const MIN_IN_FORM = 3; // characters
const STRUCTURE = new Set(['jsonrpc', 'method', 'type', 'dir', 'server', 'role']);
// What these say in a message. Else a server could have its own calls masked, or tell a secret there.
const OF_PROTOCOL = new RegExp(
  '^(2\\.0|initialize|ping|text|image|audio|resource(_link)?|user|assistant|string|number|integer|boolean' +
    '|object|array|(server|tools|resources|prompts|completion|logging|roots|sampling|elicitation|tasks' +
    '|subscriptions|notifications)/[\\w/]+)$',
);

/** What the user typed into a server's form may come back from there. It is no secret of ours, so it is not taken out
 *  of what we say; but it is in no trace, however it is spelled in JSON. */
export function keepFromTraces(text: string): void {
  if (text.length < MIN_IN_FORM) return;
  inForms.add(text).add(JSON.stringify(text).slice(1, -1));
  const byLength = [...inForms].sort((a, b) => b.length - a.length); // one may begin another
  anyInForms = new RegExp(byLength.map(asPattern).join('|'), 'gu');
}

/** A short text is part of many words. It is meant only if it is one by itself. */
function asPattern(text: string) {
  const exactly = [...text].map((char) => `\\u{${char.codePointAt(0)!.toString(16)}}`).join('');
  if (text.length >= MIN_SECRET) return exactly;
  return `(?<![\\p{L}\\p{N}])${exactly}(?![\\p{L}\\p{N}])`;
}

/** An answer to a form, at its place in a message: what was typed there is text, whatever the field is called. */
function withoutAnswers(key: string, value: unknown): unknown {
  if (!isObject(value)) return value;
  const { action, content } = value;
  if (key === 'inputResponses')
    return Object.fromEntries(
      Object.entries(value).map(([name, each]) => [name, withoutAnswers('result', each)]),
    );
  if (key !== 'result' || action === undefined || !isObject(content)) return value;
  return { ...value, content: withTexts(content, () => MASK) };
}

/** The same JSON, without a character that does something to a terminal: inside of JSON they can be spelled. */
export function inertJson(json: string): string {
  const spell = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return json.replace(HIDDEN, (char) =>
    char === '\n' ? char : char.split('').map(spell).join(''),
  );
}

const maskShapes = (text: string) =>
  text
    .replace(SECRET_SHAPE, MASK)
    .replace(SECRET_ADDRESS, `$1${MASK}@`)
    .replace(SECRET_PARAMETER, `$1${MASK}`);

/** Something that looks like a secret, or has come up as one. */
export function holdsSecret(text: string): boolean {
  return maskShapes(text) !== text || allSecrets().some((secret) => text.includes(secret));
}

/** Takes secrets out of what is written to a terminal, a trace or a transcript. */
export class Masker {
  private values = new Set<string>();
  private ordered: { of: number; values: string[] } = { of: -1, values: [] };

  constructor(env: NodeJS.ProcessEnv = process.env) {
    this.learn(env);
  }

  /** Remembers the values whose names sound secret. Short ones are words that occur anywhere: they stay. */
  learn(variables: Record<string, unknown>, whose: 'user' | 'project' = 'user'): void {
    for (const [name, value] of Object.entries(variables)) {
      const isNamed = SECRET_VARIABLE.test(name) || SECRET_FIELD.test(name);
      if (!isNamed || typeof value !== 'string') continue;
      const isCookie = /cookie$/i.test(name); // sid=…; else a header may have a scheme: Basic …
      const parts = isCookie ? value.split(/[=;]\s*/) : [value.replace(/^\w+ /, '')];
      const long = [value, ...parts].filter((secret) => secret.trim().length >= MIN_SECRET);
      for (const secret of whose === 'user' ? long : secretsIn(value)) this.values.add(secret);
    }
  }

  /** All that may be secret in the entry of a server, which may quote it in what it says. */
  learnEntry(config: Record<string, unknown>, whose: 'user' | 'project'): void {
    const { env, headers, oauth, args, url } = config;
    for (const named of [env, headers, oauth]) if (isObject(named)) this.learn(named, whose);
    if (Array.isArray(args)) this.learnArgs(args.map(String), whose);
    this.learnAddress(url, whose);
  }

  /** --api-key VALUE, --token=VALUE, -e API_KEY=VALUE, --header "X-Api-Key: VALUE", an address. */
  learnArgs(args: string[], whose: 'user' | 'project' = 'user'): void {
    for (const [n, word] of args.entries()) {
      const [, name = '', value] = /^-{0,2}([\w-]+)(?:=|: *)([^]*)$/.exec(word) ?? [];
      const [, flag = ''] = /^--?([\w-]+)$/.exec(word) ?? [];
      this.learn({ [name]: value, [flag]: args[n + 1] }, whose);
      this.learnAddress(word, whose);
    }
  }

  /** The keys in the address of a server: it may quote them in what it says. */
  learnAddress(url: unknown, whose: 'user' | 'project' = 'user'): void {
    const keys =
      typeof url === 'string' ? keysIn(url).filter((key) => key.length >= MIN_SECRET) : [];
    for (const key of whose === 'user' ? keys : keys.flatMap(secretsIn)) this.values.add(key);
  }

  text(text: string): string {
    for (const value of this.longestFirst()) text = text.replaceAll(value, MASK);
    return maskShapes(text);
  }

  /** What a server says, which may be what was typed into its form. */
  heard(text: string): string {
    return this.text(text).replace(anyInForms, MASK);
  }

  /** Does it hold one of the secrets that we know? */
  holds(text: string): boolean {
    return this.longestFirst().some((value) => text.includes(value));
  }

  /** One may begin another. Put in order when there is a new one, for a message may be a hundred thousand texts. */
  private longestFirst() {
    const of = this.values.size + secretsKept; // neither ever gets smaller
    if (of !== this.ordered.of) {
      const values = [...this.values, ...allSecrets()].sort((a, b) => b.length - a.length);
      this.ordered = { of, values };
    }
    return this.ordered.values;
  }

  /** One line of JSON: a line feed in a text cannot begin a second record. What was typed at the prompt stays, even if
   *  the same words were typed into a form. */
  json(value: unknown, isPrompt = false): string {
    const masked = (holder: unknown, key: string, inner: unknown) => {
      const isSecret =
        SECRET_FIELD.test(key) && (typeof inner === 'string' || Array.isArray(inner));
      if (isSecret) return MASK;
      if (typeof inner !== 'string') return this.withNames(withoutAnswers(key, inner));
      const isWord = STRUCTURE.has(key) && (holder === value || OF_PROTOCOL.test(inner));
      return isPrompt || isWord ? this.text(inner) : this.heard(inner);
    };
    const json = JSON.stringify(value, function (this: unknown, key, inner) {
      return masked(this, key, inner);
    });
    return inertJson(json);
  }

  /** A name in JSON is foreign text, too. Short ones are the protocol's. */
  private withNames(value: unknown) {
    const isLong = (name: string) => name.length >= MIN_SECRET;
    if (!isObject(value) || !Object.keys(value).some(isLong)) return value;
    const named = (name: string) => (isLong(name) ? this.heard(name) : name);
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [named(name), inner]));
  }
}
