// server.ts: what a server on stdio promises, in whatever language it is written. The judge speaks
// to it in raw lines, in the era that it knows: with a handshake, or without.

import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { asObject, isObject, LineBuffer, REVISIONS, type Json } from '../../mcp.ts';
import { VERSION_KEY } from '../20-streamable-http/mirrored-headers.ts';
import { STATELESS } from '../22-no-handshake/era.ts';
import { holds, Mismatch, named, NotTried, pause, same, show, type Promised } from './bench.ts';
import type { Verdict } from './child.ts';

const START_MS = 30_000; // some are installed first
const ANSWER_MS = 5000;
const LEAVE_MS = 5000;
const FENCE_MS = 300; // for what must not come, after the answer to a request that was sent later

type ServerPromise = Omit<Promised, 'play'> & {
  play: (bench: ServerBench) => Promise<unknown>;
};
const CLIENT = { name: 'judge', version: '1.0.0' };

/** A server under judgement, and all that it has written. */
class RawServer {
  readonly lines: string[] = [];
  readonly messages: any[] = []; // each line that is JSON
  ended?: string; // how
  isStateless = false;
  private child: ChildProcessWithoutNullStreams;
  private buffer = new LineBuffer();
  private stderr = '';
  private nextId = 1;

  constructor([command, ...args]: string[], cwd: string) {
    const child = spawn(command!, args, { cwd, stdio: 'pipe', windowsHide: true });
    this.child = child;
    child.on('error', (error) => (this.ended ??= error.message));
    child.on('exit', (code, signal) => {
      this.ended ??= `it exited with ${signal ?? `code ${code}`}${this.lastWords()}`;
    });
    child.stdin.on('error', () => {}); // it may be gone
    child.stderr.on('data', (text) => (this.stderr = (this.stderr + text).slice(-4096)));
    child.stdout.on('data', (chunk: Buffer) => this.read(chunk));
  }

  private read(chunk: Buffer): void {
    for (const line of this.buffer.takeWhole(chunk).toString().split('\n')) {
      if (line.trim() === '') continue;
      this.lines.push(line);
      try {
        this.messages.push(JSON.parse(line));
      } catch {} // a promise of its own
    }
  }

  private lastWords(): string {
    const lines = this.stderr.split('\n').filter((line) => line.trim() && !/^\s+at /.test(line));
    const cause = lines.findLast((line) => /error|exception/i.test(line)) ?? lines.at(-1);
    return cause ? `: ${show(new Error(cause))}` : '';
  }

  write(text: string): void {
    if (!this.ended) this.child.stdin.write(text);
  }

  send(message: Json): void {
    this.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  }

  /** The answer to a request. The era says what each must carry. */
  async request(method: string, params: Json = {}, id: unknown = this.nextId++, ms = ANSWER_MS) {
    const before = this.messages.length;
    this.send({ id, method, params: this.isStateless ? { ...params, _meta: META } : params });
    return this.answerTo(id, method, before, ms);
  }

  async answerTo(id: unknown, method: string, before: number, ms = ANSWER_MS): Promise<any> {
    const isAnswer = (each: any) => each?.id === id && each.method === undefined;
    const find = () => this.messages.slice(before).find(isAnswer);
    const expected = `an answer to ${method} under the id ${show(id)}`;
    for (const start = Date.now(); !find(); await pause(10)) {
      if (this.ended) throw new Mismatch(expected, new Error(this.ended));
      if (Date.now() - start > ms) throw new Mismatch(expected, this.messages.slice(before)[0]);
    }
    return find();
  }

  endInput(): void {
    this.child.stdin.end();
  }

  kill(): void {
    this.child.kill('SIGKILL');
  }
}

const META = {
  [VERSION_KEY]: STATELESS[0],
  'io.modelcontextprotocol/clientInfo': CLIENT,
  'io.modelcontextprotocol/clientCapabilities': {},
};

/** The server, started again if it has died, and what its handshake has brought. */
class ServerBench {
  private command: string[];
  private cwd: string;
  private present?: RawServer;
  readonly all: RawServer[] = [];

  constructor(command: string[], cwd: string) {
    this.command = command;
    this.cwd = cwd;
  }

  async server(): Promise<RawServer> {
    if (this.present && !this.present.ended) return this.present;
    const hadOne = this.present !== undefined;
    const server = new RawServer(this.command, this.cwd);
    this.present = server;
    this.all.push(server);
    await openIn(server).catch((error) => {
      if (!hadOne) throw error;
      throw new NotTried('it does not start again');
    });
    return server;
  }
}

