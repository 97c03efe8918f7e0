// For attack cases of the login: a hostile MCP server, a hostile authorization server, a hostile
// page in the browser.

import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { delimiter, join } from 'node:path';
import type { StoredLogin } from '../../chapters/21-authorization/tokens.ts';
import type { Json, McpError } from '../../mcp.ts';
import {
  authorizationServer,
  browser,
  program,
  protectedServer,
  said,
  scripted,
  tokenIn,
  type Heard,
  type Scripted,
} from './oauth-servers.ts';
import { folder, rejection } from './basics.ts';
import { place, userServers } from './terminal.ts';

/** A server that must not be asked anything. */
export async function sink(): Promise<Scripted> {
  return scripted({}, () =>
    said({
      issuer: 'sink',
      access_token: 'from-the-sink',
      token_type: 'Bearer',
      client_id: 'sink',
    }),
  );
}

/** A protected server and its authorization server, both on loopback, and a program with a willing browser. */
export async function loginBetween({
  metadata,
  prm,
  challenge,
  token,
  as: ways,
  mcp,
  browse,
}: {
  metadata?: Json;
  prm?: Json;
  challenge?: string;
  token?: Json;
  as?: Scripted['ways'];
  mcp?: Record<string, (heard: Heard) => unknown>;
  browse?: Parameters<typeof browser>[0];
} = {}) {
  const as = await authorizationServer({ metadata, token, ways });
  const server = await protectedServer({ as, prm, challenge, mcp });
  const user = browser(browse);
  const client = program({ openUserAgent: user.openUserAgent });
  const login = (oauth?: Json) => client.to(server.url, oauth);
  /** It fails as a login does, and the browser stays shut. */
  const refusal = async (oauth?: Json): Promise<McpError> => {
    const error = await rejection(login(oauth));
    assert.equal(error.kind, 'auth', error.stack);
    return error;
  };
  return { as, server, user, client, login, refusal };
}

export const unasked = (as: Scripted, ...paths: string[]) =>
  assert.deepEqual(
    as.log.filter(({ path }) => paths.includes(path)).map(({ path }) => path),
    [],
  );

/** Everything that a server was told: addresses, headers and bodies. */
export const toldTo = ({ log }: Scripted) =>
  JSON.stringify(
    log.map(({ verb, path, query, headers, form, json }) => ({
      verb,
      path,
      query,
      headers,
      form,
      json,
    })),
  );

export type Knock = {
  method?: string;
  path?: string;
  host?: string;
  query?: Record<string, string>;
  to?: string;
  more?: http.OutgoingHttpHeaders;
};

/** One request to where the browser is awaited, as anybody could make it. */
export function knock(
  redirectUri: string,
  { method = 'GET', path, host, query = {}, to = '127.0.0.1', more }: Knock = {},
) {
  const { port, pathname, host: usual } = new URL(redirectUri);
  const target = path ?? `${pathname}?${new URLSearchParams(query)}`;
  return new Promise<{
    status?: number;
    headers: http.IncomingHttpHeaders;
    body: string;
    code?: string;
  }>((done) => {
    const request = http.request({
      host: to,
      port,
      path: target,
      method,
      headers: { host: host ?? usual, ...more },
      agent: false,
    });
    request.on('error', (error: NodeJS.ErrnoException) =>
      done({ headers: {}, body: '', code: error.code }),
    );
    request.on('response', async (response) => {
      let body = '';
      for await (const chunk of response.setEncoding('utf8')) body += chunk;
      done({ status: response.statusCode, headers: response.headers, body });
    });
    request.end();
  });
}

