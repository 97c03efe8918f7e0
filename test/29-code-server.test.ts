// The code server on the wire: six tools, its resources, a strict embedding server, and the agent that has it built in.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { dirname, join } from 'node:path';
import { afterEach, test } from 'node:test';
import { Roots } from '../chapters/16-hands/paths.ts';
import { eitherEra } from '../chapters/22-no-handshake/era.ts';
import { builtIn } from '../chapters/25-other-pipes/in-process.ts';
import { CodeIndex } from '../chapters/29-a-server/code/code-index.ts';
import { codeRows } from '../chapters/29-a-server/code/code-rows.ts';
import { codeServer, type CodeOptions } from '../chapters/29-a-server/code/code-server.ts';
import { Embeddings } from '../chapters/29-a-server/embeddings.ts';
import { overPipe } from '../chapters/29-a-server/pipe.ts';
import { CodeTree } from '../chapters/29-a-server/tree.ts';
import { McpConnection, type Json } from '../mcp.ts';
import { calls, prepareAgent } from './help/agent-with-gate.ts';
import { cleanUp, folder, later, onLoopback, root, until } from './help/basics.ts';

afterEach(cleanUp);
const FILES = {
  'src/session.ts':
    'export function closeIdle(sessions) {\n  for (const one of sessions) one.close();\n}\n',
  'src/report.ts': 'export function writeReport(lines) {\n  return lines.join("\\n");\n}\n',
  'README.md': '# Sessions\n\nThey end by themselves.\n',
  '.env': 'TOKEN=secret\n',
};

function place(files: Record<string, string> = FILES): string {
  const at = folder();
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(at, name)), { recursive: true });
    writeFileSync(join(at, name), content);
  }
  return at;
}

async function open(at: string, options: Partial<CodeOptions> = {}, extensions: any[] = []) {
  const { server } = codeServer({
    roots: new Roots(at),
    searchTimeoutMs: 1000,
    ...options,
  });
  const transports = { 'in-process': builtIn(overPipe(server)) };
  const updates: string[] = [];
  const connection = new McpConnection(
    'code',
    { type: 'in-process', name: 'code' },
    {
      transports,
      extensions: [
        ...extensions,
        () => ({
          handlers: { 'notifications/resources/updated': ({ uri }: any) => void updates.push(uri) },
        }),
      ],
    },
  );
  later(() => connection.close());
  await connection.connect();
  await connection.initialize();
  const call = async (name: string, args: Json = {}) => {
    const { structuredContent, text, isError } = await connection.callTool(name, args);
    return { ...(structuredContent as any), text, isError };
  };
  return { server, connection, call, updates };
}

test('six tools, all of which only read, with schemas that every client takes', async () => {
  const { connection } = await open(place());
  const tools = (await connection.listTools()) as any[];
  const names = tools.map(({ name }) => name);
  assert.deepEqual(names, [
    'search_code',
    'search_by_embedding',
    'list_directory',
    'read_file',
    'chunk_file',
    'chunk_files',
  ]);
  for (const { name, annotations, inputSchema: schema } of tools) {
    assert.deepEqual(annotations, { readOnlyHint: true, openWorldHint: false }, name);
    assert.equal(schema.type, 'object', name);
    assert.ok(!('$schema' in schema) && !('anyOf' in schema), name);
  }
});

for (const era of ['handshake', 'stateless'] as const)
  test(`each tool answers with structure and with the same as text (${era})`, async () => {
    const { call } = await open(place(), {}, era === 'stateless' ? [eitherEra({})] : []);
    const found = await call('search_code', { query: 'close' });
    assert.deepEqual(
      found.results.map(({ file_path, line_number, column }: any) => [
        file_path,
        line_number,
        column,
      ]),
      [
        ['src/session.ts', 1, 17],
        ['src/session.ts', 2, 35],
      ],
    );
    assert.deepEqual(JSON.parse(found.text).results, found.results);
    assert.equal((await call('search_code', { query: 'e', max_results: 1 })).is_cut, true);
    const meant = await call('search_by_embedding', { query: 'where are idle sessions closed' });
    assert.deepEqual(
      [meant.results[0].symbol, meant.results[0].file_path, meant.ranked_by],
      ['closeIdle', 'src/session.ts', 'words'],
    );
    const listed = await call('list_directory', { path: 'src' });
    assert.deepEqual(
      listed.entries.map(({ name, type }: any) => `${type} ${name}`),
      ['file report.ts', 'file session.ts'],
    );
    assert.equal(
      (await call('read_file', { file_path: 'src/report.ts', offset: 2, limit: 1 })).text,
      '  return lines.join("\\n");\n[lines 2 to 2 of 3]',
    );
    assert.deepEqual(
      (await call('chunk_file', { file_path: 'src/report.ts' })).chunks.map(
        ({ symbol, start_line, end_line }: any) => [symbol, start_line, end_line],
      ),
      [['writeReport', 1, 3]],
    );
    const { files } = await call('chunk_files', { file_paths: ['src/session.ts', 'nothing.ts'] });
    assert.equal(files[0].chunks.length, 1);
    assert.match(files[1].error, /there is no such file/);
  });

