// The only place that writes to the terminal (but for plain-screen.ts, where nothing is drawn). What
// is typed there is read by input.ts.
//
// Answers go to stdout; prompts, questions, tool lines, warnings and the spinner to stderr, so that
// `> file` and `| jq` get the answer alone. All that comes from elsewhere passes `printable` here,
// once, on its way out.

import { stripVTControlCharacters, styleText } from 'node:util';
import { rowKind, type RowKind } from '../17-the-gate/change.ts';
import { now } from '../../mcp.ts';
import { inertJson, printable, PrintableStream, withHosts } from '../17-the-gate/safe-text.ts';
import type { ScreenSize } from './fold.ts';
import { Foot, placeAfter, type FootContent } from './foot.ts';
import { Input } from './input.ts';
import { Markdown, type MarkdownStyle } from './markdown.ts';
import { PlainScreen } from './more/plain-screen.ts';
import { columnsOf, graphemes, wrap } from './wrap.ts';

export type Style = Parameters<typeof styleText>[0] & string;
const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const CLEAR_SCREEN = '\x1b[H\x1b[J';
const MAX_HELD = 10_000;
const RESIZED_MS = 50;
const COLOURS: Record<RowKind, Style> = {
  added: 'green',
  removed: 'red',
  near: 'dim',
  place: 'cyan',
};

/** A line, or one that begins with parts of which some have a colour. */
export type ScreenLine = string | { text: string; style?: Style }[];

export class Screen extends PlainScreen {
  /** A user sits at a keyboard and sees what we write: only then may we ask. */
  isInteractive = process.stdin.isTTY === true && process.stderr.isTTY === true;
  readonly input = new Input(this);
  private isColored: boolean;
  private held: [NodeJS.WriteStream, string][] = []; // what has to wait until a line is finished
  private isAtLineStart = true; // on stdout, where pieces of an answer are written
  private answer = new PrintableStream({ isPipe: !process.stdout.isTTY });
  private markdown?: Markdown; // on a terminal
  private column = 0; // of the terminal's cursor, in a line that is unfinished
  private foot = new Foot(() => this.size);
  private isRedrawing = false;
  private spinner?: NodeJS.Timeout;
  private resizing?: NodeJS.Timeout;
  private status?: () => [string, ...ScreenLine[]]; // the spinner's row, and what belongs below it

  constructor({ color = true } = {}) {
    super();
    this.isColored = color && process.env.TERM !== 'dumb';
    process.stderr.on('resize', () => this.resized());
  }

  // ── Writing ──

  style(style: Style, text: string, stream: NodeJS.WriteStream = process.stderr): string {
    // One format at a time: in Node 20 a list of formats ignores NO_COLOR and pipes.
    return this.isColored ? styleText(style, text, { stream, validateStream: true }) : text;
  }

  /** Another answer begins. */
  startAnswer(): void {
    this.freshLine();
    this.markdown = process.stdout.isTTY ? this.renderer() : undefined;
  }

  private renderer() {
    const paint = (format: MarkdownStyle, text: string) => this.style(format, text, process.stdout);
    const isPainted = paint('bold', 'x') !== 'x';
    const columns = () => process.stdout.columns || 80;
    return new Markdown({ columns, paint: isPainted ? paint : undefined });
  }

  /** A piece of the answer. Pieces can end in the middle of a line, and of a character. */
  stream(text: string): void {
    this.write(process.stdout, this.rendered(this.answer.take(text)));
  }

  /** What was asked for, in one piece. */
  printAnswer(text: string): void {
    if (!process.stdout.isTTY) return this.print(text);
    this.startAnswer();
    this.stream(text);
    this.freshLine();
  }

  private rendered(text: string) {
    return this.markdown?.take(text) ?? text;
  }

  /** A line of what was asked for, on stdout. */
  override print(text: string): void {
    this.freshLine();
    this.write(process.stdout, `${this.fitted(text, process.stdout)}\n`);
  }

  /** Safe to show, and on a terminal broken between words. */
  private fitted(text: string, stream: NodeJS.WriteStream) {
    const clean = printable(text, { isPipe: !stream.isTTY });
    return stream.isTTY ? wrap(clean, stream.columns || 80) : clean;
  }

