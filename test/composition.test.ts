// The order in which the composition has its extensions, by what would go wrong in another one.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { nobody, type Filled, type Person } from '../chapters/17-the-gate/person.ts';
import { plainHost } from '../chapters/19-the-terminal/host.ts';
import { builtIn, type Serve } from '../chapters/25-other-pipes/in-process.ts';
import { overPipe } from '../chapters/29-a-server/pipe.ts';
import { McpServer, type ServerOptions } from '../chapters/29-a-server/server.ts';
import { readResource } from '../chapters/24-more-than-tools/offers.ts';
import { compose } from '../chapters/composition.ts';
import type { Json, Message, TransportFactory } from '../mcp.ts';
import { cleanUp, folder, later, open } from './help/basics.ts';

afterEach(cleanUp);

const YES: Filled = { action: 'accept', content: { ok: true } };
const FORM = { type: 'object', properties: { ok: { type: 'boolean' } } };

/** A connection with all extensions of the program, to a server of the later era in this process. */
function composed(options: Partial<ServerOptions>, form?: Person['form']) {
  const server = new McpServer({ name: 's', version: '1', tasks: true, ttlMs: 60_000, ...options });
  return composedOver(builtIn(overPipe(server)), form);
}

async function composedOver(own: TransportFactory, form: Person['form'] = async () => YES) {
  const key = process.platform === 'win32' ? 'USERPROFILE' : 'HOME';
  const { [key]: usual } = process.env;
  process.env[key] = folder(); // what is kept is of this test alone
  later(() => (process.env[key] = usual));
  const person: Person = { ...nobody, isThere: true, form };
  const { extensions } = compose(plainHost({ person, warn: () => {} }));
  const opened = await open({ type: 'own' }, { transports: { own }, extensions });
  assert.equal(opened.connection.server?.protocolVersion, '2026-07-28');
  return opened;
}

test('a result is checked against its schema also if it comes by way of a task', async () => {
  const work = async () => ({ structuredContent: { total: 3 } });
  const sum = {
    name: 'sum',
    description: 'adds',
    outputSchema: { type: 'object', required: ['sum'] },
    run: (_: unknown, call: { inBackground: (w: typeof work) => Promise<object> }) =>
      call.inBackground(work),
  };
  const { connection } = await composed({ tools: [sum as never] });
  await connection.listTools();
  const { structuredContent } = await connection.callTool('sum', {});
  assert.deepEqual(structuredContent, { total: 3 });
  const warnings = [...connection.warnings.values()].join('\n');
  assert.match(warnings, /"sum" whose structured result is not as it says: .*sum/);
});

test('a task that is not done holds up no other call', async () => {
  let finish: () => void = () => {};
  const work = () => new Promise<string>((done) => (finish = () => done('late')));
  const slow = {
    name: 'slow',
    description: 'goes on in the background',
    run: (_: unknown, call: { inBackground: (w: typeof work) => Promise<unknown> }) =>
      call.inBackground(work),
  };
  const quick = { name: 'quick', description: 'answers', run: () => 'done' };
  const { connection } = await composed({ tools: [slow as never, quick] });
  const waiting = connection.callTool('slow', {});
  assert.equal((await connection.callTool('quick', {})).text, 'done');
  finish();
  assert.equal((await waiting).text, 'late');
});

test('a person who thinks holds up no other call', async () => {
  let answer: (filled: Filled) => void = () => {};
  let isAsked: () => void;
  const asked = new Promise<void>((done) => (isAsked = done));
  const form = () => {
    isAsked();
    return new Promise<Filled>((done) => (answer = done));
  };
  const ask = {
    name: 'ask',
    description: 'asks first',
    run: async (_: unknown, call: { elicit: (text: string, schema: object) => Promise<object> }) =>
      JSON.stringify(await call.elicit('May I?', FORM)),
  };
  const quick = { name: 'quick', description: 'answers', run: () => 'done' };
  const { connection } = await composed({ tools: [ask as never, quick] }, form);
  const asking = connection.callTool('ask', {});
  await asked;
  assert.equal((await connection.callTool('quick', {})).text, 'done');
  answer(YES);
  assert.match((await asking).text, /accept/);
});

test('what was sent again with answers is not kept: the next one is asked, too', async () => {
  let questions = 0;
  const form = async () => {
    questions++;
    return YES;
  };
  const secret = {
    uri: 'x://secret',
    name: 'secret',
    read: async (call: { elicit: (text: string, schema: object) => Promise<unknown> }) => {
      await call.elicit('May I?', FORM);
      return 'the secret';
    },
  };
  const plain = { uri: 'x://plain', name: 'plain', read: () => 'plain' };
  const { connection, wire } = await composed({ resources: [secret as never, plain] }, form);
  for (const _ of [1, 2]) {
    assert.equal((await readResource(connection, 'x://secret'))[0]?.text, 'the secret');
    assert.equal((await readResource(connection, 'x://plain'))[0]?.text, 'plain');
  }
  assert.equal(questions, 2);
  const plainReads = wire.filter(([way, { params }]) => way === 'out' && params?.uri === plain.uri);
  assert.equal(plainReads.length, 1, 'and what may be kept is');
});

test('a call that is repeated speaks the era of the server that is there then', async () => {
  const heard: Json[] = [];
  const older: Serve = (transport) => {
    const answers: Json = {
      initialize: { protocolVersion: '2025-11-25', capabilities: { resources: {} } },
      'resources/read': { contents: [{ uri: 'x://a', text: 'as before' }] },
    };
    const message = (given: unknown) => {
      const { id, method, params } = given as Message;
      if (id === undefined) return;
      if (method === 'resources/read') heard.push(params!);
      const result = answers[method!];
      const refusal = { code: -32601, message: 'not known' };
      void transport.send({ jsonrpc: '2.0', id, ...(result ? { result } : { error: refusal }) });
    };
    void transport.start({ message, closed: () => {} });
  };
  const newer: Serve = (transport) => {
    const read = async () => {
      await transport.close(); // it dies of the request, and the next one is another program
      return '';
    };
    const resources = [{ uri: 'x://a', name: 'a', read }];
    overPipe(new McpServer({ name: 's', version: '1', resources }))(transport);
  };
  const starts = [newer, older];
  const own: TransportFactory = (...given) => builtIn(starts.shift() ?? older)(...given);
  const { connection } = await composedOver(own);
  assert.equal((await readResource(connection, 'x://a'))[0]?.text, 'as before');
  assert.deepEqual(heard, [{ uri: 'x://a' }]);
});

test('the outermost wakes the server, so that all others find it awake', () => {
  const { extensions } = compose(plainHost());
  assert.match(extensions[0]!.name, /^sleepUntilNeeded\d*$/); // as the runner calls it
});
