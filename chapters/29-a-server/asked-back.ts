// asked-back.ts: several clients, one connection to a server. What the server asks in the middle of a
// call is put to the client that has called: its person is there, and not here.

import type { Extension, Handler, Json } from '../../mcp.ts';
import { Turns } from '../17-the-gate/person.ts';

/** Puts a question to one client. Nothing comes back if it has not offered to answer such ones. */
export type AskClient = (method: string, params: Json, signal: AbortSignal) => Promise<unknown>;
/** At whose call a server works. */
type Caller = { client: object; ask: AskClient; calls: number; leave: () => void };

/** By the names of the extensions of chapter 23. Roots are declared where the entry has them. */
const ASKING: Record<string, { method: string; capabilities?: Json }> = {
  elicitation: {
    method: 'elicitation/create',
    capabilities: { elicitation: { form: {}, url: {} } },
  },
  sampling: { method: 'sampling/createMessage', capabilities: { sampling: {} } },
  roots: { method: 'roots/list' },
};
/** A bundler may add a number to the name of a function. */
export const plainNameOf = ({ name }: Extension) => /^\D*/.exec(name)?.[0] ?? name;
export const isAsking = (extension: Extension) => Object.hasOwn(ASKING, plainNameOf(extension));

export class AskedBack {
  private callers = new Map<string, Caller>(); // by server
  private lines = new Map<string, Turns>();

  /** One client at a time: on a pipe a question does not say to which call it belongs. */
  async during<T>(
    server: string,
    { client, ask, signal }: { client: object; ask: AskClient; signal: AbortSignal },
    work: () => Promise<T>,
  ): Promise<T> {
    const before = this.callers.get(server);
    const caller = before?.client === client ? before : await this.next(server, signal);
    this.callers.set(server, Object.assign(caller, { client, ask }));
    caller.calls++;
    try {
      return await work();
    } finally {
      caller.calls--;
      if (caller.calls === 0) this.callers.delete(server);
      if (caller.calls === 0) caller.leave();
    }
  }

  private async next(server: string, signal: AbortSignal): Promise<Caller> {
    const line = this.lines.get(server) ?? new Turns();
    this.lines.set(server, line);
    const leave = await line.take(signal);
    if (signal.aborted) leave();
    signal.throwIfAborted();
    return { client: this, ask: async () => {}, calls: 0, leave };
  }

  /** In the place of an extension of the clients: declares what that one does, and asks the client.
   *  Outside of all calls it answers by itself, as for nobody. */
  instead(extension: Extension): Extension {
    const { words } = extension;
    const name = plainNameOf(extension);
    const { method = '', ...most } = ASKING[name] ?? {};
    const passing: Extension = (connection) => {
      const { capabilities, handlers = {} } = extension(connection);
      const offered = { capabilities, ...most };
      if (!method || !offered.capabilities) return offered;
      const answer: Handler = async (params, incoming) => {
        const caller = this.callers.get(connection.serverName);
        const asked = caller && connection.hold(caller.ask(method, params, incoming.signal));
        const own = handlers[method] ?? nobodyKnows;
        return (await asked) ?? own(params, incoming);
      };
      return { ...offered, handlers: { [method]: answer } };
    };
    return Object.assign(Object.defineProperty(passing, 'name', { value: name }), { words });
  }
}

function nobodyKnows(): never {
  throw new Error('nobody can be asked this now');
}
