// The only place that writes to the terminal and reads from it.
//
// Answers go to stdout; prompts, questions, tool lines, warnings and the spinner to stderr, so that
// `> file` and `| jq` get the answer alone. All that comes from elsewhere passes `printable` here,
// once, on its way out.

import { writeSync } from 'node:fs';
import { createInterface, type Interface } from 'node:readline';
import { Writable } from 'node:stream';
import { styleText } from 'node:util';
import type { Page } from '../17-the-gate/dialogue.ts';
import { Turns } from '../17-the-gate/person.ts';
import { now } from '../../mcp.ts';
import { inertJson, printable, withHosts } from '../17-the-gate/safe-text.ts';
import { widthOf, type Size } from './fold.ts';

type Style = Parameters<typeof styleText>[0] & string;
const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const ERASE_LINE = '\r\x1b[2K';
const CLEAR_SCREEN = '\x1b[H\x1b[J';
const MARK_PASTES = '\x1b[?2004h';
const MARK_NO_PASTES = '\x1b[?2004l';
const MAX_HELD = 10_000;

export class Screen {
  /** A user sits at a keyboard and sees what we write: only then may we ask. */
  isInteractive = process.stdin.isTTY === true && process.stderr.isTTY === true;
  onInterrupt: () => void = () => process.exit(130);
  readonly turns = new Turns(); // of the prompt and the questions: one at a time
  private isColored: boolean;
  private rl?: Interface;
  private isMuted = true; // what is typed is not shown
  private isOver = false; // no more input will come
  private lines: string[] = []; // typed before they were wanted
  private isPasting = false;
  private pasted: string[] = []; // lines of what is being entered, but for its last
  private waiter?: (line: string | undefined) => void;
  private question = ''; // that is open
  private isAsking = false;
  private askedMs = 0; // how long questions were open, all together
  private held: [NodeJS.WriteStream, string][] = []; // what has to wait until a line is finished
  private isAtLineStart = true; // on stdout, where pieces of an answer are written
  private half = ''; // the first half of a character, or of a line end, whose second is to come
  private spinner?: NodeJS.Timeout;

  constructor({ color = true } = {}) {
    this.isColored = color && process.env.TERM !== 'dumb';
    for (const stream of [process.stdout, process.stderr])
      stream.on('error', (error: NodeJS.ErrnoException) => {
        const isClosed = error.code === 'EPIPE' || error.code === 'EIO'; // EIO: the terminal is
        if (!isClosed) throw error;
        if (stream === process.stdout) process.exit(0); // our reader, such as `head`, has enough
      });
  }

  // ── Writing ──

  style(style: Style, text: string, stream = process.stderr): string {
    // One format at a time: in Node 20 a list of formats ignores NO_COLOR and pipes.
    return this.isColored ? styleText(style, text, { stream, validateStream: true }) : text;
  }

  /** A piece of the answer. Pieces can end in the middle of a line, and of a character. */
  stream(text: string): void {
    const whole = this.half + text;
    this.half = /[\ud800-\udbff\r]$/.test(whole) ? whole.slice(-1) : '';
    this.write(process.stdout, printable(this.half ? whole.slice(0, -1) : whole));
  }

  /** A line of what was asked for, on stdout. */
  print(text: string): void { this.write(process.stdout, `${printable(text)}\n`); }

  /** A line of JSON, which stays JSON: what must not reach a terminal is escaped as in JSON. */
  printJson(json: string, stream: NodeJS.WriteStream = process.stdout): void {
    this.write(stream, `${inertJson(json)}\n`);
  }

  /** A line about what happens, on stderr. */
  say(text: string, style?: Style): void {
    this.writeLine(withHosts(text), style);
  }

  private writeLine(text: string, style?: Style): void {
    this.freshLine();
    const clean = printable(text);
    this.write(process.stderr, `${style ? this.style(style, clean) : clean}\n`);
  }

  /** Its other lines are indented, so that none of them can pass for a warning of its own. */
  warn(text: string): void { this.say(`! ${text.replaceAll('\n', '\n  ')}`, 'yellow'); }

  /** A message on an MCP wire. */
  wire(direction: 'out' | 'in', text: string): void {
    if (direction === 'out') this.writeLine(`→ ${text}`, 'cyan');
    else this.writeLine(`← ${text}`, 'green');
  }

