// What can be said on the command line.

import { MODES, modeNamed, type Mode } from '../17-the-gate/modes.ts';
import { listed, type ModelRow } from '../18-minds/models.ts';
import { usage } from './exit.ts';
import { parse, type Flags } from './parse.ts';

const text = { type: 'string' } as const;
const flag = { type: 'boolean' } as const;
const texts = { type: 'string', multiple: true } as const;

const MAX_WAIT_S = 3600;

const FLAGS = {
  print: { ...flag, short: 'p' },
  json: flag,
  model: { ...text, short: 'm' },
  'base-url': text,
  continue: { ...flag, short: 'c' },
  resume: { ...text, short: 'r' },
  'max-turns': text,
  'max-tokens': text,
  'context-window': text,
  mode: text,
  allow: texts,
  deny: texts,
  'add-dir': texts,
  env: texts,
  'mcp-config': texts,
  'strict-mcp-config': flag,
  ide: flag,
  wait: text,
  demo: flag,
  'allow-server': texts,
  verbose: flag,
  wire: flag,
  trace: text,
  page: flag,
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
  mcp-by-hand mcp …               list [--json] | get NAME
                                  add [-s local|user|project] [-e KEY=VALUE] NAME -- COMMAND ARGS
                                  add [--transport http|sse|ws] [--header "Name: value"] [--client-id ID]
                                      [--callback-port N] NAME URL
                                  add --from server.json [NAME] | import claude-desktop|vscode
                                  add-json NAME JSON | remove NAME | enable NAME[/TOOL] | disable NAME[/TOOL]
                                  login NAME | logout NAME
  mcp-by-hand trust …             list | allow NAME | revoke NAME | reset
  mcp-by-hand probe …             [--call TOOL key=value …] [--json] [--wire] NAME, or URL, or -- COMMAND ARGS
  mcp-by-hand call …              [--json] [--trace FILE] [--timeout SECONDS] SERVER TOOL key=value …
                                  [--header "Name: value"] URL TOOL key=value …
                                  [-e KEY=VALUE] TOOL key=value … -- COMMAND ARGS
  mcp-by-hand read …              [--json] SERVER ADDRESS, or URL ADDRESS, or ADDRESS -- COMMAND ARGS
  mcp-by-hand prompt …            [--json] SERVER NAME key=value …, or the same two forms
  mcp-by-hand resources, prompts  [--json] [SERVER, or URL, or -- COMMAND ARGS]
  mcp-by-hand record …            [FILE] [--name SERVER] -- COMMAND ARGS, between any client and a server
  mcp-by-hand replay …            FILE [SERVER] [--speed N] [--http] [--port N] [--live -- COMMAND ARGS]
  mcp-by-hand serve …             [FOLDER] [--http PORT] [--servers] [--tools LIST] [--mode MODE], for other clients
  mcp-by-hand trace …             check FILE [--json] [--strict] | view FILE > page.html

Model
  -m, --model NAME                {models}
      --base-url URL              another server that speaks the same wire
      --max-turns N               answers of the model to one prompt (50)
      --context-window N          tokens that the model can read, where that is not known or wrong
      --max-tokens N              tokens of one answer, at most; the model has a limit of its own (16384)
  Keys come from {keys}, and from nowhere else.
Permission
      --mode MODE                 ask (default), read-only, accept-edits, yolo; beats defaultMode of your settings
      --allow RULE, --deny RULE   bash(npm test), bash(npm run test:*), write(src/**), mcp__server__tool; deny wins
      --add-dir FOLDER            work in this folder too
      --env NAME                  commands get this variable, too: SSH_AUTH_SOCK, JAVA_HOME, …
      --allow-server NAME=sha256:…  start this server of the project, if it is exactly this one
MCP servers
      --mcp-config FILE|JSON      more servers
      --strict-mcp-config         only those of --mcp-config
      --ide                       the server of the editor that has this folder open, too
      --wait SECONDS              how long servers may take to start before an answer begins (2; with -p 5)
      --demo                      and the calculator that is built in
Output
      --json                      one event per line
  -c, --continue                  go on with the last chat in this folder
  -r, --resume [ID|NAME]          go on with this conversation; without a word, a list to choose from
      --verbose                   show arguments and results of all calls whole, on stderr
      --wire                      show every JSON-RPC message
      --trace FILE                write every message and event to FILE, as JSON lines
      --page                      draw the conversation in the browser, live
      --no-color
  -h, --help   -v, --version

Exit codes: 0 done, 1 unexpected, 2 usage, 3 configuration or permission refused, 4 unreachable or timed out,
5 a tool or server answered with an error, 6 turn limit, 7 answer cut off, 130 interrupted

Examples
  mcp-by-hand "what does this project do?"
  git diff | mcp-by-hand -p "write a commit message"
  mcp-by-hand probe -- npx -y @modelcontextprotocol/server-everything
  mcp-by-hand call add a=2 b=40 -- node server.mjs`;

export type Options = {
  prompt: string;
  print: boolean;
  json: boolean;
  model?: string;
  baseUrl?: string;
  continue: boolean;
  resume?: string; // empty: the person is to choose
  maxTurns?: number;
  maxTokens?: number;
  contextWindow?: number;
  mode?: Mode; // else that of the user's settings
  allow: string[];
  deny: string[];
  addDir: string[];
  env: string[];
  mcpConfig: string[];
  strictMcpConfig: boolean;
  ide: boolean;
  wait?: number; // seconds
  demo: boolean;
  allowServer: string[];
  verbose: boolean;
  wire: boolean;
  trace?: string;
  page: boolean;
  help: boolean;
  version: boolean;
};

/** The value of --resume may be missing, which parseArgs does not know. */
function withEmptyValue(arg: string, n: number, args: string[]): string {
  const end = args.indexOf('--');
  const isBefore = end === -1 || n < end;
  const next = args[n + 1];
  const isBare = isBefore && /^(-r|--resume)$/.test(arg) && (next ?? '-').startsWith('-');
  return isBare ? '--resume=' : arg;
}

export function readOptions(args: string[]): Options {
  const { values, positionals } = parse(args.map(withEmptyValue), FLAGS);
  if (values.continue && values.resume !== undefined)
    throw usage('--continue is the last chat, --resume another one: give one of them');
  const mode = values.mode === undefined ? undefined : modeNamed(values.mode);
  if (values.mode !== undefined && !mode)
    throw usage(`--mode is one of ${MODES.join(', ')}, not ${values.mode}`);
  const maxTurns = count('--max-turns', values['max-turns']);
  const maxTokens = count('--max-tokens', values['max-tokens']);
  const contextWindow = count('--context-window', values['context-window']);
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
    resume: values.resume,
    maxTurns,
    maxTokens,
    contextWindow,
    mode,
    allow: values.allow ?? [],
    deny: values.deny ?? [],
    addDir: values['add-dir'] ?? [],
    env: values.env ?? [],
    mcpConfig: values['mcp-config'] ?? [],
    strictMcpConfig: values['strict-mcp-config'] ?? false,
    ide: values.ide ?? false,
    wait: values.wait === undefined ? undefined : secondsIn(values.wait),
    demo: values.demo ?? false,
    allowServer: values['allow-server'] ?? [],
    verbose: values.verbose ?? false,
    wire: values.wire ?? false,
    trace: values.trace,
    page: values.page ?? false,
    help: values.help ?? false,
    version: values.version ?? false,
  };
}

function count(option: string, value?: string): number | undefined {
  if (value === undefined) return undefined;
  const number = Number(value);
  if (Number.isSafeInteger(number) && number > 0) return number;
  throw usage(`${option} is a number above 0, not ${value}`);
}

function secondsIn(text: string): number {
  const isNumber = /^\d+(\.\d+)?$/.test(text);
  if (isNumber && Number(text) <= MAX_WAIT_S) return Number(text);
  throw usage(`--wait is a number of seconds, 0 to ${MAX_WAIT_S}, not ${text}`);
}
