// Options of an entry about its login: oauth.authServerMetadataUrl, and oauth.xaa with one company for all (chapter 27 has the settings).

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { declareGrant } from '../chapters/21-authorization/machines.ts';
import {
  authorizationServer,
  browser,
  program,
  protectedServer,
  said,
} from './help/oauth-servers.ts';
import { cleanUp, rejection } from './help/basics.ts';
import type { McpConnection } from '../mcp.ts';

afterEach(cleanUp);

const URN = 'urn:ietf:params:oauth';
const jwt = (claims: object) =>
  ['{}', JSON.stringify(claims), '']
    .map((part) => Buffer.from(part).toString('base64url'))
    .join('.') + 'x';

/** A company: it logs people in, and writes letters. */
async function company() {
  return authorizationServer({
    ways: {
      'POST /token': ({ form }) =>
        form.grant_type === 'authorization_code'
          ? said({
              access_token: 'x',
              token_type: 'Bearer',
              id_token: jwt({ sub: 'ada', exp: Math.floor(Date.now() / 1000) + 300 }),
            })
          : said({
              access_token: 'the-letter',
              issued_token_type: `${URN}:token-type:id-jag`,
              token_type: 'N_A',
              expires_in: 300,
            }),
    },
  });
}

test("xaa: one login at the company that the user's settings name, for all servers that say so", async () => {
  const idp = await company();
  const [one, two] = [await authorizationServer(), await authorizationServer()];
  const servers = [await protectedServer({ as: one }), await protectedServer({ as: two })];
  const { openUserAgent, visits } = browser();
  const { to } = program({
    openUserAgent,
    idp: () => ({ issuer: idp.issuer, clientId: 'at-idp' }),
  });
  await to(servers[0]!.url, { xaa: true, clientId: 'at-one' });
  await to(servers[1]!.url, { xaa: true, clientId: 'at-two' });
  assert.deepEqual(
    visits.map(({ origin }) => origin),
    [idp.issuer],
  ); // one visit for both
  for (const as of [one, two])
    assert.deepEqual(
      as.asked('POST /token').map(({ form }) => form.assertion),
      ['the-letter'],
    );
  const declared = declareGrant({ config: { oauth: { xaa: true } } } as unknown as McpConnection);
  assert.deepEqual(Object.keys((declared.capabilities as any).extensions), [
    'io.modelcontextprotocol/enterprise-managed-authorization',
  ]);
});

test("xaa, an attacker's view: an entry cannot name the company; without one in the settings it is an error that says what to write", async () => {
  const [idp, evil] = [await company(), await company()];
  const as = await authorizationServer();
  const { url } = await protectedServer({ as });
  const { openUserAgent } = browser();
  const { to } = program({
    openUserAgent,
    idp: () => ({ issuer: idp.issuer, clientId: 'at-idp' }),
  });
  await to(url, {
    xaa: true,
    clientId: 'c',
    idp: { issuer: evil.issuer, clientId: 'x' },
    grant: 'authorization_code',
  });
  assert.deepEqual([evil.log.length, idp.asked('POST /token').length], [0, 2]);
  const error = await rejection(program({ openUserAgent }).to(url, { xaa: true, clientId: 'c' }));
  assert.match(error.message, /"xaa" in "oauth" needs your identity provider: "xaaIdp"/);
});

test('authServerMetadataUrl: the document that the entry names, whatever the server says of itself', async () => {
  const as = await authorizationServer();
  const elsewhere = await authorizationServer({
    ways: { 'GET /meta.json': () => said(as.metadata) },
  });
  const wrong = await authorizationServer();
  const server = await protectedServer({ as, prm: { authorization_servers: [wrong.issuer] } });
  const { openUserAgent, visits } = browser();
  await program({ openUserAgent }).to(server.url, {
    authServerMetadataUrl: `${elsewhere.origin}/meta.json`,
  });
  assert.deepEqual([visits.map(({ origin }) => origin), wrong.log.length], [[as.issuer], 0]);
  assert.equal(as.asked('POST /token')[0]!.form.resource, server.url);
});

test("authServerMetadataUrl, an attacker's view: not over http://, not for another issuer than the secret is for, and no document is an error", async () => {
  const as = await authorizationServer();
  const server = await protectedServer({ as });
  const to = (oauth: object) =>
    rejection(program({ openUserAgent: browser().openUserAgent }).to(server.url, oauth as any));
  assert.match(
    (await to({ authServerMetadataUrl: 'http://far.example/x' })).message,
    /is not an address that begins with https/,
  );
  assert.match(
    (await to({ authServerMetadataUrl: 'file:///etc/passwd' })).message,
    /is not an address that begins with https/,
  );
  assert.match(
    (await to({ authServerMetadataUrl: `${as.origin}/nothing` })).message,
    /has no metadata of an authorization server at/,
  );
  const doc = `${as.origin}/.well-known/oauth-authorization-server`;
  assert.match(
    (
      await to({
        authServerMetadataUrl: doc,
        issuer: 'https://mine.example',
        clientSecret: 's',
        clientId: 'c',
      })
    ).message,
    /"oauth" in its configuration is for https:\/\/mine\.example/,
  );
  const liar = await authorizationServer({ ways: { 'GET /meta.json': () => said(as.metadata) } });
  assert.match(
    (
      await to({
        authServerMetadataUrl: `${liar.origin}/meta.json`,
        clientSecret: 's',
        clientId: 'c',
      })
    ).message,
    /if your secret is for that one/,
  );
  assert.equal(as.asked('POST /token').length, 0);
});
