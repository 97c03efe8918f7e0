// serve-verbs.ts: this chapter's commands of the command line.

import type { Composition } from '../../19-the-terminal/host.ts';

export const serveVerbs: NonNullable<Composition['verbs']> = {
  serve: {
    help: '[FOLDER] [--http PORT] [--servers] [--tools LIST] [--mode MODE], for other clients',
    load: async () => (await import('../serve-command.ts')).serve,
  },
  up: {
    help: `[NAME …] [--idle MINUTES], servers that live from one call to the next
--stay, until the last such terminal ends | --status [--json]`,
    load: async () => (await import('./up-command.ts')).upCommand,
  },
  down: {
    help: 'ends them',
    load: async () => (await import('./up-command.ts')).downCommand,
  },
};
