// Tasks that survive a process: two servers behind nginx that share a PostgreSQL (test/programs/postgres-tasks.ts), and one
// of them is killed in the middle. Debian: apt-get install nginx-light postgresql.

import assert from 'node:assert/strict';
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, before, after, test } from 'node:test';
import { secretsFrom } from '../../chapters/29-a-server/secrets.ts';
import { cleanUp, later, pause, root, until } from '../help/basics.ts';
import { installed } from '../help/installed.ts';
import { freePort, poster, secretFile, startNginx } from '../help/nginx.ts';

afterEach(cleanUp);

const TASKS = { elicitation: {}, extensions: { 'io.modelcontextprotocol/tasks': {} } };
const MANY = Number(process.env.LASTING_TASKS ?? 10_000);
const pg = installed('pg@8.23.1');

// ─── The database ──────────────────────────────────────────────────────────────────────────────

let database: { url: string; stop: () => Promise<void> };

/** PostgreSQL does not run as root. */
function owner(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const id = (flag: string) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

function programs(): string {
  const versions = '/usr/lib/postgresql';
  const [newest] = readdirSync(versions).sort((a, b) => Number(b) - Number(a));
  return join(versions, newest!, 'bin');
}

before(async () => {
  const home = mkdtempSync(join(tmpdir(), 'pg-'));
  const as = owner();
  if (as.uid) execFileSync('chown', [`${as.uid}:${as.gid}`, home]);
  chmodSync(home, 0o700);
  const data = join(home, 'data');
  const environment = { ...process.env, LC_ALL: 'C' };
  const flags = ['-D', data, '-A', 'trust', '-U', 'postgres', '-N'];
  execFileSync(join(programs(), 'initdb'), flags, { ...as, cwd: home, env: environment });
  const port = await freePort();
  const settings = ['-p', `${port}`, '-k', home, '-h', '127.0.0.1', '-F'];
  const child = spawn(join(programs(), 'postgres'), ['-D', data, ...settings], {
    ...as,
    cwd: home,
    env: environment,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text) => (said += text));
  await until(() => said.includes('ready to accept') || child.exitCode !== null, 'PostgreSQL');
  assert.equal(child.exitCode, null, said);
  const stop = async () => {
    child.kill('SIGQUIT');
    await once(child, 'exit');
    rmSync(home, { recursive: true, force: true });
  };
  database = { url: `postgres://postgres@127.0.0.1:${port}/postgres`, stop };
});

after(() => database?.stop());

// ─── Two servers ───────────────────────────────────────────────────────────────────────────────

type Process = { child: ChildProcess; port: number };

async function startServer(file: string, port = 0): Promise<Process> {
  const loader = join(root, 'node_modules', 'tsx', 'dist', 'loader.mjs'); // the folder is the driver's
  const program = join(root, 'test', 'programs', 'lasting-server.ts');
  const args = ['--import', loader, program, `${port}`, file];
  const child = spawn(process.execPath, args, {
    cwd: pg,
    env: { ...process.env, DATABASE_URL: database.url },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  later(() => child.kill('SIGKILL'));
  let said = '';
  child.stderr!.setEncoding('utf8').on('data', (text) => (said += text));
  await until(() => /listens at/.test(said) || child.exitCode !== null, 'the server listens');
  return { child, port: Number(/:(\d+)\/mcp/.exec(said)?.[1] ?? assert.fail(said)) };
}

async function twoServers() {
  const file = secretFile();
  const servers = [await startServer(file), await startServer(file)];
  const { token } = secretsFrom({ file });
  const to = (url: string) => poster(url, token, TASKS);
  const each = servers.map(({ port }) => to(`http://127.0.0.1:${port}/mcp`));
  return { servers, each, through: to(await startNginx(servers.map(({ port }) => port))), file };
}

type Post = ReturnType<typeof poster>;

async function begin(post: Post, name: string, ms?: number): Promise<any> {
  const args = ms === undefined ? {} : { ms };
  const { body } = await post('tools/call', { name, arguments: args });
  assert.equal(body.result?.resultType, 'task', JSON.stringify(body));
  return body.result;
}

const ENDS = ['completed', 'failed', 'cancelled'];

/** Looks until the task is over. A task that was there is there, and what has ended stays as it is. */
async function ended(post: Post, taskId: string): Promise<any> {
  for (;;) {
    const { body } = await post('tasks/get', { taskId });
    assert.ok(body.result, JSON.stringify(body));
    if (ENDS.includes(body.result.status)) return body.result;
    await pause(50);
  }
}

const textOf = ({ result }: any) => JSON.parse(result.content[0].text);

async function kill({ child }: Process): Promise<void> {
  child.kill('SIGKILL');
  await once(child, 'exit');
}

test('a process dies in the middle: the other one does again what may be done again, and the rest has failed', async () => {
  const { servers, each } = await twoServers();
  const [first, second] = each as [Post, Post];
  const repeatable = await begin(first, 'repeatable', 3000);
  const once = await begin(first, 'once', 60_000);
  const other = await begin(second, 'once', 0);
  assert.equal((await second('tasks/get', repeatable)).body.result.status, 'working');
  await kill(servers[0]!);
  const done = await ended(second, repeatable.taskId);
  assert.deepEqual([done.status, textOf(done).by], ['completed', servers[1]!.child.pid]);
  const failed = await ended(second, once.taskId);
  assert.equal(failed.status, 'failed');
  assert.match(failed.error.message, /The process that worked on this task has ended/);
  assert.equal((await ended(second, other.taskId)).status, 'completed', 'its own goes on');
});

test('a question of one process is answered at the other, and a task is cancelled there', async () => {
  const { servers, each } = await twoServers();
  const [first, second] = each as [Post, Post];
  const { taskId } = await begin(first, 'once');
  let task = (await second('tasks/get', { taskId })).body.result;
  while (task.status === 'working') task = (await second('tasks/get', { taskId })).body.result;
  const [[key, question]] = Object.entries<any>(task.inputRequests) as any;
  assert.equal(question.params.message, 'Which word?');
  const answer = { action: 'accept', content: { word: 'Emma' } };
  await second('tasks/update', { taskId, inputResponses: { [key]: answer } });
  assert.deepEqual(textOf(await ended(second, taskId)), { by: servers[0]!.child.pid, ...answer });

  const long = await begin(first, 'repeatable', 60_000);
  await second('tasks/cancel', { taskId: long.taskId });
  assert.equal((await ended(first, long.taskId)).status, 'cancelled');
  const gone = await first('tasks/get', { taskId: 'made-up' });
  assert.match(gone.body.error.message, /Unknown task/);
});

test(`${MANY} tasks through nginx, and a process that is killed among them: none is lost`, async () => {
  const { servers, each, through, file } = await twoServers();
  const begun: string[] = [];
  let refused = 0;
  const beginOne = async (n: number) => {
    const name = n % 3 ? 'repeatable' : 'once'; // nginx takes turns by two
    // What was sent to the process that died may be refused, or never answered: that is no task.
    const task = await begin(through, name, (n * 37) % 500).catch(() => undefined);
    if (task) begun.push(task.taskId);
    else refused++;
  };
  let next = 0;
  const client = async () => {
    while (next < MANY) await beginOne(next++);
  };
  const clients = Array.from({ length: 20 }, client);
  while (begun.length < MANY / 2) await pause(10);
  // Some that cannot end before it dies.
  const long = ['once', 'repeatable'].map((name) => begin(each[0]!, name, 5000));
  const [lost, again] = await Promise.all(long);
  await kill(servers[0]!);
  await startServer(file, servers[0]!.port);
  await Promise.all(clients);
  assert.ok(begun.length + refused === MANY && begun.length > MANY * 0.9, `${refused} refused`);
  const counts: Record<string, number> = {};
  const look = async () => {
    for (let id = begun.pop(); id !== undefined; id = begun.pop()) {
      const { status } = await ended(through, id);
      counts[status] = (counts[status] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: 20 }, look));
  assert.equal((await ended(through, lost.taskId)).status, 'failed');
  assert.equal((await ended(through, again.taskId)).status, 'completed');
  const { completed = 0, failed = 0, ...others } = counts;
  assert.deepEqual(others, {});
  assert.equal(completed + failed, MANY - refused);
  assert.ok(failed < MANY / 10, `${failed} failed`);
  console.log(`completed ${completed}, failed ${failed}, refused while one was down ${refused}`);
});
