// Chapter 21: from a 401 to the authorization server: the challenge, and whom to ask.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { challengeIn, parseChallenges } from '../chapters/21-authorization/discovery.ts';
import type { Json } from '../mcp.ts';
import { grantsOf, isIn, WELL_KNOWN } from './help/logins.ts';
import {
  authorizationServer,
  browser,
  locked,
  program,
  protectedServer,
  said,
  sentBack,
  tokenIn,
  type Heard,
  type Ways,
} from './help/oauth-servers.ts';
import { cleanUp, rejection } from './help/basics.ts';

afterEach(cleanUp);

const paths = ({ log }: { log: Heard[] }) => log.map(({ path }) => path);

// ─── The challenge ────────────────────────────────────────────────────────────────────────────────────────────

test('a challenge is read in every way that it can be written', () => {
  const bearer = (params: Json) => [['bearer', params]];
  const table: [header: string, expected: unknown][] = [
    ['', []],
    ['Bearer', bearer({})],
    ['BEARER', bearer({})],
    ['  Bearer  ', bearer({})],
    ['Bearer realm="x"', bearer({ realm: 'x' })],
    ['Bearer realm=x', bearer({ realm: 'x' })],
    ['Bearer realm = "x" , scope = "a b"', bearer({ realm: 'x', scope: 'a b' })],
    [
      'Bearer realm="x",scope="a b",error=invalid_token',
      bearer({ realm: 'x', scope: 'a b', error: 'invalid_token' }),
    ],
    ['Bearer scope="a, b", realm="c"', bearer({ scope: 'a, b', realm: 'c' })],
    [
      'Bearer realm="say \\"hi\\", Basic realm=1", scope="a"',
      bearer({ realm: 'say "hi", Basic realm=1', scope: 'a' }),
    ],
    ['Bearer realm="back\\\\slash", scope=a', bearer({ realm: 'back\\slash', scope: 'a' })],
    ['Bearer realm="", scope=a', bearer({ realm: '', scope: 'a' })],
    ['Bearer REALM=a, Scope=b', bearer({ realm: 'a', scope: 'b' })],
    ['Bearer scope=a, scope=b', bearer({ scope: 'a' })],
    ['Bearer scope=a scope=b realm=c', bearer({ scope: 'a', realm: 'c' })],
    [
      'Bearer resource_metadata="https://h/p?a=b,c=d&e"',
      bearer({ resource_metadata: 'https://h/p?a=b,c=d&e' }),
    ],
    ['Bearer resource_metadata=https://h/p', bearer({ resource_metadata: 'https://h/p' })],
    ['Bearer realm="ünï"', bearer({ realm: 'ünï' })],
    [
      'Basic realm="b", Bearer realm="c"',
      [
        ['basic', { realm: 'b' }],
        ['bearer', { realm: 'c' }],
      ],
    ],
    [
      'Bearer realm="c", Basic realm="b"',
      [
        ['bearer', { realm: 'c' }],
        ['basic', { realm: 'b' }],
      ],
    ],
    [
      'Negotiate, Bearer scope=a, DPoP algs="ES256"',
      [
        ['negotiate', {}],
        ['bearer', { scope: 'a' }],
        ['dpop', { algs: 'ES256' }],
      ],
    ],
    [
      'Bearer, DPoP',
      [
        ['bearer', {}],
        ['dpop', {}],
      ],
    ],
    ['scope=a, Bearer realm=b', bearer({ realm: 'b' })], // a parameter of nothing
    [',,, Bearer ,, scope=a ,,', bearer({ scope: 'a' })],
    ['Bearer scope=', bearer({ scope: '' })],
    ['Bearer __proto__=a, constructor="b"', bearer({ ['__proto__']: 'a', constructor: 'b' })],
    ['Bearer realm="x",\tscope="a"', bearer({ realm: 'x', scope: 'a' })],
  ];
  for (const [header, expected] of table) {
    const found = parseChallenges(401, header).map(({ scheme, params }) => [
      scheme,
      Object.fromEntries(params),
    ]);
    assert.deepEqual(
      found,
      (expected as any[]).map(([scheme, params]) => [
        scheme,
        Object.fromEntries(Object.entries(params)),
      ]),
      header,
    );
  }
  for (const odd of [
    '"',
    '="',
    'Bearer realm="never closed, scope=a',
    '='.repeat(9000),
    'a'.repeat(1e6),
    '"\\'.repeat(5e5),
  ])
    assert.ok(Array.isArray(parseChallenges(401, odd))); // and at once
});

