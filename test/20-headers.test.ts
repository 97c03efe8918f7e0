// Chapter 20: addresses and headers of the configuration, and the headers of the later era.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import {
  encode,
  mirrorArguments,
  mirroredHeaders,
  mirrorsOf,
  VERSION_KEY,
} from '../chapters/20-streamable-http/mirrored-headers.ts';
import { checkedAddress } from '../chapters/20-streamable-http/streamable.ts';
import { call, cleanUp, plugged, rejection } from './help/basics.ts';
import { answer, json, LATER, openLater, openTo, peer, serve, text } from './help/http-servers.ts';

afterEach(cleanUp);

// ─── Configuration ────────────────────────────────────────────────────────────────────────────────────────────

test('an address or headers that cannot be right are refused, and the error names the server but no value', () => {
  const bad: [object, RegExp][] = [
    [{}, /"url"/],
    [{ url: 5 }, /"url"/],
    [{ url: 'mcp.example' }, /"url"/],
    [{ url: '/mcp' }, /"url"/],
    [{ url: 'ftp://h/' }, /"url"/],
    [{ url: 'file:///etc/passwd' }, /"url"/],
    [{ url: 'javascript:alert(1)' }, /"url"/],
    [{ url: 'https://u:hidden@h/' }, /password/],
    [{ url: 'https://u@h/' }, /password/],
  ];
  for (const headers of [
    [],
    'hidden',
    null,
    { a: 5 },
    { a: null },
    { a: ['hidden'] },
    { a: 'hidden\r\nx: y' },
    { a: 'hidden\n' },
    { 'a b': 'x' },
    { 'a\r\nb': 'x' },
    { '': 'x' },
    { a: 'hidden \u{1f30d}' },
    { a: 'x\0' },
  ])
    bad.push([{ url: 'https://h/', headers }, /"headers"/]);
  for (const [config, message] of bad)
    assert.throws(
      () => checkedAddress('demo', { ...config }),
      (error: any) => {
        assert.equal(error.kind, 'config', JSON.stringify(config));
        assert.match(error.message, /MCP server "demo"/);
        assert.match(error.message, message);
        assert.doesNotMatch(error.message, /hidden/);
        return true;
      },
      JSON.stringify(config),
    );
});

test('G10: a secret goes over http:// to this machine only', () => {
  const headers = { Authorization: 'Bearer hidden' };
  for (const url of [
    'http://mcp.example/',
    'http://127.0.0.1.example/',
    'http://localhost.example/',
    'http://10.0.0.1/',
    'http://0.0.0.0/',
    'http://[::2]/',
    'http://127.example.com/',
  ])
    assert.throws(
      () => checkedAddress('demo', { url, headers }),
      (error: any) =>
        error.kind === 'config' && /https/.test(error.message) && !/hidden/.test(error.message),
      url,
    );
  for (const url of [
    'https://mcp.example/',
    'http://localhost:1/',
    'http://127.0.0.1/',
    'http://127.1/',
    'http://[::1]:8080/',
    'http://LOCALHOST/',
  ])
    assert.deepEqual(
      checkedAddress('demo', { url, headers }).headers,
      { authorization: 'Bearer hidden' },
      url,
    );
  checkedAddress('demo', { url: 'http://mcp.example/', headers: { 'x-team': 'blue' } });
});

