// The model that needs no key: which prompt becomes which call, and what it says where it cannot tell.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ModelEvent, Result, ToolCall, ToolDefinition, Turn } from '../agent.ts';
import { hands } from '../chapters/16-hands/tools.ts';
import { Roots } from '../chapters/16-hands/paths.ts';
import { Rehearsal, REHEARSAL_BANNER } from '../chapters/18-minds/rehearsal.ts';
import type { Json } from '../mcp.ts';
import { root } from './helpers.ts';

const builtIn = hands({ roots: new Roots(root), resultsFolder: root }).map(({ definition }) => definition);
const tool = (name: string, description: string, properties: unknown, required?: unknown): ToolDefinition =>
  ({ name, description, inputSchema: { type: 'object', properties, required } });
const number = { type: 'number' };
// As fixtures/server.mjs describes them.
const add = tool('mcp__demo__add', 'Adds two numbers.', { a: number, b: number }, ['a', 'b']);
const greet = tool('mcp__demo__greet', 'Greets somebody by name.', { name: { type: 'string' } }, ['name']);
const tools = [...builtIn, add, greet];

async function events(turns: Turn[], offered = tools, signal = new AbortController().signal): Promise<ModelEvent[]> {
  const seen: ModelEvent[] = [];
  for await (const event of new Rehearsal().query({ system: '', turns, tools: offered, signal })) seen.push(event);
  return seen;
}

/** The last event, after a check that the pieces of text are the text. */
async function answer(turns: Turn[] | string, offered = tools) {
  const seen = await events(typeof turns === 'string' ? [{ role: 'user', text: turns }] : turns, offered);
  const end = seen.pop();
  assert.equal(end?.type, 'end');
  assert.equal(seen.map((event) => (event.type === 'text' ? event.text : '?')).join(''), end.turn.text);
  assert.equal(end.stop, end.turn.calls.length > 0 ? 'tools' : 'done');
  assert.equal(end.usage, undefined);
  return end.turn;
}

const call = (name: string, args: Json) => [name, args] as const;
const called = (name: string) => (args: Json) => call(name, args);
const [read, write, edit] = [called('read'), called('write'), called('edit')];
const [grep, glob, bash] = [called('grep'), called('glob'), called('bash')];
const sum = (a: number, b: number) => call('mcp__demo__add', { a, b });
const hello = (name: string) => call('mcp__demo__greet', { name });