test('nothing outside of the folder and no secret, by no tool; a hostile pattern ends', async () => {
  const outside = place({ 'x.ts': 'hidden treasure' });
  const at = place({
    ...FILES,
    'aaa.txt': `${'a'.repeat(40)}!`,
    'private/plan.ts': 'hidden treasure',
  });
  symlinkSync(outside, join(at, 'out'));
  const { call } = await open(at, { isHidden: (real) => real.includes('/private/') });
  for (const file_path of [
    '../x',
    join(outside, 'x.ts'),
    'out/x.ts',
    '/etc/passwd',
    '.env',
    'private/plan.ts',
    'a\0b',
  ])
    for (const [tool, args] of [
      ['read_file', { file_path }],
      ['chunk_file', { file_path }],
      ['list_directory', { path: file_path }],
    ] as const) {
      const { isError, text } = await call(tool, args);
      assert.equal(isError, true, `${tool} ${file_path}`);
      assert.doesNotMatch(text, /treasure|secret\n|root:/);
    }
  assert.deepEqual((await call('search_code', { query: 'treasure' })).results, []);
  assert.deepEqual((await call('search_by_embedding', { query: 'hidden treasure' })).results, []);
  assert.match(
    (await call('search_code', { query: '^(a+)+$', regex: true })).text,
    /was stopped after 1 s/,
  );
  assert.match((await call('search_code', { query: '(', regex: true })).text, /Unterminated group/);
  assert.match((await call('search_code', { query: 7 })).text, /query/);
});

test('what .gitignore leaves out is left out by each tool', async () => {
  const at = place({
    ...FILES,
    '.gitignore': 'built/\n*.log\n',
    'built/out.ts': 'treasure',
    'a.log': 'treasure',
    'src/.gitignore': 'own.ts\n',
    'src/own.ts': 'treasure',
  });
  const { call } = await open(at);
  for (const file_path of ['built/out.ts', 'a.log', 'src/own.ts', './src/../a.log']) {
    for (const tool of ['read_file', 'chunk_file']) {
      assert.match(
        (await call(tool, { file_path })).text,
        /is not shown: \.gitignore leaves it out/,
        `${tool} ${file_path}`,
      );
    }
    assert.match(
      (await call('chunk_files', { file_paths: [file_path] })).files[0].error,
      /gitignore/,
    );
  }
  const names = async (path: string) =>
    (await call('list_directory', { path })).entries.map(({ name }: any) => name);
  assert.deepEqual(await names('.'), ['.env', '.gitignore', 'README.md', 'src']);
  assert.deepEqual(await names('src'), ['.gitignore', 'report.ts', 'session.ts']);
  assert.match((await call('list_directory', { path: 'built' })).text, /gitignore leaves it out/);
  for (const tool of ['search_code', 'search_by_embedding'])
    assert.deepEqual((await call(tool, { query: 'treasure' })).results, [], tool);
});

test('resources: help, all files, and news of changes', async () => {
  const at = place();
  const { connection, call, updates } = await open(at);
  const read = async (uri: string) =>
    ((await connection.request('resources/read', { uri })).contents as any)[0].text;
  assert.match(await read('codebase://search'), /search_by_embedding/);
  assert.deepEqual(
    JSON.parse(await read('codebase://files')).files.map(({ path }: any) => path),
    ['README.md', 'src/report.ts', 'src/session.ts'],
  );
  await connection.request('resources/subscribe', { uri: 'codebase://files' });
  writeFileSync(join(at, 'new.ts'), 'fresh');
  assert.equal((await call('search_code', { query: 'fresh' })).results.length, 1);
  assert.deepEqual(updates, ['codebase://files']);
});

test('an embedding model that never answers costs its opinion, and not the search', async () => {
  const url = `${await onLoopback(createServer(() => {}))}/v1`;
  const embeddings = new Embeddings({ url, model: 'asleep' });
  const { signal } = new AbortController();
  const index = new CodeIndex(new CodeTree({ roots: new Roots(place()) }), {
    embeddings,
    patienceMs: 100,
  });
  await index.update(signal);
  const { results, ranked_by, notes } = await index.search('close idle sessions', 1, signal);
  assert.deepEqual([results[0]!.symbol, ranked_by], ['closeIdle', 'words']);
  assert.match(notes.join(), /ranked by words only: asleep did not answer within 0.1 s/);
});

// ─── A real embedding model, or what looks like one ──────────────────────────────────────────────────────────

