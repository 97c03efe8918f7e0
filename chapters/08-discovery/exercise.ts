// Judges exercise 8: does the list hold everything that is on the pages, and does the search end?

import type { Judge } from '../book.ts';

type Page = (cursor: unknown, page: number) => unknown;
const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));
/** In small steps: if the machine stops us for seconds, the others still have their turns. */
async function patience(seconds: number): Promise<void> {
  for (let steps = 0; steps < seconds * 20; steps++) await pause(50);
}

export const judge: Judge = async ({ load, see, expect }) => {
  const { McpConnection } = await load('mcp.ts');
  /** A server without a process. `page` makes the result of a tools/list, or throws the error. */
  const open = async (page: Page, onWire = see) => {
    const asked: any[] = []; // the parameters of every request for a page
    const methods = new Set<string>();
    let say: (message: object) => void = () => {};
    const pipe = {
      start: async (events: { message: typeof say }) => void (say = events.message),
      send: async ({ id, method, params }: any) => {
        if (!/^(tools|prompts)\/list$/.test(method)) return;
        methods.add(method);
        asked.push(params);
        setImmediate(async () => {
          try {
            say({ jsonrpc: '2.0', id, result: await page(params?.cursor, asked.length) });
          } catch (error) {
            say({ jsonrpc: '2.0', id, error });
          }
        });
      },
      close: async () => {},
    };
    const options = { transports: { pipe: () => pipe }, onWire, onWarning: () => {} };
    const connection = new McpConnection('demo', { type: 'pipe' }, options);
    await connection.connect();
    return { connection, asked, methods };
  };
  const inTime = (list: Promise<unknown>, s = 4): Promise<any> =>
    Promise.race([
      list.catch((error: Error) => error),
      patience(s).then(() => `nothing, in ${s} seconds`),
    ]);
  const listAll = async (
    page: Page,
    { limit = 15_000, key = 'tools', onWire = see, s = 4 } = {},
  ) => {
    const { connection, asked } = await open(page, onWire);
    connection.options.handshakeTimeoutMs = limit;
    return { asked, came: await inTime(connection.listAll('tools/list', key), s) };
  };
  const large = { onWire: () => {}, limit: 60_000, s: 25 }; // a slow machine may take its time
  const tool = (name: string) => ({ name, inputSchema: { type: 'object' } });
  const names = (came: any) =>
    Array.isArray(came) ? came.map((item) => item?.name).join(' ') || 'none' : came;
  const seen = ({ came, asked }: { came: unknown; asked: unknown[] }) =>
    `${names(came)}, requests: ${asked.length}`;
  const count = (came: any) => (Array.isArray(came) ? `${came.length} items` : came);
  const hasKind = (kind: string) => (came: any) => came?.kind === kind;

  const one = await listAll(() => ({ tools: [tool('add'), tool('greet')] }));
  await expect(
    'one page is a list',
    'the tools add and greet, after one request',
    seen(one),
    /^add greet, requests: 1$/,
  );
  await expect(
    'its items are as they came',
    'add with its inputSchema',
    one.came[0],
    (came) => came?.inputSchema?.type === 'object',
  );
  await expect(
    'the first request has no cursor',
    'no parameters',
    one.asked[0] ?? 'none',
    (came) => came === 'none' || !('cursor' in came),
  );

  const five = await listAll((_, page) => ({
    tools: [tool(`t${page}`)],
    ...(page < 5 && { nextCursor: `c${page}` }),
  }));
  await expect(
    'all pages are read',
    'the tools t1 t2 t3 t4 t5, one from each of five pages, in their order',
    names(five.came),
    /^t1 t2 t3 t4 t5$/,
  );
  await expect(
    'each request after the first carries the cursor of the answer before',
    '"c1", "c2", "c3", "c4"',
    five.asked
      .slice(1)
      .map((params) => params?.cursor)
      .join(),
    /^c1,c2,c3,c4$/,
  );
  for (const cursor of ['', 0, false]) {
    const { came, asked } = await listAll((_, page) =>
      page === 1 ? { tools: [tool('one')], nextCursor: cursor } : { tools: [tool('two')] },
    );
    await expect(
      `${JSON.stringify(cursor)} is a cursor`,
      `the tools one and two: nextCursor was ${JSON.stringify(cursor)}`,
      names(came),
      /^one two$/,
    );
    await expect(
      `and ${JSON.stringify(cursor)} is handed back as it came`,
      `{ cursor: ${JSON.stringify(cursor)} }`,
      asked[1],
      (params) => params?.cursor === cursor,
    );
  }
  const none = await listAll(() => ({ tools: [tool('one')], nextCursor: null }));
  await expect('null is none', 'the tool one, after one request', seen(none), /^one, requests: 1$/);
  const bare = await listAll((_, page) =>
    page === 1 ? { tools: [], nextCursor: 'more' } : { tools: [tool('one')] },
  );
  await expect(
    'an empty page is not the end',
    'the tool one, from the second page',
    names(bare.came),
    /^one$/,
  );

  const items = [null, 7, { name: 'good' }, { name: 8 }, 7, { name: 'good' }, [], ''];
  const odd = await listAll(() => ({ tools: items }));
  await expect(
    'odd items are not judged here',
    `all of them, as they came: ${JSON.stringify(items)}`,
    odd.came,
    (came) => JSON.stringify(came) === JSON.stringify(items),
  );
  const { connection } = await open((_, page) =>
    page === 1 ? { tools: [1, tool('one')], nextCursor: 'next' } : { tools: [2, tool('two')] },
  );
  await expect(
    'so listTools finds what is good on all pages',
    'the tools one and two',
    names(await inTime(connection.listTools())),
    /^one two$/,
  );
  await expect(
    'and names what it leaves out',
    'a warning that shows both the 1 of the first page and the 2 of the second',
    [...connection.warnings.values()].join('\n'),
    /1[^]*2/,
  );
  const many = Array.from({ length: 300_000 }, (_, n) => n);
  const long = await listAll(() => ({ tools: many }), large);
  await expect('a page may be long', '300000 items', count(long.came), /^300000 items$/);

  const text = await listAll(() => ({ tools: 'none' }));
  await expect(
    'a list that is no list is an error',
    'a McpError of kind "protocol"',
    text.came,
    hasKind('protocol'),
  );
  const later = await listAll((_, page) => (page === 1 ? { tools: [], nextCursor: 'more' } : {}));
  await expect(
    'also on a later page',
    'a McpError of kind "protocol"',
    later.came,
    hasKind('protocol'),
  );
  const other = await listAll(() => ({ tools: [] }), { key: 'prompts' });
  await expect(
    'the list is looked for under `key`',
    'a McpError of kind "protocol": this page has "tools", and "prompts" was wanted',
    other.came,
    hasKind('protocol'),
  );
  const prompts = await open((_, page) => ({
    prompts: [page],
    ...(page < 3 && { nextCursor: page }),
  }));
  const listed = await inTime(prompts.connection.listAll('prompts/list', 'prompts'));
  await expect(
    'each page is requested by `method`',
    'three prompts, by prompts/list',
    `${count(listed)}, by ${[...prompts.methods].join(' and ')}`,
    /^3 items, by prompts\/list$/,
  );
  const refused = await listAll((_, page) => {
    if (page === 2) throw { code: -32000, message: 'I am tired.' };
    return { tools: [tool('one')], nextCursor: 'more' };
  });
  await expect(
    'no half list is returned',
    'the RpcError of the second page',
    refused.came,
    (came) => came instanceof Error && (came as any).code === -32000,
  );

  const circle = await listAll((_, page) => ({ tools: [], nextCursor: ['a', 'b', 'a'][page - 1] }));
  await expect(
    'a cursor that comes twice is an error',
    'a McpError of kind "protocol", after the cursors "a", "b", "a"',
    circle.came,
    hasKind('protocol'),
  );
  await expect(
    'and is not followed',
    'three requests: the first, and one each for "a" and "b"',
    `${circle.asked.length} requests`,
    /^3/,
  );
  const alike = await listAll((_, page) => ({
    tools: [tool(`t${page}`)],
    nextCursor: [1, '1', 'null', '', 0, 'false'][page - 1],
  }));
  await expect(
    'cursors that only look alike are different',
    'the tools t1 to t7, after the cursors 1, "1", "null", "", 0 and "false"',
    names(alike.came),
    /^t1 t2 t3 t4 t5 t6 t7$/,
  );
  const slow = await listAll(
    async (_, page) => (await pause(200), { tools: [], nextCursor: `${page}` }),
    { limit: 700 },
  );
  await expect(
    'all pages together have one limit, handshakeTimeoutMs',
    'a McpError of kind "timeout" after 700 ms, though each page comes in 200 ms',
    slow.came,
    hasKind('timeout'),
  );

  const pages = (last: number) => (_: unknown, page: number) => ({
    tools: [page],
    ...(page < last && { nextCursor: `${page}` }),
  });
  const full = await listAll(pages(1000), large);
  await expect(
    '1000 pages (MAX_PAGES) are allowed',
    '1000 items',
    count(full.came),
    /^1000 items$/,
  );
  const over = await listAll(pages(1001), large);
  await expect(
    'and more than MAX_PAGES are not',
    'a McpError of kind "limit"',
    count(over.came),
    hasKind('limit'),
  );
  const block = 'x'.repeat(2 ** 23); // eight of them are MAX_LIST, and a little more
  const heavy = await listAll(
    (_, page) => ({ tools: [block], ...(page < 9 && { nextCursor: `${page}` }) }),
    large,
  );
  await expect(
    'the size of all pages together is bounded (MAX_LIST)',
    'a McpError of kind "limit": nine pages of 8 Mi characters',
    count(heavy.came),
    hasKind('limit'),
  );
  const half = 'x'.repeat(2 ** 22);
  const wide = await listAll(
    (_, page) => ({ tools: [], note: half, ...(page < 10 && { nextCursor: `${page}${half}` }) }),
    large,
  );
  await expect(
    'a page counts as a whole, with its cursor and all other keys',
    'a McpError of kind "limit": ten pages, each with a cursor of 4 MiB, and as much under a key that we do not know',
    count(wide.came),
    hasKind('limit'),
  );
  const words = 'ü'.repeat(2 ** 23); // twice as many bytes
  const allowed = await listAll(
    (_, page) => ({ tools: [words], ...(page < 7 && { nextCursor: `${page}` }) }),
    large,
  );
  await expect(
    'and what is smaller is allowed',
    '7 items: seven pages of 8 Mi characters, whatever they are in bytes',
    count(allowed.came),
    /^7 items$/,
  );

  const real = new McpConnection(
    'calculator',
    { command: 'node', args: ['fixtures/server.mjs', '--page', '1'] },
    { onWire: see },
  );
  await real.connect();
  await real.initialize();
  await expect(
    'and with a real server',
    'the tools add and greet of the calculator',
    inTime(real.listAll('tools/list', 'tools')).then(names),
    /^add greet$/,
  );
};
