// What can be said on the command line.

import { parseArgs, type ParseArgsConfig } from 'node:util';
import { nearest } from '../16-hands/nearest.ts';
import { MODES, type Mode } from '../17-the-gate/gate.ts';
import { listed, type ModelRow } from '../18-minds/models.ts';

/** Exit codes, so that a script can tell what went wrong. */
export const EXIT = {
  done: 0,
  unexpected: 1,
  usage: 2,
  refused: 3,
  unreachable: 4,
  failed: 5,
  turns: 6,
  interrupted: 130,
};

/** And what the kinds of an McpError mean. */
export const EXIT_FOR: Record<string, number> = {
  config: EXIT.refused,
  auth: EXIT.refused,
  start: EXIT.unreachable,
  closed: EXIT.unreachable,
  timeout: EXIT.unreachable,
  unreachable: EXIT.unreachable,
  lost: EXIT.unreachable,
  expired: EXIT.unreachable,
  aborted: EXIT.interrupted,
  unexpected: EXIT.unexpected,
};

/** Ends the program with one line on stderr and this exit code. */
export class Stop extends Error {
  override name = 'Stop';
  code: number;
  kind: string;
  constructor(code: number, message: string, kind = 'usage') {
    super(message);
    this.code = code;
    this.kind = kind;
  }
}
export const usage = (message: string) => new Stop(EXIT.usage, message);
export const refused = (message: string, kind = 'config') => new Stop(EXIT.refused, message, kind);

type Flags = NonNullable<ParseArgsConfig['options']>;
const text = { type: 'string' } as const;
const flag = { type: 'boolean' } as const;
const texts = { type: 'string', multiple: true } as const;

const FLAGS = {
  print: { ...flag, short: 'p' },
  json: flag,
  model: { ...text, short: 'm' },
  'base-url': text,
  continue: { ...flag, short: 'c' },
  'max-turns': text,
  mode: text,
  allow: texts,
  deny: texts,
  'add-dir': texts,
  'mcp-config': texts,
  'strict-mcp-config': flag,
  demo: flag,
  'allow-server': texts,
  wire: flag,
  trace: text,
  'no-color': flag,
  help: { ...flag, short: 'h' },
  version: { ...flag, short: 'v' },
} as const satisfies Flags;

/** The text of --help. Its models, and their keys, are those that the program has. */
export function help(rows: Record<string, ModelRow>): string {
  const names = Object.entries(rows).map(([name, { defaultId, note }]) =>
    `${defaultId ? `${name}/ID` : name}${note ? ` (${note})` : ''}`,
  );
  const usualKeys = Object.values(rows).flatMap(({ keys }) => keys.slice(0, 1));
  return HELP.replace('{models}', names.join(', ')).replace('{keys}', listed(usualKeys));
}

const HELP = `mcp-by-hand: a coding agent and MCP client, small enough to read

From a clone, write "npm start --" for mcp-by-hand.

  mcp-by-hand [prompt]            a chat; the prompt is its first turn
  mcp-by-hand -p [prompt]         one answer on stdout; stdin is (added to) the prompt; never asks anything
  mcp-by-hand mcp …               list [--json] | get NAME | add [-s user|project] [-e KEY=VALUE] NAME -- COMMAND ARGS
                                  add [--transport http|sse|ws] [--header "Name: value"] [--client-id ID]
                                      [--callback-port N] NAME URL
                                  add-json NAME JSON | remove NAME | enable NAME[/TOOL] | disable NAME[/TOOL]
                                  login NAME | logout NAME
  mcp-by-hand trust …             list | allow NAME | revoke NAME | reset
  mcp-by-hand probe …             [--call TOOL key=value …] [--json] [--wire] NAME, or URL, or -- COMMAND ARGS

Model
  -m, --model NAME                {models}
      --base-url URL              another server that speaks the same wire
      --max-turns N               answers of the model to one prompt (50)
  Keys come from {keys}, and from nowhere else.
Permission
      --mode MODE                 ask (default), read-only, accept-edits, yolo
      --allow RULE, --deny RULE   bash(npm test), write(src/**), mcp__server__tool, mcp__server__*; deny wins
      --add-dir FOLDER            work in this folder too
      --allow-server NAME=sha256:…  start this server of the project, if it is exactly this one
MCP servers
      --mcp-config FILE|JSON      more servers
      --strict-mcp-config         only those of --mcp-config
      --demo                      and the calculator that is built in
Output
      --json                      one event per line
  -c, --continue                  go on with the last conversation in this folder
      --wire                      show every JSON-RPC message
      --trace FILE                write every message and event to FILE, as JSON lines
      --no-color
  -h, --help   -v, --version

Exit codes: 0 done, 1 unexpected, 2 usage, 3 configuration or permission refused, 4 unreachable or timed out,
5 a tool or server answered with an error, 6 turn limit, 130 interrupted

Examples
  mcp-by-hand "what does this project do?"
  git diff | mcp-by-hand -p "write a commit message"
  mcp-by-hand probe -- npx -y @modelcontextprotocol/server-everything`;

