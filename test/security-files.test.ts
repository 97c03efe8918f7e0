// The attack cases of group E that the file tools and the shell answer by themselves, by their ids. Whether anybody is
// asked before (E4 E7 E8 E9 E13 E14) is the gate's part; what it knows about a path is tested here.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import {
  closeSync,
  existsSync,
  ftruncateSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { Gate, Trust } from '../agent.ts';
import { globMatcher, walkFiles } from '../chapters/16-hands/more/glob.ts';
import { openFile, replaceProjectFile, Roots } from '../chapters/16-hands/paths.ts';
import { hands, type HandsOptions } from '../chapters/16-hands/tools.ts';
import type { Rule } from '../chapters/17-the-gate/rules.ts';
import { allGone, cleanUp, folder, isRunning, later, pidsIn, root, until } from './help/basics.ts';

afterEach(cleanUp);

/** A folder with two folders in it: `app`, where the tools work, and `outside`, which holds a secret. */
function prepare(options: Partial<HandsOptions> = {}) {
  const base = realpathSync(folder());
  const [cwd, outside, resultsFolder] = [
    join(base, 'app'),
    join(base, 'outside'),
    join(base, 'results'),
  ];
  for (const path of [cwd, outside]) mkdirSync(path);
  writeFileSync(join(outside, 'secret'), 'theirs');
  const roots = new Roots(cwd, [], [resultsFolder]);
  const tools = hands({ roots, resultsFolder, ...options });
  const row = (name: string) => tools.find(({ definition }) => definition.name === name)!;
  const call = async (name: string, args: { [key: string]: unknown }) => {
    const context = { signal: new AbortController().signal, onProgress() {} };
    const { blocks, isError } = await row(name).run(args, context);
    return {
      isError,
      text: blocks.map((block) => (block.type === 'text' ? block.text : '[image]')).join('\n'),
    };
  };
  /** Neither write nor edit may change what is outside, even if somebody has read it before. */
  const cannotWrite = async (path: string) => {
    await call('read', { path });
    for (const [name, args] of [
      ['write', { content: 'ours' }],
      ['edit', { old: 'theirs', new: 'ours' }],
    ] as const) {
      const { isError, text } = await call(name, { path, ...args });
      assert.ok(
        isError && /^.* is outside of the folders that you may write to/.test(text),
        `${name} ${path}: ${text}`,
      );
    }
    assert.deepEqual(
      [readdirSync(outside), readFileSync(join(outside, 'secret'), 'utf8')],
      [['secret'], 'theirs'],
    );
  };
  return { base, cwd, outside, resultsFolder, roots, row, call, cannotWrite };
}

// ─── E1, E2: names ───

test('E1: a path that leaves the folder is known for that, however it is written', async () => {
  const { roots, cannotWrite, outside, base } = prepare();
  const paths = [
    '../outside/secret',
    join(outside, 'secret'),
    'a/../../outside/secret',
    './/../outside/./secret',
    '../outside/new/x',
  ];
  for (const path of paths) {
    const { shown, inside, readable, real } = roots.locate(path);
    assert.deepEqual(
      [shown, inside, readable, real.startsWith(join(base, 'outside'))],
      [path, false, false, true],
    );
    await cannotWrite(path);
  }
  for (const path of ['..', '/', '/proc/self/environ', '/etc/passwd'])
    assert.equal(roots.locate(path).inside, false, path);
  assert.ok(roots.locate('/proc/self/environ').secret || process.platform !== 'linux');
});

test('E1: ~ is the home folder, and only where it stands for it', () => {
  const { roots, cwd } = prepare();
  const home = realpathSync(homedir());
  assert.deepEqual(
    [roots.locate('~').real, roots.locate('~/no such.file').real],
    [home, join(home, 'no such.file')],
  );
  assert.equal(roots.locate('~/x').inside, false);
  assert.deepEqual(
    [roots.locate('~x').real, roots.locate('a~/b').real],
    [join(cwd, '~x'), join(cwd, 'a~', 'b')],
  );
});

test('E1: a NUL character is refused before any system call could cut the path there', async () => {
  const { roots, call } = prepare();
  assert.throws(() => roots.locate('a\0../../x'), /NUL/);
  for (const name of ['read', 'write', 'grep', 'glob']) {
    const args = {
      path: 'a\0b',
      ...(name === 'write' ? { content: '' } : name === 'read' ? {} : { pattern: 'x' }),
    };
    assert.match((await call(name, args)).text, /NUL/);
  }
});

