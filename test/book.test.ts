// The book is true, and its machinery would notice if it were not.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, test } from 'node:test';
import { promisify } from 'node:util';
import * as book from '../chapters/book.ts';
import { cleanUp, folder, later, root, until } from './helpers.ts';

afterEach(cleanUp);

test('the book is true: quotations, cover, cuts, consoles, imports, hints, links', { timeout: 300_000 }, async () => {
  assert.deepEqual(await book.check(book.readBook()), []);
});

// ─── A small book, for its faults to be found ─────────────────────────────────────────────────────────────────

const SOURCE = `import { homedir } from 'node:os';

export function greet(name: string): string {
  const home = homedir();
  let text = 'Hello';
  text += name;
  return text + home.slice(0, 0);
}

export const twice = (n: number) => n * 2;
`;
const HINTS = [1, 2, 3].map((n) => `<details><summary>Hint ${n}</summary>\n\nTry ${n}.\n</details>\n`).join('\n');
const ONE = `# 1. Hello

\`\`\`ts mcp.ts exercise
export function greet(name: string): string {
  // …
  let text = 'Hello';
  // …
}
\`\`\`

\`\`\`ts mcp.ts
  return text + home.slice(0, 0);
\`\`\`

## Exercise: greet

${HINTS}
[next](../02-world/README.md#2-world)
`;
const TWO = `# 2. World

\`\`\`ts mcp.ts
import { homedir } from 'node:os';
// …
export function greet(name: string): string {
  const home = homedir();
  // …
  text += name;
  // …
}

export const twice = (n: number) => n * 2;
\`\`\`

\`\`\`ts mcp.ts exercise
export function greet(name: string): string {
  // …
  text += name;
  // …
}
\`\`\`

\`\`\`console
$ echo one; echo two
one
two
\`\`\`

${HINTS}`;

/** A book of two chapters in a folder of its own, with these files changed. */
function small(changed: Record<string, string> = {}): book.Book {
  const at = folder();
  const files = {
    'mcp.ts': SOURCE,
    'agent.ts': '',
    'README.md': '',
    'tsconfig.json': readFileSync(join(root, 'tsconfig.json'), 'utf8'),
    'fixtures/server.mjs': '',
    'chapters/01-hello/README.md': ONE,
    'chapters/02-world/README.md': TWO,
    ...Object.fromEntries(['01-hello', '02-world'].flatMap((slug) => [`${slug}/demo.ts`, `${slug}/exercise.ts`]).map((name) => [`chapters/${name}`, ''])),
    ...changed,
  };
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(at, name)), { recursive: true });
    writeFileSync(join(at, name), text);
  }
  symlinkSync(join(root, 'node_modules'), join(at, 'node_modules'), 'junction');
  return book.readBook(at);
}

test('a line belongs to the first chapter that quotes it, a blank one goes with the line below it', () => {
  const { chapters } = small();
  assert.deepEqual(chapters.map(({ n, title }) => [n, title]), [[1, 'Hello'], [2, 'World']]);
  assert.deepEqual(book.owners(small(), 'mcp.ts'), [2, 1, 1, 2, 1, 2, 1, 1, 2, 2, 0]);
  assert.deepEqual(book.problemsOnPages(small()), []);
});

test('the program of a chapter is its lines and those before; the difference is what it adds', () => {
  assert.equal(book.cut(small(), 'mcp.ts', 1), `
export function greet(name: string): string {
  let text = 'Hello';
  return text + home.slice(0, 0);
}
`);
  assert.equal(book.cut(small(), 'mcp.ts', 2), SOURCE);
  const added = book.diff(small(), 2).filter((line) => line.startsWith('+'));
  assert.deepEqual(added, ["+ import { homedir } from 'node:os';", '+   const home = homedir();', '+   text += name;', '+', '+ export const twice = (n: number) => n * 2;']);
});

test('a program is not written through a link, nor is what is behind one cleared away', () => {
  const [outside, target] = [folder(), folder()];
  writeFileSync(join(outside, 'mine.txt'), 'mine');
  symlinkSync(outside, join(target, 'node_modules'), 'junction');
  assert.throws(() => book.writeProgram(small(), 1, target), /node_modules is a link.*move it away/);
  assert.throws(() => book.writeProgram(small(), 1, join(target, 'node_modules')), /node_modules is a link/);
  assert.deepEqual(readdirSync(outside), ['mine.txt']);
});

