// Real servers with more than tools: resources, templates, completion, prompts, subscriptions, logs.

import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { plainHost } from '../../chapters/19-the-terminal/host.ts';
import { inBothEras } from '../../chapters/22-no-handshake/era.ts';
import { attached, turnsOf } from '../../chapters/24-more-than-tools/context.ts';
import { keepLogs, Logs } from '../../chapters/24-more-than-tools/logs.ts';
import {
  completeArgument,
  getPrompt,
  listPrompts,
  listResources,
  listResourceTemplates,
  readResource,
  setLogLevel,
} from '../../chapters/24-more-than-tools/offers.ts';
import { declaredBy } from '../../chapters/24-more-than-tools/prompts.ts';
import { subscribeInBothEras } from '../../chapters/24-more-than-tools/subscribe.ts';
import { Watches, watchResources } from '../../chapters/24-more-than-tools/watched-resources.ts';
import { expand, placeIn } from '../../chapters/24-more-than-tools/template.ts';
import type { Json } from '../../mcp.ts';
import { cleanUp, folder, open, rejection, until } from '../help/basics.ts';
import { installed } from '../help/installed.ts';
import { call, say, startModelServer } from '../help/model-server.ts';
import { KEYS, place, Terminal, userServers } from '../help/terminal.ts';
import { server } from '../help/third-party.ts';

afterEach(cleanUp);

/** A server of npm, by the file that starts it. */
function npm(
  name: string,
  version: string,
  file: string,
  args: string[] = [],
  env: Record<string, string> = {},
) {
  const home = join(installed(`${name}@${version}`), 'node_modules', name);
  return { command: process.execPath, args: [join(home, file), ...args], env };
}

const host = () => plainHost({ resultsFolder: join(folder(), 'results'), warn: () => {} });

async function connected(config: Json) {
  const given = host();
  const logs = new Logs(given);
  const watches = new Watches(given);
  const era = inBothEras();
  const more = [keepLogs(logs), subscribeInBothEras(), watchResources(watches)];
  const opened = await open(config, { extensions: [...era.slice(0, -1), ...more, era.at(-1)!] });
  return { ...opened, logs, watches, folder: given.resultsFolder };
}

test('server-everything: resources, blobs, templates, completion by context, prompts, levels', async () => {
  const { connection, logs, folder: results } = await connected(server('everything'));
  assert.ok((await listResources(connection)).length > 3);
  const templates = (await listResourceTemplates(connection)).map(({ uriTemplate }) => uriTemplate);
  const text = templates.find((each) => /dynamic\/text/.test(each))!;
  const uri = expand(text, { resourceId: '3', id: '3' });
  assert.match(String((await readResource(connection, uri))[0]!.text), /3/);
  const blob = templates.find((each) => /dynamic\/blob/.test(each))!;
  const contents = await readResource(connection, expand(blob, { resourceId: '3', id: '3' }));
  assert.match(attached('everything', uri, contents, results).text, /saved in .*result-\d+/);
  const ref = { type: 'ref/prompt', name: 'completable-prompt' } as const;
  const departments = await completeArgument(connection, ref, { name: 'department', value: '' });
  assert.ok(departments.includes('Engineering'), departments.join());
  const engineers = await completeArgument(
    connection,
    ref,
    { name: 'name', value: '' },
    { department: 'Engineering' },
  );
  const others = await completeArgument(
    connection,
    ref,
    { name: 'name', value: '' },
    { department: 'Sales' },
  );
  assert.notDeepEqual(engineers, others);
  const args = await getPrompt(connection, 'args-prompt', { city: 'Graz' });
  assert.match(JSON.stringify(args), /Graz/);
  const [resource] = turnsOf(
    await getPrompt(connection, 'resource-prompt', { resourceType: 'Text', resourceId: '1' }),
    results,
    'x',
  ).slice(-1);
  assert.ok('text' in resource! && resource.text.length > 10);
  await setLogLevel(connection, 'debug');
  await connection.callTool('toggle-simulated-logging');
  await until(() => logs.of('demo').length > 0);
});

test('server-memory: what is watched, and changed, is told to the model with the next prompt', async () => {
  const model = await startModelServer([
    call('mcp__memory__create_entities', {
      entities: [{ name: 'Ada', entityType: 'person', observations: ['writes programs'] }],
    }),
    say('done'),
    say('Ada, I hear.'),
  ]);
  const memory = { ...server('memory'), env: { MEMORY_FILE_PATH: join(folder(), 'memory.json') } };
  const env = { ANTHROPIC_API_KEY: 'a-key-for-tests', ANTHROPIC_BASE_URL: model.url };
  const where = place({}, userServers({ memory }));
  const terminal = new Terminal(
    where,
    ['--allow', 'mcp__memory__create_entities', '--no-color'],
    env,
  );
  await terminal.ready();
  terminal.enter('/watch memory:memory://knowledge-graph');
  await terminal.see(/^watched:\n +memory:memory:\/\/knowledge-graph$/);
  await terminal.ready();
  terminal.enter('remember Ada');
  await terminal.see(/"memory:\/\/knowledge-graph" of "memory" has changed/);
  await terminal.see(/^done$/);
  await terminal.ready();
  terminal.enter('who is new?');
  await terminal.see(/^Ada, I hear\.$/);
  const [said] = [model.requests[2]!.body.messages.at(-1).content].flat();
  assert.match(
    said.text,
    /^who is new\?\n\nThis has changed since you were told last\.[^]*writes programs/,
  );
  terminal.press(KEYS.ctrlD);
  assert.equal(await terminal.ended(), 0);
});

