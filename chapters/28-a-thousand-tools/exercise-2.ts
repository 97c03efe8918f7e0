// Judges exercise 28.2: what begins when? Items are names: a1 and a2 are in the line "a", those with
// a star are shared there, and those that begin with a dash have no lane.

import type { Judge } from '../book.ts';
import type { Lane } from './order.ts';

type Case = {
  what: string;
  items: string;
  ends?: string; // in this order; else as they have begun
  wanted: string; // what begins at once, and then by whose end
};

const cases: Case[] = [
  { what: 'nothing to do is done', items: '', wanted: '' },
  { what: 'one item begins at once', items: 'a1', wanted: 'a1' },
  { what: 'two lines run side by side', items: 'a1 b1', wanted: 'a1 b1' },
  {
    what: 'in one line the second waits for the first',
    items: 'a1 a2',
    wanted: 'a1, then by a1: a2',
  },
  {
    what: 'and one of another line does not wait behind them',
    items: 'a1 a2 b1',
    ends: 'b1 a1 a2',
    wanted: 'a1 b1, then by a1: a2',
  },
  {
    what: 'three in one line, one after the other',
    items: 'a1 a2 a3',
    wanted: 'a1, then by a1: a2, then by a2: a3',
  },
  { what: 'what is shared runs side by side', items: 'a*1 a*2 a*3', wanted: 'a*1 a*2 a*3' },
  {
    what: 'one that is not shared waits for all that are, in whichever order they end',
    items: 'a*1 a*2 a3',
    ends: 'a*2 a*1 a3',
    wanted: 'a*1 a*2, then by a*1: a3',
  },
  {
    what: 'and is not overtaken by others behind it',
    items: 'a*1 a2 a*3 a*4',
    wanted: 'a*1, then by a*1: a2, then by a2: a*3 a*4',
  },
  {
    what: 'without a lane: after all before it, in whichever order they end',
    items: 'a1 b1 -1',
    ends: 'b1 a1 -1',
    wanted: 'a1 b1, then by a1: -1',
  },
  { what: 'and before all behind it', items: '-1 a1 b*1', wanted: '-1, then by -1: a1 b*1' },
  {
    what: 'two without a lane are not beside each other',
    items: '-1 -2',
    wanted: '-1, then by -1: -2',
  },
  {
    what: 'all together',
    items: 'a*1 a*2 b1 -1 b2 a3 b3',
    ends: 'b1 a*2 a*1 -1 a3 b2 b3',
    wanted: 'a*1 a*2 b1, then by a*1: -1, then by -1: a3 b2, then by b2: b3',
  },
];

function laneOf(item: string): Lane | undefined {
  if (item.startsWith('-')) return undefined;
  return { line: item[0]!, isShared: item.includes('*') };
}

/** What begins by mistake has begun by then. */
async function settled(): Promise<void> {
  for (let turns = 0; turns < 5; turns++) await new Promise(setImmediate);
}

/** Waits for a fact, and not without end. */
async function until(isSo: () => unknown): Promise<boolean> {
  const deadline = performance.now() + 2000;
  for (let turns = 0; turns < 1000 || performance.now() < deadline; turns++) {
    if (isSo()) return true;
    await new Promise(setImmediate);
  }
  return false;
}

type InLanes = typeof import('./order.ts').inLanes;

/** Runs them, lets one end after the other, and tells what began when. */
async function watched(inLanes: InLanes, items: string[], ends: string[]): Promise<string> {
  const rounds: { by: string; begun: string[] }[] = [{ by: '', begun: [] }];
  const finish = new Map<string, () => void>();
  const work = (item: string) =>
    new Promise<string>((done) => {
      rounds.at(-1)!.begun.push(item);
      finish.set(item, () => done(item));
    });
  const told = () => {
    const lively = rounds.filter(({ begun }) => begun.length > 0);
    const words = lively.map(
      ({ by, begun }) => `${by && `then by ${by}: `}${begun.toSorted().join(' ')}`,
    );
    return words.join(', ');
  };
  const all = inLanes(items, laneOf, work);
  let failure: unknown;
  all.catch((error) => (failure = error));
  for (let n = 0; n <= ends.length; n++) {
    if (n > 0) {
      rounds.push({ by: ends[n - 1]!, begun: [] });
      finish.get(ends[n - 1]!)?.();
    }
    const wanted = wantedOf(items, ends.slice(0, n));
    const isInTime = await until(() => failure || told().length >= wanted.length);
    await settled();
    if (failure) throw failure; // no work has failed
    if (!isInTime) return told();
  }
  return told();
}

/** What begins when, by the rule alone: an item begins once all have ended that it must wait for. */
function wantedOf(items: string[], ends: string[]): string {
  const isBeside = (one?: Lane, two?: Lane) =>
    one && two && (one.line !== two.line || (one.isShared && two.isShared));
  const over = new Set<string>();
  const begun = new Set<string>();
  const beginning = () => {
    const now = items.filter((item, n) => {
      const before = items.slice(0, n).filter((other) => !isBeside(laneOf(item), laneOf(other)));
      return !begun.has(item) && before.every((other) => over.has(other));
    });
    for (const item of now) begun.add(item);
    return now.toSorted().join(' '); // those that may begin together, in any order
  };
  const rounds = [beginning()];
  for (const item of ends) {
    over.add(item);
    const now = beginning();
    if (now) rounds.push(`then by ${item}: ${now}`);
  }
  return rounds.filter(Boolean).join(', ');
}

