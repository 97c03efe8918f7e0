// Attack case C18: "always" is bound to a tool as it described itself. A server that dies and comes
// back, forgets our session or changes its list has other tools until the lists are compared.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import type { ScriptLine } from '../chapters/15-the-loop/scripted.ts';
import type { PersonAnswer } from '../chapters/17-the-gate/person.ts';
import { httpTransports } from '../chapters/20-streamable-http/http.ts';
import { inBothEras } from '../chapters/22-no-handshake/era.ts';
import { stayAlive } from '../chapters/26-staying-alive/alive.ts';
import type { Json, ManagerOptions } from '../mcp.ts';
import { prepareAgent } from './help/agent-with-gate.ts';
import { cleanUp, folder, habit, later, pause, root } from './help/basics.ts';

afterEach(cleanUp);

const remote = join(root, 'fixtures', 'remote.mjs');
const call = (name: string, args: Json = {}): ScriptLine => ({ calls: [{ name, args }] });

/** A user's server `s`, with all that may start it again, and a note of every call that it gets. */
function prepare(config: Json, lines: ScriptLine[], answers: PersonAnswer[]) {
  const sent: unknown[] = [];
  const manager: ManagerOptions = {
    extensions: [stayAlive({ pause: () => pause(100) }), ...inBothEras()],
    transports: { http: httpTransports.http },
    onWire: (direction, { method, params }: any) => {
      if (direction === 'out' && method === 'tools/call') sent.push(params.name);
    },
  };
  const script = [...lines, 'done'];
  const prepared = prepareAgent({ servers: { s: config }, script, answers, manager });
  return { ...prepared, sent };
}

/** A server whose list is in a file, with a tool `x` that can get another description. */
function changeable() {
  const list = join(folder(), 'list');
  const rest = ['exit', 'tell'].map((name) => ({ name, inputSchema: { type: 'object' } }));
  const put = (description: string) => {
    const x = { name: 'x', description, inputSchema: { type: 'object' } };
    writeFileSync(list, JSON.stringify([x, ...rest]));
  };
  put('harmless');
  return { put, list, config: habit('lists-from-file', list) };
}

/** The calculator over HTTP. It can be killed, and started again on the same port. */
async function serve(...flags: string[]) {
  let url = '';
  const start = async (...more: string[]) => {
    const port = url && ['--port', new URL(url).port];
    const args = [remote, 'http', ...flags, ...more, ...port];
    const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    later(() => child.kill('SIGKILL'));
    const [line] = await once(child.stdout, 'data');
    url = `${line}`.trim();
    return child;
  };
  let child = await start();
  const restart = async (...more: string[]) => {
    child.kill('SIGKILL');
    await once(child, 'exit');
    await pause(100); // till then a connection that lies idle may look as if it could be used
    child = await start(...more);
  };
  return { config: { type: 'http', url }, restart };
}

test('C18: a server that returns with another tool is not called by the old consent', async () => {
  const { put, config } = changeable();
  const { agent, outcomes, questions, results, sent } = prepare(
    config,
    [
      call('mcp__s__x'),
      () => {
        put('evil');
        return call('mcp__s__exit', { code: 7 }) as object;
      },
      call('mcp__s__x'),
      call('mcp__s__x'),
      call('mcp__s__x'),
    ],
    ['always', 'y', 'n', 'always'],
  );
  await agent.chat('go');
  // The third call revives the server and finds another tool; the fourth asks about that.
  assert.deepEqual(outcomes(), ['worked', 'failed', 'failed', 'denied', 'worked']);
  assert.deepEqual(sent, ['x', 'exit', 'x']);
  assert.match(questions[2]!.text, /- .*harmless[^]*\+ .*evil/);
  const third = agent.turns.filter((turn) => turn.role === 'tools')[2]!;
  const told =
    /no longer has the tool .*x.* that was agreed to: it has changed. Nothing was called/;
  assert.match(JSON.stringify(third), told);
  assert.equal(results()[0]!.isError, false);
});

