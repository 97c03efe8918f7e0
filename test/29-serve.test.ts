// Chapter 29: the agent's hands as a server, behind our gate. Clients are our own, in both eras, on a pipe and over HTTP;
// forged answers are raw messages. The process is in 29-serve-command.test.ts.

import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { Roots, hands } from '../agent.ts';
import type { Mode } from '../chapters/17-the-gate/modes.ts';
import { nobody } from '../chapters/17-the-gate/person.ts';
import { parseRules, type Effect } from '../chapters/17-the-gate/rules.ts';
import { plainHost } from '../chapters/19-the-terminal/host.ts';
import { inBothEras } from '../chapters/22-no-handshake/era.ts';
import { inProcess } from '../chapters/25-other-pipes/in-process.ts';
import { serveHttp } from '../chapters/29-a-server/serve-http.ts';
import { overPipe } from '../chapters/29-a-server/pipe.ts';
import { Served, TrustWithoutGrants, type ServedOptions } from '../chapters/29-a-server/serve.ts';
import { traceContextOf } from '../chapters/29-a-server/more/trace-context.ts';
import { PassedOn, usersOwn } from '../chapters/29-a-server/passed-on.ts';
import { compose } from '../chapters/composition.ts';
import {
  asObject,
  type Extension,
  type Json,
  type McpConnection,
  type ServerEntry,
} from '../mcp.ts';
import { heldServer } from './help/held-server.ts';
import { cleanUp, folder, goodServer, later, open, rejection, root, until } from './help/basics.ts';

afterEach(cleanUp);

const TOKEN = 'a-token-for-this-test';
const META = 'io.modelcontextprotocol/';
const ERAS = ['handshake', 'stateless'] as const;
type Era = (typeof ERAS)[number];

type Given = Partial<ServedOptions> & { mode?: Mode; texts?: Partial<Record<Effect, string[]>> };

/** A server for a folder with a note, a secret and a neighbour; nothing of the real home is looked at. */
function prepare({ texts = {}, ...more }: Given = {}) {
  const [home, cwd, results] = [folder(), folder(), folder()];
  writeFileSync(join(cwd, 'note.txt'), 'the first line\n');
  mkdirSync(join(cwd, '.ssh'));
  writeFileSync(join(cwd, '.ssh', 'id_rsa'), 'PRIVATE KEY 4711\n');
  mkdirSync(join(home, '.ssh'));
  writeFileSync(join(home, '.ssh', 'id_rsa'), 'PRIVATE KEY 4711\n');
  const resultsFolder = join(results, 'results');
  const roots = new Roots(cwd, [], [resultsFolder]);
  const reader = { tools: hands({ roots, resultsFolder }), warn: () => {} };
  const rules = (['allow', 'ask', 'deny'] as const).flatMap((effect) =>
    parseRules(effect, texts[effect] ?? [], { name: 'test', isHere: true }, reader),
  );
  const trust = more.trust ?? new TrustWithoutGrants({ home, cwd });
  const { server } = new Served({ roots, trust, rules, resultsFolder, ...more });
  const file = (name: string) =>
    existsSync(join(cwd, name)) ? readFileSync(join(cwd, name), 'utf8') : undefined;
  return { server, home, cwd: roots.cwd, file, trust };
}
type Prepared = ReturnType<typeof prepare>;

/** A client whose person answers with these, one after the other; without them it cannot be asked. */
function answering(...answers: unknown[]) {
  const questions: Json[] = [];
  const extension: Extension = () => ({
    capabilities: { elicitation: {} },
    handlers: {
      'elicitation/create': (params) => {
        questions.push(params);
        assert.ok(questions.length <= answers.length, `one question too many: ${params.message}`);
        const answer = answers[questions.length - 1];
        return answer as Json;
      },
    },
  });
  return { questions, extension: answers.length > 0 ? extension : () => ({}) };
}
const YES = { action: 'accept', content: { allow: true } };
const silent = new Promise(() => {});

const pipeTo = ({ server }: Prepared) => ({
  config: { type: 'in-process', name: 'served' },
  transports: { 'in-process': inProcess({ served: overPipe(server) }) },
});

