// era.ts: one client for both eras. Up to 2025-11-25 a connection begins with a handshake; since 2026-07-28 there is
// none, and every request says for itself which revision it speaks and what the client can do.

import { setTimeout as wait } from 'node:timers/promises';
import type { TimerOptions } from 'node:timers';
import { asObject, CLIENT_INFO, excerpt, isObject, McpError, now, RpcError, shakeHands, show } from '../../mcp.ts';
import type { Call, Handler, Json, Layer, McpConnection, ServerDescription } from '../../mcp.ts';
import { LATER_ERRORS, mirrorArguments, UNSUPPORTED_VERSION, VERSION_KEY } from '../20-streamable-http/headers.ts';

export const STATELESS = ['2026-07-28'];
const PROBE_MS = 5000;
const MAX_ROUNDS = 10;
const [MIN_PAUSE_MS, MAX_PAUSE_MS] = [1000, 60_000]; // between two subscriptions
const SERVER_INFO_KEY = 'io.modelcontextprotocol/serverInfo';
const SUBSCRIPTION_KEY = 'io.modelcontextprotocol/subscriptionId';

const pause = (ms: number, options: TimerOptions): Promise<void> => wait(ms, undefined, options).catch(() => {});
/** Until silence is an answer, and before we try again. A test puts its own in their place, and need not wait. */
export const pauses = { silence: pause, retry: pause };

// ─── Every request introduces itself ──────────────────────────────────────────────────────────────────────────

const isStateless = ({ server }: McpConnection) => STATELESS.includes(server?.protocolVersion ?? '');

/** Adds to a request what there is no handshake to say: our revision, our name, and what we can do. */
export const introduce: Layer = async (call, next, connection) => {
  const isProbe = call.method === 'server/discover'; // with it we find out what the server speaks
  const server = isStateless(connection) ? connection.server : undefined;
  if (!isProbe && !server) return next(call);
  const send = (revision: string | undefined) => {
    const introduction = {
      [VERSION_KEY]: revision,
      'io.modelcontextprotocol/clientInfo': CLIENT_INFO,
      'io.modelcontextprotocol/clientCapabilities': connection.options.capabilities ?? {},
    };
    return next({ ...call, params: { ...call.params, _meta: { ...asObject(call.params?._meta), ...introduction } } });
  };
  try {
    return await send(server?.protocolVersion ?? STATELESS[0]);
  } catch (error) {
    const revision = isUnsupported(error) && common(asObject(error.data).supported);
    if (!revision) throw named(error);
    if (server) server.protocolVersion = revision;
    return send(revision).catch((again) => Promise.reject(named(again))); // once: some refuse what they offer
  }
};

const isUnsupported = (error: unknown): error is RpcError =>
  error instanceof RpcError && error.code === UNSUPPORTED_VERSION;

const common = (theirs: unknown) =>
  STATELESS.find((revision) => Array.isArray(theirs) && theirs.includes(revision));

const bothSides = (theirs: unknown) =>
  `speaks ${excerpt(theirs)}, and without a handshake we speak ${STATELESS.join(', ')}`;

/** A refusal of our revision, with the names of those that would have done. */
function named(error: unknown): unknown {
  if (!isUnsupported(error)) return error;
  return new RpcError(error.code, `${error.message}. It ${bothSides(asObject(error.data).supported)}`, error.data);
}

// ─── Which era does this server speak? ────────────────────────────────────────────────────────────────────────

type Shake = (because: string) => Promise<ServerDescription>;
const shaking = new Set<string>(); // servers that are known to want a handshake

/** Finds out whether a server wants a handshake, and opens the connection in its way. */
export async function openEither(connection: McpConnection): Promise<ServerDescription> {
  const endsAt = now() + connection.options.handshakeTimeoutMs; // one limit for everything that is tried
  const left = () => Math.max(1, endsAt - now());
  const shake: Shake = async (because) => {
    try {
      return { ...(await shakeHands(connection, left())), because };
    } catch (error) {
      // A server that refuses the handshake for its revision speaks the later one after all.
      const description = isUnsupported(error) && (await discover(connection, left()));
      return description || Promise.reject(error);
    }
  };
  connection.server = undefined; // a second handshake begins as ignorant as the first
  const key = JSON.stringify([connection.serverName, connection.config]);
  const isKnown = shaking.has(key);
  const description = await (isKnown ? shake('it wanted a handshake before') : askFirst(connection, left, shake));
  if (!STATELESS.includes(description.protocolVersion)) shaking.add(key);
  else {
    shaking.delete(key);
    listenSoon(connection, description);
  }
  return description;
}