/** A folder with an `xdg-open` that writes down its arguments and its variables, and then goes where it was told to. */
export function opener(isBrowsing = false) {
  const bin = folder();
  const record = join(bin, 'opened.jsonl');
  const program = join(bin, 'opener.cjs');
  // Not as `#!`: the path of this Node may have a blank.
  const xdgOpen = `#!/bin/sh\nexec '${process.execPath}' '${program}' "$1"\n`;
  writeFileSync(join(bin, 'xdg-open'), xdgOpen, { mode: 0o755 });
  writeFileSync(
    program,
    `const { appendFileSync, readFileSync, statSync } = require('node:fs');
    const place = new URL(process.argv[2]);
    const command = readFileSync('/proc/self/cmdline', 'utf8'); // what every user can read
    const mode = statSync(place).mode & 0o777;
    const [, target] = /;url=([^"]+)"/.exec(readFileSync(place, 'utf8'));
    const url = target.replaceAll('&quot;', '"').replaceAll('&amp;', '&');
    const line = JSON.stringify({ command, mode, args: process.argv.slice(2), url, env: process.env });
    appendFileSync(${JSON.stringify(record)}, line + '\\n');
    if (${isBrowsing}) fetch(url).catch(() => {});`,
  );
  type OpenedPage = { command: string; mode: number; args: string[]; url: string } & {
    env: Record<string, string>;
  };
  const opened = (): OpenedPage[] =>
    existsSync(record)
      ? readFileSync(record, 'utf8')
          .split('\n')
          .slice(0, -1)
          .map((line) => JSON.parse(line))
      : [];
  const env = { PATH: `${bin}${delimiter}${process.env.PATH}`, DISPLAY: ':0', HOME: folder() };
  return { env, opened };
}

/** A login as it stands in the file. */
export function rowOf(change: Partial<StoredLogin> = {}): StoredLogin {
  return {
    server: 'demo',
    url: 'https://mcp.example/mcp',
    issuer: 'https://as.example',
    client: { id: 'c', method: 'none' },
    resource: 'https://mcp.example/mcp',
    tokenEndpoint: 'https://as.example/token',
    tokens: { access: 'the-access-token', type: 'Bearer', refresh: 'the-refresh-token', scope: [] },
    ...change,
  };
}

/** Logged in, with all that there is to be given: a client secret by registration, an access and a refresh token. */
export async function loggedIn(metadata: Json = {}) {
  const methods = {
    token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
  };
  const as = await authorizationServer({
    metadata: { ...methods, ...metadata },
    token: { refresh_token: 'the-refresh-token' },
  });
  as.ways['POST /register'] = ({ json }) =>
    said({ ...json, client_id: 'the-client-id', client_secret: 'the-client-secret' }, 201);
  const server = await protectedServer({ as });
  const { openUserAgent } = browser();
  const client = program({ openUserAgent });
  await client.to(server.url);
  const basic = Buffer.from('the-client-id:the-client-secret').toString('base64');
  const given = [
    [...as.live][0]!,
    'the-refresh-token',
    'the-client-secret',
    basic,
    'the-client-id',
  ];
  const kept = readFileSync(join(client.home, '.mcp-by-hand', 'logins.json'), 'utf8');
  for (const secret of [...given.slice(0, 3), 'the-client-id'])
    assert.ok(kept.includes(secret), secret);
  const withheld = (peer: Scripted) => {
    assert.ok(peer.log.length > 0);
    for (const secret of given) assert.ok(!toldTo(peer).includes(secret), `${secret} was told`);
  };
  return { as, server, home: client.home, withheld };
}

/** What the program says and writes, for a server and an issuer that repeat whatever they are told. */
export async function repeatingProgram({
  serverInfo = (_: Heard): Json => ({ name: 'it', version: '1' }),
} = {}) {
  const repeat = (heard: Heard) => ({
    content: [{ type: 'text', text: `you are ${heard.headers.authorization}` }],
    structuredContent: { a: tokenIn(heard) },
  });
  const as = await authorizationServer({
    metadata: { token_endpoint_auth_methods_supported: ['client_secret_post'] },
    token: { refresh_token: 'the-refresh-token-of-23' },
  });
  as.ways['POST /register'] = ({ json }) =>
    said({ ...json, client_id: 'c', client_secret: 'the-client-secret-of-24' }, 201);
  const server = await protectedServer({
    as,
    mcp: {
      initialize: (heard) => ({
        protocolVersion: '2025-11-25',
        capabilities: { tools: {} },
        serverInfo: serverInfo(heard),
      }),
      'tools/list': (heard) => ({
        tools: [
          { name: 'echo', description: `knows ${tokenIn(heard)}`, inputSchema: { type: 'object' } },
        ],
      }),
      'tools/call': repeat,
    },
  });
  const where = place({}, userServers({ demo: { type: 'http', url: server.url } }));
  const { openUserAgent } = browser();
  await program({ home: where.home, openUserAgent }).to(server.url);
  const { form } = as.asked('/token')[0]!;
  const secrets = [
    [...as.live][0],
    'the-refresh-token-of-23',
    'the-client-secret-of-24',
    form.code,
    form.code_verifier,
    tokenIn(server.log.at(-1)!),
  ];
  return { as, server, where, secrets };
}
