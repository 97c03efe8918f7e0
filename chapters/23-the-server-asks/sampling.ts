// sampling.ts: a server borrows our model. It sends a prompt, the person agrees, the model answers,
// the person looks at the answer, and only then does the server get it.
// Deprecated since 2026-07-28: new servers bring a model of their own.

import type { AssistantTurn, Model, ModelRequest, StopReason } from '../../agent.ts';
import { asObject, isObject, RpcError, show } from '../../mcp.ts';
import type { Extension, Incoming, Json, McpConnection } from '../../mcp.ts';
import { choice, NO, YES } from '../17-the-gate/dialogue.ts';
import type { Person } from '../17-the-gate/person.ts';
import { plain, quoted, told } from '../17-the-gate/safe-text.ts';
import { Counts, during, whileAsking } from './asking.ts';

const MAX_PROMPT = 200_000; // characters of all messages together
const MAX_MESSAGES = 100;
const MAX_TOKENS = 8192; // of an answer, whatever the server wants
const MAX_AT_ONCE = 3; // of one server
const INVALID = -32602;
const REJECTED = -1; // the specification's own code for a person's no

type SamplingOptions = {
  person: Person;
  model: () => Model | undefined; // the one that is in use
};

/** A prompt, checked. */
type SamplingPrompt = { system: string; turns: SampledTurn[]; maxTokens: number };
type SampledText = { text: string; stop: StopReason };

/** Only with a person who can say no: the model costs money, and a prompt may be an attack on it. */
export function sampling({ person, model }: SamplingOptions): Extension {
  const counts = new Counts();
  return function sampling(connection) {
    if (!person.isThere || !model()) return {};
    const desk = new SamplingHandler(connection, person, model, counts);
    return {
      capabilities: { sampling: {} },
      handlers: {
        'sampling/createMessage': (params, incoming) => desk.answer(params, incoming),
      },
    };
  };
}

const EDIT = choice('[e]dit');
const SEND = choice('[y]es, send it');
const DISCARD = choice('[d]iscard', true);

class SamplingHandler {
  private connection: McpConnection;
  private person: Person;
  private model: () => Model | undefined;
  private counts: Counts;
  private atWork = 0;

  constructor(
    connection: McpConnection,
    person: Person,
    model: () => Model | undefined,
    counts: Counts,
  ) {
    this.connection = connection;
    this.person = person;
    this.model = model;
    this.counts = counts;
  }

  async answer(params: Json, incoming: Incoming): Promise<Json> {
    const prompt = promptIn(params);
    if (this.atWork >= MAX_AT_ONCE) throw invalid('too many prompts at once');
    this.atWork++;
    try {
      return await whileAsking(this.connection, params, this.sample(prompt, incoming));
    } finally {
      this.atWork--;
    }
  }

  private async sample(wanted: SamplingPrompt, incoming: Incoming): Promise<Json> {
    const model = this.model();
    if (!model) throw invalid('there is no model to answer');
    const prompt = await this.agreeOn(wanted, model, incoming);
    const answer = await query(model, prompt, incoming.signal);
    const text = await this.review(answer.text, incoming.signal);
    return {
      role: 'assistant',
      content: { type: 'text', text },
      model: model.name,
      stopReason: answer.stop === 'length' ? 'maxTokens' : 'endTurn',
    };
  }

  /** The person sees the prompt, may change its last message, and says yes or no. */
  private async agreeOn(
    prompt: SamplingPrompt,
    model: Model,
    incoming: Incoming,
  ): Promise<SamplingPrompt> {
    const { person, connection } = this;
    const { serverName: from } = connection;
    const { signal } = incoming;
    if (!this.counts.mayAsk(from)) throw new RpcError(REJECTED, 'this server asks too often');
    for (let current = prompt; ; ) {
      const lines = [
        ...during(connection, incoming),
        `It wants ${quoted(model.name)} to answer this, in at most ${current.maxTokens} tokens:`,
        ...shown(current),
      ];
      const choices = [YES, NO, EDIT];
      const question = { from, lines, prompt: 'Ask the model?', choices, signal };
      const chosen = await person.choose({ ...question, elsewhere: ['y', 'n'] });
      if (chosen?.key === 'y') return current;
      if (chosen?.key !== 'e') throw new RpcError(REJECTED, 'User rejected sampling request');
      const words = await person.ask({ lines: [], prompt: 'The last message instead', signal });
      if (words) current = { ...current, turns: withLast(current.turns, words) };
    }
  }

