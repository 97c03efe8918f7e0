// permissions.ts: /permissions and /mode. What holds at this moment, and who said so.

import { FREE_COMMANDS } from '../../17-the-gate/known-programs.ts';
import { MEANING, modeNamed, MODES } from '../../17-the-gate/modes.ts';
import type { Effect, Rule } from '../../17-the-gate/rules.ts';
import { KEPT, keptRule } from '../../17-the-gate/rule-offer.ts';
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

/** Lists them; or makes a rule, or takes back what was decided. */
export function permissions(
  [action]: string[],
  program: Program,
  _: AbortSignal,
  rest: string,
): void {
  if (action === undefined) return showPermissions(program);
  const { gate, trust, screen, composition } = program;
  const what = rest.slice(action.length).trim();
  const effect = ORDER.find((each) => each === action);
  if ((!effect && action !== 'revoke') || what === '') throw new Error(HOW_TO_PERMIT);
  if (!effect) {
    const others = gate.rules.filter(({ source, text }) => source !== KEPT || text !== what);
    const isGone = others.length < gate.rules.length;
    if (trust.revoke(what) === 0 && !isGone)
      throw new Error(`nothing was decided on ${quoted(what)}; /permissions lists what was`);
    gate.useRules(others);
    return screen.print(`revoked: ${quoted(what)}`);
  }
  const warn = (text: string) => screen.warn(text);
  const rule = keptRule({ effect, text: what }, { tools: composition.tools, warn });
  if (!rule) return; // it was told why
  gate.keepRule(rule);
  screen.print(`${effect} ${quoted(what)}: ${KEPT}`);
}

const HOW_TO_PERMIT =
  'write /permissions, or with it allow, ask or deny and a rule such as bash(npm test:*), or revoke ' +
  'and what it lists';

function showPermissions({ gate, trust, screen, started, masker }: Program) {
  const from = gate.mode === started.mode ? started.from : 'this session';
  const file = `${trust.folder}/trust.json`;
  const written = new Set(agreedLines(trust, trust.listWritten()));
  const lines = [
    `mode ${gate.mode}: ${MEANING[gate.mode]} (${from})`,
    ...ORDER.flatMap((effect) => rulesOf(gate.rules, effect)),
    `free commands: ${FREE} (built in)`,
    ...agreedLines(trust).map((line) => `${line} (${written.has(line) ? file : 'this session'})`),
  ];
  for (const line of lines) screen.print(masker.text(line));
}

function rulesOf(rules: readonly Rule[], effect: Effect) {
  const meant = rules.filter((rule) => rule.effect === effect);
  return meant.map(({ text, source = 'this program' }) => `${effect} ${quoted(text)} (${source})`);
}

/** What was agreed to in this folder, and is kept in trust.json. */
export const keptRules = (trust: Trust) =>
  trust.list().rules.map(({ effect, text }) => `${effect} ${quoted(text)}: ${KEPT}`);

export function agreedLines(trust: Trust, list = trust.list()): string[] {
  const { servers, grants, disabled, notes } = list;
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

function grantLine(grant: Grant) {
  if (grant.kind === 'shell') return `command ${quoted(grant.command)}: always`;
  if (grant.kind === 'write') return `file ${quoted(grant.path)}: always`;
  if (grant.kind === 'server')
    return `all tools of ${shownName(grant.server)}: always (${grant.definition})`;
  const owner = grant.kind === 'mcp' ? ` of ${shownName(grant.server)}` : '';
  return `tool ${shownName(grant.tool)}${owner}: always (${grant.definition})`;
}
