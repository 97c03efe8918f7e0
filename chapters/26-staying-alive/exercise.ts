// Judges exercise 26: is a request that was lost repeated where that is safe, and only there? The
// server is a script. It fails at the first request, in the way that is tried, and answers the
// second. Names of tools are drawn by lot, and in the end every case is tried that there is.

import { randomUUID } from 'node:crypto';
import type { Json, Transport, TransportEvents } from '../../mcp.ts';
import type { Judge } from '../book.ts';

const BEFORE = '2025-11-25';
const SINCE = '2026-07-28';
const READING = [
  'ping',
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'prompts/get',
  'resources/read',
  'completion/complete',
  'tasks/get',
];
const OTHERS = [
  'tasks/cancel',
  'tasks/update',
  'tasks/result',
  'resources/subscribe',
  'resources/unsubscribe',
  'resources/list/reset',
  'resources/write',
  'prompts/getAndForget',
  'prompts',
  'logging/setLevel',
  'tools/call/again',
  'skills/list',
  'read',
  'PING',
];

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
  times?: number; // that it fails
};
/** How often the server got the request, and what the caller got. */
type Outcome = { requests: number; came: string };

/** The tools of one server, under other names each time. */
function someTools() {
  const hints: Record<string, Json | undefined> = {
    look: { readOnlyHint: true },
    put: { idempotentHint: true },
    both: { readOnlyHint: true, idempotentHint: true, destructiveHint: true },
    pay: undefined,
    tidy: { destructiveHint: false, openWorldHint: false },
    change: { readOnlyHint: false, idempotentHint: false },
    boast: { readOnlyHint: 'yes', idempotentHint: 1 },
  };
  const rows = Object.entries(hints).map(([role, annotations]) => {
    return { role, name: `${role}_${randomUUID().slice(0, 8)}`, annotations };
  });
  const nameOf = (role: string) => rows.find((row) => row.role === role)!.name;
  const list = rows.map(({ name, annotations }) => ({
    name,
    annotations,
    inputSchema: { type: 'object' },
  }));
  return { nameOf, list, roles: Object.keys(hints) };
}

