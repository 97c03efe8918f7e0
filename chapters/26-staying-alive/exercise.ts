// Judges exercise 26: is a call that was lost repeated where that is safe, and only there? The server is a script. It
// fails at the first request, in the way that is tried, and answers the second.

import type { Json, Message, Transport, TransportEvents } from '../../mcp.ts';
import type { Judge } from '../book.ts';

const [BEFORE, SINCE] = ['2025-11-25', '2026-07-28'];
const tools = Object.entries({
  look: { readOnlyHint: true },
  put: { idempotentHint: true },
  pay: undefined,
  tidy: { destructiveHint: false },
  boast: { readOnlyHint: 'yes', idempotentHint: 'of course' },
}).map(([name, annotations]) => ({ name, annotations, inputSchema: { type: 'object' } }));
const happens = {
  closed: 'dies before it answers',
  lost: 'lets the connection break before it answers',
  unreachable: 'cannot be reached',
  expired: 'has forgotten our session',
};

export const judge: Judge = async ({ load, see, expect }) => {
  const { McpConnection, McpError } = await load('mcp.ts');
  const { stayAlive } = await load('chapters/26-staying-alive/alive.ts');

  /** How often the server is asked, and what the caller gets. */
  const ask = async (protocolVersion: string, kind: keyof typeof happens, method: string, params: Json = {}, isListed = true) => {
    let asked = 0;
    let isListing = true;
    const script = (): Transport => {
      let events: TransportEvents;
      return {
        start: async (given) => void (events = given),
        close: async () => {},
        send: async ({ id, method: sent }) => {
          const answer = (result: object) => void setImmediate(() => events.message({ jsonrpc: '2.0', id, result }));
          if (sent === 'tools/list') return answer({ tools });
          if (++asked > 1) return answer({ content: [{ type: 'text', text: 'done' }] });
          see('in', `(it ${happens[kind]})`);
          const why = new McpError(kind, `MCP server "demo" ${happens[kind]}`);
          if (kind !== 'closed') throw why;
          events.closed(why);
        },
      };
    };
    const shake = () => ({ handshake: async () => ({ protocolVersion }) });
    const extensions = [stayAlive({ pause: async () => {} }), shake];
    const onWire = (direction: string, message: Message) => isListing || see(direction, message);
    const connection = new McpConnection('demo', { type: 'script' }, { transports: { script }, extensions, onWire });
    await connection.connect();
    await connection.initialize();
    if (isListed) await connection.listTools();
    isListing = false;
    const { annotations } = tools.find(({ name }) => name === params.name && isListed) ?? {};
    see('in', `(a server of ${protocolVersion}${annotations ? `; it says of ${params.name}: ${JSON.stringify(annotations)}` : ''})`);
    const came = await connection.request(method, params).then(() => 'an answer', (error: Error) => error.message);
    return { asked, came };
  };
  const call = (version: string, kind: keyof typeof happens, name: string, isListed?: boolean) => ask(version, kind, 'tools/call', { name, arguments: {} }, isListed);
  const again = (what: string, tried: ReturnType<typeof ask>) =>
    expect(what, 'it is sent twice, and the caller gets the answer', tried, ({ asked, came }) => asked === 2 && came === 'an answer');
  const once = (what: string, tried: ReturnType<typeof ask>) =>
    expect(what, 'it is sent once, and the caller gets the error', tried, ({ asked, came }) => asked === 1 && came.includes('MCP server "demo"'));

  await again('a resource is read again from the next life of a server', ask(BEFORE, 'closed', 'resources/read', { uri: 'x:y' }));
  await again('so is a list, in the later era', ask(SINCE, 'lost', 'prompts/list'));
  await once('a tool that says nothing of itself is not called again', call(BEFORE, 'closed', 'pay'));
  await once('nor in the later era', call(SINCE, 'lost', 'pay'));
  await again('but a call that never arrived is made again: there was no connection', call(BEFORE, 'unreachable', 'pay'));
  await again('so is one that was refused for its session', call(BEFORE, 'expired', 'pay'));
  await again('a tool that only reads is called again in the later era', call(SINCE, 'lost', 'look'));
  await again('so is one for which twice is as good as once', call(SINCE, 'closed', 'put'));
  await once('up to 2025 neither is: what the server knew of us died with it', call(BEFORE, 'closed', 'look'));
  await once('the other one likewise', call(BEFORE, 'lost', 'put'));
  await once('that a tool destroys nothing does not mean that it may be called twice', call(SINCE, 'lost', 'tidy'));
  await once('hints are true or they are not: this tool has "yes" and "of course"', call(SINCE, 'lost', 'boast'));
  await once('a tool that was never listed has no hints', call(SINCE, 'lost', 'look', false));
  await once('what is neither a reading nor a call is not sent again, whatever its name', ask(SINCE, 'lost', 'tasks/cancel', { name: 'look' }));
};
