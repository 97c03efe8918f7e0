// Chapter 27: what is fetched, printed or found beside files: connectors, a remotely managed list, headers of a helper,
// bearers, editors, servers that a program hands in. And an attacker's view of each.

import assert from 'node:assert/strict';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { dirname, join } from 'node:path';
import { afterEach, test } from 'node:test';
import { cautions } from '../chapters/17-the-gate/cautions.ts';
import { Trust } from '../chapters/17-the-gate/trust.ts';
import { Masker } from '../chapters/17-the-gate/safe-text.ts';
import { plainHost } from '../chapters/19-the-terminal/host.ts';
import { builtIn } from '../chapters/25-other-pipes/in-process.ts';
import { bearerTransport, headersFrom } from '../chapters/27-scopes/headers-helper.ts';
import { outputOf } from '../chapters/27-scopes/helper.ts';
import { editorsFor, editorEntry, ideTransports } from '../chapters/27-scopes/ide.ts';
import { Scopes, type ScopesOptions } from '../chapters/27-scopes/scopes.ts';
import { compose } from '../chapters/composition.ts';
import { McpConnection, McpManager, needsApproval, type Json } from '../mcp.ts';
import { cleanUp, folder, later, onLoopback, rejection } from './help/basics.ts';
import { answerRequests, INITIALIZED, startWebSocketServer } from './help/websocket-server.ts';

afterEach(cleanUp);

const node = process.execPath;
const uid = process.getuid?.() ?? 0;

function stage(files: Record<string, unknown>, options: ScopesOptions = {}) {
  const base = realpathSync(folder());
  const [home, cwd] = [join(base, 'home'), join(base, 'app')];
  for (const path of [home, cwd]) mkdirSync(path);
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(base, name)), { recursive: true });
    writeFileSync(
      join(base, name),
      typeof content === 'string' ? content : JSON.stringify(content),
      { mode: 0o600 },
    );
  }
  const scopes = new Scopes({
    home,
    cwd,
    managed: { folder: join(base, 'etc'), owner: uid },
    ...options,
  });
  const load = async () => {
    const told: string[] = [];
    await scopes.prepare();
    const entries = scopes.load({}, (problem) => told.push(problem));
    return { entries, told: told.join('\n') };
  };
  return { base, home, cwd, scopes, load };
}

/** A server of tools over HTTP that wants a header; and the requests that it got. */
async function remote(isWelcome: (request: IncomingMessage) => boolean, status = 401) {
  const requests: IncomingMessage[] = [];
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    requests.push(request);
    let text = '';
    request
      .on('data', (chunk) => (text += chunk))
      .on('end', (): unknown => {
        if (request.method !== 'POST') return response.writeHead(405).end();
        if (!isWelcome(request)) return response.writeHead(status).end();
        const { id, method } = JSON.parse(text);
        if (id === undefined) return response.writeHead(202).end();
        const result =
          method === 'initialize'
            ? { protocolVersion: '2025-11-25', capabilities: { tools: {} } }
            : { tools: [] };
        response.setHeader('content-type', 'application/json');
        return response.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
      });
  });
  return { requests, url: `${await onLoopback(server)}/mcp` };
}

async function answering(body: string, status = 200): Promise<string> {
  const server = createServer((_, response) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(body),
  );
  return `${await onLoopback(server)}/list`;
}

/** A server of tools over a WebSocket, as an editor has one. */
async function socketServer() {
  const server = await startWebSocketServer();
  answerRequests(server, { initialize: INITIALIZED, 'tools/list': { tools: [] } });
  return server;
}

/** A command that prints this. */
const prints = (text: string) => [node, '-e', `process.stdout.write(${JSON.stringify(text)})`];
const SETTINGS = 'home/.claude/settings.json';

// ─── Connectors and a list from elsewhere ────────────────────────────────────────────────────────

test("connectors: a command or an address of the user's settings yields them; they are approved, and rank lowest", async () => {
  const list = { mcpServers: { mail: { type: 'http', url: 'https://mail.example/mcp' } } };
  const byCommand = await stage({
    [SETTINGS]: { mcpConnectors: { command: prints(JSON.stringify(list)) } },
  }).load();
  assert.equal(byCommand.told, '');
  const mail = byCommand.entries.get('mail')!;
  assert.deepEqual(
    [mail.scope, needsApproval(mail), mail.file],
    ['connector', true, 'the command in "mcpConnectors"'],
  );
  const url = await answering(
    JSON.stringify({ servers: [{ name: 'claude.ai Slack', url: 'https://slack.example/mcp' }] }),
  );
  const byAddress = await stage({
    [SETTINGS]: {
      mcpConnectors: { url },
      mcpServers: { mine: { url: 'https://slack.example/mcp' } },
    },
  }).load();
  assert.match(byAddress.entries.get('claude.ai Slack')!.blocked!, /the same as "mine"/);
});

