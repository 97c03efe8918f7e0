// The commands of the book, as a reader types them: chapters, exercises, the judge; also from a path with spaces and in a
// clone with CR LF.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { cpSync, existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { promisify } from 'node:util';
import { main } from '../chapters/book.ts';
import { problemsOfQuotations } from '../chapters/book/check.ts';
import { readBook } from '../chapters/book/pages.ts';
import { cleanUp, folder, later, root, until } from './help/basics.ts';

afterEach(cleanUp);

/** Runs `npm run NAME ARGS` as npm would, with a folder for the learner's work whose name has spaces. A demo runs in a
 *  process of its own, since it ends with it; for the rest this one will do, and is there already. */
function runner(at = root) {
  const work = join(folder(), 'my work');
  const inProcess = async (args: string[]) => {
    const lines: unknown[] = [];
    const { log, error } = console;
    const { WORK } = process.env;
    Object.assign(console, {
      log: (line = '') => lines.push(line),
      error: (line = '') => lines.push(line),
    });
    Object.assign(process.env, { WORK: work });
    let code = 0;
    try {
      await main(args, at);
      code = Number(process.exitCode ?? 0);
    } catch (problem: any) {
      code = problem.isUsage ? 2 : 1;
      lines.push(problem.isUsage ? problem.message : problem.stack);
    } finally {
      Object.assign(console, { log, error });
      if (WORK === undefined) delete process.env.WORK;
      else process.env.WORK = WORK;
      process.exitCode = 0;
    }
    return { code, output: `${lines.join('\n')}\n` };
  };
  const apart = (args: string[], door = 'book.ts') => {
    const command = ['--import', 'tsx', join(at, 'chapters', door), ...args];
    const run = promisify(execFile)(process.execPath, command, {
      cwd: at,
      env: { ...process.env, WORK: work },
    });
    return run.then(
      ({ stdout }) => ({ code: 0, output: stdout }),
      ({ code, stdout, stderr }) => ({ code: code as number, output: `${stdout}${stderr}` }),
    );
  };
  const isDemo = ([command, , flag]: string[]) =>
    command === 'chapter' && (flag === undefined || /^(--)?before$/.test(flag));
  const run = (...args: string[]) => (isDemo(args) ? apart(args) : inProcess(args));
  return { run, work, apart };
}

test('the commands say what is wrong in a sentence also to a shell, and by their exit code', async () => {
  const { code, output } = await runner().apart(['workshop', 'solve', '4']);
  assert.deepEqual([code, /there is no "workshop solve"/.test(output)], [2, true], output);
});

