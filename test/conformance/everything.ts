// The server that the official suite judges: ours, with the tools, resources and prompts that its scenarios call by
// name. Started with `--http PORT`, it prints its address; with nothing it speaks stdio. Not an example: see bookshelf.ts.

import { fileURLToPath, pathToFileURL } from 'node:url';
import type { ServerCall } from '../../chapters/29-a-server/server-call.ts';
import { serveHttp } from '../../chapters/29-a-server/serve-http.ts';
import {
  textBlock,
  type ServerPrompt,
  type ServerTool,
} from '../../chapters/29-a-server/protocol/server-rows.ts';
import { serveStdio } from '../../chapters/29-a-server/pipe.ts';
import { McpServer, type ServerOptions } from '../../chapters/29-a-server/server.ts';
import { skillsOf } from '../../chapters/29-a-server/server-skills.ts';
import { asObject, RpcError, type Json } from '../../mcp.ts';

const PNG =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const WAV = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=';
const TASKS = { extensions: { 'io.modelcontextprotocol/tasks': {} } };
const image = { type: 'image', data: PNG, mimeType: 'image/png' };
const embedded = (uri: string, text = 'This is an embedded resource.'): Json => ({
  type: 'resource',
  resource: { uri, mimeType: 'text/plain', text },
});
const user = (content: Json): Json => ({ role: 'user', content });
const object = (properties: Json, required: string[] = []): Json => ({
  type: 'object',
  properties,
  required,
});
const string = { type: 'string' };

/** Waits, unless the client gives up. */
const wait = (ms: number, { signal }: ServerCall) =>
  new Promise<void>((done, fail) => {
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', () => (clearTimeout(timer), fail(signal.reason)), {
      once: true,
    });
  });

const form = (message: string, properties: Json, required: string[] = []) => ({
  method: 'elicitation/create',
  params: { message, requestedSchema: object(properties, required) },
});
const nameForm = form('What is your name?', { name: string }, ['name']);
const sampling = (text: string) => ({
  method: 'sampling/createMessage',
  params: { messages: [user(textBlock(text))], maxTokens: 100 },
});
const rootsList = { method: 'roots/list', params: {} };
const said = (answer: unknown) => JSON.stringify(answer);
const nameIn = (answer?: Json) => `${asObject(answer?.content).name}`;

type Row = [name: string, run: ServerTool['run'], inputSchema?: Json];

const plain: Row[] = [
  ['test_simple_text', () => 'This is a simple text response for testing.'],
  ['test_image_content', () => ({ content: [image] })],
  [
    'test_audio_content',
    () => ({ content: [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }] }),
  ],
  ['test_embedded_resource', () => ({ content: [embedded('test://embedded-resource')] })],
  [
    'test_multiple_content_types',
    () => ({
      content: [
        textBlock('Several types of content:'),
        image,
        embedded('test://mixed-content-resource'),
      ],
    }),
  ],
  [
    'test_error_handling',
    () => Promise.reject(new Error('This tool intentionally returns an error for testing')),
  ],
  [
    'test_tool_with_progress',
    async (_, call) => {
      for (const percent of [0, 50, 100]) {
        call.progress(percent, 100, `${percent} %`);
        await wait(10, call);
      }
      return 'done';
    },
  ],
  [
    'test_tool_with_logging',
    async (_, call) => {
      for (const step of [
        'Tool execution started',
        'Tool processing data',
        'Tool execution completed',
      ]) {
        call.log('info', step);
        await wait(50, call);
      }
      return 'logged';
    },
  ],
  [
    'test_reconnection',
    async (_, call) => {
      call.hangUp();
      await wait(100, call);
      return 'the rest, after a reconnection';
    },
  ],
  [
    'test_header_parameter',
    ({ region }) => `region ${region}`,
    object({ region: { ...string, 'x-mcp-header': 'Region' } }),
  ],
  [
    'json_schema_2020_12_tool',
    (args) => said(args),
    {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      $defs: {
        address: {
          $anchor: 'addressDef',
          type: 'object',
          properties: { street: string, city: string },
        },
      },
      properties: {
        name: string,
        address: { $ref: '#/$defs/address' },
        contactMethod: { type: 'string', enum: ['phone', 'email'] },
        phone: string,
        email: string,
      },
      allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
      if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
      then: { required: ['phone'] },
      else: { required: ['email'] },
      additionalProperties: false,
    },
  ],
];

