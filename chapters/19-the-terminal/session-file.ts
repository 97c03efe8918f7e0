// A conversation as a file: one JSON line per turn, so that a crash loses nothing but the line it
// was writing.

import { randomUUID } from 'node:crypto';
import {
  appendFileSync,
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  realpathSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  type Stats,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Turn } from '../../agent.ts';
import { asObject, VERSION, isObject, parseMessage, type Json } from '../../mcp.ts';
import { ownFiles, refuseLinks, type OwnFile } from '../16-hands/results.ts';
import { takeLock, type Lock } from '../17-the-gate/lock.ts';
import { quoted, type Masker } from '../17-the-gate/safe-text.ts';
import { sha256 } from '../17-the-gate/digest.ts';
import type { Trust } from '../17-the-gate/trust.ts';

// Not defined on Windows, where they mean nothing. Without the last one, to open a FIFO waits for a reader.
const { O_APPEND, O_CREAT, O_WRONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants;
const TO_APPEND = O_APPEND | O_CREAT | O_WRONLY | O_NOFOLLOW | O_NONBLOCK;

/** Only its owner may read it: a conversation holds whatever was read and said. What a project may have put in its
 *  place (a link, a second name of another file, a FIFO) is not written to. */
export function appendPrivately(file: string, line: string): void {
  refuseLinks(file);
  mustBeOurs(file, lstatSync(file, { throwIfNoEntry: false })); // before opening: that alone wakes a tape
  const fd = openSync(file, TO_APPEND, 0o600);
  try {
    mustBeOurs(file, fstatSync(fd));
    fchmodSync(fd, 0o600); // the mode above counts only for a file that is new
    appendFileSync(fd, `${line}\n`);
  } finally {
    closeSync(fd);
  }
}

function mustBeOurs(file: string, stats?: Stats) {
  if (!stats) return;
  if (!stats.isFile()) throw new Error(`${file} is not a regular file`);
  if (stats.nlink > 1)
    throw new Error(`${file} has a second name (it is a hard link): delete it, or take another`);
}

export class Session {
  id: string = randomUUID(); // of the conversation that is being recorded
  name = ''; // that the user gave it
  count = 0; // of its turns, also of those that were compacted since
  readonly folder: string; // of this project's conversations; empty if there is no home to keep them in
  readonly resultsFolder: string;
  onCopy = () => {}; // from now on, what is said goes to a copy
  private file = '';
  private turns: Turn[] = []; // the whole conversation, as the next program would read it
  private kept = new Map<string, Json>(); // by rows of the program, with it
  private listeners: ((kept: Map<string, Json>) => void)[] = [];
  private copyOf?: string; // the id of another conversation
  private lock?: Lock; // while it is held, no other program writes to the file
  private masker: Masker;
  private kind: SessionKind;

  constructor({ folder, project }: Trust, masker: Masker, kind: SessionKind = 'chat') {
    const home = folder && realOr(dirname(folder)); // below it there must be no link, above it there may
    this.folder = folder && join(home, '.mcp-by-hand', 'sessions', sha256(project).slice(7, 23));
    this.resultsFolder = this.folder
      ? join(this.folder, 'results')
      : join(tmpdir(), `mcp-by-hand-${randomUUID()}`);
    this.masker = masker;
    this.kind = kind;
  }

  /** The conversations of this folder, the one that was used last first. */
  list(): Conversation[] {
    return [...keptConversations(this.folder)];
  }

  /** The one that the user was talking in last. */
  last(): Conversation | undefined {
    return lastOf(keptConversations(this.folder));
  }

  /** Goes on with a conversation, of which these are the turns. What another program has open, it goes on writing: then
   *  we write to a copy. */
  resume(kept: Conversation): Turn[] {
    if (kept.file === this.file && this.lock) return kept.turns;
    const lock = tryToLock(kept.file);
    this.begin();
    this.turns = [...kept.turns];
    this.count = lock === 'taken' ? kept.turns.length : kept.count;
    if (lock === 'taken') {
      this.copyOf = kept.id;
      this.onCopy();
      return kept.turns; // what is kept with it is the other program's
    }
    this.lock = lock;
    this.file = kept.file;
    this.id = kept.id;
    this.name = kept.name;
    if (kept.isCut && lock) appendPrivately(this.file, ''); // the next line must not join the one that was cut off
    this.kept = kept.kept;
    this.tellSwitch();
    return kept.turns;
  }

  /** The next turn begins a new file. */
  begin(): void {
    this.reset();
    this.kept = new Map();
    this.tellSwitch();
  }

  private reset() {
    this.close();
    this.id = randomUUID();
    this.file = '';
    this.name = '';
    this.turns = [];
    this.count = 0;
    this.copyOf = undefined;
  }

  onSwitch(listener: (kept: Map<string, Json>) => void): void {
    this.listeners.push(listener);
  }

  private tellSwitch() {
    for (const listener of this.listeners) listener(new Map(this.kept));
  }

  keep(key: string, value?: Json): void {
    if (value) this.kept.set(key, value);
    else this.kept.delete(key);
    if (this.file) this.write({ kept: key, value });
  }

  /** Others may write to it from now on. */
  close(): void {
    const { lock } = this;
    this.lock = undefined;
    try {
      lock?.release();
    } catch {} // the disk is gone; without us, it counts for nothing
  }

  record(turn: Turn): void {
    this.turns.push(turn);
    this.count++;
    this.write(turn);
  }

  /** Names are unique among the conversations of a folder, so that one is enough to find it. */
  rename(name: string): void {
    const { id } = this;
    const isTaken = this.list().some((each) => each.name === name && each.id !== id);
    if (isTaken) throw new Error(`another conversation here is called ${quoted(name)}`);
    this.name = name;
    if (this.file) this.write({ named: name });
  }

  /** From here on the conversation is these turns, also for a program that goes on with it. */
  compact(turns: Turn[]): void {
    this.turns = [...turns];
    if (this.file) this.write({ compacted: turns });
  }

  private write(line: unknown) {
    if (this.folder === '') return;
    if (this.lock && !this.lock.isOurs()) this.leave();
    if (this.file === '') this.create();
    else appendPrivately(this.file, this.masked(line));
  }

  private masked(line: unknown) {
    return this.masker.json(line, asObject(line).role === 'user');
  }

  /** Another program has taken us for dead, as one in another container may, and writes to the file. */
  private leave() {
    const { turns, id } = this;
    this.reset();
    this.turns = turns;
    this.count = turns.length;
    this.copyOf = id;
    this.onCopy();
  }

  /** With all that was said so far. */
  private create() {
    refuseLinks(this.folder);
    mkdirSync(this.folder, { recursive: true, mode: 0o700 });
    const startedAt = new Date().toISOString();
    const { id, kind, copyOf, turns, name } = this;
    const file = join(this.folder, `${startedAt.replaceAll(':', '-')}-${id}.jsonl`);
    this.lock = takeLock(lockOf(file));
    const header = { session: VERSION, id, kind, startedAt, copyOf };
    const kept = [...this.kept].map(([key, value]) => ({ kept: key, value }));
    const lines = [header, ...turns, ...(name ? [{ named: name }] : []), ...kept];
    appendPrivately(file, lines.map((line) => this.masked(line)).join('\n'));
    this.file = file;
    removeOldConversations(dirname(this.folder), file);
  }
}

/** Nothing, where nothing can be written: the conversation can still be read. */
function tryToLock(file: string): Lock | 'taken' | undefined {
  try {
    return takeLock(lockOf(file)) ?? 'taken';
  } catch {
    return undefined;
  }
}

function realOr(path: string) {
  try {
    return realpathSync(path);
  } catch {
    return path; // there is none yet
  }
}

// ─── Those that are kept ─────────────────────────────────────────────────────────────────────────

/** What made it: a person who talks, or `-p`. */
export type SessionKind = 'chat' | 'print';

export type Conversation = {
  id: string;
  file: string;
  kind: SessionKind;
  name: string; // empty if the user gave it none
  usedAt: number;
  firstPrompt: string;
  count: number; // of its turns, also of those that were compacted since
  turns: Turn[];
  kept: Map<string, Json>; // by rows of the program
  isCut: boolean; // its last line was never finished
};

// 2026-01-31T12-00-00.000Z-ID.jsonl, and nothing else is ours.
const OUR_NAME = /^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z-([\da-f]{8}-[\da-f-]{27})\.jsonl$/;
const OUR_FOLDER = /^[\da-f]{16}$/;
const MIN_ID = 4; // characters: fewer are a mistake rather than an id
const DAY_MS = 24 * 3_600_000;
const MAX_AGE_MS = 30 * DAY_MS;
const MAX_AGE_NAMED_MS = 365 * DAY_MS;

/** Says that a program writes to this file. */
export const lockOf = (file: string) => `${file}.lock`;

// ─── Reading ───────────────────────────────────────────────────────────────────────────────────

/** The conversations in a folder, the one that was used last first. That need not be the one that
 *  was begun last. Each is read when its turn comes: they can be long, and many. */
export function* keptConversations(folder: string): Generator<Conversation> {
  for (const file of ownFiles(folder, OUR_NAME)) yield readConversation(file);
}

function readConversation({ path: file, label: id, stat }: OwnFile): Conversation {
  const text = readFileSync(file, 'utf8');
  // A line that was never finished is an empty object: it is passed over.
  const lines = text.split('\n').map((line) => asObject(parseMessage(line)));
  const all = lines.filter(isTurn);
  const named = lines.findLast(({ named }) => typeof named === 'string')?.named;
  return {
    id,
    file,
    kind: lines[0]?.kind === 'print' ? 'print' : 'chat', // those of older programs do not tell
    name: typeof named === 'string' ? named : '',
    usedAt: stat.mtimeMs,
    firstPrompt: all.find((turn) => turn.role === 'user')?.text ?? '',
    count: all.length,
    turns: turnsIn(lines),
    kept: keptWith(lines),
    isCut: !text.endsWith('\n'),
  };
}

/** What was compacted begins again with what it was compacted to. */
function turnsIn(lines: Json[]): Turn[] {
  const isCompacted = ({ compacted }: Json) => Array.isArray(compacted) && compacted.every(isTurn);
  const last = lines.findLastIndex(isCompacted);
  const first = last === -1 ? [] : (lines[last]!.compacted as Turn[]);
  return [...first, ...lines.slice(last + 1).filter(isTurn)];
}

/** The last word on each key counts. */
function keptWith(lines: Json[]) {
  const kept = new Map<string, Json>();
  for (const { kept: key, value } of lines) {
    if (typeof key !== 'string') continue;
    if (isObject(value)) kept.set(key, value);
    else kept.delete(key);
  }
  return kept;
}

const isList = (list: unknown, isOne: (each: Json) => boolean) =>
  Array.isArray(list) && list.every((each) => isObject(each) && isOne(each));
const isCall = ({ id, name }: Json) => typeof id === 'string' && typeof name === 'string';
const isBlock = ({ type, text, data }: Json) => typeof (type === 'text' ? text : data) === 'string';
const isResult = (result: Json) => isCall(result) && isList(result.blocks, isBlock);

function isTurn(value: unknown): value is Turn {
  if (!isObject(value)) return false;
  const { role, text, images = [], calls, results } = value;
  if (role === 'tools') return isList(results, isResult);
  if (typeof text !== 'string') return false;
  if (role === 'user') return isList(images, isBlock);
  return role === 'assistant' && isList(calls, isCall);
}

// ─── Which one ─────────────────────────────────────────────────────────────────────────────────

/** For --continue: a script that ran in between is not what the user was talking about. */
function lastOf(kept: Iterable<Conversation>): Conversation | undefined {
  let last: Conversation | undefined;
  for (const each of kept) {
    if (each.kind === 'chat') return each;
    last ??= each;
  }
  return last;
}

/** Those that may be meant: by name, or by the beginning of an id. */
export function matchingConversations(kept: Conversation[], wanted: string): Conversation[] {
  const lower = wanted.toLowerCase();
  const named = kept.filter(({ name }) => name !== '' && name.toLowerCase() === lower);
  if (named.length > 0 || lower.length < MIN_ID) return named;
  return kept.filter(({ id }) => id.startsWith(lower));
}

// ─── When they go ──────────────────────────────────────────────────────────────────────────────

/** Removes conversations of all projects that were not used for a month; of those with a name, for
 *  a year. A failure is no reason to end the one that has just begun: the next tries again. */
function removeOldConversations(sessionsFolder: string, except: string) {
  try {
    const folders = readdirSync(sessionsFolder, { withFileTypes: true });
    for (const folder of folders) {
      if (!folder.isDirectory() || !OUR_FOLDER.test(folder.name)) continue;
      const path = join(sessionsFolder, folder.name);
      const old = ownFiles(path, OUR_NAME).filter(isOld);
      for (const each of old) if (each.path !== except) removeUnused(each.path);
      locksWithoutFile(path).forEach(removeUnused);
    }
  } catch {}
}

function isOld(file: OwnFile) {
  const age = Date.now() - file.stat.mtimeMs;
  if (age <= MAX_AGE_MS) return false;
  return age > MAX_AGE_NAMED_MS || readConversation(file).name === '';
}

/** Of programs that were killed before their first word: the files that these locks were for. */
function locksWithoutFile(folder: string) {
  const locked = readdirSync(folder).flatMap((name) => name.split('.lock', 1));
  const files = locked.filter((name) => OUR_NAME.test(name)).map((name) => join(folder, name));
  return [...new Set(files)].filter((file) => !existsSync(file));
}

function removeUnused(file: string) {
  const lock = takeLock(lockOf(file));
  if (!lock) return; // a chat that has been open for a month
  rmSync(file, { force: true });
  lock.release();
}
