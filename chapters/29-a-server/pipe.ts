// pipe.ts: a server on a pipe: stdio, a linked pair in one process, a socket. One client, one
// session, both eras.

import { Console } from 'node:console';
import { RpcError, type Message, type Transport, type TransportEvents } from '../../mcp.ts';
import type { Serve } from '../25-other-pipes/in-process.ts';
import type { McpServer } from './server.ts';
import { ClientSession } from './protocol/client-session.ts';
import { LineTransport } from './protocol/line-transport.ts';
import { idOf, errorResponse, shapeOf } from './protocol/message-shapes.ts';

const MAX_RUNNING = 1000; // requests of one client at the same time

/** The server as a function over its end of a pipe: for stdio, and for `inProcess` (chapter 25). */
export function overPipe(server: McpServer): Serve {
  return (transport) => {
    const send = (message: Message) => {
      transport.send(message).catch(() => {}); // the client may be gone
    };
    const session = new ClientSession(send);
    const leave = () => server.leave(session);
    server.join(session);
    const started = transport.start({
      message: async (message) => {
        const answer = await answerAll(message, server, session);
        if (answer) send(answer);
      },
      dropped: (why) => send(errorResponse(null, new RpcError(-32600, why.message))),
      closed: leave,
    });
    started.catch(leave);
  };
}

async function answerAll(message: unknown, server: McpServer, session: ClientSession) {
  const isBatch = Array.isArray(message) && message.length > 0 && session.mayBatch;
  if (!isBatch) return answerOne(message, server, session);
  const answers = await Promise.all(message.map((each) => answerOne(each, server, session)));
  const given = answers.filter((each) => each !== undefined);
  return given.length > 0 ? (given as unknown as Message) : undefined;
}

/** What goes back; nothing to a notification, to an answer, or after a cancellation. Requests run
 *  side by side: a slow one holds up no other. */
async function answerOne(message: unknown, server: McpServer, session: ClientSession) {
  try {
    // A line that is not JSON arrives as the text that it is.
    if (typeof message === 'string') throw new RpcError(-32700, 'Parse error: not JSON');
    const shape = shapeOf(message);
    const whole = message as Message;
    if (shape === 'response') session.answered(whole);
    if (shape === 'notification') server.hear(whole, session);
    if (shape !== 'request') return undefined;
    if (session.busy >= MAX_RUNNING) throw new RpcError(-32603, 'Too many requests at once');
    return await server.respond(whole, session, { send: session.send });
  } catch (error) {
    return errorResponse(idOf(message), error);
  }
}

// ─── stdio, seen from inside ───────────────────────────────────────────────────────────────────

/** Serves the client that has started us. Resolves when it leaves: then the program should, too. */
export function serveStdio(server: McpServer): Promise<void> {
  // stdout is the wire. A dependency that logs there would break it.
  Object.assign(console, new Console(process.stderr));
  const stdio = new LineTransport(process.stdin, process.stdout);
  return new Promise((done) => {
    const start = (events: TransportEvents) => {
      const closed = (why: Error) => {
        events.closed(why);
        server.end();
        done();
      };
      return stdio.start({ ...events, closed });
    };
    const transport: Transport = {
      start,
      send: (message) => stdio.send(message),
      close: () => stdio.close(),
    };
    overPipe(server)(transport);
  });
}
