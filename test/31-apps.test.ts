// Chapter 31: what an app says, and what it gets for it. Its page is played, message by message; browsers are in
// test/real/apps.test.ts.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { afterEach, test } from 'node:test';
import { Trace } from '../chapters/19-the-terminal/more/trace-file.ts';
import { Masker } from '../chapters/17-the-gate/safe-text.ts';
import { plainHost } from '../chapters/19-the-terminal/host.ts';
import { appOf, mayApp } from '../chapters/31-apps/app.ts';
import { compose } from '../chapters/composition.ts';
import type { McpConnection, Json } from '../mcp.ts';
import { cleanUp, folder, later, open, until } from './help/basics.ts';
import { appsWith, fixture, played } from './help/apps.ts';

afterEach(cleanUp);

const hostile = (called = '/dev/null', declared: Json = {}) => [
  fixture('hostile-app.mjs'),
  called,
  JSON.stringify(declared),
];
const UI = 'io.modelcontextprotocol/ui';
const methodsOf = (messages: any[]) => messages.map(({ method }) => method).filter(Boolean);
const questions = ({ person }: Awaited<ReturnType<typeof appsWith>>) =>
  person.questions.map(({ text }) => text);

// ─── Declared, and found ───────────────────────────────────────────────────────────────────────

test('the extension is declared in both eras, and a server that shows its app only then shows it', async () => {
  const value = { [UI]: { mimeTypes: ['text/html;profile=mcp-app'] } };
  const before = await appsWith(hostile());
  const hello = before.wire.find(([, { method }]) => method === 'initialize')[1];
  assert.deepEqual(hello.params.capabilities.extensions, value);
  const since = await appsWith([fixture('modern-app.mjs')]);
  const [, list] = since.wire.findLast(
    ([dir, { method }]) => dir === 'out' && method === 'tools/list',
  );
  const declared = list.params._meta['io.modelcontextprotocol/clientCapabilities'];
  assert.deepEqual(declared.extensions, value);
  const app = await since.open('show');
  assert.match((await app.load()).html, /modern/, 'a blob of base64 is as good as text');
});

test('with nobody there it is not declared, and a tool answers with its text', async () => {
  const { extensions } = compose(plainHost({ warn: () => {} }));
  const opened = await open({ command: process.execPath, args: hostile() }, { extensions });
  assert.equal((opened.connection.capabilities.extensions as Json)[UI], undefined);
  const { text } = await opened.connection.callTool('show', {});
  assert.equal(text, 'show was called');
});

test('"apps": false in an entry: not for this server; another word is a mistake', async () => {
  const { connection, apps, call } = await appsWith(hostile(), { config: { apps: false } });
  assert.equal(asExtensions(connection)[UI], undefined);
  await call('show');
  assert.equal(apps.list.length, 0);
  await assert.rejects(
    appsWith(hostile(), { config: { apps: 'yes' } }),
    /"apps" is not false or "open"/,
  );
});
const asExtensions = ({ capabilities }: McpConnection) => (capabilities.extensions ?? {}) as Json;

test('"apps": "open": then, and only then, a browser is opened unasked', async () => {
  const usual = await appsWith(hostile());
  await usual.open('show');
  await until(() => usual.person.said.length > 0);
  assert.match(
    usual.person.said[0]!,
    /^ {2}app: http:\/\/127\.0\.0\.1:\d+\/[\da-f]{20}\/#[\da-f]{32} \(show of server; \/apps 1 opens it\)$/,
  );
  assert.equal(usual.person.opened.length, 0);
  const wanted = await appsWith(hostile(), { config: { apps: 'open' } });
  await wanted.open('show');
  await until(() => wanted.person.opened.length > 0);
});

test('an app is where the tool says, now or as the drafts had it; who may call it, too', () => {
  assert.equal(appOf({ _meta: { ui: { resourceUri: 'ui://a/b' } } }), 'ui://a/b');
  assert.equal(appOf({ _meta: { 'ui/resourceUri': 'ui://a/b' } }), 'ui://a/b');
  for (const uri of ['https://a.example', 7, undefined, 'file:///etc/passwd'])
    assert.equal(appOf({ _meta: { ui: { resourceUri: uri } } }), undefined);
  assert.equal(mayApp({}), true);
  assert.equal(mayApp({ _meta: { ui: { visibility: ['model'] } } }), false);
  assert.equal(mayApp({ _meta: { ui: { visibility: ['app'] } } }), true);
});

// ─── The dialect ───────────────────────────────────────────────────────────────────────────────

