// What the tests of chapter 21 ask about a login: who was asked for what, and what is kept.

import { join } from 'node:path';
import {
  authorizationServer,
  locked,
  protectedServer,
  said,
  tokenIn,
  type AuthorizationServer,
  type Heard,
  type Way,
} from './oauth-servers.ts';

export const grantsOf = (as: AuthorizationServer) =>
  as.asked('POST /token').map(({ form }) => form.grant_type);
export const isIn = (as: AuthorizationServer, heard: Heard) => as.live.has(tokenIn(heard) ?? '');
export const refreshes = (as: AuthorizationServer) =>
  grantsOf(as).filter((grant) => grant === 'refresh_token').length;
export const storeIn = (home: string) => join(home, '.mcp-by-hand', 'logins.json');

export const WELL_KNOWN = '/.well-known/oauth-protected-resource';

export const bytesOf = (basic = '') =>
  Buffer.from(basic.replace('Basic ', ''), 'base64').toString();
export const decoded = (basic?: string) =>
  bytesOf(basic)
    .split(':')
    .map((part) => new URLSearchParams(`p=${part}`).get('p'));

/** Wants `basic` for everything, and for a call what `needs` says. */
export async function stepping(
  needs: (heard: Heard) => string | Promise<string>,
  more: Parameters<typeof authorizationServer>[0] = {},
) {
  const as = await authorizationServer(more);
  const granted = new Map<string, string[]>();
  const asked = () => as.asked('/authorize').at(-1)!.query.scope?.split(' ') ?? [];
  as.ways['POST /token'] = () => {
    const answer = as.issue();
    granted.set(answer.access_token as string, asked());
    return said(answer);
  };
  const gate: Way = async (heard) => {
    const scopes = granted.get(tokenIn(heard) ?? '');
    const needed = heard.json.method === 'tools/call' ? await needs(heard) : 'basic';
    if (!scopes) return locked('Bearer scope="basic"');
    return scopes.includes(needed)
      ? undefined
      : locked(`Bearer error="insufficient_scope", scope="${needed}"`, 403);
  };
  const server = await protectedServer({ as, gate, prm: { scopes_supported: ['decoy', 'admin'] } });
  return { as, server };
}

export const FIFTY = Array.from({ length: 50 }, (_, n) => n);
