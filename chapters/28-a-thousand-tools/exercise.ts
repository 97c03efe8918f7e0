// Judges exercise 28: is the right part of the table shown, and in the right order? The table, the
// turns and the model are made up, with other names each time; nothing is started.

import type { Model, Tool, Turn } from '../../agent.ts';
import type { Judge } from '../book.ts';

type Wish = 'always' | 'deferred';
/** A row is "read", which is ours, or "diary/create", which is a server's. */
type Scene = {
  rows: string[];
  wishes?: Record<string, Wish>;
  turns?: Turn[];
  maxTools?: number;
};
/** What came out: the names that are shown, the deferred servers, and the words about them. */
type Seen = { shown: string[]; deferred: string[]; words: string };

const FIND = 'find_tools';

const random = (below: number) => Math.floor(Math.random() * below);
const shuffled = <T>(list: T[]): T[] => {
  const keyed = list.map((item) => ({ item, key: Math.random() }));
  return keyed.sort((one, two) => one.key - two.key).map(({ item }) => item);
};
const [NEAR, BIG, FAR, SMALL] = shuffled(['diary', 'mailbox', 'ledger', 'atlas']) as string[];
const [READ, WRITE] = shuffled(['read', 'write', 'glob', 'bash']) as string[];

const toolsOf = (server: string, count: number) =>
  Array.from({ length: count }, (_, n) => `${server}/tool_${n}`);
const MANY = toolsOf(BIG!, 45);
const some = (count: number) => shuffled(MANY).slice(0, count);

function row(name: string): Tool {
  const [server, tool] = name.includes('/') ? name.split('/') : [];
  return {
    definition: { name, description: `The tool ${name}.`, inputSchema: { type: 'object' } },
    readOnly: false,
    ...(server ? { origin: { server, tool: { name: tool } } } : {}),
    run: async () => ({ blocks: [], isError: false }),
  };
}

const called = (name: string): Turn => {
  return { role: 'assistant', text: '', calls: [{ id: name, name, args: {} }] };
};
const found = (...loads: string[]): Turn => {
  const result = { id: 'find', name: FIND, blocks: [], isError: false, loads };
  return { role: 'tools', results: [result] };
};

function offerOf({ rows, wishes = {}, turns = [], maxTools }: Scene) {
  const table = new Map(rows.map((name) => [name, row(name)]));
  const servers = [...new Set(rows.filter((name) => name.includes('/')).map(serverOf))];
  const states = servers.map((name) => ({ name, state: 'connected', load: wishes[name] }));
  const model: Partial<Model> = { name: 'made up', maxTools };
  return { table, turns, model, servers: states };
}

const serverOf = (name: string) => name.split('/')[0]!;
const isSame = (one: string[], two: string[]) => one.join() === two.join();

/** A scene with a bit of everything, and what is to be shown of it. */
function randomScene(): Scene & { wanted: string[] } {
  const own = [READ!, WRITE!, 'think', 'plan'].slice(0, 1 + random(4));
  const near = toolsOf(NEAR!, 1 + random(4));
  const big = toolsOf(BIG!, 41 + random(9));
  const far = toolsOf(FAR!, 1 + random(4));
  const rows = shuffled([...own, FIND, ...near, ...big, ...far]);
  const names = shuffled([...big, ...far, ...near, ...own, 'gone/tool_1']).slice(0, random(16));
  const turns = names.map((name) => (random(3) > 0 ? found(name) : called(name)));
  turns.push(found(...names.slice(0, random(3))));
  const always = [
    ...rows.filter((name) => !name.includes('/')),
    ...rows.filter((name) => near.includes(name)),
  ];
  const most = random(2) > 0 ? 10 + random(4) : undefined;
  const more = names.filter((name) => rows.includes(name) && !always.includes(name));
  const maxTools = most === undefined ? undefined : always.length + most;
  const wishes: Record<string, Wish> = { [NEAR!]: 'always', [FAR!]: 'deferred' };
  const wanted = [...always, ...more.slice(-(most ?? 1000))];
  return { rows, wishes, turns, maxTools, wanted };
}

