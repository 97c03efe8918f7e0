// Real peers on every wire, at pinned versions: server-everything in its three modes, and servers built with both
// versions of the official SDK. Each is installed into .cache/ when it is not there.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { httpTransports } from '../../chapters/20-streamable-http/http.ts';
import { inBothEras } from '../../chapters/22-no-handshake/era.ts';
import { stayAlive } from '../../chapters/26-staying-alive/alive.ts';
import { living, type Extension, type Json, type McpConnection } from '../../mcp.ts';
import { cleanUp, later, open, rejection, until } from '../help/basics.ts';
import { installed, root } from '../help/installed.ts';
import { server } from '../help/third-party.ts';

afterEach(cleanUp);

const V1 = installed('@modelcontextprotocol/sdk@1.32.2');
const V2 = installed('@modelcontextprotocol/server@2.4.0', '@modelcontextprotocol/node@2.1.2');
const peer = (name: string) => join(root, 'test', 'real', 'peers', name);

/** Connects with everything that we have. `changes` counts what the server tells of its tools. */
async function joins(config: Json) {
  const seen = { changes: 0 };
  const user: Extension = () => ({
    capabilities: { elicitation: {} },
    handlers: { 'elicitation/create': () => ({ action: 'accept', content: { ok: true } }) },
    changed: (what) => void (what === 'tools' && seen.changes++),
  });
  const opened = await open(config, {
    extensions: [stayAlive(), user, ...inBothEras()],
    transports: { http: httpTransports.http },
  });
  return { ...opened, seen };
}

/** Starts a program that listens, and resolves with what it says when it does. */
async function start(args: string[], isReady: RegExp, env: NodeJS.ProcessEnv = {}) {
  const child = spawn(process.execPath, args, { env: { ...process.env, ...env } });
  const kill = async () => {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  };
  later(kill);
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text) => (said += text));
  child.on('exit', () => (said += 'It is gone.'));
  await until(() => isReady.test(said) || said.includes('It is gone.'));
  assert.match(said, isReady);
  return { said: isReady.exec(said)![0], kill };
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0);
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  await new Promise((done) => probe.close(done));
  return port;
}

/** Afterwards nothing of ours is left: no process, and no session on their side. */
async function leaves(connection: McpConnection): Promise<void> {
  await connection.close();
  assert.equal(living.size, 0);
  const { url } = connection.config;
  if (typeof url !== 'string' || !url.endsWith('/mcp')) return;
  const sessions = await fetch(new URL('/sessions', url));
  if (sessions.ok) assert.equal(await sessions.text(), '0');
}

// ─── server-everything ────────────────────────────────────────────────────────────────────────────────────────

const PATHS = { stdio: '', streamableHttp: '/mcp', sse: '/sse' };

/** Its configuration, and how to kill it; over HTTP another one is then started in its place. */
async function everything(mode: keyof typeof PATHS) {
  const { command, args } = server('everything', mode);
  if (mode === 'stdio')
    return {
      config: { command, args },
      replace: async () => process.kill([...living][0]!.pid!, 'SIGKILL'),
    };
  const PORT = `${await freePort()}`;
  const begin = () => start(args, /(listening|running) on port/, { PORT });
  const first = await begin();
  const config = { type: 'http', url: `http://127.0.0.1:${PORT}${PATHS[mode]}` };
  return { config, replace: () => first.kill().then(begin) };
}

for (const mode of ['stdio', 'streamableHttp', 'sse'] as const) {
  test(`server-everything over ${mode}`, async () => {
    const { connection, warnings } = await joins((await everything(mode)).config);
    const { protocolVersion, because } = connection.server!;
    assert.deepEqual(
      [protocolVersion, because],
      ['2025-11-25', 'it does not know server/discover'],
    );
    const names = (await connection.listTools()).map(({ name }) => name);
    assert.ok(names.includes('echo') && names.includes('trigger-elicitation-request'), `${names}`);
    assert.equal(
      (await connection.callTool('echo', { message: 'grüße 🦊' })).text,
      'Echo: grüße 🦊',
    );
    const progress: unknown[] = [];
    const call = { duration: 0.4, steps: 4 };
    await connection.callTool('trigger-long-running-operation', call, {
      onProgress: (told) => progress.push(told.progress),
    });
    assert.deepEqual(progress, [1, 2, 3, 4]);
    assert.ok((await connection.callTool('echo', {})).isError);
    const weather = await connection.callTool('get-structured-content', { location: 'Chicago' });
    assert.equal(typeof (weather.structuredContent as Json).temperature, 'number');
    assert.match(
      (await connection.callTool('trigger-elicitation-request')).text,
      /"action": "accept"|User provided/,
    );
    const many = await Promise.all(
      Array.from({ length: 20 }, (_, n) => connection.callTool('get-sum', { a: n, b: 1 })),
    );
    many.forEach(({ text }, n) => assert.match(text, new RegExp(`\\b${n + 1}\\b`)));
    const slow = { duration: 60, steps: 2 };
    const error = await rejection(
      connection.callTool('trigger-long-running-operation', slow, { timeoutMs: 300 }),
    );
    assert.equal(error.kind, 'timeout');
    assert.deepEqual(warnings, []);
    await leaves(connection);
  });

  test(`server-everything over ${mode}: another one in its place, and the talk goes on`, async () => {
    const { config, replace } = await everything(mode);
    const { connection, seen, wire } = await joins(config);
    const slow = rejection(
      connection.callTool('trigger-long-running-operation', { duration: 60, steps: 2 }),
    );
    await connection.callTool('get-sum', { a: 1, b: 1 }); // so the other has arrived
    await replace();
    assert.match((await slow).message, /Whether tools\/call was carried out is not known/);
    assert.match((await connection.callTool('get-sum', { a: 20, b: 22 })).text, /42/);
    assert.equal(
      wire.filter(([direction, { method }]) => direction === 'out' && method === 'initialize')
        .length,
      2,
    );
    assert.ok(seen.changes > 0, 'its tools will be listed anew');
    await leaves(connection);
  });
}

