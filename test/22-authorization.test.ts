// Chapters 21 and 22 together: a login in both eras, whichever of them the server turns out to speak.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { declareGrant } from '../chapters/21-authorization/machines.ts';
import { inBothEras } from '../chapters/22-no-handshake/era.ts';
import type { ConnectionOptions } from '../mcp.ts';
import {
  authorizationServer,
  browser,
  program,
  protectedServer,
  strictCalculator,
  strictIssuer,
  tokenIn,
} from './help/oauth-servers.ts';
import { call, cleanUp, open, rejection, until } from './help/basics.ts';
import { prepare } from './help/manager.ts';

afterEach(cleanUp);

const ERAS = ['legacy', 'modern', 'both'];
const flagsOf = (era: string) => (era === 'both' ? [] : ['--era', era]);
const openWith = (
  url: string,
  { logins }: ReturnType<typeof program>,
  oauth = {},
  more: ConnectionOptions = {},
) =>
  open(
    { type: 'http', url, oauth },
    { extensions: inBothEras(), transports: logins.transports, ...more },
  );

test('a login, a refresh and a step-up in each era, with the strict pair', async () => {
  for (const era of ERAS) {
    const { issuer, log, tell } = await strictIssuer();
    const url = await strictCalculator(issuer, ...flagsOf(era), '--sessions');
    const { openUserAgent, visits } = browser();
    const { connection } = await openWith(url, program({ openUserAgent }));
    assert.equal(
      connection.server!.protocolVersion,
      era === 'legacy' ? '2025-11-25' : '2026-07-28',
    );
    assert.equal(await call(connection, 'add', { a: 2, b: 40 }), '42');
    await tell('expire');
    assert.equal(await call(connection, 'add', { a: 2, b: 40 }), '42');
    assert.equal(await call(connection, 'greet', { name: 'Ada' }), 'Hello, Ada!');
    assert.equal(visits.length, 2, era);
    assert.deepEqual(
      (await log('/token')).map(({ form, status }) => [form.grant_type, status]),
      [
        ['authorization_code', 200],
        ['refresh_token', 200],
        ['authorization_code', 200],
      ],
    );
    await connection.close();
  }
});

test('proofs and nonces in each era', async () => {
  for (const era of ERAS) {
    const { issuer } = await strictIssuer('--dpop', '--nonces');
    const url = await strictCalculator(issuer, ...flagsOf(era), '--dpop', '--nonces');
    const { connection } = await openWith(url, program({ openUserAgent: browser().openUserAgent }));
    assert.equal(await call(connection, 'add', { a: 2, b: 40 }), '42', era);
  }
});

test('whichever era a server speaks, one that wants a login is needs-auth, is asked once, and by the next program not at all', async () => {
  for (const era of ERAS) {
    const as = await authorizationServer();
    const discover = { supportedVersions: ['2026-07-28'], capabilities: { tools: {} } };
    const server = await protectedServer({
      as,
      mcp:
        era === 'legacy'
          ? {}
          : {
              'server/discover': () => discover,
              'tools/list': () => ({ resultType: 'complete', tools: [] }),
            },
    });
    const { home, logins } = program();
    const start = async (transports = logins.transports) => {
      const { manager, state } = prepare({ demo: { type: 'http', url: server.url } }, undefined, {
        extensions: inBothEras(),
        transports,
      });
      await manager.loadAndConnect();
      return { manager, state: state('demo') };
    };
    const { state } = await start();
    assert.equal(state.state, 'needs-auth', era);
    assert.match(state.reason!, /wants a login\. To log in: \/mcp login demo/);
    assert.equal(server.log.length, 1, 'the probe; nobody tries a handshake after that');
    const next = await start(program({ home }).logins.transports);
    assert.equal(next.state.state, 'needs-auth');
    assert.match(next.state.reason!, /said at .* that it wants a login/);
    assert.equal(server.log.length, 1, era);
    await openWith(server.url, program({ home, openUserAgent: browser().openUserAgent }));
    const last = await start(program({ home }).logins.transports);
    assert.equal(last.state.state, 'connected', last.state.reason);
  }
});

test('fifty calls of the later era whose token is dead cause one refresh, and a call that is cancelled leaves the others alone', async () => {
  const as = await authorizationServer({ token: { refresh_token: 'r' } });
  let go!: () => void;
  const gate = new Promise<void>((done) => (go = done));
  const server = await protectedServer({
    as,
    mcp: {
      'server/discover': () => ({ supportedVersions: ['2026-07-28'], capabilities: { tools: {} } }),
      'tools/call': ({ json }) => ({
        resultType: 'complete',
        content: [{ type: 'text', text: JSON.stringify(json.params.arguments) }],
      }),
    },
  });
  const { connection } = await openWith(
    server.url,
    program({ openUserAgent: browser().openUserAgent }),
  );
  assert.equal(connection.server!.protocolVersion, '2026-07-28');
  as.live.clear();
  as.ways['POST /token'] = async () => (await gate, { body: as.issue() });
  const controller = new AbortController();
  const stopped = rejection(call(connection, 'echo', {}, { signal: controller.signal }));
  const calls = Array.from({ length: 49 }, (_, n) => call(connection, 'echo', { n }));
  await until(() => as.asked('/token').length === 2);
  controller.abort();
  assert.equal((await stopped).kind, 'aborted');
  go();
  assert.deepEqual(
    await Promise.all(calls),
    Array.from({ length: 49 }, (_, n) => `{"n":${n}}`),
  );
  assert.equal(as.asked('/token').length, 2);
  assert.ok(
    server.called('tools/call').every((heard) => tokenIn(heard) === `access-2-of-${as.port}`),
  );
});

test('whoever logs in without a person says by which extension of the protocol, in each era; nobody else says anything', async () => {
  const secret = { clientId: 'machine', clientSecret: 'machine-secret' };
  for (const era of ['legacy', 'modern'])
    for (const grant of ['client_credentials', undefined]) {
      const { issuer } = await strictIssuer();
      const url = await strictCalculator(issuer, ...flagsOf(era));
      const said: unknown[] = [];
      const onWire = (direction: string, message: any) => {
        const meta = message.params?._meta?.['io.modelcontextprotocol/clientCapabilities'];
        const { method, params } = message;
        if (direction === 'out' && (meta || method === 'initialize'))
          said.push((meta ?? params.capabilities).extensions);
      };
      const roots = () => ({ capabilities: { roots: {} } });
      const options = { extensions: [declareGrant, roots, ...inBothEras()], onWire };
      const oauth = grant ? { grant, issuer, ...secret } : {};
      const { connection } = await openWith(
        url,
        program({ openUserAgent: browser().openUserAgent }),
        oauth,
        options,
      );
      assert.equal(await call(connection, 'add', { a: 2, b: 40 }), '42');
      assert.deepEqual(connection.capabilities.roots, {}, 'what we can do besides is still said');
      const wanted = grant && { 'io.modelcontextprotocol/oauth-client-credentials': {} };
      assert.ok(said.length > 0);
      for (const each of said) assert.deepEqual(each, wanted, `${era} ${grant}`);
    }
});
