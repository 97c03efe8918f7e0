// npm run kills [-- COUNT]: kill -9 at random moments while a conversation, the trust file and the logins are written.
// What was said to be written must be there afterwards, whole and in order, and the next program must not wait for the dead.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Trust } from '../../agent.ts';
import { Masker } from '../../chapters/17-the-gate/safe-text.ts';
import { Session } from '../../chapters/19-the-terminal/session-file.ts';
import { TokenStore } from '../../chapters/21-authorization/tokens.ts';
import { programArgs } from '../help/compiled.ts';
import { root } from '../help/installed.ts';

const MAX_TOUCHES = 150; // about three rounds of the writer
const MAX_WRITINGS = 15;
const MAX_LINES = 12;
const MAX_WAIT_MS = 1000;

export type Report = { kills: number; inside: number; written: number; longestWaitMs: number };

type Kept = { session: string[]; trust: string[]; logins: string[] };

/** `random` gives numbers from 0 to 1. */
export async function killAtRandom(kills: number, random = Math.random): Promise<Report> {
  const base = mkdtempSync(join(tmpdir(), 'mcp by hand kills '));
  const [home, cwd] = [join(base, 'home'), join(base, 'project')];
  for (const folder of [home, cwd]) mkdirSync(folder);
  const said: Kept = { session: [], trust: [], logins: [] };
  const report: Report = { kills: 0, inside: 0, written: 0, longestWaitMs: 0 };
  try {
    for (let n = 0; n < kills; n++) {
      // By turns: at a touch of a file or in the middle of one, which no clock would hit, and at a time, which no list of
      // touches knows.
      const from1To = (most: number) => 1 + Math.floor(random() * most);
      const diesAt = [from1To(MAX_TOUCHES), -from1To(MAX_WRITINGS), 0][n % 3]!;
      const killAfter = diesAt === 0 ? from1To(MAX_LINES) : Infinity;
      const lines = await writeUntilKilled(
        [home, cwd, `k${n}`, '1000', `${diesAt}`],
        killAfter,
        random() * 3,
      );
      hear(lines, said, report);
      report.kills++;
      if (isInside(home)) report.inside++;
      compare(said, keptIn(home, cwd), report.kills);
    }
    letTimePass(home);
    hear(await writeUntilKilled([home, cwd, 'last', '2', '0'], Infinity, 0), said, report);
    compare(said, keptIn(home, cwd), report.kills);
    assert.deepEqual(
      namesIn(home).filter((name) => !/\.jsonl$/.test(name)),
      ['logins.json', 'trust.json'],
      'nothing is left',
    );
    report.written = Object.values(said).flat().length;
    return report;
  } finally {
    rmSync(base, { recursive: true, force: true });
  }
}

/** The lines that the writer has said before it died. */
async function writeUntilKilled(
  args: string[],
  killAfter: number,
  delayMs: number,
): Promise<string[]> {
  const program = join(root, 'test', 'programs', 'restless-writer.ts');
  const child = spawn(process.execPath, [...programArgs(program), ...args], { cwd: root });
  let out = '';
  let err = '';
  const wait = () => {
    for (const until = performance.now() + delayMs; performance.now() < until; );
    child.kill('SIGKILL');
  };
  child.stdout.setEncoding('utf8').on('data', (text) => {
    out += text;
    if (out.split('\n').length > killAfter) wait();
  });
  child.stderr.setEncoding('utf8').on('data', (text) => (err += text));
  const [code, signal] = await new Promise<[number | null, string | null]>((done) =>
    child.on('close', (...ended) => done(ended)),
  );
  const isExpected =
    signal === 'SIGKILL' || (code === 0 && killAfter === Infinity && args[4] === '0');
  assert.ok(isExpected, `the writer ended by itself, with ${code}: ${out.slice(-500)}${err}`);
  return out.split('\n').slice(0, -1); // a last line that is not finished was not said
}

function hear(lines: string[], said: Kept, report: Report): void {
  for (const line of lines) {
    const [what = '', name = ''] = line.split(' ');
    if (what === 'waited') report.longestWaitMs = Math.max(report.longestWaitMs, Number(name));
    else said[what as keyof Kept].push(name);
  }
}

/** As the program reads them at its next start. A warning would mean that a file is damaged. */
function keptIn(home: string, cwd: string): Kept {
  const warn = (text: string) => assert.fail(text);
  const trust = new Trust({ home, cwd, warn });
  const turns = new Session(trust, new Masker({}))
    .list()
    .flatMap((conversation) => conversation.turns);
  new TokenStore({ home, warn }).find('', ''); // reads all rows, and would complain
  const logins = fileIn(home, 'logins.json')?.rows ?? [];
  return {
    session: turns.map((turn) => (turn.role === 'user' ? turn.text.split(' ')[0]! : 'not ours')),
    trust: trust.list().servers.map(({ name }) => name),
    logins: logins.map((row: { server: string }) => row.server),
  };
}

function fileIn(home: string, name: string) {
  try {
    return JSON.parse(readFileSync(join(home, '.mcp-by-hand', name), 'utf8'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return undefined;
  }
}

/** All that was said, in order; beside it at most the one thing of each kill that was written and not said any more. */
function compare(said: Kept, kept: Kept, kills: number): void {
  for (const what of ['session', 'trust', 'logins'] as const) {
    const isSaid = new Set(said[what]);
    assert.deepEqual(
      kept[what].filter((name) => isSaid.has(name)),
      said[what],
      `${what}, after ${kills} kills`,
    );
    const more = kept[what].length - said[what].length;
    assert.ok(more <= kills, `${what} holds ${more} more than was said, after ${kills} kills`);
  }
}

/** The first may be killed before there is a folder. */
function namesIn(home: string): string[] {
  const folder = join(home, '.mcp-by-hand');
  if (!existsSync(folder)) return [];
  const all = readdirSync(folder, { recursive: true, withFileTypes: true });
  return all
    .filter((entry) => entry.isFile())
    .map(({ name }) => name)
    .sort();
}

/** A draft that was left empty names no maker, so it is taken for left only after a second. */
function letTimePass(home: string): void {
  const folder = join(home, '.mcp-by-hand');
  const all = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  const left = all.filter((name) => /\.(new|left|lock)$/.test(name));
  for (const name of left) utimesSync(join(folder, name), new Date(0), new Date(0));
}

/** Did the kill hit while something was being written? Then it has left a draft, or the lock of a file. */
function isInside(home: string): boolean {
  return namesIn(home).some((name) => /(trust|logins)\.json\.|\.(new|left)$/.test(name));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const count = Number(process.argv[2] ?? 50);
  const { kills, inside, written, longestWaitMs } = await killAtRandom(count);
  console.log(
    `${kills} kills, ${inside} of them in the middle of a change. ${written} turns, approvals and logins were said ` +
      `to be written: all are there, and no file is damaged. The longest wait of a next program: ${longestWaitMs} ms.`,
  );
  assert.ok(longestWaitMs < MAX_WAIT_MS, `a program has waited ${longestWaitMs} ms for a dead one`);
}
