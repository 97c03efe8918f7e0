// tasks.ts: the Tasks extension. A server may answer a call with a task: work that goes on after
// the answer. We look at it now and then, answer its questions, and in the end it has the result.

import {
  asList,
  asObject,
  copyOf,
  excerpt,
  isObject,
  isStateless,
  now,
  RpcError,
  show,
  textOf,
  type Call,
  type Extension,
  type Json,
  type Layer,
  type McpConnection,
} from '../../mcp.ts';
import { unlessAborted } from '../15-the-loop/unless-aborted.ts';
import { answerByHandler } from '../22-no-handshake/input-required.ts';
import { sleep, type Pause } from '../20-streamable-http/pause.ts';

export const TASKS = 'io.modelcontextprotocol/tasks';
const MIN_POLL_MS = 100; // however often a server wants to be asked,
const MAX_POLL_MS = 600_000; // and however seldom
const FIRST_POLL_MS = 1000; // where it does not say,
const LAST_POLL_MS = 10_000; // growing up to this
const MAX_TASK_MS = 7 * 24 * 3_600_000; // for a task that has no end of its own
const MAX_NOTED = 10_000; // tools: a server may list others every time
const MAX_ID = 1000; // characters: it goes into a header
const MAX_MESSAGE = 1000;
const MAX_FAILURES = 5; // looks in a row that bring nothing
const MAX_QUESTIONS = 100; // of one task
const UNKNOWN = -32602; // there is no such task, or not any more

export type TaskStatus = 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled';
const STATUSES: unknown[] = ['working', 'input_required', 'completed', 'failed', 'cancelled'];

export type TaskOptions = {
  pause?: Pause;
  /** A call has become a task. What it returns is the result of the call: by default that of the
   *  task, when it is there. */
  accept?: (task: Task) => Promise<Json>;
  opened?: (connection: McpConnection) => void; // the server can be asked for tasks of before
};

/** Inside answerWithin, to which a task would be a result of a type that it does not know. */
export function tasks({ pause, accept = awaitTask, opened }: TaskOptions = {}): Extension {
  return function tasks(connection) {
    const needy = new Set<unknown>(); // tools that run as tasks only
    const begin = (call: Call, seed: Json): Promise<Json> => {
      const { taskId } = seed;
      if (typeof taskId === 'string' && taskId !== '' && taskId.length <= MAX_ID)
        return accept(new Task(connection, taskId, call, { seed, pause }));
      throw connection.error('protocol', `answered with a task of the id ${excerpt(taskId)}`);
    };
    const later: Layer = (call, next) => {
      const taken = (result: Json) => (result.resultType === 'task' ? begin(call, result) : result);
      if (call.method === 'tools/call') return next(call).then(taken);
      if (call.method === 'tasks/get') return next(call).then(complete);
      return next(call); // any other method with a task for an answer is refused outside
    };
    // In 2025-11-25 the client decides, and for such a tool it has no choice.
    const before: Layer = (call, next) => {
      const noted = (result: Json) => noteTools(result, needy, isNeedy);
      if (call.method === 'tools/list') return next(call).then(noted);
      const isTask = call.method === 'tools/call' && needy.has(call.params?.name);
      if (!isTask || !takesTasks(connection)) return next(call);
      const taken = (result: Json) => (isObject(result.task) ? begin(call, result.task) : result);
      return next({ ...call, params: { ...call.params, task: {} } }).then(taken);
    };
    return {
      capabilities: { extensions: { [TASKS]: {} } },
      layer: (call, next) => (isStateless(connection.server) ? later : before)(call, next),
      opened: () => opened?.(connection),
    };
  };
}

/** Every list of tools passes here on its way to those who wanted it: the names of some of its tools
 *  are kept. */
export function noteTools(
  result: Json,
  names: Set<unknown>,
  isMeant: (tool: Json) => boolean,
): Json {
  for (const tool of asList(result.tools).filter(isObject)) {
    names.delete(tool.name);
    if (isMeant(tool) && names.size < MAX_NOTED) names.add(tool.name);
  }
  return result;
}

const isNeedy = ({ execution }: Json) => asObject(execution).taskSupport === 'required';

function takesTasks({ server }: McpConnection) {
  const { requests } = asObject(server?.capabilities?.tasks);
  return asObject(asObject(requests).tools).call !== undefined;
}

