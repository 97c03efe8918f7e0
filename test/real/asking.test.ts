// Real servers that ask: forms, addresses, prompts for a model, and which folders we work in.

import assert from 'node:assert/strict';
import { realpathSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterEach, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import {
  nobody,
  ScriptedPerson,
  type PersonAnswer,
  type Person,
} from '../../chapters/17-the-gate/person.ts';
import { Rehearsal } from '../../chapters/18-minds/rehearsal.ts';
import { answerWithin } from '../../chapters/22-no-handshake/input-required.ts';
import { eitherEra } from '../../chapters/22-no-handshake/era.ts';
import { Counts } from '../../chapters/23-the-server-asks/asking.ts';
import { problemsFound } from '../../chapters/23-the-server-asks/schema.ts';
import { elicitation } from '../../chapters/23-the-server-asks/elicitation.ts';
import { Folders, roots } from '../../chapters/23-the-server-asks/roots.ts';
import { sampling } from '../../chapters/23-the-server-asks/sampling.ts';
import type { Extension, Json } from '../../mcp.ts';
import { cleanUp, folder, open, pause, type Opened } from '../help/basics.ts';
import { call, say, startModelServer } from '../help/model-server.ts';
import { SwappablePerson } from '../help/swappable-person.ts';
import { KEYS, place, readLines, Terminal, userServers } from '../help/terminal.ts';
import { installed } from '../help/installed.ts';
import { server } from '../help/third-party.ts';

afterEach(cleanUp);

const asks = (person: Person) =>
  elicitation({ person, problemsFound, counts: new Counts(Infinity, Infinity) });

/** A connection with everything that chapter 23 offers. */
async function connected(config: Json, folders: Folders, person: Person) {
  const borrows = sampling({ person, model: () => new Rehearsal() });
  return open(config, {
    extensions: [asks(person), borrows, roots(folders), answerWithin(), eitherEra()],
  });
}

/** What server-everything says that it was sent. */
function echoed(text: string): Json {
  const [, raw] = text.split('Raw result: ');
  return JSON.parse(raw!);
}

const DEFAULTS = {
  firstLine: 'It was a dark and stormy night.',
  integer: 42,
  number: 3.14,
  untitledSingleSelectEnum: 'Monica',
  untitledMultipleSelectEnum: ['Guitar'],
  titledSingleSelectEnum: 'hero-1',
  titledMultipleSelectEnum: ['fish-1'],
  legacyTitledEnum: 'pet-1',
};

test('server-everything through the library: a form by defaults alone, addresses, sampling, roots', async () => {
  const stage = new SwappablePerson();
  const place = realpathSync(folder());
  const { connection, wire, warnings } = await connected(
    server('everything'),
    new Folders(() => [place]),
    stage,
  );
  const play = async (answers: PersonAnswer[], tool: string, args: Json = {}) => {
    stage.actor = new ScriptedPerson(answers);
    return (await connection.callTool(tool, args)).text;
  };
  const sent = () =>
    wire.findLast(([direction, { result }]) => direction === 'out' && result)![1].result;

  const byDefault = await play(
    ['y', 'Ada', ...Array(12).fill(''), 'y'],
    'trigger-elicitation-request',
  );
  assert.deepEqual(sent(), { action: 'accept', content: { name: 'Ada', ...DEFAULTS } });
  assert.deepEqual(echoed(byDefault), sent());
  assert.deepEqual(echoed(await play(['n'], 'trigger-elicitation-request')), { action: 'decline' });
  assert.deepEqual(echoed(await play(['y', 'Ada', undefined], 'trigger-elicitation-request')), {
    action: 'cancel',
  });

  const page = { url: 'https://example.com/connect' };
  assert.deepEqual(echoed(await play(['n'], 'trigger-url-elicitation', page)), {
    action: 'decline',
  });
  assert.deepEqual(stage.actor.opened, []);
  // Refused (-32042) until the user has been at a page; then the call is made again, and asks for its own.
  const again = await play(['y', 'y', 'y'], 'trigger-url-elicitation', {
    ...page,
    errorPath: true,
  });
  assert.deepEqual(echoed(again), { action: 'accept' });
  assert.deepEqual(stage.actor.opened.map(String), ['https://modelcontextprotocol.io/', page.url]);

  const { text } = await connection.callTool('get-roots-list');
  assert.ok(text.includes(`1. ${basename(place)}\n   URI: ${pathToFileURL(place).href}\n`), text);
  assert.deepEqual(warnings, []);
});

test('server-everything through the library: a model answers for it, if the user agrees', async () => {
  const stage = new SwappablePerson();
  const { connection } = await connected(server('everything'), new Folders(() => []), stage);
  const prompt = { prompt: 'Say hello', maxTokens: 20 };
  stage.actor = new ScriptedPerson(['y', 'y']);
  const { text } = await connection.callTool('trigger-sampling-request', prompt);
  const { role, model, content, stopReason } = JSON.parse(text.slice(text.indexOf('{')));
  assert.deepEqual(
    [role, model, content.type, stopReason],
    ['assistant', 'rehearsal', 'text', 'endTurn'],
  );
  assert.ok(
    stage.actor.questions[1]!.text.includes(content.text.split('\n')[0]),
    'the answer was seen first',
  );
  stage.actor = new ScriptedPerson(['y', 'e', 'Hello.', 'y']);
  assert.match(
    (await connection.callTool('trigger-sampling-request', prompt)).text,
    /"text": "Hello\."/,
  );
  stage.actor = new ScriptedPerson(['n']);
  const refused = await connection.callTool('trigger-sampling-request', prompt);
  assert.deepEqual(
    [refused.isError, refused.text],
    [true, 'MCP error -1: User rejected sampling request'],
  );
});

test('server-everything has a tool for each thing that it is offered', async () => {
  const absent: Person = { ...nobody }; // a program without a terminal
  const folders = new Folders(() => [folder()]);
  const extra = async (...extensions: Extension[]) => {
    const { connection } = await open(server('everything'), { extensions });
    const names = (await connection.listTools()).map(({ name }) => name);
    return [names.length, ...names.filter((name) => /elicit|sampling|roots/.test(name)).sort()];
  };
  const person = new ScriptedPerson();
  const borrows = sampling({ person, model: () => new Rehearsal() });
  const form = 'trigger-elicitation-request';
  const page = 'trigger-url-elicitation';
  assert.deepEqual(await extra(asks(nobody)), [13]);
  assert.deepEqual(await extra(asks(absent)), [14, form]);
  assert.deepEqual(await extra(asks(person)), [15, form, page]);
  const all = ['get-roots-list', form, 'trigger-sampling-request', page];
  assert.deepEqual(await extra(asks(person), borrows, roots(folders)), [17, ...all]);
});

test('server-filesystem leaves its own folder for our roots, unless its entry says "roots": false', async () => {
  const own = realpathSync(folder());
  const ours = realpathSync(folder());
  const more = realpathSync(folder());
  const list = [ours];
  const folders = new Folders(() => list);
  const allowed = async ({ connection }: Opened) => {
    const { text } = await connection.callTool('list_allowed_directories');
    return text.split('\n').slice(1);
  };
  /** It hears of our roots by and by, and answers calls meanwhile. */
  const comesTo = async (opened: Opened, expected: string[]) => {
    const signal = AbortSignal.timeout(30_000);
    while (!signal.aborted && (await allowed(opened)).join() !== expected.join()) await pause(50);
    assert.deepEqual(await allowed(opened), expected);
  };
  const config = server('filesystem', own);
  const asIs = await connected({ ...config, roots: false }, folders, nobody);
  const asTold = await connected(config, folders, nobody);
  await comesTo(asTold, [ours]);
  list.push(more);
  folders.changed();
  await comesTo(asTold, [ours, more]);
  assert.deepEqual(await allowed(asIs), [own]);
});

// ─── Servers of companies ────────────────────────────────────────────────────────────────────────

const mongodb = (): Json => ({
  command: process.execPath,
  args: [
    join(
      installed('mongodb-mcp-server@3.0.4'),
      'node_modules/mongodb-mcp-server/dist/esm/index.js',
    ),
  ],
  env: { MDB_MCP_TELEMETRY: 'disabled' },
});
const DROP = { connectionId: 'c1', database: 'x' };
const NOT_PERFORMED =
  /did not confirm the execution of the `drop-database` tool so the operation was not performed/;

test('mongodb asks before it drops a database: declined, a no chosen, cancelled, left by Ctrl-C: not performed', async () => {
  const stage = new SwappablePerson();
  const { connection, wire } = await open(mongodb(), { extensions: [asks(stage)] });
  const play = async (answers: PersonAnswer[]) => {
    stage.actor = new ScriptedPerson(answers);
    return (await connection.callTool('drop-database', DROP)).text;
  };
  const leave = () => (stage.actor.leaveForm(), new Promise<undefined>(() => {})); // what Ctrl-C does
  const ways: [PersonAnswer[], action: string][] = [
    [['n'], 'decline'],
    [['y', 'No', ''], 'decline'],
    [['x'], 'cancel'],
    [[undefined], 'cancel'],
    [[leave], 'cancel'],
    [['y', leave], 'cancel'],
    [['y', 'Yes', leave], 'cancel'],
  ];
  for (const [answers, action] of ways) {
    assert.match(await play(answers), NOT_PERFORMED, action);
    const [, { result }] = wire.findLast(([way, { result: sent }]) => way === 'out' && sent)!;
    assert.deepEqual(result, { action });
  }
  assert.match(
    stage.actor.questions[0]!.text,
    /while it runs "drop-database":\n  │ You are about to drop the \*\*x\*\* database/,
  );
  assert.match(await play(['y', 'Yes', 'y']), /Connection "c1" does not exist/); // only now it tries
});

test('mongodb without a handshake does not ask at all: there the gate is the judge, and a no or Ctrl-C sends nothing', async () => {
  const person = new ScriptedPerson();
  const { connection } = await open(mongodb(), {
    extensions: [asks(person), answerWithin(), eitherEra()],
  });
  assert.equal(connection.server!.protocolVersion, '2026-07-28');
  assert.match(
    (await connection.callTool('drop-database', DROP)).text,
    /Connection "c1" does not exist/,
  );
  assert.deepEqual(person.questions, []);

  const drop = call('mcp__mongodb__drop-database', DROP);
  const model = await startModelServer([drop, say('one done'), drop, say('never said')]);
  const env = { ANTHROPIC_API_KEY: 'a-key-for-tests', ANTHROPIC_BASE_URL: model.url };
  const where = place({}, userServers({ mongodb: mongodb() }));
  const trace = join(where.cwd, 'trace.jsonl');
  const terminal = new Terminal(where, ['--no-color', '--trace', trace, '--wait', '60'], env);
  await terminal.ready();
  terminal.enter('one');
  await terminal.see(/^Allow it\?/);
  terminal.enter('n');
  await terminal.see('one done');
  await terminal.ready();
  terminal.enter('two');
  await terminal.see(/^Allow it\?/, 2);
  terminal.press(KEYS.ctrlC);
  await terminal.see('stopped');
  await terminal.ready();
  terminal.enter('/exit');
  assert.equal(await terminal.ended(), 0);
  assert.deepEqual(
    readLines(trace).filter(({ msg }) => msg?.method === 'tools/call'),
    [],
  );
});

test('azure: reject is sent as a decline and nothing is read; a prompt for the model is refused, and answered', async () => {
  const index = join(installed('@azure/mcp@2.0.5'), 'node_modules/@azure/mcp/index.js');
  const stage = new SwappablePerson();
  const borrows = sampling({ person: stage, model: () => new Rehearsal() });
  const extensions = [asks(stage), borrows, answerWithin(), eitherEra()];
  const config = { command: process.execPath, args: [index, 'server', 'start'] };
  const { connection, wire } = await open(config, { extensions, handshakeTimeoutMs: 120_000 });
  const parameters = { vault: 'v', secret: 's', subscription: 'x' };
  const secret = { intent: 'read a secret', command: 'keyvault_secret_get', parameters };
  const play = async (answers: PersonAnswer[], args: Json) => {
    stage.actor = new ScriptedPerson(answers);
    const { text } = await connection.callTool('keyvault', args, { timeoutMs: 120_000 });
    const [, { result, error }] = wire.findLast(
      ([way, sent]) => way === 'out' && (sent.result || sent.error),
    )!;
    return { text, sent: result ?? error };
  };
  for (const [answers, action] of [
    [['y', 'Reject', ''], 'decline'],
    [['n'], 'decline'],
    [['y', undefined], 'cancel'],
  ] as const) {
    const { text, sent } = await play([...answers], secret);
    assert.deepEqual(sent, { action });
    assert.match(text, /Operation cancelled by user/);
  }
  const approved = await play(['y', 'Approve', 'y'], secret);
  assert.deepEqual(approved.sent, { action: 'accept', content: { decision: 'accept' } });
  assert.doesNotMatch(approved.text, /cancelled by user/); // only now it tries, and fails for want of a vault

  const keys = { intent: 'list my keys' };
  assert.equal((await play(['n'], keys)).sent.code, -1);
  assert.match(
    stage.actor.questions[0]!.text,
    /It wants "rehearsal" to answer this, in at most \d+ tokens:\n  user:/,
  );
  const { sent } = await play(['y', 'e', '{"tool":"Unknown"}', 'y'], keys);
  assert.deepEqual(
    [sent.model, sent.content],
    ['rehearsal', { type: 'text', text: '{"tool":"Unknown"}' }],
  );
});

/** The fields of the form, and what a user types for each; where it is wrong, it is asked for again. */
const TYPED: [title: string, ...lines: string[]][] = [
  ['String', '', 'Ada Lovelace'],
  ['Boolean', 'maybe', 'y'],
  ['String with default', 'Call me Ishmael. “Grüße” 🦊'],
  ['String with email format', 'ada', 'ada@example.com'],
  ['String with uri format', 'example.com', 'https://example.com/~ada'],
  ['String with date format', '2026-02-30', '1815-12-10'],
  ['Integer', '4.5', '101', '7'],
  ['Number in range 1-1000', '1e999', '2.75'],
  ['Untitled Single Select Enum', 'Gunther', '5'],
  ['Untitled Multiple Select Enum', '1 2 3 4', 'none', '2,5'],
  ['Titled Single Select Enum', 'green lantern'],
  ['Titled Multiple Select Enum', 'all'],
  ['Legacy Titled Single Select Enum', 'Birds'],
];
const FILLED_IN = {
  name: 'Ada Lovelace',
  check: true,
  firstLine: 'Call me Ishmael. “Grüße” 🦊',
  email: 'ada@example.com',
  homepage: 'https://example.com/~ada',
  birthdate: '1815-12-10',
  integer: 7,
  number: 2.75,
  untitledSingleSelectEnum: 'Ross',
  untitledMultipleSelectEnum: ['Piano', 'Bass'],
  titledSingleSelectEnum: 'hero-2',
  titledMultipleSelectEnum: ['fish-1', 'fish-2', 'fish-3'],
  legacyTitledEnum: 'pet-3',
};

test('server-everything at a terminal: its form of 13 fields by keys, declined, left by Ctrl-C; a page; sampling; roots', async () => {
  const form = call('mcp__everything__trigger-elicitation-request', {});
  const page = call('mcp__everything__trigger-url-elicitation', {
    url: 'https://example.com/connect',
  });
  const borrow = call('mcp__everything__trigger-sampling-request', {
    prompt: 'Say hello',
    maxTokens: 20,
  });
  const model = await startModelServer([
    form,
    say('one done'),
    form,
    say('two done'),
    form,
    say('three done'),
    page,
    say('four done'),
    borrow,
    say('Hello, server.'),
    say('five done'),
    call('mcp__everything__get-roots-list', {}),
    say('six done'),
  ]);
  const env = { ANTHROPIC_API_KEY: 'a-key-for-tests', ANTHROPIC_BASE_URL: model.url };
  const where = place({}, userServers({ everything: server('everything') }));
  const trace = join(where.cwd, 'trace.jsonl');
  const terminal = new Terminal(
    where,
    ['--allow', 'mcp__everything__*', '--no-color', '--trace', trace],
    env,
  );
  const answers = (): Json[] =>
    readLines(trace).flatMap(({ dir, msg }) =>
      dir === 'out' && msg.result?.action ? [msg.result] : [],
    );
  const heard = (): string => {
    const [{ content }] = model.requests.at(-1)!.body.messages.at(-1).content;
    return content.map(({ text }: Json) => text).join('\n');
  };
  await terminal.ready();

  terminal.enter('one');
  await terminal.see(/^Fill it in\?/);
  terminal.enter('y');
  for (const [title, ...lines] of TYPED) {
    for (const [n, line] of lines.entries()) {
      await terminal.see(new RegExp(`^"${title}" \\(`), n + 1);
      terminal.enter(line);
    }
  }
  await terminal.see(/^Send it\?/);
  terminal.enter('y');
  await terminal.see('one done');
  assert.deepEqual(echoed(heard()), { action: 'accept', content: FILLED_IN });
  await terminal.ready();

  terminal.enter('two');
  await terminal.see(/^Fill it in\?/, 2);
  terminal.enter('n');
  await terminal.see('two done');
  assert.deepEqual(echoed(heard()), { action: 'decline' });
  await terminal.ready();

  terminal.enter('three');
  await terminal.see(/^Fill it in\?/, 3);
  terminal.enter('y');
  await terminal.see(/^"String" \(/, 3);
  terminal.press(KEYS.ctrlC); // leaves the form, and the turn goes on
  await terminal.see('three done');
  assert.deepEqual(echoed(heard()), { action: 'cancel' });
  await terminal.ready();
  assert.deepEqual(
    answers().map(({ action }) => action),
    ['accept', 'decline', 'cancel'],
  );

  terminal.enter('four');
  await terminal.see('  https://example.com/connect');
  await terminal.see(/^Open it in a browser\?/);
  terminal.enter('n');
  await terminal.see('four done');
  assert.deepEqual(echoed(heard()), { action: 'decline' });
  await terminal.ready();

  terminal.enter('five');
  await terminal.see('│ Resource trigger-sampling-request context: Say hello');
  await terminal.see(/^Ask the model\?/);
  terminal.enter('y');
  await terminal.see('│ Hello, server.');
  await terminal.see(/^Send it\? \[y\]es/);
  terminal.enter('y');
  await terminal.see('five done');
  assert.match(heard(), /"text": "Hello, server\."/);
  await terminal.ready();

  terminal.enter('six');
  await terminal.see('six done');
  assert.ok(heard().includes(`URI: ${pathToFileURL(realpathSync(where.cwd)).href}`), heard());
  await terminal.ready();
  terminal.enter('/exit');
  assert.equal(await terminal.ended(), 0);
  assert.deepEqual(model.problems, []);
});
