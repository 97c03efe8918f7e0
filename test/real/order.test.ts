// The reference memory server reads a file, changes it and writes it back, for every call. Ten calls at once, and it
// loses most of them although it reports ten successes. In line, none is lost.

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { compose } from '../../chapters/composition.ts';
import { forConnections, plainHost } from '../../chapters/19-the-terminal/host.ts';
import { delegate } from '../../chapters/28-a-thousand-tools/delegate.ts';
import type { ModelRequest } from '../../agent.ts';
import type { ScriptedAnswer } from '../../chapters/15-the-loop/scripted.ts';
import { living, type Json } from '../../mcp.ts';
import { prepareAgent } from '../help/agent-with-gate.ts';
import { cleanUp, folder } from '../help/basics.ts';
import { yes } from '../help/agent-alone.ts';
import { server } from '../help/third-party.ts';

afterEach(cleanUp);

const entity = (name: string) => ({
  entities: [{ name, entityType: 'number', observations: [`it is ${name}`] }],
});
const names = (from: number, count: number) =>
  Array.from({ length: count }, (_, n) => `n${from + n}`);
const creating = (...all: string[]): ScriptedAnswer => ({
  calls: all.map((name) => ({ name: 'mcp__memory__create_entities', args: entity(name) })),
});

/** An agent with the memory server. What its model answers depends on the task. */
function remember(answers: Record<string, ScriptedAnswer>, entry: Json = {}) {
  const file = join(folder(), 'memory.jsonl');
  const one = ({ turns }: ModelRequest): ScriptedAnswer => {
    const task = (turns.findLast((turn) => turn.role === 'user') as { text: string }).text
      .split('\n\n')
      .at(-1)!;
    return turns.at(-1)!.role === 'tools' ? 'done' : (answers[task] ?? 'nothing to do');
  };
  const prepared = prepareAgent({
    script: Array.from({ length: 50 }, () => one),
    gate: yes,
    tools: [delegate()],
    servers: { memory: { ...server('memory'), env: { MEMORY_FILE_PATH: file }, ...entry } },
    manager: forConnections(compose(plainHost())),
  });
  const kept = () =>
    (existsSync(file) ? readFileSync(file, 'utf8') : '')
      .split('\n')
      .filter((line) => line.includes('"entity"'));
  return { ...prepared, kept };
}

test('ten calls in one answer of one agent: ten of ten are kept', async () => {
  const { agent, kept, outcomes } = remember({ go: creating(...names(0, 10)) });
  await agent.chat('go');
  assert.deepEqual(
    [outcomes().filter((outcome) => outcome === 'worked').length, kept().length],
    [10, 10],
  );
});

test('two sub-agents with five calls each: ten of ten, and one process', async () => {
  const delegating = { calls: ['a', 'b'].map((task) => ({ name: 'delegate', args: { task } })) };
  const { agent, kept, results } = remember({
    go: delegating,
    a: creating(...names(0, 5)),
    b: creating(...names(5, 5)),
  });
  await agent.chat('go');
  assert.deepEqual(
    results().map(({ text }) => /Of its calls \d+ worked, and \d+ did not/.exec(text)?.[0]),
    ['Of its calls 5 worked, and 0 did not', 'Of its calls 5 worked, and 0 did not'],
  );
  assert.deepEqual([kept().length, living.size], [10, 1]);
});

test('two prompts at the same time, of two agents with one manager: ten of ten', async () => {
  const { agent, kept } = remember({
    one: creating(...names(0, 5)),
    two: creating(...names(5, 5)),
  });
  const other = agent.fork({});
  await Promise.all([agent.chat('one'), other.chat('two')]);
  assert.equal(kept().length, 10);
});

test('and without the line? What is kept then is luck, and every call is called a success', async () => {
  const { agent, kept, outcomes } = remember(
    { go: creating(...names(0, 10)) },
    { order: 'parallel' },
  );
  await agent.chat('go');
  console.log(
    `server-memory with "order": "parallel": ${outcomes().filter((outcome) => outcome === 'worked').length} successes, ${kept().length} of 10 kept`,
  );
  assert.ok(kept().length <= 10);
});
