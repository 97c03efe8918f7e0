// The model that needs no key: which prompt becomes which call, and what it says where it cannot tell.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ModelEvent, Result, ToolCall, ToolDefinition, Turn } from '../agent.ts';
import { hands } from '../chapters/16-hands/tools.ts';
import { Roots } from '../chapters/16-hands/paths.ts';
import { EXAMPLES, Rehearsal, REHEARSAL_BANNER } from '../chapters/18-minds/rehearsal.ts';
import type { Json } from '../mcp.ts';
import { root } from './help/basics.ts';

const builtIn = hands({ roots: new Roots(root), resultsFolder: root }).map(
  ({ definition }) => definition,
);
const tool = (
  name: string,
  description: string,
  properties: unknown,
  required?: unknown,
): ToolDefinition => ({ name, description, inputSchema: { type: 'object', properties, required } });
const number = { type: 'number' };
// As fixtures/server.mjs describes them.
const add = tool('mcp__demo__add', 'Adds two numbers.', { a: number, b: number }, ['a', 'b']);
const greet = tool('mcp__demo__greet', 'Greets somebody by name.', { name: { type: 'string' } }, [
  'name',
]);
const tools = [...builtIn, add, greet];

async function events(
  turns: Turn[],
  offered = tools,
  signal = new AbortController().signal,
): Promise<ModelEvent[]> {
  const seen: ModelEvent[] = [];
  for await (const event of new Rehearsal().query({ system: '', turns, tools: offered, signal }))
    seen.push(event);
  return seen;
}

