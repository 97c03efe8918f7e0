// elicitation.ts: a server wants to know something from the person, in the middle of a call.
//
// One handler serves both eras: up to 2025-11-25 the question is a request of the server, since
// 2026-07-28 it comes inside a result (chapter 22 calls the same handler then).

import type { AgentEvent } from '../../agent.ts';
import {
  asList,
  asObject,
  copyOf,
  isObject,
  isStateless,
  RpcError,
  show,
  textOf,
} from '../../mcp.ts';
import type { Call, Extension, Incoming, Json, McpConnection, Next } from '../../mcp.ts';
import { choice } from '../17-the-gate/dialogue.ts';
import { formFields } from '../17-the-gate/form.ts';
import { nobody, type Person } from '../17-the-gate/person.ts';
import { quoted, told } from '../17-the-gate/safe-text.ts';
import { withEither } from '../20-streamable-http/pause.ts';
import { callOf, Counts, during, whileAsking } from './asking.ts';
import type { FindProblems } from './keywords.ts';

const MAX_MESSAGE = 10_000; // characters
const URL_REQUIRED = -32042;
const MAX_ADDRESSES = 10; // in one refusal
const MAX_VISITS = 100; // whose end is still awaited

export type ElicitResult = { action: 'accept'; content?: Json } | { action: 'decline' | 'cancel' };

/** A question as a server put it, checked. */
export type Elicitation = { server: string; message: string; id?: string } & (
  | { mode: 'form'; schema: Json }
  | { mode: 'url'; url: URL }
);

/** What they return takes the place of the question, or of the answer; `undefined` leaves it alone. */
type ElicitationHooks = {
  before?: (asked: Elicitation, signal: AbortSignal) => Promise<ElicitResult | undefined>;
  after?: (
    asked: Elicitation,
    answer: ElicitResult,
    signal: AbortSignal,
  ) => Promise<ElicitResult | undefined>;
};

export type ElicitationOptions = {
  person: Person;
  problemsFound: FindProblems; // what is wrong with an answer
  warn?: (text: string) => void;
  hooks?: ElicitationHooks; // functions of a program
  counts?: Counts; // how often servers may ask
  emit?: (event: AgentEvent) => void; // what was asked, and what became of it
  progressMs?: number; // how often a server hears that someone is there
};

/** Without anybody who could be asked or told, it offers nothing. Where there is a program but no
 *  terminal, forms are offered and left: a server that asks before it deletes must not get the idea
 *  that nobody needs to be asked. */
export function elicitation(options: ElicitationOptions): Extension {
  const { counts = new Counts() } = options; // for all connections: a new one begins not at zero
  return function elicitation(connection) {
    const { person } = options;
    if (person === nobody && !options.hooks) return {};
    const desk = new ElicitationHandler(connection, options, counts);
    const url = person.isThere ? { url: {} } : {};
    return {
      capabilities: { elicitation: { form: {}, ...url } },
      layer: (call, next) => next(call).catch((error) => desk.visitFirst(error, call, next)),
      handlers: {
        'elicitation/create': (params, incoming) => desk.answer(params, incoming),
        'notifications/elicitation/complete': ({ elicitationId }) => desk.complete(elicitationId),
      },
    };
  };
}

class ElicitationHandler {
  private connection: McpConnection;
  private person: Person;
  private options: ElicitationOptions;
  private problemsFound: FindProblems;
  private warn: (text: string) => void;
  private counts: Counts;
  private visits = new Map<string, () => void>(); // to pages, by the id of the question

  constructor(connection: McpConnection, options: ElicitationOptions, counts: Counts) {
    this.connection = connection;
    this.person = options.person;
    this.options = options;
    this.problemsFound = options.problemsFound;
    this.warn = options.warn ?? (() => {});
    this.counts = counts;
  }

  async answer(params: Json, incoming: Incoming): Promise<ElicitResult> {
    const asked = this.read(params);
    const { progressMs } = this.options;
    // When the call is stopped, its questions are over; the server hears "cancel".
    const stopped = callOf(this.connection, incoming)?.options.signal;
    const deciding = withEither([incoming.signal, stopped], (signal) =>
      this.decide(asked, { ...incoming, signal }),
    );
    return whileAsking(this.connection, params, deciding, progressMs);
  }

