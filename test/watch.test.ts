// npm run chapter 5 page: the wire of any chapter's demo is watched, whatever the demo prints.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { readTrace } from '../chapters/30-seeing/more/read-trace.ts';
import { stageDemo } from '../chapters/book/chapter.ts';
import { watched } from '../chapters/book/draw.ts';
import { readBook, stepOf } from '../chapters/book/pages.ts';
import { cleanUp, folder } from './help/basics.ts';

afterEach(cleanUp);

test('the wire of any chapter can be watched: a pipe without a client; connections, agents and headings', async () => {
  const book = readBook();
  const watch = async (which: string) => {
    const { title, folder: program, demo } = stageDemo(book, stepOf(which), stepOf(which));
    const { trace } = await watched(join(folder(), 't.jsonl'), title, program, demo);
    const { messages, happenings, problems } = readTrace(trace);
    assert.deepEqual(problems, []);
    const types = happenings.map(({ record }) => record.type);
    return { ways: messages.map(({ dir, server }) => `${dir} ${server}`), types, messages };
  };
  const [pipe, hands] = await Promise.all([watch('1'), watch('16')]);
  assert.deepEqual(pipe.ways, [
    'out server.mjs',
    'in server.mjs',
    'out habits.mjs',
    'in habits.mjs',
  ]);
  assert.deepEqual(pipe.types, ['heading', 'server', 'heading', 'server']);
  const calls = hands.messages
    .filter(({ msg }) => msg.method === 'tools/call')
    .map(({ server }) => server);
  assert.deepEqual(calls, ['calculator', 'habits'], 'of the second the demo prints nothing');
  const [, , ...first] = hands.types.filter((type) =>
    /^(heading|prompt|query|answer|tool_.*)$/.test(`${type}`),
  );
  assert.deepEqual(first.slice(0, 5), ['query', 'answer', 'tool_start', 'tool_end', 'query']);
});
