// A text that is cut and kept is a copy: a slice would keep all of it in memory, and a server could end the program by
// logging. Measured in a process of its own, after a collection of garbage.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { root } from './help/basics.ts';

const at = (path: string) => JSON.stringify(pathToFileURL(join(root, path)).href);

/** Each `keep` gets a text of 9 MB, as it comes off a wire, and returns what is kept of it. */
const MEASURE = `
  import { Connection } from ${at('mcp.ts')};
  import { cited } from ${at('chapters/17-the-gate/safe-text.ts')};
  import { problemIn } from ${at('chapters/18-minds/post.ts')};
  import { Logs } from ${at('chapters/24-more-than-tools/logs.ts')};
  const json = JSON.stringify('lorem ipsum '.repeat(750_000));
  const heap = () => (gc(), process.memoryUsage().heapUsed / 2 ** 20);
  const logs = new Logs({ person: { isThere: true }, warn: (text) => warnings.push(text) });
  const warnings = [];
  let events, message;
  const toy = () => ({
    start: async (given) => void (events = given),
    send: async ({ id }) => events.message({ jsonrpc: '2.0', id, error: { code: 1, message } }),
    close: async () => {},
  });
  const connection = new Connection('s', { type: 'toy' }, { transports: { toy } });
  await connection.connect();
  const refused = (data) => ((message = data), connection.request('x').catch((error) => error.message));
  const ways = {
    logs: [200, (data) => logs.take('s', { level: 'warning', logger: data, data })],
    refusals: [12, refused],
    descriptions: [12, cited],
    problems: [12, (data) => problemIn(JSON.stringify({ error: { message: data } }))],
  };
  const kept = [];
  const grown = {};
  for (const [name, [times, keep]] of Object.entries(ways)) {
    const before = heap();
    for (let n = 0; n < times; n++) kept.push(await keep(JSON.parse(json)));
    grown[name] = heap() - before;
  }
  if (logs.of('s').length !== 200 || warnings.length === 0) throw new Error('nothing was kept');
  console.log(JSON.stringify(grown));
`;

test('J11: of 200 log lines of 9 MB, and of every other long text that is cut, less than 50 MB stay', () => {
  const args = ['--expose-gc', '--import', 'tsx', '--input-type=module', '-e', MEASURE];
  const { stdout, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8' });
  assert.match(stdout, /^\{/, stderr);
  for (const [name, mb] of Object.entries(JSON.parse(stdout)))
    assert.ok((mb as number) < 50, `${name}: ${mb} MB`);
});
