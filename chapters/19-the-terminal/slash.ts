// What can be said to the program itself in a chat: lines that begin with a slash.

import { setTimeout as pause } from 'node:timers/promises';
import type { Tool, Turn } from '../../agent.ts';
import { nearestHint } from '../16-hands/nearest.ts';
import { MODES } from '../17-the-gate/modes.ts';
import { quoted } from '../17-the-gate/safe-text.ts';
import { dollars, type Spending } from '../18-minds/prices.ts';
import { commandNamed } from './more/complete.ts';
import type { Command } from './host.ts';
import { NO_TERMINAL } from './command-line/login-command.ts';
import { mustBeOneOf, serverAndTool } from './entries.ts';
import { permissions, setMode } from './more/permissions.ts';
import type { Program } from './program.ts';
import { conversationName, resume, tellWhereWeAre } from './more/resume.ts';
import { cutToWidth } from './screen.ts';
import { inSeconds, wholeRows, gauge, tokens } from './show.ts';
import { shownName, stateRows, statusLines } from './status.ts';

const MAX_SHOWN = 100; // servers: a project may bring thousands
const END = `/exit                     or exit, quit, Ctrl-D, or Ctrl-C twice

/NAME [WORDS]             a prompt of yours, from ~/.claude/commands/NAME.md, or the project's
!COMMAND                  runs it; the model is told with the next prompt
@FILE                     sends a file along; Tab finishes its name, and commands
Esc, Ctrl-C               stop a turn; what is typed meanwhile is sent when it ends
Shift-Tab                 another mode: ask, accept-edits, read-only
\\ Enter, Alt-Enter        a new line of the prompt (Ctrl-J, too); Enter sends all
Up, Down, Ctrl-R          earlier prompts of this folder; one with these words
Ctrl-Z                    suspends the program; fg brings it back`;

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
/mcp reload               read the configuration again; what has not changed goes on`,
    run: showServers,
    complete: ([action = '', ...names], { manager }) =>
      names.length === 0 || action === 'reload'
        ? ACTIONS
        : manager.status().map(({ name }) => name),
  },
  tools: {
    help: '/tools [SERVER | WORDS]   what the model can call: all, of a server, or with these words',
    run: showTools,
    complete: (_, { manager }) => manager.status().map(({ name }) => name),
  },
  last: {
    help: '/last                     the last call, whole: arguments and result',
    run: showLast,
  },
  undo: {
    help: '/undo                     take back what the last answer changed in files, if nothing else has since',
    run: async (_, { edits, screen, shortcuts }) => {
      const done = await edits.takeBack();
      screen.print(done.join('\n'));
      shortcuts.keep(`I took back your last changes: ${done.join(', ')}.`);
    },
  },
  model: {
    help: '/model [NAME]             which model answers; another one',
    run: showModel,
    complete: (_, program) => modelNames(program),
  },
  mode: {
    help: '/mode [MODE]              how much is asked: ask, accept-edits, read-only, yolo',
    run: setMode,
    complete: () => [...MODES],
  },
  permissions: {
    help: `/permissions              what is allowed, asked and denied, and who said so
