// verbs.ts: which commands of the command line are this chapter's. They are loaded when one is given.

import type { Composition } from '../19-the-terminal/host.ts';

const load = () => import('./command-line.ts');

export const verbs: NonNullable<Composition['verbs']> = {
  read: async () => (await load()).read,
  prompt: async () => (await load()).prompt,
  resources: async () => (await load()).resources,
  prompts: async () => (await load()).prompts,
};
