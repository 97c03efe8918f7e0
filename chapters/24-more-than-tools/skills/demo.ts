// Chapter 24, Skills: a model loads one, and its server changes it. The model and the person follow
// a script.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, Gate, Roots, Scripted, Trust } from '../../../agent.ts';
import { McpManager, type ServerEntry } from '../../../mcp.ts';
import { ScriptedPerson } from '../../17-the-gate/person.ts';
import { Skills } from '../skills.ts';

const base = mkdtempSync(join(tmpdir(), 'skills '));
process.on('exit', () => rmSync(base, { recursive: true, force: true }));

/** What the two sides say about skills and their files, without their contents. */
function onWire(direction: string, message: unknown): void {
  const text = JSON.stringify(message);
  const isShown = /"(skills|resources)\/|"(skills?|contents)":/.test(text);
  if (isShown)
    console.log(
      direction === 'out' ? '→' : '←',
      `${text.slice(0, 92)}${text.length > 92 ? '…' : ''}`,
    );
}

const name = 'team/release';
const script = [
  { calls: [{ name: 'skill', args: { name } }] },
  { calls: [{ name: 'skill', args: { name, file: 'references/checklist.md' } }] },
  { calls: [{ name: 'skill', args: { name } }] },
  'Your checklist wants me to run something odd. I have stopped.',
];
const shown =
  (answer: string) =>
  ({ text }: { text: string }) => {
    console.log(text.replace(/^/gm, '    '), answer);
    return answer;
  };
const person = new ScriptedPerson([shown('y'), shown('n')]);
const trust = new Trust({ home: base, cwd: base, person });
const roots = new Roots(base);
const skills = new Skills({
  person,
  trust,
  roots,
  home: base,
  resultsFolder: join(base, 'results'),
  warn: console.log,
});
const config = {
  command: 'node',
  args: [join(process.cwd(), 'fixtures', 'skills.mjs'), 'changing'],
};
const entry: ServerEntry = {
  name: 'team',
  config,
  file: 'settings.json',
  scope: 'user',
  authority: 'user',
};
const manager = new McpManager({
  load: () => new Map([['team', entry]]),
  extensions: [skills.extension],
  approve: (each) => trust.approve(each),
  onWire,
});
const agent = new Agent({
  model: new Scripted(script),
  tools: [skills.row()],
  gate: new Gate({ roots, trust, person }).check,
  mcp: manager,
  prepare: (signal) => skills.ready(signal),
  resultsFolder: join(base, 'results'),
  emit: (event) => {
    if (event.type !== 'tool_end') return;
    const lines = event.text.split('\n');
    const long = lines.length > 9 ? [...lines.slice(0, 6), '…', ...lines.slice(-2)] : lines;
    console.log(`  ${event.outcome}:\n${long.join('\n').replace(/^/gm, '    ')}`);
  },
});
await agent.chat('Release it.');
await manager.disconnectAll();
