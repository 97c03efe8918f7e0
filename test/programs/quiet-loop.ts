// A loop that does a lot and must print nothing: thirty calls side by side, each of which can be stopped, a server that
// fails, a listener that throws, a call that is refused.

import { setTimeout as wait } from 'node:timers/promises';
import { cleanUp, habit } from '../help/basics.ts';
import { prepareLoop, row, saying } from '../help/agent-alone.ts';
import { prepare } from '../help/manager.ts';

const loud = row('loud', async () => (console.log('loud'), saying('loud')()));
const search = row(
  'search',
  (_, { signal }) => wait(10, undefined, { signal }).then(saying('found')),
  {
    readOnly: true,
    touches: () => ({ kind: 'read', path: '.' }),
  },
);
const { agent, events } = prepareLoop({
  script: [
    { calls: Array.from({ length: 30 }, () => ({ name: 'search', args: {} })) },
    { calls: [{ name: 'loud', args: {} }] },
    'done',
  ],
  tools: [search, loud],
  mcp: prepare({ broken: habit('dies-at-once'), good: habit('chatty') }, undefined, {
    onWarning: () => {},
  }).manager,
  emit: (event) => {
    events.push(event);
    throw new Error('a listener that fails');
  },
});
const { ending } = await agent.chat('do it');
await cleanUp();
const worked = events.filter(
  (event) => event.type === 'tool_end' && event.outcome === 'worked',
).length;
process.exit(ending === 'done' && worked === 30 ? 0 : 9);
