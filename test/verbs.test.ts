// One client for every verb: the same ways to name a server, the same flags, and in the same
// situation the same capabilities, whichever verb it is.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { readTrace } from '../chapters/30-seeing/more/read-trace.ts';
import { asObject, type Json } from '../mcp.ts';
import { cleanUp, goodServer, root } from './help/basics.ts';
import { peer } from './help/http-servers.ts';
import { place, run, Terminal, userServers } from './help/terminal.ts';

afterEach(cleanUp);

const library = join(root, 'fixtures', 'library.mjs');
/** What each verb says behind the server. The library and the peer both know these. */
const VERBS: Record<string, string[]> = {
  probe: [],
  call: ['told'],
  read: ['library://rules'],
  prompt: ['dialogue'],
  resources: [],
  prompts: [],
};
const NO_PERSON = {
  elicitation: { form: {} },
  roots: { listChanged: true },
  extensions: { 'io.modelcontextprotocol/skills': {}, 'io.modelcontextprotocol/tasks': {} },
};
const PERSON = { ...NO_PERSON, elicitation: { form: {}, url: {} } };

async function librarian() {
  const capabilities = { tools: {}, resources: {}, prompts: {} };
  return peer({
    initialize: ({ body }) => ({ protocolVersion: body.params.protocolVersion, capabilities }),
    'tools/list': () => ({ tools: [{ name: 'told', inputSchema: { type: 'object' } }] }),
    'resources/list': () => ({ resources: [{ uri: 'library://rules', name: 'rules' }] }),
    'resources/templates/list': () => ({ resourceTemplates: [] }),
    'resources/read': () => ({ contents: [{ uri: 'library://rules', text: 'Be quiet.' }] }),
    'prompts/list': () => ({ prompts: [{ name: 'dialogue' }] }),
    'prompts/get': () => ({ messages: [{ role: 'user', content: { type: 'text', text: 'hi' } }] }),
  });
}

/** What was declared in the first handshake of a trace. */
function declared(file: string): Json {
  const { messages } = readTrace(readFileSync(file, 'utf8'));
  const hello = messages.find(({ msg }) => msg.method === 'initialize');
  return asObject(asObject(hello?.msg.params).capabilities);
}

/** The words that name the server, before and behind those of the verb. */
type Ways = Record<string, [before: string[], behind: string[]]>;

test('verbs × ways to name a server: the same flags work, the same is declared', async () => {
  const web = await librarian();
  const where = place({}, userServers({ mine: { command: process.execPath, args: [library] } }));
  const ways: Ways = {
    name: [['mine'], []],
    url: [[web.url], []],
    command: [[], ['--', process.execPath, library]],
  };
  const cells = Object.entries(VERBS).flatMap(([verb, words]) =>
    Object.entries(ways).map(async ([way, [before, behind]]) => {
      const file = join(where.cwd, `${verb}-${way}.jsonl`);
      const flags = ['--json', '--timeout', '50', '--era', 'handshake', '--trace', file];
      const ended = await run(where, [verb, ...flags, ...before, ...words, ...behind]);
      const cell = `${verb} by ${way}`;
      assert.equal(ended.code, 0, `${cell}: ${ended.err}`);
      JSON.parse(ended.out);
      assert.deepEqual(declared(file), NO_PERSON, cell);
    }),
  );
  await Promise.all(cells);
});

test('an answer in a pipe and a chat declare the same as a call in that situation', async () => {
  const mine = { command: process.execPath, args: [library], era: 'handshake' };
  const where = place({}, userServers({ mine }));
  const inPipe = join(where.cwd, 'pipe.jsonl');
  const asked = ['-p', 'mcp__mine__told', '--allow', 'mcp__mine__told', '--trace', inPipe];
  assert.equal((await run(where, asked)).code, 0);
  assert.deepEqual(declared(inPipe), NO_PERSON);
  const inChat = join(where.cwd, 'chat.jsonl');
  const terminal = new Terminal(where, ['--trace', inChat, '--allow', 'mcp__mine__told']);
  await terminal.ready();
  terminal.enter('mcp__mine__told');
  await terminal.see(/^✓ mcp__mine__told/);
  await terminal.ready();
  terminal.enter('/exit');
  assert.equal(await terminal.ended(), 0);
  const { sampling, ...others } = declared(inChat);
  const { 'io.modelcontextprotocol/ui': ui, ...extensions } = asObject(others.extensions);
  assert.deepEqual(ui, { mimeTypes: ['text/html;profile=mcp-app'] }); // someone can look at one
  others.extensions = extensions;
  assert.deepEqual([others, sampling], [PERSON, {}]); // a chat has a model, if only the rehearsal
});

test('verbs × flags that fit a command, and those that do not', async () => {
  const where = place();
  const command = ['--', process.execPath, library];
  const cells = Object.entries(VERBS).map(async ([verb, words]) => {
    const good = await run(where, [verb, '-e', 'A=1', '--cwd', where.cwd, ...words, ...command]);
    assert.equal(good.code, 0, `${verb}: ${good.err}`);
    const config = JSON.stringify({ other: { command: process.execPath, args: [library] } });
    const given = await run(where, [verb, '--mcp-config', config, 'other', ...words]);
    assert.equal(given.code, 0, `${verb} --mcp-config: ${given.err}`);
    const odd = [
      [verb, '--header', 'A: b', ...words, ...command],
      [verb, '-e', 'A=1', 'http://127.0.0.1:1/mcp', ...words],
      [verb, '--era', 'stone', ...words, ...command],
    ];
    for (const args of odd) assert.equal((await run(where, args)).code, 2, args.join(' '));
  });
  await Promise.all(cells);
});

test('probe --call checks arguments by the schema, as call does', async () => {
  const where = place();
  const good = ['--', process.execPath, goodServer];
  const wrong = await run(where, ['probe', '--call', 'add', 'a=x', 'b=1', ...good]);
  assert.deepEqual([wrong.code, wrong.out], [2, '']);
  assert.match(wrong.err, /a should be a number/);
});

test('a person at the terminal is there for every verb, whichever way the server is named', async () => {
  const where = place({}, userServers({ mine: { command: process.execPath, args: [library] } }));
  const command = ['--', process.execPath, library];
  const cells = ['call', 'read', 'prompt', 'probe'].flatMap((verb) =>
    [
      [verb, 'mine', ...VERBS[verb]!],
      [verb, ...VERBS[verb]!, ...command],
    ].map(async ([first, ...rest], n) => {
      const file = join(where.cwd, `${verb}-${n}.jsonl`);
      const flags = ['--era', 'handshake', '--trace', file];
      const key = n === 0 ? { ANTHROPIC_API_KEY: 'k' } : {}; // with a model, it can be borrowed
      const terminal = new Terminal(where, [first!, ...flags, ...rest], key);
      assert.equal(await terminal.ended(), 0, terminal.text);
      const wanted = n === 0 ? { ...PERSON, sampling: {} } : PERSON;
      assert.deepEqual(declared(file), wanted, `${verb} ${rest}`);
    }),
  );
  await Promise.all(cells);
});
