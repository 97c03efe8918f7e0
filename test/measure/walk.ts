// walk.ts: which files and named functions of the program one piece of work passes. V8 counts the
// calls of every function; between two looks at the counters there is that piece of work alone.

import { Session } from 'node:inspector/promises';
import { Agent, Gate, Roots, Scripted, Trust } from '../../agent.ts';
import { compose } from '../../chapters/composition.ts';
import { ScriptedPerson } from '../../chapters/17-the-gate/person.ts';
import { forConnections, plainHost } from '../../chapters/19-the-terminal/host.ts';
import { KnownTools } from '../../chapters/28-a-thousand-tools/known-tools.ts';
import { McpManager, type ServerEntry } from '../../mcp.ts';
import { connected, ERAS, form } from '../help/asking-server.ts';
import { authorizationServer, browser, program, protectedServer } from '../help/oauth-servers.ts';
import { cleanUp, folder, goodServer } from '../help/basics.ts';

export type Walk = { what: string; functions: Map<string, string[]> }; // by file

const root = new URL('../..', import.meta.url).href;
const NOT_OURS = /\/node_modules\/|\/test\/|\/fixtures\//;
const ADD = 'mcp__calc__add';

export async function walkAll(): Promise<Walk[]> {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  const walks: Walk[] = [];
  const walk = async (what: string, work: () => Promise<unknown>) => {
    await session.post('Profiler.takePreciseCoverage'); // sets the counters to 0
    await work();
    const { result } = await session.post('Profiler.takePreciseCoverage');
    const ours = result.filter(({ url }) => url.startsWith(root) && !NOT_OURS.test(url));
    const functions = ours.map(({ url, functions }): [string, string[]] => {
      const called = functions.filter(({ ranges }) => ranges[0]!.count > 0);
      const names = called.flatMap(({ functionName }) => functionName || []);
      return [url.slice(root.length), names];
    });
    walks.push({ what, functions: new Map(functions.filter(([, names]) => names.length > 0)) });
  };
  await walkCalls(walk);
  await walkFirstCall(walk);
  await walkLogin(walk);
  await walkQuestions(walk);
  await cleanUp();
  session.disconnect();
  return walks;
}

type Walker = (what: string, work: () => Promise<unknown>) => Promise<void>;

const config = { command: process.execPath, args: [goodServer] };
const entry: ServerEntry = { name: 'calc', config, file: 'x', scope: 'user', authority: 'user' };
const load = () => new Map([[entry.name, entry]]);

const options = forConnections(compose(plainHost()));
const home = folder();

const newManager = (known?: KnownTools) => new McpManager({ ...options, home, load, known });

/** What comes first is warm by then: connections are open, lists are known. */
async function walkCalls(walk: Walker): Promise<void> {
  const manager = newManager();
  await manager.loadAndConnect();
  const call = () => manager.callTool(ADD, { a: 2, b: 40 });
  await call();
  await walk('one manager.callTool, stdio', call);

  const add = { calls: [{ name: ADD, args: { a: 2, b: 40 } }] };
  const delegate = { calls: [{ name: 'delegate', args: { task: 'add', tools: [ADD] } }] };
  const lines = [add, 'done', add, 'done', delegate, add, 'the sub-agent is done', 'done'];
  const { tools, shelf } = compose(plainHost({ manager: () => manager }));
  const gate = new Gate({ mode: 'yolo', roots: new Roots(process.cwd()), trust: new Trust() });
  const agent = new Agent({
    model: new Scripted(lines),
    tools,
    shelf,
    gate: gate.check,
    mcp: manager,
    resultsFolder: folder(),
  });
  const chat = () => agent.chat('go');
  await chat();
  await walk('one prompt: model, gate, stdio, answer', chat);
  await walk('the same by a sub-agent', chat);
  await manager.disconnectAll();
}

async function walkFirstCall(walk: Walker): Promise<void> {
  const before = newManager(new KnownTools({ home }));
  await before.loadAndConnect();
  await before.disconnectAll();
  const manager = newManager(new KnownTools({ home }));
  await manager.loadAndConnect();
  await walk('the first call of a server that sleeps', () =>
    manager.callTool(ADD, { a: 2, b: 40 }),
  );
  await manager.disconnectAll();
}

async function walkLogin(walk: Walker): Promise<void> {
  const as = await authorizationServer();
  let issued = 0;
  as.ways['POST /token'] = async () => {
    issued += 1;
    const body = as.issue({ refresh_token: `r${issued}`, expires_in: 3600 });
    return { status: 200, headers: {}, body };
  };
  const { url } = await protectedServer({ as });
  const { openUserAgent } = browser();
  const first = program({ home: folder(), openUserAgent });
  const { connection } = await first.to(url);
  const list = () => connection.request('tools/list');
  await list();
  await walk('HTTP with a good token', list);

  const again = async () => {
    const { connection } = await program({ home: first.home, openUserAgent }).to(url);
    await connection.request('tools/list');
  };
  const login = first.row(url)!;
  first.store.keep({ ...login, tokens: { ...login.tokens!, expiresAt: Date.now() - 1 } });
  await walk('– connect and list, the token expired', again);
  await walk('– connect and list, the token good', again);
}

async function walkQuestions(walk: Walker): Promise<void> {
  for (const era of ERAS) {
    const person = new ScriptedPerson(['y', 'Graz', 'y']);
    const { ask } = await connected(era, person);
    const question = form({ city: { type: 'string' } });
    await walk(`an elicitation, ${era}`, () => ask('elicitation/create', question));
  }
}
