// delegate.ts: an agent that gives a part of its work to another one, and gets a report.
//
// The other one has the same model, gate, servers and folder, and a conversation of its own: what
// it reads on the way does not fill ours. It starts no process and connects to nothing. Every call
// of it passes the same gate and waits in the same lines.

import type {
  Agent,
  AgentEvent,
  ChatEnd,
  SwitchedOff,
  Tool,
  ToolContext,
  ToolEnd,
  ToolOutput,
} from '../../agent.ts';
import type { Json } from '../../mcp.ts';
import { unlessAborted } from '../15-the-loop/unless-aborted.ts';
import { atMost } from '../16-hands/aside.ts';
import { nearest } from '../16-hands/nearest.ts';
import { inWords } from '../16-hands/results.ts';
import { plain, quoted } from '../17-the-gate/safe-text.ts';

const DELEGATE = 'delegate';
const MAX_DEPTH = 2; // those that a sub-agent starts start no others
const MAX_AT_ONCE = 4; // of one agent
const MAX_IN_ALL = 20; // for one prompt, at all depths
const MAX_TURNS = 25;
const MAX_REPORT = 20_000; // characters
const MAX_TASK_SHOWN = 60;
const MAX_TOLD = 10; // calls that did not work

const definition = {
  name: DELEGATE,
  description:
    'Gives a task to a sub-agent with the same tools and a conversation of its own, and returns ' +
    'its report. For work that reads much and needs few words as an answer, or for several tasks ' +
    'that do not depend on each other: call it several times in one answer, and they run side by ' +
    'side. It knows nothing of this conversation: the task must say everything that it needs.',
  inputSchema: {
    type: 'object',
    properties: {
      task: { type: 'string', minLength: 1, description: 'What to do, and what to report.' },
      tools: {
        type: 'array',
        items: { type: 'string' },
        description: 'Only these tools: names, or mcp__server for all of a server. Else all.',
      },
    },
    required: ['task'],
    additionalProperties: false,
  },
};

const BRIEFING = `Another agent has given you the task below. Do it with your tools. You cannot ask
it anything. Your last answer is your report: say what you found or did, and what did not work.`;

/** All sub-agents of one prompt. */
type Crew = { started: number };

/** A row of the agent's table. */
export function delegate(): Tool {
  const crews = new WeakMap<AbortSignal, Crew>(); // a prompt has a signal of its own
  return rowAt(1, (signal) => {
    const crew = crews.get(signal) ?? { started: 0 };
    crews.set(signal, crew);
    return crew;
  });
}

/** `readOnly`: several run side by side. It touches nothing: what others do, the gate judges. */
function rowAt(depth: number, crewFor: (signal: AbortSignal) => Crew): Tool {
  const whenFree = atMost(MAX_AT_ONCE);
  return {
    definition,
    readOnly: true,
    touches: () => ({ kind: 'nothing' }),
    run: async (args, context) => {
      const crew = crewFor(context.signal);
      if (crew.started >= MAX_IN_ALL) return inWords(TOO_MANY, true);
      crew.started++;
      const name = `sub-agent ${crew.started}`;
      const deeper = depth < MAX_DEPTH ? [rowAt(depth + 1, () => crew)] : [];
      const { signal } = context;
      const working = whenFree(async () => {
        signal.throwIfAborted(); // while it waited
        return work(args, context, name, deeper);
      });
      return unlessAborted(working, signal);
    },
  };
}

const TOO_MANY = `Not started: one prompt has at most ${MAX_IN_ALL} sub-agents. Do it yourself.`;

async function work(
  args: Json,
  context: ToolContext,
  name: string,
  deeper: Tool[],
): Promise<ToolOutput> {
  const { agent, emit, signal } = context;
  if (!agent) return inWords('Not started: there is no agent that could have a sub-agent.', true);
  const { task, tools } = args as { task: string; tools?: string[] };
  const unknown = unknownIn(tools ?? [], agent);
  if (unknown) return inWords(unknown, true);
  const heard = new Heard();
  const child = agent.fork({
    ...inherited(agent, deeper, tools),
    ...gateNamed(agent, name, task),
    maxTurns: MAX_TURNS,
    emit: (event) => {
      heard.event(event);
      emit?.(name, event);
    },
  });
  const end = await child.chat(`${BRIEFING}\n\n${task}`, signal);
  for (const key of ['input', 'output', 'cached'] as const) agent.usage[key] += child.usage[key];
  return inWords(heard.report(name, end), end.ending !== 'done');
}

