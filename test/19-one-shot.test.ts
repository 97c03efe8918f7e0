// One prompt, one answer: what a script sees of the program.

import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { promisify } from 'node:util';
import { VERSION } from '../mcp.ts';
import { cleanUp, folder, goodServer, habit, until } from './help/basics.ts';
import { call, calls, fail, say, startModelServer, type ModelServer } from './help/model-server.ts';
import {
  command,
  fromSource,
  jsonLines,
  place,
  readLines,
  run,
  start,
  userServers,
  type Place,
} from './help/terminal.ts';

afterEach(cleanUp);

const demo = { command: process.execPath, args: [goodServer] };
const anthropic = ({ url }: ModelServer) => ({
  ANTHROPIC_API_KEY: 'a-key-for-tests',
  ANTHROPIC_BASE_URL: url,
});

/** The transcripts of a project, as a user would find them. */
function transcripts({ home }: Place): string[] {
  const sessions = join(home, '.mcp-by-hand', 'sessions');
  const names = readdirSync(sessions, { recursive: true }) as string[];
  return names.filter((name) => name.endsWith('.jsonl')).map((name) => join(sessions, name));
}

test('an answer over the Anthropic wire, with a server of --mcp-config; --wire, --trace, --continue', async () => {
  const model = await startModelServer([
    call('mcp__demo__add', { a: 2, b: 40 }, { text: 'Let me see.' }),
    say('It is 42.'),
    say('Nothing else.'),
  ]);
  const where = place();
  const trace = join(where.cwd, 'trace.jsonl');
  const flags = ['-p', '--wire', '--trace', trace, '--allow', 'mcp__demo__add'];
  const servers = ['--mcp-config', JSON.stringify({ mcpServers: { demo } })];
  const first = await run(where, [...flags, ...servers, 'add 2 and 40'], { env: anthropic(model) });
  assert.deepEqual([first.code, first.out], [0, 'It is 42.\n']);
  assert.match(first.err, /^→ demo \{"jsonrpc":"2\.0","id":\d,"method":"initialize"/m);
  assert.match(first.err, /^→ demo .*"method":"tools\/call".*\n← demo .*"text":"42"/m);
  assert.doesNotMatch(first.err, /\x1b/);

  const second = await run(where, ['-p', '--continue', 'and now?'], { env: anthropic(model) });
  assert.deepEqual([second.code, second.out], [0, 'Nothing else.\n']);
  assert.deepEqual(model.problems, []);
  const roles = model.requests[2]!.body.messages.map(({ role }: { role: string }) => role);
  assert.deepEqual(roles, ['user', 'assistant', 'user', 'assistant', 'user']);

  const records = readLines(trace);
  assert.ok(
    records.some(
      ({ dir, server, msg }) => dir === 'out' && server === 'demo' && msg.method === 'tools/call',
    ),
  );
  assert.ok(records.some(({ type, name }) => type === 'tool_end' && name === 'mcp__demo__add'));
  const { transport, protocolVersion } = records.find(
    ({ type, state }) => type === 'server' && state === 'connected',
  );
  assert.deepEqual(
    [transport, protocolVersion],
    ['stdio', '2025-11-25'],
    'how it is reached, and what it speaks',
  );
  assert.equal(records[0].trace, 1);
  const times = records.slice(1).map(({ at }) => at);
  assert.deepEqual(
    times,
    times.toSorted((a, b) => a - b),
    'monotonic',
  );
  const files = transcripts(where);
  assert.equal(files.length, 1, "the second run went on in the first one's file");
  const turns = readLines(files[0]!)
    .slice(1)
    .map(({ role }) => role);
  assert.deepEqual(turns, ['user', 'assistant', 'tools', 'assistant', 'user', 'assistant']);
});

test('--json over the OpenAI wire: one event per line; prompt from stdin; --strict-mcp-config', async () => {
  const model = await startModelServer([
    calls([
      { name: 'mcp__demo__add', args: { a: 2, b: 40 } },
      { name: 'mcp__demo__greet', args: { name: 'Ada' } },
    ]),
    say('Two\nlines.', { usage: { input: 12_345, output: 6, cached: 0 } }),
  ]);
  const marker = join(folder(), 'marker');
  const where = place(
    { 'servers.json': { demo } },
    userServers({ other: habit('canary', marker) }),
  );
  const flags = [
    '--json',
    '--model',
    'openai/some',
    '--base-url',
    `${model.url}/v1`,
    '--allow',
    'mcp__demo__*',
  ];
  const servers = ['--mcp-config', 'servers.json', '--strict-mcp-config'];
  const { code, out, err } = await run(where, [...flags, ...servers, 'first part'], {
    input: 'second part\n',
  });
  assert.deepEqual([code, err, model.problems], [0, '', []]);
  assert.equal(model.requests[0]!.body.messages[1].content, 'first part\n\nsecond part');
  const events = jsonLines(out);
  assert.ok(events.every((event) => event.model === 'openai/some'));
  const types = events.map(({ type }) => type).filter((type, n, all) => type !== all[n - 1]);
  const expected = [
    'session',
    'usage',
    'tool_start',
    'tool_end',
    'tool_start',
    'tool_end',
    'text',
    'usage',
    'done',
  ];
  assert.deepEqual(types, expected);
  const { id, version } = events[0];
  assert.equal(version, VERSION);
  assert.ok(
    transcripts(where)[0]!.endsWith(`${id}.jsonl`),
    'by its id the conversation is found again',
  );
  assert.deepEqual(
    events.filter(({ type }) => type === 'tool_end').map(({ text }) => text),
    ['42', 'Hello, Ada!'],
  );
  const { ending, text, turns, usage, ms } = events.at(-1);
  assert.deepEqual([ending, text, turns], ['done', 'Two\nlines.', 2]);
  assert.deepEqual([usage, Number.isInteger(ms)], [{ input: 12_355, output: 11, cached: 0 }, true]);
  assert.ok(!existsSync(marker));
});

test('an answer in any script goes into a pipe or a file as it is, but for what acts on a terminal', async () => {
  const text =
    'می\u200cخواهم ශ්\u200dරී 👩\u200d👩\u200d👧 ❤\ufe0f Donau\xaddampf a\u200cb 葛\u{e0100} **bold** `code`';
  const model = await startModelServer([say(text), say(`${text}\x1b[2J\u202e\u{e0041}`)]);
  const where = place();
  const plain = await run(where, ['-p', 'go'], { env: anthropic(model) });
  assert.deepEqual([plain.code, plain.out], [0, `${text}\n`]);
  const chat = await run(where, [], { env: anthropic(model), input: 'go\n' });
  assert.equal(chat.out, `${text}\\x1b[2J\\u{202e}\\u{e0041}\n`);
});

test('exit 2: what was typed makes no sense, and the nearest right thing is named', async () => {
  const where = place();
  const cases: [string[], RegExp][] = [
    [['--modell', 'rehearsal'], /no option --modell; did you mean --model\?/],
    [['-p', '--frobnicate', 'hello'], /no option --frobnicate; if it is a text.* put -- before it/],
    [['--mode', 'careful'], /--mode is one of ask, read-only, accept-edits, yolo, not careful/],
    [['-p', '--max-turns', '0', 'hello'], /--max-turns is a number above 0, not 0/],
    [['-p', '--max-tokens', '1e9x', 'hello'], /--max-tokens is a number above 0, not 1e9x/],
    [
      ['-p', '--env', 'TOKEN=hunter2', 'hello'],
      /--env takes the name .* write TOKEN=… mcp-by-hand --env TOKEN$/m,
    ],
    [
      ['-p', '--env', 'NOT_SET_ANYWHERE', 'hello'],
      /--env NOT_SET_ANYWHERE: there is no such variable\. Set it first: /,
    ],
    [['-p', '--allow-server', 'demo', 'hello'], /--allow-server is NAME=sha256:/],
    [['-p'], /there is no prompt/],
    [['mcp', 'lst'], /there is no "mcp lst"; write mcp list/],
  ];
  const ends = await Promise.all(cases.map(([args]) => run(where, args)));
  for (const [n, { code, out, err }] of ends.entries()) {
    assert.deepEqual([code, out], [2, ''], err);
    assert.match(err, cases[n]![1]);
    assert.equal(err.trimEnd().split('\n').length, 1, err);
  }
  const json = await run(where, ['--json', '--modle', 'x']);
  assert.deepEqual(Object.keys(jsonLines(json.err)[0]), ['type', 'kind', 'message']);
});

test('exit 3: the configuration is wrong, or a permission is missing', async () => {
  const broken = place({}, { '.claude/settings.json': '{ "permissions": { "deny": ["bash"] }, }' });
  const where = place();
  const [A16, denied, keyless, configless, folderless] = await Promise.all([
    run(broken, ['-p', 'hello']),
    run(where, ['-p', 'run "echo hi"']),
    run(where, ['-p', '--model', 'anthropic/some', 'hello']),
    run(where, ['-p', '--mcp-config', 'nowhere.json', 'hello']),
    run(where, ['-p', '--add-dir', 'nowhere', 'hello']),
  ]);
  assert.deepEqual(
    [A16, denied, keyless, configless, folderless].map(({ code }) => code),
    [3, 3, 3, 3, 3],
  );
  assert.match(A16.err, /settings\.json cannot be read.*nothing is done before it can be read/);
  assert.match(denied.err, /^! bash: Not allowed: .*nobody to ask.* --allow 'bash\(echo hi\)'/m);
  assert.match(denied.out, /Not allowed/);
  assert.match(keyless.err, /set ANTHROPIC_API_KEY in the environment, or use --model rehearsal/);
  assert.match(configless.err, /--mcp-config nowhere\.json: there is no such file/);
  assert.match(folderless.err, /--add-dir nowhere: there is no such folder/);
});

test('exit 4: nobody answers; exit 5: the model refuses; exit 6: the turn limit', async () => {
  const gone = await startModelServer([]);
  await gone.close();
  const refusing = await startModelServer([fail(401, { message: 'bad\u001b[2J key' })]);
  const looping = await startModelServer([
    call('glob', { pattern: '*' }),
    call('glob', { pattern: '*' }),
  ]);
  const where = place();
  const [four, five, six] = await Promise.all([
    run(where, ['-p', 'hello'], { env: anthropic(gone) }),
    run(where, ['--json', 'hello'], { env: anthropic(refusing) }),
    run(where, ['-p', '--max-turns', '2', 'hello'], { env: anthropic(looping) }),
  ]);
  assert.deepEqual([four.code, five.code, six.code], [4, 5, 6]);
  assert.match(four.err, /^cannot reach anthropic\/.*ECONNREFUSED$/m);
  const error = jsonLines(five.err).find(({ type }) => type === 'error');
  assert.deepEqual([error.type, error.kind], ['error', 'refused']);
  assert.equal(jsonLines(five.out).at(-1).ending, 'error');
  assert.match(six.err, /turn limit.*--max-turns/);
  assert.equal(looping.requests.length, 2);
});

test('exit 7: the answer was cut off; --max-tokens goes out on both wires, and a service may refuse it', async () => {
  const cut = () => say('Half of what I', { stop: 'length' });
  const message =
    'max_tokens: 999999 > 64000, which is the maximum allowed number of output tokens';
  const model = await startModelServer([
    cut(),
    cut(),
    fail(400, { type: 'invalid_request_error', message }),
  ]);
  const where = place();
  const local = ['--model', 'openai/some', '--base-url', `${model.url}/v1`];
  const print = await run(where, ['-p', '--max-tokens', '5', 'hello'], { env: anthropic(model) });
  const json = await run(where, ['--json', ...local, '--max-tokens', '7', 'hello']);
  const refused = await run(where, ['-p', '--max-tokens', '999999', 'hello'], {
    env: anthropic(model),
  });
  assert.deepEqual([print.code, print.out, json.code, refused.code], [7, 'Half of what I\n', 7, 5]);
  assert.match(print.err, /^! the answer was cut off: .*--max-tokens raises it$/m);
  assert.equal(jsonLines(json.out).at(-1).ending, 'length');
  assert.match(refused.err, /64000, which is .*; --max-tokens N sets how long an answer may be/);
  assert.deepEqual(
    model.requests.map(({ body }) => body.max_tokens),
    [5, 7, 999999],
  );
  assert.deepEqual(model.problems, []);
});

test('exit 130: an interrupt stops the stream and ends the program', async () => {
  const model = await startModelServer([say('word '.repeat(2000), { delayMs: 20 })]);
  const { child, ended } = start(place(), ['-p', 'hello'], { env: anthropic(model) });
  await until(() => model.requests.length === 1);
  child.kill('SIGINT');
  const { code, err } = await ended;
  assert.deepEqual([code, err], [130, '! stopped\n']);
  await until(() => model.requests[0]!.abandoned);
});

test('a busy model: the pauses are told, and an interrupt ends them at once', async () => {
  const soon = { 'retry-after-ms': '50' };
  const late = { 'retry-after': '3600' };
  const model = await startModelServer([
    fail(529, { headers: soon }),
    say('At last.'),
    fail(529),
    fail(503, { headers: late }),
  ]);
  const where = place();
  const patient = await run(where, ['-p', 'hello'], { env: anthropic(model) });
  assert.deepEqual(
    [patient.code, patient.out, patient.err],
    [0, 'At last.\n', '! the model is busy (529); trying again in 0.1 s\n'],
  );
  const { child, seen, ended } = start(where, ['-p', 'hello'], { env: anthropic(model) });
  await until(() => seen.err.includes('(503); trying again in 60 s'));
  child.kill('SIGINT');
  const { code, err } = await ended;
  assert.equal(code, 130);
  assert.match(err, /^! the model is busy \(529\); trying again in 0\.[45] s\n.*\n! stopped\n$/);
  assert.equal(model.requests.length, 4);
});

test('--allow and --deny: to the letter, and deny wins; --add-dir opens another folder', async () => {
  const other = folder();
  writeFileSync(join(other, 'notes.txt'), 'from elsewhere\n');
  const where = place();
  const read = `read "${join(other, 'notes.txt')}"`;
  const [allowed, other1, denied, outside, inside] = await Promise.all([
    run(where, ['-p', '--allow', 'bash(echo hi)', 'run "echo hi"']),
    run(where, ['-p', '--allow', 'bash(echo hi)', 'run "echo hi; echo ho"']),
    run(where, [
      '-p',
      '--allow',
      'bash(echo hi)',
      '--deny',
      'bash(echo *)',
      '--mode',
      'yolo',
      'run "echo hi"',
    ]),
    run(where, ['-p', read]),
    run(where, ['-p', '--add-dir', other, read]),
  ]);
  assert.deepEqual(
    [allowed, other1, denied, outside, inside].map(({ code }) => code),
    [0, 3, 3, 3, 0],
  );
  assert.match(allowed.out, /^hi$/m);
  assert.match(denied.err, /the rule deny "bash\(echo \*\)" forbids bash/);
  assert.match(inside.out, /from elsewhere/);
});

test('--allow-server: a refusal prints the fingerprint that lets a server of the project start', async () => {
  const where = place({ '.mcp.json': { mcpServers: { demo } } });
  const refused = await run(where, ['-p', 'add 2 and 40']);
  const flag = /--allow-server (demo=sha256:[0-9a-f]{64})/.exec(refused.err)?.[1];
  assert.ok(flag, refused.err);
  const args = ['-p', '--allow', 'mcp__demo__add', 'add 2 and 40'];
  const [exact, another] = await Promise.all([
    run(where, ['--allow-server', flag, ...args]),
    run(where, [
      '--allow-server',
      flag.replace(/.$/, (digit) => (digit === '0' ? '1' : '0')),
      ...args,
    ]),
  ]);
  assert.match(exact.out, /^42$/m);
  assert.match(another.err, /is not started: you have not approved it/);
});

test('E11: commands get the variables that the user names, in --env or the settings, and never a key of a model', async () => {
  const home = { '.claude/settings.json': { shellEnv: ['JAVA_HOME', 'VIRTUAL_ENV'] } };
  const project = { '.claude/settings.json': { shellEnv: ['OTHER'] } };
  const where = place(project, home);
  const env = {
    JAVA_HOME: '/opt/jdk',
    DEMO_TOKEN: 'hunter2-hunter2',
    TERM: 'xterm',
    OTHER: 'o',
    OPENAI_API_KEY: 'sk-test',
  };
  const shell = ['--json', '--model', 'rehearsal', '--allow', 'bash(env)', 'run `env`'];
  const [named, plain, key] = await Promise.all([
    run(where, ['--env', 'DEMO_TOKEN', '--env', 'TERM', ...shell], { env }),
    run(place(), shell, { env }),
    run(where, ['--env', 'OPENAI_API_KEY', ...shell], { env }),
  ]);
  const printed = ({ out }: { out: string }): string[] =>
    jsonLines(out)
      .find(({ type }) => type === 'tool_end')
      .text.split('\n');
  const given = (lines: string[]) =>
    lines.filter((line) => /JAVA|TOKEN|VIRTUAL|OTHER|OPENAI|^TERM/.test(line)).sort();
  assert.deepEqual(given(printed(named)), ['DEMO_TOKEN=***', 'JAVA_HOME=/opt/jdk', 'TERM=xterm']);
  assert.deepEqual(given(printed(plain)), ['TERM=dumb']);
  assert.match(named.err, /a project cannot loosen anything, so these are ignored: shellEnv/);
  assert.equal(key.code, 3);
  assert.match(key.err, /OPENAI_API_KEY is the key of a model, which no command gets/);
  const broken = place({}, { '.claude/settings.json': { shellEnv: { A: 'b' } } });
  const { code, err } = await run(broken, ['-p', 'hello']);
  assert.deepEqual(
    [code, /settings\.json: "shellEnv" is not a list of names/.test(err)],
    [3, true],
  );
});

test('colour: only where somebody sees it, and the usual variables count', async () => {
  const where = place();
  const cases: [boolean, NodeJS.ProcessEnv, string[]][] = [
    [false, {}, []],
    [true, { FORCE_COLOR: '1' }, []],
    [false, { FORCE_COLOR: '1' }, ['--no-color']],
    [false, { FORCE_COLOR: '1', TERM: 'dumb' }, []],
    [false, { NO_COLOR: '1' }, []],
  ];
  const ends = await Promise.all(
    cases.map(([, env, args]) => run(where, [...args, '--modle'], { env })),
  );
  assert.deepEqual(
    ends.map(({ err }) => /\x1b\[31m/.test(err)),
    cases.map(([isColored]) => isColored),
  );
});

test('--help and --version go to stdout; a reader that leaves early, such as head, is no error', async () => {
  const model = await startModelServer([call('mcp__s__big', { bytes: 99_000 }), say('done')]);
  const where = place({}, userServers({ s: habit() }));
  const [help, version] = await Promise.all([run(where, ['--help']), run(where, ['-v'])]);
  assert.deepEqual(
    [help.code, help.err, version],
    [0, '', { code: 0, signal: null, out: `${VERSION}\n`, err: '' }],
  );
  const source = spawnSync(fromSource[0]!, [...fromSource.slice(1), '--version'], {
    encoding: 'utf8',
  });
  assert.deepEqual(
    [source.stdout, source.stderr],
    [`${VERSION}\n`, ''],
    'it also runs without being compiled',
  );
  for (const words of ['--max-turns N', 'Exit codes: 0 done', 'probe -- npx', 'ANTHROPIC_API_KEY'])
    assert.ok(help.out.includes(words), words);
  assert.ok(help.out.split('\n').every((line) => line.length <= 120));
  const shell = `"$@" | head -c 20; echo " \${PIPESTATUS[0]}"`;
  const args = ['-c', shell, 'bash', ...command, '--json', '--allow', 'mcp__s__big', 'go'];
  const env = { PATH: process.env.PATH, HOME: where.home, ...anthropic(model) };
  const bash = promisify(execFile)('bash', args, { cwd: where.cwd, env });
  bash.child.stdin!.end();
  const piped = await bash;
  assert.match(piped.stdout, /^\{"type":.{12} 0\n$/); // 20 characters, and the exit code
  assert.equal(piped.stderr, '');
});

test('what is piped to a prompt belongs to it, with and without -p; a broken stderr costs no answer', async () => {
  const model = await startModelServer([say('One.'), say('Two.')]);
  const where = place();
  for (const flags of [['-p'], []])
    await run(where, [...flags, 'a message for'], {
      env: anthropic(model),
      input: 'line 1\nline 2\n',
    });
  const prompts = model.requests.map(({ body }) => body.messages[0].content[0].text);
  assert.deepEqual(prompts, ['a message for\n\nline 1\nline 2', 'a message for\n\nline 1\nline 2']);
  writeFileSync(join(where.cwd, 'a.txt'), 'the content');
  const config = JSON.stringify({ demo });
  const { child, seen, ended } = start(
    where,
    ['-p', 'read a.txt', '--wire', '--mcp-config', config],
    { input: null },
  );
  child.stderr.destroy();
  child.stdin.end();
  const { code } = await ended;
  assert.deepEqual([code, /the content/.test(seen.out)], [0, true]);
});

test('a home that cannot be written to is a warning, and the answer comes', async () => {
  const where = place(
    { 'a.txt': 'the content' },
    { '.mcp-by-hand': 'a file where a folder should be' },
  );
  const { code, out, err } = await run(where, ['-p', 'read a.txt']);
  assert.deepEqual([code, /the content/.test(out)], [0, true]);
  assert.match(err, /this conversation is not kept/);
});
