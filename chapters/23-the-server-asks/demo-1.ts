// Chapter 23.1: a server asks a person, who is quick, then slow, then careless. The person follows a script.

import { existsSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { McpConnection, textOf } from '../../mcp.ts';
import { ScriptedPerson } from '../17-the-gate/person.ts';

const isThere = existsSync(new URL('elicitation.ts', import.meta.url));
const params = {
  message: 'Where shall the parcel go?',
  requestedSchema: {
    type: 'object',
    properties: { city: { type: 'string', pattern: '^[A-Z]' } },
    required: ['city'],
  },
};

/** Has the server ask for a city, and says what it heard. A call may take 300 ms. */
async function ask(title: string, answers: ConstructorParameters<typeof ScriptedPerson>[0]) {
  console.log(title);
  const person = new ScriptedPerson(answers);
  const simple: any = isThere ? await import('./elicitation.ts') : undefined;
  const extensions = simple ? [simple.elicitation({ person })] : [];
  const config = { command: 'node', args: ['fixtures/asker.mjs'] };
  const connection = new McpConnection('shop', config, { extensions, callTimeoutMs: 300 });
  await connection.connect();
  await connection.initialize();
  const call = connection.callTool('ask', { method: 'elicitation/create', params });
  console.log(`  ${await call.then(({ text }) => `the server heard: ${text}`, textOf)}`);
  await connection.close();
}

const slowly = async () => {
  await wait(600);
  return 'Graz';
};

await ask('A person who is quick:', ['y', 'Graz', 'y']);
await ask('\nA person who thinks for a moment:', ['y', slowly, 'y']);
await ask('\nA person who writes it small, where the form wants a capital:', [
  'y',
  'graz',
  'y',
  'y',
]);
