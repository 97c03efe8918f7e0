// Chapter 17: whose turn it is to change a file, among programs that are killed, stopped and started again.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { statByPs, takeLock, waitForLock } from '../chapters/17-the-gate/lock.ts';
import type { Json } from '../mcp.ts';
import { cleanUp, folder, later, root, run, until } from './help/basics.ts';
import { programArgs } from './help/compiled.ts';
import { place, run as runProgram } from './help/terminal.ts';

afterEach(cleanUp);

const isWindows = process.platform === 'win32';
const inFolder = () => join(folder(), 'x.lock');
const namesBeside = (file: string) => readdirSync(join(file, '..'));

/** A lock as we make it, with something else in it. */
function write(file: string, more: Json, at?: Date): void {
  const sample = inFolder();
  takeLock(sample);
  const content = JSON.parse(readFileSync(sample, 'utf8'));
  writeFileSync(file, JSON.stringify({ ...content, id: '0123456789ab', ...more }));
  if (at) utimesSync(file, at, at);
}

test('a lock has one holder at a time, is complete when it appears, and leaves nothing', () => {
  const file = inFolder();
  const lock = takeLock(file)!;
  assert.equal(JSON.parse(readFileSync(file, 'utf8')).pid, process.pid);
  assert.deepEqual(namesBeside(file), ['x.lock']);
  assert.equal(takeLock(file), undefined);
  assert.deepEqual([lock.isOurs(), namesBeside(file)], [true, ['x.lock']]);
  lock.release();
  assert.deepEqual([lock.isOurs(), namesBeside(file)], [false, []]);
  takeLock(file);
  lock.release();
  assert.ok(existsSync(file), 'the lock of another is not ours to end');
});

test('a holder that lives is respected, also if it is stopped; of one that was killed nobody waits', async () => {
  const file = inFolder();
  const holder = run('lock-keeper.ts', [file, '0']);
  await until(() => holder.seen.output.includes('kept'));
  utimesSync(file, 0, 0); // whatever the clocks say
  assert.equal(takeLock(file), undefined);
  if (!isWindows) holder.child.kill('SIGSTOP');
  const inTheWay = new RegExp(
    `x\\.lock \\(of the process ${holder.child.pid}\\) is in the way; .*delete it`,
  );
  assert.throws(() => waitForLock(file, 100), inTheWay);
  holder.child.kill('SIGKILL');
  await holder.ended;
  assert.ok(takeLock(file), 'at the first try');
  assert.deepEqual(namesBeside(file), ['x.lock']);
});

test('one that is dead, but whose parent has not noticed, is dead', {
  skip: isWindows,
}, async () => {
  const file = inFolder();
  // `sleep` becomes the parent, and never looks after its children.
  const program = join(root, 'test', 'programs', 'lock-keeper.ts');
  const line = '"$0" "$@" 0 <&3 & exec sleep 1000';
  const parent = spawn('sh', ['-c', line, process.execPath, ...programArgs(program), file], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'ignore', 'pipe'],
  });
  later(() => parent.kill('SIGKILL'));
  await until(() => existsSync(file));
  const { pid } = JSON.parse(readFileSync(file, 'utf8'));
  assert.equal(takeLock(file), undefined);
  process.kill(pid, 'SIGKILL');
  await until(() => statByPs(pid)?.state.startsWith('Z'));
  assert.ok(takeLock(file));
});

test('a number is no name: not ours of an earlier container, and not that of the first process', {
  skip: isWindows,
}, () => {
  for (const pid of [process.pid, 1, process.ppid]) {
    const file = inFolder();
    write(file, { pid, start: '1' });
    assert.ok(takeLock(file), `${pid}`);
  }
  const file = inFolder();
  write(file, { pid: 2 ** 22 + 1 }); // more than there can be
  assert.ok(takeLock(file));
});

test('of a holder in another container, and of a lock that says nothing, nobody waits longer than a second', () => {
  const odd: (string | Json)[] = [
    '',
    '{"pid":',
    'null',
    `${process.pid}`,
    { pid: 0 },
    { id: '../../x' },
    { place: 'elsewhere' },
    { place: 'elsewhere', pid: 1 },
  ];
  for (const content of odd) {
    for (const seconds of [-3, 3]) {
      // clocks are set back, too
      const file = inFolder();
      const at = new Date(Date.now() + seconds * 1000);
      write(file, typeof content === 'string' ? {} : content);
      if (typeof content === 'string') writeFileSync(file, content);
      assert.equal(
        takeLock(file),
        undefined,
        `it may be just being made: ${JSON.stringify(content)}`,
      );
      utimesSync(file, at, at);
      assert.ok(takeLock(file), JSON.stringify(content));
      assert.deepEqual(namesBeside(file), ['x.lock']);
    }
  }
});

test('a long turn shows itself to those who cannot see the process', async () => {
  const file = inFolder();
  const lock = takeLock(file)!;
  const old = new Date(Date.now() - 60_000);
  utimesSync(file, old, old);
  lock.keepFresh();
  await until(() => lstatSync(file).mtimeMs > old.getTime() + 50_000);
  lock.release();
  assert.ok(!existsSync(file));
});

