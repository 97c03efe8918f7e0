// Chapter 28: what one server's entry says about its tools makes the gate stricter, and never looser.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { nobody } from '../chapters/17-the-gate/person.ts';
import { entryOpinion, entryRules } from '../chapters/28-a-thousand-tools/entry-rules.ts';
import type { Json } from '../mcp.ts';
import { calls, person, prepareAgent } from './help/agent-with-gate.ts';
import { heldServer } from './help/held-server.ts';
import { cleanUp, connect, open, rejection } from './help/basics.ts';

afterEach(cleanUp);

const READER = { name: 'get_x', annotations: { readOnlyHint: true } };
const WRITER = { name: 'set_x', annotations: { destructiveHint: true } };

/** An entry, a tool, and what the gate hears. */
const OPINIONS: [entry: Json, tool: Json, effect?: string, why?: RegExp][] = [
  [{}, WRITER],
  [{ tools: { deny: ['set_x'] } }, WRITER, 'deny', /"set_x" is on the deny list/],
  [{ tools: { deny: ['SET_*'] } }, WRITER, 'deny'],
  [{ tools: { deny: ['set'] } }, WRITER],
  [{ tools: { allow: ['get_*'] } }, READER],
  [{ tools: { allow: ['get_*'] } }, WRITER, 'ask', /"set_x" is not on the allow list/],
  [{ tools: { allow: ['SET_x'] } }, WRITER, 'ask'], // to permit, it must be exact
  [{ tools: { allow: [] } }, READER, 'ask'],
  [{ tools: ['get_x'] }, READER],
  [{ tools: ['*'] }, WRITER],
  [{ tools: ['get_x'] }, WRITER, 'ask'], // as other programs write it
  [{ tools: { allow: ['set_x'], deny: ['set_x'] } }, WRITER, 'deny'],
  [
    { writePermission: 'deny' },
    WRITER,
    'deny',
    /"writePermission" of its entry is for tools that change something, by their own word/,
  ],
  [{ writePermission: 'deny' }, READER],
  [{ writePermission: 'ask' }, { name: 'silent' }, 'ask'], // without a word it writes
  [{ readPermission: 'ask' }, READER, 'ask', /"readPermission"/],
  [{ readPermission: 'deny' }, READER, 'deny'],
  [{ readPermission: 'allow', writePermission: 'allow' }, WRITER],
  [
    { writePermission: 'deny' },
    { name: 'both', annotations: { readOnlyHint: true, destructiveHint: true } },
    'deny',
  ],
  [{ tools: { allow: ['*'.repeat(50) + 'b'] } }, { name: 'a'.repeat(5000) }, 'ask'], // soon
];

test('deny refuses, what an allow list leaves out asks, and allow allows nothing', () => {
  for (const [entry, tool, effect, why = /./] of OPINIONS) {
    const opinion = entryOpinion(tool, entry);
    assert.equal(opinion?.effect, effect, JSON.stringify([entry, tool.name]));
    if (opinion) assert.match(opinion.why, why);
  }
});

/** What entries for other programs say of "set_x", as their documents name it, and whether "set_x" is denied by it. */
const RESTRICTIONS: [word: string, list: string[], isDenied: boolean][] = [
  ['allowedTools', ['get_x'], true],
  ['allowedTools', ['set_x'], false],
  ['allowed_tools', ['get_*'], true],
  ['enabledTools', [], true],
  ['enabledTools', ['*'], false],
  ['enabled_tools', ['get_x'], true],
  ['enabled_tools', ['SET_X'], true], // to permit, it must be exact
  ['includeTools', ['get_x'], true],
  ['include_tools', ['set_*'], false],
  ['deniedTools', ['set_x'], true],
  ['denied_tools', ['get_x'], false],
  ['disabledTools', ['SET_*'], true],
  ['disabled_tools', ['set_x'], true],
  ['excludeTools', ['set_x'], true],
  ['excluded_tools', ['set_x'], true],
  ['blockedTools', ['set_x'], true],
  ['deniedTools', ['mcp__s__set_x'], true], // by its label
  ['deniedTools', ['mcp__a__s__set_x'], true], // of the server "a__s"
  ['allowedTools', ['mcp__s__set_x'], false],
];

