// Chapter 27: the commands about servers: mcp add in every scope, --from, import, get.

import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, test } from 'node:test';
import { ScriptedPerson } from '../chapters/17-the-gate/person.ts';
import { Trust } from '../chapters/17-the-gate/trust.ts';
import { plainHost, type Composition } from '../chapters/19-the-terminal/host.ts';
import type { Screen } from '../chapters/19-the-terminal/screen.ts';
import { addFrom, importing } from '../chapters/27-scopes/packages/import-commands.ts';
import { importers, type Importer } from '../chapters/27-scopes/importing.ts';
import { Scopes } from '../chapters/27-scopes/scopes.ts';
import { compose } from '../chapters/composition.ts';
import type { Json } from '../mcp.ts';
import { assertClean } from './help/agent-with-gate.ts';
import { cleanUp, folder, goodServer, rejection } from './help/basics.ts';
import { place, run } from './help/terminal.ts';

afterEach(cleanUp);

/** A desk in a home and a project of its own. */
function desk(files: Record<string, Json>, answers: string[] = []) {
  const base = realpathSync(folder());
  const [home, cwd] = [join(base, 'home'), join(base, 'app')];
  for (const path of [home, cwd]) mkdirSync(path);
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(base, name)), { recursive: true });
    writeFileSync(join(base, name), JSON.stringify(content));
  }
  const said: string[] = [];
  const say = (text: string) => void said.push(text);
  const screen = { print: say, warn: say } as unknown as Screen;
  const sources = new Scopes({ home, cwd, managed: { folder: join(base, 'etc'), owner: 0 } });
  const composition: Composition = { ...compose(plainHost()), sources };
  const person = new ScriptedPerson(answers);
  const read = (name: string) => JSON.parse(readFileSync(join(base, name), 'utf8')) as Json;
  const where = () => ({ home, cwd, platform: 'linux' as const, appData: '' });
  return {
    base,
    home,
    cwd,
    said,
    person,
    read,
    where,
    desk: { screen, composition, trust: new Trust({ home, cwd }) },
  };
}

const SERVER_JSON = {
  name: 'io.github.ada/shelf',
  description: 'Books.',
  version: '1.2.0',
  packages: [
    {
      registryType: 'npm',
      identifier: '@ada/shelf',
      version: '1.2.0',
      transport: { type: 'stdio' },
      runtimeArguments: [{ type: 'named', name: '-y' }],
      packageArguments: [
        {
          type: 'named',
          name: '--shelf',
          valueHint: 'folder',
          description: 'Where?',
          isRequired: true,
        },
        {
          type: 'positional',
          value: '--limit={limit}',
          variables: { limit: { default: '10', choices: ['10', '20'] } },
        },
        { type: 'named', name: '--verbose' },
      ],
      environmentVariables: [
        { name: 'SHELF_TOKEN', isSecret: true, isRequired: true, description: 'Your key\u001b[2J' },
        { name: 'SHELF_COLOUR', description: 'may be left out' },
      ],
    },
  ],
  remotes: [
    {
      type: 'streamable-http',
      url: 'https://{tenant}.shelf.example/mcp',
      variables: { tenant: { isRequired: true } },
      headers: [{ name: 'X-Key', value: 'Bearer {key}', variables: { key: { isSecret: true } } }],
    },
  ],
};

test('mcp add --from server.json: a package of the registry, with a question for each variable', async () => {
  const {
    base,
    desk: given,
    person,
    read,
  } = desk({ 'server.json': SERVER_JSON }, ['2', 'tok-1', '', '', '/srv/books', '30', '20', 'y']);
  assert.equal(await addFrom([join(base, 'server.json')], given, person, 'user'), 0);
  assert.deepEqual((read('home/.claude/settings.json').mcpServers as Json).shelf, {
    command: 'npx',
    args: ['-y', '@ada/shelf@1.2.0', '--shelf', '/srv/books', '--limit=20', '--verbose'],
    env: { SHELF_TOKEN: 'tok-1' },
  });
  assertClean(person.questions.map(({ text }) => text));
});

test("mcp add --from server.json: an address with variables; its secret is not written into the project's file", async () => {
  const {
    base,
    desk: given,
    person,
    read,
  } = desk({ 'server.json': SERVER_JSON }, ['1', 'acme', 'y']);
  assert.equal(await addFrom([join(base, 'server.json'), 'books'], given, person), 0);
  assert.deepEqual((read('app/.mcp.json').mcpServers as Json).books, {
    type: 'http',
    url: 'https://acme.shelf.example/mcp',
    headers: { 'X-Key': 'Bearer ${KEY}' },
  });
});

