// Judges exercise 14: do all servers get their turn, side by side, and does none spoil it for the others?

import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Judge } from '../book.ts';

const base = mkdtempSync(join(tmpdir(), 'manager '));
process.on('exit', () => rmSync(base, { recursive: true, force: true }));
const folder = (name: string) => (mkdirSync(join(base, name), { recursive: true }), join(base, name));
const node = (...args: string[]) => ({ command: 'node', args, cwd: process.cwd() });
const habit = (...args: string[]) => node('fixtures/habits.mjs', ...args);
const calculator = node('fixtures/server.mjs');
const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));

export const judge: Judge = async ({ load, see, expect }) => {
  const { McpManager, toolLabel } = await load('mcp.ts');
  const entriesOf = (servers: Record<string, object>) => {
    const origin = { file: 'settings.json', scope: 'user', authority: 'user' };
    return new Map(Object.entries(servers).map(([name, config]) => [name, { name, config, ...origin }]));
  };
  /** A manager for these servers, which are all the user's own. */
  const manage = (servers: Record<string, object>, options: object = {}) =>
    new McpManager({ load: () => entriesOf(servers), onWire: see, ...options });
  const states = (manager: any) => manager.status().map(({ name, state }: any) => `${name} ${state}`).join(', ') || 'no servers';
  const connected = async (manager: any) => (await manager.loadAndConnect(), states(manager));
  /** Waits two seconds at most. */
  const until = async (condition: () => boolean) => {
    for (let tries = 0; tries < 100 && !condition(); tries++) await pause(20);
  };

  const one = manage({ calculator });
  await expect('a server connects', 'calculator connected', connected(one), /^calculator connected$/);
  const sum = async () => (await one.callTool('mcp__calculator__add', { a: 2, b: 40 })).text;
  await expect('its tool is called by its label', '42', sum(), (came) => came === '42');
  await one.disconnectAll();
  await expect('an empty list of servers is no problem', 'no servers', connected(manage({})), /^no servers$/);

  const meeting = folder('meeting'); // each answers the handshake only when all three are running
  const together = manage(Object.fromEntries(['a', 'b', 'c'].map((name) => [name, habit('meets', `${meeting}:3`)])));
  await expect('servers start side by side', 'three servers, each of which waits for the other two: a connected, b connected, c connected',
    connected(together), /^a connected, b connected, c connected$/);
  await together.disconnectAll();

  const spoiled = manage({ missing: { command: 'no-such-command' }, broken: habit('dies-at-once'), odd: { command: 'node', args: 7 }, calculator });
  await expect('bad servers spoil nothing', 'missing failed, broken failed, odd failed, calculator connected',
    connected(spoiled), /^missing failed, broken failed, odd failed, calculator connected$/);
  await spoiled.disconnectAll();

  const queue = folder('queue'); // nobody answers the handshake: each waits for eight others
  const bounded = manage(Object.fromEntries(['a', 'b', 'c'].map((name) => [name, habit('meets', `${queue}:9`)])), { concurrency: 2 });
  const started = async () => {
    void bounded.loadAndConnect();
    await until(() => readdirSync(queue).length >= 2);
    await pause(300);
    return `${readdirSync(queue).length} are running`;
  };
  await expect('no more than `concurrency` start at once', 'with concurrency 2, of three servers that never answer: 2 are running', started(), /^2 are/);
  await bounded.disconnectAll();

  const places = manage({ mute: habit('mute'), first: calculator, second: calculator, third: calculator }, { concurrency: 2 });
  const meanwhile = async () => {
    void places.loadAndConnect();
    await until(() => places.isMcpTool('mcp__third__add'));
    return states(places);
  };
  await expect('a place that becomes free is taken at once', 'with concurrency 2, while one is mute: mute connecting, first connected, second connected, third connected',
    meanwhile(), /^mute connecting, first connected, second connected, third connected$/);
  await places.disconnectAll();
  const odd = manage({ calculator }, { concurrency: NaN });
  await expect('a `concurrency` that is no number still starts them', 'calculator connected', connected(odd), /^calculator connected$/);
  await odd.disconnectAll();

  const counts: number[] = [];
  const approve = () => {
    counts.push(all.status().length);
    return 'disabled';
  };
  const all = manage({ a: calculator, b: calculator, c: calculator }, { approve });
  const seen = async () => (await all.loadAndConnect(), `${counts[0]} servers in the status`);
  await expect('all have a record before the first starts', 'when `approve` is called for the first: 3 servers in the status', seen(), /^3 servers/);

  const twin = toolLabel('a__b', 'x').replace(/^mcp__|__x$/g, ''); // a name with the same prefix
  const turns = [entriesOf({ a__b: calculator, [twin]: calculator }), entriesOf({ [twin]: calculator })];
  const both = new McpManager({ load: () => turns.shift(), onWire: see });
  await expect('of two names with one prefix the first keeps it', `a__b connected, ${twin} failed`, connected(both), (came) => came === `a__b connected, ${twin} failed`);
  const again = async () => (await both.disconnectAll(), connected(both));
  await expect('a second start begins from nothing', `after disconnectAll, and without a__b: ${twin} connected`, again(), (came) => came === `${twin} connected`);
  await both.disconnectAll();

  const [home, cwd] = [folder('home'), folder('project')];
  writeFileSync(join(folder('home/.claude'), 'settings.json'), JSON.stringify({ mcpServers: { calculator } }));
  const files = new McpManager({ home, cwd, onWire: see });
  await expect('without `load` the three files of `home` and `cwd` are read', 'calculator connected', connected(files), /^calculator connected$/);
  await files.disconnectAll();
};
