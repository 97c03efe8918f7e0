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
  assert.match(readFileSync(join(at, 'row.html'), 'utf8'), /class="red"><details><summary>✗ fail/);
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
    if (letter === 'P') assert.ok(words, `${id} is of class P: which words?`);
    if (promise) assert.ok(promises.includes(promise), `${id}: the judge has no ${promise}`);
    for (const source of [words, ...reports])
      if (source) assert.equal(typeof source.isChecked, 'boolean', id);
  }
});

test('every exhibit has its bug in the right-and-wrong client, and every bug its exhibit', async () => {
  const { ids } = await load('exhibits/all.mjs');
  const sources = readdirSync(museum).filter((name) => name.startsWith('wrong'));
  const text = sources.map((name) => readFileSync(join(museum, name), 'utf8')).join('\n');
  const bugs = new Set([...text.matchAll(/\bis\('([\w-]+)'/g)].map(([, bug]) => bug));
  assert.deepEqual([...bugs].sort(), [...ids].sort());
});
