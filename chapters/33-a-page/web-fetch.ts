// web-fetch.ts: a request by the fetch of a web page, and as much as a page can know of its failure.

import { McpError } from '../../mcp.ts';
import type { Body, Fetch } from '../20-streamable-http/reply.ts';

/** The page that we are in; none under Node. */
type PageLocation = { protocol: string; origin: string; hostname: string };
const { location, navigator } = globalThis as {
  location?: PageLocation;
  navigator?: { permissions?: { query(what: { name: string }): Promise<{ state: string }> } };
};
const QUIETLY = {
  credentials: 'omit', // no cookies of the person
  cache: 'no-store',
  referrerPolicy: 'no-referrer',
} as const;

export const fetchWeb: Fetch = async (who, url, options) => {
  if (isMixed(url)) {
    const why = 'a page that came by https may use no http:// address but those of this machine';
    throw new McpError('config', `${who} cannot be reached from here: ${why}`);
  }
  const response = await fetch(url, { ...options, ...QUIETLY, redirect: 'manual' }).catch(() => {
    options.signal?.throwIfAborted();
    return explained(who, url);
  });
  // Followed, it would take our headers along; and a page is not told where it leads.
  if (response.type === 'opaqueredirect')
    throw new McpError('protocol', `${who} sends us elsewhere: enter the address it moved to`);
  const { status, statusText, headers, body } = response;
  return { status, statusText, headers: Object.fromEntries(headers), body: bodyOf(body) };
};

/** What a browser refuses before anything is sent. */
const isMixed = ({ protocol, hostname }: URL) =>
  location?.protocol === 'https:' && protocol === 'http:' && !isOfThisMachine(hostname);
const isOfThisMachine = (hostname: string) => /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);
const isPrivate = (hostname: string) =>
  isOfThisMachine(hostname) ||
  /^(10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|169\.254\.|\[f[cde])|\.local$/.test(hostname);

/** A page is told "Failed to fetch", whatever it was. A second request, whose answer nobody may read,
 *  goes through if the server is there. It is a plain GET without a header of ours. */
async function explained(who: string, url: URL): Promise<never> {
  const isThere = await fetch(url, { ...QUIETLY, mode: 'no-cors' }).then(
    () => true,
    () => false,
  );
  if (isThere) throw new McpError('config', `${who} is there, and ${notLetIn()}`);
  const isNear = isPrivate(url.hostname);
  if (isNear && (await isForbidden(url.hostname))) {
    const what = 'this browser keeps the page from machines near you (local network access)';
    throw new McpError('config', `${who}: ${what}; allow it in the settings of this site`);
  }
  const maybe = isNear && !isPrivate(`${location?.hostname}`) ? ', or the browser may not ask' : '';
  throw new McpError('lost', `${who} cannot be reached: no server answers there${maybe}`);
}

function notLetIn() {
  const origin = location?.origin ?? 'this page';
  if (origin !== 'null' && location?.protocol !== 'file:')
    return `does not let ${origin} in (CORS); ours does with --allow-origin ${origin}`;
  const why = 'a page that was opened as a file has no address that it could let in (CORS)';
  return `${why}; open it with npm run site serve`;
}

/** Browsers have had two names for it; one that knows neither forbids nothing. */
async function isForbidden(hostname: string) {
  const near = isOfThisMachine(hostname) ? 'loopback-network' : 'local-network';
  for (const name of [near, 'local-network-access']) {
    const found = await navigator?.permissions?.query({ name }).catch(() => undefined);
    if (found?.state === 'denied') return true;
  }
  return false;
}

/** By its reader: not every browser can iterate over a stream. */
function bodyOf(stream: ReadableStream<Uint8Array> | null): Body {
  const reader = stream?.getReader();
  const leave = () => void reader?.cancel().catch(() => {}); // it may have been aborted
  return {
    destroy: leave,
    resume: leave,
    async *[Symbol.asyncIterator]() {
      try {
        for (;;) {
          const next = await reader?.read();
          if (!next || next.done) return;
          yield next.value;
        }
      } finally {
        leave();
      }
    },
  };
}
