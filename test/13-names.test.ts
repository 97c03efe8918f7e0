// Chapter 13: `mcp__server__tool` is a label; the route is a table.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toolLabel } from './help/subject.ts';

test('ordinary names are put together as everyone expects', () => {
  assert.equal(toolLabel('github', 'create_issue'), 'mcp__github__create_issue');
  assert.equal(toolLabel('my-server_2', 'b__c'), 'mcp__my-server_2__b__c');
});

test("fault 18: whatever the names are, the label is fit for a model's wire", () => {
  const names = [
    'a b',
    'x.y',
    'größe',
    '日本',
    '🦊',
    '',
    '_',
    '__',
    '___',
    '-',
    'a/b',
    'x'.repeat(200),
    '__proto__',
    'mcp__a__b',
    'a_',
    '_a',
    '\n',
  ];
  for (const server of names)
    for (const tool of names)
      assert.match(toolLabel(server, tool), /^[A-Za-z0-9_-]{1,64}$/, `${server} + ${tool}`);
});

test('fault 18, C3: different pairs never share a label', () => {
  const names = [
    'a',
    'b',
    'a_',
    '_a',
    'a__b',
    'b__c',
    'c',
    'a_b',
    'a.b',
    'a b',
    'A',
    '_',
    '__',
    '',
    'a__',
    '__b',
    'x'.repeat(80),
    'x'.repeat(81),
    'ä',
    'ö',
    'mcp__a',
  ];
  const labels = names.flatMap((server) => names.map((tool) => toolLabel(server, tool)));
  assert.equal(new Set(labels).size, names.length ** 2);
});

test('a label depends on its two names only, so that a rule written for it stays true', () => {
  assert.equal(toolLabel('my__srv', 'say hello'), toolLabel('my__srv', 'say hello'));
  assert.equal(toolLabel('my__srv', 'say hello'), 'mcp__my_srv-n8bur2__say_hello-1aum3g8');
});
