// replay.ts: a recording plays the part of the server. To the client it is one; every answer is the
// one that was recorded. How a message gets to the client is the business of replay-wires.ts.

import { asObject, excerpt, isObject, textOf, type Json, type Message } from '../../mcp.ts';
import { SUBSCRIPTION_KEY } from '../22-no-handshake/listen-for-changes.ts';
import {
  differences,
  isStream,
  Tied,
  requestKey,
  MASKED,
  comparableParams,
  subscriptionIn,
  type Cue,
  type RecordedExchange,
} from './exchanges.ts';
import { isRequest, tokenOf, word, type Recording } from './more/read-trace.ts';

export type ReplayOptions = {
  speed?: number; // 1: as it was; 10: ten times as fast; 0: without any pause
  onMiss?: (text: string) => void; // a request, or an answer, that the recording does not have
  live?: (request: Message) => Promise<RecordedAnswer>; // answers what the recording does not have
};

/** What an answer says. */
export type RecordedAnswer = { result: unknown } | { error: Json };

/** The way to one client, in the course of one request of it. */
export type ClientChannel = {
  tell(notification: Json): void;
  ask(request: Json): Promise<Json>; // resolves with the client's answer
  isGone(): boolean; // the client no longer wants an answer
};

/** `said` is missing where the recording has no answer: it was cancelled, or never came. What came
 *  after the answer may go another way than what came before it. */
type Played = { said?: RecordedAnswer; afterwards?: (line: ClientChannel) => Promise<void> };

/** One server of a recording, for one client. */
export class Replay {
  misses = 0;
  private prelude: Cue[];
  private exchanges: RecordedExchange[];
  private used = new Set<RecordedExchange>();
  private ids = new Map<unknown, unknown>(); // of requests: recorded → given now
  private streams = new Map<unknown, ClientChannel>(); // of subscriptions, by the recorded id
  private early: Cue[] = []; // what belongs to a subscription that has not begun yet
  private options: ReplayOptions;

  constructor(recording: Recording, server: string, options: ReplayOptions = {}) {
    const messages = recording.messages.filter((message) => message.server === server);
    const { prelude, exchanges } = new Tied(messages);
    this.prelude = prelude;
    this.exchanges = exchanges;
    this.options = options;
  }

  private get opening(): RecordedExchange | undefined {
    const isOpening = ({ request, answer }: RecordedExchange) =>
      request.msg.method === 'initialize' && answer?.msg.result !== undefined;
    return this.exchanges.find(isOpening);
  }

  async answer(request: Message, line: ClientChannel): Promise<Played> {
    const exchange = this.find(request);
    const made = exchange ? undefined : this.madeUp(request);
    if (made) return { said: made };
    await this.play(this.prelude.splice(0), request, 0, line);
    if (exchange) return this.playExchange(exchange, request, line);
    return { said: await this.missing(request) };
  }

  private miss(text: string) {
    this.misses++;
    this.options.onMiss?.(text);
  }

  /** Equal requests get their answers in the recorded order; when all are used, the last again. */
  private find(request: Message): RecordedExchange | undefined {
    const isSame =
      request.method === 'initialize'
        ? (exchange: RecordedExchange) => isSameOpening(exchange, request)
        : (exchange: RecordedExchange) => isSameRequest(exchange.request.msg, request);
    const all = this.exchanges.filter(isSame);
    const next = all.find((exchange) => !this.used.has(exchange)) ?? all.at(-1);
    if (next) this.used.add(next);
    return next;
  }

  private async playExchange(
    exchange: RecordedExchange,
    request: Message,
    line: ClientChannel,
  ): Promise<Played> {
    const { during, answer, after } = exchange;
    const recorded = exchange.request;
    this.ids.set(recorded.msg.id, request.id);
    if (isStream(recorded.msg)) this.streams.set(recorded.msg.id, line);
    const last = await this.play(during, request, recorded.ms, line, recorded.msg);
    if (isStream(recorded.msg)) await this.play(this.early.splice(0), request, last, line);
    const end = answer?.ms ?? last;
    const afterwards = async (way: ClientChannel) => {
      await this.play(after, request, end, way, recorded.msg);
    };
    if (!answer || line.isGone()) return { afterwards };
    await this.wait(end - last);
    return { said: saidIn(answer.msg), afterwards };
  }

  /** Sends what the server sent. Returns the time of the last message. */
  private async play(
    cues: Cue[],
    request: Json,
    begin: number,
    line: ClientChannel,
    recorded?: Json,
  ) {
    let at = begin;
    for (const cue of cues) {
      if (line.isGone()) break;
      await this.wait(cue.sent.ms - at);
      at = cue.sent.ms;
      const message = this.mapped(cue.sent.msg, recorded, request);
      const subscription = subscriptionIn(cue.sent.msg.params);
      const stream = this.streams.get(subscription);
      if (!stream && this.isSubscription(subscription)) this.early.push(cue);
      else if (!isRequest(message)) (stream ?? line).tell(message);
      else if (cue.reply) this.compare(message, cue.reply.msg, await line.ask(message));
      else void line.ask(message).catch(() => {}); // it was not answered then, either
    }
    return at;
  }