async function onPipe(prepared: Prepared, era: Era, ...answers: unknown[]) {
  const { config, transports } = pipeTo(prepared);
  const { questions, extension } = answering(...answers);
  const extensions = [extension, ...(era === 'stateless' ? inBothEras() : [])];
  const { connection, wire } = await open(config, { transports, extensions });
  assert.equal(
    connection.server?.protocolVersion,
    era === 'stateless' ? '2026-07-28' : '2025-11-25',
  );
  return { connection, questions, wire };
}

async function overHttp({ server }: Prepared, era: Era, ...answers: unknown[]) {
  const http = await serveHttp(server, { graceMs: 100, token: TOKEN });
  later(() => http.close());
  const { questions, extension } = answering(...answers);
  const { transports } = compose(plainHost());
  const config = { type: 'http', url: http.url, headers: { Authorization: `Bearer ${TOKEN}` } };
  const extensions = [extension, ...(era === 'stateless' ? inBothEras() : [])];
  const { connection } = await open(config, { transports, extensions });
  return { connection, questions, url: http.url };
}

const names = async (connection: McpConnection) =>
  (await connection.listTools()).map(({ name }) => name);
const bash = (connection: McpConnection, command = 'touch made') =>
  connection.callTool('bash', { command });

// ─── What is offered ───

test('six tools with schemas, titles and honest annotations; over stateless HTTP only those that read', async () => {
  const prepared = prepare();
  const { connection } = await onPipe(prepared, 'handshake');
  const tools = await connection.listTools();
  assert.deepEqual(
    tools.map(({ name }) => name),
    ['read', 'write', 'edit', 'grep', 'glob', 'bash'],
  );
  for (const tool of tools as Json[]) {
    const hints = tool.annotations as Json;
    const isReading = ['read', 'grep', 'glob'].includes(`${tool.name}`);
    assert.deepEqual(
      [hints.readOnlyHint, hints.destructiveHint, hints.openWorldHint],
      [isReading, !isReading, tool.name === 'bash'],
    );
    assert.equal((tool.inputSchema as Json).type, 'object');
    assert.deepEqual(Object.keys(tool).sort(), [
      'annotations',
      'description',
      'inputSchema',
      'name',
      'title',
    ]);
  }
  assert.equal((await names((await onPipe(prepared, 'stateless')).connection)).length, 6);
  assert.equal((await names((await overHttp(prepared, 'handshake')).connection)).length, 6);
  const { connection: alone } = await overHttp(prepared, 'stateless', YES);
  assert.deepEqual(await names(alone), ['read', 'grep', 'glob']);
  assert.match(
    (
      await rejection(
        alone.request('tools/call', { name: 'bash', arguments: { command: 'touch made' } }),
      )
    ).message,
    /Unknown tool: bash/,
  );
  assert.equal(
    (await alone.callTool('read', { path: 'note.txt' })).text.includes('the first line'),
    true,
  );
  assert.equal(prepared.file('made'), undefined);
});

test('--tools narrows, also for a client that knows the others by name', async () => {
  const { connection } = await onPipe(
    prepare({ tools: ['read', 'grep'], mode: 'yolo' }),
    'handshake',
  );
  assert.deepEqual(await names(connection), ['read', 'grep']);
  assert.match((await rejection(bash(connection))).message, /Unknown tool/);
});

// ─── The question ───

