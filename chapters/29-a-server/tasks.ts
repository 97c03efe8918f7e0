// tasks.ts: work that outlives its call (the extension io.modelcontextprotocol/tasks, stateless
// era). The client gets a name for the work, and comes back to look. Tasks are in memory: they end
// with this process, and another process behind the same address does not know them.

import { randomUUID } from 'node:crypto';
import { asObject, RpcError, type Json } from '../../mcp.ts';
import { isAnswer } from './seal.ts';
import { ServerCall, TASKS, type Answers, type Office, type Questions } from './call.ts';
import { textIn, toolResult } from './offers.ts';

const TTL_MS = 60 * 60_000; // from the beginning of a task
const POLL_MS = 500;
const MAX_TASKS = 1000;

type Status = 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled';
type Outcome = { result?: Json; error?: Json };
type Work = (call: ServerCall) => Promise<string | Json>;

class Task {
  readonly taskId = randomUUID();
  readonly control = new AbortController();
  private readonly createdAt = new Date();
  private lastUpdatedAt = this.createdAt;
  private status: Status = 'working';
  private outcome: Outcome = {};
  private questions: Questions = {}; // that wait
  private answers: Answers = {};
  private wake = () => {};

  get isOver(): boolean {
    return this.status !== 'working' && this.status !== 'input_required';
  }

  get isExpired(): boolean {
    return Date.now() - this.createdAt.getTime() > TTL_MS;
  }

  move(status: Status, outcome: Outcome = {}): void {
    if (this.isOver) return; // the first end counts
    this.status = status;
    this.outcome = outcome;
    this.lastUpdatedAt = new Date();
  }

  /** What every view of it has. */
  summary(): Json {
    return {
      taskId: this.taskId,
      status: this.status,
      createdAt: this.createdAt.toISOString(),
      lastUpdatedAt: this.lastUpdatedAt.toISOString(),
      ttlMs: TTL_MS,
      pollIntervalMs: POLL_MS,
    };
  }

  details(): Json {
    const isWaiting = this.status === 'input_required';
    return {
      ...this.summary(),
      ...(isWaiting && { inputRequests: this.questions }),
      ...this.outcome,
    };
  }

  /** The task waits, not a request. The client finds the questions when it looks. */
  async ask(questions: Questions): Promise<Answers> {
    Object.assign(this.questions, questions);
    this.move('input_required');
    const keys = Object.keys(questions);
    const { signal } = this.control;
    while (!keys.every((key) => Object.hasOwn(this.answers, key))) {
      signal.throwIfAborted();
      await new Promise<void>((done) => {
        const before = this.wake;
        this.wake = () => {
          before();
          done();
        };
        signal.addEventListener('abort', () => done(), { once: true });
      });
    }
    const found = Object.fromEntries(keys.map((key) => [key, this.answers[key]!]));
    for (const key of keys) delete this.answers[key];
    return found;
  }

  answer(given: Json): void {
    for (const [key, answer] of Object.entries(given)) {
      const question = Object.hasOwn(this.questions, key) ? this.questions[key] : undefined;
      if (!question || !isAnswer(question.method, answer)) continue;
      this.answers[key] = answer;
      delete this.questions[key];
    }
    if (Object.keys(this.questions).length === 0) this.move('working');
    const wake = this.wake;
    this.wake = () => {};
    wake();
  }
}

/** A call whose client does not wait: it asks by the task, and tells nothing on the way. */
class TaskCall extends ServerCall {
  private task: Task;

  constructor(task: Task, request: Json, office: Office, capabilities: Json) {
    const exchange = { id: task.taskId, signal: task.control.signal, tell: () => {} };
    super(request, exchange, office, capabilities);
    this.task = task;
  }

  override ask(questions: Questions): Promise<Answers> {
    for (const { method } of Object.values(questions)) this.need({ [method.split('/')[0]!]: {} });
    return this.task.ask(questions);
  }
}

export class Tasks {
  private tasks = new Map<string, Task>();
  private office: Office;

  constructor(office: Office) {
    this.office = office;
  }

  /** The task, which is there before its client hears of it. */
  begin(work: Work, request: Json, capabilities: Json): Json {
    this.makeRoom();
    const task = new Task();
    this.tasks.set(task.taskId, task);
    void this.run(task, () => work(new TaskCall(task, request, this.office, capabilities)));
    return { resultType: 'task', ...task.summary() };
  }

  private async run(task: Task, work: () => Promise<string | Json>): Promise<void> {
    try {
      task.move('completed', { result: toolResult(await work()) });
    } catch (error) {
      // As in a call: an error of the tool is for the model, one of the protocol for the program.
      if (error instanceof RpcError) {
        const { code, message, data } = error;
        const optional = data !== undefined && { data };
        return task.move('failed', { error: { code, message, ...optional } });
      }
      const text = error instanceof Error ? error.message : `${error}`;
      const result = { content: [{ type: 'text', text }], isError: true };
      task.move('completed', { result });
    }
  }

  readonly methods: Record<string, (params: Json, call: ServerCall) => Json> = {
    'tasks/get': (params, call) => this.find(params, call).details(),
    'tasks/update': (params, call) => {
      this.find(params, call).answer(asObject(params.inputResponses));
      return {};
    },
    'tasks/cancel': (params, call) => {
      const task = this.find(params, call);
      task.move('cancelled');
      task.control.abort(new Error('cancelled by the client'));
      return {};
    },
  };

  private find(params: Json, call: ServerCall): Task {
    call.need({ extensions: { [TASKS]: {} } });
    const id = textIn(params, 'taskId');
    const task = this.tasks.get(id);
    if (!task || task.isExpired) throw new RpcError(-32602, `Unknown task: ${id.slice(0, 100)}`);
    return task;
  }

  /** Those that have expired go. If there are still too many, a new one is refused. */
  private makeRoom(): void {
    for (const [id, task] of this.tasks) {
      if (!task.isExpired) break; // in the order of their beginning
      task.control.abort(new Error('the task has expired'));
      this.tasks.delete(id);
    }
    if (this.tasks.size >= MAX_TASKS) throw new RpcError(-32603, 'Too many tasks');
  }

  end(): void {
    for (const task of this.tasks.values()) task.control.abort(new Error('the server ends'));
    this.tasks.clear();
  }
}
