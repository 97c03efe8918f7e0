// context-verbs.ts: this chapter's commands of the command line.

import type { Composition } from '../../19-the-terminal/host.ts';

const load = () => import('./context-cli.ts');

export const contextVerbs: NonNullable<Composition['verbs']> = {
  read: {
    help: '[--json] SERVER ADDRESS, or URL ADDRESS, or ADDRESS -- COMMAND ARGS',
    load: async () => (await load()).readVerb,
  },
  prompt: {
    help: '[--json] SERVER NAME key=value …, or the same two forms',
    load: async () => (await load()).promptVerb,
  },
  resources: {
    help: '[--json] [SERVER, or URL, or -- COMMAND ARGS]',
    load: async () => (await load()).resourcesVerb,
  },
  prompts: {
    help: '[--json] [SERVER, or URL, or -- COMMAND ARGS]',
    load: async () => (await load()).promptsVerb,
  },
};
