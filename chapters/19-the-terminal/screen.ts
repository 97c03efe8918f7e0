// The only place that writes to the terminal and reads from it.
//
// Answers go to stdout; prompts, questions, tool lines, warnings and the spinner to stderr, so that `> file` and
// `| jq` get the answer alone. Whatever comes from elsewhere passes `printable` here, once, on its way out.

import { writeSync } from 'node:fs';
import { createInterface, type Interface } from 'node:readline';
import { Writable } from 'node:stream';
import { styleText } from 'node:util';
import { printable } from '../17-the-gate/safe-text.ts';

type Style = Parameters<typeof styleText>[0] & string;
const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const ERASE_LINE = '\r\x1b[2K';
const [MARK_PASTES, MARK_NO_PASTES] = ['\x1b[?2004h', '\x1b[?2004l'];
const MAX_HELD = 10_000;

export class Screen {
  /** Somebody sits at a keyboard and sees what we write: only then may we ask. */
  isInteractive = process.stdin.isTTY === true && process.stderr.isTTY === true;
  onInterrupt: () => void = () => process.exit(130);
  private isColored: boolean;
  private rl?: Interface;
  private isMuted = true; // what is typed is not shown
  private isOver = false; // no more input will come
  private lines: string[] = []; // typed while nobody waited for them
  private isPasting = false;
  private pasted: string[] = []; // lines of what is being entered, but for its last
  private waiter?: (line: string | undefined) => void;
  private queue: Promise<unknown> = Promise.resolve(); // the prompt and the questions: one at a time
  private isAsking = false;
  private dismissals = 0;
  private askedMs = 0; // how long questions stood open, all together
  private held: [NodeJS.WriteStream, string][] = []; // what has to wait until a line is finished
  private isAtLineStart = true; // on stdout, where pieces of an answer are written
  private half = ''; // the first half of a character, or of a line end, whose second has not come yet
  private spinner?: NodeJS.Timeout;

