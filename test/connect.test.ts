// `connect`: the whole client in one line.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { promisify } from 'node:util';
import { shelf } from '../chapters/29-a-server/bookshelf.ts';
import { serveHttp } from '../chapters/package/server.ts';
import { connect, McpConnection, type Json } from '../chapters/connect.ts';
import { cleanUp, folder, goodServer, habit, later, rejection, root } from './help/basics.ts';

afterEach(cleanUp);

const good = { command: process.execPath, args: [goodServer] };
const asker = (...era: string[]) => ({
  command: process.execPath,
  args: [join(root, 'fixtures', 'asker.mjs'), ...era],
});
const quiet = { onWarning: () => {} };

test('a command: the tool answers, and the end of the block ends the server', async () => {
  const closed: Error[] = [];
  const ended = () => ({ closed: (why: Error) => void closed.push(why) });
  const server = await connect(good, { extensions: [ended] });
  assert.equal(server.serverName, 'node');
  assert.equal((await server.callTool('add', { a: 2, b: 40 })).text, '42');
  await server[Symbol.asyncDispose]();
  assert.equal(server.isClosed, true);
  assert.equal(closed.length, 1);
});

test('an address, in both eras: tools, resources, prompts', async () => {
  const http = await serveHttp(shelf(), { graceMs: 100 });
  later(() => http.close());
  for (const [era, revision] of Object.entries({
    handshake: '2025-11-25',
    stateless: '2026-07-28',
  })) {
    const server = await connect({ url: http.url, era });
    later(() => server.close());
    assert.equal(server.server?.protocolVersion, revision);
    assert.equal((await server.callTool('find', { pattern: '^call' })).text, 'Moby-Dick');
    const [book] = await server.listResources();
    assert.equal((await server.readResource(book!.uri)).length, 1);
    assert.ok((await server.listResourceTemplates()).length > 0);
    const [prompt] = await server.listPrompts();
    const name = String(prompt!.name);
    const of = { type: 'ref/prompt', name } as const;
    const [argument] = prompt!.arguments as { name: string }[];
    const words = await server.completeArgument(of, { name: argument!.name, value: '' });
    const given = { [argument!.name]: words[0] ?? 'x' };
    assert.ok((await server.getPrompt(name, given)).length > 0);
  }
  const plain = await connect(http.url);
  later(() => plain.close());
  assert.ok(plain instanceof McpConnection);
  assert.equal(plain.server?.protocolVersion, '2026-07-28');
});

for (const era of ['handshake', 'modern'])
  test(`${era}: what a server asks is answered by the functions that were given`, async () => {
    const schema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
    let answer: Json = { name: 'Ada' };
    const asked: unknown[] = [];
    const server = await connect(asker(era), {
      name: 'asker',
      roots: [root],
      onWarning: (text) => void asked.push(text),
      onElicit: (question) => {
        asked.push(question.mode === 'url' ? question.url.href : question.message);
        return { action: 'accept', content: answer };
      },
      onSampling: ({ messages }) => ({ role: 'assistant', model: 'own', content: messages }),
    });
    later(() => server.close());
    const ask = async (method: string, params: Json = {}) =>
      JSON.parse((await server.callTool('ask', { method, params })).text);
    const form = { message: 'Who?', requestedSchema: schema };
    const accepted = { action: 'accept', content: { name: 'Ada' } };
    assert.deepEqual(await ask('elicitation/create', form), accepted);
    answer = { name: 7 };
    assert.deepEqual(await ask('elicitation/create', form), { action: 'cancel' });
    const page = { mode: 'url', message: 'Go', url: 'https://x.example/', elicitationId: '1' };
    assert.deepEqual(await ask('elicitation/create', page), { action: 'accept' });
    assert.equal(asked[0], 'Who?');
    assert.match(String(asked[2]), /does not fit its form/);
    assert.equal(asked[3], 'https://x.example/');
    const sampled = await ask('sampling/createMessage', { messages: ['hello'], maxTokens: 9 });
    assert.deepEqual(sampled.content, ['hello']);
    const { roots } = await ask('roots/list');
    assert.equal(roots.length, 1);
    assert.match(roots[0].uri, /^file:\/\//);
  });

test('without functions none of it is declared, and a question is left', async () => {
  const wire: any[] = [];
  const onWire = (_: string, message: unknown) => void wire.push(message);
  const server = await connect(asker('handshake'), { ...quiet, onWire });
  later(() => server.close());
  const { capabilities } = wire.find(({ method }) => method === 'initialize').params;
  assert.equal(capabilities.roots, undefined);
  assert.equal(capabilities.sampling, undefined);
  const { text } = await server.callTool('ask', { method: 'roots/list', params: {} });
  assert.match(text, /error/);
});

test('onProgress hears of every call, and a call may have its own', async () => {
  const told: unknown[] = [];
  const onProgress = ({ progress }: Json) => void told.push(progress);
  const server = await connect(habit(), { ...quiet, onProgress });
  later(() => server.close());
  const args = { times: 3, everyMs: 1 };
  await server.callTool('work', args);
  assert.deepEqual(told, [1, 2, 3]);
  const own: unknown[] = [];
  await server.callTool('work', args, { onProgress: (each) => void own.push(each.progress) });
  assert.deepEqual(
    [own, told],
    [
      [1, 2, 3],
      [1, 2, 3],
    ],
  );
});

test('what cannot be reached leaves nothing behind, and says why by its kind', async () => {
  const gone = await rejection(connect('http://127.0.0.1:1/mcp', quiet));
  assert.equal(gone.kind, 'unreachable');
  const missing = await rejection(connect({ command: '/nowhere/server' }, quiet));
  assert.equal(missing.kind, 'start');
  const noEntry = await rejection(connect('no-such-name-at-all', quiet));
  assert.equal(noEntry.kind, 'config');
  assert.match(noEntry.message, /no MCP server is called "no-such-name-at-all"/);
});

test("a name: the user's own entry starts; a project's only after it was approved", async () => {
  const [home, project] = [folder(), folder()];
  mkdirSync(join(home, '.claude'), { recursive: true });
  const mine = { mcpServers: { mine: good } };
  writeFileSync(join(home, '.claude.json'), JSON.stringify(mine));
  writeFileSync(join(project, '.mcp.json'), JSON.stringify({ mcpServers: { theirs: good } }));
  const entry = join(root, 'chapters', 'connect.ts');
  const program = `
    const { connect } = await import(${JSON.stringify(entry)});
    const server = await connect('mine');
    console.log((await server.callTool('add', { a: 2, b: 40 })).text);
    await server.close();
    const why = await connect('theirs', { onWarning: (text) => console.log(text) }).catch((e) => e);
    console.log(why.name, why.kind, why.message);`;
  const env = { ...process.env, HOME: home, USERPROFILE: home };
  const flags = ['--import', join(root, 'node_modules', 'tsx', 'dist', 'loader.mjs')];
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [...flags, '--input-type=module', '-e', program],
    { cwd: project, env },
  );
  assert.match(stdout, /^42\n/);
  assert.match(stdout, /trust allow theirs/);
  assert.match(stdout, /McpError config theirs is not approved/);
});
