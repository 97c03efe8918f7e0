// Attack cases G12 and G16: what was given by one is not shown to another, and no secret is in what
// is shown and written.

import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { Masker } from '../chapters/17-the-gate/safe-text.ts';
import type { Json } from '../mcp.ts';
import {
  loggedIn,
  loginBetween,
  repeatingProgram,
  sink,
  toldTo,
  unasked,
} from './help/hostile-login.ts';
import {
  authorizationServer,
  browser,
  locked,
  program,
  protectedServer,
  refusing,
  said,
  tokenIn,
  type Heard,
} from './help/oauth-servers.ts';
import { assertClean } from './help/agent-with-gate.ts';
import { cleanUp, folder, later, rejection } from './help/basics.ts';
import { call, say, startModelServer } from './help/model-server.ts';
import { place, run as runProgram, userServers, type Ended, type Place } from './help/terminal.ts';

afterEach(cleanUp);

// ─── G12: what was given by one is not shown to another ───────────────────────────────────────────────────────

test('G12: a server of the same name at another address, or at another path, sees nothing of the old login', async () => {
  const { home, withheld, server } = await loggedIn();
  const as = await authorizationServer();
  for (const path of ['/mcp', '/mcp/', '/other']) {
    const other = await protectedServer({ as, path });
    await program({ home, openUserAgent: browser().openUserAgent }).to(other.url);
    withheld(other);
    withheld(as);
  }
  const count = server.log.length;
  await rejection(program({ home }).to(`${server.url}?x=1`));
  for (const { headers } of server.log.slice(count)) assert.equal(headers.authorization, undefined);
});

test('G12: a server of another name at the same address has a login of its own', async () => {
  const { home, server } = await loggedIn();
  const count = server.log.length;
  const { logins } = program({ home });
  const transport = logins.transports.http!('other', { url: server.url }, 2 ** 20);
  later(() => transport.close());
  await transport.start({ message: () => {}, closed: () => {} });
  await rejection(transport.send({ jsonrpc: '2.0', id: 1, method: 'ping' }));
  for (const { headers } of server.log.slice(count)) assert.equal(headers.authorization, undefined);
});

test('G12: when the server names another authorization server, that one sees nothing of the old login', async () => {
  const { as: old, server, home, withheld } = await loggedIn();
  const as = await authorizationServer();
  old.live.clear();
  old.ways['POST /token'] = () => refusing('invalid_grant');
  server.prm.authorization_servers = [as.issuer];
  server.log.length = 0;
  const gate = server.ways;
  gate['POST /mcp'] = (heard) =>
    as.live.has(tokenIn(heard) ?? '')
      ? said({ jsonrpc: '2.0', id: heard.json.id, result: { protocolVersion: '2025-11-25' } })
      : locked('Bearer');
  await program({ home, openUserAgent: browser().openUserAgent }).to(server.url);
  assert.equal(as.asked('/register').length, 1, 'it gets to know us anew');
  withheld(as);
});

test('G12: with another issuer or another client in the configuration, the old login is not used', async () => {
  for (const oauth of [
    { issuer: 'https://other.example' },
    { clientId: 'another-client' },
    { issuer: 'https://other.example', clientId: 'c', clientSecret: 'a-new-secret' },
  ]) {
    const { as, server, home } = await loggedIn();
    server.log.length = as.log.length = 0;
    assert.equal((await rejection(program({ home }).to(server.url, oauth))).kind, 'auth');
    for (const { headers } of server.log) assert.equal(headers.authorization, undefined);
    assert.deepEqual(as.log, [], 'nor is it refreshed');
  }
});

test('G12: a secret in the configuration goes to the issuer beside it only, and to nobody if none is there', async () => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }) as string;
  const file = join(folder(), 'file');
  const jwt = 'aaaaaaaa.bbbbbbbb.cccccccc';
  writeFileSync(file, jwt);
  const configs: Json[] = [
    { clientId: 'c', clientSecret: 'the-client-secret' },
    { clientId: 'c', clientSecret: 'the-client-secret', grant: 'client_credentials' },
    { clientId: 'c', privateKey: pem, grant: 'client_credentials' },
    { clientId: 'c', privateKeyFile: file, grant: 'client_credentials' },
    { clientId: 'c', grant: 'workload', assertion: jwt },
    { clientId: 'c', grant: 'workload', assertionFile: file },
  ];
  for (const oauth of configs) {
    for (const issuer of [undefined, 'https://as.example']) {
      const { as, refusal, user } = await loginBetween();
      const error = await refusal({ ...oauth, ...(issuer && { issuer }) });
      assert.match(
        error.message,
        issuer ? /is for https:\/\/as\.example/ : /write beside it: "issuer"/,
      );
      assert.deepEqual(user.visits, []);
      unasked(as, '/register', '/token');
    }
  }
  const { as, login } = await loginBetween();
  await login({ ...configs[1], issuer: as.issuer });
  assert.match(as.asked('/token')[0]!.headers.authorization!, /^Basic /);
});