test("A33: connectors, an attacker's view: no command from a list, none of a project's, no clear text, bounds, nothing shown", async () => {
  const told = async (mcpConnectors: unknown, where = SETTINGS) => {
    const { entries, told: problems } = await stage({ [where]: { mcpConnectors } }).load();
    assert.equal(entries.size, 0);
    return problems;
  };
  assert.match(
    await told({ command: prints('{"mcpServers":{"evil":{"command":"sh"}}}') }),
    /"evil" would run a command here/,
  );
  assert.match(
    await told({
      command: prints('{"mcpServers":{"evil":{"url":"https://x/","headersHelper":"sh"}}}'),
    }),
    /would run a command here/,
  );
  assert.equal(
    await told(
      { command: prints('{"mcpServers":{"a":{"url":"https://x/"}}}') },
      'app/.claude/settings.json',
    ),
    '',
  );
  assert.match(
    await told({ url: 'http://lists.example/' }),
    /http:\/\/, where others can change the list/,
  );
  assert.match(await told({ url: 'file:///etc/passwd' }), /neither a command nor an address/);
  assert.match(await told({ url: await answering('{}', 500) }), /answered HTTP 500/);
  assert.match(
    await told({ url: await answering('x'.repeat(2 ** 20 + 1)) }),
    /more than 1048576 bytes/,
  );
  assert.match(
    await told({ command: [node, '-e', 'process.stdout.write("x".repeat(3e6))'] }),
    /printed more than/,
  );
  const failed = await told({
    command: [
      node,
      '-e',
      'console.log("tok-1234567890"); console.error("tok-1234567890"); process.exit(3)',
    ],
  });
  assert.match(failed, /ended with exit code 3/);
  assert.doesNotMatch(failed + (await told({ command: prints('tok-1234567890') })), /tok-1/);
});

test('a remotely managed list belongs to the managed scope; if it cannot be fetched, nothing more runs than without it', async () => {
  const url = await answering(
    JSON.stringify({ mcpServers: { far: { type: 'http', url: 'https://far.example/' } } }),
  );
  const given = { [SETTINGS]: { mcpServers: { mine: { command: 'x' } } } };
  const good = await stage({
    ...given,
    'etc/managed-mcp.json': { mcpServers: { near: { command: 'y' } }, serversUrl: url },
  }).load();
  assert.deepEqual(
    [...good.entries.values()].map(({ name, scope, blocked }) => [
      name,
      scope,
      blocked !== undefined,
    ]),
    [
      ['mine', 'user', true],
      ['near', 'managed', false],
      ['far', 'managed', false],
    ],
  );
  const bad = await stage({
    ...given,
    'etc/managed-mcp.json': { mcpServers: {}, serversUrl: await answering('', 404) },
  }).load();
  assert.match(bad.told, /"serversUrl" in .*managed-mcp\.json is not used: .*HTTP 404/);
  assert.deepEqual(
    [...bad.entries.values()].map(({ name, blocked }) => [name, blocked !== undefined]),
    [['mine', true]],
  );
  const open = stage({ 'etc/managed-mcp.json': { mcpServers: {}, serversUrl: url } });
  chmodSync(join(open.base, 'etc/managed-mcp.json'), 0o666);
  assert.equal((await open.load()).entries.size, 0); // not root's word: nothing is fetched
});

// ─── Headers ─────────────────────────────────────────────────────────────────────────────────────

const connectionTo = (config: Json) => {
  const { transports, extensions } = compose(plainHost({ warn: () => {} }));
  const connection = new McpConnection('demo', config, {
    transports,
    extensions,
    onWarning: () => {},
  });
  later(() => connection.close());
  return connection;
};

