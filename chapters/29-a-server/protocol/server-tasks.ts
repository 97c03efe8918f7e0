// server-tasks.ts: work that outlives its call (the extension io.modelcontextprotocol/tasks,
// stateless era). The client gets a name for the work, and comes back to look. What it finds there
// is in a store (task-store.ts), the work itself is in this process.

import { randomUUID } from 'node:crypto';
import { asObject, asRefusal, ownValue, RpcError, textOf, type Json } from '../../../mcp.ts';
import { isInputResponse } from '../request-state.ts';
import { unlessAborted } from '../../15-the-loop/unless-aborted.ts';
import { timeoutSignal } from '../../20-streamable-http/reply.ts';
import { TASKS } from '../../24-more-than-tools/tasks.ts';
import {
  InputRequired,
  ServerCall,
  type AskOptions,
  type InputResponses,
  type Office,
  type InputRequests,
} from '../server-call.ts';
import { failed, stringParam, toolResult } from './server-rows.ts';
import {
  isOver,
  MemoryTasks,
  TASK_TTL_MS,
  type TaskRecord,
  type TaskStore,
} from '../task-store.ts';

const POLL_MS = 500;
const CLAIM_MS = 1000; // how often a process looks for the tasks of one that is gone

type Work = (call: ServerCall) => Promise<string | Json>;

/** A task on which this process works. */
class RunningTask {
  readonly taskId: string;
  readonly store: TaskStore;
  readonly control = new AbortController();
  listener?: ServerCall; // of the client, while it waits for more
  private wake!: () => void;
  private change!: Promise<void>; // the next one

  constructor(taskId: string, store: TaskStore) {
    this.taskId = taskId;
    this.store = store;
    this.watch();
  }

  private watch() {
    this.change = new Promise((resolve) => {
      this.wake = resolve;
    });
  }

  /** The store says that it is not as it was. */
  changed(): void {
    const { wake } = this;
    this.watch();
    wake();
  }

  /** The task, as soon as it is as wanted. */
  async until(isWanted: (task: TaskRecord) => boolean, signal?: AbortSignal): Promise<TaskRecord> {
    for (;;) {
      const { change } = this; // before the look, so that none in between is missed
      const task = await this.store.get(this.taskId);
      if (!task) throw new Error('the task has expired');
      if (isWanted(task)) return task;
      await unlessAborted(change, signal);
    }
  }

  update(change: (task: TaskRecord) => Partial<TaskRecord>): Promise<void> {
    return this.store.update(this.taskId, change);
  }

  /** The task waits, not a request. The client finds the questions when it looks. */
  async ask(questions: InputRequests, signal: AbortSignal): Promise<InputResponses> {
    const keys = Object.keys(questions);
    await this.update((task) => withQuestions({ ...task.questions, ...questions }));
    try {
      const isAnswered = ({ answers }: TaskRecord) =>
        keys.every((key) => Object.hasOwn(answers, key));
      const { answers } = await this.until(isAnswered, signal);
      return Object.fromEntries(keys.map((key) => [key, answers[key]!]));
    } finally {
      // Nothing waits for these any more.
      await this.update((task) => ({
        ...withQuestions(without(task.questions, keys)),
        answers: without(task.answers, keys),
      }));
    }
  }
}

/** A task that has a question waits for its client. */
const withQuestions = (questions: InputRequests): Partial<TaskRecord> => ({
  questions,
  status: Object.keys(questions).length === 0 ? 'working' : 'input_required',
});

const without = <Value>(all: Record<string, Value>, keys: string[]) =>
  Object.fromEntries(Object.entries(all).filter(([key]) => !keys.includes(key)));

/** What changes by a client's answers. Those that fit no open question are ignored. */
function withAnswers(task: TaskRecord, given: Json): Partial<TaskRecord> {
  const taken = Object.entries(given).filter(([key, answer]) => {
    const question = ownValue(task.questions, key);
    return question && isInputResponse(question.method, answer);
  });
  const keys = taken.map(([key]) => key);
  return {
    ...withQuestions(without(task.questions, keys)),
    answers: { ...task.answers, ...(Object.fromEntries(taken) as InputResponses) },
  };
}

/** What every view of it has. */
function summaryOf({ taskId, status, createdAt, lastUpdatedAt }: TaskRecord): Json {
  const times = { createdAt, lastUpdatedAt, ttlMs: TASK_TTL_MS, pollIntervalMs: POLL_MS };
  return { taskId, status, ...times };
}

function detailsOf(task: TaskRecord): Json {
  const isWaiting = task.status === 'input_required';
  return {
    ...summaryOf(task),
    ...(isWaiting && { inputRequests: task.questions }),
    ...task.outcome,
  };
}

/** A call whose client need not wait: it asks by the task, and tells those who do. */
class TaskCall extends ServerCall {
  private task: RunningTask;

  constructor(task: RunningTask, request: Json, office: Office, capabilities: Json) {
    const exchange = { id: task.taskId, signal: task.control.signal, tell: () => {} };
    super(request, exchange, office, capabilities);
    this.task = task;
  }

  override ask(questions: InputRequests, { timeoutMs = TASK_TTL_MS }: AskOptions = {}) {
    for (const { method } of Object.values(questions)) this.need({ [method.split('/')[0]!]: {} });
    return this.task.ask(questions, timeoutSignal(timeoutMs, this.signal));
  }

  override progress(...given: Parameters<ServerCall['progress']>): void {
    this.task.listener?.progress(...given);
  }
}