  /** A program may answer first, and see or change the answer afterwards. */
  private async decide(asked: Elicitation, incoming: Incoming): Promise<ElicitResult> {
    const { before, after } = this.options.hooks ?? {};
    const early = await before?.(asked, incoming.signal);
    const given = early ?? (await this.askPerson(asked, incoming));
    const last = (await after?.(asked, given, incoming.signal)) ?? given;
    const answer = await this.sound(asked, last);
    const { server, message } = asked;
    this.options.emit?.({ type: 'question', server, message, action: answer.action });
    return answer;
  }

  // ── The question ──

  /** What a server may ask is checked before the person hears of it. */
  private read(params: Json): Elicitation {
    const { message, mode = 'form', requestedSchema, url, elicitationId } = params;
    const server = this.connection.serverName;
    const text = copyOf(show(message ?? '').slice(0, MAX_MESSAGE));
    const id = typeof elicitationId === 'string' ? elicitationId : undefined;
    const asked = { server, message: text, id };
    if (mode === 'form') return { ...asked, mode, schema: askable(requestedSchema) };
    if (mode === 'url' && this.person.isThere) return { ...asked, mode, url: address(url) };
    const what = `elicitation of mode ${quoted(show(mode))}`;
    throw new RpcError(-32602, `this client has not offered ${what}`);
  }

  private async askPerson(asked: Elicitation, incoming: Incoming): Promise<ElicitResult> {
    const { person, connection } = this;
    const { server, message } = asked;
    if (!person.isThere) {
      this.warn(`MCP server ${quoted(server)} asks something, and there is no terminal to ask at`);
      return { action: 'cancel' };
    }
    if (!this.counts.mayAsk(server)) {
      this.warn(`MCP server ${quoted(server)} asks too often; its question was declined`);
      return { action: 'decline' };
    }
    const { signal } = incoming;
    const lines = [...during(connection, incoming), ...told(message)];
    const withdrawn = () => person.say(`${quoted(server)} no longer wants to know`, 'note');
    signal.addEventListener('abort', withdrawn);
    try {
      if (asked.mode === 'url') return await this.visit(asked, lines, signal);
      const { schema } = asked;
      return await person.form({ from: server, lines, schema, signal, check: this.misfits });
    } finally {
      signal.removeEventListener('abort', withdrawn);
    }
  }

  /** Servers do not check what they get, so we check what we send. */
  private async sound(asked: Elicitation, answer: ElicitResult): Promise<ElicitResult> {
    if (answer.action !== 'accept') return { action: answer.action };
    if (asked.mode === 'url') return { action: 'accept' };
    const content = asObject(answer.content);
    const [problem] = await this.problemsFound(asked.schema, content).catch(unjudged);
    if (!problem) return { action: 'accept', content };
    const what = `${quoted(problem.path)} ${problem.message}`;
    this.warn(`the answer to ${quoted(asked.server)} does not fit its form (${what}): not sent`);
    return { action: 'cancel' };
  }

  /** For a form, what is wrong with the answer to one of its fields. */
  private misfits = async (schema: Json, value: unknown): Promise<string[]> => {
    const problems = await this.problemsFound(schema, value).catch(unjudged);
    return problems.map(({ message }) => `it ${message}`);
  };

  // ── Addresses ──

  /** The page is for the person alone: we never fetch it. In the handshake era consent is the answer,
   *  and a notice tells of the end. Since 2026-07-28 we send the call again when the user is back. */
  private async visit(
    asked: Elicitation & { mode: 'url' },
    lines: string[],
    signal: AbortSignal,
  ): Promise<ElicitResult> {
    const { person, connection } = this;
    const { server, url } = asked;
    const notes = oddities(url, connection.config.url);
    const opened = await person.open({ from: server, lines: [...lines, ...notes], url, signal });
    if (opened.action !== 'accept') return opened;
    if (isStateless(connection.server)) return this.awaitReturn(asked, signal);
    const tell = () => person.say(`${quoted(server)}: the page is done`, 'note');
    if (asked.id !== undefined && this.visits.size < MAX_VISITS) this.visits.set(asked.id, tell);
    return { action: 'accept' };
  }

