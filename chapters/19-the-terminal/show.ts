// What happens in the loop, as a person sees it.

import { stripVTControlCharacters } from 'node:util';
import type { AgentEvent, Ending, Outcome, Tool, ToolEnd, Touch, Usage } from '../../agent.ts';
import type { Result, ToolCall, Turn, WholeText } from '../../agent.ts';
import { blocksToText, isObject, type Json } from '../../mcp.ts';
import { changeLines } from '../17-the-gate/change.ts';
import { spelledOut, visible } from '../17-the-gate/safe-text.ts';
import { replacedBy } from '../18-minds/compact.ts';
import type { Program } from './program.ts';
import { cutToWidth, type Style } from './screen.ts';
import { fold, rowsOf } from './fold.ts';
import { PROMPT } from './input.ts';

let compact: Intl.NumberFormat | undefined;
/** 1,234 as 1.2K. What knows how is made when it is needed: that takes as long as a tenth of our start. */
function inFew(count: number): string {
  compact ??= new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
  return compact.format(count);
}

/** What is said at the end of a turn. After an error there is nothing to add. */
export const ENDINGS: Record<Ending, string> = {
  done: '',
  length: 'the answer was cut off: it reached its greatest length; --max-tokens raises it',
  refusal: 'the model declined to answer',
  aborted: 'stopped',
  time: 'stopped: it took too long',
  turns: 'stopped: the turn limit is reached; --max-turns raises it',
  error: '',
};

export class Show {
  private program: Program;
  private startedAt = 0;
  private calls = new Calls();
  private ofAgents = new Map<string, Calls>(); // by the names of the sub-agents
  private used: Usage = { input: 0, output: 0, cached: 0 };

  constructor(program: Program) {
    this.program = program;
  }

  /** A turn begins. */
  begin(): void {
    this.startedAt = this.program.screen.clock();
    this.used = { input: 0, output: 0, cached: 0 };
    this.calls.running.clear();
    this.ofAgents.clear();
    this.program.screen.startAnswer();
    this.program.screen.spin(() => this.now());
  }

  event(event: AgentEvent): void {
    const { screen, masker } = this.program;
    if (event.type === 'text') screen.stream(event.text);
    if (event.type === 'note') screen.warn(masker.text(event.text));
    if (event.type === 'error') screen.say(masker.text(event.message), 'red');
    if (event.type === 'agent') this.agentEvent(event);
    this.callEvent(event);
    if (event.type === 'usage') this.count(event.usage);
    if (event.type === 'done') this.done(event);
  }

  /** What the spinner says: the tool that runs, with a bar if its server reports progress, and the end of what a
   *  command has printed; or who else is at work. */
  private now(): [string, ...string[]] {
    const { agent, manager, screen, masker } = this.program;
    const [call] = this.calls.running.values();
    const starting = manager
      .status()
      .filter(({ state }) => state === 'connecting')
      .map(({ name }) => name);
    const who =
      call?.name ?? (starting.length > 0 ? `starting ${starting.join(', ')}` : agent.model.name);
    const time = inSeconds(screen.clock() - (call?.startedAt ?? this.startedAt));
    const first = progressLine(who, time, call?.progress, screen.width);
    const more = call ? liveRows(call, screen.width - 1) : [];
    return [masker.text(first), ...more.map((row) => masker.heard(row))];
  }

  /** Turns of a conversation that goes on, as they were. */
  turns(turns: Turn[]): void {
    const { screen, masker, agent } = this.program;
    let calls: ToolCall[] = [];
    for (const turn of turns) {
      if (turn.role === 'user')
        screen.sayLines(promptRows(masker.text(turn.text), screen.width - 1));
      if (turn.role === 'assistant') {
        calls = turn.calls;
        if (turn.text !== '') screen.printAnswer(masker.text(turn.text.slice(-MAX_WHOLE)));
      }
      const results = turn.role === 'tools' ? turn.results : [];
      for (const [n, result] of results.entries()) {
        const args = calls[n]?.args ?? {};
        const kind = kindOf(agent.table.get(result.name), args);
        this.callEnded(pastCall(result, { name: result.name, args, kind, startedAt: 0 }));
      }
    }
  }

