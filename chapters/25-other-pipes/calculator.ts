// calculator.ts: the server of fixtures/server.mjs as a function over a transport. It answers in
// both eras: with a handshake, and without one.

import {
  asObject,
  asRefusal,
  REVISIONS,
  RpcError,
  textOf,
  type Id,
  type Json,
  type Transport,
} from '../../mcp.ts';
import { UNSUPPORTED_VERSION, VERSION_KEY } from '../20-streamable-http/mirrored-headers.ts';
import { SERVER_INFO_KEY, STATELESS } from '../22-no-handshake/era.ts';

const NUMBER = { type: 'number' };
const STRING = { type: 'string' };
const CACHING = { ttlMs: 0, cacheScope: 'public' }; // the later era: how long to keep it
const capabilities = { tools: {} };
const serverInfo = { name: 'calculator-and-greeter', version: '1.0.0' };

/** What `run` returns is the answer. It throws if the arguments are wrong. */
type CalculatorTool = { definition: Json; run: (args: Json) => string };

const tools: CalculatorTool[] = [
  {
    definition: {
      name: 'add',
      description: 'Adds two numbers.',
      inputSchema: {
        type: 'object',
        properties: { a: NUMBER, b: NUMBER },
        required: ['a', 'b'],
      },
    },
    run: ({ a, b }) => {
      if (![a, b].every(Number.isFinite)) throw new Error('a and b must be numbers');
      return `${Number(a) + Number(b)}`;
    },
  },
  {
    definition: {
      name: 'greet',
      description: 'Greets somebody by name.',
      inputSchema: {
        type: 'object',
        properties: { name: STRING },
        required: ['name'],
      },
    },
    run: ({ name }) => {
      if (typeof name !== 'string' || name === '') throw new Error('name is missing');
      return `Hello, ${name}!`;
    },
  },
];

const methods = new Map<unknown, (params: Json) => Json>([
  ['initialize', initialize],
  ['server/discover', discover],
  ['ping', () => ({})],
  ['tools/list', listTools],
  ['tools/call', callTool],
]);

function initialize({ protocolVersion: theirs }: Json): Json {
  const protocolVersion = REVISIONS.find((ours) => ours === theirs) ?? REVISIONS[0];
  return { protocolVersion, capabilities, serverInfo };
}

function discover(): Json {
  const _meta = { [SERVER_INFO_KEY]: serverInfo };
  return { supportedVersions: STATELESS, capabilities, _meta, ...CACHING };
}

function listTools(): Json {
  const definitions = tools.map(({ definition }) => definition);
  return { tools: definitions, ...CACHING };
}

function callTool({ name, arguments: args }: Json): Json {
  const tool = tools.find(({ definition }) => definition.name === name);
  if (!tool) throw new RpcError(-32602, `Unknown tool: ${name}`);
  try {
    return { content: [{ type: 'text', text: tool.run(asObject(args)) }] };
  } catch (error) {
    // The tool failed, but the call did not: the reason is for the model, which may try again.
    return { content: [{ type: 'text', text: textOf(error) }], isError: true };
  }
}

function answer(method: unknown, params: Json) {
  const { [VERSION_KEY]: version } = asObject(params._meta);
  const isHandshakeEra = version === undefined;
  if (!isHandshakeEra && !STATELESS.includes(`${version}`)) {
    const both = { supported: STATELESS, requested: version };
    throw new RpcError(UNSUPPORTED_VERSION, 'Unsupported protocol version', both);
  }
  const run = methods.get(method);
  if (!run) throw new RpcError(-32601, `Method not found: ${method}`);
  const result = run(params);
  return isHandshakeEra ? result : { resultType: 'complete', ...result };
}

export function calculator(transport: Transport): void {
  const reply = (id: Id, outcome: Json) => {
    const sent = transport.send({ jsonrpc: '2.0', id, ...outcome });
    sent.catch(() => {}); // the client may be gone
  };
  void transport.start({
    message(message) {
      const { id, method, params } = asObject(message);
      if (id === undefined) return; // a notification gets no answer
      try {
        reply(id as Id, { result: answer(method, asObject(params)) });
      } catch (error) {
        reply(id as Id, { error: asRefusal(error) });
      }
    },
    closed() {},
  });
}
