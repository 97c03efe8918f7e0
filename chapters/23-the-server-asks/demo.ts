// Chapter 23: a server asks for a parcel's address, in both eras. The person follows a script.

import { existsSync } from 'node:fs';
import { McpConnection, textOf, type Json } from '../../mcp.ts';
import { ScriptedPerson } from '../17-the-gate/person.ts';
import { plainHost } from '../19-the-terminal/host.ts';
import { compose } from '../composition.ts';

const PARCEL = {
  message: 'Where shall the parcel go?',
  requestedSchema: {
    type: 'object',
    properties: {
      city: { type: 'string', pattern: '^[A-Z]' },
      floor: { type: 'integer', minimum: 0, default: 3 },
      when: { type: 'array', items: { type: 'string', enum: ['morning', 'evening'] } },
    },
    required: ['city'],
  },
};

/** What is on the wire, but for the handshake and what goes along with every request. */
function onWire(direction: string, message: unknown): void {
  const text = JSON.stringify(message, (key, value) => (key === '_meta' ? undefined : value));
  const isQuestion = direction === 'in' && /"method":"elicitation\/create"/.test(text);
  const isAnswer = direction === 'out' && /"action":/.test(text);
  if (isQuestion || isAnswer) console.log(direction === 'out' ? '→' : '←', text);
}

type Answers = ConstructorParameters<typeof ScriptedPerson>[0];
const isHere = (name: string) => existsSync(new URL(name, import.meta.url));

/** Has the server ask this, and says what it heard: all of it, or what `read` makes of it. */
async function ask(
  era: string[],
  answers: Answers,
  request: Json,
  read = (heard: string) => heard,
): Promise<void> {
  const person = new ScriptedPerson(answers);
  const warn = (text: string) => console.log(`  ${text}`);
  const { extensions, transports } = compose(plainHost({ person, warn }));
  const isSimple = isHere('elicitation.ts') && !isHere('asking.ts'); // and no row of the composition yet
  const simple: any = isSimple ? await import('./elicitation.ts') : undefined;
  if (simple) extensions.unshift(simple.elicitation({ person }));
  const config = { command: 'node', args: ['fixtures/asker.mjs', ...era] };
  const options = { extensions, transports, onWire, onWarning: warn };
  const connection = new McpConnection('shop', config, options);
  try {
    await connection.connect();
    await connection.initialize();
    const { text } = await connection.callTool('ask', request);
    for (const question of person.questions.slice(0, 1)) console.log(indented(question.text));
    console.log(`  the server heard: ${read(text)}`);
  } catch (error) {
    console.log(`  ${textOf(error)}`);
  }
  await connection.close();
}

const indented = (text: string) => text.replace(/^/gm, '    ');

console.log('Up to 2025-11-25 the question is a request of the server:');
const filled = ['y', 'graz', 'Graz', '', '1', 'y']; // "graz" does not fit; the floor is left as it is
await ask([], filled, { method: 'elicitation/create', params: PARCEL });

console.log('\nSince 2026-07-28 it comes inside a result:');
await ask(['modern'], filled, { method: 'elicitation/create', params: PARCEL });

console.log('\nA choice that reads like a no:');
const decision = { type: 'string', enum: ['approve', 'reject'] };
const confirm = {
  message: 'You are about to drop the database "customers".',
  requestedSchema: { type: 'object', properties: { decision } },
};
await ask([], ['y', 'reject', ''], { method: 'elicitation/create', params: confirm });

console.log('\nAnd which folders do we work in?');
const names = (heard: string) => {
  const { roots = [] } = JSON.parse(heard) as { roots?: { name: string }[] };
  return roots.length > 0 ? roots.map(({ name }) => name).join() : heard;
};
await ask([], [], { method: 'roots/list', params: {} }, names);
