// own-verbs.ts: the commands of the command line that every program has. A row has what --help says
// of its command, and loads it when it is wanted.

import type { LoadRows } from './host.ts';
import type { Screen } from './screen.ts';

/** A command gets the words behind its name. It has the rows loaded when it needs them. */
export type Run = (args: string[], screen: Screen, rows: LoadRows) => Promise<number>;
export type Verb = { help: string; load: () => Promise<Run> };

export const ownVerbs: Record<string, Verb> = {
  mcp: {
    help: `list [--json] | get NAME
add [-s local|user|project] [-e KEY=VALUE] NAME -- COMMAND ARGS
add [--transport http|sse|ws] [--header "Name: value"] [--client-id ID]
    [--callback-port N] NAME URL
add --from server.json [NAME] | import claude-desktop|vscode
add-json NAME JSON | remove NAME | enable NAME[/TOOL] | disable NAME[/TOOL]
login NAME | logout NAME`,
    load: async () => (await import('./command-line/mcp-command.ts')).mcpCommand,
  },
  trust: {
    help: 'list | allow NAME | revoke NAME | reset',
    load: async () => (await import('./command-line/trust-command.ts')).trustCommand,
  },
  probe: {
    help: '[--call TOOL key=value …] [--json] [--wire] NAME, or URL, or -- COMMAND ARGS',
    load: async () => (await import('./probe.ts')).probe,
  },
  call: {
    help: `[--json] [--trace FILE] [--timeout SECONDS] SERVER TOOL key=value …
[--header "Name: value"] URL TOOL key=value …
[-e KEY=VALUE] TOOL key=value … -- COMMAND ARGS`,
    load: async () => (await import('./command-line/call-command.ts')).callCommand,
  },
};
