// serve.ts: the agent's hands as a server. Another client's model reads, changes and runs things in
// our folder; every call passes our gate, and the gate asks that client's person.

import type { Tool, ToolOutput } from '../../agent.ts';
import {
  asList,
  asObject,
  blocksToText,
  excerpt,
  RpcError,
  VERSION,
  type Json,
} from '../../mcp.ts';
import type { Roots } from '../16-hands/paths.ts';
import { fitResult, roomFor } from '../16-hands/results.ts';
import { hands } from '../16-hands/tools.ts';
import { Gate, type Mode } from '../17-the-gate/gate.ts';
import { Turns, type Person } from '../17-the-gate/person.ts';
import type { Rule } from '../17-the-gate/rules.ts';
import { Trust } from '../17-the-gate/trust.ts';
import { problemsFound } from '../23-the-server-asks/schema.ts';
import type { ServerCall } from './server-call.ts';
import { ClientsPerson } from './clients-person.ts';
import { passedOffers } from './more/passed-offers.ts';
import { failed, type ServerTool } from './protocol/server-rows.ts';
import type { PassedOn } from './passed-on.ts';
import { McpServer, type ServerOptions } from './server.ts';

export type ServedOptions = {
  roots: Roots;
  trust: Trust;
  resultsFolder: string;
  mode?: Mode;
  rules?: Rule[];
  shellEnv?: string[];
  tools?: string[]; // only these
  answerMs?: number; // how long a person may think
  passedOn?: PassedOn; // the user's own servers, too
  most?: number; // of their tools that are listed; more are to be searched
  server?: Partial<ServerOptions>;
};

const ANSWER_MS = 5 * 60_000;
const SIGN_OF_LIFE_MS = 10_000; // clients give up after a minute without one
const TITLES: Record<string, string> = {
  read: 'Read a file',
  write: 'Write a file',
  edit: 'Edit a file',
  grep: 'Search in files',
  glob: 'Find files',
  bash: 'Run a command',
};
const MOST_LISTED = 40;
const MOST_FOUND = 10;
const CALL_TOOL = {
  name: 'call_tool',
  description: 'Calls a tool that find_tools has found, with the arguments that its schema wants.',
  inputSchema: {
    type: 'object',
    properties: { name: { type: 'string' }, arguments: { type: 'object' } },
    required: ['name'],
  },
};
/** Of a tool that is not ours: what its server says of it decides nothing, so expect anything. */
const FOREIGN = {
  annotations: { readOnlyHint: false, destructiveHint: true, openWorldHint: true },
};
export const SERVED = Object.keys(TITLES);

/** "Always", said in a chat of ours, meant the model of that chat. A client is another. */
export class TrustWithoutGrants extends Trust {
  override isGranted(): boolean {
    return false;
  }
  override drift(): undefined {}
  override driftOfServer(): undefined {}
}

export class Served {
  readonly server: McpServer;
  private options: ServedOptions;
  private answerMs: number;
  private strict: Gate; // with nobody to ask: for what needs no question
  private changes = new Turns(); // of calls that may change something, whosever they are
  private shown?: PassedOn['rows'];
  private added: string[] = []; // the names of tools that are passed on

  constructor(options: ServedOptions) {
    this.options = options;
    this.strict = this.gateFor();
    const { tools: wanted = SERVED } = options;
    const rows = this.newHands().filter(({ definition }) => wanted.includes(definition.name));
    const { passedOn, answerMs = ANSWER_MS } = options;
    this.answerMs = answerMs;
    const request: Served['request'] = (...given) => this.request(...given);
    this.server = new McpServer({
      name: 'mcp-by-hand',
      version: VERSION,
      instructions: `Files and commands in ${options.roots.cwd}. A person may be asked first.`,
      ...options.server,
      tools: rows.map((row) => this.offer(row)),
      ...(passedOn && passedOffers(passedOn, request, () => this.server)),
    });
    if (!passedOn) return;
    passedOn.onUpdated = (uri) => this.server.updated(uri);
    passedOn.onChanged = (what) => {
      if (what === 'tools') this.renew(passedOn);
      else this.server.changed(what);
    };
    this.renew(passedOn);
  }

  private gateFor(person?: Person) {
    const { mode, rules, roots, trust, passedOn } = this.options;
    const opinion = (tool: Tool) => passedOn?.opinionOf(tool);
    return new Gate({ mode, rules, roots, trust, person, opinion });
  }

  private newHands() {
    const { roots, resultsFolder, shellEnv } = this.options;
    return hands({
      roots,
      resultsFolder,
      shellEnv,
      isHidden: (real) => this.strict.isHidden(real),
    });
  }

  /** What was read may be changed, by the client that has read it: so each has hands of its own. */
  private handsOf({ session }: ServerCall): Tool[] {
    const own = (session?.memory.get(this) as Tool[] | undefined) ?? this.newHands();
    session?.memory.set(this, own);
    return own;
  }

  // ─── A row of the agent's table becomes a tool of the server ─────────────────────────────────

  private offer({ definition, readOnly }: Tool): ServerTool {
    const { name, description, inputSchema } = definition;
    const title = TITLES[name];
    return {
      name,
      title,
      description,
      inputSchema,
      annotations: {
        title,
        readOnlyHint: readOnly,
        destructiveHint: !readOnly,
        openWorldHint: name === 'bash',
      },
      // To change a file it must have been read before. Over stateless HTTP there is no "before".
      isOffered: ({ session }) => readOnly || session !== undefined,
      run: (args, call) => {
        const row = this.handsOf(call).find((each) => each.definition.name === name)!;
        return this.passSlowly(row, args, call);
      },
    };
  }

