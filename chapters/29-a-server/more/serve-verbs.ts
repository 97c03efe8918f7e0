// serve-verbs.ts: this chapter's command of the command line.

import type { Composition } from '../../19-the-terminal/host.ts';

export const serveVerbs: NonNullable<Composition['verbs']> = {
  serve: {
    help: '[FOLDER] [--http PORT] [--servers] [--tools LIST] [--mode MODE], for other clients',
    load: async () => (await import('../serve-command.ts')).serve,
  },
};
