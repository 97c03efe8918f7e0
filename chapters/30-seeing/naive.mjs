// Recording and looking as it is often written first: `node chapters/30-seeing/naive.mjs order`,
// `page` or `act`.

import { createServer } from 'node:http';

const recorded = [
  {
    request: { id: 1, method: 'tools/call', params: { a: 2, b: 40 } },
    answer: { id: 1, result: 42 },
  },
  {
    request: { id: 2, method: 'tools/call', params: { a: 1, b: 1 } },
    answer: { id: 2, result: 2 },
  },
];

const mistakes = {
  /** The answers are played in the order in which they were recorded. */
  order() {
    const tape = [...recorded];
    const answer = (request) => ({ ...tape.shift().answer, id: request.id });
    for (const params of [
      { a: 1, b: 1 },
      { a: 2, b: 40 },
    ]) {
      const { result } = answer({ id: 1, method: 'tools/call', params });
      console.log(`${params.a} + ${params.b} = ${result}`);
    }
  },

  /** What a server said is put into a page as it is. */
  page() {
    const message = {
      method: 'notifications/message',
      params: { data: '<img src=x onerror=steal()>' },
    };
    const row = `<tr><td>${message.method}</td><td>${message.params.data}</td></tr>`;
    console.log(row);
  },

  /** The page of the program may ask for a call: so it has an address to which that is posted. */
  async act() {
    const server = createServer(async (request, response) => {
      let body = '';
      for await (const piece of request) body += piece;
      const { tool } = JSON.parse(body);
      response.end();
      console.log(`calls ${tool} for ${request.headers.origin}`);
    });
    await new Promise((done) => server.listen(0, '127.0.0.1', done));
    // What a browser sends for any page in it, and without a question to us before.
    const headers = { origin: 'https://evil.example', 'content-type': 'text/plain' };
    const body = JSON.stringify({ tool: 'delete_everything' });
    await fetch(`http://127.0.0.1:${server.address().port}`, { method: 'POST', headers, body });
    server.close();
  },
};

await mistakes[process.argv[2]]();
