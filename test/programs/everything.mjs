// Answers like @modelcontextprotocol/server-everything, as far as the package's README calls it, for
// tests without a network. test/real/package.test.ts runs the same programs against the real one.

import { createInterface } from 'node:readline';

const send = (message) => console.log(JSON.stringify({ jsonrpc: '2.0', ...message }));
const text = (...lines) => ({ content: lines.map((line) => ({ type: 'text', text: line })) });
const sum = ({ a, b }) =>
  typeof a === 'number'
    ? text(`The sum of ${a} and ${b} is ${a + b}.`)
    : { ...text('MCP error -32602: Input validation error'), isError: true };

let asks; // the call that waits for our question
const methods = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {}, resources: {}, prompts: {} },
    serverInfo: { name: 'everything', version: '0.0.0' },
  }),
  'tools/list': () => ({ tools: [{ name: 'get-sum', inputSchema: { type: 'object' } }] }),
  'resources/list': () => ({ resources: [{ uri: 'demo://a', name: 'a' }] }),
  'resources/read': ({ uri }) => ({ contents: [{ uri, text: '# Everything Server' }] }),
  'prompts/get': ({ arguments: { city } }) => ({
    messages: [{ role: 'user', content: text(`What's weather in ${city}?`).content[0] }],
  }),
  'tools/call': ({ name, arguments: args, _meta }, id) => {
    if (name === 'get-sum') return sum(args);
    if (name === 'trigger-long-running-operation') {
      const { progressToken } = _meta;
      const params = { progressToken, progress: args.steps, total: args.steps };
      send({ method: 'notifications/progress', params });
      return text('Long running operation completed.');
    }
    asks = id;
    const properties = { name: { type: 'string' } };
    const requestedSchema = { type: 'object', properties, required: ['name'] };
    send({ id: 'q', method: 'elicitation/create', params: { message: 'Who?', requestedSchema } });
    return undefined;
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params, result } = JSON.parse(line);
  if (id === 'q') send({ id: asks, result: text('Yes!', `- Name: ${result.content.name}`) });
  const answer = id === undefined || id === 'q' ? undefined : methods[method]?.(params, id);
  const isKnown = Object.hasOwn(methods, method ?? '');
  if (answer) send({ id, result: answer });
  else if (id !== undefined && method && !isKnown)
    send({ id, error: { code: -32601, message: 'Method not found' } });
}
