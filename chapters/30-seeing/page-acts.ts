// page-acts.ts: what the live page may ask for. It runs nothing itself: it names a row, the row
// passes the gate like the model's calls, and what became of it is a line of the trace.

import type { Tool } from '../../agent.ts';
import { asObject, isObject, now, ownValue, show, textOf, type Json } from '../../mcp.ts';
import { unlessAborted } from '../15-the-loop/unless-aborted.ts';
import { inWords } from '../16-hands/results.ts';
import type { Program } from '../19-the-terminal/program.ts';
import { candidates } from '../24-more-than-tools/commands/fill-in.ts';
import { getPrompt, Offers } from '../24-more-than-tools/offers.ts';
import { expand } from '../24-more-than-tools/template.ts';
import { TurnedAway } from './door.ts';
import { testFile } from './more/test-file.ts';
import { OpenQuestions } from './open-questions.ts';

const MAX_AT_ONCE = 10;
const MAX_A_MINUTE = 60;
const CALLER = 'The page'; // in a question of the gate

/** A row, and what it is called with. */
type Wanted = { row: Tool; args: Json };
type FindRow = (wanted: Json) => Wanted;

export class PageActs {
  readonly questions = new OpenQuestions();
  private program: Program;
  private tell: (record: Json) => void; // to the page alone
  private atWork = new Map<string, AbortController>();
  private times: number[] = []; // of the last minute
  private count = 0;

  constructor(program: Program, tell: (record: Json) => void) {
    this.program = program;
    this.tell = tell;
    program.person.elsewhere = this.questions;
  }

  /** Answers at once. A browser has six connections to us: with a call in each of them, the answer to
   *  the question of the first could not be sent. */
  async take({ act, ...wanted }: Json): Promise<Json> {
    const name = String(act);
    const find = ownValue(this.rows, name) as FindRow | undefined;
    if (find) return this.begin(name, wanted, find);
    const does = ownValue(this.others, name) as ((wanted: Json) => Promise<Json>) | undefined;
    if (does) return does(wanted);
    throw new TurnedAway(400, `the page cannot ask for ${name}`);
  }

  private others: Record<string, (wanted: Json) => Promise<Json>> = {
    questions: async () => ({ questions: this.questions.list }),
    answer: async ({ id, ...given }) => ({ problems: await this.questions.answer(id, given) }),
    complete: (wanted) => this.complete(wanted),
    test: (wanted) => this.test(wanted),
    list: async () => {
      void this.list();
      return {};
    },
    stop: async ({ id }) => {
      this.atWork.get(String(id))?.abort();
      return {};
    },
  };

  // ── Rows ──

  private rows: Record<string, FindRow> = {
    call: ({ server, name, args }) => {
      const { tools } = this.program.agent;
      tools.refresh();
      const isIt = ({ origin }: Tool) => origin?.server === server && origin?.tool.name === name;
      const row = tools.callable.find(isIt);
      if (!row) throw new Error(`${show(server)} has no tool ${show(name)} that may be called`);
      return { row, args: asObject(args) };
    },
    read: ({ server, name, args }) => {
      const { agent, composition } = this.program;
      agent.tools.refresh(); // the row has to know which servers are there
      const row = composition.tools.find(({ definition }) => definition.name === 'read_resource')!;
      const uri = isObject(args) ? expand(String(name), textsIn(args)) : String(name);
      return { row, args: { server, uri } };
    },
    prompt: ({ server, name, args }) => {
      const { manager } = this.program;
      // Some servers act on this request, so it is asked for like a call.
      const row = rowOf(String(server), 'prompts/get', async ({ arguments: words }, { signal }) => {
        const connection = manager.of(String(server));
        const said = await getPrompt(connection, String(name), textsIn(words), { signal });
        return inWords(`${said.length} messages`);
      });
      return { row, args: { name: String(name), arguments: textsIn(args) } };
    },
  };

