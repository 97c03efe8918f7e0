// seeing-verbs.ts: this chapter's commands of the command line.

import type { Verb } from '../../19-the-terminal/own-verbs.ts';

const load = () => import('./seeing-cli.ts');

export const seeingVerbs = {
  record: {
    help: `[FILE] [--name SERVER] -- COMMAND ARGS, between any client and a server
[FILE] [--name SERVER] [--port N] URL, the same at an address of this machine`,
    load: async () => (await load()).recordVerb,
  },
  replay: {
    help: 'FILE [SERVER] [--speed N] [--http] [--port N] [--live -- COMMAND ARGS]',
    load: async () => (await load()).replayVerb,
  },
  trace: {
    help: 'check FILE [--json] [--strict] | view FILE > page.html',
    load: async () => (await load()).traceVerb,
  },
  diff: {
    help: 'A B: each a recording, a list as JSON, or a SERVER; exit code 8: it breaks clients',
    isToServer: true,
    load: async () => (await load()).diffVerb,
  },
} satisfies Record<string, Verb>;