// ─── What it has ───────────────────────────────────────────────────────────────────────────────

/** The tools of ours, or of them those that are named. */
function inherited({ options }: Agent, deeper: Tool[], names?: string[]) {
  const { tools = [], mcp } = options;
  const isMeant = (name: string) => !names || names.some((each) => means(each, name));
  const own = tools.filter(({ definition: { name } }) => name !== DELEGATE);
  const others = (): SwitchedOff[] => {
    const found = mcp?.getToolDefinitions().filter(({ name }) => !isMeant(name)) ?? [];
    return found.map(({ server, tool }) => ({ server, tool: tool.name }));
  };
  return {
    tools: [...own, ...deeper].filter(({ definition: { name } }) => isMeant(name)),
    switchedOff: () => [...(options.switchedOff?.() ?? []), ...(names ? others() : [])],
  };
}

/** mcp__server means all of its tools. */
const means = (wanted: string, name: string) =>
  name === wanted || name.startsWith(`${wanted.replace(/(__)?\*$/, '')}__`);

function unknownIn(names: string[], { tools }: Agent) {
  const known = tools.callable.map(({ definition: { name } }) => name);
  const unknown = names.find((each) => !known.some((name) => means(each, name)));
  if (unknown === undefined) return undefined;
  const close = nearest(unknown, known).join(' or ');
  const hint = close ? ` Did you mean ${close}?` : '';
  return `Not started: there is no tool called ${JSON.stringify(unknown)}.${hint}`;
}

/** A question says who wants the call. The name that was set first stays: it is the caller's. */
function gateNamed({ options: { gate } }: Agent, name: string, task: string) {
  const [line = ''] = plain(task).split('\n');
  const opening = line.length > MAX_TASK_SHOWN ? `${line.slice(0, MAX_TASK_SHOWN)}…` : line;
  const caller = `${capital(name)} (${quoted(opening)})`;
  if (!gate) return { caller };
  const asking: typeof gate = (tool, args, signal) => gate({ caller, ...tool }, args, signal);
  return { caller, gate: asking };
}

const capital = (name: string) => name[0]!.toUpperCase() + name.slice(1);

// ─── What it reports ───────────────────────────────────────────────────────────────────────────

/** What happened, by its events: a report that leaves out a refusal must not hide it. */
class Heard {
  private worked = 0;
  private others: ToolEnd[] = [];
  private error = '';

  event(event: AgentEvent): void {
    if (event.type === 'error') this.error = event.message;
    if (event.type !== 'tool_end') return;
    if (event.outcome === 'worked') this.worked++;
    else this.others.push(event);
  }

  /** Its words are behind a mark, like all that we have not written: they may be those of a file
   *  that it has read. */
  report(name: string, { ending, text }: ChatEnd) {
    const words = plain(text).trim();
    const cut = words.length > MAX_REPORT ? `${words.slice(0, MAX_REPORT)}…` : words;
    const lines = [`Of its calls ${this.worked} worked, and ${this.others.length} did not.`];
    for (const { name: tool, outcome, text: why } of this.others.slice(0, MAX_TOLD)) {
      const [first = ''] = plain(why).split('\n');
      lines.push(`- ${tool} ${outcome}: ${first.slice(0, 200)}`);
    }
    if (ending !== 'done') lines.push(`It did not finish (${ending}). ${plain(this.error)}`.trim());
    const said = cut === '' ? 'It says nothing.' : `It reports:\n${cut.replace(/^/gm, '> ')}`;
    return [`${capital(name)} has ended. ${lines.join('\n')}`, said].join('\n\n');
  }
}
