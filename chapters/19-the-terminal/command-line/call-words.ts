// What can be said behind `call`: which server, which tool, which arguments.

import { transportType, type Json } from '../../../mcp.ts';
import { usage } from '../exit.ts';
import {
  atDashes,
  FLAG,
  isUrl,
  numberFlag,
  pairs,
  parseFlags,
  TEXT_FLAG,
  TEXTS_FLAG,
} from './parse.ts';

/** Of every command that talks to one server. */
export const SERVER_FLAGS = {
  json: FLAG,
  header: { ...TEXTS_FLAG, short: 'H' },
  env: { ...TEXTS_FLAG, short: 'e' },
  timeout: TEXT_FLAG,
  'allow-server': TEXTS_FLAG,
  'no-color': FLAG,
} as const;
const FLAGS = { ...SERVER_FLAGS, trace: TEXT_FLAG } as const;
const FORMS = `write call SERVER TOOL key=value …
       call URL TOOL key=value …
       call TOOL key=value … -- COMMAND ARGS`;

export type WantedServer = {
  server?: string; // its name, its address, or its command
  typed?: Json; // its configuration, unless `server` is a name in the files
  words: string[]; // behind it
  timeoutMs?: number;
};

export type WantedCall = WantedServer & {
  server: string;
  tool: string;
  words: string[]; // the arguments
  isJson: boolean;
  trace?: string;
  allowServers: string[];
};

export function readCall(args: string[]): WantedCall {
  const { before, command } = atDashes(args);
  const { values, positionals } = parseFlags(before, FLAGS);
  const isCommand = before.length < args.length;
  if (isCommand && command.length === 0) throw usage(`there is no command after --\n${FORMS}`);
  const { server = '', typed, words, timeoutMs } = serverInWords(positionals, command, values);
  const [tool, ...given] = words;
  if (tool === undefined) throw usage(`which tool, of which server?\n${FORMS}`);
  const isRemote = !isCommand && typed !== undefined;
  if (values.header.length > 0 && !isRemote)
    throw usage('--header goes with an address: call URL TOOL');
  if (values.env.length > 0 && !isCommand)
    throw usage('--env goes with a command: call TOOL -- COMMAND');
  return {
    server,
    typed,
    tool,
    words: given,
    isJson: values.json,
    trace: values.trace,
    timeoutMs,
    allowServers: values.allowServer,
  };
}

/** The three forms: SERVER WORDS, URL WORDS, and WORDS -- COMMAND ARGS. */
export function serverInWords(
  positionals: string[],
  command: string[],
  values: { header: string[]; env: string[]; timeout?: string },
): WantedServer {
  const [program, ...args] = command;
  const headers = pairs(values.header, ':', '--header is "Name: value"');
  const env = pairs(values.env, '=', '--env is NAME=VALUE');
  const seconds = numberFlag(
    '--timeout',
    values.timeout,
    'a number of seconds',
    (given) => given > 0,
  );
  const timeoutMs = seconds && seconds * 1000;
  if (program !== undefined) {
    const typed = { command: program, args, env };
    return { server: program, typed, words: positionals, timeoutMs };
  }
  const [server, ...words] = positionals;
  if (!isUrl(server)) return { server, words, timeoutMs };
  const typed = { type: transportType({ url: server }), url: server, headers };
  return { server, typed, words, timeoutMs };
}