test('G19: whatever its name says is a secret goes over http:// to this machine only, also in an address', () => {
  const names = [
    'X-Api-Key',
    'x-auth',
    'Cookie',
    'X-Access-Token',
    'Private-Token',
    'X-Secret',
    'X-Password',
    'Proxy-Authorization',
    'apikey',
    'X-Amz-Security-Token',
    'X-Session',
    'X-Signature',
    'Credentials',
  ];
  const inHeaders = names.map((name) => ({
    url: 'http://h.example/',
    headers: { [name]: 'hidden' },
  }));
  const inShape = ['Bearer hidden-and-long', 'sk-hidden-0123456789abcdef'].map((value) => ({
    url: 'http://h.example/',
    headers: { 'x-team': value },
  }));
  const inAddress = [
    '?token=hidden',
    '?a=1&api_key=hidden',
    '?x-amz-signature=hidden',
    '?sig=hidden',
    '/sk-hidden-0123456789abcdef/mcp',
    '?a=Bearer%20hidden-and-long',
    '?a=ghp_hidden0123456789abcdef',
  ];
  const all = [
    ...inHeaders,
    ...inShape,
    ...inAddress.map((rest) => ({ url: `http://h.example/mcp${rest}` })),
  ];
  for (const config of all) {
    const refused = (error: any) =>
      error.kind === 'config' &&
      /http:\/\/.*https:\/\//s.test(error.message) &&
      !/hidden/.test(error.message);
    assert.throws(() => checkedAddress('demo', config), refused, JSON.stringify(config));
    const { url, headers } = { headers: {}, ...config };
    for (const safe of [url.replace('http:', 'https:'), url.replace('h.example', '127.0.0.1')])
      assert.equal(checkedAddress('demo', { url: safe, headers }).url.href, safe);
  }
  for (const rest of ['mcp', 'mcp?team=blue', 'monkey/tokens'])
    checkedAddress('demo', { url: `http://h.example/${rest}` });
});

test('G21: other words for a secret, and other ways to write it into an address', () => {
  const far = 'http://h.example/mcp';
  const names = ['X-Pwd', 'X-Pass', 'X-Passphrase', 'passcode', 'X-Bearer', 'X-PAT'];
  const values = ['Basic aGlkZGVuOnZhbHVl', 'Token hidden-and-long', 'ApiKey hidden-and-long'];
  const addresses = [
    '?pwd=hidden',
    '?pass=hidden',
    ';jsessionid=hidden',
    '?a=1;token=hidden',
    '/%73k-hidden-0123456789abcdef',
    ';a=1;%74oken=hidden/mcp',
  ];
  const all = [
    ...names.map((name) => ({ url: far, headers: { [name]: 'hidden' } })),
    ...values.map((value) => ({ url: far, headers: { 'x-team': value } })),
    ...addresses.map((rest) => ({ url: far + rest })),
  ];
  for (const config of all) {
    const refused = (error: any) => error.kind === 'config' && /use https/.test(error.message);
    assert.throws(() => checkedAddress('demo', config), refused, JSON.stringify(config));
  }
  const plain = [
    '',
    '/tokens/mcp',
    ';v=1',
    '?compass=north',
    '?bypass=1',
    '/100%',
    '?path=a&spat=1',
  ];
  for (const rest of plain)
    checkedAddress('demo', { url: far + rest, headers: { 'x-team': 'Basic' } });
});

// ─── Headers of the later era ─────────────────────────────────────────────────────────────────────────────────

test('since 2026 headers repeat the revision, the method and the name; there is no session, GET or DELETE', async () => {
  const { url, log } = await serve(({ body }, response) =>
    json(response, answer(body, {}), 200, { 'mcp-session-id': 'ignored' }),
  );
  const { connection } = await openLater(url);
  await connection.request('tools/list');
  await connection.request('tools/call', { name: 'add' });
  await connection.request('prompts/get', { name: 'Übung' });
  await connection.request('resources/read', { uri: 'file:///a b', name: 'no' });
  await connection.close();
  const seen = log.map(({ verb, headers: h }) => [
    verb,
    h['mcp-protocol-version'],
    h['mcp-method'],
    h['mcp-name'],
    h['mcp-session-id'],
  ]);
  assert.deepEqual(seen, [
    ['POST', LATER, 'tools/list', undefined, undefined],
    ['POST', LATER, 'tools/call', 'add', undefined],
    ['POST', LATER, 'prompts/get', '=?base64?w5xidW5n?=', undefined],
    ['POST', LATER, 'resources/read', 'file:///a b', undefined],
  ]);
  assert.ok(log.every(({ body }) => body.params._meta[VERSION_KEY] === LATER));
});