  /** Ends the line of an answer that is unfinished. */
  freshLine(): void {
    this.half = '';
    if (!this.isAtLineStart) this.write(process.stdout, '\n');
  }

  private write(stream: NodeJS.WriteStream, text: string): void {
    if (text === '') return;
    const isTyping = this.hasPrompt && this.rl!.line !== '';
    // Nothing is drawn over an open question, or over what the user is typing.
    if (this.isAsking || isTyping) {
      if (this.held.length < MAX_HELD) this.held.push([stream, text]);
      return;
    }
    if (this.hasPrompt || this.spinner) this.eraseLine();
    stream.write(text);
    if (stream === process.stdout) this.isAtLineStart = text.endsWith('\n');
    if (this.hasPrompt) this.rl!.prompt(true);
  }

  private release(): void {
    for (const [stream, text] of this.held.splice(0)) this.write(stream, text);
  }

  get width(): number { return process.stderr.columns || 100; }

  /** Of the window, as it is now. Some terminals do not tell. */
  get size(): Size {
    return { columns: process.stderr.columns || 80, rows: process.stderr.rows || 24 };
  }

  // ── The spinner: only on a terminal, and never in the middle of a line ──

  spin(text: () => string): void {
    this.stopSpinning();
    if (!process.stderr.isTTY || process.env.TERM === 'dumb') return;
    let frame = 0;
    const draw = () => {
      if (!this.isAtLineStart || this.isAsking || this.waiter) return;
      const line = cut(`${FRAMES[frame++ % FRAMES.length]} ${text()}`, this.width - 1);
      process.stderr.write(`${ERASE_LINE}${this.style('dim', line)}`);
    };
    this.spinner = setInterval(draw, 100).unref();
  }

  stopSpinning(): void {
    if (this.spinner) this.eraseLine();
    clearInterval(this.spinner);
    this.spinner = undefined;
  }

  private eraseLine(): void {
    if (this.isAtLineStart) process.stderr.write(ERASE_LINE);
  }

  /** Milliseconds, without those in which the user thought about a question. */
  clock(): number { return now() - this.askedMs; }

  // ── Reading: one readline for the whole program. Its own question() loses lines of a pipe ──

  /** Reads from now on: what is typed before a question comes would look like an answer to it. */
  open(): void {
    if (this.rl) return;
    this.rl = createInterface({
      input: process.stdin,
      output: this.echo(),
      terminal: this.isInteractive,
      historySize: 200,
    });
    this.rl.on('history', (history) => {
      if (this.isAsking) history.shift(); // an answer is no prompt to come back to
    });
    this.rl.on('line', (line) => this.hear(line));
    process.stdin.on('error', () => this.settle(undefined)); // the terminal is closed
    if (this.isInteractive) this.markPastes();
    this.rl.on('close', () => {
      this.isOver = true;
      this.settle(undefined);
    });
    // On a terminal readline takes the key before it can become a signal.
    this.rl.on('SIGINT', () => this.onInterrupt());
  }

  /** Where readline draws what is typed: on stderr, or nowhere. */
  private echo(): Writable {
    const echo = new Writable({
      write: (chunk, _, done) => {
        if (!this.isMuted) process.stderr.write(chunk);
        done();
      },
    });
    const measure = () =>
      Object.assign(echo, { columns: process.stderr.columns }).emit('resize');
    measure();
    process.stderr.on('resize', measure);
    return echo;
  }

  /** A terminal can mark what is pasted. Its lines are one prompt then, or one answer. */
  private markPastes(): void {
    process.stderr.write(MARK_PASTES);
    process.on('exit', () => {
      try {
        writeSync(2, MARK_NO_PASTES);
      } catch {} // the terminal is closed; the other listeners must still end our children
    });
    process.stdin.on('keypress', (_, key?: { name?: string; ctrl?: boolean }) => {
      if (key?.name === 'paste-start') this.isPasting = true;
      if (key?.name === 'paste-end') this.isPasting = false;
      if (key?.name === 'l' && key.ctrl) this.drawAgain();
    });
  }

  /** Ctrl-L clears the screen. The question that is open must stay in sight. */
  private drawAgain(): void {
    if (!this.isAsking || !this.rl) return;
    Object.assign(this.rl, { prevRows: 0 }); // else it clears the rows above, where its prompt was
    process.stderr.write(`${CLEAR_SCREEN}${this.question}\n`);
    this.rl.prompt(true);
  }

