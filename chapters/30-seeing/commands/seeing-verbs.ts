// seeing-verbs.ts: this chapter's commands of the command line.

import type { Verb } from '../../19-the-terminal/own-verbs.ts';

const load = () => import('./seeing-cli.ts');

export const seeingVerbs = {
  record: {
    help: `[FILE] [--name SERVER] -- COMMAND ARGS, for a client to start: keeps each message
[FILE] [--name SERVER] [--port N] URL, for a client to connect to`,
    load: async () => (await load()).recordVerb,
  },
  replay: {
    help: `FILE [SERVER] [--speed N] [--live -- COMMAND ARGS], a server that answers as recorded
FILE [SERVER] --http [--port N], the same at an address of this machine`,
    load: async () => (await load()).replayVerb,
  },
  trace: {
    help: 'check FILE [--json] [--strict], by the rules | view FILE > page.html',
    load: async () => (await load()).traceVerb,
  },
  diff: {
    help: 'A B: each a recording, a list as JSON, or a SERVER; exit code 8: it breaks clients',
    isToServer: true,
    load: async () => (await load()).diffVerb,
  },
} satisfies Record<string, Verb>;