  /** A call that has ended is shown, and kept for /last. */
  callEvent(event: AgentEvent): void {
    const { agent, screen } = this.program;
    const ended = this.calls.event(event, agent.table, screen.clock());
    if (ended) this.callEnded(ended);
  }

  /** A sub-agent's work, below its name: the calls that have ended, and what else went wrong. */
  private agentEvent({ name, event }: Extract<AgentEvent, { type: 'agent' }>, depth = 1): void {
    const { agent, screen, masker } = this.program;
    const say = (text: string, style: Style) =>
      screen.say(`${'  '.repeat(depth)}${name}: ${text}`, style);
    if (event.type === 'agent') return this.agentEvent(event, depth + 1);
    if (event.type === 'usage') this.count(event.usage);
    if (event.type === 'note') say(masker.text(event.text), 'dim');
    if (event.type === 'error') say(masker.text(event.message), 'red');
    const calls = this.ofAgents.get(name) ?? new Calls();
    this.ofAgents.set(name, calls);
    const ended = calls.event(event, agent.table, screen.clock());
    if (!ended) return;
    const columns = screen.width - 1 - 2 * depth - name.length - 2;
    const { head } = endedRows({ ...ended, text: masker.heard(ended.text) }, columns);
    say(head, ended.outcome === 'worked' ? 'dim' : 'red');
  }

  private count(usage: Usage) {
    for (const key of ['input', 'output', 'cached'] as const) this.used[key] += usage[key];
  }

  private callEnded(call: EndedCall) {
    const { screen, masker, options } = this.program;
    const text = masker.heard(call.text);
    const ended = {
      ...call,
      text,
      change: call.change && { ...call.change, diff: masker.text(call.change.diff) },
    };
    this.program.lastCall = ended;
    const { head, rows } = endedRows(ended, screen.width - 1, options.verbose);
    const hasFailed = call.outcome !== 'worked';
    screen.say(head, hasFailed ? 'red' : 'green');
    screen.sayLines(rows, hasFailed ? 'red' : 'dim');
  }

  private done({ ending, text }: Extract<AgentEvent, { type: 'done' }>) {
    const { screen } = this.program;
    screen.stopSpinning();
    if (ending === 'done' && text.trim() === '') screen.say('(the model said nothing)', 'dim');
    if (ENDINGS[ending]) screen.say(ENDINGS[ending], 'yellow');
    const time = inSeconds(screen.clock() - this.startedAt);
    const used = [tokens(this.used), time, gauge(this.program)].filter(Boolean);
    screen.say(used.join(' · '), 'dim');
  }
}

export function tokens({ input, output, cached }: Usage): string {
  if (input + output === 0) return 'no tokens';
  const fromCache = cached > 0 ? ` (${inFew(cached)} cached)` : '';
  return `${inFew(input)} tokens in${fromCache}, ${inFew(output)} out`;
}

/** How much of the model's context the conversation takes, as far as that is known. */
export function gauge({ agent }: Program): string {
  const { context, share } = agent;
  if (context === 0) return '';
  if (share === 0) return `context ${inFew(context)}`;
  return `context ${inFew(context)}, ${Math.round(share * 100)} %`;
}

export function bar({ progress, total }: Json, width = 20): string {
  if (typeof progress !== 'number') return '';
  if (typeof total !== 'number' || !(total > 0)) return `${progress}`;
  const share = Math.min(1, Math.max(0, progress / total)) || 0; // 1e999 / 1e999 is not a number
  const full = Math.round(share * width);
  const drawn = width > 0 ? `[${'█'.repeat(full)}${'·'.repeat(width - full)}] ` : '';
  return `${drawn}${Math.round(share * 100)} %`;
}

/** In a narrow window the name is shortened: what changes is behind it. Words of a server come last,
 *  where the row is cut. */
