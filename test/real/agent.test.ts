// The whole program with real servers: a chat by words, and one with a model's wire, from prompt to answer.

import assert from 'node:assert/strict';
import { readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { cleanUp, folder } from '../help/basics.ts';
import { call, calls, say, startModelServer, type Seen } from '../help/model-server.ts';
import { jsonLines, place, run, Terminal, userServers } from '../help/terminal.ts';
import { server } from '../help/third-party.ts';

afterEach(cleanUp);

function withServers() {
  const files = realpathSync(folder());
  writeFileSync(join(files, 'note.txt'), 'a note from a file\n');
  // Told our roots, server-filesystem forgets the folder that it was configured with.
  const ownFolder = { ...server('filesystem', files), roots: false };
  const servers = { everything: server('everything'), files: ownFolder };
  return { files, where: place({}, userServers(servers)) };
}

test('rehearsal: a chat in a terminal with server-everything and server-filesystem', async () => {
  const { files, where } = withServers();
  const terminal = new Terminal(where);
  await terminal.ready();
  terminal.enter('get-sum a=2 b=40');
  await terminal.see('the tool "get-sum" of the MCP server "everything"');
  terminal.enter('y');
  await terminal.see(/The sum of 2 and 40 is 42/);
  await terminal.ready();
  terminal.enter(`write_file path="${join(files, 'new.txt')}" content="written by hand"`);
  await terminal.see('the tool "write_file" of the MCP server "files"');
  terminal.enter('y');
  await terminal.see(/✓ mcp__files__write_file/);
  assert.equal(readFileSync(join(files, 'new.txt'), 'utf8'), 'written by hand');
  await terminal.ready();
  terminal.enter('/mcp');
  await terminal.see(/^everything: connected · protocol \S+ · \d+ tools/);
  await terminal.see(/^files: connected/);
  terminal.enter('/exit');
  assert.equal(await terminal.ended(), 0);
});

/** The results in a request on Anthropic's wire, as far as they are in its last message. */
const results = ({ body }: Seen): any[] =>
  body.messages.at(-1).content.filter(({ type }: any) => type === 'tool_result');

test("a scripted model on Anthropic's wire: two calls at once, an image, an error, an answer", async () => {
  const { files, where } = withServers();
  const model = await startModelServer([
    calls(
      [
        { name: 'mcp__everything__get-sum', args: { a: 2, b: 40 } },
        { name: 'mcp__files__read_text_file', args: { path: join(files, 'note.txt') } },
      ],
      { text: 'I look at both.' },
    ),
    call('mcp__everything__get-tiny-image', {}),
    call('mcp__files__read_text_file', { path: '/etc/passwd' }),
    say('The sum is 42.'),
  ]);
  const env = { ANTHROPIC_API_KEY: 'sk-test-key', ANTHROPIC_BASE_URL: model.url };
  const allow = ['--allow', 'mcp__everything__*', '--allow', 'mcp__files__*'];
  const { code, out } = await run(where, ['-p', '--json', 'go', ...allow], { env });
  assert.deepEqual(model.problems, []);
  const [, second, third, fourth] = model.requests as [Seen, Seen, Seen, Seen];
  const texts = results(second).map(({ content }) => JSON.stringify(content));
  assert.equal(texts.length, 2);
  assert.match(texts[0]!, /42/);
  assert.match(texts[1]!, /a note from a file/);
  assert.ok(
    results(third)[0].content.some(
      (block: any) => block.type === 'image' && block.source.media_type === 'image/png',
    ),
  );
  assert.equal(results(fourth)[0].is_error, true);
  const events = jsonLines(out);
  const ended = events
    .filter(({ type }) => type === 'tool_end')
    .map(({ name, outcome }) => [name, outcome]);
  // Two servers work side by side: either may be the first to answer.
  assert.deepEqual(
    [...ended.slice(0, 2).sort(), ...ended.slice(2)],
    [
      ['mcp__everything__get-sum', 'worked'],
      ['mcp__files__read_text_file', 'worked'],
      ['mcp__everything__get-tiny-image', 'worked'],
      ['mcp__files__read_text_file', 'failed'],
    ],
  );
  assert.deepEqual(
    [code, events.at(-1).text, events.at(-1).model],
    [0, 'The sum is 42.', 'anthropic/claude-sonnet-5'],
  );
});

test('and the same on the OpenAI-compatible wire', async () => {
  const { files, where } = withServers();
  const model = await startModelServer([
    calls([
      { name: 'mcp__everything__echo', args: { message: 'hello' } },
      { name: 'mcp__files__read_text_file', args: { path: join(files, 'note.txt') } },
    ]),
    say('Done.'),
  ]);
  const env = { OPENAI_API_KEY: 'sk-test-key', OPENAI_BASE_URL: `${model.url}/v1` };
  const allow = ['--allow', 'mcp__everything__echo', '--allow', 'mcp__files__read_text_file'];
  const { code, out } = await run(where, ['-p', 'go', ...allow], { env });
  assert.deepEqual([model.problems, code, out], [[], 0, 'Done.\n']);
  const told = model.requests[1]!.body.messages.filter(({ role }: any) => role === 'tool').map(
    ({ content }: any) => content,
  );
  assert.match(told[0], /hello/);
  assert.match(told[1], /a note from a file/);
});
