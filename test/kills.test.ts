// Chapter 19: a short run of `npm run kills`, and what a program leaves that is killed before its first word.

import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { Trust } from '../agent.ts';
import { takeLock } from '../chapters/17-the-gate/lock.ts';
import { Masker } from '../chapters/17-the-gate/safe-text.ts';
import { Session } from '../chapters/19-the-terminal/session-file.ts';
import { cleanUp, folder } from './help/basics.ts';
import { killAtRandom } from './run/kills.ts';

afterEach(cleanUp);

test('I4: kill -9 at random moments loses and damages nothing that was said to be written', async () => {
  const { kills, written } = await killAtRandom(6);
  assert.equal(kills, 6);
  assert.ok(written >= 6, `${written}`); // the last writer alone is not killed
});

test('what was left by programs that died before their first word goes when a conversation begins', () => {
  const session = new Session(new Trust({ home: folder(), cwd: folder() }), new Masker({}));
  mkdirSync(session.folder, { recursive: true });
  const name = (n: number) =>
    join(session.folder, `2026-01-31T12-00-00.00${n}Z-00000000-0000-4000-8000-000000000000.jsonl`);
  writeFileSync(`${name(1)}.lock`, '{"id":"0123456789ab","pid":1,"start":"1","place":"elsewhere"}');
  utimesSync(`${name(1)}.lock`, 0, 0);
  takeLock(`${name(2)}.lock`); // of one that is about to say something
  writeFileSync(join(session.folder, 'notes.lock'), 'not ours');
  session.record({ role: 'user', text: 'hello' });
  const left = readdirSync(session.folder).filter(
    (each) => each.includes('.lock') && !each.includes(session.id),
  );
  assert.deepEqual(left, [
    '2026-01-31T12-00-00.002Z-00000000-0000-4000-8000-000000000000.jsonl.lock',
    'notes.lock',
  ]);
  session.close();
});
