// era.ts: one client for both eras. Up to 2025-11-25 a connection begins with a handshake. Since
// 2026-07-28 there is none: every request says which revision it speaks and what the client can do.

import {
  asObject,
  CLIENT_INFO,
  excerpt,
  isStateless,
  McpError,
  now,
  reads,
  REVISIONS,
  RpcError,
  selfDescription,
  shakeHands,
} from '../../mcp.ts';
import type {
  Call,
  CallOptions,
  Extension,
  Json,
  McpConnection,
  Next,
  ServerDescription,
} from '../../mcp.ts';
import { canonicalJson } from '../17-the-gate/digest.ts';
import {
  LATER_ERRORS,
  mirrorArguments,
  UNSUPPORTED_VERSION,
  VERSION_KEY,
} from '../20-streamable-http/mirrored-headers.ts';
import { keepAnswers } from './cache.ts';
import { answerWithin } from './input-required.ts';
import { doze, type Pause } from '../20-streamable-http/pause.ts';
import { listenForChanges } from './listen-for-changes.ts';

export const STATELESS = ['2026-07-28'];
export const SERVER_INFO_KEY = 'io.modelcontextprotocol/serverInfo';
export const CAPABILITIES_KEY = 'io.modelcontextprotocol/clientCapabilities';
const PROBE_MS = 1500; // the probe is alone for that long
const MOMENT_MS = 25; // for the answer to what was written before
const CONFUSED_MS = 5000; // of silence, before we doubt that the server has understood

/** How a server wanted to be opened, by its entry as JSON. A Map will do; `KeptVerdicts` remembers
 *  them from one start of the program to the next. */
export interface Verdicts {
  get(entry: string): Era | undefined;
  set(entry: string, era: Era): unknown;
  delete(entry: string): unknown;
}
export type Era = 'handshake' | 'stateless';
export type EraOptions = { verdicts?: Verdicts; pause?: Pause };

/** All of this chapter, in order. `inside`: those to which a call that is sent again, with answers,
 *  is another call. */
export function inBothEras(options: EraOptions & { inside?: Extension[] } = {}): Extension[] {
  const { inside = [] } = options;
  return [
    answerWithin(options),
    ...inside,
    keepAnswers, // inside, too: what is sent again with answers is never kept
    mirrorArguments,
    listenForChanges(options),
    eitherEra(options), // last: it completes every request, also those of the others
  ];
}

export function eitherEra({ verdicts = new Map(), pause = doze }: EraOptions = {}): Extension {
  return reads(ERA_WORDS, function eitherEra(connection) {
    const introduction = new Introduction(connection);
    const opening = new Opening(connection, introduction, verdicts, pause);
    return {
      layer: (call, next) => introduction.add(call, next),
      handshake: () => opening.open(),
    };
  });
}

const isEra = (value: unknown) => value === 'handshake' || value === 'stateless';
const ERA_WORDS = { era: { form: '"handshake" or "stateless"', fits: isEra } };

// ─── Every request introduces itself ────────────────────────────────────────────────────────────

/** Adds to a request what there is no handshake to say: revision, name, and what we can do. */
class Introduction {
  private connection: McpConnection;
  private revision = STATELESS[0]!;
  isUndecided = false; // a handshake with a server that may be of the later era

  constructor(connection: McpConnection) {
    this.connection = connection;
  }

  add(call: Call, next: Next): Promise<Json> {
    // A server of both eras sees that this handshake is not meant for it, and refuses.
    if (call.method === 'initialize') {
      return this.offered(this.isUndecided ? this.withMeta(call) : call, next);
    }
    const isProbe = call.method === 'server/discover'; // it asks what the server speaks
    if (!isProbe && !isStateless(this.connection.server)) return next(call);
    return this.introduced(call, next);
  }

