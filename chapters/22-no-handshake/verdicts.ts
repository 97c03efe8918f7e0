// verdicts.ts: which era a server speaks, kept from one start of the program to the next. It is a
// cache: what cannot be read or written costs a probe, and nothing else.

import { rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { isObject, ownValue, type Json } from '../../mcp.ts';
import { sha256 } from '../17-the-gate/digest.ts';
import { PrivateFile } from '../17-the-gate/private-file.ts';
import type { Era, Verdicts } from './era.ts';

const MAX_VERDICTS = 500;
const LOCK_MS = 60; // a probe costs less than a long wait
type ErasFile = { version: number; eras: Record<string, Era> };

const isEra = (value: unknown) => value === 'handshake' || value === 'stateless';
const isSound = ({ eras }: Json) => isObject(eras) && Object.values(eras).every(isEra);

/** The same words may start another program in another folder. And they may be secret, so what is
 *  written down is a digest. */
const keyOf = (entry: string) => sha256(`${process.cwd()}\n${entry}`);

export class KeptVerdicts implements Verdicts {
  private file: PrivateFile<ErasFile>;

  constructor(home = homedir()) {
    this.file = new PrivateFile<ErasFile>(home, 'eras.json', { version: 1, eras: {} }, isSound);
  }

  get(entry: string): Era | undefined {
    const key = keyOf(entry);
    try {
      const { eras } = this.file.read();
      return ownValue(eras, key);
    } catch {
      return undefined;
    }
  }

  set(entry: string, era: Era): void {
    const key = keyOf(entry);
    this.change(({ eras }) => {
      delete eras[key]; // so that it becomes the newest
      eras[key] = era;
      const oldest = Object.keys(eras).slice(0, -MAX_VERDICTS);
      for (const old of oldest) delete eras[old];
    });
  }

  delete(entry: string): void {
    if (this.get(entry)) this.change(({ eras }) => void delete eras[keyOf(entry)]);
  }

  private change(edit: (store: ErasFile) => void) {
    try {
      this.file.change(edit, LOCK_MS);
    } catch {
      if (this.isDamaged()) this.startOver();
    }
  }

  private isDamaged() {
    try {
      this.file.read();
      return false; // another program was writing to it, say
    } catch {
      return true;
    }
  }

  /** A damaged file of a cache is no loss. The next verdict begins a new one. */
  private startOver() {
    try {
      rmSync(this.file.file, { force: true });
    } catch {} // the folder cannot be written to, say
  }
}
