// A text of one or more lines, edited by keys. It knows no terminal: keys go in, and a text and the
// place of the cursor come out.

import { graphemes } from './wrap.ts';

/** As node:readline decodes it. */
export type Key = { name?: string; ctrl?: boolean; meta?: boolean; shift?: boolean };

// A file of 100 lines is a prompt; one of a million would make every key slow.
const MAX_TEXT = 200_000;
const MAX_GRAPHEME = 64; // a family of emoji has 11. No more is looked at in a long line
// What a keyboard cannot mean as text. Line feed and tab can be pasted.
const CONTROL = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;

const GAP = /[^\p{L}\p{N}_]/u; // between words

export class Editor {
  text = '';
  cursor = 0; // an index into the text, never in the middle of a character
  private killed = ''; // by Ctrl-K, Ctrl-U, Ctrl-W: what Ctrl-Y puts back
  private past: string[]; // texts to go back to, the newest last
  private at: number; // which of them is shown; as many as there are: none
  private draft = ''; // what was being typed when the user went back
  sought?: string; // words of an earlier text that is looked for

  constructor(past: string[] = []) {
    this.past = past;
    this.at = past.length;
  }

  /** Does what the key means. False: it means nothing here. */
  press(typed: string | undefined, key: Key): boolean {
    if (this.sought !== undefined && this.seekBy(typed, key)) return true;
    const edit = this.meaning(key);
    if (edit) {
      edit();
      return true;
    }
    const isText = typed !== undefined && !key.ctrl && !key.meta;
    return isText && this.insert(typed);
  }

  private meaning(key: Key) {
    const name = key.name ?? '';
    let keys = this.plain;
    if (key.meta) keys = this.withAlt;
    if (key.ctrl) keys = this.withCtrl;
    return Object.hasOwn(keys, name) ? keys[name] : undefined;
  }

  private plain: Record<string, () => void> = {
    left: () => this.go(this.before()),
    right: () => this.go(this.behind()),
    up: () => this.up(),
    down: () => this.down(),
    home: () => this.go(this.lineStart()),
    end: () => this.go(this.lineEnd()),
    backspace: () => this.cut(this.before(), this.cursor),
    delete: () => this.cut(this.cursor, this.behind()),
    enter: () => this.insert('\n'), // Ctrl-J: the key called Enter sends "return"
  };

  private withCtrl: Record<string, () => void> = {
    a: this.plain.home!,
    b: this.plain.left!,
    d: this.plain.delete!,
    e: this.plain.end!,
    f: this.plain.right!,
    h: this.plain.backspace!,
    k: () => this.killToEnd(),
    n: this.plain.down!,
    p: this.plain.up!,
    r: () => this.seek(),
    u: () => this.killToStart(),
    w: () => this.kill(this.wordStart(/\s/), this.cursor),
    y: () => this.insert(this.killed),
    left: () => this.go(this.wordStart()),
    right: () => this.go(this.wordEnd()),
    backspace: () => this.kill(this.wordStart(), this.cursor),
    delete: () => this.kill(this.cursor, this.wordEnd()),
  };

  private withAlt: Record<string, () => void> = {
    b: this.withCtrl.left!,
    f: this.withCtrl.right!,
    d: this.withCtrl.delete!,
    left: this.withCtrl.left!,
    right: this.withCtrl.right!,
    backspace: this.withCtrl.backspace!,
    return: this.plain.enter!,
    enter: this.plain.enter!,
  };

  /** At the cursor. Was there anything to insert? */
  insert(piece: string): boolean {
    const lines = piece.replace(/\r\n?/g, '\n');
    const clean = lines.replace(CONTROL, '').slice(0, MAX_TEXT - this.text.length);
    this.text = this.text.slice(0, this.cursor) + clean + this.text.slice(this.cursor);
    this.cursor += clean.length;
    return clean !== '';
  }

  /** Puts another text in place, with the cursor at its end. */
  set(text: string): void {
    this.text = text;
    this.cursor = text.length;
  }

  /** Replaces what is between an index and the cursor. */
  replaceFrom(start: number, by: string): void {
    this.cut(start, this.cursor);
    this.insert(by);
  }

  /** A backslash before Enter means that the text goes on. */
  continues(): boolean {
    if (this.text[this.cursor - 1] !== '\\') return false;
    this.replaceFrom(this.cursor - 1, '\n');
    return true;
  }

  /** Gives the text away, and begins with an empty one. */
  take(): string {
    const { text } = this;
    this.sought = undefined;
    this.set('');
    this.at = this.past.length;
    return text;
  }