test('a chapter can be run, run on the program before it, compared and written out', async () => {
  const { run, work } = runner();
  assert.match(
    (await run('chapter', '4.1')).output,
    /on the program as of chapter 4\.1\n[^]*→ \{"jsonrpc"[^]*asked for Bob: \{"who":"Bob"\}/,
  );
  const before = await run('chapter', '4.1', 'before');
  assert.match(before.output, /on the program as of chapter 3\n[^]*nobody was told/);
  for (const words of [['diff'], ['--diff'], ['--', '--diff']])
    assert.match((await run('chapter', '4.1', ...words)).output, /^\+ +private pending = new Map/m);
  await run('chapter', '4', 'code');
  const program = readFileSync(join(work, 'program-04', 'mcp.ts'), 'utf8');
  assert.match(program, /private pending/);
  assert.doesNotMatch(program, /failAll/); // that is chapter 5
  assert.ok(existsSync(join(work, 'program-04', 'fixtures', 'server.mjs')));
});

test('what a reader may mistype is answered in a sentence', async () => {
  const { run } = runner();
  for (const args of [
    ['chapter', '99'],
    ['chapter', '4', 'befor'],
    ['workshop', 'start', 'x'],
    ['workshop', 'check', '4'],
    ['workshop', 'solve', '4'],
    ['nonsense'],
  ]) {
    const { code, output } = await run(...args);
    assert.equal(code, 2, `${args}: ${output}`);
    assert.doesNotMatch(output, /\n +at /);
  }
});

const SOLVED_4 = `const { method, params, options: { headers } } = call;
    const id = this.nextId++;
    return new Promise((resolve, reject) => {
      this.pending.set(id, { call, resolve, reject });
      this.send({ jsonrpc: '2.0', id, method, params }, headers).catch((error) => this.fail(id, error)); // my own words
    });`;

test('an exercise: begun, red with a message that helps, hints one by one, solved, compared, reset', {
  timeout: 180_000,
}, async () => {
  const { run, work } = runner();
  const mine = join(work, '04', 'mcp.ts');
  assert.match((await run('workshop', 'start', '4')).output, /edit .*04\/mcp\.ts:\d+\n/);
  assert.match(
    (await run('workshop', 'start', '4')).output,
    /You have begun[^]*edit .*04\/mcp\.ts:\d+\n/,
  );
  const red = await run('workshop', 'check', '4');
  assert.equal(red.code, 1);
  assert.match(
    red.output,
    /✗ a request goes through `this\.send`, once.*\n {2}expected: .*\n {2}came: .*not solved yet\n {2}look at: .*mcp\.ts:\d+/,
  );
  assert.doesNotMatch((await run('workshop', 'hint', '4')).output, /Hint 2/);
  assert.match((await run('workshop', 'hint', '4')).output, /Hint 1 of 3[^]*Hint 2 of 3/);
  assert.equal((await run('workshop', 'compare', '4')).code, 2); // not before it passes

  writeFileSync(
    mine,
    readFileSync(mine, 'utf8').replace(
      "throw new Error('exercise 4 is not solved yet');",
      SOLVED_4,
    ),
  );
  const green = await run('workshop', 'check', '4');
  assert.equal(green.code, 0, green.output);
  assert.match(green.output, /Solved/);
  assert.match((await run('workshop')).output, /✓ solved +04 [^]*Next: .*start 1$/m);
  assert.match((await run('workshop', 'line')).output, /^1 of \d+ solved, at 1, ./);
  const state = async () =>
    JSON.parse((await run('workshop', 'json')).output).find(({ name }: any) => name === '4').state;
  assert.equal(await state(), 'solved');
  const text = readFileSync(mine, 'utf8');
  writeFileSync(mine, `${text}// one more thought\n`); // a verdict is on the text that was judged
  assert.equal(await state(), 'changed');
  assert.match((await run('workshop')).output, /\? changed +04 [^]*Not checked since.*: 4$/m);
  writeFileSync(mine, text);
  assert.match(
    (await run('workshop', 'compare', '4')).output,
    /── yours[^]*my own words[^]*── ours[^]*const waiter = new Waiter/,
  );
  assert.match((await run('workshop', 'reset', '4')).output, /old copy is now .*04\.old-1/);
  assert.match(readFileSync(join(work, '04.old-1', 'mcp.ts'), 'utf8'), /my own words/);
  assert.doesNotMatch(readFileSync(mine, 'utf8'), /my own words/);
});

test('a solution that leaves, or never ends, or is no program, is not solved, and the learner is told', async () => {
  const { run, work } = runner();
  await run('workshop', 'start', '4');
  const mine = join(work, '04', 'mcp.ts');
  const shipped = readFileSync(mine, 'utf8');
  const solve = async (solution: string) => {
    writeFileSync(
      mine,
      shipped.replace("throw new Error('exercise 4 is not solved yet');", solution),
    );
    return run('workshop', 'check', '4');
  };
  assert.match(
    (await solve('process.exit(0);')).output,
    /came: +the program left before it was judged/,
  );
  assert.match(
    (await solve("process.kill(0, 'SIGTERM');")).output,
    /came: +it was ended by SIGTERM/, // and so was its group, which is not ours
  );
  assert.match((await solve('}')).output, /✗ Node can load the program[^]*TransformError/);
  const nothing = await solve('return new Promise(() => {});');
  assert.equal(nothing.code, 1);
  assert.match(
    nothing.output,
    /✗ a request goes through `this\.send`, once[^]*came: +0 sent, 0 seen by onWire, and it waits/,
  );
});

test('a solution that judges itself is not solved', async () => {
  const { run, work } = runner();
  await run('workshop', 'start', '13');
  const mine = join(work, '13', 'chapters', '13-names', 'labels.ts');
  const shipped = readFileSync(mine, 'utf8');
  const tricks = {
    'it prints the last line, and leaves': "console.log('(that was all)'); process.exit(0);",
    'it reads the word that the judge has read': `
      const { readFileSync } = await import('node:fs');
      console.log(readFileSync(0, 'utf8') || process.argv.join('\\n'), process.env);
      process.exit(0);`,
    'no failure ends the judge': 'process.exit = process.reallyExit = (() => {}) as never;',
    'all patterns fit': 'RegExp.prototype.test = () => true;',
    'all races are won': 'Promise.race = async () => "mcp__a__b";',
  };
  for (const [trick, code] of Object.entries(tricks)) {
    writeFileSync(mine, `${shipped}\n${code}\n`);
    const { code: exitCode, output } = await run('workshop', 'check', '13');
    assert.equal(exitCode, 1, `${trick}: ${output}`);
    assert.match(output, /✗ /, trick);
  }
});

test('a program cannot be cut out of a changed mcp.ts, and the reader is told how to get it back', async () => {
  const at = copy();
  const { run } = runner(at);
  writeFileSync(
    join(at, 'mcp.ts'),
    readFileSync(join(at, 'mcp.ts'), 'utf8').replace('private nextId = 1;', 'private nextId = 0;'),
  );
  for (const args of [
    ['chapter', '4'],
    ['workshop', 'start', '4'],
  ]) {
    const { code, output } = await run(...args);
    assert.deepEqual(
      [code, /mcp\.ts is not the program of the book any more.*git checkout mcp\.ts/.test(output)],
      [2, true],
      output,
    );
  }
  assert.equal((await run('chapter', '3', '--diff')).code, 0); // that line is chapter 4's
});

test('`watch` judges again when the file is saved', async () => {
  const { run, work } = runner();
  await run('workshop', 'start', '4');
  const child = spawn(
    process.execPath,
    ['--import', 'tsx', join(root, 'chapters', 'book.ts'), 'workshop', 'watch', '4'],
    { cwd: root, env: { ...process.env, WORK: work } },
  );
  later(() => child.kill());
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text) => (output += text));
  await until(() => output.includes('not solved yet'), 'the first verdict');
  const mine = join(work, '04', 'mcp.ts');
  writeFileSync(
    mine,
    readFileSync(mine, 'utf8').replace('exercise 4 is not solved yet', 'half done'),
  );
  await until(() => output.includes('half done'), 'the second verdict');
});