/** The last event, after a check that the pieces of text are the text. */
async function answer(turns: Turn[] | string, offered = tools) {
  const seen = await events(
    typeof turns === 'string' ? [{ role: 'user', text: turns }] : turns,
    offered,
  );
  const end = seen.pop();
  assert.equal(end?.type, 'end');
  assert.equal(
    seen.map((event) => (event.type === 'text' ? event.text : '?')).join(''),
    end.turn.text,
  );
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
  ['can you read package.json?', read({ path: 'package.json' })],
  ['read ~/.profile', read({ path: '~/.profile' })],
  ['read "my notes.txt"', read({ path: 'my notes.txt' })],
  ['read path="a b.txt" limit=5', read({ path: 'a b.txt', limit: 5 })],
  ['read README.md limit=20', read({ path: 'README.md', limit: 20 })],
  ['read Makefile', read({ path: 'Makefile' })],
  ['read {"path":"a.txt","limit":3}', read({ path: 'a.txt', limit: 3 })],
  ['read { "path": "a then b.txt" }', read({ path: 'a then b.txt' })],
  ['read C:\\temp\\a.txt', read({ path: 'C:\\temp\\a.txt' })],
  ['find **/*.ts', glob({ pattern: '**/*.ts' })],
  ['glob src/**/*.ts', glob({ pattern: 'src/**/*.ts' })],
  ['find README.md', glob({ pattern: 'README.md' })],
  ['glob "*.{js,ts}" path=src limit=3', glob({ pattern: '*.{js,ts}', path: 'src', limit: 3 })],
  ['search for "TODO" path=src', grep({ pattern: 'TODO', path: 'src' })],
  ['grep TODO', grep({ pattern: 'TODO' })],
  ['grep "a then b"', grep({ pattern: 'a then b' })],
  [
    'grep "salt and pepper" ignoreCase=true',
    grep({ pattern: 'salt and pepper', ignoreCase: true }),
  ],
  ['grep grep.ts', grep({ pattern: 'grep.ts' })],
  ['write "hello" to notes.txt', write({ path: 'notes.txt', content: 'hello' })],
  ['write hello to notes.txt', write({ path: 'notes.txt', content: 'hello' })],
  ['write notes.txt "hello"', write({ path: 'notes.txt', content: 'hello' })],
  ['write "42" to notes.txt', write({ path: 'notes.txt', content: '42' })],
  ['write "a.b" to notes.txt', write({ path: 'notes.txt', content: 'a.b' })],
  [
    'write "read a.txt then add 1 and 2" to b.txt',
    write({ path: 'b.txt', content: 'read a.txt then add 1 and 2' }),
  ],
  ['write content=\'{"a":1}\' to data.json', write({ path: 'data.json', content: '{"a":1}' })],
  ["write 'it is “done”' to notes.txt", write({ path: 'notes.txt', content: 'it is “done”' })],
  ['write content=Hello! path=a.txt', write({ path: 'a.txt', content: 'Hello!' })],
  ['replace "a" with "b" in notes.txt', edit({ path: 'notes.txt', old: 'a', new: 'b' })],
  [
    'edit notes.txt "a.b" "c.d" all=true',
    edit({ path: 'notes.txt', old: 'a.b', new: 'c.d', all: true }),
  ],
  ['edit path=a.txt old="x y" new=""', edit({ path: 'a.txt', old: 'x y', new: '' })],
  ['run `ls -la`', bash({ command: 'ls -la' })],
  ['run "npm test" timeout=30', bash({ command: 'npm test', timeout: 30 })],
  ['run npm test', bash({ command: 'npm test' })],
  ['please run git  status', bash({ command: 'git  status' })],
  ['run echo "hi there" > out.txt', bash({ command: 'echo "hi there" > out.txt' })],
  ['run for f in a?; do echo $f; done', bash({ command: 'for f in a?; do echo $f; done' })],
  ['run env FOO=1 npm run build', bash({ command: 'env FOO=1 npm run build' })],
  ['run echo {"a":1}', bash({ command: 'echo {"a":1}' })],
  ['run grep -r TODO src', bash({ command: 'grep -r TODO src' })],
  ['bash ls .', bash({ command: 'ls .' })],
  ['bash {"command":"if true; then ls; fi"}', bash({ command: 'if true; then ls; fi' })],
  ['run cat README.md then read a.txt', bash({ command: 'cat README.md' })],
  ['add 2 and 40', sum(2, 40)],
  ['add 2, 40', sum(2, 40)],
  ['Add -2.5 and 1e3!', sum(-2.5, 1000)],
  ['add a=2 b=40', sum(2, 40)],
  ['add b=40 to 2', sum(2, 40)],
  ['add {"a":2,"b":40}', sum(2, 40)],
  ['mcp__demo__add 2 40', sum(2, 40)],
  ['use demo to add 2 and 40', sum(2, 40)],
  ['greet Ada', hello('Ada')],
  ['greet "Ada Lovelace"', hello('Ada Lovelace')],
  ['greet name=Ada', hello('Ada')],
  ['greet Zoë.', hello('Zoë')],
  ['greet 12345678901234567890', hello('12345678901234567890')],
  ['greet "Ada', hello('"Ada')],
];

const said = (calls: ToolCall[]) => calls.map(({ name, args }) => [name, args]);
const user = (text: string): Turn => ({ role: 'user', text });
const assistant = (text: string, ...calls: ToolCall[]): Turn => ({
  role: 'assistant',
  text,
  calls,
});
const result = ({ id, name }: ToolCall, text: string, isError = false): Result => ({
  id,
  name,
  blocks: [{ type: 'text', text }],
  isError,
});

test('prompts become calls, and what was typed reaches the tool as it was typed', async () => {
  const wrong = [];
  for (const [prompt, ...calls] of ROWS) {
    const got = said((await answer(prompt)).calls);
    if (JSON.stringify(sorted(got)) !== JSON.stringify(sorted(calls)))
      wrong.push({ prompt, got, calls });
  }
  assert.deepEqual(wrong, []);
});