test('E1, J5: a path that is too long to be one is refused before any of its parts is looked for', () => {
  const { roots } = prepare();
  assert.throws(() => roots.locate('a/'.repeat(250_000)), /more than 4096 characters/);
});

test('E1: inside are the folder itself, what is in it, and what the user added', async () => {
  const { roots, cwd, outside } = prepare();
  for (const path of ['.', 'a', './a/b', '..a', '...', join(cwd, 'x'), '../app/x', ''])
    assert.equal(roots.locate(path).inside, true, path);
  const wider = new Roots(cwd, ['../outside']);
  assert.deepEqual(
    [wider.locate('../outside/new').inside, wider.locate('../other').inside],
    [true, false],
  );
  assert.throws(() => new Roots(cwd, ['../missing']), /missing/);
  assert.equal(wider.show(join(outside, 'secret')), join(outside, 'secret'));
});

test('E1: our own results can be read freely, but not written', async () => {
  const { roots, call, resultsFolder, cwd } = prepare();
  const path = join(resultsFolder, 'result-0001-x.txt');
  assert.deepEqual([roots.locate(path).inside, roots.locate(path).readable], [false, true]); // not there yet
  assert.match(
    (await call('write', { path, content: 'x' })).text,
    /outside of the folders that you may write to/,
  );
  const nested = new Roots(cwd, [], [join(cwd, 'saved')]);
  assert.deepEqual(
    [
      nested.locate('saved/x').inside,
      nested.locate('saved/x').readable,
      nested.locate('saved-not').inside,
    ],
    [false, true, true],
  );
});

test('E17: our own results can be read where they really are, in our own folder', () => {
  const [home, cwd] = [folder(), folder()];
  const results = join(home, '.mcp-by-hand', 'sessions', 'x', 'results');
  const roots = new Roots(cwd, [], [results]);
  assert.equal(roots.locate(join(results, 'result-0001-bash.txt')).secret, undefined);
  assert.ok(roots.locate(join(results, '..', 'y.jsonl')).secret);
});

test('E2: a sibling whose name begins like ours is outside', async () => {
  const { roots, base, call } = prepare();
  mkdirSync(join(base, 'app-evil'));
  for (const path of ['../app-evil/f', join(base, 'app-evil', 'f'), `${join(base, 'app')}-evil`]) {
    assert.deepEqual(
      [roots.locate(path).inside, roots.locate(path).readable],
      [false, false],
      path,
    );
    assert.ok((await call('write', { path, content: 'x' })).isError);
  }
  assert.deepEqual(readdirSync(join(base, 'app-evil')), []);
});

// ─── E3, E5: links ───

test('E3: links are judged by where they lead: to a file, through a folder, in a chain', async () => {
  const { roots, cwd, outside, cannotWrite } = prepare();
  symlinkSync('../outside/secret', join(cwd, 'file'));
  symlinkSync(outside, join(cwd, 'folder'));
  symlinkSync('folder', join(cwd, 'chain'));
  mkdirSync(join(cwd, 'deep'));
  symlinkSync('../chain/secret', join(cwd, 'deep', 'link'));
  for (const path of ['file', 'folder/secret', 'chain/secret', 'deep/link']) {
    assert.deepEqual(
      [roots.locate(path).real, roots.locate(path).inside],
      [join(outside, 'secret'), false],
      path,
    );
    await cannotWrite(path);
  }
  await cannotWrite('folder/new');
  await cannotWrite('folder/new/deeper');
  symlinkSync('deep', join(cwd, 'within'));
  assert.equal(roots.locate('within/x').inside, true);
});

test('E3: a link to something that is not there yet is judged by its other end', async () => {
  const { roots, cwd, outside, cannotWrite } = prepare();
  symlinkSync('../outside/planted', join(cwd, 'dangling'));
  symlinkSync('dangling', join(cwd, 'chain'));
  symlinkSync(join(outside, 'no', 'such'), join(cwd, 'folder'));
  symlinkSync('folder/x', join(cwd, 'through'));
  assert.equal(roots.locate('dangling').real, join(outside, 'planted'));
  assert.equal(roots.locate('through').real, join(outside, 'no', 'such', 'x'));
  for (const path of ['dangling', 'chain', 'folder', 'folder/x', 'through'])
    await cannotWrite(path);
});

