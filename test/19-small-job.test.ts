// A small job, as a new user sees it: a test fails, the model finds the bug, mends it and runs the tests again.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { cleanUp } from './help/basics.ts';
import { call, say, startModelServer } from './help/model-server.ts';
import { place, Terminal } from './help/terminal.ts';

afterEach(cleanUp);

const CALC = `export function add(a, b) {
  return a + b;
}

export function subtract(a, b) {
  return a + b;
}
`;
const TEST = `import { add, subtract } from './calc.mjs';

let failed = 0;
function check(what, got, wanted) {
  console.log(got === wanted ? \`ok \${what}\` : \`not ok \${what}: got \${got}, wanted \${wanted}\`);
  if (got !== wanted) failed++;
}
console.log('\\n' + 'loading …\\n'.repeat(20));
check('add', add(2, 40), 42);
check('subtract', subtract(44, 2), 42);
console.log(\`\${2 - failed} passed, \${failed} failed\\n\`);
process.exit(failed);
`;
const ANSWER = `## What was wrong

\`subtract\` in **calc.mjs** added its arguments.

- one line is changed
`;

test('a small job: nothing of it has to be guessed', async () => {
  const runTests = call('bash', { command: 'node test.mjs' });
  const model = await startModelServer([
    call('grep', { pattern: 'divide' }),
    call('read', { path: 'calc.mjs' }),
    runTests,
    call('edit', {
      path: 'calc.mjs',
      old: 'subtract(a, b) {\n  return a + b',
      new: 'subtract(a, b) {\n  return a - b',
    }),
    runTests,
    say(ANSWER),
  ]);
  const where = place({ 'calc.mjs': CALC, 'test.mjs': TEST });
  const env = { ANTHROPIC_API_KEY: 'a-key-for-tests', ANTHROPIC_BASE_URL: model.url };
  const terminal = new Terminal(where, ['a test fails: mend it'], env, 80, 30);
  /** What is new on the screen when the question is open. */
  const asked = async (times: number) => {
    await terminal.see(/^Allow it\?/, times);
    await terminal.see(/: *$(?![^]*^\S)/);
    return terminal.text.split(/^Allow it\?.*$/m)[times - 1]!;
  };

  // What was looked for and read, and how much of it there was.
  const first = await asked(1);
  assert.match(first, /^✓ grep\(pattern: "divide"\) .*\n  │ no match for divide in 2 files/m);
  assert.match(first, /^✓ read\(path: "calc\.mjs"\) \d+ ms, 7 lines$/m);
  assert.match(first, /^The model wants to call bash:\n  command: "node test\.mjs"$/m);
  terminal.enter('y');

  // The command that fails: itself, its exit code, its end.
  const second = await asked(2);
  const failed =
    /^✗ bash \d.*, exit code 1\n  \$ node test\.mjs\n  … after \d+ lines; \/last shows all\n([^]*)^The model/m;
  const [, end = ''] = failed.exec(second)!;
  assert.match(
    end,
    /  │ ok add\n  │ not ok subtract: got 46, wanted 42\n  │ 1 passed, 1 failed\n$/,
  );

  // The change, before it is made.
  const diff = [
    '   │ export function subtract(a, b) {',
    '  -│   return a + b;',
    '  +│   return a - b;',
    '   │ }',
  ].join('\n');
  const question = second.slice(
    second.indexOf('The model wants to call edit:\n  path: "calc.mjs"\n  @@ '),
  );
  assert.ok(question.includes(`${diff}\n  "calc.mjs": 1 line added, 1 line removed\n`), second);
  assert.equal(readFileSync(join(where.cwd, 'calc.mjs'), 'utf8'), CALC);
  terminal.enter('y');

  // And not once more when it was made.
  const third = await asked(3);
  assert.match(third, /^✓ edit\(path: "calc\.mjs"\) \d+ ms, 1 line added, 1 line removed$/m);
  assert.ok(!third.includes(diff), third);
  terminal.enter('y');

  // The command that works tells by its end that it did. The answer is drawn, not spelled.
  await terminal.see(
    /^✓ bash \d.*, exit code 0\n  \$ node test\.mjs\n  … after \d+ lines.*\n(  │.*\n)+  │ ok subtract\n  │ 2 passed, 0 failed\n/,
  );
  await terminal.see(
    /^What was wrong\n+subtract in calc\.mjs added its arguments\.\n+• one line is changed\n/,
  );
  await terminal.see(/^60 tokens in, 30 out · /);
  await terminal.ready();
  assert.ok(readFileSync(join(where.cwd, 'calc.mjs'), 'utf8').includes('return a - b'));
  terminal.enter('/exit');
  assert.deepEqual([await terminal.ended(), model.problems], [0, []]);
});
