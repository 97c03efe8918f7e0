// A conversation as a file: one JSON line per turn, so that a crash loses nothing but the line it was writing.

import { randomUUID } from 'node:crypto';
import {
  appendFileSync, closeSync, constants, existsSync, fchmodSync, fstatSync, lstatSync, mkdirSync, openSync, readdirSync,
  readFileSync, realpathSync, type Stats,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Turn } from '../../agent.ts';
import { isObject, VERSION, type Json } from '../../mcp.ts';
import { refuseLinks } from '../16-hands/results.ts';
import type { Masker } from '../17-the-gate/safe-text.ts';
import { sha256, type Trust } from '../17-the-gate/trust.ts';

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

function mustBeOurs(file: string, stats?: Stats): void {
  if (!stats) return;
  if (!stats.isFile()) throw new Error(`${file} is not a regular file`);
  if (stats.nlink > 1) throw new Error(`${file} has a second name (it is a hard link): delete it, or take another`);
}

export class Session {
  readonly folder: string; // of this project's conversations; empty if there is no home to keep them in
  readonly resultsFolder: string;
  private file = '';
  private masker: Masker;

  constructor({ folder, project }: Trust, masker: Masker) {
    const home = folder && realOr(dirname(folder)); // below it there must be no link, above it there may
    this.folder = folder && join(home, '.mcp-by-hand', 'sessions', sha256(project).slice(7, 23));
    this.resultsFolder = this.folder ? join(this.folder, 'results') : join(tmpdir(), `mcp-by-hand-${randomUUID()}`);
    this.masker = masker;
  }

  /** The turns of the last conversation in this folder; what is said from now on is appended to it. */
  resume(): Turn[] {
    const names = existsSync(this.folder) ? readdirSync(this.folder) : [];
    const files = names.filter((name) => name.endsWith('.jsonl')).sort().map((name) => join(this.folder, name));
    const stats = files.map((file) => ({ file, stat: lstatSync(file) })).filter(({ stat }) => stat.isFile());
    const used = stats.sort((a, b) => a.stat.mtimeMs - b.stat.mtimeMs);
    const last = used.at(-1); // the one that was used last, which need not be the one that was begun last
    if (!last) return [];
    this.file = last.file;
    const text = readFileSync(this.file, 'utf8');
    if (!text.endsWith('\n')) appendPrivately(this.file, ''); // its last line was cut off: the next must not join it
    return text.split('\n').flatMap(readTurn);
  }

  /** The next turn begins a new file. */
  begin(): void { this.file = ''; }

  record(turn: Turn): void {
    if (this.folder === '') return;
    if (this.file === '') {
      refuseLinks(this.folder);
      mkdirSync(this.folder, { recursive: true, mode: 0o700 });
      const now = new Date().toISOString().replaceAll(':', '-');
      this.file = join(this.folder, `${now}-${randomUUID()}.jsonl`);
      appendPrivately(this.file, JSON.stringify({ session: VERSION, startedAt: new Date().toISOString() }));
    }
    appendPrivately(this.file, this.masker.json(turn));
  }
}

function realOr(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path; // there is none yet
  }
}

const isList = (list: unknown, isOne: (each: Json) => boolean) =>
  Array.isArray(list) && list.every((each) => isObject(each) && isOne(each));
const isCall = ({ id, name }: Json) => typeof id === 'string' && typeof name === 'string';
const isBlock = ({ type, text, data }: Json) => typeof (type === 'text' ? text : data) === 'string';
const isResult = (result: Json) => isCall(result) && isList(result.blocks, isBlock);

/** A line that is no turn, such as one that was never finished, is passed over. */
function readTurn(line: string): Turn[] {
  try {
    const turn: unknown = JSON.parse(line);
    if (!isObject(turn)) return [];
    const isSound =
      (turn.role === 'user' && typeof turn.text === 'string') ||
      (turn.role === 'assistant' && typeof turn.text === 'string' && isList(turn.calls, isCall)) ||
      (turn.role === 'tools' && isList(turn.results, isResult));
    return isSound ? [turn as Turn] : [];
  } catch {
    return [];
  }
}