test('E3: links that lead in a circle are an error, not a hang', () => {
  const { roots, cwd } = prepare();
  symlinkSync('b', join(cwd, 'a'));
  symlinkSync('a', join(cwd, 'b'));
  symlinkSync('self/x', join(cwd, 'self'));
  for (const path of ['a', 'a/x', 'self'])
    assert.throws(() => roots.locate(path), /leads back to itself/, path);
});

test('E3: a search in a folder follows no link out of it', async () => {
  const { call, cwd, outside } = prepare();
  symlinkSync(outside, join(cwd, 'folder'));
  symlinkSync(join(outside, 'secret'), join(cwd, 'file'));
  writeFileSync(join(cwd, 'ours'), 'theirs, too');
  assert.equal((await call('grep', { pattern: 'theirs' })).text, 'ours:1:theirs, too');
  assert.doesNotMatch((await call('glob', { pattern: '**' })).text, /secret/);
});

test('E5: what was judged is what is opened, though a folder became a link in between', async () => {
  const { roots, cwd, outside } = prepare();
  mkdirSync(join(cwd, 'folder'));
  writeFileSync(join(cwd, 'folder', 'secret'), 'ours');
  const [old, fresh, deep] = ['folder/secret', 'folder/new', 'folder/a/b/c'].map((path) =>
    roots.locate(path),
  );
  renameSync(join(cwd, 'folder'), join(cwd, 'moved'));
  symlinkSync(outside, join(cwd, 'folder'));
  await assert.rejects(openFile(old!), /link/);
  for (const location of [old!, fresh!, deep!])
    await assert.rejects(replaceProjectFile(location, 'ours'), /link/);
  assert.deepEqual(
    [readdirSync(outside), readFileSync(join(outside, 'secret'), 'utf8')],
    [['secret'], 'theirs'],
  );
});

test('E5: nor if a folder further up, or the file itself, became a link', async () => {
  const { roots, cwd, outside } = prepare();
  mkdirSync(join(cwd, 'up', 'folder'), { recursive: true });
  mkdirSync(join(outside, 'folder'));
  writeFileSync(join(outside, 'folder', 'file'), 'theirs');
  writeFileSync(join(cwd, 'up', 'folder', 'file'), 'ours');
  writeFileSync(join(cwd, 'file'), 'ours');
  const [below, file] = [roots.locate('up/folder/file'), roots.locate('file')];
  renameSync(join(cwd, 'up'), join(cwd, 'moved'));
  symlinkSync(outside, join(cwd, 'up'));
  await assert.rejects(openFile(below), /no longer what was judged/);
  await assert.rejects(replaceProjectFile(below, 'ours'), /no longer what was judged/);
  rmSync(join(cwd, 'file'));
  symlinkSync(join(outside, 'secret'), join(cwd, 'file'));
  await assert.rejects(openFile(file), /no longer what was judged/);
  await replaceProjectFile(file, 'ours'); // takes the place of the link, and does not go through it
  assert.deepEqual(
    [readFileSync(join(outside, 'secret'), 'utf8'), readFileSync(join(cwd, 'file'), 'utf8')],
    ['theirs', 'ours'],
  );
  assert.equal(readFileSync(join(outside, 'folder', 'file'), 'utf8'), 'theirs');
});

test('E5: a race against somebody who swaps the folder all the time writes nothing outside', async () => {
  if (process.platform !== 'linux') return; // elsewhere a moment remains, see within() in paths.ts
  const { call, roots, cwd, outside } = prepare();
  mkdirSync(join(cwd, 'folder'));
  const swap = `
    const { renameSync, symlinkSync, unlinkSync } = require('node:fs');
    const { cwd, outside } = ${JSON.stringify({ cwd, outside })};
    const linger = () => { for (const end = performance.now() + 0.3 * Math.random(); performance.now() < end; ); };
    process.chdir(cwd);
    for (;;) {
      renameSync('folder', 'moved');
      symlinkSync(outside, 'folder');
      linger();
      unlinkSync('folder');
      renameSync('moved', 'folder');
      linger();
    }`;
  const swapper = spawn(process.execPath, ['-e', swap], { stdio: 'ignore' });
  later(() => swapper.kill('SIGKILL'));
  await until(
    () => !existsSync(join(cwd, 'folder')) || existsSync(join(cwd, 'folder', 'secret')),
    'the first swap',
  );
  for (let i = 0; i < 1000; i++) {
    await call('write', { path: i % 2 ? `folder/${i}/x` : `folder/${i}`, content: 'ours' });
    const location = roots.locate('folder/secret');
    const file = location.inside && (await openFile(location).catch(() => undefined));
    if (file) assert.fail(`read ${await file.readFile('utf8').finally(() => file.close())}`); // it is only outside
  }
  swapper.kill('SIGKILL');
  assert.deepEqual(readdirSync(outside), ['secret']);
});

