// Chapter 17: first look, then agree, then change. The model can make the mode stricter, and only a
// person looser.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { Agent, Gate, Roots, Scripted, Trust } from '../agent.ts';
import { hands } from '../chapters/16-hands/tools.ts';
import { planRows } from '../chapters/17-the-gate/plan.ts';
import { nobody, ScriptedPerson } from '../chapters/17-the-gate/person.ts';
import type { Mode } from '../chapters/17-the-gate/modes.ts';
import { delegate } from '../chapters/28-a-thousand-tools/delegate.ts';
import { cleanUp, folder } from './help/basics.ts';
import { call, say, startModelServer } from './help/model-server.ts';
import { place, run, Terminal } from './help/terminal.ts';

afterEach(cleanUp);

const write = (path: string) => ({ name: 'write', args: { path, content: 'x' } });
const plan = (text: string) => ({ name: 'exit_plan_mode', args: { plan: text } });
const enter = { name: 'enter_plan_mode', args: {} };

/** What became of each call of a model that says this, and the modes in which it was then. */
async function tried(
  script: ConstructorParameters<typeof Scripted>[0],
  { answers = [], mode = 'ask' }: { answers?: string[]; mode?: Mode } = {},
) {
  const [home, cwd] = [folder(), folder()];
  const person = new ScriptedPerson(answers);
  const roots = new Roots(cwd);
  const gate = new Gate({ roots, trust: new Trust({ home, cwd }), person, mode });
  const resultsFolder = folder();
  const rows = planRows({ person, gate: () => gate });
  const tools = [...hands({ roots, resultsFolder }), ...rows, delegate()];
  const ended: string[] = [];
  const agent = new Agent({
    model: new Scripted(script),
    tools,
    gate: gate.check,
    resultsFolder,
    emit: (event) => {
      const inner = event.type === 'agent' ? event.event : event;
      if (inner.type !== 'tool_end') return;
      ended.push(`${inner.name} ${inner.outcome} ${gate.mode}: ${inner.text.split('\n', 1)[0]}`);
    },
  });
  await agent.chat('go');
  return { ended, questions: person.questions, cwd };
}

test('D23: between the two tools nothing can be changed, and only an answer ends that', async () => {
  const { ended, questions, cwd } = await tried(
    [
      { calls: [enter, write('a')] },
      { calls: [plan('1. write b\n\u001b[2Jas I like')] },
      { calls: [plan('1. write c'), write('c')] },
      'Done.',
    ],
    { answers: ['not b', 'e'] },
  );
  assert.deepEqual(ended, [
    'enter_plan_mode worked read-only: The mode is read-only from now on. Look at what you need, ' +
      'then call exit_plan_mode with your plan.',
    'write denied read-only: Not allowed: the mode is read-only, and write may change something.',
    'exit_plan_mode denied read-only: The user does not agree to the plan: not b',
    'exit_plan_mode worked accept-edits: The user agrees. The mode is accept-edits now: go on.',
    'write worked accept-edits: created c: 1 byte, 1 line',
  ]);
  assert.match(
    questions[0]!.text,
    /^The model has a plan:\n  │ 1\. write b\n  │ \\x1b\[2Jas I like$/m,
  );
  assert.match(questions[0]!.text, /If you agree, the mode is ask again: reading in the folder/);
  assert.deepEqual([existsSync(join(cwd, 'a')), existsSync(join(cwd, 'c'))], [false, true]);
});

test('a yes leads back to the mode before; without a plan there is nothing to agree to', async () => {
  const { ended, questions } = await tried(
    [{ calls: [plan('at once')] }, { calls: [enter] }, { calls: [plan('x')] }, 'Done.'],
    { answers: ['y'], mode: 'yolo' },
  );
  assert.equal(questions.length, 1);
  assert.match(questions[0]!.text, /the mode is yolo again: nothing asks any more/);
  assert.deepEqual(
    ended.map((line) => line.split(':', 1)[0]),
    [
      'exit_plan_mode failed yolo',
      'enter_plan_mode worked read-only',
      'exit_plan_mode worked yolo',
    ],
  );
});

test('D23: a sub-agent neither plans nor ends a plan, and where nobody can agree there are no such tools', async () => {
  const { ended, questions } = await tried(
    [
      { calls: [{ name: 'delegate', args: { task: 'x' } }] },
      { calls: [enter] },
      { calls: [plan('mine')] },
      'Report.',
      'Done.',
    ],
    { answers: ['y'] },
  );
  assert.equal(questions.length, 0);
  assert.match(ended[0]!, /^enter_plan_mode failed ask: Only the agent that the user talks to/);
  assert.match(ended[1]!, /^exit_plan_mode failed ask: Only the agent that the user talks to/);
  assert.deepEqual(planRows({ person: nobody, gate: () => ({ mode: 'ask' }) }), []);
  const { out } = await run(place(), ['-p', 'what tools do you have?']);
  assert.doesNotMatch(out, /plan_mode/);
});

test('in a chat: the prompt shows the mode, and the plan is asked about', async () => {
  const model = await startModelServer([
    call('enter_plan_mode', {}),
    say('I look first.'),
    call('exit_plan_mode', { plan: '1. Write a.txt\n2. Rest' }),
    say('Off we go.'),
  ]);
  const env = { ANTHROPIC_API_KEY: 'a-key-for-tests', ANTHROPIC_BASE_URL: model.url };
  const terminal = new Terminal(place(), [], env, 60);
  await terminal.ready();
  terminal.enter('plan it');
  await terminal.see(/^read-only ›$/);
  await terminal.ready();
  terminal.enter('and then?');
  await terminal.see(/^Do you agree\? /);
  assert.match(terminal.text, /^The model has a plan:\n  │ 1\. Write a\.txt\n  │ 2\. Rest\n/m);
  terminal.enter('y');
  await terminal.see('Off we go.');
  await terminal.see(/^›$/);
  assert.deepEqual(model.problems, []);
});
