// Chapter 29: what our server has for hosts and pages beside tools: skills of a folder, a card, an app.
// The app itself, and pages that use the server, are in a real browser: test/real/web-pages.test.ts.

import assert from 'node:assert/strict';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, test } from 'node:test';
import { Trust } from '../agent.ts';
import { Roots } from '../chapters/16-hands/paths.ts';
import { eitherEra } from '../chapters/22-no-handshake/era.ts';
import { skillRoot } from '../chapters/24-more-than-tools/skill-entry.ts';
import { mustMatch, mustSayTheSame } from '../chapters/24-more-than-tools/skill-entry.ts';
import { ServerSkills } from '../chapters/24-more-than-tools/skill-sources.ts';
import { builtIn } from '../chapters/25-other-pipes/in-process.ts';
import { codeServer } from '../chapters/29-a-server/code/code-server.ts';
import { overPipe } from '../chapters/29-a-server/pipe.ts';
import { serveHttp, type HttpOptions } from '../chapters/29-a-server/serve-http.ts';
import { readServe } from '../chapters/29-a-server/serve-command.ts';
import { McpServer } from '../chapters/29-a-server/server.ts';
import { skillsOf } from '../chapters/29-a-server/server-skills.ts';
import { isObject, McpConnection, type Extension, type Json } from '../mcp.ts';
import { cleanUp, folder, later, rejection, root } from './help/basics.ts';
import { send } from './help/server-fixture.ts';

afterEach(cleanUp);

async function connected(server: McpServer, extensions: Extension[] = []) {
  const connection = new McpConnection(
    'ours',
    { type: 'in-process', name: 'ours' },
    { transports: { 'in-process': builtIn(overPipe(server)) }, extensions },
  );
  later(() => connection.close());
  await connection.connect();
  await connection.initialize();
  return connection;
}

// ─── Skills ────────────────────────────────────────────────────────────────────────────────────

const skillMd = (name: string) =>
  `---\nname: ${name}\ndescription: What ${name} is for\n---\n\nDo it.\n`;

function skillFolder(files: Record<string, string | Buffer>): string {
  const at = folder();
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(at, name)), { recursive: true });
    writeFileSync(join(at, name), content);
  }
  return at;
}

const serving = (at: string, warnings: string[] = []) =>
  new McpServer({
    name: 'skills',
    version: '1.0.0',
    ...skillsOf(at, (text) => warnings.push(text)),
  });

for (const [era, extensions] of [
  ['with a handshake', []],
  ['without a handshake', [eitherEra()]],
] as const)
  test(`skills, ${era}: our own client of chapter 24 lists, gets and reads them, and every byte is as promised`, async () => {
    const picture = Buffer.from([0x89, 0x50, 0xff, 0x00]);
    const at = skillFolder({
      'release/SKILL.md': skillMd('release'),
      'release/references/check list (ä).md': '- green\n',
      'release/logo.png': picture,
      'release/empty': '',
      'review/SKILL.md': skillMd('review'),
    });
    const connection = await connected(serving(at), [...extensions]);
    const declared = connection.server?.capabilities as any;
    assert.deepEqual(declared.extensions['io.modelcontextprotocol/skills'], {
      directoryRead: true,
    });
    assert.ok(isObject(declared.resources), 'files are resources');
    const skills = new ServerSkills(connection, new Trust({ warn: assert.fail }));
    const { skills: listed, leftOut } = await skills.list();
    assert.deepEqual(leftOut, []);
    assert.deepEqual(
      listed.map(({ uri }) => uri),
      ['skill://release/SKILL.md', 'skill://review/SKILL.md'],
    );
    const [release] = listed;
    assert.deepEqual(await skills.get(release!.uri), release!.entry, 'get says what list says');
    const files = release!.entry!.resources as any[];
    assert.equal(files.length, 4);
    for (const file of files) mustMatch(await skills.read(file.uri), file);
    mustSayTheSame(await skills.read(release!.uri), release!.entry!);
    assert.deepEqual((await skills.children!(skillRoot(release!.uri))).sort(), [
      'skill://release/SKILL.md',
      'skill://release/empty',
      'skill://release/logo.png',
      'skill://release/references/',
    ]);
    assert.deepEqual(await skills.children!('skill://release/references'), [
      'skill://release/references/check%20list%20(%C3%A4).md',
    ]);
  });