for (const era of ERAS) {
  test(`${era}: reading in the folder is free; a command is asked about once, with its words, and runs after a yes`, async () => {
    const prepared = prepare();
    const { connection, questions } = await onPipe(prepared, era, YES);
    assert.match((await connection.callTool('read', { path: 'note.txt' })).text, /the first line/);
    assert.match((await connection.callTool('grep', { pattern: 'first' })).text, /note\.txt:1/);
    assert.equal(questions.length, 0);
    assert.equal((await bash(connection)).isError, false);
    assert.equal(prepared.file('made'), '');
    const [{ message, requestedSchema }] = questions as [Json];
    assert.match(`${message}`, /wants to call bash:\n.*touch made/);
    assert.doesNotMatch(`${message}`, /always/i);
    assert.deepEqual(requestedSchema, {
      type: 'object',
      properties: { allow: { type: 'boolean', title: 'Allow it', default: false } },
      required: ['allow'],
    });
  });

  test(`D30 ${era}: what is not exactly a yes is a no`, async () => {
    const noes = [
      { action: 'decline' },
      { action: 'cancel' },
      { action: 'decline', content: { allow: true } },
      { action: 'accept', content: { allow: false } },
      { action: 'accept', content: {} },
      { action: 'accept' },
      { action: 'accept', content: { allow: 'true' } },
      { action: 'accept', content: { allow: 1 } },
      { action: 'ACCEPT', content: { allow: true } },
      { action: 'accept', content: [true] },
    ];
    const prepared = prepare();
    const { connection, questions } = await onPipe(prepared, era, ...noes);
    for (const no of noes) {
      const { isError, text } = await bash(connection);
      assert.equal(isError, true, JSON.stringify(no));
      assert.match(text, /The user said no/, JSON.stringify(no));
    }
    assert.equal(questions.length, noes.length);
    assert.equal(prepared.file('made'), undefined);
  });

  test(`D30 ${era}: a client that cannot be asked is refused at once, with the rule that would allow it; rule and mode allow`, async () => {
    const prepared = prepare();
    const { connection } = await onPipe(prepared, era);
    const { isError, text } = await bash(connection);
    assert.equal(isError, true);
    assert.match(text, /nobody to ask.*--allow 'bash\(touch made\)'/);
    assert.equal(prepared.file('made'), undefined);
    const ruled = prepare({ texts: { allow: ['bash(touch made)'] } });
    assert.equal((await bash((await onPipe(ruled, era)).connection)).isError, false);
    assert.equal(ruled.file('made'), '');
    const eager = prepare({ mode: 'yolo', texts: { deny: ['bash(rm:*)'] } });
    const { connection: theirs } = await onPipe(eager, era);
    assert.equal((await bash(theirs)).isError, false);
    assert.match((await bash(theirs, 'rm note.txt')).text, /deny "bash\(rm:\*\)"/);
    assert.ok(eager.file('note.txt'));
    const reading = prepare({ mode: 'read-only' });
    assert.match((await bash((await onPipe(reading, era, YES)).connection)).text, /read-only/);
  });

  test(`D30 ${era}: outside the folder nothing is written, asked or not; private keys are shown after a question only`, async () => {
    const prepared = prepare();
    const outside = join(prepared.home, 'stolen.txt');
    const keys = [
      join(prepared.home, '.ssh', 'id_rsa'),
      '.ssh/id_rsa',
      `${prepared.cwd}/x/../.ssh/id_rsa`,
    ];
    const { connection, questions } = await onPipe(
      prepared,
      era,
      ...keys.map(() => ({ action: 'decline' })),
      YES,
    );
    assert.match(
      (await connection.callTool('write', { path: outside, content: 'x' })).text,
      /outside the folder/,
    );
    assert.equal(questions.length, 0);
    assert.equal(existsSync(outside), false);
    for (const path of keys) {
      const { isError, text } = await connection.callTool('read', { path });
      assert.equal(isError, true);
      assert.doesNotMatch(text, /4711/);
    }
    assert.equal(questions.length, keys.length);
    assert.doesNotMatch((await connection.callTool('grep', { pattern: '4711' })).text, /KEY/);
    assert.match((await connection.callTool('read', { path: '.ssh/id_rsa' })).text, /4711/); // a person has agreed
    const { connection: mute } = await onPipe(prepared, era);
    assert.match((await mute.callTool('read', { path: keys[0]! })).text, /nobody to ask/);
  });

  test(`${era}: a change is shown as a diff, must have been read before, and by this client`, async () => {
    const prepared = prepare();
    const { connection, questions } = await onPipe(prepared, era, YES);
    const edit = { path: 'note.txt', old: 'first', new: 'second' };
    assert.match((await connection.callTool('edit', edit)).text, /read/); // before any question
    await connection.callTool('read', { path: 'note.txt' });
    const { connection: other } = await onPipe(prepared, era, YES);
    assert.equal((await other.callTool('edit', edit)).isError, true);
    assert.equal((await connection.callTool('edit', edit)).isError, false);
    assert.match(`${questions[0]!.message}`, /-│ the first line\n.*\+│ the second line/);
    assert.equal(prepared.file('note.txt'), 'the second line\n');
  });
}

