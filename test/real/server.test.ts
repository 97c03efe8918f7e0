// Our server (chapter 29) and other people's clients: one script of calls, over stdio and over HTTP.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { httpTransports } from '../../chapters/20-streamable-http/http.ts';
import { inBothEras } from '../../chapters/22-no-handshake/era.ts';
import { serveHttp } from '../../chapters/29-a-server/serve-http.ts';
import { shelf } from '../../chapters/29-a-server/bookshelf.ts';
import { asObject, McpConnection, type Extension, type Json } from '../../mcp.ts';
import { cleanUp, folder, later, root } from '../help/basics.ts';
import { installed } from '../help/installed.ts';

afterEach(cleanUp);

type Place = { command: string; args: string[]; env?: Record<string, string> } | { url: string };
/** What the script needs of a client. */
type Client = {
  version?: string; // that it agreed on
  call: (name: string, args: Json) => Promise<Json>;
  request: (method: string, params: Json) => Promise<Json>;
  close: () => Promise<unknown>;
};
type Open = (place: Place, answer?: Json) => Promise<Client>; // without an answer it cannot be asked

const stdio: Place = {
  command: process.execPath,
  args: ['--import', 'tsx', join(root, 'chapters', '29-a-server', 'bookshelf.ts')],
};

async function http(): Promise<Place> {
  const served = await serveHttp(shelf(), { graceMs: 100 });
  later(() => served.close());
  return { url: served.url };
}

const ours =
  (extensions: () => Extension[]): Open =>
  async (place, answer) => {
    const asks: Extension = () => ({
      capabilities: { elicitation: {} },
      handlers: { 'elicitation/create': () => answer! },
    });
    const config = 'url' in place ? { type: 'http', ...place } : { ...place };
    const connection = new McpConnection('shelf', config, {
      transports: httpTransports,
      extensions: [asks, ...extensions()],
    });
    later(() => connection.close());
    await connection.connect();
    const { protocolVersion } = await connection.initialize();
    return {
      version: protocolVersion,
      call: (name, args) => connection.callTool(name, args) as Promise<Json>,
      request: (method, params) => connection.request(method, params),
      close: () => connection.close(),
    };
  };

const load = (...path: string[]) => import(pathToFileURL(join(...path)).href);

const v1: Open = async (place, answer) => {
  const esm = join(
    installed('@modelcontextprotocol/sdk@1.32.2'),
    'node_modules/@modelcontextprotocol/sdk/dist/esm',
  );
  const { Client } = await load(esm, 'client/index.js');
  const { StdioClientTransport } = await load(esm, 'client/stdio.js');
  const { StreamableHTTPClientTransport } = await load(esm, 'client/streamableHttp.js');
  const { ElicitRequestSchema, ResultSchema } = await load(esm, 'types.js');
  const client = new Client(
    { name: 'v1', version: '1' },
    { capabilities: answer ? { elicitation: {} } : {} },
  );
  if (answer) client.setRequestHandler(ElicitRequestSchema, () => answer);
  const transport =
    'url' in place
      ? new StreamableHTTPClientTransport(new URL(place.url))
      : new StdioClientTransport(place);
  await client.connect(transport);
  return {
    call: (name, args) => client.callTool({ name, arguments: args }),
    request: (method, params) =>
      client.request({ method, params }, ResultSchema.passthrough?.() ?? ResultSchema),
    close: () => client.close(),
  };
};

const v2 =
  (options: Json): Open =>
  async (place, answer) => {
    const dist = join(
      installed('@modelcontextprotocol/client@2.4.0'),
      'node_modules/@modelcontextprotocol/client/dist',
    );
    const { Client, StreamableHTTPClientTransport } = await load(dist, 'index.mjs');
    const { StdioClientTransport } = await load(dist, 'stdio.mjs');
    const client = new Client(
      { name: 'v2', version: '1' },
      { capabilities: answer ? { elicitation: {} } : {}, ...options },
    );
    if (answer) client.setRequestHandler('elicitation/create', () => answer);
    const transport =
      'url' in place
        ? new StreamableHTTPClientTransport(new URL(place.url))
        : new StdioClientTransport(place);
    await client.connect(transport);
    const methods: Record<string, (params: any) => Promise<Json>> = {
      'tools/list': (params) => client.listTools(params),
      'resources/list': (params) => client.listResources(params),
      'resources/read': (params) => client.readResource(params),
      'prompts/get': (params) => client.getPrompt(params),
      'completion/complete': (params) => client.complete(params),
    };
    return {
      call: (name, args) => client.callTool({ name, arguments: args }),
      request: (method, params) => methods[method]!(params),
      close: () => client.close(),
    };
  };

const clients: Record<string, Open> = {
  'ours, with a handshake': ours(() => []),
  'ours, in both eras': ours(() => inBothEras()),
  'SDK v1': v1,
  'SDK v2': v2({}),
  'SDK v2, auto': v2({ versionNegotiation: { mode: 'auto' } }),
};

const textIn = (result: Json) => asObject((result.content as Json[])[0]).text;