test('a quotation that is not in its file, or not in this order, is named by page and line', () => {
  const page = (text: string) => book.problemsOnPages(small({ 'chapters/02-world/README.md': text }));
  assert.match(page(TWO.replace('text += name;', 'text += names;')).join(), /^chapters\/02-world\/README\.md:9: this is not in mcp\.ts.*text \+= names;/);
  assert.match(page(TWO.replace("import { homedir } from 'node:os';\n// …\n", '').replace('\n\nexport const twice', "\n// …\nimport { homedir } from 'node:os';\nexport const twice")).join(), /not in mcp\.ts/);
  assert.match(page(TWO.replace('```ts mcp.ts\n', '```ts gone.ts\n')).join(), /02-world\/README\.md:4: there is no file gone\.ts/);
});

test('a line that no chapter quotes is named by file and number', () => {
  const problems = book.problemsOnPages(small({ 'mcp.ts': `${SOURCE}export const thrice = 3;\n` }));
  assert.deepEqual(problems, ['mcp.ts:11: no chapter quotes this line']);
});

test('missing hints, exercises, demos, dead links and sections, imports of what comes later, unknown messages', () => {
  const problems = book.problemsOnPages(small({
    'chapters/01-hello/README.md': `${ONE.replace('Hint 3', 'A word')}\n[nowhere](../03/README.md) [no part](../02-world/README.md#gone)\n`,
    'chapters/02-world/README.md': TWO.replace('mcp.ts exercise', 'mcp.ts'),
    'chapters/01-hello/early.ts': "import { x } from '../02-world/late.ts';\nexport { x };\n",
    'chapters/TROUBLESHOOTING.md': "## `Hel…`\n\n## `Bye, …`\n",
  }));
  const wanted = [/01-hello.*has 2 hints/, /02-world.*no quotation is marked as the exercise/, /leads nowhere: \.\.\/03/, /leads nowhere: .*#gone/, /early\.ts.*comes later/, /no message of the program says: Bye,/];
  for (const each of wanted) assert.match(problems.join('\n'), each);
  assert.equal(problems.length, wanted.length, problems.join('\n'));
});

test('a cut that does not pass the type-checker is named', async () => {
  const problems = await book.problemsOfTypes(small());
  assert.match(problems.join('\n'), /the program of chapter 01\/mcp\.ts.*Cannot find name 'home'/);
  const good = small({ 'chapters/01-hello/README.md': ONE.replace('\n  // …\n  let', '\n  const home = homedir();\n  let').replace('```ts mcp.ts exercise', "```ts mcp.ts\nimport { homedir } from 'node:os';\n```\n\n```ts mcp.ts exercise") });
  assert.deepEqual(await book.problemsOfTypes(good), []);
});

test('a console block that a fresh run does not confirm is named, with what came', async () => {
  assert.deepEqual(await book.problemsOfConsoles(small()), []);
  const problems = await book.problemsOfConsoles(small({ 'chapters/02-world/README.md': TWO.replace('one\ntwo', 'one\nthree') }));
  assert.equal(problems.length, 1);
  assert.match(problems[0]!, /^chapters\/02-world\/README\.md:\d+: a fresh run of "echo one; echo two" prints something else:\none\ntwo$/);
});

test('in a console block times may differ, `…` stands for left out lines, and nothing else', () => {
  const same = (shown: string[], printed: string[]) => book.firstDifference(shown, printed) === undefined;
  assert.ok(same(['a', 'took 12 ms'], ['a', 'took 8.5 ms']));
  assert.ok(same(['a', '…', 'z'], ['a', 'b', 'c', 'z']));
  assert.ok(same(['a', '…'], ['a', 'b', 'c']));
  assert.ok(!same(['a'], ['a', 'b']));
  assert.ok(!same(['a', 'b'], ['a']));
  assert.ok(!same(['a', '…', 'z'], ['a', 'b']));
  assert.ok(!same(['12 files'], ['13 files']));
});

test('the hole of an exercise keeps the first and last line of its quotation, in the program of its chapter', () => {
  const { chapters, ...rest } = small();
  const first = book.exerciseOf({ chapters, ...rest }, chapters[0]!)!;
  const holed = book.withHole({ chapters, ...rest }, first);
  assert.match(holed, /string \{\n {2}\/\/ Exercise 1: greet\n {2}throw new Error\('exercise 1 is not solved yet'\);\n\}/);
  assert.doesNotMatch(holed, /Hello|home|twice/);
});

test('`fix` puts the source\'s new words into quotations, and names what it cannot find', () => {
  const changed = SOURCE.replace('text += name;', 'text += `, ${name}`;').replace("'Hello'", "'Good day'");
  const { root: at } = small({ 'mcp.ts': changed });
  const page = () => readFileSync(join(at, 'chapters/02-world/README.md'), 'utf8');
  const lost = book.fix(book.readBook(at));
  assert.deepEqual(lost.map((line) => line.replace(/:\d+:/, ':')), [
    "chapters/01-hello/README.md: could not be found in mcp.ts: let text = 'Hello';",
    'chapters/02-world/README.md: could not be found in mcp.ts: text += name;',
    'chapters/02-world/README.md: could not be found in mcp.ts: text += name;',
  ]);
  writeFileSync(join(at, 'chapters/02-world/README.md'), page().replaceAll('  // …\n  text += name;\n  // …\n}', "  let text = 'Hello';\n  text += name;\n  return text + home.slice(0, 0);\n}"));
  assert.equal(book.fix(book.readBook(at)).filter((line) => line.includes('02-world')).length, 0);
  assert.match(page(), /let text = 'Good day';\n {2}text \+= `, \$\{name\}`;\n {2}return/);
});

// ─── The commands, as a reader types them ─────────────────────────────────────────────────────────────────────

/** Runs `npm run NAME ARGS` as npm would, with a folder for the learner's work whose name has spaces. */
function runner(at = root) {
  const work = join(folder(), 'my work');
  const run = (...args: string[]) =>
    promisify(execFile)(process.execPath, ['--import', 'tsx', join(at, 'chapters', 'book.ts'), ...args], { cwd: at, env: { ...process.env, WORK: work } })
      .then(({ stdout }) => ({ code: 0, output: stdout }), ({ code, stdout, stderr }) => ({ code: code as number, output: `${stdout}${stderr}` }));
  return { run, work };
}

test('a chapter can be run, run on the program before it, compared and written out', async () => {
  const { run, work } = runner();
  assert.match((await run('chapter', '4')).output, /on the program as of chapter 4\n[^]*→ \{"jsonrpc"[^]*asked for Bob: \{"who":"Bob"\}/);
  const before = await run('chapter', '4', '--before');
  assert.equal(before.code, 1);
  assert.match(before.output, /on the program as of chapter 3\n[^]*request is not a function/);
  assert.match((await run('chapter', '4', '--diff')).output, /^\+ +private pending = new Map/m);
  await run('chapter', '4', '--code');
  const program = readFileSync(join(work, 'program-04', 'mcp.ts'), 'utf8');
  assert.match(program, /private pending/);
  assert.doesNotMatch(program, /failAll/); // that is chapter 5
  assert.ok(existsSync(join(work, 'program-04', 'fixtures', 'server.mjs')));
});

test('what a reader may mistype is answered in a sentence', async () => {
  const { run } = runner();
  for (const args of [['chapter', '99'], ['chapter', '4', '--befor'], ['workshop', 'start', 'x'], ['workshop', 'check', '4'], ['workshop', 'solve', '4'], ['nonsense']]) {
    const { code, output } = await run(...args);
    assert.equal(code, 2, `${args}: ${output}`);
    assert.doesNotMatch(output, /\n +at /);
  }
});

test('an exercise: begun, red with a message that helps, hints one by one, solved, compared, reset', { timeout: 180_000 }, async () => {
  const { run, work } = runner();
  const mine = join(work, '04', 'mcp.ts');
  assert.match((await run('workshop', 'start', '4')).output, /edit .*04\/mcp\.ts:\d+\n/);
  assert.match((await run('workshop', 'start', '4')).output, /You have begun[^]*edit .*04\/mcp\.ts:\d+\n/);
  const red = await run('workshop', 'check', '4');
  assert.equal(red.code, 1);
  assert.match(red.output, /✗ a result resolves the promise\n {2}expected: .*\n {2}came: .*not solved yet\n {2}on the wire:\n {4}→ [^]*look at: .*mcp\.ts:\d+/);
  assert.doesNotMatch((await run('workshop', 'hint', '4')).output, /Hint 2/);
  assert.match((await run('workshop', 'hint', '4')).output, /Hint 1 of 3[^]*Hint 2 of 3/);
  assert.equal((await run('workshop', 'compare', '4')).code, 2); // not before it passes

  const solution = `const { jsonrpc, result = null, error = null } = answer;
    const { code = 0, message = '', data } = asObject(error);
    if (jsonrpc !== '2.0' || (result === null) === (error === null) || (error === null && !isObject(result))) return reject(this.error('protocol', 'is odd'));
    const words = \`\${this.serverName} in \${call.method}: \${JSON.stringify(message)}\`.slice(0, 9000);
    if (error === null) resolve(result as Json); else reject(new RpcError(Number(code) || -1, \`"\${words}\`.replace(' in', '" in'), data));`;
  writeFileSync(mine, readFileSync(mine, 'utf8').replace("throw new Error('exercise 4 is not solved yet');", solution));
  const green = await run('workshop', 'check', '4');
  assert.equal(green.code, 0, green.output);
  assert.match(green.output, /Solved/);
  assert.match((await run('workshop')).output, /✓ solved +04 [^]*Next: .*start 1$/m);
  assert.match((await run('workshop', 'compare', '4')).output, /── yours[^]*is odd[^]*── ours[^]*neither result nor error/);
  assert.match((await run('workshop', 'reset', '4')).output, /old copy is now .*04\.old-1/);
  assert.match(readFileSync(join(work, '04.old-1', 'mcp.ts'), 'utf8'), /is odd/);
  assert.doesNotMatch(readFileSync(mine, 'utf8'), /is odd/);
});

test('a solution that leaves, or never ends, or is no program, is not solved, and the learner is told', async () => {
  const { run, work } = runner();
  await run('workshop', 'start', '4');
  const mine = join(work, '04', 'mcp.ts');
  const shipped = readFileSync(mine, 'utf8');
  const solve = async (solution: string) => {
    writeFileSync(mine, shipped.replace("throw new Error('exercise 4 is not solved yet');", solution));
    return run('workshop', 'check', '4');
  };
  assert.match((await solve('process.exit(0);')).output, /came: +the program left before it was judged/);
  assert.match((await solve('}')).output, /✗ Node can load the program[^]*TransformError/);
  const nothing = await solve('');
  assert.equal(nothing.code, 1);
  assert.match(nothing.output, /✗ a result resolves the promise[^]*came: +nothing, in three seconds/);
});

test('a program cannot be cut out of a changed mcp.ts, and the reader is told how to get it back', async () => {
  const at = copy();
  const { run } = runner(at);
  writeFileSync(join(at, 'mcp.ts'), readFileSync(join(at, 'mcp.ts'), 'utf8').replace('private nextId = 1;', 'private nextId = 0;'));
  for (const args of [['chapter', '4'], ['workshop', 'start', '4']]) {
    const { code, output } = await run(...args);
    assert.deepEqual([code, /mcp\.ts is not the program of the book any more.*git checkout mcp\.ts/.test(output)], [2, true], output);
  }
  assert.equal((await run('chapter', '3', '--diff')).code, 0); // that line is chapter 4's
});

test('`watch` judges again when the file is saved', async () => {
  const { run, work } = runner();
  await run('workshop', 'start', '4');
  const child = spawn(process.execPath, ['--import', 'tsx', join(root, 'chapters', 'book.ts'), 'workshop', 'watch', '4'], { cwd: root, env: { ...process.env, WORK: work } });
  later(() => child.kill());
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text) => (output += text));
  await until(() => output.includes('not solved yet'), 'the first verdict');
  const mine = join(work, '04', 'mcp.ts');
  writeFileSync(mine, readFileSync(mine, 'utf8').replace('exercise 4 is not solved yet', 'half done'));
  await until(() => output.includes('half done'), 'the second verdict');
});

