// `mcp import`: what other programs have, each by a sample in the form that its maker documents.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, test } from 'node:test';
import { importers, offeredBy } from '../chapters/27-scopes/importing.ts';
import { parseToml } from '../chapters/27-scopes/packages/toml.ts';
import type { Json } from '../mcp.ts';
import { cleanUp, folder } from './help/basics.ts';
import { place, run, Terminal } from './help/terminal.ts';

afterEach(cleanUp);

type Sample = { source: string; file: string; text: string; ours: Record<string, Json> };

const asText = (value: unknown) => JSON.stringify(value, null, 2);
const local = { command: 'npx', args: ['-y', 'a-server'], env: { LEVEL: 'info' } };

/** One for each program. The sources are pages of its maker. */
const SAMPLES: Record<string, Sample> = {
  'claude-code': {
    source: 'code.claude.com docs, Connect Claude Code to tools via MCP, user scope',
    file: '.claude.json',
    text: asText({ numStartups: 3, mcpServers: { own: { type: 'stdio', ...local } } }),
    ours: { own: { type: 'stdio', ...local } },
  },
  'claude-desktop': {
    source: 'modelcontextprotocol.io, connect local servers',
    file: '.config/Claude/claude_desktop_config.json',
    text: asText({ mcpServers: { a: local } }),
    ours: { a: local },
  },
  vscode: {
    source: 'code.visualstudio.com, MCP configuration reference',
    file: '.config/Code/User/mcp.json',
    text: asText({
      servers: {
        a: { type: 'stdio', ...local },
        b: { type: 'http', url: 'https://b.example/mcp' },
      },
    }),
    ours: { a: { type: 'stdio', ...local }, b: { type: 'http', url: 'https://b.example/mcp' } },
  },
  cursor: {
    source: 'cursor.com docs, Model Context Protocol',
    file: '.cursor/mcp.json',
    text: asText({
      mcpServers: {
        a: { ...local, env: { KEY: '${env:KEY}' } },
        b: { type: 'streamableHttp', url: 'https://b.example/mcp', headers: { X: '1' } },
      },
    }),
    ours: {
      a: { ...local, env: { KEY: '${KEY}' } },
      b: { type: 'http', url: 'https://b.example/mcp', headers: { X: '1' } },
    },
  },
  codex: {
    source: 'developers.openai.com, Codex, Model Context Protocol',
    file: '.codex/config.toml',
    text: `model = "gpt-x"

[mcp_servers.a]
command = "npx"
args = ["-y", "a-server"] # how it starts
env = { LEVEL = "info" }
env_vars = ["TOKEN"]
startup_timeout_sec = 20
tool_timeout_sec = 45.5

[mcp_servers."b.c"]
url = 'https://b.example/mcp'
bearer_token_env_var = "B_TOKEN"
http_headers = { "X-Region" = "eu" }
enabled = false
`,
    ours: {
      a: { ...local, env: { LEVEL: 'info', TOKEN: '${TOKEN}' }, timeout: 45_500 },
      'b.c': {
        enabled: false,
        type: 'http',
        url: 'https://b.example/mcp',
        headers: { 'X-Region': 'eu', Authorization: 'Bearer ${B_TOKEN}' },
      },
    },
  },
  gemini: {
    source: 'google-gemini/gemini-cli, docs/tools/mcp-server.md',
    file: '.gemini/settings.json',
    text: asText({
      mcpServers: {
        a: { ...local, env: { KEY: '$KEY' }, includeTools: ['x'] },
        b: { httpUrl: 'https://b.example/mcp', timeout: 5000 },
        c: { url: 'https://c.example/sse' },
      },
    }),
    ours: {
      a: { ...local, env: { KEY: '${KEY}' }, includeTools: ['x'] },
      b: { timeout: 5000, type: 'http', url: 'https://b.example/mcp' },
      c: { type: 'sse', url: 'https://c.example/sse' },
    },
  },
  windsurf: {
    source: 'docs.windsurf.com, Cascade, MCP',
    file: '.codeium/windsurf/mcp_config.json',
    text: asText({
      mcpServers: {
        a: local,
        b: { serverUrl: 'https://b.example/mcp', headers: { A: '${env:T}' } },
      },
    }),
    ours: { a: local, b: { type: 'http', url: 'https://b.example/mcp', headers: { A: '${T}' } } },
  },
  zed: {
    source: 'zed.dev docs, Model Context Protocol',
    file: '.config/zed/settings.json',
    text: `{
  // settings may have comments
  "context_servers": {
    "a": { "source": "custom", "command": "npx", "args": ["-y", "a-server"], "env": { "LEVEL": "info" } },
    "old": { "command": { "path": "npx", "args": ["-y", "a-server"], "env": { "LEVEL": "info" } }, "settings": {} },
    "b": { "url": "https://b.example/mcp", "headers": { "A": "1" } },
  }
}`,
    ours: { a: local, old: local, b: { url: 'https://b.example/mcp', headers: { A: '1' } } },
  },
  cline: {
    source: 'docs.cline.bot, configuring MCP servers',
    file: '.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json',
    text: asText({
      mcpServers: {
        a: { ...local, disabled: true },
        b: { type: 'streamableHttp', url: 'https://b.example/mcp' },
      },
    }),
    ours: { a: { ...local, disabled: true }, b: { type: 'http', url: 'https://b.example/mcp' } },
  },
  roo: {
    source: 'docs.roocode.com, using MCP in Roo Code',
    file: '.config/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json',
    text: asText({
      mcpServers: { b: { type: 'streamable-http', url: 'https://b.example/mcp', disabled: false } },
    }),
    ours: { b: { type: 'http', url: 'https://b.example/mcp', disabled: false } },
  },
  opencode: {
    source: 'opencode.ai docs, MCP servers',
    file: '.config/opencode/opencode.json',
    text: asText({
      mcp: {
        a: {
          type: 'local',
          command: ['npx', '-y', 'a-server'],
          environment: { LEVEL: 'info' },
          enabled: true,
        },
        b: { type: 'remote', url: 'https://b.example/mcp', headers: { A: 'Bearer {env:TOKEN}' } },
      },
    }),
    ours: {
      a: { ...local, enabled: true },
      b: { type: 'http', url: 'https://b.example/mcp', headers: { A: 'Bearer ${TOKEN}' } },
    },
  },
  pi: {
    source: 'nicobailon/pi-mcp-adapter, README',
    file: '.pi/agent/mcp.json',
    text: asText({
      mcpServers: {
        a: { ...local, lifecycle: 'keep-alive' },
        b: { url: 'https://b.example/mcp', auth: 'bearer', bearerTokenEnv: 'T' },
      },
    }),
    ours: {
      a: local,
      b: { url: 'https://b.example/mcp', headers: { Authorization: 'Bearer ${T}' } },
    },
  },
};

