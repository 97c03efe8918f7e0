// variables.ts: ${VAR} in an entry.

import { type Json, asObject, show } from '../01-a-pipe/messages.ts';
import type { ServerEntry } from './config.ts';
import { configError } from './entry.ts';

const MAX_USED = 1000; // each may be replaced by a text of megabytes

/** The configuration with a value for every ${VAR} and ${VAR:-default}. A project's file cannot
 *  read the variables in `hidden`, such as the key of a model. */
export function fillIn(entry: ServerEntry, env = process.env, hidden: string[] = []): Json {
  const used: string[] = []; // the variables whose values were taken
  const valueOf = (_: string, name: string, fallback?: string) => {
    const upper = name.toUpperCase();
    const isKey = hidden.some((key) => key.toUpperCase() === upper);
    const isHidden = isKey && entry.authority === 'project';
    const isSet = Object.hasOwn(env, name) && !isHidden;
    if (isSet && env[name]) {
      if (used.push(name) > MAX_USED) throw configError(entry, `it has over ${MAX_USED} variables`);
      return env[name];
    }
    if (fallback !== undefined) return fallback;
    if (isSet) return '';
    const why = isHidden ? 'is the key of a model, which a project cannot read' : 'is not set';
    throw configError(entry, `\${${name}} ${why}`);
  };
  // Cut at each "}", before which one variable can end. By one expression for the whole text, each
  // "${" that nothing ends would cost a look at all the rest.
  const variable = /\$\{(\w+)(?::-([^]*))?$/;
  const fill = (text: string) => {
    const parts = text.split('}');
    const rest = parts.pop()!;
    const filled = parts.map((part) => {
      return variable.test(part) ? part.replace(variable, valueOf) : `${part}}`;
    });
    return filled.join('') + rest;
  };
  // Through JSON and back: the reviver meets every string of the entry, however deep.
  const config: Json = JSON.parse(JSON.stringify(entry.config), (_, value) =>
    typeof value === 'string' ? fill(value) : value,
  );
  if (!isExposed(asObject(config).url)) return config;
  const { url, headers = {} } = entry.config;
  const sent = JSON.stringify([headers, behindHost(show(url))]);
  used.length = 0;
  fill(sent);
  if (used.length === 0) return config;
  const to = `${new URL(show(config.url)).host} in clear text, readable on the way`;
  throw configError(entry, `\${${used[0]}} would go to ${to}; use https:// or wss://`);
}

/** Can what is sent to this address be read on the way? */
export function isExposed(address: unknown): boolean {
  const text = address instanceof URL ? address.href : show(address);
  if (!URL.canParse(text)) return false;
  const url = new URL(text);
  const isClear = url.protocol === 'http:' || url.protocol === 'ws:';
  return isClear && !isLoopback(url);
}

export const isLoopback = ({ hostname }: URL) =>
  /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);

/** A variable that contains the host is an address; what comes after it may be a secret. (To a
 *  browser, and to us, a backslash is a slash.) */
const behindHost = (url: string) => url.replace(/^[^/\\?#]*([/\\]{2}[^/\\?#]*)?/, '');
