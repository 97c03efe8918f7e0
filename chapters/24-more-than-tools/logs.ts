// logs.ts: what servers log. Kept for /logs; what is a warning or worse is said at once.

import { asObject, copyOf, isStateless, now, show, type Extension, type Json } from '../../mcp.ts';
import { quoted, visible } from '../17-the-gate/safe-text.ts';
import type { Host } from '../19-the-terminal/host.ts';
import { setLogLevel } from './offers.ts';

export const LEVELS = [
  'debug',
  'info',
  'notice',
  'warning',
  'error',
  'critical',
  'alert',
  'emergency',
];
const MAX_KEPT = 500; // of each server
const MAX_TEXT = 2000; // characters
const MAX_SHOWN = 200;
const MAX_A_MINUTE = 5;
const WARNING = LEVELS.indexOf('warning');

export type Log = { at: Date; level: string; text: string };
type LogRate = { times: number[]; isSilenced: boolean };

/** The program holds one: a log outlives the connection it came by. */
export class Logs {
  private kept = new Map<string, Log[]>();
  private told = new Map<string, LogRate>();
  readonly levels = new Map<string, string>(); // that the user has asked for, by server
  private host: Pick<Host, 'person' | 'warn'>;

  constructor(host: Pick<Host, 'person' | 'warn'>) {
    this.host = host;
  }

  /** `data` may be any JSON, and `level` anything. */
  take(server: string, { level, logger, data }: Json): void {
    const text = typeof data === 'string' ? data : (JSON.stringify(data) ?? '');
    const from = typeof logger === 'string' && logger !== '' ? `${logger.slice(0, 100)}: ` : '';
    const line = copyOf(from + text.slice(0, MAX_TEXT));
    const known = LEVELS.includes(show(level)) ? show(level) : 'info';
    const log = { at: new Date(), level: known, text: visible(line) };
    const logs = this.kept.get(server) ?? [];
    logs.push(log);
    this.kept.set(server, logs.slice(-MAX_KEPT));
    if (LEVELS.indexOf(known) >= WARNING) this.tellNow(server, log);
  }

  /** A few in a minute, and then one line that says where the others are. */
  private tellNow(server: string, { level, text }: Log) {
    const { times, isSilenced } = this.told.get(server) ?? { times: [], isSilenced: false };
    const lately = times.filter((time) => time > now() - 60_000);
    const isTooMuch = lately.length >= MAX_A_MINUTE;
    if (!isTooMuch) lately.push(now());
    this.told.set(server, { times: lately, isSilenced: isTooMuch });
    const line = text.replaceAll('\n', ' ');
    const short = line.length > MAX_SHOWN ? `${line.slice(0, MAX_SHOWN)}…` : line;
    const { person, warn } = this.host;
    if (!person.isThere) return;
    if (!isTooMuch) warn(`${quoted(server)} logs (${level}): ${short}`);
    else if (!isSilenced) warn(`${quoted(server)} logs more than that; /logs shows it`);
  }

  /** The oldest first; of one server, or of all that have logged. */
  of(server: string, level = 'debug'): Log[] {
    const least = LEVELS.indexOf(level);
    const logs = this.kept.get(server) ?? [];
    return logs.filter((log) => LEVELS.indexOf(log.level) >= least);
  }

  get servers(): string[] {
    return [...this.kept.keys()];
  }
}

/** Since 2026-07-28 a server logs nothing unless a request says from which level on, so warnings are
 *  asked for. Before, it logs what it likes until it is told. */
export function keepLogs(logs: Logs): Extension {
  return function keepLogs(connection) {
    const { serverName } = connection;
    return {
      handlers: { 'notifications/message': (params) => logs.take(serverName, asObject(params)) },
      opened: async (server) => {
        const usual = isStateless(server) ? 'warning' : undefined;
        const level = logs.levels.get(serverName) ?? usual;
        if (level && server.capabilities?.logging) await setLogLevel(connection, level);
      },
    };
  };
}