test('E5: a link that changes while the user is asked is not followed to its new end', async () => {
  const { row, cwd, outside } = prepare();
  writeFileSync(join(cwd, 'harmless'), 'harmless');
  symlinkSync('harmless', join(cwd, 'link'));
  const args = { path: 'link' };
  row('read').touches!(args);
  rmSync(join(cwd, 'link'));
  symlinkSync(join(outside, 'secret'), join(cwd, 'link'));
  const { isError, blocks } = await row('read').run(args, {
    signal: new AbortController().signal,
    onProgress() {},
  });
  assert.ok(isError);
  assert.match(
    blocks[0]?.type === 'text' ? blocks[0].text : '',
    /led to .*harmless when it was judged, and now it leads to .*secret/,
  );
});

// ─── E6: special files ───

test('E6: a FIFO, a device, a socket and a folder are refused at once', async () => {
  const { call, cwd } = prepare();
  execFileSync('mkfifo', [join(cwd, 'fifo')]);
  const server = createServer().listen(join(cwd, 'socket'));
  later(() => server.close());
  await until(() => server.listening);
  mkdirSync(join(cwd, 'folder'));
  for (const path of ['fifo', 'socket', '/dev/zero', '/dev/tty']) {
    assert.match((await call('read', { path })).text, /not a regular file/, path);
    assert.match((await call('grep', { pattern: 'x', path })).text, /not a regular file/, path);
  }
  for (const path of ['fifo', 'socket'])
    assert.match((await call('write', { path, content: '' })).text, /not a regular file/);
  assert.match((await call('read', { path: 'folder' })).text, /is a folder/);
  assert.match((await call('grep', { pattern: 'x' })).text, /no match/); // in passing they are not opened either
  assert.ok(statSync(join(cwd, 'fifo')).isFIFO());
});

test('E6: a file of 5 GB is read as far as needed, and not into memory', async () => {
  const { call, cwd } = prepare();
  const fd = openSync(join(cwd, 'sparse'), 'w');
  ftruncateSync(fd, 5 * 2 ** 30);
  closeSync(fd);
  assert.match((await call('read', { path: 'sparse' })).text, /not text/);
  assert.match((await call('grep', { pattern: 'x', path: 'sparse' })).text, /1 files over/);
  assert.match((await call('grep', { pattern: 'x' })).text, /1 files over/);
  const text = openSync(join(cwd, 'text'), 'w');
  for (let i = 0; i < 12; i++) writeSync(text, 'a line of text\n'.repeat(70_000));
  ftruncateSync(text, 5 * 2 ** 30);
  closeSync(text);
  const { text: page } = await call('read', { path: 'text' });
  assert.match(
    page,
    /\[lines 1 to 2000 of a file too large to count them; go on with offset 2001\]$/,
  );
  await call('read', { path: 'sparse' });
  assert.match(
    (await call('edit', { path: 'text', old: 'a', new: 'b' })).text,
    /too many for edit/,
  );
});

// ─── E7, E14, D8: what the gate is told about a path ───