  /** Until the user says so, or the server. */
  private async awaitReturn(asked: Elicitation, signal: AbortSignal): Promise<ElicitResult> {
    const { id = '', server } = asked;
    const over = new AbortController();
    const end = () => over.abort();
    let isComplete = false;
    const complete = () => {
      isComplete = true;
      end();
    };
    signal.addEventListener('abort', end);
    this.visits.set(id, complete);
    const lines = ['When you are done at its page, its call goes on.'];
    const choices = [choice('[y]es, done'), choice('[c]ancel', true)];
    const question = { from: server, lines, prompt: 'Go on?', choices, signal: over.signal };
    const answer = await this.person.choose({ ...question, elsewhere: ['y', 'c'] });
    this.visits.delete(id);
    signal.removeEventListener('abort', end);
    return { action: isComplete || answer?.key === 'y' ? 'accept' : 'cancel' };
  }

  /** Ids that we do not know, or no longer, mean nothing. */
  complete(elicitationId: unknown): void {
    const id = show(elicitationId);
    const complete = this.visits.get(id);
    this.visits.delete(id);
    complete?.();
  }

  /** A call that is refused until the person has been somewhere is made once more, and not again. */
  async visitFirst(error: unknown, call: Call, next: Next): Promise<Json> {
    const { connection, person } = this;
    const isKnown = person.isThere && !isStateless(connection.server); // later there is no such error
    const addresses = isKnown ? addressesIn(error) : [];
    if (addresses.length === 0) throw error;
    const signal = call.options.signal ?? connection.signal;
    for (const params of addresses) {
      const asked = this.read({ ...params, mode: 'url' });
      const agreed = await this.decide(asked, { signal, call });
      if (agreed.action !== 'accept') throw error;
      const back = await this.awaitReturn(asked, signal);
      if (back.action !== 'accept') throw error;
    }
    return next(call);
  }
}

/** An answer that cannot be judged is not sent. */
const unjudged = (error: unknown) => [
  { path: '', message: `cannot be checked by the form (${textOf(error)})` },
];

/** A schema that can be asked for line by line, or the reason why it cannot, for the server. */
function askable(schema: unknown = {}): Json {
  try {
    if (!isObject(schema)) throw new Error('requestedSchema is not an object');
    formFields(schema);
    return schema;
  } catch (error) {
    throw new RpcError(-32602, (error as Error).message);
  }
}

function address(url: unknown): URL {
  const text = show(url);
  if (URL.canParse(text)) return new URL(text);
  throw new RpcError(-32602, 'the url of the elicitation is not an address');
}

const isNumeric = (host: string) => /^[\d.]+$|^\[/.test(host);

/** What to look at twice. That it is in other letters, or holds a name, the person is told anyway. */
function oddities({ protocol, hostname, port, href }: URL, own: unknown): string[] {
  const lines = [`  it leads to ${quoted(hostname)}`];
  const isOwn = typeof own === 'string' && URL.canParse(own) && new URL(own).hostname === hostname;
  if (typeof own === 'string' && !isOwn) lines.push('  ! that is another host than the server');
  if (isNumeric(hostname)) lines.push('  ! that is a number in place of a name');
  if (/^(.*\.)?localhost$/.test(hostname)) lines.push('  ! that is this machine');
  if (protocol !== 'https:') lines.push(`  ! ${protocol} is not encrypted`);
  if (port !== '') lines.push(`  ! on the unusual port ${port}`);
  if (href.length > 2000) lines.push(`  ! it has ${href.length} characters`);
  return lines;
}

function addressesIn(error: unknown): Json[] {
  if (!(error instanceof RpcError) || error.code !== URL_REQUIRED) return [];
  const { elicitations } = asObject(error.data);
  return asList(elicitations).filter(isObject).slice(0, MAX_ADDRESSES);
}