test('what a project puts in the place of a lock is neither followed nor waited for', {
  skip: isWindows,
}, () => {
  const victim = join(folder(), 'victim');
  writeFileSync(victim, 'precious');
  const plant: Record<string, (file: string) => void> = {
    link: (file) => symlinkSync(victim, file),
    'link that leads nowhere': (file) => symlinkSync(`${victim}.not`, file),
    FIFO: (file) => void execFileSync('mkfifo', [file]),
    folder: (file) => mkdirSync(file),
  };
  for (const [name, make] of Object.entries(plant)) {
    const file = inFolder();
    make(file);
    assert.throws(
      () => waitForLock(file),
      /x\.lock is in the way, and is no file; delete it/,
      name,
    );
    assert.deepEqual(namesBeside(file), ['x.lock'], name);
  }
  assert.equal(readFileSync(victim, 'utf8'), 'precious');
  assert.ok(!existsSync(`${victim}.not`));
  const large = inFolder();
  writeFileSync(large, '{"id":"'.padEnd(2 ** 20, ' '));
  utimesSync(large, 0, 0);
  assert.ok(takeLock(large));
});

test('what those left who died while they took or cleared away a lock is swept, and nothing else', () => {
  const file = inFolder();
  const id = 'a1b2c3d4e5f6';
  const dead = [`${file}.${id}.new`, `${file}.${id}.left`, `${file}.${id}.left.${id}.new`];
  const others = [`${file}.${id}`, `${file}.notes.new`, `${file}.${id}.new.txt`];
  for (const path of [...dead, ...others]) write(path, { start: '1' });
  write(`${file}.${id}.left.${id}.left`, {}); // its maker lives: it is we
  takeLock(file)!.release();
  const kept = [...others, `${file}.${id}.left.${id}.left`]
    .map((path) => path.slice(path.indexOf('x.lock')))
    .sort();
  assert.deepEqual(namesBeside(file).sort(), kept);
});

test('I4: programs that find the same dead lock at once take turns all the same', async () => {
  const file = inFolder();
  writeFileSync(`${file}.number`, '0');
  const racers = Array.from({ length: 4 }, () => run('lock-keeper.ts', [file, '45']));
  for (const { ended } of racers) {
    const { code, output } = await ended;
    assert.equal(code, 0, output);
  }
  assert.equal(readFileSync(`${file}.number`, 'utf8'), '180');
});

test('a disk without links will do', async () => {
  const file = inFolder();
  const without = `import fs from 'node:fs'; import { syncBuiltinESMExports } from 'node:module';
    fs.linkSync = () => { throw Object.assign(new Error('no links here'), { code: 'EPERM' }); }; syncBuiltinESMExports();`;
  const holder = run('lock-keeper.ts', [file, '0'], {
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(without)}`,
  });
  await until(() => holder.seen.output.includes('kept'));
  assert.equal(JSON.parse(readFileSync(file, 'utf8')).pid, holder.child.pid);
  assert.deepEqual([takeLock(file), namesBeside(file)], [undefined, ['x.lock']]);
});

test('macOS has no /proc, so `ps` says when a process began', { skip: isWindows }, async () => {
  const { state, start } = statByPs(process.pid)!;
  assert.match(state, /^[A-Z]/);
  const startedAt = Date.now() - process.uptime() * 1000;
  assert.ok(Math.abs(Number(start) - startedAt) < 3000, `${start}, not ${startedAt}`);
  const child = spawn(process.execPath, ['-e', '']);
  await once(child, 'close');
  assert.equal(statByPs(child.pid!), undefined);
});

// ─── The files of servers ───

test("ten `mcp add` at once, into your own file and the project's, lose nothing", async () => {
  const where = place();
  const settings = join(where.home, '.claude', 'settings.json');
  const shared = join(folder(), 'shared.json'); // people link their settings
  writeFileSync(shared, JSON.stringify({ theme: 'dark', mcpServers: { old: { command: 'x' } } }));
  mkdirSync(join(settings, '..'));
  symlinkSync(shared, settings);
  const names = ['a', 'b', 'c', 'd', 'e'];
  const adding = names.flatMap((name) =>
    ['user', 'project'].map((scope) =>
      runProgram(where, ['mcp', 'add', '-s', scope, `${scope}-${name}`, 'x']),
    ),
  );
  for (const { code, err } of await Promise.all(adding)) assert.equal(code, 0, err);
  const read = (file: string) => JSON.parse(readFileSync(file, 'utf8'));
  assert.deepEqual(Object.keys(read(shared).mcpServers).sort(), [
    'old',
    ...names.map((name) => `user-${name}`),
  ]);
  assert.equal(read(shared).theme, 'dark');
  assert.deepEqual(
    Object.keys(read(join(where.cwd, '.mcp.json')).mcpServers).sort(),
    names.map((name) => `project-${name}`),
  );
  assert.equal(read(join(where.home, '.mcp-by-hand', 'trust.json')).servers.length, 5);
  assert.equal(realpathSync(settings), realpathSync(shared), 'it is a link still');
  assert.deepEqual(
    [readdirSync(join(shared, '..')), readdirSync(where.cwd)],
    [['shared.json'], ['.mcp.json']],
  );
});