const asking: Row[] = [
  [
    'test_sampling',
    async ({ prompt }, call) => said(await call.ask({ answer: sampling(`${prompt}`) })),
    object({ prompt: string }),
  ],
  [
    'test_elicitation',
    async ({ message }, call) =>
      said(
        await call.elicit(
          `${message}`,
          object({ username: string, email: string }, ['username', 'email']),
        ),
      ),
    object({ message: string }),
  ],
  [
    'test_elicitation_sep1034_defaults',
    async (_, call) =>
      said(
        await call.elicit(
          'Please review',
          object({
            name: { ...string, default: 'John Doe' },
            age: { type: 'integer', default: 30 },
            score: { type: 'number', default: 95.5 },
            status: { ...string, enum: ['active', 'inactive', 'pending'], default: 'active' },
            verified: { type: 'boolean', default: true },
          }),
        ),
      ),
  ],
  [
    'test_elicitation_sep1330_enums',
    async (_, call) => {
      const titled = [1, 2, 3].map((n) => ({ const: `value${n}`, title: `Option ${n}` }));
      const values = ['option1', 'option2', 'option3'];
      return said(
        await call.elicit(
          'Please choose',
          object({
            untitledSingle: { ...string, enum: values },
            titledSingle: { ...string, oneOf: titled },
            legacyEnum: { ...string, enum: values, enumNames: ['One', 'Two', 'Three'] },
            untitledMulti: { type: 'array', items: { ...string, enum: values } },
            titledMulti: { type: 'array', items: { anyOf: titled } },
          }),
        ),
      );
    },
  ],
  ['test_missing_capability', (_, call) => (call.need({ sampling: {} }), 'it can')],
  [
    'test_streaming_elicitation',
    async (_, call) => {
      call.progress(1);
      return said(await call.ask({ user_name: nameForm }));
    },
  ],
  [
    'test_logging_tool',
    (_, call) => (call.log('info', 'working'), call.log('error', 'an error'), 'logged'),
  ],
  [
    'test_input_required_result_elicitation',
    async (_, call) => {
      const { user_name } = await call.ask({ user_name: nameForm });
      return `Hello, ${nameIn(user_name)}!`;
    },
  ],
  [
    'test_input_required_result_sampling',
    async (_, call) =>
      said(await call.ask({ capital: sampling('What is the capital of France?') })),
  ],
  [
    'test_input_required_result_list_roots',
    async (_, call) => said(await call.ask({ roots: rootsList })),
  ],
  [
    'test_input_required_result_request_state',
    async (_, call) => {
      await call.ask({ confirm: form('Please confirm', { ok: { type: 'boolean' } }, ['ok']) });
      return 'state-ok';
    },
  ],
  [
    'test_input_required_result_tampered_state',
    async (_, call) => {
      await call.ask({ confirm: form('Please confirm', { ok: { type: 'boolean' } }, ['ok']) });
      return 'state-ok';
    },
  ],
  [
    'test_input_required_result_multiple_inputs',
    async (_, call) =>
      said(
        await call.ask({
          user_name: nameForm,
          greeting: sampling('Write a greeting'),
          roots: rootsList,
        }),
      ),
  ],
  [
    'test_input_required_result_multi_round',
    async (_, call) => {
      const { step1 } = await call.ask({ step1: nameForm });
      const { step2 } = await call.ask({
        step2: form('Which colour?', { color: string }, ['color']),
      });
      return `${nameIn(step1)} likes ${asObject(step2!.content).color}`;
    },
  ],
  [
    'test_input_required_result_capabilities',
    async (_, call) =>
      said(
        await call.ask({
          ...(call.can('sampling') && { greeting: sampling('Write a greeting') }),
          ...(call.can('elicitation') && { user_name: nameForm }),
        }),
      ),
  ],
];

