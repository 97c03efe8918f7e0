// ide.ts: an editor that runs beside us. Its extension is an MCP server on a port of this machine,
// and a lock file in the user's home says which, for which folders, and with which token.

import { lstatSync, readdirSync, realpathSync } from 'node:fs';
import { basename, join, relative, sep } from 'node:path';
import {
  asList,
  asObject,
  McpError,
  readJsonFile,
  show,
  type Extension,
  type Json,
  type ServerEntry,
  type TransportFactory,
} from '../../mcp.ts';
import type { Edits, FileListener } from '../16-hands/undo.ts';
import { oneOfFew } from '../17-the-gate/dialogue.ts';
import type { Person } from '../17-the-gate/person.ts';
import { keepSecrets, quoted } from '../17-the-gate/safe-text.ts';
import type { Command } from '../19-the-terminal/host.ts';
import { httpTransports } from '../20-streamable-http/http.ts';
import type { Logs } from '../24-more-than-tools/logs.ts';
import { WebSocketTransport } from '../25-other-pipes/websocket.ts';
import { doubtAbout, type Owners } from './file-owners.ts';
import type { Scopes } from './scopes.ts';

export const IDE = 'ide'; // the name of its server, which no other may have
const TOKEN_HEADER = 'X-Claude-Code-Ide-Authorization';
const MAX_LOCKS = 200;

/** Its token stays in the file: what is in an entry may be shown. */
export type RunningEditor = {
  name: string;
  port: number;
  lock: string;
  folders: string[];
  isSocket: boolean;
};
type Looking = { home: string; cwd: string; owners: Owners };

/** Those whose folders hold this one, the nearest first. */
export function editorsFor({ home, cwd, owners }: Looking): RunningEditor[] {
  const folder = join(home, '.claude', 'ide');
  const editors = namesIn(folder).flatMap((name) => editorIn(join(folder, name), owners) ?? []);
  const nearness = ({ folders }: RunningEditor) =>
    Math.max(...folders.filter((each) => holds(each, cwd)).map((each) => each.length), -1);
  return editors
    .filter((each) => nearness(each) >= 0)
    .sort((one, two) => nearness(two) - nearness(one));
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
      .filter((name) => /^\d{1,5}\.lock$/.test(name))
      .slice(0, MAX_LOCKS);
  } catch {
    return []; // there is no such folder
  }
}

/** Undefined if it is not what it seems, or its editor is gone. */
function editorIn(lock: string, owners: Owners): RunningEditor | undefined {
  const port = Number(basename(lock, '.lock'));
  const content = lockIn(lock, owners);
  if (!content || port < 1 || port > 65535 || !isAlive(content.pid)) return undefined;
  const { workspaceFolders, ideName, transport } = content;
  const folders = asList(workspaceFolders).filter((each) => typeof each === 'string');
  const name = typeof ideName === 'string' ? ideName.slice(0, 80) : 'an editor';
  return { name, port, lock, folders, isSocket: transport !== 'sse' };
}

/** A link, or what others may write, could name a token and a port of theirs. */
function lockIn(lock: string, owners: Owners): Json | undefined {
  try {
    if (!lstatSync(lock).isFile() || doubtAbout(lock, owners)) return undefined;
    return readJsonFile(lock);
  } catch {
    return undefined;
  }
}

function isAlive(pid: unknown) {
  if (typeof pid !== 'number' || !Number.isSafeInteger(pid) || pid < 1) return false;
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'; // it is another user's
  }
}

function holds(folder: string, cwd: string) {
  try {
    const way = relative(realpathSync(folder), cwd);
    return way !== '..' && !way.startsWith(`..${sep}`);
  } catch {
    return false;
  }
}

/** The server of an editor. The address is ours to say: always this machine. */
export function editorEntry({ name, port, lock, isSocket }: RunningEditor): ServerEntry {
  const config = isSocket
    ? { type: 'ws-ide', url: `ws://127.0.0.1:${port}/`, ideName: name, lock }
    : { type: 'sse-ide', url: `http://127.0.0.1:${port}/sse`, ideName: name, lock };
  return { name: IDE, config, file: lock, scope: 'dynamic', authority: 'user' };
}

/** Transports that we have, with the token of a lock file in a header. */
export function ideTransports(owners: Owners): Record<string, TransportFactory> {
  const withToken =
    (usual: TransportFactory): TransportFactory =>
    (name, config, maxBytes) => {
      const url = new URL(`${config.url}`);
      if (url.hostname !== '127.0.0.1')
        throw new McpError(
          'config',
          `MCP server "${name}": an editor is on this machine, not at ${url.hostname}`,
        );
      const token = asObject(lockIn(`${config.lock}`, owners)).authToken;
      if (token === undefined) return usual(name, { url: config.url }, maxBytes);
      if (typeof token !== 'string' || !/^[\x21-\x7e]{1,1024}$/.test(token))
        throw new McpError('config', `MCP server "${name}": there is no token in ${config.lock}`);
      keepSecrets(name, token);
      return usual(name, { url: config.url, headers: { [TOKEN_HEADER]: token } }, maxBytes);
    };
  return {
    'ws-ide': withToken((...given) => new WebSocketTransport(...given)),
    'sse-ide': withToken(httpTransports.sse),
  };
}

/** It hears what we change in files, and what it tells of itself is kept like a server's log. Both
 *  are the editors' own: their names lack the prefix that the specification's notifications have. */
export function editorNotices({ edits, logs }: { edits?: Edits; logs: Logs }): Extension {
  return (connection) => {
    if (connection.serverName !== IDE) return {};
    const tell: FileListener = (filePath, oldContent, newContent) => {
      connection.notify('file_updated', { filePath, oldContent, newContent }).catch(() => {});
    };
    return {
      handlers: {
        'notifications/log_event': ({ eventName, eventData }) =>
          logs.take(IDE, { logger: show(eventName), data: eventData }),
      },
      opened: () => void edits?.listeners.add(tell),
      closed: () => void edits?.listeners.delete(tell),
    };
  };
}

/** `/ide`: connects to the editor of this folder; with several, asks which. */
export function ideCommand(scopes: Scopes): Command {
  return {
    help: '/ide [off]                connect to the editor that has this folder open',
    run: async ([word], { manager, agent, person, screen }) => {
      const editors = word === 'off' ? [] : scopes.editors();
      if (word !== 'off' && editors.length === 0)
        throw new Error(
          'no editor with our kind of extension has this folder open (we looked in ~/.claude/ide)',
        );
      const editor = editors.length > 1 ? await which(person, editors) : editors[0];
      if (word !== 'off' && !editor) return;
      scopes.editor = editor;
      await manager.reload();
      agent.startUp.forget();
      await agent.connect();
      const { state, reason = '' } = manager.status().find(({ name }) => name === IDE) ?? {};
      const isThere = editor && state === 'connected';
      if (editor && !isThere) throw new Error(`${quoted(editor.name)} is ${state}: ${reason}`);
      screen.print(editor ? `connected to ${quoted(editor.name)}` : 'no editor any more');
    },
    complete: () => ['off'],
  };
}

const which = (person: Person, editors: RunningEditor[]) =>
  oneOfFew(person, 'Several editors have this folder open:', editors, ({ name, folders }) =>
    [name, ...folders].map(quoted).join(', '),
  );
