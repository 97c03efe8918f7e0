// run.ts: plays promises in processes of their own, a few at a time, each with a limit.

import type { StdioOptions } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { endGroup, nodeInOwnGroup } from '../book/own-group.ts';
import { linesIn, named, show, type Chapter, type Promised } from './bench.ts';
import { catalogue, type Kind } from './catalogue.ts';
import type { Job, Told, Verdict } from './child.ts';

export type Judged = {
  n: number;
  title: string;
  state: 'holds' | 'broken' | 'absent';
  missing: string[]; // what is not there yet
  absent: number; // promises that need it
  verdicts: Verdict[]; // of the others
};
/** What one run may cost, and what was lost of it. */
type Budget = { deadline: number; lost: number };
export type Subject = { kind: Kind; file: string; config?: unknown };

const AT_ONCE = 4; // most of a promise is waiting for a process
const START_MS = 20_000; // to load the module, on a busy machine
const SILENCE_MS = 8000; // of a process that says every second that it lives: it is in a loop
const MAX_LOST = 3; // promises without an end, per chapter
const PATIENCE = 6; // such promises in all; after them a chapter is given up at its first
const ALL_MS = 100_000; // with the look before it, under two minutes

const tsx = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href;
const program = fileURLToPath(new URL('child.ts', import.meta.url));

/** The names of what a module offers, or why it cannot be loaded. */
export async function look(subject: Subject): Promise<{ there?: string[]; problem?: string }> {
  return inScratch(async (scratch) => {
    let there: string[] | undefined;
    const hear = (told: Told) => void (there ??= told.there);
    const how = await run({ ...subject, scratch }, hear);
    return there ? { there } : { problem: how };
  });
}