test('E14: files that may hold secrets are known by name, in any case and through links', async () => {
  const { roots, cwd, outside } = prepare();
  const secrets = [
    '.env',
    '.env.local',
    '.ENV.Production',
    'sub/.env',
    'prod.env',
    '.env.example.local',
    'server.pem',
    'tls.KEY',
    'a.p12',
    'a.pfx',
    'id_rsa',
    'id_ed25519',
    'keys/id_ecdsa',
    'id_ed25519_work',
    '.npmrc',
    '.netrc',
    '.pypirc',
    '.git-credentials',
    '.aws/credentials',
    'kubeconfig',
    '.kube/config',
    '.ssh/config',
    '.ssh/known_hosts',
    '.gnupg/x/y',
    '.envrc',
    '.docker/config.json',
    '.e\u200bnv',
    '.env.',
    '.env::$DATA',
  ];
  for (const path of secrets) assert.ok(roots.locate(path).secret, path);
  const harmless = [
    '.env.example',
    '.env.sample',
    '.env.template',
    'id_rsa.pub',
    'environment.ts',
    'env.d.ts',
    'monkey',
    'keys.ts',
    'ssh/x',
    'pem',
    'a.keyboard',
  ];
  for (const path of harmless) assert.equal(roots.locate(path).secret, undefined, path);
  writeFileSync(join(outside, '.env'), 'KEY=1');
  symlinkSync(join(outside, '.env'), join(cwd, 'notes.md'));
  symlinkSync('harmless', join(cwd, '.env'));
  assert.ok(roots.locate('notes.md').secret && roots.locate('.env').secret);
});

test('E14: a search in a folder passes secrets by and says so; one that is named is searched', async () => {
  const { call, cwd } = prepare();
  for (const name of ['.env', 'server.pem', 'code.ts']) writeFileSync(join(cwd, name), 'TOKEN=123');
  const { text } = await call('grep', { pattern: 'TOKEN' });
  assert.equal(
    text,
    'code.ts:1:TOKEN=123\n[2 files that may hold secrets were skipped; name one as path to search it]',
  );
  assert.equal((await call('grep', { pattern: 'TOKEN', path: '.env' })).text, '.env:1:TOKEN=123');
});

test('E7, D8: files that make programs run, or steer the agent, are known by name', () => {
  const { roots, cwd } = prepare();
  const fences = [
    '.git/hooks/pre-commit',
    '.git/config',
    '.git',
    'sub/.git/config',
    '.Git/Hooks/x',
    '.vscode/tasks.json',
    '.idea/x.xml',
    '.husky/pre-push',
    '.claude/settings.json',
    '.CLAUDE/Settings.json',
    '.mcp.json',
    '.MCP.JSON',
    '.mcp-by-hand/trust.json',
    '.npmrc',
    '.yarnrc.yml',
    '.bashrc',
    '.zshrc',
    '.profile',
    '.bash_profile',
    '.zshenv',
    '.envrc',
    '.github/workflows/ci.yml',
    '.gitmodules',
    '.g\u200bit/config',
    '.git /config',
  ];
  for (const path of fences) assert.ok(roots.locate(path).fence, path);
  const harmless = [
    '.gitignore',
    '.github/README.md',
    'git/config',
    'claude/x',
    'profile',
    'mcp.md',
    'bashrc.ts',
  ];
  for (const path of harmless) assert.equal(roots.locate(path).fence, undefined, path);
  mkdirSync(join(cwd, '.git', 'hooks'), { recursive: true });
  symlinkSync('.git/hooks', join(cwd, 'scripts'));
  assert.ok(roots.locate('scripts/pre-commit').fence); // by its real name
});

// ─── E10: search ───

test('E10: a pattern is data: what looks like an option is searched for', async () => {
  const { call, cwd } = prepare();
  const marker = join(cwd, 'marker');
  writeFileSync(join(cwd, 'x'), `#!/bin/sh\ntouch '${marker}'\n--pre=./x\n`, { mode: 0o755 });
  assert.equal((await call('grep', { pattern: '--pre=./x' })).text, 'x:3:--pre=./x');
  assert.ok(!existsSync(marker));
});

test('E10: a pattern that would search for ever is ended at the budget, and we stay awake meanwhile', async () => {
  const { call, cwd } = prepare({ searchTimeoutMs: 500 });
  writeFileSync(join(cwd, 'a'), 'aa\n');
  writeFileSync(join(cwd, 'b'), `${'a'.repeat(60)}!\n`);
  let ticks = 0;
  const timer = setInterval(() => ticks++, 10);
  later(() => clearInterval(timer));
  const { text, isError } = await call('grep', { pattern: '^(a+)+$' });
  assert.ok(isError);
  assert.match(text, /^a:1:aa\ngrep was stopped after 0\.5 s, in b: .*simpler pattern/); // what it found is kept
  assert.ok(ticks > 5, `${ticks}`);
});

// ─── J5: a search leaves room for everything else ───

