// Two processes of our server (chapter 29) behind a real nginx, which gives each request to the other one. They share a
// secret, and so they can answer each other's questions. Debian: apt-get install nginx-light.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { httpTransports } from '../../chapters/20-streamable-http/http.ts';
import { inBothEras } from '../../chapters/22-no-handshake/era.ts';
import { secretsFrom } from '../../chapters/29-a-server/secrets.ts';
import { McpConnection, type Extension } from '../../mcp.ts';
import { cleanUp, folder, later, rejection, root, until } from '../help/basics.ts';
import { poster, secretFile, SINCE, startNginx } from '../help/nginx.ts';

afterEach(cleanUp);

/** A process of the shelf; resolves with its port. */
async function startShelf(secretFile: string): Promise<number> {
  const program = join(root, 'chapters', '29-a-server', 'bookshelf.ts');
  const child = spawn(
    process.execPath,
    ['--import', 'tsx', program, '--http', '0', '--secret-file', secretFile],
    { cwd: root },
  );
  later(() => child.kill());
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text) => (said += text));
  await until(() => /listens at/.test(said) || child.exitCode !== null, 'the shelf listens');
  return Number(/:(\d+)\/mcp/.exec(said)?.[1] ?? assert.fail(said));
}

const yes = { answer: { action: 'accept', content: { allow: true } } };
const lend = { name: 'lend', arguments: { id: 'emma', to: 'Ada' } };

test('nginx is here', () => {
  assert.equal(spawnSync('nginx', ['-v']).status, 0, 'apt-get install nginx-light');
});

test('a question that one process asked is answered at the other', async () => {
  const file = secretFile();
  const ports = [await startShelf(file), await startShelf(file)];
  const url = await startNginx(ports);
  const post = poster(url, secretsFrom({ file }).token);
  const asked = await post('tools/call', lend);
  assert.equal(asked.body.result.resultType, 'input_required');
  const { requestState } = asked.body.result;
  const answered = await post('tools/call', { ...lend, inputResponses: yes, requestState });
  assert.notEqual(answered.at, asked.at, 'it came to the other process');
  assert.deepEqual(
    new Set([asked.at, answered.at]),
    new Set(ports.map((port) => `127.0.0.1:${port}`)),
  );
  assert.equal(answered.body.result.content[0].text, 'Emma is lent to Ada.');
  const other = {
    ...lend,
    arguments: { id: 'moby', to: 'Mallory' },
    inputResponses: yes,
    requestState,
  };
  assert.equal((await post('tools/call', other)).body.error.code, -32602);
  assert.equal((await poster(url, 'another token')('tools/call', lend)).status, 401);
});

test('our client, and its subscription, through nginx: events are not held back', async () => {
  const file = secretFile();
  const url = await startNginx([await startShelf(file), await startShelf(file)]);
  const { token } = secretsFrom({ file });
  const wire: any[] = [];
  const asks: Extension = () => ({
    capabilities: { elicitation: {} },
    handlers: { 'elicitation/create': () => yes.answer },
  });
  const config = { type: 'http', url, headers: { authorization: `Bearer ${token}` } };
  const onWire = (_: string, message: unknown) => wire.push(message);
  const connection = new McpConnection('shelf', config, {
    transports: httpTransports,
    extensions: [asks, ...inBothEras()],
    onWire,
  });
  later(() => connection.close());
  await connection.connect();
  assert.equal((await connection.initialize()).protocolVersion, SINCE);
  for (let n = 0; n < 4; n++)
    assert.equal((await connection.callTool('find', { pattern: 'ishmael' })).text, 'Moby-Dick');
  assert.equal(
    (await connection.callTool('lend', { id: 'moby', to: 'Ada' })).text,
    'Moby-Dick is lent to Ada.',
  );
  await until(() =>
    wire.some(({ method }) => method === 'notifications/subscriptions/acknowledged'),
  );
});

test('with two secrets the other process refuses; with the handshake era a session is known to one of them', async () => {
  const files = [secretFile(), secretFile()];
  const ports = [await startShelf(files[0]!), await startShelf(files[0]!)];
  const post = poster(`http://127.0.0.1:${ports[0]}/mcp`, secretsFrom({ file: files[0] }).token);
  const { requestState } = (await post('tools/call', lend)).body.result;
  const stranger = await startShelf(files[1]!);
  const there = poster(`http://127.0.0.1:${stranger}/mcp`, secretsFrom({ file: files[1] }).token);
  const refused = await there('tools/call', { ...lend, inputResponses: yes, requestState });
  assert.equal(refused.body.error.message, 'requestState is not one of ours');
  const url = await startNginx(ports);
  const config = {
    type: 'http',
    url,
    headers: { authorization: `Bearer ${secretsFrom({ file: files[0] }).token}` },
  };
  const connection = new McpConnection('shelf', config, { transports: httpTransports });
  later(() => connection.close());
  await connection.connect();
  await connection.initialize();
  const calls = [0, 1, 2].map(() =>
    rejection(connection.callTool('find', { pattern: 'x' })).catch(() => undefined),
  );
  assert.ok(
    (await Promise.all(calls)).some((error) => error?.kind === 'expired'),
    'the other process answers 404',
  );
});

test('a secret that others can read, or that is short, is refused', () => {
  const file = secretFile();
  writeFileSync(file, 'short');
  assert.throws(() => secretsFrom({ file }), /32 characters/);
  assert.throws(() => secretsFrom({ variable: 'NOT_SET_AT_ALL' }), /32 characters/);
  const open = join(folder(), 'open');
  writeFileSync(open, 'x'.repeat(64), { mode: 0o644 });
  assert.throws(() => secretsFrom({ file: open }), /chmod 600/);
  assert.notDeepEqual(secretsFrom(), secretsFrom());
});