type TasksOptions = {
  store?: TaskStore; // that other processes have, too
  onError?: (what: string, error: unknown) => void;
  /** Does the work of a task whose process is gone, or throws why it cannot be done. */
  beginAgain: Work;
};

export class Tasks {
  private store: TaskStore;
  private rounds = new MemoryTasks(); // work that waits for its client is here and nowhere else
  private running = new Map<string, RunningTask>();
  private office: Office;
  private options: TasksOptions;
  private timer?: NodeJS.Timeout;
  private hasEnded = false;

  constructor(office: Office, options: TasksOptions) {
    this.office = office;
    this.options = options;
    this.store = options.store ?? new MemoryTasks();
    const look = () => this.watched(this.claimAll());
    if (options.store) this.timer = setInterval(look, CLAIM_MS).unref();
  }

  /** The task, which is there before its client hears of it. */
  async begin(work: Work, call: ServerCall): Promise<Json> {
    return { resultType: 'task', ...(await this.start(this.store, work, call)) };
  }

  /** For a client that waits: its request comes again with the answers, and meets the same work. */
  async inRounds(work: Work, call: ServerCall): Promise<Json> {
    const { request, signal } = call;
    const begun = call.earlierRounds().task;
    const id = begun ?? `${(await this.start(this.rounds, work, call)).taskId}`;
    const running = this.running.get(id);
    if (running?.store !== this.rounds) throw unknownTask(id);
    const giveUp = () => running.control.abort(signal.reason);
    signal.addEventListener('abort', giveUp);
    running.listener = call;
    const given = asObject(request.params.inputResponses);
    try {
      await running.update((task) => withAnswers(task, given));
      const task = await running.until(({ status }) => status !== 'working');
      if (isOver(task)) this.rounds.drop(id);
      const { result, error } = task.outcome;
      if (error) throw new RpcError(Number(error.code), `${error.message}`, error.data);
      if (result) return result;
      const notes = { answers: {}, asked: {}, task: id };
      throw new InputRequired(task.questions, this.office.seal.close(notes, request));
    } finally {
      signal.removeEventListener('abort', giveUp);
    }
  }

  private async start(store: TaskStore, work: Work, call: ServerCall): Promise<Json> {
    const createdAt = new Date().toISOString();
    const task: TaskRecord = {
      taskId: randomUUID(),
      status: 'working',
      createdAt,
      lastUpdatedAt: createdAt,
      request: call.request,
      capabilities: call.capabilities,
      questions: {},
      answers: {},
      outcome: {},
    };
    const summary = summaryOf(task);
    await store.put(task, this.changed);
    this.watched(this.run(store, task, work));
    return summary;
  }

  private async run(store: TaskStore, task: TaskRecord, work: Work): Promise<void> {
    const { taskId, request, capabilities } = task;
    const running = new RunningTask(taskId, store);
    this.running.set(taskId, running);
    const call = new TaskCall(running, request, this.office, capabilities);
    const end = await outcomeOf(work, call);
    if (this.hasEnded) return; // another process may go on with it
    await running.update(() => end);
    if (store === this.store) this.running.delete(taskId);
  }

  /** Those of processes that are gone. */
  private async claimAll(): Promise<void> {
    while (!this.hasEnded) {
      const task = await this.store.claim(this.changed);
      if (!task) return;
      const fresh = { status: 'working' as const, questions: {}, answers: {} };
      await this.store.update(task.taskId, () => fresh);
      this.watched(this.run(this.store, task, this.options.beginAgain));
    }
  }

  private changed = (taskId: string): void => this.watched(this.look(taskId));

  private async look(taskId: string): Promise<void> {
    const running = this.running.get(taskId);
    if (!running) return;
    running.changed();
    const task = await running.store.get(taskId);
    if (task?.status === 'cancelled') running.control.abort(new Error('cancelled by the client'));
    if (task) return;
    running.control.abort(new Error('the task has expired'));
    this.running.delete(taskId);
  }

  /** A store can be away. */
  private watched(work: Promise<void>): void {
    work.catch((error) => this.options.onError?.('tasks', error));
  }

  readonly methods: Record<string, (params: Json, call: ServerCall) => Promise<Json>> = {
    'tasks/get': async (params, call) => detailsOf(await this.find(params, call)),
    'tasks/update': async (params, call) => {
      const { taskId } = await this.find(params, call);
      const given = asObject(params.inputResponses);
      await this.store.update(taskId, (task) => withAnswers(task, given));
      return {};
    },
    'tasks/cancel': async (params, call) => {
      const { taskId } = await this.find(params, call);
      await this.store.cancel(taskId);
      return {};
    },
  };

  private async find(params: Json, call: ServerCall): Promise<TaskRecord> {
    call.need({ extensions: { [TASKS]: {} } });
    const taskId = stringParam(params, 'taskId');
    const task = await this.store.get(taskId);
    if (!task) throw unknownTask(taskId);
    return task;
  }

  end(): void {
    this.hasEnded = true;
    clearInterval(this.timer);
    for (const { control } of this.running.values()) control.abort(new Error('the server ends'));
    this.running.clear();
  }
}

async function outcomeOf(work: Work, call: ServerCall): Promise<Partial<TaskRecord>> {
  try {
    return { status: 'completed', outcome: { result: toolResult(await work(call)) } };
  } catch (error) {
    // As in a call: an error of the tool is for the model, one of the protocol for the program.
    if (error instanceof RpcError)
      return { status: 'failed', outcome: { error: asRefusal(error) } };
    return { status: 'completed', outcome: { result: failed(textOf(error)) } };
  }
}

const unknownTask = (id: string) => new RpcError(-32602, `Unknown task: ${id.slice(0, 100)}`);