test('mcp add --from: every kind of package, older names of the members, and what cannot be', async () => {
  const made = async (pack: Json, answers: string[] = []) => {
    const {
      base,
      desk: given,
      person,
      read,
    } = desk({ 's.json': { name: 'x/y', packages: [pack] } }, [...answers, 'y']);
    try {
      await addFrom([join(base, 's.json')], given, person, 'user');
      const { command, args } = (read('home/.claude/settings.json').mcpServers as Json).y as {
        command: string;
        args: string[];
      };
      return [command, ...args].join(' ');
    } catch (error) {
      return (error as Error).message.replace(base, '');
    }
  };
  assert.equal(await made({ registryType: 'npm', identifier: 'a', version: '1' }), 'npx -y a@1');
  assert.equal(await made({ registry_type: 'pypi', identifier: 'a', version: '1' }), 'uvx a==1');
  assert.equal(
    await made({ registryType: 'nuget', identifier: 'a', version: '1' }),
    'dnx a@1 --yes',
  );
  assert.equal(
    await made(
      {
        registryType: 'oci',
        identifier: 'ghcr.io/a/b',
        version: '1',
        environmentVariables: [{ name: 'T', isRequired: true }],
      },
      ['v'],
    ),
    'docker run -i --rm -e T ghcr.io/a/b:1',
  );
  assert.equal(
    await made({ registryType: 'oci', identifier: 'a/b:2' }),
    'docker run -i --rm a/b:2',
  );
  assert.match(
    await made({ registryType: 'mcpb', identifier: 'https://x/y.mcpb' }),
    /a package of type "mcpb" cannot be started from here/,
  );
  assert.match(
    await made({ registryType: 'npm', identifier: '--evil', version: '1' }),
    /no sound name and version/,
  );
  assert.match(
    await made({ registryType: 'npm', identifier: 'a b', version: '1' }),
    /no sound name and version/,
  );
  assert.match(await made({ registryType: '__proto__', identifier: 'a' }), /cannot be started/);
});

test('mcp add --from: a no, a broken file, nothing in it, nobody there: nothing is written', async () => {
  const refusal = async (content: Json | undefined, answers: string[], isThere = true) => {
    const { base, desk: given, person } = desk(content ? { 's.json': content } : {}, answers);
    const nobody = { ...person, isThere: false } as unknown as ScriptedPerson;
    const error = await rejection(
      addFrom([join(base, 's.json')], given, isThere ? person : nobody, 'user'),
    );
    assert.deepEqual(given.composition.sources!.load({}, () => {}).size, 0);
    return error.message as string;
  };
  const pack = { name: 'x/y', packages: [{ registryType: 'npm', identifier: 'a' }] };
  assert.match(await refusal(pack, ['n']), /nothing was added/);
  assert.match(await refusal(pack, [], false), /needs a terminal/);
  assert.match(await refusal({ name: 'x' }, []), /neither packages nor remotes/);
  assert.match(await refusal(undefined, []), /there is no such file/);
});

const DESKTOP = 'home/.config/Claude/claude_desktop_config.json';

test('mcp import claude-desktop: shows what it found, asks, takes over; names are made fit, what is there stays', async () => {
  const servers = {
    'My Files': { command: 'npx', args: ['-y', 'files'] },
    there: { command: 'x' },
    odd: { command: 3 },
  };
  const {
    desk: given,
    person,
    where,
    read,
    said,
  } = desk(
    {
      [DESKTOP]: { mcpServers: servers, globalShortcut: '' },
      'home/.claude/settings.json': { mcpServers: { there: { command: 'mine' } } },
    },
    ['y'],
  );
  assert.equal(await importing(importers, where)(['claude-desktop'], given, person), 0);
  assert.match(
    person.questions[0]!.text,
    /"My Files" of claude-desktop, in .*\n  command: "npx"[^]*Take over into user scope\?/,
  );
  assert.deepEqual(read('home/.claude/settings.json').mcpServers, {
    there: { command: 'mine' },
    'My-Files': servers['My Files'],
  });
  assert.match(said.join('\n'), /"there" was left out: .*has a server there already/);
  assert.match(said.join('\n'), /"odd" was left out/);
  assert.match(said.join('\n'), /"My Files" is called My-Files here/);
});

test('mcp import vscode: its variables become ours, its inputs are asked for; each by itself', async () => {
  const {
    desk: given,
    person,
    where,
    read,
    said,
  } = desk(
    {
      'home/.config/Code/User/mcp.json': {
        inputs: [{ id: 'key', type: 'promptString', description: 'API key', password: true }],
        servers: {
          a: {
            type: 'stdio',
            command: 'a',
            args: ['${workspaceFolder}', '${env:HOME}'],
            env: { KEY: '${input:key}', H: '${userHome}/x' },
          },
          b: { type: 'http', url: 'https://b.example/' },
          c: { command: 'c', envFile: '.env' },
        },
      },
      'home/.config/Code/User/settings.json': { mcp: { servers: { d: { command: 'd' } } } },
      'app/.vscode/mcp.json': { servers: { e: { command: 'e' } } },
    },
    ['e', 'y', 's3cret', 'n', 'y', 'y', 'y'],
  );
  assert.equal(await importing(importers, where)(['vscode'], given, person), 0);
  const taken = read('home/.claude/settings.json').mcpServers as Json;
  assert.deepEqual(taken, {
    a: {
      type: 'stdio',
      command: 'a',
      args: ['${CLAUDE_PROJECT_DIR}', '${HOME}'],
      env: { KEY: 's3cret', H: `${where().home}/x` },
    },
    d: { command: 'd' },
    e: { command: 'e' },
  });
  assert.match(said.join('\n'), /"c" was left out: it reads variables from a file/);
});

