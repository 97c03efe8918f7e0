// Chapter 27: where servers come from. One table of cases: files in a made-up home, a made-up project and a made-up
// /etc, and what comes of them. Each case is a row; all of them are read in this process, and nothing is started.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { managedFolder } from '../chapters/27-scopes/scopes.ts';
import { goodbyeIn, inTurn, turnLimits } from '../chapters/27-scopes/turns.ts';
import { McpManager, type Json, type ServerEntry } from '../mcp.ts';
import { cleanUp, habit, isRunning, later, pidOf, until } from './help/basics.ts';
import { POLICY_CASES } from './help/policy-cases.ts';
import { SCOPE_CASES } from './help/scope-cases.ts';
import {
  connectors,
  git,
  here,
  LOCAL,
  MANAGED,
  ofPlugin,
  on,
  plain,
  plugged,
  read,
  servers,
  SETTINGS,
  SHARED,
  STATE,
  USER,
  web,
  write,
  x,
} from './help/scope-files.ts';

afterEach(cleanUp);

const CASES = [...SCOPE_CASES, ...POLICY_CASES];

test(`A30 A31: scopes, a table of ${CASES.length} cases`, () => {
  assert.ok(CASES.length >= 80);
  const wrong: string[] = [];
  for (const row of CASES) {
    const { base, entries, told } = read(row);
    const names = [...entries.keys()].sort();
    if (JSON.stringify(names) !== JSON.stringify(Object.keys(row.is).sort()))
      wrong.push(`${row.row}: there is ${names}`);
    for (const [name, is] of Object.entries(row.is)) {
      const { scope, file, authority, shadows, blocked, config } = entries.get(name) ?? ({} as any);
      const [, mark, place, over, content, why] =
        /^(\??)(.*?)(?: > (.*?))?(?: = (.*?))?(?: ✗ (.*))?$/.exec(is)!;
      const origin = `${scope} ${plain(base, `${file}`)}`;
      if (origin !== place) wrong.push(`${row.row}: ${name} is ${origin}`);
      if ((authority === 'project') !== (mark === '?'))
        wrong.push(`${row.row}: ${name} is the word of the ${authority}`);
      if (shadows ? plain(base, shadows) !== (over ?? plain(base, shadows)) : over)
        wrong.push(`${row.row}: ${name} is instead of ${shadows}`);
      const shown = JSON.stringify(config)?.replaceAll(base, 'BASE');
      if (content && shown !== content) wrong.push(`${row.row}: ${name} has ${shown}`);
      const isRight = why ? new RegExp(why).test(plain(base, `${blocked}`)) : blocked === undefined;
      if (!isRight) wrong.push(`${row.row}: ${name} is blocked: ${blocked}`);
    }
    const all = told.join('\n');
    if (row.told ? !row.told.test(all) : all !== '')
      wrong.push(`${row.row}: told ${JSON.stringify(told)}`);
  }
  assert.deepEqual(wrong, []);
});

test('every row of the table of scopes is a case: managed, dynamic, local, project, user, plugin, connectors, built-in', () => {
  for (const scope of [
    'managed',
    'dynamic',
    'local',
    'project',
    'user',
    'plugin',
    'connectors',
    'built-in',
  ])
    assert.ok(
      CASES.some(({ row }) => row.startsWith(`${scope}: `)),
      scope,
    );
});

test("the administrator's folder, by the system", () => {
  const folders = (['linux', 'darwin', 'win32'] as const).map((each) => managedFolder(each));
  assert.deepEqual(folders, [
    '/etc/claude-code',
    '/Library/Application Support/ClaudeCode',
    'C:\\Program Files\\ClaudeCode',
  ]);
});

test('a home of Claude Code with all its files is found whole, each server where it is expected', () => {
  const { base, entries, told } = read({
    row: 'all',
    files: {
      ...git,
      ...plugged('p'),
      [USER]: { ...servers({ settings: x('1') }), ...on('p'), permissions: { allow: [] } },
      [STATE]: (there: string) => ({
        numStartups: 7,
        ...servers({ state: x('2') }),
        ...here({ private: web('https://l.example/') })(there),
      }),
      [SETTINGS]: servers({ shared: x('3') }),
      [SHARED]: servers({ team: x('4') }),
      [LOCAL]: servers({ loc: x('5') }),
      [ofPlugin('p')]: servers({ db: x('6') }),
    },
    options: connectors({ mail: web('https://m.example/') }),
    dynamic: { typed: x('7') },
    is: {},
  });
  const found = Object.fromEntries(
    [...entries.values()].map(({ name, scope, file }) => [name, `${scope} ${plain(base, file)}`]),
  );
  assert.deepEqual(found, {
    mail: 'connector a command',
    'plugin:p:db': `plugin ${ofPlugin('p')}`,
    settings: `user ${USER}`,
    state: `user ${STATE}`,
    shared: `project ${SETTINGS}`,
    team: `project ${SHARED}`,
    loc: `local ${LOCAL}`,
    private: `local ${STATE}`,
    typed: 'dynamic --mcp-config',
  });
  assert.deepEqual(told, []);
});

