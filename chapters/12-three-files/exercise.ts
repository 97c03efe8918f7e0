// Judges exercise 12: do three files become one table, and does every entry know where it comes from?

import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative } from 'node:path';
import type { Judge } from '../book.ts';

const base = mkdtempSync(join(tmpdir(), 'three files '));
process.on('exit', () => rmSync(base, { recursive: true, force: true }));
let projects = 0;

/** A home and a project of their own, with these files in them. */
function folders(files: { user?: object; settings?: object; mcp?: object }) {
  const [home, cwd] = [join(base, `home-${++projects}`), join(base, `project-${projects}`)];
  const paths = {
    user: join(home, '.claude', 'settings.json'),
    settings: join(cwd, '.claude', 'settings.json'),
    mcp: join(cwd, '.mcp.json'),
  };
  for (const folder of [home, cwd]) mkdirSync(folder);
  for (const [place, content] of Object.entries(files)) {
    mkdirSync(dirname(paths[place as keyof typeof paths]), { recursive: true });
    writeFileSync(paths[place as keyof typeof paths], JSON.stringify(content));
  }
  return { home, cwd };
}
const one = (name: string, command = name) => ({ mcpServers: { [name]: { command } } });

export const judge: Judge = async ({ load, see, expect }) => {
  const { loadEntries, fillIn, McpConnection } = await load('mcp.ts');
  /** What was found, in words: the paths without the folder that we have made. */
  const found = async (home: string, cwd: string) => {
    const short = (text = 'nothing') =>
      text.replaceAll(`${base}/`, '').replace(/(home|project)-\d+/g, '$1');
    const problems: string[] = [];
    const report = (problem: string) => {
      const path = /\S+\.json/.exec(short(problem))?.[0];
      const why = `${problem}`.includes('"mcpServers" is not an object')
        ? 'with the reason'
        : 'without the reason';
      problems.push(
        path ? `reported: ${path}, ${why}` : `reported without a path: ${short(problem)}`,
      );
    };
    const entries = loadEntries(home, cwd, report);
    const told = [...entries.values()].map(
      ({ name, config, file, scope, authority, shadows }: any) =>
        `${name}: ${config?.command}, ${scope === authority ? scope : `scope ${scope} and authority ${authority}`}, from ${short(file)}, instead of ${short(shadows)}`,
    );
    return [...told, ...problems].join('\n') || 'no servers, no problems';
  };
  const says =
    (...lines: string[]) =>
    (came: unknown) =>
      came === lines.join('\n');
  const check = (what: string, { home, cwd }: { home: string; cwd: string }, ...lines: string[]) =>
    expect(what, lines.join('\n            '), found(home, cwd), says(...lines));

  await check(
    'the entries of all three files are there, each with its file, its scope and its authority',
    folders({ user: one('a'), settings: one('b'), mcp: one('c') }),
    'a: a, user, from home/.claude/settings.json, instead of nothing',
    'b: b, project, from project/.claude/settings.json, instead of nothing',
    'c: c, project, from project/.mcp.json, instead of nothing',
  );
  await check(
    'of two entries with one name the later wins, and knows whose place it took',
    folders({ user: one('x', 'first'), settings: one('x', 'second'), mcp: one('x', 'third') }),
    'x: third, project, from project/.mcp.json, instead of project/.claude/settings.json',
  );
  await check(
    'where there are no files there is nothing to report',
    folders({}),
    'no servers, no problems',
  );
  const settings = { statusLine: { type: 'command', command: 'date' } };
  await check(
    'only .mcp.json may be the bare mapping; a statusLine is no server',
    folders({ user: settings, settings, mcp: { calculator: { command: 'node' } } }),
    'calculator: node, project, from project/.mcp.json, instead of nothing',
  );
  await check(
    'a broken file is reported once, with its path and the reason, and the others count',
    folders({ user: one('a'), settings: { mcpServers: [] }, mcp: one('c') }),
    'a: a, user, from home/.claude/settings.json, instead of nothing',
    'c: c, project, from project/.mcp.json, instead of nothing',
    'reported: project/.claude/settings.json, with the reason',
  );

  const config = async (files: Parameters<typeof folders>[0], name: string) => {
    const { home, cwd } = folders(files);
    return JSON.stringify(loadEntries(home, cwd, () => {}).get(name)?.config) ?? 'no entry';
  };
  const secret = { mcpServers: { x: { command: 'mine', env: { TOKEN: 'secret' } } } };
  await expect(
    'of two entries with one name nothing of the earlier is left',
    '{"command":"theirs"}',
    config({ user: secret, mcp: one('x', 'theirs') }, 'x'),
    (came) => came === '{"command":"theirs"}',
  );
  const variables = { mcpServers: { x: { command: '${HOME}/x' } } };
  await expect(
    'every ${VAR} is still in place',
    '{"command":"${HOME}/x"}',
    config({ user: variables }, 'x'),
    (came) => came === '{"command":"${HOME}/x"}',
  );
  const mixed = { mcpServers: { bad: 7, c: { command: 'c' } } };
  await expect(
    'an entry that is not an object is taken as it is',
    '7',
    config({ mcp: mixed }, 'bad'),
    (came) => came === '7',
  );
  await expect(
    'and does not cost the others of its file',
    '{"command":"c"}',
    config({ mcp: mixed }, 'c'),
    (came) => came === '{"command":"c"}',
  );
  for (const name of ['__proto__', 'constructor']) {
    const odd = JSON.parse(`{ "mcpServers": { "${name}": { "command": "odd" } } }`);
    await check(
      `a server may be called ${name}`,
      folders({ mcp: odd }),
      `${name}: odd, project, from project/.mcp.json, instead of nothing`,
    );
  }

  const { home, cwd } = folders({ user: one('mine'), settings: one('theirs') });
  await check(
    'a home that is no absolute path may be the project itself: it is not read',
    { home: relative(process.cwd(), cwd), cwd: folders({}).cwd },
    'no servers, no problems',
  );
  const mine = 'mine: mine, user, from home/.claude/settings.json, instead of nothing';
  await check(
    "started at home, the user's own file is not taken for a project's",
    { home, cwd: home },
    mine,
  );
  const both = folders({ user: one('mine'), mcp: {} });
  writeFileSync(join(both.home, '.mcp.json'), JSON.stringify(one('theirs')));
  await check(
    "started at home, its .mcp.json is still read, as a project's",
    { home: both.home, cwd: both.home },
    mine,
    'theirs: theirs, project, from home/.mcp.json, instead of nothing',
  );
  const link = join(base, `link-to-${basename(home)}`);
  symlinkSync(home, link, 'junction');
  await check('also when a link leads home', { home, cwd: link }, mine);
  await check(
    'a home that does not exist is no problem',
    { home: join(base, 'nobody'), cwd: folders({ mcp: one('c') }).cwd },
    'c: c, project, from project/.mcp.json, instead of nothing',
  );

  const real = folders({ mcp: { calculator: { command: 'node', args: ['fixtures/server.mjs'] } } });
  const answer = async () => {
    const entry = loadEntries(real.home, real.cwd, () => {}).get('calculator');
    const calculator = new McpConnection('calculator', fillIn(entry), { onWire: see });
    await calculator.connect();
    await calculator.initialize();
    const { text } = await calculator.callTool('add', { a: 2, b: 40 });
    await calculator.close();
    return text;
  };
  await expect(
    'the calculator can be started from what was found',
    '42',
    answer(),
    (came) => came === '42',
  );
};