/permissions allow RULE   a rule for this folder, also ask or deny; revoke takes one back`,
    run: permissions,
    complete: ([, ...more], { trust }) =>
      more.length > 0
        ? trust.list().rules.map(({ text }) => text)
        : ['allow', 'ask', 'deny', 'revoke'],
  },
  clear: {
    help: '/clear                    begin a new conversation',
    run: (_, { agent, screen, session, shortcuts }) => {
      agent.startOver();
      session.begin();
      shortcuts.forget();
      screen.print('a new conversation');
    },
  },
  resume: {
    help: '/resume [ID|NAME]         go on with another conversation of this folder',
    run: async (words, program, signal) => {
      const isAnother = await resume(words.join(' '), program, signal);
      if (isAnother) tellWhereWeAre(program);
      else program.screen.say('none was chosen: this conversation goes on', 'dim');
    },
    complete: (_, { session }) => session.list().map(({ id, name }) => name || id),
  },
  name: {
    help: '/name [WORDS]             call this conversation so, for --resume and /resume',
    run: (words, { session, screen }) => {
      const name = conversationName(words);
      if (name) session.rename(name);
      screen.print(session.name ? `this is ${quoted(session.name)}` : 'it has no name');
    },
  },
  compact: {
    help: '/compact [WORDS]          replace all but the last turns by a summary; WORDS say what matters',
    run: async (words, { agent, screen }, signal) => {
      const { summary, replaced, turns } = await agent.compact(words.join(' '), signal);
      screen.print(summary);
      screen.say(`${replaced} turns have become this summary; ${turns.length} turns now`, 'dim');
    },
  },
  cost: {
    help: "/cost                     tokens and money so far, and how full the model's context is",
    run: (_, program) => {
      const { agent, screen, spending } = program;
      const used = `${agent.model.name}: ${tokens(spending.used)} in this session`;
      screen.print([used, cost(spending), gauge(program)].filter(Boolean).join(' · '));
    },
  },
  trace: {
    help: '/trace [FILE | off]       write every message and event to a file',
    run: (words, program) => {
      const file = words.join(' ');
      if (file) program.trace.keep(file === 'off' ? undefined : file);
      program.screen.print(program.trace.file ? `tracing to ${program.trace.file}` : 'no trace');
    },
    complete: () => ['off'],
  },
};

function cost({ money, isUnpriced, limit }: Spending): string {
  const atLeast = isUnpriced ? 'at least ' : '';
  const most = limit.money === undefined ? '' : `, of ${dollars(limit.money)}`;
  if (limit.tokens) return `of ${limit.tokens} tokens`;
  if (money === 0 && !most) return '';
  return `${atLeast}${dollars(money)}${most}`;
}

const ACTIONS = ['reconnect', 'disable', 'enable', 'login', 'logout', 'reload'];

function modelNames({ composition }: Program): string[] {
  const rows = Object.entries(composition.models);
  return rows.map(([kind, { defaultId }]) => (defaultId ? `${kind}/${defaultId}` : kind));
}

function showLast(_: string[], { lastCall, screen }: Program): void {
  if (!lastCall) return screen.print('no tool was called yet');
  const { name, outcome, ms } = lastCall;
  screen.print(`${name}: ${outcome}, ${inSeconds(ms ?? 0)}`);
  screen.printLines(wholeRows(lastCall, screen.width - 1));
}

function showModel([name]: string[], program: Program): void {
  const { agent, screen, options, composition } = program;
  const [kind = ''] = (name ?? '').split('/');
  const isService = composition.models[kind]?.defaultId !== undefined; // others have no address
  if (name) agent.model = program.makeModel(name, isService ? options.baseUrl : undefined);
  screen.print(`model ${agent.model.name}`);
}

/** One slash and a word: a path has more slashes, and is part of a prompt. */
export const isSlashCommand = (line: string) => /^\s*\/[\w-]*(\s|$)/.test(line);

/** Runs until it is done, or until Ctrl-C: then a slow server goes on starting behind the prompt.
 *  What it returns is to be said to the model. */
export async function slash(
  line: string,
  program: Program,
  signal: AbortSignal,
): Promise<Turn[] | undefined> {
  const { screen, masker, composition } = program;
  const typed = line.trim().slice(1);
  const [name = '', ...words] = typed.split(/\s+/);
  const stopped = new Promise<undefined>((resolve) => {
    signal.addEventListener('abort', () => resolve(undefined));
  });
  try {
    screen.spin(() => [`/${name}`]);
    const command = await Promise.race([commandNamed(name, program), stopped]);
    const names = [...Object.keys(composition.commands), 'exit'];
    if (signal.aborted) return undefined;
    if (!command) throw new Error(`there is no /${name}${hint(name, names, '/')}`);
    const rest = typed.slice(name.length).trim();
    const said = await Promise.race([command.run(words, program, signal, rest), stopped]);
    return said ?? undefined;
  } catch (error) {
    screen.say(masker.text((error as Error).message), 'red');
    return undefined;
  } finally {
    screen.stopSpinning();
  }
}

function hint(word: string, known: string[], prefix = ''): string {
  const list = prefix === '/' ? '/help' : '/mcp';
  return `; ${nearestHint(word, known, `${list} lists what there is`, (close) => prefix + close)}`;
}

async function showTools(
  words: string[],
  { agent, screen, manager }: Program,
  signal: AbortSignal,
): Promise<void> {
  await agent.startUp.wait(signal);
  agent.tools.refresh();
  const server = words.join(' ');
  const isServer = manager.status().some(({ name }) => name === server);
  const isMeant = ({ origin, definition: { name, description } }: Tool) => {
    if (isServer) return origin?.server === server;
    const about = `${name} ${description}`.toLowerCase();
    return words.every((word) => about.includes(word.toLowerCase()));
  };
  const shown = agent.tools.callable.filter(isMeant).map((tool) => tool.definition);
  if (shown.length === 0) screen.say(`there is no tool of or with ${quoted(server)}`);
  for (const { name, description } of shown) {
    const text = description.replace(/^> /gm, ''); // the mark is for the model
    screen.print(cutToWidth(`${name}: ${text}`, screen.width - 1));
  }
}

async function showServers(
  [action, name]: string[],
  program: Program,
  signal: AbortSignal,
): Promise<void> {
  const { agent } = program;
  if (action === 'reload') await reload(program);
  const isChange = action !== undefined && action !== 'reload';
  await (isChange ? agent.startUp.wait(signal) : watchServers(program, signal));
  const changed = isChange ? await change(action, name, program, signal) : undefined;
  agent.tools.refresh();
  printServers(program, changed);
}

/** What is connected and unchanged goes on: nobody waits for it again, and it forgets nothing. */
async function reload({ agent, manager, screen }: Program): Promise<void> {
  screen.spin(() => ['/mcp reload', ...stateRows(manager, screen.width - 1)]);
  const { started, ended } = await manager.reload();
  agent.startUp.forget();
  const gone = ended.filter((name) => !started.includes(name));
  const listed = (what: string, names: string[]) =>
    names.length > 0 ? [`${what}: ${names.map(shownName).join(', ')}`] : [];
  const words = [...listed('started', started), ...listed('gone', gone)];
  screen.say(words.join('; ') || 'nothing has changed', 'dim');
}

/** Until all of them have come or failed. At a terminal one sees how they do, and Ctrl-C ends it. */
async function watchServers(program: Program, signal: AbortSignal): Promise<void> {
  const { agent, manager, screen } = program;
  if (!screen.isInteractive) return agent.startUp.wait(signal);
  let isDone = false;
  void agent.connect().then(() => (isDone = true));
  screen.spin(() => ['/mcp', ...stateRows(manager, screen.width - 1)]);
  await pause(0); // where nothing has to be fetched first, the servers are known by now
  const isWaiting = () => {
    const all = manager.status();
    const isStarting = all.some(({ state }) => state === 'connecting');
    return isStarting || (!isDone && all.length === 0);
  };
  while (isWaiting() && !signal.aborted) await pause(100);
}

function printServers({ manager, screen, masker, composition }: Program, only?: string): void {
  const options = { masker, rows: composition, most: MAX_SHOWN, only };
  screen.printLines(statusLines(manager, options));
}

const HOW_TO_CHANGE =
  'write /mcp, /mcp reload, or /mcp and reconnect, disable, enable, login or logout, and a NAME';

/** The server that was meant. */
async function change(
  action: string,
  name: string | undefined,
  program: Program,
  signal: AbortSignal,
): Promise<string> {
  const { manager, trust, screen } = program;
  if (!name || !ACTIONS.includes(action)) throw new Error(HOW_TO_CHANGE);
  const all = manager.status();
  const names = all.map((status) => status.name);
  const { server, tool } = serverAndTool(name, names);
  if (!names.includes(server))
    throw new Error(`no server is called ${server}${hint(server, names)}`);
  if (tool !== undefined && action === 'disable') {
    const offered = manager.getToolDefinitions().filter((each) => each.server === server);
    const isKnown = all.some((each) => each.name === server && each.state === 'connected');
    if (isKnown)
      mustBeOneOf(
        offered.map((each) => each.tool.name),
        tool,
        server,
      );
  }
  screen.spin(() => [`/mcp ${action}`, ...stateRows(manager, screen.width - 1, server)]);
  if (action === 'login') await logIn(server, program, signal);
  if (action === 'logout') await logOut(server, program);
  if (action === 'enable' || action === 'disable')
    trust.setDisabled(action === 'disable', server, tool);
  const isOfTool = tool !== undefined && action !== 'reconnect'; // the next table leaves it out
  if (isOfTool || action === 'login') return server;
  if (action === 'disable') await manager.disable(server);
  else await manager.reconnect(server);
  return server;
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