  private isSubscription(id: unknown) {
    return this.exchanges.some(({ request: { msg } }) => isStream(msg) && msg.id === id);
  }

  /** The recording went on from one answer. From another the server might have gone elsewhere. */
  private compare({ method }: Json, recorded: Json, given: Json): void {
    const [was, is] = [outcomeOf(recorded), outcomeOf(given)];
    if (was !== is) this.miss(`${word(method)} was answered with ${is}; recorded: ${was}`);
  }

  /** A token or a subscription belongs to a request: it has the number that the client uses now. */
  private mapped(msg: Json, recorded: Json | undefined, given: Json) {
    if (!isObject(msg.params)) return msg;
    const params = { ...msg.params };
    const token = tokenOf(recorded?.params);
    if (token !== undefined && params.progressToken === token)
      params.progressToken = tokenOf(given.params) ?? token;
    const subscription = subscriptionIn(params);
    if (this.ids.has(subscription))
      params._meta = { ...asObject(params._meta), [SUBSCRIPTION_KEY]: this.ids.get(subscription) };
    return { ...msg, params };
  }

  private async wait(ms: number) {
    const { speed = 0 } = this.options;
    const pause = speed > 0 ? ms / speed : 0;
    if (pause > 0) await new Promise((done) => setTimeout(done, pause));
  }

  /** What any server can answer without a recording. */
  private madeUp({ method, params }: Message): RecordedAnswer | undefined {
    const { opening } = this;
    if (method === 'ping') return { result: {} };
    if (method === 'initialize') return { error: refusal(opening, asObject(params)) };
    // A client that speaks both eras tries the newer one first.
    const message = 'Method not found: the recording is of an older revision';
    if (method === 'server/discover' && opening) return { error: { code: -32601, message } };
    return undefined;
  }

  private async missing(request: Message): Promise<RecordedAnswer> {
    try {
      if (this.options.live) return await this.options.live(request);
      throw new Error(this.explain(request));
    } catch (error) {
      const message = textOf(error);
      this.miss(message);
      return { error: { code: -32000, message } };
    }
  }

  /** Names the recorded request that is most like this one, and where it differs. */
  private explain({ method, params }: Message) {
    const same = this.exchanges.filter(({ request }) => request.msg.method === method);
    if (same.length === 0) {
      const known = [...new Set(this.exchanges.map(({ request }) => word(request.msg.method)))];
      return `the recording has no ${method}; it has ${known.join(', ') || 'no request at all'}`;
    }
    const found = same.map(({ request }) => {
      const where = differences(comparableParams(request.msg.params), comparableParams(params));
      return { line: request.line, where };
    });
    found.sort((a, b) => a.where.length - b.where.length);
    const { line, where } = found[0]!;
    const [first] = where;
    const what = `${first!.path || 'params'} is ${shown(first!.given)}`;
    const more = where.length > 1 ? ` (and ${where.length - 1} more)` : '';
    const nearest = `the nearest, in line ${line}, differs`;
    return (
      `the recording has no such ${method}; ${nearest}: ` +
      `${what}, recorded: ${shown(first!.recorded)}${more}`
    );
  }
}

const shown = (value: unknown) => (value === undefined ? 'not given' : excerpt(value));

function saidIn({ result, error }: Json): RecordedAnswer {
  return error === undefined ? { result } : { error: asObject(error) };
}

function isSameRequest(recorded: Json, given: Message) {
  if (recorded.method !== given.method) return false;
  const key = requestKey(recorded);
  if (key === requestKey(given)) return true;
  if (!MASKED.test(key)) return false;
  return (
    differences(comparableParams(recorded.params), comparableParams(given.params)).length === 0
  ); // masked secrets
}

/** Names and capabilities of clients differ. What counts is the revision. */
function isSameOpening({ request, answer }: RecordedExchange, given: Message) {
  if (request.msg.method !== 'initialize') return false;
  const wanted = asObject(given.params).protocolVersion;
  const recorded = asObject(request.msg.params).protocolVersion;
  const agreed = asObject(answer?.msg.result).protocolVersion;
  return wanted === recorded || wanted === agreed;
}

function refusal(opening: RecordedExchange | undefined, params: Json): Json {
  const { protocolVersion } = params;
  const agreed = asObject(opening?.answer?.msg.result).protocolVersion;
  const has = agreed ? `revision ${word(agreed)}` : 'a revision without a handshake';
  const message = `Unsupported protocol version: the recording has ${has}, not ${word(protocolVersion)}`;
  const supported = agreed ? [agreed] : [];
  return { code: -32602, message, data: { supported, requested: protocolVersion } };
}

/** Accepted, declined, an error: a word for how a question of the server was answered. */
function outcomeOf({ result, error }: Json) {
  if (error !== undefined) return 'an error';
  const { action } = asObject(result);
  return typeof action === 'string' ? `"${action}"` : 'a result';
}