  private begin(act: string, wanted: Json, find: FindRow): Json {
    this.times = this.times.filter((time) => time > now() - 60_000);
    if (this.atWork.size >= MAX_AT_ONCE || this.times.length >= MAX_A_MINUTE)
      throw new TurnedAway(429, 'the page asks for too much at once');
    this.times.push(now());
    const id = `page-${++this.count}`;
    const stop = new AbortController();
    this.atWork.set(id, stop);
    const { trace, person } = this.program;
    const { server, name, args } = wanted;
    const about = { type: 'page', id, act, server, name };
    trace.write({ ...about, args });
    void this.perform(wanted, find, stop.signal).then((end) => {
      this.atWork.delete(id);
      trace.write({ ...about, ...end });
      person.say(`  the page: ${act} ${show(name)} of ${show(server)}: ${end.outcome}`, 'note');
    });
    return { id };
  }

  /** In the order in which a call of the model is made. Never throws. */
  private async perform(wanted: Json, find: FindRow, signal: AbortSignal): Promise<Json> {
    const { agent, gate, composition } = this.program;
    try {
      await unlessAborted(agent.startUp.wait(signal), signal);
      const { row, args: given } = find(wanted);
      const tool = { ...(row.forCall?.(given) ?? row), caller: CALLER };
      const schema = asObject(tool.origin?.tool.inputSchema ?? tool.definition.inputSchema);
      const prepared = await composition.prepareArguments?.(given, schema, signal);
      if (prepared?.refusal) return { outcome: 'unreadable', text: prepared.refusal };
      const args = prepared?.args ?? given;
      const verdict = await unlessAborted(gate.check(tool, args, signal), signal);
      if (!verdict.allowed) return { outcome: verdict.outcome ?? 'denied', text: verdict.reason };
      const { isUnasked } = verdict;
      const context = { signal, onProgress: () => {}, caller: CALLER, isUnasked };
      const { isError } = await unlessAborted(tool.run(args, context), signal);
      return { outcome: isError ? 'failed' : 'worked' }; // its answer is on the wire, and so in the trace
    } catch (error) {
      if (signal.aborted) return { outcome: 'aborted', text: 'stopped on the page' };
      return { outcome: 'failed', text: textOf(error) };
    }
  }

  // ── What needs no question ──

  /** As Tab does in the chat; not for a server whose completions a rule forbids. */
  private async complete({ server, of, name, argument, value, args }: Json): Promise<Json> {
    const { manager, gate } = this.program;
    const isPrompt = of === 'prompt';
    const ref = isPrompt
      ? { type: 'ref/prompt' as const, name: String(name) }
      : { type: 'ref/resource' as const, uri: String(name) };
    const row = rowOf(String(server), isPrompt ? 'prompts/get' : 'resources/read');
    if (gate.judge(row, {}).effect === 'deny') return { values: [] };
    const typed = { name: String(argument), value: String(value) };
    const context = { manager, server: String(server), ref };
    return { values: await candidates(context, typed, textsIn(args)) };
  }

  /** A page that is opened in the midst of a chat has not seen the lists go by. */
  private async list(): Promise<void> {
    const { agent, manager } = this.program;
    await agent.startUp.wait(new AbortController().signal);
    const offers = new Offers(manager);
    this.tell({
      type: 'offers',
      tools: manager.getToolDefinitions().map(({ server, tool }) => ({ ...tool, server })),
      resources: await offers.listResources(),
      resourceTemplates: await offers.listResourceTemplates(),
      prompts: await offers.listPrompts(),
    });
  }

  private async test(wanted: Json): Promise<Json> {
    const { manager, masker } = this.program;
    const { config = {} } = manager.entry(String(wanted.server)) ?? {};
    return { text: testFile(wanted, JSON.parse(masker.json(config))) };
  }
}

const textsIn = (args: unknown): Record<string, string> =>
  Object.fromEntries(Object.entries(asObject(args)).map(([name, value]) => [name, show(value)]));

/** For the gate: a method of a server is asked for like a tool of it. */
function rowOf(server: string, method: string, run: Tool['run'] = async () => inWords('')): Tool {
  const description = `${method} of an MCP server`;
  const definition = { name: method, description, inputSchema: { type: 'object' } };
  return {
    definition,
    readOnly: true,
    origin: { server, tool: { name: method, description } },
    run,
  };
}