test('headersHelper: a command prints the headers, for every connection and once more after 401; it knows whom they are for', async () => {
  const dir = folder();
  const log = join(dir, 'log');
  const script = `const fs = require('fs');
    fs.appendFileSync(${JSON.stringify(log)}, process.env.CLAUDE_CODE_MCP_SERVER_NAME + ' ' + process.env.CLAUDE_CODE_MCP_SERVER_URL + '\\n');
    const n = fs.readFileSync(${JSON.stringify(log)}, 'utf8').trim().split('\\n').length;
    process.stdout.write(JSON.stringify({ Authorization: 'Bearer word-of-the-helper-' + n }));`;
  const { url, requests } = await remote(
    ({ headers }) => headers.authorization === 'Bearer word-of-the-helper-2',
  );
  const connection = connectionTo({ type: 'http', url, headersHelper: [node, '-e', script] });
  await connection.connect();
  await connection.initialize();
  await connection.listTools();
  const { readFileSync } = await import('node:fs');
  assert.equal(readFileSync(log, 'utf8'), `demo ${url}\n`.repeat(2));
  assert.equal(
    requests.filter(({ headers }) => headers.authorization === 'Bearer word-of-the-helper-1')
      .length,
    1,
  );
  assert.equal(new Masker().text('it was word-of-the-helper-2'), 'it was ***');
});

test('headersHelper: refused twice, it is not asked a third time; a line for the shell works as well', async () => {
  const { url, requests } = await remote(() => false, 403);
  const connection = connectionTo({
    type: 'http',
    url,
    headersHelper: `echo '{"X-Key": "k-123456789"}'`,
  });
  await connection.connect();
  assert.equal((await rejection(connection.initialize())).kind, 'auth');
  assert.deepEqual(
    requests.map(({ headers }) => headers['x-key']),
    ['k-123456789', 'k-123456789'],
  );
});

test('headersHelper: for a WebSocket the headers are there before it is opened', async () => {
  const { port, requests } = await socketServer();
  const connection = connectionTo({
    type: 'ws',
    url: `ws://127.0.0.1:${port}/`,
    headersHelper: prints('{"X-Key":"k-1234567"}'),
  });
  await connection.connect();
  await connection.initialize();
  assert.deepEqual(
    requests.map(({ headers }) => headers['x-key']),
    ['k-1234567'],
  );
});

test("A32: headersHelper, an attacker's view: what it prints is in no error, forges no header, goes nowhere in clear text", async () => {
  const failure = async (headersHelper: unknown, url = 'http://127.0.0.1:1/') => {
    const connection = connectionTo({ type: 'http', url, headersHelper });
    try {
      await connection.connect();
      await connection.initialize();
    } catch (error) {
      return (error as Error).message;
    }
    return 'no error';
  };
  assert.match(
    await failure([node, '-e', 'console.log("tok-secret"); process.exit(1)']),
    /gave no headers: it ended with exit code 1$/,
  );
  assert.match(
    await failure(prints('tok-secret')),
    /gave no headers: it printed something that is not JSON$/,
  );
  assert.match(
    await failure(prints('{"a":"x\\r\\nHost: evil"}')),
    /something else than an object of texts$/,
  );
  assert.match(await failure(prints('{}'), 'http://far.example/'), /in clear text/);
  assert.match(await failure({ odd: 1 }), /"headersHelper" is not a command/);
  assert.match(await failure(['no-such-command-at-all']), /gave no headers/);
  assert.throws(() => headersFrom('s', { 'a b': 'x' }));
  assert.throws(() => headersFrom('s', ['x']));
  const caution = cautions({ url: 'https://x/', headersHelper: './get.sh; rm -rf ~' });
  assert.deepEqual(caution, [
    'it runs "./get.sh; rm -rf ~" on this machine, as you, and sends what that prints',
  ]);
  const { entries } = await stage({
    [SETTINGS]: { mcpServers: { a: { url: 'https://x/', headersHelper: './h.sh' } } },
    'app/.mcp.json': { mcpServers: { b: { url: 'https://x/', headersHelper: './h.sh' } } },
  }).load();
  assert.match(`${entries.get('a')!.config.cwd}`, /home$/); // the user's helper is not the clone's
  assert.deepEqual(
    [entries.get('b')!.config.cwd, needsApproval(entries.get('b')!)],
    [undefined, true],
  );
});

test('a command that prints has its time and no more; what it started ends with it', async () => {
  const marker = join(folder(), 'late');
  const slow = [
    node,
    '-e',
    `setTimeout(() => require('fs').writeFileSync(${JSON.stringify(marker)}, ''), 60000)`,
  ];
  assert.match((await rejection(outputOf(slow, { timeoutMs: 50 }))).message, /longer than 0\.05 s/);
  assert.ok(!existsSync(marker));
});

