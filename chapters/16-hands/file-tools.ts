// file-tools.ts: read, write and edit. Nothing is overwritten that the model has not seen as it is
// now.

import { createHash } from 'node:crypto';
import { constants, type Stats } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import type { Change, ToolOutput } from '../../agent.ts';
import { changeOf, firstLines } from './diff.ts';
import { walkFiles } from './more/glob.ts';
import { distance, nearest } from './nearest.ts';
import { openFile, replaceProjectFile, type Location, type Roots } from './paths.ts';
import { imageType, inWords, MAX_IMAGE_BASE64 } from './results.ts';
import type { Edits } from './undo.ts';

const MAX_LINES = 2000;
const MAX_PAGE_BYTES = 50 * 1024;
const MAX_COUNTED_BYTES = 10 * 2 ** 20; // to count the lines of a larger file, only to say how many, takes too long
const MAX_EDITED_BYTES = 10 * 2 ** 20;
const MAX_DIFF_LINES = 100; // that the model reads after an edit
const MAX_TOLD_DIFF = 50_000; // characters of a diff, after the deed
const CHUNK = 64 * 1024;
const LF = 10;

/** Files as the model last saw them: read, written or edited in this session. */
type SeenFiles = Map<string, { mtimeMs: number; size: number }>;
export type FileAccess = { roots: Roots; seen: SeenFiles; edits?: Edits };

// ─── read ─────────────────────────────────────────────────────────────────────────────────────────────────────

type ReadArguments = { offset?: number; limit?: number };

export async function readForModel(
  location: Location,
  args: ReadArguments,
  desk: FileAccess,
  signal: AbortSignal,
): Promise<ToolOutput> {
  const file = await openExisting(location, desk.roots);
  try {
    const stats = await file.stat();
    const { buffer, bytesRead } = await file.read(Buffer.alloc(12), 0, 12, 0);
    const mimeType = imageType(buffer.subarray(0, bytesRead));
    const output = mimeType
      ? await readImage(location, file, stats.size, mimeType)
      : inWords(await readText(location, file, stats.size, args, signal));
    remember(desk.seen, location, stats);
    return output;
  } finally {
    await file.close();
  }
}

async function readImage(
  { shown }: Location,
  file: FileHandle,
  size: number,
  mimeType: string,
): Promise<ToolOutput> {
  if ((size * 4) / 3 > MAX_IMAGE_BASE64)
    throw new Error(
      `${shown} is an image of ${size} bytes, more than a model can take; make a smaller copy with bash`,
    );
  const data = (await file.readFile()).toString('base64');
  return { blocks: [{ type: 'image', mimeType, data }], isError: false };
}

/** Reads only as far as needed: a file may be larger than our memory. */
async function readText(
  { shown }: Location,
  file: FileHandle,
  size: number,
  args: ReadArguments,
  signal: AbortSignal,
) {
  const { offset = 1, limit = MAX_LINES } = args;
  const page = new LinePage(offset, Math.min(limit, MAX_LINES));
  let isWhole = true; // we came to the end
  for await (const chunk of chunksOf(file, signal)) {
    if (!page.isFull && chunk.includes(0))
      throw new Error(`${shown} is not text (it has NUL bytes); use bash`);
    page.add(chunk);
    if (page.isFull && size > MAX_COUNTED_BYTES) {
      isWhole = false;
      break;
    }
  }
  const total = isWhole ? page.total() : undefined;
  if (total === 0) return '(the file is empty)';
  if (total !== undefined && offset > total)
    throw new Error(`${shown} has only ${total} lines; give a smaller offset`);
  if (page.lines.length === 0)
    throw new Error(
      `line ${offset} of ${shown} is longer than ${MAX_PAGE_BYTES} bytes. Use bash to see a part of it ` +
        `(sed -n ${offset}p … | cut -c1-1000), or go on with offset ${offset + 1}.`,
    );
  return page.lines.join('\n') + footer(offset, offset + page.lines.length - 1, total);
}

function footer(first: number, last: number, total: number | undefined) {
  if (first === 1 && last === total) return '';
  const range = `lines ${first} to ${last} of ${total ?? 'a file too large to count them'}`;
  return `\n\n[${range}${last === total ? '' : `; go on with offset ${last + 1}`}]`;
}

async function* chunksOf(file: FileHandle, signal: AbortSignal): AsyncGenerator<Buffer> {
  for (;;) {
    signal.throwIfAborted();
    const { buffer, bytesRead } = await file.read(Buffer.alloc(CHUNK), 0, CHUNK);
    if (bytesRead === 0) return;
    yield buffer.subarray(0, bytesRead);
  }
}

/** Whole lines from a first one on, until there are enough or the page is full. The other lines are only counted. */
class LinePage {
  lines: string[] = [];
  isFull = false;
  private first: number;
  private count: number;
  private room = MAX_PAGE_BYTES;
  private number = 1; // of the line that is being read
  private pieces: Buffer[] = []; // of that line
  private isBetween = true; // nothing of that line has come yet

