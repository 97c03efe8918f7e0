// What a person types into a server's form, and what servers may have hidden: decided by origin, not by name.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { Trust } from '../agent.ts';
import { ScriptedPerson } from '../chapters/17-the-gate/person.ts';
import { keepSecrets, keepTyped, Masker } from '../chapters/17-the-gate/safe-text.ts';
import { History } from '../chapters/19-the-terminal/history.ts';
import { Trace } from '../chapters/19-the-terminal/more/trace-file.ts';
import { Session } from '../chapters/19-the-terminal/session-file.ts';
import { indexTools } from '../chapters/28-a-thousand-tools/tool-search.ts';
import { Keeper } from '../chapters/30-seeing/more/keep.ts';
import type { Json } from '../mcp.ts';
import { sampling } from '../chapters/23-the-server-asks/sampling.ts';
import { asker, connected, echo, ERAS, form } from './help/asking-server.ts';
import { cleanUp, folder, open } from './help/basics.ts';

afterEach(cleanUp);

const ELICIT = 'elicitation/create';
const TEXT = { type: 'string' };
/** Fields whose names tell nothing, and what is typed there. */
const TYPED: [field: Json & { name: string }, typed: string][] = [
  [{ name: 'k', title: 'API key (starts with sk-)' }, 'sk-4711-q'],
  [{ name: 'w', title: 'Passwort' }, 'geheim77'],
  [{ name: 'f', format: 'password' }, 'hunter2'],
  [{ name: 'city' }, 'Graz'],
  [{ name: 'quote' }, 'a"b\\c d'],
  [{ name: 'mot de passe' }, 'ouvre-toi'],
  [{ name: 'type' }, 'tools/call'], // a word of the protocol
];
const ANY = /4711|geheim|hunter|Graz|a\\*"b|ouvre/;

for (const era of ERAS)
  test(`C41, ${era}: no text that was typed into a form is in a trace, or shown again`, async () => {
    const typed = TYPED.map(([, text]) => text);
    const kept = typed.map(() => ''); // the second time, as it was
    const person = new ScriptedPerson(['y', ...typed, '7', 'b', 'c', ...kept, '', '', 'y']);
    const { ask, wire } = await connected(era, person);
    const fields = TYPED.map(([{ name, ...more }]) => [name, { ...TEXT, ...more }]);
    const number = { type: 'integer' };
    const choice = { ...TEXT, enum: ['alpha', 'b'] };
    const properties = { ...Object.fromEntries(fields), number, choice };
    const { content } = await ask(ELICIT, form(properties));
    const sent = TYPED.map(([{ name }, text]) => [name, text]);
    assert.deepEqual(content, { ...Object.fromEntries(sent), number: 7, choice: 'b' });
    const shown = person.questions.map(({ text }) => text).join('\n');
    assert.doesNotMatch(shown, ANY);
    assert.match(shown, /number: 7\n {2}choice: "b"/); // these may be
    const pages = person.questions.filter(({ isBrief }) => isBrief);
    assert.equal(pages.length, 2 * TYPED.length); // gone from the screen when they are entered
    const file = join(folder(), 'trace.jsonl');
    const lines: string[] = [];
    const trace = new Trace({ warn: () => {} } as never, new Masker({}), file);
    trace.follow((line) => lines.push(line)); // as the page does
    for (const [dir, msg] of wire) trace.wire(dir, msg, 'shop');
    trace.write({ type: 'tool_end', text: typed.join(' | ') }); // the server may have told others
    for (const text of typed) {
      // as the name of anything
      const named = {
        jsonrpc: text,
        method: text,
        result: { type: text, role: text, a: { [text.length < 8 ? 'a' : text]: 1 } },
      };
      trace.wire('in', named as never, 'shop');
      trace.wire(
        'in',
        { jsonrpc: '2.0', method: 'x', params: { type: 'text', role: 'user' } },
        'shop',
      );
    }
    for (const text of [readFileSync(file, 'utf8'), lines.join('\n')]) {
      assert.doesNotMatch(text, ANY);
      assert.match(text, /"method":"tools\/call"/); // a server cannot have its own calls masked
      assert.match(text, /"type":"text","role":"user"/);
    }
  });

