// What happens in the loop, as a person sees it.

import type { AgentEvent, Ending, Usage } from '../../agent.ts';
import type { Json } from '../../mcp.ts';
import { Calls, endedRows, liveRows, inSeconds, type EndedCall } from './calls.ts';
import type { Program } from './program.ts';
import type { Style } from './screen.ts';

const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

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
    const first = `${who} ${time}${call?.progress ? ` ${bar(call.progress)}` : ''}`;
    const more = call ? liveRows(call, screen.width - 1) : [];
    return [masker.text(first), ...more.map((row) => masker.heard(row))];
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

  private count(usage: Usage): void {
    for (const key of ['input', 'output', 'cached'] as const) this.used[key] += usage[key];
  }

  private callEnded(call: EndedCall): void {
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

  private done({ ending, text }: Extract<AgentEvent, { type: 'done' }>): void {
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
  const fromCache = cached > 0 ? ` (${compact.format(cached)} cached)` : '';
  return `${compact.format(input)} tokens in${fromCache}, ${compact.format(output)} out`;
}

/** How much of the model's context the conversation takes, as far as that is known. */
export function gauge({ agent }: Program): string {
  const { context, share } = agent;
  if (context === 0) return '';
  if (share === 0) return `context ${compact.format(context)}`;
  return `context ${compact.format(context)}, ${Math.round(share * 100)} %`;
}

function bar({ progress, total, message }: Json): string {
  const words = typeof message === 'string' ? ` ${message}` : '';
  if (typeof progress !== 'number') return words;
  if (typeof total !== 'number' || !(total > 0)) return `${progress}${words}`;
  const share = Math.min(1, Math.max(0, progress / total)) || 0; // 1e999 / 1e999 is not a number
  const full = Math.round(share * 20);
  return `[${'█'.repeat(full)}${'·'.repeat(20 - full)}] ${Math.round(share * 100)} %${words}`;
}
