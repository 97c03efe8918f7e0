// A chat of fifty prompts with the strict local model, which counts: for what is made of its trace.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { goodServer } from './basics.ts';
import { counting } from './counting.ts';
import {
  call,
  calls,
  fail,
  say,
  startModelServer,
  type Script,
  type WireName,
} from './model-server.ts';
import { place, run, userServers } from './terminal.ts';

export const variables = (wire: WireName, url: string): Record<string, string> =>
  wire === 'anthropic'
    ? { ANTHROPIC_API_KEY: 'a-key-for-tests', ANTHROPIC_BASE_URL: url }
    : { OPENAI_API_KEY: 'a-key-for-tests', OPENAI_BASE_URL: `${url}/v1` };

const add = (a: number, b: number) => ({ name: 'mcp__calculator__add', args: { a, b } });

/** Answers to these prompts: plain ones, two calls at once, a sub-agent, a service that is busy once. */
function answersTo(prompts: number[], { answering }: ReturnType<typeof counting>): Script {
  const script: Script = [];
  for (const n of prompts) {
    if (n === 7) script.push(fail(529, { headers: { 'retry-after-ms': '1' } }));
    if (n % 5 === 0) script.push(answering(calls([add(n, 1), add(n, 2)])));
    if (n === 12) script.push(answering(call('delegate', { task: 'Add 1 and 1.' })));
    if (n === 12) script.push(answering(calls([add(1, 1)])));
    if (n === 12) script.push(answering(say('It is 2.')));
    script.push(answering(say(`Answer ${n}.`)));
    if (n === 40) script.push(answering(say('They counted to forty.'))); // a summary
  }
  return script;
}

/** A chat of fifty prompts, in two programs: the second goes on with --continue, and compacts. */
export async function fiftyPrompts(wire: WireName) {
  const calculator = { command: process.execPath, args: [goodServer] };
  const where = place({ 'AGENTS.md': 'Be kind.' }, userServers({ calculator }));
  const file = join(where.cwd, 'chat.jsonl');
  const counted = counting();
  const prompts = Array.from({ length: 50 }, (_, n) => n + 1);
  const model = await startModelServer(answersTo(prompts, counted));
  const outs: string[] = [];
  for (const [from, to] of [
    [0, 25],
    [25, 50],
  ]) {
    const lines = prompts.slice(from, to).flatMap((n) => {
      const line = `Prompt ${n}, about ${'x'.repeat(400)}`;
      return n === 40 ? [line, '/compact'] : [line];
    });
    const args = [
      '--trace',
      file,
      '--allow',
      'mcp__calculator__*',
      ...(from ? ['--continue'] : []),
    ];
    const input = [...lines, '/context'].join('\n');
    const { code, out, err } = await run(where, args, { input, env: variables(wire, model.url) });
    assert.deepEqual([code, model.problems], [0, []], err);
    outs.push(out);
  }
  const bodies = model.requests.map(({ body }) => JSON.stringify(body));
  const isAgain = (n: number) => bodies[n] === bodies[n + 1]; // it was busy
  const sent = model.requests.filter((_, n) => !isAgain(n)).map(({ body }) => body);
  assert.equal(sent.length, model.requests.length - 1);
  return { where, file, text: readFileSync(file, 'utf8'), sent, counts: counted.counts, outs };
}