/** The repository once more, in a folder whose name has spaces, and without git. */
function copy(): string {
  const at = join(folder(), 'a clone');
  const names = [
    'mcp.ts',
    'agent.ts',
    'README.md',
    'tsconfig.json',
    'package.json',
    'chapters',
    'fixtures',
  ];
  for (const name of names) cpSync(join(root, name), join(at, name), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(at, 'node_modules'), 'junction');
  return at;
}

test('everything works from a path with spaces, without git', async () => {
  const { run } = runner(copy());
  assert.match((await run('chapter', '4.1')).output, /asked for Bob: \{"who":"Bob"\}/);
  assert.match((await run('workshop', 'start', '4')).output, /check +npm run workshop check 4/);
  assert.match((await run('workshop', 'check', '4')).output, /✗ a request goes through/);
});

/** As git writes it with core.autocrlf, where .gitattributes does not help: every line ends with CR LF. */
function withCarriageReturns(at: string): string {
  const names = readdirSync(at, { recursive: true, withFileTypes: true });
  for (const entry of names.filter((each) => each.isFile())) {
    const file = join(entry.parentPath ?? entry.path, entry.name);
    if (!/\.(ts|mjs|md|json|html|css)$/.test(file)) continue;
    writeFileSync(file, readFileSync(file, 'utf8').replace(/\r?\n/g, '\r\n'));
  }
  return at;
}

test('a clone with CR LF: chapters, exercises, hints and the judge work as elsewhere', {
  timeout: 180_000,
}, async () => {
  const at = withCarriageReturns(copy());
  assert.deepEqual(problemsOfQuotations(readBook(at)), []);
  const { run, apart, work } = runner(at);
  assert.match((await run('chapter', '4.1', 'before')).output, /nobody was told/);
  assert.match((await run('workshop', 'start', '4')).output, /edit .*04\/mcp\.ts:\d+\n/);
  assert.match((await run('workshop', 'hint', '4')).output, /Hint 1 of 3\n\S/);
  const mine = join(work, '04', 'mcp.ts');
  const hole = readFileSync(mine, 'utf8');
  const solved = hole.replace("throw new Error('exercise 4 is not solved yet');", SOLVED_4);
  writeFileSync(mine, solved.replaceAll('\n', '\r\n')); // as an editor on Windows may
  assert.match((await run('workshop', 'check', '4')).output, /Solved/);
  const compared = (await run('workshop', 'compare', '4')).output;
  assert.match(compared, /── yours[^]*my own words[^]*── ours[^]*const waiter = new Waiter/);
  assert.doesNotMatch(compared, /class McpConnection/); // the function, not the file
  assert.match((await run('workshop', 'reset', '4')).output, /old copy is now/);
  const judge = await apart(['mcp.ts', '2'], 'judge.ts');
  assert.equal(judge.code, 0, judge.output);
});
