// Judges exercise 9: does a caller get everything that the tool gave, and tell a failed tool from a failed call?

import { isDeepStrictEqual } from 'node:util';
import type { Judge } from '../book.ts';

const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));
/** In small steps: if the machine stops us for seconds, the others still have their turns. */
async function patience(seconds: number): Promise<void> {
  for (let steps = 0; steps < seconds * 20; steps++) await pause(50);
}

export const judge: Judge = async ({ load, see, expect }) => {
  const { McpConnection, blocksToText } = await load('mcp.ts');
  const calls: any[] = []; // every request that went out
  let answer: object = {}; // what the server says next
  let say: (message: object) => void = () => {};
  const pipe = {
    start: async (events: { message: typeof say }) => void (say = events.message),
    send: async (message: any) => {
      if (message.id === undefined) return;
      calls.push(message);
      setImmediate(() => say({ jsonrpc: '2.0', id: message.id, ...answer }));
    },
    close: async () => {},
  };
  const options = { transports: { pipe: () => pipe }, onWire: see, onWarning: () => {} };
  const server = new McpConnection('demo', { type: 'pipe' }, options);
  await server.connect();
  const call = (next: object, ...rest: unknown[]) => {
    answer = next;
    return server.callTool(...rest);
  };
  const answered = (result: object) => call({ result }, 'tool');
  const text = (words: string) => ({ type: 'text', text: words });
  const image = { type: 'image', data: 'AAAA', mimeType: 'image/png' };
  const isLike = (wanted: unknown) => (came: unknown) => isDeepStrictEqual(came, wanted);

  const sum = call({ result: { content: [text('42')] } }, 'add', { a: 2, b: 40 });
  await expect(
    'a call gives its text',
    '{ text: "42", isError: false, … }',
    sum,
    (came) => came?.text === '42' && came.isError === false,
  );
  await expect(
    'the name and the arguments went out',
    '{ name: "add", arguments: { a: 2, b: 40 } } as the params of tools/call',
    calls.at(-1),
    ({ method, params } = {}) =>
      method === 'tools/call' && isLike({ name: 'add', arguments: { a: 2, b: 40 } })(params),
  );
  await expect('a call is made once', '1 request', `${calls.length} requests`, /^1 /);
  await expect(
    'a call without arguments sends an empty object',
    'arguments: {}',
    answered({ content: [text('')] }).then(() => calls.at(-1).params),
    (came) => isLike({})(came?.arguments),
  );
  const odds = { list: [null, 0], none: null, text: '', deep: { a: { b: false } } };
  await expect(
    'arguments go out as they are',
    JSON.stringify(odds),
    call({ result: { content: [] } }, 'tool', odds).then(() => calls.at(-1).params.arguments),
    isLike(odds),
  );
  await expect(
    'the blocks are kept as they came',
    'content: the text and the image',
    answered({ content: [text('42'), image] }),
    (came) => isLike([text('42'), image])(came?.content),
  );
  await expect(
    'no data, no structuredContent',
    'a result that has no key structuredContent, not even undefined',
    answered({ content: [text('42')] }),
    (came) => 'text' in came && !('structuredContent' in came),
  );
  await expect(
    'every block is in the text, by name if it is not text',
    'text: "here:", and in the next line "[image: image/png, 3 bytes]"',
    answered({ content: [text('here:'), image] }),
    (came) => came?.text === 'here:\n[image: image/png, 3 bytes]',
  );
  const odd = [
    null,
    text(''),
    text(' 42 \n'),
    7,
    'x',
    { type: 'video', url: 'v' },
    [],
    { ...text('noted'), annotations: { priority: 1 } },
  ];
  await expect(
    'odd blocks are kept as they came, too',
    `content: ${JSON.stringify(odd)}`,
    answered({ content: odd }),
    (came) => isLike(odd)(came?.content),
  );
  await expect(
    'and none is missing in the text',
    `text: ${JSON.stringify(blocksToText(odd))}, as blocksToText makes it`,
    answered({ content: odd }).then((came: any) => JSON.stringify(came?.text)),
    (came) => came === JSON.stringify(blocksToText(odd)),
  );
  const longText = `${'word '.repeat(20_000)}end`;
  await expect(
    'a long text is not cut',
    `a text of ${longText.length} characters`,
    answered({ content: [text(longText)] }).then((came: any) => `${came?.text}`.length),
    (came) => came === longText.length,
  );
  await expect(
    'the text is not trimmed',
    'text: "  42 \\n"',
    answered({ content: [text('  42 \n')] }).then((came: any) => JSON.stringify(came?.text)),
    (came) => came === '"  42 \\n"',
  );

  await expect(
    'a tool that failed is a result',
    'no exception, but { text: "no", isError: true, … }',
    answered({ content: [text('no')], isError: true }),
    (came) => came?.isError === true && came.text === 'no' && !(came instanceof Error),
  );
  await expect(
    'isError: "true" means the same',
    'isError: true',
    answered({ content: [], isError: 'true' }),
    (came) => came?.isError === true,
  );
  for (const isError of [
    'false',
    0,
    1,
    null,
    {},
    'TRUE',
    ' true',
    ['true'],
    [true],
    { toString: null },
  ])
    await expect(
      `isError: ${JSON.stringify(isError)} does not`,
      'isError: false, the boolean',
      answered({ content: [], isError }),
      (came) => came?.isError === false,
    );
  const refusal = { error: { code: -32602, message: 'Unknown tool: subtract' } };
  await expect(
    'a call that the server refuses is an exception',
    'a RpcError with the code -32602',
    call(refusal, 'subtract', {}),
    (came) => came instanceof Error && (came as any).code === -32602,
  );
  const before = calls.length;
  await call(refusal, 'subtract', {}).catch(() => {});
  await expect('and is not made again', '1 request', `${calls.length - before} requests`, /^1 /);
  const unanswered = await Promise.race([
    call({ id: 'another' }, 'sleep', {}, { timeoutMs: 200 }).catch((error: Error) => error),
    patience(2.5).then(() => 'nothing, in 2.5 s'),
  ]);
  await expect(
    'a call may have its own limit',
    'an end after 200 ms: the options go along',
    unanswered,
    (came) => came !== 'nothing, in 2.5 s',
  );
  await expect(
    'a call that gets no answer is an exception',
    'a McpError of kind "timeout"',
    unanswered,
    (came) => came?.kind === 'timeout',
  );

  const given = {
    timeoutMs: 1000,
    signal: new AbortController().signal,
    headers: { 'x-colour': 'blue' },
    onProgress: () => {},
  };
  let wentAlong: object = {};
  const request = server.request.bind(server);
  server.request = (method: string, params: object, options: object) => (
    (wentAlong = options ?? {}), request(method, params, options)
  );
  await expect(
    'all the options go along',
    'a request with the timeoutMs, signal, headers and onProgress that callTool was given',
    call({ result: { content: [] } }, 'tool', {}, given).then(() => wentAlong),
    (came) => Object.entries(given).every(([key, value]) => came?.[key] === value),
  );
  server.request = request;

  await expect(
    'a result may be without blocks',
    'no exception',
    answered({ structuredContent: { sum: 42 } }),
    (came) => !(came instanceof Error),
  );
  await expect(
    'data without blocks becomes the text',
    'text: \'{"sum":42}\'',
    answered({ structuredContent: { sum: 42 } }),
    (came) => came?.text === '{"sum":42}',
  );
  await expect(
    'and is kept',
    'structuredContent: { sum: 42 }, and content: []',
    answered({ structuredContent: { sum: 42 } }),
    (came) => isLike({ sum: 42 })(came?.structuredContent) && isLike([])(came.content),
  );
  const long = { rows: Array.from({ length: 100 }, (_, row) => ({ row, words: ' long ' })) };
  await expect(
    'also if it is long',
    `a text of ${JSON.stringify(long).length} characters, the JSON of the data`,
    answered({ structuredContent: long }),
    (came) => came?.text === JSON.stringify(long) && isLike(long)(came.structuredContent),
  );
  await expect(
    'also beside a list of blocks that is empty',
    'text: \'{"sum":42}\'',
    answered({ content: [], structuredContent: { sum: 42 } }),
    (came) => came?.text === '{"sum":42}',
  );
  await expect(
    'data beside blocks is kept, and not said twice',
    'text: "42", and structuredContent: { sum: 42 }',
    answered({ content: [text('42')], structuredContent: { sum: 42 } }),
    (came) => came?.text === '42' && came.structuredContent?.sum === 42,
  );
  await expect(
    'not even if the blocks have no words',
    'text: ""',
    answered({ content: [text('')], structuredContent: { sum: 42 } }),
    (came) => came?.text === '',
  );
  for (const data of [null, 0, false, ''])
    await expect(
      `data may be ${JSON.stringify(data)}`,
      `structuredContent: ${JSON.stringify(data)}, and text: '${JSON.stringify(data)}'`,
      answered({ structuredContent: data }),
      (came) => came?.structuredContent === data && came.text === JSON.stringify(data),
    );
  await expect(
    'the old name of data is toolResult',
    'structuredContent: { sum: 42 }',
    answered({ toolResult: { sum: 42 } }),
    (came) => came?.structuredContent?.sum === 42 && came.text === '{"sum":42}',
  );
  await expect(
    'the new name counts, where both are there',
    'structuredContent: null, not the toolResult',
    answered({ structuredContent: null, toolResult: 'old' }),
    (came) => came?.structuredContent === null,
  );
  await expect(
    'a result with nothing in it is empty',
    '{ text: "", content: [], isError: false }',
    answered({}),
    (came) => came?.text === '' && isLike([])(came.content) && came.isError === false,
  );
  await expect(
    'content: null counts as none',
    '{ text: "", content: [], isError: false }',
    answered({ content: null }),
    (came) => came?.text === '' && isLike([])(came.content),
  );
  for (const content of ['done', { type: 'text', text: 'done' }, 0, ''])
    await expect(
      `content: ${JSON.stringify(content)} is no list, and an error of this call`,
      'a McpError of kind "protocol"',
      answered({ content }),
      (came) => came?.kind === 'protocol',
    );

  const real = new McpConnection(
    'calculator',
    { command: 'node', args: ['fixtures/server.mjs'] },
    { onWire: see },
  );
  await real.connect();
  await real.initialize();
  await expect(
    'and with a real server',
    'the calculator says 42',
    real.callTool('add', { a: 2, b: 40 }),
    (came) => came?.text === '42',
  );
};