test('what the challenge wants: 401 is a login, 403 only if more rights would help, and any other status is neither', () => {
  const kind = (status: number, header?: string) => challengeIn(status, header)?.scheme;
  assert.deepEqual(
    [
      kind(401),
      kind(401, 'Basic realm=x'),
      kind(401, 'Basic realm=x, DPoP algs=ES256'),
      kind(401, 'Bearer, DPoP'),
    ],
    ['bearer', 'bearer', 'dpop', 'dpop'], // bound to a key is better
  );
  assert.deepEqual(
    [kind(403), kind(403, 'Bearer'), kind(403, 'Bearer error="invalid_token"')],
    [undefined, undefined, undefined],
  );
  assert.equal(kind(403, 'Basic error="insufficient_scope"'), undefined);
  const both = challengeIn(403, 'Bearer realm=x, Bearer error="insufficient_scope", scope="a"');
  assert.equal(both?.params.get('scope'), 'a');
  for (const status of [200, 400, 402, 404, 407, 500])
    assert.equal(kind(status, 'Bearer error="insufficient_scope"'), undefined);
});

test('several headers, and several schemes in one, lead to the same login', async () => {
  const other = 'Basic realm="a, Bearer b", charset="UTF-8"';
  for (const lines of [
    [other, 'BEARER'],
    ['BEARER', other],
    [`${other}, BEARER`],
    [`BEARER, ${other}`],
    ['Negotiate', 'BEARER'],
  ]) {
    const as = await authorizationServer();
    const server = await protectedServer({
      as,
      ways: { 'GET /somewhere': () => said({ ...server.prm, scopes_supported: ['decoy'] }) },
      gate: (heard) =>
        isIn(as, heard)
          ? undefined
          : locked(
              lines.map((line) =>
                line.replace(
                  'BEARER',
                  `Bearer scope="a b", resource_metadata="${server.origin}/somewhere"`,
                ),
              ),
            ),
    });
    const { openUserAgent, asked } = browser();
    await program({ openUserAgent }).to(server.url);
    assert.equal(asked().scope, 'a b', `${lines}`);
    assert.deepEqual(
      paths(server).filter((path) => path !== '/mcp'),
      ['/somewhere'],
    );
  }
});

// ─── Whom to ask ──────────────────────────────────────────────────────────────────────────────────────────────

test("the server's document: where the challenge says, else under its path, else at the root, and no address more", async () => {
  const at = (path: string) => [`GET ${path}`];
  const table: [server: string, named: string | undefined, there: string[], asked: string[]][] = [
    ['/mcp', '/about', at('/about'), ['/about']],
    ['/mcp', undefined, at(`${WELL_KNOWN}/mcp`), [`${WELL_KNOWN}/mcp`]],
    ['/mcp', undefined, at(WELL_KNOWN), [`${WELL_KNOWN}/mcp`, WELL_KNOWN]],
    ['/mcp', '/gone', at(`${WELL_KNOWN}/mcp`), ['/gone', `${WELL_KNOWN}/mcp`]],
    ['/mcp', `${WELL_KNOWN}/mcp`, at(WELL_KNOWN), [`${WELL_KNOWN}/mcp`, WELL_KNOWN]], // each once
    ['/', undefined, at(WELL_KNOWN), [WELL_KNOWN]],
    ['/a/b/mcp', undefined, at(`${WELL_KNOWN}/a/b/mcp`), [`${WELL_KNOWN}/a/b/mcp`]],
  ];
  for (const [path, named, there, asked] of table) {
    const as = await authorizationServer();
    const ways: Ways = { [`GET ${WELL_KNOWN}${path === '/' ? '' : path}`]: undefined };
    for (const where of there) ways[where] = () => said(server.prm);
    const server = await protectedServer({
      as,
      path,
      ways,
      gate: (heard) =>
        isIn(as, heard)
          ? undefined
          : locked(named ? `Bearer resource_metadata="${server.origin}${named}"` : 'Bearer'),
    });
    const { connection } = await program({ openUserAgent: browser().openUserAgent }).to(server.url);
    await connection.request('ping');
    assert.deepEqual(
      paths(server).filter((each) => each !== path),
      asked,
      `${path} ${named} ${there}`,
    );
  }
});

test('an address with a query has a document with that query', async () => {
  const as = await authorizationServer();
  const server = await protectedServer({ as, challenge: 'Bearer' });
  server.prm.resource = `${server.url}?tenant=1`;
  const { openUserAgent, asked } = browser();
  await program({ openUserAgent }).to(`${server.url}?tenant=1`);
  const [{ path, query }] = server.log.filter(({ path }) => path !== '/mcp') as [Heard];
  assert.deepEqual([path, query], [`${WELL_KNOWN}/mcp`, { tenant: '1' }]);
  assert.equal(asked().resource, `${server.url}?tenant=1`);
});

