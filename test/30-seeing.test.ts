// Chapter 30: the format of traces, recording between a client and a server, and the page that
// draws them.

import assert from 'node:assert/strict';
import { readFileSync, statSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { PassThrough, Writable } from 'node:stream';
import { afterEach, test } from 'node:test';
import { Keeper } from '../chapters/30-seeing/more/keep.ts';
import { recordBetween } from '../chapters/30-seeing/record.ts';
import { readTrace } from '../chapters/30-seeing/more/read-trace.ts';
import { LivePage, pageWith, sealed } from '../chapters/30-seeing/view.ts';
import type { Json } from '../mcp.ts';
import { cleanUp, folder, later, rejection, root } from './help/basics.ts';
import { back, lines, out } from './help/traces.ts';

afterEach(cleanUp);

// ─── The format ──────────────────────────────────────────────────────────────────────────────────

test('a trace is read: header, messages, noise, stderr, events; a line that is being written is not there yet', () => {
  const text =
    lines(
      { trace: 1, program: 'p', started: 'then' },
      out({ id: 1, method: 'ping' }, 1.5),
      back({ id: 1, result: {} }, 2),
      { at: 3, server: 's', noise: 'banner' },
      { at: 4, server: 's', stderr: 'oops' },
      { at: 5, type: 'tool_end', ms: 7 },
    ) + '{"at":6,"dir":"out","ser';
  const { header, messages, happenings, problems } = readTrace(text);
  assert.deepEqual(header, { version: 1, lines: [1] });
  assert.deepEqual(
    messages.map(({ line, ms, dir }) => [line, ms, dir]),
    [
      [2, 1.5, 'out'],
      [3, 2, 'in'],
    ],
  );
  assert.deepEqual(
    happenings.map(({ ms, record }) => [ms, Object.keys(record).at(-1)]),
    [
      [3, 'noise'],
      [4, 'stderr'],
      [5, 'ms'],
    ],
  );
  assert.deepEqual(problems, []);
});

test('older files are read: the time of day becomes a clock, text on the wire is noise; a list is several messages', () => {
  const t = (s: number) => `2026-11-17T10:00:0${s}.000Z`;
  const text = lines(
    { t: t(0), type: 'trace' },
    { t: t(1), dir: 'in', server: 's', msg: 'a banner' },
    {
      t: t(2),
      dir: 'in',
      server: 's',
      msg: [
        { jsonrpc: '2.0', id: 1, result: {} },
        { jsonrpc: '2.0', id: 2, result: {} },
      ],
    },
  );
  const { header, messages, happenings } = readTrace(text);
  assert.equal(header.version, 0);
  assert.deepEqual(
    messages.map(({ ms, line }) => [ms, line]),
    [
      [2000, 3],
      [2000, 3],
    ],
  );
  assert.equal(happenings[0]!.record.noise, 'a banner');
});

test('what is no trace is named by its line; a later version is refused in words', () => {
  assert.deepEqual(
    readTrace('{"a":1}\nnonsense\n[1]\n').problems.map(({ line }) => line),
    [2, 3],
  );
  assert.match(
    readTrace('{"trace":7}\n').problems[0]!.text,
    /version 7; this program reads up to 1/,
  );
});

// ─── Record ──────────────────────────────────────────────────────────────────────────────────────

async function recordedBetween(script: string, input: Buffer[]) {
  const written: Json[] = [];
  const ways = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() };
  const seen = { out: [] as Buffer[], err: [] as Buffer[] };
  ways.stdout.on('data', (chunk: Buffer) => seen.out.push(chunk));
  ways.stderr.on('data', (chunk: Buffer) => seen.err.push(chunk));
  const running = recordBetween(
    process.execPath,
    ['-e', script],
    's',
    (line) => written.push(typeof line === 'function' ? line() : line),
    ways,
  );
  for (const chunk of input) ways.stdin.write(chunk);
  ways.stdin.end();
  const code = await running;
  return { code, written, out: Buffer.concat(seen.out), err: Buffer.concat(seen.err) };
}

