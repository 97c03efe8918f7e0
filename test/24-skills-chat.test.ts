// Chapter 24: skills in the program itself: at a real terminal, and without one.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import type { Json } from '../mcp.ts';
import { cleanUp } from './help/basics.ts';
import { call, say, startModelServer, type ModelServer } from './help/model-server.ts';
import { mount } from './help/scripted-peer.ts';
import { entryOf, filesOf, skillMd } from './help/skill-server.ts';
import { place, run, Terminal, userServers } from './help/terminal.ts';

afterEach(cleanUp);

const anthropic = ({ url }: ModelServer) => ({
  ANTHROPIC_API_KEY: 'a-key-for-tests',
  ANTHROPIC_BASE_URL: url,
});
const root = 'skill://pdf';
const forms = 'references/FORMS.md';

/** A server with one skill and no tools. */
async function server(): Promise<Json> {
  const files = filesOf(root);
  const capabilities = { resources: {}, extensions: { 'io.modelcontextprotocol/skills': {} } };
  const { config } = await mount.http({
    initialize: {
      result: {
        protocolVersion: '2025-11-25',
        capabilities,
        serverInfo: { name: 'x', version: '1' },
      },
    },
    'skills/list': { result: { skills: [entryOf(root, files)] } },
    'resources/read': ({ uri }) => ({ result: { contents: [{ uri, text: files[uri] }] } }),
  });
  return config;
}

const toolIn = (model: ModelServer, n: number) =>
  model.requests[n]!.body.tools.find(({ name }: any) => name === 'skill');
const lastResult = (model: ModelServer, n: number): string =>
  JSON.stringify(model.requests[n]!.body.messages.at(-1).content);

test('a chat: the model is told of skills in its first request, loads one after a question, and /skills shows them', async () => {
  const model = await startModelServer([
    call('skill', { name: 'docs/pdf' }),
    call('skill', { name: 'docs/pdf', file: forms }),
    call('skill', { name: 'user/mine' }),
    say('done'),
    say('used'),
  ]);
  const home = {
    ...userServers({ docs: await server() }),
    '.claude/skills/mine/SKILL.md': skillMd('mine', '', 'My own way.'),
  };
  const where = place({ '.claude/skills/theirs/SKILL.md': skillMd('theirs') }, home);
  const terminal = new Terminal(where, ['fill in the form'], anthropic(model));
  await terminal.see(/^Let the model work by it\?[^]*: *$/);
  for (const words of ['the skill "pdf" of the MCP server "docs"', 'What pdf is for', forms])
    assert.ok(terminal.text.includes(words), words);
  terminal.enter('yes');
  await terminal.see(/^done$/);
  await terminal.ready();
  const { description } = toolIn(model, 0);
  const listed = description.split('\n').filter((each: string) => each.startsWith('> '));
  assert.deepEqual(listed, [
    "> user/mine (the user's own): What mine is for",
    '> project/theirs (of this project; the user has not agreed to it yet)',
    '> docs/pdf (from an MCP server): What pdf is for',
  ]);
  assert.match(lastResult(model, 1), /Read references\/FORMS.md/);
  assert.match(lastResult(model, 2), /forms\\n/);
  assert.match(lastResult(model, 3), /My own way/);

  terminal.enter('/skills');
  await terminal.see(
    /^user\/mine \(yours\): What mine is for\nproject\/theirs \(you will be asked\): What theirs is for\ndocs\/pdf \(approved\): What pdf is for$/,
  );
  terminal.enter('/skills show docs/pdf');
  await terminal.see(/^    │ # How$/);
  terminal.enter('/skills revoke docs/pdf');
  await terminal.see('you will be asked about docs/pdf again');
  terminal.enter('/skills allow pdf');
  await terminal.see('There is no skill "pdf". Did you mean docs/pdf?');
  terminal.enter('/skills use user/mine on this');
  await terminal.see(/^used$/);
  assert.match(lastResult(model, 4), /My own way\.[^]*on this/);
  terminal.enter('/exit');
  assert.deepEqual([await terminal.ended(), model.problems], [0, []]);
});

test('without a terminal: an approved skill is loaded, another one is refused, and the exit code says so', async () => {
  const load = (name: string) => [call('skill', { name }), say('done')];
  const model = await startModelServer([
    ...load('docs/pdf'),
    ...load('user/mine'),
    ...load('user/mine'),
  ]);
  const home = {
    ...userServers({ docs: await server() }),
    '.claude/skills/mine/SKILL.md': skillMd('mine'),
  };
  const where = place({}, home);
  const refused = await run(where, ['-p', 'fill in the form'], { env: anthropic(model) });
  assert.deepEqual([refused.code, refused.out], [3, 'done\n']);
  assert.match(refused.err, /The skill docs\/pdf is not approved, and there is nobody to ask/);
  const done = await run(where, ['-p', 'go on'], { env: anthropic(model) });
  assert.deepEqual([done.code, done.err], [0, '']);
  const denied = await run(where, ['-p', 'go on', '--deny', 'skill'], { env: anthropic(model) });
  assert.equal(denied.code, 3);
  assert.match(denied.err, /the rule deny "skill" forbids skill/);
});
