// passed-on.ts: `serve --servers`. The user's own servers, for other clients: one entry there
// brings them all, behind our gate, in our order, and to be searched where they are many.

import type { Tool } from '../../agent.ts';
import {
  asObject,
  McpManager,
  type Json,
  type ManagerOptions,
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

/** A server that is one of us would start its servers, and so us: without an end. */
export const SERVES_MARK = 'MCP_BY_HAND_SERVES';

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
  onChanged: () => void = () => {};
  private options: PassedOnOptions;
  private made?: { of: readonly PassedTool[]; rows: Map<string, Tool> };

  constructor(options: PassedOnOptions) {
    this.options = options;
    const { composition, trust, warn } = options;
    let own: ServerEntries = new Map();
    this.manager = new McpManager({
      ...forConnections(composition),
      prepare: () => composition.sources?.prepare?.(),
      load: (report) => {
        own = usersOwn(loadHere(composition, report), warn);
        return new Map([...own].map(([name, entry]) => [name, marked(entry)]));
      },
      approve: (entry) => trust.approve(own.get(entry.name) ?? entry),
      onWarning: warn,
      onState: (_, state, reason) => {
        if (state === 'failed' && reason) warn(reason);
        this.onChanged();
      },
      onChanged: () => this.onChanged(),
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
        return fromMcp(result, resultsFolder);
      },
    };
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
