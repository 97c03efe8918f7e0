// Chapter 30: who may make the live page's program do something, and how often; and a question that is
// asked in two places.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { afterEach, test } from 'node:test';
import { choice, NO, YES } from '../chapters/17-the-gate/dialogue.ts';
import { ScriptedPerson } from '../chapters/17-the-gate/person.ts';
import { problemsFound } from '../chapters/23-the-server-asks/schema.ts';
import { OpenQuestions } from '../chapters/30-seeing/open-questions.ts';
import { testFile } from '../chapters/30-seeing/more/test-file.ts';
import { LivePage } from '../chapters/30-seeing/view.ts';
import type { Json } from '../mcp.ts';
import { cleanUp, later, rejection, until } from './help/basics.ts';

afterEach(cleanUp);

type Headers = Record<string, string | undefined>;
type Answer = { status: number; json: any; headers: Record<string, unknown> };

/** A page that tells what it was asked for. */
async function begun() {
  const warnings: string[] = [];
  const asked: Json[] = [];
  const page = new LivePage((text) => warnings.push(text));
  later(() => page.close());
  page.act = async (wanted) => {
    asked.push(wanted);
    return { done: true };
  };
  const url = await page.start();
  const { host, origin } = new URL(url);
  const ours: Headers = {
    host,
    origin,
    'content-type': 'application/json',
    'sec-fetch-site': 'same-origin',
  };
  const post = (path: string, body: unknown, headers: Headers = {}, method = 'POST') =>
    new Promise<Answer>((done, fail) => {
      const given = Object.entries({ ...ours, ...headers }).filter(
        ([, value]) => value !== undefined,
      );
      const sent = request(
        new URL(path, url),
        { method, headers: Object.fromEntries(given) as any },
        async (answer) => {
          let text = '';
          for await (const piece of answer) text += piece;
          done({
            status: answer.statusCode!,
            json: text && JSON.parse(text),
            headers: answer.headers,
          });
        },
      );
      sent.on('error', fail);
      sent.end(typeof body === 'string' ? body : JSON.stringify(body));
    });
  const enter = async () => {
    const [, code] = page.addressToAct.split('#');
    return (await post('key', { code })).json.key as string;
  };
  return { page, url, host, origin, post, enter, asked, warnings };
}

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

test('H7: only a POST of our page, with the key, is acted upon; all else gets a status and nothing more', async () => {
  const { url, host, post, enter, asked } = await begun();
  const key = await enter();
  const { port } = new URL(url);
  const cases: [string, number, Headers, string?, unknown?, string?][] = [
    ['another origin', 403, { origin: 'https://evil.example' }],
    ['another port of this machine', 403, { origin: 'http://127.0.0.1:1' }],
    ['this machine by name', 403, { origin: `http://localhost:${port}` }],
    ['a frame without an origin', 403, { origin: 'null' }],
    ['no origin at all', 403, { origin: undefined }],
    [
      'a name that leads here',
      403,
      { host: `evil.example:${port}`, origin: `http://evil.example:${port}` },
    ],
    ['localhost as Host', 403, { host: host.replace('127.0.0.1', 'localhost') }],
    ['another site, says the browser', 403, { 'sec-fetch-site': 'cross-site' }],
    ['another port, says the browser', 403, { 'sec-fetch-site': 'same-site' }],
    ['a form: text/plain', 415, { 'content-type': 'text/plain' }],
    ['no key', 401, { authorization: undefined }],
    ['another key', 401, bearer('0'.repeat(32))],
    ['a part of the key', 401, bearer(key.slice(0, -1))],
    ['the key in another scheme', 401, { authorization: `Basic ${key}` }],
    ['no JSON', 400, {}, 'act', '{'],
    ['more than a mebibyte', 413, {}, 'act', JSON.stringify({ act: 'x'.repeat(2 ** 20) })],
    ['another path', 404, {}, 'call'],
    ['without the path token', 404, {}, '/act'],
    ['PUT', 405, {}, 'act', {}, 'PUT'],
    [
      'a question before a request of another origin',
      405,
      { origin: undefined },
      'act',
      '',
      'OPTIONS',
    ],
  ];
  for (const [name, status, headers, path = 'act', body = { act: 'call' }, method] of cases) {
    const answer = await post(path, body, { ...bearer(key), ...headers }, method);
    assert.equal(answer.status, status, name);
    assert.equal(answer.headers['access-control-allow-origin'], undefined, name);
    assert.deepEqual(Object.keys(answer.json), ['error'], name);
  }
  assert.deepEqual(asked, []);
  assert.deepEqual((await post('act', { act: 'call' }, bearer(key))).json, { done: true });
  assert.equal(
    (await post('act', {}, { ...bearer(key), 'sec-fetch-site': undefined })).status,
    200,
  );
  assert.equal(asked.length, 2);
});

