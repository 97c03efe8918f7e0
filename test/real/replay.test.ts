// Real servers, recorded, played and recorded again. `npm run recordings` does the same with more than twenty.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KINDS, roundTrip } from '../run/recordings.ts';

/** What each must bring: its era, and at least so many questions and notifications of the server. */
const EXPECTED: [name: string, era: string, asked: number, told: number][] = [
  ['everything', 'handshake', 1, 3],
  ['filesystem', 'handshake', 1, 0],
  ['memory', 'handshake', 0, 0],
  ['sdk-v2', 'stateless', 0, 3],
  ['sdk-v2, handshake', 'handshake', 1, 3],
];

for (const [name, era, asked, told] of EXPECTED) {
  test(`${name}: record, replay, record is the same; shuffled requests find their answers; nothing is wrong`, {
    timeout: 120_000,
  }, async () => {
    const kind = KINDS.find((each) => each.name === name)!;
    const outcome = await roundTrip(kind);
    const { differences, misses, lost, http, wrong } = outcome;
    assert.deepEqual(
      { differences, misses, lost, http, wrong },
      { differences: [], misses: [], lost: [], http: [], wrong: [] },
    );
    assert.equal(outcome.era, era);
    assert.ok(outcome.asked >= asked && outcome.told >= told, JSON.stringify(outcome));
  });
}
