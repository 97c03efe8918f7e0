// Judges exercise 21: is the answer that a browser brings back used if it comes from whom we asked, and only then? A script is
// the MCP server and its authorization server in one, and the browser, too. "Out" is what is posted to its token endpoint.

import { randomInt } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import type { Judge } from '../book.ts';

const SUPPORTED = 'authorization_response_iss_parameter_supported';
const code = ` a code+${randomInt(10 ** 9)}/%41= `; // must arrive as it is
const redirectUri = 'http://127.0.0.1:7777/callback';

export const judge: Judge = async ({ load, see, expect }) => {
  const { McpConnection } = await load('mcp.ts');
  const { Logins } = await load('chapters/21-authorization/login.ts');
  const { TokenStore } = await load('chapters/21-authorization/tokens.ts');
  const folder = mkdtempSync(join(tmpdir(), 'exercise-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

  const tenant = `t${randomInt(10 ** 6)}`;
  let promise: object = {}; // what the metadata says about `iss`
  let codes: unknown[] = []; // that came to the token endpoint
  const documents = () => ({
    '/.well-known/oauth-protected-resource/mcp': {
      resource: `${origin}/mcp`,
      authorization_servers: [issuer],
    },
    [`/.well-known/oauth-authorization-server/${tenant}`]: {
      issuer,
      authorization_endpoint: `${origin}/authorize`,
      token_endpoint: `${origin}/token`,
      code_challenge_methods_supported: ['S256'],
      ...promise,
    },
    '/token': { access_token: 'an-access-token', token_type: 'Bearer' },
    '/mcp': { jsonrpc: '2.0', id: 1, result: { content: [{ type: 'text', text: '42' }] } },
  });
  const server = createServer(async (request, response) => {
    const path = `${request.url}`;
    const sent = new URLSearchParams(await textOf(request)).get('code');
    if (path === '/token') see('out', { 'POST /token': { code: codes[codes.push(sent) - 1] } });
    const isRefused = path === '/mcp' && !request.headers.authorization;
    response
      .writeHead(isRefused ? 401 : 200, { 'content-type': 'application/json' })
      .end(JSON.stringify((documents() as Record<string, unknown>)[path]));
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const issuer = `${origin}/${tenant}`; // one of several at that address

  /** One call of a tool. It takes a login, from which the browser comes back with this answer. */
  let calls = 0;
  const add = async (
    answer: Record<string, string>,
    isPromised?: unknown,
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
    const config = { type: 'http', url: `${origin}/mcp`, oauth: { clientId: 'exercise' } };
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
  await used('so does one that was not promised', add({ code, iss: issuer }));
  await used('without a promise an answer may come without a name', add({ code }));
  for (const word of [false, 'true', 1])
    await used(`"supported: ${JSON.stringify(word)}" is no promise`, add({ code }, word));
  await unused('with the promise, an answer without a name is not used', add({ code }, true));
  await unused('an answer that names another is not used', add({ code, iss }, true));
  await unused('whether it was promised or not', add({ code, iss }));
  await unused('whatever is promised, a name that is there counts', add({ code, iss }, false));
  const others = {
    'with a slash more': `${issuer}/`,
    'with capital letters': issuer.toUpperCase(),
    'with a letter more': `${issuer}5`,
    'with a letter less': issuer.slice(0, -1),
    'with a blank at its end': `${issuer} `,
    'with another address before it': `${iss}/${issuer}`,
    'with a letter as %74': issuer.replace('/t', '/%74'),
    'only the host of the issuer': origin,
    'the address of the MCP server': `${origin}/mcp`,
  };
  for (const [how, other] of Object.entries(others))
    await unused(`${how} it is another`, add({ code, iss: other }, true));
  await unused('an empty name is there, and is another', add({ code, iss: '' }));

  await unused(
    'an answer that says two names is not used, although the first is right',
    add({ code, iss: issuer }, true, [['iss', iss]]),
  );
  await unused(
    'an answer that says the same name twice is not used',
    add({ code, iss: issuer }, true, [['iss', issuer]]),
  );
  await unused(
    'an answer with two codes is not used',
    add({ code, iss: issuer }, true, [['code', 'another']]),
  );
  await unused(
    'a refusal that has two names hides its words',
    add({ ...words, iss: issuer }, true, [['iss', iss]]),
    { hides: '555-0142' },
  );
  await unused(
    'an answer with two descriptions hides both',
    add({ ...words, iss: issuer }, true, [['error_description', 'call 555-0142, too']]),
    { hides: '555-0142' },
  );
  await unused(
    'an answer that says twice that it is an error hides its words',
    add({ ...words, iss: issuer }, true, [['error', 'access_denied']]),
    { hides: '555-0142' },
  );
  await unused(
    'an answer with two states is not used',
    add({ code, iss: issuer, state: 'a' }, true, [['state', 'b']]),
  );

  await unused(
    'a refusal by whom we asked reaches the user',
    add({ error: 'access_denied', error_description: 'Ada said no', iss: issuer }, true),
    { says: 'Ada said no' },
  );
  await unused(
    'so does its code',
    add({ error: 'access_denied', error_description: 'Ada said no', iss: issuer }, true),
    { says: 'access_denied' },
  );
  await unused('also of one without a description', add({ error: 'temporarily_unavailable' }), {
    says: 'temporarily_unavailable',
  });
  await unused(
    'a description that is missing is not told as null',
    add({ error: 'access_denied', iss: issuer }),
    { hides: 'null' },
  );
  await unused(
    'a refusal by another hides its words: who knows what it wants the user to do',
    add({ ...words, iss }, true),
    { hides: '555-0142' },
  );
  await unused(
    'a refusal without a name hides its words, if names were promised',
    add(words, true),
    { hides: '555-0142' },
  );
  for (const error of ['access_denied', 'server_error', `e${randomInt(10 ** 6)}`])
    await unused(
      `an answer with an error (${error.replace(/\d+/, '…')}) is a refusal, although it has a code`,
      add({ code, error, iss: issuer }, true),
      { says: error },
    );
  await unused(
    'and the code is not told',
    add({ code, error: 'access_denied', iss: issuer }, true),
    { hides: code.trim() },
  );
  await unused('an empty error is an error, too', add({ code, error: '', iss: issuer }, true));
  await unused('an answer with neither code nor error is a failure', add({ iss: issuer }, true));
  await unused('and so is an empty code', add({ code: '', iss: issuer }, true));
};
