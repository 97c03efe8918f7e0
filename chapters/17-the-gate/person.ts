// The person who runs the program, and the one way to reach them. Trust and the gate are the first
// to ask. Logins and servers' own questions come later, through the same interface.

import type { Json } from '../../mcp.ts';
import { NO, YES, headed, pick, type DialoguePage, type Read } from './dialogue.ts';
import { fillInForm } from './form.ts';
import { quoted } from './safe-text.ts';

// ─── What can be asked ─────────────────────────────────────────────────────────────────────────

export type Question = {
  lines: string[]; // what it is about; the asker has quoted every foreign word in it
  from?: string; // the MCP server that wants to know; shown first
  signal?: AbortSignal; // withdraws this question, open or waiting in line, and no other
};
/** Asks for a line of text. What is typed for a secret is not shown; Tab completes where it can. */
type TextQuestion = Question & { prompt: string } & Pick<DialoguePage, 'isSecret' | 'complete'>;
/** `word` is an answer too, so that "yes" means the same as "y". The label shows both: "[y]es".
 *  `isNo`: it agrees to nothing, so it counts even if not all of the question was in sight. */
export type Choice = { key: string; word: string; label: string; isNo?: boolean };
export type ChoiceQuestion = Question & {
  prompt: string;
  choices: Choice[];
  ifEmpty?: string; // the key that an empty line means; without it, an empty line is no answer
  comment?: string; // such as "or say why not": then other words are an answer, too
  elsewhere?: string[]; // keys that may also be chosen there: what they agree to does not last
};
export type Chosen = { key?: string; words?: string };
/** A flat JSON Schema, as `elicitation/create` has it. */
export type FormQuestion = Question & {
  schema: Json;
  check?: (schema: Json, value: unknown) => Promise<string[]>; // what is wrong with the answer to one field
};
export type Filled = { action: 'accept'; content: Json } | { action: 'decline' | 'cancel' };
type AddressQuestion = Question & {
  url: URL;
  isAgreed?: boolean; // the user has just asked for it, so it is opened without a question
};
type Opened = { action: 'accept'; isOpened: boolean } | { action: 'decline' | 'cancel' };

/** One question is shown at a time, in the order of their coming. Nothing here throws.
 *  `undefined` and "cancel" mean that there is no answer: the user left, stopped everything, was
 *  never there, or the question was withdrawn. An asker must take that for a no. */
export interface Person {
  readonly isThere: boolean; // if not, do not offer what needs them
  say(text: string, style?: 'note' | 'warning'): void;
  ask(question: TextQuestion): Promise<string | undefined>;
  choose(question: ChoiceQuestion): Promise<Chosen | undefined>;
  /** The user sees the fields first and the answers last, and may decline both times. */
  form(question: FormQuestion): Promise<Filled>;
  /** Shows the whole address, and opens it if the user agrees. `isOpened`: there was a browser. */
  open(question: AddressQuestion): Promise<Opened>;
}

/** Another place where the same person can answer, such as a page in their browser. What it returns
 *  never settles if there is no answer there; `over` takes the question back. */
export interface Elsewhere {
  choose(question: ChoiceQuestion, over: AbortSignal): Promise<Chosen>;
  form(question: FormQuestion, over: AbortSignal): Promise<Filled>;
}

/** In a script or on a build machine. */
export const nobody: Person = {
  isThere: false,
  say: () => {},
  ask: async () => undefined,
  choose: async () => undefined,
  form: async () => ({ action: 'cancel' }),
  open: async () => ({ action: 'cancel' }),
};

// ─── One at a time ─────────────────────────────────────────────────────────────────────────────

export class Turns {
  private last: Promise<void> = Promise.resolve();

