// wires.ts: the wire of each console block that shows `npm run chapter 5`, for a reader to play. It
// comes from a run that has printed what the block shows: trace and console are of one run.

import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stageDemo } from '../chapter.ts';
import { asShown, envIn, firstDifference, limitOf } from '../consoles.ts';
import { MESSAGE, watched } from '../draw.ts';
import { isFile, put, read, sideBySide } from '../files.ts';
import { chapterOf, nameOf, stepOf, type Book, type Fence, type Step } from '../pages.ts';
import { cached, filesOfProgram, withDemo } from '../program.ts';

type Seen = { trace: string; printed: string[] };
export type Wires = { scripts: Map<string, string>; problems: string[] };

const TRIES = 3; // some print in another order when the machine is busy
const MAX_TEXT = 600; // characters: a demo may send a million, and a page need not
const MAX_ITEMS = 50;
const MAX_RECORDS = 300; // more than anyone steps through

/** By the names of the steps, such as `15.1`; only those of which something can be played. */
export async function wiresOf(book: Book): Promise<Wires> {
  const wires: Wires = { scripts: new Map(), problems: [] };
  const blocks = new Map<string, Fence[]>();
  for (const fence of book.chapters.flatMap(({ fences }) => fences)) {
    const commands = fence.body.filter((line) => line.startsWith('$ '));
    const [, name] = /^\$ npm run chapter ([\d.]+)$/.exec(commands[0] ?? '') ?? [];
    if (fence.language !== 'console' || commands.length !== 1 || !name) continue;
    if (book.steps.includes(stepOf(name))) blocks.set(name, [...(blocks.get(name) ?? []), fence]);
  }
  await sideBySide([...blocks], async ([name, shown]) => {
    const trace = await traceFor(book, stepOf(name), shown);
    if (trace === undefined) {
      const { page, line } = shown[0]!;
      wires.problems.push(`${page}:${line}: no run that was watched has printed this`);
    } else if (trace.split('\n').some((line) => MESSAGE.test(line)))
      wires.scripts.set(name, scriptOf(name, shortened(trace)));
  });
  return wires;
}

/** A page that was opened as a file may load a script, and nothing else. */
const scriptOf = (name: string, trace: string) =>
  `(window.WIRES ??= {})[${JSON.stringify(name)}] = ${JSON.stringify(trace)};\n`;

async function traceFor(book: Book, step: Step, blocks: Fence[]): Promise<string | undefined> {
  const file = join(cached(book, 'wires'), `${keyOf(book, step)}.json`);
  const isShown = ({ printed }: Seen) =>
    blocks.every(({ body }) => firstDifference(body.slice(1), printed) === undefined);
  const known = isFile(file) ? (JSON.parse(read(file)) as Seen) : undefined;
  if (known && isShown(known)) return known.trace;
  for (let count = 0; count < TRIES; count++) {
    const seen = await watchOnce(book, step, limitOf(blocks[0]!, 'as typed'));
    if (!isShown(seen)) continue;
    put(file, JSON.stringify(seen));
    return seen.trace;
  }
  return undefined;
}

async function watchOnce(book: Book, step: Step, limitMs: number): Promise<Seen> {
  const { title, folder, demo } = stageDemo(book, step, step);
  const home = mkdtempSync(join(tmpdir(), 'book '));
  mkdirSync(cached(book, 'wires'), { recursive: true });
  const file = join(home, 'trace.jsonl');
  const { trace, printed } = await watched(file, title, folder, demo, {
    env: envIn(home),
    limitMs,
  });
  rmSync(home, { recursive: true, force: true });
  return { trace, printed: asShown(book, home, `${title}\n${printed}`) };
}

/** The same program and demo are watched once. */
function keyOf(book: Book, step: Step): string {
  const files = filesOfProgram(book, step, withDemo(book, chapterOf(book, step)!, step));
  const hash = createHash('sha256').update(nameOf(step));
  for (const [name, text] of files) hash.update(`\0${name}\0${text}`);
  return hash.digest('hex').slice(0, 20);
}

function shortened(trace: string): string {
  const lines = trace.split('\n').filter(Boolean);
  const shown = lines.slice(0, MAX_RECORDS);
  const rest = lines.length - shown.length;
  if (rest > 0)
    shown.push(JSON.stringify({ type: 'heading', text: `${rest} more records are left out` }));
  return shown.map((line) => JSON.stringify(JSON.parse(line), shorter)).join('\n');
}

function shorter(_: string, value: unknown): unknown {
  if (typeof value === 'string' && value.length > MAX_TEXT)
    return `${value.slice(0, MAX_TEXT)}… (${value.length} characters)`;
  if (Array.isArray(value) && value.length > MAX_ITEMS)
    return [...value.slice(0, MAX_ITEMS), `… (${value.length} items)`];
  return value;
}