const ROWS: [prompt: string, ...calls: (readonly [string, Json])[]][] = [
  ['read README.md', read({ path: 'README.md' })],
  ['Read README.md.', read({ path: 'README.md' })],
  ['please read the file src/main.ts', read({ path: 'src/main.ts' })],
  ['can you show me package.json?', read({ path: 'package.json' })],
  ['show me package.json', read({ path: 'package.json' })],
  ['open ./notes/today.md', read({ path: './notes/today.md' })],
  ['cat ~/.profile', read({ path: '~/.profile' })],
  ['read "my notes.txt"', read({ path: 'my notes.txt' })],
  ['read path="a b.txt" limit=5', read({ path: 'a b.txt', limit: 5 })],
  ['read README.md offset 10 limit 20', read({ path: 'README.md', offset: 10, limit: 20 })],
  ['read README.md with offset: 10', read({ path: 'README.md', offset: 10 })],
  ['read Makefile', read({ path: 'Makefile' })],
  ['read {"path":"a.txt","limit":3}', read({ path: 'a.txt', limit: 3 })],
  ['read C:\\temp\\a.txt', read({ path: 'C:\\temp\\a.txt' })],
  ['list files matching *.ts', glob({ pattern: '*.ts' })],
  ['find **/*.ts', glob({ pattern: '**/*.ts' })],
  ['find all files like *.md in docs', glob({ pattern: '*.md', path: 'docs' })],
  ['glob src/**/*.ts', glob({ pattern: 'src/**/*.ts' })],
  ['find README.md', glob({ pattern: 'README.md' })],
  ['glob pattern="*.{js,ts}" path=src limit=3', glob({ pattern: '*.{js,ts}', path: 'src', limit: 3 })],
  ['search for "TODO" in src', grep({ pattern: 'TODO', path: 'src' })],
  ['grep TODO', grep({ pattern: 'TODO' })],
  ['grep TODO in src', grep({ pattern: 'TODO', path: 'src' })],
  ['grep TODO in the src folder', grep({ pattern: 'TODO', path: 'src' })],
  ['search for TODO in *.ts', grep({ pattern: 'TODO', glob: '*.ts' })],
  ['grep "a then b" in notes.txt', grep({ pattern: 'a then b', path: 'notes.txt' })],
  ['grep "salt and pepper"', grep({ pattern: 'salt and pepper' })],
  ['grep TODO ignore case', grep({ pattern: 'TODO', ignoreCase: true })],
  ['grep literal "a.b" context 2', grep({ pattern: 'a.b', literal: true, context: 2 })],
  ['grep TODO in src with limit 5', grep({ pattern: 'TODO', path: 'src', limit: 5 })],
  ['grep "foo bar" src/a.ts', grep({ pattern: 'foo bar', path: 'src/a.ts' })],
  ['grep foo.*bar in src', grep({ pattern: 'foo.*bar', path: 'src' })],
  ['write "hello" to notes.txt', write({ path: 'notes.txt', content: 'hello' })],
  ['create notes.txt with "hello"', write({ path: 'notes.txt', content: 'hello' })],
  ['create a file notes.txt with the content "hello"', write({ path: 'notes.txt', content: 'hello' })],
  ['write hello world to notes.txt', write({ path: 'notes.txt', content: 'hello world' })],
  ['save "x = 1" in config/a.ini', write({ path: 'config/a.ini', content: 'x = 1' })],
  ['write "read a.txt then add 1 and 2" to b.txt', write({ path: 'b.txt', content: 'read a.txt then add 1 and 2' })],
  ['write {"a":1} to data.json', write({ path: 'data.json', content: '{"a":1}' })],
  ["write 'it is “done”' to notes.txt", write({ path: 'notes.txt', content: 'it is “done”' })],
  ['write “hello” to notes.txt', write({ path: 'notes.txt', content: 'hello' })],
  ['replace "a" with "b" in notes.txt', edit({ path: 'notes.txt', old: 'a', new: 'b' })],
  ['edit notes.txt: replace "a" with "b"', edit({ path: 'notes.txt', old: 'a', new: 'b' })],
  ['replace all "a" with "b" in notes.txt', edit({ path: 'notes.txt', old: 'a', new: 'b', all: true })],
  ['replace "a.b" with "c.d" in notes.txt', edit({ path: 'notes.txt', old: 'a.b', new: 'c.d' })],
  ['change "1" to "2" in "my notes.txt"', edit({ path: 'my notes.txt', old: '1', new: '2' })],
  ['edit path=a.txt old="x y" new=""', edit({ path: 'a.txt', old: 'x y', new: '' })],
  ['run `ls -la`', bash({ command: 'ls -la' })],
  ['run npm test', bash({ command: 'npm test' })],
  ['please run git status', bash({ command: 'git status' })],
  ['run "npm test"', bash({ command: 'npm test' })],
  ['run echo "hi there" > out.txt', bash({ command: 'echo "hi there" > out.txt' })],
  ['execute `make` with timeout=30', bash({ command: 'make', timeout: 30 })],
  ['run the command `ls -la`', bash({ command: 'ls -la' })],
  ['run echo `date`', bash({ command: 'echo `date`' })],
  ['bash ls .', bash({ command: 'ls .' })],
  ['run sleep 5', bash({ command: 'sleep 5' })],
  ['run FOO=1 npm run build', bash({ command: 'FOO=1 npm run build' })],
  ['add 2 and 40', sum(2, 40)],
  ['add 2, 40', sum(2, 40)],
  ['Add -2.5 and 1e3!', sum(-2.5, 1000)],
  ['2 plus 40', sum(2, 40)],
  ['add a=2 b=40', sum(2, 40)],
  ['add b=40 a=2', sum(2, 40)],
  ['add a: 2, b: 40', sum(2, 40)],
  ['add {"a":2,"b":40}', sum(2, 40)],
  ['mcp__demo__add 2 40', sum(2, 40)],
  ['greet Ada', hello('Ada')],
  ['greet Ada and Grace', hello('Ada and Grace')],
  ['greet "Ada Lovelace"', hello('Ada Lovelace')],
  ['please greet Ada Lovelace', hello('Ada Lovelace')],
  ['greet name=Ada', hello('Ada')],
  ['greet somebody named Ada', hello('Ada')],
  ['add 2 and 40 and greet Ada', sum(2, 40), hello('Ada')],
  ['greet Ada and add 2 and 40', hello('Ada'), sum(2, 40)],
  ['read a.txt and read b.txt', read({ path: 'a.txt' }), read({ path: 'b.txt' })],
  ['read a.txt and add 1 and 2 and greet Ada', read({ path: 'a.txt' }), sum(1, 2), hello('Ada')],
  ['run say "and" read b.txt', bash({ command: 'say "and" read b.txt' })],
  ['run grep -r TODO src', bash({ command: 'grep -r TODO src' })],
  ['run cat README.md then read a.txt', bash({ command: 'cat README.md' })],
  ['run npm test and npm run lint', bash({ command: 'npm test and npm run lint' })], // no verb in front
];

