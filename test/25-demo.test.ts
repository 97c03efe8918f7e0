// Chapter 25, in the program: servers with an address, and one that is built in.

import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { cleanUp } from './help/basics.ts';
import { calculator as remote } from './help/http-servers.ts';
import { place, run } from './help/terminal.ts';

afterEach(cleanUp);

/** The calculator on a wire that has an address. */
const address = async (...args: string[]) => (await remote(...args)).url;

test('--demo adds the calculator that is built in; a configured server of that name is refused, and named', async () => {
  const where = place();
  const ask = ['--demo', '-p', 'add a=2 b=40', '--allow', 'mcp__calculator__add'];
  const plain = await run(where, ask);
  assert.deepEqual(
    [plain.code, plain.out.trim()],
    [0, 'mcp__calculator__add answered:\n42'],
    plain.err,
  );
  writeFileSync(
    join(where.cwd, '.mcp.json'),
    JSON.stringify({ mcpServers: { calculator: { command: 'no-such-command' } } }),
  );
  const taken = await run(where, ask);
  assert.equal(taken.out.trim(), 'mcp__calculator__add answered:\n42');
  assert.match(
    taken.err,
    /MCP server "calculator" in .*\.mcp\.json is ignored: a built-in server has that name; rename it/,
  );
});

test('mcp add with an address, and probe: by http, by the older HTTP+SSE, by ws', async () => {
  const where = place();
  for (const wire of ['http', 'sse', 'ws']) {
    const url = await address(wire);
    const added = await run(where, ['mcp', 'add', '--header', 'X-Key: s3cret', wire, url]);
    assert.equal(added.code, 0, added.err);
    const shown = await run(where, ['mcp', 'get', wire]);
    assert.ok(shown.out.includes(url), shown.out);
    assert.doesNotMatch(shown.out, /s3cret/);
    const probed = await run(where, ['probe', wire, '--call', 'add', 'a=2', 'b=40']);
    assert.equal(probed.code, 0, probed.err + probed.out);
    assert.match(probed.out, /with(out)? a handshake: .*\n[^]*the call worked:\n +42/);
    assert.equal((await run(where, ['probe', url])).code, 0);
  }
  const listed = await run(where, ['mcp', 'list']);
  for (const wire of ['http', 'sse', 'ws'])
    assert.match(listed.out, new RegExp(`^${wire}: connected · protocol 20`, 'm'));
});

test('a project cannot make us connect to an address before it was approved', async () => {
  const where = place();
  const notes = join(where.home, 'notes');
  const url = await address('http', '--notes', notes);
  writeFileSync(
    join(where.cwd, '.mcp.json'),
    JSON.stringify({ mcpServers: { far: { type: 'http', url } } }),
  );
  const refused = await run(where, ['-p', 'add a=2 b=40']);
  assert.match(refused.err, /"far".*is not started: you have not approved it/);
  assert.ok(!existsSync(notes)); // it was not even asked
  assert.equal((await run(where, ['trust', 'allow', 'far'])).code, 0);
  const allowed = await run(where, ['-p', 'add a=2 b=40', '--allow', 'mcp__far__add']);
  assert.deepEqual(
    [allowed.code, allowed.out.trim()],
    [0, 'mcp__far__add answered:\n42'],
    allowed.err,
  );
  assert.ok(existsSync(notes));
});