/** Shakes hands, or finds that there is no handshake. */
async function openIn(server: RawServer): Promise<void> {
  const hello = { protocolVersion: REVISIONS[0], capabilities: {}, clientInfo: CLIENT };
  const { result, error } = await server.request('initialize', hello, undefined, START_MS);
  if (result) {
    const { protocolVersion, capabilities } = asObject(result);
    const isKnown = REVISIONS.includes(`${protocolVersion}`);
    holds(isKnown, `one of ${REVISIONS.join(', ')}`, protocolVersion);
    holds(isObject(capabilities), '"capabilities" in the answer', result);
    return server.send({ method: 'notifications/initialized' });
  }
  server.isStateless = true;
  const described = await server.request('server/discover');
  const { supportedVersions } = asObject(described.result);
  const isKnown = Array.isArray(supportedVersions) && supportedVersions.includes(STATELESS[0]);
  holds(isKnown, 'an answer to initialize, or to server/discover', error);
}

async function listOf(server: RawServer): Promise<any[]> {
  const { result, error } = await server.request('tools/list');
  holds(Array.isArray(result?.tools), '{"tools":[…]}', result ?? error);
  return result.tools;
}

const isRefusal = ({ error }: any) =>
  isObject(error) && Number.isInteger(error.code) && typeof error.message === 'string';

/** An answer to a call of a tool: a result with content, or an error with a code. */
function checkCall(answer: any): void {
  const isAnswer = Array.isArray(answer.result?.content) || answer.result?.resultType;
  holds(isAnswer || isRefusal(answer), 'a result with "content", or an error with a code', answer);
}

/** Can it be called without arguments, and do nothing? The judge does not know what tools do. */
const isHarmless = ({ inputSchema, annotations }: any) =>
  inputSchema?.required?.length > 0 || annotations?.readOnlyHint === true;

const hasMethod = (message: any) => typeof message?.method === 'string';