/** What is in a task is a result like any other. Some say that its type is "task", too. */
const complete = (result: Json): Json => ({ ...result, resultType: 'complete' });

/** As if there were no task: the caller waits, and cancels it by aborting the call. When its patience
 *  is over, it gets nothing, and the task goes on. */
export async function awaitTask(task: Task): Promise<Json>;
export async function awaitTask(task: Task, patience: Promise<void>): Promise<Json | undefined>;
export async function awaitTask(task: Task, patience?: Promise<void>): Promise<Json | undefined> {
  const { signal, onProgress } = task.call.options;
  const stop = () => void task.cancel();
  task.onNews = () => onProgress?.({ message: task.message });
  signal?.addEventListener('abort', stop);
  if (signal?.aborted) stop();
  try {
    const over = patience?.then(() => undefined);
    return await (over ? Promise.race([task.result, over]) : task.result);
  } finally {
    task.onNews = () => {};
    signal?.removeEventListener('abort', stop);
  }
}

type Start = { seed?: Json; pause?: Pause };

/** One task of one server, from its creation, or from an id that was kept, to its end. */
export class Task {
  readonly connection: McpConnection;
  readonly id: string;
  readonly call: Call; // of ours: what it carries out
  readonly result: Promise<Json>;
  status: TaskStatus = 'working';
  message = ''; // of the server, about its status
  onNews: () => void = () => {}; // after each look
  private pause: Pause;
  private pollMs = FIRST_POLL_MS;
  private endsAt = now() + MAX_TASK_MS;
  private over = new AbortController(); // we look at it no longer
  private questions = new Map<string, AbortController>(); // each is asked once
  private startedAt = now();

  constructor(connection: McpConnection, id: string, call: Call, { seed = {}, pause }: Start = {}) {
    this.connection = connection;
    this.id = id;
    this.call = call;
    this.pause = pause ?? sleep;
    if (STATUSES.includes(seed.status)) this.note(seed);
    const { signal } = this.over;
    signal.addEventListener('abort', () => {
      for (const question of this.questions.values()) question.abort();
    });
    this.result = this.follow(seed.status === 'working');
    this.result.catch(() => {}); // it may be awaited later
  }

  /** Until it is done. If all that we know is that it works, the first look has time. */
  private async follow(hasTime: boolean): Promise<Json> {
    try {
      if (hasTime) await this.rest();
      for (;;) {
        const task = await this.look();
        this.note(task);
        if (this.isToFetch) return await this.fetchResult();
        if (task.status === 'completed') return complete(asObject(task.result));
        if (task.status === 'failed') throw this.failure(task);
        if (task.status === 'cancelled') throw this.cancelled();
        this.putQuestions(task);
        if (now() > this.endsAt) throw this.lost('its time is over');
        await this.rest();
      }
    } finally {
      this.over.abort();
    }
  }

  /** Between two looks. How long, the server says, within bounds. */
  private async rest() {
    const { connection } = this;
    const { signal } = this.over;
    const transport = connection.signal;
    const stop = () => {
      if (connection.isClosed) this.leave(); // else it may be started again
    };
    transport.addEventListener('abort', stop);
    if (!signal.aborted) await this.pause(this.pollMs, signal);
    transport.removeEventListener('abort', stop);
    if (signal.aborted) throw signal.reason;
  }

  /** Its state, as the server tells it. A server that is away may return. */
  private async look() {
    const { connection } = this;
    const { signal } = this.over;
    for (let failures = 1; ; failures++) {
      try {
        const looking = connection.request('tasks/get', { taskId: this.id });
        const task = await unlessAborted(looking, signal);
        if (task.taskId === this.id && STATUSES.includes(task.status)) return task;
        throw connection.error('protocol', `answered tasks/get with ${excerpt(task)}`);
      } catch (error) {
        if (signal.aborted) throw signal.reason;
        if (error instanceof RpcError && error.code === UNKNOWN) throw error;
        // Never as the error that it is: to the call that became this task, it would mean that the
        // server is gone, and that call would be made again.
        if (failures >= MAX_FAILURES || connection.isClosed) throw this.lost(textOf(error));
      }
      await this.rest();
    }
  }

  /** In 2025-11-25 it is not part of the state. Nor are questions: they come as requests, once we
   *  wait for the result. */
  private get isToFetch(): boolean {
    const isOver = ['completed', 'failed', 'input_required'].includes(this.status);
    return isOver && !isStateless(this.connection.server);
  }

