// many.ts: what chapters 12 to 14 promise: files, names, and several servers.

import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import {
  calculator,
  failure,
  folder,
  habit,
  holds,
  isRunning,
  linesIn,
  pause,
  pidFile,
  same,
  soon,
  until,
  type Bench,
  type Chapter,
} from './bench.ts';

/** A home and a project with these files: `user`, `settings` and `mcp`. */
function places(bench: Bench, contents: Record<string, unknown>) {
  const home = folder(bench);
  const cwd = folder(bench);
  const files: Record<string, string> = {
    user: join(home, '.claude', 'settings.json'),
    settings: join(cwd, '.claude', 'settings.json'),
    mcp: join(cwd, '.mcp.json'),
  };
  for (const [place, content] of Object.entries(contents)) {
    mkdirSync(dirname(files[place]!), { recursive: true });
    const text = typeof content === 'string' ? content : JSON.stringify(content);
    writeFileSync(files[place]!, text);
  }
  return { home, cwd, files };
}

function load(bench: Bench, contents: Record<string, unknown>) {
  const { home, cwd, files } = places(bench, contents);
  const problems: string[] = [];
  const report = (problem: unknown) => problems.push(`${problem}`);
  const entries = bench.subject.loadEntries(home, cwd, report);
  holds(entries instanceof Map, 'a Map of entries', entries);
  const names = [...entries.keys()];
  return { entries, names, problems, files };
}

const server = (name: string, command = name) => ({ mcpServers: { [name]: { command } } });

function fill(bench: Bench, text: string, env: object): unknown {
  const origin = { name: 'x', file: '/f', scope: 'user', authority: 'user' };
  return bench.subject.fillIn({ ...origin, config: { text } }, env).text;
}

const threeFiles: Chapter = {
  n: 12,
  title: 'three files',
  needs: ['loadEntries'],
  promises: [
    {
      id: 'three-files',
      promise: 'three files are merged, and of one name the later wins',
      fault: 'three files are not merged so that of one name the later wins',
      play: async (bench) => {
        const all = load(bench, { user: server('a'), settings: server('b'), mcp: server('c') });
        same(all.names, ['a', 'b', 'c']);
        const both = load(bench, { user: server('x', 'old'), mcp: server('x', 'new') });
        same(both.entries.get('x').config.command, 'new');
      },
    },
    {
      id: 'entry-origin',
      kind: 'courtesy',
      promise: 'an entry knows its file, and whose word it is',
      fault: 'an entry does not know its file, or whose word it is',
      play: async (bench) => {
        const { entries, files } = load(bench, { user: server('a'), mcp: server('c') });
        const { a, c } = Object.fromEntries(entries);
        same([a.file, a.authority], [files.user, 'user']);
        same([c.file, c.authority], [files.mcp, 'project']);
      },
    },
    {
      id: 'settings-keys',
      promise: 'in a settings file only "mcpServers" counts; .mcp.json may be bare',
      fault: 'other parts of a settings file count, or a bare .mcp.json does not',
      play: async (bench) => {
        const settings = { statusLine: { type: 'command', command: 'date' }, hooks: {} };
        const mcp = { bare: { command: 'node' } };
        const { names } = load(bench, { user: settings, settings, mcp });
        same(names, ['bare']);
      },
    },
    {
      id: 'broken-file',
      kind: 'safety',
      promise: 'a broken file is named, and the others count',
      fault: 'a broken file is not named, or hides the others',
      play: async (bench) => {
        const { names, problems, files } = load(bench, { user: '{ broken', mcp: server('c') });
        same(names, ['c']);
        const isNamed = problems.some((problem) => problem.includes(files.user!));
        holds(isNamed, `${files.user} is named`, problems);
      },
    },
    {
      id: 'no-file',
      kind: 'safety',
      promise: 'no file is no problem',
      fault: 'a file that is not there is a problem',
      play: async (bench) => {
        const { names, problems } = load(bench, {});
        same([names, problems], [[], []], 'no entry and no problem');
      },
    },
    {
      id: 'comments-bom',
      kind: 'courtesy',
      promise: 'comments and a byte order mark are read',
      fault: 'comments or a byte order mark break a file',
      play: async (bench) => {
        const entry = '"a": { "command": "http://x" }';
        const text = `\uFEFF// mine\n{ /* two */ "mcpServers": { ${entry} } }`;
        const { entries, problems } = load(bench, { user: text });
        same([entries.get('a')?.config.command, problems], ['http://x', []]);
      },
    },
    {
      id: 'variables',
      needs: ['fillIn'],
      promise: '${VAR} and ${VAR:-default} are filled in, and one that is missing is named',
      fault: '${VAR} and ${VAR:-default} are not filled in, or a missing one is not named',
      play: async (bench) => {
        same(fill(bench, '${A}-${B:-b}', { A: 'a' }), 'a-b');
        const { message } = await failure(() => fill(bench, '${JUDGE_MISSES_THIS}', {}));
        holds(/JUDGE_MISSES_THIS/.test(message), 'an error that names the variable', message);
      },
    },
  ],
};

