// Chapter 24 at a real terminal, on the command line, and in a pipe.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { cleanUp, root } from './help/basics.ts';
import { call, say, startModelServer } from './help/model-server.ts';
import { KEYS, place, run, Terminal, userServers } from './help/terminal.ts';

afterEach(cleanUp);

const library = (...flags: string[]) => ({
  command: process.execPath,
  args: [join(root, 'fixtures', 'library.mjs'), ...flags],
});
const anthropic = (model: { url: string }) => ({
  ANTHROPIC_API_KEY: 'a-key-for-tests',
  ANTHROPIC_BASE_URL: model.url,
});
/** What the user has said to the model in this request: all blocks of the last message. */
const saidIn = (request: { body: any }): any[] => [request.body.messages.at(-1).content].flat();

test('@server:uri with Tab, a template filled in, prompts with arguments, /watch and /logs', async () => {
  const model = await startModelServer([
    say('one'),
    say('two'),
    say('three'),
    say('four'),
    say('five'),
    call('mcp__library__change', { uri: 'library://news', text: 'A new atlas.' }),
    say('changed'),
    say('heard'),
    call('mcp__library__log', { level: 'error', data: 'the roof leaks' }),
    say('logged'),
  ]);
  const where = place({ 'rules.txt': 'a file\n' }, userServers({ library: library() }));
  const rules = ['--allow', 'mcp__library__change', '--allow', 'mcp__library__log', '--no-color'];
  const terminal = new Terminal(where, rules, anthropic(model));
  await terminal.ready();
  terminal.enter('/resources');
  await terminal.see(/^library:library:\/\/rules +House rules$/);
  await terminal.see(/^library:library:\/\/\{shelf\}\/\{item\} +One thing$/);
  assert.doesNotMatch(terminal.text, /widget|for assistants/); // not for people
  await terminal.ready();

  terminal.type('what says @libr');
  terminal.press(KEYS.tab); // of several: what they have in common
  await terminal.see(/^› what says @library:library:\/\/$/);
  terminal.type('rul');
  terminal.press(KEYS.tab);
  await terminal.see(
    /^› what says @library:library:\/\/rules $|^› what says @library:library:\/\/rules$/,
  );
  terminal.enter('?');
  await terminal.see(/@library:library:\/\/rules: \d+ characters are sent/);
  await terminal.see(/^one$/);
  assert.match(
    saidIn(model.requests[0]!)[0].text,
    /^what says @library:library:\/\/rules \?\n\nThe resource "library:\/\/rules" of the MCP server "library" \("text\/plain"\), as data:\n```\nBe quiet\.\n```$/,
  );
  await terminal.ready();

  terminal.type('see @library:library://li');
  terminal.press(KEYS.tab); // a hole: the server knows one
  await terminal.see(/^› see @library:library:\/\/light\/$/);
  terminal.type('lan');
  terminal.press(KEYS.tab); // and this one by what is in the hole before
  await terminal.see(/^› see @library:library:\/\/light\/lantern$/);
  terminal.enter('and @library:library://picture, please');
  await terminal.see(/^two$/);
  const [image, { text }] = saidIn(model.requests[1]!);
  assert.equal(image.source.media_type, 'image/png');
  assert.match(text, /as data:\n```\na lantern\n```\n\nThe resource "library:\/\/picture"/);
  await terminal.ready();

  terminal.enter('get @library:library://{shelf}/{item}');
  await terminal.see(/needs "shelf"/);
  terminal.type('p');
  terminal.press(KEYS.tab);
  await terminal.see(/^shelf \(Tab .*\): paper$/);
  terminal.enter('');
  await terminal.see(/^item \(Tab .*\):$/);
  terminal.enter('a/b');
  await terminal.see(/^three$/);
  assert.match(saidIn(model.requests[2]!)[0].text, /"library:\/\/paper\/a%2Fb"/);
  await terminal.ready();

  terminal.enter('/prompts');
  await terminal.see(/^\/mcp__library__explain +Explain a thing: Asks for an explanation$/);
  await terminal.see(/^ *it takes thing=…, and if you like style=…$/);
  await terminal.ready();
  terminal.type('/mcp__library__ex');
  terminal.press(KEYS.tab);
  await terminal.see(/^› \/mcp__library__explain$/);
  terminal.type('gra');
  terminal.press(KEYS.tab); // the server completes arguments, too
  await terminal.see(/^gravity {2}grammar$/);
  terminal.type('v');
  terminal.press(KEYS.tab);
  await terminal.see(/^› \/mcp__library__explain gravity$/);
  terminal.press(KEYS.ctrlU);
  terminal.enter('/mcp__library__explain "two words" style=Grimm');
  await terminal.see(/^four$/);
  assert.equal(saidIn(model.requests[3]!)[0].text, 'Explain two words in the style of Grimm.');
  await terminal.ready();
  terminal.enter('/mcp__library__explain');
  await terminal.see(/"explain" of the MCP server "library" needs "thing"\.\n.*what to explain/);
  terminal.type('gr');
  terminal.press(KEYS.tab);
  await terminal.see(/^thing \(Tab .*\): gra$/); // what they have in common
  terminal.press(KEYS.tab);
  await terminal.see(/^gravity {2}grammar$/, 2);
  terminal.enter('vity');
  await terminal.see(/^five$/);
  assert.equal(saidIn(model.requests[4]!)[0].text, 'Explain gravity.');
  await terminal.ready();

  terminal.enter('/watch library:library://news');
  await terminal.see(/^watched:\n {2}library:library:\/\/news$/);
  await terminal.ready();
  terminal.enter('change it');
  await terminal.see(
    /"library:\/\/news" of "library" has changed; the model hears of it with your next prompt/,
  );
  await terminal.see(/^changed$/);
  await terminal.ready();
  terminal.enter('what is new?');
  await terminal.see(/^heard$/);
  assert.match(
    saidIn(model.requests[7]!)[0].text,
    /^what is new\?\n\nThis has changed since you were told last\. The resource "library:\/\/news".*\n```\nA new atlas\.\n```$/,
  );
  await terminal.ready();
  terminal.enter('log it');
  await terminal.see(/^! "library" logs \(error\): library: the roof leaks$/);
  await terminal.see(/^logged$/);
  await terminal.ready();
  terminal.enter('/logs library');
  await terminal.see(/^library \d\d:\d\d:\d\d error: library: the roof leaks$/);
  await terminal.ready();
  terminal.press(KEYS.ctrlD);
  assert.equal(await terminal.ended(), 0);
  assert.deepEqual(model.problems, []);
});