const said = (calls: ToolCall[]) => calls.map(({ name, args }) => [name, args]);
const user = (text: string): Turn => ({ role: 'user', text });
const assistant = (text: string, ...calls: ToolCall[]): Turn => ({ role: 'assistant', text, calls });
const result = ({ id, name }: ToolCall, text: string, isError = false): Result =>
  ({ id, name, blocks: [{ type: 'text', text }], isError });

test('prompts in plain words become calls', async () => {
  assert.ok(ROWS.length >= 60);
  const wrong = [];
  for (const [prompt, ...calls] of ROWS) {
    const got = said((await answer(prompt)).calls);
    if (JSON.stringify(sorted(got)) !== JSON.stringify(sorted(calls))) wrong.push({ prompt, got, calls });
  }
  assert.deepEqual(wrong, []);
});

/** Every value that occurs in arguments, and every object with its keys in order. */
function leaves(value: unknown): unknown[] {
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(leaves) : [value];
}
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, each]) => [key, sorted(each)]);
}

test('no value is made up: each was typed, or it is true for a word that was typed', async () => {
  for (const [prompt] of ROWS)
    for (const { args } of (await answer(prompt)).calls)
      for (const [key, value] of Object.entries(args!)) {
        const name = key.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
        const isTyped = leaves(value).every((leaf) => prompt.replace('1e3', '1000').includes(`${leaf}`));
        assert.ok(isTyped || (value === true && prompt.includes(name)), `${prompt}: ${key}=${value}`);
      }
});

test('the same conversation gets the same answer', async () => {
  for (const [prompt] of ROWS) assert.deepEqual(await events([user(prompt)]), await events([user(prompt)]));
});

test('what is missing is asked for by name, with the three nearest tools', async () => {
  const { text, calls } = await answer('add 2');
  assert.deepEqual(calls, []);
  assert.match(text, /\?/);
  assert.match(text, /mcp__demo__add b=…/);
  assert.match((await answer('write "hello"')).text, /write path=… *$|write content=… *$/m);
  const vague = [
    'run the tests', 'I want to run npm test', 'read it', 'read the manual with care', 'grep', 'greet',
    'replace "a" in b', 'create a folder called tmp/out', 'where am I allowed to write?',
  ];
  for (const prompt of vague) {
    const turn = await answer(prompt);
    assert.deepEqual(turn.calls, [], prompt);
    assert.match(turn.text, /=…/, prompt);
  }
  const many = ['one', 'two', 'three', 'four'].map((name) => tool(`mcp__x__${name}_lamp`, '', { n: number }, ['n']));
  assert.ok((await answer('lamp', many)).text.startsWith(REHEARSAL_BANNER), 'a word that all names have tells nothing');
  assert.equal((await answer('one two three four lamp', many)).text.match(/^- /gm)?.length, 3);
});

