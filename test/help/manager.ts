// A manager with its own home and project, so that no test sees the files of whoever runs it.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type * as mcp from '../../mcp.ts';
import { folder, later } from './basics.ts';
import { McpManager } from './subject.ts';

type Servers = Record<string, unknown>;

/** Writes the user's settings and, where given, the project's .mcp.json; the manager is not yet connected. */
export function prepare(user: Servers, project?: Servers, options: mcp.ManagerOptions = {}) {
  const [home, cwd] = [folder(), folder()];
  mkdirSync(join(home, '.claude'));
  writeFileSync(join(home, '.claude', 'settings.json'), JSON.stringify({ mcpServers: user }));
  if (project) writeFileSync(join(cwd, '.mcp.json'), JSON.stringify({ mcpServers: project }));
  const manager: mcp.McpManager = new McpManager({ home, cwd, ...options });
  later(() => manager.disconnectAll());
  const state = (name: string) => manager.status().find((status) => status.name === name)!;
  return { manager, home, cwd, state };
}

/** The same, connected. */
export async function manage(user: Servers, project?: Servers, options?: mcp.ManagerOptions) {
  const prepared = prepare(user, project, options);
  await prepared.manager.loadAndConnect();
  return prepared;
}