  /** Some refuse a handshake for its revision, and name those that they speak. */
  private async offered(call: Call, next: Next): Promise<Json> {
    try {
      return await next(call);
    } catch (error) {
      if (!(error instanceof RpcError) || error.code === UNSUPPORTED_VERSION) throw error;
      const protocolVersion = common(asObject(error.data).supported, REVISIONS);
      if (!protocolVersion || protocolVersion === call.params?.protocolVersion) throw error;
      return next({ ...call, params: { ...call.params, protocolVersion } });
    }
  }

  private async introduced(call: Call, next: Next): Promise<Json> {
    try {
      return await next(this.withMeta(call));
    } catch (error) {
      const revision = isUnsupported(error) && common(asObject(error.data).supported);
      if (!revision) throw namingBoth(error);
      this.revision = revision;
    }
    try {
      return await next(this.withMeta(call));
    } catch (error) {
      throw namingBoth(error); // tried once: some refuse what they offer
    }
  }

  private withMeta(call: Call): Call {
    const { [VERSION_KEY]: _, ...given } = asObject(call.params?._meta);
    const _meta = {
      [VERSION_KEY]: this.revision,
      'io.modelcontextprotocol/clientInfo': CLIENT_INFO,
      [CAPABILITIES_KEY]: withoutNotices(this.connection.capabilities),
      ...given, // of another client, perhaps, whose request we pass on
    };
    return { ...call, params: { ...call.params, _meta } };
  }
}

/** The handshake era has a notice that roots have changed, and this one has not. */
function withoutNotices(capabilities: Json): Json {
  return capabilities.roots === undefined ? capabilities : { ...capabilities, roots: {} };
}

const isUnsupported = (error: unknown): error is RpcError =>
  error instanceof RpcError && error.code === UNSUPPORTED_VERSION;

/** It was answered, if not as we hoped. */
const isAnswer = (error: unknown): boolean =>
  error instanceof RpcError || (error instanceof McpError && error.kind === 'protocol');

/** Refuses a handshake as only a server of the later era does: it knows none, or names another
 *  revision. */
function isOfLaterEra(error: unknown): boolean {
  const isUnknown = error instanceof RpcError && error.code === -32601;
  return (
    isUnknown || (isUnsupported(error) && common(asObject(error.data).supported) !== undefined)
  );
}

/** The first of `ours` that the server speaks too. */
function common(theirs: unknown, ours = STATELESS): string | undefined {
  return ours.find((revision) => Array.isArray(theirs) && theirs.includes(revision));
}

const bothSides = (theirs: unknown) =>
  `speaks ${excerpt(theirs)}, and without a handshake we speak ${STATELESS.join(', ')}`;

/** A refusal of our revision, with the names of those that would have done. */
function namingBoth(error: unknown): unknown {
  if (!isUnsupported(error)) return error;
  const words = `${error.message}. It ${bothSides(asObject(error.data).supported)}`;
  return new RpcError(error.code, words, error.data);
}

// ─── Which era does this server speak? ──────────────────────────────────────────────────────────

type Description = ServerDescription | undefined;
const SILENT = 'it was silent when asked to describe itself';
const NOT_STATELESS = 'does not speak the stateless revision that its entry asks for';
const IGNORANT = 'it does not know server/discover';

/** Opens one connection. The probe, `server/discover`, is written first, because some servers keep
 *  to the era of the first line they read. If nothing comes back for a while, a handshake follows.
 *  What the server has answered is remembered for next time. */
class Opening {
  private connection: McpConnection;
  private introduction: Introduction;
  private verdicts: Verdicts;
  private pause: Pause;
  private entry: string;
  private era?: Era; // of this connection, whatever becomes of the verdict
  private because = SILENT; // why a handshake is the right opening
  private answering?: AbortSignal; // of the transport from which an answer has come

  constructor(
    connection: McpConnection,
    introduction: Introduction,
    verdicts: Verdicts,
    pause: Pause,
  ) {
    this.connection = connection;
    this.introduction = introduction;
    this.verdicts = verdicts;
    this.pause = pause;
    this.entry = canonicalJson(connection.config);
  }