test('handshake, input once, result with all that it has; before it is ready nothing but answers', async () => {
  const t = await appsWith(hostile());
  const app = await t.open('show', { n: 3 });
  const page = await played(app);
  const early = page.request('ping');
  assert.deepEqual((await early).result, {});
  const answer = await page.request('ui/initialize', {
    appCapabilities: {},
    protocolVersion: '2026-01-26',
  });
  assert.deepEqual(Object.keys(answer.result).sort(), [
    'hostCapabilities',
    'hostContext',
    'hostInfo',
    'protocolVersion',
  ]);
  assert.equal(answer.result.hostContext.theme, 'dark');
  app.rearrange({ theme: 'light', width: 800, height: 600 });
  assert.deepEqual(methodsOf(page.heard()), [], 'not before it is ready');
  page.say({ method: 'ui/notifications/initialized' });
  page.say({ method: 'ui/notifications/initialized' });
  await until(() => methodsOf(page.heard()).length === 2);
  const [input, result] = page.heard().slice(-2);
  assert.deepEqual(input.params, { arguments: { n: 3 } });
  assert.deepEqual(result.params, {
    content: [{ type: 'text', text: 'show was called' }],
    structuredContent: { n: 3 },
    _meta: { of: 'show' },
  });
});

test('trap 12: what was called is sent, and no default of the schema', async () => {
  const t = await appsWith(hostile());
  const page = await played(await t.open('show'));
  await page.shakeHands();
  await until(() => methodsOf(page.heard()).includes('ui/notifications/tool-input'));
  assert.deepEqual(t.messages('out', 'ui/notifications/tool-input')[0].params, { arguments: {} });
});

test('trap 1: its ids and ours overlap, and mean different things', async () => {
  const t = await appsWith(hostile());
  const app = await t.open('show');
  const page = await played(app);
  await page.shakeHands(); // id 0
  const closing = app.close('over');
  await until(() => t.messages('out', 'ui/resource-teardown').length > 0);
  const [{ id }] = t.messages('out', 'ui/resource-teardown');
  page.say({ id, method: 'ping' }); // a request of its own, with the same id
  await until(() => page.heard().some((message) => message.id === id && message.result));
  assert.equal(page.orders.at(-1).closed, undefined, 'that was no answer to ours');
  page.say({ id, result: {} });
  await closing;
  assert.deepEqual(page.orders.at(-1), { closed: 'over' });
});

test('an app that does not answer the farewell is gone all the same', async () => {
  const t = await appsWith(hostile());
  const app = await t.open('show');
  const page = await played(app);
  await page.shakeHands();
  await app.close('over');
  assert.deepEqual(page.orders.at(-1), { closed: 'over' });
  assert.deepEqual(t.apps.list, []);
});

test('trap 4: a page that is loaded again has an app that begins anew, with input and result once more', async () => {
  const t = await appsWith(hostile(), { answers: [() => new Promise(() => {})] });
  const app = await t.open('show', { n: 1 });
  const first = await played(app);
  await first.shakeHands();
  first.say({ id: 7, method: 'tools/call', params: { name: 'act', arguments: {} } });
  await until(() => t.person.questions.length === 1);
  const second = await played(app);
  assert.equal(t.person.questions[0]!.signal.aborted, true, 'who asked is not there any more');
  await second.shakeHands();
  await until(() => methodsOf(second.heard()).length === 2);
  assert.deepEqual(methodsOf(second.heard()), [
    'ui/notifications/tool-input',
    'ui/notifications/tool-result',
  ]);
});

test('a call that fails is told as cancelled, with the reason', async () => {
  const t = await appsWith(hostile());
  const failed = assert.rejects(t.call('show', { n: 1 }));
  await t.connection.close();
  await failed;
  assert.equal(t.apps.list.length, 0, 'and with its server the app goes');
  const alive = await appsWith(hostile());
  const app = await alive.open('show');
  app.cancel('stopped by the user');
  const page = await played(app);
  await page.shakeHands();
  await until(() => methodsOf(page.heard()).length === 2);
  const { method, params } = page.heard().at(-1);
  assert.deepEqual(
    [method, params],
    ['ui/notifications/tool-cancelled', { reason: 'stopped by the user' }],
  );
});

