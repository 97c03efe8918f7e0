// Chapter 19: commands of your own and of a project, from files; what a day has cost, and a limit.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { promptFrom } from '../chapters/19-the-terminal/own-commands.ts';
import { readPrices } from '../chapters/18-minds/prices.ts';
import { cleanUp } from './help/basics.ts';
import { call, fail, say, startModelServer } from './help/model-server.ts';
import { jsonLines, KEYS, place, run, Terminal } from './help/terminal.ts';

afterEach(cleanUp);

const KEY = 'a-key-for-tests';
const PRICES = {
  'anthropic/': { input: 3, output: 15, cached: 0.3 },
  'anthropic/x': { input: 1, output: 1 },
};

test('a command is a prompt with holes, and nothing in it is obeyed', () => {
  assert.deepEqual(promptFrom('Fix $1 in $2: $ARGUMENTS. $3$1.50', '"a b" c $1'), {
    prompt: 'Fix a b in c: "a b" c $1. $1a b.50',
    ignored: [],
  });
  assert.deepEqual(promptFrom('Look.', ''), { prompt: 'Look.', ignored: [] });
  assert.deepEqual(promptFrom('Look.', 'at it').prompt, 'Look.\n\nat it');
  const head =
    '---\ndescription: x\nargument-hint: [a] [b]\nallowed-tools: Bash(git *)\nmodel: y\n---\n';
  const { prompt, ignored } = promptFrom(
    `${head}See !\`rm -rf .\` and @secret.txt, a@b.c, $ARGUMENTS`,
    '@mine',
  );
  assert.equal(prompt, 'See !`rm -rf .` and @secret.txt, a@b.c, @mine');
  const told = ['allowed-tools: Bash(git *)', 'model: y', '!`rm -rf .`', '@secret.txt,', '@mine'];
  assert.deepEqual(ignored, told);
  assert.equal(promptFrom('@a '.repeat(50), '').ignored.at(-1), '40 more');
});

