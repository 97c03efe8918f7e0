// The chat, at a real terminal: what a person sees, types and interrupts.

import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { allGone, cleanUp, folder, goodServer, habit, pidsIn, until } from './help/basics.ts';
import { call, calls, fail, say, startModelServer, type ModelServer } from './help/model-server.ts';
import {
  KEYS,
  place,
  readLines,
  repository,
  run,
  start,
  Terminal,
  userServers,
} from './help/terminal.ts';

afterEach(cleanUp);

const demo = { command: process.execPath, args: [goodServer] };
const anthropic = ({ url }: ModelServer) => ({
  ANTHROPIC_API_KEY: 'a-key-for-tests',
  ANTHROPIC_BASE_URL: url,
});
const ASKS = /^(Allow it\?|┆) .*: *$/; // a question, maybe of two lines, whose answer is still missing

test('the first run: this repository\'s own server is approved, and "add 2 and 40" goes over the wire', async () => {
  const where = place({ '.mcp.json': readFileSync(join(repository, '.mcp.json'), 'utf8') });
  mkdirSync(join(where.cwd, 'fixtures'));
  copyFileSync(goodServer, join(where.cwd, 'fixtures', 'server.mjs'));
  const terminal = new Terminal(where);
  await terminal.see(/^mcp-by-hand .* · model rehearsal · mode ask/);
  await terminal.see('matches words and does not understand');
  await terminal.ready();
  terminal.enter('add 2 and 40');
  await terminal.see(/^Start it\?.*: *$/);
  for (const words of [
    'wants to start the MCP server "demo"',
    'command: "node"',
    '"fixtures/server.mjs"',
    'sha256:',
  ])
    assert.ok(terminal.text.includes(words), words);
  terminal.enter('y');
  await terminal.see(ASKS);
  assert.match(terminal.text, /the tool "add" of the MCP server "demo"[^]*^  a: 2\n  b: 40\n/m);
  terminal.enter('yes');
  await terminal.see(/^✓ mcp__demo__add\(a: 2, b: 40\) \d+ ms$/);
  await terminal.see(/^42$/);
  await terminal.see(/^no tokens · \d/);
  await terminal.ready();

  terminal.enter('/mcp');
  await terminal.see(
    /^demo: connected · protocol 2025-11-25 · 2 tools · about \d+ tokens · started in \d+ ms · calculator-and-greeter/,
  );
  await terminal.see(/^  project, from .*\/\.mcp\.json$/);
  terminal.enter('/tools');
  await terminal.see(/^bash: [^]*\nmcp__demo__add: Adds two numbers\.\nmcp__demo__greet: /);
  terminal.enter('/mcp disable demo');
  await terminal.see(/^demo: disabled$/);
  terminal.enter('/mcp enable demo');
  await terminal.see(/^demo: connected/, 2);
  terminal.enter('/mcp disable demo/ad');
  await terminal.see('demo has no tool "ad"; did you mean "add"?');
  terminal.enter('/mcp reconnect dmeo');
  await terminal.see('no server is called dmeo; did you mean demo?');
  terminal.enter('/mcp reload');
  await terminal.see(/^demo: connected/, 3); // and nothing is asked: the entry is the same
  terminal.enter('/hlep');
  await terminal.see('there is no /hlep; did you mean /help?');
  terminal.enter('/help');
  await terminal.see('/mcp reconnect NAME');
  terminal.enter('/cost');
  await terminal.see('rehearsal: no tokens in this session');
  terminal.enter('/model openai/x');
  await terminal.see('needs a key: set OPENAI_API_KEY');
  terminal.enter('/model');
  await terminal.see(/^model rehearsal$/);
  terminal.enter('/trace trace.jsonl');
  await terminal.see(/^tracing to .*trace\.jsonl$/);
  terminal.enter('/clear');
  await terminal.see('a new conversation');
  terminal.enter('/exit');
  assert.equal(await terminal.ended(), 0);
  assert.equal(readLines(join(where.cwd, 'trace.jsonl'))[0].trace, 1);
});