export function progressLine(name: string, time: string, progress: Json = {}, columns = 80) {
  const how = bar(progress, Math.max(0, Math.min(20, columns - 30)));
  const behind = [time, how].filter(Boolean).join(' ');
  const room = Math.max(8, columns - behind.length - 4); // beside the sign, and blanks
  const words = typeof progress.message === 'string' ? progress.message : '';
  return [cutToWidth(name, room), behind, words].filter(Boolean).join(' ');
}

// ─── A call, in lines ────────────────────────────────────────────────────────────────────────────

// While it runs, when it has ended, and whole. What a command prints and what a server answers is
// foreign text: each line of it is behind a gutter of ours, so that none can pass for one of ours.

type ShownCall = {
  name: string;
  args: Json;
  kind?: Touch['kind'] | 'mcp'; // of its row
  startedAt: number;
  progress?: Json;
};
/** Of one that is read from a file, it is not known how long it took. */
export type EndedCall = ShownCall &
  Pick<ToolEnd, 'outcome' | 'text' | 'whole' | 'change' | 'isAsked'> & { ms?: number };

const MARKS: Record<Outcome, string> = {
  worked: '✓',
  failed: '✗',
  denied: '⊘',
  aborted: '■',
  unknown: '?',
  unreadable: '?',
};
const COMMAND_ROWS = 8;
const LIVE_COMMAND_ROWS = 3;
const LIVE_LINES = 5;
const FEW_LINES = 4; // of an answer
const LAST_LINES = 10; // of a command
const MESSAGE_ROWS = 12;
const DIFF_ROWS = 16;
const PROMPT_ROWS = 12;
const MAX_WHOLE = 200_000; // characters

/** The calls that run, by their events. */
class Calls {
  readonly running = new Map<string, ShownCall>();

  /** The call that has ended with this event, if it is such an event. */
  event(event: AgentEvent, table: Map<string, Tool>, now: number): EndedCall | undefined {
    if (event.type === 'tool_start') {
      const { id, name, args = {} } = event;
      this.running.set(id, { name, args, kind: kindOf(table.get(name), args), startedAt: now });
    }
    if (event.type === 'tool_progress') {
      const call = this.running.get(event.id);
      if (call && !goesBack(event.progress, call.progress)) call.progress = event.progress;
    }
    if (event.type !== 'tool_end') return undefined;
    const call = this.running.get(event.id);
    this.running.delete(event.id);
    return { args: {}, startedAt: now, ...call, ...event };
  }
}

/** It must increase, says the specification. What does not is a slip, or an old message. */
function goesBack({ progress }: Json, before: Json = {}) {
  return (
    typeof progress === 'number' &&
    typeof before.progress === 'number' &&
    progress < before.progress
  );
}

/** Of a summary its first line. */
function promptRows(text: string, columns: number) {
  const isSummary = replacedBy(text) !== undefined;
  const lines = isSummary ? text.split('\n', 1) : text.split('\n');
  const [first = '', ...more] = lines;
  const all = [PROMPT + first, ...behind(' '.repeat(PROMPT.length), more)];
  return fitted(all.map(visible), columns, PROMPT_ROWS);
}

const LONG_OUTPUT = /^\[\d+ bytes in (\d+) lines, .*; the whole is in (.+)\]\n/;

/** The diff of an edit, and where a long output is, are in the words that the model got. */
function pastCall({ blocks, isError, outcome }: Result, call: ShownCall): EndedCall {
  const text = blocksToText(blocks);
  const [, diff] = call.kind === 'write' ? (/^edited .*\n(@@ [^]*)/.exec(text) ?? []) : [];
  const change = diff === undefined ? undefined : { diff, notes: [] };
  const [, lines, path = ''] = (call.kind === 'shell' && LONG_OUTPUT.exec(text)) || [];
  const whole = path === '' ? undefined : { lines: Number(lines), path };
  return { ...call, outcome: outcome ?? (isError ? 'failed' : 'worked'), text, change, whole };
}