/** The repository once more, in a folder whose name has spaces, and without git. */
function copy(): string {
  const at = join(folder(), 'a clone');
  const names = ['mcp.ts', 'agent.ts', 'README.md', 'tsconfig.json', 'package.json', 'chapters', 'fixtures'];
  for (const name of names) cpSync(join(root, name), join(at, name), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(at, 'node_modules'), 'junction');
  return at;
}

test('everything works from a path with spaces, without git', async () => {
  const { run } = runner(copy());
  assert.match((await run('chapter', '4')).output, /asked for Bob: \{"who":"Bob"\}/);
  assert.match((await run('workshop', 'start', '4')).output, /check +npm run workshop check 4/);
  assert.match((await run('workshop', 'check', '4')).output, /✗ a result resolves/);
});

test("SUBJECT puts a reader's own client under our tests", async () => {
  const mine = join(folder(), 'mcp.ts');
  const judge = () => {
    const args = ['--import', 'tsx', '--test', '--test-name-pattern', 'what a server refuses keeps', join(root, 'test', '04-correlation.test.ts')];
    const env = Object.fromEntries(Object.entries({ ...process.env, SUBJECT: mine }).filter(([name]) => name !== 'NODE_TEST_CONTEXT'));
    return promisify(execFile)(process.execPath, args, { cwd: root, env }).then(() => 'green', () => 'red');
  };
  writeFileSync(mine, readFileSync(join(root, 'mcp.ts'), 'utf8'));
  assert.equal(await judge(), 'green');
  writeFileSync(mine, readFileSync(mine, 'utf8').replace("typeof code === 'number' ? code", 'code === 7 ? code'));
  assert.equal(await judge(), 'red');
});
