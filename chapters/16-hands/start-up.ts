// start-up.ts: how long an answer waits for the servers, and what the user is told of those that
// are late or have failed.

import { setTimeout as wait } from 'node:timers/promises';
import type { Agent } from '../../agent.ts';
import { now, textOf, type McpManager, type ServerStatus } from '../../mcp.ts';

const FEW = 5; // of a kind that are told one by one

export class StartUp {
  private agent: Agent;
  private connecting?: Promise<void>;
  private toldFailed = new Set<string>();
  private late = new Set<string>(); // the servers that an answer did not wait for

  constructor(agent: Agent) {
    this.agent = agent;
  }

  /** Starts the servers, once, however often it is called. Never rejects: what fails is a note. */
  connect(): Promise<void> {
    this.connecting ??= this.startServers();
    return this.connecting;
  }

  private async startServers() {
    const { agent } = this;
    this.toldFailed.clear();
    try {
      await agent.options.mcp?.loadAndConnect();
      this.tellFailed();
      agent.tools.refresh();
    } catch (error) {
      agent.note(`MCP: ${textOf(error)}`);
    }
  }

  /** The next chat connects again: after a reload of the configuration. */
  forget(): void {
    this.connecting = undefined;
  }

  /** One slow server must not hold up the answer: it joins when it is ready. */
  async wait(signal: AbortSignal): Promise<void> {
    const { mcp, graceMs } = this.agent.options;
    const all = this.connect();
    if (!mcp || graceMs === undefined) return all;
    let isDone = false;
    void all.then(() => {
      isDone = true;
    });
    while (!isDone && !signal.aborted) {
      const left = mcp.startingSince + graceMs - now();
      if (left <= 0) return this.tellLate(mcp);
      const over = new AbortController();
      const grace = wait(left, undefined, { signal: over.signal });
      await Promise.race([all, grace.catch(() => {})]);
      over.abort(); // a timer that is left would keep the program alive
    }
  }

  private tellLate(mcp: McpManager) {
    this.tellFailed();
    const late = lateIn(mcp.status());
    const news = late.filter((name) => !this.late.has(name));
    for (const name of news) this.late.add(name);
    const how = 'the answer does not wait for it, and its tools join when it is ready';
    if (news.length > 0) this.agent.note(`still starting: ${firstOf(news)}; ${how}`);
  }

  /** Call it when a server is ready: one that was reported as late is reported once more. */
  tellReady(server: string): void {
    if (!this.late.delete(server)) return;
    const servers = this.agent.options.mcp?.status() ?? [];
    const found = servers.find(({ name }) => name === server);
    const tools = found?.tools ?? 0;
    const word = tools === 1 ? 'tool' : 'tools';
    this.agent.note(`${server} is ready: ${tools} ${word}`);
  }

  /** Each failure once. */
  private tellFailed() {
    const { agent } = this;
    const servers = agent.options.mcp?.status() ?? [];
    const failed = servers.filter(({ state }) => state === 'failed');
    const news = failed.filter(({ name }) => !this.toldFailed.has(name));
    for (const { name } of news) this.toldFailed.add(name);
    const first = news.slice(0, FEW);
    for (const { reason = '' } of first) agent.note(reason);
    const more = news.length - FEW;
    if (more > 0) agent.note(`${more} more MCP servers failed`);
  }
}

/** The servers that are not there yet. */
export function lateIn(servers: ServerStatus[]): string[] {
  const late = servers.filter(({ state }) => state === 'connecting');
  return late.map(({ name }) => name);
}

/** The first few, and how many more there are. */
export function firstOf(names: string[], few = FEW): string {
  const more = names.length > few ? ` and ${names.length - few} more` : '';
  return names.slice(0, few).join(', ') + more;
}