export const judge: Judge = async ({ load, see, expect }) => {
  const { McpConnection, McpError } = await load('mcp.ts');
  const { stayAlive } = await load('chapters/26-staying-alive/alive.ts');
  const { nameOf, list: tools, roles } = someTools();

  /** A connection to a server whose answers `receive` gives, or fails to. */
  const open = async (
    receive: (
      message: Json,
      answer: (result: object) => void,
      die: (why: Error) => void,
    ) => unknown,
    versions: string[],
  ) => {
    let isPrepared = false;
    const script = (): Transport => {
      let events: TransportEvents;
      return {
        start: async (given) => {
          events = given;
        },
        close: async () => {},
        send: async (message) => {
          const answer = (result: object) => {
            setImmediate(() => events.message({ jsonrpc: '2.0', id: message.id, result }));
          };
          await receive(message as Json, answer, (why) => events.closed(why));
        },
      };
    };
    const scriptedHandshake = () => ({
      handshake: async () => ({
        protocolVersion: versions.length > 1 ? versions.shift() : versions[0],
      }),
    });
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
    const show = () => (isPrepared = true);
    return { connection, show };
  };
  const failure = (kind: Kind) => new McpError(kind, `MCP server "demo" ${failures[kind]}`);

  const attempt = async (trial: Trial): Promise<Outcome> => {
    const { version, kind, method, params, isListed = true, times = 1 } = trial;
    let requests = 0;
    let isTried = false;
    const { connection, show } = await open(
      (message, answer, die) => {
        const isLooking = message.method === 'tools/list' && (!isTried || method !== 'tools/list');
        if (isLooking) return answer({ tools });
        requests++;
        if (requests > times) return answer({ content: [{ type: 'text', text: 'done' }], tools });
        see('in', `(it ${failures[kind]})`);
        if (kind !== 'closed') throw failure(kind);
        die(failure(kind));
      },
      [version],
    );
    if (isListed) await connection.listTools();
    show();
    isTried = true;
    const tool = tools.find(({ name }) => isListed && name === params?.name);
    const hints = JSON.stringify(tool?.annotations);
    see('in', `(a server of ${version}${hints ? `; it says of ${params?.name}: ${hints}` : ''})`);
    const call = connection.request(method, params);
    const came = await call.then(
      () => 'an answer',
      (error: Error) => error.message,
    );
    return { requests, came };
  };

  const call = (version: string, kind: Kind, role: string, isListed?: boolean): Trial => {
    const params = { name: nameOf(role), arguments: {} };
    return { version, kind, method: 'tools/call', params, isListed };
  };
  const again = (what: string, trial: Trial) => {
    const { times = 1 } = trial;
    const wanted = `it is sent ${times === 1 ? 'twice' : `${times + 1} times`}, and the caller gets the answer`;
    return expect(what, wanted, attempt(trial), ({ requests, came }) => {
      return requests === times + 1 && came === 'an answer';
    });
  };
  const once = (what: string, trial: Trial) => {
    const wanted = 'it is sent once, and the caller gets the error';
    return expect(what, wanted, attempt(trial), ({ requests, came }) => {
      return requests === 1 && came.includes('MCP server "demo"');
    });
  };

  // What was never carried out.
  await again(
    'a call that never arrived is made again: there was no connection',
    call(BEFORE, 'unreachable', 'pay'),
  );
  await again(
    'so is one that was refused, because its session is gone',
    call(BEFORE, 'expired', 'pay'),
  );
  await again('that holds in the later era', call(SINCE, 'unreachable', 'change'));
  await again('whatever was requested, if it never arrived', {
    version: SINCE,
    kind: 'unreachable',
    method: 'tasks/cancel',
  });
  await again('whatever was requested, if its session is gone', {
    version: BEFORE,
    kind: 'expired',
    method: 'logging/setLevel',
  });

  // What reads.
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
  for (const method of READING)
    await again(`a method of READING is sent again: ${method}`, {
      version: BEFORE,
      kind: 'lost',
      method,
      ...(method === 'prompts/get' && { params: { name: nameOf('pay') } }),
    });
  for (const method of OTHERS)
    await once(`what only looks like a reading is none: ${method}`, {
      version: BEFORE,
      kind: 'lost',
      method,
    });

  // What a tool says of itself.
  await once('a tool that says nothing of itself is not called again', call(SINCE, 'lost', 'pay'));
  await once('nor if its server has died', call(SINCE, 'closed', 'pay'));
  await again(
    'a tool that only reads is called again in the later era',
    call(SINCE, 'lost', 'look'),
  );
  await again('so is one for which twice is as good as once', call(SINCE, 'closed', 'put'));
  await again('so is one that says both', call(SINCE, 'lost', 'both'));
  await once(
    'up to 2025 no tool is: what the server knew of us died with it',
    call(BEFORE, 'closed', 'look'),
  );
  await once('the other hint makes no difference', call(BEFORE, 'lost', 'put'));
  await once(
    'that a tool destroys nothing does not mean that it may be called twice',
    call(SINCE, 'lost', 'tidy'),
  );
  await once(
    'hints are true or they are not: this tool has "yes" and 1',
    call(SINCE, 'lost', 'boast'),
  );
  await once('a tool that was never listed has no hints', call(SINCE, 'lost', 'look', false));
  await once('a name among the arguments is not the name of the tool', {
    version: SINCE,
    kind: 'lost',
    method: 'tools/call',
    params: { name: nameOf('pay'), arguments: { name: nameOf('look'), tool: nameOf('put') } },
  });
  await once('what is neither a reading nor a call is sent once, whatever its name', {
    version: SINCE,
    kind: 'lost',
    method: 'tasks/cancel',
    params: { name: nameOf('look') },
  });

  // More than one failure.
  for (const kind of ['lost', 'unreachable'] as const)
    await again(`what may be sent again may be sent a third time (${kind})`, {
      ...call(SINCE, kind, 'put'),
      times: 2,
    });

  /** While one call waits, another has the session renewed: by then the server is of another era. */
  const acrossEras = async (versions: string[]): Promise<number> => {
    let requests = 0;
    let isOver = () => {};
    const slow = new Promise<void>((done) => (isOver = done));
    let isExpired = false;
    const { connection, show } = await open(async ({ method, params }, answer) => {
      if (method === 'tools/list') return answer({ tools });
      if (method === 'ping' && !isExpired) {
        isExpired = true;
        throw failure('expired');
      }
      if (method === 'ping') return answer({});
      requests++;
      if (requests > 1) return answer({ content: [] });
      see('in', `(a server of ${versions[0]}; ${(params as Json).name} takes its time)`);
      await slow;
      see('in', `(it ${failures.lost})`);
      throw failure('lost');
    }, versions);
    await connection.listTools();
    show();
    const { method, params } = call(SINCE, 'lost', 'put');
    const waiting = connection.request(method, params).catch(() => {});
    await connection.request('ping');
    isOver();
    await waiting;
    return requests;
  };
  await expect(
    'the era is that of the server that failed: by now another is there, of the earlier era',
    'a tool that may be called twice is sent twice',
    acrossEras([SINCE, BEFORE]),
    (came) => came === 2,
  );
  await expect(
    'and the other way round: now another is there, of the later era',
    'it is sent once',
    acrossEras([BEFORE, SINCE]),
    (came) => came === 1,
  );

  // All that there is.
  const isDone = (kind: Kind) => kind === 'closed' || kind === 'lost';
  const deviations = async (version: string, kind: Kind): Promise<string[]> => {
    const methods = [...READING, ...OTHERS].filter(
      (method) => method !== 'tools/list' || kind !== 'closed', // a look starts no server
    );
    const requests = methods.map((method): [Trial, boolean] => {
      return [{ version, kind, method }, READING.includes(method)];
    });
    const calls = roles.map((role): [Trial, boolean] => {
      const isHarmless = ['look', 'put', 'both'].includes(role) && version === SINCE;
      return [call(version, kind, role), isHarmless];
    });
    const odd: string[] = [];
    for (const [trial, isHarmless] of [...requests, ...calls]) {
      const wanted = isHarmless || !isDone(kind) ? 2 : 1;
      const { requests } = await attempt(trial);
      const what = `${trial.method} ${trial.params?.name ?? ''}`.trim();
      if (requests !== wanted) odd.push(`${what} was sent ${requests} times, not ${wanted}`);
    }
    return odd;
  };
  for (const version of [BEFORE, '2024-11-05', '2025-06-18', SINCE])
    for (const kind of Object.keys(failures) as Kind[])
      await expect(
        `every request and every tool, if a server of ${version} ${failures[kind]}`,
        'what may be sent again is sent twice, all else once',
        deviations(version, kind),
        (came) => came.length === 0,
      );
};
