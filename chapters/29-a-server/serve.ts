// serve.ts: the agent's hands as a server. Another client's model reads, changes and runs things in
// our folder; every call passes our gate, and the gate asks that client's person.

import type { Tool, ToolOutput } from '../../agent.ts';
import { VERSION, type Json } from '../../mcp.ts';
import type { Roots } from '../16-hands/paths.ts';
import { fit } from '../16-hands/results.ts';
import { hands } from '../16-hands/tools.ts';
import { Gate, type Mode } from '../17-the-gate/gate.ts';
import { Turns, type Person } from '../17-the-gate/person.ts';
import type { Rule } from '../17-the-gate/rules.ts';
import { Trust } from '../17-the-gate/trust.ts';
import type { ServerCall } from './call.ts';
import { ClientsPerson } from './clients-person.ts';
import type { ServerTool } from './offers.ts';
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
  private strict: Gate; // with nobody to ask: for what needs no question
  private changes = new Turns(); // of calls that may change something, whosever they are

  constructor(options: ServedOptions) {
    this.options = options;
    this.strict = this.gateFor();
    const rows = this.newHands().filter(({ definition }) => this.isWanted(definition.name));
    this.server = new McpServer({
      name: 'mcp-by-hand',
      version: VERSION,
      instructions: `Files and commands in ${options.roots.cwd}. A person may be asked first.`,
      ...options.server,
      tools: rows.map((row) => this.offer(row)),
    });
  }

  private isWanted(name: string): boolean {
    return this.options.tools?.includes(name) ?? true;
  }

  private gateFor(person?: Person): Gate {
    const { mode, rules, roots, trust } = this.options;
    return new Gate({ mode, rules, roots, trust, person });
  }

  private newHands(): Tool[] {
    const { roots, resultsFolder, shellEnv } = this.options;
    return hands({ roots, resultsFolder, shellEnv, isHidden: (real) => this.strict.isHidden(real) });
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
        return this.withSignsOfLife(call, () => this.pass(row, args, call));
      },
    };
  }

  /** Through the gate, and then to work. */
  private async pass(row: Tool, args: Json, call: ServerCall): Promise<Json> {
    const person = new ClientsPerson(call, this.options.answerMs ?? ANSWER_MS);
    const verdict = await this.gateFor(person).check(row, args, call.signal);
    if (!verdict.allowed) return refusal(person.refusal ?? verdict.reason);
    const output = await this.runInTurn(row, args, call);
    const { blocks, isError } = fit(output, this.options.resultsFolder, row.definition.name);
    return { content: blocks, isError };
  }

  /** The turn begins behind the question: a person who thinks holds up no other client. */
  private async runInTurn(row: Tool, args: Json, call: ServerCall): Promise<ToolOutput> {
    const { signal } = call;
    const end = row.readOnly ? () => {} : await this.changes.take(signal);
    try {
      signal.throwIfAborted();
      return await row.run(args, { signal, onProgress: () => {} });
    } finally {
      end();
    }
  }

  private async withSignsOfLife(call: ServerCall, work: () => Promise<Json>): Promise<Json> {
    let count = 0;
    const sign = () => call.progress(++count, undefined, 'still at it');
    const timer = setInterval(sign, SIGN_OF_LIFE_MS);
    try {
      return await work();
    } finally {
      clearInterval(timer);
    }
  }
}

function refusal(text: string): Json {
  return { content: [{ type: 'text', text }], isError: true };
}
