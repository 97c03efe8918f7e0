// A command that could not write says so and exits with 3. In the chat the same is a warning.
//
// For root no folder is read-only, so as root the program runs as another user here; and `ulimit` makes every disk
// a full one, for every user. Neither is on Windows.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { afterEach, test } from 'node:test';
import { takeLock } from '../chapters/17-the-gate/lock.ts';
import { cleanUp, folder, later } from './help/basics.ts';
import { command, programFolder, place, run, type Ended, type Place } from './help/terminal.ts';

afterEach(cleanUp);

const NOBODY = 65534;
const isRoot = process.getuid?.() === 0;
const skip = process.platform === 'win32';

const COMMANDS = [
  ['trust', 'allow', 'new'],
  ['trust', 'revoke', 's'],
  ['trust', 'reset'],
  ['mcp', 'add', 'other', 'x'],
  ['mcp', 'add', '-s', 'user', 'other', 'x'],
  ['mcp', 'add-json', 'other', '{"command":"x"}'],
  ['mcp', 'remove', 's'],
  ['mcp', 'remove', '-s', 'user', 'mine'],
  ['mcp', 'disable', 's'],
  ['mcp', 'disable', 's/tool'],
  ['mcp', 'enable', 'off'],
  ['mcp', 'enable', 'off/tool'],
  ['mcp', 'logout', 'far'],
];
const DONE =
  /may start|^revoked|is disabled in|is enabled in|^added|^removed|approved it|^logged out/m;

/** A home in which something was decided on, and someone is logged in. */
async function lived(): Promise<Place> {
  const server = { command: 'x' };
  const where = place(
    {
      '.mcp.json': {
        mcpServers: {
          s: server,
          new: server,
          off: server,
          far: { type: 'http', url: 'http://127.0.0.1:9/mcp' },
        },
      },
    },
    { '.claude/settings.json': { mcpServers: { mine: server } } },
  );
  for (const args of [
    ['trust', 'allow', 's'],
    ['mcp', 'disable', 'off'],
    ['mcp', 'disable', 'off/tool'],
  ]) {
    const { code, err } = await run(where, args);
    assert.equal(code, 0, err);
  }
  const row = {
    server: 'far',
    url: 'http://127.0.0.1:9/mcp',
    issuer: 'http://127.0.0.1:9',
    client: { id: 'c', method: 'none' },
    resource: 'http://127.0.0.1:9/mcp',
    tokenEndpoint: 'http://127.0.0.1:9/token',
    tokens: { access: 'a', type: 'Bearer', scope: [] },
  };
  const store = { version: 1, rows: [row], verdicts: [], company: [] };
  writeFileSync(join(where.home, '.mcp-by-hand', 'logins.json'), JSON.stringify(store), {
    mode: 0o600,
  });
  return where;
}

const pathsIn = (where: Place) =>
  [where.home, where.cwd].flatMap((root) =>
    ['', ...(readdirSync(root, { recursive: true }) as string[])].map((name) => join(root, name)),
  );
const filesIn = (where: Place) =>
  Object.fromEntries(
    pathsIn(where)
      .sort()
      .map((path) => {
        try {
          return [path, readFileSync(path, 'utf8')];
        } catch {
          return [path, 'a folder'];
        }
      }),
  );

/** The program, where another user may read it. */
function copyOfProgram(): string {
  const copy = join(folder(), 'program');
  cpSync(programFolder, copy, { recursive: true });
  chmodSync(dirname(copy), 0o755);
  return join(copy, relative(programFolder, command[1]!));
}

function limited(
  where: Place,
  args: string[],
  line: string,
  program = command[1]!,
  user?: number,
): Promise<Ended> {
  const env = { PATH: process.env.PATH, HOME: where.home, LANG: 'C.UTF-8' };
  const ids = user === undefined ? {} : { uid: user, gid: user };
  const child = spawn('sh', ['-c', line, process.execPath, program, ...args], {
    cwd: where.cwd,
    env,
    ...ids,
  });
  later(() => child.kill('SIGKILL'));
  child.stdin.end();
  const seen = { out: '', err: '' };
  child.stdout.setEncoding('utf8').on('data', (text) => (seen.out += text));
  child.stderr.setEncoding('utf8').on('data', (text) => (seen.err += text));
  return new Promise((done) =>
    child.on('close', (code, signal) => done({ code, signal, ...seen })),
  );
}

