// Chapter 29: `mcp-by-hand serve` as a process, on stdio and over HTTP, and what it refuses to start with.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { plainHost } from '../chapters/19-the-terminal/host.ts';
import { inBothEras } from '../chapters/22-no-handshake/era.ts';
import { readServe } from '../chapters/29-a-server/serve-command.ts';
import { compose } from '../chapters/composition.ts';
import type { Extension, Json } from '../mcp.ts';
import { cleanUp, folder, goodServer, later, open, until } from './help/basics.ts';
import { command } from './help/terminal.ts';

afterEach(cleanUp);

const line = (...words: string[]) => [command[1]!, 'serve', ...words];
const agreeing: Extension = () => ({
  capabilities: { elicitation: {} },
  handlers: { 'elicitation/create': () => ({ action: 'accept', content: { allow: true } }) },
});

/** A home with these settings, and a folder to serve. */
function places(settings: Json = {}) {
  const [home, cwd] = [folder(), folder()];
  mkdirSync(join(home, '.claude'));
  writeFileSync(join(home, '.claude', 'settings.json'), JSON.stringify(settings));
  return { home, cwd };
}

function start(home: string, cwd: string, ...words: string[]) {
  const child = spawn(process.execPath, line(...words), {
    cwd,
    env: { ...process.env, HOME: home },
  });
  later(() => child.kill('SIGKILL'));
  const seen = { out: '', err: '' };
  child.stdout.setEncoding('utf8').on('data', (text) => (seen.out += text));
  child.stderr.setEncoding('utf8').on('data', (text) => (seen.err += text));
  const ended = once(child, 'close').then(([code]) => code as number);
  return { child, seen, ended };
}

test("on stdio: the user's rules count, an own defaultMode of yolo does not; a question, and a person who agrees", async () => {
  const { home, cwd } = places({
    permissions: {
      defaultMode: 'bypassPermissions',
      allow: ['Bash(touch by-rule)'],
      deny: ['Bash(touch never)'],
    },
  });
  const config = { command: process.execPath, args: line(cwd), env: { HOME: home } };
  const { connection: mute } = await open(config, { extensions: inBothEras() });
  assert.equal(mute.server?.protocolVersion, '2026-07-28');
  assert.match((await mute.callTool('bash', { command: 'touch asked' })).text, /nobody to ask/);
  assert.equal((await mute.callTool('bash', { command: 'touch by-rule' })).isError, false);
  await mute.close();
  const { connection } = await open(config, { extensions: [agreeing] });
  assert.equal((await connection.callTool('bash', { command: 'touch asked' })).isError, false);
  assert.match(
    (await connection.callTool('bash', { command: 'touch never' })).text,
    /forbids bash/,
  );
  assert.deepEqual(
    ['asked', 'by-rule', 'never'].map((name) => existsSync(join(cwd, name))),
    [true, true, false],
  );
});

test('over HTTP: the token is on stderr, nothing is on stdout, and Ctrl-C ends it; G43: a page that was named may use it, with the token', async () => {
  const { home, cwd } = places();
  const { child, seen, ended } = start(
    home,
    cwd,
    ...['--http', '0', '--mode', 'accept-edits', '--allow-origin', 'https://a.example'],
  );
  await until(() => /Bearer \S+\n/.test(seen.err));
  const [, url] = /at (http:\S+)/.exec(seen.err)!;
  const [, token] = /Bearer (\S+)\n/.exec(seen.err)!;
  assert.equal((await fetch(url!, { method: 'POST' })).status, 401);
  const fromPage = (origin: string) => fetch(url!, { method: 'POST', headers: { origin } });
  const readable = 'access-control-allow-origin';
  const named = await fromPage('https://a.example');
  assert.deepEqual([named.status, named.headers.get(readable)], [401, 'https://a.example']);
  const other = await fromPage('https://b.example');
  assert.deepEqual([other.status, other.headers.get(readable)], [403, null]);
  const { transports } = compose(plainHost());
  const entry = { type: 'http', url, headers: { Authorization: `Bearer ${token}` } };
  const { connection } = await open(entry, { transports });
  assert.equal(
    (await connection.callTool('write', { path: 'new.txt', content: 'x' })).isError,
    false,
  );
  assert.equal(existsSync(join(cwd, 'new.txt')), true);
  await connection.close();
  child.kill('SIGINT');
  assert.equal(await ended, 0);
  assert.equal(seen.out, '');
});

test('D30 what it does not start with: the root as the folder, a foreign address without a secret, words that are none', async () => {
  const { home, cwd } = places();
  const secret = join(cwd, 'secret');
  writeFileSync(secret, 'x'.repeat(40));
  chmodSync(secret, 0o644);
  const cases: [words: string[], code: number, why: RegExp][] = [
    [[join(cwd, 'missing')], 3, /no folder/],
    [[cwd, cwd], 2, /one folder/],
    [[cwd, '--add-dir', join(cwd, 'missing')], 3, /no folder/],
    [[cwd, '--http', '0', '--host', '0.0.0.0'], 3, /secret of yours/],
    [[cwd, '--http', '0', '--secret-file', secret], 3, /chmod 600/],
    [[cwd, '--http', 'x'], 2, /--http is a port/],
    [[cwd, '--tools', 'read,raed'], 2, /there is no raed/],
    [[cwd, '--mode', 'free'], 2, /--mode is one of/],
    [[cwd, '--answer-within', '0'], 2, /--answer-within/],
    [[cwd, '--allow-origin', '*'], 2, /--allow-origin: "\*" is not the origin of a page, such as/],
  ];
  for (const [words, code, message] of cases)
    assert.throws(() => readServe(words), { code, message });
  chmodSync(secret, 0o600);
  const shared = readServe([cwd, '--http', '0', '--host', '0.0.0.0', '--secret-file', secret]);
  assert.equal(shared.token, readServe([cwd, '--secret-file', secret]).token);
  const { seen, ended, child } = start(home, '/');
  child.stdin.end();
  assert.equal(await ended, 3);
  assert.match(seen.err, /say which folder/);
  assert.equal(seen.out, '');
});

test("D31 --servers: the user's own server is there, a project's is not started, and one of us among them is no end", async () => {
  const own = { command: process.execPath, args: [goodServer] };
  const self = { command: process.execPath, args: line(folder(), '--servers') };
  const { home, cwd } = places({ mcpServers: { own, self } });
  const stolen = join(cwd, 'started');
  const touch = {
    command: process.execPath,
    args: ['-e', `require('fs').writeFileSync(${JSON.stringify(stolen)}, '')`],
  };
  writeFileSync(join(cwd, '.mcp.json'), JSON.stringify({ mcpServers: { theirs: touch } }));
  const config = { command: process.execPath, args: line(cwd, '--servers'), env: { HOME: home } };
  const { connection } = await open(config, { extensions: [agreeing] });
  const own_ = async () => (await connection.listTools()).map(({ name }) => name).slice(6);
  let found = await own_();
  while (found.length === 0) found = await own_(); // on a slow machine it joins later
  assert.ok(
    found.every((name) => name.startsWith('own__')),
    `${found}`,
  );
  assert.match((await connection.callTool('own__add', { a: 2, b: 40 })).text, /42/);
  assert.equal(existsSync(stolen), false);
});
