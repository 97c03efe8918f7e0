// whole.ts: an MCP client and an agent, written in one sitting. It works. The book is about the days
// on which it doesn't.

import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

// ─── One server ──────────────────────────────────────────────────────────────────────────────────

type Config = { command: string; args?: string[]; env?: Record<string, string> };
type Tool = { name: string; description?: string; inputSchema: object };
type Waiter = { resolve: (result: any) => void; reject: (why: Error) => void };

export class McpConnection {
  private child!: ChildProcessWithoutNullStreams;
  private nextId = 1;
  private waiting = new Map<number, Waiter>();
  private config: Config;

  constructor(_name: string, config: Config) {
    this.config = config;
  }

  async connect(): Promise<void> {
    const { command, args = [], env } = this.config;
    this.child = spawn(command, args, { env: { ...process.env, ...env } });
    const lines = createInterface({ input: this.child.stdout });
    lines.on('line', (line) => this.receive(JSON.parse(line)));
  }

  async initialize(): Promise<void> {
    await this.request('initialize', {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'the-whole', version: '0.1.0' },
    });
    this.notify('notifications/initialized');
  }

  request(method: string, params: object = {}): Promise<any> {
    const id = this.nextId++;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.send({ jsonrpc: '2.0', id, method, params });
    });
  }

  notify(method: string, params: object = {}): void {
    this.send({ jsonrpc: '2.0', method, params });
  }

  private send(message: object): void {
    this.child.stdin.write(`${JSON.stringify(message)}\n`);
  }

  private receive({ id, result, error }: any): void {
    const waiter = this.waiting.get(id);
    this.waiting.delete(id);
    if (error) waiter?.reject(new Error(error.message));
    else waiter?.resolve(result);
  }

  async listTools(): Promise<Tool[]> {
    return (await this.request('tools/list')).tools;
  }

  async callTool(name: string, args: object = {}): Promise<{ text: string }> {
    const { content } = await this.request('tools/call', { name, arguments: args });
    return { text: content.map((block: any) => block.text).join('\n') };
  }

  async close(): Promise<void> {
    this.child.kill();
  }
}

// ─── Many servers ────────────────────────────────────────────────────────────────────────────────

type Row = { tool: Tool; connection: McpConnection };

export function loadEntries(home: string, cwd: string) {
  const entries = new Map<string, { config: Config }>();
  const settings = join('.claude', 'settings.json');
  for (const file of [join(home, settings), join(cwd, settings), join(cwd, '.mcp.json')]) {
    if (!existsSync(file)) continue;
    const { mcpServers = {} } = JSON.parse(readFileSync(file, 'utf8'));
    for (const [name, config] of Object.entries<Config>(mcpServers)) entries.set(name, { config });
  }
  return entries;
}

export const toolLabel = (server: string, tool: string) => `mcp__${server}__${tool}`;

export class McpManager {
  private rows = new Map<string, Row>();
  private entries: ReturnType<typeof loadEntries>;

  constructor({ home = homedir(), cwd = process.cwd() } = {}) {
    this.entries = loadEntries(home, cwd);
  }

  async loadAndConnect(): Promise<void> {
    for (const [name, { config }] of this.entries) {
      const tooLate = new Promise<never>((_, reject) => {
        setTimeout(() => reject(new Error(`${name} did not answer within 15 s`)), 15_000);
      });
      await Promise.race([this.add(name, config), tooLate]);
    }
  }

  private async add(name: string, config: Config): Promise<void> {
    const connection = new McpConnection(name, config);
    await connection.connect();
    await connection.initialize();
    for (const tool of await connection.listTools())
      this.rows.set(toolLabel(name, tool.name), { tool, connection });
  }

  getToolDefinitions(): Tool[] {
    return [...this.rows].map(([name, { tool }]) => ({ ...tool, name }));
  }

  async callTool(label: string, args: object): Promise<{ text: string }> {
    const { tool, connection } = this.rows.get(label)!;
    return connection.callTool(tool.name, args);
  }

  async disconnectAll(): Promise<void> {
    for (const { connection } of this.rows.values()) await connection.close();
  }
}

// ─── The agent ───────────────────────────────────────────────────────────────────────────────────

type Call = { name: string; args: object };
export type Turn = { role: 'user' | 'model' | 'tool'; text: string; call?: Call };
export type Model = (turns: Turn[], tools: Tool[]) => Promise<Turn>;

export async function chat(model: Model, mcp: McpManager, prompt: string): Promise<string> {
  const turns: Turn[] = [{ role: 'user', text: prompt }];
  while (true) {
    const turn = await model(turns, mcp.getToolDefinitions());
    turns.push(turn);
    if (!turn.call) return turn.text;
    const { text } = await mcp.callTool(turn.call.name, turn.call.args);
    turns.push({ role: 'tool', text });
  }
}
