// The Tab of a shell: words from the rows of the program, its configuration, and what servers offered
// when they were last seen.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { cleanUp, goodServer, root } from './help/basics.ts';
import { command, place, run, userServers, type Place } from './help/terminal.ts';

afterEach(cleanUp);

const asEntry = (file: string) => ({ command: process.execPath, args: [file] });

async function completed(where: Place, ...words: string[]): Promise<string[]> {
  const { out, code, err } = await run(where, ['completion', 'words', '--', ...words]);
  assert.deepEqual([code, err], [0, '']);
  return out.split('\n').filter(Boolean);
}

test('verbs, actions, flags, servers, tools and arguments are offered where they may come', async () => {
  const library = asEntry(join(root, 'fixtures', 'library.mjs'));
  const where = place({}, userServers({ demo: asEntry(goodServer), other: library }));
  assert.equal((await run(where, ['mcp', 'list'])).code, 0);
  const cases: [string[], string[]][] = [
    [['pro'], ['probe', 'prompt', 'prompts']],
    [
      ['mcp', ''],
      [
        'list',
        'get',
        'add',
        'import',
        'add-json',
        'remove',
        'enable',
        'disable',
        'login',
        'logout',
      ],
    ],
    [
      ['trace', ''],
      ['check', 'view'],
    ],
    [
      ['completion', ''],
      ['bash', 'zsh', 'fish'],
    ],
    [['call', '--ti'], ['--timeout']],
    [
      ['call', ''],
      ['demo', 'other'],
    ],
    [['call', '--timeout', '5', 'de'], ['demo']],
    [['call', 'demo', 'a'], ['add']],
    [
      ['call', 'demo', 'add', ''],
      ['a=', 'b='],
    ],
    [['call', 'demo', 'add', 'a=1', ''], ['b=']],
    [
      ['trust', 'allow', ''],
      ['demo', 'other'],
    ],
    [['mcp', 'remove', 'o'], ['other']],
    [['down', ''], []],
    [['record', ''], []], // files, which are the shell's
    [['call', 'add', '--', 'node', ''], []],
    [['nonsense', ''], []],
  ];
  for (const [words, found] of cases)
    assert.deepEqual(await completed(where, ...words), found, words.join(' '));
});

test('bash asks us, and nothing that a server calls itself is a command', async () => {
  const names = ['$(touch ran)', '`id`', 'a b', "it's", 'fine', 'x;y', 'line\nbreak'];
  const tools = names.map((name) => ({ name, inputSchema: { type: 'object' } }));
  const script = `import { createInterface } from 'node:readline';
const says = { initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'x' } },
  'tools/list': { tools: ${JSON.stringify(tools)} } };
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line);
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, ...(says[method] ? { result: says[method] } : { error: { code: -32601, message: 'no' } }) }));
});`;
  const where = place({ 'odd.mjs': script });
  mkdirSync(join(where.home, '.claude'));
  const mcpServers = { odd: asEntry(join(where.cwd, 'odd.mjs')), 'b c': asEntry(goodServer) };
  writeFileSync(join(where.home, '.claude', 'settings.json'), JSON.stringify({ mcpServers }));
  assert.equal((await run(where, ['mcp', 'list'])).code, 0);
  const own = join(where.home, 'mcp-by-hand');
  writeFileSync(own, `#!/bin/sh\nexec ${command.map((each) => `'${each}'`).join(' ')} "$@"\n`);
  chmodSync(own, 0o755);
  const ask = (line: string) => `COMP_WORDS=(${line}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
_mcp_by_hand 2>/dev/null; printf '<%s>' "\${COMPREPLY[@]}"; echo`;
  const typed = [
    'source <(mcp-by-hand completion bash)',
    ask("mcp-by-hand call ''"),
    ask("mcp-by-hand call odd ''"),
    ask('mcp-by-hand --mo'),
  ];
  const env = { HOME: where.home, PATH: `${where.home}:${process.env.PATH}` };
  const options = { cwd: where.cwd, env, encoding: 'utf8' } as const;
  const out = execFileSync('bash', ['--norc', '-c', typed.join('\n')], options);
  assert.deepEqual(out.trim().split('\n'), ['<odd>', '<fine>', '<--mode><--model>']);
});

test('what is no shell is told', async () => {
  const { code, err } = await run(place(), ['completion', 'tcsh']);
  assert.equal(code, 2);
  assert.match(err, /for which shell\? bash, zsh, fish/);
});
