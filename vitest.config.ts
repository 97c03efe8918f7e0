import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestModule, type TestSpecification } from 'vitest/node';

// Node reads these certificates whenever it starts, which takes longer than the rest of its start.
// We start it thousands of times, and no test here leaves this machine.
delete process.env.NODE_EXTRA_CA_CERTS;

const LONGEST = [
  'book',
  '26-staying-alive',
  'security-oauth-metadata',
  'security-oauth-secrets',
  '21-login',
  '19-servers',
];

/** What takes longest begins first, also where nothing is known from an earlier run. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => {
      const at = LONGEST.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`));
      return at === -1 ? LONGEST.length : at;
    };
    return (await super.sort(files)).sort((a, b) => place(a) - place(b));
  }
}

/** A test that passes only the second time hides something: a busy machine, or a fault of ours. */
const triedTwice = {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const again = tests.filter((test) => (test.diagnostic()?.retryCount ?? 0) > 0);
    console.log(`Tried twice: ${again.length} of ${tests.length} tests.`);
    for (const test of again) console.log(`  ${test.module.relativeModuleId}: ${test.name}`);
  },
};

// The tests import node:test and run under both runners: here the name leads to vitest,
// under `npm run test:node` it leads to Node's own.
export default defineConfig({
  resolve: { alias: { 'node:test': 'vitest' } },
  test: {
    include: ['test/*.test.ts'],
    // Tests wait for real processes. These limits only end a hang; no test asserts a duration.
    maxWorkers: 6, // most of a test is waiting for a process
    sequence: { sequencer: LongestFirst },
    isolate: false, // a worker loads the program once for all its files; Node's own runner keeps them apart
    retry: 1, // a machine can be too busy for a real process; the report says what was tried again
    reporters: ['default', triedTwice, ['json', { outputFile: '.cache/tests.json' }]], // for test/run/again.ts
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
