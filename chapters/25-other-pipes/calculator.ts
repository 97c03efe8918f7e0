// calculator.ts: the server of fixtures/server.mjs as a function over a transport. It answers in both eras: with a
// handshake, and without one.

import { asObject, isObject, REVISIONS, RpcError, textOf, type Json, type Transport } from '../../mcp.ts';
import { VERSION_KEY } from '../20-streamable-http/headers.ts';
import { STATELESS } from '../22-no-handshake/era.ts';

const number = { type: 'number' };
const tools = [
  {
    name: 'add',
    description: 'Adds two numbers.',
    inputSchema: { type: 'object', properties: { a: number, b: number }, required: ['a', 'b'] },
    run: ({ a, b }: Json) => (Number.isFinite(a) && Number.isFinite(b) ? `${Number(a) + Number(b)}` : undefined),
    hint: 'a and b must be numbers',
  },
  {
    name: 'greet',
    description: 'Greets somebody by name.',
    inputSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
    run: ({ name }: Json) => (typeof name === 'string' && name ? `Hello, ${name}!` : undefined),
    hint: 'name is missing',
  },
];
const self = { capabilities: { tools: {} }, serverInfo: { name: 'calculator-and-greeter', version: '1.0.0' } };
const cache = { ttlMs: 0, cacheScope: 'public' };

const methods = new Map<unknown, (params: Json) => Json>([
  ['initialize', ({ protocolVersion: theirs }) => {
    return { ...self, protocolVersion: REVISIONS.find((ours) => ours === theirs) ?? REVISIONS[0] };
  }],
  ['server/discover', () => ({
    supportedVersions: STATELESS,
    capabilities: self.capabilities,
    _meta: { 'io.modelcontextprotocol/serverInfo': self.serverInfo },
    ...cache,
  })],
  ['ping', () => ({})],
  ['tools/list', () => ({ tools: tools.map(({ run, hint, ...tool }) => tool), ...cache })],
  ['tools/call', ({ name, arguments: args }) => {
    const tool = tools.find((each) => each.name === name);
    if (!tool) throw new RpcError(-32602, `Unknown tool: ${name}`);
    const text = tool.run(asObject(args));
    // The tool failed, but the call did not: the reason is for the model, which may try again.
    return { content: [{ type: 'text', text: text ?? tool.hint }], ...(text === undefined && { isError: true }) };
  }],
]);

function answer(method: unknown, params: Json): Json {
  const { [VERSION_KEY]: version } = asObject(params._meta);
  if (version !== undefined && !STATELESS.includes(`${version}`))
    throw new RpcError(-32022, 'Unsupported protocol version', { supported: STATELESS, requested: version });
  const run = methods.get(method);
  if (!run) throw new RpcError(-32601, `Method not found: ${method}`);
  return version === undefined ? run(params) : { resultType: 'complete', ...run(params) };
}

export function calculator(transport: Transport): void {
  const reply = (message: Json) => transport.send({ jsonrpc: '2.0', ...message }).catch(() => {}); // nobody waits
  void transport.start({
    message(message) {
      if (!isObject(message) || message.id === undefined) return; // to a notification there is no answer
      const { id, method, params } = message as { id: number; method: unknown; params: unknown };
      try {
        void reply({ id, result: answer(method, asObject(params)) });
      } catch (error) {
        const { code, data } = error instanceof RpcError ? error : { code: -32603, data: undefined };
        void reply({ id, error: { code, message: textOf(error), data } });
      }
    },
    closed() {},
  });
}