function kindOf(tool: Tool | undefined, args: Json): ShownCall['kind'] {
  return tool?.origin ? 'mcp' : tool?.touches?.(args).kind;
}

// ─── While it runs ───────────────────────────────────────────────────────────────────────────────

/** Below the spinner: of a command what it is, and the end of what it has printed. */
function liveRows({ kind, args, progress }: ShownCall, columns: number) {
  if (kind !== 'shell') return [];
  const output = isObject(progress) && typeof progress.output === 'string' ? progress.output : '';
  const last = output === '' ? [] : drawnLines(output).slice(-LIVE_LINES);
  const shown = last.map((line) => rowsOf(`  │ ${line}`, columns)[0]!);
  return [...fitted(commandLines(args), columns, LIVE_COMMAND_ROWS), ...shown];
}

/** As a shell shows it: "> " where a command goes on. */
function commandLines({ command = '' }: Json) {
  const [first = '', ...more] = String(command).trimEnd().split('\n');
  return [`  $ ${first}`, ...more.map((line) => `  > ${line}`)];
}

/** What a command wrote, as a terminal would draw it: without colours, and of a line that is written
 *  over again and again its last state. */
function drawnLines(output: string) {
  const lines = stripVTControlCharacters(output).replace(/\n$/, '').split('\n');
  return lines.map((line) => line.replace(/\r$/, '')).map(lastState);
}

function lastState(line: string) {
  return line.slice(line.lastIndexOf('\r') + 1);
}

function withoutEmptyEnds(lines: string[]) {
  const isFull = (line: string) => line.trim() !== '';
  return lines.slice(Math.max(0, lines.findIndex(isFull)), lines.findLastIndex(isFull) + 1);
}

// ─── When it has ended ───────────────────────────────────────────────────────────────────────────

export function endedRows(call: EndedCall, columns: number, isVerbose = false) {
  const rows = isVerbose ? wholeRows(call, columns) : someRows(call, columns);
  return { head: headOf(call, columns), rows };
}

function headOf(call: EndedCall, columns: number) {
  const { name, args, outcome, ms, change } = call;
  const isTimed = ms !== undefined && (ms > 0 || outcome === 'worked');
  const time = isTimed ? ` ${inSeconds(ms)}` : '';
  const end = `${time}${outcome === 'worked' ? howMuch(call) : ` ${outcome}`}`;
  if (isCommand(call))
    return `${MARKS[outcome]} ${name}${time}, ${cutToWidth(lastLineOf(call), columns)}`;
  const told = change ? { path: args.path } : args; // the diff tells the others
  return cutToWidth(`${MARKS[outcome]} ${name}${inline(told)}`, columns - end.length) + end;
}

/** Of what was read or found nothing is shown, if it is more than a line; of a change nothing once
 *  more that was in the question. */
function howMuch({ kind, text, change, isAsked, args }: EndedCall) {
  const count = linesOf(text).length;
  if (kind === 'read' && count > 1) return `, ${count} lines`;
  const [summary = ''] = change && isAsked ? changeLines(change, `${args.path}`).slice(-1) : [];
  return summary && `,${summary.slice(summary.lastIndexOf(':') + 1)}`;
}

const linesOf = (text: string) => text.replace(/\n$/, '').split('\n');

/** A command that was run: only then its text ends with how it ended. */
const isCommand = ({ kind, outcome, ms }: EndedCall) =>
  kind === 'shell' && outcome !== 'denied' && (outcome !== 'aborted' || ms !== 0);

const lastLineOf = ({ text }: EndedCall) => text.slice(text.lastIndexOf('\n') + 1);

