// commands.ts: /resources, /prompts, /watch and /logs.

import { toolLabel, type McpManager } from '../../mcp.ts';
import { nearest } from '../16-hands/nearest.ts';
import type { Command } from '../19-the-terminal/host.ts';
import type { Program } from '../19-the-terminal/program.ts';
import { cut } from '../19-the-terminal/screen.ts';
import { formOf } from './arguments.ts';
import { isForPeople, isReadable, lineFor } from './context.ts';
import { LEVELS, type Logs } from './logs.ts';
import { declaredBy } from './prompts.ts';
import { serversWith } from './rows.ts';
import type { Watches } from './watch.ts';

const MAX_SHOWN = 50; // of each server
const MAX_LOGS = 100;

export function contextCommands(logs: Logs, watches: Watches): Record<string, Command> {
  return {
    resources: {
      help: '/resources [SERVER]       what servers can be asked for by address: @SERVER:ADDRESS',
      run: ([server], program, signal) => showResources(server, program, signal),
      complete: (_, { manager }) => serversWith(manager),
    },
    prompts: {
      help: '/prompts [SERVER]         what servers would say for you: /mcp__SERVER__PROMPT ARGUMENTS',
      run: ([server], program, signal) => showPrompts(server, program, signal),
      complete: (_, { manager }) => serversWith(manager, 'prompts'),
    },
    watch: {
      help: `/watch [SERVER:ADDRESS]   tell the model when this resource changes
/watch off SERVER:ADDRESS no longer`,
      run: (words, program, signal) => watch(words, watches, program, signal),
      complete: (_, { manager }) => [
        'off',
        ...watches.list.map(({ server, uri }) => `${server}:${uri}`),
        ...serversWith(manager).map((name) => `${name}:`),
      ],
    },
    logs: {
      help: '/logs [SERVER] [LEVEL]    what servers have logged; from a LEVEL on, from now on',
      run: (words, program, signal) => showLogs(words, logs, program, signal),
      complete: (words, { manager }) =>
        words.length > 1 ? LEVELS : [...new Set([...logs.servers, ...serversWith(manager, 'logging')])],
    },
  };
}

async function showResources(server: string | undefined, program: Program, signal: AbortSignal) {
  const { agent, manager, screen, masker } = program;
  await agent.awaitServers(signal);
  mustBeKnown(server, manager);
  const [resources, templates] = await Promise.all([
    manager.listResources(server),
    manager.listResourceTemplates(server),
  ]);
  const rows = [
    ...resources.filter(isForPeople).map((row) => ({ server: row.server, text: lineFor(row.uri, row) })),
    ...templates.filter(isReadable).map((row) => ({ server: row.server, text: lineFor(row.uriTemplate, row) })),
  ];
  const names = [...new Set(rows.map((row) => row.server))];
  if (names.length === 0) screen.print('no server has resources');
  for (const name of names) {
    const own = rows.filter((row) => row.server === name).map(({ text }) => `${name}:${text}`);
    const most = server === undefined ? MAX_SHOWN : Infinity;
    for (const text of own.slice(0, most)) screen.print(masker.text(cut(text, screen.width - 1)));
    if (own.length > most) screen.print(`and ${own.length - most} more: /resources ${name}`);
  }
}

async function showPrompts(server: string | undefined, program: Program, signal: AbortSignal) {
  const { agent, manager, screen, masker } = program;
  await agent.awaitServers(signal);
  mustBeKnown(server, manager);
  const prompts = await manager.listPrompts(server);
  if (prompts.length === 0) screen.print('no server has prompts');
  for (const prompt of prompts) {
    const label = `/${toolLabel(prompt.server, prompt.name)}`;
    const text = lineFor(label, { ...prompt, name: '' });
    screen.print(masker.text(cut(text, screen.width - 1)));
    screen.print(masker.text(cut(`  ${formOf(declaredBy(prompt))}`, screen.width - 1)));
  }
}

async function watch(words: string[], watches: Watches, program: Program, signal: AbortSignal) {
  const { agent, manager, screen } = program;
  const isOff = words[0] === 'off';
  const what = (isOff ? words.slice(1) : words).join(' ');
  if (what !== '') {
    await agent.awaitServers(signal);
    const names = manager.status().map(({ name }) => name).filter((name) => what.startsWith(`${name}:`));
    const [server] = names.sort((a, b) => b.length - a.length);
    const uri = what.slice((server?.length ?? 0) + 1);
    if (server === undefined || uri === '')
      throw new Error(`write /watch SERVER:ADDRESS; /resources shows what there is`);
    if (!isOff) await watches.add(server, uri, manager.connection(server)!);
    else if (!(await watches.remove(server, uri))) throw new Error(`${what} is not watched`);
  }
  const lines = watches.list.map((each) => `${each.server}:${each.uri}${each.hasChanged ? ' (changed)' : ''}`);
  screen.print(lines.length === 0 ? 'nothing is watched' : `watched:\n${lines.map((each) => `  ${each}`).join('\n')}`);
}

async function showLogs(words: string[], logs: Logs, program: Program, signal: AbortSignal) {
  const { agent, manager, screen, masker } = program;
  const level = words.find((word) => LEVELS.includes(word));
  const [server, odd] = words.filter((word) => word !== level);
  if (odd !== undefined) throw new Error(`${odd} is no level; there are ${LEVELS.join(', ')}`);
  await agent.awaitServers(signal);
  mustBeKnown(server, manager);
  const servers = server === undefined ? [...new Set([...logs.servers, ...serversWith(manager, 'logging')])] : [server];
  for (const name of servers) {
    if (level) await setLevel(name, level, logs, manager);
    const all = logs.of(name, level);
    for (const { at, level: its, text } of all.slice(-MAX_LOGS))
      screen.print(masker.text(`${name} ${at.toTimeString().slice(0, 8)} ${its}: ${text.replaceAll('\n', '\n  ')}`));
    if (all.length === 0) screen.print(`${name}: nothing${level ? `; from now on it logs ${level} and above` : ''}`);
  }
  if (servers.length === 0) screen.print('no server has logged anything');
}

async function setLevel(server: string, level: string, logs: Logs, manager: McpManager) {
  logs.want(server, level);
  if (serversWith(manager, 'logging').includes(server)) await manager.setLogLevel(server, level);
}

function mustBeKnown(server: string | undefined, manager: McpManager): void {
  const names = manager.status().map(({ name }) => name);
  if (server === undefined || names.includes(server)) return;
  const [close] = nearest(server, names, 1);
  throw new Error(`no server is called ${server}; ${close ? `did you mean ${close}?` : '/mcp lists them'}`);
}
