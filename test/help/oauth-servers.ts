// For the tests of chapter 21: an authorization server and a protected MCP server on 127.0.0.1 that do what a test tells
// them, right or wrong, and write down what they were asked; a browser; and a client with a home of its own. Where nothing
// is to be wrong, tests take the strict ones of fixtures/.

import { spawn } from 'node:child_process';
import http, { type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Logins, type LoginOptions } from '../../chapters/21-authorization/login.ts';
import type { OpenUserAgent } from '../../chapters/21-authorization/oauth.ts';
import { TokenStore } from '../../chapters/21-authorization/tokens.ts';
import type { ConnectionOptions, Json } from '../../mcp.ts';
import { folder, later, open, root, type Opened } from './basics.ts';

// ─── A server that follows a script ───────────────────────────────────────────────────────────────────────────

/** One request. `query`, `form` and `json` are empty if they are not there. */
export type Heard = {
  verb: string;
  path: string; // without the query
  query: Record<string, string>;
  headers: IncomingHttpHeaders;
  form: Record<string, string>;
  json: any;
  response: ServerResponse;
};
/** `body` is sent as JSON, unless it is a text. */
export type Said = { status?: number; headers?: Record<string, string | string[]>; body?: unknown };
/** What comes of a request; nothing, if `response` was used. */
export type Way = (heard: Heard) => Said | void | Promise<Said | void>;
/** By verb and path: 'GET /x'. They may change while the server runs; `undefined` is "not there". */
export type Ways = Record<string, Way | undefined>;
export type Scripted = {
  origin: string;
  port: number;
  log: Heard[];
  ways: Ways;
  /** The requests for this path, or with this verb and path. */
  asked(what: string): Heard[];
  stop(): Promise<void>;
};

export const said = (body: unknown, status = 200, headers: Said['headers'] = {}): Said => ({
  status,
  body,
  headers,
});
export const refusing = (error: string, status = 400, more: Json = {}): Said =>
  said({ error, ...more }, status);
const always =
  (body: unknown): Way =>
  () =>
    said(body);

/** Hands every request to the way that is there for it. `otherwise` gets those for which there is none (404). */
export async function scripted(
  ways: Ways = {},
  otherwise: Way = () => said({ error: 'not_found' }, 404),
  port = 0,
): Promise<Scripted> {
  const log: Heard[] = [];
  const server = http.createServer(async (request, response) => {
    let text = '';
    try {
      for await (const chunk of request.setEncoding('utf8')) text += chunk;
    } catch {
      return; // the client has left in the middle of its request
    }
    const { method: verb = '', headers } = request;
    const { pathname: path, searchParams } = new URL(`http://here${request.url}`);
    const isForm = headers['content-type']?.includes('x-www-form-urlencoded');
    const form = isForm ? Object.fromEntries(new URLSearchParams(text)) : {};
    const json = !isForm && text ? JSON.parse(text) : {};
    const heard: Heard = {
      verb,
      path,
      query: Object.fromEntries(searchParams),
      headers,
      form,
      json,
      response,
    };
    log.push(heard);
    const answer = await (ways[`${verb} ${path}`] ?? otherwise)(heard);
    if (!answer || response.headersSent || response.destroyed) return;
    const isText = typeof answer.body === 'string';
    const type = isText ? 'text/plain' : 'application/json';
    response.writeHead(answer.status ?? 200, { 'content-type': type, ...answer.headers });
    response.end(
      isText ? answer.body : answer.body === undefined ? '' : JSON.stringify(answer.body),
    );
  });
  await new Promise<void>((done) => server.listen(port, '127.0.0.1', done));
  const stop = () =>
    new Promise<void>((done) => (server.close(() => done()), server.closeAllConnections()));
  later(stop);
  const { port: given } = server.address() as AddressInfo;
  const asked = (what: string) =>
    log.filter(({ verb, path }) => path === what || `${verb} ${path}` === what);
  return { origin: `http://127.0.0.1:${given}`, port: given, log, ways, asked, stop };
}

// ─── An authorization server ──────────────────────────────────────────────────────────────────────────────────

export type AuthorizationServer = Scripted & {
  issuer: string;
  metadata: Json; // what its document says
  live: Set<string>; // the access tokens that are good
  /** A token answer; `more` adds to it or replaces. */
  issue(more?: Json): Json;
};

/** It agrees to everything. `path` is that of its issuer; `metadata` adds to its document, or takes out (`undefined`);
 *  `token` adds to what the token endpoint says; `ways` replaces endpoints: /authorize /token /register /revoke. */