test('C20 what a server of the project would say for you is shown first; its prompts are fetched on your word only', async () => {
  const model = await startModelServer([call('mcp__library__told', {}), say('told')]);
  const where = place({ '.mcp.json': JSON.stringify({ mcpServers: { library: library() } }) });
  const terminal = new Terminal(
    where,
    ['--allow', 'mcp__library__told', '--no-color'],
    anthropic(model),
  );
  await terminal.ready();
  terminal.enter('/prompts');
  await terminal.see(/Start it\?.*: *$|approve.*: *$|\[y\]es.*: *$/);
  terminal.enter('yes');
  await terminal.see(/^\/mcp__library__explain/);
  await terminal.ready();
  terminal.enter('/mcp__library__explain x');
  await terminal.see(
    /The prompt "explain" of the project's MCP server "library" is:\nuser:\n {2}│ Explain x\.\nSay this to the model\?.*: *$/,
  );
  terminal.enter('n');
  await terminal.see('nothing was sent');
  await terminal.ready();
  assert.equal(model.requests.length, 0);
  terminal.enter('what were you told?');
  await terminal.see(/^told$/);
  const [result] = saidIn(model.requests[1]!);
  const { fetched } = JSON.parse(result.content[0].text);
  assert.deepEqual(fetched, [{ name: 'explain', args: { thing: 'x' } }]); // this one, once
  terminal.press(KEYS.ctrlD);
});

test('C21 what comes through a pipe, or as an argument, reads no resource', async () => {
  const model = await startModelServer([say('one'), say('two')]);
  const where = place({}, userServers({ library: library() }));
  const env = anthropic(model);
  const piped = await run(where, [], { env, input: 'see @library:library://rules\n' });
  const argued = await run(where, ['-p', 'see @library:library://rules'], { env, input: '' });
  assert.deepEqual([piped.code, argued.code], [0, 0]);
  for (const request of model.requests)
    assert.doesNotMatch(JSON.stringify(request.body.messages), /Be quiet/);
});

test('read, prompt, resources and prompts on the command line; probe shows all of it', async () => {
  const where = place(
    {},
    userServers({ library: library(), archive: library('modern', 'no-templates') }),
  );
  const read = await run(where, ['read', 'library', 'library://rules']);
  assert.deepEqual([read.code, read.out], [0, 'Be quiet.\n']);
  const bytes = await run(where, ['read', 'archive', 'library://archive']);
  assert.equal(bytes.out, 'PK\x03\x04\n');
  const json = await run(where, ['read', '--json', 'library', 'library://shelf/']);
  assert.equal(JSON.parse(json.out).contents.length, 2);
  const missing = await run(where, ['read', 'library', 'library://nowhere']);
  assert.deepEqual([missing.code, missing.out], [5, '']);
  assert.match(missing.err, /Resource not found: library:\/\/nowhere/);
  const prompt = await run(where, ['prompt', 'library', 'explain', 'thing=a b']);
  assert.equal(prompt.out, 'user: Explain a b.\n');
  const bare = await run(where, ['prompt', 'library', 'explain']);
  assert.deepEqual([bare.code, /it takes thing=…/.test(bare.err)], [2, true]);
  const odd = await run(where, ['prompt', 'library', 'explian', 'thing=x']);
  assert.match(odd.err, /there is no prompt explian; did you mean explain\?/);
  const resources = await run(where, ['resources']);
  assert.match(resources.out, /^library library:\/\/rules +House rules$/m);
  assert.match(resources.out, /^archive library:\/\/rules +House rules$/m);
  const prompts = await run(where, ['prompts', '--json', 'archive']);
  assert.equal(JSON.parse(prompts.out).prompts.length, 3);
  const probe = await run(where, ['probe', 'library']);
  assert.match(probe.out, /resources \(8\)[^]*library:\/\/rules +House rules/);
  assert.match(probe.out, /resource templates \(2\)[^]*prompts \(3\)[^]*explain\(thing, style\?\)/);
  const tolerant = await run(where, [
    'probe',
    '--json',
    '--',
    ...Object.values(library('broken-list', 'no-templates')).flat(),
  ]);
  const report = JSON.parse(tolerant.out);
  assert.deepEqual(
    [tolerant.code, report.ok, report.tools.length, report.prompts.length, report.resources],
    [0, true, 3, 3, undefined],
  );
  assert.match(report.warnings.join(), /did not list its resources: .*the database is not there/);
});
