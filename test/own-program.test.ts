// A program of one's own: chapters/own.ts is ours with a transport, an extension, a tool and a slash command more.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, test } from 'node:test';
import { cleanUp, folder, later, root } from './help/basics.ts';
import { programArgs } from './help/compiled.ts';

afterEach(cleanUp);

const source = join(root, 'chapters', 'own.ts');
const typed = [join(root, 'node_modules', 'tsx', 'dist', 'cli.mjs'), source];

/** Runs it in an empty folder, with an empty home. */
async function own(args: string[], input = '', program = programArgs(source)) {
  const cwd = folder();
  const env = { PATH: process.env.PATH, HOME: cwd, USERPROFILE: cwd, NO_COLOR: '1' };
  const child = spawn(process.execPath, [...program, ...args], { cwd, env });
  later(() => child.kill('SIGKILL'));
  const seen = { out: '', err: '' };
  child.stdout.setEncoding('utf8').on('data', (text) => (seen.out += text));
  child.stderr.setEncoding('utf8').on('data', (text) => (seen.err += text));
  child.stdin.end(input);
  const code = await new Promise((done) => child.on('close', done));
  return { code, ...seen };
}

/** A server at a Unix socket that logs a line for each call. */
async function serve(): Promise<string> {
  const path = join(folder(), 'socket');
  const results: Record<string, object> = {
    initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {} } },
    'tools/list': {
      tools: [{ name: 'greet', description: 'Greets.', inputSchema: { type: 'object' } }],
    },
    'tools/call': { content: [{ type: 'text', text: 'Hello!' }] },
  };
  const server = createServer((socket) => {
    const say = (message: object) =>
      socket.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
    createInterface(socket).on('line', (line) => {
      const { id, method } = JSON.parse(line);
      if (method === 'tools/call')
        say({ method: 'notifications/message', params: { level: 'info', data: 'greeting now' } });
      if (id === undefined) return;
      const result = results[method];
      say(result ? { id, result } : { id, error: { code: -32601, message: 'What?' } });
    });
  });
  server.listen(path);
  later(() => server.close());
  await new Promise((done) => server.once('listening', done));
  return path;
}

const TIME = /\d\d:\d\d:\d\d GMT/;

test('its tool is a row like any other: it asks, a rule can name it, and then it runs', async () => {
  const refused = await own(['-p', 'clock']);
  assert.deepEqual([refused.code, TIME.test(refused.out)], [3, false]);
  assert.match(refused.err, /clock needs your permission, and there is nobody to ask/);
  const allowed = await own(['-p', 'clock', '--allow', 'clock']);
  assert.equal(allowed.code, 0, allowed.err);
  assert.match(allowed.out, TIME);
  const denied = await own(['-p', 'clock', '--mode', 'yolo', '--deny', 'clock']);
  assert.match(denied.err, /the rule deny "clock" forbids clock/);
});

test('its slash command works, and is listed, where tsx reads it, as its first line says', async () => {
  const { out, code } = await own([], '/time\n/help\n', typed);
  assert.equal(code, 0);
  assert.match(out, TIME);
  assert.match(out, /^\/time$/m);
  assert.match(out, /^\/mcp reconnect NAME/m);
});

test('its transport reaches a server, and its extension hears what that logs', {
  skip: process.platform === 'win32',
}, async () => {
  const config = JSON.stringify({ mcpServers: { shelf: { type: 'unix', path: await serve() } } });
  const { out, err, code } = await own([
    '-p',
    'greet',
    '--mcp-config',
    config,
    '--allow',
    'mcp__shelf__greet',
  ]);
  assert.equal(code, 0, err);
  assert.match(out, /Hello!/);
  assert.match(err, /^! shelf: greeting now$/m);
});