  private fetchResult() {
    const { signal } = this.over;
    const options = { signal, timeoutMs: Infinity }; // a person may be asked meanwhile
    const fetching = this.connection.request('tasks/result', { taskId: this.id }, options);
    return unlessAborted(fetching, signal);
  }

  private note(task: Json) {
    const { status, statusMessage } = task;
    const { pollIntervalMs = task.pollInterval, ttlMs = task.ttl } = task; // as 2025-11-25 has them
    this.status = status as TaskStatus;
    const words = typeof statusMessage === 'string' ? statusMessage : '';
    this.message = copyOf(words.slice(0, MAX_MESSAGE));
    const own = isCount(pollIntervalMs) ? pollIntervalMs : undefined;
    const next = own ?? Math.min(this.pollMs * 1.5, LAST_POLL_MS);
    this.pollMs = Math.min(Math.max(next, MIN_POLL_MS), MAX_POLL_MS);
    // By our own clock: theirs may be wrong. One more look after the end, which may have come.
    const lifeMs = isCount(ttlMs) ? Math.min(ttlMs, MAX_TASK_MS) : MAX_TASK_MS;
    this.endsAt = this.startedAt + lifeMs + this.pollMs;
    this.onNews();
  }

  // ── Its questions ──

  /** The same question comes with every look until it is answered. One that does not come any more
   *  is no longer wanted, and disappears. */
  private putQuestions({ status, inputRequests }: Json) {
    const wanted = status === 'input_required' ? asObject(inputRequests) : {};
    for (const [key, question] of this.questions) if (!Object.hasOwn(wanted, key)) question.abort();
    for (const [key, question] of Object.entries(wanted)) {
      if (this.questions.has(key)) continue;
      if (this.questions.size >= MAX_QUESTIONS)
        return this.give(this.connection.error('limit', `asks more than ${MAX_QUESTIONS} times`));
      const withdrawn = new AbortController();
      this.questions.set(key, withdrawn);
      void this.answer(key, asObject(question), withdrawn.signal);
    }
  }

  /** Like any other question of this server. What we cannot answer ends the task: it would wait. */
  private async answer(key: string, question: Json, signal: AbortSignal) {
    const { connection, id: taskId, call } = this;
    const options = { ...call.options, signal };
    try {
      const answer = await answerByHandler(connection, key, question, { ...call, options });
      if (signal.aborted) return; // nobody wants to know any more
      const inputResponses = Object.fromEntries([[key, answer]]);
      await connection.request('tasks/update', { taskId, inputResponses });
    } catch (error) {
      if (!signal.aborted) this.give(error);
    }
  }

  /** We cannot go on with it. */
  private give(why: unknown) {
    void this.tellCancel();
    this.over.abort(why);
  }

  // ── Its end ──

  /** The server need not obey, but we do not wait for it. Was it told? */
  async cancel(): Promise<boolean> {
    if (this.over.signal.aborted) return false;
    this.over.abort(this.cancelled());
    this.status = 'cancelled';
    return this.tellCancel();
  }

  private tellCancel() {
    const told = this.connection.request('tasks/cancel', { taskId: this.id });
    return told.then(
      () => true,
      () => false,
    );
  }

  /** Looks no longer, and says nothing: the task runs on without us. */
  leave(): void {
    this.over.abort(this.lost('we look no longer'));
  }

  private cancelled(): Error {
    const why = this.message === '' ? '' : `: ${this.message}`;
    return this.connection.error('aborted', `has cancelled the task of ${this.what}${why}`);
  }

  /** The refusal that the call would have met. */
  private failure({ error }: Json) {
    const { code, message, data } = asObject(error);
    const words =
      typeof message === 'string' ? copyOf(message.slice(0, MAX_MESSAGE)) : excerpt(error);
    const number = typeof code === 'number' ? code : -32603;
    const who = `MCP server "${this.connection.serverName}"`;
    return new RpcError(number, `${who} failed in ${this.what}: ${words} (${number})`, data);
  }

  private lost(why: string): Error {
    const what = `does not tell of the task of ${this.what} any more: ${why}`;
    return this.connection.error('timeout', `${what}. It may still be at work.`);
  }

  private get what(): string {
    return excerpt(show(this.call.params?.name));
  }
}

const isCount = (value: unknown): value is number => typeof value === 'number' && value >= 0;
