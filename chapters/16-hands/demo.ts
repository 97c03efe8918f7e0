// Chapter 16: the calculator as a row of the table, six tools in a folder of their own, and what they do not let pass.

import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as program from '../../agent.ts';
import { McpManager, type Json, type ServerEntry } from '../../mcp.ts';

const place = realpathSync(mkdtempSync(join(tmpdir(), 'hands-')));
process.on('exit', () => rmSync(place, { recursive: true }));
const [cwd, resultsFolder] = [join(place, 'project'), join(place, 'results')];
const show = (text: string) => console.log(text.replaceAll(place, '~').replace(/x{9,}/g, 'xxx…'));
const onWire = (direction: string, message: unknown) =>
  show(`${direction === 'out' ? '→' : '←'} ${JSON.stringify(message)}`);
const emit = (event: program.AgentEvent) => {
  if (event.type === 'tool_start') show(`${event.name} ${JSON.stringify(event.args)}`);
  if (event.type === 'tool_end') show(`  ${event.outcome}: ${event.text.replaceAll('\n', '\n  ')}`);
};
const gate: program.GateKeeper = async () => ({ allowed: true }); // chapter 17 has a real one
const servers = (args: Record<string, string>) => () =>
  new Map(
    Object.entries(args).map(([name, file]): [string, ServerEntry] => [
      name,
      {
        name,
        config: { command: 'node', args: [file], cwd: process.cwd() },
        scope: 'user',
        authority: 'user',
        file: 'demo.ts',
      },
    ]),
  );
const chat = async (
  mcp: McpManager | undefined,
  tools: program.Tool[],
  ...calls: [name: string, args: Json][]
) => {
  const model = new program.Scripted([
    ...calls.map(([name, args]) => ({ calls: [{ name, args }] })),
    'Done.',
  ]);
  await new program.Agent({ model, tools, gate, mcp, resultsFolder, cwd, emit }).chat('Go.');
};

console.log('A tool of a server:');
const mcp = new McpManager({ load: servers({ calculator: 'fixtures/server.mjs' }), onWire });
await chat(mcp, [], ['mcp__calculator__add', { a: 2, b: 40 }], ['mcp__calculator__ad', {}]);

console.log('\nSix tools of our own:');
if ('hands' in (program as object)) await withHands();
else await chat(undefined, [], ['read', { path: 'sum.js' }], ['bash', { command: 'node sum.js' }]);

async function withHands(): Promise<void> {
  mkdirSync(cwd);
  writeFileSync(join(cwd, 'sum.js'), 'const a = 2;\nconst b = 4;\nconsole.log(a + b);\n');
  const tools = program.hands({
    roots: new program.Roots(cwd, [], [resultsFolder]),
    resultsFolder,
  });
  await chat(
    undefined,
    tools,
    ['glob', { pattern: '*.js' }],
    ['grep', { pattern: 'b =' }],
    ['edit', { path: 'sum.js', old: 'b = 4;', new: 'b = 40;' }],
    ['read', { path: 'sum.js' }],
    ['edit', { path: 'sum.js', old: 'b = 4;', new: 'b = 40;' }],
    ['bash', { command: 'node sum.js' }],
  );

  console.log('\nThree paths that lead out of the folder:');
  symlinkSync(place, join(cwd, 'docs'));
  symlinkSync('../new.txt', join(cwd, 'notes.txt'));
  for (const path of ['../new.txt', 'docs/new.txt', 'notes.txt'])
    await chat(undefined, tools, ['write', { path, content: 'hello' }]);

  console.log('\nA result that is too big:');
  await chat(new McpManager({ load: servers({ habits: 'fixtures/habits.mjs' }) }), tools, [
    'mcp__habits__big',
    { bytes: 150_000 },
  ]);
}
