// Chapter 23 at a real terminal, and without one.

import assert from 'node:assert/strict';
import { realpathSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { cleanUp, root } from './help/basics.ts';
import { call, say, startModelServer } from './help/model-server.ts';
import { KEYS, place, run, Terminal, userServers } from './help/terminal.ts';

afterEach(cleanUp);

const asker = { command: process.execPath, args: [join(root, 'fixtures', 'asker.mjs')] };
const PARCEL = {
  message: 'Where shall the parcel go?',
  requestedSchema: {
    type: 'object',
    properties: {
      city: { type: 'string', minLength: 2 },
      floor: { type: 'integer', default: 3 },
      when: {
        type: 'array',
        items: {
          anyOf: [
            { const: 'am', title: 'Morning' },
            { const: 'pm', title: 'Evening' },
          ],
        },
      },
    },
    required: ['city'],
  },
};
const ask = (method: string, params: object) => call('mcp__shop__ask', { method, params });
const rules = ['--allow', 'mcp__shop__ask', '--no-color'];

test('a form is filled in by keys, a choice like a no is declined, a form is left; sampling and roots', async () => {
  const decision = { type: 'string', enum: ['approve', 'reject'] };
  const drop = {
    message: 'Drop "customers"?',
    requestedSchema: { type: 'object', properties: { decision } },
  };
  const prompt = {
    messages: [{ role: 'user', content: { type: 'text', text: 'Say hello' } }],
    maxTokens: 20,
  };
  const model = await startModelServer([
    ask('elicitation/create', PARCEL),
    say('first done'),
    ask('elicitation/create', drop),
    say('second done'),
    ask('elicitation/create', PARCEL),
    say('third done'),
    ask('sampling/createMessage', prompt),
    say('Hello, shop.'),
    say('fourth done'),
    ask('roots/list', {}),
    say('fifth done'),
  ]);
  const env = { ANTHROPIC_API_KEY: 'a-key-for-tests', ANTHROPIC_BASE_URL: model.url };
  const where = place({}, userServers({ shop: asker }));
  const terminal = new Terminal(where, rules, env);
  const heard = (n: number): any => {
    const { messages } = model.requests[n]!.body;
    return JSON.parse(messages.at(-1).content[0].content[0].text);
  };
  await terminal.ready();

  terminal.enter('one');
  await terminal.see('The MCP server "shop" asks:');
  await terminal.see('while it runs "ask":');
  await terminal.see(/Fill it in\?.*: *$/);
  terminal.enter('y');
  await terminal.see(/^"city" .*: *$/);
  terminal.enter('G');
  await terminal.see('That is not it: it must have at least 2 characters.');
  terminal.enter('Graz');
  await terminal.see(/^"floor" .*: *$/);
  terminal.enter('');
  await terminal.see(/^"when" .*: *$/);
  terminal.enter('2');
  await terminal.see(/^Send it\?.*: *$/);
  terminal.enter('y');
  await terminal.see('first done'); // and the server has echoed it
  assert.doesNotMatch(terminal.text, /Graz/);
  assert.deepEqual(heard(1), {
    action: 'accept',
    content: { city: 'Graz', floor: 3, when: ['pm'] },
  });
  await terminal.ready();

  terminal.enter('two');
  await terminal.see(/Fill it in\?.*: *$/);
  terminal.enter('y');
  await terminal.see(/^"decision" .*: *$/);
  terminal.enter('reject');
  await terminal.see(/^Decline instead\?.*: *$/);
  terminal.enter('');
  await terminal.see('second done');
  assert.deepEqual(heard(3), { action: 'decline' });
  await terminal.ready();

  terminal.enter('three');
  await terminal.see(/Fill it in\?.*: *$/);
  terminal.enter('y');
  await terminal.see(/^"city" .*: *$/);
  terminal.press(KEYS.ctrlC); // leaves the form, and the turn goes on
  await terminal.see('third done');
  assert.deepEqual(heard(5), { action: 'cancel' });
  await terminal.ready();

  terminal.enter('four');
  await terminal.see(/^Ask the model\?[^]*: *$/);
  terminal.enter('y');
  await terminal.see('│ Hello, shop.');
  await terminal.see(/^Send it\? \[y\]es, send it.*: *$/);
  terminal.enter('y');
  await terminal.see('fourth done');
  assert.equal(model.requests[7]!.body.max_tokens, 20);
  assert.equal(heard(8).content.text, 'Hello, shop.');
  await terminal.ready();

  terminal.enter('five');
  await terminal.see('fifth done');
  assert.equal(heard(10).roots.length, 1);
  await terminal.ready();
  terminal.enter('/mcp');
  await terminal.see(`  it was told where you work: "${realpathSync(where.cwd)}"`);
  await terminal.ready();
  terminal.enter('/exit');
  assert.equal(await terminal.ended(), 0);
  assert.deepEqual(model.problems, []);
});

test('without a terminal a form is cancelled, with one line on stderr, and the exit code is that of the answer', async () => {
  const model = await startModelServer([
    ask('elicitation/create', PARCEL),
    say('It was cancelled.'),
  ]);
  const env = { ANTHROPIC_API_KEY: 'a-key-for-tests', ANTHROPIC_BASE_URL: model.url };
  const ended = await run(place({}, userServers({ shop: asker })), ['-p', 'one', ...rules], {
    env,
  });
  assert.deepEqual([ended.code, ended.out], [0, 'It was cancelled.\n']);
  assert.match(ended.err, /"shop" asks something, and there is no terminal to ask at/);
  assert.match(JSON.stringify(model.requests[1]!.body.messages.at(-1)), /cancel/);
});

test('--json tells of a question that nobody answered', async () => {
  const model = await startModelServer([
    ask('elicitation/create', PARCEL),
    say('It was cancelled.'),
  ]);
  const env = { ANTHROPIC_API_KEY: 'a-key-for-tests', ANTHROPIC_BASE_URL: model.url };
  const { out } = await run(
    place({}, userServers({ shop: asker })),
    ['-p', 'one', '--json', ...rules],
    { env },
  );
  const events = out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const [{ model: _, ...question }] = events.filter(({ type }) => type === 'question');
  assert.deepEqual(question, {
    type: 'question',
    server: 'shop',
    message: PARCEL.message,
    action: 'cancel',
  });
});