export type Options = {
  prompt: string;
  print: boolean;
  json: boolean;
  model?: string;
  baseUrl?: string;
  continue: boolean;
  maxTurns?: number;
  mode: Mode;
  allow: string[];
  deny: string[];
  addDir: string[];
  mcpConfig: string[];
  strictMcpConfig: boolean;
  demo: boolean;
  allowServer: string[];
  wire: boolean;
  trace?: string;
  help: boolean;
  version: boolean;
};

type Strict<T extends Flags> = { options: T; allowPositionals: true; strict: true };
type Parsed<T extends Flags> = ReturnType<typeof parseArgs<Strict<T>>>;

/** Parses flags; a wrong one is answered with the nearest right one. */
export function parse<T extends Flags>(args: string[], options: T): Parsed<T> {
  try {
    return parseArgs({ args, options, allowPositionals: true, strict: true });
  } catch (error) {
    const { message } = error as Error;
    const unknown = /^Unknown option '([^']+)'/.exec(message)?.[1];
    if (unknown === undefined) throw usage(`${message.split('. ')[0]} (see --help)`);
    const [close] = nearest(unknown, Object.keys(options).map((name) => `--${name}`), 1);
    const hint = close
      ? `did you mean ${close}?`
      : 'if it is a text, or belongs to another command, put -- before it';
    throw usage(`there is no option ${unknown}; ${hint} (see --help)`);
  }
}

export function readOptions(args: string[]): Options {
  const { values, positionals } = parse(args, FLAGS);
  const mode = MODES.find((each) => each === (values.mode ?? 'ask'));
  if (!mode) throw usage(`--mode is one of ${MODES.join(', ')}, not ${values.mode}`);
  const maxTurns = values['max-turns'] === undefined ? undefined : Number(values['max-turns']);
  if (maxTurns !== undefined && !(Number.isInteger(maxTurns) && maxTurns > 0))
    throw usage(`--max-turns is a number above 0, not ${values['max-turns']}`);
  const odd = values['allow-server']?.find((each) => !/^[^=]+=sha256:[0-9a-f]{64}$/.test(each));
  const form = 'NAME=sha256: and 64 digits, as a refusal prints it';
  if (odd) throw usage(`--allow-server is ${form}, not ${odd}`);
  return {
    prompt: positionals.join(' '),
    print: values.print ?? false,
    json: values.json ?? false,
    model: values.model,
    baseUrl: values['base-url'],
    continue: values.continue ?? false,
    maxTurns,
    mode,
    allow: values.allow ?? [],
    deny: values.deny ?? [],
    addDir: values['add-dir'] ?? [],
    mcpConfig: values['mcp-config'] ?? [],
    strictMcpConfig: values['strict-mcp-config'] ?? false,
    demo: values.demo ?? false,
    allowServer: values['allow-server'] ?? [],
    wire: values.wire ?? false,
    trace: values.trace,
    help: values.help ?? false,
    version: values.version ?? false,
  };
}
