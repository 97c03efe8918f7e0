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
  'x'.repeat(80),
  'x'.repeat(81),
];

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

  const pairs = ODD.flatMap((server) => ODD.map((tool): Pair => [server, tool]));
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
  await expect(
    'a label begins with what can be read of the name',
    'mcp__my_server…__…',
    label('my server', 'add'),
    /^mcp__my_server/,
  );
  await expect(
    'as far as there is room',
    `mcp__files__ and then at least 40 times an x`,
    label('files', 'x'.repeat(81)),
    /^mcp__files__x{40}/,
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
  const alike = Array.from({ length: 3000 }, (_, n): Pair => ['files', `${long}${n}`]);
  await expect(
    `no label is shared among ${pairs.length} pairs of names`,
    'none',
    shared(pairs),
    (came) => came === 'none',
  );
  await expect(
    'no label is shared among 3000 long names that begin alike: the tail has bits enough',
    'none',
    shared(alike),
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
  const tomorrow = (await load(relative(process.cwd(), join(folder, 'mcp.ts')))).toolLabel;
  const today = pairs.map((pair) => toolLabel(...pair));
  forget(before);
  // Backwards, so that what came first today comes last tomorrow.
  const others = pairs
    .toReversed()
    .map((pair) => tomorrow(...pair))
    .reverse();
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