  /** The person sees the answer before the server does. */
  private async review(answer: string, signal: AbortSignal): Promise<string> {
    const { person, connection } = this;
    for (let text = answer; ; ) {
      const lines = ['May it have this answer of the model?', ...told(text)];
      const choices = [SEND, DISCARD, EDIT];
      const { serverName: from } = connection;
      const question = { from, lines, prompt: 'Send it?', choices, signal };
      const chosen = await person.choose({ ...question, elsewhere: ['y', 'd'] });
      if (chosen?.key === 'y') return text;
      if (chosen?.key !== 'e') throw new RpcError(REJECTED, 'User rejected the answer');
      text = (await person.ask({ lines: [], prompt: 'Send this instead', signal })) || text;
    }
  }
}

function shown({ system, turns }: SamplingPrompt): string[] {
  const head = system === '' ? [] : ['  as the system prompt:', ...told(system, '    ')];
  const rest = turns.flatMap(({ role, text }) => [`  ${role}:`, ...told(text, '    ')]);
  return [...head, ...rest];
}

function withLast(turns: SampledTurn[], text: string): SampledTurn[] {
  return [...turns.slice(0, -1), { role: 'user', text }];
}

/** No tools: what the model says here is an answer, and starts nothing. */
async function query(
  model: Model,
  prompt: SamplingPrompt,
  signal: AbortSignal,
): Promise<SampledText> {
  const { system, turns, maxTokens } = prompt;
  const request: ModelRequest = { system, turns, maxTokens, tools: [], signal };
  for await (const event of model.query(request))
    if (event.type === 'end') return { text: event.turn.text, stop: event.stop };
  throw new Error(`the model ${model.name} stopped without an end`);
}

// ─── What a server sends ───────────────────────────────────────────────────────────────────────

/** Text, and no tools: they were not offered. */
function promptIn(params: Json): SamplingPrompt {
  const { messages, systemPrompt = '', maxTokens, tools, toolChoice } = params;
  if (tools !== undefined || toolChoice !== undefined)
    throw invalid('this client has not offered sampling with tools');
  if (!Array.isArray(messages) || !messages.every(isObject) || messages.length > MAX_MESSAGES)
    throw invalid(`messages is not a list of at most ${MAX_MESSAGES} messages`);
  if (messages.length === 0) throw invalid('there is no message to answer');
  const turns = messages.map(turnIn).reduce(joined, []);
  const system = plain(show(systemPrompt));
  const size = turns.reduce((sum, { text }) => sum + text.length, system.length);
  if (size > MAX_PROMPT) throw invalid(`the prompt has more than ${MAX_PROMPT} characters`);
  const most = typeof maxTokens === 'number' && maxTokens >= 1 ? Math.floor(maxTokens) : MAX_TOKENS;
  return { system, turns, maxTokens: Math.min(most, MAX_TOKENS) };
}

const invalid = (why: string) => new RpcError(INVALID, why);

type SampledTurn = { role: 'user'; text: string } | AssistantTurn;

/** Models want the user to begin and to end. Servers may not care: the only message of @azure/mcp is
 *  the assistant's. */
function turnIn({ role, content }: Json, n: number, messages: Json[]): SampledTurn {
  const blocks = (Array.isArray(content) ? content : [content]).map(asObject);
  const text = blocks.map(textIn).join('\n');
  const isEdge = n === 0 || n === messages.length - 1;
  if (role !== 'user' && role !== 'assistant') throw invalid(`${quoted(show(role))} is not a role`); // nor is "system"
  if (role === 'user' || isEdge) return { role: 'user', text };
  return { role, text, calls: [] };
}

function textIn({ type, text }: Json): string {
  if (type === 'text' && typeof text === 'string') return plain(text);
  throw invalid(`this client samples with text, not with ${quoted(show(type))}`);
}

/** Models want the roles to alternate. */
function joined(turns: SampledTurn[], turn: SampledTurn): SampledTurn[] {
  const last = turns.at(-1);
  if (!last || last.role !== turn.role) return [...turns, turn];
  return [...turns.slice(0, -1), { ...last, text: `${last.text}\n${turn.text}` }];
}