  /** Waits for a turn, and returns what ends it. When the signal aborts, it waits no longer: the
   *  place in line is given up by ending the turn, as always. */
  async take(signal?: AbortSignal): Promise<() => void> {
    const before = this.last;
    let end = () => {};
    const ended = new Promise<void>((done) => (end = done));
    this.last = before.then(() => ended);
    await new Promise<void>((go) => {
      void before.then(go);
      signal?.addEventListener('abort', () => go(), { once: true });
      if (signal?.aborted) go();
    });
    return end;
  }
}

// ─── Line by line ──────────────────────────────────────────────────────────────────────────────

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/** A browser is sent to web pages only, and never to one that is fetched in clear text. */
export function mayBeOpened({ protocol, hostname }: URL): boolean {
  return protocol === 'https:' || (protocol === 'http:' && LOOPBACK.test(hostname));
}

/** A person who is shown lines and answers with lines, as at a terminal or in a test. */
export abstract class LineByLine implements Person {
  abstract readonly isThere: boolean;
  private turns: Turns;
  private dialogues = new Set<AbortController>(); // the open one, and those in line
  private isDismissed = false;
  private endForm?: () => void; // of the server whose question is open
  elsewhere?: Elsewhere; // if there is one: a question is put in both places

  constructor(turns = new Turns()) {
    this.turns = turns;
  }

  abstract say(text: string, style?: 'note' | 'warning'): void;
  /** Shows a page and reads a line. When the signal aborts, takes the page back: no answer. */
  protected abstract readLine(page: DialoguePage, signal: AbortSignal): Promise<string | undefined>;
  /** Opens a browser. Was there one? */
  protected abstract launch(url: URL): boolean;

  ask(question: TextQuestion): Promise<string | undefined> {
    const { prompt, isSecret, complete } = question;
    const lines = headed(question);
    return this.dialogue(question, (read) => read({ lines, prompt, isSecret, complete }));
  }

  choose(question: ChoiceQuestion): Promise<Chosen | undefined> {
    return this.inBoth(
      question,
      (here) => this.dialogue(here, (read) => pick(read, here)),
      question.elsewhere && ((there, over) => there.choose(question, over)),
    );
  }

  form(question: FormQuestion): Promise<Filled> {
    return this.inBoth(
      question,
      (here) => this.dialogue(here, (read) => fillInForm(read, here)),
      (there, over) => there.form(question, over),
    );
  }

  /** Whichever answer is first: the question in the other place is taken back. There it need not
   *  wait for a line that is being typed here. */
  private async inBoth<Q extends Question, T>(
    question: Q,
    askHere: (question: Q) => Promise<T>,
    askThere?: (there: Elsewhere, over: AbortSignal) => Promise<T>,
  ) {
    const { elsewhere } = this;
    const { signal } = question;
    const isOver = !this.isThere || this.isDismissed || signal?.aborted;
    if (!elsewhere || !askThere || isOver) return askHere(question);
    const over = new AbortController();
    const end = () => over.abort();
    signal?.addEventListener('abort', end);
    let isThere = false;
    const answered = askThere(elsewhere, over.signal).then((answer) => {
      isThere = true;
      return answer;
    });
    try {
      return await Promise.race([askHere({ ...question, signal: over.signal }), answered]);
    } finally {
      signal?.removeEventListener('abort', end);
      end();
      if (isThere) this.say('  answered on the page', 'note');
    }
  }

