// own-verbs.ts: the commands of the command line that every program has. A row has what --help says
// of its command, and loads it when it is wanted.

import type { LoadRows } from './host.ts';
import type { Screen } from './screen.ts';

/** A command gets the words behind its name. It has the rows loaded when it needs them. */
export type Run = (args: string[], screen: Screen, rows: LoadRows) => Promise<number>;
export type Verb = {
  help: string; // one line for each form
  details?: string; // for the help of this command alone
  isToServer?: boolean; // it takes the flags of one-server.ts
  offer?: 'tools' | 'prompts'; // of a server, that is named behind it
  load: () => Promise<Run>;
};

export const ownVerbs: Record<string, Verb> = {
  mcp: {
    help: `list [--json] | get NAME
add [-s local|user|project] [-e KEY=VALUE] NAME -- COMMAND ARGS
add [--transport http|sse|ws] [--header "Name: value"] NAME URL
add [--client-id ID] [--callback-port N] NAME URL, for a login
add --from server.json [NAME] | import [PROGRAM | FILE] [--yes]
add-json NAME JSON | remove NAME | enable NAME[/TOOL] | disable NAME[/TOOL]
login NAME | logout NAME`,
    load: async () => (await import('./command-line/mcp-command.ts')).mcpCommand,
  },
  trust: {
    help: 'list | allow NAME | revoke NAME | reset, which of a project may start',
    load: async () => (await import('./command-line/trust-command.ts')).trustCommand,
  },
  probe: {
    help: '[--call TOOL key=value …] SERVER, does it work?',
    isToServer: true,
    load: async () => (await import('./probe.ts')).probe,
  },
  call: {
    help: `SERVER TOOL key=value … (key=@FILE, key=@- for stdin, key=@@x for @x)
[--args JSON|@FILE|-] [--no-check] [--data] [--save FOLDER] SERVER TOOL`,
    details: `
  A value is read by the tool's schema: a=2 is a number where it wants one.
  A list is tag=a tag=b, or tag='["a","b"]'; an object is at='{"x":1}'
      --args JSON|@FILE|-     all arguments as one JSON object; key=value beside it beats it
      --no-check              sends what does not fit the schema, too
      --data                  prints the structured content alone, as JSON
      --save FOLDER           writes pictures, sounds and files into FOLDER, and names them`,
    isToServer: true,
    offer: 'tools',
    load: async () => (await import('./command-line/call-command.ts')).callCommand,
  },
  completion: {
    help: 'bash | zsh | fish, for its Tab: source <(mcp-by-hand completion bash)',
    load: async () => (await import('./command-line/completion.ts')).completionCommand,
  },
};
