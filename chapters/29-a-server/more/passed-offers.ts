// passed-offers.ts: `serve --servers`, and what the user's servers have besides tools. A resource keeps its
// address, since results name it; a prompt gets the name of its server in front.

import { asObject, RpcError, type Json } from '../../../mcp.ts';
import {
  listPrompts,
  listResources,
  listResourceTemplates,
  Offers,
  subscribe,
} from '../../24-more-than-tools/offers.ts';
import type { PassedOn } from '../passed-on.ts';
import type { ServerCall } from '../server-call.ts';
import type { McpServer, Method, ServerOptions } from '../server.ts';
import { matchTemplate } from '../protocol/server-rows.ts';

/** Requests something of one of the servers, if that is allowed. */
type Request = (server: string, method: string, params: Json, call: ServerCall) => Promise<Json>;

const LISTS = [
  ['resources/list', 'resources', 'uri', listResources],
  ['resources/templates/list', 'resourceTemplates', 'uriTemplate', listResourceTemplates],
  ['prompts/list', 'prompts', 'name', listPrompts],
] as const;
type ListRow = (typeof LISTS)[number];

/** For the server that is made of it. */
export function passedOffers(
  passedOn: PassedOn,
  request: Request,
  server: () => McpServer,
): Partial<ServerOptions> {
  const { manager, routes } = passedOn;
  const offers = new Offers(manager);

  const list = async ([, key, id, lister]: ListRow): Promise<Json[]> => {
    const rows = await offers.gather<Json>(key, lister);
    return rows.map(({ server: owner, ...row }) => {
      const name = `${row[id]}`;
      const shown = id === 'name' ? `${owner}__${name}` : name;
      routes.set(shown, { owner, name });
      return { ...row, [id]: shown };
    });
  };
  /** Of what was listed, has a template, or was named in a result. */
  const routeOf = async (wanted: unknown) => {
    const text = `${wanted}`;
    const known = () =>
      routes.get(text) ?? [...routes].find(([each]) => matchTemplate(each, text))?.[1];
    if (!known()) await Promise.all(LISTS.map(list)); // it may be a client of yesterday
    const route = known();
    if (route) return route;
    throw new RpcError(-32602, `Not found: ${text.slice(0, 200)}`, { uri: text });
  };
  const listing = (row: ListRow): [string, Method] => [
    row[0],
    async (params) => server().page(row[1], await list(row), params),
  ];
  const methods: Record<string, Method> = {
    ...Object.fromEntries(LISTS.map(listing)),
    'resources/read': async (params, call) => {
      const { owner } = await routeOf(params.uri);
      return request(owner, 'resources/read', { uri: params.uri }, call);
    },
    'prompts/get': async (params, call) => {
      const { owner, name } = await routeOf(params.name);
      return request(owner, 'prompts/get', { ...params, name }, call);
    },
    'completion/complete': async (params) => {
      const { name: ours, ...ref } = asObject(params.ref);
      const { owner, name } = await routeOf(ours ?? ref.uri);
      const own = { ...params, ref: ours === undefined ? ref : { ...ref, name } };
      return manager.of(owner).request('completion/complete', own);
    },
  };
  const watched = (uri: string) =>
    void routeOf(uri)
      .then(({ owner }) => subscribe(manager.of(owner), uri))
      .catch(() => {}); // of changes of this one nobody can tell
  return { resources: [], prompts: [], methods, watched };
}
