// What is typed, and who gets it: the prompt of a chat, or the question that is open.

import type { DialoguePage } from '../17-the-gate/dialogue.ts';
import { Turns } from '../17-the-gate/person.ts';
import { now } from '../../mcp.ts';
import { commonStart, type Completing, type Completion } from './more/complete.ts';
import { Editor, type Key } from './editor.ts';
import type { Typed } from './foot.ts';
import { Keyboard, type Typist } from './keyboard.ts';
import type { Screen } from './screen.ts';

export const PROMPT = '› ';
const QUIET_MS = 300; // without a key: then nobody is in the middle of a word
const MAX_QUIET_MS = 3000;
const MAX_QUEUED_SHOWN = 3;

export class Input implements Typist {
  readonly turns = new Turns(); // of the prompt and the questions: one at a time
  onEscape: () => void = () => {};
  onShiftTab: () => void = () => {};
  onPrompt: (text: string) => void = () => {}; // one was entered
  complete: (before: string) => Completing = () => ({ start: 0, words: [] });
  isAsking = false;
  isAway = false; // the terminal is the shell's
  askedMs = 0; // how long questions were open, all together
  private screen: Screen;
  private keyboard?: Keyboard;
  private past: string[] = []; // prompts to go back to
  private chat = new Editor(this.past); // the next prompt, also while a turn or a question is open
  private answer?: Editor; // to the question that is open
  private isSecret = false;
  private isBrief = false;
  private answerWords?: DialoguePage['complete'];
  private question = ''; // that is open
  private laidOut?: () => DialoguePage; // the same, for the window as it is
  private label = ''; // of that question
  private chatLabel = PROMPT;
  private queue: string[] = []; // entered before they were wanted
  private aside = ''; // what we said that we keep, while questions are open
  private isOver = false; // no more input will come
  private lastKeyAt = -Infinity;
  private waiter?: (line: string | undefined) => void;

  constructor(screen: Screen) {
    this.screen = screen;
  }

  /** Reads from now on: what is typed before a question comes would look like an answer to it. */
  open(): void {
    this.keyboard ??= new Keyboard(this, this.screen.isInteractive);
  }

  // ── What comes from the keyboard ──

  key(typed: string | undefined, key: Key): void {
    if (!this.answer) this.lastKeyAt = now();
    const name = `${key.ctrl ? 'ctrl-' : ''}${key.shift ? 'shift-' : ''}${key.name}`;
    const isEnter = key.name === 'return' && !key.meta;
    if (Object.hasOwn(this.keys, name)) this.keys[name]!();
    else if (isEnter || (this.answer && key.name === 'enter')) this.enter();
    else this.editor.press(typed, key);
    this.screen.redraw();
  }

  private keys: Record<string, () => void> = {
    escape: () => (this.editor.sought === undefined ? this.onEscape() : this.pass('g', true)),
    'ctrl-c': () => this.screen.onInterrupt(),
    'ctrl-d': () => (this.editor.text === '' ? this.end() : this.pass('delete')),
    'ctrl-l': () => this.screen.clear(this.question),
    'ctrl-z': () => this.keyboard?.suspend(),
    tab: () => this.finishWord(),
    'shift-tab': () => this.onShiftTab(),
    up: () => (this.canTakeBack ? this.takeBack() : this.pass('up')),
  };

  private pass(name: string, ctrl = false) {
    this.editor.press(undefined, { name, ctrl });
  }

  paste(text: string): void {
    this.editor.sought = undefined;
    this.editor.insert(text); // Enter sends it, and not a line feed in it
    this.screen.redraw();
  }

  line(line: string): void {
    if (this.waiter) this.settle(line);
    else this.queue.push(line);
  }

  /** A prompt from elsewhere, which the user has agreed to. It is no answer to what is asked here. */
  submit(text: string): void {
    if (this.waiter && !this.answer) this.settle(text);
    else this.queue.push(text);
  }

  end(): void {
    this.isOver = true;
    if (this.screen.isInteractive) this.queue = [];
    this.keyboard?.close();
    this.settle(undefined);
  }

  leave(): void {
    this.screen.leaveFoot();
    this.isAway = true;
  }