test('J5: among 20,000 files timers fire, an abort is heard, and the time has an end', async () => {
  const hidden: string[] = [];
  const controller = new AbortController();
  const isHidden = (path: string) => {
    hidden.push(path);
    if (hidden.length === 1) setImmediate(() => controller.abort()); // as Ctrl-C would
    return true;
  };
  const { row, cwd } = prepare({ isHidden });
  const hurried = prepare({ searchTimeoutMs: 1 });
  writeFileSync(join(cwd, '0'), '');
  // Links are cheaper than files.
  for (let n = 1; n <= 20_000; n++) linkSync(join(cwd, '0'), join(cwd, `${n}`));

  let turn = 0; // of the event loop: in each of them a timer or a key press can be heard
  const next = () => void (turn++, (timer = setImmediate(next)));
  let timer = setImmediate(next);
  const perTurn: number[] = [];
  for await (const _ of walkFiles(cwd)) perTurn[turn] = (perTurn[turn] ?? 0) + 1;
  clearImmediate(timer);
  const most = Math.max(...perTurn.filter(Boolean));
  assert.ok(most <= 100, `${most} files in one turn`);

  const context = { signal: controller.signal, onProgress() {} };
  const stopped = await row('grep').run({ pattern: 'x' }, context);
  assert.deepEqual(stopped.blocks, [{ type: 'text', text: 'stopped' }]);
  assert.ok(hidden.length <= 100, `${hidden.length}`);

  rmSync(hurried.cwd, { recursive: true });
  renameSync(cwd, hurried.cwd);
  const searches = { glob: { pattern: '**/*a*b*c*d' }, grep: { pattern: 'x', glob: '*a*b*c*d' } };
  for (const [name, args] of Object.entries(searches)) {
    const { isError, text } = await hurried.call(name, args);
    assert.ok(isError, name);
    assert.match(text, /was stopped after 0\.001 s/);
  }
});

test('J5: where the text of an edit is not found, the nearest line of a large file is not looked for to the end', async () => {
  const { call, cwd } = prepare();
  const nearly = (count: number) => `${'ab'.repeat(39)}x\n`.repeat(count);
  const cpu = async (path: string) => {
    await call('read', { path });
    const before = process.cpuUsage();
    const { text } = await call('edit', { path, old: 'ba'.repeat(40), new: 'x' });
    assert.match(text, /The nearest is line 1:/);
    return process.cpuUsage(before).user;
  };
  writeFileSync(join(cwd, 'small'), nearly(300));
  writeFileSync(join(cwd, 'large'), nearly(60_000));
  const [small, large] = [await cpu('small'), await cpu('large')];
  assert.ok(large < 50 * small, `${large} µs, and ${small} µs for a 200th`);
});

test('J5: a rule is compiled once, however many files it is asked about', () => {
  const { roots, base } = prepare();
  let reads = 0;
  const rule: Rule = { effect: 'deny', tool: 'read', text: 'read(**)', isHere: true };
  Object.defineProperty(rule, 'pattern', {
    enumerable: true,
    get: () => {
      reads++;
      return '**/**/**/**/*a*b*c*d';
    },
  });
  const gate = new Gate({ roots, trust: new Trust({ home: base, cwd: base }), rules: [rule] });
  for (let n = 0; n < 100; n++) gate.isHidden(join(base, `${n}`));
  assert.ok(reads <= 3, `${reads}`);
});

test('J5: no pattern explodes, neither by its stars nor by its braces', () => {
  const long = `${'ab/'.repeat(300)}${'abc'.repeat(80)}`;
  assert.equal(globMatcher('**/**/**/**/*a*b*c*d')(long), false);
  assert.equal(globMatcher(`${'**/'.repeat(300)}*a*b*c*d`, true)(long), false);
  assert.equal(globMatcher(`${'**/*a*b/'.repeat(100)}*d`)(long), false);
  assert.throws(() => globMatcher(`${'{a,b}'.repeat(9)}${'x'.repeat(900)}`), /stand for too much/);
});

// ─── E11, E12: the shell ───