test('D30 a silent client is refused in time, and hears that the question is withdrawn', async () => {
  const prepared = prepare({ answerMs: 30 });
  const { config, transports } = pipeTo(prepared);
  const { extension } = answering(silent);
  const { connection, wire } = await open(config, { transports, extensions: [extension] });
  const { isError, text } = await bash(connection);
  assert.equal(isError, true);
  assert.match(text, /did not answer the question within 0\.03 s/);
  assert.ok(
    wire.some(
      ([, { method, params }]) => method === 'notifications/cancelled' && params.requestId === 'q1',
    ),
  );
  assert.equal(prepared.file('made'), undefined);
});

test('D30 a client that answers with an error, or leaves while it is asked, gets nothing done', async () => {
  const prepared = prepare();
  const { config, transports } = pipeTo(prepared);
  const failing: Extension = () => ({
    capabilities: { elicitation: {} },
    handlers: {
      'elicitation/create': () => {
        throw new Error('the window is closed');
      },
    },
  });
  const { connection } = await open(config, { transports, extensions: [failing] });
  assert.match((await bash(connection)).text, /did not answer the question in a way that counts/);
  let asked = () => {};
  const isAsked = new Promise<void>((done) => (asked = done));
  const leaving: Extension = () => ({
    capabilities: { elicitation: {} },
    handlers: {
      'elicitation/create': () => {
        asked();
        return silent as Promise<Json>;
      },
    },
  });
  const { connection: gone } = await open(config, { transports, extensions: [leaving] });
  const lost = rejection(bash(gone));
  await isAsked;
  await gone.close();
  await lost;
  assert.equal(prepared.file('made'), undefined);
});

test('D30 what a question could not show whole is refused, and not cut', async () => {
  const prepared = prepare();
  const { connection, questions } = await onPipe(prepared, 'handshake', YES);
  const { text } = await connection.callTool('write', {
    path: 'long.txt',
    content: 'x'.repeat(200).concat('\n').repeat(1000),
  });
  assert.match(text, /too long to be shown/);
  assert.equal(questions.length, 0);
  assert.equal(prepared.file('long.txt'), undefined);
});

test('D30 what was allowed for good in a chat counts for that chat, not for clients', async () => {
  const prepared = prepare();
  prepared.trust.grant({ kind: 'shell', command: 'touch made' });
  const { connection } = await onPipe(prepared, 'handshake');
  assert.match((await bash(connection)).text, /nobody to ask/);
});

// ─── HTTP ───

test('over HTTP with a handshake the question goes through the stream of the call; what was read belongs to a session', async () => {
  const prepared = prepare();
  const { connection, questions } = await overHttp(prepared, 'handshake', YES, YES, {
    action: 'decline',
  });
  assert.equal((await bash(connection)).isError, false);
  assert.equal(prepared.file('made'), '');
  await connection.callTool('read', { path: 'note.txt' });
  const write = { path: 'note.txt', content: 'all new\n' };
  const { connection: other } = await overHttp(prepared, 'handshake', YES);
  assert.match((await other.callTool('write', write)).text, /read/);
  assert.equal((await connection.callTool('write', write)).isError, false);
  assert.equal(prepared.file('note.txt'), 'all new\n');
  assert.match((await bash(connection, 'rm note.txt')).text, /The user said no/);
  assert.equal(questions.length, 3);
});

test('over stateless HTTP a private key is asked about, in the result', async () => {
  const prepared = prepare();
  const { connection, questions } = await overHttp(
    prepared,
    'stateless',
    { action: 'decline' },
    YES,
  );
  const path = join(prepared.home, '.ssh', 'id_rsa');
  assert.match((await connection.callTool('read', { path })).text, /The user said no/);
  assert.match((await connection.callTool('read', { path })).text, /4711/);
  assert.equal(questions.length, 2);
});

