// server-tasks.ts: work that outlives its call (the extension io.modelcontextprotocol/tasks,
// stateless era). The client gets a name for the work, and comes back to look. Tasks are in memory:
// they end with this process, and another process behind the same address does not know them.

import { randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { asObject, asRefusal, ownValue, RpcError, textOf, type Json } from '../../../mcp.ts';
import { isInputResponse } from '../request-state.ts';
import { TASKS, type TaskStatus } from '../../24-more-than-tools/tasks.ts';
import {
  ServerCall,
  type InputResponses,
  type Office,
  type InputRequests,
} from '../server-call.ts';
import { failed, stringParam, toolResult } from './server-rows.ts';

const TTL_MS = 60 * 60_000; // from the beginning of a task
const POLL_MS = 500;
const MAX_TASKS = 1000;

type TaskOutcome = { result?: Json; error?: Json };
type TaskWork = (call: ServerCall) => Promise<string | Json>;

class ServerTask {
  readonly taskId = randomUUID();
  readonly control = new AbortController();
  private readonly createdAt = new Date();
  private lastUpdatedAt = this.createdAt;
  private status: TaskStatus = 'working';
  private outcome: TaskOutcome = {};
  private questions: InputRequests = {}; // that wait
  private answers: InputResponses = {};
  private news = new EventEmitter();

  get isOver(): boolean {
    return this.status !== 'working' && this.status !== 'input_required';
  }

  get isExpired(): boolean {
    return Date.now() - this.createdAt.getTime() > TTL_MS;
  }

  move(status: TaskStatus, outcome: TaskOutcome = {}): void {
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
  async ask(questions: InputRequests): Promise<InputResponses> {
    Object.assign(this.questions, questions);
    this.move('input_required');
    const keys = Object.keys(questions);
    const { signal } = this.control;
    while (!keys.every((key) => Object.hasOwn(this.answers, key)))
      await once(this.news, 'answers', { signal });
    const found = Object.fromEntries(keys.map((key) => [key, this.answers[key]!]));
    for (const key of keys) delete this.answers[key];
    return found;
  }

  answer(given: Json): void {
    for (const [key, answer] of Object.entries(given)) {
      const question = ownValue(this.questions, key);
      if (!question || !isInputResponse(question.method, answer)) continue;
      this.answers[key] = answer;
      delete this.questions[key];
    }
    if (Object.keys(this.questions).length === 0) this.move('working');
    this.news.emit('answers');
  }
}

/** A call whose client does not wait: it asks by the task, and tells nothing on the way. */
class TaskCall extends ServerCall {
  private task: ServerTask;

  constructor(task: ServerTask, request: Json, office: Office, capabilities: Json) {
    const exchange = { id: task.taskId, signal: task.control.signal, tell: () => {} };
    super(request, exchange, office, capabilities);
    this.task = task;
  }

  override ask(questions: InputRequests): Promise<InputResponses> {
    for (const { method } of Object.values(questions)) this.need({ [method.split('/')[0]!]: {} });
    return this.task.ask(questions);
  }
}

export class Tasks {
  private tasks = new Map<string, ServerTask>();
  private office: Office;

  constructor(office: Office) {
    this.office = office;
  }

  /** The task, which is there before its client hears of it. */
  begin(work: TaskWork, request: Json, capabilities: Json): Json {
    this.makeRoom();
    const task = new ServerTask();
    this.tasks.set(task.taskId, task);
    void this.run(task, () => work(new TaskCall(task, request, this.office, capabilities)));
    return { resultType: 'task', ...task.summary() };
  }

  private async run(task: ServerTask, work: () => Promise<string | Json>): Promise<void> {
    try {
      task.move('completed', { result: toolResult(await work()) });
    } catch (error) {
      // As in a call: an error of the tool is for the model, one of the protocol for the program.
      if (error instanceof RpcError) return task.move('failed', { error: asRefusal(error) });
      task.move('completed', { result: failed(textOf(error)) });
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

  private find(params: Json, call: ServerCall): ServerTask {
    call.need({ extensions: { [TASKS]: {} } });
    const id = stringParam(params, 'taskId');
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