test('C41: nor of another client that is recorded, whose words we have never seen', () => {
  const file = join(folder(), 'recorded.jsonl');
  const keeper = new Keeper(file, assert.ifError);
  const answer = { action: 'accept', content: { a: 'zwei-worte', b: ['x-y-z'], c: 7, d: true } };
  const record = (msg: Json) => keeper.write({ dir: 'out', server: 's', msg });
  record({ jsonrpc: '2.0', id: 1, result: answer });
  record({
    jsonrpc: '2.0',
    id: 2,
    method: 'tools/call',
    params: { inputResponses: { q: answer } },
  });
  record({ jsonrpc: '2.0', id: 3, result: { content: [TEXT], action: 'accept' } }); // a tool's result
  keeper.flush();
  const text = readFileSync(file, 'utf8');
  assert.doesNotMatch(text, /zwei|x-y-z/);
  const hidden = { a: '***', b: ['***'], c: 7, d: true };
  assert.equal(text.split(JSON.stringify(hidden)).length, 3);
  assert.ok(text.includes(JSON.stringify([TEXT])));
});

test('C41: but what the user types at the prompt is theirs, also if a form held the same words', async () => {
  const person = new ScriptedPerson(['y', 'San Marino', 'y']);
  const { ask } = await connected('handshake', person);
  await ask(ELICIT, form({ city: TEXT }));
  const home = folder();
  const trust = new Trust({ home, cwd: home });
  const masker = new Masker({});
  const history = new History(trust, masker);
  history.add('the weather in San Marino');
  assert.deepEqual(history.read(), ['the weather in San Marino']);
  const session = new Session(trust, masker);
  session.record({ role: 'user', text: 'San Marino, please' });
  session.record({ role: 'assistant', text: 'in San Marino: 21 °C', calls: [] });
  session.close();
  const turns = session.list().flatMap((each) => session.resume(each));
  assert.deepEqual(turns, [
    { role: 'user', text: 'San Marino, please' },
    { role: 'assistant', text: 'in ***: 21 °C', calls: [] },
  ]);
  assert.equal(masker.text('We were in San Marino.'), 'We were in San Marino.'); // our own words
});

test('I6: nor is a secret the name of something in a trace', () => {
  const masker = new Masker({ API_KEY: 'a-long-key-4711' });
  const text = masker.json({
    msg: { result: { 'the a-long-key-4711': 1, nextCursor: 'x', name: 2 } },
  });
  assert.equal(text, '{"msg":{"result":{"the ***":1,"nextCursor":"x","name":2}}}');
});

test('I11: no server can push what the user typed, or what others gave, out of the mask', () => {
  const masker = new Masker({});
  keepTyped('open sesame');
  keepSecrets('calm', 'a-calm-token-4711');
  for (let n = 0; n < 3000; n++) keepSecrets('rotating', `rotating-${n}-token-x`);
  const text = 'open sesame, a-calm-token-4711, rotating-2999-token-x';
  assert.equal(masker.text(text), '***, ***, ***');
  assert.equal(masker.text('rotating-0-token-x'), 'rotating-0-token-x'); // its own, long ago
});

const SAMPLE = 'sampling/createMessage';
const sample = (maxTokens: number) => ({
  messages: [{ role: 'user', content: { type: 'text', text: 'Say hello' } }],
  maxTokens,
});

test('C42: a yes to sampling is for one prompt and one answer', async () => {
  const person = new ScriptedPerson(['y', 'y', 'n']);
  const extensions = [sampling({ person, model: () => echo })];
  const { connection } = await open(asker('handshake'), { extensions });
  const ask = async () => {
    const args = { method: SAMPLE, params: sample(10) };
    return JSON.parse((await connection.callTool('ask', args)).text);
  };
  assert.equal((await ask()).role, 'assistant');
  assert.equal((await ask()).error.code, -1);
  assert.equal(person.questions.length, 3);
});

test('C43: a search gives one server at most three of five places, unless it is the only one', () => {
  const row = (server: string, n: number, description: string) => {
    return {
      label: `${server}-${n}`,
      server,
      name: `create_issue_${n}`,
      description,
      inputSchema: {},
    };
  };
  const loud = Array.from({ length: 20 }, (_, n) =>
    row('loud', n, 'Create an issue. Issue, issue, create issues for the tracker.'),
  );
  const calm = [0, 1].map((n) => row('calm', n, 'Create an issue.'));
  const servers = (labels: string[]) => labels.map((label) => label.split('-')[0]).sort();
  const both = indexTools([...loud, ...calm]).search('create an issue in the tracker', 5);
  assert.deepEqual(servers(both), ['calm', 'calm', 'loud', 'loud', 'loud']);
  assert.equal(indexTools(loud).search('create an issue', 5).length, 5);
});
