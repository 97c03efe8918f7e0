// postgres-tasks.ts: tasks that survive a process. Several servers behind one address keep their
// tasks in one database. If one of them dies in the middle, another goes on or says that it failed.
// lasting-server.ts is such a server. The pool is that of the package `pg`.

import { isOver, type TaskRecord, type TaskStore } from '../../chapters/29-a-server/task-store.ts';

type Client = NodeJS.EventEmitter & {
  query(text: string, values?: unknown[]): Promise<{ rows: any[] }>;
  release(): void;
};
type Pool = Client & { connect(): Promise<Client> };
type Changed = (taskId: string) => void;

const CLASS = 1296257; // of our locks, so that they meet no other program's
const TABLE = `CREATE TABLE IF NOT EXISTS mcp_tasks (
  id text PRIMARY KEY, owner int NOT NULL, is_over boolean NOT NULL DEFAULT false,
  began timestamptz NOT NULL DEFAULT now(), task json NOT NULL);
  CREATE INDEX IF NOT EXISTS mcp_tasks_open ON mcp_tasks (owner) WHERE NOT is_over;
  CREATE INDEX IF NOT EXISTS mcp_tasks_began ON mcp_tasks (began)`;
// A process that lives holds the lock of its number, so a task whose number is not held is alone.
const CLAIM = `UPDATE mcp_tasks SET owner = $1 WHERE id = (
  SELECT id FROM mcp_tasks WHERE NOT is_over AND owner <> $1 AND NOT EXISTS (
    SELECT FROM pg_locks WHERE locktype = 'advisory' AND classid = $2 AND objid = owner AND granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))
  LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING task`;
const EXPIRE = `WITH gone AS (
  DELETE FROM mcp_tasks WHERE began < now() - interval '1 hour' RETURNING id)
  SELECT pg_notify('mcp_tasks', id) FROM gone`;

export class PostgresTasks implements TaskStore {
  private pool: Pool;
  private owner = Math.floor(Math.random() * 2 ** 31);
  private changed?: Changed;

  constructor(pool: Pool) {
    this.pool = pool;
  }

  /** `lost` is called if the lock is gone: from then on others take over what we work on. */
  async open(lost: (why: unknown) => void): Promise<this> {
    const line = await this.pool.connect();
    line.on('error', lost).on('end', lost);
    line.on('notification', ({ payload }: { payload: string }) => this.changed?.(payload));
    await line.query(`SELECT pg_advisory_lock(${CLASS}, 0)`); // one makes the table
    await line.query(TABLE);
    await line.query(`SELECT pg_advisory_unlock(${CLASS}, 0)`);
    await line.query(`SELECT pg_advisory_lock(${CLASS}, ${this.owner})`);
    await line.query('LISTEN mcp_tasks');
    return this;
  }

  async put(task: TaskRecord, changed: Changed): Promise<void> {
    this.changed = changed;
    const row = [task.taskId, this.owner, JSON.stringify(task)];
    await this.pool.query('INSERT INTO mcp_tasks (id, owner, task) VALUES ($1, $2, $3)', row);
  }

  async get(taskId: string): Promise<TaskRecord | undefined> {
    const { rows } = await this.pool.query('SELECT task FROM mcp_tasks WHERE id = $1', [taskId]);
    return rows[0]?.task;
  }

  async update(taskId: string, change: (task: TaskRecord) => Partial<TaskRecord>): Promise<void> {
    const client = await this.pool.connect();
    try {
      await client.query('BEGIN');
      const read = 'SELECT task FROM mcp_tasks WHERE id = $1 AND NOT is_over FOR UPDATE';
      const task: TaskRecord | undefined = (await client.query(read, [taskId])).rows[0]?.task;
      if (task) {
        Object.assign(task, change(task), { lastUpdatedAt: new Date().toISOString() });
        const write = 'UPDATE mcp_tasks SET task = $2, is_over = $3 WHERE id = $1';
        await client.query(write, [taskId, JSON.stringify(task), isOver(task)]);
        await client.query("SELECT pg_notify('mcp_tasks', $1)", [taskId]); // sent by COMMIT
      }
      await client.query('COMMIT');
    } catch (error) {
      await client.query('ROLLBACK').catch(() => {}); // if the connection is gone, so is the change
      throw error;
    } finally {
      client.release();
    }
  }

  async cancel(taskId: string): Promise<void> {
    await this.update(taskId, () => ({ status: 'cancelled' }));
  }

  async claim(changed: Changed): Promise<TaskRecord | undefined> {
    this.changed = changed;
    await this.pool.query(EXPIRE);
    return (await this.pool.query(CLAIM, [this.owner, CLASS])).rows[0]?.task;
  }
}