  comeBack(): void {
    this.isAway = false;
    this.screen.leaveFoot();
    this.layOut();
    this.screen.showAgain(this.question);
  }

  /** The window has another size. What is typed stays. */
  resize(): void {
    const before = this.question;
    if (this.layOut()) this.screen.replaceQuestion(before, this.question);
    else this.screen.drawAgain();
  }

  /** The open question, for the window as it is now. False if there is none. */
  private layOut() {
    const page = this.waiter && this.laidOut?.();
    if (!page) return false;
    this.question = this.screen.painted(page.lines);
    this.label = `${page.prompt}: `;
    return true;
  }

  private get editor() {
    return this.answer ?? this.chat;
  }

  private enter() {
    if (!this.answer && this.chat.continues()) return;
    if (!this.answer) this.remember(this.chat.text); // an answer is no prompt to come back to
    const text = this.editor.take();
    this.lastKeyAt = -Infinity; // who presses Enter is not in the middle of a word
    if (this.waiter) this.settle(text);
    else if (text.trim() !== '') this.queue.push(text);
  }

  private remember(text: string) {
    if (text.trim() === '' || text === this.past.at(-1)) return;
    this.past.push(text);
    this.onPrompt(text);
  }

  /** Prompts of earlier runs, the newest last. */
  recall(past: string[]): void {
    this.past.unshift(...past);
    this.chat = new Editor(this.past);
  }

  /** What a server has to say comes later. If the line is another by then, it is of no use. */
  private finishWord() {
    const { editor } = this;
    const before = editor.text.slice(0, editor.cursor);
    const found = this.answer ? this.completeAnswer(before) : this.complete(before);
    const isSame = () => editor === this.editor && editor.text.slice(0, editor.cursor) === before;
    if (!(found instanceof Promise)) return this.putIn(before, found);
    found
      .then((completion) => {
        if (!isSame()) return;
        this.putIn(before, completion);
        this.screen.redraw();
      })
      .catch(() => {}); // a server that fails has nothing to add
  }

  private completeAnswer(before: string) {
    const words = this.answerWords?.(before) ?? Promise.resolve([]);
    return words.then((found) => ({ start: 0, words: found, isOpen: true }));
  }

  /** One word that fits is put in; of several what they have in common, or else they are listed. */
  private putIn(before: string, { start, words, isOpen }: Completion) {
    const [only] = words;
    if (only === undefined) return;
    const common = commonStart(words);
    const isOne = words.length === 1;
    const isWhole = isOne && !isOpen && !/[/]$/.test(only);
    if (isWhole) this.editor.replaceFrom(start, `${only} `);
    else if (isOne || common.length > before.length - start) this.editor.replaceFrom(start, common);
    else this.list(words);
  }

  /** Below an open question, too: the user has asked for it. */
  private list(words: string[]) {
    const { isAsking } = this;
    this.isAsking = false;
    this.screen.say(listed(words), 'dim');
    this.isAsking = isAsking;
  }

  // ── What is shown of it ──

  /** The line that is being typed. While a turn is under way there is none before the first key. */
  get typed(): Typed | undefined {
    const { text, cursor } = this.editor;
    const isShown = this.waiter !== undefined || text !== '';
    if (!this.screen.isInteractive || !isShown || this.isOver) return undefined;
    const label = this.answer ? this.label : this.chatLabel;
    const prompt = this.editor.seeking ?? label;
    return this.isSecret ? { prompt, text: '', cursor: 0 } : { prompt, text, cursor };
  }

  /** What was entered, and waits. */
  get queued(): string[] {
    if (!this.screen.isInteractive || this.isWaiting) return [];
    const rows = this.queue.slice(0, MAX_QUEUED_SHOWN).map((text) => `queued: ${text}`);
    const more = this.queue.length - rows.length;
    return more > 0 ? [...rows, `and ${more} more`] : rows;
  }

  /** A prompt or a question is open. */
  get isWaiting(): boolean {
    return this.isAsking || this.waiter !== undefined;
  }

  // ── Who gets it ──

  private settle(line: string | undefined) {
    const { waiter } = this;
    if (!waiter) return;
    const shown = this.isSecret || this.isBrief ? '' : (line ?? this.editor.text);
    const label = this.answer ? this.label : this.chatLabel;
    if (this.screen.isInteractive) this.screen.endFoot(label, shown);
    this.waiter = undefined;
    this.isSecret = false;
    this.isBrief = false;
    waiter(line);
  }

