// in-process.ts: a server that is part of our own program. A pair of transports takes the place of
// a process and its pipes.

import {
  McpError,
  textOf,
  type ManagerOptions,
  type Message,
  type ServerEntry,
  type Transport,
  type TransportEvents,
  type TransportFactory,
} from '../../mcp.ts';

class PipeEnd implements Transport {
  other!: PipeEnd;
  private who: string;
  private events?: TransportEvents;
  private inbox: string[] = [];
  private ended?: McpError;

  constructor(who: string) {
    this.who = who;
  }

  async start(events: TransportEvents): Promise<void> {
    if (this.ended) throw this.ended;
    this.events = events;
    queueMicrotask(() => this.deliver()); // what was sent before this end had started
  }

  async send(message: Message): Promise<void> {
    if (this.ended) throw this.ended;
    if (!this.events) throw this.error('is not connected; call start() first');
    // As text, and now: neither side can reach, or change, an object of the other.
    this.other.inbox.push(JSON.stringify(message));
    // Never within send(): the answer would be there before the sender waits for it.
    queueMicrotask(() => this.other.deliver());
  }

  private deliver(): void {
    if (!this.events) return; // not started yet: it stays in the inbox
    try {
      for (const text of this.inbox.splice(0)) this.events.message(JSON.parse(text));
    } catch (error) {
      // A receiver that throws loses its pipe, like a process that crashes. The program goes on.
      this.end(`was closed after a mistake of this program: ${textOf(error)}`);
    }
  }

  /** When it resolves, both ends have been told. */
  async close(): Promise<void> {
    this.end('was closed');
  }

  private end(how: string): void {
    for (const end of [this, this.other]) {
      if (end.ended) continue;
      const why = this.error(how);
      end.ended = why;
      queueMicrotask(() => end.events?.closed(why)); // after the messages that are on their way
    }
  }

  private error(what: string) {
    return new McpError('closed', `${this.who} ${what}`);
  }
}

/** Two transports: what one sends, the other receives. To close one is to close both. */
export function linkedPair(who = 'the server in this process'): [Transport, Transport] {
  const one = new PipeEnd(who);
  const two = new PipeEnd(who);
  one.other = two;
  two.other = one;
  return [one, two];
}

/** A server as a function: it gets its end of the pair and starts it. */
export type Serve = (transport: Transport) => void;

export function builtIn(serve: Serve): TransportFactory {
  return (serverName) => {
    const [ours, theirs] = linkedPair(`MCP server "${serverName}" (built in)`);
    const start = async (events: TransportEvents) => {
      await ours.start(events);
      serve(theirs);
    };
    return {
      start,
      send: (message) => ours.send(message),
      close: () => ours.close(),
    };
  };
}

/** The transport for {"type": "in-process", "name": …}: the name chooses among these servers. */
export function inProcess(servers: Record<string, Serve>): TransportFactory {
  return (serverName, config, maxMessageBytes) => {
    const name = `${config.name}`;
    if (!Object.hasOwn(servers, name)) {
      const known = Object.keys(servers).join(', ') || 'none';
      const wrong = `no built-in server is called "${name}"; there is ${known}`;
      throw new McpError('config', `MCP server "${serverName}": ${wrong}`);
    }
    return builtIn(servers[name]!)(serverName, config, maxMessageBytes);
  };
}

/** Adds the built-in servers to what `load` finds. Their names are reserved: else a project could
 *  put a server of its own in the place of one that the user trusts. */
export function withBuiltIns(
  servers: Record<string, Serve>,
  load: NonNullable<ManagerOptions['load']>,
): typeof load {
  return (report) => {
    const entries = new Map<string, ServerEntry>();
    // The built-in ones first: of two servers that clash, the later is refused.
    for (const name of Object.keys(servers)) entries.set(name, builtInEntry(name));
    for (const [name, entry] of load(report))
      if (!entries.has(name)) entries.set(name, entry);
      else report(`MCP server "${name}" in ${entry.file} is ignored: ${TAKEN}`);

    return entries;
  };
}

const TAKEN = 'a built-in server has that name; rename it';

function builtInEntry(name: string): ServerEntry {
  const config = { type: 'in-process', name };
  return { name, config, file: 'built in', scope: 'built-in', authority: 'user' };
}