test('G12: an issuer in the configuration is one of those that the server names, or nobody is asked', async () => {
  const { as: honest } = await loginBetween();
  const { as, server, login, client } = await loginBetween();
  server.prm.authorization_servers = [as.issuer, honest.issuer];
  await rejection(login({ issuer: `${honest.issuer}/` }));
  assert.deepEqual([as.log, honest.log], [[], []]);
  honest.ways['POST /token'] = () => said(as.issue());
  await login({ issuer: honest.issuer });
  assert.deepEqual(as.log, []);
  assert.equal(client.row(server.url)!.issuer, honest.issuer);
});

test('G12: a token for one server is not sent to another that it names, by redirect or as an endpoint for messages', async () => {
  const target = await sink();
  for (const status of [301, 302, 307, 308]) {
    const { server, login } = await loginBetween();
    const { connection } = await login();
    server.ways['POST /mcp'] = () => said('', status, { location: `${target.origin}/mcp` });
    await rejection(connection.callTool('echo'));
  }
  const as = await authorizationServer();
  const old = await protectedServer({ as });
  old.ways['GET *'] = ({ response }) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(`event: endpoint\ndata: ${target.origin}/messages\n\n`);
  };
  const error = await rejection(
    program({ openUserAgent: browser().openUserAgent }).to(old.url, undefined, {}, { type: 'sse' }),
  );
  assert.match(error.message, /somebody else/);
  assert.ok(
    old.log.some((heard) => tokenIn(heard)),
    'there was a token',
  );
  assert.deepEqual(target.log, []);
});

test("G12: a company's issuer does not see the secret that is for the authorization server", async () => {
  const company = await authorizationServer({ token: { id_token: 'aaaaaaaa.bbbbbbbb.cccccccc' } });
  const { as, refusal } = await loginBetween();
  await refusal({
    grant: 'id-jag',
    issuer: as.issuer,
    clientId: 'the-client-id',
    clientSecret: 'the-client-secret',
    idp: { issuer: company.issuer, clientId: 'company-client' },
  }).catch(() => {});
  const basic = Buffer.from('the-client-id:the-client-secret').toString('base64');
  assert.equal(company.asked('/token').length > 0, true);
  assert.doesNotMatch(toldTo(company), new RegExp(`the-client-secret|${basic}`));
  assert.deepEqual(
    company.asked('/authorize').map(({ query }) => query.client_id),
    ['company-client'],
  );
});

test('G12: a login at a company is shown to the company only, wherever a project says that its token endpoint is', async () => {
  const idToken = 'aaaaaaaa.bbbbbbbb.cccccccc';
  const target = await sink();
  const { as: company } = await loginBetween();
  const { as, server, client } = await loginBetween();
  client.store.keepIdpLogin(company.issuer, 'company-client', idToken);
  const evil = {
    issuer: company.issuer,
    clientId: 'company-client',
    tokenEndpoint: `${target.origin}/token`,
  };
  await client
    .to(server.url, { grant: 'id-jag', clientId: 'c', issuer: as.issuer, idp: evil })
    .catch(() => {});
  assert.ok(!toldTo(target).includes(idToken));
});

test('G12: a secret in the configuration does not go to another issuer when a login from before is revoked', async () => {
  const { as: old, server, home } = await loggedIn();
  const { to, logins } = program({ home });
  const oauth = {
    issuer: 'https://new.example',
    clientId: 'a-new-client',
    clientSecret: 'a-new-client-secret',
  };
  await rejection(to(server.url, oauth));
  await logins.logOut('demo');
  const basic = Buffer.from('the-client-id:a-new-client-secret').toString('base64');
  assert.doesNotMatch(toldTo(old), new RegExp(`a-new-client-secret|${basic}`));
});

// ─── G16: secrets in what is shown and written ────────────────────────────────────────────────────────────────

const withoutWords = (text: string, secrets: (string | undefined)[], where: string) => {
  for (const secret of secrets) {
    assert.ok(secret && secret.length >= 8, `${where}: there is a secret`);
    assert.ok(!text.includes(secret), `${where}: ${secret} in ${text}`);
  }
};