  constructor(first: number, count: number) {
    this.first = first;
    this.count = count;
  }

  add(chunk: Buffer) {
    for (let start = 0; start < chunk.length; ) {
      const end = chunk.indexOf(LF, start);
      this.addPiece(chunk.subarray(start, end === -1 ? chunk.length : end));
      if (end === -1) return;
      this.endLine();
      start = end + 1;
    }
  }

  /** How many lines there are, at the end of the file. The last one may lack its line feed. */
  total() {
    if (!this.isBetween) this.endLine();
    return this.number - 1;
  }

  private addPiece(piece: Buffer) {
    this.isBetween = false;
    if (this.isFull || this.number < this.first) return;
    this.room -= piece.length;
    this.isFull = this.room < 0; // and this line, which does not fit, is left for the next page
    this.pieces.push(piece);
  }

  private endLine() {
    if (!this.isFull && this.number >= this.first) {
      const line = Buffer.concat(this.pieces).toString();
      this.lines.push(line.replace(/\r$/, '').replace(this.number === 1 ? /^\ufeff/ : '', ''));
      this.isFull = this.lines.length === this.count || --this.room < 0;
    }
    this.pieces = [];
    this.number++;
    this.isBetween = true;
  }
}

// ─── write and edit: first a plan, then the deed ──────────────────────────────────────────────────────────────

/** What a call would do. The gate shows it to a person, and `carryOut` does it. */
export type Plan = {
  before?: Stats; // of the file that is there
  text?: string; // what is in it, if it can be shown
  content: string; // what will be
  notes: string[]; // for the person who judges it
};

type WriteArguments = { content: string };
type EditArguments = { old: string; new: string; all?: boolean };

export async function planWrite(
  location: Location,
  { content }: WriteArguments,
  desk: FileAccess,
): Promise<Plan> {
  mustBeInside(location);
  const file = await openUnlessMissing(location);
  if (!file) return { content, notes: ['a new file'] };
  try {
    const before = await file.stat();
    mustBeSeen(desk.seen, location, before);
    const text = await readWhole(file, before);
    return {
      before,
      text,
      content,
      notes: text === undefined ? [`${before.size} bytes that are not shown go`] : [],
    };
  } finally {
    await file.close();
  }
}

export async function planEdit(
  location: Location,
  args: EditArguments,
  desk: FileAccess,
): Promise<Plan> {
  mustBeInside(location);
  const file = await openExisting(location, desk.roots, constants.O_RDWR);
  try {
    const before = await file.stat();
    mustBeSeen(desk.seen, location, before);
    if (before.size > MAX_EDITED_BYTES)
      throw new Error(
        `${location.shown} has more than ${MAX_EDITED_BYTES} bytes, too many for edit; use bash`,
      );
    const text = await readWhole(file, before);
    if (text === undefined)
      // written back, every byte that is not UTF-8 would be another
      throw new Error(`${location.shown} is not valid UTF-8, so an edit would damage it; use bash`);
    return { before, text, content: replaceText(location.shown, text, args), notes: [] };
  } finally {
    await file.close();
  }
}

/** The text of a file. Nothing if it is too large, or not text. */
async function readWhole(file: FileHandle, { size }: Stats) {
  if (size > MAX_EDITED_BYTES) return undefined;
  const content = await file.readFile();
  const text = content.toString();
  return Buffer.from(text).equals(content) ? text : undefined;
}