test('heights are followed and bounded, widths are the page’s own; a mode only if the app listed it', async () => {
  const t = await appsWith(hostile());
  const page = await played(await t.open('show'));
  await page.shakeHands(['inline', 'fullscreen']);
  for (const height of [300, 1e9, -5, 'tall', undefined])
    page.say({ method: 'ui/notifications/size-changed', params: { width: 9999, height } });
  await until(() => page.orders.some(({ height }) => height === 4000));
  assert.deepEqual(
    page.orders.flatMap(({ height }) => height ?? []),
    [300, 4000],
  );
  assert.deepEqual((await page.request('ui/request-display-mode', { mode: 'pip' })).result, {
    mode: 'inline',
  });
  assert.deepEqual((await page.request('ui/request-display-mode', { mode: 'fullscreen' })).result, {
    mode: 'fullscreen',
  });
  const changed = t.messages('out', 'ui/notifications/host-context-changed').at(-1).params;
  assert.deepEqual(changed, {
    displayMode: 'fullscreen',
    containerDimensions: { width: 800, height: 600 },
  });
  const shy = await played(await t.open('show'));
  await shy.shakeHands(['inline']);
  assert.deepEqual((await shy.request('ui/request-display-mode', { mode: 'fullscreen' })).result, {
    mode: 'inline',
  });
});

test('trap 15: of its surroundings it is told what has changed, and nothing else', async () => {
  const t = await appsWith(hostile());
  const app = await t.open('show');
  const page = await played(app);
  await page.shakeHands();
  const told = () =>
    t.messages('out', 'ui/notifications/host-context-changed').map(({ params }) => params);
  await until(() => methodsOf(page.heard()).length === 2);
  app.rearrange({ theme: 'dark', width: 800, height: 600 });
  assert.deepEqual(told(), []);
  app.rearrange({ theme: 'light', width: 800, height: 600 });
  assert.deepEqual(told(), [{ theme: 'light' }]);
});

test('K14: what a host does not offer is not found', async () => {
  const t = await appsWith(hostile());
  const page = await played(await t.open('show'));
  await page.shakeHands();
  for (const method of [
    'sampling/createMessage',
    'elicitation/create',
    'prompts/list',
    'ui/download-file',
    'ui/anything',
    'roots/list',
  ])
    assert.equal((await page.request(method, {})).error.code, -32601, method);
});

// ─── Its calls ─────────────────────────────────────────────────────────────────────────────────

test('K12: tools for models, others’ tools, what a rule denies, bad arguments: the server never sees them', async () => {
  const called = `${folder()}/called`;
  const t = await appsWith(hostile(called), { deny: ['mcp__server__act'] });
  const page = await played(await t.open('show'));
  await page.shakeHands();
  const codeOf = async (name: unknown, args?: unknown) => {
    const { error } = await page.request('tools/call', { name, arguments: args } as Json);
    return error.code;
  };
  assert.equal(await codeOf('secret', {}), -32602);
  assert.equal(await codeOf('mcp__other__act', {}), -32602);
  assert.equal(await codeOf('__proto__', {}), -32602);
  assert.equal(await codeOf({ name: 'act' }, {}), -32602);
  assert.equal(await codeOf('poll', { n: 'soon' }), -32602);
  assert.equal(await codeOf('act', {}), -32000);
  assert.equal(readFileSync(called, 'utf8'), 'show {}\n');
  assert.deepEqual(questions(t), []);
  const { result } = await page.request('tools/list');
  assert.deepEqual(
    result.tools.map(({ name }: Json) => name),
    ['show', 'act', 'poll'],
  );
});

test('a tool that the user has switched off is off for apps, too', async () => {
  const t = await appsWith(hostile());
  const page = await played(await t.open('show'));
  await page.shakeHands();
  t.trust.setDisabled(true, 'server', 'act');
  assert.equal(
    (await page.request('tools/call', { name: 'act', arguments: {} })).error.code,
    -32602,
  );
});

test('a call is asked about with the app’s name; "while this app is open" ends with it; a no is not asked for ever', async () => {
  const t = await appsWith(hostile(), { answers: ['w', 'n', 'n', 'n', 'y'] });
  const page = await played(await t.open('show'));
  await page.shakeHands();
  const act = (n: number, from = page) =>
    from.request('tools/call', { name: 'act', arguments: { n } });
  assert.deepEqual((await act(1)).result._meta, { of: 'act' }, 'the whole result');
  assert.match(
    questions(t)[0]!,
    /^The app "show" of the MCP server "server" wants to call the tool "act" of the MCP server "server":\n {2}n: 1\nAllow it\? \[y\]es \/ \[n\]o \/ \[w\]hile this app is open \/ or say why not$/,
  );
  assert.ok((await act(2)).result);
  assert.equal(questions(t).length, 1);
  const poll = () => page.request('tools/call', { name: 'poll', arguments: {} });
  for (let n = 0; n < 3; n++) assert.match((await poll()).error.message, /The user said no/);
  assert.match((await poll()).error.message, /no to poll 3 times/);
  assert.equal(questions(t).length, 4);
  const other = await played(await t.open('show'));
  await other.shakeHands();
  assert.ok((await act(3, other)).result);
  assert.equal(questions(t).length, 5, 'what was allowed to one app is not allowed to the next');
});