test('skills: what is no skill of the folder is not there, by whatever address', async () => {
  const at = skillFolder({
    'release/SKILL.md': skillMd('release'),
    'release/notes.md': 'x',
    'notes/plan.md': 'not a skill',
    'top.md': 'beside the skills',
  });
  const connection = await connected(serving(at));
  const code = async (method: string, uri: string) =>
    ((await rejection(connection.request(method, { uri }))) as any).code;
  for (const uri of [
    'skill://notes/plan.md',
    'skill://top.md',
    'skill://release/nothing.md',
    'skill://release',
    'skill://release/../top.md',
    'skill://release/..%2F..%2Ftop.md',
    'skill://release%2F..%2Ftop.md',
    `file://${at}/release/SKILL.md`,
    'skill://release/notes.md/more',
  ])
    assert.equal(await code('resources/read', uri), -32002, uri);
  for (const uri of [
    'skill://notes/SKILL.md',
    'skill://release/notes.md',
    'skill://x/SKILL.md',
    '',
  ])
    assert.equal(await code('skills/get', uri), -32602, uri);
  for (const uri of ['skill://release/SKILL.md', 'skill://', 'skill://notes', 'skill://release/..'])
    assert.equal(await code('resources/directory/read', uri), -32602, uri);
});

test('skills: one with a secret, or a link that leads out, is not listed, and we are told once; the others are', async () => {
  const outside = folder();
  writeFileSync(join(outside, 'private.md'), 'mine');
  const at = skillFolder({
    'good/SKILL.md': skillMd('good'),
    'leaky/SKILL.md': skillMd('leaky'),
    'leaky/.env': 'TOKEN=1',
    'linked/SKILL.md': skillMd('linked'),
    'named-otherwise/SKILL.md': skillMd('other'),
  });
  symlinkSync(join(outside, 'private.md'), join(at, 'linked', 'private.md'));
  symlinkSync(outside, join(at, 'away'));
  const warnings: string[] = [];
  const connection = await connected(serving(at, warnings));
  for (let n = 0; n < 2; n++) {
    const { skills } = await connection.request('skills/list');
    assert.deepEqual(
      (skills as Json[]).map(({ uri }) => uri),
      ['skill://good/SKILL.md'],
    );
  }
  assert.equal(warnings.length, 4, warnings.join('\n'));
  assert.doesNotMatch(warnings.join('\n'), /file:/);
  const all = [/leaky.*\.env/, /linked.*leads out/, /away.*leads out/, /otherwise.*called other/];
  for (const what of all)
    assert.ok(
      warnings.some((each) => what.test(each)),
      `${what}`,
    );
  for (const uri of ['skill://leaky/.env', 'skill://linked/private.md', 'skill://away/private.md'])
    assert.equal(
      ((await rejection(connection.request('resources/read', { uri }))) as any).code,
      -32002,
    );
});

test('skills: fifty of them come in pages, each once; a changed file has another digest', async () => {
  const names = Array.from({ length: 50 }, (_, n) => `skill-${n}`);
  const at = skillFolder(
    Object.fromEntries(names.map((name) => [`${name}/SKILL.md`, skillMd(name)])),
  );
  const connection = await connected(serving(at));
  const first = await connection.request('skills/list');
  assert.equal((first.skills as unknown[]).length, 20);
  const all = (await connection.listAll('skills/list', 'skills')) as any[];
  assert.deepEqual(all.map(({ frontmatter }) => frontmatter.name).sort(), [...names].sort());
  const uri = 'skill://skill-7/SKILL.md';
  const digest = async () =>
    ((await connection.request('skills/get', { uri })) as any).skill.resources[0].digest;
  const before = await digest();
  writeFileSync(join(at, 'skill-7', 'SKILL.md'), `${skillMd('skill-7')}And more.\n`);
  assert.notEqual(await digest(), before);
});

test('serve --skills: a folder that is there, and not together with --servers', () => {
  const at = folder();
  assert.equal(readServe([at, '--skills', at]).skills, at);
  assert.throws(() => readServe([at, '--skills', join(at, 'missing')]), /no folder/);
  assert.throws(() => readServe([at, '--skills', at, '--servers']), /do not go together/);
});

// ─── The card ──────────────────────────────────────────────────────────────────────────────────

async function withCard(options: HttpOptions = {}) {
  const server = new McpServer({ name: 'shelf', version: '1.2.3', title: 'Books', tools: [] });
  const card = { name: 'com.example/shelf', description: 'Three books' };
  const http = await serveHttp(server, { card, ...options });
  later(() => http.close());
  const get = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
    send(http.port, { method, path, headers });
  return { http, get };
}

