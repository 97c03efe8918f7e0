// The chat, and one answer without a chat. `main.ts` loads this file when neither a command nor the
// version is wanted.

import type { AgentEvent, Ending, ModelQuery } from '../../agent.ts';
import { VERSION, textOf, type Json } from '../../mcp.ts';
import { EXAMPLES, REHEARSAL_BANNER, TRY } from '../18-minds/rehearsal.ts';
import { contextTable } from '../18-minds/seen.ts';
import { EXIT, usage } from './exit.ts';
import { plainHost, type Compose } from './host.ts';
import { helpText, readProgramOptions } from './command-line/options.ts';
import { Program } from './program.ts';
import { conversationList, resume, tellWhereWeAre } from './more/resume.ts';
import type { Screen } from './screen.ts';
import { ENDINGS, Show } from './show.ts';
import { completeLine } from './more/complete.ts';
import { PROMPT } from './input.ts';
import { isShellLine } from './shortcuts.ts';
import { isSlashCommand, slash } from './slash.ts';

/** A chat, or one answer. */
export async function chat(argv: string[], screen: Screen, compose: Compose): Promise<number> {
  const options = readProgramOptions(argv);
  if (options.help || options.version) {
    screen.print(options.help ? helpText(compose(plainHost())) : VERSION);
    return EXIT.done;
  }
  // What is piped to a prompt belongs to it. Without a prompt each line is one: a piped chat.
  const isPiped = !process.stdin.isTTY;
  options.print ||= options.json || (options.prompt !== '' && isPiped);
  if (options.print) {
    screen.isInteractive = false;
    const piped = isPiped ? await readAll(screen) : '';
    options.prompt = [options.prompt, piped].filter(Boolean).join('\n\n');
    if (options.prompt.trim() === '')
      throw usage('there is no prompt: give one as an argument or on stdin');
  }
  const program = new Program(options, screen, compose);
  try {
    const code = await (options.print ? answerOnce(program) : converse(program));
    return code === EXIT.done && program.trace.isLost ? EXIT.refused : code; // it was to be kept
  } finally {
    await program.close();
  }
}

async function readAll(screen: Screen) {
  const hint = 'waiting for the end of stdin; if nothing comes from there, add < /dev/null';
  const timer = setTimeout(() => screen.say(hint, 'dim'), 3000);
  let text = '';
  for await (const chunk of process.stdin.setEncoding('utf8')) text += chunk;
  clearTimeout(timer);
  return text.trim();
}

/** One prompt, one answer, and no question: what would need one is refused, and said so. */
async function answerOnce(program: Program) {
  const { agent, screen, options } = program;
  if (options.resume === '') throw usage(conversationList(program.session.list()));
  if (options.page) throw usage('--page is for a chat; with -p, write a --trace and look at it');
  const abort = new AbortController();
  const seen = new ExitStatus();
  const show = new Show(program);
  const report = options.json ? jsonReport(program) : undefined;
  screen.onInterrupt = () => {
    if (abort.signal.aborted) process.exit(EXIT.interrupted);
    abort.abort();
  };
  program.onEvent = (event) => {
    seen.event(event);
    if (report) report(event);
    else sayProblems(event, program);
    if (options.verbose && !report) show.callEvent(event);
  };
  await program.readNotes(abort.signal);
  const news = await program.news(abort.signal);
  const { text } = await agent.chat([options.prompt, ...news].join('\n\n'), abort.signal);
  if (!options.json && text) screen.printAnswer(text);
  return seen.exitCode();
}

// Who reads --json has written the prompt, and gets the answer in pieces.
const FOR_TRACES = ['prompt', 'query', 'answer'];

/** The events as lines of JSON. The first says which conversation this is, the last what it took. */
function jsonReport({
  agent,
  screen,
  masker,
  session,
  spending,
}: Program): (event: AgentEvent) => void {
  const startedAt = screen.clock();
  const print = (record: Json) =>
    screen.printJson(masker.json({ ...record, model: agent.model.name }));
  print({ type: 'session', id: session.id, version: VERSION });
  let asked: ModelQuery | undefined;
  let context: Json | undefined;
  return (event) => {
    if (event.type === 'query' && !event.purpose) asked = event;
    if (event.type === 'answer' && asked?.id === event.id)
      context = { ...contextTable(asked.seen(), event.usage), window: agent.window };
    if (FOR_TRACES.includes(event.type)) return;
    const ms = Math.round(screen.clock() - startedAt);
    const cost = spending.isUnpriced ? undefined : spending.money || undefined; // nothing is not told
    const totals = { usage: agent.usage, cost, context, ms };
    print(event.type === 'done' ? { ...event, ...totals } : event);
    if (event.type === 'error') screen.printJson(masker.json(event), process.stderr);
  };
}

function sayProblems(event: AgentEvent, program: Program) {
  const { screen, masker } = program;
  const isOfAgent = event.type === 'agent' && !['error', 'done'].includes(event.event.type);
  if (isOfAgent) return sayProblems(event.event, program); // how it ended is in its report
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
  cost: EXIT.turns,
};

/** What happened, as an exit code. */
class ExitStatus {
  private refusals = 0;
  private error = '';
  private ending: Ending = 'done';