test('a question can be answered with what was missing', async () => {
  const asked = [user('add'), assistant((await answer('add')).text)];
  assert.deepEqual(said((await answer([...asked, user('a=2 b=40')])).calls), [sum(2, 40)]);
  assert.deepEqual(said((await answer([...asked, user('2 and 40')])).calls), [sum(2, 40)]);
  assert.deepEqual((await answer([user('grep'), assistant('For what?'), user('thanks')])).calls, []);
  assert.deepEqual(said((await answer([...asked, user('read a.txt')])).calls), [read({ path: 'a.txt' })]);
  const done = assistant('', { id: 'call_1', name: 'read', args: { path: 'a.txt' } });
  assert.deepEqual((await answer([user('read a.txt'), done, user('b.txt')])).calls, [], 'done is done');
});

test('talk gets an honest answer with examples', async () => {
  for (const prompt of ['hello', 'Thanks!', 'what can you do?', 'help', '', '???', 'how are you']) {
    const { text, calls } = await answer(prompt);
    assert.deepEqual(calls, [], prompt);
    assert.ok(text.startsWith(REHEARSAL_BANNER), prompt);
    assert.match(text, /^- write path=… content=…$/m);
    assert.equal(text.match(/^- /gm)?.length, 8);
  }
  assert.match(REHEARSAL_BANNER, /does not understand.*ANTHROPIC_API_KEY.*OPENAI_API_KEY/);
  assert.match((await answer('hello', [])).text, /no tools/);
});

test('"then" makes turns, and the answer quotes all results', async () => {
  const turns: Turn[] = [user('add 2 and 40 then greet "Ada and then Grace" then read a.txt and read b.txt')];
  const seen = [];
  for (let answered = await answer(turns); ; answered = await answer(turns)) {
    turns.push(answered);
    seen.push(answered.calls.map(({ id, name }) => `${id} ${name}`).join(', '));
    if (answered.calls.length === 0) break;
    turns.push({ role: 'tools', results: answered.calls.map((each) => result(each, `result of ${each.id}`)) });
  }
  assert.deepEqual(seen, ['call_1 mcp__demo__add', 'call_2 mcp__demo__greet', 'call_3 read, call_4 read', '']);
  const last = turns.at(-1);
  assert.ok(last?.role === 'assistant');
  for (const n of [1, 2, 3, 4]) assert.match(last.text, new RegExp(`answered:\nresult of call_${n}`));
  assert.deepEqual((await answer([...turns, user('add 1 and 1')])).calls.map(({ id }) => id), ['call_5'], 'ids go on');
});

test('"then" and "and" do not cut what cannot be read alone', async () => {
  assert.deepEqual(said((await answer('grep now and then')).calls), [grep({ pattern: 'now' })]);
  const { text, calls } = await answer('read a.txt then frobnicate the moon');
  assert.deepEqual(said(calls), [read({ path: 'a.txt' })]);
  assert.match(text, /I did not use: frobnicate moon/);
  assert.match((await answer('read a.txt and b.txt')).text, /I did not use: b.txt/);
});

/** The answer after the first call of a prompt had this result. */
async function after(prompt: string, text: string, isError = false) {
  const first = await answer(prompt);
  const results = first.calls.map((each) => result(each, text, isError));
  return answer([user(prompt), first, { role: 'tools', results }]);
}

