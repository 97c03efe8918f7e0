// The command `trust`: what was agreed to in this folder, and taking it back.

import { quoted } from '../17-the-gate/safe-text.ts';
import { fingerprint, type Grant, type Trust } from '../17-the-gate/trust.ts';
import { findEntry, keeping } from './entries.ts';
import type { Composition } from './host.ts';
import { logOut as logOutOf } from './login-command.ts';
import { oneOf } from './mcp-command.ts';
import { EXIT, parse, refused, usage } from './options.ts';
import { PersonAtTerminal } from './person-at-terminal.ts';
import type { Screen } from './screen.ts';
import { shown } from './status.ts';

const ACTIONS = ['list', 'allow', 'revoke', 'reset'];
const YES_OR_NO = [
  { key: 'y', word: 'yes', label: '[y]es, this exact entry' },
  { key: 'n', word: 'no', label: '[n]o', isNo: true },
];

export async function trustCommand(
  args: string[],
  screen: Screen,
  composition: Composition,
): Promise<number> {
  const { positionals } = parse(args, { 'no-color': { type: 'boolean' } });
  const [action = 'list', name] = positionals;
  if (!ACTIONS.includes(action))
    throw usage(`there is no "trust ${action}"; write trust ${oneOf(action, ACTIONS)}`);
  const trust = keeping(screen);
  const logOut = (server: string) => logOutOf(server, composition.logins);
  if (action === 'list') return list(screen, trust);
  if (action === 'reset') return reset(screen, trust, logOut);
  if (!name) throw usage(`"trust ${action}" needs a name, as "trust list" shows them`);
  return action === 'allow' ? allow(screen, trust, name) : revoke(screen, trust, name, logOut);
}

/** Shows an entry, and approves what was shown: the file may be another by then. With the
 *  fingerprint, `NAME=sha256:…`, it is one that was shown before, here or elsewhere. */
async function allow(screen: Screen, trust: Trust, given: string): Promise<number> {
  const [, name = given, wanted] = /^(.*)=(sha256:[0-9a-f]{64})$/.exec(given) ?? [];
  const entry = findEntry(name, screen);
  const print = fingerprint(entry);
  const lines = trust.describe(entry);
  const person = new PersonAtTerminal(screen);
  const isAsked = person.isThere && !wanted;
  if (!isAsked) for (const line of lines) screen.print(line);
  if (wanted && wanted !== print) throw refused(`${name} is not ${wanted} any more`, 'untrusted');
  const question = { lines, prompt: 'Approve it?', choices: YES_OR_NO, ifEmpty: 'n' };
  if (isAsked && (await person.choose(question))?.key !== 'y')
    throw refused(`${name} is not approved`, 'untrusted');
  trust.allow(entry);
  screen.print(`${name} may start in ${trust.project}, as long as it is exactly this: ${print}`);
  return EXIT.done;
}

/** Was there a login? */
type LogOut = (server: string) => Promise<boolean>;

async function revoke(screen: Screen, trust: Trust, name: string, logOut: LogOut): Promise<number> {
  const count = trust.revoke(name);
  const wasLoggedIn = await logOut(name);
  if (count === 0 && !wasLoggedIn)
    throw refused(`nothing was agreed to for ${quoted(name)} in ${trust.project}`);
  screen.print(`revoked: ${decisions(count)} about ${name}`);
  return EXIT.done;
}

async function reset(screen: Screen, trust: Trust, logOut: LogOut): Promise<number> {
  const servers = trust.list().servers.map(({ name }) => name);
  const count = trust.revoke();
  await Promise.all(servers.map(logOut));
  screen.print(`revoked: ${decisions(count)} about ${trust.project}`);
  return EXIT.done;
}

const decisions = (count: number) => (count === 1 ? '1 decision' : `${count} decisions`);

function list(screen: Screen, trust: Trust): number {
  const { servers, grants, disabled } = trust.list();
  const lines = [
    ...servers.map(({ name, verdict, fingerprint: print }) =>
      `server ${shown(name)}: ${verdict} ${print}`,
    ),
    ...grants.map(grantLine),
    ...disabled.map(({ server, tool }) =>
      `${tool ? `tool ${tool} of ` : 'server '}${server}: disabled`,
    ),
  ];
  if (lines.length === 0) lines.push(`nothing is agreed to in ${trust.project}`);
  for (const line of lines) screen.print(line);
  return EXIT.done;
}

function grantLine(grant: Grant): string {
  if (grant.kind === 'shell') return `command ${quoted(grant.command)}: always`;
  if (grant.kind === 'write') return `file ${quoted(grant.path)}: always`;
  const owner = grant.kind === 'mcp' ? ` of ${shown(grant.server)}` : '';
  return `tool ${shown(grant.tool)}${owner}: always (${grant.definition})`;
}
