// Keys of a terminal, or lines of a pipe.
//
// A terminal gives lines by default, and edits them itself. For keys it is put into raw mode, and
// there everything is a key: also Ctrl-C, which is no signal any more, and Ctrl-Z, which suspends
// nothing. So who takes the keys has to do what they mean.

import { writeSync } from 'node:fs';
import { createInterface, emitKeypressEvents, type Interface } from 'node:readline';
import type { Key } from './editor.ts';

const MARK_PASTES = '\x1b[?2004h';
const MARK_NO_PASTES = '\x1b[?2004l';
const IS_WINDOWS = process.platform === 'win32';
const IS_DUMB = process.env.TERM === 'dumb';
const STOP_MS = 50;
const ESCAPE_MS = 100; // with Node's own 500, who goes on typing after Esc has pressed Alt

export interface Typist {
  key(typed: string | undefined, key: Key): void;
  paste(text: string): void;
  line(line: string): void; // of a pipe
  end(): void; // no more will come
  leave(): void; // the program is about to be suspended
  comeBack(): void; // and it goes on; the cursor may be anywhere
}

export class Keyboard {
  private typist: Typist;
  private isTerminal: boolean;
  private rl?: Interface;
  ready: Promise<void> = Promise.resolve(); // what was typed before we listened has come
  private isOpen = true;
  private isFresh = true; // it may still come
  private isSuspended = false;
  private pasted?: string[]; // while something is being pasted

  constructor(typist: Typist, isTerminal: boolean) {
    this.typist = typist;
    this.isTerminal = isTerminal;
    if (isTerminal) this.listen();
    else this.readLines();
    process.stdin.on('error', this.ended); // the terminal is closed
  }

  private ended = () => this.typist.end();

  private readLines() {
    this.rl = createInterface({ input: process.stdin, terminal: false });
    this.rl.on('line', (line) => this.typist.line(line));
    this.rl.on('close', this.ended);
  }

  private listen() {
    const waiting = { escapeCodeTimeout: ESCAPE_MS } as unknown as Interface; // all that is read of it
    emitKeypressEvents(process.stdin, waiting); // it tells Esc from the codes that begin with it
    process.stdin.on('keypress', this.hear);
    process.stdin.on('end', this.ended);
    process.on('SIGTSTP', this.suspend);
    process.on('SIGCONT', this.resume);
    process.on('exit', () => {
      try {
        if (!IS_DUMB) writeSync(2, MARK_NO_PASTES);
      } catch {} // the terminal is closed; the other listeners must still end our children
    });
    this.takeTerminal();
    process.stdin.resume();
    this.ready = this.letIn();
  }

  /** The event loop reads what is there between two of these. */
  private async letIn() {
    for (let n = 0; n < 3; n++) await new Promise(setImmediate);
    this.isFresh = false;
  }

  private takeTerminal() {
    process.stdin.setRawMode?.(true);
    if (!IS_DUMB) process.stderr.write(MARK_PASTES); // what is pasted, and what is typed
  }

  private giveTerminal() {
    if (!IS_DUMB) process.stderr.write(MARK_NO_PASTES);
    process.stdin.setRawMode?.(false);
  }

  private hear = (typed: string | undefined, given: Key = {}) => {
    // Before raw mode the terminal makes a line feed, which is Ctrl-J, out of the key Enter.
    const isEarly = given.name === 'enter' && this.isFresh;
    const key = isEarly ? { ...given, name: 'return' } : given;
    if (key.name === 'paste-start') this.pasted = [];
    else if (key.name === 'paste-end') this.endPaste();
    else if (this.pasted)
      this.pasted.push(typed ?? ''); // no key counts in there, not even Ctrl-C
    else this.typist.key(typed, key);
  };

  private endPaste() {
    const text = this.pasted?.join('') ?? '';
    this.pasted = undefined;
    this.typist.paste(text);
  }

  /** What Ctrl-Z does where it is a signal. The shell has to find the terminal as it was. Servers
   *  and commands have process groups of their own, and go on: what they write waits in pipes. */
  suspend = () => {
    if (IS_WINDOWS || this.isSuspended || !this.isOpen) return;
    this.isSuspended = true;
    this.typist.leave();
    this.giveTerminal();
    process.off('SIGTSTP', this.suspend); // so that it has its usual effect
    process.kill(0, 'SIGTSTP'); // our whole group: npm or npx may be between the shell and us
    // Where no shell is in charge the system suspends nothing, and so no SIGCONT comes.
    setTimeout(() => setImmediate(() => this.isSuspended && this.resume()), STOP_MS);
  };

  /** `fg`, or a SIGCONT after a SIGSTOP, of which nobody told us. */
  private resume = () => {
    if (!this.isOpen) return;
    if (this.isSuspended) process.on('SIGTSTP', this.suspend);
    else process.stdin.setRawMode?.(false); // else raw mode counts as set, whatever the shell did
    this.isSuspended = false;
    this.takeTerminal();
    // The window may have another size, of which the shell was told, and not we. So we tell Node,
    // which looks, and then calls us.
    process.once('SIGWINCH', () => this.typist.comeBack());
    process.kill(process.pid, 'SIGWINCH');
  };

  close(): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    process.stdin.off('error', this.ended);
    process.stdin.on('error', () => {}); // it may still be closed
    this.rl?.close();
    if (!this.isTerminal) return;
    process.stdin.off('keypress', this.hear);
    process.stdin.off('end', this.ended);
    process.off('SIGTSTP', this.suspend);
    process.off('SIGCONT', this.resume);
    process.stdin.pause();
    try {
      process.stdin.setRawMode?.(false);
    } catch {} // the terminal is closed, and cannot be set back to what it was
  }
}
