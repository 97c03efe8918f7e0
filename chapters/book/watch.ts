// watch.ts: runs the demo of a chapter as demo.ts does, and writes a trace of it into the file that is
// open as descriptor 3: each message, as `onWire` is told of it; what agents do; and the headings that
// the demo prints. The program of every chapter is watched in the same way, though most know no trace.

import { writeSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { runDemo } from './demo.ts';

type Listener = (...told: any[]) => void;
type Program = Record<string, any>; // of any chapter: parts that it lacks are not watched

const begin = performance.now();

function write(record: object): void {
  const at = Math.round((performance.now() - begin) * 1000) / 1000;
  writeSync(3, `${JSON.stringify({ at, ...record })}\n`);
}

function seeWire(dir: string, message: unknown, server: string): void {
  const isMessage = typeof message === 'object' && message !== null;
  write(isMessage ? { dir, server, msg: message } : { server, noise: message });
}

/** We listen first. A demo may put its own listener there, now or later. */
function alsoTell(options: Program, name: string, ours: Listener): void {
  let theirs: Listener | undefined = options[name];
  const both: Listener = (...told) => {
    ours(...told);
    theirs?.(...told);
  };
  Object.defineProperty(options, name, {
    get: () => both,
    set: (listener?: Listener) => {
      theirs = listener;
    },
  });
}

function watchConnections({ McpConnection }: Program): void {
  const watched = new WeakSet();
  const { connect } = McpConnection.prototype;
  McpConnection.prototype.connect = function () {
    if (!watched.has(this)) {
      watched.add(this);
      write({ type: 'server', server: this.serverName, state: 'started' });
      alsoTell(this.options, 'onWire', seeWire);
      alsoTell(this.options, 'onStderr', (stderr, server) => write({ server, stderr }));
    }
    return connect.call(this);
  };
  const { failAll } = McpConnection.prototype; // from chapter 5 on
  if (failAll)
    McpConnection.prototype.failAll = function (why: Error) {
      if (!this.ended)
        write({ type: 'server', server: this.serverName, state: 'ended', reason: why.message });
      return failAll.call(this, why);
    };
}

/** The first two chapters have a pipe, and no connection yet. */
function watchPipes({ StdioTransport }: Program): void {
  const { start, send } = StdioTransport.prototype;
  const names = new WeakMap<object, string>();
  StdioTransport.prototype.start = function (events: Program) {
    const name = [this.config?.command, ...(this.config?.args ?? [])].slice(1).join(' ');
    names.set(this, name.replace(/^fixtures\//, '') || 'server');
    write({ type: 'server', server: names.get(this), state: 'started' });
    const message = (came: unknown) => {
      seeWire('in', came, names.get(this)!);
      events.message(came);
    };
    return start.call(this, { ...events, message });
  };
  StdioTransport.prototype.send = function (message: unknown) {
    seeWire('out', message, names.get(this) ?? 'server');
    return send.call(this, message);
  };
}

const OURS = ['prompt', 'query', 'answer', 'text']; // told by us, since most chapters do not; pieces

function watchAgents({ Agent }: Program): void {
  const watched = new WeakSet();
  const { chat } = Agent.prototype;
  Agent.prototype.chat = function (prompt: unknown, ...rest: unknown[]) {
    const { options, model = options.model } = this;
    const isSub = options.caller !== undefined; // its events come by the one that started it
    if (!watched.has(this) && !isSub)
      alsoTell(options, 'emit', (event) => void (OURS.includes(event.type) || write(event)));
    watched.add(this);
    if (!watched.has(model)) watchModel(model);
    watched.add(model);
    if (!isSub) write({ type: 'prompt', text: prompt });
    return chat.call(this, prompt, ...rest);
  };
}

function watchModel(model: Program): void {
  const { query } = model;
  model.query = async function* (request: Program) {
    write({
      type: 'query',
      model: model.name,
      turns: request.turns.length,
      tools: request.tools.length,
    });
    for await (const event of query.call(model, request)) {
      if (event.type === 'end') write({ type: 'answer', ...event.turn, stop: event.stop });
      yield event;
    }
  };
}

/** "One line to the calculator, one line back:" */
function watchHeadings(): void {
  const { log } = console;
  console.log = (...words: unknown[]) => {
    const [, heading] = /^\n?(\S.*):$/.exec(words.join(' ')) ?? [];
    if (heading) write({ type: 'heading', text: heading });
    log(...words);
  };
}

const [, , folder = '', demo = '', limitMs] = process.argv;
const load = (file: string): Promise<Program> =>
  import(pathToFileURL(join(resolve(folder), file)).href).catch(() => ({})); // it comes later
const [mcp, agent] = [await load('mcp.ts'), await load('agent.ts')];
if (mcp.McpConnection) watchConnections(mcp);
else watchPipes(mcp);
if (agent.Agent) watchAgents(agent);
watchHeadings();
await runDemo(resolve(folder), demo, Number(limitMs));
