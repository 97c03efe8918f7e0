// What `npm pack` makes: a program and two modules that need neither TypeScript nor any other package.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { transform } from 'esbuild';
import { cleanUp, folder, goodServer, root } from '../help/basics.ts';

after(cleanUp);

const run = promisify(execFile);
const shell = process.platform === 'win32';
const [place, home] = [folder(), folder()];
const env = { ...process.env, HOME: home, USERPROFILE: home };
const inside = join(place, 'node_modules', 'mcp-by-hand');

// An empty folder into which the tarball is installed, without a network.
const { stdout: packed } = await run(
  'npm',
  ['run', '--silent', 'package', '--', '--pack-destination', place],
  {
    cwd: root,
    shell,
  },
);
writeFileSync(join(place, 'package.json'), '{ "private": true, "type": "module" }');
const tarball = `./${packed.trim().split('\n').at(-1)}`;
await run('npm', ['install', '--no-audit', '--no-fund', '--offline', tarball], {
  cwd: place,
  shell,
});

test('the package holds the compiled program and no dependency', () => {
  assert.deepEqual(
    readdirSync(join(place, 'node_modules')).filter((name) => !name.startsWith('.')),
    ['mcp-by-hand'],
  );
  assert.deepEqual(readdirSync(inside).sort(), ['LICENSE', 'README.md', 'dist', 'package.json']);
  const files = readdirSync(join(inside, 'dist'), { recursive: true }) as string[];
  assert.deepEqual(
    files.filter((name) => /(?<!\.d)\.ts$/.test(name)),
    [],
  );
});

test('its program runs without TypeScript', async () => {
  const { name, version } = JSON.parse(readFileSync(join(inside, 'package.json'), 'utf8'));
  const own = (args: string[]) => {
    const ended = run(join(place, 'node_modules', '.bin', name), args, { cwd: place, env, shell });
    ended.child.stdin!.end(); // it would wait for more of its prompt
    return ended;
  };
  assert.equal((await own(['--version'])).stdout, `${version}\n`);
  const call = ['add', 'a=2', 'b=40', '--', process.execPath, goodServer];
  assert.match((await own(['probe', '--call', ...call])).stdout, /the call worked:\s+42/);
  assert.equal((await own(['call', ...call])).stdout, '42\n');
  const config = JSON.stringify({ demo: { command: process.execPath, args: [goodServer] } });
  const chat = ['-p', 'add 2 and 40', '--mcp-config', config, '--allow', 'mcp__demo__add'];
  assert.match((await own(chat)).stdout, /\b42\b/);
});

const PROGRAM = `
import { connect, type ToolResult } from 'mcp-by-hand';
import { Agent, Scripted, hands, Roots, type Ending } from 'mcp-by-hand/agent';
const server = await connect({ command: process.execPath, args: [${JSON.stringify(goodServer)}] });
const result: ToolResult = await server.callTool('add', { a: 2, b: 40 });
console.log(result.text);
await server.close();
const model = new Scripted([{ calls: [{ name: 'read', args: { path: 'package.json' } }] }, 'I have read it.']);
const agent = new Agent({ model, tools: hands({ roots: new Roots('.'), resultsFolder: '.' }), resultsFolder: '.' });
const { ending, text }: { ending: Ending; text: string } = await agent.chat('look');
console.log(ending, text);
`;
const untyped = (text: string) =>
  text
    .replace(/, type \w+/g, '')
    .replace(': ToolResult', '')
    .replace(/: \{ ending: Ending.*?\} =/, ' =');
const runHere = async (name: string, text: string, flags: string[] = []) => {
  writeFileSync(join(place, name), text);
  return (await run(process.execPath, [...flags, name], { cwd: place, env })).stdout;
};

test('who imports it gets the client and the agent', async () => {
  assert.equal(await runHere('use.mjs', untyped(PROGRAM)), '42\ndone I have read it.\n');
});

test('the programs of README and REFERENCE run as they are printed', async () => {
  cpSync(join(root, 'fixtures'), join(place, 'fixtures'), { recursive: true });
  writeFileSync(join(place, 'mcp.ts'), '');
  writeFileSync(join(place, 'agent.ts'), '');
  const pages = ['README.md', 'chapters/REFERENCE.md'].map((page) =>
    readFileSync(join(root, page), 'utf8'),
  );
  const programs = [...pages.join('\n').matchAll(/^```ts\n([^]*?)^```$/gm)];
  assert.equal(programs.length, 8);
  for (const [, text] of programs) {
    const { code } = await transform(text!, { loader: 'ts' });
    const stdout = await runHere('example.mjs', code);
    for (const [, said] of text!.matchAll(/console\.log.* \/\/ (.*)$/gm))
      assert.ok(stdout.includes(said!), `${text}\n${stdout}`);
  }
});

test('a class is one class, whichever module it comes from', async () => {
  const { exports } = JSON.parse(readFileSync(join(inside, 'package.json'), 'utf8'));
  const names = Object.keys(exports).map((name) => name.replace('.', 'mcp-by-hand'));
  const modules = await runHere(
    'classes.mjs',
    `const modules = await Promise.all(${JSON.stringify(names)}.map((name) => import(name)));
    const classes = new Map();
    for (const [name, value] of modules.flatMap((each) => Object.entries(each)))
      if (/^class /.test(String(value))) classes.set(name, [...(classes.get(name) ?? []), value]);
    for (const [name, values] of classes)
      if (values.length > 1) console.log(name, new Set(values).size);`,
  );
  const lines = modules.trim().split('\n');
  assert.ok(lines.includes('McpConnection 1'), modules);
  assert.ok(
    lines.every((line) => line.endsWith(' 1')),
    modules,
  );
});

test('an error in the package names the source, with --enable-source-maps', async () => {
  const text = `import { connect } from 'mcp-by-hand'; await connect('http://127.0.0.1:1/mcp')`;
  writeFileSync(join(place, 'fails.mjs'), text);
  const failed = await run(process.execPath, ['--enable-source-maps', 'fails.mjs'], {
    cwd: place,
    env,
  }).catch((error) => error);
  assert.match(failed.stderr, /chapters\/.*\.ts:\d+/);
});

test('and their types', async () => {
  const { exports } = JSON.parse(readFileSync(join(inside, 'package.json'), 'utf8'));
  for (const { types } of Object.values<{ types: string }>(exports))
    assert.ok(existsSync(join(inside, types)), types);
  const tsc = join(root, 'node_modules', '.bin', 'tsc');
  const flags = [
    '--ignoreConfig',
    '--noEmit',
    '--strict',
    '--module',
    'nodenext',
    '--target',
    'es2022',
    '--types',
    'node',
  ];
  const check = (text: string) => {
    writeFileSync(join(place, 'use.ts'), text);
    return run(tsc, [...flags, '--typeRoots', join(root, 'node_modules', '@types'), 'use.ts'], {
      cwd: place,
      shell,
    });
  };
  await check(PROGRAM);
  const wrong = await check(PROGRAM.replace('text: string }', 'text: number }')).catch(
    (error) => error,
  );
  assert.match(`${wrong.stdout}`, /'string' is not assignable to type 'number'/);
});
