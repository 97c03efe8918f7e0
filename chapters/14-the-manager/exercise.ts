// Judges exercise 14: do all servers get their turn, side by side, and does none spoil it for the others?

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Judge } from '../book.ts';

const base = mkdtempSync(join(tmpdir(), 'manager '));
process.on('exit', () => rmSync(base, { recursive: true, force: true }));
const folder = (name: string) => (
  mkdirSync(join(base, name), { recursive: true }), join(base, name)
);
const node = (...args: string[]) => ({ command: 'node', args, cwd: process.cwd() });
const habit = (...args: string[]) => node('fixtures/habits.mjs', ...args);
const calculator = node('fixtures/server.mjs');
const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));

export const judge: Judge = async ({ load, see, expect }) => {
  const { McpManager, toolLabel } = await load('mcp.ts');
  const entriesOf = (servers: Record<string, object>) => {
    const origin = { file: 'settings.json', scope: 'user', authority: 'user' };
    return new Map(
      Object.entries(servers).map(([name, config]) => [name, { name, config, ...origin }]),
    );
  };
  /** A manager for these servers, which are all the user's own. */
  const manage = (servers: Record<string, object>, options: object = {}) =>
    new McpManager({ load: () => entriesOf(servers), onWire: see, ...options });
  const states = (manager: any) =>
    manager
      .status()
      .map(({ name, state }: any) => `${name} ${state}`)
      .join(', ') || 'no servers';
  const connected = async (manager: any) => (await manager.loadAndConnect(), states(manager));
  /** Waits two seconds at most. */
  const until = async (condition: () => boolean) => {
    for (let tries = 0; tries < 100 && !condition(); tries++) await pause(20);
  };

  const one = manage({ calculator });
  await expect(
    'a server connects',
    'calculator connected',
    connected(one),
    /^calculator connected$/,
  );
  const sum = async () => (await one.callTool('mcp__calculator__add', { a: 2, b: 40 })).text;
  await expect('its tool is called by its label', '42', sum(), (came) => came === '42');
  await one.disconnectAll();
  await expect(
    'an empty list of servers is no problem',
    'no servers',
    connected(manage({})),
    /^no servers$/,
  );

  /** A manager of servers that never start: `approve` notes who has its turn, and lets it wait until `go`. */
  const turnsOf = (names: string[], options: object = {}) => {
    const asked: string[] = [];
    const waiting = new Map<string, () => void>();
    const servers = Object.fromEntries(names.map((name) => [name, calculator]));
    const approve = ({ name }: { name: string }) => {
      asked.push(name);
      return new Promise((done) =>
        waiting.set(waiting.has(name) ? `${name} again` : name, () => done('disabled')),
      );
    };
    const manager = manage(servers, { approve, ...options });
    return { manager, asked, go: (name = '') => waiting.get(name)?.() };
  };
  const letters = ['a', 'b', 'c', 'd', 'e'];
  const row = turnsOf(letters, { concurrency: 2 });
  const inTurn = async () => {
    let isDone = false;
    void row.manager.loadAndConnect().then(() => (isDone = true));
    for (let tries = 0; tries < 100 && !isDone; tries++) {
      await pause(5);
      for (const name of letters) row.go(name);
    }
    return row.asked.join(', ');
  };
  await expect(
    'every server gets its turn once, in the order of the files',
    'a, b, c, d, e',
    inTurn(),
    (came) => came === 'a, b, c, d, e',
  );
  let reads = 0;
  const counted = new McpManager({ load: () => (reads++, entriesOf({})) });
  await expect(
    'the configuration is read once',
    'once',
    counted.loadAndConnect().then(() => (reads === 1 ? 'once' : `${reads} times`)),
    /^once$/,
  );
  const atOnce = async (count: number, options: object) => {
    const { manager, asked } = turnsOf(
      Array.from({ length: count }, (_, n) => `s${n}`),
      options,
    );
    void manager.loadAndConnect();
    await pause(100); // nothing has to be started for that
    return `${asked.length} at once`;
  };
  await expect(
    'without the option, 32 start at once',
    'of 40 servers that do not get on: 32 at once',
    atOnce(40, {}),
    /^32 at once$/,
  );
  await expect(
    'no more than `concurrency` start at once',
    'with concurrency 2, of 5 servers that do not get on: 2 at once',
    atOnce(5, { concurrency: 2 }),
    /^2 at once$/,
  );
  const busy = turnsOf(letters, { concurrency: 2 });
  const meanwhile = async () => {
    void busy.manager.loadAndConnect();
    for (const name of ['b', 'c', 'd', 'e']) {
      await pause(20);
      busy.go(name);
    }
    return busy.asked.join(', ');
  };
  await expect(
    'a place that becomes free is taken at once',
    'with concurrency 2, while `a` does not get on and the others do: a, b, c, d, e',
    meanwhile(),
    (came) => came === 'a, b, c, d, e',
  );
  for (const concurrency of [0, -3, NaN])
    await expect(
      `a \`concurrency\` of ${concurrency} counts as one`,
      'of 3 servers that do not get on: 1 at once',
      atOnce(3, { concurrency }),
      /^1 at once$/,
    );
  for (const [concurrency, count] of [
    [1.5, 1],
    [2.7, 2],
    [0.4, 1],
    [Infinity, 5],
  ] as const)
    await expect(
      `with a \`concurrency\` of ${concurrency}, ${count} may start at once`,
      `of 5 servers that do not get on: ${count} at once`,
      atOnce(5, { concurrency }),
      (came) => came === `${count} at once`,
    );
  const counts: number[] = [];
  const approve = () => {
    counts.push(all.status().length);
    return 'disabled';
  };
  const all = manage({ a: calculator, b: calculator, c: calculator }, { approve });
  const seen = async () => (await all.loadAndConnect(), `${counts[0]} servers in the status`);
  await expect(
    'all have a record before the first starts',
    'when `approve` is called for the first: 3 servers in the status',
    seen(),
    /^3 servers/,
  );
  const stale = turnsOf(['a', 'b'], { concurrency: 1 });
  const secondStart = async () => {
    void stale.manager.loadAndConnect(); // a is asked about
    await until(() => stale.asked.length === 1);
    await stale.manager.disconnectAll();
    void stale.manager.loadAndConnect(); // and once more
    await until(() => stale.asked.length === 2);
    stale.go('a'); // what is left of the first start goes on, and finds that it is over
    await pause(100);
    return stale.asked.join(', ');
  };
  await expect(
    'what is left of an earlier start does not meet the records of a new one',
    'closed while `a` waits, and started again: a, a',
    secondStart(),
    /^a, a$/,
  );

  const meeting = folder('meeting'); // each answers the handshake only when all three are running
  const together = manage(
    Object.fromEntries(['a', 'b', 'c'].map((name) => [name, habit('meets', `${meeting}:3`)])),
  );
  await expect(
    'servers start side by side',
    'three servers, each of which waits for the other two: a connected, b connected, c connected',
    connected(together),
    /^a connected, b connected, c connected$/,
  );
  await together.disconnectAll();

  const spoiled = manage({
    missing: { command: 'no-such-command' },
    broken: habit('dies-at-once'),
    odd: { command: 'node', args: 7 },
    calculator,
  });
  await expect(
    'bad servers spoil nothing',
    'missing failed, broken failed, odd failed, calculator connected',
    connected(spoiled),
    /^missing failed, broken failed, odd failed, calculator connected$/,
  );
  await spoiled.disconnectAll();

  const twin = toolLabel('a__b', 'x').replace(/^mcp__|__x$/g, ''); // a name with the same prefix
  const turns = [
    entriesOf({ a__b: calculator, [twin]: calculator }),
    entriesOf({ [twin]: calculator }),
  ];
  const both = new McpManager({ load: () => turns.shift(), onWire: see });
  await expect(
    'of two names with one prefix the first keeps it',
    `a__b connected, ${twin} failed`,
    connected(both),
    (came) => came === `a__b connected, ${twin} failed`,
  );
  const before = { servers: both.servers, prefixes: both.prefixes };
  const again = async () => (await both.disconnectAll(), connected(both));
  await expect(
    'a second start begins from nothing',
    `after disconnectAll, and without a__b: ${twin} connected`,
    again(),
    (came) => came === `${twin} connected`,
  );
  for (const name of ['servers', 'prefixes'] as const)
    await expect(
      `and with a new map in this.${name}`,
      'not the map of the first start, emptied: what is left of that may still use it',
      both[name] === before[name] ? 'the same map' : 'a new map',
      /^a new map$/,
    );
  await both.disconnectAll();

  const [home, cwd] = [folder('home'), folder('project')];
  writeFileSync(
    join(folder('home/.claude'), 'settings.json'),
    JSON.stringify({ mcpServers: { calculator } }),
  );
  const files = new McpManager({ home, cwd, onWire: see });
  await expect(
    'without `load` the three files of `home` and `cwd` are read',
    'calculator connected',
    connected(files),
    /^calculator connected$/,
  );
  await files.disconnectAll();
};