async function script(client: Client): Promise<void> {
  const { tools } = (await client.request('tools/list', {})) as { tools: Json[] };
  assert.deepEqual(
    tools.map(({ name }) => name),
    ['find', 'lend'],
  );
  assert.equal(textIn(await client.call('find', { pattern: 'ishmael' })), 'Moby-Dick');
  const misfit = await client.call('find', {});
  assert.deepEqual([misfit.isError, textIn(misfit)], [true, 'pattern: is missing']);
  await assert.rejects(client.call('burn', {}), /Unknown tool|burn/);
  const { contents } = (await client.request('resources/read', { uri: 'shelf://book/moby' })) as {
    contents: Json[];
  };
  assert.equal(contents[0]!.text, 'Call me Ishmael.');
  await assert.rejects(client.request('resources/read', { uri: 'shelf://nothing' }), /not found/);
  const { messages } = (await client.request('prompts/get', {
    name: 'recommend',
    arguments: { mood: 'sad' },
  })) as { messages: Json[] };
  assert.match(`${asObject(messages[0]!.content).text}`, /someone who is sad/);
  const { completion } = await client.request('completion/complete', {
    ref: { type: 'ref/resource', uri: 'shelf://book/{id}' },
    argument: { name: 'id', value: 'm' },
  });
  assert.deepEqual(asObject(completion).values, ['moby']);
  assert.equal(
    textIn(await client.call('lend', { id: 'emma', to: 'Ada' })),
    'Emma is lent to Ada.',
  );
  const again = await client.call('lend', { id: 'emma', to: 'Bob' });
  assert.deepEqual([again.isError, textIn(again)], [true, 'Emma is lent to Ada']);
}

for (const [name, open] of Object.entries(clients))
  for (const [where, place] of [
    ['stdio', async () => stdio],
    ['HTTP', http],
  ] as const)
    test(`${name}, over ${where}: the script passes`, async () => {
      const client = await open(await place(), { action: 'accept', content: { allow: true } });
      if (name === 'ours, in both eras') assert.equal(client.version, '2026-07-28');
      await script(client);
      await client.close();
    });

test('a client that accepts what a form proposes has not said yes', async () => {
  for (const open of [v1, v2({ versionNegotiation: { mode: 'auto' } })]) {
    const client = await open(await http(), { action: 'accept', content: { allow: false } });
    assert.equal(
      textIn(await client.call('lend', { id: 'emma', to: 'Ada' })),
      'The owner said no.',
    );
    await client.close();
  }
});

/** What a client's person answers, and what then becomes of a command. */
const PERSONS: [who: string, answer: Json | undefined, bash: RegExp][] = [
  ['agrees', { action: 'accept', content: { allow: true } }, /exit code 0/],
  [
    'accepts what is proposed',
    { action: 'accept', content: { allow: false } },
    /^The user said no\.$/,
  ],
  ['declines', { action: 'decline' }, /^The user said no\.$/],
  [
    'cannot be asked',
    undefined,
    /^Not allowed: bash needs your permission.*--allow 'bash\(touch made\)'/,
  ],
];
for (const [name, open] of [
  ['SDK v1', v1],
  ['SDK v2, auto', v2({ versionNegotiation: { mode: 'auto' } })],
] as const)
  test(`the agent as a server, with ${name}: reading is free, a command is asked about, outside nothing is written`, async () => {
    for (const [who, answer, bash] of PERSONS) {
      const [home, cwd, outside] = [folder(), folder(), folder()];
      writeFileSync(join(cwd, 'note.txt'), 'the first line\n');
      const args = ['--import', 'tsx', join(root, 'agent.ts'), 'serve', cwd];
      const client = await open(
        { command: process.execPath, args, env: { PATH: process.env.PATH!, HOME: home } },
        answer,
      );
      assert.match(
        `${textIn(await client.call('read', { path: 'note.txt' }))}`,
        /the first line/,
        who,
      );
      assert.match(`${textIn(await client.call('bash', { command: 'touch made' }))}`, bash, who);
      assert.equal(existsSync(join(cwd, 'made')), who === 'agrees', who);
      const stolen = join(outside, 'stolen.txt');
      assert.match(
        `${textIn(await client.call('write', { path: stolen, content: 'x' }))}`,
        /^Not allowed: .* is outside the folder/,
        who,
      );
      assert.equal(existsSync(stolen), false, who);
      await client.close();
    }
  });

test('mcporter: lists, calls, and hears that a question needs a client that can be asked', async () => {
  const cli = join(installed('mcporter@0.9.0'), 'node_modules', 'mcporter', 'dist', 'cli.js');
  const home = folder();
  const run = async (...args: string[]) => {
    const options = { cwd: home, env: { PATH: process.env.PATH, HOME: home } };
    const { stdout } = await promisify(execFile)(process.execPath, [cli, ...args], options).catch(
      (error) => error,
    );
    return `${stdout}`;
  };
  const { url } = (await http()) as { url: string };
  // mcporter takes a command apart at its spaces, and there may be one in our path.
  const plain = mkdtempSync(join(tmpdir(), 'shelf-'));
  later(() => rmSync(plain, { recursive: true, force: true }));
  const file = join(root, 'chapters/29-a-server/bookshelf.ts');
  const lines = [
    `process.argv[1] = ${JSON.stringify(file)};`,
    `await import(${JSON.stringify(pathToFileURL(file).href)});`,
  ];
  writeFileSync(join(plain, 'start.mjs'), lines.join('\n'));
  const loader = pathToFileURL(join(root, 'node_modules/tsx/dist/esm/index.mjs')).href;
  const start = `${process.execPath} --import ${loader} ${join(plain, 'start.mjs')}`;
  for (const place of [
    ['--http-url', url, '--allow-http'],
    ['--stdio', start],
  ]) {
    assert.match(await run('list', ...place, '--name', 'shelf', '--schema'), /find[^]*lend/);
    assert.match(
      await run(
        'call',
        ...place,
        '--name',
        'shelf',
        '--tool',
        'find',
        '--args',
        '{"pattern":"ishmael"}',
      ),
      /^Moby-Dick\s*$/,
    );
    assert.match(
      await run(
        'call',
        ...place,
        '--name',
        'shelf',
        '--tool',
        'lend',
        '--args',
        '{"id":"emma","to":"Ada"}',
      ),
      /capability elicitation is needed/,
    );
  }
});
