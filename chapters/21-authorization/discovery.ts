// discovery.ts: who may let us in? A server answers 401 and names a document about itself; that names the authorization
// server; and that has a document of its own. Nobody's word is taken for another: what a document says of itself must
// be what we asked for.

import { asList, excerpt, type Json, type McpError } from '../../mcp.ts';
import type { Fetcher } from './fetcher.ts';

const MAX_CHALLENGE = 8192;

// ─── The challenge ────────────────────────────────────────────────────────────────────────────────────────────

export type Challenge = {
  status: number;
  header: string;
  scheme: string;
  params: Map<string, string>;
};

/** Reads `WWW-Authenticate`: any number of schemes, each with parameters in any order, some of them in quotes. */
export function parseChallenges(status: number, header = ''): Challenge[] {
  const challenges: Challenge[] = [];
  // name="a, b", name=value, or a word by itself, which is the next scheme.
  const part = /([^\s,="]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]*))|([^\s,="]+)/g;
  for (const [, name, quoted, bare = '', scheme] of header.slice(0, MAX_CHALLENGE).matchAll(part)) {
    if (scheme)
      challenges.push({ status, header, scheme: scheme.toLowerCase(), params: new Map() });
    const params = challenges.at(-1)?.params;
    if (!name || !params || params.has(name.toLowerCase())) continue;
    params.set(name.toLowerCase(), quoted?.replace(/\\(.)/g, '$1') ?? bare);
  }
  return challenges;
}

/** What the server wants of us, if it is something that a token can change. */
export function challengeIn(status: number, header = ''): Challenge | undefined {
  const known = parseChallenges(status, header).filter(
    ({ scheme }) => scheme === 'bearer' || scheme === 'dpop',
  );
  const isAboutScope = ({ params }: Challenge) => params.get('error') === 'insufficient_scope';
  if (status === 403) return known.find(isAboutScope);
  const best = known.find(({ scheme }) => scheme === 'dpop') ?? known[0]; // bound to a key is better, if it may be
  // A 401 without a word about how to log in is a 401 all the same.
  return status === 401
    ? (best ?? { status, header, scheme: 'bearer', params: new Map() })
    : undefined;
}

export const scopesIn = (scope: unknown): string[] =>
  typeof scope === 'string' ? [...new Set(scope.split(/\s+/).filter(Boolean))] : [];

// ─── The server's own document ────────────────────────────────────────────────────────────────────────────────

/** `resource` is the server's name for itself, to the letter. Without `issuers` it named nobody. */
type ProtectedResource = {
  resource: string;
  issuers: string[];
  scopes: string[];
  isBound: boolean;
};

const texts = (list: unknown) => asList(list).filter((each) => typeof each === 'string');

/** Protected-resource metadata (RFC 9728); nothing if the server has none, which was usual until 2025. */
export async function findResource(
  fetcher: Fetcher,
  server: URL,
  named?: string,
): Promise<ProtectedResource | undefined> {
  const { origin, pathname, search } = server;
  const wellKnown = `${origin}/.well-known/oauth-protected-resource`;
  const path = pathname === '/' ? '' : `${pathname}${search}`;
  let isAway = false;
  for (const address of new Set([named ?? wellKnown + path, wellKnown + path, wellKnown])) {
    const { status, body } = await documentAt(fetcher, address);
    isAway ||= status >= 500;
    if (!body) continue;
    const {
      resource,
      authorization_servers,
      scopes_supported,
      dpop_bound_access_tokens_required: isBound,
    } = body;
    // A token for somebody else must not be asked for in this server's name.
    if (typeof resource !== 'string' || !isWithin(resource, server))
      throw fetcher.error(
        `says at ${address} that it is ${excerpt(resource)}, which it is not. We do not log in there`,
      );
    const [issuers, scopes] = [texts(authorization_servers), texts(scopes_supported)];
    return { resource, issuers, scopes, isBound: isBound === true };
  }
  if (isAway) throw fetcher.error('has trouble of its own, and does not say where to log in');
  return undefined;
}

/** A document, if it is there. A redirect to somebody else is not followed, and so it is not there. */
async function documentAt(
  fetcher: Fetcher,
  address: string,
): Promise<{ status: number; body?: Json }> {
  try {
    const { status, body } = await fetcher.fetch(address);
    return { status, ...(status === 200 && body && { body }) };
  } catch (error) {
    if ((error as McpError).kind !== 'protocol') throw error;
    return { status: 404 };
  }
}

/** The same origin, and the same path or one above it. */
function isWithin(resource: string, server: URL): boolean {
  if (!URL.canParse(resource)) return false;
  const { origin, pathname } = new URL(resource);
  return (
    origin === server.origin && `${server.pathname}/`.startsWith(pathname.replace(/\/?$/, '/'))
  );
}

// ─── The authorization server's document ──────────────────────────────────────────────────────────────────────

export type Metadata = Json & { issuer: string };

/** Authorization-server metadata (RFC 8414), or what OpenID Connect has instead. */
export async function findIssuer(
  fetcher: Fetcher,
  issuer: string,
  alias = issuer,
): Promise<Metadata | undefined> {
  const { origin, pathname, search } = fetcher.checked(issuer);
  const path = pathname.replace(/\/$/, '');
  if (search) throw fetcher.error(`names an authorization server with a query: ${excerpt(issuer)}`);
  const addresses = new Set([
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}/.well-known/openid-configuration${path}`,
    `${origin}${path}/.well-known/openid-configuration`,
  ]);
  let other: unknown;
  for (const address of addresses) {
    const { body } = await documentAt(fetcher, address);
    if (!body) continue;
    const isMeant = body.issuer === issuer || body.issuer === alias;
    if (isMeant) return body as Metadata; // to the letter: a slash more is somebody else
    other ??= body.issuer ?? 'nobody';
  }
  if (other === undefined) return undefined;
  throw fetcher.error(
    `names the authorization server ${excerpt(issuer)}, whose metadata says it is ${excerpt(other)}`,
  );
}

/** What is at this very address, if it is such metadata. */
export async function metadataAt(fetcher: Fetcher, address: string): Promise<Metadata | undefined> {
  const { body } = await documentAt(fetcher, address);
  return body && typeof body.issuer === 'string' && URL.canParse(body.issuer)
    ? (body as Metadata)
    : undefined;
}

/** Until 2025 a server was its own authorization server; and before it had a document about that, there were addresses
 *  that everybody knew. Nobody has spelled its name for us, so it may end with a slash. */
export async function ownIssuer(fetcher: Fetcher, { origin }: URL): Promise<Metadata> {
  const found = await findIssuer(fetcher, origin, `${origin}/`);
  return (
    found ?? {
      issuer: origin,
      authorization_endpoint: `${origin}/authorize`,
      token_endpoint: `${origin}/token`,
      registration_endpoint: `${origin}/register`,
      code_challenge_methods_supported: ['S256'], // nobody says so, but a server that does not know it ignores it
      isGuess: true,
    }
  );
}