  // ── Where things are ──

  private go(index: number) {
    this.cursor = index;
  }

  private before() {
    const start = Math.max(this.lineStart(), this.cursor - MAX_GRAPHEME);
    const line = this.text.slice(start, this.cursor);
    if (line === '') return Math.max(0, this.cursor - 1); // the line feed, if there is one
    return this.cursor - graphemes(line).at(-1)!.length;
  }

  private behind() {
    const end = Math.min(this.lineEnd(), this.cursor + MAX_GRAPHEME);
    const line = this.text.slice(this.cursor, end);
    if (line === '') return Math.min(this.text.length, this.cursor + 1);
    return this.cursor + graphemes(line)[0]!.length;
  }

  private lineStart(from = this.cursor) {
    return from === 0 ? 0 : this.text.lastIndexOf('\n', from - 1) + 1;
  }

  private lineEnd(from = this.cursor) {
    const at = this.text.indexOf('\n', from);
    return at === -1 ? this.text.length : at;
  }

  private wordStart(gap = GAP) {
    let at = this.cursor;
    while (at > 0 && gap.test(this.text[at - 1]!)) at--;
    while (at > 0 && !gap.test(this.text[at - 1]!)) at--;
    return at;
  }

  private wordEnd() {
    let at = this.cursor;
    while (at < this.text.length && GAP.test(this.text[at]!)) at++;
    while (at < this.text.length && !GAP.test(this.text[at]!)) at++;
    return at;
  }

  // ── What can be done there ──

  private cut(start: number, end: number) {
    this.text = this.text.slice(0, start) + this.text.slice(end);
    this.cursor = start;
  }

  private kill(start: number, end: number) {
    if (start === end) return;
    this.killed = this.text.slice(start, end);
    this.cut(start, end);
  }

  /** At the end of a line its line feed goes, and the next line comes up. */
  private killToEnd() {
    const end = this.lineEnd();
    this.kill(this.cursor, end === this.cursor ? this.behind() : end);
  }

  private killToStart() {
    const start = this.lineStart();
    this.kill(start === this.cursor ? this.before() : start, this.cursor);
  }

  /** To the line above; from the first one, back in the history. */
  private up() {
    const start = this.lineStart();
    if (start > 0) this.go(this.inLine(this.lineStart(start - 1)));
    else this.recall(this.at - 1);
  }

  private down() {
    const end = this.lineEnd();
    if (end < this.text.length) this.go(this.inLine(end + 1));
    else this.recall(this.at + 1);
  }

  /** As many characters into that line as the cursor is in its own. */
  private inLine(start: number) {
    const before = graphemes(this.text.slice(this.lineStart(), this.cursor)).length;
    const line = graphemes(this.text.slice(start, this.lineEnd(start)));
    return start + line.slice(0, before).join('').length;
  }

  // ── Back to a text that has these words in it ──

  /** For the place of the prompt, while it goes on. */
  get seeking(): string | undefined {
    if (this.sought === undefined) return undefined;
    const isFound = this.past[this.at]?.includes(this.sought);
    return `${isFound ? 'earlier' : 'nothing earlier'} with "${this.sought}": `;
  }

  /** What is typed already counts. */
  private seek() {
    if (this.sought === undefined && this.at === this.past.length) this.draft = this.text;
    const words = this.sought ?? this.text;
    this.find(words, words === '' ? -1 : this.at - 1);
  }

  /** False: the key means what it always means, for the text that was found. */
  private seekBy(typed = '', { name, ctrl, meta }: Key) {
    const isText = !ctrl && !meta && /^\P{C}+$/u.test(typed);
    if (isText) return this.find(this.sought + typed, Math.min(this.at, this.past.length - 1));
    if (name === 'backspace') return this.find(this.sought!.slice(0, -1), this.past.length - 1);
    if (ctrl && name === 'r') return false;
    this.sought = undefined;
    const isCancelled = ctrl === true && name === 'g';
    if (isCancelled) this.recall(this.past.length);
    return isCancelled;
  }

  /** If there is none, the last one that was found is still shown. */
  private find(words: string, from: number) {
    this.sought = words;
    const index = this.past.findLastIndex((text, n) => n <= from && text.includes(words));
    if (index >= 0) this.recall(index);
    return true;
  }

  private recall(index: number) {
    if (index < 0 || index > this.past.length) return;
    if (this.at === this.past.length) this.draft = this.text;
    this.at = index;
    this.set(this.past[index] ?? this.draft);
  }
}