test('errors and refusals are quoted as such, and end the steps', async () => {
  const failed = await after('read a.txt then add 2 and 40', 'no such file: a.txt', true);
  assert.deepEqual(failed.calls, []);
  assert.equal(failed.text, 'The tool failed: read: no such file: a.txt\n\nI stopped there. Steps not begun: 1.');
  assert.equal((await after('run ls', 'Not allowed: the rule deny "bash" forbids bash.', true)).text,
    'Not allowed: bash: the rule deny "bash" forbids bash.');
  assert.equal((await after('run ls', 'The user said no.', true)).text,
    'Not allowed: bash: The user said no.');
});

test('a result is quoted up to a limit, and says so', async () => {
  assert.equal((await after('add 2 and 40', '42')).text, 'mcp__demo__add answered:\n42');
  assert.equal((await after('run true', '')).text, 'bash answered:\n(nothing)');
  const lines = await after('read a.txt', Array.from({ length: 100 }, (_, n) => `line ${n + 1}`).join('\n'));
  assert.match(lines.text, /line 40\n\(cut: these are \d+ of \d+ characters\)$/);
  const long = await after('read a.txt', 'x'.repeat(1_000_000));
  assert.ok(long.text.length < 4200 && long.text.endsWith('(cut: these are 4000 of 1000000 characters)'));
});

test('it stops when it is told to', async () => {
  await assert.rejects(events([user('read a.txt')], tools, AbortSignal.abort()), { name: 'AbortError' });
  const controller = new AbortController();
  const seen: string[] = [];
  await assert.rejects(async () => {
    const request = { system: '', turns: [user('hello')], tools, signal: controller.signal };
    for await (const { type } of new Rehearsal().query(request)) if (seen.push(type) === 3) controller.abort();
  }, { name: 'AbortError' });
  assert.equal(seen.length, 3);
});

test('a schema may say all kinds of things about its arguments', async () => {
  const text = { type: 'string' };
  const paint = tool('mcp__x__paint', 'Paints a wall.', {
    color: { enum: ['Red', 'Light Blue'] },
    shiny: { type: 'boolean' },
    coats: { type: 'integer', default: 2 },
    rooms: { type: 'array', items: text },
    note: { anyOf: [text, { type: 'null' }] },
    primer: { type: ['null', 'boolean'] },
    budget: { type: 'number' },
    brush: { type: 'string', default: 'wide' }, // left out, it is the server's to fill in
  }, ['color', 'coats']);
  const paints = async (prompt: string) => (await answer(prompt, [...tools, paint])).calls[0]?.args;
  assert.deepEqual(await paints('paint the wall light blue'), { color: 'Light Blue', coats: 2 });
  assert.deepEqual(await paints('paint red, shiny, 3 coats'), { color: 'Red', shiny: true, coats: 3 });
  assert.deepEqual(await paints('paint red without primer'), { color: 'Red', primer: false, coats: 2 });
  assert.deepEqual(await paints('paint red rooms=hall,attic primer=true'),
    { color: 'Red', rooms: ['hall', 'attic'], primer: true, coats: 2 });
  assert.deepEqual(await paints('paint red "no drips"'), { color: 'Red', note: 'no drips', coats: 2 });
  assert.match((await answer('paint red coats=2.5', [paint])).text, /I did not use: 2.5/);
  const files = tool('mcp__x__zip_files', '', { paths: { type: 'array', items: text } }, ['paths']);
  const total = tool('mcp__x__total', '', { values: { type: 'array', items: number } }, ['values']);
  assert.deepEqual((await answer('zip files a.txt and b.txt', [files])).calls[0]?.args, { paths: ['a.txt', 'b.txt'] });
  assert.deepEqual((await answer('total values=1,x', [total])).calls, []);
  assert.deepEqual((await answer('total of 1, 2 and 3', [total])).calls[0]?.args, { values: [1, 2, 3] });
});

test('of several tools, the name that was said best is meant', async () => {
  const path = [{ path: {} }, ['path']] as const;
  const readers = [tool('mcp__x__read_file', '', ...path), tool('mcp__x__read_text_file', '', ...path), ...tools];
  assert.equal((await answer('read a.txt', readers)).calls[0]?.name, 'read', 'the others have more words');
  assert.equal((await answer('read the text file a.txt', readers)).calls[0]?.name, 'mcp__x__read_text_file');
  const shelves = [tool('mcp__x__list', 'Lists the books on a shelf.', {}), tool('mcp__x__shelf_list', '', {})];
  assert.equal((await answer('list shelf books', shelves)).calls[0]?.name, 'mcp__x__shelf_list', 'a name outweighs');
});