test("yours are sent as they are, a project's after you have read them, and once more after a change", async () => {
  const model = await startModelServer([say('One.'), say('Two.'), say('Three.')]);
  const where = place(
    {
      '.claude/commands/fix.md':
        '---\nallowed-tools: Bash(rm:*)\n---\nFix issue $1. !`touch was-run` @notes.txt',
      '.claude/commands/same.md': 'the project says',
      '.claude/commands/not one.md': '',
      'notes.txt': 'a secret word',
    },
    { '.claude/commands/same.md': 'I say $ARGUMENTS' },
  );
  const env = { ANTHROPIC_API_KEY: KEY, ANTHROPIC_BASE_URL: model.url };
  const terminal = new Terminal(where, [], env, 80);
  await terminal.ready();
  const said = () => JSON.stringify(model.requests.at(-1)!.body.messages.at(-1));
  terminal.press('/sa', KEYS.tab);
  await terminal.see(/^› \/same$/);
  terminal.enter('hello');
  await terminal.see('sent: ~/.claude/commands/same.md, 11 characters');
  await terminal.see('One.');
  assert.match(said(), /"I say hello"/);
  await terminal.ready();

  terminal.enter('/fix 7');
  await terminal.see(
    '".claude/commands/fix.md" is a prompt of this project, which the model follows.',
  );
  await terminal.see(/^May it be used\?/);
  assert.match(terminal.text, /Fix issue \$1\. !`touch was-run` @notes\.txt/);
  terminal.enter('n');
  await terminal.see('.claude/commands/fix.md was not sent');
  assert.equal(model.requests.length, 1);
  terminal.enter('/exit');
  await terminal.ended();

  const approved = await run(where, ['trust', 'allow', '.claude/commands/fix.md'], { input: null });
  assert.match(
    approved.out,
    /fix\.md is given to the model in .*, as long as it is exactly this: sha256:/,
  );
  const again = new Terminal(where, [], env, 80);
  await again.ready();
  again.enter('/fix 7');
  await again.see('not obeyed: allowed-tools: Bash(rm:*), !`touch was-run`, @notes.txt');
  await again.see('Two.');
  assert.match(said(), /"Fix issue 7\. !`touch was-run` @notes\.txt"/);
  await again.ready();
  const file = join(where.cwd, '.claude/commands/fix.md');
  writeFileSync(file, `${readFileSync(file, 'utf8')}\nAnd push.`);
  again.enter('/fix 7');
  await again.see('They have changed since you approved them:');
  await again.see(/^ {2}\+│ And push\.$/);
  again.enter('y');
  await again.see('Three.');
  again.enter('/nofix');
  await again.see('there is no /nofix');
  const { code, out } = await run(where, ['trust', 'list']);
  assert.deepEqual([code, /commands\/fix\.md"?: allow sha256:/.test(out)], [0, true]);
  assert.deepEqual(model.problems, []);
});

const usage = (input: number, output: number, cached = 0) => ({ usage: { input, output, cached } });

test('/cost in money, by the longest name; --json tells it; a model without a price is said to be one', async () => {
  const script = () => [say('Hi.', usage(100_000, 10_000, 50_000)), say('Hi.', usage(1000, 1000))];
  const model = await startModelServer([...script(), say('x', usage(2_000_000, 0))]);
  const where = place({}, { '.claude/settings.json': { prices: PRICES } });
  const env = { ANTHROPIC_API_KEY: KEY, ANTHROPIC_BASE_URL: model.url };
  const terminal = new Terminal(where, [], env, 120);
  await terminal.ready();
  for (const prompt of ['one', 'two']) {
    terminal.enter(prompt);
    await terminal.see('Hi.', prompt === 'one' ? 1 : 2);
    await terminal.ready();
  }
  terminal.enter('/cost'); // 0.15 + 0.015 + 0.15, and 0.003 + 0.015
  await terminal.see(/: 101K tokens in \(50K cached\), 11K out in this session · \$0\.3330/);
  const { out } = await run(where, ['-p', '--json', '-m', 'anthropic/x1', 'hi'], { env });
  assert.equal(jsonLines(out).at(-1).cost, 2);
  for (const odd of [
    { a: 3 },
    { a: { input: '3', output: 1 } },
    [],
    { a: { input: -1, output: 1 } },
  ])
    assert.throws(() => readPrices(odd), /"prices"/);
  const broken = place({}, { '.claude/settings.json': { prices: { a: { input: 1 } } } });
  const { code, err } = await run(broken, ['-p', 'hi']);
  assert.deepEqual([code, /settings\.json: "prices" of "a" are not/.test(err)], [3, true]);
});

test('a chat over its limit says what was spent, exactly: what was refused was not sent', async () => {
  const model = await startModelServer([say('One.', usage(100_000, 0))]);
  const env = { ANTHROPIC_API_KEY: KEY, ANTHROPIC_BASE_URL: model.url };
  const where = place({}, { '.claude/settings.json': { prices: PRICES } });
  const terminal = new Terminal(where, ['--max-cost', '0.3'], env, 120);
  await terminal.ready();
  terminal.enter('one');
  await terminal.see('One.');
  await terminal.ready();
  terminal.enter('two');
  await terminal.see('stopped: $0.3000 are spent, of $0.3000; a greater --max-cost goes on');
  await terminal.ready();
  terminal.enter('/cost');
  await terminal.see('in this session · $0.3000, of $0.3000');
  terminal.enter('/model rehearsal'); // it costs nothing
  await terminal.see('model rehearsal');
});

test('--max-cost stops before the next request, each call with its result: dollars, or tokens', async () => {
  const calling = () => call('glob', { pattern: '*' }, usage(150_000, 10_000));
  const model = await startModelServer([calling(), calling(), calling(), fail(500)]);
  const env = { ANTHROPIC_API_KEY: KEY, ANTHROPIC_BASE_URL: model.url };
  const where = place({ 'a.txt': '' }, { '.claude/settings.json': { prices: PRICES } });
  const money = await run(where, ['-p', '--max-cost', '1', 'go'], { env });
  assert.match(money.err, /stopped: \$1\.20 are spent, of \$1\.00; a greater --max-cost goes on/);
  assert.deepEqual([money.code, model.requests.length], [6, 2]);
  const tokens = await run(place(), ['-p', '--max-cost', '160k', 'go'], { env });
  assert.match(tokens.err, /stopped: 160000 tokens are spent, of 160000;/);
  assert.deepEqual([tokens.code, model.requests.length], [6, 3]);
  const none = await run(place(), ['-p', '--max-cost', '1', 'go'], { env });
  assert.match(
    none.err,
    /--max-cost 1 is money, and "prices" in your settings has none for anthropic/,
  );
  assert.deepEqual([none.code, model.requests.length], [3, 3]);
  const free = await run(place({ 'a.txt': '' }), ['-p', '--max-cost', '1', 'what is here?']);
  assert.deepEqual([free.code, free.err], [0, '']);
  const odd = await run(place(), ['-p', '--max-cost', 'much', 'go'], { env });
  assert.deepEqual(
    [odd.code, /dollars, or tokens such as 200k, not much/.test(odd.err)],
    [2, true],
  );
  assert.deepEqual(model.problems, []);
});