const promises: ServerPromise[] = [
  {
    id: 'server-opens',
    promise: 'it opens with initialize, or with server/discover',
    fault: 'it does not open in a revision that we know',
    play: (bench) => bench.server(),
  },
  {
    id: 'server-id-as-it-went',
    promise: 'an id comes back as it went, a number or a text',
    fault: 'an id does not come back as it went, a number or a text',
    play: async (bench) => {
      const server = await bench.server();
      for (const id of [4711, 'text-7', 0]) await server.request('tools/list', {}, id);
    },
  },
  {
    id: 'server-unknown-method',
    promise: 'an unknown method is refused with -32601',
    fault: 'an unknown method is not refused with -32601',
    play: async (bench) => {
      const answer = await (await bench.server()).request('judge/no-such-method');
      holds(isRefusal(answer), 'an error with a code and a message', answer.result ?? answer.error);
      same(answer.error.code, -32601);
    },
  },
  {
    id: 'server-notification-silent',
    promise: 'a notification gets no answer',
    fault: 'a notification gets an answer',
    play: async (bench) => {
      const server = await bench.server();
      const before = server.messages.length;
      for (const method of ['notifications/judge', 'notifications/cancelled']) {
        server.send({ method, params: { requestId: 'none' } });
      }
      const { id } = await server.request('tools/list');
      await pause(FENCE_MS);
      const came = server.messages.slice(before);
      const answers = came.filter((each) => !hasMethod(each) && each?.id !== id);
      same(answers, [], 'no answer');
    },
  },
  {
    id: 'server-ping',
    promise: 'a ping is answered with {}',
    fault: 'a ping is not answered with {}',
    play: async (bench) => {
      const server = await bench.server();
      if (server.isStateless) throw new NotTried('its revision has no ping');
      const { result, error } = await server.request('ping');
      holds(isObject(result), 'a result {}', error ?? result);
    },
  },
  {
    id: 'server-list-of-tools',
    promise: 'tools/list is a list of tools with names and schemas',
    fault: 'tools/list is not a list of tools with names and schemas',
    play: async (bench) => {
      for (const tool of await listOf(await bench.server())) {
        holds(tool?.name && typeof tool.name === 'string', 'a tool with a name', tool);
        same(tool.inputSchema?.type, 'object', `"inputSchema" of ${tool.name}: type "object"`);
      }
    },
  },
  {
    id: 'server-call-result',
    promise: 'a call of a tool gives a result or an error with a code',
    fault: 'a call of a tool gives neither a result nor an error with a code',
    play: async (bench) => {
      const server = await bench.server();
      const tool = (await listOf(server)).find(isHarmless);
      if (!tool) throw new NotTried('no tool is read-only, or wants arguments');
      checkCall(await server.request('tools/call', { name: tool.name, arguments: {} }));
    },
  },
  {
    id: 'server-call-unknown',
    promise: 'a call of a tool that does not exist fails',
    fault: 'a call of a tool that does not exist does not fail',
    play: async (bench) => {
      const server = await bench.server();
      const params = { name: 'judge_no_such_tool', arguments: {} };
      const answer = await server.request('tools/call', params);
      const isFailure = isRefusal(answer) || answer.result?.isError === true;
      holds(isFailure, 'an error with a code, or isError', answer.error ?? answer.result);
    },
  },
  {
    id: 'server-two-at-once',
    promise: 'two requests at once, in one write, are both answered',
    fault: 'two requests at once, in one write, are not both answered',
    play: async (bench) => {
      const server = await bench.server();
      const before = server.messages.length;
      const params = server.isStateless ? { _meta: META } : {};
      const ids = ['two-1', 'two-2'];
      const lines = ids.map((id) => ({ jsonrpc: '2.0', id, method: 'tools/list', params }));
      server.write(lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
      for (const id of ids) await server.answerTo(id, 'tools/list', before);
    },
  },
  {
    id: 'server-in-two-pieces',
    promise: 'a request that comes in two pieces is read',
    fault: 'a request that comes in two pieces is not read',
    play: async (bench) => {
      const server = await bench.server();
      const before = server.messages.length;
      const params = { ...(server.isStateless && { _meta: META }), filler: 'Zoë \u2028 日本' };
      const text = JSON.stringify({ jsonrpc: '2.0', id: 'pieces', method: 'tools/list', params });
      server.write(text.slice(0, 30));
      await pause(150);
      server.write(`${text.slice(30)}\n`);
      await server.answerTo('pieces', 'tools/list', before);
    },
  },
  {
    id: 'server-broken-line',
    kind: 'safety',
    promise: 'a broken line does not end it',
    fault: 'a broken line ends it, or makes it deaf',
    play: async (bench) => {
      const server = await bench.server();
      for (const line of ['{broken', 'hello', '42', 'null', '[]', '{}']) server.write(`${line}\n`);
      await pause(FENCE_MS);
      await server.request('tools/list');
    },
  },
  {
    id: 'server-only-messages',
    promise: 'there is nothing but messages on stdout',
    fault: 'there is something else than messages on stdout',
    play: async (bench) => {
      const lines = bench.all.flatMap((server) => server.lines);
      const odd = lines.find((line) => !isMessage(line));
      holds(odd === undefined, 'JSON-RPC 2.0, one message per line', odd);
    },
  },
  {
    id: 'server-ends-with-stdin',
    kind: 'safety',
    promise: 'it ends when its stdin ends',
    fault: 'it does not end when its stdin ends',
    play: async (bench) => {
      const server = await bench.server();
      server.endInput();
      const start = Date.now();
      const isLate = () => Date.now() - start > LEAVE_MS;
      while (!server.ended && !isLate()) await pause(20);
      holds(server.ended, `its end within ${LEAVE_MS / 1000} s`, 'it is running');
    },
  },
];

function isMessage(line: string): boolean {
  try {
    const all: unknown[] = [JSON.parse(line)].flat(); // one revision has batches
    return all.every((each) => asObject(each).jsonrpc === '2.0');
  } catch {
    return false;
  }
}

export async function judgeServer(command: string[], cwd: string) {
  const bench = new ServerBench(command, cwd);
  const verdicts: Verdict[] = [];
  for (const each of promises) {
    const [opening] = verdicts;
    const isShut = opening?.state === 'broken';
    verdicts.push(isShut ? unopened(each) : await judgeOne(each, bench));
  }
  for (const server of bench.all) server.kill();
  // One that has left without a word was never there to be judged.
  const isThere = bench.all.some(({ lines, ended }) => lines.length > 0 || !ended);
  return { verdicts, problem: isThere ? undefined : bench.all[0]?.ended };
}

const unopened = (promised: ServerPromise): Verdict => ({
  ...named(promised),
  state: 'not tried',
  why: 'it has not opened',
});

async function judgeOne(promised: ServerPromise, bench: ServerBench): Promise<Verdict> {
  const about = named(promised);
  const broken = { ...about, state: 'broken' as const, fault: promised.fault };
  try {
    await promised.play(bench);
    return { ...about, state: 'kept' };
  } catch (error) {
    if (error instanceof NotTried) return { ...about, state: 'not tried', why: error.message };
    if (!(error instanceof Mismatch)) return { ...broken, came: show(error) };
    return { ...broken, expected: error.expected, came: error.came };
  }
}
