// npm run recordings [NAME …]: real servers from npm are recorded, the recording plays them, and what is recorded then
// is compared with the first: the same but for ids, tokens and times. Prints a table; exits with 1 if one differs.

import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { httpTransports } from '../../chapters/20-streamable-http/http.ts';
import { inBothEras } from '../../chapters/22-no-handshake/era.ts';
import { serveHttp } from '../../chapters/29-a-server/serve-http.ts';
import { checkTrace } from '../../chapters/30-seeing/check.ts';
import { ReplayServer, replayTransport } from '../../chapters/30-seeing/replay-wires.ts';
import { Replay } from '../../chapters/30-seeing/replay.ts';
import { isResponse, isRequest, readTrace } from '../../chapters/30-seeing/more/read-trace.ts';
import { McpConnection, textOf, type Extension, type Json } from '../../mcp.ts';
import { installed, root } from '../help/installed.ts';

type Call = [tool: string, args: Json];
export type Kind = {
  name: string;
  from: string | string[];
  file: string;
  args?: string[];
  env?: Record<string, string>;
  files?: Record<string, string>;
  calls?: Call[];
  isOld?: boolean; // our client shakes hands only
};

// {dir} is where the package is installed, {run} a folder for this run.
export const KINDS: Kind[] = [
  {
    name: 'everything',
    from: '@modelcontextprotocol/server-everything@2026.8.31',
    file: '@modelcontextprotocol/server-everything/dist/index.js',
    calls: [
      ['echo', { message: 'hello' }],
      ['get-sum', { a: 2, b: 40 }],
      ['get-tiny-image', {}],
      ['trigger-long-running-operation', { duration: 0.2, steps: 2 }],
    ],
  },
  {
    name: 'filesystem',
    from: '@modelcontextprotocol/server-filesystem@2026.8.31',
    file: '@modelcontextprotocol/server-filesystem/dist/index.js',
    args: ['{run}'],
    files: { 'hello.txt': 'hello from the zoo\n' },
    calls: [
      ['read_text_file', { path: '{run}/hello.txt' }],
      ['list_directory', { path: '{run}' }],
    ],
  },
  {
    name: 'memory',
    from: '@modelcontextprotocol/server-memory@2026.8.31',
    file: '@modelcontextprotocol/server-memory/dist/index.js',
    env: { MEMORY_FILE_PATH: '{run}/m.json' },
    calls: [
      [
        'create_entities',
        { entities: [{ name: 'Ada', entityType: 'person', observations: ['writes'] }] },
      ],
      ['read_graph', {}],
    ],
  },
  {
    name: 'agent-commands',
    from: '@agent-infra/mcp-server-commands@1.2.18',
    file: '@agent-infra/mcp-server-commands/dist/index.cjs',
    calls: [['run_command', { command: 'echo hello' }]],
  },
  {
    name: 'brightdata',
    from: '@brightdata/mcp@2.11.3',
    file: '@brightdata/mcp/server.js',
    env: { API_TOKEN: 'x' },
  },
  {
    name: 'git',
    from: '@cyanheads/git-mcp-server@2.15.3',
    file: '@cyanheads/git-mcp-server/dist/index.js',
  },
  {
    name: 'knowledge-graph',
    from: '@itseasy21/mcp-knowledge-graph@1.0.7',
    file: '@itseasy21/mcp-knowledge-graph/dist/index.js',
    args: ['--memory-path', '{run}/k.jsonl'],
    calls: [['read_graph', {}]],
  },
  {
    name: 'shadcn-jpisnice',
    from: '@jpisnice/shadcn-ui-mcp-server@2.0.0',
    file: '@jpisnice/shadcn-ui-mcp-server/build/index.js',
  },
  {
    name: 'kubernetes',
    from: 'mcp-server-kubernetes@4.1.7',
    file: 'mcp-server-kubernetes/dist/index.js',
  },
  {
    name: 'sqlite',
    from: 'mcp-server-sqlite@0.0.2',
    file: 'mcp-server-sqlite/dist/cli.js',
    args: ['{run}/t.db'],
  },
  {
    name: 'mongodb',
    from: 'mongodb-mcp-server@3.0.4',
    file: 'mongodb-mcp-server/dist/esm/index.js',
    env: { MDB_MCP_TELEMETRY: 'disabled' },
  },
  {
    name: 'context7',
    from: '@upstash/context7-mcp@4.1.1',
    file: '@upstash/context7-mcp/dist/index.js',
  },
  {
    name: 'chrome-devtools',
    from: 'chrome-devtools-mcp@1.11.0',
    file: 'chrome-devtools-mcp/build/src/bin/chrome-devtools-mcp.js',
    args: ['--headless', '--isolated'],
  },
  { name: 'flowbite', from: 'flowbite-mcp@1.1.5', file: 'flowbite-mcp/build/index.js' },
  { name: 'knip', from: '@knip/mcp@0.0.36', file: '@knip/mcp/src/cli.js' },
  {
    name: 'mapbox',
    from: '@mapbox/mcp-server@0.14.0',
    file: '@mapbox/mcp-server/dist/esm/index.js',
    env: { MAPBOX_ACCESS_TOKEN: 'eyJhbGciOiJIUzI1NiJ9.eyJ1IjoieiJ9.c2ln' },
  },
  {
    name: 'openapi-resources',
    from: 'mcp-openapi-schema-explorer@1.3.4',
    file: 'mcp-openapi-schema-explorer/dist/src/index.js',
    args: ['{run}/api.json'],
    files: {
      'api.json':
        '{"openapi":"3.0.0","info":{"title":"zoo","version":"1"},"paths":{"/a":{"get":{"responses":{"200":{"description":"ok"}}}}}}',
    },
  },
  { name: 'primeng', from: '@primeng/mcp@22.1.1', file: '@primeng/mcp/dist/index.js' },
  { name: 'primevue', from: '@primevue/mcp@5.0.1', file: '@primevue/mcp/dist/index.js' },
  {
    name: 'shrimp',
    from: 'mcp-shrimp-task-manager@1.0.21',
    file: 'mcp-shrimp-task-manager/dist/index.js',
    env: { DATA_DIR: '{run}', TEMPLATES_USE: 'en', ENABLE_GUI: 'false' },
    calls: [['list_tasks', { status: 'all' }]],
  },
  {
    name: 'linear',
    from: '@tacticlaunch/mcp-linear@1.4.3',
    file: '@tacticlaunch/mcp-linear/dist/index.js',
    env: { LINEAR_API_TOKEN: 'x' },
  },
  {
    name: 'gitlab',
    from: '@zereight/mcp-gitlab@2.1.64',
    file: '@zereight/mcp-gitlab/build/index.js',
    env: { GITLAB_PERSONAL_ACCESS_TOKEN: 'x' },
  },
  {
    name: 'sdk-v2',
    from: ['@modelcontextprotocol/server@2.4.0', '@modelcontextprotocol/node@2.1.2'],
    file: '{root}/test/real/peers/sdk-v2.mjs',
    args: ['{dir}', '--stdio'],
    calls: [
      ['add', { a: 2, b: 40 }],
      ['work', { times: 3 }],
      ['confirm', {}],
      ['fail', {}],
      ['grow', {}],
    ],
  },
  {
    name: 'sdk-v2, handshake',
    from: ['@modelcontextprotocol/server@2.4.0', '@modelcontextprotocol/node@2.1.2'],
    file: '{root}/test/real/peers/sdk-v2.mjs',
    args: ['{dir}', '--stdio'],
    isOld: true,
    calls: [
      ['add', { a: 2, b: 40 }],
      ['work', { times: 3 }],
      ['confirm', {}],
      ['fail', {}],
      ['grow', {}],
    ],
  },
];