test('explain: which files were looked for, which entry counts, and which it hides', () => {
  const { base, scopes } = read({
    row: 'explain',
    files: {
      [USER]: servers({ a: x('u') }),
      [SHARED]: servers({ a: x('p') }),
      [STATE]: here({ a: x('l') }),
      [LOCAL]: '{',
    },
    is: {},
  });
  const lines = scopes.explain('a').map((line) => plain(base, line).trim());
  const start = lines.indexOf('places, the one that wins first:') + 1;
  assert.deepEqual(
    lines.slice(start, start + 6).map((line) => line.replace(/not used: .*/, 'not used')),
    [
      `local scope, ${STATE}: read`,
      `local scope, ${LOCAL}: not used`,
      `project scope, ${SHARED}: read`,
      `project scope, ${SETTINGS}: not there`,
      `user scope, ${STATE}: read`,
      `user scope, ${USER}: read`,
    ],
  );
  for (const line of [
    `${MANAGED}: not there`,
    `counts: the one of local scope in ${STATE}`,
    `hidden: the one of user scope in ${USER}, by project scope, ${SHARED}`,
    `hidden: the one of project scope in ${SHARED}, by local scope, ${STATE}`,
  ])
    assert.ok(lines.includes(line), `${line}\n${lines.join('\n')}`);
});

test('places: where mcp add writes, for every scope that can be written to; and what it refuses', () => {
  const { base, scopes } = read({
    row: 'places',
    files: { [USER]: { deniedMcpServers: [{ serverName: 'bad' }] } },
    options: { reserved: ['ide'] },
    is: {},
  });
  const last = (scope: string) => scopes.places().findLast((place) => place.scope === scope)!;
  const shown = ['user', 'project', 'local'].map((scope) => [
    plain(base, last(scope).file),
    last(scope)
      .keys.map((key) => plain(base, key))
      .join(' '),
    last(scope).authority,
  ]);
  assert.deepEqual(shown, [
    [USER, 'mcpServers', 'user'],
    [SHARED, 'mcpServers', 'project'],
    [STATE, 'projects app mcpServers', 'user'],
  ]);
  assert.match(`${scopes.refusal('bad', x())}`, /deniedMcpServers/);
  assert.match(`${scopes.refusal('ide', x())}`, /a built-in server is called ide/);
  assert.match(`${scopes.refusal('a', { type: 'sdk' })}`, /for programs/);
  assert.equal(scopes.refusal('a', x()), undefined);
  const managed = read({ row: 'managed', files: { [MANAGED]: servers({}) }, is: {} }).scopes;
  assert.match(`${managed.refusal('a', x())}`, /managed-mcp\.json decides alone/);
});

const entry = (name: string, config: Json): ServerEntry => ({
  name,
  config,
  file: 'x',
  scope: 'user',
  authority: 'user',
});

test('what is blocked is listed with its reason, and not started; a reload starts it once it is not blocked any more', async () => {
  const entries = new Map([
    ['a', { ...entry('a', habit()), blocked: 'blocked by policy: x' }],
    ['b', entry('b', habit())],
  ]);
  const manager = new McpManager({ load: () => entries, onWarning: () => {} });
  later(() => manager.disconnectAll());
  await manager.loadAndConnect();
  const states = () =>
    Object.fromEntries(manager.status().map(({ name, state, reason }) => [name, [state, reason]]));
  assert.deepEqual(states(), {
    a: ['disabled', 'blocked by policy: x'],
    b: ['connected', undefined],
  });
  const before = manager.connection('b');
  entries.set('a', entry('a', habit()));
  assert.deepEqual(await manager.reload(), { started: ['a'], ended: ['a'] });
  assert.deepEqual(states(), { a: ['connected', undefined], b: ['connected', undefined] });
  assert.equal(manager.connection('b'), before); // the same process goes on
});

