// What people get wrong, and whether the message says what it was, and what to do.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { columnsOf } from '../chapters/19-the-terminal/wrap.ts';
import { progressLine } from '../chapters/19-the-terminal/show.ts';
import { cleanUp, goodServer, later } from './help/basics.ts';
import { place, run, Terminal, userServers } from './help/terminal.ts';

afterEach(cleanUp);

/** A server that answers everything in this way. */
async function refusing(answer: (response: ServerResponse) => void): Promise<string> {
  const http = createServer((_, response) => answer(response)).listen(0, '127.0.0.1');
  await once(http, 'listening');
  later(() => http.close());
  return `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`;
}

test('a 401 shows what the server said, and a way out that exists', async () => {
  const description = 'The token has ended on Monday';
  const inHeader = await refusing((response) => {
    const challenge = `Bearer error="invalid_token", error_description="${description}"`;
    response.writeHead(401, { 'www-authenticate': challenge }).end();
  });
  const inBody = await refusing((response) => {
    response.writeHead(401, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ error: 'invalid_token', error_description: description }));
  });
  const endless = await refusing((response) => response.writeHead(401).write('not yet'));
  const where = place({}, userServers({ mine: { type: 'http', url: inHeader } }));
  const said = `wants a login: "${description}"\\. To log in: `;
  const wayOut = 'mcp-by-hand mcp add NAME URL, then mcp-by-hand mcp login NAME';
  for (const url of [inHeader, inBody]) {
    const { code, err } = await run(where, ['call', url, 'x']);
    assert.equal(code, 3);
    assert.match(err, new RegExp(`${said}${wayOut}`));
    const withKey = await run(where, ['call', '-H', 'Authorization: Bearer x', url, 'x']);
    assert.match(withKey.err, new RegExp(`wants a login \\(HTTP 401\\): "${description}"`));
  }
  const named = await run(where, ['call', 'mine', 'x']);
  assert.match(named.err, new RegExp(`${said}.*mcp-by-hand mcp login mine`));
  assert.match((await run(where, ['call', endless, 'x'])).err, /wants a login\. To log in/);
});

test('a file that cannot be read is told by line and column, and mcp list does not end with 0', async () => {
  const cases: [string, RegExp][] = [
    ['{\n  "mcpServers": {\n    "a": { "args": ["x",] }\n  }\n}', /line 3, column 25: Unexp/],
    ['{\n  "mcpServers": { "a": { "command": "node", } }\n}', /line 2, column 45: /],
    ['{\n  "mcpServers": {\n', /line 2, column 1[89]: /],
    ["{ 'mcpServers': {} }", /line 1, column 3: /],
    ['not json', /line 1, column 2: Unexpected token 'o'/],
    ['{ "mcpservers": { "a": { "command": "node" } } }', /its "mcpservers" must be "mcpServers"/],
    ['{ "mcp_servers": {} }', /its "mcp_servers" must be "mcpServers"/],
  ];
  for (const [text, why] of cases) {
    const where = place();
    writeFileSync(join(where.cwd, '.mcp.json'), text);
    const { code, out } = await run(where, ['mcp', 'list']);
    assert.match(out, why, text);
    assert.equal(code, 3, text);
  }
});

test('an entry that says something else than was meant is told so', async () => {
  const where = place(
    {},
    userServers({
      typo: { comand: 'node', args: ['x'] },
      line: { command: 'npx -y @scope/foo' },
    }),
  );
  const typo = await run(where, ['call', 'typo', 'x']);
  assert.deepEqual([typo.code, typo.out], [3, '']);
  assert.match(typo.err, /"command" is missing; what is "comand"\?/);
  const line = await run(where, ['call', 'line', 'x']);
  assert.match(line.err, /"command" is the program alone, the words behind it are "args"/);
});

test('words that nearly fit: an address without its scheme, a swapped flag, a login of no server', async () => {
  const where = place();
  const cases: [string[], number, RegExp][] = [
    [['call', 'localhost:9/mcp', 'x'], 3, /scheme in front: http:\/\/localhost:9\/mcp/],
    [['probe', 'a.example:80/mcp'], 3, /scheme in front: https:\/\/a\.example:80\/mcp/],
    [['mcp', 'add', 'x', 'localhost:9/mcp'], 2, /is no command; an address has its scheme/],
    [['--modle', 'x', 'hi there'], 2, /did you mean --model\?/],
    [['mcp', 'login', 'nosuch'], 3, /no MCP server is called "nosuch"/],
  ];
  for (const [words, code, why] of cases) {
    const ended = await run(where, words);
    assert.match(ended.err, why);
    assert.equal(ended.code, code, words.join(' '));
  }
});

test('/tools shows all, those of a server, or those with some words', async () => {
  const where = place({}, userServers({ demo: { command: process.execPath, args: [goodServer] } }));
  const input = '/tools demo\n/cost\n/tools FIND files\n/cost\n/tools nonsense\n';
  const { out, err } = await run(where, [], { input });
  const [ofServer = '', withWords = ''] = out.split(/^rehearsal: .*$/m);
  assert.match(ofServer, /^mcp__demo__add: /m);
  assert.doesNotMatch(ofServer, /^bash: /m);
  assert.match(withWords, /^glob: /m);
  assert.doesNotMatch(withWords, /demo|^bash: /m);
  assert.match(err, /there is no tool of or with "nonsense"/);
});

test('a line of progress keeps time and progress in a narrow window, and shortens the name', () => {
  const name = 'mcp__everything__trigger-long-running-operation';
  const progress = { progress: 3, total: 10, message: 'Working on it' };
  for (const columns of [30, 40, 60, 80, 120]) {
    const line = progressLine(name, '12.3 s', progress, columns);
    const seen = line.slice(0, columns - 3); // the screen cuts the rest
    assert.match(seen, /12\.3 s .*30 %/, `${columns}: ${seen}`);
    assert.ok(columnsOf(seen) <= columns);
  }
  assert.match(progressLine(name, '1 s', progress, 120), /^mcp__everything__trigger-long-running/);
  assert.match(progressLine(name, '1 s', {}, 40), /^mcp__everything__trigger-long.*… 1 s$/);
});

test('y is the yes of a question about many servers, too', async () => {
  const file = '.cursor/mcp.json';
  const mcpServers = { a: { command: 'node', args: ['a.js'] } };
  const where = place({}, { [file]: { mcpServers } });
  const terminal = new Terminal(where, ['mcp', 'import']);
  await terminal.see(/^Take over into user scope\? .*: *$/);
  terminal.enter('y');
  assert.equal(await terminal.ended(), 0, terminal.text);
  assert.match(terminal.text, /^added a to /m);
});