  async open(): Promise<ServerDescription> {
    const { era: wanted } = this.connection.config;
    if (wanted !== undefined) return this.openAs(wanted as Era);
    const kept = this.verdicts.get(this.entry);
    const known = this.era ?? kept;
    this.because = SILENT;
    const server = await (known === 'handshake' ? this.asBefore() : this.findOut(known));
    this.era = isStateless(server) ? 'stateless' : 'handshake';
    if (kept !== this.era) this.verdicts.set(this.entry, this.era);
    return { because: this.because, ...server };
  }

  /** As its entry says, for those who test servers. */
  private async openAs(era: Era): Promise<ServerDescription> {
    const because = 'its entry says so';
    if (era === 'handshake') this.answering = this.connection.signal; // a plain one
    const server = await (era === 'handshake' ? this.shake() : this.discover({}));
    if (!server) throw this.connection.error('protocol', NOT_STATELESS);
    return { because, ...server };
  }

  /** A verdict saves the probe, from which some servers die. It is checked when it fails. */
  private async asBefore(): Promise<ServerDescription> {
    this.because = 'it needed a handshake the last time we connected';
    try {
      return await this.shake();
    } catch (error) {
      this.verdicts.delete(this.entry); // whatever it was, the next start of the program asks again
      if (!isAnswer(error)) throw error;
      this.era = undefined;
      this.because = SILENT;
      await this.connection.reopen(); // it may keep to the era of its first line
      return this.findOut();
    }
  }

  private async findOut(known?: Era): Promise<ServerDescription> {
    const { connection } = this;
    const startedAt = now();
    const strays = connection.strayAnswers;
    const over = new AbortController(); // ends the opening that is not needed
    const { signal } = over;
    try {
      const probe = this.discover({ signal });
      probe.catch(() => {}); // it is awaited below, perhaps after it has failed
      const alone = Math.min(PROBE_MS, connection.options.handshakeTimeoutMs / 3);
      const early = await Promise.race([probe, this.pause(alone, signal)]);
      if (early) return early;
      const hands = this.shake(signal, probe);
      const doubt = this.doubt(strays, signal);
      return await Promise.race([this.firstAccepted(probe, hands, signal), doubt]);
    } catch (error) {
      return this.afterDeath(error, startedAt, known);
    } finally {
      over.abort();
    }
  }

  /** Into a pipe out of which nothing has come yet, no plain handshake goes: a server of both eras
   *  that starts slowly would keep to it. If it introduces itself, that server refuses it, and all
   *  others ignore the introduction. Should one mind, it gets the handshake that it knows. */
  private async shake(
    signal?: AbortSignal,
    probe: Promise<Description> = Promise.resolve(undefined),
  ): Promise<ServerDescription> {
    const { connection, introduction } = this;
    const isPlain = connection.hasStreamPerRequest || this.answering === connection.signal;
    introduction.isUndecided = !isPlain;
    const hands = shakeHands(connection, { signal });
    introduction.isUndecided = false; // it is on its way
    try {
      return await hands;
    } catch (error) {
      if (!isAnswer(error)) throw error;
      this.answering = connection.signal;
      const early = await Promise.race([probe, this.pause(MOMENT_MS, signal)]);
      const description =
        early ?? (await (isOfLaterEra(error) ? this.discover({ signal }) : early));
      if (description) return description;
      if (!isPlain) return this.shake(signal, probe);
      const late = await probe; // it is on the way, perhaps
      if (late) return late;
      throw error;
    }
  }

  /** Whichever opening the server accepts. If it refuses one, the other decides. */
  private firstAccepted(
    probe: Promise<Description>,
    hands: Promise<ServerDescription>,
    signal: AbortSignal,
  ): Promise<ServerDescription> {
    const described = probe.then((answer) =>
      answer ? this.unlessItKeepsTo(hands, answer, signal) : hands,
    );
    const accepted = hands.then(async (server) => {
      // Answers may come in any order.
      const answer = await Promise.race([probe, this.pause(MOMENT_MS, signal)]);
      return answer ? described : server;
    });
    return Promise.race([described, accepted]);
  }

