// The first minute: what two newcomers typed before they had seen the code, in a new folder, without
// a key. help/five-prompts.txt has it as it was written down, with what they hoped for.

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { cleanUp } from './help/basics.ts';
import { place, repository, run, Terminal } from './help/terminal.ts';

afterEach(cleanUp);

const data = readFileSync(join(repository, 'test', 'help', 'five-prompts.txt'), 'utf8');
/** By the names of the newcomers. */
const newcomers = data
  .split(/^## /m)
  .slice(1)
  .map((part) => {
    const [name = '', ...lines] = part.trimEnd().split('\n');
    return { name, prompts: lines.filter((line) => !line.startsWith(' ')) };
  });

/** What the answer shows, and, if there is a question first, what that shows. */
const HOPES: Record<string, { asks?: RegExp; shows: RegExp }> = {
  'what is here?': { shows: /I take that for: run ls\n✓ bash .*\n  \$ ls\n  │ notes\.txt\n/ },
  'what tools do you have?': {
    shows: /built in:\n• read: Reads [^]*\n• mcp__calculator__add: Adds two numbers\.\n/,
  },
  '/help': { shows: /^\/help {5}[^]*^\/mcp reconnect NAME [^]*^\/exit /m },
  'add 2 and 40': {
    asks: /the tool "add" of the MCP server "calculator":\n  a: 2\n  b: 40\n/,
    shows: /✓ mcp__calculator__add\(a: 2, b: 40\) .*\n  │ 42\n/,
  },
  'create a file hello.txt that says hello world': {
    asks: /path: "hello\.txt"\n[^]*\n  \+│ hello world\n/,
    shows: /created hello\.txt: 11 bytes, 1 line\n/,
  },
  hi: { shows: /^Hello!\n[^]*Try, as typed:\n• what is here\?\n/m },
  'what can you do?': {
    shows:
      /Try, as typed:\n• what is here\?\n• create a file .*\n• what tools .*\n• what is 2 plus 40\?\n/,
  },
  'are you chatgpt': {
    shows:
      /a built-in stand-in that matches words and does not understand\. Set\nANTHROPIC_API_KEY or OPENAI_API_KEY for a real model\./,
  },
  'write me a python script that prints the first 10 fibonacci numbers': {
    shows: /I cannot chat, explain or write code\. [^]*\n• create a file hello\.txt/,
  },
  'what is mcp? explain it simply': {
    shows:
      /the\s+README\s+of\s+mcp-by-hand\s+tells\s+more,\s+and\s+https:\/\/modelcontextprotocol\.io what MCP is/,
  },
};

for (const { name, prompts } of newcomers)
  test(`a newcomer's first five prompts work: ${name}`, async () => {
    const where = place({ 'notes.txt': 'to buy: milk\n' });
    const terminal = new Terminal(where, [], {}, 80);
    await terminal.ready();
    assert.match(terminal.text, /^Try, as typed:\n  • what is here\?\n(  • .+\n){3}›/m);
    assert.equal(prompts.length, 5);
    for (const [n, prompt] of prompts.entries()) {
      const { asks, shows } = HOPES[prompt]!;
      const before = terminal.text.length;
      terminal.enter(prompt);
      if (asks) {
        await terminal.see(/^Allow it\?[^]*: *$(?![^]*^›)/);
        assert.match(terminal.text.slice(before), asks, prompt);
        terminal.enter('y');
      }
      await terminal.see(/^›/, n + 2);
      await terminal.ready();
      assert.match(terminal.text.slice(before), shows, prompt);
    }
    if (prompts.includes('add 2 and 40'))
      assert.equal(readFileSync(join(where.cwd, 'hello.txt'), 'utf8'), 'hello world');
    else assert.ok(!existsSync(join(where.cwd, 'hello.txt')));
  });

test("the README's own first question is answered without a terminal, too", async () => {
  const where = place({ 'a.txt': '', 'src/b.ts': '' });
  const { code, out } = await run(where, ['-p', 'what is here?']);
  assert.deepEqual([code, out], [0, 'bash answered:\na.txt\nsrc\nexit code 0\n']);
});

test('the calculator comes only into a first chat: not beside a server, in a script, or with a key', async () => {
  const tools = async (args: string[], env = {}, home = {}) => {
    const terminal = new Terminal(place({}, home), args, env);
    await terminal.ready();
    terminal.enter('/tools');
    await terminal.see(/^bash: /);
    await terminal.ready();
    return terminal.text.includes('mcp__calculator__add');
  };
  const servers = {
    '.claude/settings.json': { mcpServers: { off: { command: 'x', disabled: true } } },
  };
  assert.equal(await tools([]), true);
  assert.equal(await tools(['--strict-mcp-config']), false);
  assert.equal(await tools([], { ANTHROPIC_API_KEY: 'a-key' }), false);
  assert.equal(await tools([], {}, servers), false);
  const { out } = await run(place(), ['-p', 'what tools do you have?']);
  assert.doesNotMatch(out, /calculator/);
});
