// judge.ts: the door to the judge, which is in judge/. It tells how far a program of yours comes.
//
//   npm run judge path/to/client.ts [4 5 …]        a client, by what chapters 1 to 14 promise
//   npm run judge transport module.ts [CONFIG]     a transport, as in chapter 25
//   npm run judge server COMMAND ARGS…             a server, in any language
//
// The word json prints one object, all also the promises that are kept. Before `server` or behind
// the rest: what follows COMMAND belongs to it.

import { existsSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { usage, withDashes } from './book/files.ts';
import { peers } from './judge/peers.ts';
import { absentLines, linesOf, summaryOf } from './judge/report.ts';
import { isFault, judgeAll, look, type Judged, type Subject } from './judge/run.ts';
import { judgeServer } from './judge/server.ts';

const USAGE = `npm run judge path/to/client.ts [chapter …]
npm run judge transport path/to/module.ts [JSON configuration]
npm run judge server COMMAND ARGS…
The word json prints one object, all also the promises that are kept; for a server, write them first.`;

type Wishes = { isJson: boolean; isLong: boolean };
type Outcome = { summary: string; isGood: boolean; chapters: Judged[]; problem?: string };

async function judgeClient(path: string, numbers: string[], wishes: Wishes): Promise<Outcome> {
  const subject: Subject = { kind: 'client', file: fileAt(path) };
  const odd = numbers.find((text) => !/^([1-9]|1[0-4])$/.test(text));
  if (odd) throw usage(`the chapters of a client are 1 to 14, not ${odd}\n\n${USAGE}`);
  const isWanted = ({ n }: { n: number }) => numbers.length === 0 || numbers.includes(`${n}`);
  const { there, problem } = await look(subject);
  if (!there) return unloadable(problem);
  const chapters = await judgeAll(subject, there, isWanted, teller(wishes));
  const isSomething = chapters.some(({ state }) => state === 'holds');
  const isGood = isSomething && chapters.every(({ state }) => state !== 'broken');
  return { summary: summaryOf(chapters), isGood, chapters };
}

async function judgeTransport(path: string, config: string, wishes: Wishes): Promise<Outcome> {
  const file = fileAt(path);
  const own = config === '' ? {} : parsed(config);
  const { there, problem } = await look({ kind: 'transport', file });
  if (!there) return unloadable(problem);
  refuseUnlessOne(there);
  const ours = await peers();
  const subject: Subject = { kind: 'transport', file, config: { ...ours.config, ...own } };
  const [judged] = await judgeAll(subject, there, () => true, teller(wishes));
  await ours.close();
  return { summary: summaryOf([judged!]), isGood: judged!.state === 'holds', chapters: [judged!] };
}

/** Which export is the transport? The same rule as `factoryIn`, said once and not per promise. */
function refuseUnlessOne(there: string[]): void {
  const names = there.filter((name) => !name.includes('.'));
  const named = names.filter((name) => /transport$/i.test(name));
  if (names.includes('default') || names.length === 1 || named.length === 1) return;
  const found = names.join(', ') || 'nothing';
  throw usage(`which is the transport? Export it as the default; there is ${found}`);
}

async function judgeCommand(command: string[], wishes: Wishes): Promise<Outcome> {
  if (command.length === 0) throw usage(USAGE);
  const { verdicts, problem } = await judgeServer(command, start());
  if (problem)
    return { summary: `It cannot be started: ${problem}.`, isGood: false, chapters: [], problem };
  const state = verdicts.some(isFault) ? 'broken' : 'holds';
  const judged: Judged = { n: 0, title: 'server', state, missing: [], absent: 0, verdicts };
  teller(wishes)(judged);
  return { summary: summaryOf([judged]), isGood: state === 'holds', chapters: [judged] };
}

function unloadable(problem = ''): Outcome {
  return { summary: `It cannot be loaded: ${problem}.`, isGood: false, chapters: [], problem };
}

const teller =
  ({ isJson, isLong }: Wishes) =>
  (judged: Judged) => {
    if (isJson || judged.state === 'absent') return;
    for (const line of linesOf(judged, isLong)) console.log(line);
  };

/** npm runs a script at the top; a path is meant from where it was typed. */
const start = () => process.env.INIT_CWD ?? process.cwd();

/** The module at a path; of a folder, its mcp.ts, or the whole client of chapter 0. */
function fileAt(path: string): string {
  const at = resolve(start(), path);
  const isFolder = statSync(at, { throwIfNoEntry: false })?.isDirectory() ?? false;
  const names = isFolder ? ['mcp.ts', 'whole.ts'] : [''];
  const file = names.map((name) => join(at, name)).find((each) => existsSync(each));
  if (file) return file;
  throw usage(`there is no ${join(at, names[0]!)}\n\n${USAGE}`);
}

function parsed(config: string): object {
  try {
    const value: unknown = JSON.parse(config);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  } catch {}
  throw usage(`the configuration is not a JSON object: ${config}\n\n${USAGE}`);
}

function judge(args: string[], wishes: Wishes): Promise<Outcome> {
  const [what, ...rest] = args;
  if (what === 'server') return judgeCommand(rest, wishes);
  if (what === 'transport' && rest[0]) return judgeTransport(rest[0], rest[1] ?? '', wishes);
  if (what && what !== 'transport') return judgeClient(what, rest, wishes);
  throw usage(USAGE);
}

async function main(given: string[]): Promise<void> {
  const startedAt = Date.now();
  const end = given.includes('server') ? given.indexOf('server') : given.length;
  const words = withDashes(given.slice(0, end), ['json', 'all']);
  const options = words.filter((arg) => arg.startsWith('--'));
  if (options.some((option) => option !== '--json' && option !== '--all')) throw usage(USAGE);
  const args = [...words.filter((arg) => !arg.startsWith('--')), ...given.slice(end)];
  const isJson = options.includes('--json');
  const outcome = await judge(args, { isJson, isLong: options.includes('--all') });
  const seconds = Math.round((Date.now() - startedAt) / 1000);
  if (isJson) console.log(JSON.stringify({ ...outcome, seconds }));
  else console.log([...absentLines(outcome.chapters), '', outcome.summary].join('\n'));
  process.exitCode = outcome.isGood ? 0 : 1;
}

// `| head` closes the pipe when it has seen enough.
process.stdout.on('error', () => process.exit(1));

main(process.argv.slice(2)).catch((error) => {
  console.error(error.isUsage ? error.message : error);
  process.exit(error.isUsage ? 2 : 1);
});