test('G16: what an authorization server repeats in its error is not in ours: code, verifier, secret, refresh token', async () => {
  for (const method of ['none', 'client_secret_post', 'client_secret_basic']) {
    const { as, server, refusal, login, client } = await loginBetween({
      metadata: { token_endpoint_auth_methods_supported: [method] },
      token: { refresh_token: 'the-refresh-token-of-23' },
    });
    as.ways['POST /register'] = ({ json }) =>
      said({ ...json, client_id: 'c', client_secret: 'the-client-secret-of-24' }, 201);
    const honest = as.ways['POST /token'];
    const seen: string[] = [];
    for (const pick of ['code', 'code_verifier', 'client_secret'])
      for (const place of [
        (word: string) => word,
        (word: string) => `no ${word}`,
        (word: string) => `{"a":"${word}"}`,
        (word: string) => `${word} ${word}`,
      ]) {
        as.ways['POST /token'] = ({ form }) =>
          refusing(place(form[pick] ?? 'x'), 400, { error_description: place(form[pick] ?? 'y') });
        const error = await refusal();
        seen.push(error.message);
        const { form } = as.asked('/token').at(-1)!;
        withoutWords(
          error.message,
          [form.code, form.code_verifier, ...(form.client_secret ? [form.client_secret] : [])],
          pick,
        );
      }
    assert.match(seen.join(), /\*\*\*/);
    as.ways['POST /token'] = honest;
    await login();
    as.live.clear();
    as.ways['POST /token'] = ({ form }) =>
      refusing('server_error', 400, { error_description: `${form.refresh_token}` });
    const error = await rejection(client.to(server.url));
    assert.equal(as.asked('/token').at(-1)!.form.refresh_token, 'the-refresh-token-of-23');
    withoutWords(error.message, ['the-refresh-token-of-23'], 'refresh');
  }
});

/** An issuer, a configuration for it with a secret of each kind, and which field of the form repeats that secret. */
function machines(issuer: string): { oauth: Json; fields: string[]; secrets: string[] }[] {
  const files = { assertionFile: join(folder(), 'word') };
  const jwt = (name: string) =>
    `aaaaaaaa.${Buffer.from(JSON.stringify({ name })).toString('base64url')}.cccccccc`;
  writeFileSync(files.assertionFile, jwt('file'));
  return [
    {
      oauth: { issuer, clientId: 'c', grant: 'workload', assertion: jwt('text') },
      fields: ['assertion'],
      secrets: [jwt('text')],
    },
    {
      oauth: { issuer, clientId: 'c', grant: 'workload', ...files },
      fields: ['assertion'],
      secrets: [jwt('file')],
    },
    {
      oauth: {
        issuer,
        clientId: 'c',
        clientSecret: 'a-secret-for-posts',
        grant: 'client_credentials',
      },
      fields: ['client_secret'],
      secrets: ['a-secret-for-posts'],
    },
    {
      oauth: {
        issuer,
        clientId: 'c',
        clientSecret: 'a-secret-for-posts',
        grant: 'id-jag',
        idp: { issuer, tokenEndpoint: `${issuer}/company`, clientId: 'i', idToken: jwt('id') },
      },
      fields: ['subject_token', 'assertion'],
      secrets: [jwt('id'), 'the-letter-of-the-company'],
    },
  ];
}

test('G16: nor is what machines show: assertions, secrets, ID tokens, letters of a company', async () => {
  const { length } = machines('');
  for (let n = 0; n < length; n++) {
    const { as, server } = await loginBetween({
      metadata: {
        token_endpoint_auth_methods_supported: ['client_secret_post', 'private_key_jwt'],
      },
    });
    const { oauth, fields, secrets } = machines(as.issuer)[n]!;
    for (const field of fields) {
      const repeat = ({ form }: Heard) =>
        refusing('invalid_grant', 400, { error_description: `no: ${form[field]}` });
      const isCompany = field === 'subject_token';
      as.ways['POST /company'] = isCompany
        ? repeat
        : () => said({ access_token: 'the-letter-of-the-company' });
      as.ways['POST /token'] = repeat;
      const error = await rejection(program().to(server.url, oauth));
      assert.equal(error.kind, 'auth');
      const heard = as.asked(isCompany ? '/company' : '/token').at(-1)!;
      withoutWords(error.message, [heard.form[field], ...secrets], `${n}, ${field}`);
      assert.match(error.message, /no: \*\*\*/);
    }
  }
});

