// Our server (chapter 29) and pages, in a real Chromium: a page of another port shakes hands with it in both eras, a page
// of a stranger hears nothing, and the app of our own speaks its dialect with a host that is played here, message by message.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Roots } from '../../chapters/16-hands/paths.ts';
import { builtIn } from '../../chapters/25-other-pipes/in-process.ts';
import { shelf } from '../../chapters/29-a-server/bookshelf.ts';
import { codeServer } from '../../chapters/29-a-server/code/code-server.ts';
import { overPipe } from '../../chapters/29-a-server/pipe.ts';
import { serveHttp, type HttpOptions } from '../../chapters/29-a-server/serve-http.ts';
import { asObject, McpConnection, type Json } from '../../mcp.ts';
import { cleanUp, folder, later } from '../help/basics.ts';
import { browse, chromium, type Page } from '../help/chromium.ts';

after(cleanUp);

const skip = chromium ? false : 'there is no Chromium here (apt-get install chromium)';
const options = { skip, timeout: 100_000 }; // only ends a hang
const TOKEN = 'sesame-of-forty-characters';

let opened: Promise<Page> | undefined;
/** With frames in the process of their page, so that a test can look into them. */
async function browser(): Promise<Page> {
  opened ??= browse('--disable-features=IsolateSandboxedIframes');
  return opened;
}

