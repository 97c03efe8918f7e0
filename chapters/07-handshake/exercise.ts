// Judges exercise 7: is the handshake done, and is what the server says of itself read?

import type { Judge } from '../book.ts';

export const judge: Judge = async ({ load, see, expect }) => {
  const { McpConnection } = await load('mcp.ts');
  const shake = async (args: string[], options = {}) => {
    const sent: any[] = []; // what we said, and how many messages had come before it
    let heard = 0;
    const onWire = (direction: string, message: unknown) => {
      see(direction, message);
      if (direction === 'out') sent.push({ ...(message as object), heard });
      else heard++;
    };
    const connection = new McpConnection('demo', { command: 'node', args }, { onWire, ...options });
    await connection.connect();
    const server = await Promise.race([
      connection.initialize().catch((error: Error) => error),
      new Promise((done) => setTimeout(done, 3000, 'nothing, in three seconds').unref()),
    ]);
    await new Promise((done) => setTimeout(done, 50)); // what is not awaited may leave a moment later
    return { server, hello: sent[0]?.params, sent, said: sent.map(({ method }) => method).join(', ') };
  };
  const saying = (answer: object) => ['fixtures/habits.mjs', 'version', JSON.stringify(answer)];

  const good = await shake(['fixtures/server.mjs']);
  await expect('we introduce ourselves first', 'as the first message "initialize", a request, with the newest revision, capabilities {}, and the name and version of clientInfo', good.sent[0] ?? good.server ?? 'nothing was sent', ({ method, id, params = {} }) =>
    method === 'initialize' && id !== undefined && params.protocolVersion === '2025-11-25' && JSON.stringify(params.capabilities) === '{}' && !!params.clientInfo?.name && !!params.clientInfo.version);
  await expect('what the server says of itself comes back', '{ protocolVersion, capabilities, serverInfo } of the calculator', good.server, (came) =>
    came?.protocolVersion === '2025-11-25' && came.capabilities?.tools && came.serverInfo?.name === 'calculator-and-greeter');
  await expect('then we say that we are ready', '"notifications/initialized" after the answer has come, without an id, and nothing else', good.sent.slice(1), (came) =>
    came.length === 1 && came[0].method === 'notifications/initialized' && came[0].id === undefined && came[0].heard === 1);

  const offering = await shake(['fixtures/server.mjs'], { extensions: [() => ({ capabilities: { roots: {} } })] });
  await expect('we offer what the extensions say', 'the capabilities { roots: {} } in "initialize"', offering.hello, (came) => JSON.stringify(came?.capabilities) === '{"roots":{}}');

  for (const protocolVersion of ['2025-06-18', '2025-03-26', '2024-11-05']) {
    const { server } = await shake(saying({ protocolVersion, capabilities: {} }));
    await expect(`a server may answer with ${protocolVersion}`, `a description with the protocolVersion ${protocolVersion}`, server, (came) => came?.protocolVersion === protocolVersion);
  }
  for (const protocolVersion of ['9999-01-01', 42, undefined]) {
    const { server, said } = await shake(saying({ protocolVersion, capabilities: {} }));
    const whatever = JSON.stringify(protocolVersion) ?? 'nothing';
    await expect(`a server that says ${whatever} is refused`, 'a McpError of kind "protocol"', server, (came) => came?.kind === 'protocol');
    await expect(`and after ${whatever} we are not "ready"`, 'only "initialize" was sent', said, /^initialize$/);
  }

  const sloppy = await shake(saying({ protocolVersion: '2025-11-25', capabilities: 'all', serverInfo: 7, instructions: ['x'] }));
  await expect('what has an odd shape is left out', '{ protocolVersion: "2025-11-25" }, and nothing else in it', sloppy.server, (came) =>
    JSON.stringify(came) === '{"protocolVersion":"2025-11-25"}');
  const wordy = await shake(saying({ protocolVersion: '2025-11-25', instructions: 'Ask twice.' }));
  await expect('instructions are kept', 'instructions: "Ask twice."', wordy.server, (came) => came?.instructions === 'Ask twice.');

  const mute = await shake(['fixtures/habits.mjs', 'mute'], { handshakeTimeoutMs: 300 });
  await expect('the handshake has the limit of the options, handshakeTimeoutMs', 'a McpError of kind "timeout" after 300 ms', mute.server, (came) => came?.kind === 'timeout');
};