/** Asks for a description, which only servers of the later era have. Everything else means a handshake. */
async function askFirst(connection: McpConnection, left: () => number, shake: Shake): Promise<ServerDescription> {
  const isHttp = 'url' in connection.config && connection.config.type !== 'ws';
  const wasStray = connection.warnings.has('stray');
  const probe = discover(connection, left());
  probe.catch(() => {}); // it is awaited below, perhaps later than it fails
  const silence = pauses.silence(Math.min(PROBE_MS, left() / 3), { ref: false }).then(() => 'silence' as const);
  const startAnew: Shake = async (because) => {
    await connection.reopen();
    return shake(because);
  };
  /** Some die of a question that they do not know. Then start it again, once, and do not ask. */
  const afterDeath = (error: unknown) => {
    const hasDied = error instanceof McpError && error.kind === 'closed' && !connection.isClosed;
    const isLate = left() < connection.options.handshakeTimeoutMs / 4; // no time for another start: tell of this one
    if (!hasDied || isHttp || isLate) throw error;
    return startAnew('it died when asked to describe itself');
  };
  const early = await Promise.race([probe, silence]).catch(afterDeath);
  if (early === undefined) return shake('it does not know server/discover');
  if (early !== 'silence') return early;
  const isStray = !isHttp && !wasStray && connection.warnings.has('stray');
  if (isStray) return startAnew('it answered server/discover under an id of its own'); // and is confused now
  // Most likely it waits for the handshake. But a slow one may still describe itself: whichever comes first.
  const hands = shake('it was silent when asked to describe itself');
  const late = probe.then((description) => description ?? hands);
  return Promise.race([late, hands.catch(() => late)]).catch(afterDeath);
}

/** The server's description; nothing if it does not know the question. */
async function discover(connection: McpConnection, timeoutMs: number): Promise<ServerDescription | undefined> {
  const answer = await connection.request('server/discover', {}, { timeoutMs }).catch((error): Json => {
    // Which code a refusal has says nothing, except for these three, which only servers of the later era know.
    const isRefusal = error instanceof RpcError && !LATER_ERRORS.includes(error.code);
    const isUnclear = error instanceof McpError && ['protocol', 'lost', 'timeout'].includes(error.kind);
    if (isRefusal || isUnclear) return {};
    throw error;
  });
  const { supportedVersions, capabilities, instructions, _meta } = answer;
  if (!Array.isArray(supportedVersions)) return undefined; // some answer anything with {}
  const protocolVersion = common(supportedVersions);
  if (!protocolVersion) throw connection.error('protocol', bothSides(supportedVersions));
  const serverInfo = asObject(_meta)[SERVER_INFO_KEY];
  return {
    protocolVersion,
    because: 'it answered server/discover',
    ...(isObject(capabilities) && { capabilities }),
    ...(isObject(serverInfo) && { serverInfo }),
    ...(typeof instructions === 'string' && { instructions }),
  };
}

// ─── A server asks inside its results ─────────────────────────────────────────────────────────────────────────

const MAY_ASK = ['tools/call', 'prompts/get', 'resources/read'];

/** Answers what a result asks for, and sends the request again with the answers, until it is complete. */
export const answerWithin: Layer = async (call, next, connection) => {
  if (!isStateless(connection)) return next(call);
  const { method } = call;
  let result = await next(call);
  for (let round = 1; result.resultType === 'input_required' && MAY_ASK.includes(method); round++) {
    if (round > MAX_ROUNDS) throw connection.error('limit', `asked back more than ${MAX_ROUNDS} times in ${method}`);
    result = await next(await withAnswers(call, result, connection, round));
  }
  const { resultType: type = 'complete' } = result;
  if (type === 'complete') return result;
  throw connection.error('protocol', `answered ${method} with a result of type ${excerpt(type)}`);
};

/** The same call with the answers to one result's questions. */
async function withAnswers(call: Call, result: Json, connection: McpConnection, round: number): Promise<Call> {
  const { inputRequests, requestState } = result;
  const questions = Object.entries(asObject(inputRequests));
  const answers: [string, unknown][] = [];
  for (const [key, question] of questions) answers.push([key, await answerTo(asObject(question), connection)]);
  // It asks for nothing but patience. (Whoever cancels the call need not wait: the next request fails at once.)
  if (questions.length === 0) await pauses.retry(Math.min(100 * 2 ** round, 5000), { signal: call.options.signal });
  const added = {
    ...(questions.length > 0 && { inputResponses: Object.fromEntries(answers) }),
    ...(requestState !== undefined && { requestState }), // the server's own: it goes back as it came
  };
  return { ...call, params: { ...call.params, ...added } };
}

/** Our handler's answer: the one that answers the same request in the earlier era. */
async function answerTo({ method, params }: Json, connection: McpConnection): Promise<unknown> {
  const name = show(method);
  const { capabilities = {}, handlers = {} } = connection.options;
  const isOffered = Object.hasOwn(capabilities, name.split('/')[0]!) && Object.hasOwn(handlers, name);
  if (!isOffered) throw connection.error('protocol', `asks for ${excerpt(name)}, which we have not offered`);
  return connection.handle(name, asObject(params));
}

// ─── Answers that may be kept ─────────────────────────────────────────────────────────────────────────────────

