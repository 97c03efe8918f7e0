// The program that people run: a chat, one answer, or a command about servers.

import type { AgentEvent, Ending } from '../../agent.ts';
import { VERSION } from '../../mcp.ts';
import { REHEARSAL_BANNER } from '../18-minds/rehearsal.ts';
import { plainHost, type Compose, type Composition } from './host.ts';
import { mcpCommand } from './mcp-command.ts';
import { EXIT, help, readOptions, Stop, usage } from './options.ts';
import { probe } from './probe.ts';
import { PersonAtTerminal } from './person-at-terminal.ts';
import { Program } from './program.ts';
import { cut, Screen } from './screen.ts';
import { ENDINGS, Show } from './show.ts';
import { isCommand, slash } from './slash.ts';
import { trustCommand } from './trust-command.ts';

type Run = (args: string[], screen: Screen, composition: Composition) => Promise<number>;
const COMMANDS: Record<string, Run> = {
  mcp: mcpCommand,
  trust: trustCommand,
  probe,
};
// Like the shells: 128 and the number of the signal.
const SIGNALS = { SIGTERM: 128 + 15, SIGHUP: 128 + 1, SIGQUIT: 128 + 3 };

/** A program with these rows. */
export async function main(argv: string[], compose: Compose): Promise<void> {
  // Looked at before they are parsed: a mistake in them is reported as they say. What comes after
  // -- is data.
  const flags = argv.includes('--') ? argv.slice(0, argv.indexOf('--')) : argv;
  const screen = new Screen({ color: !flags.includes('--no-color') });
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
  const command = Object.hasOwn(COMMANDS, argv[0] ?? '') ? COMMANDS[argv[0]!] : undefined;
  const isHelp = flags.some((flag) => flag === '--help' || flag === '-h');
  const host = plainHost({
    person: new PersonAtTerminal(screen),
    warn: (text) => screen.warn(text),
  });
  const running = command && !isHelp
    ? command(argv.slice(1), screen, compose(host))
    : chat(argv, screen, compose);
  const code = await running.catch(fail);
  await screen.close();
  process.exit(code); // also if something is still open: a socket that is kept alive, say
}

function report(error: Error, isJson: boolean, screen: Screen): void {
  const { kind = 'unexpected', message } = error as Stop;
  if (isJson) screen.printJson(JSON.stringify({ type: 'error', kind, message }), process.stderr);
  else screen.say(kind === 'unexpected' ? (error.stack ?? message) : message, 'red');
}

async function chat(argv: string[], screen: Screen, compose: Compose): Promise<number> {
  const options = readOptions(argv);
  if (options.help || options.version) {
    screen.print(options.help ? help(compose(plainHost()).models) : VERSION);
    return EXIT.done;
  }
  // What is piped to a prompt belongs to it. Without a prompt each line is one: a piped chat.
  const isPiped = !process.stdin.isTTY;
  const isOneShot = options.print || options.json || (options.prompt !== '' && isPiped);
  if (isOneShot) {
    screen.isInteractive = false;
    const piped = isPiped ? await readAll(screen) : '';
    options.prompt = [options.prompt, piped].filter(Boolean).join('\n\n');
    if (options.prompt.trim() === '')
      throw usage('there is no prompt: give one as an argument or on stdin');
  }
  const program = new Program(options, screen, compose);
  try {
    const code = await (isOneShot ? answerOnce(program) : converse(program));
    return code === EXIT.done && program.isTraceLost ? EXIT.refused : code; // it was to be kept
  } finally {
    await program.close();
  }
}

async function readAll(screen: Screen): Promise<string> {
  const hint = 'waiting for the end of stdin; if nothing comes from there, add < /dev/null';
  const timer = setTimeout(() => screen.say(hint, 'dim'), 3000);
  let text = '';
  for await (const chunk of process.stdin.setEncoding('utf8')) text += chunk;
  clearTimeout(timer);
  return text.trim();
}