test("the gate's question: yes, no, a reason, always", async () => {
  const gift = (n: number) => call('mcp__s__echo', { n, note: `gift ${n}` });
  const model = await startModelServer([gift(1), gift(2), gift(3), gift(4), gift(5), say('done')]);
  const terminal = new Terminal(
    place({}, userServers({ s: habit() })),
    ['go on'],
    anthropic(model),
  );
  const answer = async (n: number, line: string) => {
    await terminal.see(new RegExp(`^  n: ${n}\\n  note: "gift ${n}"\\nAllow it\\?[^]*: *$`));
    terminal.enter(line);
  };
  await answer(1, 'y');
  await terminal.see(/^✓ mcp__s__echo\(n: 1, note: "gift 1"\)/);
  await answer(2, 'n');
  await terminal.see(/^⊘ mcp__s__echo\(n: 2, note: "gift 2"\) denied\n  The user said no/);
  await answer(3, 'not on a Sunday');
  await answer(4, 'a');
  await terminal.see(/^✓ .*n: 5/); // without a question
  await terminal.ready();
  const blocks: any[] = model.requests.at(-1)!.body.messages.flatMap(({ content }: any) => content);
  const results = blocks.filter(({ type }) => type === 'tool_result');
  assert.deepEqual(
    results.map(({ is_error }) => is_error ?? false),
    [false, true, true, false, false],
  );
  assert.match(JSON.stringify(results[2].content), /The user said no: not on a Sunday/);
  assert.match(terminal.text, /^60 tokens in, 30 out · /m);
  terminal.press(KEYS.up, KEYS.ctrlD); // no answer to a question is in the history: the line is still empty
  assert.deepEqual([await terminal.ended(), model.problems], [0, []]);
});

test("Ctrl-C: stops the model, a server's call, a command, a question, the wait for a busy model; the chat goes on; twice it quits", async () => {
  const pids = join(folder(), 'pids');
  const model = await startModelServer([
    say('and on '.repeat(1000), { delayMs: 20 }),
    call('mcp__s__sleep', { ms: 1e8 }),
    call('bash', { command: `echo $$ >> '${pids}'; sleep 1000 & echo $! >> '${pids}'; wait` }),
    calls([
      { name: 'mcp__s__echo', args: { n: 1 } },
      { name: 'mcp__s__echo', args: { n: 2 } },
    ]),
    fail(529, { headers: { 'retry-after': '3600' } }),
    say('still here'),
  ]);
  const where = place({}, userServers({ s: habit() }));
  const terminal = new Terminal(
    where,
    ['--trace', 'trace.jsonl', '--allow', 'mcp__s__sleep'],
    anthropic(model),
  );
  await terminal.ready();
  terminal.enter('talk');
  await terminal.see('and on and on');
  terminal.press(KEYS.ctrlC);
  await terminal.see(/^stopped$/);
  await until(() => model.requests[0]!.abandoned);

  await terminal.ready();
  terminal.enter('sleep');
  const trace = () => readLines(join(where.cwd, 'trace.jsonl'));
  await until(() => trace().some(({ msg }) => msg?.method === 'tools/call'));
  terminal.press(KEYS.ctrlC);
  await terminal.see(/^■ mcp__s__sleep\(ms: 100000000\) .* aborted/);
  await terminal.see(/^stopped$/, 2);
  const { id } = trace().find(({ msg }) => msg?.method === 'tools/call').msg;
  assert.equal(
    trace().find(({ msg }) => msg?.method === 'notifications/cancelled').msg.params.requestId,
    id,
  );

  await terminal.ready();
  terminal.enter('command');
  await terminal.see(ASKS);
  terminal.enter('y');
  await until(() => pidsIn(pids).length === 2);
  terminal.press(KEYS.ctrlC);
  await terminal.see(/^stopped$/, 3);
  await allGone(pids);

  await terminal.ready();
  terminal.enter('question');
  await terminal.see(ASKS);
  terminal.type('ye');
  terminal.press(KEYS.ctrlC);
  await terminal.see(/^stopped$/, 4);
  await terminal.ready(); // the half answer is not the beginning of a prompt
  assert.doesNotMatch(terminal.text, /Allow it[^]*n: 2\nAllow it/); // nor is the second call asked about

  terminal.enter('busy');
  await terminal.see('! the model is busy (529); trying again in 60 s');
  terminal.press(KEYS.ctrlC);
  await terminal.see(/^stopped$/, 5);
  await terminal.ready();

  terminal.enter('hello?');
  await terminal.see('still here');
  await terminal.ready();
  terminal.type('half a prompt');
  await terminal.see(/^› half a prompt$/);
  terminal.press(KEYS.ctrlC);
  await terminal.ready();
  assert.doesNotMatch(terminal.text, /half a prompt|Ctrl-C again/);
  terminal.press(KEYS.ctrlC);
  await terminal.see('(Ctrl-C again, or /exit, to quit)');
  terminal.press(KEYS.ctrlC);
  assert.deepEqual([await terminal.ended(), model.problems], [130, []]);
});