test('D30 without the token, from a foreign page, or with a made-up permission: nothing', async () => {
  const prepared = prepare();
  const { url } = await overHttp(prepared, 'stateless');
  const key = { name: 'read', arguments: { path: join(prepared.home, '.ssh', 'id_rsa') } };
  const _meta = {
    [`${META}protocolVersion`]: '2026-07-28',
    [`${META}clientCapabilities`]: { elicitation: {} },
  };
  const post = async (params: Json, more: Record<string, string> = {}) => {
    const headers = {
      'content-type': 'application/json',
      authorization: `Bearer ${TOKEN}`,
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': 'read',
      ...more,
    };
    const body = JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { ...params, _meta },
    });
    const response = await fetch(url, { method: 'POST', headers, body });
    const text = await response.text();
    assert.doesNotMatch(text, /4711/);
    return { status: response.status, body: JSON.parse(text) };
  };
  assert.equal((await post(key, { authorization: '' })).status, 401);
  assert.equal((await post(key, { authorization: 'Bearer guess' })).status, 401);
  assert.equal((await post(key, { origin: 'https://evil.example' })).status, 403);
  const inputResponses = { answer: YES };
  const forged = await post({ ...key, inputResponses });
  assert.equal(forged.body.result.resultType, 'input_required');
  const { requestState } = forged.body.result;
  const other = { name: 'read', arguments: { path: '.ssh/id_rsa' } };
  const moved = await post({ ...other, inputResponses, requestState });
  assert.match(moved.body.error.message, /belongs to another request/);
  const [text, mac] = requestState.split('.');
  for (const state of [`${text}.${mac.slice(1)}A`, `${text}A.${mac}`, 'x.y', '']) {
    assert.match(
      (await post({ ...key, inputResponses, requestState: state })).body.error.message,
      /not one of ours/,
    );
  }
  const no = await post({
    ...key,
    inputResponses: { answer: { action: 'accept', content: {} } },
    requestState,
  });
  assert.match(no.body.result.content[0].text, /The user said no/);
});

// ─── The user's servers ───

type Behind = {
  tools?: (string | Json)[];
  most?: number;
  answers?: unknown[];
  era?: Era;
  texts?: Given['texts'];
  isLate?: boolean;
};

/** A client of `serve --servers`, with one server of the user behind it, in this process. */
async function passing({
  tools = ['add', 'look'],
  most,
  answers = [],
  era = 'handshake',
  texts,
  isLate,
}: Behind) {
  const behind = heldServer(tools, { isQuick: true });
  const entry: ServerEntry = {
    name: 'notes',
    scope: 'user',
    authority: 'user',
    file: 'settings.json',
    config: { type: 'held' },
  };
  const composition = compose(plainHost());
  const trust = new TrustWithoutGrants({ home: folder(), cwd: folder() });
  const resultsFolder = join(folder(), 'results');
  const manager = {
    load: () => new Map([[entry.name, entry]]),
    transports: { held: behind.factory },
  };
  const passedOn = new PassedOn({ composition, trust, resultsFolder, warn: () => {}, manager });
  const prepared = prepare({ passedOn, trust, most, texts });
  if (!isLate) await passedOn.manager.loadAndConnect();
  later(() => passedOn.manager.disconnectAll());
  return { behind, passedOn, prepared, ...(await onPipe(prepared, era, ...answers)) };
}

for (const era of ERAS) {
  test(`D31 ${era}: the tools of the user's servers pass the gate; what they say of themselves loosens nothing`, async () => {
    const tools = ['add', { name: 'look', annotations: { readOnlyHint: true } }];
    const { connection, questions, behind } = await passing({
      tools,
      era,
      answers: [YES, { action: 'decline' }, { action: 'decline' }],
    });
    const listed = (await connection.listTools()) as Json[];
    const found = listed.find(({ name }) => name === 'notes__look')!;
    assert.equal((found.annotations as Json).readOnlyHint, false);
    assert.equal(
      (await connection.callTool('notes__add', { text: 'milk' })).text,
      '{"text":"milk"}',
    );
    assert.match(
      `${questions[0]!.message}`,
      /the tool "add" of the MCP server "notes"[^]*text: "milk"/,
    );
    for (const name of ['notes__add', 'notes__look'])
      assert.match((await connection.callTool(name, {})).text, /The user said no/);
    assert.deepEqual(
      behind.heard.map(({ name }) => name),
      ['add'],
    );
  });
}