export const judge: Judge = async ({ load, expect }) => {
  const { ToolShelf } = await load('chapters/28-a-thousand-tools/tool-shelf.ts');

  const arranged = async (scene: Scene): Promise<Seen> => {
    const out = new ToolShelf().arrange(offerOf(scene));
    const shown = out.rows.map((each: Tool | undefined) => each?.definition.name ?? '(nothing)');
    return { shown, deferred: [...(out.deferred ?? [])], words: out.words ?? '' };
  };
  const shows = (what: string, wanted: string[], scene: Scene) =>
    expect(
      what,
      wanted.join(', '),
      arranged(scene).then(({ shown }) => shown.join(', ')),
      (came) => came === wanted.join(', '),
    );

  // ── Nothing is deferred ──

  const few = [`${SMALL}/b`, READ!, FIND, `${SMALL}/a`, WRITE!];
  const quiet = { rows: few, turns: [found(`${SMALL}/a`), called(READ!)] };
  const without = few.filter((name) => name !== FIND);
  await expect(
    'few tools are all shown, in the order of the table',
    without.join(', '),
    arranged(quiet).then(({ shown }) => shown.filter((name) => name !== FIND).join(', ')),
    (came) => came === without.join(', '),
  );
  await expect(
    'and then the tool that finds others is not',
    `no ${FIND}`,
    arranged(quiet),
    ({ shown }: Seen) => !shown.includes(FIND),
  );
  await expect(
    'and there is nothing to say of the others',
    'no deferred servers, no words',
    arranged(quiet),
    ({ deferred, words }: Seen) => deferred.length === 0 && words === '',
  );
  await shows('forty tools are few', MANY.slice(0, 40), { rows: [FIND, ...MANY.slice(0, 40)] });

  // ── Something is ──

  const rows = [MANY[0]!, READ!, ...MANY.slice(1), FIND, `${NEAR}/one`, WRITE!, `${NEAR}/two`];
  const always: Record<string, Wish> = { [NEAR!]: 'always' };
  const near = [`${NEAR}/one`, `${NEAR}/two`];
  const own = [READ!, FIND, WRITE!];
  await shows('of many, only our own are shown, wherever they are in the table', own, {
    rows: rows.filter((name) => !near.includes(name)),
  });
  await shows('those of a server that is not deferred come behind our own', [...own, ...near], {
    rows,
    wishes: always,
  });
  const two = some(2);
  await shows('and what was found behind both', [...own, ...near, two[0]!], {
    rows,
    wishes: always,
    turns: [found(two[0]!)],
  });
  const three = some(3);
  const plain = rows.filter((name) => !near.includes(name));
  await shows('what was found comes in the order of discovery', [...own, ...three], {
    rows: plain,
    turns: three.map((name) => found(name)),
  });
  await shows('what is found again stays where it was', [...own, ...three], {
    rows: plain,
    turns: [found(...three), found(...three.toReversed())],
  });
  await shows('what was called counts as found', [...own, three[2]!, three[0]!], {
    rows: plain,
    turns: [called(three[2]!), called(three[0]!)],
  });
  await shows('no row comes twice, also if it was called', [...own, ...near, three[1]!], {
    rows,
    wishes: always,
    turns: [called(near[1]!), called(READ!), found(three[1]!, near[0]!), called(FIND)],
  });
  await shows('what is no longer there is not shown, whatever the turns say', [...own, two[1]!], {
    rows: plain,
    turns: [found('gone/tool_1', two[1]!), called('gone/tool_2')],
  });
  await shows('among few, one that asks to be deferred is', [FIND, `${SMALL}/a`], {
    rows: [`${FAR}/x`, FIND, `${SMALL}/a`],
    wishes: { [FAR!]: 'deferred' },
  });

  // ── The wire has a limit ──

  const latest = some(6);
  await shows(
    'never more than the wire takes: the latest found stay',
    [...own, ...latest.slice(3)],
    {
      rows: plain,
      turns: [found(...latest.slice(0, 4)), found(...latest.slice(4))],
      maxTools: own.length + 3,
    },
  );
  await shows('if just all have room, all are shown', [...own, ...latest], {
    rows: plain,
    turns: [found(...latest)],
    maxTools: own.length + latest.length,
  });
  await shows('if our own leave no room, nothing that was found is shown', own, {
    rows: plain,
    turns: [found(...latest)],
    maxTools: own.length,
  });
  const dozen = some(12);
  await shows('servers that are shown take room, too', [...own, ...near, ...dozen.slice(-10)], {
    rows,
    wishes: always,
    turns: [found(...dozen)],
    maxTools: own.length + near.length + 10,
  });
  const halves = [...toolsOf(SMALL!, 9), ...toolsOf(FAR!, 9)]; // of one size: both are deferred
  await shows('our own rows count when it is decided who is deferred', [READ!, WRITE!, FIND], {
    rows: [READ!, ...halves, WRITE!, FIND],
    maxTools: 20,
  });
  const fitting = [READ!, ...halves, WRITE!];
  await shows('and what just fits the wire is all shown', fitting, {
    rows: [...fitting, FIND],
    maxTools: 21,
  });

  // ── What else the agent needs ──

  const scene = { rows: [...rows, `${FAR}/x`], wishes: { ...always, [FAR!]: 'deferred' as const } };
  await expect(
    'the agent learns which servers are deferred',
    `${BIG} and ${FAR}`,
    arranged(scene),
    ({ deferred }: Seen) => isSame(deferred.toSorted(), [BIG!, FAR!].toSorted()),
  );
  await expect(
    'and has words for the prompt, about these and no others',
    `words about "${BIG}" and "${FAR}", and not about "${NEAR}"`,
    arranged(scene),
    ({ words }: Seen) =>
      /"(\w+)": 45 tools/.exec(words)?.[1] === BIG && !words.includes(`"${NEAR}"`),
  );

  const shelf = new ToolShelf();
  const findIn = (out: { rows: Tool[] }) =>
    out.rows.find(({ definition }) => definition.name === FIND);
  const looked = async (out: { rows: Tool[] }, name: string) => {
    const { loads = [] } = (await findIn(out)?.run({ names: [name] }, {} as never)) ?? {};
    return loads.join() || 'not found';
  };
  const parent = shelf.arrange(offerOf({ rows }));
  await expect(`${FIND} searches this offer`, MANY[7]!, looked(parent, MANY[7]!), (came) => {
    return came === MANY[7];
  });
  const others = toolsOf('other', 50);
  const child = shelf.arrange(offerOf({ rows: [...others, FIND] }));
  await expect(
    'two agents share a shelf, and each searches its own table',
    `${MANY[7]}; ${others[7]}; not found`,
    Promise.all([
      looked(parent, MANY[7]!),
      looked(child, others[7]!),
      looked(child, MANY[7]!),
    ]).then((all) => all.join('; ')),
    (came) => came === `${MANY[7]}; ${others[7]}; not found`,
  );
  const offer = offerOf({ rows, wishes: always, turns: [found(...three)] });
  const before = JSON.stringify([[...offer.table], offer.turns]);
  shelf.arrange(offer);
  await expect(
    'the table and the turns stay as they are: they are not ours',
    'the same as before',
    JSON.stringify([[...offer.table], offer.turns]) === before ? 'the same' : 'changed',
    /^the same$/,
  );

  for (let n = 0; n < 40; n++) {
    const { wanted, ...random } = randomScene();
    const { shown } = await arranged(random);
    if (isSame(shown, wanted)) continue;
    await shows('all rules together, in tables that are drawn by lot', wanted, random);
  }
};
