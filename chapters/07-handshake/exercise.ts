// Judges exercise 7: is the handshake done, and is what the server says of itself read?

import { isDeepStrictEqual } from 'node:util';
import type { Judge } from '../book.ts';

const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));
/** In small steps: if the machine stops us for seconds, the others still have their turns. */
async function patience(seconds: number): Promise<void> {
  for (let steps = 0; steps < seconds * 20; steps++) await pause(50);
}
const NEWEST = '2025-11-25';

export const judge: Judge = async ({ load, see, expect }) => {
  const { McpConnection, shakeHands } = await load('mcp.ts');
  const { CLIENT_INFO } = await load('chapters/07-handshake/handshake.ts');
  const unheard: unknown[] = []; // rejections without a catch
  process.on('unhandledRejection', (why) => unheard.push(why));

  /** A server without a process, which answers `initialize` so. `sending` decides what becomes of our messages. */
  const open = async (
    answer: object,
    options = {},
    sending: (message: any) => Promise<void> = async () => {},
  ) => {
    const sent: any[] = [];
    let isAnswered = false;
    let say: (message: object) => void = () => {};
    const pipe = {
      start: async (events: { message: typeof say }) => void (say = events.message),
      send: (message: any) => {
        sent.push({ ...message, isAnswered });
        if (message.method === 'initialize')
          setTimeout(() => {
            isAnswered = true;
            say({ jsonrpc: '2.0', id: message.id, ...answer });
          }, 20);
        return sending(message);
      },
      close: async () => {},
    };
    const all = { transports: { pipe: () => pipe }, onWire: see, onWarning: () => {}, ...options };
    const connection = new McpConnection('demo', { type: 'pipe' }, all);
    await connection.connect();
    return { connection, sent };
  };
  const inTime = (handshake: Promise<unknown>): Promise<any> =>
    Promise.race([
      handshake.catch((error: Error) => error),
      patience(2).then(() => 'nothing, in two seconds'),
    ]);
  const shake = async (answer: object, options = {}, sending?: (message: any) => Promise<void>) => {
    const { connection, sent } = await open(answer, options, sending);
    const server = await inTime(connection.initialize());
    await pause(30); // what is not awaited may leave a moment later
    return { server, sent, said: sent.map(({ method }) => method).join(', ') };
  };
  const saying = (
    result: object,
    ...rest: [options?: object, sending?: (message: any) => Promise<void>]
  ) => shake({ result }, ...rest);
  const description = {
    protocolVersion: NEWEST,
    capabilities: { tools: {} },
    serverInfo: { name: 'calculator' },
  };

  const good = await saying(description);
  await expect(
    'we introduce ourselves first',
    'as the first message "initialize", a request, with the newest revision, capabilities {}, and the name and version of CLIENT_INFO',
    good.sent[0] ?? good.server ?? 'nothing was sent',
    ({ method, id, params = {} }) =>
      method === 'initialize' &&
      id !== undefined &&
      params.protocolVersion === NEWEST &&
      JSON.stringify(params.capabilities) === '{}' &&
      isDeepStrictEqual(params.clientInfo, CLIENT_INFO),
  );
  const early = good.sent.filter((message) => !message.isAnswered);
  await expect(
    'it is alone until its answer has come',
    'initialize, and no other message before the answer',
    early.map(({ method }) => method).join(', '),
    /^initialize$/,
  );
  await expect(
    'what the server says of itself comes back',
    JSON.stringify(description),
    good.server,
    (came) =>
      came?.protocolVersion === NEWEST &&
      !!came.capabilities?.tools &&
      came.serverInfo?.name === 'calculator',
  );
  await expect(
    'then we say that we are ready',
    '"notifications/initialized", once, and nothing else',
    good.said,
    /^initialize, notifications\/initialized$/,
  );
  await expect(
    'and as a notification',
    'no "id" in it',
    good.sent[1],
    (came) => came.id === undefined,
  );

  const offering = await saying(description, {
    extensions: [() => ({ capabilities: { roots: {} } })],
  });
  await expect(
    'we offer what the extensions say',
    'the capabilities { roots: {} } in "initialize"',
    offering.sent[0]?.params?.capabilities,
    (came) => JSON.stringify(came) === '{"roots":{}}',
  );

  for (const protocolVersion of ['2025-06-18', '2025-03-26', '2024-11-05']) {
    const { server } = await saying({ protocolVersion, capabilities: {} });
    await expect(
      `a server may answer with ${protocolVersion}`,
      'no error',
      server,
      (came) => came?.protocolVersion !== undefined,
    );
    await expect(
      `and then ${protocolVersion} is what comes back`,
      `a description with the protocolVersion ${protocolVersion}`,
      server,
      (came) => came.protocolVersion === protocolVersion,
    );
  }
  for (const protocolVersion of [
    '9999-01-01',
    '2025-01-01',
    '2024-10-07',
    '2025-11-2',
    '',
    `${NEWEST} `,
    `${NEWEST},2025-06-18`,
    42,
    [NEWEST],
    { toString: null },
    null,
    undefined,
  ]) {
    const { server, said } = await saying({ protocolVersion, capabilities: {} });
    const whatever = JSON.stringify(protocolVersion) ?? 'nothing';
    await expect(
      `a server that says ${whatever} is refused`,
      'a McpError of kind "protocol"',
      server,
      (came) => came?.kind === 'protocol',
    );
    await expect(
      'by an error of the connection, which names the server',
      'MCP server "demo" …',
      server.message,
      /"demo"/,
    );
    await expect(
      `and after ${whatever} we are not "ready"`,
      'only "initialize" was sent',
      said,
      /^initialize$/,
    );
    const ours = server.message.includes(NEWEST) && server.message.includes('2024-11-05');
    const theirs =
      protocolVersion == null || typeof protocolVersion === 'object' ? '' : `${protocolVersion}`;
    await expect(
      'the message names both sides',
      `theirs, ${whatever}, and ours, from ${NEWEST} to 2024-11-05`,
      server.message,
      (came) => ours && came.includes(theirs),
    );
  }

  const sloppy = await saying({
    protocolVersion: NEWEST,
    capabilities: 'all',
    serverInfo: 7,
    instructions: ['x'],
    extra: 1,
  });
  const only = `{ protocolVersion: "${NEWEST}" }, and nothing else in it, not even undefined`;
  await expect(
    'what has an odd shape is left out',
    only,
    sloppy.server,
    (came) => Object.keys(came ?? {}).join() === 'protocolVersion',
  );
  const wordy = await saying({ protocolVersion: NEWEST, instructions: 'Ask twice.' });
  await expect(
    'instructions are kept',
    'instructions: "Ask twice."',
    wordy.server,
    (came) => came?.instructions === 'Ask twice.',
  );

  const refusing = await shake({ error: { code: -32600, message: 'Not today.' } });
  await expect(
    'a server that refuses is heard',
    'the RpcError of the request, with the code -32600',
    refusing.server,
    (came) => came instanceof Error && (came as any).code === -32600,
  );
  await expect(
    'and after a refusal we are not "ready"',
    'only "initialize" was sent',
    refusing.said,
    /^initialize$/,
  );

  const silence = { method: 'notifications/nothing', id: undefined };
  const mute = await shake(silence, { handshakeTimeoutMs: 300 });
  await expect(
    'the handshake has the limit of the connection, handshakeTimeoutMs',
    'a McpError of kind "timeout" after 300 ms',
    mute.server,
    (came) => came?.kind === 'timeout',
  );
  const hasty = await open(silence);
  await expect(
    '`options` go along with the request',
    'a McpError of kind "timeout" after 200 ms: shakeHands was called with { timeoutMs: 200 }',
    inTime(shakeHands(hasty.connection, { timeoutMs: 200 })),
    (came) => came?.kind === 'timeout',
  );

  const given = {
    timeoutMs: 1000,
    signal: new AbortController().signal,
    headers: { 'x-colour': 'blue' },
    onProgress: () => {},
  };
  const asking = await open({ result: description });
  let wentAlong: object = {};
  const { connection } = asking;
  const request = connection.request.bind(connection);
  connection.request = (method: string, params: object, options: object) => (
    (wentAlong = options ?? {}), request(method, params, options)
  );
  await inTime(shakeHands(connection, given));
  await expect(
    'all of them',
    'a request with the timeoutMs, signal, headers and onProgress that shakeHands was given',
    wentAlong,
    (came) => Object.entries(given).every(([key, value]) => came[key] === value),
  );
  const hurried = await open({ result: description });
  await inTime(hurried.connection.initialize());
  void hurried.connection.request('ping').catch(() => {});
  for (let ms = 0; ms < 2000 && hurried.sent.length < 3; ms += 10) await pause(10);
  await expect(
    'nothing overtakes "notifications/initialized"',
    'it is sent before the handshake is over: initialize, notifications/initialized, ping',
    hurried.sent.map(({ method }) => method).join(', '),
    /^initialize, notifications\/initialized, ping$/,
  );

  const isReady = ({ method }: { method?: string }) => method === 'notifications/initialized';
  const deaf = await saying(description, {}, (message) =>
    isReady(message) ? new Promise(() => {}) : Promise.resolve(),
  );
  await expect(
    'a server that stops reading does not hold us',
    'the description, though "notifications/initialized" never leaves us: do not await it',
    deaf.server,
    (came) => came?.protocolVersion === NEWEST,
  );
  const gone = await saying(description, {}, (message) =>
    isReady(message) ? Promise.reject(new Error('write EPIPE')) : Promise.resolve(),
  );
  await expect(
    'a notification that cannot be sent does not fail the handshake',
    'the description',
    gone.server,
    (came) => came?.protocolVersion === NEWEST,
  );
  await expect(
    'and does not end the program',
    'no rejection without a catch',
    unheard,
    (came) => came.length === 0,
  );

  const real = new McpConnection(
    'calculator',
    { command: 'node', args: ['fixtures/server.mjs'] },
    { onWire: see },
  );
  await real.connect();
  await expect(
    'and with a real server',
    'the calculator describes itself',
    inTime(real.initialize()),
    (came) => came?.serverInfo?.name === 'calculator-and-greeter',
  );
};