// ─── Servers built with the SDK ───────────────────────────────────────────────────────────────────────────────

type Expected = {
  era: '2025-11-25' | '2026-07-28';
  streams?: boolean;
  asks?: boolean;
  tells?: boolean;
};

/** What every one of them must do, and what only some can. */
async function behaves(config: Json, { era, streams, asks, tells }: Expected): Promise<void> {
  const { connection, seen, wire, warnings } = await joins(config);
  const { protocolVersion, because, serverInfo, instructions } = connection.server!;
  const why =
    era === '2026-07-28' ? 'it answered server/discover' : 'it does not know server/discover';
  assert.deepEqual([protocolVersion, because], [era, why]);
  assert.match(`${serverInfo?.name} ${instructions}`, /^peer-v([12]) Built with v\1\.$/);
  const names = async () => (await connection.listTools()).map(({ name }) => name);
  assert.deepEqual((await names()).sort(), ['add', 'confirm', 'fail', 'grow', 'work']);

  assert.equal((await connection.callTool('add', { a: 2, b: 40 })).text, '42');
  const failed = await connection.callTool('fail');
  assert.deepEqual([failed.isError, failed.text], [true, 'no luck']);
  assert.ok(
    (await connection.callTool('add', { a: 'two' }).catch(() => ({ isError: true }))).isError,
  );
  assert.ok((await connection.callTool('none').catch(() => ({ isError: true }))).isError);
  const progress: unknown[] = [];
  const worked = await connection.callTool(
    'work',
    { times: 3 },
    { onProgress: (told) => progress.push(told.progress) },
  );
  assert.deepEqual([worked.text, progress], ['worked', streams ? [1, 2, 3] : []]);
  if (asks)
    assert.deepEqual(JSON.parse((await connection.callTool('confirm')).text), {
      action: 'accept',
      content: { ok: true },
    });
  if (tells) {
    if (era === '2026-07-28')
      await until(() => wire.some(([, { method }]) => `${method}`.endsWith('/acknowledged')));
    await connection.callTool('grow');
    await until(() => seen.changes > 0);
    assert.ok((await names()).includes('new'));
    assert.equal((await connection.callTool('new')).text, 'I am new');
  }
  assert.deepEqual(warnings, []);
  await leaves(connection);
}

const ADDRESS = /http:\S+(?=\n)/;
const overHttp = async (file: string, folder: string, flags: string) => ({
  type: 'http',
  url: (await start([peer(file), folder, ...flags.split(' ')], ADDRESS)).said,
});

// Without a session its answers to a question, and its notices, reach nobody: every request has a server of its own.
const v1: Record<string, Expected> = {
  '': { era: '2025-11-25', streams: true },
  '--json': { era: '2025-11-25' },
  '--sessions': { era: '2025-11-25', streams: true, asks: true, tells: true },
  '--sessions --json': { era: '2025-11-25', tells: true },
};
for (const [flags, expected] of Object.entries(v1))
  test(`SDK v1 over HTTP ${flags}`, async () =>
    behaves(await overHttp('sdk-v1.mjs', V1, flags), expected));

const v2: Record<string, Expected> = {
  '': { era: '2026-07-28', streams: true, asks: true, tells: true },
  '--sse': { era: '2026-07-28', streams: true, asks: true, tells: true },
  '--json': { era: '2026-07-28', asks: true, tells: true },
  '--modern': { era: '2026-07-28', streams: true, asks: true, tells: true },
  '--sessions': { era: '2026-07-28', streams: true, asks: true, tells: true },
  '--legacy': { era: '2025-11-25', streams: true },
  '--legacy --json': { era: '2025-11-25' },
  '--legacy --sessions': { era: '2025-11-25', streams: true, asks: true, tells: true },
  '--legacy --sessions --json': { era: '2025-11-25', tells: true },
};
for (const [flags, expected] of Object.entries(v2))
  test(`SDK v2 over HTTP ${flags}`, async () =>
    behaves(await overHttp('sdk-v2.mjs', V2, flags), expected));

for (const flags of ['', '--modern'])
  test(`SDK v2 over stdio ${flags}`, async () => {
    const config = {
      command: process.execPath,
      args: [peer('sdk-v2.mjs'), V2, '--stdio', ...flags.split(' ')],
    };
    await behaves(config, { era: '2026-07-28', streams: true, asks: true, tells: true });
  });
