// The museum of other people's bugs: its exhibits tell right from wrong, and its runner tells the truth.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { catalogue } from '../chapters/judge/catalogue.ts';
import { cleanUp, folder, root } from './help/basics.ts';

afterEach(cleanUp);

const museum = join(root, 'fixtures', 'museum');
const load = (name: string) => import(pathToFileURL(join(museum, name)).href);

/** What the runner says, and its exit code. */
function run(words: string[], at = museum): Promise<{ code: number; out: string }> {
  const { INIT_CWD: _, ...env } = process.env;
  return new Promise((done) => {
    const options = { cwd: at, env };
    execFile(process.execPath, [join(at, 'run.mjs'), ...words], options, (error, stdout, stderr) =>
      done({ code: error ? Number(error.code) : 0, out: stdout + stderr }),
    );
  });
}

const isWindows = process.platform === 'win32'; // groups of processes and /proc are not there

test('a dozen exhibits tell right from wrong: the right client passes, exactly the bug fails', {
  skip: isWindows,
}, async () => {
  const fast = ['env', 'banner', 'cut-character', 'wrong-id', 'same-id', 'pages', 'empty-cursor'];
  const more = ['is-error', 'sse-crlf', 'session-gone', 'reset-in-call', 'redirect', 'm-state'];
  const { code, out } = await run(['prove', ...fast, ...more]);
  assert.deepEqual(
    out.trimEnd().split('\n'),
    [...fast, ...more].map((id) => `✓ ${id}`),
  );
  assert.equal(code, 0);
});

test('a row: controls first, a red P or S is exit code 1, and what cannot be judged says why', {
  skip: isWindows,
}, async () => {
  const at = folder();
  cpSync(museum, at, { recursive: true }); // the folder alone is enough
  const words = ['client', 'node wrong.mjs pages', 'without', 'http'];
  const files = ['json', 'row.json', 'junit', 'row.xml', 'page', 'row.html'];
  const wanted = ['exhibit', 'pages,null-cursor,redirect', ...files];
  const { code, out } = await run([...words, ...wanted], at);
  assert.equal(code, 1, out);
  assert.match(out, /good-stdio +pass[^]*✗ P pages +fail/);
  assert.match(out, /^yours: P 0\/1, S 0\/0, C 1\/1; red: pages$/m);
  const { exhibits } = JSON.parse(readFileSync(join(at, 'row.json'), 'utf8'));
  assert.deepEqual(
    Object.keys(exhibits).map((id) => exhibits[id].verdict),
    ['fail', 'pass', 'n/a'],
  );
  const xml = readFileSync(join(at, 'row.xml'), 'utf8');
  assert.match(
    xml,
    /tests="3" failures="1"[^]*name="pages"><failure [^]*name="redirect"><skipped /,
  );
  const html = readFileSync(join(at, 'row.html'), 'utf8');
  assert.match(html, /class="red"><details><summary>✗ fail/);
  assert.match(
    html,
    /hasEntry/,
    "what the server saw is there, but not a withheld exhibit's finding",
  );
  assert.doesNotMatch(html, /hasSecret/);
});

test('a client that fails a control is not judged, and one that does not start is no failure', {
  skip: isWindows,
}, async () => {
  const at = folder();
  writeFileSync(join(at, 'mute.mjs'), `console.log('{"ready":0}')`);
  const client = `node "${join(at, 'mute.mjs')}"`;
  const mute = await run(['client', client, 'exhibit', 'pages']);
  assert.match(mute.out, /pages +n\/a +the control good-stdio failed: ended early, exit 0/);
  assert.equal(mute.code, 0);
  const absent = await run(['client', 'no-such-client', 'exhibit', 'pages']);
  assert.match(absent.out, /good-stdio +adapter +it did not start/);
});

test('two templates make a client of a command', { skip: isWindows }, async () => {
  const at = folder();
  // As small as a command can be: it sends its lines, and prints what comes.
  writeFileSync(
    join(at, 'cli.mjs'),
    `import { spawn } from 'node:child_process';
const [method, params, ...argv] = process.argv.slice(2);
const child = spawn(argv[0], argv.slice(1), { stdio: ['pipe', 'pipe', 'inherit'] });
const send = (line) => child.stdin.write(JSON.stringify({ jsonrpc: '2.0', ...line }) + '\\n');
const clientInfo = { name: 'cli', version: '1' };
send({ id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo } });
send({ method: 'notifications/initialized' });
send({ id: 2, method, params: JSON.parse(params) });
child.stdout.setEncoding('utf8').on('data', (text) => {
  process.stdout.write(text);
  if (text.includes('"id":2')) child.stdin.end();
});`,
  );
  const cli = `node "${join(at, 'cli.mjs')}"`;
  const templates = ['list', `${cli} tools/list '{}' {argv}`];
  const call = ['call', `${cli} tools/call '{"name":"{tool}","arguments":{args}}' {argv}`];
  const { code, out } = await run([...templates, ...call, 'exhibit', 'banner,pages,redirect']);
  assert.match(out, /banner +pass[^]*yours: P 0\/1, S 0\/0, C 1\/1; red: pages/);
  assert.match(out, /redirect +n\/a +no http/);
  assert.equal(code, 1);
});