  event(event: AgentEvent): void {
    if (event.type === 'agent') return this.ofAgent(event.event);
    if (event.type === 'error') this.error = event.kind;
    if (event.type === 'tool_end' && event.outcome === 'denied') this.refusals++;
    if (event.type === 'done') this.ending = event.ending;
  }

  /** A call that was refused counts, whoever wanted it. How a sub-agent ended is in its report. */
  private ofAgent(event: AgentEvent): void {
    if (event.type === 'agent') return this.ofAgent(event.event);
    if (event.type === 'tool_end') this.event(event);
  }

  exitCode(): number {
    if (this.ending === 'aborted') return EXIT.interrupted;
    if (this.ending === 'turns') return EXIT.turns;
    if (this.ending === 'length') return EXIT.length;
    if (this.ending === 'time') return EXIT.unreachable;
    if (this.ending === 'error') return ERROR_CODES[this.error] ?? EXIT.failed;
    return this.refusals > 0 ? EXIT.refused : EXIT.done;
  }
}

/** The chat. Esc and Ctrl-C stop what is going on; at the prompt Ctrl-C empties the line, and twice
 *  it quits. */
async function converse(program: Program) {
  const { agent, screen, person, options, shortcuts } = program;
  const show = new Show(program);
  const seen = new ExitStatus();
  let running: AbortController | undefined;
  let wantsOut = false;
  const stop = () => {
    if (person.leaveForm()) return; // of a server: it hears "cancel", and the turn goes on
    running?.abort();
    person.dismiss(); // the open question, and those behind it
    screen.input.takeBack(); // what was to be sent next
  };
  screen.onInterrupt = () => {
    if (running && !running.signal.aborted) return stop();
    if (!running && screen.input.clear()) return void (wantsOut = false);
    if (wantsOut || !screen.isInteractive) {
      screen.stop(); // leaves the shell a line of its own
      process.exit(EXIT.interrupted);
    }
    wantsOut = true;
    if (running) screen.say('(stopping… Ctrl-C once more quits at once)', 'dim');
    else screen.say('(Ctrl-C again, or /exit, to quit)', 'dim');
  };
  screen.input.onEscape = () => {
    if (running && !running.signal.aborted) stop();
  };
  program.onEvent = (event) => {
    seen.event(event);
    show.event(event);
  };
  const takeTurn = async (line: string, signal: AbortSignal, isTyped: boolean) => {
    const isForUs = isSlashCommand(line);
    const said = isForUs ? await slash(line, program, signal) : undefined;
    if (isForUs && !said) return;
    if (isTyped && isShellLine(line)) return shortcuts.run(line, signal);
    await program.readNotes(signal);
    const prompt = said ?? (await shortcuts.expand(line, isTyped, signal));
    if (prompt === undefined) return screen.input.giveBack(line);
    show.begin();
    program.edits.nextAnswer();
    await agent.chat(prompt, signal);
  };
  if (options.resume === '') {
    running = new AbortController();
    const isChosen = await resume('', program, running.signal).catch((error) => {
      throw usage(error.message);
    });
    if (!isChosen) screen.say('none was chosen: this is a new conversation', 'dim');
    running = undefined;
  }
  if (screen.isInteractive) {
    greet(program);
    connectKeys(program);
    program.composition.sources?.watch?.((text) => screen.say(program.masker.text(text), 'dim'));
  }
  if (options.page) await slash('/page', program, new AbortController().signal);
  screen.input.open();
  let line: string | undefined = options.prompt; // of the command line, if it has one
  let isTyped = false; // by a person, at this terminal
  while (line !== undefined) {
    wantsOut = false;
    if (/^\s*(\/(exit|quit)(\s|$)|(exit|quit)\s*$)/.test(line)) break;
    if (line.trim() !== '') {
      running = new AbortController();
      person.attend();
      await takeTurn(line, running.signal, isTyped);
      running = undefined;
      person.attend(); // what was stopped is over: who asks now is another
      wantsOut = false;
    }
    showMode(program);
    line = await screen.input.prompt();
    isTyped = screen.isInteractive;
  }
  return screen.isInteractive ? EXIT.done : seen.exitCode();
}

function greet(program: Program) {
  const { agent, gate, screen } = program;
  const { name } = agent.model;
  screen.say(`mcp-by-hand ${VERSION} · model ${name} · mode ${gate.mode} · /help`, 'dim');
  if (name === 'rehearsal') {
    screen.say(REHEARSAL_BANNER, 'dim');
    screen.say([TRY, ...EXAMPLES].join('\n  • '), 'dim');
  }
  tellWhereWeAre(program);
}

/** The keys that need to know more than the terminal: Up, Tab and Shift-Tab. */
function connectKeys(program: Program) {
  const { screen, gate, history } = program;
  const { input } = screen;
  let isTold = false;
  input.recall(history.read());
  input.onPrompt = (text) => {
    try {
      history.add(text);
    } catch (error) {
      if (!isTold) screen.warn(`what you type is not kept: ${textOf(error)}`);
      isTold = true;
    }
  };
  input.complete = (before) => completeLine(before, program);
  input.onShiftTab = () => {
    gate.nextMode();
    showMode(program);
  };
}

/** Beside the prompt, unless it is the usual one. */
function showMode({ screen, gate }: Program) {
  screen.input.setLabel(gate.mode === 'ask' ? PROMPT : `${gate.mode} ${PROMPT}`);
}
