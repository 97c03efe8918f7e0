// Chapter 16: six tools in a folder of their own, what they do not let pass, the calculator as a row of the same table,
// and servers that are late.

import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
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
  const { type } = event;
  if (type === 'tool_start') show(`${event.name} ${JSON.stringify(event.args)}`);
  if (type === 'tool_end')
    show(`  ${event.outcome}: ${event.text.trimEnd().replaceAll('\n', '\n  ')}`);
  if (type === 'note') show(`note: ${event.text.replaceAll('\n', '\n  ')}`);
};
const gate: program.GateKeeper = async () => ({ allowed: true }); // chapter 17 has a real one
const servers = (args: Record<string, string[]>) => () =>
  new Map(
    Object.entries(args).map(([name, files]): [string, ServerEntry] => [
      name,
      {
        name,
        config: { command: 'node', args: files, cwd: process.cwd() },
        scope: 'user',
        authority: 'user',
        file: 'demo.ts',
      },
    ]),
  );
type Call = [name: string, args: Json];
const chat = async (options: { mcp?: McpManager }, tools: program.Tool[], ...calls: Call[]) => {
  const script = [...calls.map(([name, args]) => ({ calls: [{ name, args }] })), 'Done.'];
  const model = new program.Scripted(script);
  const agent = new program.Agent({ model, tools, gate, resultsFolder, cwd, emit, ...options });
  await agent.chat('Go.');
};

console.log('A small job:');
mkdirSync(cwd);
writeFileSync(join(cwd, 'sum.js'), 'const a = 2;\nconst b = 4;\nconsole.log(a + b);\n');
const tools = program.hands({ roots: new program.Roots(cwd, [], [resultsFolder]), resultsFolder });
await chat(
  {},
  tools,
  ['grep', { pattern: 'b =' }],
  ['edit', { path: 'sum.js', old: 'b = 4;', new: 'b = 40;' }],
  ['read', { path: 'sum.js' }],
  ['edit', { path: 'sum.js', old: 'b = 4;', new: 'b = 40;' }],
  ['bash', { command: 'node sum.js' }],
);

console.log('\nFour paths that lead out of the folder:');
mkdirSync(join(place, 'project-evil'));
symlinkSync(place, join(cwd, 'docs'));
symlinkSync('../new.txt', join(cwd, 'notes.txt'));
for (const path of ['../new.txt', '../project-evil/new.txt', 'docs/new.txt', 'notes.txt']) {
  await chat({}, tools, ['write', { path, content: 'hello' }]);
  for (const file of ['new.txt', 'project-evil/new.txt'].map((name) => join(place, name))) {
    if (existsSync(file)) show(`  outside, there is now ${file}`);
    rmSync(file, { force: true });
  }
}

console.log('\nA tool of a server:');
const mcp = new McpManager({ load: servers({ calculator: ['fixtures/server.mjs'] }), onWire });
await chat({ mcp }, [], ['mcp__calculator__add', { a: 2, b: 40 }], ['mcp__calculator__ad', {}]);
await mcp.disconnectAll();

console.log('\nA result that is too big:');
const habits = new McpManager({ load: servers({ habits: ['fixtures/habits.mjs'] }) });
await chat({ mcp: habits }, [], ['mcp__habits__big', { bytes: 150_000 }]);
await habits.disconnectAll();

console.log('\nThree servers: one is good, one dies, and one never says a word:');
const three = new McpManager({
  load: servers({
    calculator: ['fixtures/server.mjs'],
    broken: ['fixtures/habits.mjs', 'dies-at-once', 'hat'],
    mute: ['fixtures/habits.mjs', 'mute'],
  }),
});
show(`before the first prompt: ${three.status().length} servers`);
const model = new program.Scripted(['Done.']);
const options = { model, gate, resultsFolder, cwd, emit, mcp: three, graceMs: 1 };
const agent = new program.Agent(options);
if ('connect' in agent) {
  void agent.connect(); // the prompt comes when the first two are as far as they will get
  const isOpen = () => three.status().filter(({ state }) => state === 'connecting').length !== 1;
  while (three.status().length < 3 || isOpen()) await new Promise((done) => setTimeout(done, 10));
}
await agent.chat('Go.');
const { requests } = model;
for (const { name, state } of three.status()) show(`${name}: ${state}`);
const late = requests[0]?.system.split('\n').find((line) => line.startsWith('Still'));
show(`the model reads: ${late ?? 'nothing of servers'}`);
