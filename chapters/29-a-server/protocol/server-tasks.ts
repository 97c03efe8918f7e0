// server-tasks.ts: work that outlives its call (the extension io.modelcontextprotocol/tasks,
// stateless era). The client gets a name for the work, and comes back to look. Tasks are in memory:
// they end with this process, and another process behind the same address does not know them.

import { randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { asObject, asRefusal, ownValue, RpcError, textOf, type Json } from '../../../mcp.ts';
import { isInputResponse } from '../request-state.ts';
import { unlessAborted } from '../../15-the-loop/unless-aborted.ts';
import { timeoutSignal } from '../../20-streamable-http/reply.ts';
import { TASKS, type TaskStatus } from '../../24-more-than-tools/tasks.ts';
import {
  InputRequired,
  ServerCall,
  type AskOptions,
  type InputResponses,
  type Office,
  type InputRequests,
} from '../server-call.ts';
import { failed, stringParam, toolResult } from './server-rows.ts';

const TTL_MS = 60 * 60_000; // from the beginning of a task
const POLL_MS = 500;
const MAX_TASKS = 1000;

type TaskOutcome = { result?: Json; error?: Json };
type Work = (call: ServerCall) => Promise<string | Json>;

class ServerTask {
  readonly taskId = randomUUID();
  readonly control = new AbortController();
  private readonly createdAt = new Date();
  private lastUpdatedAt = this.createdAt;
  private status: TaskStatus = 'working';
  private outcome: TaskOutcome = {};
  questions: InputRequests = {}; // that wait
  listener?: ServerCall; // of the client, while it waits for more
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
    this.news.emit('moved');
  }

  /** Until it is over, or has a question. */
  async atRest(): Promise<TaskOutcome> {
    while (this.status === 'working') await once(this.news, 'moved');
    return this.outcome;
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
  async ask(questions: InputRequests, signal: AbortSignal): Promise<InputResponses> {
    Object.assign(this.questions, questions);
    this.move('input_required');
    const keys = Object.keys(questions);
    try {
      while (!keys.every((key) => Object.hasOwn(this.answers, key)))
        await unlessAborted(once(this.news, 'answers'), signal);
      return Object.fromEntries(keys.map((key) => [key, this.answers[key]!]));
    } finally {
      for (const key of keys) {
        delete this.questions[key]; // nobody waits for it any more
        delete this.answers[key];
      }
      this.goOn();
    }
  }

  answer(given: Json): void {
    for (const [key, answer] of Object.entries(given)) {
      const question = ownValue(this.questions, key);
      if (!question || !isInputResponse(question.method, answer)) continue;
      this.answers[key] = answer;
      delete this.questions[key];
    }
    this.goOn();
    this.news.emit('answers');
  }

  private goOn(): void {
    if (Object.keys(this.questions).length === 0) this.move('working');
  }
}

/** A call whose client need not wait: it asks by the task, and tells those who do. */
class TaskCall extends ServerCall {
  private task: ServerTask;

  constructor(task: ServerTask, request: Json, office: Office, capabilities: Json) {
    const exchange = { id: task.taskId, signal: task.control.signal, tell: () => {} };
    super(request, exchange, office, capabilities);
    this.task = task;
  }

  override ask(questions: InputRequests, { timeoutMs = TTL_MS }: AskOptions = {}) {
    for (const { method } of Object.values(questions)) this.need({ [method.split('/')[0]!]: {} });
    return this.task.ask(questions, timeoutSignal(timeoutMs, this.signal));
  }

  override progress(...given: Parameters<ServerCall['progress']>): void {
    this.task.listener?.progress(...given);
  }
}

export class Tasks {
  private tasks = new Map<string, ServerTask>();
  private office: Office;

  constructor(office: Office) {
    this.office = office;
  }

  /** The task, which is there before its client hears of it. */
  begin(work: Work, call: ServerCall): Json {
    return { resultType: 'task', ...this.start(work, call).summary() };
  }

  /** For a client that waits: its request comes again with the answers, and meets the same work. */
  async inRounds(work: Work, call: ServerCall): Promise<Json> {
    const { request, signal } = call;
    const { task: id } = call.earlierRounds();
    const task = id === undefined ? this.start(work, call) : this.named(id);
    const giveUp = () => task.control.abort(signal.reason);
    signal.addEventListener('abort', giveUp);
    task.listener = call;
    task.answer(asObject(request.params.inputResponses));
    try {
      const { result, error } = await task.atRest();
      if (error) throw new RpcError(Number(error.code), `${error.message}`, error.data);
      if (result) return result;
      const notes = { answers: {}, asked: {}, task: task.taskId };
      throw new InputRequired(task.questions, this.office.seal.close(notes, request));
    } finally {
      signal.removeEventListener('abort', giveUp);
      if (task.isOver) this.tasks.delete(task.taskId);
    }
  }

  private start(work: Work, { request, capabilities }: ServerCall): ServerTask {
    this.makeRoom();
    const task = new ServerTask();
    this.tasks.set(task.taskId, task);
    void this.run(task, () => work(new TaskCall(task, request, this.office, capabilities)));
    return task;
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
    return this.named(stringParam(params, 'taskId'));
  }

  private named(id: string): ServerTask {
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
