// The command `trust`: what was agreed to in this folder, and taking it back.

import { Roots } from '../../16-hands/paths.ts';
import { choice, NO } from '../../17-the-gate/dialogue.ts';
import { describeNote, noteAt, NOTES_FILES, notesIn } from '../../17-the-gate/notes.ts';
import { quoted } from '../../17-the-gate/safe-text.ts';
import { fingerprint, type Trust } from '../../17-the-gate/trust.ts';
import { both, findEntry, keeping } from '../entries.ts';
import { EXIT, refused, usage } from '../exit.ts';
import type { LoadRows } from '../host.ts';
import { logOutOf } from './login-command.ts';
import { nearestOrAll } from './mcp-command.ts';
import { FLAG, parseFlags } from './parse.ts';
import { agreedLines, keptRules } from '../more/permissions.ts';
import { isCommandFile } from '../own-commands.ts';
import { PersonAtTerminal } from '../person-at-terminal.ts';
import type { Screen } from '../screen.ts';

const ACTIONS = ['list', 'allow', 'revoke', 'reset'];
const YES_OR_NO = [choice('[y]es, exactly this'), NO];

export async function trustCommand(
  args: string[],
  screen: Screen,
  rows: LoadRows,
): Promise<number> {
  const { positionals } = parseFlags(args, { 'no-color': FLAG });
  const [action = 'list', name] = positionals;
  if (!ACTIONS.includes(action))
    throw usage(`there is no "trust ${action}"; write trust ${nearestOrAll(action, ACTIONS)}`);
  const trust = keeping(screen);
  const logOut = async (server: string) => logOutOf(server, (await rows()).logins);
  if (action === 'list') return list(screen, trust);
  if (action === 'reset') return reset(screen, trust, logOut);
  if (!name) throw usage(`"trust ${action}" needs a name, as "trust list" shows them`);
  if (action === 'allow') return allow(screen, trust, name, rows);
  return revoke(screen, trust, name, logOut);
}

/** Shows an entry, and approves what was shown: the file may be another by then. With the
 *  fingerprint, `NAME=sha256:…`, it is one that was shown before, here or elsewhere. */
async function allow(screen: Screen, trust: Trust, given: string, rows: LoadRows): Promise<number> {
  const [, name = given, wanted] = /^(.*)=(sha256:[0-9a-f]{64})$/.exec(given) ?? [];
  if (NOTES_FILES.includes(name) || isCommandFile(name))
    return allowNote(screen, trust, name, wanted);
  const entry = await findEntry(name, screen, await rows());
  const print = fingerprint(entry);
  await agree(screen, { name, print, wanted, lines: trust.describe(entry) });
  trust.allow(entry);
  screen.print(`${name} may start in ${trust.project}, as long as it is exactly this: ${print}`);
  return EXIT.done;
}

async function allowNote(
  screen: Screen,
  trust: Trust,
  name: string,
  wanted?: string,
): Promise<number> {
  const roots = new Roots(trust.project);
  const warn = (text: string) => screen.warn(text);
  const found = isCommandFile(name)
    ? [await noteAt(name, roots, warn)]
    : await notesIn(roots, warn);
  const note = found.find((each) => each?.file === name);
  if (!note) throw refused(`there are no notes in ${name} here, or the same as in another file`);
  const lines = describeNote(note, trust);
  await agree(screen, { name, print: note.hash, wanted, lines });
  trust.decideNote(note, 'allow');
  const unless = `as long as it is exactly this: ${note.hash}`;
  screen.print(`${name} is given to the model in ${trust.project}, ${unless}`);
  return EXIT.done;
}

type ShownGrant = { name: string; print: string; wanted?: string; lines: string[] };

/** On a terminal the person is asked, unless they have named the fingerprint. */
async function agree(screen: Screen, { name, print, wanted, lines }: ShownGrant): Promise<void> {
  const person = new PersonAtTerminal(screen);
  const isAsked = person.isThere && !wanted;
  if (!isAsked) for (const line of lines) screen.print(line);
  if (wanted && wanted !== print) throw refused(`${name} is not ${wanted} any more`, 'untrusted');
  const question = { lines, prompt: 'Approve it?', choices: YES_OR_NO, ifEmpty: 'n' };
  if (isAsked && (await person.choose(question))?.key !== 'y')
    throw refused(`${name} is not approved`, 'untrusted');
}

/** Was there a login? */
type LogOut = (server: string) => Promise<boolean>;

async function revoke(screen: Screen, trust: Trust, name: string, logOut: LogOut): Promise<number> {
  const [count, wasLoggedIn] = await both(
    () => trust.revoke(name),
    () => logOut(name),
  );
  if (count === 0 && !wasLoggedIn)
    throw refused(`nothing was agreed to for ${quoted(name)} in ${trust.project}`);
  screen.print(`revoked: ${decisions(count)} about ${name}`);
  return EXIT.done;
}

async function reset(screen: Screen, trust: Trust, logOut: LogOut): Promise<number> {
  const servers = trust.list().servers.map(({ name }) => name);
  const logOutAll = () => Promise.all(servers.map(logOut));
  const [count] = await both(() => trust.revoke(), logOutAll);
  screen.print(`revoked: ${decisions(count)} about ${trust.project}`);
  return EXIT.done;
}

const decisions = (count: number) => (count === 1 ? '1 decision' : `${count} decisions`);

function list(screen: Screen, trust: Trust): number {
  const lines = [...agreedLines(trust), ...keptRules(trust)];
  if (lines.length === 0) lines.push(`nothing is agreed to in ${trust.project}`);
  for (const line of lines) screen.print(line);
  return EXIT.done;
}
