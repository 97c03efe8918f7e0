// context-verbs.ts: this chapter's commands of the command line.

import type { Composition } from '../../19-the-terminal/host.ts';

const load = () => import('./context-cli.ts');

export const contextVerbs: NonNullable<Composition['verbs']> = {
  read: {
    help: 'SERVER ADDRESS',
    isToServer: true,
    load: async () => (await load()).readVerb,
  },
  prompt: {
    help: 'SERVER NAME key=value …',
    isToServer: true,
    offer: 'prompts',
    load: async () => (await load()).promptVerb,
  },
  resources: {
    help: '[SERVER]',
    isToServer: true,
    load: async () => (await load()).resourcesVerb,
  },
  prompts: {
    help: '[SERVER]',
    isToServer: true,
    load: async () => (await load()).promptsVerb,
  },
};
