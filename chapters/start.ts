#!/usr/bin/env node
// start.ts: the program of the package. `agent.ts` is a program, too, but first of all it is a
// library, and loads the whole agent; this file loads what the command line asks for.

import type { Transport } from '../mcp.ts';
import { callEarly, startEarly } from './19-the-terminal/head-start.ts';

const args = process.argv.slice(2);
const early = args[0] === 'call' ? startEarly(args.slice(1)) : undefined;
if (early) void callWith(early);
else void startProgram();

/** While the server starts, we load the rest. One call to a server on this machine needs no login,
 *  and no second try. */
async function callWith(transport: Transport): Promise<void> {
  const { inBothEras } = await import('./22-no-handshake/era.ts');
  const { KeptVerdicts } = await import('./22-no-handshake/verdicts.ts');
  await callEarly(args.slice(1), transport, inBothEras({ verdicts: new KeptVerdicts() }));
}

async function startProgram(): Promise<void> {
  const { main } = await import('./19-the-terminal/main.ts');
  await main(args, async () => (await import('./composition.ts')).compose);
}