test('mcp import: a third program is a row; an unknown one, one without servers, and nobody there are told', async () => {
  const cursor: Importer = {
    files: ({ home }) => [join(home, '.cursor', 'mcp.json')],
    servers: ({ mcpServers }) => mcpServers as Json,
  };
  const first = desk({ 'home/.cursor/mcp.json': { mcpServers: { a: { command: 'a' } } } }, ['y']);
  assert.equal(
    await importing({ ...importers, cursor }, first.where)(
      ['cursor'],
      first.desk,
      first.person,
      'local',
    ),
    0,
  );
  assert.deepEqual(first.read('home/.claude.json'), {
    projects: { [first.cwd]: { mcpServers: { a: { command: 'a' } } } },
  });
  const {
    desk: given,
    person,
    where,
    said,
  } = desk({ [DESKTOP]: { mcpServers: { a: { command: 'a' } } } });
  const run = importing(importers, where);
  assert.match(
    (await rejection(run(['vscod'], given, person))).message,
    /does not know "vscod"; write mcp import vscode/,
  );
  assert.match(
    (await rejection(run(['vscode'], given, person))).message,
    /has no servers\. We looked in:\n.*mcp\.json/,
  );
  const nobody = { isThere: false } as unknown as ScriptedPerson;
  assert.match(
    (await rejection(run(['claude-desktop'], given, nobody))).message,
    /nothing was imported: that needs a terminal/,
  );
  assert.match(said.join('\n'), /"a" of claude-desktop, in /);
});

test('mcp add tells that --demo takes the name of its calculator; without --demo the entry works', async () => {
  const where = place({});
  const add = ['mcp', 'add', '-s', 'user', 'calculator', '--', process.execPath, goodServer];
  const added = await run(where, add);
  assert.deepEqual([added.code, added.err.match(/with --demo.*/)?.[0]], [0, DEMO_TAKES]);
  const [list, other] = await Promise.all([
    run(where, ['mcp', 'list']),
    run(where, ['mcp', 'add', 'another', '--', process.execPath, goodServer]),
  ]);
  assert.match(list.out, /^calculator: connected .*\n  user, from .*settings\.json/m);
  assert.doesNotMatch(other.err, /--demo/);
});

const DEMO_TAKES = 'with --demo, the built-in server calculator takes its place';

test('as a user of Claude Code would: mcp add in each scope, list, get that explains, remove where it is not clear', async () => {
  const where = place(
    { '.git/HEAD': 'x', 'sub/x': '' },
    { '.claude.json': { numStartups: 3, mcpServers: { state: { command: 'no-such-thing' } } } },
  );
  const sub = { ...where, cwd: join(where.cwd, 'sub') };
  const node = process.execPath;
  const real = realpathSync(where.cwd);
  for (const scope of ['local', 'project', 'user']) {
    const { code, err } = await run(where, [
      'mcp',
      'add',
      '-s',
      scope,
      'calc',
      '--',
      node,
      goodServer,
    ]);
    assert.equal(code, 0, err);
  }
  const state = JSON.parse(readFileSync(join(where.home, '.claude.json'), 'utf8'));
  assert.deepEqual(
    [state.numStartups, Object.keys(state.projects[real].mcpServers)],
    [3, ['calc']],
  );
  const [list, got, inSub, odd, unclear] = await Promise.all([
    run(where, ['mcp', 'list']),
    run(where, ['mcp', 'get', 'calc']),
    run(sub, ['mcp', 'get', '--json', 'calc']),
    run(where, ['mcp', 'add', '-s', 'managed', 'x', '--', node]),
    run(where, ['mcp', 'remove', 'calc']),
  ]);
  assert.match(
    list.out,
    /^calc: connected .*\n  local, from .*\.claude\.json, in place of the one in .*\.mcp\.json$/m,
  );
  assert.match(list.out, /^state: failed\n  user, from .*\.claude\.json$/m);
  assert.match(got.out, /^calc \(local, from .*\.claude\.json, in place of .*\.mcp\.json\)$/m);
  assert.match(got.out, /^  counts: the one of local scope in .*\.claude\.json$/m);
  assert.match(
    got.out,
    /^  hidden: the one of user scope in .*settings\.json, by project scope, .*\.mcp\.json$/m,
  );
  assert.match(got.out, /^    \/etc\/claude-code\/managed-mcp\.json: not there$/m);
  assert.equal(JSON.parse(inSub.out).scope, 'local'); // of the repository
  assert.deepEqual(
    [odd.code, odd.err.includes('--scope is one of user, project, local')],
    [2, true],
  );
  assert.equal(unclear.code, 2);
  for (const scope of ['user', 'project', 'local'])
    assert.ok(unclear.err.includes(`mcp-by-hand mcp remove -s ${scope} calc`), unclear.err);
  assert.equal((await run(where, ['mcp', 'remove', '-s', 'local', 'calc'])).code, 0);
  assert.deepEqual(
    JSON.parse(readFileSync(join(where.home, '.claude.json'), 'utf8')).projects[real].mcpServers,
    {},
  );
});
