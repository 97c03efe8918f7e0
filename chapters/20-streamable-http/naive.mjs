// HTTP as it is often written first, by fetch: `node chapters/20-streamable-http/naive.mjs json`, or `redirect`.

import { createServer } from 'node:http';

const say = (text) => console.log(text);
const body = JSON.stringify({
  jsonrpc: '2.0',
  id: 7,
  method: 'tools/call',
  params: { name: 'add', arguments: { a: 2, b: 40 } },
});
const event = (message) => `data: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`;
const answer = { id: 7, result: { content: [{ type: 'text', text: '42' }] } };
const progress = { method: 'notifications/progress', params: { progressToken: 7, progress: 1 } };

async function serve(handle) {
  const server = createServer(handle);
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  return `http://127.0.0.1:${server.address().port}/mcp`;
}

const mistakes = {
  // A question, an answer: so it is with most services on the web.
  async json() {
    const types = { json: 'application/json', stream: 'text/event-stream' };
    const replies = {
      'one JSON object': [types.json, JSON.stringify({ jsonrpc: '2.0', ...answer })],
      'a stream': [types.stream, event(answer)],
      'a stream with news': [types.stream, event(progress) + event(answer)],
      'a stream that breaks off': [types.stream, `id: e-1\n${event(progress)}`],
    };
    for (const [what, [type, text]] of Object.entries(replies)) {
      const url = await serve((_, response) =>
        response.writeHead(200, { 'content-type': type }).end(text),
      );
      const came = await (
        await fetch(url, {
          method: 'POST',
          headers: { accept: Object.values(types).join(', ') },
          body,
        })
      ).text();
      const message = JSON.parse(/^data: (.*)$/m.exec(came)?.[1] ?? came); // the first event, or all of it
      say(`${what}: ${JSON.stringify(message.result)}`);
    }
  },

  // fetch goes where it is sent, and takes along what it was given.
  async redirect() {
    const elsewhere = await serve(async (request, response) => {
      for (const name of ['authorization', 'x-api-key', 'mcp-session-id'])
        say(`${name}: ${request.headers[name] ?? '(not there)'}`);
      for await (const piece of request.setEncoding('utf8')) say(piece);
      response.end();
    });
    const ours = await serve((_, response) =>
      response.writeHead(307, { location: elsewhere }).end(),
    );
    const headers = {
      authorization: 'Bearer secret-1',
      'x-api-key': 'secret-2',
      'mcp-session-id': 'secret-3',
    };
    say('What somebody else gets to read:');
    await fetch(ours, { method: 'POST', headers, body });
  },
};

await mistakes[process.argv[2]]?.();
process.exit();