  /** A line of JSON, which stays JSON: what must not reach a terminal is escaped as in JSON. */
  override printJson(json: string, stream: NodeJS.WriteStream = process.stdout): void {
    this.write(stream, `${inertJson(json)}\n`);
  }

  /** A line about what happens, on stderr. */
  override say(text: string, style?: Style): void {
    this.writeLine(this.fitted(withHosts(text), process.stderr), style);
  }

  private writeLine(text: string, style?: Style) {
    this.freshLine();
    const clean = printable(text, { isPipe: !process.stderr.isTTY });
    this.write(process.stderr, `${style ? this.style(style, clean) : clean}\n`);
  }

  /** Lines as they are, those of a diff coloured by their gutters. */
  sayLines(lines: ScreenLine[], otherwise?: Style): void {
    if (lines.length === 0) return;
    this.freshLine();
    this.write(process.stderr, `${this.painted(lines, otherwise)}\n`);
  }

  painted(
    lines: ScreenLine[],
    otherwise?: Style,
    stream: NodeJS.WriteStream = process.stderr,
  ): string {
    const paint = (text: string, style?: Style) => (style ? this.style(style, text, stream) : text);
    const clean = (text: string) => printable(text, { isPipe: !stream.isTTY });
    const rows = lines.flatMap((line) => {
      if (typeof line !== 'string')
        return line.map(({ text, style }) => paint(clean(text), style ?? otherwise)).join('');
      return clean(line)
        .split('\n')
        .map((row) => paint(row, colourOf(row) ?? otherwise));
    });
    return rows.join('\n');
  }

  /** The same for what was asked for, on stdout. */
  printLines(lines: ScreenLine[]): void {
    this.freshLine();
    const fitted = lines.map((line) => this.fittedLine(line));
    this.write(process.stdout, `${this.painted(fitted, undefined, process.stdout)}\n`);
  }

  /** What is behind the coloured parts of a line is broken as if they were plain. */
  private fittedLine(line: ScreenLine): ScreenLine {
    if (typeof line === 'string') return this.fitted(line, process.stdout);
    const start = line
      .slice(0, -1)
      .map(({ text }) => text)
      .join('');
    const whole = this.fitted(start + (line.at(-1)?.text ?? ''), process.stdout);
    if (!whole.startsWith(start)) return whole; // even they do not fit
    return [...line.slice(0, -1), { text: whole.slice(start.length) }];
  }

  /** A message on an MCP wire. */
  wire(direction: 'out' | 'in', text: string): void {
    if (direction === 'out') this.writeLine(`→ ${text}`, 'cyan');
    else this.writeLine(`← ${text}`, 'green');
  }

  /** Ends the line of an answer that is unfinished. */
  freshLine(): void {
    const rest = this.rendered(this.answer.end()) + (this.markdown?.rest() ?? '');
    this.write(process.stdout, rest);
    if (!this.isAtLineStart) this.write(process.stdout, '\n');
  }

  private write(stream: NodeJS.WriteStream, text: string) {
    if (text === '') return;
    // Nothing pushes an open question out of sight.
    if (this.input.isAsking) {
      if (this.held.length < MAX_HELD) this.held.push([stream, text]);
      return;
    }
    if (stream.isTTY) this.foot.erase(); // what is being typed comes back below
    stream.write(text);
    if (stream === process.stdout) this.isAtLineStart = text.endsWith('\n');
    if (stream.isTTY) this.column = this.columnAfter(text);
    this.redraw();
  }

  private columnAfter(text: string) {
    const plain = stripVTControlCharacters(text);
    return placeAfter(plain, this.size.columns, this.column).column;
  }

  /** Writes what had to wait. */
  release(): void {
    for (const [stream, text] of this.held.splice(0)) this.write(stream, text);
  }

  get width(): number {
    return process.stderr.columns || 100;
  }

  /** Of the window, as it is now. Some terminals do not tell. */
  get size(): ScreenSize {
    return { columns: process.stderr.columns || 80, rows: process.stderr.rows || 24 };
  }

