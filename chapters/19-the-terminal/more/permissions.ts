// permissions.ts: /permissions and /mode. What holds at this moment, and who said so.

import { FREE_COMMANDS } from '../../17-the-gate/known-programs.ts';
import { MEANING, modeNamed, MODES } from '../../17-the-gate/modes.ts';
import type { Effect, Rule } from '../../17-the-gate/rules.ts';
import { quoted } from '../../17-the-gate/safe-text.ts';
import type { Grant, Trust } from '../../17-the-gate/trust.ts';
import type { Program } from '../program.ts';
import { shownName } from '../status.ts';

const FREE = `${FREE_COMMANDS.join(', ')}: with plain paths inside the folder, none of them secret`;
const ORDER: Effect[] = ['deny', 'ask', 'allow'];

/** Without a word, tells the mode. */
export function setMode([word]: string[], { gate, screen }: Program): void {
  const mode = word === undefined ? gate.mode : modeNamed(word);
  if (!mode) throw new Error(`there is no mode ${word}; write /mode and ${MODES.join(', ')}`);
  gate.mode = mode;
  screen.print(`mode ${mode}: ${MEANING[mode]}`);
}

export function showPermissions(
  _: string[],
  { gate, trust, screen, started, masker }: Program,
): void {
  const from = gate.mode === started.mode ? started.from : 'this session';
  const file = `${trust.folder}/trust.json`;
  const lines = [
    `mode ${gate.mode}: ${MEANING[gate.mode]} (${from})`,
    ...ORDER.flatMap((effect) => rulesOf(gate.rules, effect)),
    `free commands: ${FREE} (built in)`,
    ...agreedLines(trust).map((line) => `${line} (${file})`),
    ...trust.unwritten.map((grant) => `${grantLine(grant)} (this session)`),
  ];
  for (const line of lines) screen.print(masker.text(line));
}

function rulesOf(rules: readonly Rule[], effect: Effect): string[] {
  const meant = rules.filter((rule) => rule.effect === effect);
  return meant.map(({ text, source = 'this program' }) => `${effect} ${quoted(text)} (${source})`);
}

/** What was agreed to in this folder, and is kept in trust.json. */
export function agreedLines(trust: Trust): string[] {
  const { servers, grants, disabled, notes } = trust.list();
  return [
    ...servers.map(
      ({ name, verdict, fingerprint: print }) => `server ${shownName(name)}: ${verdict} ${print}`,
    ),
    ...notes.map(({ file, verdict, hash }) => `notes ${shownName(file)}: ${verdict} ${hash}`),
    ...grants.map(grantLine),
    ...disabled.map(
      ({ server, tool }) => `${tool ? `tool ${tool} of ` : 'server '}${server}: disabled`,
    ),
  ];
}

function grantLine(grant: Grant): string {
  if (grant.kind === 'shell') return `command ${quoted(grant.command)}: always`;
  if (grant.kind === 'write') return `file ${quoted(grant.path)}: always`;
  if (grant.kind === 'server')
    return `all tools of ${shownName(grant.server)}: always (${grant.definition})`;
  const owner = grant.kind === 'mcp' ? ` of ${shownName(grant.server)}` : '';
  return `tool ${shownName(grant.tool)}${owner}: always (${grant.definition})`;
}
