// The authorization server oidc-provider: `node oidc-provider.mjs FOLDER [FLAG …]`. FOLDER holds its node_modules.
//   --nonces      wants a nonce in every DPoP proof
//   --jwt         gives out access tokens that can be read
//   --path PATH   is where its issuer is (otherwise at the root)
//   --key JWK     has the public key of the client `signer`
// It prints its issuer, and leaves when its stdin ends. Its users log in with any name. For tests: GET /test/log tells
// what it was asked, POST /test/expire ends all access tokens, POST /test/forget forgets the clients that registered.

import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [folder, ...flags] = process.argv.slice(2);
const option = (name) => (flags.includes(name) ? flags[flags.indexOf(name) + 1] : undefined);
const require = createRequire(join(folder, 'package.json'));
const { default: Provider, errors } = await import(pathToFileURL(require.resolve('oidc-provider')));

const http = createServer().listen(0, '127.0.0.1', begin);

function begin() {
  const path = option('--path') ?? '';
  const issuer = `http://127.0.0.1:${http.address().port}${path}`;
  const provider = new Provider(issuer, configuration());
  const log = [];
  const tokens = [];
  const clients = [];
  provider.use(async (ctx, next) => {
    await next();
    const { params = {}, client } = ctx.oidc ?? {};
    const { access_token, refresh_token } = ctx.body ?? {};
    const gives = { access: access_token !== undefined, refresh: refresh_token !== undefined };
    log.push({
      path: ctx.path,
      status: ctx.status,
      client: client?.clientId,
      params,
      error: ctx.body?.error,
      gives,
    });
  });
  for (const kind of ['access_token', 'client_credentials'])
    provider.on(`${kind}.saved`, (token) => tokens.push(token));
  provider.on('registration_create.success', (_, client) => clients.push(client.clientId));

  const answer = provider.callback();
  const tests = {
    '/test/log': () => log,
    '/test/expire': () => Promise.all(tokens.splice(0).map((token) => token.destroy())),
    '/test/forget': () =>
      Promise.all(clients.splice(0).map((id) => provider.Client.adapter.destroy(id))),
  };
  http.on('request', async (request, response) => {
    const test = tests[request.url];
    if (test) return response.end(JSON.stringify(await test()));
    if (!request.url.startsWith(path)) return response.writeHead(404).end();
    // As express does it for what is mounted at a path.
    Object.assign(request, {
      originalUrl: request.url,
      baseUrl: path,
      url: request.url.slice(path.length),
    });
    answer(request, response);
  });
  console.log(issuer);
}

function configuration() {
  const machine = { grant_types: ['client_credentials'], redirect_uris: [], response_types: [] };
  const keys = option('--key') ? [{ ...JSON.parse(option('--key')), kid: 'first' }] : [];
  const signer = {
    ...machine,
    client_id: 'signer',
    token_endpoint_auth_method: 'private_key_jwt',
    jwks: { keys },
  };
  const person = {
    grant_types: ['authorization_code', 'refresh_token'],
    redirect_uris: ['http://127.0.0.1/callback'],
  };
  return {
    clients: [
      { ...machine, client_id: 'machine', client_secret: 'machine secret: 100% + ~&=' },
      { ...machine, client_id: 'calculator', client_secret: 'calculator-secret', grant_types: [] },
      { ...person, client_id: 'desk', client_secret: 'desk-secret', application_type: 'native' },
      ...(keys.length > 0 ? [signer] : []),
    ],
    cookies: { keys: [randomBytes(16).toString('hex')] },
    routes: { introspection: '/introspect' },
    features: {
      registration: { enabled: true },
      introspection: { enabled: true },
      revocation: { enabled: true },
      clientCredentials: { enabled: true },
      dPoP: {
        enabled: true,
        nonceSecret: randomBytes(32),
        requireNonce: () => flags.includes('--nonces'),
      },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo(_, resource) {
          if (!resource.endsWith('/mcp')) throw new errors.InvalidTarget();
          const format = flags.includes('--jwt') ? 'jwt' : 'opaque';
          return {
            scope: 'calculator:read calculator:write',
            audience: resource,
            accessTokenFormat: format,
          };
        },
      },
    },
  };
}

process.stdin.resume().on('end', () => process.exit());
