// What can be said behind `call`: which server, which tool, which arguments.

import { transportType, type Json } from '../../mcp.ts';
import { usage } from './exit.ts';
import { isAddress, pairs, parse } from './parse.ts';

const FLAGS = {
  json: { type: 'boolean' },
  trace: { type: 'string' },
  header: { type: 'string', short: 'H', multiple: true },
  env: { type: 'string', short: 'e', multiple: true },
  timeout: { type: 'string' },
  'allow-server': { type: 'string', multiple: true },
  'no-color': { type: 'boolean' },
} as const;
const FORMS = `write call SERVER TOOL key=value …
       call URL TOOL key=value …
       call TOOL key=value … -- COMMAND ARGS`;

export type WantedCall = {
  server: string; // its name, its address, or its command
  typed?: Json; // its configuration, unless `server` is a name in the files
  tool: string;
  words: string[]; // the arguments
  isJson: boolean;
  trace?: string;
  timeoutMs?: number;
  allowServers: string[];
};

export function readCall(args: string[]): WantedCall {
  const end = args.includes('--') ? args.indexOf('--') : args.length;
  const command = args.slice(end + 1);
  const { values, positionals } = parse(args.slice(0, end), FLAGS);
  const isCommand = end < args.length;
  if (isCommand && command.length === 0) throw usage(`there is no command after --\n${FORMS}`);
  const [server = '', tool, ...words] = isCommand ? [command[0]!, ...positionals] : positionals;
  if (tool === undefined) throw usage(`which tool, of which server?\n${FORMS}`);
  const headers = pairs(values.header ?? [], ':', '--header is "Name: value"');
  const env = pairs(values.env ?? [], '=', '--env is NAME=VALUE');
  const isRemote = !isCommand && isAddress(server);
  if (values.header && !isRemote) throw usage('--header goes with an address: call URL TOOL');
  if (values.env && !isCommand) throw usage('--env goes with a command: call TOOL -- COMMAND');
  const remote = { type: transportType({ url: server }), url: server, headers };
  const local = { command: server, args: command.slice(1), env };
  const typed = isCommand ? local : remote;
  return {
    server,
    typed: isCommand || isRemote ? typed : undefined,
    tool,
    words,
    isJson: values.json ?? false,
    trace: values.trace,
    timeoutMs: milliseconds(values.timeout),
    allowServers: values['allow-server'] ?? [],
  };
}

function milliseconds(seconds?: string): number | undefined {
  if (seconds === undefined) return undefined;
  const ms = Number(seconds) * 1000;
  if (ms > 0) return ms;
  throw usage(`--timeout is a number of seconds, not ${seconds}`);
}
