// verbs.ts: which commands of the command line are this chapter's. They are loaded when one is given.

import type { Composition } from '../19-the-terminal/host.ts';

const load = () => import('./command-line.ts');

export const seeingVerbs: NonNullable<Composition['verbs']> = {
  record: async () => (await load()).record,
  replay: async () => (await load()).replay,
  trace: async () => (await load()).trace,
};
