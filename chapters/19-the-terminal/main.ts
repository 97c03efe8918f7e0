// The front door of the program. What was asked for decides what is loaded: a start costs about a
// millisecond for each file, and `--version` or one call of a tool needs few of them.

import { VERSION } from '../../mcp.ts';
import { asProgram, flagsIn, fullScreen } from './as-program.ts';
import { EXIT } from './exit.ts';
import type { Compose, Rows } from './host.ts';
import { PlainScreen, type Output } from './plain-screen.ts';
import type { Screen } from './screen.ts';

/** A command gets the words behind its name. It has the rows loaded when it needs them. */
export type Run = (args: string[], screen: Screen, rows: Rows) => Promise<number>;
type Load = () => Promise<Compose>;

const COMMANDS: Record<string, () => Promise<Run>> = {
  call: async () => (await import('./call-command.ts')).callCommand,
  mcp: async () => (await import('./mcp-command.ts')).mcpCommand,
  trust: async () => (await import('./trust-command.ts')).trustCommand,
  probe: async () => (await import('./probe.ts')).probe,
};

/** A program with the rows that `load` brings. */
export async function main(argv: string[], load: Load): Promise<void> {
  const isVersion = argv.length === 1 && /^(-v|--version)$/.test(argv[0]!);
  if (isVersion) {
    const plain = new PlainScreen();
    return asProgram(argv, plain, () => printVersion(plain));
  }
  const screen = await fullScreen(argv);
  return asProgram(argv, screen, () => run(argv, screen, load));
}

async function printVersion(screen: Output): Promise<number> {
  screen.print(VERSION);
  return EXIT.done;
}

async function run(argv: string[], screen: Screen, load: Load): Promise<number> {
  const [name = '', ...args] = argv;
  const isHelp = flagsIn(argv).some((flag) => flag === '--help' || flag === '-h');
  const command = isHelp ? undefined : await commandNamed(name, screen, load);
  if (!command) return chat(argv, screen, load);
  return command(args, screen, () => rowsFor(screen, load));
}

/** One of ours, or one that the rows of the program bring. */
async function commandNamed(name: string, screen: Screen, load: Load): Promise<Run | undefined> {
  if (Object.hasOwn(COMMANDS, name)) return COMMANDS[name]!();
  if (!/^[a-z]+$/.test(name)) return undefined; // a prompt, or a flag
  const { verbs = {} } = await rowsFor(screen, load);
  return Object.hasOwn(verbs, name) ? verbs[name]!() : undefined;
}

async function chat(argv: string[], screen: Screen, load: Load): Promise<number> {
  const cli = await import('./cli.ts');
  return cli.chat(argv, screen, await load());
}

/** The rows for a command, which needs no tools. */
async function rowsFor(screen: Screen, load: Load) {
  const { plainHost } = await import('./host.ts');
  const { PersonAtTerminal } = await import('./person-at-terminal.ts');
  const compose = await load();
  const person = new PersonAtTerminal(screen);
  return compose(plainHost({ person, warn: (text) => screen.warn(text) }));
}