  // ─── The user's servers ──────────────────────────────────────────────────────────────────────

  /** Their tools, as they are now. Too many are not listed: two tools find and call them. */
  private renew(passedOn: PassedOn) {
    const { rows } = passedOn;
    if (rows === this.shown) return;
    this.shown = rows;
    const { tools } = this.server;
    for (const name of this.added) tools.delete(name);
    const isMany = rows.size > (this.options.most ?? MOST_LISTED);
    const offers = isMany
      ? [this.finder(passedOn), this.caller(passedOn)]
      : [...rows].map(([name, row]) => this.passOn(name, row));
    this.added = offers.map(({ name }) => name);
    for (const offer of offers) tools.set(offer.name, offer);
    this.server.changed('tools');
  }

  private passOn(name: string, row: Tool): ServerTool {
    const { description, inputSchema } = row.definition;
    const run: ServerTool['run'] = (args, call) => this.passInRounds(row, args, call);
    return { ...FOREIGN, name, description, inputSchema, run };
  }

  private finder(passedOn: PassedOn): ServerTool {
    return {
      name: 'find_tools',
      description: 'Finds tools of the servers behind this one, for call_tool. Say what you need.',
      inputSchema: {
        type: 'object',
        properties: {
          query: { type: 'string' },
          limit: { type: 'integer', minimum: 1, maximum: MOST_FOUND },
        },
        required: ['query'],
      },
      annotations: { readOnlyHint: true, openWorldHint: false },
      run: ({ query, limit = 5 }) => {
        const found = passedOn.find(`${query}`, Number(limit));
        const lines = found.map((name) => {
          const { description, inputSchema } = passedOn.rows.get(name)!.definition;
          return `${name} ${JSON.stringify(inputSchema)}\n${description}`;
        });
        return lines.join('\n\n') || 'No tool fits. Try other words.';
      },
    };
  }

  private caller(passedOn: PassedOn): ServerTool {
    const run: ServerTool['run'] = async ({ name, arguments: args = {} }, call) => {
      const wanted = passedOn.rows.get(`${name}`);
      if (!wanted) return failed(`There is no tool ${excerpt(name)}. Look with find_tools.`);
      const { inputSchema } = wanted.definition;
      const [problem] = await problemsFound(inputSchema, args, call.signal);
      if (problem) return failed(`${problem.path || 'the arguments'}: ${problem.message}`);
      return this.passInRounds(wanted, args as Json, call);
    };
    return { ...FOREIGN, ...CALL_TOOL, run };
  }

  /** A server may ask in the middle of its work, which cannot begin again then. */
  private passInRounds(row: Tool, args: Json, call: ServerCall): Promise<Json> {
    return call.inRounds((inner) => this.passSlowly(row, args, inner));
  }

  /** What is no tool passes the gate under the name of its method, and its result goes on as it is. */
  private async request(server: string, method: string, params: Json, call: ServerCall) {
    const row: Tool = {
      definition: { name: method, description: '', inputSchema: {} },
      readOnly: false,
      origin: { server, tool: { name: method } },
      run: async (_, { signal }) => {
        const connection = this.options.passedOn!.manager.of(server);
        return dataOnly(await connection.request(method, params, { signal }));
      },
    };
    const { content, isError, structuredContent } = await this.passInRounds(row, params, call);
    if (isError) throw new RpcError(-32600, blocksToText(asList(content)));
    return asObject(structuredContent);
  }

  // ─── A call ──────────────────────────────────────────────────────────────────────────────────

  /** Through the gate, and then to work. */
  private async pass(row: Tool, args: Json, call: ServerCall): Promise<Json> {
    const person = new ClientsPerson(call, this.answerMs);
    const verdict = await this.gateFor(person).check(row, args, call.signal);
    if (!verdict.allowed) return failed(person.refusal ?? verdict.reason);
    const output = await this.runInTurn(row, args, call, verdict.isUnasked);
    const { resultsFolder } = this.options;
    const { blocks, isError } = fitResult(output, resultsFolder, row.definition.name, roomFor(row));
    return { content: blocks, isError, structuredContent: output.answer?.structuredContent };
  }

  /** The turn begins behind the question: a person who thinks holds up no other client. */
  private async runInTurn(row: Tool, args: Json, call: ServerCall, isUnasked?: boolean) {
    const { signal } = call;
    const isFree = row.readOnly || row.origin; // a server has a line of its own
    const end = isFree ? () => {} : await this.changes.take(signal);
    const work = () => row.run(args, { signal, onProgress: () => {}, isUnasked });
    try {
      signal.throwIfAborted();
      const { passedOn } = this.options;
      if (!row.origin || !passedOn) return await work();
      return await passedOn.during(row.origin.server, call, this.answerMs, work);
    } finally {
      end();
    }
  }

  /** A person may think, and a command may run, for longer than a client waits in silence. */
  private async passSlowly(row: Tool, args: Json, call: ServerCall) {
    let count = 0;
    const sign = () => call.progress(++count, undefined, 'still at it');
    const timer = setInterval(sign, SIGN_OF_LIFE_MS);
    try {
      return await this.pass(row, args, call);
    } finally {
      clearInterval(timer);
    }
  }
}

const dataOnly = (structuredContent: Json): ToolOutput => {
  const answer = { text: '', content: [], isError: false, structuredContent };
  return { blocks: [], isError: false, answer };
};
