// Judges exercise 14: do all servers get their turn, side by side, and does none spoil it for the others?

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Judge } from '../book.ts';

const base = mkdtempSync(join(tmpdir(), 'manager '));
process.on('exit', () => rmSync(base, { recursive: true, force: true }));
const folder = (name: string) => {
  mkdirSync(join(base, name), { recursive: true });
  return join(base, name);
};
const node = (...args: string[]) => ({ command: 'node', args, cwd: process.cwd() });
const habit = (...args: string[]) => node('fixtures/habits.mjs', ...args);
const calculator = node('fixtures/server.mjs');
/** All that does not wait for a process has happened then. */
const quiet = async () => {
  for (let turns = 0; turns < 50; turns++) await new Promise((done) => setImmediate(done));
};
const lot = (below: number) => Math.floor(Math.random() * below);
const inAnyOrder = <T>(list: T[]) =>
  list
    .map((item) => ({ item, at: Math.random() }))
    .sort((one, two) => one.at - two.at)
    .map(({ item }) => item);

export const judge: Judge = async ({ load, see, expect }) => {
  const { McpManager, serverPrefix, toolLabel } = await load('mcp.ts');
  const entriesOf = (servers: [name: string, config: object][]) => {
    const origin = { file: 'settings.json', scope: 'user', authority: 'user' };
    return new Map(servers.map(([name, config]) => [name, { name, config, ...origin }]));
  };
  /** A manager for these servers, which are all the user's own. */
  const manage = (servers: Record<string, object>, options: object = {}) =>
    new McpManager({ load: () => entriesOf(Object.entries(servers)), onWire: see, ...options });
  const states = (manager: any) =>
    manager
      .status()
      .map(({ name, state }: any) => `${name} ${state}`)
      .join(', ') || 'no servers';
  const connected = async (manager: any) => {
    await manager.loadAndConnect();
    return states(manager);
  };

  /** A manager of servers that never start: `approve` notes which has its turn, and lets it wait until `go`. */
  const turnsOf = (names: string[], options: object = {}) => {
    const asked: string[] = [];
    const waiting: { name: string; go: () => void }[] = [];
    let most = 0;
    const approve = ({ name }: { name: string }) => {
      asked.push(name);
      const turn = new Promise((done) => waiting.push({ name, go: () => done('disabled') }));
      most = Math.max(most, waiting.length);
      return turn;
    };
    const load = () => entriesOf(names.map((name) => [name, calculator]));
    const manager = new McpManager({ load, approve, ...options });
    /** Lets one of them go on: the first of this name, or any. */
    const go = (wanted?: string) => {
      const at = wanted ? waiting.findIndex(({ name }) => name === wanted) : lot(waiting.length);
      const [turn] = at === -1 ? [] : waiting.splice(at, 1);
      turn?.go();
    };
    let isDone = false;
    const start = async () => {
      manager.loadAndConnect().then(() => (isDone = true));
      await quiet();
    };
    return { manager, asked, waiting, go, start, most: () => most, isDone: () => isDone };
  };

  await expect(
    'an empty list of servers is no problem',
    'no servers',
    connected(manage({})),
    /^no servers$/,
  );
  const twin = toolLabel('a__b', 'x').replace(/^mcp__|__x$/g, ''); // a name with the same prefix
  const odd = ['b', '10', '9', 'a__b', '__proto__', twin, 'a'];
  const noted = turnsOf(odd);
  const prefixesOf = async () => {
    await noted.start();
    const all = [...noted.manager.prefixes].map(([prefix, name]) => `${prefix} of ${name}`);
    return all.sort().join(', ');
  };
  const firsts = odd
    .filter((name) => name !== twin)
    .map((name) => `${serverPrefix(name)} of ${name}`);
  await expect(
    'this.prefixes says which name was the first with its prefix',
    firsts.sort().join(', '),
    prefixesOf(),
    (came) => came === firsts.join(', '),
  );
  let early = '';
  const records = (manager: any) =>
    [...manager.servers]
      .map(([name, { entry }]: any) => (entry?.name === name ? name : '?'))
      .join(', ');
  const all = turnsOf(odd, {
    concurrency: 1,
    approve: () => ((early ||= records(all.manager)), 'disabled'),
  });
  await expect(
    'all have a record before the first starts, in the order of the files',
    odd.join(', '),
    all.manager.loadAndConnect().then(() => early),
    (came) => came === odd.join(', '),
  );
  let reads = 0;
  const counted = new McpManager({
    load: () => {
      reads++;
      return entriesOf([]);
    },
  });
  await expect(
    'the configuration is read once',
    'once',
    counted.loadAndConnect().then(() => (reads === 1 ? 'once' : `${reads} times`)),
    /^once$/,
  );

  for (const concurrency of [1, 2, 3, 2 + lot(8)]) {
    const names = Array.from({ length: 20 + lot(20) }, () => `s${lot(1e9)}`);
    const { start, asked, waiting, go, most, isDone } = turnsOf(names, { concurrency });
    const run = async () => {
      await start();
      while (waiting.length > 0) {
        go();
        if (lot(3) === 0) go(); // two places become free in one moment
        await quiet();
      }
      return asked.join(', ');
    };
    await expect(
      'every server gets its turn once, in the order of the files',
      names.join(', '),
      run(),
      (came) => came === names.join(', '),
    );
    await expect(
      `with a \`concurrency\` of ${concurrency}, never more than ${concurrency} start at once`,
      `${concurrency} at once`,
      `${most()} at once`,
      (came) => came === `${concurrency} at once`,
    );
    await expect(
      'the promise resolves when the last has had its turn',
      'resolved',
      isDone() ? 'resolved' : 'not resolved',
      /^resolved$/,
    );
  }
  const letters = ['a', 'b', 'c', 'd', 'e'];
  for (const last of letters)
    for (const concurrency of [2, 5]) {
      const { start, waiting, go, isDone } = turnsOf(letters, { concurrency });
      const others = async () => {
        await start();
        for (const other of waiting.filter(({ name }) => name !== last)) go(other.name);
        while (waiting.length > 1 || (waiting[0] && waiting[0].name !== last)) {
          go(waiting.find(({ name }) => name !== last)!.name);
          await quiet();
        }
        await quiet();
        return isDone() ? 'resolved' : 'not resolved';
      };
      await expect(
        'the promise does not resolve before every server is connected or has failed',
        `while ${last} does not get on: not resolved`,
        others(),
        /^not resolved$/,
      );
    }

  const atOnce = async (count: number, options: object) => {
    const names = Array.from({ length: count }, (_, n) => `s${n}`);
    const { start, asked } = turnsOf(names, options);
    await start();
    return `${asked.length} at once`;
  };
  for (const [count, most] of [
    [40, 32],
    [33, 32],
    [32, 32],
    [7, 7],
  ])
    await expect(
      'without the option, 32 start at once',
      `of ${count} servers that do not get on: ${most} at once`,
      atOnce(count!, {}),
      (came) => came === `${most} at once`,
    );
  await expect(
    'no more than `concurrency` start at once',
    'with concurrency 2, of 5 servers that do not get on: 2 at once',
    atOnce(5, { concurrency: 2 }),
    /^2 at once$/,
  );
  const busy = turnsOf(letters, { concurrency: 2 });
  const meanwhile = async () => {
    await busy.start();
    for (const name of ['b', 'c', 'd', 'e']) {
      busy.go(name);
      await quiet();
    }
    return busy.asked.join(', ');
  };
  await expect(
    'a place that becomes free is taken at once',
    'with concurrency 2, while `a` does not get on and the others do: a, b, c, d, e',
    meanwhile(),
    (came) => came === 'a, b, c, d, e',
  );
  for (const concurrency of [0, -3, NaN, -Infinity])
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
    [Infinity, 50],
    [1e9, 50],
    [49, 49],
  ] as const)
    await expect(
      `with a \`concurrency\` of ${concurrency}, ${count} may start at once`,
      `of 50 servers that do not get on: ${count} at once`,
      atOnce(50, { concurrency }),
      (came) => came === `${count} at once`,
    );
  const stale = turnsOf(['a', 'b'], { concurrency: 1 });
  const secondStart = async () => {
    await stale.start(); // a is asked about
    await stale.manager.disconnectAll();
    await stale.start(); // and once more
    stale.go('a'); // what is left of the first start goes on, and finds that it is over
    await quiet();
    return stale.asked.join(', ');
  };
  await expect(
    'what is left of an earlier start does not meet the records of a new one',
    'closed while `a` waits, and started again: a, a',
    secondStart(),
    /^a, a$/,
  );
  const loads = inAnyOrder([['a', 'b'], ['c'], ['d', 'a', 'c']]);
  const changing = new McpManager({
    load: () => entriesOf(loads[0]!.map((name) => [name, calculator])),
    approve: () => 'disabled',
  });
  for (const names of [...loads]) {
    const before = { servers: changing.servers, prefixes: changing.prefixes };
    const next = async () => {
      await changing.disconnectAll();
      await changing.loadAndConnect();
      loads.shift();
      return `${records(changing)}; ${[...changing.prefixes.values()].sort().join(', ')}`;
    };
    await expect(
      'each start begins from nothing',
      `only ${names.join(', ')}, in this.servers and in this.prefixes`,
      next(),
      (came) => came === `${names.join(', ')}; ${names.toSorted().join(', ')}`,
    );
    for (const name of ['servers', 'prefixes'] as const)
      await expect(
        `and with a new map in this.${name}`,
        'not the map of the start before, emptied: what is left of that may still use it',
        changing[name] === before[name] ? 'the same map' : 'a new map',
        /^a new map$/,
      );
  }

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
  const both = manage({ a__b: { command: 'no-such-command' }, [twin]: calculator });
  await expect(
    'of two names with one prefix the first keeps it, also if it failed',
    `a__b failed, ${twin} failed`,
    connected(both),
    (came) => came === `a__b failed, ${twin} failed`,
  );
  await both.disconnectAll();

  const [home, cwd] = [folder('home'), folder('project')];
  const settings = join(folder('home/.claude'), 'settings.json');
  writeFileSync(settings, JSON.stringify({ mcpServers: { calculator } }));
  const files = new McpManager({ home, cwd, onWire: see });
  await expect(
    'without `load` the three files of `home` and `cwd` are read',
    'calculator connected',
    connected(files),
    /^calculator connected$/,
  );
  await files.disconnectAll();
};