test('an exhibit says where it comes from, and P has the words of a specification', async () => {
  const { exhibits, ids } = await load('exhibits/all.mjs');
  const promises = catalogue.client.flatMap((chapter) => chapter.promises.map(({ id }) => id));
  for (const id of ids) {
    const { class: letter, on, reports, words, users, odd, passes, judge, promise } = exhibits[id];
    assert.ok(['P', 'S', 'C'].includes(letter) && ['stdio', 'http'].includes(on), id);
    assert.ok(reports.length > 0 && users && odd && passes && judge, id);
    if (letter === 'P') assert.ok(words?.isChecked && words.at, `${id}: where does P come from?`);
    if (promise) assert.ok(promises.includes(promise), `${id}: the judge has no ${promise}`);
    for (const source of [words, ...reports])
      if (source) assert.equal(typeof source.isChecked, 'boolean', id);
  }
});

test('a promise of the judge names its exhibits, and a fault that it tells, too', async () => {
  const { named } = await import('../chapters/judge/bench.ts');
  const { linesOf } = await import('../chapters/judge/report.ts');
  const promises = catalogue.client.flatMap((chapter) => chapter.promises);
  const cursors = named(promises.find(({ id }) => id === 'odd-cursors')!);
  assert.deepEqual(cursors.exhibits, ['empty-cursor', 'null-cursor']);
  const verdict = { ...cursors, state: 'broken' as const, fault: 'it stops', came: 'one tool' };
  const about = { n: 8, title: 'discovery', state: 'broken' as const, missing: [], absent: 0 };
  const told = linesOf({ ...about, verdicts: [verdict] })
    .join(' ')
    .replace(/\s+/g, ' ');
  assert.match(told, /it stops \(came: one tool\); museum: empty-cursor, null-cursor/);
});

test('of other makers, cells about security are withheld, passed or failed, until they are linked', async () => {
  const { shown, board, rowsIn, json } = await load('report.mjs');
  const { exhibits, ids } = await load('exhibits/all.mjs');
  const delicate = ids.filter((id: string) => exhibits[id].isDelicate);
  for (const id of ['env', 'redirect', 'reset-in-call', 'far-ref'])
    assert.ok(delicate.includes(id));
  const other = { name: 'other', version: '1', reported: { env: 'https://example.com/1' } };
  for (const verdict of ['pass', 'fail', 'flaky']) {
    const seen = { verdict, saw: 'a secret', steps: ['x'] };
    assert.equal(shown(other, 'redirect', seen).verdict, 'withheld');
    assert.doesNotMatch(JSON.stringify(shown(other, 'redirect', seen)), /a secret/);
    assert.equal(shown(other, 'env', seen), seen, 'there is a report');
    assert.equal(shown({ ...other, name: 'ours' }, 'redirect', seen), seen);
    assert.equal(shown({ ...other, isPrivate: true }, 'redirect', seen), seen, 'it is their own');
  }
  const row = { redirect: { verdict: 'fail', saw: 'a secret' }, pages: { verdict: 'pass' } };
  const text = json([{ client: other, row, about: 'today' }]);
  assert.doesNotMatch(text, /a secret/);
  assert.match(
    board(rowsIn(text)),
    /^today\n[^]*\| other \| 1 \| 1\/1 \| 0\/0 \| 0\/0 \| – \| – \|/,
  );
});

