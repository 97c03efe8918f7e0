// Chapter 18: the sum over two wires, spoken by a tiny server on this machine, and then without any.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import * as program from '../../agent.ts';
import { McpManager, type Json, type ServerEntry } from '../../mcp.ts';

type Reply = { status?: number; headers?: Record<string, string>; lines: string[] };
const replies: Reply[] = [];
let last = '';
const server = createServer(async (request, response) => {
  let body = '';
  for await (const piece of request.setEncoding('utf8')) body += piece;
  console.log(`→ POST ${request.url} ${body === last ? '(the same again)' : body}`);
  last = body;
  const {
    status = 200,
    headers = { 'content-type': 'text/event-stream' },
    lines,
  } = replies.shift()!;
  const isWhole = status === 200 && !JSON.parse(body).stream;
  const said = isWhole ? [JSON.stringify({ content: wholeOf(lines) })] : lines;
  console.log([`← ${status}`, ...said].join('\n← '));
  response.writeHead(status, headers).end(said.map((line) => `${line}\n\n`).join(''));
});
/** The same answer for a model that does not want a stream. */
function wholeOf(lines: string[]): Json[] {
  const blocks: any[] = [];
  for (const line of lines.filter((each) => each.startsWith('data: '))) {
    const { type, index, content_block, delta } = JSON.parse(line.slice(6));
    if (type === 'content_block_start') blocks[index] = { ...content_block };
    if (delta?.type === 'text_delta') blocks[index].text += delta.text;
    if (delta?.type === 'input_json_delta')
      blocks[index].json = (blocks[index].json ?? '') + delta.partial_json;
  }
  return blocks.map(({ json, ...block }) => (json ? { ...block, input: JSON.parse(json) } : block));
}
await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

const number = { type: 'number' };
const tools = [
  {
    name: 'add',
    description: 'Adds two numbers.',
    inputSchema: { type: 'object', properties: { a: number, b: number } },
  },
];
const turns: program.Turn[] = [{ role: 'user', text: 'How much is 2 and 40?' }];
const query = async (model: program.Model, ...said: Reply[]) => {
  replies.push(...said);
  for await (const event of model.query({
    system: 'You add.',
    turns,
    tools,
    signal: AbortSignal.timeout(4000),
  })) {
    console.log(
      `  ${JSON.stringify(event, (key, value) => (key === 'native' ? undefined : value))}`,
    );
    if (event.type === 'end') return event.turn;
  }
  throw new Error('no end');
};
const data = (value: Json) => `data: ${JSON.stringify(value)}`;
const delta = (index: number, piece: Json) =>
  data({ type: 'content_block_delta', index, delta: piece });
const begin = (index: number, block: Json) =>
  data({ type: 'content_block_start', index, content_block: block });
const end = (why: string) => [
  data({ type: 'message_delta', delta: { stop_reason: why }, usage: { output_tokens: 9 } }),
  data({ type: 'message_stop' }),
];

const { Anthropic } = await import('./anthropic.ts');
await withMessages(new Anthropic({ model: 'demo', key: 'no-real-key', baseUrl: url }));
if ('chooseModel' in program) await withMinds();

async function withMessages(anthropic: program.Model): Promise<void> {
  console.log('The Messages API:');
  turns.push(
    await query(anthropic, {
      lines: [
        begin(0, { type: 'text', text: '' }),
        delta(0, { type: 'text_delta', text: 'I add ' }),
        ': a comment, to keep the line open',
        delta(0, { type: 'text_delta', text: 'them.' }),
        begin(1, { type: 'tool_use', id: 'toolu_1', name: 'add', input: {} }),
        delta(1, { type: 'input_json_delta', partial_json: '{"a":2,' }),
        delta(1, { type: 'input_json_delta', partial_json: '"b":40}' }),
        ...end('tool_use'),
      ],
    }),
  );

  console.log('\nThe result goes back. The server is busy at first:');
  turns.push({
    role: 'tools',
    results: [
      { id: 'toolu_1', name: 'add', blocks: [{ type: 'text', text: '42' }], isError: false },
    ],
  });
  const busy = {
    status: 529,
    headers: { 'retry-after-ms': '100' },
    lines: ['{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'],
  };
  const answer = { lines: [begin(0, { type: 'text', text: 'It is 42.' }), ...end('end_turn')] };
  await query(anthropic, busy, answer).catch((error) => console.log(`  ${error}`));
}

async function withMinds(): Promise<void> {
  console.log('\nThe same conversation, as chat completions:');
  const openai = program.chooseModel('openai/demo', { baseUrl: `${url}/v1`, env: {} });
  const piece = (value: Json) => data({ choices: [{ index: 0, ...value }] });
  await query(openai, {
    lines: [
      piece({ delta: { content: 'It is ' } }),
      piece({ delta: { content: '42.' } }),
      piece({ delta: {}, finish_reason: 'stop' }),
      'data: [DONE]',
    ],
  });

  console.log('\nNo key, no network: rehearsal.');
  const config = { command: 'node', args: ['fixtures/server.mjs'], cwd: process.cwd() };
  const entry: ServerEntry = {
    name: 'calculator',
    config,
    scope: 'user',
    authority: 'user',
    file: 'demo.ts',
  };
  const onWire = (direction: string, message: unknown) =>
    /tools\/call|content/.test(JSON.stringify(message)) &&
    console.log(direction === 'out' ? '→' : '←', JSON.stringify(message));
  const mcp = new McpManager({ load: () => new Map([['calculator', entry]]), onWire });
  const agent = new program.Agent({
    model: program.chooseModel('rehearsal'),
    mcp,
    gate: async () => ({ allowed: true }),
    resultsFolder: 'results',
  });
  for (const prompt of ['hello', 'add', 'a=2 b=40', 'add 2 and 40 then greet Ada']) {
    console.log(`> ${prompt}`);
    console.log((await agent.chat(prompt)).text.replace(/^(?=.)/gm, '  '));
  }
}