for (const era of ERAS) {
  test(`${era}: a call's trace goes on to the server that does the work, each its own; what is no trace does not`, async () => {
    const { connection, behind } = await passing({ era, texts: { allow: ['mcp__notes__look'] } });
    const parent = (n: number) => `00-${`${n}`.repeat(32)}-${`${n}`.repeat(16)}-01`;
    const look = (text: string, _meta: Json) =>
      connection.request('tools/call', { name: 'notes__look', arguments: { text }, _meta });
    await Promise.all([
      look('one', { traceparent: parent(1), tracestate: 'a=1', baggage: 'user=ada' }),
      look('two', { traceparent: parent(2) }),
      look('none', { traceparent: '00-forged', tracestate: 'b=2' }),
    ]);
    const contexts = behind.heard.map(({ args, meta }) => {
      const { traceparent, tracestate, baggage } = asObject(meta);
      return [args.text, traceparent, tracestate, baggage];
    });
    assert.deepEqual(contexts.sort(), [
      ['none', undefined, undefined, undefined],
      ['one', parent(1), 'a=1', undefined],
      ['two', parent(2), undefined, undefined],
    ]);
  });
}

test('a trace in the environment goes into every request, unless the caller says another', async () => {
  const TRACEPARENT = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
  assert.deepEqual(traceContextOf({}), []);
  assert.deepEqual(traceContextOf({ TRACEPARENT: `${TRACEPARENT}\n` }), []);
  const sent: any[] = [];
  const extensions = traceContextOf({ TRACEPARENT, TRACESTATE: 'x'.repeat(600) });
  const onWire = (direction: string, message: any) => direction === 'out' && sent.push(message);
  const { connection } = await open(
    { command: process.execPath, args: [goodServer] },
    { extensions, onWire },
  );
  await connection.callTool('add', { a: 2, b: 40 });
  await connection.request('ping', { _meta: { traceparent: 'mine' } });
  const [call, ping] = ['tools/call', 'ping'].map((name) =>
    sent.find(({ method }) => method === name),
  );
  assert.deepEqual(
    [call.params._meta, ping.params._meta],
    [{ traceparent: TRACEPARENT }, { traceparent: 'mine' }],
  );
});

test('D31 nobody to ask: refused, unless a rule allows it', async () => {
  const { connection, behind } = await passing({ texts: { allow: ['mcp__notes__look'] } });
  assert.match(
    (await connection.callTool('notes__add', {})).text,
    /nobody to ask.*--allow 'mcp__notes__add'/,
  );
  assert.equal((await connection.callTool('notes__look', {})).isError, false);
  assert.equal(behind.heard.length, 1);
});