test('trap 16, G13: values that do not fit a header are encoded, and only those', async () => {
  const plain = ['', 'a', 'a b', '~!', '=?base64?', 'a=?base64?x?=', '42', 'true', '=?utf-8?x?='];
  for (const value of plain) assert.equal(encode(value), value);
  const odd = [
    'ü',
    ' a',
    'a ',
    ' ',
    '\ta',
    'a\tb',
    'a\nb',
    'a\r\nx: y',
    '\0',
    '\x7f',
    '🌍',
    '=?base64?eA==?=',
    '=?base64??=',
    '=?BASE64?eA==?=',
  ];
  for (const value of odd) {
    assert.match(encode(value), /^=\?base64\?[A-Za-z0-9+/]+=*\?=$/, JSON.stringify(value));
    assert.equal(Buffer.from(encode(value).slice(9, -2), 'base64').toString(), value);
  }
  assert.deepEqual(
    [encode(0), encode(-5), encode(true), encode(false)],
    ['0', '-5', 'true', 'false'],
  );
  const { url, log } = await serve(({ body }, response) => json(response, answer(body, {})));
  const { connection } = await openLater(url);
  for (const name of [...plain, ...odd]) await connection.request('tools/call', { name });
  assert.deepEqual(
    log.map(({ headers }) => headers['mcp-name']),
    [...plain, ...odd].map(encode),
  );
  assert.ok(log.every(({ headers }) => headers.x === undefined));
});

const schema = (properties: object) => ({ type: 'object', properties });
const wants = (header: unknown, type: unknown = 'string') => ({ type, 'x-mcp-header': header });

test('arguments that a tool wants to see in headers are mirrored, also those inside of others', () => {
  const mirrors = mirrorsOf(
    schema({
      branch: wants('Branch'),
      days: wants('Days', 'integer'),
      now: wants('Now', 'boolean'),
      plain: { type: 'string' },
      who: schema({
        card: schema({ kind: wants('Card-Kind') }),
        'x-mcp-header': { type: 'string' },
      }),
      properties: wants('P'),
      default: wants('D'),
    }),
  );
  const mirrored = (args: unknown) => mirroredHeaders(mirrors, args);
  assert.deepEqual(
    mirrored({
      branch: 'Zürich',
      days: 14,
      now: false,
      plain: 'x',
      who: { card: { kind: ' a' } },
      properties: 'p',
      default: 'd',
    }),
    {
      'mcp-param-branch': '=?base64?WsO8cmljaA==?=',
      'mcp-param-days': '14',
      'mcp-param-now': 'false',
      'mcp-param-card-kind': '=?base64?IGE=?=',
      'mcp-param-p': 'p',
      'mcp-param-d': 'd',
    },
  );
  assert.deepEqual(mirrored({ branch: '', days: 0 }), {
    'mcp-param-branch': '',
    'mcp-param-days': '0',
  });
  for (const args of [
    undefined,
    null,
    'x',
    [],
    {},
    { branch: null, days: undefined, who: null },
    { who: { card: 'x' } },
    { branch: {}, days: [1] },
  ])
    assert.deepEqual(mirrored(args), {}, JSON.stringify(args));
  assert.deepEqual(
    mirroredHeaders(mirrorsOf(schema({ constructor: wants('C'), toString: wants('T') })), {}),
    {},
    'not what objects inherit',
  );
  assert.deepEqual(
    mirrorsOf({
      ...schema({
        a: { type: 'string', default: { 'x-mcp-header': 'x' }, enum: [{ 'x-mcp-header': '' }] },
      }),
    }),
    [],
    'data is no schema',
  );
  for (const odd of [undefined, null, 5, [], true, { properties: [] }])
    assert.deepEqual(mirrorsOf(odd), []);
});

const badSchemas: Record<string, object> = {
  'an empty name': schema({ a: wants('') }),
  'a space': schema({ a: wants('a b') }),
  'a colon': schema({ a: wants('a:b') }),
  'a line feed': schema({ a: wants('a\r\nx: y') }),
  'beyond ASCII': schema({ a: wants('Zürich') }),
  'no string': schema({ a: wants(5) }),
  null: schema({ a: wants(null) }),
  'a number': schema({ a: wants('A', 'number') }),
  'an object': schema({ a: wants('A', 'object') }),
  'an array': schema({ a: wants('A', 'array') }),
  'no type': schema({ a: { 'x-mcp-header': 'A' } }),
  'many types': schema({ a: wants('A', ['string', 'null']) }),
  'the same twice': schema({ a: wants('Same'), b: schema({ c: wants('sAME') }) }),
  'at a root that is a string': wants('A'),
  'at the root': { ...schema({}), 'x-mcp-header': 'A' },
  'in items': schema({ a: { type: 'array', items: wants('A') } }),
  'in items of properties': schema({ a: { type: 'array', items: schema({ b: wants('A') }) } }),
  'in anyOf': schema({ a: { anyOf: [wants('A')] } }),
  'in oneOf at the root': { type: 'object', oneOf: [schema({ a: wants('A') })] },
  'in $defs': { ...schema({ a: { $ref: '#/$defs/a' } }), $defs: { a: wants('A') } },
  'in additionalProperties': { ...schema({}), additionalProperties: wants('A') },
  'in if and then': { ...schema({}), if: schema({}), then: schema({ a: wants('A') }) },
};

