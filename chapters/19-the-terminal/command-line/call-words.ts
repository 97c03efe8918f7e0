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
  isJson: boolean;
  allowServers: string[];
};

export type WantedCall = WantedServer & {
  server: string;
  tool: string;
  trace?: string;
};

export function readCall(args: string[]): WantedCall {
  const { before, command } = atDashes(args);
  const { values, positionals } = parseFlags(before, FLAGS);
  const isCommand = before.length < args.length;
  if (isCommand && command.length === 0) throw usage(`there is no command after --\n${FORMS}`);
  const wanted = serverInWords(positionals, command, values);
  const { server = '', typed } = wanted;
  const [tool, ...words] = wanted.words;
  if (tool === undefined) throw usage(`which tool, of which server?\n${FORMS}`);
  const isRemote = !isCommand && typed !== undefined;
  if (values.header.length > 0 && !isRemote)
    throw usage('--header goes with an address: call URL TOOL');
  if (values.env.length > 0 && !isCommand)
    throw usage('--env goes with a command: call TOOL -- COMMAND');
  return { ...wanted, server, tool, words, trace: values.trace };
}

/** The three forms: SERVER WORDS, URL WORDS, and WORDS -- COMMAND ARGS. */
export function serverInWords(
  positionals: string[],
  command: string[],
  values: {
    header: string[];
    env: string[];
    timeout?: string;
    json: boolean;
    allowServer: string[];
  },
): WantedServer {
  const [program, ...args] = command;
  const { json: isJson, allowServer: allowServers } = values;
  const headers = pairs(values.header, ':', '--header is "Name: value"');
  const env = pairs(values.env, '=', '--env is NAME=VALUE');
  const seconds = numberFlag(
    '--timeout',
    values.timeout,
    'a number of seconds',
    (given) => given > 0,
  );
  const more = { timeoutMs: seconds && seconds * 1000, isJson, allowServers };
  if (program !== undefined) {
    const typed = { command: program, args, env };
    return { server: program, typed, words: positionals, ...more };
  }
  const [server, ...words] = positionals;
  if (!isUrl(server)) return { server, words, ...more };
  const typed = { type: transportType({ url: server }), url: server, headers };
  return { server, typed, words, ...more };
}
