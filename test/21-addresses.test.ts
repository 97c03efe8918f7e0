// Servers with an address, on the command line: what is warned of, what is masked, and whose login goes with them.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { Trust } from '../agent.ts';
import { fingerprint } from '../chapters/17-the-gate/trust.ts';
import type { Json } from '../mcp.ts';
import { cleanUp, onLoopback } from './help/basics.ts';
import { place, run, userServers, type Place } from './help/terminal.ts';

afterEach(cleanUp);

const json = (...path: string[]) => JSON.parse(readFileSync(join(...path), 'utf8'));

/** Runs one after the other, and wants them all to work. */
async function all(where: Place, ...commands: string[][]): Promise<void> {
  for (const args of commands) {
    const { code, err } = await run(where, args);
    assert.equal(code, 0, `${args.join(' ')}: ${err}`);
  }
}

test("secrets given to mcp add for the project's file are warned of, and never repeated; variables and your own file are fine", async () => {
  const secret = 'abcdef0123456789abcdef';
  const risky = [
    ['-e', `API_KEY=${secret}`, 'one', 'x'],
    ['--header', `Authorization: Bearer ${secret}`, 'two', 'https://h.test/mcp'],
    ['three', `https://h.test/mcp?api_key=${secret}`],
    ['four', '--', 'npx', 'remote', `https://h.test/s/${secret}/mcp`],
    ['five', '--', 'x', '--token', secret],
    ['six', '--', 'x', `--api-key=${secret}`],
    ['-e', `SOME=ghp_${secret}`, 'seven', 'x'],
    ['-e', `DB_URL=postgres://me:${secret}@h.test/db`, 'eight', 'x'],
    ['nine', '--', 'x', `postgres://me:${secret}@h.test/db`],
  ];
  const fine = [
    ['-e', 'API_KEY=${API_KEY}', 'a', 'x'],
    ['--header', 'Authorization: Bearer ${TOKEN}', 'b', 'https://h.test/mcp'],
    ['-e', 'LEVEL=debug', 'c', 'x'],
    ['-s', 'user', '-e', `API_KEY=${secret}`, 'd', 'x'],
    ['e', 'https://h.test/mcp?key=${KEY}'],
    ['f', '--', 'x', '--token', '${TOKEN_OF_X}'],
    ['-e', 'DB_URL=postgres://me:${PASSWORD}@h.test/db', 'g', 'x'],
  ];
  const where = place();
  const [warned, silent] = await Promise.all(
    [risky, fine].map((list) =>
      Promise.all(list.map((args) => run(where, ['mcp', 'add', ...args]))),
    ),
  );
  for (const [n, { code, out, err }] of warned!.entries()) {
    assert.equal(code, 0, err);
    assert.match(
      err.replace(/\s+/g, ' '),
      /\.mcp\.json is for everybody who has the project, and it holds what looks like a secret now: (API_KEY|Authorization|the address|an argument|SOME|DB_URL)\. Better: .*'\$\{\w+_TOKEN\}'/,
      risky[n]!.join(' '),
    );
    assert.ok(!`${out}${err}`.includes(secret), 'it is not shown');
  }
  for (const [n, { code, err }] of silent!.entries())
    assert.deepEqual([code, err], [0, ''], fine[n]!.join(' '));
});

test('keys in addresses are masked in mcp get, mcp list and the question; the address that is used is whole', async () => {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.url}`);
    response.writeHead(500).end(`no such account: ${request.url}`);
  });
  const origin = await onLoopback(server);
  const [inPath, inQuery] = ['a1b2c3d4e5f6a1b2c3d4e5f6', 'q9w8e7r6t5z4u3i2'];
  const url = `${origin}/s/${inPath}/mcp?api_key=${inQuery}&region=eu`;
  const where = place(
    { '.mcp.json': { mcpServers: { theirs: { type: 'http', url } } } },
    userServers({ mine: { type: 'http', url } }),
  );
  const ended = await Promise.all(
    [
      ['mcp', 'get', 'mine'],
      ['mcp', 'get', 'mine', '--json'],
      ['mcp', 'list'],
      ['trust', 'allow', 'theirs'],
    ].map((args) => run(where, args)),
  );
  const said = ended.map(({ out, err }) => out + err).join('\n');
  for (const key of [inPath, inQuery]) assert.ok(!said.includes(key), said);
  for (const n of [0, 1, 3])
    assert.match(
      ended[n]!.out,
      /\/s\/\*\*\*\/mcp\?api_key=\*\*\*&region=eu/,
      'host, path and the rest can be judged',
    );
  assert.ok(
    ended[2]!.out.includes('mine: failed') &&
      ended[2]!.out.includes('no such account: /s/***/mcp?api_key=***&region=eu'),
    ended[2]!.out,
  );
  assert.ok(asked.includes(`/s/${inPath}/mcp?api_key=${inQuery}&region=eu`));
});

test("mcp remove -s user leaves the project's server of that name alone, and the other way round", async () => {
  const urls = { user: 'http://127.0.0.1:9/mine', project: 'http://127.0.0.1:9/theirs' };
  const login = (url: string) => ({
    server: 'twin',
    url,
    issuer: 'http://127.0.0.1:9',
    client: { id: 'c', method: 'none' },
    resource: url,
    tokenEndpoint: 'http://127.0.0.1:9/token',
    tokens: { access: 'a', type: 'Bearer', scope: [] },
  });
  for (const [scope, other] of [
    ['user', 'project'],
    ['project', 'user'],
  ] as const) {
    const where = place();
    const add = (to: 'user' | 'project') => ['mcp', 'add', '-s', to, 'twin', urls[to]];
    await all(where, add('user'), add('project'));
    const logins = join(where.home, '.mcp-by-hand', 'logins.json');
    writeFileSync(
      logins,
      JSON.stringify({
        version: 1,
        rows: [login(urls.user), login(urls.project)],
        verdicts: [],
        company: [],
      }),
      { mode: 0o600 },
    );
    const trust = new Trust(where);
    const printOf = (whose: 'user' | 'project') =>
      fingerprint({ config: { type: 'http', url: urls[whose] } });
    for (const each of ['user', 'project'] as const)
      trust.grant({
        kind: 'mcp',
        server: 'twin',
        fingerprint: printOf(each),
        tool: 't',
        definition: 'd',
        shown: '{}',
      });
    trust.setDisabled(true, 'twin', 'dangerous');

    await all(where, ['mcp', 'remove', '-s', scope, 'twin']);
    const { servers, grants, disabled } = new Trust(where).list();
    assert.deepEqual(
      servers.map((each) => each.fingerprint),
      scope === 'user' ? [printOf('project')] : [],
      scope,
    );
    assert.deepEqual(
      grants.map((each) => 'server' in each && each.fingerprint),
      [printOf(other)],
      scope,
    );
    assert.equal(disabled.length, 1, 'what is switched off is so by its name');
    assert.deepEqual(
      json(logins).rows.map((row: Json) => row.url),
      [urls[other]],
    );
    const again = await run(where, ['mcp', 'remove', '-s', scope, 'twin']);
    assert.deepEqual(
      [again.code, /no file has a server "twin" there/.test(again.err)],
      [3, true],
      again.err,
    );

    await all(where, ['mcp', 'remove', 'twin']);
    const after = new Trust(where).list();
    assert.deepEqual([after.servers, after.grants, after.disabled], [[], [], []]);
    assert.deepEqual(json(logins).rows, []);
  }
});