test("C36: other programs' words that restrict are obeyed, by the gate and in the connection", async () => {
  for (const [word, list, isDenied] of RESTRICTIONS) {
    const label = JSON.stringify({ [word]: list });
    const opinion = entryOpinion(WRITER, { [word]: list });
    assert.equal(opinion?.effect, isDenied ? 'deny' : undefined, label);
    const { agent, outcomes } = gated({ [word]: list }, { mode: 'yolo' });
    await agent.chat('go');
    assert.equal(outcomes()[1], isDenied ? 'denied' : 'worked', label);
    const { connection, heard } = await openHeld({ [word]: list });
    const call = connection.callTool('set_x');
    if (isDenied)
      assert.match((await rejection(call)).message, new RegExp(`not for us, by "${word}"`));
    else await call;
    assert.equal(heard.length, isDenied ? 0 : 1, label);
  }
  const both = { enabled_tools: ['set_x'], disabled_tools: ['set_x'] };
  assert.equal(entryOpinion(WRITER, both)?.effect, 'deny');
});

test('C36: what they restrict in a way that we cannot read, the entry does not start', async () => {
  const odd = { enabledTools: 'set_x', disabled_tools: { set_x: true }, excludeTools: null };
  const unclear = { allowedResources: 'x:*', tools: { set_x: { approval_mode: 'prompt' } } };
  const impossible = { sandboxEnabled: true, default_tools_approval_mode: 'never' };
  for (const [word, value] of Object.entries({
    ...odd,
    ...unclear,
    ...impossible,
    disabled: 'yes',
  })) {
    const error = await rejection(openHeld({ [word]: value }));
    assert.deepEqual([error.kind, error.message.includes(`"${word}"`)], ['config', true], word);
  }
});

test('C36: Codex may want a question for all tools, or for those that write; VS Code may want no sandbox', async () => {
  const mode = 'default_tools_approval_mode';
  const rows: [string, Json, string?][] = [
    ['prompt', READER, 'ask'],
    ['prompt', WRITER, 'ask'],
    ['writes', READER],
    ['writes', WRITER, 'ask'],
    ['approve', WRITER],
    ['auto', WRITER],
  ];
  for (const [value, tool, effect] of rows)
    assert.equal(entryOpinion(tool, { [mode]: value })?.effect, effect, value);
  const both = { [mode]: 'prompt', writePermission: 'deny' };
  assert.equal(entryOpinion(WRITER, both)?.effect, 'deny');
  const asked = gated({ [mode]: 'prompt' }, { rules: { allow: ['mcp__s__*'] } });
  await asked.agent.chat('go');
  assert.deepEqual(asked.outcomes(), ['denied', 'denied']);
  assert.deepEqual((await openHeld({ sandboxEnabled: false })).warnings, []);
});

test('C36: words that grant are told once, and grant nothing', async () => {
  for (const word of ['autoApprove', 'auto_approve', 'alwaysAllow', 'always_allow', 'trust']) {
    const { agent, outcomes } = gated({ [word]: word === 'trust' ? true : ['set_x', '*'] });
    await agent.chat('go');
    assert.deepEqual(outcomes(), ['denied', 'denied'], word);
    const { warnings } = await openHeld({ [word]: true });
    assert.equal(warnings.length, 1);
    assert.match(warnings[0]!, new RegExp(`"${word}" grants nothing here`));
    assert.deepEqual((await openHeld({ [word]: [] })).warnings, []);
  }
});

/** A connection whose only extension is the entry's rules. */
async function openHeld(entry: Json) {
  const server = heldServer([READER, WRITER], { isQuick: true });
  const warnings: string[] = [];
  const options = {
    transports: { held: server.factory },
    extensions: [entryRules({ person: nobody })],
    onWarning: (text: string) => void warnings.push(text),
  };
  const { connection } = await open({ type: 'held', ...entry }, options);
  return { connection, warnings, heard: server.heard };
}

/** An agent with one server, its entry, and a gate that hears of it. */
function gated(entry: Json, more: Json = {}) {
  const server = heldServer([READER, WRITER], { isQuick: true });
  const manager = {
    transports: { held: server.factory },
    extensions: [entryRules({ person: nobody })],
  };
  const opinion = ({ origin }: any) => origin && entryOpinion(origin.tool, entry);
  const script = calls(['mcp__s__get_x', {}], ['mcp__s__set_x', {}]);
  return {
    ...prepareAgent({
      script,
      servers: { s: { type: 'held', ...entry } },
      manager,
      opinion,
      ...more,
    } as any),
    server,
  };
}

