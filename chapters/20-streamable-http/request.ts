// request.ts: a request to a server of tools, and what its failures mean. It goes out by send.ts of
// chapter 18, and not by the global fetch, which gives up after five minutes of silence, follows
// redirects with whatever headers we gave it, and unpacks a bomb before we see its size.

import { McpError } from '../../mcp.ts';
import { ProxyError } from '../18-minds/proxy.ts';
import {
  CLOSED,
  NoAnswer,
  sendRequest,
  type NodeReply,
  type SendOptions,
} from '../18-minds/send.ts';
import { resolveAddress } from './reply.ts';

type NodeOptions = Omit<SendOptions, 'connectMs' | 'silenceMs'>;

const SEE_OTHER = 303;
const REDIRECTS = [301, 302, SEE_OTHER, 307, 308];
const MAX_REDIRECTS = 5;
const REMEDY = 'If that is right, put its address into the configuration';

/** The `Fetch` of a program on Node. */
export const fetchHttp = (who: string, url: URL, options: NodeOptions) =>
  fetchFrom(who, url, options, 0);

async function fetchFrom(
  who: string,
  url: URL,
  options: NodeOptions,
  redirects: number,
): Promise<NodeReply> {
  const reply = await sendRequest(url, options).catch((error) =>
    Promise.reject(failure(who, error)),
  );
  const { status } = reply;
  const { location } = reply.headers;
  const isElsewhere = status >= 300 && status < 400;
  if (!isElsewhere) return reply;
  reply.body.destroy();
  // We want no choice (300), have nothing in store (304), and no server chooses our proxy (305).
  if (!REDIRECTS.includes(status) || !location)
    throw new McpError('protocol', `${who} answered HTTP ${status}, which leads nowhere`);
  const target = resolveAddress(location, url);
  // The target gets our headers, our session and our message: it must be the server of the entry.
  if (target?.origin !== url.origin) {
    const where = target?.origin ?? 'nowhere';
    throw new McpError('protocol', `${who} sends us on to ${where}. ${REMEDY}`);
  }
  if (redirects === MAX_REDIRECTS) {
    const last = target.pathname;
    throw new McpError('protocol', `${who} sends us on and on, the last time to ${last}`);
  }
  const next = status === SEE_OTHER ? asGet(options) : options;
  return fetchFrom(who, target, next, redirects + 1);
}

/** 303 says: it is done, and what came of it can be read over there. So the message is not sent
 *  again, unlike with the others, which say: not here. */
function asGet(options: NodeOptions): NodeOptions {
  const { 'content-type': _, ...headers } = options.headers;
  return { ...options, method: 'GET', headers, body: undefined };
}

/** Before there was a connection nothing can have been received; afterwards it may have been. */
function failure(who: string, error: unknown) {
  if (error instanceof ProxyError) {
    const kind = error.isFinal ? 'config' : 'unreachable';
    return new McpError(kind, `${who} cannot be reached: ${error.message}`);
  }
  if (!(error instanceof NoAnswer)) return error; // we were stopped
  const isRefused = error.code === 'ECONNREFUSED';
  const why = isRefused ? 'nobody listens there (ECONNREFUSED)' : error.message;
  if (why === CLOSED) return new McpError('lost', `${who} ${why}`);
  return error.isConnected
    ? new McpError('lost', `${who} broke off: ${why}`)
    : new McpError('unreachable', `${who} cannot be reached: ${why}`);
}
