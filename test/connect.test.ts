// `connect`: the whole client in one line.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { promisify } from 'node:util';
import { shelf } from '../chapters/29-a-server/bookshelf.ts';
import { serveHttp } from '../chapters/package/server.ts';
import { connect, McpConnection, type ContentBlock, type Json } from '../chapters/connect.ts';
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
  const eras = { handshake: '2025-11-25', stateless: '2026-07-28' } as const;
  for (const era of ['handshake', 'stateless'] as const) {
    const revision = eras[era];
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

test('what a function of the program returns is checked before it is sent, and its name is told', async () => {
  const told: string[] = [];
  let elicited: any;
  let sampled: any;
  const server = await connect(asker('handshake'), {
    name: 'asker',
    onWarning: (text) => void told.push(text),
    onElicit: () => elicited,
    onSampling: () => sampled,
  });
  later(() => server.close());
  const ask = async (method: string, params: Json) =>
    JSON.parse((await server.callTool('ask', { method, params })).text);
  const form = { message: 'Who?', requestedSchema: { type: 'object', properties: {} } };
  for (elicited of [undefined, 'Ada', { action: 'yes' }])
    assert.deepEqual(await ask('elicitation/create', form), { action: 'cancel' });
  assert.equal(told.length, 3);
  assert.match(told[0]!, /^onElicit: it returned nothing, so the server hears "cancel"/);
  elicited = { action: 'accept', content: { name: 7 } };
  const name = { type: 'string' };
  const requestedSchema = { type: 'object', properties: { name } };
  await ask('elicitation/create', { ...form, requestedSchema });
  assert.match(told[3]!, /^onElicit: the answer to "asker" does not fit its form/);
  const prompt = { messages: [], maxTokens: 9 };
  for (sampled of ['hello', undefined, { content: 'hello' }]) {
    const refusal = JSON.stringify(await ask('sampling/createMessage', prompt));
    assert.match(refusal, /onSampling returned .*(role|model|content) is missing/);
  }
  assert.match(told[4]!, /^onSampling returned "hello": role is missing; it returns \{ role: /);
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

test('what cannot be meant is refused before anything starts, and the words say what would do', async () => {
  const server = { command: 'node' };
  const cases: [unknown[], RegExp][] = [
    [[], /^connect needs \{ command, args \}, .* and got nothing$/],
    [[{}], /^connect needs \{ command, args \}, /],
    [[{ comand: 'node', env: { KEY: 'secret' } }], /and got \{ comand, env \}$/],
    [['npx foo'], /"npx foo"; a program is started by \{"command":"npx","args":\["foo"\]\}/],
    [['./server.mjs'], /is started by \{"command":"node","args":\["\.\/server\.mjs"\]\}/],
    [['missing'], /"missing"; npx mcp-by-hand mcp list shows those there are$/],
    [[{ command: 'npx -y @a/foo' }], /"command" is the program alone, the words behind it are/],
    [[{ ...server, env: { KEY: undefined } }], /^KEY has no value; is it set where/],
    [
      [server, { onElicitt: () => {} }],
      /^connect has no option "onElicitt"; did you mean onElicit\?/,
    ],
    [[server, { onElicitation: () => {} }], /no option "onElicitation"; it has name, onElicit, /],
    [[server, { roots: '/' }], /^the option roots is a list, not a string$/],
    [[server, { onSampling: 'x' }], /^the option onSampling is a function, not a string$/],
  ];
  for (const [[target, options = {}], words] of cases) {
    const why = await rejection(connect(target as any, { ...quiet, ...(options as Json) }));
    assert.equal(why.name, 'McpError');
    assert.match(why.message, words);
  }
});

test('a handshake that takes too long names the option, beside the variable', async () => {
  const mute = { command: process.execPath, args: ['-e', 'process.stdin.resume()'] };
  const why = await rejection(connect(mute, { ...quiet, handshakeTimeoutMs: 300 }));
  assert.equal(why.kind, 'timeout');
  assert.match(why.message, /within 0\.3 s\. .* set MCP_TIMEOUT or handshakeTimeoutMs \(ms\)/);
});

test('a wrong path is shown, without the keys in it and behind it, and the status is kept', async () => {
  const web = createServer((_, answer) => answer.writeHead(404).end('Error')).listen(
    0,
    '127.0.0.1',
  );
  later(() => web.close());
  await new Promise((done) => web.once('listening', done));
  const host = `127.0.0.1:${(web.address() as AddressInfo).port}`;
  const key = 'a1b2c3d4e5f6a7b8c9d0e1f2';
  const why = await rejection(connect(`http://${host}/${key}/mpc?token=hush`, quiet));
  assert.equal(why.status, 404);
  assert.ok(why.message.includes(`; is http://${host}/***/mpc its address?`), why.message);
  assert.doesNotMatch(why.message, /hush|a1b2/);
});

// `npm run check` reads these lines; test/real/package.test.ts has them as installed.
test('the types: a misspelt word of a target does not compile, and a block is read by its type', async () => {
  const misspelt = [
    // @ts-expect-error
    () => connect({ comand: 'node' }),
    // @ts-expect-error
    () => connect({ command: 'node', timeoutMs: 5 }),
    // @ts-expect-error
    () => connect({ url: 'https://a.example', header: {} }),
    // @ts-expect-error
    () => connect({ command: 'node' }, { onElicitation: () => {} }),
  ];
  assert.equal(misspelt.length, 4);
  const block: ContentBlock = { type: 'text', text: 'a' };
  const server = await connect({ ...good, env: { PATH: process.env.PATH } });
  later(() => server.close());
  const [first = block] = (await server.callTool('add', { a: 2, b: 40 })).content;
  assert.equal(first.type === 'text' ? first.text : first.type, '42');
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
  assert.match(
    stdout,
    /McpError config theirs is not approved\. To approve it: npx mcp-by-hand trust allow theirs$/m,
  );
});