/** Judges chapters; `tell` hears of each in their order, as soon as those before it are told. */
export async function judgeAll(
  subject: Subject,
  there: string[],
  wanted: (chapter: Chapter) => boolean,
  tell: (judged: Judged) => void,
): Promise<Judged[]> {
  const budget: Budget = { deadline: Date.now() + ALL_MS, lost: 0 };
  const chapters = catalogue[subject.kind].filter(wanted);
  const done = new Map<Chapter, Judged>();
  const told: Judged[] = [];
  const queue = chapters.values(); // one queue, and several workers that empty it
  const work = async () => {
    for (const chapter of queue) {
      done.set(chapter, await judgeChapter(subject, chapter, there, budget));
      while (told.length < chapters.length && done.has(chapters[told.length]!)) {
        const next = done.get(chapters[told.length]!)!;
        told.push(next);
        tell(next);
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return told;
}

async function judgeChapter(
  subject: Subject,
  chapter: Chapter,
  there: string[],
  budget: Budget,
): Promise<Judged> {
  const { n, title } = chapter;
  const isThere = (need: string) => need.split(' or ').some((name) => there.includes(name));
  const needed = (promised: Promised) => promised.needs ?? chapter.needs;
  const promises = chapter.promises.filter((promised) => needed(promised).every(isThere));
  const absent = chapter.promises.length - promises.length;
  const names = chapter.promises.flatMap(needed).filter((need) => !isThere(need));
  const about = { n, title, absent, missing: [...new Set(names)] };
  if (promises.length === 0) return { ...about, state: 'absent', verdicts: [] };
  const verdicts = await inScratch(async (scratch) => {
    const given: Verdict[] = [];
    while (given.length < promises.length) {
      const why = whyNotTried(given, budget);
      if (why) given.push({ ...named(promises[given.length]!), state: 'not tried', why });
      else await onePass({ ...subject, scratch, chapter: n }, promises, given, budget);
    }
    return given;
  });
  return { ...about, state: verdicts.some(isFault) ? 'broken' : 'holds', verdicts };
}

/** A promise that we had no time for is not kept, either. */
export const isBroken = ({ state, why }: Verdict) =>
  state === 'broken' || (state === 'not tried' && (why === TOO_MANY || why === NO_TIME));
/** Without courtesy a program is still right. */
export const isFault = (verdict: Verdict) => isBroken(verdict) && verdict.kind !== 'courtesy';
const TOO_MANY = 'too much before it did not come to an end';
const NO_TIME = 'the time was up';

function whyNotTried(given: Verdict[], { deadline, lost }: Budget): string | undefined {
  const most = lost >= PATIENCE ? 1 : MAX_LOST;
  if (given.filter(({ isLost }) => isLost).length >= most) return TOO_MANY;
  return Date.now() > deadline ? NO_TIME : undefined;
}

/** Plays the promises from the first that has no verdict, until all have one or the process is
 *  lost. */
async function onePass(job: Job, all: Promised[], given: Verdict[], budget: Budget) {
  const promises = all.slice(given.length).map(({ id }) => id);
  const add = (verdict: Verdict) => {
    given.push(verdict);
    if (verdict.isLost) budget.lost++;
  };
  const hear = ({ verdict }: Told) => {
    if (verdict) add(verdict);
    return whyNotTried(given, budget) === undefined;
  };
  const how = await run({ ...job, promises }, hear, budget.deadline);
  const next = all[given.length];
  if (!next || whyNotTried(given, budget)) return; // all are judged, or we have stopped it
  add({ ...named(next), state: 'broken', fault: next.fault, came: how, isLost: true });
}

/** Runs one process to its end, and says how it ended. `hear` hears it every second, and returns
 *  false to end it. It leads a group of its own: `process.kill(0)` in a client ends no one else. */
function run(job: Job, hear: (told: Told) => unknown, deadline = Infinity): Promise<string> {
  const word = randomUUID();
  const args = ['--import', tsx, program];
  const env = { ...process.env, HOME: job.scratch, USERPROFILE: job.scratch };
  const stdio: StdioOptions = ['ignore', 'ignore', 'pipe', 'ipc'];
  const child = nodeInOwnGroup(args, { cwd: job.scratch, env, stdio });
  child.send({ word, job });
  return new Promise((done) => {
    let stderr = '';
    let isLate = false;
    let timer: NodeJS.Timeout | undefined;
    const waitFor = (ms: number) => {
      clearTimeout(timer);
      timer = setTimeout(
        () => {
          isLate = true;
          endGroup(child);
        },
        Math.max(1, Math.min(ms, deadline + 1 - Date.now())),
      );
    };
    waitFor(START_MS);
    child.stderr!.on('data', (text) => (stderr = (stderr + text).slice(-16_384)));
    child.on('message', (told: Told) => {
      if (told?.word !== word) return; // the client itself speaks
      waitFor(SILENCE_MS);
      if (hear(told) === false) endGroup(child);
    });
    child.on('exit', (code, signal) => {
      clearTimeout(timer);
      if (isLate) return done('no end: a loop without an end, and without an await in it?');
      // stderr may still be in the pipe, and a server of theirs may hold it open.
      const how = signal ? `was ended by ${signal}` : `ended with code ${code}`;
      setTimeout(() => done(`the program ${how}${reasonIn(stderr)}`), 100);
    });
  });
}

/** The line that says why, out of what Node prints when a program fails. */
function reasonIn(stderr: string): string {
  const lines = stderr.split('\n');
  const reason = lines.find((line) => /^\w*(Error|Exception)\b.*:/.test(line));
  const last = lines.findLast((line) => line.trim() !== '' && !/^Node\.js v/.test(line));
  const words = reason ?? last;
  // The compiler says below its headline what is wrong, and where.
  const below = /\berrors?:$/.test(reason ?? '') ? lines[lines.indexOf(reason!) + 1]?.trim() : '';
  return words ? `: ${show(new Error(below || words))}` : '';
}

/** A folder that is swept afterwards: processes whose pids are noted in it do not outlive it. */
async function inScratch<T>(work: (scratch: string) => Promise<T>): Promise<T> {
  const scratch = mkdtempSync(join(tmpdir(), 'mcp-judge-'));
  try {
    return await work(scratch);
  } finally {
    const files = readdirSync(scratch, { recursive: true }) as string[];
    const noted = files.filter((file) => file.endsWith('.pids'));
    for (const pid of noted.flatMap((file) => linesIn(join(scratch, file)))) end(Number(pid));
    rmSync(scratch, { recursive: true, force: true, maxRetries: 5 });
  }
}

function end(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {} // it has left
}