/** The same, with the keys of every object in order. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, each]) => [key, sorted(each)]);
}

test('no value is made up: each was typed', async () => {
  for (const [prompt] of ROWS)
    for (const { args } of (await answer(prompt)).calls)
      for (const [key, value] of Object.entries(args!))
        assert.ok(prompt.replace('1e3', '1000').includes(`${value}`), `${prompt}: ${key}=${value}`);
});

test('the same conversation gets the same answer', async () => {
  for (const [prompt] of ROWS)
    assert.deepEqual(await events([user(prompt)]), await events([user(prompt)]));
});

test('what is missing, and what has no place, is asked about: nothing is called on a guess', async () => {
  const questions: [prompt: string, usage: RegExp][] = [
    ['add 2', /^- mcp__demo__add b=…$/m],
    ['add', /^- mcp__demo__add a=… b=…$/m],
    ['add c=2 b=40', /^- mcp__demo__add a=…$/m],
    ['write "hello"', /^- write content=…$/m],
    ['replace "a" in b.txt', /^- edit new=… \[all=…\]$/m],
    ['run', /^- bash command=… \[timeout=…\]$/m],
    ['run FOO=1 npm test', /^- bash \(what is test\?\) \[timeout=…\]$/m],
    ['read a.txt and b.txt', /^- read \(what is b\.txt\?\) \[offset=…\] \[limit=…\]$/m],
    ['greet Ada Lovelace', /^- mcp__demo__greet \(what is Lovelace\?\)$/m],
    ['greet "Ada" and "Grace"', /^- mcp__demo__greet \(what is Grace\?\)$/m],
    ['grep TODO in src', /^- grep \(what is src\?\) \[path=…\] \[glob=…\]/m],
    ['add 2 and 40 and greet Ada', /^- mcp__demo__add \(what is greet\?\) \(what is Ada\?\)$/m],
    ['read a.txt then greet', /^- mcp__demo__greet name=…$/m],
  ];
  for (const [prompt, usage] of questions) {
    const { text, calls } = await answer(prompt);
    assert.deepEqual(calls, [], prompt);
    assert.match(text, usage, prompt);
    assert.match(text, /I fill in only what you type/);
  }
});

test('behind a quotation or key=value there may be talk: it is left out, and that is said', async () => {
  const talks: [prompt: string, call: readonly [string, Json], unused: string][] = [
    [
      'run `npm test` and tell me how it went',
      bash({ command: 'npm test' }),
      'tell me how it went',
    ],
    ['greet name=Ada 3 times', hello('Ada'), '3 times'],
    ['bash command="ls"\n\ny\ny\n', bash({ command: 'ls' }), 'y y'],
  ];
  for (const [prompt, call, unused] of talks) {
    const { text, calls } = await answer(prompt);
    assert.deepEqual([said(calls), text], [[call], `I did not use: ${unused}`]);
  }
});

test('a question can be answered with what was missing', async () => {
  const asked = [user('add'), assistant((await answer('add')).text)];
  assert.deepEqual(said((await answer([...asked, user('a=2 b=40')])).calls), [sum(2, 40)]);
  assert.deepEqual(said((await answer([...asked, user('2 and 40')])).calls), [sum(2, 40)]);
  assert.deepEqual(said((await answer([...asked, user('{"a":2,"b":40}')])).calls), [sum(2, 40)]);
  assert.deepEqual(said((await answer([...asked, user('read a.txt')])).calls), [
    read({ path: 'a.txt' }),
  ]);
  assert.match((await answer([...asked, user('2')])).text, /^- mcp__demo__add b=…$/m);
  const first = await answer('run "ls"');
  const done: Turn[] = [
    user('run "ls"'),
    first,
    { role: 'tools', results: [result(first.calls[0]!, 'x')] },
  ];
  assert.deepEqual(
    (await answer([...done, await answer(done), user('thanks')])).calls,
    [],
    'done is done',
  );
});

test('values go to what is required in order, but a path that is required first may be said last', async () => {
  const send = tool('mcp__x__send', '', { message: {}, file: {} }, ['message', 'file']);
  const scan = tool('mcp__x__scan', '', { path: {}, pattern: {} }, ['path', 'pattern']);
  const args = async (prompt: string) => (await answer(prompt, [send, scan])).calls[0]?.args;
  assert.deepEqual(await args('send hello a.txt'), { message: 'hello', file: 'a.txt' });
  assert.deepEqual(await args('scan for "a.b" in src/x'), { path: 'src/x', pattern: 'a.b' });
  assert.deepEqual(await args('scan src for *.ts'), { path: 'src', pattern: '*.ts' });
});

test('talk gets an honest answer, with examples that work with the tools there are', async () => {
  for (const prompt of [
    'Thanks!',
    'what can you do?',
    'help',
    '',
    '???',
    'how are you',
    'then',
    'what is mcp? explain it simply',
    'are you chatgpt',
    'write me a python script that prints the first 10 fibonacci numbers',
    'read a.txt then frobnicate the moon',
  ]) {
    const { text, calls } = await answer(prompt, [...tools, tool('mcp__x__y', '', {})]);
    assert.deepEqual(calls, [], prompt);
    assert.ok(text.startsWith(REHEARSAL_BANNER), prompt);
    const examples = EXAMPLES.map((example) => `- ${example}\n`);
    assert.ok(text.includes(examples.join('')), prompt);
    assert.doesNotMatch(text, /path=…/);
  }
  assert.match((await answer('hello')).text, /^Hello!\nrehearsal: /);
  assert.match(REHEARSAL_BANNER, /does not understand.*ANTHROPIC_API_KEY.*OPENAI_API_KEY/);
  const { text } = await answer('hello', builtIn);
  assert.match(text, /^- what is here\?\n[^]*^- after a start with --demo, .*: 2 plus 40$/m);
  for (const example of EXAMPLES) {
    const { calls, text } = await answer(example);
    assert.ok(calls.length === 1 || text.includes('`mcp__demo__add`: Adds'), example);
  }
});

const listing = bash({ command: 'ls' });
const hello42 = write({ path: 'hello.txt', content: 'hello world' });
const PHRASES: [prompt: string, call: readonly [string, Json]][] = [
  ['what is here?', listing],
  ["What's in here", listing],
  ['so, what is in this folder?', listing],
  ['what files are here?', listing],
  ['list the files', listing],
  ['can you show me all files in this folder', listing],
  ['what do you see here?', listing],
  ['2 plus 40', sum(2, 40)],
  ['what is 2 + 40?', sum(2, 40)],
  ['How much is -2.5+40', sum(-2.5, 40)],
  ['show me notes.txt', read({ path: 'notes.txt' })],
  ["what's in the file src/a.ts?", read({ path: 'src/a.ts' })],
  ['open "notes.txt".', read({ path: 'notes.txt' })],
  ['create a file hello.txt that says hello world', hello42],
  ['please make a new text file called hello.txt with "hello world"', hello42],
  ['write me hello.txt containing the text “hello world”', hello42],
  ['add a file notes that says Is it? Yes!', write({ path: 'notes', content: 'Is it? Yes!' })],
];

test('what a newcomer types is taken for words that name a tool, and that is said', async () => {
  for (const [prompt, call] of PHRASES) {
    const { text, calls } = await answer(prompt);
    assert.deepEqual(sorted(said(calls)), sorted([call]), prompt);
    assert.match(text, /^I take that for: \w/, prompt);
  }
  for (const other of [
    'what is where?',
    'list',
    'what is 2 plus forty',
    'create a file hello.txt',
    'show me the money',
    `what is here${' '.repeat(1000)}?`,
  ])
    assert.doesNotMatch((await answer(other)).text, /I take that for/, other);
});

test('asked for its tools, it lists them: each with the first sentence of its description', async () => {
  const many = Array.from({ length: 60 }, (_, n) => tool(`t${n}`, `> Does ${n}. More.`, {}));
  const { text } = await answer('what tools do you have?');
  assert.match(text, /^- `read`: Reads a text file or an image, .*\.\n- `write`: Writes/m);
  assert.match(text, /^- `mcp__demo__add`: Adds two numbers\.$/m);
  const long = (await answer('list your tools', many)).text;
  assert.match(long, /^- `t7`: Does 7\.$/m);
  assert.match(long, /\n- `t49`: .*\nand 10 more$/);
});

test('"then" makes turns, and the answer quotes all results', async () => {
  const turns: Turn[] = [user('add 2 and 40, then greet "Ada and then Grace" and then read a.txt')];
  const seen = [];
  for (let answered = await answer(turns); ; answered = await answer(turns)) {
    turns.push(answered);
    seen.push(...said(answered.calls));
    if (answered.calls.length === 0) break;
    turns.push({
      role: 'tools',
      results: answered.calls.map((each) => result(each, `result of ${each.name}`)),
    });
  }
  assert.deepEqual(seen, [sum(2, 40), hello('Ada and then Grace'), read({ path: 'a.txt' })]);
  const last = turns.at(-1);
  assert.ok(last?.role === 'assistant');
  const names = seen.map(([name]) => name);
  assert.equal(last.text, names.map((name) => `${name} answered:\nresult of ${name}`).join('\n\n'));
  const [next] = (await answer([...turns, user('add 1 and 1')])).calls;
  const ids = [...turns.flatMap((turn) => (turn.role === 'assistant' ? turn.calls : [])), next].map(
    (each) => each?.id,
  );
  assert.equal(new Set(ids).size, 4, 'no id comes twice');
});

/** The answer after the first call of a prompt had this result. */
async function after(prompt: string, text: string, isError = false) {
  const first = await answer(prompt);
  const results = first.calls.map((each) => result(each, text, isError));
  return answer([user(prompt), first, { role: 'tools', results }]);
}