  private hear(line: string): void {
    this.pasted.push(line);
    if (this.isPasting) return;
    const whole = this.pasted.splice(0).join('\n');
    if (this.waiter) this.settle(whole);
    else this.lines.push(whole);
  }

  private get hasPrompt(): boolean {
    return this.waiter !== undefined && this.isInteractive && !this.isAsking;
  }

  private settle(line: string | undefined): void {
    const { waiter } = this;
    this.waiter = undefined;
    this.isMuted = true; // at once: the second line of a paste is shown when its turn comes
    if (waiter && line === undefined && this.isInteractive) process.stderr.write('\n');
    waiter?.(line);
  }

  /** The next line of a chat, or nothing when input is over. */
  async prompt(text: string): Promise<string | undefined> {
    const endTurn = await this.turns.take();
    try {
      return await this.nextLine(text);
    } finally {
      endTurn();
    }
  }

  private async nextLine(prompt: string, isSecret = false): Promise<string | undefined> {
    this.open();
    this.freshLine();
    const typed = this.lines.shift();
    if (typed !== undefined && this.isInteractive) this.say(prompt + typed);
    if (typed !== undefined || this.isOver) return typed;
    this.isMuted = !this.isInteractive;
    this.rl!.setPrompt(this.style('bold', prompt));
    if (this.isInteractive) this.rl!.prompt(true);
    if (isSecret) this.isMuted = true;
    const line = await new Promise<string | undefined>((resolve) => (this.waiter = resolve));
    if (isSecret && line !== undefined) process.stderr.write('\n'); // nor was the Enter shown
    this.release();
    return line;
  }

  /** Empties the line that is being typed. Was there anything? */
  clearInput(): boolean {
    const isTyping = (this.rl?.line ?? '') !== '' || this.pasted.length > 0;
    this.pasted = [];
    if (this.isOver || !isTyping) return false;
    this.rl!.write(null, { ctrl: true, name: 'e' }); // to the end,
    this.rl!.write(null, { ctrl: true, name: 'u' }); // then delete back to the beginning
    Object.assign(this.rl!, { line: '', cursor: 0 }); // TERM=dumb has no such keys
    return true;
  }

  /** A line in answer to a question, whose asker has taken a turn. What else is written waits until
   *  it is answered. When the signal aborts, the question is over, and what was typed is gone. */
  async ask(page: Page, signal: AbortSignal): Promise<string | undefined> {
    const startedAt = now();
    this.open();
    if (this.isOver) return undefined; // nobody will answer, so nothing is asked
    await new Promise((done) => setTimeout(done, 50)); // let in what was typed already,
    await new Promise(setImmediate); // even if we were too busy to look,
    await new Promise(setImmediate);
    if (signal.aborted) return undefined;
    const typed = this.lines.splice(0).length > 0; // and forget it: it was no answer to this
    if (this.clearInput() || typed)
      this.say('(what you typed before this question is dropped)', 'dim');
    this.question = page.lines.join('\n');
    this.writeLine(`\n${this.question}`); // to the letter: it was measured
    this.isAsking = true;
    const withdraw = () => this.withdraw();
    signal.addEventListener('abort', withdraw);
    const answer = await this.nextLine(`${page.prompt}: `, page.isSecret);
    signal.removeEventListener('abort', withdraw);
    this.isAsking = false;
    this.release();
    this.askedMs += now() - startedAt;
    return answer;
  }

  private withdraw(): void {
    this.isMuted = true;
    this.clearInput();
    this.settle(undefined);
  }

  /** Gives the terminal back. From now on nothing waits to be written. */
  stop(): void {
    this.stopSpinning();
    this.isAsking = false;
    try {
      this.rl?.close();
    } catch {} // the terminal is closed, and cannot be set back to what it was
    this.release();
  }

  async close(): Promise<void> {
    this.stop();
    const flush = (stream: NodeJS.WriteStream) => new Promise((done) => stream.write('', done));
    await Promise.all([process.stdout, process.stderr].map(flush));
  }
}

/** One line of at most so many columns. */
export function cut(text: string, columns: number): string {
  const chars = [...printable(text.slice(0, 4 * columns).replace(/\s+/g, ' '))];
  let used = 0;
  const end = chars.findIndex((char) => (used += widthOf(char)) > columns);
  return end === -1 ? chars.join('') : `${chars.slice(0, Math.max(0, end - 1)).join('')}…`;
}
