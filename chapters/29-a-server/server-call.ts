// server-call.ts: what a handler can do beside returning a result: tell of progress, log, ask the
// client's person, go on in the background. It does not see which era its client speaks.

import { asObject, excerpt, isObject, ownValue, RpcError, type Id, type Json } from '../../mcp.ts';
import { canonicalJson, sha256 } from '../17-the-gate/digest.ts';
import { MISSING_CAPABILITY } from '../20-streamable-http/mirrored-headers.ts';
import { timeoutSignal } from '../20-streamable-http/reply.ts';
import { LEVELS } from '../24-more-than-tools/logs.ts';
import { LEVEL_KEY } from '../24-more-than-tools/subscribe.ts';
import { TASKS } from '../24-more-than-tools/tasks.ts';
import { isInputResponse, type Notes, type Seal } from './request-state.ts';
import type { ClientSession } from './protocol/client-session.ts';
import type { Tasks } from './protocol/server-tasks.ts';

/** One request on its way through the server: what its transport can do for it. */
export type Exchange = {
  id: Id;
  signal: AbortSignal; // aborts when the client cancels, or nothing can be answered any more
  session?: ClientSession; // what we remember of this client: the handshake era, and pipes
  tell(method: string, params: Json): void; // on the request's own stream, if it has one
  request?(method: string, params: Json, signal?: AbortSignal): Promise<Json>; // and wait
  hangUp?(): void; // ends the stream, not the request: the client comes back for the rest
};

type InputRequest = { method: string; params: Json };
export type InputRequests = Record<string, InputRequest>;
export type InputResponses = Record<string, Json>;
export type AskOptions = {
  isPermission?: boolean; // count an answer only if we have asked for it, and can prove it
  timeoutMs?: number;
};

/** One question, as the stateless era looks for its answer. */
type Asking = { key: string; place: string; of: string; method: string; isPermission: boolean };

const isLevel = (level: unknown) => LEVELS.includes(level as string);

/** A level that a client names. */
export function levelIn(level: unknown): string {
  if (!isLevel(level)) throw new RpcError(-32602, `Unknown level: ${excerpt(level)}`);
  return level as string;
}
const ANSWER_MS = 5 * 60_000;

/** Thrown by `ask` where the answers are not here yet. The request ends with it, and the client
 *  sends it again with the answers. */
export class InputRequired extends Error {
  result: Json;
  constructor(inputRequests: InputRequests, requestState: string) {
    super('the client must answer first');
    this.result = { resultType: 'input_required', inputRequests, requestState };
  }
}

/** What a call needs of its server. */
export type Office = { seal: Seal; tasks?: Tasks; offersTasks?: boolean };

export class ServerCall {
  readonly request: { method: string; params: Json };
  readonly isStateless: boolean;
  readonly capabilities: Json; // of the client
  protected exchange: Exchange;
  protected office: Office;
  private lastProgress = -Infinity;
  private notes?: Notes;
  private counts = new Map<string, number>(); // of questions under one key
  private isOver = false;
  private isFresh?: boolean; // this call is the first with its state

  constructor(request: Json, exchange: Exchange, office: Office, capabilities?: Json) {
    this.request = { method: `${request.method}`, params: asObject(request.params) };
    this.exchange = exchange;
    this.office = office;
    this.isStateless = capabilities !== undefined;
    this.capabilities = capabilities ?? exchange.session?.capabilities ?? {};
  }

  /** Aborts when the client gives up: stop working. */
  get signal(): AbortSignal {
    return this.exchange.signal;
  }

  get id(): Id {
    return this.exchange.id;
  }

  /** What is remembered between two calls of one client. Over stateless HTTP there is nothing. */
  get session(): ClientSession | undefined {
    return this.exchange.session;
  }

  tell(method: string, params: Json): void {
    if (!this.signal.aborted && !this.isOver) this.exchange.tell(method, params);
  }