  constructor({ color = true } = {}) {
    this.isColored = color && process.env.TERM !== 'dumb';
    for (const stream of [process.stdout, process.stderr])
      stream.on('error', (error: NodeJS.ErrnoException) => {
        if (error.code !== 'EPIPE' && error.code !== 'EIO') throw error; // EIO: the terminal is closed
        if (stream === process.stdout) process.exit(0); // whoever read us, such as `head`, has seen enough
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

  /** A line of JSON, which stays JSON: what must not reach a terminal is escaped as JSON does it. */
  printJson(json: string, stream: NodeJS.WriteStream = process.stdout): void {
    const escape = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
    const safe = (char: string) => (printable(char) === char ? char : char.split('').map(escape).join(''));
    this.write(stream, `${json.replace(/[^ -~]/gu, safe)}\n`);
  }

  /** A line about what happens, on stderr. */
  say(text: string, style?: Style): void {
    this.freshLine();
    const clean = printable(text);
    this.write(process.stderr, `${style ? this.style(style, clean) : clean}\n`);
  }

  warn(text: string): void { this.say(`! ${text}`, 'yellow'); }

  /** A message on an MCP wire. */
  wire(direction: 'out' | 'in', text: string): void {
    if (direction === 'out') this.say(`→ ${text}`, 'cyan');
    else this.say(`← ${text}`, 'green');
  }

  /** Ends the line of an answer that stands open. */
  freshLine(): void {
    this.half = '';
    if (!this.isAtLineStart) this.write(process.stdout, '\n');
  }

  private write(stream: NodeJS.WriteStream, text: string): void {
    if (text === '') return;
    const isTyping = this.hasPrompt && this.rl!.line !== '';
    if (this.isAsking || isTyping) { // nothing is drawn over an open question, or over what somebody is typing
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

  /** Milliseconds, without those in which somebody thought about a question. */
  clock(): number { return performance.now() - this.askedMs; }

  // ── Reading: one readline for the whole program. Its own question() loses lines that come through a pipe ──

  /** Reads from now on: what nobody has read yet, when a question comes, would look like an answer to it. */
  open(): void {
    if (this.rl) return;
    const echo = new Writable({ write: (chunk, _, done) => (this.isMuted || process.stderr.write(chunk), done()) });
    const measure = () => Object.assign(echo, { columns: process.stderr.columns }).emit('resize');
    measure();
    process.stderr.on('resize', measure);
    this.rl = createInterface({ input: process.stdin, output: echo, terminal: this.isInteractive, historySize: 200 });
    this.rl.on('history', (history) => this.isAsking && history.shift()); // an answer is no prompt to come back to
    this.rl.on('line', (line) => this.hear(line));
    process.stdin.on('error', () => this.settle(undefined)); // the terminal is closed: no more input will come
    if (this.isInteractive) this.markPastes();
    this.rl.on('close', () => {
      this.isOver = true;
      this.settle(undefined);
    });
    // On a terminal readline takes the key before it can become a signal.
    this.rl.on('SIGINT', () => this.onInterrupt());
  }

  /** A terminal can mark what is pasted. Its lines are one prompt then, or one answer, and not many. */
  private markPastes(): void {
    process.stderr.write(MARK_PASTES);
    process.on('exit', () => {
      try {
        writeSync(2, MARK_NO_PASTES);
      } catch {} // the terminal is closed; an error here would keep the other listeners from ending our children
    });
    process.stdin.on('keypress', (_, key?: { name?: string }) => {
      if (key?.name === 'paste-start' || key?.name === 'paste-end') this.isPasting = key.name === 'paste-start';
    });
  }

  private hear(line: string): void {
    this.pasted.push(line);
    if (this.isPasting) return;
    const whole = this.pasted.splice(0).join('\n');
    if (this.waiter) this.settle(whole);
    else this.lines.push(whole);
  }

  private get hasPrompt(): boolean { return this.waiter !== undefined && this.isInteractive && !this.isAsking; }

  private settle(line: string | undefined): void {
    const { waiter } = this;
    this.waiter = undefined;
    this.isMuted = true; // at once: the second line of a paste is shown when its turn comes
    if (waiter && line === undefined && this.isInteractive) process.stderr.write('\n');
    waiter?.(line);
  }

  /** The next line of a chat, or nothing when input is over. */
  prompt(text: string): Promise<string | undefined> { return this.inTurn(() => this.nextLine(text)); }

  private inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.queue.then(work);
    this.queue = result.catch(() => {});
    return result;
  }

  private async nextLine(prompt: string): Promise<string | undefined> {
    this.open();
    this.freshLine();
    const typed = this.lines.shift();
    if (typed !== undefined && this.isInteractive) this.say(prompt + typed);
    if (typed !== undefined || this.isOver) return typed;
    this.isMuted = !this.isInteractive;
    this.rl!.setPrompt(this.style('bold', prompt));
    if (this.isInteractive) this.rl!.prompt(true);
    const line = await new Promise<string | undefined>((resolve) => (this.waiter = resolve));
    this.release();
    return line;
  }

  /** Empties the line that is being typed. Was there anything? */
  clearInput(): boolean {
    const hadText = !this.isOver && ((this.rl?.line ?? '') !== '' || this.pasted.length > 0);
    this.pasted = [];
    for (const name of hadText ? ['e', 'u'] : []) this.rl!.write(null, { ctrl: true, name }); // to the end, then back
    if (hadText) Object.assign(this.rl!, { line: '', cursor: 0 }); // a terminal without such keys (TERM=dumb) kept it
    return hadText;
  }

  /** Asks a person. Questions wait for each other; what else is written waits until this one is answered. */
  ask(lines: string[], choices: string, signal?: AbortSignal): Promise<string | undefined> {
    const { dismissals } = this;
    const isDismissed = () => signal?.aborted || this.dismissals > dismissals;
    return this.inTurn(async () => (isDismissed() ? undefined : this.askNow(lines, choices, isDismissed)));
  }

  private async askNow(lines: string[], choices: string, isDismissed: () => unknown): Promise<string | undefined> {
    const startedAt = performance.now();
    this.open();
    await new Promise((done) => setTimeout(done, 50)); // let in what was typed already,
    for (let looks = 0; looks < 2; looks++) await new Promise(setImmediate); // even if we were too busy to look,
    if (isDismissed()) return undefined;
    const typed = this.lines.splice(0).length > 0; // and forget it: it was no answer to this question
    if (this.clearInput() || typed) this.say('(what you typed before this question is dropped)', 'dim');
    this.say(['', ...lines].join('\n'));
    this.isAsking = true;
    const answer = await this.nextLine(`${choices}: `);
    this.isAsking = false;
    this.release();
    this.askedMs += performance.now() - startedAt;
    return answer;
  }

  /** No answer to the question that stands open, nor to those that wait behind it. */
  dismiss(): void {
    this.dismissals++;
    if (!this.isAsking) return;
    this.isMuted = true;
    this.clearInput();
    this.settle(undefined);
  }

  /** Gives the terminal back. What is written from now on stands there at once. */
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
    await Promise.all([process.stdout, process.stderr].map((stream) => new Promise((done) => stream.write('', done))));
  }
}

const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u;

/** One line of at most so many columns. Wide characters, such as Chinese ones and most emoji, take two. */
export function cut(text: string, columns: number): string {
  const chars = [...printable(text.slice(0, 4 * columns).replace(/\s+/g, ' '))];
  let used = 0;
  const end = chars.findIndex((char) => (used += WIDE.test(char) ? 2 : 1) > columns);
  return end === -1 ? chars.join('') : `${chars.slice(0, Math.max(0, end - 1)).join('')}…`;
}