test('a card without a token: for every page of every origin, with an address, and it is kept until it changes', async () => {
  const { http, get } = await withCard();
  const { status, headers, text } = await get('/mcp/server-card', {
    origin: 'https://any.example',
  });
  assert.equal(status, 200);
  assert.equal(headers['content-type'], 'application/mcp-server-card+json');
  assert.equal(headers['access-control-allow-origin'], '*');
  assert.equal(headers['access-control-expose-headers'], 'ETag');
  assert.match(`${headers['cache-control']}`, /^public, max-age=3600$/);
  const { remotes, ...card } = JSON.parse(text);
  assert.deepEqual(card, {
    $schema: 'https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json',
    name: 'com.example/shelf',
    version: '1.2.3',
    description: 'Three books',
    title: 'Books',
  });
  assert.equal(remotes[0].url, http.url);
  assert.ok(remotes[0].supportedProtocolVersions.includes('2026-07-28'));
  const again = await get('/mcp/server-card', { 'if-none-match': `${headers.etag}` });
  assert.deepEqual([again.status, again.text], [304, '']);
  const asked = await get('/mcp/server-card', { origin: 'null' }, 'OPTIONS');
  assert.deepEqual(
    [asked.status, asked.headers['access-control-allow-headers']],
    [204, 'Content-Type, If-None-Match'],
  );
  assert.equal((await get('/mcp/server-card', {}, 'DELETE')).status, 405);
  const catalog = await get('/.well-known/ai-catalog.json');
  assert.equal(catalog.headers['content-type'], 'application/ai-catalog+json');
  assert.deepEqual(JSON.parse(catalog.text), {
    specVersion: '1.0',
    entries: [
      {
        identifier: 'urn:air:example.com:mcp:shelf',
        type: 'application/mcp-server-card+json',
        url: `${http.url}/server-card`,
      },
    ],
  });
  assert.equal((await get('/mcp/server-card', { host: 'evil.example' })).status, 403, 'rebinding');
  // What is not the card is as closed as before.
  assert.equal((await get('/mcp', { origin: 'https://any.example' })).status, 403);
});

test('a card behind a token: no address, no catalog, no star; a foreign page gets 403, one of this machine may read it', async () => {
  const { get } = await withCard({ token: 'sesame' });
  const local = 'http://localhost:5173';
  const { status, headers, text } = await get('/mcp/server-card', { origin: local });
  assert.deepEqual([status, headers['access-control-allow-origin']], [200, local]);
  assert.match(`${headers['cache-control']}`, /^private/);
  assert.deepEqual(Object.keys(JSON.parse(text)).sort(), [
    '$schema',
    'description',
    'name',
    'title',
    'version',
  ]);
  assert.equal((await get('/mcp/server-card', { origin: 'https://any.example' })).status, 403);
  assert.equal((await get('/mcp/server-card', { origin: 'null' })).status, 403);
  assert.equal((await get('/.well-known/ai-catalog.json')).status, 404);
  assert.equal((await get('/mcp')).status, 401);
});

test('a card: behind a proxy it has the address outside; a name that is none is refused; without the option there is none', async () => {
  const url = 'https://shelf.example/mcp';
  const proxied = await withCard({ card: { name: 'com.example/shelf', description: 'x', url } });
  assert.equal(JSON.parse((await proxied.get('/mcp/server-card')).text).remotes[0].url, url);
  for (const name of ['shelf', 'a/b/c', '/x', 'com.example/', 'a b/c'])
    await assert.rejects(withCard({ card: { name, description: 'x' } }), /is no name for a card/);
  const none = await withCard({ card: undefined });
  assert.equal((await none.get('/mcp/server-card')).status, 404);
});

// ─── The app ───────────────────────────────────────────────────────────────────────────────────

test('the code server has an app for what was found: declared, named by two tools, and read as one page that loads nothing', async () => {
  const { server } = codeServer({ roots: new Roots(root) });
  const connection = await connected(server, [eitherEra()]);
  const { extensions } = connection.server!.capabilities as any;
  assert.deepEqual(extensions, { 'io.modelcontextprotocol/ui': {} });
  const tools = (await connection.listAll('tools/list', 'tools')) as any[];
  const shown = tools.filter(({ _meta }) => _meta?.ui);
  assert.deepEqual(
    shown.map(({ name, _meta }) => [name, _meta.ui.resourceUri, _meta['ui/resourceUri']]),
    ['search_code', 'search_by_embedding'].map((name) => [
      name,
      'ui://code/results',
      'ui://code/results',
    ]),
  );
  const { contents } = (await connection.request('resources/read', {
    uri: 'ui://code/results',
  })) as any;
  assert.equal(contents.length, 1);
  assert.equal(contents[0].mimeType, 'text/html;profile=mcp-app');
  assert.doesNotMatch(contents[0].text, /https?:|src=|href=|innerHTML|import\(|eval/);
  assert.ok(contents[0].text.split('\n').length < 135);
  // The text is whole without it: a client that shows no app loses nothing.
  const args = { query: 'class McpServer', max_results: 1 };
  const { text, structuredContent } = await connection.callTool('search_code', args);
  assert.deepEqual(JSON.parse(text), structuredContent);
});