test('a name that was typed wins, if it is more than a plain word', async () => {
  const others = [tool('mcp__x__read_all', '', {}), tool('mcp__y__read-all-files-fast', '', {}), ...tools];
  assert.equal((await answer('read_all', others)).calls[0]?.name, 'mcp__x__read_all');
  assert.equal((await answer('please use read_all, not read a.txt', others)).calls[0]?.name, 'mcp__x__read_all');
  assert.equal((await answer('mcp__y__read-all-files-fast', others)).calls[0]?.name, 'mcp__y__read-all-files-fast');
  const log = tool('mcp__x__log_it', '', { level: {}, text: {} }, ['level', 'text']);
  assert.deepEqual((await answer('log_it: add 2 and 40', [log, ...tools])).calls, [], 'even where another needs less');
  assert.match((await answer('mcp__demo__add', others)).text, /they miss:\n- mcp__demo__add a=… b=…\nI fill/);
});

test('no schema makes it fall', async () => {
  const hostile = JSON.parse(`[
    true, false, null, 1, "x", [], {}, {"properties": []}, {"properties": {"a": true, "b": false, "c": null}},
    {"properties": {"__proto__": {"type": "string"}, "constructor": {}, "toString": {"type": 7}},
      "required": ["__proto__", "valueOf"]},
    {"properties": {"a": {"$ref": "#/$defs/none"}}, "required": "a"}, {"required": [1, null, {}, "a", "a"]},
    {"properties": {"a": {"type": {"toString": 1}, "enum": [null, {}, 3, ""], "anyOf": [1, null], "items": 5}},
      "required": ["a"]},
    {"properties": {"a": {"type": ["array"], "items": [{"type": "string"}], "default": {}}, "": {"type": "boolean"}},
      "required": ["a"]},
    {"properties": {"a": {"anyOf": "x", "oneOf": {}}}, "additionalProperties": false}]`);
  const odd = hostile.map((inputSchema: Json, n: number) => ({ name: `odd_${n}`, description: '', inputSchema }));
  for (let n = 0; n < odd.length; n += 1)
    for (const rest of ['', ' a', ' a=1 b=2', ' "x" 5 a.txt', ' {"a":1}', ' __proto__="x" valueOf=y'])
      await answer(`odd_${n}${rest}`, odd);
  const own = (await answer('odd_9 __proto__="x" valueOf=y', odd)).calls[0]!.args!;
  assert.deepEqual(Object.entries(own), [['__proto__', 'x'], ['valueOf', 'y']]);
});

// Nothing here measures time. But what takes the square of a length, takes hours, and the runner gives up.
test('many tools, long descriptions and long prompts take no longer than they must', async () => {
  const crowd = Array.from({ length: 10_000 }, (_, n) => tool(`mcp__big__tool_${n}`, `${n} does it. `.repeat(20), {}));
  assert.deepEqual(said((await answer('add 2 and 40', [...crowd, ...tools])).calls), [sum(2, 40)]);
  const properties = Object.fromEntries(Array.from({ length: 2000 }, (_, n) => [`p${n}`, { type: 'string' }]));
  const wide = tool('mcp__big__wide', 'x'.repeat(1_000_000), properties, Object.keys(properties));
  const units = ['“', '"', "'", '{"a":', 'a=', '.', ' and add 1', '* ', '1 '];
  for (const unit of units) await answer(`wide add ${unit.repeat(1_000_000 / unit.length)}x`, [wide, ...tools]);
  const command = `echo ${'x '.repeat(10_000)}end`;
  assert.deepEqual(said((await answer(`run ${command}`)).calls), [bash({ command })], 'nothing is cut off');
});