test('H7: a code is good once, and a new one makes the old one void; the second use is told', async () => {
  const { page, post, warnings } = await begun();
  const codeOf = (address: string) => address.split('#')[1];
  const first = codeOf(page.addressToAct);
  const code = codeOf(page.addressToAct);
  assert.equal((await post('key', { code: first })).status, 403);
  assert.deepEqual(warnings, []);
  const { key } = (await post('key', { code })).json;
  assert.equal((await post('key', { code })).status, 403);
  assert.match(warnings.join(), /used a second time/);
  assert.equal(
    (await post('act', {}, bearer(key))).status,
    200,
    'the page that was first still may',
  );
});

test('H7: after five guesses the right code counts no more, and that is told; a new key ends the old one', async () => {
  const { page, post, enter, warnings } = await begun();
  const old = await enter();
  const [, code] = page.addressToAct.split('#');
  for (const guess of ['', null, 0, {}, code!.toUpperCase().replace(/\d/g, '0')])
    assert.equal((await post('key', { code: guess })).status, 403);
  assert.equal((await post('key', { code })).status, 403);
  assert.match(warnings.join(), /guesses/);
  assert.equal((await post('act', {}, bearer(old))).status, 200);
  await enter();
  assert.equal((await post('act', {}, bearer(old))).status, 401);
});

test('H7: what the page before began to ask is not done when another has the key', async () => {
  const { url, host, origin, enter, asked } = await begun();
  const old = await enter();
  const headers = { host, origin, 'content-type': 'application/json', ...bearer(old) };
  const slow = request(new URL('act', url), { method: 'POST', headers });
  const answer = once(slow, 'response');
  await new Promise((sent) => slow.write('{"act":', sent));
  await enter();
  slow.end('"call"}');
  const [{ statusCode }] = await answer;
  assert.equal(statusCode, 401);
  assert.deepEqual(asked, []);
});

test('a page that may not act takes no POST, and its address has no code', async () => {
  const { page, post } = await begun();
  page.act = undefined;
  assert.equal((await post('key', { code: '' })).status, 405);
  assert.ok(!page.url.includes('#'));
});

// ─── A question in two places ────────────────────────────────────────────────────────────────────

/** A person at a terminal where nothing is typed until the question is withdrawn. */
function silent() {
  const person = new ScriptedPerson(Array(9).fill(() => new Promise<string>(() => {})));
  const questions = new OpenQuestions();
  person.elsewhere = questions;
  const first = async () => {
    await until(() => questions.list.length > 0);
    return questions.list[0]! as any;
  };
  return { person, questions, first };
}

const ALWAYS = choice('[a]lways');
const QUESTION = {
  lines: ['it wants something'],
  prompt: 'Allow it?',
  choices: [YES, NO, ALWAYS],
  elsewhere: ['y', 'n'],
};

test('a question is open in both places; an answer on the page ends it in the terminal, and is good once', async () => {
  const { person, questions, first } = silent();
  const asked = person.choose({ ...QUESTION, from: 'a\u202eserver' });
  const { id, lines, choices } = await first();
  assert.match(lines[0], /^The MCP server "a\\u\{202e\}server" asks:$/);
  assert.deepEqual(
    choices.map(({ key }: any) => key),
    ['y', 'n'],
    'nothing that lasts',
  );
  assert.deepEqual(await questions.answer(id, { key: 'a' }), ['that is not one of the answers']);
  assert.deepEqual(await questions.answer(id, { words: 'no, thanks' }), [
    'that is not one of the answers',
  ]);
  assert.deepEqual(await questions.answer(id, { key: 'y' }), []);
  assert.deepEqual(await asked, { key: 'y' });
  assert.equal(person.questions[0]!.signal.aborted, true);
  assert.equal(((await rejection(questions.answer(id, { key: 'y' }))) as any).status, 409);
  assert.deepEqual(person.said, ['  answered on the page']);
});

