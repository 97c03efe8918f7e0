// tokens.ts: what we were given, in the user's home. Every row belongs to one server, at one address, and to one
// authorization server: what one has given out is never shown to another.

import { homedir } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';
import type { Json } from '../../mcp.ts';
import { inTheWay, takeLock, type Lock } from '../17-the-gate/lock.ts';
import { hasTexts, NotWritten, PrivateFile } from '../17-the-gate/private-file.ts';
import { PROGRAM } from '../17-the-gate/trust.ts';
import type { Challenge } from './discovery.ts';

/** Who we are to an authorization server, and how we show it. `redirectUri` is what a registration was made for. */
export type OAuthClient = {
  id: string;
  secret?: string;
  method: string;
  redirectUri?: string;
  expiresAt?: number;
};
/** `scope` is what we asked for: what was granted may be less, but to ask for it again is of no use. */
export type Tokens = {
  access: string;
  type: 'Bearer' | 'DPoP';
  refresh?: string;
  expiresAt?: number;
  scope: string[];
};
export type StoredLogin = {
  server: string;
  url: string;
  issuer: string;
  client: OAuthClient;
  resource: string;
  tokenEndpoint: string;
  revocationEndpoint?: string;
  tokens?: Tokens; // without them it is a registration to come back to
  key?: Json; // to which they are bound
  company?: { issuer: string; client: string }; // the identity provider whose login they rest on
};
/** "I want a login" (401), or "one with more rights" (403), said a server then, and how. */
type StoredChallenge = {
  server: string;
  url: string;
  at: number;
  status: number;
  challenge: string;
};
type LoginsFile = {
  version: 1;
  rows: StoredLogin[]; // the newest is the last
  verdicts: StoredChallenge[];
  company: { issuer: string; client: string; idToken: string }[]; // logins at identity providers
};

type ServerAddress = { server: string; url: string };
const isAt = (a: ServerAddress, b: ServerAddress) => a.server === b.server && a.url === b.url;
const isSame = (a: StoredLogin, b: StoredLogin) => isAt(a, b) && a.issuer === b.issuer;

const EMPTY: LoginsFile = { version: 1, rows: [], verdicts: [], company: [] };
const VERDICT_MS = 15 * 60_000;
const MAX_TURN_MS = 30_000; // longer than a refresh takes

export class TokenStore {
  private home?: string;
  private opened?: PrivateFile<LoginsFile>;
  // What cannot be written down counts for this run.
  private memory: LoginsFile = structuredClone(EMPTY);
  private isInMemory = false;
  private warn: (text: string) => void;

  constructor({ home, warn = () => {} }: { home?: string; warn?: (text: string) => void } = {}) {
    this.home = home;
    this.warn = warn;
  }

  private get file(): PrivateFile<LoginsFile> {
    return (this.opened ??= new PrivateFile(this.home ?? homedir(), 'logins.json', EMPTY, isSound));
  }

  get isKept(): boolean {
    return !this.isInMemory;
  }

  private read() {
    if (this.isInMemory) return this.memory;
    try {
      return this.file.read();
    } catch (error) {
      return this.withoutFile(error);
    }
  }

  private change(edit: (store: LoginsFile) => void) {
    try {
      if (!this.isInMemory) return this.file.change(edit);
    } catch (error) {
      // Of all logins only this one is odd, and only it counts for this run.
      if (error instanceof NotWritten)
        return this.warn(`${this.file.file}: this one is not kept, because ${error.message}`);
      this.withoutFile(error);
    }
    edit(this.memory);
  }

  private withoutFile(error: unknown) {
    this.isInMemory = true;
    try {
      this.memory = structuredClone(this.file.read()); // if it cannot be written, it may still be read
    } catch {}
    const again = `and then log in again: ${PROGRAM} mcp login NAME`;
    const why = (error as Error).message;
    this.warn(`${this.file.file} is not used, so logins count for this run only: ${why}, ${again}`);
    return this.memory;
  }

  /** The newest row of a server, or the one of an authorization server. What was only begun does not count yet. */
  find(server: string, url: string, issuer?: string): StoredLogin | undefined {
    const isMeant = (row: StoredLogin) =>
      isAt(row, { server, url }) && row.issuer === (issuer ?? row.issuer);
    const rows = this.read().rows.filter(isMeant);
    return rows.findLast(({ tokens }) => tokens) ?? rows.at(-1);
  }

  keep(row: StoredLogin, isNew = false): void {
    this.change((store) => {
      store.rows = [...store.rows.filter((each) => !isSame(each, row)), row];
      if (isNew) store.verdicts = store.verdicts.filter((each) => !isAt(each, row));
    });
  }

