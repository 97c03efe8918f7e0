// What can be said to the program itself in a chat: lines that begin with a slash.

import { nearest } from '../16-hands/nearest.ts';
import type { Command } from './host.ts';
import { NO_TERMINAL } from './login-command.ts';
import type { Program } from './program.ts';
import { cut } from './screen.ts';
import { tokens } from './show.ts';
import { statusLines } from './status.ts';

const MAX_SHOWN = 100; // servers: a project may bring thousands
const END = `/exit                     or Ctrl-D, or Ctrl-C twice
Ctrl-C stops a turn.`;

/** The commands of this program. A program of your own may add others, or leave some out. */
export const commands: Record<string, Command> = {
  help: {
    help: '/help                     this list',
    run: (_, { screen, composition }) => {
      const lines = Object.values(composition.commands).map(({ help }) => help);
      screen.print([...lines, END].join('\n'));
    },
  },
  mcp: {
    help: `/mcp                      the servers: state, file, version, tools, and what went wrong
/mcp reconnect NAME       start a server again
/mcp disable NAME[/TOOL]  switch a server or a tool off in this folder, /mcp enable on again
/mcp login NAME           log in at a server that wants to know who you are, /mcp logout out again
/mcp reload               read the configuration again`,
    run: showServers,
  },
  tools: { help: '/tools                    what the model can call', run: showTools },
  model: { help: '/model [NAME]             which model answers; another one', run: showModel },
  clear: {
    help: '/clear                    begin a new conversation',
    run: (_, { agent, screen, session }) => {
      agent.startOver();
      session.begin();
      screen.print('a new conversation');
    },
  },
  cost: {
    help: '/cost                     tokens so far',
    run: (_, { agent, screen }) => {
      screen.print(`${agent.model.name}: ${tokens(agent.usage)} in this session`);
    },
  },
  trace: {
    help: '/trace [FILE | off]       write every message and event to a file',
    run: (words, program) => {
      const file = words.join(' ');
      if (file) program.setTrace(file === 'off' ? undefined : file);
      program.screen.print(program.trace ? `tracing to ${program.trace}` : 'no trace');
    },
  },
};

function showModel([name]: string[], program: Program): void {
  const { agent, screen, options, composition } = program;
  const [kind = ''] = (name ?? '').split('/');
  const isService = composition.models[kind]?.defaultId !== undefined; // others have no address
  if (name) agent.model = program.makeModel(name, isService ? options.baseUrl : undefined);
  screen.print(`model ${agent.model.name}`);
}

/** One slash and a word: a path has more slashes, and is part of a prompt. */
export const isCommand = (line: string) => /^\s*\/[\w-]*(\s|$)/.test(line);

/** Runs until it is done, or until Ctrl-C: then a slow server goes on starting behind the prompt. */
export async function slash(line: string, program: Program, signal: AbortSignal): Promise<void> {
  const { screen, masker, composition } = program;
  const [name = '', ...words] = line.trim().slice(1).split(/\s+/);
  const known = composition.commands;
  const command = Object.hasOwn(known, name) ? known[name] : undefined;
  const stopped = new Promise((resolve) => signal.addEventListener('abort', resolve));
  try {
    const names = [...Object.keys(known), 'exit'];
    if (!command) throw new Error(`there is no /${name}${hint(name, names, '/')}`);
    screen.spin(() => `/${name}`);
    await Promise.race([command.run(words, program, signal), stopped]);
  } catch (error) {
    screen.say(masker.text((error as Error).message), 'red');
  } finally {
    screen.stopSpinning();
  }
}

function hint(word: string, known: string[], prefix = ''): string {
  const [close] = nearest(word, known, 1);
  const list = prefix === '/' ? '/help' : '/mcp';
  if (close === undefined) return `; ${list} lists what there is`;
  return `; did you mean ${prefix}${close}?`;
}

async function showTools(
  _: string[], { agent, screen }: Program, signal: AbortSignal,
): Promise<void> {
  await agent.awaitServers(signal);
  agent.refreshTable();
  for (const { name, description } of [...agent.table.values()].map((tool) => tool.definition)) {
    const words = description.replace(/^> /gm, ''); // the mark is for the model
    screen.print(cut(`${name}: ${words}`, screen.width - 1));
  }
}

async function showServers(
  [action, name]: string[], program: Program, signal: AbortSignal,
): Promise<void> {
  const { agent, manager, screen, masker } = program;
  const { logins } = program.composition;
  if (action === 'reload') {
    await manager.disconnectAll();
    agent.forgetConnection();
  }
  await agent.awaitServers(signal);
  if (action !== undefined && action !== 'reload') await change(action, name, program, signal);
  agent.refreshTable();
  const whereLoggedIn = (server: string) => logins?.where(server);
  const shown = { masker, whereLoggedIn, most: MAX_SHOWN };
  for (const text of statusLines(manager, shown)) screen.print(text);
}

const CHANGES = ['reconnect', 'disable', 'enable', 'login', 'logout'];
const HOW_TO_CHANGE =
  'write /mcp, /mcp reload, or /mcp and reconnect, disable, enable, login or logout, and a NAME';

async function change(
  action: string, name: string | undefined, program: Program, signal: AbortSignal,
): Promise<void> {
  const { manager, trust } = program;
  if (!name || !CHANGES.includes(action)) throw new Error(HOW_TO_CHANGE);
  const [server = '', tool] = name.split('/');
  const names = manager.status().map((status) => status.name);
  if (!names.includes(server))
    throw new Error(`no server is called ${server}${hint(server, names)}`);
  if (action === 'login') return logIn(server, program, signal);
  if (action === 'logout') await logOut(server, program);
  if (action === 'enable' || action === 'disable')
    trust.setDisabled(action === 'disable', server, tool);
  if (tool !== undefined && action !== 'reconnect') return; // the next table leaves it out
  if (action === 'disable') await manager.disable(server);
  else await manager.reconnect(server);
}

async function logOut(server: string, { composition, screen }: Program): Promise<void> {
  const { logins } = composition;
  const wasLoggedIn = await logins?.logOut(server);
  if (!wasLoggedIn) throw new Error(`you are not logged in at ${server}`);
  screen.print(`logged out of ${server}`);
}

/** Connects to the server first, unless it has said already what it wants. */
async function logIn(server: string, program: Program, signal: AbortSignal): Promise<void> {
  const { manager, screen, person } = program;
  const { logins } = program.composition;
  if (!person.isThere) throw new Error(NO_TERMINAL);
  const { state } = manager.status().find(({ name }) => name === server)!;
  const mayConnect = state !== 'connected' && state !== 'pending';
  if (!logins?.isWanted(server) && mayConnect) await manager.reconnect(server);
  if (!logins?.isWanted(server)) return; // what it wants instead is shown with its state
  signal.addEventListener('abort', () => screen.say('the login was stopped', 'dim'));
  await logins.logIn(server, person, signal);
  screen.print(`you are logged in at ${server}`);
  await manager.reconnect(server);
}
