// passed-on.ts: `serve --servers`. The user's own servers, for other clients: one entry there
// brings them all, behind our gate, in our order, and to be searched where they are many.

import { AsyncLocalStorage } from 'node:async_hooks';
import type { Tool } from '../../agent.ts';
import {
  asObject,
  McpManager,
  type Extension,
  type Json,
  type ManagerOptions,
  type Offer,
  type ServerEntry,
} from '../../mcp.ts';
import { fromMcp } from '../16-hands/results.ts';
import { cited, plainJson } from '../17-the-gate/safe-text.ts';
import type { Trust } from '../17-the-gate/trust.ts';
import {
  forConnections,
  loadHere,
  type Composition,
  type ServerEntries,
} from '../19-the-terminal/host.ts';
import { isForModels } from '../28-a-thousand-tools/more/apps.ts';
import { indexTools } from '../28-a-thousand-tools/tool-search.ts';
import { AskedBack, isAsking, type AskClient } from './asked-back.ts';
import { traceContext, traceContextIn } from './more/trace-context.ts';
import type { ServerCall } from './server-call.ts';

/** A server that is one of us would start its servers, and so us: without an end. */
export const SERVES_MARK = 'MCP_BY_HAND_SERVES';
const MAX_ROUTES = 10_000;

type PassedOnOptions = {
  composition: Composition;
  trust: Trust;
  resultsFolder: string;
  warn: (text: string) => void;
  manager?: Partial<ManagerOptions>; // for tests
};

type PassedTool = ReturnType<McpManager['getToolDefinitions']>[number];

export class PassedOn {
  readonly manager: McpManager;
  onChanged: (what: Offer) => void = () => {};
  onUpdated: (uri: string) => void = () => {};
  /** Of prompts by their names here, of resources and templates by their addresses. */
  readonly routes = new Map<string, { owner: string; name: string }>();
  private options: PassedOnOptions;
  private asked = new AskedBack();
  private trace = new AsyncLocalStorage<Json>(); // that a client's call belongs to
  private made?: { of: readonly PassedTool[]; rows: Map<string, Tool> };

  constructor(options: PassedOnOptions) {
    this.options = options;
    const { composition, trust, warn } = options;
    let own: ServerEntries = new Map();
    const { extensions, ...others } = forConnections(composition);
    const ours = extensions.map((each) => (isAsking(each) ? this.asked.instead(each) : each));
    const news: Extension = () => ({
      handlers: { 'notifications/resources/updated': ({ uri }) => this.onUpdated(`${uri}`) },
    });
    const passedTrace: Extension = traceContext(() => this.trace.getStore() ?? {});
    this.manager = new McpManager({
      ...others,
      extensions: [passedTrace, ...ours, news],
      prepare: () => composition.sources?.prepare?.(),
      load: (report) => {
        own = usersOwn(loadHere(composition, report), warn);
        return new Map([...own].map(([name, entry]) => [name, marked(entry)]));
      },
      approve: (entry) => trust.approve(own.get(entry.name) ?? entry),
      onWarning: warn,
      onState: (_, state, reason) => {
        if (state === 'failed' && reason) warn(reason);
        for (const what of ['tools', 'prompts', 'resources'] as const) this.onChanged(what);
      },
      onChanged: (_, what) => this.onChanged(what),
      ...options.manager,
    });
  }

  /** By the names that clients see: github__search. They put their own before it, and 64 characters
   *  is all that models take. Made again only after a change. */
  get rows(): Map<string, Tool> {
    const of = this.manager.getToolDefinitions();
    if (this.made?.of === of) return this.made.rows;
    const off = this.options.trust.list().disabled;
    const isOff = ({ server, tool }: PassedTool) =>
      off.some((each) => each.server === server && each.tool === tool.name);
    const wanted = of.filter((found) => isForModels(found.tool) && !isOff(found));
    const rows = new Map(
      wanted.map((found) => [found.name.replace(/^mcp__/, ''), this.row(found)]),
    );
    this.made = { of, rows };
    return rows;
  }

  private row({ name, description, inputSchema, server, tool }: PassedTool): Tool {
    const { resultsFolder } = this.options;
    return {
      definition: {
        name, // as rules have it: mcp__github__search
        description: cited(description),
        inputSchema: plainJson(withoutMirrors(inputSchema)) as Json,
      },
      readOnly: false, // what a server says of its tools decides nothing
      origin: { server, tool },
      run: async (args, { signal, onProgress }) => {
        const result = await this.manager.callTool(name, args, { signal, onProgress });
        for (const { uri } of result.content.map(asObject))
          if (this.routes.size < MAX_ROUTES) this.routes.set(`${uri}`, { owner: server, name: '' });
        return { ...fromMcp(result, resultsFolder), answer: result };
      },
    };
  }

  /** What the server asks meanwhile is for this call's client. */
  during<T>(server: string, call: ServerCall, timeoutMs: number, work: () => Promise<T>) {
    let count = 0;
    const ask: AskClient = async (method, params) => {
      if (!call.can(method.split('/')[0]!)) return undefined;
      const key = `${server} ${++count}`;
      const answers = await call.ask({ [key]: { method, params } }, { timeoutMs });
      return answers[key];
    };
    const { session: client = call, signal } = call;
    const context = traceContextIn(asObject(call.request.params._meta));
    const traced = () => this.trace.run(context, work);
    return this.asked.during(server, { client, ask, signal }, traced);
  }

  opinionOf({ origin }: Tool) {
    if (!origin) return undefined;
    const { config = {} } = this.manager.entry(origin.server) ?? {};
    return this.options.composition.opinion?.(origin.tool, config);
  }

  /** The names of those that fit, the best first. */
  find(query: string, limit: number): string[] {
    const searchable = [...this.rows].map(([label, { definition, origin }]) => ({
      label,
      server: origin!.server,
      name: `${origin!.tool.name}`,
      description: definition.description.replace(/^> /gm, ''),
      inputSchema: definition.inputSchema,
    }));
    return indexTools(searchable).search(query, limit);
  }
}

/** Never a project's: another client's person was not asked whether to start it. */
export function usersOwn(entries: ServerEntries, warn: (text: string) => void): ServerEntries {
  const own: ServerEntries = new Map();
  for (const [name, entry] of entries) {
    const { authority, shadows, file, blocked } = entry;
    if (authority === 'user' && !blocked) own.set(name, entry);
    else if (shadows) warn(`${name} is not passed on: ${file} has another server of this name`);
  }
  return own;
}

function marked(entry: ServerEntry): ServerEntry {
  const { config } = entry;
  if (config.command === undefined) return entry;
  return { ...entry, config: { ...config, env: { ...asObject(config.env), [SERVES_MARK]: '1' } } };
}

/** Which arguments go into headers is between us and that server. */
function withoutMirrors(schema: Json): Json {
  const text = JSON.stringify(schema, (key, value) => (key === 'x-mcp-header' ? undefined : value));
  return JSON.parse(text);
}
