#!/usr/bin/env node
// start.ts: the program of the package. `agent.ts` is a program, too, but first of all it is a
// library, and loads the whole agent; this file loads what the command line asks for.

import { startEarly, type Early } from './19-the-terminal/head-start.ts';

const args = process.argv.slice(2);
const transport = args[0] === 'call' ? startEarly(args.slice(1)) : undefined;
const early: Early | undefined = transport && { transport, extensions };
const { main } = await import('./19-the-terminal/main.ts'); // while the server starts
await main(args, async () => (await import('./composition.ts')).compose, early);

/** One call to a server on this machine needs no login, and no second try. */
async function extensions() {
  const { inBothEras } = await import('./22-no-handshake/era.ts');
  const { KeptVerdicts } = await import('./22-no-handshake/verdicts.ts');
  return inBothEras({ verdicts: new KeptVerdicts() });
}
