// Chapter 19: the gauge, /compact and what --continue makes of it, in a real terminal.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { cleanUp } from './help/basics.ts';
import { call, fail, raw, say, startModelServer, type ModelServer } from './help/model-server.ts';
import { KEYS, place, run, Terminal } from './help/terminal.ts';

afterEach(cleanUp);

const anthropic = ({ url }: ModelServer) => ({
  ANTHROPIC_API_KEY: 'a-key-for-tests',
  ANTHROPIC_BASE_URL: url,
});
const used = (input: number) => ({ usage: { input, output: 100, cached: 0 } });
const textOf = ({ requests }: ModelServer) => JSON.stringify(requests.at(-1)!.body.messages);

test('/compact: a summary in the place of all but the last turns, also after --continue; the gauge tells', async () => {
  const where = place({ 'a.txt': 'forty-two' });
  const model = await startModelServer([
    call('read', { path: 'a.txt' }, used(30_000)),
    say('It says forty-two.', used(40_000)),
    say('Sure.', used(49_900)),
    raw('anthropic', [], { then: 'hang' }),
    fail(400),
    say(' '),
    say('They read a.txt: forty-two.', used(9000)),
    say('Thanks.', used(2000)),
    say('Bye.', used(2000)),
  ]);
  const terminal = new Terminal(where, [], anthropic(model));
  await terminal.ready();
  terminal.enter('/compact');
  await terminal.see('there is nothing to summarise yet');
  terminal.enter('read a.txt');
  await terminal.see(/context 40\.1K, 20 %$/);
  terminal.enter('thank you');
  await terminal.see(/context 50K, 25 %$/);
  terminal.enter('/compact');
  await terminal.see(/[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] \/compact/); // it hangs
  terminal.press(KEYS.ctrlC);
  await terminal.ready();
  terminal.enter('/compact');
  await terminal.see('the script says 400');
  terminal.enter('/compact');
  await terminal.see('the model gave no summary');
  terminal.enter('/cost');
  await terminal.see(/in this session · context 50K, 25 %$/);
  terminal.enter('/compact what the file says');
  await terminal.see('They read a.txt: forty-two.');
  await terminal.see('4 turns have become this summary; 4 turns now');
  assert.match(
    JSON.stringify(model.requests.at(-1)!.body.system),
    /The user adds: what the file says/,
  );
  assert.equal(model.requests.at(-1)!.body.tools, undefined);
  terminal.enter('and now?');
  await terminal.see(/context 2\.1K, 1 %$/);
  assert.match(
    textOf(model),
    /summarised by the model.*They read a\.txt.*thank you.*Sure\..*and now\?/,
  );
  assert.ok(!textOf(model).includes('It says'));
  terminal.enter('/exit');
  await terminal.ended();
  const more = await run(where, ['-p', '--continue', 'bye'], { env: anthropic(model) });
  assert.deepEqual([more.code, more.out, more.err], [0, 'Bye.\n', '']);
  assert.match(
    textOf(model),
    /summarised by the model.*They read a\.txt.*and now\?.*Thanks\..*bye/,
  );
  assert.ok(!textOf(model).includes('It says'));
  assert.deepEqual(model.problems, []);
});

test('before the limit it is compacted unasked, and so is what does not fit; a line says so', async () => {
  const where = place();
  const model = await startModelServer([
    say('One.', used(400)),
    say('Two.', used(700)),
    say('They counted.', used(500)),
    say('Three.', used(300)),
    fail(400, {
      type: 'invalid_request_error',
      message: 'prompt is too long: 300 tokens > 200 maximum',
    }),
    say('They counted on.'),
    say('Four.'),
  ]);
  const terminal = new Terminal(where, ['--context-window', '1000'], anthropic(model));
  await terminal.ready();
  terminal.enter('count');
  await terminal.see(/context 500, 50 %$/);
  terminal.enter('go on');
  await terminal.see(/context 800, 80 %$/);
  terminal.enter('three?');
  await terminal.see("! to make room in the model's context, 4 turns have become a summary");
  await terminal.see('Three.');
  assert.match(textOf(model), /summarised by the model.*They counted\..*three\?/);
  terminal.enter('four?');
  await terminal.see('turns have become a summary', 2);
  await terminal.see('Four.');
  assert.match(textOf(model), /They counted on\..*four\?/);
  terminal.enter('/exit');
  await terminal.ended();
  assert.deepEqual(model.problems, []);
});

test('rehearsal quotes the prompts as a summary, and does not take it for a prompt', async () => {
  const where = place({ 'a.txt': 'forty-two' });
  const input = 'read a.txt\nhello\n/compact\nthank you\n/cost\n';
  const { out, code } = await run(where, [], { input });
  assert.equal(code, 0);
  assert.match(out, /these were the prompts\)\n- read a\.txt\n/);
  assert.equal(out.match(/forty-two/g)?.length, 1); // it was read once
});
