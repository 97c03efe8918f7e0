// An agent that does a lot and must print nothing: thirty searches side by side, a server that fails, a listener that
// throws, a call that is refused.

import { cleanUp, habit } from '../help/basics.ts';
import { prepareTable } from '../help/agent-with-tools.ts';

const searches = Array.from({ length: 30 }, () => ({ name: 'grep', args: { pattern: 'needle' } }));
const { agent, events } = prepareTable({
  script: [
    { calls: searches },
    { calls: [{ name: 'bash', args: { command: 'echo loud; echo louder >&2' } }] },
    'done',
  ],
  files: { 'a.txt': 'needle\n' },
  servers: { broken: habit('dies-at-once'), good: habit('chatty') },
  manager: { onWarning: () => {} },
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