const MAX_KEPT = 1000;
const FORGET: Record<string, string[]> = {
  'notifications/tools/list_changed': ['tools/list'],
  'notifications/prompts/list_changed': ['prompts/list'],
  'notifications/resources/list_changed': ['resources/list', 'resources/templates/list'],
  'notifications/resources/updated': ['resources/read'],
};
const MAY_KEEP = Object.values(FORGET).flat();
type Kept = Map<string, { result: Json; endsAt: number }>; // by parameters
const kept = new WeakMap<ServerDescription, Map<string, Kept>>(); // by method; a new handshake keeps nothing

/** Answers from memory what the server has said we may remember. */
export const keepAnswers: Layer = async (call, next, connection) => {
  const { method } = call;
  const { _meta, ...params } = call.params ?? {};
  const isRepetition = 'inputResponses' in params || 'requestState' in params;
  if (!isStateless(connection) || !MAY_KEEP.includes(method) || isRepetition) return next(call);
  const byMethod = kept.get(connection.server!) ?? new Map<string, Kept>();
  kept.set(connection.server!, byMethod);
  const answers: Kept = byMethod.get(method) ?? new Map();
  byMethod.set(method, answers);
  const key = JSON.stringify(params);
  const found = answers.get(key);
  if (found && now() < found.endsAt) return found.result;
  answers.delete(key);
  const result = await next(call).catch((error) => {
    if ('cursor' in params) byMethod.delete(method); // perhaps a cursor from a page that is no longer true
    throw error;
  });
  const { ttlMs, resultType = 'complete' } = result;
  const mayKeep = typeof ttlMs === 'number' && ttlMs > 0 && resultType === 'complete';
  // If the list has changed while we waited, `answers` is a map that nobody looks into any more.
  if (mayKeep) answers.set(key, { result, endsAt: now() + ttlMs });
  if (answers.size > MAX_KEPT) answers.delete(answers.keys().next().value!);
  return result;
};

function forget(notice: string, { server }: McpConnection): void {
  for (const method of FORGET[notice]!) if (server) kept.get(server)?.delete(method);
}

// ─── Changes are told to those who listen ─────────────────────────────────────────────────────────────────────

const WATCHED = { tools: 'toolsListChanged', prompts: 'promptsListChanged', resources: 'resourcesListChanged' };
const listening = new WeakMap<McpConnection, { wanted: Json; id?: unknown; end: AbortController }>();

/** Opens one subscription for all changes that the server can tell of. */
function listenSoon(connection: McpConnection, { capabilities = {} }: ServerDescription): void {
  const watched = Object.entries(WATCHED).filter(([kind]) => asObject(capabilities[kind]).listChanged === true);
  const wanted = Object.fromEntries(watched.map(([, name]) => [name, true]));
  if (watched.length > 0) setImmediate(() => void listen(connection, wanted)); // when the connection is open
}

/** When a subscription ends, opens another: after a pause, which grows unless the last one held for a while. */
async function listen(connection: McpConnection, wanted: Json): Promise<void> {
  const { server } = connection;
  for (let pause = MIN_PAUSE_MS; connection.server === server && !connection.ended; pause *= 2) {
    const end = new AbortController();
    listening.set(connection, { wanted, end });
    const startedAt = now();
    const options = { timeoutMs: Infinity, signal: end.signal };
    try {
      await connection.request('subscriptions/listen', { notifications: wanted }, options);
    } catch (error) {
      const isRefused = error instanceof RpcError;
      if (isRefused) return connection.warn('listen', `does not let us listen for changes: ${error.message}`);
    }
    if (now() - startedAt > MAX_PAUSE_MS) pause = MIN_PAUSE_MS;
    pause = Math.min(pause, MAX_PAUSE_MS);
    if (!connection.ended) await pauses.retry(pause, { ref: false }); // nobody stays alive for it
  }
}

/** The server says which of the changes it will tell. */
const acknowledged: Handler = ({ notifications, _meta }, connection) => {
  const state = listening.get(connection);
  if (!state) return;
  state.id = asObject(_meta)[SUBSCRIPTION_KEY];
  const missing = Object.keys(state.wanted).filter((name) => asObject(notifications)[name] !== true);
  if (missing.length > 0) connection.warn('listen', `will not tell us of ${missing.join(', ')}`);
};

/** The server ends a subscription by its result, by the end of the stream, or by cancelling our request. */
const cancelled: Handler = ({ requestId }, connection) => {
  const state = listening.get(connection);
  if (state && state.id === requestId) state.end.abort();
};

// ─── All of it, as options of a connection ────────────────────────────────────────────────────────────────────

const forgetting = Object.keys(FORGET).map((notice): [string, Handler] => [notice, (_, who) => forget(notice, who)]);

export const bothEras = {
  handshake: openEither,
  layers: [answerWithin, keepAnswers, mirrorArguments, introduce] as Layer[],
  handlers: {
    ...Object.fromEntries(forgetting),
    'notifications/subscriptions/acknowledged': acknowledged,
    'notifications/cancelled': cancelled,
  } as Record<string, Handler>,
};
