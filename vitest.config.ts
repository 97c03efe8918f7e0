import { defineConfig } from 'vitest/config';

// Node reads these certificates whenever it starts, which takes longer than the rest of its start.
// We start it thousands of times, and no test here leaves this machine.
delete process.env.NODE_EXTRA_CA_CERTS;

// The tests import node:test and run under both runners: here the name leads to vitest,
// under `npm run test:node` it leads to Node's own.
export default defineConfig({
  resolve: { alias: { 'node:test': 'vitest' } },
  test: {
    include: ['test/*.test.ts'],
    // Tests wait for real processes. These limits only end a hang; no test asserts a duration.
    maxWorkers: 6, // most of a test is waiting for a process
    isolate: false, // a worker loads the program once for all its files; Node's own runner keeps them apart
    retry: 1, // a machine can be too busy for a real process; the report says what was tried again
    reporters: ['default', ['json', { outputFile: '.cache/tests.json' }]], // for test/again.ts
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