export async function authorizationServer({
  path = '',
  metadata = {},
  token = {},
  ways = {},
  port = 0,
}: {
  path?: string;
  metadata?: Json;
  token?: Json;
  ways?: Ways;
  port?: number;
} = {}): Promise<AuthorizationServer> {
  const live = new Set<string>();
  let [tokens, clients] = [0, 0];
  const issue = (more: Json = {}) => {
    const access = `access-${++tokens}-of-${server.port}`;
    live.add(access);
    return { access_token: access, token_type: 'Bearer', ...token, ...more };
  };
  const server = await scripted({}, undefined, port);
  const issuer = `${server.origin}${path}`;
  const document: Json = {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    registration_endpoint: `${issuer}/register`,
    revocation_endpoint: `${issuer}/revoke`,
    response_types_supported: ['code'],
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: [
      'none',
      'client_secret_basic',
      'client_secret_post',
      'private_key_jwt',
    ],
    authorization_response_iss_parameter_supported: true,
    ...metadata,
  };
  const usual: Ways = {
    [`GET /.well-known/oauth-authorization-server${path}`]: always(document),
    [`GET ${path}/authorize`]: ({ query }) =>
      sentBack(query, { code: `code-${Math.random()}`, iss: issuer }),
    [`POST ${path}/token`]: () => said(issue()),
    [`POST ${path}/register`]: ({ json }) =>
      said({ ...json, client_id: `client-${++clients}-of-${server.port}` }, 201),
    [`POST ${path}/revoke`]: () => said('', 200),
  };
  Object.assign(server.ways, usual, ways);
  return { ...server, issuer, metadata: document, live, issue };
}

/** The browser is sent back to the client; `state` goes along, unless `told` has another. */
export function sentBack(
  { redirect_uri = '', state = '' }: Record<string, string>,
  told: Record<string, string>,
): Said {
  const to = new URL(redirect_uri);
  for (const [name, value] of Object.entries({ state, ...told })) to.searchParams.set(name, value);
  return said('', 302, { location: to.href });
}

// ─── A protected MCP server ───────────────────────────────────────────────────────────────────────────────────

export type ProtectedServer = Scripted & {
  url: string;
  prm: Json; // what its document says
  /** The MCP messages with this method that came through. */
  called(method: string): Heard[];
};
type Doors = {
  as?: AuthorizationServer; // its live tokens are let in
  path?: string;
  prm?: Json; // adds to its document, or takes out
  challenge?: string | string[]; // the header of its 401; by default it names the document
  gate?: Way; // instead: nothing lets a request in
  mcp?: Record<string, (heard: Heard) => unknown>; // by method: results
  session?: string;
  ways?: Ways;
  port?: number;
};

export const tokenIn = ({ headers }: Heard) =>
  /^(?:Bearer|DPoP) (.*)$/i.exec(headers.authorization ?? '')?.[1];
export const locked = (challenge: string | string[], status = 401): Said =>
  said({ error: 'no' }, status, { 'www-authenticate': challenge });

/** The earlier era's handshake, `ping`, `tools/list` (one tool, `echo`) and `tools/call`; and the whole of the later era
 *  for whoever asks `server/discover`, if `mcp` has an answer to that. */
export async function protectedServer({
  as,
  path = '/mcp',
  prm = {},
  challenge,
  gate,
  mcp = {},
  session,
  ways = {},
  port = 0,
}: Doors = {}): Promise<ProtectedServer> {
  const through: Heard[] = [];
  const usual: Record<string, (heard: Heard) => unknown> = {
    initialize: () => ({ protocolVersion: '2025-11-25', capabilities: { tools: {} } }),
    'tools/list': () => ({ tools: [{ name: 'echo', inputSchema: { type: 'object' } }] }),
    'tools/call': ({ json }) => ({
      content: [{ type: 'text', text: JSON.stringify(json.params.arguments ?? {}) }],
    }),
    ping: () => ({}),
    ...mcp,
  };
  const standard: Way = (heard) =>
    as?.live.has(tokenIn(heard) ?? '') ? undefined : locked(challenge ?? named());
  const endpoint: Way = async (heard) => {
    const refusal = await (gate ?? standard)(heard);
    if (refusal || heard.response.headersSent) return refusal;
    through.push(heard);
    const { verb, json } = heard;
    const given = server.ways[`${verb} *`];
    if (given) return given(heard);
    if (verb === 'DELETE') return said('', 200);
    if (verb !== 'POST') return said('', 405);
    if (json.id === undefined || json.method === undefined) return said('', 202);
    const result = await usual[json.method]?.(heard);
    if (heard.response.headersSent) return undefined;
    const error = { code: -32601, message: `Method not found: ${json.method}` };
    const headers: Said['headers'] =
      session && json.method === 'initialize' ? { 'mcp-session-id': session } : {};
    return said(
      { jsonrpc: '2.0', id: json.id, ...(result ? { result } : { error }) },
      200,
      headers,
    );
  };
  const server = await scripted(
    {},
    (heard) => (heard.path === path ? endpoint(heard) : said({ error: 'not_found' }, 404)),
    port,
  );
  const wellKnown = `/.well-known/oauth-protected-resource${path === '/' ? '' : path}`;
  const named = () => `Bearer resource_metadata="${server.origin}${wellKnown}"`;
  const document: Json = {
    resource: `${server.origin}${path}`,
    authorization_servers: as ? [as.issuer] : [],
    ...prm,
  };
  Object.assign(server.ways, { [`GET ${wellKnown}`]: always(document) }, ways);
  const called = (method: string) => through.filter(({ json }) => json.method === method);
  return { ...server, url: `${server.origin}${path}`, prm: document, called };
}

