// A file of what happened: one record per line, without secrets.

import { resolve } from 'node:path';
import type { Json } from '../../mcp.ts';
import type { Masker } from '../17-the-gate/safe-text.ts';
import { refused } from './exit.ts';
import type { Output } from './plain-screen.ts';
import { appendPrivately } from './session.ts';

export class Trace {
  isLost = false; // it was asked for, and ends before its time
  readonly file: string;
  private screen: Output;
  private masker: Masker;

  constructor(file: string, screen: Output, masker: Masker) {
    this.file = resolve(file);
    this.screen = screen;
    this.masker = masker;
    try {
      this.append({ type: 'trace' });
    } catch (error) {
      throw refused(`cannot write the trace: ${(error as Error).message}`);
    }
  }

  write(record: Json): void {
    if (this.isLost) return;
    try {
      this.append(record);
    } catch (error) {
      this.isLost = true; // a full disk must not end what it is a trace of
      this.screen.warn(`the trace ends here: ${(error as Error).message}`);
    }
  }

  private append(record: Json): void {
    appendPrivately(this.file, this.masker.json({ t: new Date().toISOString(), ...record }));
  }
}
