// server-card.ts: what a client may know of a server before it connects (SEP-2127): its name and its
// address. Anybody may read it, so it names no tool and no folder; and behind a token no address.

import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { McpError, REVISIONS } from '../../mcp.ts';
import { STATELESS } from '../22-no-handshake/era.ts';
import type { ServerOptions } from './server.ts';

export type CardOptions = {
  name: string; // com.example/weather: the domain backwards, and a name in it
  description: string; // what the server is for, in 100 characters
  url?: string; // where clients outside find it, if a proxy is between
};
const CARD_PATH = '/mcp/server-card';
const CATALOG_PATH = '/.well-known/ai-catalog.json';
const CATALOG_TYPE = 'application/ai-catalog+json';
const CARD_TYPE = 'application/mcp-server-card+json';
const NAME = /^([\w-]+(\.[\w-]+)*)\/([\w.-]+)$/;
const SCHEMA = 'https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json';
const READABLE_BY_ALL = {
  'access-control-allow-origin': '*', // it knows nothing that is not for everybody
  'access-control-allow-methods': 'GET',
  'access-control-allow-headers': 'Content-Type, If-None-Match',
  'access-control-expose-headers': 'ETag',
};

export class ServerCard {
  readonly isPublic: boolean;
  private options: CardOptions;
  private server: ServerOptions;

  constructor(options: CardOptions, server: ServerOptions, isPublic: boolean) {
    const { name } = options;
    if (!NAME.test(name) || name.length > 200)
      throw new McpError('config', `${name} is no name for a card, such as com.example/weather`);

    this.options = options;
    this.server = server;
    this.isPublic = isPublic;
  }

  has(path: string): boolean {
    return path === CARD_PATH || (path === CATALOG_PATH && this.isPublic);
  }

  /** For a path that it has, and a host that was checked. */
  answer(method: string, path: string, headers: IncomingHttpHeaders) {
    const url = this.options.url ?? `http://${headers.host}/mcp`;
    const body = JSON.stringify(path === CARD_PATH ? this.card(url) : this.catalog(url));
    const etag = `"${createHash('sha256').update(body).digest('base64url')}"`;
    const open = this.isPublic ? READABLE_BY_ALL : {};
    if (method === 'OPTIONS') return { status: 204, headers: open };
    if (method !== 'GET') return { status: 405, headers: { ...open, allow: 'GET' } };
    const whose = this.isPublic ? 'public' : 'private';
    const kept = { ...open, etag, 'cache-control': `${whose}, max-age=3600` };
    if (headers['if-none-match'] === etag) return { status: 304, headers: kept };
    const type = path === CARD_PATH ? CARD_TYPE : CATALOG_TYPE;
    return { status: 200, headers: { ...kept, 'content-type': type }, body };
  }

  private card(url: string) {
    const { name, description } = this.options;
    const { version, title } = this.server;
    const supportedProtocolVersions = [...STATELESS, ...REVISIONS];
    const remotes = [{ type: 'streamable-http', url, supportedProtocolVersions }];
    const optional = { ...(title && { title }), ...(this.isPublic && { remotes }) };
    return { $schema: SCHEMA, name, version, description: description.slice(0, 100), ...optional };
  }

  /** By which a client that knows only a domain finds the card. */
  private catalog(url: string) {
    const [, domain = '', , name] = NAME.exec(this.options.name)!;
    const identifier = `urn:air:${domain.split('.').reverse().join('.')}:mcp:${name}`;
    const entry = { identifier, type: CARD_TYPE, url: `${url}/server-card` };
    return { specVersion: '1.0', entries: [entry] };
  }
}