test('finding 6: the call of an app opens no second app', async () => {
  const t = await appsWith(hostile(), { answers: ['y'] });
  const page = await played(await t.open('show'));
  await page.shakeHands();
  assert.ok((await page.request('tools/call', { name: 'show', arguments: {} })).result);
  assert.equal(t.apps.list.length, 1);
});

test('finding 4: the long poll of an app does not hold up the call of the model', async () => {
  const t = await appsWith(hostile(), { answers: ['y'] });
  const page = await played(await t.open('show'));
  await page.shakeHands();
  const poll = page.request('tools/call', { name: 'poll', arguments: { n: 4000 } });
  const isSent = () => t.wire.some(([dir, { params }]) => dir === 'out' && params?.name === 'poll');
  await until(isSent);
  await t.call('secret');
  const isAnswered = t.wire.some(
    ([dir, { result }]) => dir === 'in' && result?._meta?.of === 'poll',
  );
  assert.equal(isAnswered, false, 'the model has waited for the app');
  await poll;
});

test('while a person thinks it hears of progress, so that its library does not give up; cancelled, the question goes', async () => {
  let isShown = false;
  const t = await appsWith(hostile(), {
    answers: [() => ((isShown = true), new Promise(() => {}))],
    progressMs: 20,
  });
  const page = await played(await t.open('show'));
  await page.shakeHands();
  const params = { name: 'act', arguments: {}, _meta: { progressToken: 'mine' } };
  page.say({ id: 9, method: 'tools/call', params });
  await until(() => isShown);
  const progress = () => t.messages('out', 'notifications/progress').map(({ params }) => params);
  await until(() => progress().length > 1);
  assert.deepEqual(progress()[0], { progressToken: 'mine', progress: 1, message: 'not done yet' });
  page.say({ method: 'notifications/cancelled', params: { requestId: 9 } });
  await until(() => t.person.questions[0]!.signal.aborted, 'the question to be withdrawn');
});

test('resources are those of its own server; one that has died is told as −32000', async () => {
  const t = await appsWith(hostile());
  const page = await played(await t.open('show'));
  await page.shakeHands();
  const read = () => page.request('resources/read', { uri: 'any://thing' });
  assert.equal((await read()).result.contents[0].text, 'another resource');
  t.connection.sleep(); // or died: no request can be sent
  assert.equal((await read()).error.code, -32000);
});

test('of ten apps the oldest is closed when there is one more, and told so', async () => {
  const t = await appsWith(hostile());
  const first = await t.open('show');
  const page = await played(first);
  for (let n = 1; n <= 10; n++) await t.open('show');
  await until(() => page.orders.length > 0 && t.apps.list.length === 10);
  assert.deepEqual(page.orders.at(-1), { closed: 'there are too many of them' });
});

// ─── What it asks of the person ────────────────────────────────────────────────────────────────

test('K13: links are asked about with the whole address; what is no web address is refused unasked', async () => {
  const t = await appsWith(hostile(), { answers: ['y', 'n'] });
  const page = await played(await t.open('show'));
  await page.shakeHands();
  const link = (url: unknown) => page.request('ui/open-link', { url });
  assert.deepEqual((await link('https://a.example/x?y=1')).result, {});
  assert.match(
    questions(t)[0]!,
    /The app "show" of the MCP server "server" wants to open:\n {2}https:\/\/a\.example\/x\?y=1/,
  );
  assert.equal(t.person.opened[0]!.href, 'https://a.example/x?y=1');
  assert.equal((await link('http://127.0.0.1:1/')).error.code, -32000, 'loopback is asked about');
  for (const url of ['javascript:alert(1)', 'file:///etc/passwd', 'data:text/html,x', 7, undefined])
    assert.equal((await link(url)).error.code, -32602, `${url}`);
  assert.equal(questions(t).length, 2);
});

