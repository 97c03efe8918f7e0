// Commands for scripts against real third-party servers: a browser that lives from one call to the
// next, what server-everything asks of a person at a terminal, and what changed between two versions.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { cleanUp, later } from '../help/basics.ts';
import { chromium } from '../help/chromium.ts';
import { installed } from '../help/installed.ts';
import { say, startModelServer } from '../help/model-server.ts';
import { command, place, run, Terminal, userServers, type Place } from '../help/terminal.ts';
import { server } from '../help/third-party.ts';

afterEach(cleanUp);

/** `mcp-by-hand` for a shell script. */
function asProgramIn({ home }: Place): NodeJS.ProcessEnv {
  const file = join(home, 'mcp-by-hand');
  const words = command.map((each) => `'${each}'`).join(' ');
  writeFileSync(file, `#!/bin/sh\nexec ${words} "$@"\n`);
  chmodSync(file, 0o755);
  return { HOME: home, PATH: `${home}:${process.env.PATH}` };
}

const SHOP = `<!doctype html><title>Shop</title><h1>Shop</h1><button>Buy</button><p id=said></p>
<script>document.querySelector('button').onclick = () => (said.textContent = 'Sold')</script>`;

/** What a person would write who has read no more than --help. */
const SCRIPT = `set -e
mcp-by-hand up pw >&2
mcp-by-hand call pw browser_navigate url="$1"
ref=$(mcp-by-hand call pw browser_snapshot | sed -n 's/.*button "Buy".*\\[ref=\\([^]]*\\)\\].*/\\1/p')
mcp-by-hand call pw browser_click element=Buy target="$ref"
mcp-by-hand call pw browser_snapshot
mcp-by-hand down`;

test('a shell script drives one browser by four calls through up', {
  skip: !chromium,
}, async () => {
  const shop = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end(SHOP);
  }).listen(0, '127.0.0.1');
  await once(shop, 'listening');
  later(() => shop.close());
  const home = join(installed('@playwright/mcp@0.0.83'), 'node_modules', '@playwright', 'mcp');
  const flags = ['--headless', '--isolated', '--no-sandbox', '--executable-path', chromium!];
  const pw = { command: process.execPath, args: [join(home, 'cli.js'), ...flags] };
  const where = place({ 'shop.sh': SCRIPT }, userServers({ pw }));
  later(() => run(where, ['down']).then(() => {}));
  const url = `http://127.0.0.1:${(shop.address() as AddressInfo).port}/`;
  const options = { cwd: where.cwd, env: asProgramIn(where), maxBuffer: 1e8 };
  const { stdout } = await promisify(execFile)('sh', ['shop.sh', url], options);
  assert.match(stdout, /Page Title: Shop/);
  assert.match(stdout, /Sold/, 'the last call sees what the third one did');
});

/** Fields of its form that may be left out, or have a usual value. */
const OTHERS = [
  ...['Boolean', 'String with default', 'String with email format', 'String with uri format'],
  ...[
    'String with date format',
    'Integer',
    'Number in range 1-1000',
    'Untitled Single Select Enum',
  ],
  ...['Untitled Multiple Select Enum', 'Titled Single Select Enum', 'Titled Multiple Select Enum'],
  'Legacy Titled Single Select Enum',
];
const everything = server('everything');
const everythingCommand = ['--', everything.command, ...everything.args];

test('server-everything asks a person at the terminal of a call: a form', async () => {
  const where = place();
  const words = ['call', 'trigger-elicitation-request', ...everythingCommand];
  const terminal = new Terminal(where, words);
  await terminal.see(/Fill it in\?.*: *$/);
  terminal.enter('y');
  await terminal.see(/^"String" .*: *$/);
  terminal.enter('Ada');
  for (const field of OTHERS) {
    await terminal.see(new RegExp(`^"${field}" [^]*: *$(?![^]*^\\S)`));
    terminal.enter('');
  }
  await terminal.see(/^Send it\?.*: *$/);
  terminal.enter('y');
  assert.equal(await terminal.ended(), 0, terminal.text);
  assert.match(terminal.text, /"name": ?"Ada"|Name: Ada/);
});

test('server-everything borrows the model of a call, and is told where it works', async () => {
  const model = await startModelServer([say('Hello from a model.')]);
  const where = place();
  const words = ['call', 'trigger-sampling-request', 'prompt=Say hello', 'maxTokens=20'];
  const env = { ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: model.url };
  const terminal = new Terminal(where, [...words, ...everythingCommand], env);
  await terminal.see(/Say hello[^]*Ask the model\?.*: *$/);
  terminal.enter('y');
  await terminal.see(/Hello from a model\.[^]*Send it\?.*: *$/);
  terminal.enter('y');
  assert.equal(await terminal.ended(), 0, terminal.text);
  assert.match(terminal.text.replace(/\s+/g, ' '), /"text": "Hello from a model\."/);
  const roots = new Terminal(where, ['call', 'get-roots-list', ...everythingCommand]);
  assert.equal(await roots.ended(), 0, roots.text);
  assert.ok(roots.text.replace(/\n/g, '').includes(pathToFileURL(where.cwd).href), roots.text);
});

const OLDER = { everything: '2026.1.14', filesystem: '2025.12.18', memory: '2025.9.25' };

/** The same server, as it was published before. */
function olderServer(name: keyof typeof OLDER): string[] {
  const full = `@modelcontextprotocol/server-${name}`;
  const home = join(installed(`${full}@${OLDER[name]}`), 'node_modules', full);
  const { bin } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8'));
  return [process.execPath, join(home, Object.values<string>(bin)[0]!)];
}

test('diff of two published versions of three servers', async () => {
  const where = place();
  for (const name of Object.keys(OLDER) as (keyof typeof OLDER)[]) {
    const more = name === 'filesystem' ? [where.cwd] : [];
    const now = server(name, ...more);
    const older = [...olderServer(name), ...more];
    const config = { before: { command: older[0], args: older.slice(1) }, after: now };
    const words = ['diff', 'before', 'after', '--mcp-config', JSON.stringify(config)];
    const { code, out, err } = await run(where, [...words, '--json']);
    const { changes, breaking } = JSON.parse(out);
    assert.equal(code, breaking > 0 ? 8 : 0, err);
    console.log(`${name} ${OLDER[name]}: ${changes.length} changes, ${breaking} breaking`);
    assert.ok(Array.isArray(changes));
    const same = await run(where, ['diff', 'after', 'after', ...words.slice(3)]);
    assert.deepEqual([same.code, same.out], [0, '']);
  }
});
