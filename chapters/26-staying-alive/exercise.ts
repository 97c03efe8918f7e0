// Judges exercise 26: is a call that was lost repeated where that is safe, and only there? The
// server is a script. It fails at the first request, in the way that is tried, and answers the
// second.

import type { Json, Transport, TransportEvents } from '../../mcp.ts';
import type { Judge } from '../book.ts';

const BEFORE = '2025-11-25';
const SINCE = '2026-07-28';
const annotated = {
  look: { readOnlyHint: true },
  put: { idempotentHint: true },
  pay: undefined,
  tidy: { destructiveHint: false },
  boast: { readOnlyHint: 'yes', idempotentHint: 'of course' },
};
const tools = Object.entries(annotated).map(([name, annotations]) => ({
  name,
  annotations,
  inputSchema: { type: 'object' },
}));

const failures = {
  closed: 'dies before it answers',
  lost: 'lets the connection break before it answers',
  unreachable: 'cannot be reached',
  expired: 'has forgotten our session',
};
type Kind = keyof typeof failures;
type Trial = {
  version: string;
  kind: Kind;
  method: string;
  params?: Json;
  isListed?: boolean; // were its tools listed before?
};
/** How often the server got the request, and what the caller got. */
type Outcome = { requests: number; came: string };

export const judge: Judge = async ({ load, see, expect }) => {
  const { McpConnection, McpError } = await load('mcp.ts');
  const { stayAlive } = await load('chapters/26-staying-alive/alive.ts');

  const attempt = async (trial: Trial): Promise<Outcome> => {
    const { version, kind, method, params = {}, isListed = true } = trial;
    let requests = 0;
    let isPrepared = false;
    const script = (): Transport => {
      let events: TransportEvents;
      return {
        start: async (given) => {
          events = given;
        },
        close: async () => {},
        send: async ({ id, method: sent }) => {
          const answer = (result: object) => {
            setImmediate(() => events.message({ jsonrpc: '2.0', id, result }));
          };
          if (sent === 'tools/list') return answer({ tools });
          requests++;
          if (requests > 1) return answer({ content: [{ type: 'text', text: 'done' }] });
          see('in', `(it ${failures[kind]})`);
          const why = new McpError(kind, `MCP server "demo" ${failures[kind]}`);
          if (kind !== 'closed') throw why;
          events.closed(why);
        },
      };
    };
    const scriptedHandshake = () => ({ handshake: async () => ({ protocolVersion: version }) });
    const connection = new McpConnection(
      'demo',
      { type: 'script' },
      {
        transports: { script },
        extensions: [stayAlive({ pause: async () => {} }), scriptedHandshake],
        onWire: (direction: string, message: unknown) => {
          if (isPrepared) see(direction, message);
        },
      },
    );
    await connection.connect();
    await connection.initialize();
    if (isListed) await connection.listTools();
    isPrepared = true;
    const tool = tools.find(({ name }) => isListed && name === params.name);
    const hints = JSON.stringify(tool?.annotations);
    see('in', `(a server of ${version}${hints ? `; it says of ${params.name}: ${hints}` : ''})`);
    const call = connection.request(method, params);
    const came = await call.then(
      () => 'an answer',
      (error: Error) => error.message,
    );
    return { requests, came };
  };

  const call = (version: string, kind: Kind, name: string, isListed?: boolean): Trial => {
    return { version, kind, method: 'tools/call', params: { name, arguments: {} }, isListed };
  };
  const again = (what: string, trial: Trial) => {
    const wanted = 'it is sent twice, and the caller gets the answer';
    return expect(what, wanted, attempt(trial), ({ requests, came }) => {
      return requests === 2 && came === 'an answer';
    });
  };
  const once = (what: string, trial: Trial) => {
    const wanted = 'it is sent once, and the caller gets the error';
    return expect(what, wanted, attempt(trial), ({ requests, came }) => {
      return requests === 1 && came.includes('MCP server "demo"');
    });
  };

  await again('a resource is read again from the next life of a server', {
    version: BEFORE,
    kind: 'closed',
    method: 'resources/read',
    params: { uri: 'x:y' },
  });
  await again('so is a list, in the later era', {
    version: SINCE,
    kind: 'lost',
    method: 'prompts/list',
  });
  await again('every method of READING counts, in both eras', {
    version: BEFORE,
    kind: 'lost',
    method: 'completion/complete',
  });
  await once(
    'a tool that says nothing of itself is not called again',
    call(BEFORE, 'closed', 'pay'),
  );
  await once('nor in the later era', call(SINCE, 'lost', 'pay'));
  await again(
    'but a call that never arrived is made again: there was no connection',
    call(BEFORE, 'unreachable', 'pay'),
  );
  await again('so is one that was refused for its session', call(BEFORE, 'expired', 'pay'));
  await again(
    'a tool that only reads is called again in the later era',
    call(SINCE, 'lost', 'look'),
  );
  await again('so is one for which twice is as good as once', call(SINCE, 'closed', 'put'));
  await once(
    'up to 2025 neither is: what the server knew of us died with it',
    call(BEFORE, 'closed', 'look'),
  );
  await once('the other one likewise', call(BEFORE, 'lost', 'put'));
  await once(
    'that a tool destroys nothing does not mean that it may be called twice',
    call(SINCE, 'lost', 'tidy'),
  );
  await once(
    'hints are true or they are not: this tool has "yes" and "of course"',
    call(SINCE, 'lost', 'boast'),
  );
  await once('a tool that was never listed has no hints', call(SINCE, 'lost', 'look', false));
  await once('what is neither a reading nor a call is not sent again, whatever its name', {
    version: SINCE,
    kind: 'lost',
    method: 'tasks/cancel',
    params: { name: 'look' },
  });
  await once('what only looks like a reading is none', {
    version: SINCE,
    kind: 'lost',
    method: 'resources/list/reset',
  });
};
