// task-store.ts: where a server keeps its tasks. In memory they end with its process. A store that
// several processes share lets another one go on: test/programs/postgres-tasks.ts is one.

import { RpcError, type Json } from '../../mcp.ts';
import type { TaskStatus } from '../24-more-than-tools/tasks.ts';
import type { InputRequests, InputResponses } from './server-call.ts';

export const TASK_TTL_MS = 60 * 60_000; // from the beginning of a task
const MAX_TASKS = 1000;

export type TaskRecord = {
  taskId: string;
  status: TaskStatus;
  createdAt: string;
  lastUpdatedAt: string;
  request: Json; // that began it: with this another process can begin it again
  capabilities: Json; // of its client
  questions: InputRequests; // that wait for the client
  answers: InputResponses; // that the work has not taken yet
  outcome: { result?: Json; error?: Json };
};

/** Each change is made in one step: of two at once one sees what the other has written. Nothing
 *  changes a task that is over, so the first end counts. */
export interface TaskStore {
  /** Keeps a new task, on which this process works. It is told of every change, whoever made it. */
  put(task: TaskRecord, changed: (taskId: string) => void): Promise<void>;
  get(taskId: string): Promise<TaskRecord | undefined>;
  update(taskId: string, change: (task: TaskRecord) => Partial<TaskRecord>): Promise<void>;
  cancel(taskId: string): Promise<void>;
  /** A task whose process is gone. From now on this one works on it. */
  claim(changed: (taskId: string) => void): Promise<TaskRecord | undefined>;
}

export const isOver = ({ status }: TaskRecord): boolean =>
  status !== 'working' && status !== 'input_required';

/** What a client has sent. A task that is over has no use for it. */
const SENT = { request: {}, capabilities: {}, answers: {} };

export class MemoryTasks implements TaskStore {
  private kept = new Map<string, { task: TaskRecord; changed: (taskId: string) => void }>();

  async put(task: TaskRecord, changed: (taskId: string) => void): Promise<void> {
    this.makeRoom();
    this.kept.set(task.taskId, { task, changed });
  }

  async get(taskId: string): Promise<TaskRecord | undefined> {
    const task = this.kept.get(taskId)?.task;
    return task && !isExpired(task) ? task : undefined;
  }

  async update(taskId: string, change: (task: TaskRecord) => Partial<TaskRecord>): Promise<void> {
    const { task, changed } = this.kept.get(taskId) ?? {};
    if (!task || isOver(task)) return;
    Object.assign(task, change(task), { lastUpdatedAt: new Date().toISOString() });
    if (isOver(task)) Object.assign(task, SENT); // megabytes, in an hour of a thousand tasks
    changed!(taskId);
  }

  async cancel(taskId: string): Promise<void> {
    await this.update(taskId, () => ({ status: 'cancelled' }));
  }

  /** There is no other process. */
  async claim(): Promise<undefined> {}

  drop(taskId: string): void {
    const { changed } = this.kept.get(taskId) ?? {};
    this.kept.delete(taskId);
    changed?.(taskId);
  }

  /** Those that have expired go. If there are still too many, a new one is refused. */
  private makeRoom(): void {
    for (const [taskId, { task }] of this.kept) {
      if (!isExpired(task)) break; // in the order of their beginning
      this.drop(taskId);
    }
    if (this.kept.size >= MAX_TASKS) throw new RpcError(-32603, 'Too many tasks');
  }
}

const isExpired = ({ createdAt }: TaskRecord) => Date.now() - Date.parse(createdAt) > TASK_TTL_MS;