function assertTold({ code, out, err }: Ended, args: string[], why: RegExp): void {
  const said = `${args.join(' ')}: ${out}${err}`;
  assert.equal(code, 3, said);
  assert.doesNotMatch(out, DONE, said);
  assert.doesNotMatch(err, /^\s+at /m, `no stack: ${said}`);
  assert.match(err, why, said);
  assert.match(
    err,
    /^(this was not written down|nothing was changed|.* for this run only: that was not written down)/m,
    said,
  );
}

test('a full disk: each command says so, exits with 3, and all files are as they were', {
  skip,
}, async () => {
  const where = await lived();
  const before = filesIn(where);
  const ended = await Promise.all(
    COMMANDS.map((args) => limited(where, args, 'ulimit -f 0; exec "$0" "$@"')),
  );
  for (const [n, end] of ended.entries())
    assertTold(end, COMMANDS[n]!, /could not be written \(EFBIG|EFBIG/);
  assert.deepEqual(filesIn(where), before);
  const free = await run(where, ['trust', 'allow', 'new']);
  assert.equal(free.code, 0, `nothing blocks a later run: ${free.err}`);
});

test('a disk that is full in the middle: the lock fits, the file does not', { skip }, async () => {
  const where = await lived();
  const large = 'x'.repeat(5000);
  for (const scope of ['user', 'project'])
    await run(where, ['mcp', 'add', '-s', scope, 'large', '-e', `A=${large}`, 'x']);
  const before = filesIn(where);
  for (const args of [
    ['trust', 'allow', 'new'],
    ['mcp', 'add', '-s', 'user', 'other', 'x'],
    ['mcp', 'add', 'other', 'x'],
  ])
    assertTold(
      await limited(where, args, 'ulimit -f 1; exec "$0" "$@"'),
      args,
      /could not be written \(EFBIG/,
    );
  assert.deepEqual(filesIn(where), before);
});

test('a read-only home and project: each command says so and exits with 3; a chat warns and goes on', {
  skip,
}, async () => {
  const where = await lived();
  const before = filesIn(where);
  for (const path of pathsIn(where)) {
    if (isRoot) chownSync(path, NOBODY, NOBODY);
    chmodSync(path, before[path] === 'a folder' ? 0o500 : 0o400);
    later(() => chmodSync(path, 0o700));
  }
  const program = copyOfProgram();
  const runThere = (args: string[]) =>
    limited(where, args, 'exec "$0" "$@"', program, isRoot ? NOBODY : undefined);
  const some = COMMANDS.filter((args) => /allow|reset|add|disable s$|logout/.test(args.join(' ')));
  const ended = await Promise.all(some.map(runThere));
  for (const [n, end] of ended.entries())
    assertTold(end, some[n]!, /could not be written \((EACCES|EPERM|EROFS)/);
  const chat = await runThere(['-p', 'glob *', '--model', 'rehearsal']);
  assert.equal(chat.code, 0, chat.err);
  assert.match(chat.err, /this conversation is not kept: EACCES/);
  assert.deepEqual(filesIn(where), before);
});

test('a lock that another program holds: each command says which process, and exits with 3', async () => {
  const where = await lived();
  const files = [
    '.claude/settings.json',
    '.mcp-by-hand/trust.json',
    '.mcp-by-hand/logins.json',
  ].map((name) => join(where.home, name));
  for (const file of [...files, join(where.cwd, '.mcp.json')]) takeLock(`${file}.lock`);
  const some = COMMANDS.filter((args) =>
    /allow|add -s|remove s|disable s$|logout/.test(args.join(' ')),
  );
  const ended = await Promise.all(some.map((args) => run(where, args)));
  const why = new RegExp(`\\.lock \\(of the process ${process.pid}\\) is in the way`);
  for (const [n, end] of ended.entries()) assertTold(end, some[n]!, why);
});

test('one store that cannot be written does not keep the other from forgetting', {
  skip,
}, async () => {
  const where = await lived();
  mkdirSync(join(where.home, '.mcp-by-hand', 'trust.json.lock')); // not a lock, but in its place
  const { code, err } = await run(where, ['trust', 'revoke', 'far']);
  assert.equal(code, 3);
  assert.match(
    err,
    /trust\.json\.lock is in the way, and is no file; delete it, and then give the command again/,
  );
  assert.deepEqual(
    JSON.parse(readFileSync(join(where.home, '.mcp-by-hand', 'logins.json'), 'utf8')).rows,
    [],
  );
});
