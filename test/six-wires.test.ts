// The same session with the agent, whatever lies between it and its server.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { compose } from '../chapters/composition.ts';
import { forConnections, plainHost } from '../chapters/19-the-terminal/host.ts';
import { calculator } from '../chapters/25-other-pipes/calculator.ts';
import { builtIn } from '../chapters/25-other-pipes/in-process.ts';
import type { Json } from '../mcp.ts';
import { prepareAgent } from './help/agent-with-gate.ts';
import { cleanUp, root } from './help/basics.ts';
import { calculator as remote } from './help/http-servers.ts';

afterEach(cleanUp);

const fixture = join(root, 'fixtures', 'remote.mjs');

/** The calculator on a wire that has an address. */
const address = async (...args: string[]) => (await remote(...args)).url;

const wires: Record<string, { config: () => Promise<Json>; speaks: string }> = {
  stdio: {
    config: async () => ({ command: process.execPath, args: [fixture, 'stdio'] }),
    speaks: '2026-07-28',
  },
  'HTTP with a handshake': {
    config: async () => ({
      type: 'http',
      url: await address('http', '--era', 'legacy', '--sessions'),
    }),
    speaks: '2025-11-25',
  },
  'HTTP without one': {
    config: async () => ({ type: 'http', url: await address('http', '--era', 'modern') }),
    speaks: '2026-07-28',
  },
  'HTTP+SSE of 2024': {
    config: async () => ({ type: 'http', url: await address('sse') }),
    speaks: '2025-11-25',
  },
  WebSocket: {
    config: async () => ({ type: 'ws', url: await address('ws') }),
    speaks: '2026-07-28',
  },
  'in this process': { config: async () => ({ type: 'here' }), speaks: '2026-07-28' },
};

const script = [
  { calls: [{ name: 'mcp__calculator__add', args: { a: 2, b: 40 } }] },
  {
    text: 'And now a greeting.',
    calls: [
      { name: 'mcp__calculator__greet', args: { name: 'Ada' } },
      { name: 'mcp__calculator__add', args: { a: 1, b: 1 } },
    ],
  },
  'It is 42.',
];

for (const [name, { config, speaks }] of Object.entries(wires))
  test(`one session over ${name}`, async () => {
    const options = forConnections(compose(plainHost()));
    const transports = { ...options.transports, here: builtIn(calculator) };
    const servers = { calculator: await config() };
    const { agent, mcp, events } = prepareAgent({
      servers,
      script,
      answers: ['y', 'y', 'y'],
      manager: { ...options, transports },
    });
    assert.deepEqual(await agent.chat('How much is 2 and 40?'), {
      ending: 'done',
      text: 'It is 42.',
    });
    const [status] = mcp!.status();
    assert.deepEqual([status!.state, status!.protocolVersion], ['connected', speaks]);
    assert.ok(status!.because);
    const results = agent.turns.flatMap((turn) => (turn.role === 'tools' ? turn.results : []));
    assert.deepEqual(
      results.map(({ blocks, isError }) => [blocks, isError]),
      ['42', 'Hello, Ada!', '2'].map((text) => [[{ type: 'text', text }], false]),
    );
    assert.deepEqual(
      events.filter(({ type }) => type === 'error'),
      [],
    );
  });
