// era.ts: one client for both eras. Up to 2025-11-25 a connection begins with a handshake. Since
// 2026-07-28 there is none: every request says which revision it speaks and what the client can do.

import {
  asObject, CLIENT_INFO, excerpt, isStateless, McpError, now, REVISIONS, RpcError, selfDescription,
  shakeHands,
} from '../../mcp.ts';
import type {
  Call, CallOptions, Extension, Json, McpConnection, Next, ServerDescription,
} from '../../mcp.ts';
import { canonical, sha256 } from '../17-the-gate/digest.ts';
import {
  LATER_ERRORS, mirrorArguments, UNSUPPORTED_VERSION, VERSION_KEY,
} from '../20-streamable-http/headers.ts';
import { keepAnswers } from './cache.ts';
import { answerWithin } from './input-required.ts';
import { doze, type Pause } from './pause.ts';
import { listenForChanges } from './subscriptions.ts';

export const STATELESS = ['2026-07-28'];
const SERVER_INFO_KEY = 'io.modelcontextprotocol/serverInfo';
const HEAD_START_MS = 1500; // for the probe, where it is tried alone at first
const MOMENT_MS = 25; // for the answer to what was written together with it
const CONFUSED_MS = 5000; // of silence, before we doubt that the server has understood

/** How a server wanted to be opened, by the fingerprint of its entry. A Map will do; `KeptVerdicts`
 *  remembers them from one start of the program to the next. */
export interface Verdicts {
  get(key: string): Era | undefined;
  set(key: string, era: Era): unknown;
  delete(key: string): unknown;
}
export type Era = 'handshake' | 'stateless';
export type EraOptions = { verdicts?: Verdicts; pause?: Pause };

/** All of this chapter, in order, for a program without a composition. */
export function inBothEras(options: EraOptions = {}): Extension[] {
  return [
    answerWithin(options),
    keepAnswers,
    mirrorArguments,
    listenForChanges(options),
    eitherEra(options), // last: it completes every request, also those of the others
  ];
}

export function eitherEra({ verdicts = new Map(), pause = doze }: EraOptions = {}): Extension {
  return function eitherEra(connection) {
    const introduction = new Introduction(connection);
    const opening = new Opening(connection, introduction, verdicts, pause);
    return {
      layer: (call, next) => introduction.add(call, next),
      handshake: () => opening.open(),
    };
  };
}

// ─── Every request introduces itself ────────────────────────────────────────────────────────────

/** Adds to a request what there is no handshake to say: revision, name, and what we can do. */
class Introduction {
  private connection: McpConnection;
  private revision = STATELESS[0]!;
  isUndecided = false; // we speak both eras at once, to find out

  constructor(connection: McpConnection) {
    this.connection = connection;
  }

