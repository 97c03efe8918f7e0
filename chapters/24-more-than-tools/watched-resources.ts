// watched-resources.ts: resources that the user wants the model to know of whenever they change.

import { textOf, type Extension, type McpConnection } from '../../mcp.ts';
import { quoted } from '../17-the-gate/safe-text.ts';
import type { Host, News } from '../19-the-terminal/host.ts';
import { attached } from './context.ts';
import { readResource, subscribe, unsubscribe } from './offers.ts';

const MAX_WATCHED = 20;
const CHANGED = 'This has changed since you were told last.';

type WatchedResource = { server: string; uri: string; hasChanged: boolean };

/** The program holds one: what is watched stays so when a server is started again. */
export class Watches {
  private watched = new Map<string, WatchedResource>();
  private connections = new Map<string, McpConnection>();
  private host: Pick<Host, 'person' | 'resultsFolder'>;

  constructor(host: Pick<Host, 'person' | 'resultsFolder'>) {
    this.host = host;
  }

  get list(): WatchedResource[] {
    return [...this.watched.values()];
  }

  async add(server: string, uri: string, connection: McpConnection): Promise<void> {
    if (this.watched.size >= MAX_WATCHED)
      throw new Error(`${MAX_WATCHED} resources are watched already; /watch off ends one`);
    await subscribe(connection, uri);
    this.watched.set(keyOf(server, uri), { server, uri, hasChanged: false });
  }

  async remove(server: string, uri: string): Promise<boolean> {
    const isThere = this.watched.delete(keyOf(server, uri));
    const connection = this.connections.get(server);
    if (isThere && connection) await unsubscribe(connection, uri);
    return isThere;
  }

  /** A folder may be watched, and the file in it that has changed be named. */
  changed(server: string, uri: string): void {
    const isMeant = (each: WatchedResource) => each.server === server && isIn(uri, each.uri);
    for (const each of this.list.filter(isMeant)) {
      const what = `${quoted(each.uri)} of ${quoted(server)} has changed`;
      const isNews = !each.hasChanged;
      each.hasChanged = true;
      const line = `${what}; the model hears of it with your next prompt`;
      if (isNews) this.host.person.say(line, 'note');
    }
  }

  /** Of this server, after it was started again: it has forgotten us, and may have changed. */
  async renew(connection: McpConnection): Promise<void> {
    const { serverName } = connection;
    this.connections.set(serverName, connection);
    for (const each of this.list.filter(({ server }) => server === serverName)) {
      await subscribe(connection, each.uri);
      this.changed(serverName, each.uri);
    }
  }

  /** For the model: what has changed since it was told last, as it is now. */
  news: News = async (signal) => {
    const changed = this.list.filter(({ hasChanged }) => hasChanged);
    return Promise.all(changed.map((each) => this.newsOf(each, signal)));
  };

  private async newsOf(each: WatchedResource, signal: AbortSignal): Promise<string> {
    const { server, uri } = each;
    const { resultsFolder } = this.host;
    each.hasChanged = false; // before it is read: what changes meanwhile is told next time
    try {
      const contents = await readResource(this.connections.get(server)!, uri, { signal });
      const { text } = attached(server, uri, contents, resultsFolder);
      return `${CHANGED} ${text}`;
    } catch (error) {
      const what = `The resource ${quoted(uri)} of the MCP server ${quoted(server)} has changed`;
      return `${what}, and could not be read: ${textOf(error)}`;
    }
  }
}

const isIn = (uri: string, folder: string) =>
  uri === folder || uri.startsWith(`${folder.replace(/\/$/, '')}/`);

const keyOf = (server: string, uri: string) => JSON.stringify([server, uri]);

export function watchResources(watches: Watches): Extension {
  return function watchResources(connection) {
    return {
      handlers: {
        'notifications/resources/updated': ({ uri }) =>
          watches.changed(connection.serverName, String(uri)),
      },
      opened: () => watches.renew(connection),
    };
  };
}
