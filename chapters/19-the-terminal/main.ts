// The front door of the program. What was asked for decides what is loaded: a start costs about a
// millisecond for each file, and `--version` or one call of a tool needs few of them.

import { VERSION } from '../../mcp.ts';
import { asProgram, flagsIn, fullScreen, EXIT } from './exit.ts';
import type { Compose } from './host.ts';
import { PlainScreen, type PlainOutput } from './more/plain-screen.ts';
import { ownVerbs, type Run } from './own-verbs.ts';
import type { Screen } from './screen.ts';

type LoadComposition = () => Promise<Compose>;

/** A program with the rows that `load` brings. */
export async function main(argv: string[], load: LoadComposition): Promise<void> {
  const isVersion = argv.length === 1 && /^(-v|--version)$/.test(argv[0]!);
  if (isVersion) {
    const plain = new PlainScreen();
    return asProgram(argv, plain, () => printVersion(plain));
  }
  const screen = await fullScreen(argv);
  return asProgram(argv, screen, () => run(argv, screen, load));
}

async function printVersion(screen: PlainOutput): Promise<number> {
  screen.print(VERSION);
  return EXIT.done;
}

async function run(argv: string[], screen: Screen, load: LoadComposition): Promise<number> {
  const [name = '', ...args] = argv;
  const isHelp = flagsIn(argv).some((flag) => flag === '--help' || flag === '-h');
  const command = isHelp ? undefined : await verbNamed(name, screen, load);
  if (!command) return startChat(argv, screen, load);
  return command(args, screen, () => rowsFor(screen, load));
}

/** One of ours, or one that the rows of the program bring. */
async function verbNamed(
  name: string,
  screen: Screen,
  load: LoadComposition,
): Promise<Run | undefined> {
  if (Object.hasOwn(ownVerbs, name)) return ownVerbs[name]!.load();
  if (!/^[a-z]+$/.test(name)) return undefined; // a prompt, or a flag
  const { verbs = {} } = await rowsFor(screen, load);
  return Object.hasOwn(verbs, name) ? verbs[name]!.load() : undefined;
}

async function startChat(argv: string[], screen: Screen, load: LoadComposition): Promise<number> {
  const cli = await import('./cli.ts');
  return cli.chat(argv, screen, await load());
}

/** The rows for a command, which needs no tools. */
async function rowsFor(screen: Screen, load: LoadComposition) {
  const { plainHost } = await import('./host.ts');
  const { PersonAtTerminal } = await import('./person-at-terminal.ts');
  const compose = await load();
  const person = new PersonAtTerminal(screen);
  return compose(plainHost({ person, warn: (text) => screen.warn(text) }));
}

/** Where a program runs, and no person is at a terminal. */
export async function rowsForScript(load: LoadComposition) {
  const { plainHost } = await import('./host.ts');
  const { nobody } = await import('../17-the-gate/person.ts');
  const compose = await load();
  return compose(plainHost({ person: { ...nobody } }));
}