function write(base: string, file: string, text: string): void {
  mkdirSync(dirname(join(base, file)), { recursive: true });
  writeFileSync(join(base, file), text);
}

test('each program has a sample, and its entries become ours', async () => {
  assert.deepEqual(Object.keys(SAMPLES).sort(), Object.keys(importers).sort());
  for (const [program, { file, text, ours }] of Object.entries(SAMPLES)) {
    const home = folder();
    const where = { home, cwd: folder(), platform: 'linux', appData: '' } as const;
    write(home, file, text);
    const importer = importers[program]!;
    const { offered, problems } = offeredBy(importer, where);
    assert.deepEqual(problems, [], program);
    const ask = async () => undefined;
    const converted = offered.map(async ({ name, config, root }) => [
      name,
      (await importer.convert?.(config, where, root, ask)) ?? config,
    ]);
    assert.deepEqual(Object.fromEntries(await Promise.all(converted)), ours, program);
  }
});

test('mcp import alone finds them all; --yes is for scripts; without it nothing is written', async () => {
  const files = Object.values(SAMPLES).map(({ file, text }) => [file, text]);
  const where = place({}, Object.fromEntries(files));
  const shown = await run(where, ['mcp', 'import']);
  assert.equal(shown.code, 3, shown.err);
  for (const program of Object.keys(SAMPLES))
    assert.match(shown.out, new RegExp(` of ${program}, in `));
  assert.match(shown.out, /^"own" of claude-code, in ".*": it counts here as it is$/m);
  assert.match(shown.err, /nothing was imported: .* or --yes for a script/);
  const taken = await run(where, ['mcp', 'import', 'codex', '--yes']);
  assert.equal(taken.code, 0, taken.err);
  assert.match(taken.out, /^added a to /m);
  assert.match(taken.out, /^"b\.c" is called b-c here/m);
  assert.equal((await run(where, ['mcp', 'import', 'codx'])).code, 2);
});

test('mcp import FILE: what is in it decides', async () => {
  const mcpServers = { a: { ...local, env: { KEY: '${env:KEY}' } } };
  const remotes = [{ type: 'streamable-http', url: 'https://b.example/mcp' }];
  const where = place({
    'mine.json': { mcpServers },
    'code.json': { servers: { c: local } },
    'server.json': { name: 'io.example/b', description: 'x', version: '1.0.0', remotes },
    'odd.txt': 'nothing',
  });
  const mine = await run(where, ['mcp', 'import', 'mine.json', '--yes']);
  assert.match(mine.out, /^added a to .*settings\.json$/m, mine.err);
  const kept = JSON.parse(readFileSync(join(where.home, '.claude', 'settings.json'), 'utf8'));
  assert.deepEqual(kept.mcpServers.a.env, { KEY: '${KEY}' });
  assert.match((await run(where, ['mcp', 'import', './code.json', '--yes'])).out, /^added c to /m);
  const terminal = new Terminal(where, ['mcp', 'import', 'server.json']);
  await terminal.see(/^Add it\?.*: *$/);
  terminal.enter('y');
  assert.equal(await terminal.ended(), 0, terminal.text);
  assert.match(terminal.text, /^added b to /m);
  const odd = await run(where, ['mcp', 'import', 'odd.txt', '--yes']);
  assert.deepEqual([odd.code, odd.out], [3, '']);
  assert.match(odd.err, /odd\.txt: line 1, column 2: Unexpected token 'o'/);
});

