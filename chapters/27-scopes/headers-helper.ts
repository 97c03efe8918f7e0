// headers-helper.ts: headers that are not in a file. `headersHelper` of an entry is a command that
// prints them; `claudeai-proxy` is HTTP with a bearer that a command of the user's settings prints.

import {
  isExposed,
  isObject,
  MAPPING,
  McpError,
  ANY_TEXT,
  textOf,
  type Json,
  type Transport,
  type TransportFactory,
} from '../../mcp.ts';
import { keepSecrets } from '../17-the-gate/safe-text.ts';
import { checkedAddress, httpTransportsBy } from '../20-streamable-http/streamable.ts';
import type { Fetch, HeaderFields } from '../20-streamable-http/reply.ts';
import { fetchHttp } from '../20-streamable-http/request.ts';
import { WebSocketTransport } from '../25-other-pipes/websocket.ts';
import { isLine, outputOf, parsedQuietly, type HelperCommand } from './helper.ts';

type Get = () => Promise<HeaderFields>;

/** With headers that are fetched once and, if the server refuses them, once more. */
function fetchWith(get: Get, refusals: number[]): Fetch {
  let known: Promise<HeaderFields> | undefined;
  return async (who, url, options) => {
    for (let tries = 1; ; tries++) {
      const used = (known ??= get());
      const own = await used.catch((error) => {
        known = undefined; // the next request tries again
        throw error;
      });
      const reply = await fetchHttp(who, url, {
        ...options,
        headers: { ...options.headers, ...own },
      });
      if (!refusals.includes(reply.status) || tries === 2) return reply;
      reply.body.destroy();
      if (known === used) known = undefined; // of many that are refused at once, one asks again
    }
  };
}

/** Runs the helper of an entry. */
async function helped(serverName: string, config: Json) {
  const { headersHelper, url, cwd } = config;
  const fail = (why: string) =>
    new McpError(
      'config',
      `MCP server "${serverName}": its "headersHelper" gave no headers: ${why}`,
    );
  if (isExposed(url))
    throw fail('they would go to another machine in clear text; use https:// or wss://');
  try {
    const env = {
      CLAUDE_CODE_MCP_SERVER_NAME: serverName,
      CLAUDE_CODE_MCP_SERVER_URL: `${url}`,
    };
    const place = { env, ...(typeof cwd === 'string' && cwd !== '' && { cwd }) };
    return headersFrom(
      serverName,
      parsedQuietly(await outputOf(headersHelper as HelperCommand, place)),
    );
  } catch (error) {
    throw fail(textOf(error));
  }
}

/** Names in lower case, values without line ends: what is printed cannot forge another header. */
export function headersFrom(serverName: string, printed: unknown): HeaderFields {
  const isPair = ([name, value]: [string, unknown]) =>
    /^[\w!#$%&'*+.^`|~-]+$/.test(name) &&
    typeof value === 'string' &&
    /^[\t\x20-\x7e\x80-\xff]*$/.test(value);
  if (!isObject(printed) || !Object.entries(printed).every(isPair))
    throw new Error('it printed something else than an object of texts');
  const pairs = Object.entries(printed).map(
    ([name, value]) => [name.toLowerCase(), value as string] as const,
  );
  for (const [, value] of pairs) keepSecrets(serverName, value, value.replace(/^\w+ /, ''));
  return Object.fromEntries(pairs);
}

/** The same transports, and a WebSocket, for entries that have a helper as well. */
export function withHelpers(given: Record<string, TransportFactory>): typeof given {
  const ws: TransportFactory = (...words) => new WebSocketTransport(...words);
  ws.words = { url: ANY_TEXT, headers: MAPPING };
  const transports = { ...given, ws };
  const http: typeof given = httpTransportsBy((name, config) =>
    fetchWith(() => helped(name, config), [401, 403]),
  );
  const helpedBy =
    (type: string, usual: TransportFactory): TransportFactory =>
    (name, config, maxBytes) => {
      if (config.headersHelper === undefined) return usual(name, config, maxBytes);
      const own = http[type];
      return own
        ? own(name, config, maxBytes)
        : afterwards(
            () => helped(name, config),
            (headers) =>
              usual(
                name,
                { ...config, headers: { ...(config.headers as Json), ...headers } },
                maxBytes,
              ),
          );
    };
  const headersHelper = { form: 'a command', fits: isLine };
  const all = Object.entries(transports).map(([type, usual]) => {
    const words = { ...usual.words, headersHelper, cwd: ANY_TEXT };
    return [type, Object.assign(helpedBy(type, usual), { words })];
  });
  return Object.fromEntries(all);
}

/** A transport that can be made only when its headers are known. */
function afterwards(get: Get, make: (headers: HeaderFields) => Transport): Transport {
  let inner: Transport | undefined;
  let isClosed = false;
  return {
    start: async (events) => {
      const made = make(await get());
      if (isClosed) throw new McpError('closed', 'it was closed before its headers were known');
      inner = made;
      await made.start(events);
    },
    send: (message, headers) => inner!.send(message, headers),
    close: async () => {
      isClosed = true;
      await inner?.close();
    },
    lastWords: () => inner?.lastWords?.() ?? '',
  };
}

/** `claudeai-proxy`: HTTP, with a bearer from a command that only the user's own settings name. */
export function bearerTransport(command: () => unknown): TransportFactory {
  return (serverName, config, maxBytes) => {
    const { url } = checkedAddress(serverName, config);
    const fail = (why: string) =>
      new McpError('auth', `MCP server "${serverName}" wants a token, and there is none: ${why}`);
    const get = async (): Promise<HeaderFields> => {
      const line = command();
      if (!isLine(line))
        throw fail('"claudeaiProxy": {"tokenCommand": ["…"]} is not in your settings');
      if (isExposed(url)) throw fail('it would go to another machine in clear text; use https://');
      const token = (
        await outputOf(line).catch((error) => Promise.reject(fail(textOf(error))))
      ).trim();
      if (!/^[\x21-\x7e]{1,16384}$/.test(token)) throw fail('the command printed none');
      return headersFrom(serverName, { authorization: `Bearer ${token}` });
    };
    return httpTransportsBy(() => fetchWith(get, [401])).http(serverName, config, maxBytes);
  };
}
