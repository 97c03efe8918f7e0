// The command `call`, for a server of any kind. One that is typed behind -- has a head start:
// head-start.ts.

import type { LoadRows } from '../host.ts';
import { call } from '../one-call.ts';
import { wayTo } from './one-server.ts';
import type { Screen } from '../screen.ts';
import { readCall } from './call-words.ts';

export async function callCommand(args: string[], screen: Screen, rows: LoadRows): Promise<number> {
  const wanted = readCall(args);
  const composition = await rows();
  const way = await wayTo(wanted, screen, composition);
  return call(wanted, way, screen, composition.prepareArguments);
}