  /** A timer that the handler forgot may still want to say something. It has no request any more. */
  end(): void {
    this.isOver = true;
  }

  // ─── Telling ─────────────────────────────────────────────────────────────────────────────────

  /** Only a client that has given a token hears it, and only of going forward. */
  progress(progress: number, total?: number, message?: string): void {
    const { progressToken } = asObject(this.request.params._meta);
    const isToken = typeof progressToken === 'string' || Number.isInteger(progressToken);
    if (!isToken || progress <= this.lastProgress) return;
    this.lastProgress = progress;
    const optional = { ...(total !== undefined && { total }), ...(message && { message }) };
    this.tell('notifications/progress', { progressToken, progress, ...optional });
  }

  /** Without a handshake a client that names no level hears nothing. */
  log(level: string, data: unknown, logger?: string): void {
    const { [LEVEL_KEY]: wanted } = asObject(this.request.params._meta);
    const least = this.isStateless ? wanted : this.session?.logLevel;
    if (!isLevel(least) || LEVELS.indexOf(level) < LEVELS.indexOf(least as string)) return;
    this.tell('notifications/message', { level, ...(logger && { logger }), data });
  }

  /** Before a long wait: frees the connection. A client that cannot come back keeps it. */
  hangUp(): void {
    if (!this.isOver) this.exchange.hangUp?.();
  }

  // ─── Asking ──────────────────────────────────────────────────────────────────────────────────

  /** Has the client declared it? can('elicitation'), can('elicitation', 'url'). */
  can(name: string, part?: string): boolean {
    const declared = this.capabilities[name];
    if (!isObject(declared)) return false;
    if (part === undefined) return true;
    // {} means forms: there was nothing else when it was written.
    const isForm = part === 'form' && Object.keys(declared).length === 0;
    return isForm || Object.hasOwn(declared, part);
  }

  /** Ends the call if the client lacks something: { sampling: {} }. Say so first: once a stream has
   *  begun, its status can no longer say it. */
  need(capabilities: Json): void {
    if (isPart(capabilities, this.capabilities)) return;
    const names = Object.keys(asObject(capabilities.extensions));
    const name = names[0] ?? Object.keys(capabilities).join(', ');
    const words = `The client capability ${name} is needed`;
    if (!this.isStateless) throw new Error(words); // a tool's error: the handshake is over
    throw new RpcError(MISSING_CAPABILITY, words, { requiredCapabilities: capabilities });
  }

  /** The answers to questions for the client, by the same keys. Without a handshake the call ends
   *  here, and begins again from its first line when they are there: ask before you act. */
  async ask(questions: InputRequests, options: AskOptions = {}): Promise<InputResponses> {
    for (const { method, params } of Object.values(questions)) this.need(neededFor(method, params));
    if (this.isStateless) return this.askInResult(questions, options);
    return this.askNow(questions, options);
  }

  /** One form for the person. What comes back has an `action`: only "accept" is a yes. */
  async elicit(message: string, requestedSchema: Json, options: AskOptions = {}): Promise<Json> {
    const form = { method: 'elicitation/create', params: { message, requestedSchema } };
    const { answer } = await this.ask({ answer: form }, options);
    return answer!;
  }

  /** Each question is a request of ours, on the call's own stream. */
  private async askNow(questions: InputRequests, { timeoutMs = ANSWER_MS }: AskOptions) {
    const { request } = this.exchange;
    if (!request || this.isOver) throw new Error('this client cannot be asked');
    const signal = timeoutSignal(timeoutMs, this.signal);
    const entries = Object.entries(questions).map(async ([key, { method, params }]) => {
      const answer = await request(method, params, signal);
      if (!isInputResponse(method, answer))
        throw new Error(`the client's answer to ${method} is none`);
      return [key, answer] as const;
    });
    return Object.fromEntries(await Promise.all(entries));
  }

