// Chapter 24: resources for a person, for a model and in the background, in both eras. The model and
// the person follow a script.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, Gate, Roots, Scripted, Trust } from '../../agent.ts';
import { McpManager, type ServerEntry } from '../../mcp.ts';
import { ScriptedPerson } from '../17-the-gate/person.ts';
import { forConnections, plainHost } from '../19-the-terminal/host.ts';
import { compose } from '../composition.ts';

const base = mkdtempSync(join(tmpdir(), 'library '));
process.on('exit', () => rmSync(base, { recursive: true, force: true }));

/** All that the two sides say about resources, but for what goes along with every request. */
function onWire(direction: string, message: unknown, server: string): void {
  const text = JSON.stringify(message, (key, value) => (key === '_meta' ? undefined : value));
  const isShown = /resources\/(read|subscribe|updated)|subscriptions\/(listen|ack)/.test(text);
  if (isShown) console.log(direction === 'out' ? `→ to ${server}` : `← from ${server}`, text);
}

const read = (server: string, uri: string) => ({
  calls: [{ name: 'read_resource', args: { server, uri } }],
});
const script = [
  read('library', 'library://rules'),
  read('archive', 'library://rules'),
  'Be quiet, say both.',
  'An atlas!',
];
const person = new ScriptedPerson(['y', 'n']);
const fixture = join(process.cwd(), 'fixtures', 'library.mjs');
const servers = { library: [fixture], archive: [fixture, 'modern'] };
const load = () =>
  new Map(
    Object.entries(servers).map(([name, args]): [string, ServerEntry] => {
      const config = { command: 'node', args };
      return [name, { name, config, file: 'settings.json', scope: 'user', authority: 'user' }];
    }),
  );

const host = plainHost({ person, resultsFolder: join(base, 'results'), manager: () => manager });
const { tools, news = [], commands, ...rows } = compose(host);
const trust = new Trust({ home: base, cwd: base, person });
const approve = (entry: ServerEntry) => trust.approve(entry);
const manager = new McpManager({
  ...forConnections({ ...rows, tools, commands }),
  load,
  approve,
  onWire,
});
const gate = new Gate({
  roots: new Roots(base),
  trust,
  person,
  offered: () => manager.getToolDefinitions(),
});
const agent = new Agent({
  model: new Scripted(script),
  tools,
  mcp: manager,
  gate: gate.check,
  resultsFolder: host.resultsFolder,
});

console.log('The model reads the same resource of two servers:');
await agent.chat('What are the rules?');
for (const { text } of person.questions) console.log(text.replace(/^/gm, '    '));
for (const turn of agent.turns)
  if (turn.role === 'tools')
    for (const { blocks } of turn.results) console.log('  result:', JSON.stringify(blocks));

console.log('\nThe user watches one of each, and both change:');
const say = (text: string) => console.log(`  ${text}`);
const program = { agent, manager, screen: { print: say, width: 80 } } as never;
const { signal } = new AbortController();
for (const server of Object.keys(servers)) {
  await commands.watch?.run([`${server}:library://news`], program, signal, '');
  const change = { uri: 'library://news', text: `A new atlas in the ${server}.` };
  await manager.callTool(`mcp__${server}__change`, change);
}
while (commands.watch && person.said.length < 2) await new Promise((done) => setTimeout(done, 10));
const told = (await Promise.all(news.map((tell) => tell(signal)))).flat();
await agent.chat(['What is new?', ...told].join('\n\n'));
const last = agent.turns.findLast(({ role }) => role === 'user');
console.log('text' in last! ? last.text.replace(/^/gm, '    ') : '');
await manager.disconnectAll();
