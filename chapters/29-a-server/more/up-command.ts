// up-command.ts: `mcp-by-hand up` and `down`.

import { spawn } from 'node:child_process';
import { asList, asObject, textOf, type Connection, type Json } from '../../../mcp.ts';
import { Trust } from '../../17-the-gate/trust.ts';
import { findEntry } from '../../19-the-terminal/entries.ts';
import { EXIT, refused } from '../../19-the-terminal/exit.ts';
import { loadHere, type LoadRows } from '../../19-the-terminal/host.ts';
import type { Run } from '../../19-the-terminal/own-verbs.ts';
import {
  FLAG,
  numberFlag,
  parseFlags,
  TEXT_FLAG,
  TEXTS_FLAG,
} from '../../19-the-terminal/command-line/parse.ts';
import { PersonAtTerminal } from '../../19-the-terminal/person-at-terminal.ts';
import type { Screen } from '../../19-the-terminal/screen.ts';
import { deskOf, upIn } from '../attach.ts';
import { Up } from '../up.ts';

const FLAGS = {
  status: FLAG,
  stay: FLAG,
  idle: TEXT_FLAG,
  json: FLAG,
  'allow-server': TEXTS_FLAG,
  daemon: FLAG, // for ourselves
} as const;

export const upCommand: Run = async (args, screen, rows) => {
  const { values, positionals: names } = parseFlags(args, FLAGS);
  if (values.daemon) return keepUp(rows);
  const isMinutes = (each: number) => each > 0;
  const minutes = numberFlag('--idle', values.idle, 'a number of minutes', isMinutes);
  const wanted = {
    names,
    allowServers: values.allowServer,
    ...(minutes && { idleMs: minutes * 60_000 }),
  };
  if (!values.status) await approveAll(names, screen, rows);
  const desk = (await deskHere()) ?? (values.status ? undefined : await begin());
  const method = values.status ? 'up/status' : 'up/start';
  const { servers, warnings, ...more } = asObject(
    await desk?.request(method, wanted, { timeoutMs: Infinity }),
  );
  for (const warning of asList(warnings)) screen.warn(`${warning}`);
  const all = asList(servers).map(asObject);
  if (values.json) screen.printJson(JSON.stringify(desk ? { ...more, servers } : {}));
  else for (const each of all) screen.print([each.name, each.state, each.reason].join(' ').trim());
  const isUp = (name: string) =>
    all.some((each) => each.name === name && each.state === 'connected');
  const isKept = all.some(({ state }) => state === 'connected');
  if (!isKept && !values.json) screen.say(`nothing is up in ${process.cwd()}`);
  if (desk && isKept && values.stay) await stayHere(desk, screen);
  await desk?.close();
  return isKept && names.every(isUp) ? EXIT.done : EXIT.unreachable;
};

export const downCommand: Run = async (args, screen) => {
  parseFlags(args, {});
  const desk = await deskHere();
  await desk?.request('up/stop');
  if (desk) await goneFrom(desk);
  else screen.say(`nothing is up in ${process.cwd()}`);
  return EXIT.done;
};

async function deskHere() {
  const file = upIn(process.cwd());
  return file && deskOf(file).catch(() => undefined);
}

const goneFrom = (desk: Connection) =>
  new Promise<void>((done) => desk.signal.addEventListener('abort', () => done()));

/** Until Ctrl-C, or the end of the terminal: with the last who stays, the servers end. */
async function stayHere(desk: Connection, screen: Screen) {
  await desk.request('up/stay');
  screen.say('they end with this command, unless another terminal has: up --stay', 'dim');
  screen.onInterrupt = () => void desk.close();
  await goneFrom(desk);
}

/** Asks what has to be asked: later nobody is there. */
async function approveAll(names: string[], screen: Screen, rows: LoadRows) {
  const composition = await rows();
  await composition.sources?.prepare?.();
  for (const name of names) await findEntry(name, screen, composition);
  const person = new PersonAtTerminal(screen);
  const trust = new Trust({ person });
  for (const [name, entry] of person.isThere ? loadHere(composition, () => {}) : [])
    if (names.length === 0 || names.includes(name)) await trust.approve(entry);
}

// ─── The program that stays ────────────────────────────────────────────────────────────────────

/** Starts ourselves, without a terminal. */
async function begin() {
  const words = [...process.execArgv, process.argv[1]!, 'up', '--daemon'];
  const child = spawn(process.execPath, words, {
    detached: true,
    windowsHide: true,
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  let problem: Json = {};
  child.on('message', (message) => (problem = asObject(message)));
  await new Promise<void>((done) => child.once('disconnect', done).once('exit', () => done()));
  child.unref();
  if (problem.why) throw refused(`nothing can be kept up here: ${problem.why}`);
  return deskHere();
}

async function keepUp(rows: LoadRows) {
  const up = new Up(await rows());
  let isOurs = false;
  try {
    isOurs = await up.listen();
  } catch (error) {
    process.send!({ why: textOf(error) });
    throw error;
  } finally {
    process.disconnect();
  }
  if (isOurs) await up.ended;
  return EXIT.done;
}
