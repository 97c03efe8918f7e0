// What happens in the loop, as a person sees it.

import type { AgentEvent, Ending, Outcome, Usage } from '../../agent.ts';
import type { Json } from '../../mcp.ts';
import type { Program } from './program.ts';
import { cut } from './screen.ts';

const MARKS: Record<Outcome, string> = {
  worked: '✓', failed: '✗', denied: '⊘', aborted: '■', unknown: '?', unreadable: '?',
};
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

/** What is said at the end of a turn. After an error there is nothing to add. */
export const ENDINGS: Record<Ending, string> = {
  done: '',
  length: 'the answer was cut off: it reached the length that the model may write',
  refusal: 'the model declined to answer',
  aborted: 'stopped',
  time: 'stopped: it took too long',
  turns: 'stopped: the turn limit is reached; --max-turns raises it',
  error: '',
};

export class Show {
  private program: Program;
  private startedAt = 0;
  private running = new Map<string, { name: string; args?: Json; startedAt: number; progress?: Json }>();
  private used: Usage = { input: 0, output: 0, cached: 0 };

  constructor(program: Program) { this.program = program; }

  /** A turn begins. */
  begin(): void {
    this.startedAt = this.program.screen.clock();
    this.used = { input: 0, output: 0, cached: 0 };
    this.running.clear();
    this.program.screen.spin(() => this.now());
  }

  event(event: AgentEvent): void {
    const { screen, masker } = this.program;
    if (event.type === 'text') screen.stream(event.text);
    if (event.type === 'note') screen.warn(masker.text(event.text));
    if (event.type === 'error') screen.say(masker.text(event.message), 'red');
    if (event.type === 'tool_start') this.running.set(event.id, { ...event, startedAt: screen.clock() });
    if (event.type === 'tool_progress') Object.assign(this.running.get(event.id) ?? {}, { progress: event.progress });
    if (event.type === 'tool_end') this.toolEnded(event);
    if (event.type === 'usage')
      for (const key of ['input', 'output', 'cached'] as const) this.used[key] += event.usage[key];
    if (event.type === 'done') this.done(event);
  }

  /** What the spinner says: the tool that runs, with a bar if its server reports progress; or who else is at work. */
  private now(): string {
    const { agent, manager, screen } = this.program;
    const [tool] = this.running.values();
    const starting = manager.status().filter(({ state }) => state === 'connecting').map(({ name }) => name);
    const who = tool?.name ?? (starting.length > 0 ? `starting ${starting.join(', ')}` : agent.model.name);
    const time = seconds(screen.clock() - (tool?.startedAt ?? this.startedAt));
    return `${who} ${time}${tool?.progress ? ` ${bar(tool.progress)}` : ''}`;
  }

  private toolEnded({ id, name, outcome, ms, text }: Extract<AgentEvent, { type: 'tool_end' }>): void {
    const { screen } = this.program;
    const args = this.running.get(id)?.args;
    this.running.delete(id);
    const time = ms > 0 || outcome === 'worked' ? ` ${seconds(ms)}` : '';
    const end = `${time}${outcome === 'worked' ? '' : ` ${outcome}`}`;
    const call = cut(`${MARKS[outcome]} ${name}${inline(args)}`, screen.width - 1 - end.length);
    screen.say(call + end, outcome === 'worked' ? 'green' : 'red');
    if (outcome !== 'worked' && outcome !== 'aborted') screen.say(`  ${cut(text, screen.width - 3)}`, 'red');
  }

  private done({ ending, text }: Extract<AgentEvent, { type: 'done' }>): void {
    const { screen } = this.program;
    screen.stopSpinning();
    if (ending === 'done' && text.trim() === '') screen.say('(the model said nothing)', 'dim');
    if (ENDINGS[ending]) screen.say(ENDINGS[ending], 'yellow');
    screen.say(`${tokens(this.used)} · ${seconds(screen.clock() - this.startedAt)}`, 'dim');
  }
}

export function tokens({ input, output, cached }: Usage): string {
  if (input + output === 0) return 'no tokens';
  const fromCache = cached > 0 ? ` (${compact.format(cached)} cached)` : '';
  return `${compact.format(input)} tokens in${fromCache}, ${compact.format(output)} out`;
}

const seconds = (ms: number) => (ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);

/** The arguments in a few words; the question before the call showed them in full. */
function inline(args: Json = {}): string {
  const parts = Object.entries(args).map(([key, value]) => `${key}: ${cut(JSON.stringify(value) ?? '', 40)}`);
  return `(${parts.join(', ')})`;
}

function bar({ progress, total, message }: Json): string {
  const words = typeof message === 'string' ? ` ${message}` : '';
  if (typeof progress !== 'number') return words;
  if (typeof total !== 'number' || !(total > 0)) return `${progress}${words}`;
  const share = Math.min(1, Math.max(0, progress / total)) || 0; // 1e999 / 1e999 is not a number
  const full = Math.round(share * 20);
  return `[${'█'.repeat(full)}${'·'.repeat(20 - full)}] ${Math.round(share * 100)} %${words}`;
}
