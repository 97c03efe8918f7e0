// Chapter 24.1: what a server has besides tools. The same requests in both eras.

import { McpConnection, textOf } from '../../mcp.ts';
import { inBothEras } from '../22-no-handshake/era.ts';
import {
  completeArgument,
  getPrompt,
  listResources,
  listResourceTemplates,
  readResource,
} from './offers.ts';

const WATCHED = /resources|prompts|completion/;
const open = new Set<unknown>(); // the ids of the requests that are shown

function onWire(direction: string, message: unknown): void {
  const { id, method } = message as { id?: unknown; method?: string };
  const text = JSON.stringify(message, (key, value) => (key === '_meta' ? undefined : value));
  if (direction === 'out' && WATCHED.test(method ?? '')) open.add(id);
  if (open.has(id)) console.log(direction === 'out' ? '→' : '←', text.slice(0, 200));
}

const config = { command: 'node', args: ['fixtures/library.mjs', 'no-templates'] };
const library = new McpConnection('library', config, { extensions: inBothEras(), onWire });
await library.connect();
await library.initialize();

const resources = await listResources(library);
console.log(`  ${resources.length} resources, on two pages`);
const [rules] = await readResource(library, 'library://rules');
console.log(`  ${JSON.stringify(rules?.text)}`);
console.log(`  templates: ${JSON.stringify(await listResourceTemplates(library))}`);
await readResource(library, 'library://nowhere').catch((error) =>
  console.log(`  ${textOf(error)}`),
);

const about = { type: 'ref/prompt', name: 'explain' } as const;
console.log(`  ${await completeArgument(library, about, { name: 'thing', value: 'gr' })}`);
const messages = await getPrompt(library, 'explain', { thing: 'gravity' });
console.log(`  ${messages.length} message, of the ${messages[0]?.role}`);
await library.close();