  add(call: Call, next: Next): Promise<Json> {
    // A server of both eras sees that this handshake is not meant for it, and refuses.
    if (this.isUndecided && call.method === 'initialize') return next(this.withMeta(call));
    const isProbe = call.method === 'server/discover'; // it asks what the server speaks
    if (!isProbe && !isStateless(this.connection.server)) return next(call);
    return this.introduced(call, next);
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
    const _meta = {
      ...asObject(call.params?._meta),
      [VERSION_KEY]: this.revision,
      'io.modelcontextprotocol/clientInfo': CLIENT_INFO,
      'io.modelcontextprotocol/clientCapabilities': withoutNotices(this.connection.capabilities),
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
const IGNORANT = 'it does not know server/discover';

/** Opens one connection. The probe, `server/discover`, is written first, because some servers keep
 *  to the era of the first line they read. On a pipe the handshake follows at once, so that nobody
 *  waits for a server that ignores the probe. What it wanted is remembered for next time. */
class Opening {
  private connection: McpConnection;
  private introduction: Introduction;
  private verdicts: Verdicts;
  private pause: Pause;
  private key: string;
  private era?: Era; // of this connection, whatever becomes of the verdict
  private because = SILENT; // why a handshake is the right opening

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
    const folder = process.cwd(); // the same words may start another program elsewhere
    this.key = sha256(canonical({ folder, ...connection.config }));
  }

  async open(): Promise<ServerDescription> {
    const kept = this.verdicts.get(this.key);
    const known = this.era ?? kept;
    this.because = SILENT;
    const server = await (known === 'handshake' ? this.asBefore() : this.findOut(known));
    this.era = isStateless(server) ? 'stateless' : 'handshake';
    if (kept !== this.era) this.verdicts.set(this.key, this.era);
    return { because: this.because, ...server };
  }

  /** A verdict saves the probe, from which some servers die. It is checked when it fails. */
  private async asBefore(): Promise<ServerDescription> {
    this.because = 'it wanted a handshake before';
    try {
      return await this.shake();
    } catch (error) {
      const isProtocol = error instanceof McpError && error.kind === 'protocol';
      this.verdicts.delete(this.key); // whatever it was, the next start of the program asks again
      if (!(error instanceof RpcError) && !isProtocol) throw error;
      this.era = undefined;
      const description = isUnsupported(error) ? await this.discover({}) : undefined;
      if (description) return description;
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
      // By HTTP a request is answered, known or not; and a verdict may be trusted for a while.
      const isAlone = connection.hasStreamPerRequest || known === 'stateless';
      if (isAlone) {
        const early = await Promise.race([probe, this.pause(HEAD_START_MS, signal)]);
        if (early) return early;
      }
      const hands = isAlone ? this.shake({ signal }) : this.shakeBeside(probe, signal);
      const doubt = this.doubt(strays, signal);
      return await Promise.race([this.firstAccepted(probe, hands, signal), doubt]);
    } catch (error) {
      return this.afterDeath(error, startedAt, known);
    } finally {
      over.abort();
    }
  }

  /** The line after the probe. It says that we speak the later era, too: a server of both keeps to
   *  a handshake without that, even if it has described itself. Should a server mind, and not know
   *  the probe either, it gets the handshake that it knows. */
  private async shakeBeside(probe: Promise<Description>, signal: AbortSignal) {
    this.introduction.isUndecided = true;
    const hands = this.shake({ signal });
    this.introduction.isUndecided = false; // it is on its way
    try {
      return await hands;
    } catch (error) {
      const isLater = isUnsupported(error) && common(asObject(error.data).supported);
      if (isLater || !(error instanceof RpcError)) throw error;
      const early = await Promise.race([probe, this.pause(MOMENT_MS, signal)]);
      if (early) throw error;
      return this.shake({ signal });
    }
  }

  /** Whichever opening the server accepts. If it refuses one, the other decides. */
  private firstAccepted(
    probe: Promise<Description>,
    hands: Promise<ServerDescription>,
    signal: AbortSignal,
  ): Promise<ServerDescription> {
    let description: Description;
    const shaken = hands.catch((error: Error) => this.afterRefusal(error, probe, signal));
    const described = probe.then((answer) => {
      description = answer;
      return answer ? this.unlessItKeepsTo(hands, answer, signal) : shaken;
    });
    const accepted = shaken.then(async (server) => {
      await Promise.race([probe, this.pause(MOMENT_MS, signal)]); // answers may come in any order
      return description ? described : server;
    });
    return Promise.race([described, accepted]);
  }

  /** No handshake with this one. Its description may be on the way. */
  private async afterRefusal(error: Error, probe: Promise<Description>, signal: AbortSignal) {
    const early = await Promise.race([probe, this.pause(MOMENT_MS, signal)]);
    if (early) return early;
    // Refused for its revision: it speaks the later one after all.
    const isWilling = isUnsupported(error) && !signal.aborted;
    const again = isWilling ? this.discover({ signal }) : probe;
    const description = await Promise.race([probe, again]);
    if (description) return description;
    throw error;
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
    if (!server) return description;
    return (await this.discover({ signal })) ?? server;
  }

  /** Nothing for seconds. Some answer the probe under an id of their own, and nothing after that:
   *  those are started again. Some take all that has arrived for one message, and drop it: those
   *  get the handshake once more, alone. */
  private async doubt(strays: number, signal: AbortSignal): Promise<ServerDescription> {
    const { handshakeTimeoutMs } = this.connection.options;
    await this.pause(Math.min(CONFUSED_MS, handshakeTimeoutMs / 3), signal);
    if (signal.aborted || this.connection.hasStreamPerRequest) return new Promise(() => {});
    if (this.connection.strayAnswers > strays) {
      this.because = 'it answered server/discover under an id of its own';
      throw this.connection.error('closed', 'is confused by server/discover');
    }
    return this.shake({ signal }).catch(() => new Promise(() => {})); // the first one has the word
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

  private shake(options?: CallOptions): Promise<ServerDescription> {
    return shakeHands(this.connection, options);
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
    const timeoutMs = this.connection.options.handshakeTimeoutMs;
    try {
      const answer = await this.connection.request('server/discover', {}, { timeoutMs, signal });
      this.because = IGNORANT; // unless there is a description in it
      return answer;
    } catch (error) {
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
