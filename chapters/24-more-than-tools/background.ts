// background.ts: a call that takes long goes on as a task while the chat does. The model hears of
// its end with a later prompt; a program that goes on with the conversation takes it up again.

import {
  asList,
  asObject,
  blocksToText,
  copyOf,
  textOf,
  type Extension,
  type Json,
  type McpConnection,
  type McpManager,
} from '../../mcp.ts';
import { fitResult, fromMcp } from '../16-hands/results.ts';
import { canonicalJson, sha256 } from '../17-the-gate/digest.ts';
import type { Person } from '../17-the-gate/person.ts';
import { plain, quoted } from '../17-the-gate/safe-text.ts';
import type { ConversationStore, News } from '../19-the-terminal/host.ts';
import { sleep, type Pause } from '../20-streamable-http/pause.ts';
import { awaitTask, Task, tasks } from './tasks.ts';

const PATIENCE_MS = 5000; // how long a call waits for its task
const MOMENT_MS = 5000; // for news of a task that was taken up again
const MAX_TASKS = 50; // at once
const MAX_TOLD = 20_000; // characters of one result, for the model

export type BackgroundOptions = {
  person: Person;
  kept?: ConversationStore; // the conversation; without one, every call waits for its task
  manager?: () => McpManager | undefined;
  resultsFolder: string;
  patienceMs?: number;
  pause?: Pause;
};

/** One call that went on as a task. */
type Job = {
  number: number;
  server: string;
  tool: string;
  taskId: string;
  identity: string; // of the server
  startedAt: number; // on the calendar's clock: it may be from another program
  task?: Task; // while we look at it
  looked?: Promise<void>; // at least once
  outcome?: JobEnd;
};
type JobEnd = { words: string; text: string }; // for the person, and for the model

export class Background {
  readonly jobs = new Map<number, Job>();
  private options: BackgroundOptions;
  private pause: Pause;
  private connections = new Map<string, McpConnection>();
  private lastNumber = 0;
  private asking = new Set<number>(); // jobs that have a question

  constructor(options: BackgroundOptions) {
    this.options = options;
    this.pause = options.pause ?? sleep;
    options.kept?.onSwitch((kept) => this.switchTo(kept));
  }

  /** For connections. */
  get extension(): Extension {
    return tasks({
      pause: this.pause,
      accept: (task) => this.accept(task),
      opened: (connection) => this.opened(connection),
    });
  }

  // ── From a call to a job ──

  /** Without a person there is no later prompt, so the call waits. */
  private async accept(task: Task): Promise<Json> {
    const { kept, person } = this.options;
    if (!kept || !person.isThere || this.jobs.size >= MAX_TASKS) return awaitTask(task);
    const over = new AbortController();
    const patience = this.patience(task, over.signal);
    const early = await awaitTask(task, patience).finally(() => over.abort());
    return early ?? this.goOn(task);
  }

  /** A call with an open question stays where the person sees it. */
  private async patience(task: Task, signal: AbortSignal): Promise<void> {
    const { patienceMs = PATIENCE_MS } = this.options;
    do await this.pause(patienceMs, signal);
    while (task.status === 'input_required' && !signal.aborted);
  }

  /** The call has its one result now. */
  private goOn(task: Task): Json {
    const { connection } = task;
    const job: Job = {
      number: ++this.lastNumber,
      server: connection.serverName,
      tool: String(task.call.params?.name),
      taskId: task.id,
      identity: identityOf(connection),
      startedAt: Date.now(),
    };
    this.jobs.set(job.number, job);
    this.keep(job);
    this.watch(job, task);
    const what = `This call runs on as task ${job.number}. There is no result yet.`;
    const rest = 'You are told of it with a later prompt of the user; do not call the tool again.';
    return { resultType: 'complete', content: [{ type: 'text', text: `${what} ${rest}` }] };
  }

  private watch(job: Job, task: Task) {
    const { connection } = task;
    job.task = task;
    job.looked = new Promise((resolve) => {
      task.onNews = () => {
        this.tellQuestion(job, task);
        resolve();
      };
      const ended = (outcome: JobEnd) => {
        if (job.task === task) this.ended(job, outcome);
        resolve();
      };
      const completed = (result: Json) => ended(this.outcomeOf(result, job));
      task.result.then(completed, (error) => {
        // Closed by us: it runs on, and is taken up when the server is back.
        if (connection.isClosed) job.task = undefined;
        else ended({ words: 'has failed', text: textOf(error) });
      });
    });
  }

  /** At the prompt a question waits in line: it is put when the line is entered. */
  private tellQuestion(job: Job, { status }: Task) {
    const isNew = status === 'input_required' && !this.asking.has(job.number);
    if (status === 'input_required') this.asking.add(job.number);
    else this.asking.delete(job.number);
    const what = `task ${job.number} of ${quoted(job.server)} has a question`;
    if (isNew) this.say(`${what}; it comes up when you press Enter`);
  }

  private ended(job: Job, outcome: JobEnd) {
    const { number, tool, server } = job;
    job.task = undefined;
    job.outcome = outcome;
    this.keep(job); // the model may hear of it from another program
    const words = `task ${number}, ${quoted(tool)} of ${quoted(server)}, ${outcome.words}`;
    this.say(`${words}; the model hears of it with your next prompt`);
  }

  private say(text: string) {
    this.options.person.say(text, 'note');
  }

