// A server built with version 1 of the official SDK that wants a login: `node sdk-v1-login.mjs FOLDER [FLAG …]`, where
// FOLDER holds its node_modules.
//   --issuer URL [--jwt]   takes tokens of that authorization server, which says if they are good (or has signed them)
//   --at PATH              is there, and not at /mcp
//   --no-scopes            wants none, and knows of none
//   --limit N              without that it has the SDK's own one, whose token endpoint answers so often
//   --example FOLDER       has the example on which that rests (old versions come without it)
//   --secrets              and which gives every client a secret
// It prints its address, and leaves when its stdin ends. For tests: GET /test/log tells what its token endpoint was
// asked, POST /test/expire ends all access tokens.

import { randomUUID } from 'node:crypto';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const [folder, ...flags] = process.argv.slice(2);
const option = (name) => (flags.includes(name) ? flags[flags.indexOf(name) + 1] : undefined);
const require = createRequire(join(folder, 'package.json'));
const sdk = (path) => require(`@modelcontextprotocol/sdk/${path}.js`);
const express = require('express');
const { z } = require('zod');
const { McpServer } = sdk('server/mcp');
const { StreamableHTTPServerTransport } = sdk('server/streamableHttp');
const { mcpAuthRouter, mcpAuthMetadataRouter, getOAuthProtectedResourceMetadataUrl } =
  sdk('server/auth/router');
const { requireBearerAuth } = sdk('server/auth/middleware/bearerAuth');
const { InvalidGrantError, InvalidTokenError } = sdk('server/auth/errors');
const { DemoInMemoryAuthProvider } = createRequire(
  join(option('--example') ?? folder, 'package.json'),
)('@modelcontextprotocol/sdk/examples/server/demoInMemoryOAuthProvider.js');

const text = (value) => ({ content: [{ type: 'text', text: String(value) }] });

function build() {
  const server = new McpServer({ name: 'locked-v1', version: '1.0.0' });
  server.tool('add', { a: z.number(), b: z.number() }, async ({ a, b }) => text(a + b));
  const greet = async ({ name }, { authInfo }) => text(`Hello, ${name}! ${authInfo?.scopes}`);
  server.tool('greet', { name: z.string() }, greet);
  return server;
}

// ─── Whose tokens ─────────────────────────────────────────────────────────────────────────────────────────────

const refuse = ({ message }) => {
  throw new InvalidTokenError(message);
};

/** Asks whoever gave out the token. */
function byIntrospection(issuer) {
  const authorization = `Basic ${Buffer.from('calculator:calculator-secret').toString('base64')}`;
  return async (token) => {
    const body = new URLSearchParams({ token });
    const asked = await fetch(`${issuer}/introspect`, {
      method: 'POST',
      headers: { authorization },
      body,
    });
    const { active, client_id: clientId, scope = '', exp: expiresAt, aud } = await asked.json();
    if (!active) throw new InvalidTokenError('The token is not good, or no longer');
    return { token, clientId, scopes: scope.split(' '), expiresAt, resource: aud && new URL(aud) };
  };
}

function bySignature(issuer) {
  const { createRemoteJWKSet, jwtVerify } = require('jose');
  const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`));
  return async (token) => {
    const { payload } = await jwtVerify(token, keys, { issuer }).catch(refuse);
    const { client_id: clientId, scope, exp: expiresAt, aud } = payload;
    return { token, clientId, scopes: scope.split(' '), expiresAt, resource: new URL(aud) };
  };
}

/** The example of the SDK, and what it leaves to whoever copies it: refresh tokens that are good once, and an end. */
class OwnProvider extends DemoInMemoryAuthProvider {
  log = [];
  grants = new Map(); // refresh token → what it is good for

  more(tokens) {
    const refresh_token = randomUUID();
    this.grants.set(refresh_token, this.tokens.get(tokens.access_token));
    return { ...tokens, refresh_token };
  }

  async exchangeAuthorizationCode(...given) {
    this.log.push({ grant: 'authorization_code', resource: `${given[4]}` });
    return this.more(await super.exchangeAuthorizationCode(...given));
  }

  async exchangeRefreshToken(client, refresh, _, resource) {
    this.log.push({ grant: 'refresh_token', resource: `${resource}` });
    const grant = this.grants.get(refresh);
    this.grants.delete(refresh);
    if (grant?.clientId !== client.client_id)
      throw new InvalidGrantError('It is not good, or no longer');
    const token = randomUUID();
    this.tokens.set(token, { ...grant, token });
    return this.more({
      access_token: token,
      token_type: 'bearer',
      expires_in: 3600,
      scope: grant.scopes.join(' '),
    });
  }

  async revokeToken(_, { token }) {
    this.log.push({
      grant: 'none',
      revokes: this.grants.delete(token) || this.tokens.delete(token),
    });
  }

  verifyAccessToken(token) {
    return super.verifyAccessToken(token).catch(refuse);
  }
}

// ─── Behind the door ──────────────────────────────────────────────────────────────────────────────────────────

const app = express();
const http = app.listen(0, '127.0.0.1', begin);

function begin() {
  const path = option('--at') ?? '/mcp';
  const origin = `http://127.0.0.1:${http.address().port}`;
  const url = new URL(path, origin);
  const issuer = option('--issuer');
  const own = issuer ? undefined : new OwnProvider();
  const verifier = own ?? {
    verifyAccessToken: (flags.includes('--jwt') ? bySignature : byIntrospection)(issuer),
  };
  const scopesSupported = flags.includes('--no-scopes')
    ? undefined
    : ['calculator:read', 'calculator:write'];
  if (own) {
    const tokenOptions = option('--limit') && { rateLimit: { max: Number(option('--limit')) } };
    if (flags.includes('--secrets')) app.use('/register', express.json(), secretly);
    const issuerUrl = new URL(origin);
    app.use(
      mcpAuthRouter({
        provider: own,
        issuerUrl,
        resourceServerUrl: url,
        scopesSupported,
        tokenOptions,
      }),
    );
    app.get('/test/log', (_, response) => response.json(own.log));
    app.post('/test/expire', (_, response) => response.json(own.tokens.clear() ?? null));
  } else {
    const endpoints = {
      authorization_endpoint: `${issuer}/auth`,
      token_endpoint: `${issuer}/token`,
    };
    const oauthMetadata = { issuer, ...endpoints, response_types_supported: ['code'] };
    app.use(mcpAuthMetadataRouter({ oauthMetadata, resourceServerUrl: url, scopesSupported }));
  }
  const resourceMetadataUrl = getOAuthProtectedResourceMetadataUrl?.(url); // versions of early 2025 have none
  const known = { verifier, provider: verifier, resourceMetadataUrl, expectedResource: url }; // `provider` in old ones
  const door = (scope) =>
    requireBearerAuth({ ...known, requiredScopes: scopesSupported && [scope] });
  const [reads, writes] = [door('calculator:read'), door('calculator:write')];
  app.post(path, express.json(), (request, response, next) => {
    const check = request.body?.params?.name === 'greet' ? writes : reads;
    check(request, response, next);
  });
  app.post(path, async (request, response) => {
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
    await build().connect(transport);
    await transport.handleRequest(request, response, request.body);
  });
  app.all(path, (_, response) => response.status(405).end());
  console.log(url.href);
}

/** Some servers keep no clients without a secret, and say so in their answer. */
function secretly(request, _, next) {
  request.body.token_endpoint_auth_method = 'client_secret_post';
  next();
}

process.stdin.resume().on('end', () => process.exit());