test('the scoreboard is what the results say; nothing of ours is red, and each red of others is explained', async () => {
  const { rowsIn, withBoard } = await load('report.mjs');
  const { clients } = await load('clients.mjs');
  const { ids } = await load('exhibits/all.mjs');
  const at = (name: string) => readFileSync(join(museum, name), 'utf8');
  const rows = rowsIn(at('results.jsonl'));
  const page = at('README.md');
  assert.equal(withBoard(page, rows), page, 'npm run museum show results.jsonl board README.md');
  const explained = at('REDS.md')
    .split('\n\n')
    .join('\n')
    .split(/^(?=\*\*`)/m);
  for (const { client, row } of rows) {
    assert.deepEqual(Object.keys(row), ids, client.name);
    const { version } = clients.find(({ name }: any) => name === client.name);
    assert.equal(client.version, version, `${client.name} was judged at another version`);
    for (const [id, { verdict, class: letter }] of Object.entries<any>(row)) {
      const isOurs = client.name.startsWith('ours');
      if (isOurs) assert.ok(['pass', 'n/a'].includes(verdict), `${client.name}: ${id} ${verdict}`);
      if (verdict !== 'fail' || letter === 'C') continue;
      const section = explained.find((text) => text.startsWith(`**\`${id}\`**`)) ?? '';
      const named = section.slice(0, section.indexOf(')')).split(/[(,)]\s*/);
      assert.ok(named.includes(client.name), `REDS.md: ${id} of ${client.name}`);
    }
  }
  assert.ok(rows.filter(({ client }: any) => client.name.startsWith('ours')).length === 4);
});

test('what is installed for a row has an exact version, and an agent is played by a script', async () => {
  const { clients } = await load('clients.mjs');
  const packages = clients.flatMap((client: any) => client.packages ?? []);
  assert.ok(packages.length > 10);
  for (const each of packages) assert.match(each, /.@\d+\.\d+\.\d+$/);
});

test('the model of an agent calls what the steps name, on each wire, and writes down what it is shown', async () => {
  const { scripted } = await load('adapters/model.mjs');
  const steps = [{ list: 1 }, { call: 'echo', args: { a: 1 } }, { call: 'gone' }];
  const fn = { name: 'mcp_museum_echo', description: 'd' };
  const chat = (messages: object[]) => ({ messages, tools: [{ type: 'function', function: fn }] });
  const wires: [string, object, (id: string) => object][] = [
    [
      '/v1/chat/completions',
      chat([]),
      (id) => chat([{ role: 'tool', tool_call_id: id, content: 'came' }]),
    ],
    [
      '/v1/responses',
      { tools: [fn] },
      (id) => ({
        tools: [fn],
        input: [{ type: 'function_call_output', call_id: id, output: 'came' }],
      }),
    ],
    [
      '/v1beta/models/m:streamGenerateContent',
      { tools: [{ functionDeclarations: [fn] }] },
      (id) => ({
        tools: [{ functionDeclarations: [fn] }],
        contents: [{ parts: [{ functionResponse: { id, response: 'came' } }] }],
      }),
    ],
  ];
  for (const [path, first, second] of wires) {
    const told: any[] = [];
    const isOurs = ({ name }: any) => name.includes('museum');
    const tell = (step: number, { ms, ...rest }: any) => told.push({ step, ...rest });
    const model = await scripted(steps, { isOurs, tell });
    const query = async (body: object) => {
      const options = { method: 'POST', body: JSON.stringify(body) };
      return (await fetch(model.url + path, options)).text();
    };
    const asked = await query(first);
    assert.match(asked, /mcp_museum_echo/);
    const [id] = /call_1_\d+/.exec(asked)!;
    assert.match(await query(second(id)), /The steps are done/);
    model.close();
    const [list, call, gone] = told;
    assert.match(list.out, /mcp_museum_echo/);
    assert.deepEqual(call, { step: 1, ok: true, out: 'came' });
    assert.deepEqual([gone.ok, gone.error], [false, 'the tool gone is not offered to the model']);
  }
});

test('every exhibit has its bug in the right-and-wrong client, and every bug its exhibit', async () => {
  const { ids } = await load('exhibits/all.mjs');
  const sources = readdirSync(museum).filter((name) => name.startsWith('wrong'));
  const text = sources.map((name) => readFileSync(join(museum, name), 'utf8')).join('\n');
  const bugs = new Set([...text.matchAll(/\bis\('([\w-]+)'/g)].map(([, bug]) => bug));
  assert.deepEqual([...bugs].sort(), [...ids].sort());
});

test('our own rows load what the package is built of', () => {
  const adapter = readFileSync(join(museum, 'adapters', 'ours.mjs'), 'utf8');
  const loaded = [...adapter.matchAll(/load\('(\S+)\.js'\)/g)].map(([, name]) => `${name}.ts`);
  const built = readFileSync(join(root, 'chapters', 'build.ts'), 'utf8');
  assert.equal(loaded.length, 2);
  for (const module of loaded) assert.ok(built.includes(`'${module}'`), module);
});