test('C34: nothing loosens the gate: rules, yolo and "always" do not help against the entry', async () => {
  const rules = { allow: ['mcp__s__*'] };
  for (const more of [{ rules }, { mode: 'yolo' }]) {
    const denied = gated({ tools: { deny: ['set_x'] } }, more);
    await denied.agent.chat('go');
    assert.deepEqual(denied.outcomes(), ['worked', 'denied']);
    assert.match(
      denied.results()[1]!.text,
      /^Not allowed: "set_x" is on the deny list of its server's entry\.$/,
    );
    const asked = gated({ tools: { allow: ['get_x'] } }, more);
    await asked.agent.chat('go');
    assert.deepEqual(asked.outcomes(), ['worked', 'denied']);
    assert.match(
      asked.results()[1]!.text,
      /not on the allow list of its server's entry, and there is nobody to ask/,
    );
    assert.deepEqual(
      asked.server.heard.map(({ name }) => name),
      ['get_x'],
    );
  }
});

test('what an entry allows is asked about as ever, and what it asks about offers no "always"', async () => {
  const plain = gated(
    { tools: { allow: ['get_x'] }, readPermission: 'allow' },
    { answers: ['n', 'y'] },
  );
  await plain.agent.chat('go');
  assert.deepEqual(plain.outcomes(), ['denied', 'worked']);
  assert.match(plain.questions[0]!.prompt, /\[a\]lways/);
  assert.doesNotMatch(plain.questions[1]!.prompt, /\[a\]lways/);
  assert.match(plain.questions[1]!.text, /not on the allow list of its server's entry/);
});

test('a deny rule of the user beats an entry that only asks', async () => {
  const { agent, results } = gated(
    { tools: { allow: [] } },
    { rules: { deny: ['mcp__s__set_x'] }, answers: ['n'] },
  );
  await agent.chat('go');
  assert.match(results()[1]!.text, /the rule deny/);
});

test('the connection refuses what the entry denies, whoever calls', async () => {
  const server = heldServer(['set_x'], { isQuick: true });
  const options = {
    transports: { held: server.factory },
    extensions: [entryRules({ person: nobody })],
  };
  const { connection } = await open({ type: 'held', tools: { deny: ['set_*'] } }, options);
  const error = await rejection(connection.callTool('set_x'));
  assert.match(
    error.message,
    /"demo" was not asked: "set_x" is on the deny list of its server's entry/,
  );
  assert.equal(server.heard.length, 0);
});

test('so it does with a permission: by what the server has listed, and a tool that it has not may write', async () => {
  const server = heldServer([READER, WRITER], { isQuick: true });
  const options = {
    transports: { held: server.factory },
    extensions: [entryRules({ person: nobody })],
  };
  const { connection } = await open({ type: 'held', writePermission: 'deny' }, options);
  await connection.listTools();
  await connection.callTool('get_x');
  for (const name of ['set_x', 'unlisted'])
    assert.match(
      (await rejection(connection.callTool(name))).message,
      /was not asked: "writePermission" of its entry/,
    );
  assert.deepEqual(
    server.heard.map(({ name }) => name),
    ['get_x'],
  );
});

test('a resource that is not on the list asks, once; without a person it is refused', async () => {
  const read = async (answers: string[] | undefined, ...uris: string[]) => {
    const { user, questions } = person(...(answers ?? []));
    const asked: unknown[] = [];
    const there = {
      layer: (call: any, next: any) =>
        call.method === 'resources/read'
          ? (asked.push(call.params.uri), Promise.resolve({ contents: [] }))
          : next(call),
    };
    const server = heldServer();
    const extensions = [entryRules({ person: answers ? user : nobody }), () => there];
    const { connection } = await open(
      { type: 'held', resources: { allow: ['file:///docs/*'] } },
      { transports: { held: server.factory }, extensions },
    );
    const outcomes: string[] = [];
    for (const uri of uris)
      outcomes.push(
        await connection.request('resources/read', { uri }).then(
          () => 'read',
          (error) => error.message,
        ),
      );
    return { asked, outcomes, questions };
  };
  const free = await read(undefined, 'file:///docs/a', 'file:///secret');
  assert.deepEqual(free.asked, ['file:///docs/a']);
  assert.match(
    free.outcomes[1]!,
    /"file:\/\/\/secret" is not on the list of resources in its entry, and there is nobody to ask/,
  );
  const agreed = await read(['y', ''], 'x:1', 'x:1', 'x:\u202e2');
  assert.deepEqual(agreed.asked, ['x:1', 'x:1']);
  assert.equal(agreed.questions.length, 2);
  assert.match(agreed.outcomes[2]!, /the user said no/);
});

test('an entry that cannot be understood does not start: it may forbid something', async () => {
  const wrong: Json[] = [
    { tools: { denny: ['x'] } },
    { tools: { deny: 'x' } },
    { tools: { deny: [1] } },
    { tools: 'x' },
    { tools: [1] },
    { resources: { allow: 'x' } },
    { resources: ['x'] },
    { readPermission: 'yes' },
    { writePermission: null },
  ];
  for (const entry of wrong) {
    const error = await rejection(
      connect(
        { type: 'held', ...entry },
        {
          transports: { held: heldServer().factory },
          extensions: [entryRules({ person: nobody })],
        },
      ),
    );
    assert.equal(error.kind, 'config', JSON.stringify(entry));
    assert.match(error.message, new RegExp(`"${Object.keys(entry)[0]}"`));
  }
});

test('a question shows the title and what the tool says of itself, as its own word', async () => {
  const odd = {
    name: 'wipe',
    title: 'Wi\u202epe',
    annotations: {
      title: 'other',
      destructiveHint: true,
      openWorldHint: true,
      readOnlyHint: 'yes',
    },
  };
  const plain = {
    name: 'plain',
    annotations: { title: 'Plain work', readOnlyHint: true, idempotentHint: true },
  };
  const server = heldServer([odd, plain, 'bare'], { isQuick: true });
  const script = calls(['mcp__s__wipe', {}], ['mcp__s__plain', {}], ['mcp__s__bare', {}]);
  const { agent, questions } = prepareAgent({
    script,
    servers: { s: { type: 'held' } },
    manager: { transports: { held: server.factory } },
    answers: ['n', 'n', 'n'],
  });
  await agent.chat('go');
  const line = (n: number) =>
    questions[n]!.lines.find((each) => each.includes('it says of itself'));
  assert.equal(line(0), '  it says of itself: "Wi\\u{202e}pe", destructive, open world');
  assert.equal(
    line(1),
    '  it says of itself: "Plain work", only reads, twice does no more than once',
  );
  assert.equal(line(2), undefined);
});

test('"always" to one call is the answer to the one that waits behind it', async () => {
  const server = heldServer(['write'], { isQuick: true });
  const entry = { type: 'held' };
  const script = calls(['mcp__a__write', {}], ['mcp__b__write', {}], ['mcp__a__write', {}]);
  const { agent, questions, gate, mcp } = prepareAgent({
    script,
    servers: { a: entry, b: entry },
    manager: { transports: { held: server.factory } },
    answers: ['a', 'y'],
  });
  await agent.chat('go');
  assert.equal(questions.length, 2);
  // Two at once, of which the first is answered with "always".
  const both = prepareAgent({
    servers: { c: entry },
    manager: { transports: { held: server.factory } },
    answers: ['a'],
  });
  await both.agent.connect();
  const tool = both.agent.table.get('mcp__c__write')!;
  const { signal } = new AbortController();
  const verdicts = await Promise.all([1, 2].map(() => both.gate.check(tool, {}, signal)));
  assert.deepEqual(
    [verdicts.map(({ allowed }) => allowed), both.questions.length],
    [[true, true], 1],
  );
  void [gate, mcp];
});

test('a tool for apps only is not offered to the model, and cannot be called by it', async () => {
  const app = { name: 'app', _meta: { ui: { visibility: ['app'] } } };
  const both = {
    name: 'both',
    _meta: { ui: { visibility: ['model', 'app'], resourceUri: 'ui://x' } },
  };
  const server = heldServer([app, both, 'plain'], { isQuick: true });
  const { agent, outcomes, of, model } = prepareAgent({
    script: calls(['mcp__s__app', {}]),
    servers: { s: { type: 'held' } },
    manager: { transports: { held: server.factory } },
    tools: [],
  });
  await agent.chat('go');
  assert.deepEqual(
    model.requests[0]!.tools.map(({ name }) => name),
    ['mcp__s__both', 'mcp__s__plain'],
  );
  assert.deepEqual(outcomes(), ['unknown']);
  assert.deepEqual([server.heard.length, of('note').length], [0, 0]);
});