/** Meaning, for this model, is which of these words are there. What is wrong with a request is a 400 and a problem. */
const AXES = [/clos|end/i, /report|write/i, /shut|idle/i, /./s];
type Manner = {
  maxChars?: number;
  busy?: number;
  dimension?: number;
  status?: number;
  broken?: string;
};

async function startEmbeddingServer(manner: Manner = {}) {
  const problems: string[] = [];
  const inputs: string[][] = [];
  let running = 0;
  let most = 0;
  const server = createServer(async (request, response) => {
    most = Math.max(most, ++running);
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    running--;
    const answer = (status: number, body: unknown, headers = {}) =>
      response
        .writeHead(status, { 'Content-Type': 'application/json', ...headers })
        .end(JSON.stringify(body));
    const { model, input, ...rest } = JSON.parse(Buffer.concat(parts).toString());
    if (request.method !== 'POST' || request.url !== '/v1/embeddings')
      problems.push(`${request.method} ${request.url}`);
    if (request.headers['content-type'] !== 'application/json') problems.push('content type');
    if (request.headers.authorization !== 'Bearer the-key') problems.push('no key');
    if (model !== 'tiny' || Object.keys(rest).length > 0)
      problems.push(`fields ${Object.keys(rest)}`);
    if (
      !Array.isArray(input) ||
      input.length === 0 ||
      input.length > 32 ||
      !input.every((each) => typeof each === 'string' && each !== '')
    )
      problems.push('input');
    if (manner.status) return void answer(manner.status, { error: { message: 'no' } });
    if (manner.busy && manner.busy-- > 0)
      return void answer(429, { error: 'busy' }, { 'Retry-After': '0' });
    if (manner.maxChars && input.some((each: string) => each.length > manner.maxChars!))
      return void answer(500, {
        error: { message: 'input is too large to process. increase the physical batch size' },
      });
    inputs.push(input);
    if (manner.broken) return void response.end(manner.broken);
    const data = input.map((text: string, index: number) => {
      const embedding = AXES.map((axis) => (axis.test(text) ? 3 : 0));
      return {
        object: 'embedding',
        index,
        embedding: [...embedding, ...Array(manner.dimension ?? 0).fill(0)],
      };
    });
    answer(200, { object: 'list', model, data: data.reverse(), usage: {} }); // in any order
  });
  const url = `${await onLoopback(server)}/v1`;
  const embeddings = new Embeddings({ url, model: 'tiny', key: 'the-key' });
  return { url, embeddings, problems, inputs, most: () => most };
}

const sent = (inputs: string[][]) => inputs.flat().length;

test('with an embedding model, words and vectors are fused, in batches, and a text is sent once', async () => {
  const many = Object.fromEntries(
    Array.from({ length: 40 }, (_, n) => [
      `lib/f${n}.ts`,
      `export function filler${n}() {\n  return ${n} + ${n};\n}\n`,
    ]),
  );
  const at = place({ ...FILES, ...many });
  const model = await startEmbeddingServer();
  const { call } = await open(at, { embeddings: model.embeddings });
  // No word of the question is in the function: only the model can know.
  const found = await call('search_by_embedding', { query: 'shut down' });
  assert.equal(found.ranked_by, 'words and tiny');
  assert.equal(found.results[0].symbol, 'closeIdle');
  assert.deepEqual(model.problems, []);
  const [chunks, first] = [sent(model.inputs) - 1, model.inputs.length];
  assert.ok(chunks >= 42 && first <= 8, `${chunks} chunks in ${first} requests`);
  assert.ok(model.most() <= 2);
  await call('search_by_embedding', { query: 'shut down' });
  assert.equal(sent(model.inputs), chunks + 2); // the question only
  const file = join(at, 'src/report.ts');
  writeFileSync(file, `${FILES['src/report.ts']}\n`.replace('writeReport', 'writeReports'));
  utimesSync(file, 1, 1);
  await call('search_by_embedding', { query: 'reports' });
  assert.equal(sent(model.inputs), chunks + 4); // one chunk, one question
});

test('a model that is busy is waited for; one that takes less gets less', async () => {
  const busy = await startEmbeddingServer({ busy: 2 });
  const patient = await open(place(), { embeddings: busy.embeddings });
  assert.equal(
    (await patient.call('search_by_embedding', { query: 'shut down' })).ranked_by,
    'words and tiny',
  );
  const small = await startEmbeddingServer({ maxChars: 700 });
  const long = {
    ...FILES,
    'src/long.ts': `export function writeLong() {\n${'  write(1234567890123456789012345678901234567890);\n'.repeat(25)}}\n`,
  };
  const frugal = await open(place(long), { embeddings: small.embeddings });
  const found = await frugal.call('search_by_embedding', { query: 'write' });
  assert.equal(found.ranked_by, 'words and tiny');
  assert.deepEqual(
    found.notes.filter((note: string) => /vector/.test(note)),
    [],
  );
  const none = await startEmbeddingServer({ maxChars: 60 });
  const stubborn = await open(place(long), { embeddings: none.embeddings });
  assert.match(
    (await stubborn.call('search_by_embedding', { query: 'write' })).notes.join(),
    /took no vector of [1-4] chunks/,
  );
});

