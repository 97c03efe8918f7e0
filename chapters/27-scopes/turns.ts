// turns.ts: how many servers start side by side. A local one wants a processor of ours for a moment,
// a remote one only waits; so each kind has its own number.

import { asObject, transportType, type ManagerOptions, type ServerEntry } from '../../mcp.ts';
import { atMost } from '../16-hands/aside.ts';

type TurnLimits = { local: number; remote: number };

const LOCAL = 8; // measured: see the page
const REMOTE = 32;

/** The numbers that Claude Code's users may have set, or ours. */
export function turnLimits(env: NodeJS.ProcessEnv = process.env): TurnLimits {
  const count = (name: string, usual: number) => {
    const given = Number(env[name]);
    return Number.isSafeInteger(given) && given > 0 ? given : usual;
  };
  return {
    local: count('MCP_SERVER_CONNECTION_BATCH_SIZE', LOCAL),
    remote: count('MCP_REMOTE_SERVER_CONNECTION_BATCH_SIZE', REMOTE),
  };
}

/** How long all servers together may take to end, in milliseconds. */
export function goodbyeIn({ MCP_GOODBYE }: NodeJS.ProcessEnv): number | undefined {
  const given = Number(MCP_GOODBYE);
  return MCP_GOODBYE && given >= 0 ? given : undefined;
}

/** For the manager's option `inTurn`. What is part of this program waits for nothing. */
export function inTurn(limits: TurnLimits = turnLimits()): NonNullable<ManagerOptions['inTurn']> {
  const { local, remote } = limits;
  const whenFree = { local: atMost(local), remote: atMost(remote), here: atMost(Infinity) };
  return (entry, start) => whenFree[kindOf(entry)](start);
}

function kindOf({ config }: ServerEntry) {
  const type = transportType(asObject(config));
  if (type === 'stdio') return 'local';
  return ['in-process', 'sdk'].includes(type) ? 'here' : 'remote';
}
