#!/usr/bin/env node
// start.ts: the program of the package. `agent.ts` is a program, too, but first of all it is a
// library, and loads the whole agent; this file loads what the command line asks for.

import { callEarly, late, startEarly, type EarlyServer } from './19-the-terminal/head-start.ts';
import type { PrepareArguments } from './19-the-terminal/host.ts';

const args = process.argv.slice(2);
void start();

async function start(): Promise<void> {
  const early = args[0] === 'call' ? await startEarly(args.slice(1), attach) : undefined;
  if (early) await callWith(early);
  else await startProgram();
}

/** To a server that `up` keeps running. */
async function attach(server: string) {
  return (await import('./29-a-server/attach.ts')).attachEarly(server);
}

const all = async () => (await import('./composition.ts')).compose;

/** While the server starts, we load the rest. One call by a script to a server on this machine needs
 *  no login and no second try. What a server may ask of us is declared as all rows do it, and loaded
 *  when it asks. */
async function callWith(early: EarlyServer): Promise<void> {
  const extensions = [
    late(ASKED.elicitation, ['elicitation/create'], named('elicitation')),
    late(ASKED.roots, ['roots/list'], named('roots')),
    late(ASKED.skills, [], named('skills')),
    ...(await forBothEras()),
  ];
  const prepare: PrepareArguments = async (...given) =>
    (await import('./28-a-thousand-tools/tool-arguments.ts')).preparedArguments(...given);
  await callEarly(args.slice(1), early, { extensions, prepare });
}

async function forBothEras() {
  const { inBothEras } = await import('./22-no-handshake/era.ts');
  const { KeptVerdicts } = await import('./22-no-handshake/verdicts.ts');
  const { tasks } = await import('./24-more-than-tools/tasks.ts');
  return inBothEras({ verdicts: new KeptVerdicts(), inside: [tasks()] });
}

/** What those extensions declare where no person is. A test compares it with all rows. */
const ASKED = {
  elicitation: { elicitation: { form: {} } },
  roots: { roots: { listChanged: true } },
  skills: { extensions: { 'io.modelcontextprotocol/skills': {} } },
};

const named = (name: string) => async () => {
  const { rowsForScript } = await import('./19-the-terminal/main.ts');
  const { extensions } = await rowsForScript(all);
  return extensions.find((extension) => extension.name === name)!;
};

async function startProgram(): Promise<void> {
  const { main } = await import('./19-the-terminal/main.ts');
  await main(args, all);
}
