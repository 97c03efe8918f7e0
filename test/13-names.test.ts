// Chapter 13: `mcp__server__tool` is a label; the route is a table.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { cleanUp, habit } from './helpers.ts';
import { manage } from './manage.ts';
import { toolLabel } from './subject.ts';

afterEach(cleanUp);

const allowed = /^[A-Za-z0-9_-]{1,64}$/;
const listing = (...names: string[]) => habit('tools', JSON.stringify(names.map((name) => ({ name }))));

test('ordinary names are put together as everyone expects', () => {
  assert.equal(toolLabel('github', 'create_issue'), 'mcp__github__create_issue');
  assert.equal(toolLabel('my-server_2', 'b__c'), 'mcp__my-server_2__b__c');
});

test('fault 18: whatever the names are, the label is fit for a model\'s wire', () => {
  const names = ['a b', 'x.y', 'größe', '日本', '🦊', '', '_', '__', '___', '-', 'a/b', 'x'.repeat(200), '__proto__', 'mcp__a__b', 'a_', '_a', '\n'];
  for (const server of names) for (const tool of names) assert.match(toolLabel(server, tool), allowed, `${server} + ${tool}`);
});

test('fault 18, C3: different pairs never share a label', () => {
  const names = ['a', 'b', 'a_', '_a', 'a__b', 'b__c', 'c', 'a_b', 'a.b', 'a b', 'A', '_', '__', '', 'a__', '__b', 'x'.repeat(80), 'x'.repeat(81), 'ä', 'ö', 'mcp__a'];
  const labels = names.flatMap((server) => names.map((tool) => toolLabel(server, tool)));
  assert.equal(new Set(labels).size, names.length ** 2);
});

test('a label depends on its two names only, so that a rule written for it stays true', () => {
  assert.equal(toolLabel('my__srv', 'say hello'), toolLabel('my__srv', 'say hello'));
  assert.equal(toolLabel('my__srv', 'say hello'), 'mcp__my_srv-n8bur2__say_hello-1aum3g8');
});

test('fault 18: a server called my__srv, one with spaces, tools with dots and unicode: all can be called', async () => {
  const { manager } = await manage({ my__srv: habit(), 'the other one': listing('echo.x', 'größe', 'x'.repeat(200)) });
  const definitions = manager.getToolDefinitions();
  for (const { name } of definitions) assert.match(name, allowed);
  const echo = definitions.find(({ server, tool }) => server === 'my__srv' && tool.name === 'echo')!;
  assert.equal((await manager.callTool(echo.name, { a: 1 })).text, '{"a":1}');
  for (const name of ['echo.x', 'größe', 'x'.repeat(200)]) {
    const { name: label } = definitions.find(({ tool }) => tool.name === name)!;
    const error = await manager.callTool(label).catch((reason) => reason);
    assert.ok(error.message.includes(`Unknown tool: ${name}`), 'the server is called by its own name for the tool');
  }
});

test('C3: a + b__c and a__b + c, x.y and x_y are four tools, and each call reaches its own', async () => {
  const where = (cwd: string) => ({ ...habit(), cwd });
  const { manager } = await manage({ 'x.y': where('/tmp'), x_y: where('/') });
  const reached = async (server: string) => {
    const { name } = manager.getToolDefinitions().find((each) => each.server === server && each.tool.name === 'where')!;
    return JSON.parse((await manager.callTool(name)).text).cwd;
  };
  assert.deepEqual([await reached('x.y'), await reached('x_y')], ['/tmp', '/']);

  const clash = await manage({ a: listing('b__c'), a__b: listing('c') });
  const definitions = clash.manager.getToolDefinitions();
  assert.deepEqual(definitions.map(({ server, tool }) => [server, tool.name]), [['a', 'b__c'], ['a__b', 'c']]);
  assert.equal(new Set(definitions.map(({ name }) => name)).size, 2);
});

test('C3: a server named so as to take another\'s labels is refused by name, also while that one is not there', async () => {
  const thief = toolLabel('my srv', 'echo').slice('mcp__'.length, -'__echo'.length); // my_srv-xxxxxx
  for (const owner of [habit(), habit('dies-at-once')]) {
    const { manager, state } = await manage({ 'my srv': owner, [thief]: habit() });
    assert.equal(state(thief).state, 'failed');
    assert.match(state(thief).reason!, /its tools would be called like those of "my srv"/);
    assert.ok(manager.getToolDefinitions().every(({ server }) => server === 'my srv'));
  }
});

test('two tools of one server that would share a label: the first has it, the second is named', async () => {
  const taken = toolLabel('s', 'a b').slice('mcp__s__'.length);
  const { manager, state } = await manage({ s: listing('a b', taken) });
  assert.deepEqual(manager.getToolDefinitions().map(({ tool }) => tool.name), ['a b']);
  assert.match(state('s').warnings.join(), /another is called mcp__s__a_b-/);
});

test('C4: tools called like built-in ones are still prefixed', async () => {
  const { manager } = await manage({ s: listing('Bash', 'read', 'write') });
  assert.deepEqual(manager.getToolDefinitions().map(({ name }) => name), ['mcp__s__Bash', 'mcp__s__read', 'mcp__s__write']);
  assert.ok(!manager.isMcpTool('read') && manager.isMcpTool('mcp__s__read'));
});

test('a name that is in no table is an error that says so', async () => {
  const { manager } = await manage({ s: habit() });
  for (const name of ['mcp__s__nothing', 'mcp__t__echo', 'echo', '__proto__', 'constructor']) {
    assert.ok(!manager.isMcpTool(name));
    const error = await manager.callTool(name).catch((reason) => reason);
    assert.deepEqual([error.kind, error.message], ['unknown-tool', `no MCP server has a tool called "${name}"`]);
  }
});
