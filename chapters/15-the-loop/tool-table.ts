// tool-table.ts: our own tools and those of the servers, as the model is shown them.

import type { Agent } from '../../agent.ts';
import { textOf, type Json, type McpManager, type ServerStatus } from '../../mcp.ts';
import { firstOf } from '../16-hands/start-up.ts';
import { cited, plainJson } from '../17-the-gate/safe-text.ts';
import { refusedTool } from '../18-minds/refused.ts';
import { toldModel } from '../18-minds/seen.ts';
import { isForModels } from '../28-a-thousand-tools/more/apps.ts';
import type { Tool } from './row.ts';
import type { Model, ModelRequest } from './said.ts';
import { unlessAborted } from './unless-aborted.ts';

const GOOD_NAME = /^(?!__proto__$)[\w.-]{1,128}$/;
const MAX_SCHEMA = 100_000; // characters
const MAX_NEWS = 20; // changes of the tools that the model is told, and names in each

type McpDefinition = ReturnType<McpManager['getToolDefinitions']>[number];
const keyOf = (server: string, tool?: string) => JSON.stringify([server, tool]);

export class ToolTable {
  shown = new Map<string, Tool>(); // by name
  servers: ServerStatus[] = []; // as they were at the last refresh
  news: string[] = []; // what has become of the tools in this conversation
  shelved = new Map<string, Tool>(); // the model must find these first
  deferred = new Set<string>(); // servers with tools on the shelf
  shelfWords = '';
  private agent: Agent;
  private offered?: readonly McpDefinition[]; // the rows were made of these,
  private off?: string[]; // without these
  private leftOut = '';
  private told?: Set<string>; // the tools that the model knows of
  private all = this.shown; // the rows that are shown, and those on the shelf
  private refused = new WeakMap<Model, Set<string>>(); // tools that its wire does not take

  constructor(agent: Agent) {
    this.agent = agent;
    this.refresh();
  }

  /** Servers may have a hundred thousand tools, so rows are made again only after a change. */
  refresh(): void {
    const { tools = [] } = this.agent.options;
    const { mcp } = this.agent.options;
    const servers = mcp?.status() ?? [];
    this.servers = servers;
    const offered = mcp?.getToolDefinitions();
    const hidden = this.agent.options.switchedOff?.() ?? [];
    const off = hidden.map(({ server, tool }) => keyOf(server, tool));
    const idle = tools.filter(({ isOffered }) => isOffered?.(servers) === false);
    off.push(...idle.map((row) => `${tools.indexOf(row)}`)); // a definition may cost more
    if (offered === this.offered && off.join() === this.off?.join()) return;
    this.offered = offered;
    this.off = off;
    this.shown = byName(tools);
    for (const { definition } of idle) this.shown.delete(definition.name);
    this.addServerTools(new Set(off));
    this.all = this.shown;
  }

  private addServerTools(off: Set<string>): void {
    const leftOut: string[] = [];
    for (const found of this.offered ?? []) {
      const { server, tool } = found;
      if (off.has(keyOf(server, tool.name))) continue;
      if (!isForModels(tool)) continue;
      if (isOfferable(found)) {
        this.shown.set(found.name, this.row(found));
      } else {
        leftOut.push(`${tool.name} of ${server}`);
      }
    }
    this.tellLeftOut(leftOut);
  }

  private row({ name, description, inputSchema, server, tool }: McpDefinition): Tool {
    const { mcp } = this.agent.options;
    const definition = { name, description, inputSchema };
    definition.description = cited(description);
    definition.inputSchema = plainJson(inputSchema) as Json;
    const run: Tool['run'] = async (args, context) => {
      const calling = mcp!.callTool(name, args, { ...context, tool });
      const answer = await unlessAborted(calling, context.signal); // it may wait for a list before
      return { blocks: [], isError: answer.isError, answer };
    };
    return { definition, readOnly: false, origin: { server, tool }, run };
  }

  /** Once, and not for every answer of the model. */
  private tellLeftOut(leftOut: string[]): void {
    const list = firstOf(leftOut);
    const isNew = list !== this.leftOut;
    this.leftOut = list;
    if (list && isNew) this.agent.note(`left out because of their names or sizes: ${list}`);
  }

  /** Keeps in the table what the model is shown. It must search for the rest. */
  arrange(): void {
    const { model, turns, window } = this.agent;
    const { all: table, servers } = this;
    const arranged = this.agent.options.shelf?.({ table, turns, model, window, servers });
    if (arranged) {
      this.shown = byName(arranged.rows);
      const unseen = [...table].filter(([name, { origin }]) => origin && !this.shown.has(name));
      this.shelved = new Map(unseen);
      this.deferred = new Set(arranged.deferred);
      this.shelfWords = arranged.words ?? '';
    }
    for (const name of this.refused.get(model) ?? []) {
      this.shown.delete(name);
      this.shelved.delete(name);
    }
  }

  /** All that can be called, also what the model would have to find first. */
  get callable(): Tool[] {
    this.arrange();
    const rows = [...this.shown.values()];
    rows.push(...this.shelved.values());
    return rows;
  }

  /** One tool with a schema that the model's wire refuses must not spoil every request: it is
   *  found, told, and left out from now on. */
  async findRefused(request: ModelRequest | undefined, error: unknown): Promise<boolean> {
    const { model } = this.agent;
    const told = toldModel(model, (event) => this.agent.emit(event), 'which tool it refuses');
    const name = request && (await refusedTool(told, request, error));
    const refused = this.refused.get(model) ?? new Set<string>();
    if (!name || refused.has(name)) return false;
    this.refused.set(model, refused.add(name));
    this.agent.note(`${model.name} refuses the tool ${name}, so it is left out: ${textOf(error)}`);
    return true;
  }

  /** Servers gain and lose tools in mid-conversation, and the model remembers the old ones. */
  noticeChanges(): void {
    const before = this.told;
    const after = new Set(this.shown.keys());
    for (const name of this.shelved.keys()) {
      after.add(name);
      before?.add(name); // a tool that the model found is not new
    }
    this.told = after;
    if (!before) return;
    const added = [...after].filter((name) => !before.has(name));
    const gone = [...before].filter((name) => !after.has(name));
    const changes: string[] = [];
    if (added.length > 0) changes.push(`new: ${firstOf(added, MAX_NEWS)}`);
    if (gone.length > 0) changes.push(`gone: ${firstOf(gone, MAX_NEWS)}`);
    if (changes.length === 0) return;
    const what = changes.join('; ');
    this.agent.note(`the tools have changed; ${what}`);
    this.news = [...this.news, what].slice(-MAX_NEWS);
  }

  /** Another conversation: the model knows of no tools yet. */
  startOver(): void {
    this.told = undefined;
    this.news = [];
  }
}

function byName(rows: Tool[]): Map<string, Tool> {
  return new Map(rows.map((row) => [row.definition.name, row]));
}

/** Its name is as the protocol advises, and its schema leaves room for other tools. */
function isOfferable({ tool, inputSchema }: McpDefinition): boolean {
  const size = JSON.stringify(inputSchema).length;
  return GOOD_NAME.test(tool.name) && size <= MAX_SCHEMA;
}
