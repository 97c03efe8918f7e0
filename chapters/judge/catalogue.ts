// catalogue.ts: all promises, by what is judged.

import type { Chapter } from './bench.ts';
import { manyServers } from './many.ts';
import { oneWire } from './one-wire.ts';
import { protocol } from './protocol.ts';
import { transport } from './transport.ts';

export type Kind = 'client' | 'transport';
export const catalogue: Record<Kind, Chapter[]> = {
  client: [...oneWire, ...protocol, ...manyServers],
  transport: [transport],
};
