// client.ts: how the judge uses a client: by the names of mcp.ts, as far as the client has them.

import { holds, soon, type Bench, type Command } from './bench.ts';

export type Opened = { connection: any; warnings: string[] };

/** A connection to a server that has been started, without a handshake. */
export async function connect(bench: Bench, config: object, options = {}): Promise<Opened> {
  const warnings: string[] = [];
  const { McpConnection } = bench.subject;
  const onWarning = (warning: string) => warnings.push(warning);
  const connection = new McpConnection('judge', config, { onWarning, ...options });
  bench.later(() => connection.close?.()); // the programs of the first chapters cannot
  await soon(connection.connect(), 'connect() to end');
  return { connection, warnings };
}

/** The same, after the handshake. */
export async function open(bench: Bench, config: object, options = {}): Promise<Opened> {
  const opened = await connect(bench, config, options);
  await soon(opened.connection.initialize(), 'initialize() to end');
  return opened;
}

/** Calls a tool by `request` alone, and returns its text. */
export async function callText(connection: any, name: string, args = {}, options?: object) {
  const params = { name, arguments: args };
  const call = connection.request('tools/call', params, options);
  return textIn(await soon(call, `an answer to tools/call ${name}`));
}

export function textIn(result: any): string {
  const text = result?.content?.[0]?.text;
  holds(typeof text === 'string', 'a result with a block of text', result);
  return text;
}

/** All messages that have reached fixtures/habits.mjs. */
export async function heard(connection: any): Promise<any[]> {
  return JSON.parse(await callText(connection, 'log'));
}

/** A pipe to a server, before there are ids: by the transport, where the client has one. */
export async function pipe(bench: Bench, config: Command) {
  const { StdioTransport } = bench.subject;
  if (!StdioTransport) return pipeOf(await connect(bench, config));
  const transport = new StdioTransport('judge', config, 64 * 2 ** 20);
  const messages: any[] = [];
  bench.later(() => transport.close?.());
  const events = { message: (each: unknown) => messages.push(each), closed() {}, dropped() {} };
  await soon(transport.start(events), 'start() to end');
  let lastId = 0;
  const request = async (method: string, params?: object): Promise<any> => {
    const id = ++lastId;
    await soon(transport.send({ jsonrpc: '2.0', id, method, params }), 'send() to end');
    const answer = () => messages.find((message) => message?.id === id && message.result);
    while (!answer()) await new Promise((done) => setTimeout(done, 5));
    return answer().result;
  };
  return withLimit(request);
}

const pipeOf = ({ connection }: Opened) =>
  withLimit((method, params) => connection.request(method, params));

function withLimit(request: (method: string, params?: object) => Promise<any>) {
  const limited = (method: string, params?: object) =>
    soon(request(method, params), `an answer to ${method}`);
  const call = async (name: string, args = {}) =>
    textIn(await limited('tools/call', { name, arguments: args }));
  return { request: limited, call };
}
