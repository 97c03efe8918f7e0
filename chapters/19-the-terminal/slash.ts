// What can be said to the program itself in a chat: lines that begin with a slash.

import { extras } from '../../agent.ts';
import { nearest } from '../16-hands/nearest.ts';
import { model, type Program } from './program.ts';
import { cut } from './screen.ts';
import { NO_TERMINAL, statusLines } from './servers.ts';
import { tokens } from './show.ts';

const HELP = `/mcp                      the servers: state, file, version, tools, and what went wrong
/mcp reconnect NAME       start a server again
/mcp disable NAME[/TOOL]  switch a server or a tool off in this folder, /mcp enable on again
/mcp login NAME           log in at a server that wants to know who you are, /mcp logout out again
/mcp reload               read the configuration again
/tools                    what the model can call
/model [NAME]             which model answers; another one
/clear                    begin a new conversation
/cost                     tokens so far
/trace [FILE | off]       write every message and event to a file
/exit                     or Ctrl-D, or Ctrl-C twice
Ctrl-C stops a turn.`;

type Command = (words: string[], program: Program, signal: AbortSignal) => unknown;

const COMMANDS: Record<string, Command> = {
  help: (_, { screen }) => screen.print(HELP),
  mcp: showServers,
  tools: showTools,
  model: ([name], { agent, screen, options }) => {
    if (name) agent.model = model(name, name === 'rehearsal' ? undefined : options.baseUrl);
    screen.print(`model ${agent.model.name}`);
  },
  clear: (_, { agent, screen, session }) => {
    agent.startOver();
    session.begin();
    screen.print('a new conversation');
  },
  cost: (_, { agent, screen }) => screen.print(`${agent.model.name}: ${tokens(agent.usage)} in this session`),
  trace: (words, program) => {
    const file = words.join(' ');
    if (file) program.setTrace(file === 'off' ? undefined : file);
    program.screen.print(program.trace ? `tracing to ${program.trace}` : 'no trace');
  },
};

/** One slash and a word: a path has more slashes, and is part of a prompt. */
export const isCommand = (line: string) => /^\s*\/[\w-]*(\s|$)/.test(line);

/** Runs until it is done, or until Ctrl-C: a server that starts slowly then goes on starting behind the prompt. */
export async function slash(line: string, program: Program, signal: AbortSignal): Promise<void> {
  const { screen, masker } = program;
  const [name = '', ...words] = line.trim().slice(1).split(/\s+/);
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  const stopped = new Promise((resolve) => signal.addEventListener('abort', resolve));
  try {
    if (!command) throw new Error(`there is no /${name}${hint(name, [...Object.keys(COMMANDS), 'exit'], '/')}`);
    screen.spin(() => `/${name}`);
    await Promise.race([command(words, program, signal), stopped]);
  } catch (error) {
    screen.say(masker.text((error as Error).message), 'red');
  } finally {
    screen.stopSpinning();
  }
}

function hint(word: string, known: string[], prefix = ''): string {
  const [close] = nearest(word, known, 1);
  const list = prefix === '/' ? '/help' : '/mcp';
  return close === undefined ? `; ${list} lists what there is` : `; did you mean ${prefix}${close}?`;
}

async function showTools(_: string[], { agent, screen }: Program): Promise<void> {
  await agent.connect();
  agent.refreshTable();
  for (const { definition } of agent.table.values())
    screen.print(cut(`${definition.name}: ${definition.description}`, screen.width - 1));
}

async function showServers([action, name]: string[], program: Program, signal: AbortSignal): Promise<void> {
  const { agent, manager, screen, masker } = program;
  if (action === 'reload') {
    await manager.disconnectAll();
    agent.forgetConnection();
  }
  await agent.connect();
  if (action !== undefined && action !== 'reload') await change(action, name, program, signal);
  agent.refreshTable();
  for (const text of statusLines(manager, masker)) screen.print(text);
}

async function change(action: string, name: string | undefined, program: Program, signal: AbortSignal): Promise<void> {
  const { manager, trust } = program;
  if (!name || !['reconnect', 'disable', 'enable', 'login', 'logout'].includes(action))
    throw new Error('write /mcp, /mcp reload, or /mcp and reconnect, disable, enable, login or logout, and a NAME');
  const [server = '', tool] = name.split('/');
  const names = manager.status().map((status) => status.name);
  if (!names.includes(server)) throw new Error(`no server is called ${server}${hint(server, names)}`);
  if (action === 'login') return logIn(server, program, signal);
  const isLoggedOut = action === 'logout' && (await extras.logins?.logOut(server));
  if (action === 'logout' && !isLoggedOut) throw new Error(`you are not logged in at ${server}`);
  if (isLoggedOut) program.screen.print(`logged out of ${server}`);
  if (action === 'enable' || action === 'disable') trust.setDisabled(action === 'disable', server, tool);
  if (tool !== undefined && action !== 'reconnect') return; // the next look at the table leaves it out
  await (action === 'disable' ? manager.disable(server) : manager.reconnect(server));
}

/** Asks the server first, unless it has said already what it wants. */
async function logIn(server: string, { manager, screen }: Program, signal: AbortSignal): Promise<void> {
  const { logins } = extras;
  if (!screen.isInteractive) throw new Error(NO_TERMINAL);
  const { state } = manager.status().find(({ name }) => name === server)!;
  const mayAsk = state !== 'connected' && state !== 'pending';
  if (!logins?.isWanted(server) && mayAsk) await manager.reconnect(server);
  if (!logins?.isWanted(server)) return; // what it wants instead, if anything, is shown with its state
  signal.addEventListener('abort', () => screen.say('the login was stopped', 'dim'));
  await logins.logIn(server, screen, signal);
  screen.print(`you are logged in at ${server}`);
  await manager.reconnect(server);
}