/** Answers what servers ask, always in the same way. */
const answering =
  (run: string): Extension =>
  () => ({
    capabilities: { elicitation: { form: {} }, roots: {}, sampling: {} },
    handlers: {
      'elicitation/create': () => ({ action: 'accept', content: { ok: true } }),
      'roots/list': () => ({ roots: [{ uri: pathToFileURL(run).href, name: 'run' }] }),
      'sampling/createMessage': () => ({
        role: 'assistant',
        model: 'none',
        content: { type: 'text', text: 'yes' },
      }),
    },
  });

const MISSING = 'no-such-tool'; // called on purpose: `trace check` names it, rightly

type Script = { calls: Call[]; isOld?: boolean };
type Talk = { text: string; results: Map<string, string>; description: string };
const QUIET_MS = 700; // servers ask for roots, and tell of changes, some time after the handshake

/** Connects, lists everything, and makes the calls; written down as a trace. */
async function talk(
  config: Json,
  run: string,
  { calls, isOld }: Script,
  isShuffled = false,
  more: Json = {},
): Promise<Talk> {
  const records: unknown[] = [{ trace: 1 }];
  let seenAt = performance.now();
  const connection = new McpConnection('s', config, {
    onWire: (dir, msg) => {
      seenAt = performance.now();
      records.push({ at: seenAt, dir, server: 's', msg });
    },
    onWarning: () => {},
    handshakeTimeoutMs: 60_000,
    extensions: [answering(run), ...(isOld ? [] : inBothEras())],
    ...more,
  });
  const quiet = async () => {
    while (performance.now() - seenAt < QUIET_MS) await new Promise((done) => setTimeout(done, 50));
  };
  const results = new Map<string, string>();
  let description = '';
  const request = async (method: string, params: Json = {}) => {
    const said = await connection
      .request(method, params, { onProgress: () => {} })
      .catch((error) => ({ error: textOf(error) }));
    results.set(JSON.stringify([method, params]), JSON.stringify(said));
  };
  try {
    await connection.connect();
    const server = (await connection.initialize()) as Json;
    const { capabilities = {} } = server;
    description = JSON.stringify(sorted(server));
    if (!isShuffled) await quiet();
    const offers = Object.keys(capabilities as Json);
    const lists = ['tools', 'resources', 'prompts']
      .filter((kind) => offers.includes(kind))
      .map((kind): [string, Json] => [`${kind}/list`, {}]);
    const asked = [...calls, [MISSING, {}] as Call].map(([name, args]): [string, Json] => [
      'tools/call',
      { name, arguments: args },
    ]);
    const all = [...lists, ...asked];
    if (isShuffled) await Promise.all(all.reverse().map((each) => request(...each)));
    else for (const each of all) await request(...each);
    if (!isShuffled) await quiet();
  } finally {
    await connection.close();
  }
  return {
    text: records.map((record) => `${JSON.stringify(record)}\n`).join(''),
    results,
    description,
  };
}

