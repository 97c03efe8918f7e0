// Judges exercise 13: is every label fit for a model, and does every tool have its own?

import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import type { Judge } from '../book.ts';

type Pair = [server: string, tool: string];
const ODD = [
  '',
  'a',
  'b',
  'a_',
  '_a',
  'a__b',
  'b__c',
  'c',
  'a_b',
  'a.b',
  'a b',
  'a..b',
  '_',
  '__',
  '.',
  'größe',
  'grüße',
  'Größe',
  '日本',
  '🦊',
  'a/b',
  '__proto__',
  'k'.repeat(28),
  'k'.repeat(31),
  'k'.repeat(40),
  'k'.repeat(53),
  'x'.repeat(80),
  'x'.repeat(81),
];

const lot = () => Math.floor(Math.random() * 1e9).toString(36);
/** Up to 120 characters, good ones and others. */
const anyName = () => {
  const signs = [...'abcXYZ0189__--..  /ßö日🦊'];
  const length = Math.floor(Math.random() * 120);
  const any = () => signs[Math.floor(Math.random() * signs.length)]!;
  return Array.from({ length }, any).join('') + lot();
};

/** A second copy of the program is the next run: it does not know what came before. What the first has hung up where both
 *  could find it is taken away. */
const SHARED: object[] = [
  globalThis,
  process,
  process.env,
  console,
  Math,
  JSON,
  Object,
  Function,
  Array,
  Map,
  Set,
  String,
  RegExp,
  Symbol,
];
const keysOf = () => SHARED.map((object) => new Set(Reflect.ownKeys(object)));
function forget(before: Set<PropertyKey>[]): void {
  for (const [n, object] of SHARED.entries())
    for (const key of Reflect.ownKeys(object))
      if (!before[n]!.has(key)) Reflect.deleteProperty(object, key);
}

/** Another process on another day: what a seed could be made from is no longer what it was. Returns the way back. */
function becomeTomorrow(): () => void {
  const day = 86_400_000;
  const { now } = Date;
  const seeds: [object, string, unknown][] = [
    [process, 'pid', process.pid + 1],
    [process, 'ppid', process.ppid + 1],
    [process, 'argv', ['node', 'another']],
    [performance, 'timeOrigin', performance.timeOrigin + day],
    [Date, 'now', () => now() + day],
    [process.env, 'HOME', '/home/another'],
    [process.env, 'USER', 'another'],
    [process.env, 'PWD', '/another'],
  ];
  const old = seeds.map(([object, key]) => Reflect.getOwnPropertyDescriptor(object, key));
  for (const [object, key, value] of seeds)
    Object.defineProperty(object, key, {
      value,
      configurable: true,
      writable: true,
      enumerable: true,
    });
  return () => {
    for (const [n, [object, key]] of seeds.entries())
      if (old[n]) Object.defineProperty(object, key, old[n]);
      else Reflect.deleteProperty(object, key);
  };
}

