// Chapter 17, first stop: a simple gate, and a person who answers it.

import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import * as program from '../../agent.ts';
import { McpManager, type Json, type ServerEntry } from '../../mcp.ts';

const place = realpathSync(mkdtempSync(join(tmpdir(), 'gate-')));
process.on('exit', () => rmSync(place, { recursive: true }));
const cwd = join(place, 'project');
mkdirSync(cwd);
writeFileSync(join(cwd, 'a.txt'), 'hello\n');
const entry: ServerEntry = {
  name: 'calculator',
  config: { command: 'node', args: [resolve('fixtures/server.mjs')] },
  scope: 'user',
  authority: 'user',
  file: 'demo.ts',
};
const calls: [name: string, args: Json][] = [
  ['read', { path: 'a.txt' }],
  ['write', { path: 'b.txt', content: 'new\n' }],
  ['mcp__calculator__add', { a: 2, b: 40 }],
  ['mcp__calculator__add', { a: 3, b: 50 }],
];
const answers = ['y', 'a'];
const options: any = {
  gate: undefined,
  tools: program.hands({ roots: new program.Roots(cwd), resultsFolder: place }),
  mcp: new McpManager({ load: () => new Map([[entry.name, entry]]) }),
  model: new program.Scripted([
    ...calls.map(([name, args]) => ({ calls: [{ name, args }] })),
    'Done.',
  ]),
  resultsFolder: place,
  emit: (event: program.AgentEvent) => {
    if (event.type === 'tool_start') console.log(`${event.name} ${JSON.stringify(event.args)}`);
    if (event.type === 'tool_end')
      console.log(`  ${event.outcome}: ${event.text.split('\n')[0]!.trimEnd()}`);
  },
};
if ('Gate' in program) {
  const { ScriptedPerson } = await import('./person.ts');
  const person = new ScriptedPerson(
    answers.map((answer) => ({ lines, prompt }) => {
      const shown = [...lines, `${prompt} > ${answer}`];
      console.log(shown.map((line) => `  ? ${line}`).join('\n'));
      return answer;
    }),
  );
  options.gate = new program.Gate({ person } as any).check;
}
await new program.Agent(options).chat('Go.');
await options.mcp.disconnectAll();
