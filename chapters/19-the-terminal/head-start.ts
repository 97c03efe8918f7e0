// A server needs a moment to start, and so do we. With a head start both do it side by side.

import { isatty } from 'node:tty';
import { StdioTransport, transportType } from '../../mcp.ts';
import type {
  Extension,
  Handler,
  Json,
  Message,
  Parts,
  Transport,
  TransportEvents,
  TransportFactory,
} from '../../mcp.ts';
import { readCall } from './command-line/call-words.ts';
import type { PrepareArguments } from './host.ts';

const MAX_EARLY_LINE = 64 * 2 ** 20;

export type EarlyServer = { transport: Transport; config: Json };
type Attach = (server: string) => Promise<EarlyServer | undefined>;

/** Starts the server of `call TOOL -- COMMAND`. The user has typed that command: it needs no further
 *  consent. One that has only its name may live already. A mistake in the words is told by the command
 *  itself, later. A person can be asked something, which takes all rows of the program, and waits a
 *  moment longer. */
export async function startEarly(args: string[], attach: Attach): Promise<EarlyServer | undefined> {
  if (isatty(0) && isatty(2)) return undefined; // process.stdin would cost 2 ms
  try {
    const { server, typed, added, mcpConfig } = readCall(args);
    const isPlain = Object.keys(added).length + mcpConfig.length === 0;
    if (!typed) return isPlain ? await attach(server) : undefined;
    if (typed.command === undefined) return undefined;
    const started = new HeadStart(new StdioTransport(server, typed, MAX_EARLY_LINE));
    return { transport: started, config: typed };
  } catch {
    return undefined;
  }
}

/** Of the rows of the program, those that such a call cannot do without. */
type EarlyRows = { extensions: Extension[]; prepare: PrepareArguments };

/** The call itself. If the server has to be started again, it is by another transport. */
export async function callEarly(
  args: string[],
  early: EarlyServer,
  { extensions, prepare }: EarlyRows,
): Promise<void> {
  const { asProgram, fullScreen } = await import('./exit.ts');
  const { PlainScreen } = await import('./more/plain-screen.ts');
  const { call } = await import('./one-call.ts');
  const wanted = readCall(args);
  let first: Transport | undefined = early.transport;
  const { config } = early;
  const make: TransportFactory = (...given) => {
    const transport = first ?? new StdioTransport(...given);
    first = undefined;
    return transport;
  };
  const transports = { [transportType(config)]: make };
  const way = { config, options: { transports, extensions } };
  const screen = process.stdout.isTTY ? await fullScreen(args) : new PlainScreen();
  return asProgram(args, screen, () => call(wanted, way, screen, prepare));
}

/** An extension that says what it can do, and is loaded when a server wants it. */
export function late(
  capabilities: Json,
  methods: string[],
  load: () => Promise<Extension>,
): Extension {
  return (connection) => {
    let loaded: Promise<Parts> | undefined;
    const handle: (method: string) => Handler = (method) => async (params, incoming) => {
      loaded ??= load().then((extension) => extension(connection));
      return (await loaded).handlers![method]!(params, incoming);
    };
    const handlers = Object.fromEntries(methods.map((method) => [method, handle(method)]));
    return { capabilities, handlers };
  };
}

/** Starts at once, and keeps what happens until there is a connection to tell. */
class HeadStart implements Transport {
  private transport: Transport;
  private started: Promise<void>;
  private events?: TransportEvents;
  private untold: ((events: TransportEvents) => void)[] = [];

  constructor(transport: Transport) {
    this.transport = transport;
    this.started = transport.start({
      message: (message) => this.tell((events) => events.message(message)),
      dropped: (why, id) => this.tell((events) => events.dropped?.(why, id)),
      closed: (why) => this.tell((events) => events.closed(why)),
    });
    this.started.catch(() => {}); // start() tells it
  }

  private tell(what: (events: TransportEvents) => void) {
    if (this.events) what(this.events);
    else this.untold.push(what);
  }

  start(events: TransportEvents): Promise<void> {
    this.events = events;
    for (const what of this.untold.splice(0)) what(events);
    return this.started;
  }

  send(message: Message): Promise<void> {
    return this.transport.send(message);
  }

  close(): Promise<void> {
    return this.transport.close();
  }

  lastWords(): string {
    return this.transport.lastWords?.() ?? '';
  }
}
