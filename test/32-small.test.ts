// Chapter 32: a small client whose row in the museum is green where it claims to be, and a hasty one whose row is not.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { cleanUp } from './help/basics.ts';

afterEach(cleanUp);

const at = (path: string) => new URL(`../${path}`, import.meta.url).href;
const chapter = 'chapters/32-other-peoples-bugs';
const { SmallClient } = await import(at(`${chapter}/small.mjs`));

test('a line settles the call that it means, and no other', async () => {
  const said: any[] = [];
  const client = new SmallClient((message: any) => said.push(message));
  const call = client.request('tools/call', { name: 'echo' });
  const lines = [
    'Welcome',
    '{"jsonrpc":"2.0","id":1,"method":"ping"}',
    '{"jsonrpc":"2.0","method":"notifications/weather"}',
    '{"jsonrpc":"2.0","id":"1-x","result":"of a stranger"}',
    '{"jsonrpc":"2.0","id":1,"result":"its own"}',
    '{"jsonrpc":"2.0","id":1,"result":"twice"}',
  ];
  for (const line of lines) client.take(line);
  assert.equal(await call, 'its own');
  assert.deepEqual(said.slice(1), [{ jsonrpc: '2.0', id: 1, result: {} }]);
  const failed = client.request('tools/call', { name: 'echo' });
  client.take('{"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"no"}}');
  await assert.rejects(failed, /^Error: no$/);
});

test('its row in the museum is green, and the hasty one is told apart from it', {
  skip: process.platform === 'win32', // groups of processes are not there
}, async () => {
  const { trial } = await import(at('fixtures/museum/trial.mjs'));
  const client = (name: string) => ({
    argv: (target: string, steps: string) => {
      const file = fileURLToPath(at(`${chapter}/${name}`));
      return [process.execPath, file, target, steps];
    },
  });
  const verdicts = async (name: string) => {
    const ids = ['good-stdio', 'banner', 'wrong-id', 'same-id'];
    const found = await Promise.all(ids.map((id) => trial(client(name), id)));
    return found.map(({ verdict }: any) => verdict).join(' ');
  };
  assert.equal(await verdicts('small.mjs'), 'pass pass pass pass');
  assert.equal(await verdicts('hasty.mjs'), 'pass fail fail fail');
});
