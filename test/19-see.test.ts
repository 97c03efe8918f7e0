// What a person sees of what the agent does, at a real terminal: before, while and after.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { endedRows, type EndedCall } from '../chapters/19-the-terminal/show.ts';
import { cleanUp, folder, habit } from './help/basics.ts';
import { call, say, startModelServer, type ModelServer } from './help/model-server.ts';
import { KEYS, place, run, start, Terminal, userServers } from './help/terminal.ts';

afterEach(cleanUp);

const anthropic = ({ url }: ModelServer) => ({
  ANTHROPIC_API_KEY: 'a-key-for-tests',
  ANTHROPIC_BASE_URL: url,
});
const numbered = (count: number) => Array.from({ length: count }, (_, n) => `line ${n}`);

test('the question about an edit is a diff, coloured by us; a changed file is not written; 40 columns are enough', async () => {
  const text = numbered(60).join('\n');
  const forged = 'Allow it? [y]es\x1b[32m';
  const edits = [
    ['line 30', forged],
    ['line 40', 'forty'],
    ['line 50', 'fifty'],
    ['line 59', 'last  '],
  ];
  const model = await startModelServer([
    call('read', { path: 'a.txt' }),
    ...edits.map(([old, fresh]) => call('edit', { path: 'a.txt', old, new: fresh })),
    call('write', { path: 'b.txt', content: numbered(300).join('\n') }),
    say('done'),
  ]);
  const where = place({ 'a.txt': text });
  const terminal = new Terminal(where, ['change it'], anthropic(model), 40, 24);
  const asked = async (last: RegExp) => {
    await terminal.see(new RegExp(`${last.source}\\nAllow it\\?[^]*: *$`));
    assert.ok(
      terminal.window.some((line) => line.startsWith('The model wants')),
      terminal.window.join('\n'),
    );
  };
  await asked(/^  "a\.txt": 1 line added, 1 line removed/);
  assert.match(
    terminal.text,
    /^   │ line 29\n  -│ line 30\n  \+│ Allow it\? \[y\]es\\x1b\[32m\n   │ line 31$/m,
  );
  assert.ok(terminal.bytes.includes('\x1b[31m  -│ line 30\x1b[39m'), 'removed is red');
  assert.ok(
    terminal.bytes.includes('\x1b[32m  +│ Allow it? [y]es\\x1b[32m\x1b[39m'),
    'added is green',
  );
  terminal.enter('y');
  await asked(/^  \+│ forty\n[^]*"a\.txt": 1 line added, 1 line removed/);
  writeFileSync(join(where.cwd, 'a.txt'), 'somebody was faster'); // while the question is open
  terminal.enter('y');
  await terminal.see(/^✗ edit/);
  assert.equal(readFileSync(join(where.cwd, 'a.txt'), 'utf8'), 'somebody was faster');
  await terminal.see(/^✗ edit/, 3); // and the next two are not asked about: they would fail
  await asked(/^  "b\.txt": a new file, 300 lines added\nNot all of it is in sight[^]*rest\./);
  assert.equal(terminal.text.match(/^The model wants to call/gm)!.length, 3);
  terminal.enter('y');
  await terminal.see('One letter counts only');
  terminal.enter('yes');
  await terminal.see(/^done$/);
  assert.equal(readFileSync(join(where.cwd, 'b.txt'), 'utf8'), numbered(300).join('\n'));
  assert.deepEqual(model.problems, []);
});

test('F21: while a command runs: what it is and the end of its output; afterwards its exit code and the end', async () => {
  const model = await startModelServer([
    call('bash', {
      command: `seq 1 30; printf '50 %%\\r55 %%\\r60 %%\\n'; until [ -e go ]; do sleep 0.1; done; echo over`,
    }),
    call('bash', {
      command:
        'for n in $(seq 1 30); do echo "step $n"; done\necho "✓ bash 1 ms, exit code 0"; printf "\\033[31mred\\033[2J\\n"; exit 3',
    }),
    call('mcp__s__echo', { text: 'a' }),
    call('edit', { path: 'a.txt', old: 'none', new: 'x' }),
    say('done'),
  ]);
  const where = place({ 'a.txt': 'one\n' }, userServers({ s: habit() }));
  const terminal = new Terminal(where, ['--mode', 'yolo', 'run it'], anthropic(model), 60, 30);
  await terminal.see(/^. bash \d.*\n  \$ seq 1 30; printf [^]*\n  │ 28\n  │ 29\n  │ 30\n  │ 60 %$/);
  writeFileSync(join(where.cwd, 'go'), '');
  await terminal.see(
    /^✓ bash \d[^\n]*, exit code 0\n  \$ seq 1 30; [^]*\n  … after 22 lines; \/last shows all\n  │ 23\n[^]*^  │ 30\n  │ 60 %\n  │ over$/,
  );
  await terminal.see(/^✗ bash \d[^\n]*, exit code 3\n  \$ for n in .*\n  > echo /);
  await terminal.see(
    /^  … after 22 lines; \/last shows all\n  │ step 23\n[^]*^  │ step 30\n  │ ✓ bash 1 ms, exit code 0\n  │ red$/,
  );
  await terminal.see(/^✓ mcp__s__echo\(text: "a"\) \d+ ms\n  │ \{"text":"a"\}$/);
  await terminal.see(/^✗ edit\(.*failed\n  a\.txt exists and you have not read it/);
  await terminal.ready();
  assert.match(
    terminal.text.replace(/\n +┆ | /g, ''),
    /havenotreaditinthissession;readitfirst\n/,
    'advice is not cut',
  );
  assert.doesNotMatch(terminal.text, /[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]/, 'nothing of the spinner is left');
  assert.equal(terminal.text.match(/│ 60 %/g)!.length, 1);
  assert.deepEqual(model.problems, []);
});

test('/last shows the last call whole, --verbose every one; what was written is a diff', async () => {
  const lines = numbered(40).join('\n');
  const model = await startModelServer([
    call('write', { path: 'new.txt', content: `${lines}\n` }),
    call('edit', { path: 'new.txt', old: 'line 20', new: 'twenty' }),
    say('done'),
    call('bash', { command: 'seq 1 12; printf "\\033[31mred\\n"' }),
    say('done again'),
  ]);
  const terminal = new Terminal(
    place(),
    ['--mode', 'accept-edits', '--allow', 'bash(seq 1 12; printf "\\033[31mred\\n")'],
    anthropic(model),
    80,
    40,
  );
  await terminal.ready();
  terminal.enter('/last');
  await terminal.see('no tool was called yet');
  terminal.enter('write');
  await terminal.see(
    /^✓ write\(path: "new\.txt"\) \d+ ms\n  @@ -0,0 \+1,40 @@\n  \+│ line 0\n[^]*⋮ \d+ rows\n[^]*  \+│ line 39$/,
  );
  await terminal.see(
    /^✓ edit\(path: "new\.txt"\) \d+ ms\n  @@ -18,7 \+18,7 @@\n   │ line 17\n[^]*  -│ line 20\n  \+│ twenty\n/,
  );
  assert.ok(terminal.bytes.includes('\x1b[32m  +│ twenty\x1b[39m'));
  await terminal.ready();
  terminal.enter('/last');
  await terminal.see(
    /^edit: worked, \d+ ms\n  path: "new\.txt"\n  old: "line 20"\n  new: "twenty"\n  @@ -18,7[^]*^  │ edited new\.txt\naccept-edits ›/,
  ); // the diff once
  await terminal.ready();
  terminal.enter('run');
  await terminal.see('  … after 3 lines; /last shows all');
  await terminal.ready();
  terminal.enter('/last');
  await terminal.see(
    /^bash: worked, .*\n  \$ seq 1 12; printf "\\033\[31mred\\n"\n  │ 1\n[^]*^  │ 12\n  │ \\x1b\[31mred\n  │ exit code 0$/,
  );
  terminal.enter('/exit');
  assert.deepEqual([await terminal.ended(), model.problems], [0, []]);

  const piped = await startModelServer([
    call('bash', { command: 'seq 1 12' }),
    say('done'),
    call('bash', { command: 'seq 1 12' }),
    say('done'),
  ]);
  const args = ['-p', 'go', '--allow', 'bash(seq 1 12)'];
  const quiet = await run(place(), args, { env: anthropic(piped) });
  assert.deepEqual([quiet.out, quiet.err], ['done\n', '']);
  const verbose = await run(place(), [...args, '--verbose'], { env: anthropic(piped) });
  assert.equal(verbose.out, 'done\n');
  assert.match(
    verbose.err,
    /^✓ bash .*, exit code 0\n  \$ seq 1 12\n  │ 1\n[^]*  │ 12\n  │ exit code 0\n$/,
  );
});

// ─── Servers that are late ───

test('the first prompt does not wait for a server that hangs; one that comes late joins with a line', async () => {
  const model = await startModelServer([
    say('first'),
    call('mcp__slow__echo', { n: 1 }),
    say('second'),
  ]);
  const flag = join(folder(), 'now');
  const servers = { mute: habit('mute'), slow: habit('starts-when', flag), good: habit() };
  const where = place({}, userServers(servers));
  const args = ['--wait', '0.3', '--allow', 'mcp__slow__echo'];
  const terminal = new Terminal(where, args, { ...anthropic(model), MCP_TIMEOUT: '600000' });
  await terminal.ready();
  terminal.enter('hello');
  await terminal.see(/^! still starting: mute, slow(, good)?; the answer does not wait/);
  await terminal.see(/^first$/);
  await terminal.ready();
  assert.match(
    JSON.stringify(model.requests[0]!.body.system),
    /Still starting, their tools come later: MCP servers/,
  );
  terminal.enter('/mcp'); // live, until Ctrl-C
  await terminal.see(/^. \/mcp\n  mute: connecting\n  slow: connecting\n  good: connected$/);
  writeFileSync(flag, '');
  await terminal.see(/^! slow is ready: \d+ tools$/);
  await terminal.see(/^. \/mcp\n  mute: connecting\n  slow: connected\n  good: connected$/);
  terminal.press(KEYS.ctrlC);
  await terminal.see(
    /^mute: connecting\n  \w+, from .*\nslow: connected · protocol .*\n  \w+, from /,
  );
  await terminal.ready();
  terminal.enter('and now?');
  await terminal.see(/^✓ mcp__slow__echo\(n: 1\)/);
  await terminal.see(/^second$/);
  await terminal.ready();

  for (const colour of ['\x1b[33mconnecting\x1b[39m', '\x1b[32mconnected\x1b[39m'])
    assert.ok(terminal.bytes.includes(colour), colour);
  const shown = (name: string) =>
    terminal.text.split('\n').filter((line) => line.startsWith(`${name}: `)).length;
  const before = [shown('good'), shown('slow')];
  terminal.enter('/mcp reconnect good');
  await terminal.see(/^good: connected/, before[0]! + 1);
  await terminal.ready();
  terminal.enter('/mcp disable good');
  await terminal.see(/^good: disabled\n  \w+, from .*$/);
  await terminal.ready();
  assert.equal(shown('slow'), before[1], 'that server only');
  terminal.enter('/mcp reconnect mute');
  await terminal.see(/^. \/mcp reconnect\n  mute: connecting$/);
  terminal.press(KEYS.ctrlC);
  await terminal.ready();
  terminal.enter('/exit');
  assert.deepEqual([await terminal.ended(), model.problems], [0, []]);
});

test('-p waits as --wait says, and goes on without what is not there', async () => {
  const model = await startModelServer([say('one'), say('two')]);
  const flag = join(folder(), 'now');
  const where = place({}, userServers({ slow: habit('starts-when', flag) }));
  const without = await run(where, ['-p', 'go', '--wait', '0'], { env: anthropic(model) });
  assert.deepEqual([without.code, without.out], [0, 'one\n']);
  assert.match(without.err, /^! still starting: slow/);
  const waiting = start(where, ['-p', 'go', '--wait', '600'], {
    env: { ...anthropic(model), MCP_TIMEOUT: '600000' },
  });
  await once(waiting.child, 'spawn');
  writeFileSync(flag, '');
  const { code, err } = await waiting.ended;
  assert.deepEqual([code, err], [0, '']);
  const tools = model.requests.map(({ body }) =>
    body.tools.some(({ name }: any) => name === 'mcp__slow__echo'),
  );
  assert.deepEqual(tools, [false, true]);
  const odd = await run(where, ['-p', 'go', '--wait', 'long']);
  assert.deepEqual([odd.code, /--wait is a number of seconds/.test(odd.err)], [2, true]);
});

test('in 40 columns a command and a message are whole, and what is too much says how much it is', () => {
  const call = (more: Partial<EndedCall>): EndedCall => {
    return {
      name: 'bash',
      args: {},
      startedAt: 0,
      outcome: 'worked',
      ms: 1,
      text: 'exit code 0',
      ...more,
    };
  };
  const command = `echo ${'one two three '.repeat(15)}end`;
  const words = (rows: string[]) =>
    rows
      .map((row) => row.replace(/^  [$│┆] /, '').trim())
      .join(' ')
      .replace(/\s+/g, ' ');
  const ran = endedRows(call({ kind: 'shell', args: { command } }), 40);
  assert.equal(words(ran.rows), command);
  assert.ok(ran.rows.every((row) => row.length <= 40));
  const advice = `nothing was written, because ${'it is so '.repeat(25)}and what to do next: read it again`;
  const failed = endedRows(
    call({ name: 'write', kind: 'write', outcome: 'failed', text: advice }),
    40,
  );
  assert.equal(words(failed.rows), advice);
  const long = endedRows(call({ kind: 'mcp', name: 'mcp__s__x', text: 'y'.repeat(90_000) }), 40);
  assert.ok(long.rows.length <= 8 && long.rows.some((row) => /^⋮ [\d,]+ characters$/.test(row)));
});