test('mcp-openapi-schema-explorer: no resources that are listed, but templates, and completion in their holes', async () => {
  const api = join(folder(), 'api.json');
  const paths = { '/lamps': { get: { responses: { 200: { description: 'ok' } } } } };
  writeFileSync(
    api,
    JSON.stringify({ openapi: '3.0.0', info: { title: 'shop', version: '1' }, paths }),
  );
  const { connection, folder: results } = await connected(
    npm('mcp-openapi-schema-explorer', '1.3.4', 'dist/src/index.js', [api]),
  );
  const templates = await listResourceTemplates(connection);
  const { uriTemplate } = templates.find((each) => each.uriTemplate === 'openapi://{field}')!;
  const { name, value } = placeIn(uriTemplate, 'openapi://')!;
  const fields = await completeArgument(
    connection,
    { type: 'ref/resource', uri: uriTemplate },
    { name, value },
  );
  assert.ok(
    ['openapi', 'info', 'paths'].every((each) => fields.includes(each)),
    fields.join(),
  );
  const contents = await readResource(connection, 'openapi://paths');
  assert.match(attached('api', 'openapi://paths', contents, results).text, /lamps/);
});

test('@mapbox/mcp-server: 482 categories, of which 15 begin with "ca"; a prompt; logs before the handshake is over', async () => {
  const token = 'eyJhbGciOiJIUzI1NiJ9.eyJ1IjoieiJ9.c2ln';
  const mapbox = npm('@mapbox/mcp-server', '0.14.0', 'dist/esm/index.js', [], {
    MAPBOX_ACCESS_TOKEN: token,
  });
  const { connection, logs } = await connected(mapbox);
  const prompts = await listPrompts(connection);
  const found: string[][] = [];
  for (const prompt of prompts)
    for (const { name } of declaredBy(prompt).filter((each) => each.name === 'category'))
      found.push(
        await completeArgument(
          connection,
          { type: 'ref/prompt', name: prompt.name },
          { name, value: 'ca' },
        ),
      );
  assert.ok(
    found.some((values) => values.length === 15),
    JSON.stringify(found),
  );
  const messages = await getPrompt(connection, 'find-places-nearby', {
    location: 'Graz',
    category: 'cafe',
  });
  assert.match(JSON.stringify(messages), /Graz/);
  assert.ok(logs.of('demo').length > 0);
});

test('@primeng/mcp: an index of 2.2 million characters is read, and the model gets its two ends and a file', async () => {
  const { connection, folder: results } = await connected(
    npm('@primeng/mcp', '22.1.1', 'dist/index.js'),
  );
  assert.ok((await listResources(connection)).length > 200);
  assert.ok((await listResourceTemplates(connection)).length >= 4);
  const uri = 'primeui://primeng/index.json';
  const contents = await readResource(connection, uri);
  const { length } = String(contents[0]!.text);
  assert.ok(length > 2_000_000, `${length}`);
  const { text } = attached('primeng', uri, contents, results);
  assert.ok(text.length < 5000, `${text.length}`);
  const [, file = ''] = /the whole is in (.+?), which/.exec(text)!;
  assert.ok(existsSync(file), file);
});

// Each prompt of these is fetched with an argument for all that it requires.
const SPEAKERS: [name: string, config: () => Json, fewest: number][] = [
  ['sqlite', () => npm('mcp-server-sqlite', '0.0.2', 'dist/cli.js', [join(folder(), 't.db')]), 3],
  ['git', () => npm('@cyanheads/git-mcp-server', '2.15.3', 'dist/index.js'), 1],
  ['kubernetes', () => npm('mcp-server-kubernetes', '4.1.7', 'dist/index.js'), 1],
  ['primeng', () => npm('@primeng/mcp', '22.1.1', 'dist/index.js'), 5],
  ['everything', () => server('everything'), 3],
];

for (const [name, config, fewest] of SPEAKERS)
  test(`prompts of ${name}: listed, and each becomes turns that end with the user`, async () => {
    const { connection, folder: results } = await connected(config());
    const prompts = await listPrompts(connection);
    assert.ok(prompts.length >= fewest, `${prompts.length}`);
    const failed: string[] = [];
    for (const prompt of prompts) {
      const required = declaredBy(prompt).filter(({ isRequired }) => isRequired);
      const args = Object.fromEntries(
        required.map((each) => [each.name, each.name === 'resourceType' ? 'Text' : '1']),
      );
      try {
        const turns = turnsOf(await getPrompt(connection, prompt.name, args), results, prompt.name);
        assert.equal(turns.at(-1)?.role, 'user', prompt.name);
      } catch (error) {
        failed.push(`${prompt.name}: ${(error as Error).message}`);
      }
    }
    assert.deepEqual(failed, []);
  });

test('@agent-infra/mcp-server-commands runs the argument of its prompt: listing it runs nothing, only getting it does', async () => {
  const marker = join(folder(), 'marker');
  const config = npm('@agent-infra/mcp-server-commands', '1.2.18', 'dist/index.cjs');
  const { connection } = await connected(config);
  const [prompt] = await listPrompts(connection);
  const [{ name } = { name: 'command' }] = declaredBy(prompt!);
  const ref = { type: 'ref/prompt', name: prompt!.name } as const;
  const argument = { name, value: `touch "${marker}"` };
  await completeArgument(connection, ref, argument).catch(() => []);
  assert.equal(existsSync(marker), false);
  await getPrompt(connection, prompt!.name, { [name]: `echo once > "${marker}"` }).catch(rejection);
  assert.equal(existsSync(marker), true); // the trap of the chapter is real
});
