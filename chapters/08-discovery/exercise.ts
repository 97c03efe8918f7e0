// Judges exercise 8: does the list hold everything that is on the pages, and does the search end?

import type { Judge } from '../book.ts';

export const judge: Judge = async ({ load, see, expect }) => {
  const { McpConnection } = await load('mcp.ts');
  const start = async (args: string[]) => {
    const asked: any[] = []; // the parameters of every tools/list
    const onWire = (direction: string, message: any) => {
      see(direction, message);
      if (message.method === 'tools/list') asked.push(message.params);
    };
    const onWarning = () => {}; // they are kept in `warnings`, too
    const connection = new McpConnection('demo', { command: 'node', args }, { onWire, onWarning });
    await connection.connect();
    await connection.initialize();
    return { connection, asked };
  };
  const inTime = (list: Promise<unknown>): Promise<any> =>
    Promise.race([
      list.catch((error: Error) => error),
      new Promise((done) => setTimeout(done, 3000, 'nothing, in three seconds').unref()),
    ]);
  const listAll = async (args: string[], options = {}, key = 'tools') => {
    const { connection, asked } = await start(args);
    Object.assign(connection.options, options); // a short limit is not for the start of the server
    return { asked, came: await inTime(connection.listAll('tools/list', key)) };
  };
  const habit = (...args: string[]) => ['fixtures/habits.mjs', ...args];
  const names = (came: any) =>
    Array.isArray(came) ? came.map((tool) => tool?.name).join(' ') || 'none' : came;
  const seen = ({ came, asked }: { came: unknown; asked: unknown[] }) =>
    `${names(came)}, requests: ${asked.length}`;

  const calculator = await listAll(['fixtures/server.mjs']);
  await expect('one page is a list', 'the tools add and greet', names(calculator.came), /^add greet$/);
  await expect('and its items are as they came', 'add as the server describes it: name, description, inputSchema', calculator.came[0], (came) =>
    came?.inputSchema?.required?.join() === 'a,b' && /Adds/.test(came.description));

  const pages = await listAll(habit('pages'));
  await expect('all pages are read', 'the tools t0 t1 t2 t3 t4, one from each of five pages', names(pages.came), /^t0 t1 t2 t3 t4$/);
  await expect('each request after the first carries the cursor of the answer before', 'five requests: the first without a cursor, then "1", "2", "3", "4"', pages.asked, (came) =>
    came.map((params: any) => params?.cursor).join() === ',1,2,3,4');
  const empty = await listAll(habit('empty-cursor'));
  await expect('an empty string is a cursor', 'the tools one and two: nextCursor was ""', names(empty.came), /^one two$/);
  await expect('null is none', 'the tool one, after one request', seen(await listAll(habit('null-cursor'))), /^one, requests: 1$/);

  const items = [null, 7, { name: 'good' }, { name: 8 }, { name: 'good' }];
  const odd = await listAll(habit('tools', JSON.stringify(items)));
  await expect('odd items are not judged here', `all five, as they came: ${JSON.stringify(items)}`, odd.came, (came) =>
    JSON.stringify(came) === JSON.stringify(items));
  const { connection } = await start(habit('odd-pages'));
  await expect('so listTools finds what is good on all pages', 'the tools one and two', names(await inTime(connection.listTools())), /^one two$/);
  await expect('and names what it leaves out', 'a warning that shows both the 1 of the first page and the 2 of the second', [...connection.warnings.values()].join('\n'), /1[^]*2/);

  const none = await listAll(habit('tools', '"none"'));
  await expect('a list that is no list is an error', 'a McpError of kind "protocol"', none.came, (came) => came?.kind === 'protocol');
  const other = await listAll(habit('pages'), {}, 'prompts');
  await expect('the list is looked for under `key`', 'a McpError of kind "protocol": these pages have "tools", and "prompts" was wanted', other.came, (came) => came?.kind === 'protocol');
  const circle = await listAll(habit('repeats-its-cursor'));
  await expect('a cursor that comes twice is an error', 'a McpError of kind "protocol"', circle.came, (came) => came?.kind === 'protocol');
  await expect('and is not followed', 'two requests: the first, and one with the cursor "again"', seen(circle), /requests: 2$/);
  const slow = await listAll(habit('slow-pages'), { handshakeTimeoutMs: 700 });
  await expect('all pages together have one limit, handshakeTimeoutMs', 'a McpError of kind "timeout" after 700 ms, though each page comes in 200 ms', slow.came, (came) => came?.kind === 'timeout');
  const endless = await listAll(habit('endless-pages'));
  await expect('and there are at most MAX_PAGES of them', 'a McpError of kind "limit"', endless.came, (came) => came?.kind === 'limit');
};