test('the spinner: a bar where a server reports progress, cut in a narrow window, and nothing stays', async () => {
  const model = await startModelServer([
    call('mcp__s__work', { everyMs: 150, times: 10 }),
    say('finished'),
  ]);
  const where = place({}, userServers({ s: habit(), 'slow-one': habit('slow-start', '700') }));
  const terminal = new Terminal(where, ['work for me'], anthropic(model), 40);
  await terminal.see(/^. starting .*slow-one/);
  await terminal.see(/^Allow it\?[^]*: *$/);
  terminal.enter('y');
  await terminal.see(/^. mcp__s__work .* \[█+·+/);
  await terminal.see(/^✓ mcp__s__work\(everyMs: 150/);
  await terminal.see('finished');
  await terminal.ready();
  assert.ok(
    terminal.window.some((line) => /^✓ mcp__s__work\(.*… 1\.\d s$/.test(line)),
    'cut to fit, with its time',
  );
  assert.doesNotMatch(terminal.text, /[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏█]/, 'nothing of it is left');
  terminal.enter('/exit');
  assert.equal(await terminal.ended(), 0);
});

test('/mcp tells why a server failed, with its last words; of a paste each line has its turn', async () => {
  const servers = { dead: habit('dies-at-once', 'way'), gone: { command: 'no-such-command' } };
  const terminal = new Terminal(place({}, userServers(servers)));
  await terminal.ready();
  terminal.type('/mcp\r/cost\rread nothing.txt\r/exit\r');
  assert.equal(await terminal.ended(), 0);
  const { text } = terminal;
  assert.match(
    text,
    /^dead: failed\n  user, from .*settings\.json\n  .*"dead"[^]* exited\s+with\s+code\s+3\.\s+Its\s+last\s+words:$/m,
  );
  assert.match(text, /^    cannot find my way$/m);
  assert.match(
    text,
    /^gone: failed\n.*\n  .*\(no-such-command\) could not be started: command not found/m,
  );
  assert.match(text, /^› \/cost\nrehearsal: no tokens/m);
  assert.match(text, /^› read nothing\.txt\n✗ read\(path: "nothing\.txt"\) .*failed/m);
});

test('without a terminal: lines from a pipe, the last without an end; no prompt, spinner or colour', async () => {
  const where = place({}, userServers({ demo }));
  const input = 'add 2 and 40\ny\n/mcp\nglob "*.none"';
  const { code, out, err } = await run(where, [], { input });
  assert.equal(code, 3); // a call was refused
  assert.match(out, /Not allowed: mcp__demo__add.*nobody to ask/);
  assert.match(out, /^demo: connected/m);
  assert.match(err, /^⊘ mcp__demo__add\(a: 2, b: 40\) denied/m);
  assert.match(err, /^✓ glob\(pattern: "\*\.none"\)/m);
  assert.doesNotMatch(out + err, /\x1b|›|⠋|^42$/m);
  const exited = await run(where, ['--mode', 'read-only'], { input: '/exit\nadd 2 and 40\n' });
  assert.deepEqual([exited.code, exited.out, exited.err], [0, '', '']);
  const open = start(where, [], { input: null }); // somebody who writes, waits for the answer, and goes on
  open.child.stdin.write('/cost\n');
  await until(() => open.seen.out.includes('no tokens'));
  open.child.stdin.end('/model');
  assert.match((await open.ended).out, /^model rehearsal$/m);
});

test('what is pasted is one prompt; Ctrl-C, then some words, then Ctrl-C empties the line and does not quit', async () => {
  const model = await startModelServer([say('I got it.')]);
  const terminal = new Terminal(place(), [], anthropic(model));
  await terminal.ready();
  terminal.paste('one\ntwo\nthree');
  await terminal.see(/^three *$/);
  terminal.press(KEYS.enter);
  await terminal.see('I got it.');
  await terminal.ready();
  assert.deepEqual(
    model.requests.map(({ body }) => body.messages.at(-1).content[0].text),
    ['one\ntwo\nthree'],
  );
  terminal.press(KEYS.ctrlC);
  await terminal.see('Ctrl-C again');
  terminal.type('a long prompt');
  await terminal.see('a long prompt');
  terminal.press(KEYS.ctrlC);
  await until(() => !terminal.window.some((line) => line.includes('a long prompt')));
  terminal.press(KEYS.ctrlC);
  await terminal.see('Ctrl-C again', 2);
  terminal.press(KEYS.ctrlC);
  assert.equal(await terminal.ended(), 130);
  assert.ok(terminal.bytes.endsWith('\x1b[?2004l'), 'the terminal is given back as it was');
});

test('a window made narrower, then wider: what is typed is drawn again, and once', async () => {
  const terminal = new Terminal(place());
  await terminal.ready();
  terminal.type('a prompt that is longer than a narrow window is wide');
  await terminal.see('is wide');
  const insert = async (text: string, width: number) => {
    const { length } = terminal.bytes;
    terminal.resize(width);
    await until(() => terminal.bytes.length > length); // it has drawn the line again
    terminal.press(KEYS.ctrlA);
    terminal.type(text);
    await terminal.see(`› ${text}`);
    return terminal.window.slice(terminal.window.findIndex((line) => line.startsWith('›')));
  };
  assert.deepEqual(await insert('1', 40), [
    '› 1a prompt that is longer than a narrow',
    'window is wide',
  ]);
  assert.deepEqual(await insert('2', 120), [
    '› 21a prompt that is longer than a narrow window is wide',
  ]);
});

test('/mcp reload with a broken file goes on naming it; /trace that cannot be written changes nothing', async () => {
  const where = place({ '.mcp.json': '{}' });
  const terminal = new Terminal(where, ['--trace', 'good trace.jsonl']);
  await terminal.ready();
  writeFileSync(join(where.cwd, '.mcp.json'), '{ oops');
  terminal.enter('/mcp reload');
  await terminal.see(/^! .*\.mcp\.json is ignored/);
  await terminal.ready();
  terminal.enter('/mcp');
  await terminal.see(/^! .*\.mcp\.json is ignored/, 3); // as it happened, in the answer to reload, and in this one
  terminal.enter('/trace /no/such folder/x');
  await terminal.see('cannot write the trace');
  terminal.enter('/trace');
  await terminal.see(/^tracing to .*good trace\.jsonl/);
  assert.doesNotMatch(terminal.text, /no MCP servers/);
  terminal.enter(' /exit now');
  assert.equal(await terminal.ended(), 0);
});