test('what the server calls itself goes out to the letter, in both requests and in every refresh', async () => {
  const table: [path: string, resource: string][] = [
    ['/mcp', ''],
    ['/mcp', '/'],
    ['/mcp', '/mcp'],
    ['/mcp', '/mcp/'],
    ['/mcp', '/mcp?x=1'],
    ['/', ''],
    ['/', '/'],
    ['/mcp/', '/mcp'],
    ['/a/b/mcp', '/a'],
    ['/a/b/mcp', '/a/'],
    ['/a/b/mcp', '/a/b'],
  ];
  for (const [path, end] of table) {
    const as = await authorizationServer({ token: { refresh_token: 'r' } });
    const server = await protectedServer({ as, path });
    const resource = (server.prm.resource = `${server.origin}${end}`.replace(/^http/, 'HTTP')); // not even its case is changed
    const { openUserAgent, asked } = browser();
    const { connection } = await program({ openUserAgent }).to(server.url);
    as.live.clear();
    await connection.request('ping');
    assert.deepEqual(
      [asked().resource, ...as.asked('/token').map(({ form }) => form.resource)],
      [resource, resource, resource],
      end,
    );
    assert.deepEqual(grantsOf(as), ['authorization_code', 'refresh_token']);
  }
});

test('a document about somebody else ends the login before anybody is asked', async () => {
  const others = [
    'http://127.0.0.1:1/mcp',
    'https://evil.example/mcp',
    '/mcp',
    'PATH/mcp/deeper',
    'PATH/mc',
    'PATH/mcpx',
  ];
  for (const resource of [...others, 7, undefined]) {
    const as = await authorizationServer();
    const server = await protectedServer({ as });
    server.prm.resource =
      typeof resource === 'string' ? resource.replace('PATH', server.origin) : resource;
    const { openUserAgent, visits } = browser();
    const error = await rejection(program({ openUserAgent }).to(server.url));
    assert.equal(error.kind, 'auth', `${resource}`);
    assert.match(error.message, /which it is not\. We do not log in there/);
    assert.deepEqual([as.log.length, visits.length], [0, 0], `${resource}`);
  }
});

test("the authorization server's document: three forms in their order for an issuer with a path, two without; nothing else", async () => {
  const oauth = '/.well-known/oauth-authorization-server';
  const oidc = '/.well-known/openid-configuration';
  const table: [path: string, forms: string[]][] = [
    ['', [oauth, oidc]],
    ['/', [oauth, oidc]],
    ['/tenant1', [`${oauth}/tenant1`, `${oidc}/tenant1`, `/tenant1${oidc}`]],
    ['/a/b', [`${oauth}/a/b`, `${oidc}/a/b`, `/a/b${oidc}`]],
  ];
  for (const [path, forms] of table)
    for (const [n, form] of forms.entries()) {
      const as = await authorizationServer({ path: path === '/' ? '' : path });
      if (path === '/') as.metadata.issuer = `${as.issuer}/`;
      const ways = as.ways;
      ways[`GET ${oauth}${path === '/' ? '' : path}`] = undefined;
      ways[`GET ${form}`] = () => said(as.metadata);
      if (path === '/')
        ways['GET /authorize'] = ({ query }) =>
          sentBack(query, { code: 'c', iss: `${as.issuer}/` });
      const server = await protectedServer({
        as,
        prm: { authorization_servers: [as.metadata.issuer] },
      });
      await program({ openUserAgent: browser().openUserAgent }).to(server.url);
      assert.deepEqual(
        paths(as).filter((each) => each.includes('.well-known')),
        forms.slice(0, n + 1),
        form,
      );
    }
});

test('a document with another issuer is passed over; if no other is right, its endpoints are not used', async () => {
  const as = await authorizationServer();
  as.ways['GET /.well-known/oauth-authorization-server'] = () =>
    said({ ...as.metadata, issuer: `${as.issuer}/` });
  const server = await protectedServer({ as });
  const { openUserAgent, visits } = browser();
  const error = await rejection(program({ openUserAgent }).to(server.url));
  assert.match(error.message, /whose metadata says it is/);
  assert.deepEqual([error.kind, visits.length], ['auth', 0]);
  as.ways['GET /.well-known/openid-configuration'] = () => said(as.metadata);
  await program({ openUserAgent }).to(server.url);
  assert.equal(visits.length, 1);
});

