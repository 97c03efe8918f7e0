// Judges exercise 8: does the list hold all good tools, and does the search for them end?

import type { Judge } from '../book.ts';

export const judge: Judge = async ({ load, see, expect }) => {
  const { McpConnection } = await load('mcp.ts');
  const list = async (args: string[], options = {}) => {
    const asked: any[] = []; // the parameters of every tools/list
    const onWire = (direction: string, message: any) => {
      see(direction, message);
      if (message.method === 'tools/list') asked.push(message.params);
    };
    const connection = new McpConnection('demo', { command: 'node', args }, { onWire, ...options });
    await connection.connect();
    await connection.initialize();
    const tools = await Promise.race([
      connection.listTools().catch((error: Error) => error),
      new Promise((done) => setTimeout(done, 3000, 'nothing, in three seconds').unref()),
    ]);
    return { tools, asked, names: Array.isArray(tools) ? tools.map((tool) => tool?.name).join(' ') || 'none' : tools, warnings: [...connection.warnings.values()].join('\n') };
  };
  const habit = (...args: string[]) => ['fixtures/habits.mjs', ...args];
  const seen = ({ names, asked }: { names: unknown; asked: unknown[] }) => `${names}, requests: ${asked.length}`;
  const listing = (...tools: unknown[]) => habit('tools', JSON.stringify(tools));

  const calculator = await list(['fixtures/server.mjs']);
  await expect('the calculator has two tools', 'the tools add and greet', calculator.names, /^add greet$/);
  await expect('and they come with their schemas', 'add as the server describes it: name, description, inputSchema', calculator.tools[0], (came) => came?.inputSchema?.required?.join() === 'a,b' && /Adds/.test(came.description));

  const pages = await list(habit('pages'));
  await expect('all pages are read', 'the tools t0 t1 t2 t3 t4, one from each of five pages', pages.names, /^t0 t1 t2 t3 t4$/);
  await expect('each question after the first carries the cursor of the answer before', 'five requests: the first without a cursor, then "1", "2", "3", "4"', pages.asked, (came) =>
    came.map((params: any) => params?.cursor).join() === ',1,2,3,4');
  await expect('an empty string is a cursor', 'the tools one and two: nextCursor was ""', (await list(habit('empty-cursor'))).names, /^one two$/);
  await expect('null is none', 'the tool one, after one request', seen(await list(habit('null-cursor'))), /^one, requests: 1$/);

  const odd = await list(listing(null, 7, { name: 'good', inputSchema: { type: 'object' } }, { name: 8 }, { name: 'bare' }, { name: 'good', description: 'the second' }, { name: 'bad', inputSchema: 'x' }));
  await expect('odd tools cost us only themselves', 'the tools good and bare', odd.names, /^good bare$/);
  await expect('of two tools with one name the first counts', 'good without the description "the second"', odd.tools[0], (came) => came?.description === undefined);
  await expect('a tool without a schema gets one', 'bare with the inputSchema { type: "object" }', odd.tools[1], (came) => came?.inputSchema?.type === 'object');
  await expect('what is left out is named', 'one warning that shows {"name":8} and {"name":"bad","inputSchema":"x"}', odd.warnings, (came) => came.includes('{"name":8}') && came.includes('"bad"'));
  const spread = await list(habit('odd-pages'));
  await expect('on whatever page it was', 'a warning that shows both the 1 of the first page and the 2 of the second', spread.warnings, /1[^]*2/);
  await expect('without odd tools there is no warning', 'no warning', pages.warnings, /^$/);

  const bare = await list(habit('no-tools'));
  await expect('a server that declares no tools is not asked', 'an empty list, and no tools/list on the wire', seen(bare), /^none, requests: 0$/);
  const silent = await list(habit('version', '{"protocolVersion":"2025-11-25"}'));
  await expect('a server that declares nothing at all is asked', 'its tools: echo, log and others', silent.names, /^echo log/);

  const none = await list(habit('tools', '"none"'));
  await expect('a list that is no list is an error', 'a McpError of kind "protocol"', none.tools, (came) => came?.kind === 'protocol');
  const circle = await list(habit('repeats-its-cursor'));
  await expect('a cursor that comes twice is an error', 'a McpError of kind "protocol"', circle.tools, (came) => came?.kind === 'protocol');
  await expect('and is not followed', 'two requests: the first, and one with the cursor "again"', seen(circle), /requests: 2$/);
  const slow = await list(habit('slow-pages'), { handshakeTimeoutMs: 700 });
  await expect('all pages together have one limit, handshakeTimeoutMs', 'a McpError of kind "timeout" after 700 ms, though each page comes in 200 ms', slow.tools, (came) => came?.kind === 'timeout');
  const endless = await list(habit('endless-pages'));
  await expect('and there are at most MAX_PAGES of them', 'a McpError of kind "limit"', endless.tools, (came) => came?.kind === 'limit');
};