test('A12 a folder with odd files of other programs: each is told, and nothing waits', () => {
  const where = { home: folder(), cwd: folder(), platform: 'linux' as const, appData: '' };
  for (const name of ['.codex', '.zed', '.opencode']) mkdirSync(join(where.cwd, name));
  execFileSync('mkfifo', [join(where.cwd, '.codex', 'config.toml')]);
  symlinkSync('/dev/zero', join(where.cwd, '.zed', 'settings.json'));
  const deep = `{"mcp":{"a":{"x":${'['.repeat(100_000)}${']'.repeat(100_000)}}}}`;
  writeFileSync(join(where.cwd, '.opencode', 'opencode.json'), deep);
  const problemsOf = (name: string) => offeredBy(importers[name]!, where).problems.join();
  assert.match(problemsOf('opencode'), /more than \d+ levels/);
  assert.match(problemsOf('zed'), /is not a file/);
  assert.match(problemsOf('codex'), /is not a file/);
});

test('A4 --yes takes over nothing that a folder brings; naming its file does', async () => {
  const planted = { mcpServers: { planted: local } };
  const where = place(
    { '.cursor/mcp.json': planted },
    { '.cursor/mcp.json': asText({ mcpServers: { own: local } }) },
  );
  const taken = await run(where, ['mcp', 'import', 'cursor', '--yes']);
  assert.equal(taken.code, 0, taken.err);
  assert.match(taken.err, /"planted" was left out: look at it, then mcp import "/);
  const keptIn = () => {
    const file = join(where.home, '.claude', 'settings.json');
    return Object.keys(JSON.parse(readFileSync(file, 'utf8')).mcpServers);
  };
  assert.deepEqual(keptIn(), ['own']);
  const named = await run(where, ['mcp', 'import', '.cursor/mcp.json', '--yes']);
  assert.equal(named.code, 0, named.err);
  assert.deepEqual(keptIn(), ['own', 'planted']);
});

test('A10 the older form of Zed hides no command from the question', async () => {
  const command = { path: 'sh', args: ['-c', 'touch M'] };
  const settings = asText({ context_servers: { nice: { source: 'custom', command } } });
  const where = place({}, { '.config/zed/settings.json': settings });
  const { out } = await run(where, ['mcp', 'import', 'zed']);
  assert.match(out, /command: .*path.*sh.*-c.*touch M/);
});

test('TOML: what settings are made of, and what is wrong by its line', () => {
  const good: [string, Json][] = [
    ['', {}],
    ['a = 1\nb = -2.5\nc = 1_000\nd = true # yes', { a: 1, b: -2.5, c: 1000, d: true }],
    ['a = "x\\ty \\u00e9 \\"q\\""', { a: 'x\ty é "q"' }],
    ["a = 'C:\\new'", { a: 'C:\\new' }],
    ['a = """\nx\n  y\\\n   z"""', { a: 'x\n  yz' }],
    ["a = '''\nx'y'''", { a: "x'y" }],
    ['a = [\n  1, # one\n  [2],\n]', { a: [1, [2]] }],
    ['a.b."c d" = 1', { a: { b: { 'c d': 1 } } }],
    ['a = { b = 1, c = { d = "e" } }', { a: { b: 1, c: { d: 'e' } } }],
    ['[a]\nx = 1\n[a.b]\ny = 2', { a: { x: 1, b: { y: 2 } } }],
    ['[[a]]\nx = 1\n[[a]]\nx = 2\n[a.b]\ny = 3', { a: [{ x: 1 }, { x: 2, b: { y: 3 } }] }],
    ['a = 2026-01-02', { a: '2026-01-02' }],
    ['a = 1\r\nb = 2\r\n', { a: 1, b: 2 }],
  ];
  for (const [text, value] of good) assert.deepEqual(parseToml(text), value, text);
  const bad: [string, RegExp][] = [
    ['a = 1\nb', /^line 2: expected =/],
    ['a = "x', /^line 1: expected a " that ends/],
    ['a = 1\na = 2', /^line 2: expected another key: a is there already/],
    ['a = [1', /^line 1: expected , or \]/],
    ['a = 1 b = 2', /^line 1: expected the end of the line/],
    ['[a\nx = 1', /^line 1: expected \]/],
    ['a = 1\n[a.b]', /^line 2: expected a table, where a is a value/],
    ['a = "\\q"', /another escape/],
    [`a = ${'['.repeat(200)}`, /fewer levels/],
    [`[a${'.a'.repeat(100_000)}]`, /fewer levels/],
  ];
  for (const [text, why] of bad) assert.throws(() => parseToml(text), { message: why }, text);
  const lists = parseToml('[[a]]\n'.repeat(100_000)).a; // copied each time it would take minutes
  assert.equal((lists as Json[]).length, 100_000);
  const odd = parseToml('[__proto__]\nx = 1\n[constructor]\ny = 2');
  assert.deepEqual([Object.keys(odd), ({} as Json).x], [['__proto__', 'constructor'], undefined]);
});