  // ── What stays below: the spinner, and what is being typed. Only on a terminal ──

  /** `rows` gives what happens now: one row, and what belongs below it. */
  override spin(rows: () => [string, ...ScreenLine[]]): void {
    this.stopSpinning();
    if (!process.stderr.isTTY || process.env.TERM === 'dumb') return;
    let frame = 0;
    const turn = () => {
      const sign = FRAMES[frame++ % FRAMES.length];
      this.status = () => {
        const [first, ...more] = rows();
        return [`${sign} ${first}`, ...more];
      };
      if (!this.input.isWaiting) this.redraw();
    };
    this.spinner = setInterval(turn, 100).unref();
  }

  override stopSpinning(): void {
    clearInterval(this.spinner);
    this.spinner = undefined;
    this.status = undefined;
    this.drawFoot();
  }

  /** Soon: a hundred keys that come at once are drawn once. */
  redraw(): void {
    if (this.isRedrawing) return;
    this.isRedrawing = true;
    queueMicrotask(() => this.drawFoot());
  }

  private drawFoot() {
    this.isRedrawing = false;
    if (!this.input.isAway) this.foot.draw(this.below(), this.column);
  }

  private bold = (text: string) => this.style('bold', text);

  private below(): FootContent {
    const row = (text: string) => cutToWidth(text, this.width - 1);
    const isSpinning = this.status && this.isAtLineStart && !this.input.isWaiting;
    const [first = '', ...more] = isSpinning ? this.status!() : [''];
    const queued = this.input.queued.map(row);
    const rows: ScreenLine[] = [...(isSpinning ? [row(first), ...more] : []), ...queued];
    const above = rows.slice(0, Math.max(1, this.size.rows - 2));
    const painted = above.map((each) => this.painted([each], 'dim'));
    return { above: painted, line: this.input.typed, paint: this.bold };
  }

  /** What was typed is final. */
  endFoot(prompt: string, typed: string): void {
    this.foot.end(prompt, typed, this.bold);
  }

  /** The terminal is wanted by others: by the shell, say. */
  leaveFoot(): void {
    if (this.input.typed) this.foot.leave();
    else this.foot.erase();
    if (this.column > 0) process.stderr.write('\n');
    this.column = 0;
  }

  /** Drawn when the window has come to rest: one that is being dragged has many sizes. */
  private resized() {
    clearTimeout(this.resizing);
    this.resizing = setTimeout(() => this.input.isAway || this.input.resize(), RESIZED_MS).unref();
  }

  drawAgain(): void {
    this.foot.drawAgain(this.below(), this.column);
  }

  /** In the place of the question, as it was laid out before. */
  replaceQuestion(before: string, question: string): void {
    this.foot.eraseBelow(before);
    this.showAgain(question);
  }

  /** An empty screen, on which an open question is still in sight. */
  clear(question: string): void {
    this.foot.forget();
    this.column = 0;
    process.stderr.write(CLEAR_SCREEN);
    this.showAgain(question);
  }

  /** The question that is open, painted already, whatever has happened to the screen. */
  showAgain(question: string): void {
    if (question !== '') process.stderr.write(`${question}\n`);
    this.redraw();
  }

  /** Milliseconds, without those in which the user thought about a question. */
  clock(): number {
    return now() - this.input.askedMs;
  }

  /** Gives the terminal back. From now on nothing waits to be written. */
  override stop(): void {
    this.stopSpinning();
    this.leaveFoot();
    this.input.close();
    this.release();
  }

  override async close(): Promise<void> {
    this.stop();
    await super.close();
  }
}

/** One line of at most so many columns. */
export function cutToWidth(text: string, columns: number): string {
  const chars = graphemes(printable(text.slice(0, 4 * columns).replace(/\s+/g, ' ')));
  let used = 0;
  const end = chars.findIndex((char) => (used += columnsOf(char)) > columns);
  return end === -1 ? chars.join('') : `${chars.slice(0, Math.max(0, end - 1)).join('')}…`;
}

/** Of a row of a diff, by its gutter. */
function colourOf(row: string) {
  const kind = rowKind(row);
  return kind && COLOURS[kind];
}