const ODD_NAMES = [
  'a b',
  'x.y',
  'x_y',
  'größe',
  '日本',
  '🦊',
  '_',
  '__',
  '-',
  'a/b',
  'x'.repeat(200),
  '__proto__',
  'mcp__a__b',
  'a_',
  '_a',
  'a',
  'b',
  'a__b',
  'b__c',
  'c',
  'x'.repeat(80),
  'x'.repeat(81),
];

const names: Chapter = {
  n: 13,
  title: 'names',
  needs: ['toolLabel'],
  promises: [
    {
      id: 'plain-label',
      promise: 'ordinary names are put together as everyone expects',
      fault: 'ordinary names are not put together as mcp__server__tool',
      play: async ({ subject }) => {
        same(subject.toolLabel('github', 'create_issue'), 'mcp__github__create_issue');
        same(subject.toolLabel('my-server', 'list'), 'mcp__my-server__list');
      },
    },
    {
      id: 'fit-label',
      promise: "any two names make a label fit for a model's wire",
      fault: "a label is not fit for a model's wire: 1 to 64 of A-Z a-z 0-9 _ -",
      play: async ({ subject }) => {
        const labels = ODD_NAMES.flatMap((a) => ODD_NAMES.map((b) => subject.toolLabel(a, b)));
        const isFit = (label: unknown) => /^[A-Za-z0-9_-]{1,64}$/.test(`${label}`);
        const unfit = labels.find((label) => !isFit(label));
        holds(unfit === undefined, 'at most 64 of A-Z a-z 0-9 _ -', unfit);
      },
    },
    {
      id: 'no-shared-label',
      kind: 'safety',
      promise: 'two different pairs never share a label',
      fault: 'two different pairs share a label',
      play: async ({ subject }) => {
        const owners = new Map<string, string>();
        for (const a of ODD_NAMES) {
          for (const b of ODD_NAMES) {
            const label = subject.toolLabel(a, b);
            const pair = `${a.slice(0, 9)} + ${b.slice(0, 9)}`;
            const both = `${label} for ${owners.get(label)} and ${pair}`;
            holds(!owners.has(label), 'two labels', both);
            owners.set(label, pair);
          }
        }
      },
    },
    {
      id: 'stable-label',
      kind: 'courtesy',
      promise: 'a label depends on its two names only',
      fault: 'a label changes from call to call',
      play: async ({ subject }) => {
        const first = subject.toolLabel('my__srv', 'say hello');
        subject.toolLabel('other', 'thing');
        same(subject.toolLabel('my__srv', 'say hello'), first);
      },
    },
  ],
};

const METHODS = [
  'loadAndConnect',
  'getToolDefinitions',
  'isMcpTool',
  'callTool',
  'status',
  'disconnectAll',
];

/** A manager whose user has these servers, and whose project those. Not connected yet. */
function prepare(bench: Bench, user: object, project?: object, options = {}) {
  const files = { user: { mcpServers: user }, ...(project && { mcp: { mcpServers: project } }) };
  const { home, cwd } = places(bench, files);
  // A client without these options looks where a program is: here.
  process.env.HOME = home;
  process.env.USERPROFILE = home;
  process.chdir(cwd);
  const manager = new bench.subject.McpManager({ home, cwd, onWarning() {}, ...options });
  bench.later(() => manager.disconnectAll());
  const connect = () => soon(manager.loadAndConnect(), 'loadAndConnect() to end', 12_000);
  const stateOf = (name: string) => manager.status().find((each: any) => each.name === name) ?? {};
  const labels = () => manager.getToolDefinitions().map((each: any) => each.name);
  return { manager, connect, stateOf, labels };
}

const call = (manager: any, label: string, args = {}): Promise<any> =>
  soon(manager.callTool(label, args), `an answer from ${label}`);

