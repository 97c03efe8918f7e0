// Does a time limit end something although nobody but the limit itself remembers it? Node 20 collected such limits.

import { setTimeout as wait } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { timeoutSignal } from '../../chapters/20-streamable-http/reply.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;
const { signal } = new AbortController();
void new Promise((resolve) => timeoutSignal(200, signal).addEventListener('abort', resolve)).then(
  () => process.exit(0),
);
for (let n = 0; n < 10; n++) {
  collectGarbage();
  await wait(10);
}
await wait(5000);
process.exit(1);
