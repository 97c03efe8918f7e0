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
    wanted: 'a*1 a*2 b1, then by a*1: -1, then by -1: b2 a3, then by b2: b3',
  },
];

function laneOf(item: string): Lane | undefined {
  if (item.startsWith('-')) return undefined;
  return { line: item[0]!, isShared: item.includes('*') };
}

/** All that can begin has begun. */
async function settled(): Promise<void> {
  for (let turns = 0; turns < 5; turns++) await new Promise(setImmediate);
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
  const all = inLanes(items, laneOf, work);
  await settled();
  for (const item of ends) {
    rounds.push({ by: item, begun: [] });
    finish.get(item)?.();
    await settled();
  }
  await Promise.race([all, settled()]);
  const told = rounds
    .filter(({ begun }) => begun.length > 0)
    .map(({ by, begun }) => {
      return `${by && `then by ${by}: `}${begun.join(' ')}`;
    });
  return told.join(', ');
}

const wordsIn = (text: string) => text.split(' ').filter(Boolean);

export const judge: Judge = async ({ load, expect }) => {
  const { inLanes } = (await load('chapters/28-a-thousand-tools/order.ts')) as { inLanes: InLanes };
  for (const { what, items, ends = items, wanted } of cases) {
    const came = watched(inLanes, wordsIn(items), wordsIn(ends));
    await expect(what, wanted || 'nothing', came, (began) => began === wanted);
  }

  const slowFirst = async (item: string, n: number) => {
    if (n === 0) await settled();
    return `${item} is ${n}`;
  };
  const results = inLanes(['a1', 'b1', 'a2'], laneOf, slowFirst).then((all) => all.join(', '));
  const inOrder = 'a1 is 0, b1 is 1, a2 is 2';
  const order = 'results come in the order of the items, and work gets the number of its item';
  await expect(order, inOrder, results, (came) => came === inOrder);

  const begun: string[] = [];
  const failing = async (item: string) => {
    begun.push(item);
    if (item === 'a1') throw new Error('a1 has failed');
    return item;
  };
  const failed = inLanes(['a1', 'a2', 'b1'], laneOf, failing).catch(({ message }) => message);
  const told = 'if one fails, that is told';
  await expect(told, 'a1 has failed', failed, (came) => came === 'a1 has failed');
  const notBegun = 'and what had to wait for it is not begun';
  const seen = settled().then(() => begun.join(' '));
  await expect(notBegun, 'a1 b1', seen, (came) => came === 'a1 b1');
};
