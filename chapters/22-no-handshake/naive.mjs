// Both eras as they are often told apart first: `node chapters/22-no-handshake/naive.mjs one-code`, or `no-probe`.

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

const say = (text) => console.log(text);
const META = 'io.modelcontextprotocol/';
const _meta = { [`${META}protocolVersion`]: '2026-07-28', [`${META}clientCapabilities`]: {} };

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
      say(`answered with ${what}: ${await openConnection().catch(({ message }) => `failed: ${message}`)}`);
    }
  },

  // Every request introduces itself, so why ask first?
  async 'no-probe'() {
    const server = spawn('node', ['fixtures/habits.mjs'], { stdio: ['pipe', 'pipe', 'inherit'] });
    const lines = createInterface({ input: server.stdout })[Symbol.asyncIterator]();
    const call = async (id, name, args) => {
      const params = { name, arguments: args, _meta };
      server.stdin.write(JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params }) + '\n');
      const message = JSON.parse((await lines.next()).value);
      if (message.result) return message.result.content[0].text;
      say(`it asks for ${message.method}; servers of 2026 do not ask, so we do not answer`);
      const late = new Promise((done) => setTimeout(done, 1000, {}));
      const { value = 'no answer within a second' } = await Promise.race([lines.next(), late]);
      return value;
    };
    say(`echo: ${await call(1, 'echo', { a: 2, b: 40 })}`);
    say(`ask: ${await call(2, 'ask', { id: 'q1', method: 'ping' })}`);
  },
};

await mistakes[process.argv[2]]?.();
process.exit();