export const judge: Judge = async ({ load, see, expect }) => {
  const { McpConnection, toolLabel } = await load('mcp.ts');
  const before = keysOf();
  const label = async (server: string, tool: string) => toolLabel(server, tool);
  const same = (what: string, server: string, tool: string, wanted = `mcp__${server}__${tool}`) =>
    expect(what, wanted, label(server, tool), (came) => came === wanted);
  await same('good names are left as they are', 'calculator', 'add');
  await same('also those with a hyphen or an underscore', 'my-server_2', 'b__c');
  await same("also a server's name of exactly 30 characters", 's'.repeat(30), 'add');
  await same("also a tool's name that fills the 64 characters exactly", 'files', 't'.repeat(52));
  for (let count = 0; count < 20; count++)
    await same('also others, drawn by lot', `a-${lot()}_b`, `__${lot()}_-`);

  const byLot = Array.from({ length: 300 }, (): Pair => [anyName(), anyName()]);
  const pairs = [...ODD.flatMap((server) => ODD.map((tool): Pair => [server, tool])), ...byLot];
  const worst = async (isBad: (label: string, server: string) => unknown) => {
    const found = pairs.find(([server, tool]) => isBad(toolLabel(server, tool), server));
    if (!found) return 'none';
    const made = toolLabel(...found);
    return `${made} (${made.length} characters), made of "${found[0]}" and "${found[1]}"`;
  };
  await expect(
    'whatever the names are, no label is longer than a model takes',
    'mcp__…, 64 characters at most',
    worst((made) => made.length > 64),
    (came) => came === 'none',
  );
  await expect(
    'whatever the names are, a model takes every character of the label',
    'mcp__…, each character one of A–Z a–z 0–9 _ -',
    worst((made) => !/^mcp__[A-Za-z0-9_-]+$/.test(made)),
    (came) => came === 'none',
  );
  const partOf = (server: string) => toolLabel(server, 'tool').replace(/^mcp__|__tool$/g, '');
  await expect(
    'the server\'s part holds no "__" and does not end in "_", so that its end is clear',
    'none that does',
    worst((_, server) => /__|_$/.test(partOf(server))),
    (came) => came === 'none',
  );
  await expect(
    "the server's part has 30 characters at most",
    'none that is longer',
    worst((_, server) => partOf(server).length > 30),
    (came) => came === 'none',
  );
  /** What is left of a text when only its letters and digits count. */
  const lettersOf = (text: string) => text.replace(/[^A-Za-z0-9]/g, '');
  for (const name of ['my server', 'My Server', 'v2.0 beta/3', 'größe', '(x)', `${lot()} ${lot()}`])
    await expect(
      'it begins with the letters and digits of the name',
      `mcp__, and then ${lettersOf(name)}, perhaps with _ or - in it`,
      label(name, 'add'),
      (came) => lettersOf(`${came}`.slice(5)).startsWith(lettersOf(name)),
    );
  await expect(
    'it begins with as much of the name as there is room for',
    'mcp__files__ and then at least 32 times an x, of the 52 characters that there is room for',
    label('files', 'x'.repeat(81)),
    /^mcp__files__x{32}/,
  );
  await expect(
    'as much of the name as there is room for, also in the part of the server',
    'mcp__ and then at least 12 times a y, of the 30 characters that there is room for',
    label('y'.repeat(81), 'add'),
    /^mcp__y{12}/,
  );

  const apart = (one: Pair, other: Pair, who = `${one.join(' + ')} and ${other.join(' + ')}`) =>
    expect(
      `${who} have two labels`,
      'two different labels',
      Promise.all([label(...one), label(...other)]),
      (came) => came[0] !== came[1],
    );
  const long = 'x'.repeat(80);
  await apart(['files', 'x_y'], ['files', 'x.y']);
  await apart(['files', 'x.y'], ['files', 'x/y']);
  await apart(['a', 'b__c'], ['a__b', 'c']);
  await apart(['my srv', 'add'], ['my.srv', 'add']);
  await apart(
    ['files', `${long}1`],
    ['files', `${long}2`],
    'two names of 81 characters that differ in the last',
  );
  await apart(
    ['files', `${long}1${long}`],
    ['files', `${long}2${long}`],
    'two names of 161 characters that differ in the middle',
  );
  await apart(
    ['files', 'x.y!z'],
    ['files', 'x!y.z'],
    'two names of the same characters in another order',
  );
  await apart(['files', 'x.y'], ['files', 'x..y'], 'two names of which one has a dot more');
  await apart(
    ['files', `${long}A`],
    ['files', `${long}a`],
    'two names of 81 characters that differ in the case of the last',
  );
  await apart(
    [`${long}A`, 'add'],
    [`${long}a`, 'add'],
    'tools of two servers whose long names differ in the case of the last',
  );
  await apart(
    ['files', 'a '],
    ['files', 'a  '],
    'two names of which one has a space more at its end',
  );
  await apart(
    ['files', ' a'],
    ['files', '  a'],
    'two names of which one has a space more at its beginning',
  );
  await apart(
    ['files', 'a b'],
    ['files', 'a\tb'],
    'two names, one with a space and one with a tab,',
  );
  await apart(
    ['files', `${long}\u00f6`],
    ['files', `${long}o\u0308`],
    'two names that look alike (ö as one character, and as two)',
  );
  await apart(
    ['files', '🦊'],
    ['files', '🦋'],
    'two names of one picture each (the same first half in UTF-16)',
  );
  await apart(
    ['files', '日'],
    ['files', '曥'],
    'two names of one character each (the same low byte)',
  );
  const shared = (all: Pair[]) => {
    const owner = new Map<string, string>();
    for (const [server, tool] of all) {
      const made = toolLabel(server, tool);
      if (owner.has(made)) return `${made}, for ${owner.get(made)} and for "${server}" + "${tool}"`;
      owner.set(made, `"${server}" + "${tool}"`);
    }
    return 'none';
  };
  const many = (nameOf: (n: number) => string) =>
    shared(Array.from({ length: 3000 }, (_, n): Pair => ['files', nameOf(n)]));
  await expect(
    `no label is shared among ${pairs.length} pairs of names`,
    'none',
    shared(pairs),
    (came) => came === 'none',
  );
  for (const [what, nameOf] of [
    ['long names that begin alike', (n: number) => `${long}${n}`],
    ['long names that end alike', (n: number) => `${n}${long}${long}`],
    ['short names with a dot', (n: number) => `${n}.${(n * 7919) % 3000}`],
  ] as const)
    await expect(
      `no label is shared among 3000 ${what}: the tail has bits enough`,
      'none',
      many(nameOf),
      (came) => came === 'none',
    );

  const folder = mkdtempSync(join(tmpdir(), 'names '));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  // Your client, with the parts that it is made of: yours may be one file.
  const isOfClient = (path: string) => !/\/(1[5-9]|[23]\d)-|\.(md|html)$/.test(path);
  for (const name of ['package.json', 'mcp.ts', 'chapters']) {
    if (!existsSync(name)) continue;
    cpSync(name, join(folder, name), { recursive: true, filter: isOfClient });
  }
  const today = pairs.map((pair) => toolLabel(...pair));
  forget(before);
  const backToday = becomeTomorrow();
  const tomorrow = (await load(relative(process.cwd(), join(folder, 'mcp.ts')))).toolLabel;
  // Backwards, so that what came first today comes last tomorrow.
  const others = pairs
    .toReversed()
    .map((pair) => tomorrow(...pair))
    .reverse();
  backToday();
  const changed = today.map((made, n) => [made, others[n]]).find(([old, made]) => old !== made);
  await expect(
    'in another run of the program, and in another order, the labels are the same',
    'none has changed',
    changed?.join(' has become ') ?? 'none',
    (came) => came === 'none',
  );

  const server = new McpConnection(
    'my__srv',
    { command: 'node', args: ['fixtures/habits.mjs'] },
    { onWire: see },
  );
  const answer = async () => {
    await server.connect();
    await server.initialize();
    const table = new Map(
      (await server.listTools()).map(({ name }: { name: string }) => [
        toolLabel('my__srv', name),
        name,
      ]),
    );
    return (await server.callTool(table.get(toolLabel('my__srv', 'echo')), { a: 2, b: 40 })).text;
  };
  await expect(
    'by its label, a tool of the server my__srv is called',
    '{"a":2,"b":40}',
    answer(),
    (came) => came === '{"a":2,"b":40}',
  );
  await server.close();
};