test("claudeai-proxy: a bearer from a command of the user's settings, one repetition after 401, and no third", async () => {
  const { url, requests } = await remote(
    ({ headers }) => headers.authorization === 'Bearer good-token-2',
  );
  let asked = 0;
  const transports = { 'claudeai-proxy': bearerTransport(() => prints(`good-token-${++asked}\n`)) };
  const connection = new McpConnection(
    'mail',
    { type: 'claudeai-proxy', url },
    { transports, onWarning: () => {} },
  );
  later(() => connection.close());
  await connection.connect();
  await connection.initialize();
  assert.equal(asked, 2);
  assert.equal(requests[0]!.headers.authorization, 'Bearer good-token-1');
  const never = new McpConnection(
    'mail',
    { type: 'claudeai-proxy', url },
    {
      transports: { 'claudeai-proxy': bearerTransport(() => prints('bad-token')) },
      onWarning: () => {},
    },
  );
  later(() => never.close());
  await never.connect();
  assert.equal((await rejection(never.initialize())).kind, 'auth');
  assert.equal(
    requests.filter(({ headers }) => headers.authorization === 'Bearer bad-token').length,
    2,
  );
  const unset = new McpConnection(
    'mail',
    { type: 'claudeai-proxy', url },
    { transports: { 'claudeai-proxy': bearerTransport(() => undefined) }, onWarning: () => {} },
  );
  later(() => unset.close());
  await unset.connect();
  assert.match((await rejection(unset.initialize())).message, /"claudeaiProxy": \{"tokenCommand"/);
  const { scopes } = stage({
    [SETTINGS]: { claudeaiProxy: { tokenCommand: ['mine'] } },
    'app/.claude/settings.json': { claudeaiProxy: { tokenCommand: ['theirs'] } },
  });
  assert.deepEqual(scopes.userSetting('claudeaiProxy', 'tokenCommand'), ['mine']);
});

// ─── Editors ─────────────────────────────────────────────────────────────────────────────────────

const lockOf = (more: Json = {}) => ({
  pid: process.pid,
  ideName: 'Code',
  transport: 'ws',
  authToken: 'ide-token-123456',
  ...more,
});

test('an editor is found by its lock file: alive, of this folder, the nearest first', () => {
  const { base, home, cwd, scopes } = stage({});
  const put = (port: number, content: Json) => {
    mkdirSync(join(home, '.claude/ide'), { recursive: true });
    writeFileSync(join(home, `.claude/ide/${port}.lock`), JSON.stringify(content), { mode: 0o600 });
  };
  put(1001, lockOf({ workspaceFolders: [base], ideName: 'far' }));
  put(1002, lockOf({ workspaceFolders: [cwd, '/elsewhere'], ideName: 'near' }));
  put(1003, lockOf({ workspaceFolders: [cwd], pid: 2 ** 30, ideName: 'dead' }));
  put(1004, lockOf({ workspaceFolders: ['/elsewhere'], ideName: 'other' }));
  put(1005, lockOf({ workspaceFolders: [`${cwd}-evil`], ideName: 'sibling' }));
  put(99999, lockOf({ workspaceFolders: [cwd], ideName: 'no port' }));
  writeFileSync(join(home, '.claude/ide/1006.lock'), '{');
  assert.deepEqual(
    scopes.editors().map(({ name, port }) => [name, port]),
    [
      ['near', 1002],
      ['far', 1001],
    ],
  );
  const { config } = editorEntry(scopes.editors()[0]!);
  assert.deepEqual([config.type, config.url], ['ws-ide', 'ws://127.0.0.1:1002/']);
  assert.doesNotMatch(JSON.stringify(config), /ide-token/); // what is in an entry may be shown
  const entries = scopes.load({ isIde: true }, () => {});
  assert.deepEqual(
    [entries.get('ide')?.scope, entries.get('ide')?.blocked],
    ['dynamic', undefined],
  );
});

test("editors, an attacker's view: a lock that is a link, open to others, or of another user is none; the token goes to this machine only", () => {
  const { base, home, cwd } = stage({
    'evil.json': lockOf(),
    'home/.claude/ide/2001.lock': lockOf(),
  });
  const ide = join(home, '.claude/ide');
  symlinkSync(join(base, 'evil.json'), join(ide, '2002.lock'));
  writeFileSync(join(ide, '2003.lock'), JSON.stringify(lockOf({ workspaceFolders: [cwd] })));
  chmodSync(join(ide, '2003.lock'), 0o666);
  assert.deepEqual(editorsFor({ home, cwd, owners: [uid, 0] }), []);
  const open = join(ide, '2004.lock');
  writeFileSync(open, JSON.stringify(lockOf({ workspaceFolders: [cwd] })), { mode: 0o600 });
  assert.equal(editorsFor({ home, cwd, owners: [uid, 0] }).length, 1);
  assert.equal(editorsFor({ home, cwd, owners: [4711] }).length, 0);
  const make = ideTransports([uid, 0])['ws-ide']!;
  assert.throws(
    () => make('ide', { url: 'ws://evil.example/', lock: open }, 1),
    /an editor is on this machine/,
  );
});

test('ws-ide: the token of the lock file goes in its header, and is masked', async () => {
  const { port, requests } = await socketServer();
  const { home, cwd, scopes } = stage({});
  mkdirSync(join(home, '.claude/ide'), { recursive: true });
  writeFileSync(
    join(home, `.claude/ide/${port}.lock`),
    JSON.stringify(lockOf({ workspaceFolders: [cwd] })),
    { mode: 0o600 },
  );
  const entry = editorEntry(scopes.editors()[0]!);
  const manager = new McpManager({
    load: () => new Map([['ide', entry]]),
    transports: ideTransports([uid, 0]),
    onWarning: () => {},
  });
  later(() => manager.disconnectAll());
  await manager.loadAndConnect();
  assert.deepEqual(
    manager.status().map(({ name, state, reason }) => [name, state, reason]),
    [['ide', 'connected', undefined]],
  );
  assert.deepEqual(
    requests.map(({ headers }) => headers['x-claude-code-ide-authorization']),
    ['ide-token-123456'],
  );
  assert.equal(new Masker().text('ide-token-123456'), '***');
});

// ─── Servers of a program ────────────────────────────────────────────────────────────────────────

test("sdk: a server that a program hands in; no file can take its name, and no administrator's file forbids it; notices go both ways", async () => {
  const heard: string[] = [];
  let tell: (method: string) => void = () => {};
  const serve = (transport: any) => {
    void transport.start({
      closed: () => {},
      message: ({ id, method, params }: any) => {
        const answer = (result: Json) => transport.send({ jsonrpc: '2.0', id, result });
        if (method === 'initialize')
          return answer({ protocolVersion: '2025-11-25', capabilities: { tools: {} } });
        if (method === 'tools/list') return answer({ tools: [] });
        if (id === undefined) heard.push(`${method} ${JSON.stringify(params ?? {})}`);
      },
    });
    tell = (method) => void transport.send({ jsonrpc: '2.0', method, params: { path: 'a.ts' } });
  };
  const files = {
    'etc/managed-mcp.json': { mcpServers: {} },
    'app/.mcp.json': { mcpServers: { editor: { command: 'evil' } } },
  };
  const { scopes } = stage(files, { sdk: { editor: serve } });
  const entries = scopes.load({}, () => {});
  assert.deepEqual(
    [entries.get('editor')!.scope, entries.get('editor')!.blocked],
    ['sdk', undefined],
  );
  const told: string[] = [];
  const listener = () => ({
    handlers: { 'notifications/log_event': ({ path }: Json) => void told.push(`${path}`) },
  });
  const manager = new McpManager({
    load: () => entries,
    transports: { sdk: builtIn(serve) },
    extensions: [listener],
  });
  later(() => manager.disconnectAll());
  await manager.loadAndConnect();
  const connection = manager.connection('editor')!;
  await connection.notify('notifications/file_updated', { path: 'b.ts' });
  tell('notifications/log_event');
  await connection.listTools(); // by then both have arrived
  assert.deepEqual(
    [heard.slice(-1), told],
    [['notifications/file_updated {"path":"b.ts"}'], ['a.ts']],
  );
});

test("a plugin's server is approved once, for every folder, as it is; a project's in its own folder only", async () => {
  const home = realpathSync(folder());
  const [one, two] = [realpathSync(folder()), realpathSync(folder())];
  const entry = (scope: string, command = 'x') => ({
    name: 'plugin:p:a',
    config: { command },
    file: 'f',
    scope,
    authority: 'project' as const,
  });
  new Trust({ home, cwd: one }).allow(entry('plugin'));
  assert.equal(await new Trust({ home, cwd: two }).approve(entry('plugin')), true);
  assert.equal(await new Trust({ home, cwd: two }).approve(entry('plugin', 'changed')), false);
  new Trust({ home, cwd: one }).allow({ ...entry('project'), name: 'b' });
  assert.equal(
    await new Trust({ home, cwd: two }).approve({ ...entry('project'), name: 'b' }),
    false,
  );
  assert.equal(new Trust({ home, cwd: two }).revoke('plugin:p:a'), 1);
  assert.equal(await new Trust({ home, cwd: one }).approve(entry('plugin')), false);
});