test('a model that is down, refuses or talks nonsense costs its opinion, not the search', async () => {
  const gone = new Embeddings({ url: 'http://127.0.0.1:9/v1', model: 'tiny' });
  const refusing = (await startEmbeddingServer({ status: 401 })).embeddings;
  const nonsense = (await startEmbeddingServer({ broken: '{"data":[{"index":0,"embedding":[]}]}' }))
    .embeddings;
  const page = (await startEmbeddingServer({ broken: '<html>' })).embeddings;
  for (const [embeddings, why] of [
    [gone, /cannot reach the embedding model tiny .*ECONNREFUSED/],
    [refusing, /answered 401/],
    [nonsense, /sent no vector/],
    [page, /sent no vector/],
  ] as const) {
    const { call } = await open(place(), { embeddings });
    const { ranked_by, results, notes } = await call('search_by_embedding', {
      query: 'close idle sessions',
    });
    assert.deepEqual([ranked_by, results[0].symbol], ['words', 'closeIdle']);
    assert.match(notes.join(), why);
  }
  assert.equal(Embeddings.from({ EMBEDDINGS_URL: 'http://x/v1' }), undefined);
  assert.throws(
    () => Embeddings.from({ EMBEDDINGS_URL: 'file:///x', EMBEDDINGS_MODEL: 'm' }),
    /base URL of the embedding model m begins with file:/,
  );
});

test('as a program it serves the folder that it is given, on stdio', async () => {
  const program = join(root, 'chapters', '29-a-server', 'code', 'code.ts');
  const config = {
    command: process.execPath,
    args: ['--import', 'tsx', program, place()],
    cwd: root,
  };
  const connection = new McpConnection('code', config);
  later(() => connection.close());
  await connection.connect();
  await connection.initialize();
  const { structuredContent } = await connection.callTool('search_code', { query: 'writeReport' });
  assert.equal((structuredContent as any).results[0].file_path, 'src/report.ts');
});

test('G41: over HTTP it wants a token, also on this machine', async () => {
  const program = join(root, 'chapters', '29-a-server', 'code', 'code.ts');
  const child = spawn(process.execPath, ['--import', 'tsx', program, place(), '--http', '0'], {
    cwd: root,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  later(() => child.kill());
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text) => (said += text));
  await until(() => /Bearer \S+\n/.test(said), 'its token');
  const [, url = ''] = /listens at (\S+),/.exec(said)!;
  const [, token = ''] = /Bearer (\S+)/.exec(said)!;
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
  };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' });
  const post = (more = {}) =>
    fetch(url, { method: 'POST', body, headers: { ...headers, ...more } });
  assert.equal((await post()).status, 401);
  assert.notEqual((await post({ authorization: `Bearer ${token}` })).status, 401);
});

// ─── Built in ────────────────────────────────────────────────────────────────────────────────────────────────

test('our own model has search by meaning and chunks, unasked inside the folder; a rule can forbid it', async () => {
  const at = place();
  const roots = new Roots(at);
  const rows = codeRows({ roots, isHidden: () => false, resultsFolder: folder() }, {});
  assert.deepEqual(
    rows.map(({ definition }) => definition.name),
    ['mcp__code__search_by_embedding', 'mcp__code__chunk_file', 'mcp__code__chunk_files'],
  );
  const run = async (name: string, args: Json, rules = {}) => {
    const { agent, results } = prepareAgent({
      cwd: at,
      tools: rows,
      rules,
      script: calls([name, args]),
    });
    await agent.chat('go');
    return results()[0]!.text;
  };
  assert.match(
    await run('mcp__code__search_by_embedding', { query: 'close idle sessions' }),
    /closeIdle/,
  );
  assert.match(await run('mcp__code__chunk_file', { file_path: 'src/report.ts' }), /writeReport/);
  assert.match(
    await run('mcp__code__chunk_file', { file_path: '/etc/passwd' }),
    /outside the folder, and there is nobody to ask/,
  );
  assert.match(
    await run('mcp__code__chunk_files', { file_paths: ['/etc/passwd', '.env'] }),
    /outside of the folder[^]*not shown/,
  );
  assert.match(
    await run(
      'mcp__code__search_by_embedding',
      { query: 'x' },
      { deny: ['mcp__code__search_by_embedding'] },
    ),
    /Not allowed/,
  );
});
