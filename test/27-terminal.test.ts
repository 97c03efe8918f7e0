// Chapter 27 in the program itself: /ide, --ide, files that change during a chat, a scope of one's own.

import assert from 'node:assert/strict';
import { mkdirSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { loadHere, plainHost, type Sources } from '../chapters/19-the-terminal/host.ts';
import { Scopes } from '../chapters/27-scopes/scopes.ts';
import { compose } from '../chapters/composition.ts';
import { cleanUp } from './help/basics.ts';
import { place, run, Terminal, type Place } from './help/terminal.ts';
import {
  answerRequests,
  INITIALIZED,
  startWebSocketServer,
  switching,
} from './help/websocket-server.ts';

afterEach(cleanUp);

/** An editor: a WebSocket server that wants its token, and a lock file. */
async function editor(where: Place): Promise<{ refused: number; port: number }> {
  const seen = { refused: 0, port: 0 };
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