type Serve = (request: IncomingMessage, response: ServerResponse) => void;
async function site(serve: Serve): Promise<number> {
  const server = createServer(serve).listen(0, '127.0.0.1');
  later(() => (server.close(), server.closeAllConnections()));
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

const html = (text: string): Serve => {
  return (_, response) =>
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(text);
};

// ─── Pages that use the server ─────────────────────────────────────────────────────────────────

/** What a page can do with fetch alone. It tells what it could read. */
const CLIENT = `
const META = 'io.modelcontextprotocol/';
async function post(url, message, headers) {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', ...message }),
  });
  const text = await response.text();
  return { status: response.status, headers: Object.fromEntries(response.headers), body: text && JSON.parse(text) };
}
async function withHandshake(url, authorization) {
  const own = authorization ? { authorization } : {};
  const clientInfo = { name: 'page', version: '1' };
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
  const hello = await post(url, { id: 0, method: 'initialize', params }, own);
  if (hello.status !== 200) return hello;
  const session = { ...own, 'mcp-session-id': hello.headers['mcp-session-id'], 'mcp-protocol-version': '2025-11-25' };
  const told = await post(url, { method: 'notifications/initialized' }, session);
  const listen = await fetch(url, { headers: { ...session, accept: 'text/event-stream' } });
  const listed = await post(url, { id: 1, method: 'tools/list' }, session);
  await listen.body.cancel();
  const left = await fetch(url, { method: 'DELETE', headers: session });
  return [hello.body.result.protocolVersion, told.status, listen.status, listed.body.result.tools.length, left.status];
}
async function withoutHandshake(url, authorization) {
  const own = authorization ? { authorization } : {};
  const version = '2026-07-28';
  const _meta = { [META + 'protocolVersion']: version, [META + 'clientCapabilities']: {} };
  const headers = (method, more) => ({ ...own, 'mcp-protocol-version': version, 'mcp-method': method, ...more });
  const found = await post(url, { id: 0, method: 'server/discover', params: { _meta } }, headers('server/discover'));
  if (found.status !== 200) return found;
  const args = { name: 'find', arguments: { pattern: 'ishmael' } };
  const call = await post(url, { id: 1, method: 'tools/call', params: { ...args, _meta } }, headers('tools/call', { 'mcp-name': 'find' }));
  return [found.body.result.supportedVersions[0], call.body.result.content[0].text];
}
const tried = (work) => work.catch((error) => 'nothing: ' + error.name);
`;

async function shelfFor(http: HttpOptions): Promise<string> {
  const card = { name: 'com.example/shelf', description: 'A shelf' };
  const served = await serveHttp(shelf(), { card, ...http });
  later(() => served.close());
  return served.url;
}

async function pageAt(origin: (port: number) => string): Promise<{ page: Page; origin: string }> {
  const at = origin(await site(html('<!doctype html><title>A page</title>here')));
  const page = await browser();
  await page.goTo(at);
  await page.see(/here/);
  await page.evaluate(CLIENT.replaceAll(/^const /gm, 'var '));
  return { page, origin: at };
}

const run = (page: Page, call: string) => page.evaluate(`tried(${call})`);
const both = async (page: Page, url: string, authorization = '') => {
  const words = `(${JSON.stringify(url)}, ${JSON.stringify(authorization)})`;
  return [await run(page, `withHandshake${words}`), await run(page, `withoutHandshake${words}`)];
};
const WORKS = [
  ['2025-11-25', 202, 200, 2, 204],
  ['2026-07-28', 'Moby-Dick'],
];
const NOTHING = ['nothing: TypeError', 'nothing: TypeError'];

test(
  'with the token a page of another port shakes hands in both eras; a wrong token is a refusal that it can read',
  options,
  async () => {
    const { page } = await pageAt((port) => `http://localhost:${port}`);
    const url = await shelfFor({ token: TOKEN });
    assert.deepEqual(await both(page, url, `Bearer ${TOKEN}`), WORKS);
    for (const refused of await both(page, url, 'Bearer wrong')) {
      assert.deepEqual([refused.status, refused.body.error.message], [401, 'A token is needed']);
      assert.equal(refused.headers['www-authenticate'], 'Bearer');
    }
  },
);

test(
  'without a token no page of this machine reads a word, and one that was named works in both eras',
  options,
  async () => {
    const { page, origin } = await pageAt((port) => `http://127.0.0.1:${port}`);
    assert.deepEqual(await both(page, await shelfFor({})), NOTHING);
    assert.deepEqual(await both(page, await shelfFor({ origins: [origin] })), WORKS);
  },
);

test(
  'a stranger reads nothing but the card of a server without a token; and all of it, if it was named',
  options,
  async () => {
    const { page, origin } = await pageAt((port) => `http://stranger.localhost:${port}`);
    const [open, closed] = [await shelfFor({}), await shelfFor({ token: TOKEN })];
    for (const url of [open, closed])
      assert.deepEqual(await both(page, url, `Bearer ${TOKEN}`), NOTHING);
    const card = (url: string) =>
      run(page, `fetch('${url}/server-card').then((answer) => answer.json())`);
    assert.equal((await card(open)).remotes[0].url, open);
    assert.equal(await card(closed), NOTHING[0]);
    const named = await shelfFor({ token: TOKEN, origins: [origin] });
    assert.deepEqual(await both(page, named, `Bearer ${TOKEN}`), WORKS);
  },
);

test(
  'a frame in a sandbox has the origin null, and reads nothing, token or not',
  options,
  async () => {
    const url = await shelfFor({ token: TOKEN });
    const inside = `<script>${CLIENT}
    tried(withHandshake(${JSON.stringify(url)}, 'Bearer ${TOKEN}')).then((told) => parent.postMessage([origin, told], '*'));
  </script>`;
    const outside = `<!doctype html>here<script>
    addEventListener('message', ({ data }) => (window.told = data));
  </script><iframe sandbox="allow-scripts" src="/inside"></iframe>`;
    const port = await site((request, response) =>
      html(request.url === '/inside' ? inside : outside)(request, response),
    );
    const page = await browser();
    await page.goTo(`http://localhost:${port}`);
    await page.see(/here/);
    let told: unknown;
    for (let n = 0; n < 1000 && !told; n++) told = await page.evaluate('window.told');
    assert.deepEqual(told, ['null', NOTHING[0]]);
  },
);

// ─── The app ───────────────────────────────────────────────────────────────────────────────────

const HOST = `<!doctype html><title>A host</title>
<body style="margin:0"><iframe id="app" sandbox="allow-scripts" src="/app" style="width:100vw;height:95vh;border:0"></iframe>
<script>
  const inbox = [];
  addEventListener('message', ({ source, data }) => {
    if (source === document.getElementById('app').contentWindow) inbox.push(data);
  });
  const post = (message) =>
    document.getElementById('app').contentWindow.postMessage({ jsonrpc: '2.0', ...message }, '*');
</script>`;

/** As strict as a host that trusts nobody: nothing but what is in the page. */
const CSP =
  "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; sandbox allow-scripts";

async function hosted(files: Record<string, string>) {
  const at = folder();
  for (const [name, text] of Object.entries(files)) writeFileSync(join(at, name), text);
  const { server } = codeServer({ roots: new Roots(at) });
  const transports = { 'in-process': builtIn(overPipe(server)) };
  const connection = new McpConnection(
    'code',
    { type: 'in-process', name: 'code' },
    { transports },
  );
  later(() => connection.close());
  await connection.connect();
  await connection.initialize();
  const { contents } = await connection.request('resources/read', { uri: 'ui://code/results' });
  const port = await site((request, response) => {
    if (request.url !== '/app') return html(HOST)(request, response);
    response.setHeader('content-security-policy', CSP);
    html((contents as Json[])[0]!.text as string)(request, response);
  });
  const page = await browser();
  page.events.length = 0;
  await page.goTo(`http://localhost:${port}`);
  let taken = 0;
  /** The next message of the app with this method. */
  const next = async (method?: string): Promise<any> => {
    for (let n = 0; n < 2000; n++) {
      const inbox = (await page.evaluate('inbox').catch(() => [])) as Json[];
      for (; taken < (inbox?.length ?? 0); taken++)
        if (inbox[taken]!.method === method) return inbox[taken++];
    }
    return assert.fail(`no ${method}`);
  };
  const post = (message: Json) => page.evaluate(`post(${JSON.stringify(message)})`);
  return { page, connection, next, post };
}

/** What the frame shows: it is another origin, so the page around cannot see it, and we look from outside. */
async function inApp(page: Page, expression: string): Promise<any> {
  const { frameTree } = await page.send('Page.getFrameTree');
  const [child] = frameTree.childFrames;
  const { executionContextId: contextId } = await page.send('Page.createIsolatedWorld', {
    frameId: child.frame.id,
  });
  const { result } = await page.send('Runtime.evaluate', {
    expression,
    contextId,
    returnByValue: true,
  });
  return result.value;
}

const wordsIn = (page: Page) => inApp(page, 'document.body.innerText');

async function shows(page: Page, what: RegExp): Promise<void> {
  let words = '';
  for (let n = 0; n < 2000; n++) {
    words = `${await wordsIn(page)}`;
    if (what.test(words)) return;
  }
  assert.fail(`waited in vain for ${what} in:\n${words}`);
}

test(
  'the app of our own, with a host that is played by hand: from the handshake to its end, each message as the dialect has it',
  options,
  async () => {
    const evil = '<img src=x onerror="document.title=1"><b>';
    const source = ['one', 'two', `three needle ${evil}`, 'four', ''].join('\n');
    const { page, connection, next, post } = await hosted({ 'a.ts': source });
    // The handshake. Its first id is 0, and nothing comes before the answer.
    const hello = await next('ui/initialize');
    assert.equal(hello.id, 0);
    assert.equal(hello.params.protocolVersion, '2026-01-26');
    assert.deepEqual(Object.keys(hello.params).sort(), [
      'appCapabilities',
      'appInfo',
      'protocolVersion',
    ]);
    assert.equal(await page.evaluate('inbox.length'), 1);
    await post({
      id: 0,
      result: {
        protocolVersion: '2026-01-26',
        hostInfo: { name: 'by hand', version: '1' },
        hostCapabilities: { serverTools: {}, updateModelContext: { text: {} } },
        hostContext: { theme: 'dark' },
      },
    });
    await next('ui/notifications/initialized');
    assert.ok((await next('ui/notifications/size-changed')).params.height > 0);
    assert.equal(
      await inApp(page, 'getComputedStyle(document.documentElement).colorScheme'),
      'dark',
    );
    // What was called, and what came of it, from the real server.
    const args = { query: 'needle' };
    await post({ method: 'ui/notifications/tool-input', params: { arguments: args } });
    await shows(page, /Looking for needle/);
    const params = await connection.request('tools/call', { name: 'search_code', arguments: args });
    await post({ method: 'ui/notifications/tool-result', params });
    await shows(page, /1 found/);
    assert.match(await wordsIn(page), /a\.ts:3 three needle <img src=x/);
    // One result is opened: a call of its own server's tool, through the host.
    await inApp(page, 'document.querySelector("summary").click()');
    const call = await next('tools/call');
    assert.deepEqual(call.params, {
      name: 'read_file',
      arguments: { file_path: 'a.ts', offset: 1, limit: 8 },
    });
    // A request of the host with the same id as the app's own means something else.
    await post({ id: call.id, method: 'ping' });
    const pong = await next();
    assert.deepEqual([pong.id, pong.result], [call.id, {}]);
    await post({ id: call.id, result: await connection.request('tools/call', call.params) });
    await shows(page, /one\ntwo/);
    assert.match(
      await inApp(page, 'document.querySelector("mark").innerText'),
      /^three needle <img/,
    );
    assert.equal(
      await inApp(page, 'document.querySelectorAll("img, b").length'),
      0,
      'text, not HTML',
    );
    const context = await next('ui/update-model-context');
    assert.match(context.params.content[0].text, /has opened a\.ts, line 3/);
    await post({ id: context.id, result: {} });
    // Refusals of the host are shown; what it does not know, it says; at the end it answers.
    await post({ method: 'ui/notifications/host-context-changed', params: { theme: 'light' } });
    await post({ id: 7, method: 'ui/unheard-of' });
    const unknown = await next();
    assert.deepEqual([unknown.id, unknown.error.code], [7, -32601]);
    assert.equal(
      await inApp(page, 'getComputedStyle(document.documentElement).colorScheme'),
      'light',
    );
    await post({ id: 8, method: 'ui/resource-teardown', params: { reason: 'closed' } });
    assert.deepEqual((await next()).result, {});
    const trouble = page.happened('Runtime.exceptionThrown', 'Log.entryAdded', 'Page.windowOpen');
    assert.deepEqual(trouble, []);
  },
);

test(
  'the app of our own: a refused call, a failed search, a cancelled one, and search by meaning',
  options,
  async () => {
    const { page, connection, next, post } = await hosted({
      'session.ts':
        'export function closeIdleSessions(all) {\n  for (const one of all) one.close();\n}\n',
    });
    const hello = await next('ui/initialize');
    await post({ id: hello.id, result: { hostCapabilities: {}, hostContext: {} } });
    await next('ui/notifications/initialized');
    const failed = { content: [{ type: 'text', text: 'query is empty' }], isError: true };
    await post({ method: 'ui/notifications/tool-result', params: failed });
    await shows(page, /query is empty/);
    await post({
      method: 'ui/notifications/tool-cancelled',
      params: { reason: 'the user said no' },
    });
    await shows(page, /Cancelled: the user said no/);
    const args = { query: 'close sessions' };
    const found = await connection.request('tools/call', {
      name: 'search_by_embedding',
      arguments: args,
    });
    await post({ method: 'ui/notifications/tool-result', params: found });
    await shows(page, /session\.ts:1/);
    assert.match(await wordsIn(page), /closeIdleSessions/);
    await inApp(page, 'document.querySelector("summary").click()');
    const call = await next('tools/call');
    assert.equal(asObject(call.params.arguments).offset, 1);
    await post({ id: call.id, error: { code: -32000, message: 'The user said no.' } });
    await shows(page, /The user said no\./);
    // The host offered nothing for the model, so nothing of it is asked.
    assert.equal(
      await page.evaluate('inbox.some(({ method }) => method === "ui/update-model-context")'),
      false,
    );
  },
);