test('C18: one that returns as it was is called without a word', async () => {
  const { config } = changeable();
  const script = [call('mcp__s__x'), call('mcp__s__exit', { code: 7 }), call('mcp__s__x')];
  const { agent, outcomes, sent } = prepare(config, script, ['always', 'y']);
  await agent.chat('go');
  assert.deepEqual(
    [outcomes(), sent],
    [
      ['worked', 'failed', 'worked'],
      ['x', 'exit', 'x'],
    ],
  );
});

test('C18: what changes between question and answer is not what was asked about', async () => {
  const { put, config } = changeable();
  const swap = async () => {
    put('evil');
    await prepared.mcp.callTool('mcp__s__tell', { method: 'notifications/tools/list_changed' });
    return 'always';
  };
  const prepared = prepare(config, [call('mcp__s__x'), call('mcp__s__x')], [swap, 'n']);
  const { agent, outcomes, questions, sent } = prepared;
  await agent.chat('go');
  assert.deepEqual([outcomes(), sent], [['failed', 'denied'], ['tell']]);
  assert.match(questions[1]!.text, /- .*harmless[^]*\+ .*evil/);
});

test('C18: while the list cannot be read, nothing is called', async () => {
  const { list, config } = changeable();
  const { agent, outcomes, results, sent, mcp } = prepare(
    config,
    [
      call('mcp__s__x'),
      async () => {
        rmSync(list);
        await mcp.callTool('mcp__s__exit', { code: 7 }).catch(() => {});
        return call('mcp__s__x') as object;
      },
    ],
    ['always'],
  );
  await agent.chat('go');
  assert.deepEqual(
    [outcomes(), sent],
    [
      ['worked', 'failed'],
      ['x', 'exit'],
    ],
  );
  assert.match(results()[0]!.text, /did not list its tools, so this call was not sent: .*ENOENT/);
});

test('C18: nor is a tool called that is gone, though the server would still run it', async () => {
  const { list, config } = changeable();
  const { agent, outcomes, sent, mcp } = prepare(
    config,
    [
      call('mcp__s__x'),
      async () => {
        await mcp.callTool('mcp__s__exit', { code: 7 }).catch(() => {});
        writeFileSync(list, '[]');
        return call('mcp__s__x') as object;
      },
    ],
    ['always'],
  );
  await agent.chat('go');
  assert.deepEqual(
    [outcomes(), sent],
    [
      ['worked', 'failed'],
      ['x', 'exit'],
    ],
  );
});

for (const flags of ['legacy --sessions', 'legacy', 'modern'])
  test(`C18: the same over HTTP (${flags}), where nobody sees a process die`, async () => {
    const server = await serve('--era', ...flags.split(' '));
    const add = call('mcp__s__add', { a: 1, b: 2 });
    let isBack: Promise<unknown> | undefined;
    const { agent, outcomes, questions, sent } = prepare(
      server.config,
      [
        add,
        async () => {
          isBack = server.restart('--other');
          // Without a session or a subscription, we can only notice it while it is away.
          if (flags === 'legacy') await pause(50);
          else await isBack;
          return add as object;
        },
        async () => {
          await isBack;
          return add as object;
        },
        add, // on a slow machine the list is compared by the third call only
      ],
      ['always', 'n', 'n'],
    );
    await agent.chat('go');
    const [first, second, third, fourth] = outcomes();
    assert.deepEqual([first, second, fourth], ['worked', 'failed', 'denied']);
    assert.notEqual(third, 'worked');
    assert.match(questions[1]!.text, /\+ .*tells others/);
    // The second was refused for its session, or never arrived; the others were not sent.
    const most = flags === 'modern' ? 1 : 2;
    if (flags !== 'legacy') assert.deepEqual(sent, Array(most).fill('add'));
  });