test('a document that is no JSON object, or no success, is not there', async () => {
  const odd = [said('<html>'), said([1]), said('null'), said('{"a":'.repeat(3000))];
  for (const answer of [...odd, said(undefined, 403), said({ resource: 'x' }, 404)]) {
    const as = await authorizationServer();
    const server = await protectedServer({ as });
    server.ways[`GET ${WELL_KNOWN}/mcp`] = () => answer;
    server.ways[`GET ${WELL_KNOWN}`] = () => said(server.prm);
    as.ways['GET /.well-known/oauth-authorization-server'] = () => answer;
    as.ways['GET /.well-known/openid-configuration'] = () => said(as.metadata);
    await program({ openUserAgent: browser().openUserAgent }).to(server.url);
  }
});

test('a document that nobody can get at the moment is no missing document: the login ends there', async () => {
  const as = await authorizationServer();
  const server = await protectedServer({ as });
  const { openUserAgent, visits } = browser();
  const ruined = [
    [server.ways, `GET ${WELL_KNOWN}/mcp`],
    [as.ways, 'GET /.well-known/oauth-authorization-server'],
  ] as const;
  for (const [ways, where] of ruined)
    for (const ruin of [
      () => said('try later', 503),
      ({ response }: Heard) => void response.destroy(),
    ]) {
      const usual = ways[where];
      ways[where] = ruin;
      const error = await rejection(program({ openUserAgent }).to(server.url));
      assert.equal(error.kind, 'auth');
      assert.match(error.message, /cannot be logged into|has trouble of its own|has no metadata/);
      ways[where] = usual;
    }
  assert.deepEqual(
    [visits.length, as.asked('/register').length, paths(server).includes('/token')],
    [0, 0, false],
  );
});

test('a server without a document is its own authorization server, with one of its own or at the usual addresses', async () => {
  for (const [hasDocument, slash] of [
    [true, ''],
    [true, '/'],
    [false, ''],
  ] as const) {
    const live = new Set<string>();
    const { openUserAgent, visits } = browser();
    const at = hasDocument ? '/own' : ''; // where its endpoints are
    const server = await protectedServer({
      challenge: 'Bearer',
      prm: undefined,
      gate: (heard) => (live.has(tokenIn(heard) ?? '') ? undefined : locked('Bearer')),
      ways: {
        [`GET ${WELL_KNOWN}/mcp`]: undefined,
        'GET /.well-known/oauth-authorization-server': hasDocument
          ? () =>
              said({
                issuer: server.origin + slash, // nobody has spelled it for us
                authorization_endpoint: `${server.origin}${at}/authorize`,
                token_endpoint: `${server.origin}${at}/token`,
                registration_endpoint: `${server.origin}${at}/register`,
                code_challenge_methods_supported: ['S256'],
              })
          : undefined,
        [`GET ${at}/authorize`]: ({ query }) => sentBack(query, { code: 'c' }),
        [`POST ${at}/token`]: () => (
          live.add('old'), said({ access_token: 'old', token_type: 'bearer' })
        ),
        [`POST ${at}/register`]: () => said({ client_id: 'me' }, 201),
      },
    });
    const { connection } = await program({ openUserAgent }).to(server.url);
    await connection.request('ping');
    assert.equal(server.asked(`${at}/token`)[0]!.form.resource, server.url);
    assert.deepEqual(
      [visits[0]!.pathname, visits[0]!.searchParams.get('resource')],
      [`${at}/authorize`, server.url],
    );
    assert.equal(server.called('ping')[0]!.headers.authorization, 'Bearer old');
  }
});

test('a server whose document names an authorization server without metadata gets no guesses', async () => {
  const as = await authorizationServer();
  as.ways['GET /.well-known/oauth-authorization-server'] = undefined;
  const server = await protectedServer({ as });
  const { openUserAgent, visits } = browser();
  const error = await rejection(program({ openUserAgent }).to(server.url));
  assert.match(error.message, /which has no metadata/);
  assert.deepEqual([visits.length, paths(server).includes('/authorize')], [0, false]);
});

test('of several authorization servers it is the first; later the one that we know, wherever it stands', async () => {
  const [first, second] = [await authorizationServer(), await authorizationServer()];
  const live = (heard: Heard) => isIn(first, heard) || isIn(second, heard);
  const server = await protectedServer({
    prm: { authorization_servers: [first.issuer, second.issuer] },
    gate: (heard) => (live(heard) ? undefined : locked('Bearer')),
  });
  const { openUserAgent } = browser();
  const { connection } = await program({ openUserAgent }).to(server.url);
  server.prm.authorization_servers = [second.issuer, first.issuer];
  first.live.clear();
  await connection.request('ping');
  assert.deepEqual(
    [grantsOf(first).length, first.asked('/register').length, second.log.length],
    [2, 1, 0],
  );
});
