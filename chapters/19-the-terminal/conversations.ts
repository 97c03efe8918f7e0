// The conversations that are kept: what is in their files, which one is meant, and when they go.

import { existsSync, lstatSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Turn } from '../../agent.ts';
import { asObject, isObject, parseMessage, type Json } from '../../mcp.ts';
import { takeLock } from '../17-the-gate/lock.ts';

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
  const files = oursIn(folder).sort((a, b) => b.usedAt - a.usedAt);
  for (const { file, usedAt } of files) yield readConversation(file, usedAt);
}

type ConversationFile = { file: string; usedAt: number };

/** What is not surely ours is not among them. */
function oursIn(folder: string): ConversationFile[] {
  const found: ConversationFile[] = [];
  const names = existsSync(folder) ? readdirSync(folder) : [];
  for (const name of names.filter((each) => OUR_NAME.test(each))) {
    const file = join(folder, name);
    const stat = lstatSync(file, { throwIfNoEntry: false });
    if (!stat?.isFile() || stat.nlink > 1) continue; // a link, say
    const isOurs = process.getuid === undefined || stat.uid === process.getuid();
    if (isOurs) found.push({ file, usedAt: stat.mtimeMs });
  }
  return found;
}

function readConversation(file: string, usedAt: number): Conversation {
  const text = readFileSync(file, 'utf8');
  // A line that was never finished is an empty object: it is passed over.
  const lines = text.split('\n').map((line) => asObject(parseMessage(line)));
  const all = lines.filter(isTurn);
  const named = lines.findLast(({ named }) => typeof named === 'string')?.named;
  return {
    id: OUR_NAME.exec(basename(file))![1]!,
    file,
    kind: lines[0]?.kind === 'print' ? 'print' : 'chat', // those of older programs do not tell
    name: typeof named === 'string' ? named : '',
    usedAt,
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
function keptWith(lines: Json[]): Map<string, Json> {
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
export function lastOf(kept: Iterable<Conversation>): Conversation | undefined {
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
export function removeOldConversations(sessionsFolder: string, except: string): void {
  try {
    const folders = readdirSync(sessionsFolder, { withFileTypes: true });
    for (const folder of folders) {
      if (!folder.isDirectory() || !OUR_FOLDER.test(folder.name)) continue;
      const path = join(sessionsFolder, folder.name);
      const old = oursIn(path).filter((each) => isOld(each));
      for (const { file } of old) if (file !== except) removeUnused(file);
      locksWithoutFile(path).forEach(removeUnused);
    }
  } catch {}
}

function isOld({ file, usedAt }: ConversationFile): boolean {
  const age = Date.now() - usedAt;
  if (age <= MAX_AGE_MS) return false;
  return age > MAX_AGE_NAMED_MS || readConversation(file, usedAt).name === '';
}

/** Of programs that were killed before their first word: the files that these locks were for. */
function locksWithoutFile(folder: string): string[] {
  const locked = readdirSync(folder).flatMap((name) => name.split('.lock', 1));
  const files = locked.filter((name) => OUR_NAME.test(name)).map((name) => join(folder, name));
  return [...new Set(files)].filter((file) => !existsSync(file));
}

function removeUnused(file: string): void {
  const lock = takeLock(lockOf(file));
  if (!lock) return; // a chat that has been open for a month
  rmSync(file, { force: true });
  lock.release();
}
