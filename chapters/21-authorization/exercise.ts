// Judges exercise 21: is the answer that a browser brings back used if it comes from whom we asked, and only then? A script is
// the MCP server and its authorization server in one, and the browser, too. "Out" is what is posted to its token endpoint.

import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import type { Judge } from '../book.ts';

const SUPPORTED = 'authorization_response_iss_parameter_supported';
const code = 'the-code';
const redirectUri = 'http://127.0.0.1:7777/callback';

export const judge: Judge = async ({ load, see, expect }) => {
  const { McpConnection } = await load('mcp.ts');
  const { Logins } = await load('chapters/21-authorization/login.ts');
  const { TokenStore } = await load('chapters/21-authorization/tokens.ts');
  const folder = mkdtempSync(join(tmpdir(), 'exercise-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

  let promise: object = {}; // what the metadata says about `iss`
  let codes: unknown[] = []; // that came to the token endpoint
  const documents = () => ({
    '/.well-known/oauth-protected-resource/mcp': {
      resource: `${issuer}/mcp`,
      authorization_servers: [issuer],
    },
    '/.well-known/oauth-authorization-server': {
      issuer,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/token`,
      code_challenge_methods_supported: ['S256'],
      ...promise,
    },
    '/token': { access_token: 'an-access-token', token_type: 'Bearer' },
    '/mcp': { jsonrpc: '2.0', id: 1, result: { content: [{ type: 'text', text: '42' }] } },
  });
  const server = createServer(async (request, response) => {
    const path = request.url as keyof ReturnType<typeof documents>;
    const sent = new URLSearchParams(await textOf(request)).get('code');
    if (path === '/token') see('out', { 'POST /token': { code: codes[codes.push(sent) - 1] } });
    const isRefused = path === '/mcp' && !request.headers.authorization;
    response
      .writeHead(isRefused ? 401 : 200, { 'content-type': 'application/json' })
      .end(JSON.stringify(documents()[path]));
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  /** One call of a tool. It takes a login, from which the browser comes back with this answer. */
  let calls = 0;
  const add = async (
    answer: Record<string, string>,
    isPromised?: boolean,
    twice: [string, string][] = [],
  ) => {
    promise = isPromised === undefined ? {} : { [SUPPORTED]: isPromised };
    codes = [];
    see('in', { metadata: { issuer, ...promise } });
    const given = new URLSearchParams([...Object.entries(answer), ...twice]);
    see('in', `from the browser: ${given}`);
    const go = async (_: URL, state: string) => new URL(`${redirectUri}?${given}&state=${state}`);
    const openUserAgent = async () => ({ redirectUri, go, close: () => {} });
    const logins = new Logins({
      store: new TokenStore({ home: join(folder, `${calls++}`) }),
      openUserAgent,
    });
    const config = { type: 'http', url: `${issuer}/mcp`, oauth: { clientId: 'exercise' } };
    const connection = new McpConnection('demo', config, { transports: logins.transports });
    await connection.connect();
    type Came = { text?: string; kind?: string; message?: string };
    const {
      text,
      kind,
      message = '',
    }: Came = await connection.callTool('add', { a: 2, b: 40 }).catch((error: Error) => error);
    return { posted: codes, ...(text === undefined ? { kind, message } : { text }) };
  };
  type Tried = ReturnType<typeof add>;
  const used = (what: string, tried: Tried) =>
    expect(
      what,
      'the code is posted to /token, and the call gives 42',
      tried,
      ({ text, posted }) => text === '42' && posted.join() === code,
    );
  const unused = (what: string, tried: Tried, { says = '', hides = 'not solved yet' } = {}) => {
    const words = says
      ? `, with the words "${says}"`
      : hides.includes('solved')
        ? ''
        : `, without the words "${hides}"`;
    return expect(
      what,
      `nothing is posted to /token, and the call fails with an error of kind "auth"${words}`,
      tried,
      ({ posted, kind, message }) =>
        posted.length === 0 &&
        kind === 'auth' &&
        message.includes(says) &&
        !message.includes(hides),
    );
  };

  const iss = 'https://stranger.example';
  const words = { error: 'server_error', error_description: 'call 555-0142' };
  await used('the answer names whom we asked', add({ code, iss: issuer }, true));
  await used('so does one that nobody has promised', add({ code, iss: issuer }));
  await used('without a promise an answer may name nobody', add({ code }));
  await used('"supported: false" is no promise', add({ code }, false));
  await unused('with the promise, an answer that names nobody is not used', add({ code }, true));
  await unused('an answer that names somebody else is not used', add({ code, iss }, true));
  await unused('whether it was promised or not', add({ code, iss }));
  await unused('with a slash more it is somebody else', add({ code, iss: `${issuer}/` }, true));
  await unused('with capital letters, too', add({ code, iss: issuer.toUpperCase() }, true));
  await unused('and an empty name is not the same as none', add({ code, iss: '' }));
  await unused(
    'a refusal by whom we asked reaches the user',
    add({ error: 'access_denied', error_description: 'Ada said no', iss: issuer }, true),
    { says: 'Ada said no' },
  );
  await unused('with its code', add({ error: 'access_denied' }), { says: 'access_denied' });
  await unused(
    'a refusal by somebody else does not: who knows what it wants the user to do',
    add({ ...words, iss }, true),
    { hides: '555-0142' },
  );
  await unused('nor one by nobody, if names were promised', add(words, true), {
    hides: '555-0142',
  });
  await unused('an empty error is an error, too', add({ code, error: '', iss: issuer }, true));
  await unused(
    'an answer that says two names is not used, although the first is right',
    add({ code, iss: issuer }, true, [['iss', iss]]),
  );
  await unused('nor one with two codes', add({ code, iss: issuer }, true, [['code', 'another']]));
  await unused('an answer with neither code nor error is a failure', add({ iss: issuer }, true));
  await unused('and so is an empty code', add({ code: '', iss: issuer }, true));
};