test('G16: nor is the header by which we show a secret, nor that secret itself', async () => {
  const { as, login } = await loginBetween({
    metadata: { token_endpoint_auth_methods_supported: ['client_secret_basic'] },
  });
  as.ways['POST /register'] = ({ json }) =>
    said({ ...json, client_id: 'c', client_secret: 'the-client-secret-of-24' }, 201);
  for (const word of [
    ({ headers }: Heard) => headers.authorization!,
    () => 'the-client-secret-of-24',
  ]) {
    as.ways['POST /token'] = (heard) =>
      refusing('invalid_client', 401, { error_description: `wrong: ${word(heard)}` });
    const error = await rejection(login());
    const secret = word(as.asked('/token').at(-1)!).replace('Basic ', '');
    withoutWords(error.message, [secret], 'as an error');
    withoutWords(new Masker({}).text(error.message), [secret], 'as it is shown');
  }
});

test('G16: nor is half of a secret, where an error is cut off, nor one that has other signs in it', async () => {
  const { as, refusal } = await loginBetween({
    metadata: { token_endpoint_auth_methods_supported: ['client_secret_post'] },
  });
  for (const [secret, word] of [
    ['x'.repeat(10) + 'y'.repeat(40), (text: string) => `${'.'.repeat(150)}${text}`],
    ['a"secret\\with"quotes', (text: string) => text],
  ] as const) {
    as.ways['POST /token'] = ({ form }) => refusing(word(form.client_secret!), 400);
    const error = await refusal({ clientId: 'c', clientSecret: secret, issuer: as.issuer });
    assert.doesNotMatch(error.message, /xxxxxxxxxxyyyyyyyyyy|a\\"secret/);
  }
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' });
  as.ways['POST /token'] = ({ form }) => refusing(`no: ${form.client_assertion}`);
  const error = await refusal({
    clientId: 'c',
    privateKey: pem,
    issuer: as.issuer,
    grant: 'client_credentials',
  });
  assert.doesNotMatch(error.message, /eyJ/, 'a JWT is longer than what is shown of an error');
});

test('G16: no secret is on the wire that is watched, in a warning or in the state of a server', async () => {
  const token = { refresh_token: 'the-refresh-token-of-23' };
  const { as, server, client } = await loginBetween({ token });
  const { connection, wire, warnings } = await client.to(server.url);
  await connection.callTool('echo', {});
  as.live.clear();
  await connection.callTool('echo', {});
  const { form } = as.asked('/token')[0]!;
  const access = server.log.map(tokenIn).filter(Boolean);
  assert.equal(new Set(access).size, 2);
  withoutWords(
    JSON.stringify([wire, warnings]),
    [...access, token.refresh_token, form.code, form.code_verifier],
    'the wire',
  );
});

/** Every file of a home and a project, but for those that hold secrets by right. */
function filesIn({ home, cwd }: Place): [name: string, text: string][] {
  const all = [home, cwd].flatMap((root) =>
    (readdirSync(root, { recursive: true }) as string[]).map((name) => join(root, name)),
  );
  const files = all.filter(
    (file) =>
      statSync(file).isFile() && !file.endsWith('logins.json') && !file.endsWith('settings.json'),
  );
  return files.map((file) => [file, readFileSync(file, 'utf8')]);
}

const SHOWING = [
  ['mcp', 'list'],
  ['mcp', 'list', '--json'],
  ['mcp', 'get', 'demo'],
  ['mcp', 'get', 'demo', '--json'],
  ['probe', '--wire', 'demo', '--call', 'echo'],
  ['probe', '--json', 'demo'],
  ['trust', 'list'],
];

test('G16, I6: the program shows and writes no token, though server and issuer repeat it', async () => {
  const { as, where, secrets } = await repeatingProgram();
  const turn = [call('mcp__demo__echo', {}), say('over')];
  const model = await startModelServer([...turn, ...turn, ...turn, ...turn]);
  const env = { ANTHROPIC_API_KEY: 'a-key-for-tests', ANTHROPIC_BASE_URL: model.url };
  const flags = ['--wire', '--trace', 'trace', '--allow', 'mcp__demo__echo'];
  const talks = [
    ['--json', ...flags, 'go'],
    ['-p', ...flags, 'go'],
  ];
  const looked: Ended[] = [];
  const look = async () => {
    for (const args of [...talks, ...SHOWING]) looked.push(await runProgram(where, args, { env }));
  };
  await look();
  assert.match(looked[0]!.out + looked[0]!.err, /you are Bearer \*\*\*/, 'the server has said it');
  as.live.clear();
  as.ways['POST /token'] = ({ form }) =>
    refusing('server_error', 400, { error_description: `no ${form.refresh_token}` });
  await look();
  assert.match(
    looked.map(({ out, err }) => out + err).join(),
    /server_error: no \*\*\*/,
    'the issuer has said it',
  );
  for (const { out, err } of looked) withoutWords(out + err, secrets, 'what is shown');
  const files = filesIn(where);
  assert.ok(
    files.some(([name]) => name.endsWith('trace')) &&
      files.some(([name]) => name.endsWith('.jsonl')),
  );
  for (const [name, text] of files) {
    withoutWords(text, secrets, name);
    if (/trace$|\.jsonl$/.test(name)) assert.equal(statSync(name).mode & 0o777, 0o600, name);
  }
  assert.deepEqual(model.problems, []);
});

test('G16: nor does it show the secret of a registration, which it has from the file', async () => {
  const { as, where, secrets } = await repeatingProgram();
  as.live.clear();
  as.ways['POST /token'] = ({ form }) =>
    refusing('server_error', 400, { error_description: `no ${form.client_secret}` });
  const { out, err } = await runProgram(where, ['mcp', 'list']);
  assert.match(out, /server_error: no/);
  withoutWords(out + err, secrets, 'mcp list');
});

test('G16: nor is it in the name by which a server calls itself', async () => {
  const { where, secrets } = await repeatingProgram({
    serverInfo: (heard) => ({ name: `for ${tokenIn(heard)}`, version: `${tokenIn(heard)}` }),
  });
  for (const args of SHOWING) {
    const { out, err } = await runProgram(where, args);
    withoutWords(out + err, secrets, args.join(' '));
  }
});

test('G16: an issuer cannot choose a word as its token, and so have it left out of what is written', async () => {
  const as = await authorizationServer({ token: { access_token: 'assistant' } });
  as.live.add('assistant');
  const server = await protectedServer({ as });
  const where = place({}, userServers({ demo: { type: 'http', url: server.url } }));
  await program({ home: where.home, openUserAgent: browser().openUserAgent }).to(server.url);
  const model = await startModelServer([say('hello')]);
  await runProgram(where, ['-p', 'hi'], {
    env: { ANTHROPIC_API_KEY: 'a-key-for-tests', ANTHROPIC_BASE_URL: model.url },
  });
  const [, text] = filesIn(where).find(([name]) => name.endsWith('.jsonl'))!;
  assert.match(text, /"role":"assistant"/);
});

test('F1, G16: nothing that an issuer or a challenge says moves the cursor or forges a line', async () => {
  const evil = '\x1b[2J\x9b31m\u202e\r\nmcp: all is well\x07';
  const { as, server, home } = await loggedIn();
  as.live.clear();
  as.ways['POST /token'] = () =>
    refusing('server_error', 400, { error_description: `evil ${evil}` });
  mkdirSync(join(home, '.claude'));
  writeFileSync(
    join(home, '.claude', 'settings.json'),
    JSON.stringify({ mcpServers: { demo: { type: 'http', url: server.url } } }),
  );
  const where = { ...place(), home };
  const { out, err } = await runProgram(where, ['mcp', 'list']);
  assert.match(out, /refused us: "server_error: evil/);
  assertClean([out, err]);
  assert.doesNotMatch(out, /^mcp: all/m);
});

test('G16: an entry is shown without the secrets of its "oauth"', async () => {
  const secrets = [
    'the-client-secret-1',
    '-----BEGIN PRIVATE KEY-----\nthe-private-key\n-----END PRIVATE KEY-----',
    'aaaaaaaa.bbbbbbbb.cccccccc',
    'the-client-secret-2',
    'the-id-token-of-it',
  ];
  const oauth = {
    issuer: 'https://as.example',
    clientId: 'the-client-id',
    clientSecret: secrets[0],
    privateKey: secrets[1],
    assertion: secrets[2],
    idp: {
      issuer: 'https://idp.example',
      clientId: 'i',
      clientSecret: secrets[3],
      idToken: secrets[4],
    },
  };
  const config = { type: 'http', url: 'http://127.0.0.1:1/mcp', oauth };
  const where = place(
    { '.mcp.json': { mcpServers: { theirs: config } } },
    userServers({ mine: config }),
  );
  for (const args of [
    ['mcp', 'get', 'mine'],
    ['mcp', 'get', 'mine', '--json'],
    ['mcp', 'get', 'theirs'],
    ['mcp', 'get', 'theirs', '--json'],
    ['mcp', 'list'],
    ['mcp', 'list', '--json'],
    ['probe', 'mine'],
  ]) {
    const { out, err } = await runProgram(where, args);
    withoutWords(out + err, [...secrets, 'the-private-key'], args.join(' '));
    if (args[1] === 'get') assert.match(out, /the-client-id/);
  }
});
