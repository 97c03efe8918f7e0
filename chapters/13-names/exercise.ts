// Judges exercise 13: is every label fit for a model, and does every tool have its own?

import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import type { Judge } from '../book.ts';

const ODD = ['a', 'b', 'a_', '_a', 'a__b', 'b__c', 'c', 'a_b', 'a.b', 'a b', '_', '__', 'größe', 'grüße', '日本', '🦊', 'a/b', '__proto__', 'x'.repeat(80), 'x'.repeat(81)];

export const judge: Judge = async ({ load, see, expect }) => {
  const { McpConnection, toolLabel } = await load('mcp.ts');
  const label = async (server: string, tool: string) => toolLabel(server, tool);
  await expect('good names are left as they are', 'mcp__calculator__add', label('calculator', 'add'), (came) => came === 'mcp__calculator__add');
  await expect('also those with a hyphen or an underscore', 'mcp__my-server_2__b__c', label('my-server_2', 'b__c'), (came) => came === 'mcp__my-server_2__b__c');

  const pairs = ODD.flatMap((server) => ODD.map((tool): [string, string] => [server, tool]));
  const unfit = async () => pairs.map(([server, tool]) => [server, tool, toolLabel(server, tool)]).filter(([, , made]) => !/^mcp__[A-Za-z0-9_-]{1,59}$/.test(made));
  await expect('whatever the names are, a model takes the label', 'mcp__…, 64 characters at most, each one of A–Z a–z 0–9 _ -',
    unfit().then(([worst]) => (worst ? `${worst[2]} (${worst[2].length} characters), made of "${worst[0]}" and "${worst[1]}"` : 'fit')), (came) => came === 'fit');

  const apart = (one: [string, string], other: [string, string], who = `${one.join(' + ')} and ${other.join(' + ')}`) =>
    expect(`${who} have two labels`, 'two different labels', Promise.all([label(...one), label(...other)]), (came) => came[0] !== came[1]);
  await apart(['files', 'x_y'], ['files', 'x.y']);
  await apart(['a', 'b__c'], ['a__b', 'c']);
  await apart(['my srv', 'add'], ['my.srv', 'add']);
  await apart(['files', `${'x'.repeat(80)}1`], ['files', `${'x'.repeat(80)}2`], 'two names of 81 characters that differ in the last');
  const shared = async () => {
    const owner = new Map<string, string>();
    for (const [server, tool] of pairs) {
      const made = toolLabel(server, tool);
      if (owner.has(made)) return `${made}, for ${owner.get(made)} and for "${server}" + "${tool}"`;
      owner.set(made, `"${server}" + "${tool}"`);
    }
    return 'none';
  };
  await expect(`no label is shared among ${pairs.length} pairs of names`, 'none', shared(), (came) => came === 'none');

  // A second copy of the program stands for the next start: a label must not depend on what came before.
  const folder = mkdtempSync(join(tmpdir(), 'names '));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  copyFileSync('mcp.ts', join(folder, 'mcp.ts'));
  const tomorrow = (await load(relative(process.cwd(), join(folder, 'mcp.ts')))).toolLabel;
  const moved = async () => pairs.reverse().map(([server, tool]) => [toolLabel(server, tool), tomorrow(server, tool)]).find(([old, made]) => old !== made);
  await expect('tomorrow, and in another order, the labels are the same', 'none has changed', moved().then((changed) => changed?.join(' has become ') ?? 'none'), (came) => came === 'none');

  const server = new McpConnection('my__srv', { command: 'node', args: ['fixtures/habits.mjs'] }, { onWire: see });
  const answer = async () => {
    await server.connect();
    await server.initialize();
    const table = new Map((await server.listTools()).map(({ name }: { name: string }) => [toolLabel('my__srv', name), name]));
    return (await server.callTool(table.get(toolLabel('my__srv', 'echo')), { a: 2, b: 40 })).text;
  };
  await expect('by its label, a tool of the server my__srv is called', '{"a":2,"b":40}', answer(), (came) => came === '{"a":2,"b":40}');
  await server.close();
};
