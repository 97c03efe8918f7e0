// The front door of the program. What was asked for decides what is loaded: a start costs about a
// millisecond for each file, and `--version` or one call of a tool needs few of them.

import { VERSION } from '../../mcp.ts';
import { distance, nearestHint } from '../16-hands/nearest.ts';
import { asProgram, EXIT, flagsIn, fullScreen, usage } from './exit.ts';
import type { Compose } from './host.ts';
import { PlainScreen } from './more/plain-screen.ts';
import { ownVerbs, type Verb } from './own-verbs.ts';
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

async function printVersion(screen: PlainScreen) {
  screen.print(VERSION);
  return EXIT.done;
}

async function run(argv: string[], screen: Screen, load: LoadComposition) {
  const [name = '', ...args] = argv;
  const verbs = /^[a-z][a-z-]*$/i.test(name) ? await verbsFor(name, screen, load) : {};
  const verb = Object.hasOwn(verbs, name) ? verbs[name]! : undefined;
  const flags = flagsIn(argv);
  const isHelp = flags.some((flag) => flag === '--help' || flag === '-h');
  if (verb && isHelp) {
    const { helpOfVerb } = await import('./command-line/options.ts');
    screen.print(helpOfVerb(name, verb));
    return EXIT.done;
  }
  if (verb) return (await verb.load())(args, screen, () => rowsFor(screen, load));
  const isPrompt = isHelp || flags.includes('-p') || flags.includes('--print');
  if (!isPrompt) refuseMistyped(name, argv, Object.keys(verbs));
  return startChat(argv, screen, load);
}

/** Ours, and, if it is none of them, those that the rows of the program bring. */
async function verbsFor(name: string, screen: Screen, load: LoadComposition): Promise<Verbs> {
  if (Object.hasOwn(ownVerbs, name)) return ownVerbs;
  const { verbs = {} } = await rowsFor(screen, load);
  return { ...ownVerbs, ...verbs };
}

type Verbs = Record<string, Verb>;

/** A command that was misspelt is not a prompt: servers would start, and a model may cost money.
 *  One word alone, or with a -- behind it, is meant as a command, and so is one that is nearly one. */
function refuseMistyped(name: string, argv: string[], verbs: string[]) {
  if (verbs.length === 0) return; // a sentence, or a flag
  const isAlone = argv.filter((word) => !word.startsWith('-')).length === 1;
  const isNearly = verbs.some((verb) => distance(name.toLowerCase(), verb, 1) <= 1);
  if (!isAlone && !isNearly && !argv.includes('--')) return;
  const hint = nearestHint(name, verbs, `there are ${verbs.join(', ')}.`);
  throw usage(`there is no command ${name}; ${hint} For a prompt: quotes, or -p`);
}

async function startChat(argv: string[], screen: Screen, load: LoadComposition) {
  const cli = await import('./cli.ts');
  return cli.chat(argv, screen, await load());
}

/** The rows for a command, which needs no tools. A server may borrow a model for which there is a
 *  key; the rehearsal has nothing to say to it. */
async function rowsFor(screen: Screen, load: LoadComposition) {
  const { plainHost } = await import('./host.ts');
  const { PersonAtTerminal } = await import('./person-at-terminal.ts');
  const { apiKeyVariables, chooseModel } = await import('../18-minds/models.ts');
  const compose = await load();
  const person = new PersonAtTerminal(screen);
  const hasKey = () => apiKeyVariables(rows.models).some((name) => process.env[name]);
  const model = () => (hasKey() ? chooseModel(undefined, { models: rows.models }) : undefined);
  const rows = compose(plainHost({ person, model, warn: (text) => screen.warn(text) }));
  return rows;
}

/** Where a program runs, and no person is at a terminal. */
export async function rowsForScript(load: LoadComposition) {
  const { plainHost } = await import('./host.ts');
  const { nobody } = await import('../17-the-gate/person.ts');
  const compose = await load();
  return compose(plainHost({ person: { ...nobody } }));
}
