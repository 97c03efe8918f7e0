// Chapter 27 in the program itself: /ide, --ide, files that change during a chat, a scope of one's own.

import assert from 'node:assert/strict';
import { mkdirSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { loadHere, plainHost, type Sources } from '../chapters/19-the-terminal/host.ts';
import { Scopes } from '../chapters/27-scopes/scopes.ts';
import { compose } from '../chapters/composition.ts';
import type { Json } from '../mcp.ts';
import { cleanUp } from './help/basics.ts';
import { place, run, Terminal, type Place } from './help/terminal.ts';
import {
  answerRequests,
  INITIALIZED,
  startWebSocketServer,
  switching,
  text,
} from './help/websocket-server.ts';

afterEach(cleanUp);

/** An editor: a WebSocket server that wants its token, and a lock file. */
async function editor(where: Place) {
  const seen = { refused: 0, port: 0, told: [] as Json[], say: (_notice: Json) => {} };
  const server = await startWebSocketServer({
    answer: (headers, request, socket) => {
      const isRight = request.headers['x-claude-code-ide-authorization'] === 'ide-secret-4711';
      if (isRight) return void socket.write(switching(headers));
      seen.refused++;
      socket.end('HTTP/1.1 401 Unauthorized\r\n\r\n');
    },
  });
  answerRequests(server, {
    initialize: INITIALIZED,
    'tools/list': { tools: [{ name: 'openFile', inputSchema: { type: 'object' } }] },
  });
  const answer = server.onText;
  server.onText = (said, socket) => {
    const { id, method, params } = JSON.parse(said);
    if (id === undefined) seen.told.push({ method, ...params });
    seen.say = (notice) => void socket.write(text({ jsonrpc: '2.0', ...notice }));
    answer(said, socket);
  };
  seen.port = server.port;
  mkdirSync(join(where.home, '.claude', 'ide'), { recursive: true });
  const lock = {
    pid: process.pid,
    workspaceFolders: [realpathSync(where.cwd)],
    ideName: 'Code\u001b[2J',
    transport: 'ws',
    authToken: 'ide-secret-4711',
  };
  writeFileSync(join(where.home, '.claude', 'ide', `${seen.port}.lock`), JSON.stringify(lock), {
    mode: 0o600,
  });
  return seen;
}

test('--ide connects to the editor that has this folder open, and its token is shown nowhere', async () => {
  const where = place();
  await editor(where);
  const { out, err, code } = await run(where, ['--ide'], { input: '/mcp\n/tools\n' });
  assert.equal(code, 0, err);
  assert.match(out, /^ide: connected · .*1 tool/m);
  assert.match(out, /mcp__ide__openFile/);
  assert.doesNotMatch(out + err, /ide-secret/);
  const none = await run(place(), ['--ide'], { input: '/mcp\n' });
  assert.match(none.out + none.err, /--ide: no editor has this folder open/);
});

test('in a chat: /ide connects and lets go; a change of the files is told, and /mcp reload acts on it', async () => {
  const where = place();
  const terminal = new Terminal(where);
  await terminal.ready();
  terminal.enter('/ide');
  await terminal.see(/no editor with our kind of extension has this\s+folder open/);
  await editor(where);
  terminal.enter('/ide');
  await terminal.see(/connected to "Code\\x1b\[2J"/);
  terminal.enter('/ide off');
  await terminal.see(/no editor any more/);
  writeFileSync(
    join(where.cwd, '.mcp.json'),
    JSON.stringify({ mcpServers: { fresh: { command: 'no-such-thing', disabled: true } } }),
  );
  await terminal.see(/the configuration has changed: new: "fresh"/);
  terminal.enter('/mcp reload');
  await terminal.see(/started: fresh/);
  await terminal.see(/fresh: disabled/);
});

test('an editor hears what becomes of files, and what it tells of itself is in /logs', async () => {
  const where = place({ 'a.txt': 'one' });
  const code = await editor(where);
  const terminal = new Terminal(where);
  await terminal.ready();
  terminal.enter('/ide');
  await terminal.see('connected to "Code');
  for (const prompt of ['write path=b.txt content=new', 'read a.txt then edit a.txt one two']) {
    terminal.enter(prompt);
    await terminal.see(/^Allow it\? /, prompt.startsWith('write') ? 1 : 2);
    terminal.enter('y');
    await terminal.see(prompt.startsWith('write') ? 'created b.txt' : 'edited a.txt');
    await terminal.ready();
  }
  terminal.enter('/undo');
  await terminal.see('a.txt is as it was');
  const notice = (name: string, oldContent: string | null, newContent: string | null) => ({
    method: 'file_updated',
    filePath: join(realpathSync(where.cwd), name),
    oldContent,
    newContent,
  });
  code.say({ method: 'log_event', params: { eventName: 'tab_closed', eventData: { n: 2 } } });
  terminal.enter('/mcp'); // by then all of them have arrived
  await terminal.see(/^ide: connected/);
  terminal.enter('/logs');
  await terminal.see(/^ide .* info: tab_closed: \{"n":2\}$/);
  assert.deepEqual(
    code.told.filter(({ method }) => method === 'file_updated'),
    [notice('b.txt', null, 'new'), notice('a.txt', 'one', 'two'), notice('a.txt', 'two', 'one')],
  );
});

test("a scope of one's own: a program adds a place by a row of its composition", async () => {
  const own = new Scopes({
    more: () => [
      {
        scope: 'team',
        file: 'our wiki',
        authority: 'project',
        servers: [['wiki', { url: 'https://wiki.example/mcp' }]],
      },
    ],
  });
  const composition = { ...compose(plainHost()), sources: own satisfies Sources };
  const { scope, file, authority } = loadHere(composition, () => {}).get('wiki')!;
  assert.deepEqual([scope, file, authority], ['team', 'our wiki', 'project']);
});
