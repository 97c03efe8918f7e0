// roots.ts: which folders we work in, for servers that want to know. They inform, they fence nothing.
// Deprecated since 2026-07-28, and still asked for by a few servers as soon as they start.

import { basename } from 'node:path';
import { pathToFileURL } from 'node:url';
import {
  TRUE_OR_FALSE,
  isStateless,
  reads,
  type Extension,
  type McpConnection,
} from '../../mcp.ts';
import { quoted } from '../17-the-gate/safe-text.ts';

/** The folders, and who wants to hear when they change. The program holds one. */
export class Folders {
  private list: () => readonly string[];
  private listeners = new Map<McpConnection, readonly string[]>(); // and what each was told

  constructor(list: () => readonly string[]) {
    this.list = list;
  }

  join(connection: McpConnection): void {
    if (!this.listeners.has(connection)) this.listeners.set(connection, []);
  }

  tell(connection: McpConnection): { roots: { uri: string; name: string }[] } {
    const folders = [...this.list()];
    this.listeners.set(connection, folders);
    const rootOf = (path: string) => ({
      uri: pathToFileURL(path).href,
      name: basename(path) || path,
    });
    return { roots: folders.map(rootOf) };
  }

  /** For /mcp: what this server has heard, which is nothing if it did not want to know. */
  notes(server: string): string[] {
    const told = [...this.listeners].filter(([{ serverName }]) => serverName === server);
    const folders = told.flatMap(([, each]) => each).map(quoted);
    return folders.length === 0 ? [] : [`it was told where you work: ${folders.join(', ')}`];
  }

  leave(connection: McpConnection): void {
    this.listeners.delete(connection);
  }

  /** Since 2026-07-28 there is no such notice: a server asks with each call that needs it. */
  changed(): void {
    for (const connection of this.listeners.keys())
      if (!isStateless(connection.server))
        connection.notify('notifications/roots/list_changed').catch(() => {}); // it may be gone
  }
}

/** Where they are offered, they may take the place of the folders in a server's configuration: the
 *  reference server for files does that. `"roots": false` in an entry keeps them from its server. */
export function roots(folders: Folders): Extension {
  return reads({ roots: TRUE_OR_FALSE }, function roots(connection) {
    if (connection.config.roots === false) return {};
    return {
      capabilities: { roots: { listChanged: true } },
      opened: () => folders.join(connection),
      closed: () => folders.leave(connection),
      handlers: {
        'roots/list': () => folders.tell(connection),
      },
    };
  });
}