// ─── A browser, and a client ──────────────────────────────────────────────────────────────────────────────────

const REDIRECT = 'http://127.0.0.1:33418/callback';

/** A browser whose user agrees to everything. `visits` are the addresses it was sent to; `wishes` the redirect URIs that it
 *  was asked for; `words` what it was told in the end. `take` answers instead of the authorization server. */
export function browser({
  redirectUri,
  take,
}: {
  redirectUri?: string;
  take?: (url: URL) => URL | Promise<URL>;
} = {}) {
  const visits: URL[] = [];
  const wishes: [string | undefined, boolean][] = [];
  const words: string[] = [];
  const walk = async (url: URL) => {
    const { headers, status } = await fetch(url, { redirect: 'manual' });
    const location = headers.get('location');
    if (!location) throw new Error(`the browser ended at a page (HTTP ${status})`);
    return new URL(location);
  };
  const openUserAgent: OpenUserAgent = async (wish, isFixed) => {
    wishes.push([wish, isFixed]);
    const go = async (url: URL) => (visits.push(url), await (take ?? walk)(url));
    return {
      redirectUri: redirectUri ?? wish ?? REDIRECT,
      go,
      close: (text) => void words.push(text),
    };
  };
  const asked = (n = 0) => Object.fromEntries(visits.at(n)?.searchParams ?? []);
  return { openUserAgent, visits, wishes, words, asked };
}

/** The logins of one program. Two of them with the same home are two programs of the same user. */
export function program({ home = folder(), ...options }: { home?: string } & LoginOptions = {}) {
  const store = options.store ?? new TokenStore({ home });
  const logins = new Logins({ ...options, store });
  /** Opens a connection (named "demo"), and waits until nothing of the handshake is under way any more. */
  const to = async (
    url: string,
    oauth?: Json,
    more: ConnectionOptions = {},
    config: Json = {},
  ): Promise<Opened> => {
    const opened = await open(
      { type: 'http', url, ...(oauth && { oauth }), ...config },
      { transports: logins.transports, ...more },
    );
    if (!more.extensions) await opened.connection.request('ping'); // the later era knows no such method
    return opened;
  };
  const row = (url: string) => store.find('demo', url);
  return { home, store, logins, to, row };
}

// ─── The strict ones of fixtures/ ─────────────────────────────────────────────────────────────────────────────

async function fixture(file: string, flags: string[]): Promise<string> {
  const child = spawn(process.execPath, [join(root, 'fixtures', file), ...flags], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const gone = new Promise<void>((done) => child.on('close', () => done()));
  later(() => (child.kill('SIGKILL'), gone));
  return new Promise((done) =>
    child.stdout.setEncoding('utf8').once('data', (line: string) => done(line.trim())),
  );
}

/** fixtures/authorization.mjs. `log` is what it was asked, and `tell` ends all tokens (expire) or clients (forget). */
export async function strictIssuer(...flags: string[]) {
  const issuer = await fixture('authorization.mjs', flags);
  const log = async (path?: string): Promise<any[]> => {
    const entries = (await (await fetch(`${issuer}/log`)).json()) as any[];
    return entries.filter((entry) => path === undefined || entry.path === path);
  };
  const tell = async (what: 'expire' | 'forget') =>
    void (await fetch(`${issuer}/${what}`, { method: 'POST' }));
  return { issuer, log, tell };
}

/** fixtures/remote.mjs behind a login at that issuer. */
export const strictCalculator = (issuer: string, ...flags: string[]): Promise<string> =>
  fixture('remote.mjs', ['http', '--login', issuer, ...flags]);
