// signature.ts: what an entry starts, whatever it is called. Plugins and connectors bring servers
// that the user may have already, under another name.

import {
  asList,
  asObject,
  fillIn,
  isObject,
  transportType,
  type Json,
  type ServerEntry,
} from '../../mcp.ts';

/** `account`: with what it starts. Two accounts at one service are two servers. */
export type Signature = { base: string; account: string };

/** Undefined for what is part of a program. */
export function signatureOf(entry: ServerEntry, env = process.env): Signature | undefined {
  const config = filledIn(entry, env);
  const type = transportType(config);
  const { command, args = [], url } = config;
  if (type === 'stdio') {
    const words = [command, ...asList(args)];
    return { base: JSON.stringify(['stdio', ...words]), account: pairsText(config.env) };
  }
  if (typeof url !== 'string' || !URL.canParse(url)) return undefined;
  return { base: JSON.stringify(['url', normalised(url)]), account: pairsText(config.headers) };
}

/** Of two of which one names no account, it may well be the same. */
export const isSameSignature = (one: Signature, two: Signature) =>
  one.base === two.base && (!one.account || !two.account || one.account === two.account);

/** Scheme and host in lower case, no default port, no fragment: `URL` does all but the last. */
function normalised(address: string) {
  const url = new URL(address);
  url.hash = '';
  return url.href;
}

function pairsText(values: unknown) {
  const pairs = Object.entries(asObject(values)).sort(([one], [two]) => (one < two ? -1 : 1));
  return pairs.length > 0 ? JSON.stringify(pairs) : '';
}

/** As it is written, if a variable is not set: then it does not start anyway. */
export function filledIn(entry: ServerEntry, env: NodeJS.ProcessEnv): Json {
  if (!isObject(entry.config)) return {};
  try {
    return fillIn(entry, env);
  } catch {
    return entry.config;
  }
}
