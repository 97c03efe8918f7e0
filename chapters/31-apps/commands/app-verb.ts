// app-verb.ts: the command `app`, for those who write one.

import type { Verb } from '../../19-the-terminal/own-verbs.ts';

export const appVerb: Verb = {
  help: `TOOL key=value … -- COMMAND ARGS, or SERVER TOOL key=value …
shows the app of a tool in a browser, and its messages here`,
  isToServer: true,
  load: async () => (await import('./app-cli.ts')).appCommand,
};