test('E11: a command sees none of our keys, unless the user has named them', async () => {
  const planted = {
    ANTHROPIC_API_KEY: 'sk-1',
    AWS_SECRET_ACCESS_KEY: 'sk-2',
    GITHUB_TOKEN: 'sk-3',
    BASH_ENV: './evil',
    NODE_OPTIONS: '--no-warnings',
  };
  const before = { ...process.env };
  later(() => {
    for (const name of Object.keys(planted)) delete process.env[name];
    Object.assign(process.env, before);
  });
  Object.assign(process.env, planted);
  const { text } = await prepare().call('bash', { command: 'env' });
  assert.match(text, /^PATH=/m);
  for (const [name, value] of Object.entries(planted))
    assert.ok(!text.includes(name) && !text.includes(value), name);
  const named = await prepare({ shellEnv: ['GITHUB_TOKEN'] }).call('bash', { command: 'env' });
  assert.ok(named.text.includes('GITHUB_TOKEN=sk-3') && !named.text.includes('sk-1'));
});

test('E12: a background process neither keeps us waiting nor stays', async () => {
  const { call, cwd } = prepare();
  const pids = join(cwd, 'pids');
  const { text, isError } = await call('bash', {
    command: 'sleep 1000 & echo $! > pids; echo done',
  });
  assert.deepEqual(
    [text, isError],
    ['done\n[background processes of the command were ended with it]\nexit code 0', false],
  );
  await allGone(pids);
  await call('bash', { command: 'sleep 1000 > /dev/null 2>&1 & echo $! > pids' }); // this one does not hold the pipe
  await allGone(pids);
});

test('E12: nor does one that has left the group keep us waiting', async () => {
  const { call, cwd } = prepare();
  const pids = join(cwd, 'pids');
  later(() =>
    pidsIn(pids)
      .filter(isRunning)
      .forEach((pid) => process.kill(pid, 'SIGKILL')),
  );
  writeFileSync(
    join(cwd, 'leave.cjs'),
    `
    const { pid } = require('node:child_process').spawn('sleep', ['1000'], { detached: true, stdio: 'inherit' });
    require('node:fs').writeFileSync('pids', String(pid));
    process.exit();
  `,
  );
  const pipes = () => process.getActiveResourcesInfo().filter((name) => name === 'PipeWrap').length;
  const before = pipes();
  const { text } = await call('bash', { command: `'${process.execPath}' leave.cjs; echo done` });
  assert.match(text, /^done\n(\[background processes.*\]\n)?exit code 0$/); // on Linux it is found
  assert.equal(pidsIn(pids).length, 1);
  await until(() => pipes() <= before, 'the end of the pipe'); // while it is open, our program could not end
});

test('E12: endless output is bounded in the answer and on the disk', async () => {
  const { call, resultsFolder } = prepare();
  const { text, isError } = await call('bash', {
    command: 'echo odd; yes 0123456789012345678901234567890123456789 | head -c 70000000',
    timeout: 60,
  });
  assert.ok(!isError && text.length < 32_000);
  assert.match(
    text,
    /\[the file ends after 52428800 bytes, the command wrote more\]\nexit code 0$/,
  );
  assert.deepEqual(
    readdirSync(resultsFolder).map((name) => statSync(join(resultsFolder, name)).size),
    [50 * 2 ** 20],
  );
  const endless = await call('bash', { command: 'yes', timeout: 1 });
  assert.match(endless.text, /timed out after 1 s$/);
});

test('E12: our own end is the end of a command', async () => {
  const { cwd, resultsFolder } = prepare();
  const pids = join(cwd, 'pids');
  const from = (file: string) =>
    JSON.stringify(pathToFileURL(join(root, 'chapters', '16-hands', file)).href);
  const program = `
    import { existsSync } from 'node:fs';
    import { Roots } from ${from('paths.ts')};
    import { hands } from ${from('tools.ts')};
    const [cwd, resultsFolder, pids] = ${JSON.stringify([cwd, resultsFolder, pids])};
    const bash = hands({ roots: new Roots(cwd), resultsFolder }).at(-1);
    bash.run(
      { command: "trap '' TERM; sleep 1000 & echo $! >> pids; echo $$ >> pids; wait; sleep 1000" },
      { signal: new AbortController().signal },
    );
    setInterval(() => existsSync(pids) && process.exit(7), 50);
  `;
  const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', program], {
    cwd: root,
    stdio: 'inherit',
  });
  later(() => child.kill('SIGKILL'));
  await until(() => child.exitCode !== null, 'the end of the program');
  assert.equal(child.exitCode, 7);
  await allGone(pids);
});