test('record changes no byte: odd bytes, CRLF, no last line feed, megabytes; the exit code and a signal are passed on', async () => {
  const odd = Buffer.concat([
    Buffer.from('{"jsonrpc":"2.0","id":1,"method":"ping"}\r\n'),
    Buffer.from([0xff, 0xfe, 0x00, 0x0a]),
    Buffer.from('x'.repeat(3_000_000)),
    Buffer.from('\n{"half":'),
  ]);
  const chunks = [odd.subarray(0, 10), odd.subarray(10, 50), odd.subarray(50)];
  const echo =
    'process.stdin.pipe(process.stdout); process.stderr.write("on \\u001b[31mstderr"); process.stdin.on("end", () => { process.exitCode = 7; })';
  const { code, out: echoed, err, written } = await recordedBetween(echo, chunks);
  assert.equal(code, 7);
  assert.ok(echoed.equals(odd), 'every byte, in order');
  assert.equal(err.toString(), 'on \u001b[31mstderr');
  const messages = written.filter(({ msg }) => msg !== undefined);
  assert.deepEqual(
    messages.map(({ dir, msg }) => [dir, (msg as Json).method]),
    [
      ['out', 'ping'],
      ['in', 'ping'],
    ],
  );
  assert.ok(
    written.some(({ noise }) => noise === '{"half":'),
    'what is not a message is noise',
  );
  assert.deepEqual(written.at(-1), {
    type: 'server',
    server: 's',
    state: 'ended',
    code: 7,
    signal: null,
  });
  assert.equal((await recordedBetween('process.kill(process.pid, "SIGTERM")', [])).code, 128 + 15);
  const missing = await rejection(
    recordBetween(join(root, 'no such program'), [], 's', () => {}, {
      stdin: new PassThrough(),
      stdout: new PassThrough(),
      stderr: new PassThrough(),
    }),
  );
  assert.equal(missing.code, 'ENOENT');
});

test('record: a reader that leaves is told to the server, as by a pipe; a trace that cannot be written disturbs nothing', async () => {
  const endless =
    'process.stdout.on("error", () => process.exit(4)); setInterval(() => process.stdout.write("x".repeat(1000) + "\\n"), 1)';
  const stdout = new Writable({ write: (_chunk, _encoding, done) => done(new Error('EPIPE')) });
  const ways = { stdin: new PassThrough(), stdout, stderr: new PassThrough() };
  assert.equal(await recordBetween(process.execPath, ['-e', endless], 's', () => {}, ways), 4);

  const lost: string[] = [];
  const keeper = new Keeper(folder(), (why) => lost.push(why.message)); // a folder is not a file
  keeper.write({ type: 'note' });
  keeper.flush();
  assert.equal(lost.length, 1, `${lost}`);
  assert.match(lost[0]!, /is not a regular file/);
  const file = join(folder(), 'new', 't.jsonl');
  const kept = new Keeper(file, (why) => lost.push(why.message));
  for (let n = 0; n < 3; n++) kept.write({ n }, 2 ** 23); // the third is too much to wait
  assert.equal(readTrace(readFileSync(file, 'utf8')).happenings.length, 3);
  const odd = () => {
    throw new Error('cannot be told');
  };
  kept.write(odd);
  kept.flush();
  assert.deepEqual(lost.slice(1), ['cannot be told']);
});

// ─── The page ────────────────────────────────────────────────────────────────────────────────────

const viewer = join(root, 'chapters', '30-seeing', 'viewer.html');

test('the page is one file of at most 130 KB, sealed by the hashes of its script and its style, and loads nothing', () => {
  const page = readFileSync(viewer, 'utf8');
  assert.ok(statSync(viewer).size <= 130_000, `${statSync(viewer).size}`);
  assert.equal(sealed(page), page, 'the hashes in viewer.html are old: npm run seal');
  assert.match(page, /default-src 'none'/);
  assert.doesNotMatch(
    page,
    /innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function|<link|<img|@import|url\(/,
  );
});

/** The contrast of two colours, as WCAG 2 defines it. */
function contrast(one: string, other: string): number {
  const light = (colour: string) => {
    const parts = [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16) / 255);
    const [r = 0, g = 0, b = 0] = parts.map((part) =>
      part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4,
    );
    return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
  };
  const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
  return high! / low!;
}