test('D31 many tools are searched: two tools find and call them, and the question names the real one', async () => {
  const tools = ['add_note', 'send_mail', 'paint_wall'];
  const { connection, questions, behind } = await passing({
    tools,
    most: 2,
    answers: [YES, { action: 'decline' }],
  });
  assert.deepEqual((await names(connection)).slice(6), ['find_tools', 'call_tool']);
  assert.match(
    (await connection.callTool('find_tools', { query: 'send a mail', limit: 1 })).text,
    /^notes__send_mail \{/,
  );
  const mail = { name: 'notes__send_mail', arguments: { to: 'Ada' } };
  assert.equal((await connection.callTool('call_tool', mail)).text, '{"to":"Ada"}');
  assert.match(`${questions[0]!.message}`, /the tool "send_mail" of the MCP server "notes"/);
  assert.match((await connection.callTool('call_tool', mail)).text, /The user said no/);
  assert.match(
    (await connection.callTool('call_tool', { name: 'bash', arguments: { command: 'touch made' } }))
      .text,
    /There is no tool/,
  );
  assert.match(
    (await connection.callTool('call_tool', { ...mail, arguments: 'x' as never })).text,
    /arguments/,
  );
  assert.equal(behind.heard.length, 1);
});

test('D31 a server that is slow joins later, and clients hear of it; also over stateless HTTP', async () => {
  const { connection, wire, prepared, passedOn } = await passing({ isLate: true });
  assert.equal((await names(connection)).length, 6);
  await passedOn.manager.loadAndConnect();
  await until(() => wire.some(([, { method }]) => method === 'notifications/tools/list_changed'));
  assert.deepEqual((await names(connection)).slice(6), ['notes__add', 'notes__look']);
  const { connection: alone } = await overHttp(prepared, 'stateless');
  const found = await names(alone);
  assert.deepEqual(found, ['read', 'grep', 'glob', 'notes__add', 'notes__look']);
});

/** Real servers behind ours, each a fixture with its words. */
async function realServers(
  given: Record<string, string[]>,
  rules: Given['texts'] = {},
  answerMs?: number,
) {
  const entries = Object.entries(given).map(
    ([name, [file = '', ...words]]): [string, ServerEntry] => {
      const config = { command: process.execPath, args: [join(root, 'fixtures', file), ...words] };
      return [name, { name, scope: 'user', authority: 'user', file: 'settings.json', config }];
    },
  );
  const composition = compose(plainHost({ person: { ...nobody } })); // as the command has it
  const trust = new TrustWithoutGrants({ home: folder(), cwd: folder() });
  const manager = { load: () => new Map(entries) };
  const resultsFolder = join(folder(), 'results');
  const passedOn = new PassedOn({ composition, trust, resultsFolder, warn: () => {}, manager });
  const prepared = prepare({ passedOn, trust, texts: rules, answerMs });
  await passedOn.manager.loadAndConnect();
  later(() => passedOn.manager.disconnectAll());
  return { prepared, passedOn };
}

const ADA = { action: 'accept', content: { name: 'Ada' } };
const BOB = { action: 'accept', content: { name: 'Bob' } };
const askFor = (message: string) => {
  const requestedSchema = { type: 'object', properties: { name: { type: 'string' } } };
  return { method: 'elicitation/create', params: { message, requestedSchema } };
};

for (const era of ERAS) {
  test(`D31 ${era}, over HTTP: what a server asks in the middle of a call is asked of this call's client`, async () => {
    const { prepared } = await realServers({
      old: ['asker.mjs'],
      modern: ['asker.mjs', 'modern'],
    });
    for (const server of ['old', 'modern']) {
      const { connection, questions } = await overHttp(prepared, era, YES, ADA, BOB, YES);
      const ask = (more: Json) => connection.callTool(`${server}__ask`, more);
      const { text } = await ask({ ...askFor('Who is it?'), again: 2 });
      assert.deepEqual(JSON.parse(text), [ADA, BOB]);
      assert.match(`${questions[0]!.message}`, /the tool "ask" of the MCP server/); // our gate
      assert.deepEqual(
        [questions[1]!.message, questions[2]!.message],
        ['Who is it?', 'Who is it?'],
      );
      // What this client has not offered is answered as for nobody.
      const sampling = { method: 'sampling/createMessage', params: { messages: [] } };
      assert.match((await ask(sampling)).text, /nobody can be asked this now/);
    }
  });

  test(`D31 ${era}, over HTTP: resources, prompts and completion of the user's servers, behind the gate`, async () => {
    const allow = ['mcp__books__resources/read', 'mcp__books__change'];
    const { prepared, passedOn } = await realServers(
      { books: ['library.mjs'], ask: ['asker.mjs'] },
      { allow },
    );
    const { connection, questions } = await overHttp(prepared, era, YES, { action: 'decline' });
    const listed = async (method: string, key: string) =>
      (await connection.listAll(method, key)) as Json[];
    const resources = await listed('resources/list', 'resources');
    assert.equal(resources.find(({ uri }) => uri === 'library://rules')!.title, 'House rules');
    const templates = await listed('resources/templates/list', 'resourceTemplates');
    assert.equal(templates[0]!.uriTemplate, 'library://{shelf}/{item}');
    for (const [uri, text] of [
      ['library://rules', 'Be quiet.'],
      ['library://light/lamp', 'a lamp'], // by its template
    ]) {
      const { contents } = await connection.request('resources/read', { uri });
      assert.equal((contents as Json[])[0]!.text, text);
    }
    const long = await connection.request('resources/read', { uri: 'library://long' });
    const [{ text: words }] = long.contents as [{ text: string }];
    assert.equal(JSON.parse(words).length, 300_000); // whole: it is not ours to cut
    const foreign = await rejection(connection.request('resources/read', { uri: 'x://y' }));
    assert.deepEqual([foreign.code, foreign.data], [-32602, { uri: 'x://y' }]);

    const prompts = await listed('prompts/list', 'prompts');
    assert.equal(prompts[0]!.name, 'books__explain');
    const ref = { type: 'ref/prompt', name: 'books__explain' };
    const argument = { name: 'thing', value: 'gra' };
    const { completion } = await connection.request('completion/complete', { ref, argument });
    assert.deepEqual((completion as Json).values, ['gravity', 'grammar']);
    const explain = { name: 'books__explain', arguments: { thing: 'rain' } };
    const { messages } = await connection.request('prompts/get', explain);
    assert.match(JSON.stringify(messages), /Explain rain/);
    assert.match(`${questions[0]!.message}`, /"prompts\/get" of the MCP server "books"/);
    const declined = await rejection(connection.request('prompts/get', explain));
    assert.match(declined.message, /The user said no/);
    const unknown = await rejection(connection.request('prompts/get', { name: 'explain' }));
    assert.match(unknown.message, /Not found: explain/);

    const { wire } = await onPipe(prepared, era, YES).then(async (watching) => {
      const uri = 'library://news';
      if (era === 'handshake') await watching.connection.request('resources/subscribe', { uri });
      else {
        const notifications = { resourceSubscriptions: [uri] };
        void watching.connection.request('subscriptions/listen', { notifications }).catch(() => {});
      }
      await until(() => passedOn.manager.connection('books')!.running.length === 0);
      await watching.connection.callTool('books__change', { uri, text: 'New.' });
      return watching;
    });
    await until(() =>
      wire.some(([, { method, params }]) => {
        return method === 'notifications/resources/updated' && params.uri === 'library://news';
      }),
    );
  });
}

/** Raw calls of the tool `ask` of the server behind ours, as a client without a memory makes them. */
async function poster(prepared: Prepared) {
  const http = await serveHttp(prepared.server, { graceMs: 100, token: TOKEN });
  later(() => http.close());
  return async (more: Json = {}) => {
    const _meta = {
      [`${META}protocolVersion`]: '2026-07-28',
      [`${META}clientCapabilities`]: { elicitation: {} },
    };
    const params = { name: 'old__ask', arguments: askFor('Who is it?'), ...more, _meta };
    const response = await fetch(http.url, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${TOKEN}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': 'tools/call',
        'mcp-name': 'old__ask',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
    });
    return (await response.json()) as any;
  };
}