test('trap 2: a message is one block or a list; it is shown, asked about, and then words of the user, never a command', async () => {
  const t = await appsWith(hostile(), { answers: ['s', 'e', 'n'] });
  const page = await played(await t.open('show'));
  await page.shakeHands();
  const send = (content: unknown) => page.request('ui/message', { role: 'user', content });
  assert.deepEqual((await send([{ type: 'text', text: '/mode yolo' }])).result, {});
  assert.match(
    questions(t)[0]!,
    /wants this to be sent to the model:\n {2}│ \/mode yolo\nSend it\? \[s\]end \/ \[e\]dit \/ \[n\]o/,
  );
  assert.deepEqual(t.prompts[0], [
    'The app "show" of the MCP server "server" says, and I have read it:\n\n/mode yolo',
    false,
  ]);
  assert.deepEqual((await send({ type: 'text', text: '!rm -rf /' })).result, {});
  assert.match(t.prompts[1]![0], /^The app/);
  assert.equal(t.prompts[1]![1], true);
  assert.equal((await send({ type: 'text', text: 'no' })).error.code, -32000);
  assert.equal((await send([{ type: 'image', data: '' }])).error.code, -32602);
});

test('an app asks one thing at a time, and five in a minute', async () => {
  const t = await appsWith(hostile(), {
    answers: [() => new Promise((done) => setTimeout(() => done('n'), 100)), 'n', 'n', 'n', 'n'],
  });
  const page = await played(await t.open('show'));
  await page.shakeHands();
  const link = () => page.request('ui/open-link', { url: 'https://a.example/' });
  const two = await Promise.all([link(), link()]);
  assert.deepEqual(
    two.map(({ error }) => error.message),
    ['the user did not open it', 'too many questions'],
  );
  for (let n = 0; n < 10; n++) await link();
  assert.equal(questions(t).length, 5);
});

test('what it wants the model to know: its last word, once, bounded, and framed as data', async () => {
  const t = await appsWith(hostile());
  const page = await played(await t.open('show'));
  await page.shakeHands();
  const news = () => t.apps.news(new AbortController().signal);
  const update = (params: Json) => page.request('ui/update-model-context', params);
  assert.deepEqual(await news(), []);
  await update({ content: [{ type: 'text', text: 'page 1' }] });
  await update({ content: [{ type: 'text', text: 'page 2 ```' }], structuredContent: { page: 2 } });
  assert.deepEqual(await news(), [
    'The app "show" of the MCP server "server" says, as data:\n````\npage 2 ```\n{"page":2}\n````',
  ]);
  assert.deepEqual(await news(), []);
  await update({ content: [{ type: 'text', text: 'x'.repeat(50_000) }] });
  assert.ok((await news())[0]!.length < 20_200);
});

// ─── Sizes, and the trace ──────────────────────────────────────────────────────────────────────

test('trap 11: a page of megabytes is in the trace by its length and hash', async () => {
  const file = `${folder()}/trace`;
  const trace = new Trace({ warn: () => {} } as never, new Masker(), file);
  const contents = [
    { uri: 'ui://s/a', mimeType: 'text/html;profile=mcp-app', text: 'x'.repeat(5_000_000) },
  ];
  trace.wire('in', { jsonrpc: '2.0', id: 1, result: { contents } }, 's');
  trace.wire(
    'in',
    { jsonrpc: '2.0', id: 2, result: { contents: [{ uri: 'a:b', text: 'as it is' }] } },
    's',
  );
  const [, first, second] = readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const [about] = first.msg.result.contents;
  assert.equal(about.length, 5_000_000);
  assert.match(about.hash, /^sha256:/);
  assert.equal(about.text, undefined);
  assert.equal(second.msg.result.contents[0].text, 'as it is');
});

test('no app: another type, two contents, none, more than 16 million characters', async () => {
  const t = await appsWith(hostile());
  const app = await t.open('show');
  const { request } = t.connection;
  for (const contents of [
    [],
    [{ mimeType: 'text/html', text: '' }],
    [{}, {}],
    undefined,
    'x',
    [null],
  ]) {
    t.connection.request = async () => ({ contents });
    await assert.rejects(
      Object.assign(Object.create(app), { loading: undefined }).load(),
      /is no app/,
    );
  }
  const text = 'x'.repeat(16 * 2 ** 20 + 1);
  t.connection.request = async () => ({
    contents: [{ mimeType: 'text/html;profile=mcp-app', text }],
  });
  await assert.rejects(
    Object.assign(Object.create(app), { loading: undefined }).load(),
    /has 16777217 char/,
  );
  t.connection.request = request;
});

test('trap 6: the port is ours at ::1, too', async () => {
  const t = await appsWith(hostile());
  const url = await t.apps.addressOf(await t.open('show'));
  const taken = createServer();
  const error = await new Promise<NodeJS.ErrnoException>((done) => {
    taken
      .once('error', done)
      .listen(Number(url.port), '::1', () => done({ code: 'none' } as never));
  });
  later(() => taken.close());
  assert.match(`${error.code}`, /EADDRINUSE|EADDRNOTAVAIL|EAFNOSUPPORT/);
});
