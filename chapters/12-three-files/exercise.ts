// Judges exercise 12: do three files become one table, and does every entry know where it comes from?

import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import type { Judge } from '../book.ts';

const base = realpathSync(mkdtempSync(join(tmpdir(), 'three files ')));
process.on('exit', () => rmSync(base, { recursive: true, force: true }));
let projects = 0;
const lot = () => Math.floor(Math.random() * 1e9).toString(36);

type Place = 'user' | 'settings' | 'mcp';
type Files = Partial<Record<Place, object | string>>;
type Folders = { home: string; cwd: string };
const pathsIn = ({ home, cwd }: Folders): Record<Place, string> => ({
  user: join(home, '.claude', 'settings.json'),
  settings: join(cwd, '.claude', 'settings.json'),
  mcp: join(cwd, '.mcp.json'),
});

/** Writes these files into a home and a project: an object as JSON, a text as it is. */
function fill(folders: Folders, files: Files): Folders {
  for (const folder of Object.values(folders)) mkdirSync(folder, { recursive: true });
  for (const [place, content] of Object.entries(files)) {
    const path = pathsIn(folders)[place as Place];
    mkdirSync(dirname(path), { recursive: true });
    const isFolder = content === 'a folder';
    if (isFolder) mkdirSync(path);
    else writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  }
  return folders;
}
/** A home and a project of their own. */
const folders = (files: Files) => {
  projects++;
  return fill(
    { home: join(base, `home-${projects}`), cwd: join(base, `project-${projects}`) },
    files,
  );
};
const one = (name: string, command = name) => ({ mcpServers: { [name]: { command } } });