  async open(question: AddressQuestion): Promise<Opened> {
    const { url, isAgreed } = question;
    if (!mayBeOpened(url)) {
      this.say(`no browser is sent to ${quoted(`${url.protocol}//${url.host}`)}`, 'warning');
      return { action: 'decline' };
    }
    if (!this.isThere) return { action: 'cancel' };
    if (isAgreed) return { action: 'accept', isOpened: this.tryToLaunch(url) };
    const lines = [...question.lines, ...addressLines(url)];
    const consent = { ...question, lines, prompt: 'Open it in a browser?' };
    const answer = await this.choose({ ...consent, choices: [YES, NO], elsewhere: ['y', 'n'] });
    if (!answer) return { action: 'cancel' };
    if (answer.key === 'n') return { action: 'decline' };
    const isOpened = this.tryToLaunch(url);
    if (!isOpened) this.say(`There is no browser here. Open the address yourself:\n  ${url.href}`);
    return { action: 'accept', isOpened };
  }

  private tryToLaunch(url: URL) {
    try {
      return this.launch(url);
    } catch {
      return false; // an address can be too long for an argument
    }
  }

  /** All that belongs to one question, however many lines it takes, in one turn. */
  private async dialogue<T>(question: Question, talk: (read: Read) => Promise<T>) {
    const { signal } = question;
    const ending = new AbortController();
    const end = () => ending.abort();
    if (!this.isThere || this.isDismissed || signal?.aborted) end();
    signal?.addEventListener('abort', end);
    this.dialogues.add(ending);
    const endTurn = await this.turns.take(ending.signal);
    if (question.from !== undefined && !ending.signal.aborted) this.endForm = end;
    const read: Read = async (page) => {
      if (ending.signal.aborted) return undefined;
      const line = await this.readLine(page, ending.signal);
      return ending.signal.aborted ? undefined : line;
    };
    try {
      return await talk(read);
    } finally {
      if (this.endForm === end) this.endForm = undefined;
      endTurn();
      this.dialogues.delete(ending);
      signal?.removeEventListener('abort', end);
    }
  }

  /** No answer to the open question, if it is a server's: whatever else is going on goes on. False
   *  if there is none. */
  leaveForm(): boolean {
    const end = this.endForm;
    end?.();
    return end !== undefined;
  }

  /** No answer to the open question, nor to those in line, nor to those that the same work would ask
   *  next: the user has stopped everything. */
  dismiss(): void {
    this.isDismissed = true;
    for (const dialogue of this.dialogues) dialogue.abort();
  }

  /** The user wants something again. */
  attend(): void {
    this.isDismissed = false;
  }
}

export function addressLines(url: URL): string[] {
  const lines = [`  ${url.href}`]; // its parts are ASCII, whatever was written
  if (/(^|\.)xn--/.test(url.hostname))
    lines.push('  ! the name of its host is written in other letters than these (xn--)');
  if (url.username || url.password)
    lines.push(`  ! what stands before the @ is not where it leads: that is ${quoted(url.host)}`);
  return lines;
}

// ─── For tests and demos ───────────────────────────────────────────────────────────────────────

export type AskedPage = DialoguePage & { text: string; signal: AbortSignal };
/** A line, nothing (the user leaves), or a function that decides. */
export type PersonAnswer =
  | string
  | undefined
  | ((asked: AskedPage) => string | undefined | Promise<string | undefined>);

/** Gives these answers, one after the other, and remembers what was asked. */
export class ScriptedPerson extends LineByLine {
  readonly isThere = true;
  readonly questions: AskedPage[] = [];
  readonly said: string[] = [];
  readonly opened: URL[] = [];
  private answers: PersonAnswer[];
  private browser: (url: URL) => boolean;

  constructor(answers: PersonAnswer[] = [], browser: (url: URL) => boolean = () => false) {
    super();
    this.answers = [...answers];
    this.browser = browser;
  }

  say(text: string): void {
    this.said.push(text);
  }

  protected async readLine(page: DialoguePage, signal: AbortSignal): Promise<string | undefined> {
    const asked = { ...page, signal, text: [...page.lines, page.prompt].join('\n') };
    this.questions.push(asked);
    if (this.answers.length === 0) throw new Error(`one question too many:\n${asked.text}`);
    const answer = this.answers.shift();
    if (typeof answer !== 'function') return answer;
    const withdrawn = new Promise<undefined>((resolve) => {
      signal.addEventListener('abort', () => resolve(undefined), { once: true });
    });
    return Promise.race([answer(asked), withdrawn]);
  }

  protected launch(url: URL): boolean {
    this.opened.push(url);
    return this.browser(url);
  }
}