  private read() {
    const line = new Promise<string | undefined>((resolve) => (this.waiter = resolve));
    this.screen.redraw();
    return line;
  }

  /** The next line of a chat, or nothing when input is over. */
  async prompt(): Promise<string | undefined> {
    const endTurn = await this.turns.take();
    try {
      return await this.nextLine();
    } finally {
      endTurn();
    }
  }

  private async nextLine() {
    this.open();
    await this.keyboard?.ready;
    this.screen.freshLine();
    this.aside = '';
    const typed = this.queue.shift();
    if (typed !== undefined && this.screen.isInteractive) this.screen.say(this.chatLabel + typed);
    if (typed !== undefined || this.isOver) return typed;
    return this.read();
  }

  /** What is before a prompt: the mode, say. */
  setLabel(label: string): void {
    this.chatLabel = label;
    this.screen.redraw();
  }

  /** Empties the line that is being typed. Was there anything? */
  clear(): boolean {
    const wasTyping = this.editor.text !== '';
    this.editor.take();
    return wasTyping && !this.isOver;
  }

  private get canTakeBack() {
    return this.queue.length > 0 && this.editor === this.chat && this.chat.text === '';
  }

  /** It was not sent after all. */
  giveBack(line: string): void {
    this.chat.set([line, this.chat.text].filter(Boolean).join('\n'));
  }

  /** What was entered and not sent yet is the draft of the next prompt again. */
  takeBack(): void {
    if (!this.screen.isInteractive) return;
    this.chat.set([...this.queue.splice(0), this.chat.text].filter(Boolean).join('\n'));
  }

  /** A line in answer to a question, whose asker has taken a turn. What else is written waits until
   *  it is answered. When the signal aborts, the question is over, and what was typed is gone.
   *  `laidOut` gives the page for the window as it is. */
  async ask(
    page: DialoguePage,
    signal: AbortSignal,
    laidOut: () => DialoguePage = () => page,
  ): Promise<string | undefined> {
    const startedAt = now();
    this.open();
    if (this.isOver) return undefined; // nobody will answer, so nothing is asked
    await this.quiet();
    if (signal.aborted || this.isOver) return undefined;
    this.setAside();
    this.question = this.screen.painted(page.lines);
    this.screen.sayLines(['', ...page.lines]); // to the letter: it was measured
    this.isAsking = true;
    this.answer = new Editor(); // what was typed before was no answer to this
    this.isSecret = page.isSecret === true;
    this.isBrief = page.isBrief === true;
    this.answerWords = page.complete;
    this.laidOut = laidOut;
    const withdraw = () => this.settle(undefined);
    signal.addEventListener('abort', withdraw);
    this.label = `${page.prompt}: `;
    const answer = await this.read();
    signal.removeEventListener('abort', withdraw);
    this.isAsking = false;
    this.answer = undefined;
    this.question = '';
    this.laidOut = undefined;
    this.screen.release();
    this.askedMs += now() - startedAt;
    return answer;
  }

  /** Lets in what was typed already, even if we were too busy to look, and waits until nobody is in
   *  the middle of a word: its end would be an answer to a question that was not read. */
  private async quiet() {
    const startedAt = now();
    const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));
    await pause(50);
    await new Promise(setImmediate);
    await new Promise(setImmediate);
    while (now() - this.lastKeyAt < QUIET_MS && now() - startedAt < MAX_QUIET_MS) await pause(50);
  }

  private setAside() {
    const kept = [...this.queue, this.chat.text].join('\n');
    const isNew = kept !== '' && kept !== this.aside;
    this.aside = kept;
    if (isNew && this.screen.isInteractive)
      this.screen.say('(what you typed before this question waits for the prompt)', 'dim');
  }

  close(): void {
    this.isAsking = false;
    this.keyboard?.close();
  }
}

const MAX_LISTED = 50;

function listed(words: string[]) {
  const more = words.length > MAX_LISTED ? `  and ${words.length - MAX_LISTED} more` : '';
  return words.slice(0, MAX_LISTED).join('  ') + more;
}