test('a step that fails ends the rest, and says why', async () => {
  const failed = await after('read a.txt then add 2 and 40', 'no such file: a.txt', true);
  assert.deepEqual(failed.calls, []);
  assert.equal(failed.text, 'read failed:\nno such file: a.txt');
  assert.equal(
    (await after('run ls', 'The user said no.', true)).text,
    'bash failed:\nThe user said no.',
  );
  assert.deepEqual(said((await after('read a.txt then add 2 and 40', 'a text')).calls), [
    sum(2, 40),
  ]);
});

test('an image in a result is named', async () => {
  const first = await answer('read a.png');
  const blocks: Result['blocks'] = [
    { type: 'text', text: 'see:' },
    { type: 'image', mimeType: 'image/png', data: '' },
  ];
  const results = [{ ...result(first.calls[0]!, ''), blocks }];
  assert.equal(
    (await answer([user('read a.png'), first, { role: 'tools', results }])).text,
    'read answered:\nsee:\n[image]',
  );
});

test('it does not begin when it was told to stop', async () => {
  await assert.rejects(events([user('read a.txt')], tools, AbortSignal.abort()), {
    name: 'AbortError',
  });
});

test('of several tools, the name that was said best is meant; between equals it asks', async () => {
  const path = [{ path: {} }, ['path']] as const;
  const readers = [
    tool('mcp__x__read_file', '', ...path),
    tool('mcp__x__read_text_file', '', ...path),
    ...tools,
  ];
  assert.equal(
    (await answer('read a.txt', readers)).calls[0]?.name,
    'read',
    'the others have more words',
  );
  assert.equal(
    (await answer('read the text file a.txt', readers)).calls[0]?.name,
    'mcp__x__read_text_file',
  );
  assert.equal((await answer('read_file a.txt', readers)).calls[0]?.name, 'mcp__x__read_file');
  assert.equal(
    (await answer('mcp__x__read_text_file a.txt', readers)).calls[0]?.name,
    'mcp__x__read_text_file',
  );
  const lamps = ['oldLamps', 'new_lamp', 'red-lamp'].map((name) => tool(`mcp__x__${name}`, '', {}));
  assert.match(
    (await answer('lamp', lamps)).text,
    /^Which tool.*\n- mcp__x__oldLamps\n- mcp__x__new_lamp\n- mcp__x__red-lamp$/m,
  );
  for (const [n, words] of ['old lamp', 'the new lamps', 'red'].entries())
    assert.equal((await answer(words, lamps)).calls[0]?.name, lamps[n]?.name, words);
  const twins = [add, { ...add, name: 'mcp__other__add' }];
  assert.deepEqual((await answer('add 2 and 40', twins)).calls, []);
  assert.equal((await answer('mcp__other__add 2 and 40', twins)).calls[0]?.name, 'mcp__other__add');
  const verbs = [
    tool('mcp__x__mail', 'Sends a letter.', {}),
    tool('mcp__x__spell', 'Checks it.', {}),
  ];
  assert.equal(
    (await answer('send', verbs)).calls[0]?.name,
    'mcp__x__mail',
    'the verb of a description counts',
  );
});

