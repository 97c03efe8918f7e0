// Chapter 28 as the user sees it: sub-agents are a tree on the screen, in --json and in the trace.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { cleanUp, goodServer } from './help/basics.ts';
import {
  call,
  calls,
  say,
  startModelServer,
  type ModelServer,
  type Seen,
  type Step,
} from './help/model-server.ts';
import { jsonLines, place, readLines, run, Terminal, userServers } from './help/terminal.ts';

afterEach(cleanUp);

const demo = { command: process.execPath, args: [goodServer] };
const anthropic = ({ url }: ModelServer) => ({
  ANTHROPIC_API_KEY: 'a-key-for-tests',
  ANTHROPIC_BASE_URL: url,
});
const userTurns = ({ body }: Seen) => JSON.stringify(body.messages);

/** The model of an agent and its sub-agents: those have been briefed. */
function model(...ofSubAgents: Step[]) {
  const one = (request: Seen): Step => {
    const isSub = userTurns(request).includes('Another agent has given you the task');
    const answers = body(request).filter(({ role }) => role === 'assistant').length;
    if (isSub) return ofSubAgents[answers] ?? say('The sum is in.');
    return answers === 0 ? call('delegate', { task: 'Add 2 and 40.' }) : say('Done.');
  };
  return startModelServer(Array.from({ length: 10 }, () => one));
}
const body = ({ body: { messages } }: Seen) => messages as { role: string }[];

test('--json and --trace: what a sub-agent does is inside of the call that started it; a refusal is the exit code', async () => {
  const server = await model(
    calls([
      { name: 'mcp__demo__add', args: { a: 2, b: 40 } },
      { name: 'mcp__demo__greet', args: { name: 'Ada' } },
    ]),
  );
  const where = place({}, userServers({ demo }));
  const trace = join(where.cwd, 'trace.jsonl');
  const flags = ['-p', '--json', '--trace', trace, '--allow', 'mcp__demo__add'];
  const { code, out } = await run(where, [...flags, 'go'], { env: anthropic(server) });
  assert.deepEqual([server.problems, code], [[], 3]);
  const lines = jsonLines(out);
  const { id } = lines.find(({ type, name }) => type === 'tool_start' && name === 'delegate')!;
  const inner = lines.filter(({ type }) => type === 'agent');
  assert.ok(inner.every((event) => event.id === id && event.name === 'sub-agent 1'));
  const ends = inner.map(({ event }) => event).filter(({ type }) => type === 'tool_end');
  assert.deepEqual(
    ends.map(({ name, outcome }) => [name, outcome]),
    [
      ['mcp__demo__add', 'worked'],
      ['mcp__demo__greet', 'denied'],
    ],
  );
  const { text } = lines.find(({ type, name }) => type === 'tool_end' && name === 'delegate')!;
  assert.match(
    text,
    /Of its calls 1 worked, and 1 did not\.\n- mcp__demo__greet denied: [^]*\n\nIt reports:\n> The sum is in\.$/,
  );
  const last = lines.at(-1)!;
  assert.deepEqual([last.type, last.text], ['done', 'Done.']);
  const traced = readLines(trace).filter(({ type }) => type === 'agent');
  const types = (events: typeof inner) =>
    events.map(({ event }) => event.type).filter((type) => type !== 'text'); // the trace has texts whole
  assert.deepEqual(types(traced), types(inner));
});

test('on a terminal: the question names the sub-agent, its calls are below its name, and Ctrl-C stops it', async () => {
  const server = await model(
    call('mcp__demo__add', { a: 2, b: 40 }),
    call('mcp__demo__greet', { name: 'Ada' }),
  );
  const where = place({}, userServers({ demo }));
  const terminal = new Terminal(where, [], anthropic(server));
  await terminal.ready();
  terminal.enter('go');
  await terminal.see(
    /^Sub-agent 1 \("Add 2 and 40\."\) wants to call the tool "add" of the MCP server "demo":/,
  );
  terminal.enter('y');
  await terminal.see(/^  sub-agent 1: ✓ mcp__demo__add\(a: 2, b: 40\)/);
  await terminal.see(/wants to call the tool "greet"/);
  terminal.press('\x03');
  await terminal.see(/^  sub-agent 1: ■ mcp__demo__greet\(name: "Ada"\) aborted/);
  await terminal.see(/^■ delegate\(task: "Add 2 and 40\."\).* aborted/);
  await terminal.see(/^stopped$/);
  await terminal.ready();
});

test('the entry of a server: a tool on its deny list is refused, also in yolo, and what the list leaves out asks', async () => {
  const entry = { ...demo, tools: { deny: ['greet'], allow: [] } };
  const one = (request: Seen): Step =>
    body(request).length > 1
      ? say('Done.')
      : calls([
          { name: 'mcp__demo__add', args: { a: '2', b: 40 } },
          { name: 'mcp__demo__greet', args: { name: 'Ada' } },
          { name: 'mcp__demo__add', args: { a: 2 } },
        ]);
  const server = await startModelServer(Array.from({ length: 4 }, () => one));
  const where = place({}, userServers({ demo: entry }));
  const { out } = await run(where, ['-p', '--json', '--mode', 'yolo', 'go'], {
    env: anthropic(server),
  });
  const ends = jsonLines(out).filter(({ type }) => type === 'tool_end');
  assert.deepEqual(ends.map(({ outcome }) => outcome).sort(), ['denied', 'denied', 'unreadable']);
  assert.match(
    JSON.stringify(ends),
    /not on the allow list of its server's entry, and there is nobody to ask/,
  );
  assert.match(JSON.stringify(ends), /on the deny list of its server's entry/);
  const called = await run(where, ['call', 'demo', 'greet', 'name=Ada']);
  assert.equal(called.code, 3);
  assert.match(called.err, /"greet\\?" is on the deny list of its server's entry/);
});
