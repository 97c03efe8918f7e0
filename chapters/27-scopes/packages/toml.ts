// toml.ts: as much of TOML as files of settings use: tables, keys with dots and quotes, strings,
// numbers, true and false, lists, and tables in braces. What it does not know is an error that names
// the line: half a configuration would be another configuration.

import { isObject, type Json } from '../../../mcp.ts';

const MAX_LENGTH = 1_000_000; // characters
const MAX_LEVELS = 50;

export function parseToml(text: string): Json {
  if (text.length > MAX_LENGTH) throw new Error(`it has more than ${MAX_LENGTH} characters`);
  return new TomlReader(text.replace(/^\ufeff/, '').replaceAll('\r\n', '\n')).document();
}

class TomlReader {
  private text: string;
  private at = 0;

  constructor(text: string) {
    this.text = text;
  }

  document() {
    const root: Json = {};
    let table = root;
    for (this.skip(true); this.at < this.text.length; this.skip(true)) {
      if (this.take('[[')) table = this.header(root, ']]', true);
      else if (this.take('[')) table = this.header(root, ']');
      else this.pair(table, 0);
      this.skip(false);
      if (this.at < this.text.length && !this.take('\n')) this.fail('the end of the line');
    }
    return root;
  }

  /** [a.b] is a table in a table, [[a.b]] one more in a list. */
  private header(root: Json, end: string, isList = false) {
    const keys = this.keys();
    if (!this.take(end)) this.fail(end);
    const last = keys.pop()!;
    const parent = this.tableAt(root, keys);
    if (!isList) return this.tableAt(parent, [last]);
    const list = own(parent, last) ?? [];
    if (!Array.isArray(list)) this.fail('a list of tables');
    const table: Json = {};
    (list as unknown[]).push(table);
    set(parent, last, list);
    return table;
  }

  private tableAt(from: Json, keys: string[]) {
    let table = from;
    for (const key of keys) {
      if (own(table, key) === undefined) set(table, key, {});
      const next = own(table, key);
      const inner = Array.isArray(next) ? next.at(-1) : next;
      if (!isObject(inner)) this.fail(`a table, where ${key} is a value`);
      table = inner as Json;
    }
    return table;
  }

  private pair(table: Json, level: number) {
    const keys = this.keys();
    if (!this.take('=')) this.fail('=');
    this.skip(false);
    const last = keys.pop()!;
    const place = this.tableAt(table, keys);
    if (own(place, last) !== undefined) this.fail(`another key: ${last} is there already`);
    set(place, last, this.value(level));
  }

  private keys() {
    const keys: string[] = [];
    do {
      this.skip(false);
      keys.push(this.match(/[A-Za-z0-9_-]+/y) ?? this.string() ?? this.fail('a name'));
      this.skip(false);
    } while (keys.length <= MAX_LEVELS && this.take('.'));
    if (keys.length > MAX_LEVELS) this.fail('fewer levels');
    return keys;
  }

  private value(level: number): unknown {
    if (level > MAX_LEVELS) this.fail('fewer levels');
    const text = this.string();
    if (text !== undefined) return text;
    if (this.take('[')) return this.list(level + 1);
    if (this.take('{')) return this.inline(level + 1);
    const word = this.match(/[^\s,\]}#]+/y) ?? this.fail('a value');
    if (word === 'true' || word === 'false') return word === 'true';
    const number = Number(word.replace(/(?<=\d)_(?=\d)/g, ''));
    return Number.isNaN(number) ? word : number; // a date stays a text
  }

  private list(level: number) {
    const items: unknown[] = [];
    for (this.skip(true); !this.take(']'); this.skip(true)) {
      items.push(this.value(level));
      this.skip(true);
      if (!this.take(',') && this.text[this.at] !== ']') this.fail(', or ]');
    }
    return items;
  }

  private inline(level: number) {
    const table: Json = {};
    for (this.skip(true); !this.take('}'); this.skip(true)) {
      this.pair(table, level);
      this.skip(true);
      if (!this.take(',') && this.text[this.at] !== '}') this.fail(', or }');
    }
    return table;
  }

  private string() {
    for (const quote of ['"""', "'''", '"', "'"]) {
      if (!this.take(quote)) continue;
      if (quote.length === 3) this.take('\n'); // the first line feed does not belong to it
      const end = this.endOf(quote);
      const written = this.text.slice(this.at, end);
      this.at = end + quote.length;
      return quote.startsWith("'") ? written : this.unescaped(written);
    }
    return undefined;
  }

  private endOf(quote: string): number {
    for (let at = this.at; at < this.text.length; at++) {
      if (this.text.startsWith(quote, at)) return at;
      if (quote.length === 1 && this.text[at] === '\n') break;
      if (quote.startsWith('"') && this.text[at] === '\\') at++;
    }
    return this.fail(`a ${quote} that ends the text`);
  }

  private unescaped(written: string) {
    const plain: Record<string, string> = { b: '\b', t: '\t', n: '\n', f: '\f', r: '\r' };
    return written
      .replace(/\\[ \t]*\n\s*/g, '') // a line that goes on
      .replace(/\\(u[0-9a-f]{4}|U[0-9a-f]{8}|.)/gi, (_, escape: string) => {
        if (/^u./i.test(escape)) return String.fromCodePoint(parseInt(escape.slice(1), 16));
        if (escape === '"' || escape === '\\') return escape;
        return plain[escape] ?? this.fail(`another escape than \\${escape}`);
      });
  }

  /** Blanks and comments; also line feeds where they mean nothing. */
  private skip(alsoLines: boolean) {
    const blank = alsoLines ? /[ \t\n]*/y : /[ \t]*/y;
    do this.match(blank);
    while (this.match(/#[^\n]*/y) !== undefined);
  }

  private take(text: string) {
    if (!this.text.startsWith(text, this.at)) return false;
    this.at += text.length;
    return true;
  }

  private match(pattern: RegExp) {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text)?.[0];
    this.at += found?.length ?? 0;
    return found;
  }

  private fail(expected: string): never {
    const line = this.text.slice(0, this.at).split('\n').length;
    throw new Error(`line ${line}: expected ${expected}`);
  }
}

const own = (table: Json, key: string) => (Object.hasOwn(table, key) ? table[key] : undefined);

/** A key may be called __proto__. */
function set(table: Json, key: string, value: unknown) {
  const field = { value, writable: true, enumerable: true, configurable: true };
  Object.defineProperty(table, key, field);
}