test('no schema makes it fall', async () => {
  const hostile = JSON.parse(`[
    true, false, null, 1, "x", [], {}, {"properties": []}, {"properties": {"a": true, "b": false, "c": null}},
    {"properties": {"__proto__": {"type": "string"}, "constructor": {}, "toString": {"type": 7}},
      "required": ["__proto__", "valueOf"]},
    {"required": "a"}, {"required": [1, null, {}, "a", "a"]}, {"required": {"a": 1}}, {"required": [["a"]]}]`);
  const odd = hostile.map((inputSchema: Json, n: number) => ({
    name: `odd_${n}`,
    description: '',
    inputSchema,
  }));
  for (let n = 0; n < odd.length; n += 1)
    for (const rest of [
      '',
      ' a',
      ' a=1 b=2',
      ' "x" 5 a.txt',
      ' {"a":1}',
      ' {"a":',
      ' __proto__="x" valueOf=y',
    ])
      await answer(`odd_${n}${rest}`, odd);
  const own = (await answer('odd_9 __proto__="x" valueOf=y', odd)).calls[0]!.args!;
  assert.deepEqual(Object.entries(own), [
    ['__proto__', 'x'],
    ['valueOf', 'y'],
  ]);
});

// Nothing here measures time. But what takes the square of a length, takes hours, and the runner gives up.
test('many tools, long descriptions and long prompts take no longer than they must', async () => {
  const crowd = Array.from({ length: 10_000 }, (_, n) =>
    tool(`mcp__big__tool_${n}`, `${n} does it. `.repeat(20), {}),
  );
  assert.deepEqual(said((await answer('add 2 and 40', [...crowd, ...tools])).calls), [sum(2, 40)]);
  const properties = Object.fromEntries(
    Array.from({ length: 2000 }, (_, n) => [`p${n}`, { type: 'string' }]),
  );
  const wide = tool('mcp__big__wide', 'x'.repeat(1_000_000), properties, Object.keys(properties));
  const many = Array.from({ length: 2000 }, (_, n) => ({ ...wide, name: `mcp__big__wide_${n}` }));
  for (const unit of ['wide ', 'wide 1 then '])
    await answer(unit.repeat(1_000_000 / unit.length), many);
  const units = [
    '“',
    '"',
    "' ",
    '{"a":',
    '{ ',
    'a=',
    'a= ',
    '.',
    ' and add 1',
    ' then add 1',
    '* ',
    '1 ',
    'the ',
    '/',
    'aA',
  ];
  for (const unit of units)
    await answer(`wide add ${unit.repeat(1_000_000 / unit.length)}x`, [wide, ...tools]);
  const command = `echo ${'x '.repeat(10_000)}end`;
  assert.deepEqual(
    said((await answer(`run ${command}`)).calls),
    [bash({ command })],
    'nothing is cut off',
  );
});