test('answered in the terminal, withdrawn, or dismissed: the page has it no longer, and an answer is too late', async () => {
  for (const how of ['answered', 'withdrawn', 'dismissed']) {
    const { questions } = silent();
    let answerIt: (line: string) => void = () => {};
    const typed = new Promise<string>((done) => (answerIt = done));
    const person = new ScriptedPerson([() => typed]);
    person.elsewhere = questions;
    const signal = new AbortController();
    const asked = person.choose({ ...QUESTION, signal: signal.signal });
    await until(() => questions.list.length === 1 && person.questions.length === 1);
    const [{ id }] = questions.list as [{ id: string }];
    if (how === 'answered') answerIt('n');
    if (how === 'withdrawn') signal.abort();
    if (how === 'dismissed') person.dismiss();
    assert.deepEqual(await asked, how === 'answered' ? { key: 'n' } : undefined, how);
    assert.deepEqual(questions.list, [], how);
    assert.equal(((await rejection(questions.answer(id, { key: 'y' }))) as any).status, 409, how);
    assert.deepEqual(person.said, [], how);
  }
});

test('a question whose answers last is not on the page', async () => {
  const { questions } = silent();
  const person = new ScriptedPerson(['y']);
  person.elsewhere = questions;
  let changes = 0;
  questions.onChange = () => changes++;
  assert.deepEqual(await person.choose({ ...QUESTION, elsewhere: undefined }), { key: 'y' });
  assert.equal(changes, 0);
});

test('a form is judged as a whole: what is missing, what does not fit, what nobody asked for', async () => {
  const { person, questions, first } = silent();
  const schema = {
    type: 'object',
    properties: {
      age: { type: 'integer', minimum: 1 },
      constructor: { type: 'string' },
      password: { type: 'string' },
    },
    required: ['age'],
  };
  const check = async (one: Json, value: unknown) =>
    (await problemsFound(one, value)).map(({ message }) => `it ${message}`);
  const asked = person.form({ from: 's', lines: [], schema, check });
  const { id, lines } = await first();
  assert.match(lines.join('\n'), /"age": a whole number, at least 1[^]*looks like a secret/);
  assert.deepEqual(await questions.answer(id, { action: 'accept', content: {} }), [
    '"age": an answer is needed',
  ]);
  const [wrong] = await questions.answer(id, { action: 'accept', content: { age: 'x' } });
  assert.match(wrong!, /^"age": it /);
  const content = { age: 5, nobody: 'wanted this' };
  assert.deepEqual(await questions.answer(id, { action: 'accept', content }), []);
  assert.deepEqual(await asked, { action: 'accept', content: { age: 5 } });
});

test('an answer that reads like a no is sent only if the person is sure', async () => {
  const { person, questions, first } = silent();
  const schema = { type: 'object', properties: { go: { type: 'boolean' } }, required: ['go'] };
  const asked = person.form({ from: 's', lines: [], schema });
  const { id } = await first();
  const given = { action: 'accept', content: { go: false } };
  assert.match((await questions.answer(id, given)).join(), /may take any for your consent/);
  assert.deepEqual(await questions.answer(id, { ...given, isSure: true }), []);
  assert.deepEqual(await asked, { action: 'accept', content: { go: false } });
});

test('of two answers at once one counts', async () => {
  const { person, questions, first } = silent();
  const asked = person.choose(QUESTION);
  const { id } = await first();
  const both = await Promise.allSettled([
    questions.answer(id, { key: 'n' }),
    questions.answer(id, { key: 'y' }),
  ]);
  assert.deepEqual(
    both.map(({ status }) => status),
    ['fulfilled', 'rejected'],
  );
  assert.deepEqual(await asked, { key: 'n' });
});

test('a test file quotes all it is made of', () => {
  const evil = '`${process.exit(1)}\'"\n*/</script>';
  const wanted = {
    server: evil,
    name: evil,
    args: { [evil]: evil },
    result: { content: [{ type: 'text', text: evil }] },
  };
  const text = testFile(wanted, { command: evil, args: [evil] });
  const strings = text.split('\n').filter((line) => line.includes('process.exit'));
  assert.equal(strings.length, 7);
  for (const line of strings)
    assert.match(line, /"`\$\{process\.exit\(1\)\}'\\"\\n\*\/<\/script>"/);
  const empty = testFile({ server: 's', name: 'n' }, { url: 'http://127.0.0.1/' });
  assert.match(empty, /callTool\("n", \{\}\);\n  assert\.deepEqual\(content, \[\]\);/);
});