test('every colour of words on the page has a contrast of 4.5 on every ground, and of signs 3, in both themes', () => {
  const palettes = [...readFileSync(viewer, 'utf8').matchAll(/:root \{([^}]*--paper[^}]*)\}/g)];
  assert.equal(palettes.length, 2);
  for (const [, palette = ''] of palettes) {
    const colours = Object.fromEntries(
      [...palette.matchAll(/--([\w-]+): (#[\da-f]{6})/g)].map(([, name, value]) => [name, value]),
    );
    for (const ground of ['paper', 'panel', 'pick', 'hover']) {
      for (const words of ['ink', 'soft', 'ask', 'ok', 'bad', 'gone', 'note', 'told'])
        assert.ok(
          contrast(colours[words], colours[ground]) >= 4.5,
          `${words} on ${ground}: ${palette}`,
        );
      for (const sign of ['edge', 'pick-edge'])
        assert.ok(contrast(colours[sign], colours[ground]) >= 3, `${sign} on ${ground}`);
    }
  }
});

test('F30: a trace inside the page cannot begin a tag, and its name cannot leave its place', () => {
  const evil = lines(
    { trace: 1 },
    out({ id: 1, method: '</script><script>alert(1)</script><!--' }),
  );
  const page = pageWith(evil, '"><script>alert(2)</script>');
  assert.equal(
    page.match(/<script/g)!.length,
    readFileSync(viewer, 'utf8').match(/<script/g)!.length + 1,
  );
  assert.doesNotMatch(page, /alert\(1\)<\/script>|"><script>alert\(2\)/);
  const [, data = ''] = /id="trace"[^>]*>([^]*?)<\/script>/.exec(page)!;
  assert.equal(readTrace(data).messages[0]!.msg.method, '</script><script>alert(1)</script><!--');
});

function get(url: string, headers: Record<string, string> = {}, method = 'GET') {
  return new Promise<{ status: number; headers: Json; body: string }>((done, fail) => {
    const request = httpRequest(url, { headers, method }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (text) => {
        body += text;
        if (body.includes('END')) request.destroy();
      });
      response.on('close', () =>
        done({ status: response.statusCode!, headers: response.headers as Json, body }),
      );
    });
    request.on('error', fail);
    request.end();
  });
}

test('G30: live: only this machine, only this path, only this Host and Origin; what came before is told, and what comes', async () => {
  const page = new LivePage();
  later(() => page.close());
  const url = await page.start();
  const { host, origin } = new URL(url);
  page.write('{"first":1}');
  assert.match(url, /^http:\/\/127\.0\.0\.1:\d+\/[0-9a-f]{32}\/$/);
  assert.equal((await get(url)).status, 200);
  assert.equal((await get(url, { origin })).status, 200);
  const refusals: [string, string, Record<string, string>, string?][] = [
    ['a name that leads here', url, { host: `evil.example:${new URL(url).port}` }],
    ['localhost by name', url, { host: host.replace('127.0.0.1', 'localhost') }],
    ['a foreign page', url, { origin: 'https://evil.example' }],
    ['a page without an origin', url, { origin: 'null' }],
    ['events for a foreign page', `${url}events`, { origin: 'https://evil.example' }],
  ];
  for (const [name, address, headers] of refusals) {
    const answer = await get(address, headers);
    assert.deepEqual(
      [answer.status, answer.headers['access-control-allow-origin']],
      [403, undefined],
      name,
    );
  }
  assert.equal((await get(`${origin}/`)).status, 404);
  assert.equal((await get(`${origin}/${'0'.repeat(32)}/`)).status, 404);
  assert.equal((await get(url, {}, 'POST')).status, 405);
  const events = get(`${url}events`);
  page.write('{"END":2}');
  assert.match((await events).body, /data: \{"first":1\}\n\ndata: \{"END":2\}\n\n/);
});