function someRows(call: EndedCall, columns: number) {
  const { outcome, kind, change, text, args, whole, isAsked } = call;
  const hasFailed = outcome !== 'worked';
  if (isCommand(call)) {
    const output = text.slice(0, text.length - lastLineOf(call).length);
    const command = fitted(commandLines(args), columns, COMMAND_ROWS);
    const lines = withoutEmptyEnds(drawnLines(output));
    return [...command, ...endOf(whole ? lines.slice(1) : lines, columns, whole)];
  }
  if (change && isAsked) return [];
  if (change && change.diff !== '')
    return fitted(changeLines(change, String(args.path)).slice(0, -1), columns, DIFF_ROWS);
  if (outcome === 'aborted') return [];
  const lines = linesOf(text);
  if (hasFailed) return messageRows(lines, columns);
  const isTold = kind === 'write' || (kind === 'read' && lines.length > 1); // by the head
  return isTold ? [] : beginningOf(lines, columns, whole);
}

/** What to do about it is often the end of a line that takes many rows: no line is folded in its middle. */
function messageRows(lines: string[], columns: number) {
  const rows = behind('  ', lines).flatMap((line) => rowsOf(line, columns));
  return fold(rows, { columns, rows: MESSAGE_ROWS });
}

/** All of it if there is room. A question folds each long line; here only too many rows are. */
function fitted(lines: string[], columns: number, rows: number) {
  const all = lines.flatMap((line) => rowsOf(line, columns));
  return all.length <= rows ? all : fold(lines, { columns, rows });
}

const behind = (gutter: string, lines: string[]) => lines.map((line) => gutter + line);

function beginningOf(lines: string[], columns: number, whole?: WholeText) {
  const more = (whole?.lines ?? lines.length) - FEW_LINES;
  const rows = quotedRows(lines.slice(0, FEW_LINES), FEW_LINES, columns);
  if (more <= 0 && !whole) return rows;
  return [...rows, ...rowsOf(`  … ${more} more ${lineWord(more)}; ${whereAll(whole)}`, columns)];
}

function endOf(lines: string[], columns: number, whole?: WholeText) {
  const before = (whole?.lines ?? lines.length) - LAST_LINES;
  const rows = quotedRows(lines.slice(-LAST_LINES), LAST_LINES, columns);
  if (before <= 0) return rows;
  return [
    ...rowsOf(`  … after ${before} ${lineWord(before)}; ${whereAll(whole)}`, columns),
    ...rows,
  ];
}

const whereAll = (whole?: WholeText) =>
  whole ? `all of it is in ${whole.path}` : '/last shows all';

const quotedRows = (lines: string[], most: number, columns: number) =>
  fitted(behind('  │ ', lines), columns, 2 * most);

const lineWord = (count: number) => (count === 1 ? 'line' : 'lines');

/** The arguments in a few words; the question before the call showed them in full. */
function inline(args: Json) {
  const parts = Object.entries(args).map(
    ([key, value]) => `${key}: ${cutToWidth(JSON.stringify(value) ?? '', 40)}`,
  );
  return `(${parts.join(', ')})`;
}

export const inSeconds = (ms: number) =>
  ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;

// ─── Whole ───────────────────────────────────────────────────────────────────────────────────────

/** All of it, up to a limit, with everything visible that is in it. */
export function wholeRows(call: EndedCall, columns: number): string[] {
  const { args, text, change, kind } = call;
  const told = kind === 'shell' ? commandLines(args) : spelledOut(args);
  const diff = change && change.diff !== '' ? changeLines(change, String(args.path)) : [];
  const answer = diff.length > 0 ? text.replace(/\n@@ [^]*/, '') : text; // the model gets it, too
  const result = visible(answer)
    .slice(0, MAX_WHOLE)
    .split('\n')
    .map((line) => `  │ ${line}`);
  const lines = [...bounded(told), ...diff, ...result];
  if (text.length > MAX_WHOLE) lines.push(`  … ${text.length - MAX_WHOLE} more characters`);
  return lines.flatMap((line) => rowsOf(line, columns));
}

function bounded(lines: string[]) {
  let length = 0;
  const end = lines.findIndex((line) => (length += line.length) > MAX_WHOLE);
  if (end === -1) return lines;
  const [cutLine = ''] = lines.slice(end, end + 1);
  return [
    ...lines.slice(0, end),
    `${cutLine.slice(0, 1000)} …`,
    `  … ${lines.length - end - 1} more lines`,
  ];
}