  /** It describes itself, but the handshake is on its way, too. Some take both, and some of those
   *  keep to the handshake from then on: ask once more. */
  private async unlessItKeepsTo(
    hands: Promise<ServerDescription>,
    description: ServerDescription,
    signal: AbortSignal,
  ): Promise<ServerDescription> {
    const ignored = this.pause(MOMENT_MS, signal);
    const server = await Promise.race([hands.catch(() => undefined), ignored]);
    if (!server || isStateless(server)) return description;
    return (await this.discover({ signal })) ?? server;
  }

  /** Nothing for seconds. Some answer the probe under an id of their own, and nothing after that:
   *  those are started again. */
  private async doubt(strays: number, signal: AbortSignal): Promise<never> {
    const { connection } = this;
    const { handshakeTimeoutMs } = connection.options;
    await this.pause(Math.min(CONFUSED_MS, handshakeTimeoutMs / 3), signal);
    const isConfused = !signal.aborted && connection.strayAnswers > strays;
    if (!isConfused || connection.hasStreamPerRequest) return new Promise(() => {});
    this.because = 'it answered server/discover under an id of its own';
    throw connection.error('closed', 'is confused by server/discover');
  }

  /** Some die of a request that they do not know. Start those again, once, without it. */
  private async afterDeath(
    error: unknown,
    startedAt: number,
    known?: Era,
  ): Promise<ServerDescription> {
    const { connection } = this;
    const hasDied = error instanceof McpError && error.kind === 'closed' && !connection.isClosed;
    // If it took that long to die, it is not the probe: tell of this death.
    const isLate = now() - startedAt > connection.options.handshakeTimeoutMs * 0.75;
    if (!hasDied || isLate || connection.hasStreamPerRequest) throw error;
    if (connection.ended) this.because = 'it died when asked to describe itself';
    await connection.reopen();
    // It has described itself before, so it did not die of the probe.
    const description = known === 'stateless' ? await this.discover({}) : undefined;
    return description ?? this.shake();
  }

  /** The server's description; nothing if it wants a handshake. */
  private async discover({ signal }: CallOptions): Promise<Description> {
    const answer = await this.probe(signal);
    const { supportedVersions, _meta } = answer;
    if (!Array.isArray(supportedVersions)) return undefined; // some answer anything with {}
    const protocolVersion = common(supportedVersions);
    if (!protocolVersion && common(supportedVersions, REVISIONS)) {
      this.because = 'it answered server/discover with revisions that have one';
      return undefined;
    }
    if (!protocolVersion) throw this.connection.error('protocol', bothSides(supportedVersions));
    const serverInfo = asObject(_meta)[SERVER_INFO_KEY];
    return {
      protocolVersion,
      because: 'it answered server/discover',
      ...selfDescription({ ...answer, serverInfo }),
    };
  }

  private async probe(signal?: AbortSignal): Promise<Json> {
    const { connection } = this;
    const timeoutMs = connection.options.handshakeTimeoutMs;
    try {
      const answer = await connection.request('server/discover', {}, { timeoutMs, signal });
      this.answering = connection.signal;
      this.because = IGNORANT; // unless there is a description in it
      return answer;
    } catch (error) {
      if (isAnswer(error)) this.answering = connection.signal;
      // The code of a refusal says nothing, except for three that only the later era has.
      const isRefusal = error instanceof RpcError && !LATER_ERRORS.includes(error.code);
      const kind = error instanceof McpError ? error.kind : '';
      const isOdd = kind === 'protocol' || kind === 'lost';
      const theirs = isUnsupported(error) ? asObject(error.data).supported : undefined;
      if (common(theirs, REVISIONS)) return { supportedVersions: theirs };
      const isSilence = kind === 'timeout' || kind === 'aborted';
      if (isRefusal || isOdd) this.because = IGNORANT;
      if (isRefusal || isOdd || isSilence) return {};
      throw error;
    }
  }
}
