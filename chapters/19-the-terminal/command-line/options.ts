// What can be said on the command line.

import { orList } from '../../17-the-gate/dialogue.ts';
import { IS_SOURCE } from '../../17-the-gate/trust.ts';
import { MODES, modeNamed, type Mode } from '../../17-the-gate/modes.ts';
import type { Limit } from '../../18-minds/prices.ts';
import { usage } from '../exit.ts';
import type { Composition } from '../host.ts';
import { ownVerbs, type Verb } from '../own-verbs.ts';
import { REACH_HELP } from './one-server.ts';
import { FLAG, numberFlag, parseFlags, TEXT_FLAG, TEXTS_FLAG } from './parse.ts';

const MAX_WAIT_S = 3600;
const HELP_COLUMN = 34; // where its second column begins
const ABOVE_0 = 'a number above 0';
const isCount = (number: number) => Number.isSafeInteger(number) && number > 0;

/** For every command whose tools pass the gate. */
export const GATE_FLAGS = {
  mode: TEXT_FLAG,
  allow: TEXTS_FLAG,
  deny: TEXTS_FLAG,
  'add-dir': TEXTS_FLAG,
  env: TEXTS_FLAG,
} as const;

const FLAGS = {
  print: { ...FLAG, short: 'p' },
  json: FLAG,
  model: { ...TEXT_FLAG, short: 'm' },
  'base-url': TEXT_FLAG,
  continue: { ...FLAG, short: 'c' },
  resume: { ...TEXT_FLAG, short: 'r' },
  'max-turns': TEXT_FLAG,
  'max-tokens': TEXT_FLAG,
  'max-cost': TEXT_FLAG,
  'context-window': TEXT_FLAG,
  ...GATE_FLAGS,
  'mcp-config': TEXTS_FLAG,
  'strict-mcp-config': FLAG,
  ide: FLAG,
  wait: TEXT_FLAG,
  demo: FLAG,
  'allow-server': TEXTS_FLAG,
  verbose: FLAG,
  wire: FLAG,
  trace: TEXT_FLAG,
  page: FLAG,
  'no-color': FLAG,
  help: { ...FLAG, short: 'h' },
  version: { ...FLAG, short: 'v' },
} as const;

/** The text of --help. Its commands, models and their keys are those that the program has. */
export function helpText({ models, verbs }: Pick<Composition, 'models' | 'verbs'>): string {
  const names = Object.entries(models).map(
    ([name, { defaultId, note }]) =>
      `${defaultId ? `${name}/ID` : name}${note ? ` (${note})` : ''}`,
  );
  const usualKeys = Object.values(models).flatMap(({ keys }) => keys.slice(0, 1));
  const commands = Object.entries({ ...ownVerbs, ...verbs }).map(verbHelp);
  return HELP.replace('{clone}', IS_SOURCE ? CLONE : '')
    .replace('{verbs}', commands.join('\n'))
    .replace('{models}', names.join(', '))
    .replace('{keys}', orList(usualKeys));
}

function verbHelp([name, { help }]: [string, Verb]): string {
  const margin = ' '.repeat(HELP_COLUMN);
  const typed = `  mcp-by-hand ${name} …`.padEnd(HELP_COLUMN);
  return typed + help.replaceAll('\n', `\n${margin}`);
}

/** The help of one command, from its row. */
export function helpOfVerb(name: string, verb: Verb): string {
  const forms = verb.help.split('\n').map((line) => `  mcp-by-hand ${name} ${line}`);
  return [...forms, verb.details, verb.isToServer && REACH_HELP].filter(Boolean).join('\n');
}

const CLONE = 'From a clone, write "npx tsx agent.ts" for mcp-by-hand.\n\n';
const HELP = `mcp-by-hand: a coding agent and MCP client, small enough to read

{clone}  mcp-by-hand [prompt]            a chat; the prompt is its first turn
  mcp-by-hand -p [prompt]         one answer on stdout; stdin is (added to) the prompt; never asks anything
{verbs}
  SERVER is a name, a URL, or, behind all other words, -- COMMAND ARGS; more by: mcp-by-hand call --help

Model
  -m, --model NAME                {models}
      --base-url URL              another server that speaks the same wire
      --max-turns N               answers of the model to one prompt (50)
      --context-window N          tokens that the model can read, where that is not known or wrong
      --max-tokens N              tokens of one answer, at most; the model has a limit of its own (16384)
      --max-cost 0.50 | 200k      ask nothing more when so many dollars are spent ("prices" of your settings), or tokens
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
5 a tool or server answered with an error, 6 turn limit or --max-cost, 7 answer cut off, 8 a breaking change,
130 interrupted

Examples
  mcp-by-hand "what does this project do?"
  git diff | mcp-by-hand -p "write a commit message"
  mcp-by-hand probe -- npx -y @modelcontextprotocol/server-everything
  mcp-by-hand call add a=2 b=40 -- node server.mjs`;

export type ProgramOptions = ReturnType<typeof readProgramOptions>;

/** The value of --resume may be missing, which parseArgs does not know. */
function withEmptyValue(arg: string, n: number, args: string[]): string {
  const end = args.indexOf('--');
  const isBefore = end === -1 || n < end;
  const next = args[n + 1];
  const isBare = isBefore && /^(-r|--resume)$/.test(arg) && (next ?? '-').startsWith('-');
  return isBare ? '--resume=' : arg;
}

export function readProgramOptions(args: string[]) {
  const { values, positionals } = parseFlags(args.map(withEmptyValue), FLAGS);
  const { mode, wait, maxTurns, maxTokens, contextWindow, allowServer } = values;
  if (values.continue && values.resume !== undefined)
    throw usage('--continue is the last chat, --resume another one: give one of them');
  const odd = allowServer.find((each) => !/^[^=]+=sha256:[0-9a-f]{64}$/.test(each));
  const form = 'NAME=sha256: and 64 digits, as a refusal prints it';
  if (odd) throw usage(`--allow-server is ${form}, not ${odd}`);
  const waitForm = `a number of seconds, 0 to ${MAX_WAIT_S}`;
  return {
    ...values,
    prompt: positionals.join(' '),
    mode: mode === undefined ? undefined : modeOf(mode), // else that of the user's settings
    wait: numberFlag('--wait', wait, waitForm, (seconds) => seconds <= MAX_WAIT_S),
    maxTurns: numberFlag('--max-turns', maxTurns, ABOVE_0, isCount),
    maxTokens: numberFlag('--max-tokens', maxTokens, ABOVE_0, isCount),
    limit: limitIn(values.maxCost),
    contextWindow: numberFlag('--context-window', contextWindow, ABOVE_0, isCount),
  };
}

/** Money, or tokens with a k or an M. */
function limitIn(text: string | undefined): Limit {
  const [, number, unit] = /^(\d+(?:\.\d+)?)([kM]?)$/.exec(text ?? '0') ?? [];
  if (number === undefined)
    throw usage(`--max-cost is dollars, or tokens such as 200k, not ${text}`);
  if (text === undefined) return {};
  if (unit === '') return { money: Number(number) };
  return { tokens: Number(number) * (unit === 'k' ? 1000 : 1_000_000) };
}

export function modeOf(word: string): Mode {
  const mode = modeNamed(word);
  if (!mode) throw usage(`--mode is one of ${MODES.join(', ')}, not ${word}`);
  return mode;
}
