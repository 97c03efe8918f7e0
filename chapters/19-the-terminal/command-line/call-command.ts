// The command `call`, for a server of any kind. One that is typed behind -- has a head start:
// head-start.ts.

import { readCall, type WantedServer } from './call-words.ts';
import type { LoadRows } from '../host.ts';
import { call, type Reached } from '../one-call.ts';
import type { Screen } from '../screen.ts';

export async function callCommand(args: string[], screen: Screen, rows: LoadRows): Promise<number> {
  const wanted = readCall(args);
  return call(wanted, await byTheRows(wanted, screen, rows), screen);
}

/** As it was typed, or as the files have it, with all that the rows bring along. */
export async function byTheRows(
  { server = '', typed, allowServers }: WantedServer,
  screen: Screen,
  rows: LoadRows,
): Promise<Reached> {
  const { approved } = await import('../entries.ts');
  const { forConnections } = await import('../host.ts');
  const composition = await rows();
  const config = typed ?? (await approved(server, screen, composition, allowServers));
  const { logins } = composition;
  if (logins) logins.believesVerdicts = false; // ask, whatever it said a moment ago
  return { config, options: forConnections(composition) };
}