  private askInResult(questions: InputRequests, { isPermission = false }: AskOptions) {
    const { answers, asked, nonce } = this.earlierRounds();
    const found: InputResponses = {};
    const missing: InputRequests = {};
    const open: Notes = { answers: { ...answers }, asked: {} };
    for (const [key, question] of Object.entries(questions)) {
      const place = this.placeOf(key);
      const of = sha256(canonicalJson(question));
      const answer = this.answerFor({ key, place, of, method: question.method, isPermission });
      if (answer) {
        found[key] = answer;
        open.answers[place] = { answer, of };
      } else {
        missing[key] = question;
        open.asked[place] = of;
      }
    }
    this.notes = { answers: open.answers, asked, nonce }; // this call may ask once more
    if (Object.keys(missing).length === 0) return found;
    const state = this.office.seal.close(open, this.request);
    throw new InputRequired(missing, state);
  }

  /** The first question under a key, the second: a handler may ask twice, and each time it runs it
   *  asks in the same order. */
  private placeOf(key: string) {
    const count = (this.counts.get(key) ?? 0) + 1;
    this.counts.set(key, count);
    return count === 1 ? key : `${key}#${count}`;
  }

  /** The answer to a question, if it is here and counts. */
  private answerFor({ key, place, of, method, isPermission }: Asking) {
    const { answers, asked } = this.earlierRounds();
    const responses = asObject(this.request.params.inputResponses);
    const given = ownValue(responses, key);
    const earlier = ownValue(answers, place);
    if (isPermission) {
      // An answer to a question that we never asked, in these words, was made up.
      const isAsked = asked[place] === of;
      const answer = earlier?.of === of ? earlier.answer : isAsked && given;
      // And a yes that has been used was for another call.
      return isInputResponse(method, answer) && this.isFirstUse() ? answer : undefined;
    }
    if (earlier) return earlier.answer;
    const isForIt = place === key || Object.hasOwn(asked, place);
    return isForIt && isInputResponse(method, given) ? given : undefined;
  }

  private isFirstUse() {
    const { nonce } = this.earlierRounds();
    this.isFresh ??= nonce !== undefined && this.office.seal.isFirstUse(nonce);
    return this.isFresh;
  }

  /** What the client has kept for us. A state that is not ours ends the call, asked for or not. */
  earlierRounds(): Notes {
    if (this.notes) return this.notes;
    const { requestState: state } = this.request.params;
    this.notes = { answers: {}, asked: {} };
    if (state === undefined) return this.notes;
    if (typeof state !== 'string') throw new RpcError(-32602, 'requestState is not a string');
    this.notes = this.office.seal.open(state, this.request);
    return this.notes;
  }

  /** For work that cannot begin again from its first line. Without a handshake it waits between two
   *  rounds until its client is back. */
  inRounds(work: (call: ServerCall) => Promise<Json>): Promise<Json> {
    return this.isStateless ? this.office.tasks!.inRounds(work, this) : work(this);
  }

  // ─── In the background ───────────────────────────────────────────────────────────────────────

  /** Goes on as a task, if the client knows tasks: the result is then the task. Else at once. */
  async inBackground(work: (call: ServerCall) => Promise<string | Json>): Promise<string | Json> {
    const isKnown = isPart({ extensions: { [TASKS]: {} } }, this.capabilities);
    const { tasks, offersTasks } = this.office;
    if (!tasks || !offersTasks || !this.isStateless || !isKnown) return work(this);
    return tasks.begin(work, this);
  }
}

function neededFor(method: string, { mode }: Json): Json {
  const name = method.split('/')[0]!;
  return { [name]: method === 'elicitation/create' && mode === 'url' ? { url: {} } : {} };
}

/** Is all of `wanted` in `there`, object by object? */
function isPart(wanted: Json, there: unknown): boolean {
  return Object.entries(wanted).every(([key, value]) => {
    const other = ownValue(asObject(there), key);
    return isObject(value) ? isObject(other) && isPart(value, other) : other === value;
  });
}