test('trap 15: a tool with a bad annotation is left out with a warning that names it, and the others stay', async () => {
  for (const [what, inputSchema] of Object.entries(badSchemas))
    assert.throws(() => mirrorsOf(inputSchema), Error, what);
  const good = { name: 'good', inputSchema: schema({ a: wants('A') }) };
  const bad = Object.entries(badSchemas).map(([what, inputSchema]) => ({
    name: `bad: ${what}`,
    inputSchema,
  }));
  const { url, asked } = await serve(({ body }, response) =>
    json(
      response,
      answer(
        body,
        body.method === 'tools/list' ? { tools: [...bad, good, { name: 'plain' }] } : text('ok'),
      ),
    ),
  );
  const { connection, warnings } = await openLater(url, { extensions: [mirrorArguments] });
  assert.deepEqual(
    (await connection.listTools()).map(({ name }) => name),
    ['good', 'plain'],
  );
  for (const { name } of bad)
    assert.ok(
      warnings.some((warning) => warning.includes(`"${name}"`)),
      name,
    );
  await connection.callTool('good', { a: 'x' });
  await connection.callTool('plain', { a: 'x' });
  assert.deepEqual(
    asked('tools/call').map(({ headers }) => headers['mcp-param-a']),
    ['x', undefined],
  );
});

test('nothing is mirrored, and no tool left out, in the earlier era', async () => {
  const tools = [
    { name: 'bad', inputSchema: schema({ a: wants('') }) },
    { name: 'good', inputSchema: schema({ a: wants('A') }) },
  ];
  const { url, asked } = await peer({ 'tools/list': () => ({ tools }) });
  const { connection, warnings } = await openTo(url, { extensions: [mirrorArguments] });
  assert.equal((await connection.listTools()).length, 2);
  await connection.callTool('good', { a: 'x' });
  assert.ok(
    !Object.keys(asked('tools/call')[0]!.headers).some(
      (name) => name.startsWith('mcp-param') || name === 'mcp-method',
    ),
  );
  assert.deepEqual(warnings, []);
});

test('a mismatch of headers makes us look at the tools again, and call once more, and not a third time', async () => {
  let header = 'Old';
  const { url, asked, log } = await serve(({ body, headers }, response) => {
    if (body.method === 'tools/list')
      return json(
        response,
        answer(body, { tools: [{ name: 'x', inputSchema: schema({ a: wants(header) }) }] }),
      );
    if (headers['mcp-param-new'] === 'v') return json(response, answer(body, text('matched')));
    const code = body.params.arguments.a === 'other' ? -32602 : -32020;
    return json(response, { jsonrpc: '2.0', id: body.id, error: { code, message: 'no' } }, 400);
  });
  const changes: unknown[] = [];
  const { connection } = await openLater(
    url,
    plugged({ changed: () => void changes.push(1) }, { extensions: [mirrorArguments] }),
  );
  await connection.listTools();
  header = 'New';
  assert.equal(await call(connection, 'x', { a: 'v' }), 'matched');
  assert.deepEqual(
    log.map(({ body }) => body.method),
    ['tools/list', 'tools/call', 'tools/list', 'tools/call'],
  );
  assert.deepEqual(changes, [1], 'whoever keeps the list must know');
  header = 'Other';
  assert.equal((await rejection(connection.callTool('x', { a: 'w' }))).code, -32020);
  assert.equal(asked('tools/call').length, 4);
  assert.equal((await rejection(connection.callTool('x', { a: 'other' }))).code, -32602);
  assert.equal(asked('tools/call').length, 5, 'another refusal is no reason to call again');
});