const inBackground: Row[] = [
  ['greet', ({ name }) => `Hello, ${name}!`, object({ name: string }, ['name'])],
  [
    'slow_compute',
    ({ seconds = 1, label = '' }, call) =>
      call.inBackground(async (later) => {
        await wait(Number(seconds) * 1000, later);
        return `computed ${label}`;
      }),
    object({ seconds: { type: 'number' }, label: string }),
  ],
  [
    'failing_job',
    (_, call) => {
      call.need(TASKS);
      return call.inBackground(async (later) => {
        await wait(300, later);
        throw new Error('the job failed');
      });
    },
  ],
  [
    'protocol_error_job',
    (_, call) => {
      call.need(TASKS);
      return call.inBackground(() => Promise.reject(new RpcError(-32603, 'the job broke')));
    },
  ],
  [
    'confirm_delete',
    ({ filename }, call) =>
      call.inBackground(async (later) => {
        const { confirm } = await later.ask({
          confirm: form(`Delete ${filename}?`, { confirm: { type: 'boolean' } }, ['confirm']),
        });
        return asObject(confirm!.content).confirm === true ? `deleted ${filename}` : 'kept';
      }),
    object({ filename: string }),
  ],
  [
    'multi_input',
    (_, call) =>
      call.inBackground(async (later) =>
        said(await later.ask({ first: nameForm, second: nameForm })),
      ),
  ],
  [
    'test_tool_with_task',
    async (_, call) => {
      call.need(TASKS);
      const { user_name } = await call.ask({ user_name: nameForm });
      return call.inBackground(async () => `Hello, ${nameIn(user_name)}, from a task!`);
    },
  ],
];

const prompts: ServerPrompt[] = [
  {
    name: 'test_simple_prompt',
    description: 'A prompt.',
    get: () => 'This is a simple prompt for testing.',
  },
  {
    name: 'test_prompt_with_arguments',
    description: 'A prompt with two arguments.',
    arguments: [
      {
        name: 'arg1',
        required: true,
        complete: (value) => ['paris', 'park', 'party'].filter((each) => each.startsWith(value)),
      },
      { name: 'arg2', required: true },
    ],
    get: ({ arg1, arg2 }) => `arg1 is ${arg1} and arg2 is ${arg2}`,
  },
  {
    name: 'test_prompt_with_embedded_resource',
    description: 'A prompt with a resource in it.',
    arguments: [{ name: 'resourceUri', required: true }],
    get: ({ resourceUri }) => [
      user(embedded(`${resourceUri}`)),
      user(textBlock('Please process this.')),
    ],
  },
  {
    name: 'test_prompt_with_image',
    description: 'A prompt with an image.',
    get: () => [user(image), user(textBlock('What is it?'))],
  },
  {
    name: 'test_input_required_result_prompt',
    description: 'A prompt that asks first.',
    get: async (_, call) => `For ${nameIn((await call.ask({ user_name: nameForm })).user_name)}`,
  },
];

const skills = skillsOf(fileURLToPath(new URL('../../fixtures/skills', import.meta.url)));

export function everything(options: Partial<ServerOptions> = {}): McpServer {
  const rows: Row[] = [
    ...plain,
    ...asking,
    ...inBackground,
    ['test_trigger_tool_change', () => (server.changed('tools'), 'told')],
    ['test_trigger_prompt_change', () => (server.changed('prompts'), 'told')],
  ];
  const server: McpServer = new McpServer({
    name: 'everything',
    version: '1.0.0',
    tools: rows.map(([name, run, inputSchema]) => ({
      name,
      description: `For the scenarios of ${name}.`,
      inputSchema,
      run,
    })),
    resources: [
      {
        uri: 'test://static-text',
        name: 'Static text',
        mimeType: 'text/plain',
        read: () => 'This is the content of the static text resource.',
      },
      {
        uri: 'test://static-binary',
        name: 'Static binary',
        mimeType: 'image/png',
        read: () => Buffer.from(PNG, 'base64'),
      },
      {
        uri: 'test://watched-resource',
        name: 'Watched',
        mimeType: 'text/plain',
        read: () => 'Watched.',
      },
    ],
    templates: [
      {
        uriTemplate: 'test://template/{id}/data',
        name: 'Template',
        mimeType: 'application/json',
        read: ({ id }) => JSON.stringify({ id, templateTest: true }),
        complete: { id: (value) => [`${value}1`] },
      },
      ...skills.templates,
    ],
    methods: skills.methods,
    extensions: skills.extensions,
    prompts,
    tasks: true,
    ...options,
  });
  return server;
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [mode, port] = process.argv.slice(2);
  if (mode === '--http') {
    const { url } = await serveHttp(everything(), { port: Number(port ?? 0) });
    console.log(url);
  } else {
    await serveStdio(everything());
    process.exit();
  }
}