/** What must be the same: our requests with their answers, in the order of the requests; and what else was said, in any
 *  order. How the era was found out depends on how slowly a server starts; its outcome is compared instead. */
export function gist(text: string): { exchanges: string[]; others: string[] } {
  const exchanges: unknown[][] = [];
  const others: string[] = [];
  const open = new Map<unknown, unknown[]>();
  for (const { dir, msg } of readTrace(text).messages) {
    const { id, params, jsonrpc, ...rest } = msg;
    const { _meta, progressToken, ...said } = (params ?? {}) as Json;
    const words = sorted([dir, rest, said]);
    const isOpening = /^(server\/discover|initialize|notifications\/initialized)$/.test(
      `${msg.method}`,
    );
    if (dir === 'out' && isRequest(msg)) {
      const exchange = [words];
      open.set(id, exchange);
      if (!isOpening) exchanges.push(exchange);
    } else if (dir === 'in' && isResponse(msg) && open.has(id)) {
      open.get(id)!.push(words);
    } else if (!isOpening && !isProbeCancelled(msg)) others.push(JSON.stringify(words));
  }
  return { exchanges: exchanges.map((each) => JSON.stringify(each)), others: others.sort() };
}

const isProbeCancelled = ({ method }: Json) => method === 'notifications/cancelled';

