// Chapter 1: a server is a child process; stdin and stdout are the wire, stderr is not.

import assert from 'node:assert/strict';
import { existsSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import {
  cleanUp,
  folder,
  goodServer,
  habit,
  later,
  rejection,
  start,
  until,
} from './help/basics.ts';
import { safeEnv } from './help/subject.ts';

afterEach(cleanUp);

test('what we send reaches its stdin, what it writes to stdout reaches us', async () => {
  const { transport, messages } = await start({ command: process.execPath, args: [goodServer] });
  await transport.send({ jsonrpc: '2.0', id: 1, method: 'ping' });
  await until(() => messages.length > 0);
  assert.deepEqual(messages, [{ jsonrpc: '2.0', id: 1, result: {} }]);
});

test('what it writes to stderr is no message, and is read, so that it never blocks', async () => {
  const { transport, messages } = await start(habit('floods-stderr', '4'));
  await transport.send({ jsonrpc: '2.0', id: 1, method: 'ping' });
  await until(() => messages.length > 0);
  assert.deepEqual(messages, [{ jsonrpc: '2.0', id: 1, result: {} }]);
});

test('fault 16: args, cwd and env arrive', async () => {
  const cwd = realpathSync(folder());
  const { command, args } = habit('good', 'two words; $HOME "quoted"');
  const { call } = await start({ command, args, cwd, env: { COLOUR: 'blue' } });
  const seen = JSON.parse((await call('where')).content[0].text);
  assert.deepEqual(seen.argv, ['good', 'two words; $HOME "quoted"']);
  assert.equal(seen.cwd, cwd);
  assert.equal(seen.env.COLOUR, 'blue');
});

test('fault 16, A18: of our environment the server gets a safe list, and no key', async () => {
  Object.assign(process.env, {
    ANTHROPIC_API_KEY: 'k1',
    AWS_SECRET: 'k2',
    DATABASE_URL: 'k3',
    HARMLESS: 'h',
    LC_TEST: '() { :; }',
  });
  later(() =>
    ['ANTHROPIC_API_KEY', 'AWS_SECRET', 'DATABASE_URL', 'HARMLESS', 'LC_TEST'].forEach(
      (name) => delete process.env[name],
    ),
  );
  const { call } = await start({ ...habit(), env: { GIVEN: 'yes' } });
  const names = Object.keys(JSON.parse((await call('where')).content[0].text).env);
  const safe = [
    'HOME',
    'LOGNAME',
    'PATH',
    'SHELL',
    'TERM',
    'USER',
    'LANG',
    'TMPDIR',
    'TZ',
    'GIVEN',
    'MCP_BY_HAND_CHILD',
    ...NETWORK,
  ];
  assert.deepEqual(
    names.filter((name) => !safe.includes(name.toUpperCase()) && !/^LC_/.test(name)),
    [],
  );
  assert.ok(names.includes('PATH') && names.includes('GIVEN'));
  assert.ok(!names.includes('LC_TEST'), 'a shell function in a value is not passed on');
});

const NETWORK = [
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'ALL_PROXY',
  'NO_PROXY',
  'NODE_EXTRA_CA_CERTS',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
];

test('a server gets what it needs to reach the network from inside a company, in either case of the proxies', async () => {
  const names = [...NETWORK, 'http_proxy', 'https_proxy', 'all_proxy', 'no_proxy'];
  const before = Object.fromEntries(names.map((name) => [name, process.env[name]]));
  later(() =>
    names.forEach((name) =>
      before[name] === undefined ? delete process.env[name] : (process.env[name] = before[name]),
    ),
  );
  for (const name of names)
    process.env[name] =
      name.startsWith('NODE') || name.startsWith('SSL') ? '/dev/null' : `for ${name}`;
  const { call } = await start(habit());
  const { env } = JSON.parse((await call('where')).content[0].text);
  assert.deepEqual(
    names.filter((name) => env[name] === undefined),
    [],
  );
  assert.ok(
    !Object.keys(safeEnv()).some((name) => names.includes(name)),
    'and no other child does',
  );
});

test('A8: no shell reads the configuration', async () => {
  const marker = join(folder(), 'marker');
  await rejection(start({ command: `echo hi; touch "${marker}"` }));
  const { command, args } = habit('good', `$(touch "${marker}")`);
  const { call } = await start({ command, args });
  assert.equal(JSON.parse((await call('where')).content[0].text).argv[1], `$(touch "${marker}")`);
  assert.ok(!existsSync(marker));
});