const random = (below: number) => Math.floor(Math.random() * below);

/** Items of up to three lines, and the order in which they end: one that has begun, each time. */
function drawn(): { items: string[]; ends: string[] } {
  const items = Array.from({ length: 3 + random(7) }, (_, n) => {
    const line = 'abc-'[random(4)];
    return line === '-' ? `-${n}` : `${line}${random(2) > 0 ? '*' : ''}${n}`;
  });
  const ends: string[] = [];
  while (ends.length < items.length) {
    const begun: string[] = wantedOf(items, ends).match(/\S+(?=[ ,]|$)/g) ?? [];
    const open = items.filter((item) => begun.includes(item) && !ends.includes(item));
    ends.push(open[random(open.length)]!);
  }
  return { items, ends };
}

const wordsIn = (text: string) => text.split(' ').filter(Boolean);

export const judge: Judge = async ({ load, expect }) => {
  const { inLanes } = (await load('chapters/28-a-thousand-tools/order.ts')) as { inLanes: InLanes };
  for (const { what, items, ends = items, wanted } of cases) {
    const came = watched(inLanes, wordsIn(items), wordsIn(ends));
    await expect(what, wanted || 'nothing', came, (began) => began === wanted);
  }
  for (let n = 0; n < 40; n++) {
    const { items, ends } = drawn();
    const wanted = wantedOf(items, ends);
    const what = `items that are drawn by lot: ${items.join(' ')}; they end as ${ends.join(' ')}`;
    const came = await watched(inLanes, items, ends);
    if (came !== wanted) await expect(what, wanted, came, () => false);
  }

  // ── Results ──

  const slowFirst = async (item: string, n: number) => {
    if (n === 0) await settled();
    return `${item} is ${n}`;
  };
  const results = inLanes(['b1', 'a1', 'c1', 'a2'], laneOf, slowFirst).then((all) =>
    all.join(', '),
  );
  const inOrder = 'b1 is 0, a1 is 1, c1 is 2, a2 is 3';
  const order = 'results come in the order of the items, and work gets the number of its item';
  await expect(order, inOrder, results, (came) => came === inOrder);
  const twins = inLanes(['a1', 'a1', 'a1'], laneOf, async (_, n) => n).then((all) => all.join(' '));
  await expect('items may be alike', '0 1 2', twins, (came) => came === '0 1 2');
  const empty = inLanes(['a1', 'b1', '-1'], laneOf, async () => undefined);
  const none = (came: unknown[]) => came.length === 3 && came.every((each) => each === undefined);
  await expect('a result may be nothing at all', 'three times nothing', empty, none);
  let times = 0;
  const counted = inLanes(['a1', 'a2', '-1', 'b1'], laneOf, async () => ++times);
  await expect(
    'each item is worked on once',
    '4',
    counted.then(() => times),
    (came) => came === 4,
  );
  const given = ['a1', 'b1', 'a2'];
  const kept = inLanes(given, laneOf, async (item) => item).then(() => given.join(' '));
  await expect('the list of items stays as it is', 'a1 b1 a2', kept, /^a1 b1 a2$/);

  // ── Failures ──

  /** Which began, if this one fails, and how it all ended. */
  const failing = async (items: string[], which: string) => {
    const failure = new Error(`${which} has failed`);
    const begun: string[] = [];
    const work = async (item: string) => {
      begun.push(item);
      await settled();
      if (item === which) throw failure;
      return item;
    };
    const how = await inLanes(items, laneOf, work).then(
      () => 'all is well',
      (error) => (error === failure ? failure.message : `another error: ${error}`),
    );
    await settled();
    await settled();
    return { how, begun: begun.toSorted().join(' ') };
  };
  for (const items of [
    ['a1', 'a2', 'b1'],
    ['b1', 'a1', 'a2'],
    ['a0', 'a1'],
  ]) {
    const came = failing(items, 'a1');
    await expect('if one fails, that is told', 'a1 has failed', came, ({ how }) => {
      return how === 'a1 has failed';
    });
  }
  await expect(
    'what had to wait for it is not begun',
    'a1 b1',
    failing(['a1', 'a2', 'b1'], 'a1'),
    ({ begun }) => begun === 'a1 b1',
  );
  await expect(
    'nor what waited for that',
    'a1 b1',
    failing(['a1', 'b1', 'a2', '-1', 'c1'], 'a1'),
    ({ begun }) => begun === 'a1 b1',
  );
  await expect(
    'also if it fails as the last of those that were waited for',
    'a*1 a*2',
    failing(['a*1', 'a*2', 'a3'], 'a*2'),
    ({ begun }) => begun === 'a*1 a*2',
  );
};