test('D31 stateless: a state is for one call, and answers count once', async () => {
  const { prepared } = await realServers({ old: ['asker.mjs'] }, { allow: ['mcp__old__ask'] });
  const post = await poster(prepared);
  const { result } = await post();
  assert.equal(result.resultType, 'input_required');
  const { requestState, inputRequests } = result;
  const inputResponses = Object.fromEntries(Object.keys(inputRequests).map((key) => [key, ADA]));
  const other = askFor('Another?');
  const moved = await post({ arguments: other, requestState, inputResponses });
  assert.match(moved.error.message, /belongs to another request/);
  const unasked = await post({ requestState, inputResponses: { made: ADA } });
  assert.deepEqual(unasked.result.inputRequests, inputRequests);
  const done = await post({ requestState, inputResponses });
  assert.match(done.result.content[0].text, /Ada/);
  const again = await post({ requestState, inputResponses });
  assert.match(again.error.message, /Unknown task/);
});

test('D31 stateless: a client that never comes back holds up no other: its call ends with its question', async () => {
  const rules = { allow: ['mcp__old__ask'] };
  const { prepared } = await realServers({ old: ['asker.mjs'] }, rules, 200);
  const post = await poster(prepared);
  const { requestState } = (await post()).result;
  const { connection } = await overHttp(prepared, 'handshake');
  await connection.callTool('old__ask', {}); // it waits for its turn, and gets it
  const { result } = await post({ requestState });
  assert.match(result.content[0].text, /"error":.*timeout/);
});

test("D31 never a project's: neither its servers, nor one that has taken the name of yours", () => {
  const entry = (name: string, more: Partial<ServerEntry>): [string, ServerEntry] => [
    name,
    { name, config: {}, file: '.mcp.json', scope: 'project', authority: 'project', ...more },
  ];
  const warnings: string[] = [];
  const own = usersOwn(
    new Map([
      entry('mine', { authority: 'user' }),
      entry('theirs', {}),
      entry('taken', { shadows: 'settings.json' }),
      entry('forbidden', { authority: 'user', blocked: 'by policy' }),
    ]),
    (text) => warnings.push(text),
  );
  assert.deepEqual([...own.keys()], ['mine']);
  assert.match(warnings.join(), /^taken is not passed on: \.mcp\.json has another/);
});
