// verbs.ts: which commands of the command line are this chapter's. They are loaded when one is given.

import type { Composition } from '../19-the-terminal/host.ts';

export const serveVerbs: NonNullable<Composition['verbs']> = {
  serve: async () => (await import('./serve-command.ts')).serve,
};