const theManager: Chapter = {
  n: 14,
  title: 'the manager',
  needs: METHODS.map((name) => `McpManager.${name}`),
  promises: [
    {
      id: 'manager-works',
      promise: 'it connects, lists, routes a call and says goodbye',
      fault: 'it does not connect, list, route a call and say goodbye',
      play: async (bench) => {
        const { manager, connect, stateOf, labels } = prepare(bench, { calc: calculator() });
        await connect();
        same(labels(), ['mcp__calc__add', 'mcp__calc__greet']);
        same(manager.isMcpTool('mcp__calc__add'), true);
        same((await call(manager, 'mcp__calc__add', { a: 2, b: 40 })).text, '42');
        same(stateOf('calc').state, 'connected');
        await soon(manager.disconnectAll(), 'disconnectAll() to end');
        same(labels(), [], 'no tools after disconnectAll()');
      },
    },
    {
      id: 'lazy-start',
      kind: 'courtesy',
      promise: 'nothing starts before loadAndConnect(), and it connects once',
      fault: 'a server starts before loadAndConnect(), or twice',
      play: async (bench) => {
        const file = join(folder(bench), 'starts');
        const { connect } = prepare(bench, { canary: habit('canary', file) });
        await pause(200);
        same(linesIn(file), [], 'nothing yet');
        await Promise.all([connect(), connect()]);
        await connect();
        same(linesIn(file), ['started'], 'one start');
      },
    },
    {
      id: 'bad-server',
      kind: 'safety',
      promise: 'a bad server has a state and a reason, and spoils nothing',
      fault: 'a bad server spoils others, or has no state and reason',
      limitMs: 20_000,
      play: async (bench) => {
        const bad = {
          missing: { command: 'no-such-command-here' },
          dies: habit('dies-at-once'),
          mute: habit('mute'),
          wrong: { command: 'node', args: 'x' },
          nothing: null,
        };
        const options = { handshakeTimeoutMs: 4000 };
        const all = { ...bad, calc: calculator() };
        const { manager, connect, stateOf } = prepare(bench, all, undefined, options);
        await connect();
        for (const name of Object.keys(bad)) {
          const { state, reason } = stateOf(name);
          holds(state === 'failed' && reason, `"${name}" failed, with a reason`, { state, reason });
        }
        same((await call(manager, 'mcp__calc__add', { a: 1, b: 1 })).text, '2');
      },
    },
    {
      id: 'side-by-side',
      kind: 'courtesy',
      promise: 'servers start side by side',
      fault: 'servers do not start side by side',
      limitMs: 25_000,
      play: async (bench) => {
        const meeting = `${folder(bench)}:3`; // each answers only when all three are there
        const one = habit('meets', meeting);
        const three = { a: one, b: one, c: one };
        const { connect, stateOf } = prepare(bench, three, undefined, { handshakeTimeoutMs: 6000 });
        await connect();
        const states = ['a', 'b', 'c'].map((name) => stateOf(name).state);
        same(states, ['connected', 'connected', 'connected']);
      },
    },
    {
      id: 'project-asked',
      kind: 'safety',
      promise: 'what a project brings along does not start unasked',
      fault: 'what a project brings along starts unasked',
      play: async (bench) => {
        const file = join(folder(bench), 'starts');
        const own = { calc: calculator() };
        const { connect, labels } = prepare(bench, own, { canary: habit('canary', file) });
        await connect();
        same(linesIn(file), [], 'no start without approval');
        same(labels().length, 2);
      },
    },
    {
      id: 'unknown-name',
      kind: 'safety',
      promise: 'a name that no server has is an error',
      fault: 'a name that no server has is not an error',
      play: async (bench) => {
        const { manager, connect } = prepare(bench, { calc: calculator() });
        await connect();
        for (const name of ['mcp__calc__nothing', 'mcp__x__add', 'add', '__proto__']) {
          same(manager.isMcpTool(name), false, `isMcpTool("${name}") to be false`);
          await failure(() => manager.callTool(name, {}), `an error for ${name}`);
        }
      },
    },
    {
      id: 'changed-list',
      promise: 'a changed list of tools is read again',
      fault: 'a changed list of tools is not read again',
      play: async (bench) => {
        const { manager, connect, labels } = prepare(bench, { plant: habit('grows-a-tool') });
        await connect();
        await call(manager, 'mcp__plant__grow');
        await until(() => manager.isMcpTool('mcp__plant__new'), 'mcp__plant__new', labels);
      },
    },
    {
      id: 'none-left',
      kind: 'safety',
      promise: 'after disconnectAll() no server is running',
      fault: 'after disconnectAll() a server is running',
      play: async (bench) => {
        const file = pidFile(bench);
        const two = { a: habit('notes-its-pid', file), b: habit('notes-its-pid', file) };
        const { manager, connect } = prepare(bench, two);
        await connect();
        same(linesIn(file).length, 2, 'two servers');
        await soon(manager.disconnectAll(), 'disconnectAll() to end');
        const left = () => linesIn(file).filter((pid) => isRunning(Number(pid))).length;
        await until(
          () => left() === 0,
          'none',
          () => `${left()} running`,
        );
      },
    },
  ],
};

export const manyServers: Chapter[] = [threeFiles, names, theManager];