/** One prompt, one answer, and no question: what would need one is refused, and said so. */
async function answerOnce(program: Program): Promise<number> {
  const { agent, screen, options, masker } = program;
  const abort = new AbortController();
  const seen = new Seen();
  screen.onInterrupt = () => {
    if (abort.signal.aborted) process.exit(EXIT.interrupted);
    abort.abort();
  };
  program.onEvent = (event) => {
    seen.event(event);
    if (options.json) screen.printJson(masker.json({ ...event, model: agent.model.name }));
    if (options.json && event.type === 'error')
      screen.printJson(masker.json(event), process.stderr);
    if (!options.json) sayProblems(event, program);
  };
  const { text } = await agent.chat(options.prompt, abort.signal);
  if (!options.json && text) screen.print(text);
  return seen.exitCode();
}

function sayProblems(event: AgentEvent, { screen, masker }: Program): void {
  if (event.type === 'error') screen.say(masker.text(event.message), 'red');
  if (event.type === 'note') screen.warn(masker.text(event.text));
  if (event.type === 'tool_end' && event.outcome === 'denied')
    screen.warn(`${event.name}: ${masker.text(event.text)}`);
  if (event.type === 'done' && ENDINGS[event.ending]) screen.warn(ENDINGS[event.ending]);
}

const ERROR_CODES: Record<string, number> = {
  unreachable: EXIT.unreachable,
  unexpected: EXIT.unexpected,
  config: EXIT.refused,
};

/** What happened, as an exit code. */
class Seen {
  private refusals = 0;
  private error = '';
  private ending: Ending = 'done';

  event(event: AgentEvent): void {
    if (event.type === 'error') this.error = event.kind;
    if (event.type === 'tool_end' && event.outcome === 'denied') this.refusals++;
    if (event.type === 'done') this.ending = event.ending;
  }

  exitCode(): number {
    if (this.ending === 'aborted') return EXIT.interrupted;
    if (this.ending === 'turns') return EXIT.turns;
    if (this.ending === 'time') return EXIT.unreachable;
    if (this.ending === 'error') return ERROR_CODES[this.error] ?? EXIT.failed;
    return this.refusals > 0 ? EXIT.refused : EXIT.done;
  }
}

/** The chat. Ctrl-C stops what is going on; at the prompt it empties the line; twice it quits. */
async function converse(program: Program): Promise<number> {
  const { agent, screen, person, options } = program;
  const show = new Show(program);
  const seen = new Seen();
  let running: AbortController | undefined;
  let wantsOut = false;
  screen.onInterrupt = () => {
    if (running && !running.signal.aborted) {
      running.abort();
      return person.dismiss(); // the open question, and those behind it
    }
    if (screen.clearInput()) return void (wantsOut = false);
    if (wantsOut || running || !screen.isInteractive) {
      screen.stop(); // leaves the shell a line of its own
      process.exit(EXIT.interrupted);
    }
    wantsOut = true;
    screen.say('(Ctrl-C again, or /exit, to quit)', 'dim');
  };
  program.onEvent = (event) => {
    seen.event(event);
    show.event(event);
  };
  const takeTurn = async (line: string, signal: AbortSignal) => {
    if (isCommand(line)) return slash(line, program, signal);
    show.begin();
    await agent.chat(line, signal);
  };
  if (screen.isInteractive) greet(program);
  screen.open();
  let line: string | undefined = options.prompt; // of the command line, if it has one
  while (line !== undefined) {
    wantsOut = false;
    if (/^\s*\/(exit|quit)(\s|$)/.test(line)) break;
    if (line.trim() !== '') {
      running = new AbortController();
      person.attend();
      await takeTurn(line, running.signal);
      running = undefined;
    }
    line = await screen.prompt('› ');
  }
  return screen.isInteractive ? EXIT.done : seen.exitCode();
}

function greet({ agent, gate, screen }: Program): void {
  const { name } = agent.model;
  screen.say(`mcp-by-hand ${VERSION} · model ${name} · mode ${gate.mode} · /help`, 'dim');
  if (name === 'rehearsal') screen.say(REHEARSAL_BANNER, 'dim');
  const last = agent.turns.findLast((turn) => turn.role === 'user');
  const words = `going on, ${agent.turns.length} turns; the last prompt was: ${last?.text}`;
  if (last) screen.say(cut(words, screen.width - 1), 'dim');
}