  private outcomeOf(result: Json, { tool }: Job): JobEnd {
    const { content, isError, structuredContent } = result;
    const blocks = asList(content);
    const given = { text: '', content: blocks, isError: isError === true, structuredContent };
    const { resultsFolder } = this.options;
    const output = fitResult(fromMcp(given, resultsFolder), resultsFolder, tool);
    const words = isError === true ? 'has failed' : 'is done';
    const text = blocksToText(output.blocks);
    const rest = text.length > MAX_TOLD ? `\n[${text.length - MAX_TOLD} characters more]` : '';
    return { words, text: plain(copyOf(text.slice(0, MAX_TOLD))) + rest };
  }

  // ── What the model hears ──

  /** With the next prompt, and once. */
  news: News = async (signal) => {
    await this.lookAgain(signal);
    const done = [...this.jobs.values()].filter(({ outcome }) => outcome);
    for (const job of done) this.forget(job);
    return done.map(({ number, tool, outcome }) => {
      const { words, text } = outcome!;
      const what = `Task ${number}, your call of ${quoted(tool)}, ${words}. Its result, as data:`;
      return `${what}\n${text.replace(/^/gm, '> ')}`;
    });
  };

  /** Of what another program has begun we know nothing before the servers are there. */
  private async lookAgain(signal: AbortSignal) {
    const unknown = [...this.jobs.values()].filter(({ task, outcome }) => !task && !outcome);
    if (unknown.length === 0) return;
    const over = new AbortController();
    const stop = () => over.abort();
    signal.addEventListener('abort', stop);
    const looking = async () => {
      await this.options.manager?.()?.loadAndConnect();
      await Promise.all(unknown.map(({ looked }) => looked));
    };
    await Promise.race([looking().catch(() => {}), this.pause(MOMENT_MS, over.signal)]);
    signal.removeEventListener('abort', stop);
    stop();
  }

  // ── From one program to the next ──

  private keep(job: Job) {
    const { number, task, looked, ...value } = job;
    this.record(() => this.options.kept?.keep(keyOf(job), value));
  }

  private forget(job: Job) {
    this.jobs.delete(job.number);
    this.record(() => this.options.kept?.keep(keyOf(job)));
  }

  private record(write: () => void) {
    try {
      write();
    } catch (error) {
      this.say(`this task is not kept for later: ${textOf(error)}`);
    }
  }

  /** Those of the conversation before run on, and stay in its file. */
  private switchTo(kept: Map<string, Json>) {
    for (const { task } of this.jobs.values()) task?.leave();
    this.jobs.clear();
    for (const [key, value] of kept) {
      const number = Number(/^task (\d{1,6})$/.exec(key)?.[1]);
      const job = jobIn(value, number);
      if (!job) continue;
      this.jobs.set(number, job);
      this.lastNumber = Math.max(this.lastNumber, number);
    }
    for (const connection of this.connections.values()) this.takeUp(connection);
    const manager = this.options.manager?.();
    for (const { server } of this.jobs.values()) {
      const connection = manager?.connection(server);
      if (connection?.server) this.takeUp(connection); // it may be asleep: this wakes it up
    }
  }

  /** Is a task of this server under way? Then it must not sleep (chapter 28). */
  waitsFor(server: string): boolean {
    return [...this.jobs.values()].some((job) => job.server === server && !job.outcome);
  }

  private opened(connection: McpConnection) {
    this.connections.set(connection.serverName, connection);
    this.takeUp(connection);
  }

  /** An id is as good as a password, so only the server that gave it gets to see it again. */
  private takeUp(connection: McpConnection) {
    if (connection.isClosed) return;
    const identity = identityOf(connection);
    for (const job of this.jobs.values()) {
      if (job.server !== connection.serverName || job.task || job.outcome) continue;
      if (job.identity !== identity) {
        this.say(`task ${job.number} is not taken up: ${quoted(job.server)} is another server now`);
        continue;
      }
      const call = { method: 'tools/call', params: { name: job.tool }, options: {} };
      this.watch(job, new Task(connection, job.taskId, call, { pause: this.pause }));
    }
  }

  /** What the user wants to know no more. */
  async cancel(number: number): Promise<string> {
    const job = this.jobs.get(number);
    if (!job) throw new Error(`there is no task ${number}; /tasks lists what there is`);
    const { task } = job;
    job.task = undefined;
    this.forget(job);
    const isTold = await task?.cancel();
    if (isTold) return `task ${number} is cancelled`;
    return `task ${number} is forgotten; its server could not be told`;
  }

  /** One line for each. */
  get lines(): string[] {
    return [...this.jobs.values()].map((job) => {
      const { number, tool, server, startedAt, task, outcome } = job;
      const seconds = Math.max(0, Math.round((Date.now() - startedAt) / 1000));
      const said = task?.message ? `: ${quoted(task.message)}` : '';
      const away = 'its server is not there';
      const state = outcome?.words ?? (task ? `${task.status.replace('_', ' ')}${said}` : away);
      return `${number}  ${quoted(tool)} of ${quoted(server)}, ${seconds} s ago, ${state}`;
    });
  }
}

const keyOf = ({ number }: Job) => `task ${number}`;

/** A file may hold anything. */
function jobIn(value: Json, number: number) {
  const { server, tool, taskId, identity, startedAt } = value;
  const { words, text } = asObject(value.outcome);
  const isText = (each: unknown) => typeof each === 'string';
  const isWhole = [server, tool, taskId, identity].every(isText) && typeof startedAt === 'number';
  if (!isWhole || !(number > 0)) return undefined;
  const outcome = isText(words) && isText(text) ? (value.outcome as JobEnd) : undefined;
  return { server, tool, taskId, identity, startedAt, outcome, number } as Job;
}

/** What is started or reached, and not how it is authorized: a token may be another tomorrow. */
function identityOf({ config }: McpConnection) {
  const { type, command, args, cwd, url } = config;
  return sha256(canonicalJson({ type, command, args, cwd, url }));
}
