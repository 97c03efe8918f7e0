// keep.ts: a file for a trace, as `record` and `replay --live` write it. Lines wait a moment and
// are written together, so that what is recorded is not held up.

import { mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { now, type Json } from '../../../mcp.ts';
import { Masker } from '../../17-the-gate/safe-text.ts';
import { appendPrivately } from '../../19-the-terminal/session-file.ts';
import { traceHeader } from '../../19-the-terminal/more/trace-file.ts';

const QUIET_MS = 50;
const MAX_WAIT_MS = 1000; // and what is written waits no longer than that
const MAX_WAITING = 16 * 2 ** 20; // characters

export class Keeper {
  readonly file: string;
  private onLost: (why: Error) => void; // nothing more can be written
  private begin = now();
  private waiting: { at: number; tell: () => Json }[] = [];
  private timer?: NodeJS.Timeout;
  private since = 0; // when the first of those that wait came
  private size = 0; // of all that wait, about
  private masker = new Masker();
  private isLost = false;

  constructor(file: string, onLost: (why: Error) => void, hasHeader = false) {
    this.file = file;
    this.onLost = onLost;
    this.attempt(() => {
      mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
      if (!hasHeader) appendPrivately(file, JSON.stringify(traceHeader()));
    });
  }

  /** `command` may hold secrets that a server quotes. */
  learn(command: string[]): void {
    this.masker.learnArgs(command);
  }

  /** A record, or a function that makes it later, when there is time for that; and its size. */
  write(record: Json | (() => Json), size = 0): void {
    if (this.isLost) return;
    const at = Math.round((now() - this.begin) * 1000) / 1000;
    const tell = typeof record === 'function' ? (record as () => Json) : () => record;
    if (this.waiting.length === 0) this.since = at;
    this.waiting.push({ at, tell });
    this.size += size;
    if (at - this.since > MAX_WAIT_MS || this.size > MAX_WAITING) return this.flush();
    this.timer ??= setTimeout(() => this.flush(), QUIET_MS);
    this.timer.refresh(); // a quiet moment begins with the last message
  }

  /** Writes what waits. */
  flush(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.size = 0;
    const waiting = this.waiting.splice(0);
    if (waiting.length === 0 || this.isLost) return;
    this.attempt(() => {
      const lines = waiting.map(({ at, tell }) => this.masker.json({ at, ...tell() }));
      appendPrivately(this.file, lines.join('\n'));
    });
  }

  /** A full disk, or a folder that cannot be written, must not end what it is a trace of. */
  private attempt(write: () => void) {
    try {
      write();
    } catch (error) {
      this.isLost = true;
      this.onLost(error as Error);
    }
  }
}

/** Where a recording goes that was given no name: not into the folder of a project. */
export function recordingPath(command: string): string {
  const stamp = new Date().toISOString().replace(/[:.]/g, '-').slice(0, 19);
  const name = basename(command).replace(/[^\w.-]/g, '_');
  return join(homedir(), '.mcp-by-hand', 'traces', `${stamp}-${name}-${process.pid}.jsonl`);
}
