// context-commands.ts: /resources, /prompts, /watch and /logs.

import { toolLabel, type McpManager } from '../../../mcp.ts';
import { nearestHint } from '../../16-hands/nearest.ts';
import type { Command } from '../../19-the-terminal/host.ts';
import type { Program } from '../../19-the-terminal/program.ts';
import { nameBefore } from '../../19-the-terminal/entries.ts';
import { cutToWidth } from '../../19-the-terminal/screen.ts';
import { formOf } from '../prompt-arguments.ts';
import { addressesOf, isForPeople, addressLine } from '../context.ts';
import { LEVELS, type Log, type Logs } from '../logs.ts';
import { Offers, setLogLevel } from '../offers.ts';
import { declaredBy } from '../prompts.ts';
import { serversWith } from '../rows.ts';
import type { Watches } from '../watched-resources.ts';

const MAX_SHOWN = 50; // of each server
const MAX_LOGS = 100;

export function contextCommands(logs: Logs, watches: Watches): Record<string, Command> {
  return {
    resources: {
      help: '/resources [SERVER]       what servers can be asked for by address: @SERVER:ADDRESS',
      run: showResources,
      complete: (_, { manager }) => serversWith(manager.status()),
    },
    prompts: {
      help: '/prompts [SERVER]         what servers would say for you: /mcp__SERVER__PROMPT',
      run: showPrompts,
      complete: (_, { manager }) => serversWith(manager.status(), 'prompts'),
    },
    watch: {
      help: `/watch [SERVER:ADDRESS]   tell the model when this resource changes
/watch off SERVER:ADDRESS no longer`,
      run: (words, program, signal) => watch(words, watches, program, signal),
      complete: (_, { manager }) => [
        'off',
        ...watches.list.map(({ server, uri }) => `${server}:${uri}`),
        ...serversWith(manager.status()).map((name) => `${name}:`),
      ],
    },
    logs: {
      help: '/logs [SERVER] [LEVEL]    what servers have logged; from a LEVEL on, from now on',
      run: (words, program, signal) => showLogs(words, logs, program, signal),
      complete: (words, { manager }) => (words.length > 1 ? LEVELS : loggers(logs, manager)),
    },
  };
}

// ─── Lists ─────────────────────────────────────────────────────────────────────────────────────

const showResources: Command['run'] = async ([server], program, signal) => {
  const { agent, manager, screen } = program;
  await agent.startUp.wait(signal);
  mustBeKnown(server, manager);
  const rows = (await addressesOf(manager, server)).filter(isForPeople);
  const names = [...new Set(rows.map((row) => row.server))];
  if (names.length === 0) screen.print('no server has resources');
  for (const name of names) {
    const own = rows.filter((row) => row.server === name);
    const most = server === undefined ? MAX_SHOWN : Infinity;
    for (const row of own.slice(0, most))
      printRow(`${name}:${addressLine(row.address, row)}`, program);
    if (own.length > most) screen.print(`and ${own.length - most} more: /resources ${name}`);
  }
};

const showPrompts: Command['run'] = async ([server], program, signal) => {
  const { agent, manager, screen } = program;
  await agent.startUp.wait(signal);
  mustBeKnown(server, manager);
  const prompts = await new Offers(manager).listPrompts(server);
  if (prompts.length === 0) screen.print('no server has prompts');
  for (const prompt of prompts) {
    const label = `/${toolLabel(prompt.server, prompt.name)}`;
    printRow(addressLine(label, { ...prompt, name: '' }), program);
    printRow(`  ${formOf(declaredBy(prompt))}`, program);
  }
};

/** In one row. */
function printRow(text: string, { screen, masker }: Program) {
  screen.print(masker.text(cutToWidth(text, screen.width - 1)));
}

function mustBeKnown(server: string | undefined, manager: McpManager) {
  const names = manager.status().map(({ name }) => name);
  if (server === undefined || names.includes(server)) return;
  const hint = nearestHint(server, names, '/mcp lists them');
  throw new Error(`no server is called ${server}; ${hint}`);
}

// ─── What is watched ───────────────────────────────────────────────────────────────────────────

async function watch(words: string[], watches: Watches, program: Program, signal: AbortSignal) {
  const { agent, manager, screen } = program;
  const isOff = words[0] === 'off';
  const what = (isOff ? words.slice(1) : words).join(' ');
  if (what !== '') {
    await agent.startUp.wait(signal);
    const { server, uri } = addressIn(what, manager);
    if (!isOff) await watches.add(server, uri, manager.of(server));
    else if (!(await watches.remove(server, uri))) throw new Error(`${what} is not watched`);
  }
  const lines = watches.list.map(
    ({ server, uri, hasChanged }) => `  ${server}:${uri}${hasChanged ? ' (changed)' : ''}`,
  );
  screen.print(lines.length === 0 ? 'nothing is watched' : ['watched:', ...lines].join('\n'));
}

function addressIn(what: string, manager: McpManager): { server: string; uri: string } {
  const names = manager.status().map(({ name }) => name);
  const server = nameBefore(':', what, names) ?? '';
  const uri = what.slice(server.length + 1);
  if (server !== '' && uri !== '') return { server, uri };
  throw new Error('write /watch SERVER:ADDRESS; /resources shows what there is');
}

// ─── Logs ──────────────────────────────────────────────────────────────────────────────────────

async function showLogs(words: string[], logs: Logs, program: Program, signal: AbortSignal) {
  const { agent, manager, screen } = program;
  const level = words.find((word) => LEVELS.includes(word));
  const [server, odd] = words.filter((word) => word !== level);
  if (odd !== undefined) throw new Error(`${odd} is no level; there are ${LEVELS.join(', ')}`);
  await agent.startUp.wait(signal);
  mustBeKnown(server, manager);
  const servers = server === undefined ? loggers(logs, manager) : [server];
  if (servers.length === 0) screen.print('no server has logged anything');
  for (const name of servers) {
    if (level) await setLevel(name, level, logs, manager);
    const all = logs.of(name, level);
    for (const log of all.slice(-MAX_LOGS)) screen.print(program.masker.heard(lineOf(name, log)));
    const from = level ? `; from now on it logs ${level} and above` : '';
    if (all.length === 0) screen.print(`${name}: nothing${from}`);
  }
}

function lineOf(server: string, { at, level, text }: Log) {
  const time = at.toTimeString().slice(0, 8);
  return `${server} ${time} ${level}: ${text.replaceAll('\n', '\n  ')}`;
}

/** Those that have logged, and those that can. */
function loggers(logs: Logs, manager: McpManager) {
  return [...new Set([...logs.servers, ...serversWith(manager.status(), 'logging')])];
}

async function setLevel(server: string, level: string, logs: Logs, manager: McpManager) {
  logs.levels.set(server, level);
  const isTold = serversWith(manager.status(), 'logging').includes(server);
  if (isTold) await setLogLevel(manager.of(server), level);
}