/** The order of keys means nothing. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, each]) => [key, sorted(each)]),
  );
}

export type Outcome = {
  messages: number;
  era: string;
  asked: number;
  told: number;
  differences: string[];
  misses: string[];
  lost: string[];
  http: string[];
  wrong: string[];
};

/** Records a server, plays the recording, and compares; then once more in another order. */
export async function roundTrip(kind: Kind): Promise<Outcome> {
  const dir = installed(...[kind.from].flat());
  const run = realpathSync(mkdtempSync(join(tmpdir(), 'recording-')));
  const filled = (text: string) =>
    text.replaceAll('{dir}', dir).replaceAll('{run}', run).replaceAll('{root}', root);
  for (const [name, content] of Object.entries(kind.files ?? {})) {
    mkdirSync(dirname(join(run, name)), { recursive: true });
    writeFileSync(join(run, name), content);
  }
  const file = kind.file.startsWith('{root}')
    ? filled(kind.file)
    : join(dir, 'node_modules', kind.file);
  const env = Object.fromEntries(
    Object.entries(kind.env ?? {}).map(([key, value]) => [key, filled(value)]),
  );
  const config = {
    command: process.execPath,
    args: [file, ...(kind.args ?? []).map(filled)],
    env,
    cwd: run,
  };
  const calls = JSON.parse(filled(JSON.stringify(kind.calls ?? []))) as Call[];
  try {
    const script = { calls, isOld: kind.isOld };
    const first = await steady(() => talk(config, run, script));
    const recording = readTrace(first.text);
    const misses: string[] = [];
    const again = (isShuffled: boolean) => {
      const transport = replayTransport(recording, 's', { onMiss: (miss) => misses.push(miss) });
      return talk({ type: 'replay' }, run, script, isShuffled, {
        transports: { replay: () => transport },
      });
    };
    const second = await again(false);
    const shuffled = await again(true);
    const newReplay = () =>
      new Replay(recording, 's', { onMiss: (miss) => misses.push(`HTTP: ${miss}`) });
    const served = await serveHttp(new ReplayServer(newReplay, 's'));
    const third = await talk({ type: 'http', url: served.url }, run, script, false, {
      transports: httpTransports,
    });
    await served.close();
    const [was, is] = [gist(first.text), gist(second.text)];
    const differences = [
      ...apart([first.description], [second.description]),
      ...apart(was.exchanges, is.exchanges),
      ...apart(was.others, is.others),
    ];
    const lost = [...first.results]
      .filter(([key, said]) => shuffled.results.get(key) !== said)
      .map(([key]) => key);
    const { messages } = recording;
    const fromServer = messages.filter(
      ({ dir: way, msg }) => way === 'in' && msg.method !== undefined,
    );
    const kinds = (text: string) =>
      readTrace(text)
        .messages.filter(({ dir: way, msg }) => way === 'in' && msg.method)
        .map(({ msg }) => `${msg.method}`)
        .sort();
    const http = [
      ...apart([first.description], [third.description]),
      ...[...first.results]
        .filter(([key, said]) => third.results.get(key) !== said)
        .map(([key]) => key),
      ...apart(kinds(first.text), kinds(third.text)),
    ];
    const wrong = checkTrace(recording)
      .filter(({ text }) => !text.includes(MISSING))
      .map(
        ({ line, who, level, text, rule }) =>
          `${level}: line ${line}: the ${who}: ${text} [${rule}]`,
      );
    const hasHandshake = messages.some(({ msg }) => msg.method === 'notifications/initialized');
    return {
      messages: messages.length,
      era: hasHandshake ? 'handshake' : 'stateless',
      asked: fromServer.filter(({ msg }) => msg.id !== undefined).length,
      told: fromServer.filter(({ msg }) => msg.id === undefined).length,
      differences,
      misses,
      lost,
      http,
      wrong,
    };
  } finally {
    rmSync(run, { recursive: true, force: true });
  }
}

/** A server that says nothing for seconds is started once more by our client (chapter 22), and the recording has two
 *  processes. That depends on the load of this machine, so it is recorded again. */
async function steady(record: () => Promise<Talk>): Promise<Talk> {
  for (let attempt = 1; ; attempt++) {
    const recorded = await record();
    const openings = readTrace(recorded.text).messages.filter(
      ({ msg }) => msg.method === 'initialize',
    );
    if (openings.length < 2 || attempt === 3) return recorded;
  }
}

function apart(was: string[], is: string[]): string[] {
  const length = Math.max(was.length, is.length);
  const at = Array.from({ length }, (_, n) => n).find((n) => was[n] !== is[n]);
  return at === undefined
    ? []
    : [`recorded: ${was[at]?.slice(0, 300)}\n      played: ${is[at]?.slice(0, 300)}`];
}

// ─── As a program ────────────────────────────────────────────────────────────────────────────────

async function main(names: string[]): Promise<void> {
  const kinds = KINDS.filter(({ name }) => names.length === 0 || names.includes(name));
  let failures = 0;
  console.log(
    'server              era        messages  asks  tells  the same  shuffled  by HTTP  check',
  );
  for (const kind of kinds) {
    try {
      const { era, messages, asked, told, differences, misses, lost, http, wrong } =
        await roundTrip(kind);
      const isSame = differences.length + misses.length === 0;
      if (!isSame || lost.length + http.length > 0) failures++;
      const row = [
        kind.name.padEnd(19),
        era.padEnd(10),
        `${messages}`.padStart(8),
        `${asked}`.padStart(5),
        `${told}`.padStart(6),
      ];
      console.log(
        row.join(' '),
        isSame ? '      yes' : '       NO',
        lost.length === 0 ? '     yes' : '      NO',
        http.length === 0 ? '    yes' : '     NO',
        ` ${wrong.length || 'nothing wrong'}`,
      );
      for (const text of [...differences, ...misses, ...lost, ...http]) console.log(`    ${text}`);
      for (const text of wrong.slice(0, 5)) console.log(`    check: ${text}`);
    } catch (error) {
      failures++;
      console.log(`${kind.name.padEnd(19)} did not work: ${textOf(error).slice(0, 300)}`);
    }
  }
  console.log(`${kinds.length - failures} of ${kinds.length} are the same`);
  process.exit(failures > 0 ? 1 : 0);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href)
  await main(process.argv.slice(2));
