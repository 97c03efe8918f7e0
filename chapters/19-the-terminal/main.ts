// The front door of the program. What was asked for decides what is loaded: a start costs about a
// millisecond for each file, and `--version` or one call of a tool needs few of them.

import { VERSION } from '../../mcp.ts';
import { EXIT, Stop } from './exit.ts';
import type { Early } from './head-start.ts';
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
// Like the shells: 128 and the number of the signal.
const SIGNALS = { SIGTERM: 128 + 15, SIGHUP: 128 + 1, SIGQUIT: 128 + 3 };

/** A program with the rows that `load` brings. */
export async function main(argv: string[], load: Load, early?: Early): Promise<void> {
  const flags = flagsIn(argv);
  const isVersion = argv.length === 1 && /^(-v|--version)$/.test(argv[0]!);
  const isPlain = isVersion || (early !== undefined && !process.stdout.isTTY);
  const screen = isPlain ? new PlainScreen() : await fullScreen(flags);
  const fail = (error: Error) => {
    screen.stop();
    report(error, flags.includes('--json'), screen);
    return error instanceof Stop ? error.code : EXIT.unexpected;
  };
  // With a listener of ours these end by process.exit, which ends servers and commands, too.
  for (const [signal, code] of Object.entries(SIGNALS))
    process.on(signal, () => process.exit(code));
  process.on('SIGINT', () => screen.onInterrupt());
  process.on('uncaughtException', (error) => {
    try {
      process.exitCode = fail(error);
    } finally {
      process.exit(); // whatever else goes wrong: only so are servers and commands ended
    }
  });
  const running = isVersion ? printVersion(screen) : run(argv, screen, load, early);
  const code = await running.catch(fail);
  await screen.close();
  process.exit(code); // also if something is still open: a socket that is kept alive, say
}

/** Looked at before they are parsed: a mistake in them is reported as they say. What comes after --
 *  is data. */
function flagsIn(argv: string[]): string[] {
  return argv.includes('--') ? argv.slice(0, argv.indexOf('--')) : argv;
}

async function fullScreen(flags: string[]): Promise<Screen> {
  const { Screen } = await import('./screen.ts');
  return new Screen({ color: !flags.includes('--no-color') });
}

async function printVersion(screen: Output): Promise<number> {
  screen.print(VERSION);
  return EXIT.done;
}

async function run(argv: string[], output: Output, load: Load, early?: Early): Promise<number> {
  const [name = '', ...args] = argv;
  if (early) {
    const { callEarly } = await import('./call-command.ts');
    return callEarly(args, output, early);
  }
  const screen = output as Screen; // only a version and an early call have less
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

function report(error: Error, isJson: boolean, screen: Output): void {
  const { kind = 'unexpected', message } = error as Stop;
  if (isJson) screen.printJson(JSON.stringify({ type: 'error', kind, message }), process.stderr);
  else screen.say(kind === 'unexpected' ? (error.stack ?? message) : message, 'red');
}