  /** Takes out everything that a server of this name was given, at that address or wherever it was. */
  forget(server: string, url?: string): StoredLogin[] {
    const isMeant = (each: ServerAddress) =>
      each.server === server && each.url === (url ?? each.url);
    const { rows, verdicts } = this.read();
    const forgotten = rows.filter(isMeant);
    if (![...rows, ...verdicts].some(isMeant)) return []; // where nothing can be written, that is no trouble
    this.change((store) => {
      store.rows = store.rows.filter((row) => !isMeant(row));
      store.verdicts = store.verdicts.filter((verdict) => !isMeant(verdict));
      const isTheirs = (each: StoredLogin['company']) =>
        forgotten.some(
          ({ company }) => company?.issuer === each?.issuer && company?.client === each?.client,
        );
      store.company = store.company.filter((each) => !isTheirs(each));
    });
    return forgotten;
  }

  /** A registration that is of no use any more. */
  drop(row: StoredLogin): void {
    this.change((store) => void (store.rows = store.rows.filter((each) => !isSame(each, row))));
  }

  /** What a server said last, if that is not long ago: nobody is asked at every start what it will say again. */
  verdict(server: string, url: string): StoredChallenge | undefined {
    const verdict = this.read().verdicts.find((each) => isAt(each, { server, url }));
    const age = Date.now() - (verdict?.at ?? -Infinity);
    return age >= 0 && age < VERDICT_MS ? verdict : undefined;
  }

  judge(server: string, url: string, { status, header }: Challenge): void {
    this.change((store) => {
      const others = store.verdicts.filter((each) => !isAt(each, { server, url }));
      store.verdicts = [...others, { server, url, at: Date.now(), status, challenge: header }];
    });
  }

  idpLogin(issuer: string, client: string): string | undefined {
    return this.read().company.find((each) => each.issuer === issuer && each.client === client)
      ?.idToken;
  }

  keepIdpLogin(issuer: string, client: string, idToken?: string): void {
    this.change((store) => {
      store.company = store.company.filter(
        (each) => each.issuer !== issuer || each.client !== client,
      );
      if (idToken) store.company.push({ issuer, client, idToken });
    });
  }

  /** One program at a time: two that use up the same refresh token look like a thief and his victim. */
  async alone<T>(work: () => Promise<T>): Promise<T> {
    const lock = await this.turn();
    lock?.keepFresh();
    try {
      return await work();
    } finally {
      lock?.release();
    }
  }

  /** A program that was stopped in the middle of it may go on in an hour, and a call must not wait for that. */
  private async turn() {
    const startedAt = performance.now();
    const file = `${this.file.file}.refresh`;
    while (!this.isInMemory && this.file.folder !== '') {
      let lock: Lock | undefined;
      try {
        lock = takeLock(file);
      } catch {
        break; // without a folder there is no file, and nobody to wait for
      }
      if (lock) return lock;
      if (performance.now() - startedAt > MAX_TURN_MS) throw inTheWay(file);
      await wait(50);
    }
    return undefined;
  }
}

// ─── Numbers ──────────────────────────────────────────────────────────────────────────────────

const MAX_SECONDS = 1e11; // three thousand years
const MAX_TIME = 8.64e15; // a Date can be no later

/** Seconds, as a server names them. Some write "3600"; and 1e999 is JSON, too, and Infinity to us.
 *  What is not a number above 0 that a calendar knows is as good as none. */
export function validSeconds(value: unknown): number | undefined {
  const isDigits = typeof value === 'string' && /^\d{1,11}$/.test(value);
  const seconds = isDigits ? Number(value) : value;
  const isSane = typeof seconds === 'number' && seconds > 0 && seconds <= MAX_SECONDS;
  return isSane ? seconds : undefined;
}

const isTime = (value: unknown) => typeof value === 'number' && value >= 0 && value <= MAX_TIME;

// ─── The shape of the file ────────────────────────────────────────────────────────────────────

function isSound(value: Json) {
  const isList = (rows: unknown, isOne: (row: unknown) => boolean) =>
    Array.isArray(rows) && rows.every(isOne);
  const may = (value: unknown, type: string) => value === undefined || typeof value === type;
  const mayBeTime = (value: unknown) => value === undefined || isTime(value);
  const isText = (each: unknown) => typeof each === 'string';
  const isTokens = (tokens: unknown) =>
    tokens === undefined ||
    (hasTexts(tokens, 'access', 'type') &&
      ['Bearer', 'DPoP'].includes(`${tokens.type}`) &&
      isList(tokens.scope, isText) &&
      may(tokens.refresh, 'string') &&
      mayBeTime(tokens.expiresAt));
  const isRow = (row: unknown) =>
    hasTexts(row, 'server', 'url', 'issuer', 'resource', 'tokenEndpoint') &&
    hasTexts(row.client, 'id', 'method') &&
    isTokens(row.tokens) &&
    may(row.revocationEndpoint, 'string') &&
    may(row.client.secret, 'string') &&
    may(row.client.redirectUri, 'string') &&
    mayBeTime(row.client.expiresAt) &&
    (row.key === undefined || hasTexts(row.key, 'x', 'd'));
  const isVerdict = (row: unknown) =>
    hasTexts(row, 'server', 'url', 'challenge') && isTime(row.at) && typeof row.status === 'number';
  return (
    isList(value.rows, isRow) &&
    isList(value.verdicts, isVerdict) &&
    isList(value.company, (row) => hasTexts(row, 'issuer', 'client', 'idToken'))
  );
}