export const judge: Judge = async ({ load, see, expect }) => {
  const { loadEntries, readJsonFile, serversIn, fillIn, McpConnection } = await load('mcp.ts');
  /** Why a file is broken, as the program says it. */
  const reasonOf = (path: string) => {
    try {
      serversIn(readJsonFile(path) ?? {}, path.endsWith('.mcp.json'));
      return 'it is not broken';
    } catch (error) {
      return (error as Error).message;
    }
  };
  const short = (text = 'nothing') =>
    text
      .replaceAll(`${base}/`, '')
      .replace(/link-\d+/g, 'home')
      .replace(/(home|project)-\d+/g, '$1');
  /** What was found, in words and in the order of the alphabet: the paths without the folder that we have made. */
  const found = async ({ home, cwd }: Folders, at = { home, cwd }) => {
    const problems: string[] = [];
    const paths = Object.values(pathsIn(at));
    const report = (problem: unknown) => {
      const path = paths.find((each) => `${problem}`.includes(each));
      if (!path) return void problems.push(`reported without a whole path: ${short(`${problem}`)}`);
      const why = `${problem}`.includes(reasonOf(path)) ? 'with the reason' : 'without the reason';
      problems.push(`reported: ${short(path)}, ${why}`);
    };
    const entries: Map<string, any> = loadEntries(home, cwd, report);
    const told = [...entries].map(([key, { name, config, file, scope, authority, shadows }]) => {
      const who = key === name ? name : `${name} under the key ${key}`;
      const whose = scope === authority ? scope : `scope ${scope} and authority ${authority}`;
      const from = `from ${short(file)}, instead of ${short(shadows)}`;
      return `${who}: ${config?.command}, ${whose}, ${from}`;
    });
    return [...told.sort(), ...problems.sort()].join('\n') || 'no servers, no problems';
  };
  const check = (what: string, at: Folders, ...lines: string[]) =>
    expect(what, lines.join('\n            '), found(at), (came) => came === lines.join('\n'));
  const user = (name: string, command = name) =>
    `${name}: ${command}, user, from home/.claude/settings.json, instead of nothing`;
  const ofSettings = (name: string) =>
    `${name}: ${name}, project, from project/.claude/settings.json, instead of nothing`;
  const ofMcp = (name: string, command = name) =>
    `${name}: ${command}, project, from project/.mcp.json, instead of nothing`;

  const [a, b, c] = [`a${lot()}`, `b${lot()}`, `c${lot()}`];
  await check(
    'the entries of all three files are there, each with its file, its scope and its authority',
    folders({ user: one(a), settings: one(b), mcp: one(c) }),
    user(a),
    ofSettings(b),
    ofMcp(c),
  );
  const settings = { statusLine: { type: 'command', command: 'date' } };
  await check(
    'only .mcp.json may be the bare mapping; a statusLine is no server',
    folders({ user: settings, settings, mcp: { calculator: { command: 'node' } } }),
    ofMcp('calculator', 'node'),
  );
  const elsewhere = folders({ user: one(a) });
  writeFileSync(join(elsewhere.home, '.mcp.json'), JSON.stringify(one(b)));
  await check('no other file is read, not even a .mcp.json in home', elsewhere, user(a));
  await check(
    'where there are no files there is nothing to report',
    folders({}),
    'no servers, no problems',
  );
  await check(
    'folders that do not exist are no problem',
    { home: join(base, 'no-home'), cwd: join(base, 'no-project') },
    'no servers, no problems',
  );
  const broken = {
    'a list': { mcpServers: [] },
    'no JSON': '{ "mcpServers": ',
    'a folder': 'a folder',
  };
  const good = { user: one(a), settings: one(b), mcp: one(c) };
  const lines = { user: user(a), settings: ofSettings(b), mcp: ofMcp(c) };
  for (const [what, content] of Object.entries(broken))
    for (const place of ['user', 'settings', 'mcp'] as const) {
      const at = folders({ ...good, [place]: content });
      const path = short(pathsIn(at)[place]);
      const others = Object.entries(lines).filter(([name]) => name !== place);
      await check(
        `a broken file (${path} is ${what}) is reported once, with its path and the reason, and the others count`,
        at,
        ...others.map(([, line]) => line),
        `reported: ${path}, with the reason`,
      );
    }
  await check(
    'if all three are broken, each is reported once',
    folders({ user: '7', settings: '[]', mcp: '{' }),
    'reported: home/.claude/settings.json, with the reason',
    'reported: project/.claude/settings.json, with the reason',
    'reported: project/.mcp.json, with the reason',
  );

  await check(
    'a file with a comment or a byte order mark is not broken, and .mcp.json may be that of VS Code',
    folders({
      user: `// mine\n${JSON.stringify(one(a))}`,
      settings: `\uFEFF${JSON.stringify(one(b))}`,
      mcp: { servers: { [c]: { command: c } } },
    }),
    user(a),
    ofSettings(b),
    ofMcp(c),
  );
  const [first, second, third] = [lot(), lot(), lot()];
  await check(
    'of two entries with one name the later wins',
    folders({ user: one('x', first), settings: one('x', second), mcp: one('x', third) }),
    `x: ${third}, project, from project/.mcp.json, instead of project/.claude/settings.json`,
  );
  await check(
    'its shadows is the file of the one whose place it took',
    folders({
      user: { mcpServers: { x: { command: first }, y: { command: first } } },
      settings: one('y', second),
      mcp: one('x', third),
    }),
    `x: ${third}, project, from project/.mcp.json, instead of home/.claude/settings.json`,
    `y: ${second}, project, from project/.claude/settings.json, instead of home/.claude/settings.json`,
  );
  const config = async (files: Files, name: string) => {
    const { home, cwd } = folders(files);
    const entry = loadEntries(home, cwd, () => {}).get(name);
    return entry ? (JSON.stringify(entry.config) ?? 'undefined') : 'no entry';
  };
  const secret = { mcpServers: { x: { command: 'mine', env: { TOKEN: lot() } } } };
  await expect(
    'of two entries with one name nothing of the earlier is left',
    '{"command":"theirs"}',
    config({ user: secret, mcp: one('x', 'theirs') }, 'x'),
    (came) => came === '{"command":"theirs"}',
  );
  const odd = [
    { command: '${HOME}/x', args: ['${NO_SUCH}', '${X:-y}'], env: { A: '${PATH}' }, more: lot() },
    7,
    null,
    'a text',
    [],
    {},
  ];
  for (const value of odd)
    for (const place of ['user', 'mcp'] as const) {
      const wanted = JSON.stringify(value);
      const file = { mcpServers: { x: value, other: { command: 'c' } } };
      await expect(
        'a config is taken as it is in the file: with its ${VAR}, and also if it is no object',
        wanted,
        config({ [place]: file }, 'x'),
        (came) => came === wanted,
      );
      await expect(
        'and does not cost the others of its file',
        '{"command":"c"}',
        config({ [place]: file }, 'other'),
        (came) => came === '{"command":"c"}',
      );
    }
  for (const name of ['__proto__', 'constructor', 'size', '0', ''])
    await check(
      `a server may be called ${JSON.stringify(name)}`,
      folders({ mcp: JSON.parse(`{ "mcpServers": { "${name}": { "command": "odd" } } }`) }),
      ofMcp(name, 'odd'),
    );

  const { home, cwd } = folders({ user: one('mine'), settings: one('theirs') });
  const empty = folders({}).cwd;
  await check(
    'a home that is no absolute path may be the project itself: it is not read',
    { home: relative(process.cwd(), cwd), cwd: empty },
    'no servers, no problems',
  );
  const here = process.cwd();
  process.chdir(cwd);
  await check(
    'nor is an empty one, which would mean the current folder: it is not read',
    { home: '', cwd: empty },
    'no servers, no problems',
  );
  process.chdir(here);
  await check(
    "started at home, the user's own file is not taken for a project's",
    { home, cwd: home },
    user('mine'),
  );
  await check(
    "started at home, and told so with a slash: the user's own file is not taken for a project's",
    { home, cwd: `${home}/` },
    user('mine'),
  );
  const link = join(base, `link-${projects}`);
  symlinkSync(home, link, 'junction');
  await check(
    "also when a link leads home, the file is the user's",
    { home, cwd: link },
    user('mine'),
  );
  await check(
    "and when home is the link, the file is the user's",
    { home: link, cwd: home },
    user('mine'),
  );
  const both = folders({ user: one('mine') });
  const theirs = { mcpServers: { theirs: { command: 'theirs' }, mine: { command: 'changed' } } };
  writeFileSync(join(both.home, '.mcp.json'), JSON.stringify(theirs));
  await check(
    "started at home, its .mcp.json is still read, as a project's",
    { home: both.home, cwd: both.home },
    'mine: changed, project, from home/.mcp.json, instead of home/.claude/settings.json',
    'theirs: theirs, project, from home/.mcp.json, instead of nothing',
  );
  const around = join(base, `home-${++projects}`);
  await check(
    'a project inside the home is another folder, and its settings are read',
    fill({ home: around, cwd: join(around, 'project') }, { user: one(a), settings: one(b) }),
    user(a),
    `${b}: ${b}, project, from home/project/.claude/settings.json, instead of nothing`,
  );
  await check(
    'a home that does not exist is no problem',
    { home: join(base, 'nobody'), cwd: folders({ settings: one(b), mcp: one(c) }).cwd },
    ofSettings(b),
    ofMcp(c),
  );
  const twice = folders({ user: one(a) });
  loadEntries(twice.home, twice.cwd, () => {});
  await check(
    'what was written since the last time counts',
    fill(twice, { user: one(b), mcp: one(c) }),
    user(b),
    ofMcp(c),
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
