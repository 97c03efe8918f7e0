// What `npm pack` makes: a program and five modules that need neither TypeScript nor any other package,
// tried in an empty folder, on each version of Node, in Bun and in Deno.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { transform } from 'esbuild';
import { cleanUp, folder, goodServer, root } from '../help/basics.ts';
import { installed } from '../help/installed.ts';
import { runtime, runtimes, toRun } from '../help/runtimes.ts';
import { Terminal } from '../help/terminal.ts';

after(cleanUp);

const run = promisify(execFile);
const shell = process.platform === 'win32';
const [place, home] = [folder(), folder()];
const env = { ...process.env, HOME: home, USERPROFILE: home };
const inside = join(place, 'node_modules', 'mcp-by-hand');

const pack = async (to: string) => {
  const args = ['run', '--silent', 'package', '--', '--pack-destination', to];
  const { stdout } = await run('npm', args, { cwd: root, shell });
  return stdout.trim().split('\n').at(-1)!;
};

// An empty folder into which the tarball is installed, without a network.
const tarball = await pack(place);
writeFileSync(join(place, 'package.json'), '{ "private": true, "type": "module" }');
await run('npm', ['install', '--no-audit', '--no-fund', '--offline', `./${tarball}`], {
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

test('packed again it has the same bytes, a README of its own, and nothing that only a clone needs', async () => {
  const again = folder();
  assert.equal(await pack(again), tarball);
  assert.ok(readFileSync(join(again, tarball)).equals(readFileSync(join(place, tarball))));
  const [readme, manifest] = ['README.md', 'package.json'].map((name) =>
    readFileSync(join(inside, name), 'utf8'),
  );
  assert.match(readme!, /^npm install mcp-by-hand$/m);
  assert.ok(readme!.trimEnd().split('\n').length <= 110);
  const { private: isPrivate, scripts, devDependencies } = JSON.parse(manifest!);
  assert.deepEqual([isPrivate, scripts, devDependencies], [undefined, undefined, undefined]);
});

test('publint and arethetypeswrong find nothing', async () => {
  const judges = join(installed('@arethetypeswrong/cli@0.18.5', 'publint@0.3.25'), 'node_modules');
  const judge = (file: string, ...args: string[]) =>
    run(process.execPath, [join(judges, file), ...args], { cwd: place }).catch((error) => error);
  const lint = await judge('publint/src/cli.js', '--strict', tarball);
  assert.ok(!lint.code && /All good!/.test(lint.stdout), `${lint.stdout}${lint.stderr}`);
  // Node reads all of it as ES modules, which a program of the older kind takes in by import().
  const profile = ['--profile', 'esm-only', '--format', 'table-flipped', '--no-emoji'];
  const types = await judge('@arethetypeswrong/cli/dist/index.js', tarball, ...profile);
  assert.ok(!types.code, `${types.stdout}${types.stderr}`);
});

test('its program runs without TypeScript', async () => {
  const { name, version } = JSON.parse(readFileSync(join(inside, 'package.json'), 'utf8'));
  const own = (args: string[]) => {
    const ended = run(join(place, 'node_modules', '.bin', name), args, { cwd: place, env, shell });
    ended.child.stdin!.end(); // it would wait for more of its prompt
    return ended;
  };
  assert.equal((await own(['--version'])).stdout, `${version}\n`);
  assert.doesNotMatch((await own(['--help'])).stdout, /clone|agent\.ts/);
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
const TYPED = `import { connect, type ContentBlock, type ServerTarget } from 'mcp-by-hand';
const target: ServerTarget = { command: 'a', args: ['b'], env: { KEY: process.env.KEY }, cwd: '/' };
const server = await connect(target, { onElicit: () => ({ action: 'decline' }), roots: ['/'] });
await connect({ url: 'https://a.example/mcp', headers: { authorization: 'Bearer x' }, timeout: 5 });
const [block]: ContentBlock[] = (await server.callTool('a', {}, { timeoutMs: 5 })).content;
if (block?.type === 'text') block.text.trim();
if (block?.type === 'image' || block?.type === 'audio') block.data.trim();
if (block?.type === 'resource') block.resource.uri.trim();
`;
const MISTYPED = `import { connect } from 'mcp-by-hand';
await connect({ comand: 'a' });
await connect({ command: 'a', timeoutMs: 5 });
await connect({ url: 'https://a.example', header: {} });
await connect({ command: 'a' }, { onElicitation: () => {} });
await connect({});
`;
const SAID = '42\ndone I have read it.\n';
const untyped = (text: string) =>
  text
    .replace(/, type \w+/g, '')
    .replace(': ToolResult', '')
    .replace(/: \{ ending: Ending.*?\} =/, ' =');
const runHere = async (name: string, text: string, flags: string[] = []) => {
  writeFileSync(join(place, name), text);
  return (await run(process.execPath, [...flags, name], { cwd: place, env })).stdout;
};

const here = { name: 'node', program: process.execPath };
for (const wanted of ['here', ...runtimes])
  test(`${wanted}: call, a chat in a terminal, connect() from JavaScript and from TypeScript`, async () => {
    const { name, program } = wanted === 'here' ? here : runtime(wanted);
    const flags = toRun(name);
    const runs = async (...args: string[]) =>
      (await run(program, [...flags, ...args], { cwd: place, env })).stdout;
    const start = join(inside, 'dist', 'chapters', 'start.cjs');
    const server = ['--', process.execPath, goodServer];
    assert.equal(await runs(start, 'call', 'add', 'a=2', 'b=40', ...server), '42\n');
    writeFileSync(join(place, 'use.mjs'), untyped(PROGRAM));
    writeFileSync(join(place, 'use.ts'), PROGRAM);
    assert.equal(await runs('use.mjs'), SAID);
    if (wanted !== 'here') assert.equal(await runs('use.ts'), SAID); // Node 20 reads none
    const cwd = join(folder(), 'project');
    mkdirSync(cwd);
    const size = [120, 50] as const;
    const command = [program, ...flags, start] as [string, ...string[]];
    const terminal = new Terminal({ home: folder(), cwd }, [], {}, ...size, command);
    await terminal.ready();
    terminal.enter('add 2 and 40');
    await terminal.see(/the tool "add" of the MCP server "calculator"/);
    terminal.enter('y');
    await terminal.see(/│ 42$/);
    await terminal.ready();
    terminal.enter('/exit');
    assert.equal(await terminal.ended(), 0);
  });

test('what the reference shows as a server is one, over its pipe', async () => {
  const page = readFileSync(join(root, 'chapters', 'REFERENCE.md'), 'utf8');
  const [text] = /import \{ McpServer[^]*?(?=^```$)/m.exec(page)!;
  writeFileSync(join(place, 'greeter.mjs'), text);
  const call = ['call', 'greet', 'name=Ada', '--', process.execPath, 'greeter.mjs', '--stdio'];
  const start = join(inside, 'dist', 'chapters', 'start.cjs');
  const { stdout } = await run(process.execPath, [start, ...call], { cwd: place, env });
  assert.equal(stdout, 'Hello, Ada!\n');
});

test('the programs of both READMEs and of REFERENCE run as they are printed', async () => {
  cpSync(join(root, 'fixtures'), join(place, 'fixtures'), { recursive: true });
  writeFileSync(join(place, 'mcp.ts'), '');
  writeFileSync(join(place, 'agent.ts'), '');
  const names = ['README.md', 'chapters/package/README.md', 'chapters/REFERENCE.md'];
  const pages = names.map((page) => readFileSync(join(root, page), 'utf8'));
  const programs = [...pages.join('\n').matchAll(/^```[tj]s\n([^]*?)^```$/gm)];
  assert.equal(programs.length, 12);
  const everything = '@modelcontextprotocol/server-everything';
  const own = join(installed(`${everything}@2026.8.31`), 'node_modules', everything);
  const started = JSON.stringify(join(own, 'dist', 'index.js')); // what npx finds in the end
  for (const [, text] of programs) {
    const local = text!.replace(
      `command: 'npx', args: ['-y', '${everything}']`,
      `command: 'node', args: [${started}]`,
    );
    const { code } = await transform(local, { loader: 'ts' });
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

test('an error that is not caught shows one line of source, which can be read', async () => {
  const text = `import { connect } from 'mcp-by-hand'; await connect('http://127.0.0.1:1/mcp')`;
  writeFileSync(join(place, 'dies.mjs'), text);
  const died = await run(process.execPath, ['dies.mjs'], { cwd: place, env }).catch(
    (error) => error,
  );
  assert.match(died.stderr, /McpError: MCP server "127\.0\.0\.1:1"/);
  assert.ok(died.stderr.length < 3000, `${died.stderr.length} characters`);
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
  await check(TYPED);
  const errors = await check(MISTYPED).catch((error) => error);
  const lines = [...`${errors.stdout}`.matchAll(/^use\.ts\((\d+),/gm)].map(([, line]) => +line!);
  assert.deepEqual([...new Set(lines)], [2, 3, 4, 5, 6], errors.stdout);
});