/** Opened for writing, because a new file could be put in place of one that we may not change. */
async function openUnlessMissing(location: Location) {
  try {
    return await openFile(location, constants.O_RDWR);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Two plans with one fingerprint turn the same file into the same file. */
export function fingerprintOf({ before, text, content }: Plan): string {
  const hash = createHash('sha256');
  for (const part of [`${before?.mtimeMs} ${before?.size}`, text ?? '', content])
    hash.update(`${part.length} ${part}`);
  return hash.digest('hex');
}

export function plannedChange({ text, content, notes }: Plan): Change {
  const { diff, notes: more } = changeOf(text, content);
  return { diff, notes: [...notes, ...more] };
}

export async function carryOut(
  location: Location,
  plan: Plan,
  desk: FileAccess,
  answer: (location: Location, plan: Plan, diff: string) => string,
): Promise<ToolOutput> {
  const { before, content } = plan;
  remember(
    desk.seen,
    location,
    await replaceProjectFile(location, content, before && before.mode & 0o777),
  );
  desk.edits?.add(location, plan);
  const { diff, notes } = plannedChange(plan);
  const change = { diff: firstLines(diff, Infinity, MAX_TOLD_DIFF), notes };
  return { ...inWords(answer(location, plan, diff)), change };
}

export function written({ shown }: Location, { before, content }: Plan): string {
  const lines = content.split('\n').length - (content.endsWith('\n') || content === '' ? 1 : 0);
  const what = before ? 'replaced' : 'created';
  const bytes = Buffer.byteLength(content);
  return `${what} ${shown}: ${bytes} byte${bytes === 1 ? '' : 's'}, ${lines} line${lines === 1 ? '' : 's'}`;
}

export function edited({ shown }: Location, _: Plan, diff: string): string {
  const lines = diff.replace(/\r$/gm, ''); // models write LF
  return `edited ${shown}\n${firstLines(lines, MAX_DIFF_LINES, MAX_TOLD_DIFF)}`;
}

/** Whatever the gate has said. */
function mustBeInside({ shown, real, inside }: Location) {
  if (inside) return;
  const leads = real === shown ? '' : ` (it leads to ${real})`;
  throw new Error(
    `${shown} is outside of the folders that you may write to${leads}. Choose a path inside of the ` +
      'working folder, or ask the user to add the folder with --add-dir.',
  );
}

function mustBeSeen(seen: SeenFiles, { shown, real }: Location, { mtimeMs, size }: Stats) {
  const known = seen.get(real);
  if (!known)
    throw new Error(`${shown} exists and you have not read it in this session; read it first`);
  if (known.mtimeMs !== mtimeMs || known.size !== size)
    throw new Error(`${shown} has changed since you read it; read it again first`);
}

function remember(seen: SeenFiles, { real }: Location, { mtimeMs, size }: Stats) {
  seen.set(real, { mtimeMs, size });
}

function replaceText(
  shown: string,
  text: string,
  { old, new: replacement, all = false }: EditArguments,
) {
  if (old === '')
    throw new Error('old is empty; give the text to replace, or use write for a new file');
  const count = (ending: string) => text.split(ending).length - 1;
  const ownEnding = count('\r\n') * 2 > count('\n') ? '\r\n' : '\n'; // that of most lines
  const withEnding = (ending: string, words: string) => words.replace(/\r?\n/g, () => ending);
  // Models write LF. Exactly as given first; else the same lines with the one ending or the other. (A byte order
  // mark, which read does not show, stands before all that can be found, and stays there.)
  const spellings = [old, withEnding('\r\n', old), withEnding('\n', old)];
  const found = spellings.find((spelling) => text.includes(spelling));
  if (found === undefined)
    throw new Error(`old was not found in ${shown}.${nearestLine(text, old)}`);
  const parts = text.split(found);
  const hits = parts.length - 1;
  if (hits > 1 && !all)
    throw new Error(
      `old was found ${hits} times in ${shown}. Add lines around it to say which, or set all to true.`,
    );
  // Not String.replace: in its replacement $& and $1 have a meaning, and code is full of dollars.
  const changed = parts.join(withEnding(ownEnding, replacement));
  if (changed === text)
    throw new Error(`this edit would leave ${shown} as it is; old and new are the same`);
  return changed;
}

const MAX_LOOK_MS = 200;

/** Where the model may have meant: the line that is most like the first line of what it looked for. */
function nearestLine(text: string, old: string) {
  const key = (line: string) => line.trim().slice(0, 80);
  const wanted =
    old
      .split('\n')
      .map(key)
      .find((line) => line !== '') ?? '';
  let best: { line: string; number: number } | undefined;
  let most = Math.ceil(wanted.length / 2);
  const endsAt = performance.now() + MAX_LOOK_MS;
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (performance.now() > endsAt) break; // a large file, and it is only a hint
    const steps = distance(wanted, key(line), most);
    if (steps > most || (best && steps === most)) continue;
    [best, most] = [{ line, number: index + 1 }, steps];
  }
  if (!best) return ' Nothing in it looks like it: read the file again.';
  return ` It must match exactly, white space too. The nearest is line ${best.number}:\n${best.line.slice(0, 500)}`;
}

// ─── Missing files ────────────────────────────────────────────────────────────────────────────────────────────

async function openExisting(location: Location, roots: Roots, flags?: number) {
  try {
    return await openFile(location, flags);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    throw new Error(`there is no file ${location.shown}.${await didYouMean(location, roots)}`);
  }
}

/** Models get the folder wrong more often than the name, so names are compared wherever they are. */
async function didYouMean({ real }: Location, roots: Roots) {
  const byName = new Map<string, string[]>();
  for await (const path of walkFiles(roots.cwd, { maxEntries: 5000 })) {
    const name = basename(path);
    byName.set(name, [...(byName.get(name) ?? []), path]);
  }
  const isFar = (path: string) => Number(dirname(path) !== dirname(real));
  const near = nearest(basename(real), byName.keys()).flatMap((name) => byName.get(name)!);
  near.sort((a, b) => isFar(a) - isFar(b));
  const names = near.slice(0, 3).map((path) => roots.show(path));
  return names.length > 0
    ? ` Did you mean ${names.join(' or ')}?`
    : ' Use glob to see which files there are.';
}