test('a reload restarts what has changed, tries again what had failed, ends what is gone, and leaves the rest alone', async () => {
  const entries = new Map([
    ['same', entry('same', habit())],
    ['changed', entry('changed', habit())],
    ['gone', entry('gone', habit())],
    ['failed', entry('failed', { command: 'no-such-command' })],
  ]);
  const prepared: string[] = [];
  const manager = new McpManager({
    load: () => entries,
    onWarning: () => {},
    prepare: async () => void prepared.push('fetched'),
  });
  later(() => manager.disconnectAll());
  await manager.loadAndConnect();
  const [same, changed] = [manager.connection('same'), manager.connection('changed')];
  const pid = await pidOf(manager.connection('gone')!);
  entries.set('changed', entry('changed', habit('good', 'other')));
  entries.set('same', { ...entry('same', habit()), file: 'another file' });
  entries.delete('gone');
  entries.set('fresh', entry('fresh', habit()));
  const { started, ended } = await manager.reload();
  assert.deepEqual(
    [started, ended],
    [
      ['changed', 'failed', 'fresh'],
      ['changed', 'gone', 'failed'],
    ],
  );
  assert.equal(manager.connection('same'), same);
  assert.notEqual(manager.connection('changed'), changed);
  assert.equal(manager.status().find(({ name }) => name === 'same')!.file, 'another file');
  assert.ok(!manager.getToolDefinitions().some(({ server }) => server === 'gone'));
  assert.deepEqual(prepared, ['fetched', 'fetched']);
  await until(() => !isRunning(pid));
});

test('turns: so many of each kind at once, and no kind waits for the other; what is part of the program waits for none', async () => {
  const running = { local: 0, remote: 0, here: 0 };
  const most = { local: 0, remote: 0, here: 0 };
  const turn = inTurn({ local: 2, remote: 3 });
  const waiting: (() => void)[] = [];
  const start = (kind: keyof typeof running) => async () => {
    most[kind] = Math.max(most[kind], ++running[kind]);
    await new Promise<void>((done) => waiting.push(done));
    running[kind]--;
  };
  const all = [...Array(7).keys()].flatMap((n) => [
    turn(entry(`l${n}`, { command: 'x' }), start('local')),
    turn(entry(`r${n}`, { type: 'http', url: 'https://x' }), start('remote')),
    turn(entry(`h${n}`, { type: 'in-process' }), start('here')),
  ]);
  let isDone = false;
  void Promise.all(all).then(() => (isDone = true));
  while (!isDone) {
    for (const done of waiting.splice(0)) done();
    await new Promise((done) => setImmediate(done));
  }
  assert.deepEqual(most, { local: 2, remote: 3, here: 7 });
  await assert.rejects(
    turn(entry('bad', {}), async () => {
      throw new Error('no');
    }),
    /no/,
  );
  let ran = false;
  await Promise.all([
    turn(entry('a', {}), async () => {}),
    turn(entry('b', {}), async () => {}),
    turn(entry('c', {}), async () => void (ran = true)),
  ]);
  assert.ok(ran); // a place that failed was given back
  assert.deepEqual(
    turnLimits({
      MCP_SERVER_CONNECTION_BATCH_SIZE: '5',
      MCP_REMOTE_SERVER_CONNECTION_BATCH_SIZE: '-1',
    }),
    { local: 5, remote: 32 },
  );
  assert.deepEqual(
    [goodbyeIn({}), goodbyeIn({ MCP_GOODBYE: '600' }), goodbyeIn({ MCP_GOODBYE: 'x' })],
    [undefined, 600, undefined],
  );
});

test('a change of the files is told, once, with the names; nothing is loaded by that; after a reload all is quiet again', async () => {
  const { base, scopes } = read({
    row: 'watch',
    files: { [SHARED]: servers({ a: x(), b: x() }) },
    is: {},
  });
  const before = scopes.load({}, () => {});
  const told: string[] = [];
  const stop = scopes.watch((text) => told.push(text), 20);
  later(stop);
  const put = (content: unknown) => writeFileSync(join(base, SHARED), JSON.stringify(content));
  put(servers({ a: x('other'), 'c\u001b[2J': x() }));
  await until(() => told.length === 1);
  assert.equal(
    told[0],
    'the configuration has changed: new: "c\\x1b[2J"; changed: "a"; gone: "b". /mcp reload reads it again',
  );
  assert.deepEqual([...before.keys()], ['a', 'b']);
  write(base, { [LOCAL]: servers({ d: x() }) }); // a file that was not there
  await until(() => told.length === 2);
  assert.match(told[1]!, /new: .*"d"/);
  scopes.load({}, () => {});
  write(base, { [USER]: { permissions: {} } }); // nothing about servers
  write(base, { [STATE]: servers({ e: x() }) });
  await until(() => told.length === 3);
  assert.equal(told[2], 'the configuration has changed: new: "e". /mcp reload reads it again');
});
