// Takes turns at a lock: FILE TURNS. In each turn it adds one to the number in the file beside it, and
// sometimes leaves the lock as a program does that dies in its turn. After the last it keeps the lock.

import { readFileSync, writeFileSync } from 'node:fs';
import { waitForLock } from '../../chapters/17-the-gate/lock.ts';

const [file = '', turns = '0'] = process.argv.slice(2);
const number = `${file}.number`;

for (let turn = 0; turn < Number(turns); turn++) {
  const lock = waitForLock(file, 60_000);
  const before = Number(readFileSync(number, 'utf8'));
  const dead = { ...JSON.parse(readFileSync(file, 'utf8')), start: '1' };
  writeFileSync(number, `${before + 1}`);
  if (turn % 3 === 0) writeFileSync(file, JSON.stringify(dead));
  else lock.release();
}
if (turns === '0') {
  waitForLock(file);
  console.log('kept');
  process.stdin.resume();
}
