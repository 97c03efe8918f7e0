// Both eras as they are often told apart first: `node chapters/22-no-handshake/naive.mjs one-code`,
// `no-probe` or `wait`.

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

const say = (text) => console.log(text);
const after = (ms, value) => new Promise((done) => setTimeout(done, ms, value));
const META = 'io.modelcontextprotocol/';
const _meta = { [`${META}protocolVersion`]: '2026-07-28', [`${META}clientCapabilities`]: {} };

/** A server on a pipe: `write` sends a request, `read` resolves with the next message. */
function start(...args) {
  const server = spawn('node', args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: server.stdout })[Symbol.asyncIterator]();
  return {
    write: (id, method, params) =>
      server.stdin.write(JSON.stringify({ jsonrpc: '2.0', id, method, params }) + '\n'),
    read: async () => JSON.parse((await lines.next()).value),
  };
}

const mistakes = {
  // The specification's example has -32601, so that is the code to look for.
  async 'one-code'() {
    const servers = {
      'a description': { result: { supportedVersions: ['2026-07-28'], capabilities: {} } },
      '-32601': { error: { code: -32601, message: 'Method not found' } },
      '-32602': { error: { code: -32602, message: 'Invalid request parameters' } },
      '-32000': { error: { code: -32000, message: 'Bad Request: Mcp-Session-Id is missing' } },
      '{}': { result: {} },
    };
    for (const [what, answer] of Object.entries(servers)) {
      const request = async () => answer.result ?? Promise.reject(answer.error);
      const shakeHands = () => 'shakes hands';
      async function openConnection() {
        try {
          const { supportedVersions } = await request('server/discover', { _meta });
          return `speaks ${supportedVersions[0]}`;
        } catch (error) {
          if (error.code === -32601) return shakeHands();
          throw error;
        }
      }
      const opened = openConnection().catch(({ message }) => `failed: ${message}`);
      say(`answered with ${what}: ${await opened}`);
    }
  },

  // Every request introduces itself, so why ask first?
  async 'no-probe'() {
    const server = start('fixtures/habits.mjs');
    const call = async (id, name, args) => {
      server.write(id, 'tools/call', { name, arguments: args, _meta });
      const message = await server.read();
      if (message.result) return message.result.content[0].text;
      say(`it asks for ${message.method}; servers of 2026 do not ask, so we do not answer`);
      return Promise.race([server.read(), after(1000, 'no answer within a second')]);
    };
    say(`echo: ${await call(1, 'echo', { a: 2, b: 40 })}`);
    say(`ask: ${await call(2, 'ask', { id: 'q1', method: 'ping' })}`);
  },

  // Ask, and shake hands if there is no answer. This server ignores what it does not know.
  async wait() {
    const ignorant = `require('readline').createInterface(process.stdin).on('line', (line) => {
      const { id, method } = JSON.parse(line);
      if (method === 'initialize') console.log(JSON.stringify({ jsonrpc: '2.0', id, result: {} }));
    })`;
    const server = start('-e', ignorant);
    const startedAt = performance.now();
    const time = () => `${((performance.now() - startedAt) / 1000).toFixed(1)} s`;
    server.write(1, 'server/discover', { _meta });
    const answer = server.read();
    const early = await Promise.race([answer, after(5000)]);
    if (!early) {
      say(`after ${time()}: no answer to server/discover`);
      server.write(2, 'initialize', {});
    }
    await answer;
    say(`after ${time()}: the connection is open`);
  },
};

await mistakes[process.argv[2]]?.();
process.exit();
