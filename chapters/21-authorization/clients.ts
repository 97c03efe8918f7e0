// clients.ts: who are we to an authorization server? Somebody it knows, a document that it can read, or somebody whom
// it gets to know now, in that order.

import { readFileSync, statSync } from 'node:fs';
import { asObject, excerpt, isLoopback, isObject, McpError, type Json } from '../../mcp.ts';
import { keepSecrets } from '../17-the-gate/safe-text.ts';
import type { Metadata } from './discovery.ts';
import { clientAssertion } from './proof.ts';
import type { Fetcher } from './fetcher.ts';
import { validSeconds, type OAuthClient } from './tokens.ts';

/** The field "oauth" of a server's configuration. Everything in it may be left out. */
export type OAuthConfig = {
  issuer?: string; // the only one that may see what stands here
  clientId?: string; // under which we are known there
  clientSecret?: string;
  privateKey?: string; // instead of a secret, as PEM
  privateKeyFile?: string;
  keyId?: string;
  clientMetadataUrl?: string; // where a document about us is, for those who read it
  scopes?: string; // instead of those that the server asks for, and all that it can get by itself
  redirectUri?: string; // such as http://localhost:8080/callback, if that is how we are known
  callbackPort?: number;
  dpop?: boolean; // also if the server does not ask for it
  grant?: 'authorization_code' | 'client_credentials' | 'id-jag' | 'workload';
  /** The identity provider that writes an identity assertion (ID-JAG) for its user. */
  idp?: {
    issuer: string;
    tokenEndpoint?: string;
    clientId: string;
    clientSecret?: string;
    idToken?: string;
  };
  assertion?: string; // by which a platform says who a program is
  assertionFile?: string;
  authServerMetadataUrl?: string; // where the authorization server's document is, if nobody else says it rightly
};

const TEXTS = [
  'issuer',
  'clientId',
  'clientSecret',
  'privateKey',
  'privateKeyFile',
  'keyId',
  'clientMetadataUrl',
  'scopes',
  'redirectUri',
  'assertion',
  'assertionFile',
  'authServerMetadataUrl',
];
const MAX_FILE_BYTES = 2 ** 16;
const MAX_ID = 2000; // it is part of an address
const GRANTS = ['authorization_code', 'client_credentials', 'id-jag', 'workload'];

/** One login at an identity provider for all servers whose entries say `"oauth": { "xaa": true }`.
 *  Where that is, the user's settings say once, as "xaaIdp"; an entry cannot name another. */
export type Idp = () => unknown;

export function checkedOAuth(
  serverName: string,
  { oauth: given = {} }: Json,
  idpSetting: Idp = () => undefined,
): OAuthConfig {
  const wrong = (what: string) => new McpError('config', `MCP server "${serverName}": ${what}`);
  const words = asObject(given);
  const oauth = words.xaa === true ? withIdp(words, idpSetting(), wrong) : words;
  const { authServerMetadataUrl: document = 'https:' } = oauth;
  if (
    !/^https:/.test(`${document}`) &&
    !(URL.canParse(`${document}`) && isLoopback(new URL(`${document}`)))
  )
    throw wrong('"authServerMetadataUrl" in "oauth" is not an address that begins with https://');
  const odd = TEXTS.find((name) => typeof (oauth[name] ?? '') !== 'string');
  if (odd) throw wrong(`"${odd}" in "oauth" is not a string`);
  const { grant = GRANTS[0], idp, callbackPort = 0, redirectUri } = oauth;
  if (!GRANTS.includes(`${grant}`))
    throw wrong(`"grant" in "oauth" is none of ${GRANTS.join(', ')}`);
  const isMachine = grant === 'client_credentials' || grant === 'id-jag';
  if (isMachine && !oauth.clientId)
    throw wrong(`"oauth" with the grant ${grant} needs a "clientId"`);
  const isIdp = isObject(idp) && typeof idp.issuer === 'string' && typeof idp.clientId === 'string';
  if (grant === 'id-jag' && !isIdp) throw wrong('"idp" in "oauth" needs "issuer" and "clientId"');
  // It sees who you are, and a project could name anybody's.
  const originOf = (address: unknown) =>
    URL.canParse(`${address}`) ? new URL(`${address}`).origin : undefined;
  if (
    isIdp &&
    idp.tokenEndpoint !== undefined &&
    originOf(idp.tokenEndpoint) !== originOf(idp.issuer)
  )
    throw wrong('"tokenEndpoint" of "idp" in "oauth" is not at its "issuer"');
  if (!Number.isInteger(callbackPort) || Number(callbackPort) < 0 || Number(callbackPort) > 65_535)
    throw wrong('"callbackPort" in "oauth" is not a port');
  const local = /^http:\/\/(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?\/[\w/.-]*$/;
  if (redirectUri !== undefined && !local.test(`${redirectUri}`))
    throw wrong(
      '"redirectUri" in "oauth" is not an address on this machine, such as http://127.0.0.1:8080/callback',
    );
  return oauth as OAuthConfig;
}

function withIdp(
  { xaa, ...oauth }: Json,
  setting: unknown,
  wrong: (what: string) => McpError,
): Json {
  const { issuer, clientId, clientSecret, callbackPort } = asObject(setting);
  if (typeof issuer !== 'string' || typeof clientId !== 'string')
    throw wrong(
      '"xaa" in "oauth" needs your identity provider: ' +
        '"xaaIdp": {"issuer": "https://…", "clientId": "…"} in your settings',
    );
  const idp = { issuer, clientId, ...(typeof clientSecret === 'string' && { clientSecret }) };
  return {
    ...(callbackPort !== undefined && { callbackPort }),
    ...oauth,
    grant: 'id-jag',
    idp,
  };
}

export async function chooseClient(
  fetcher: Fetcher,
  metadata: Metadata,
  config: OAuthConfig,
  redirectUri: string,
  scope: string[],
  known?: OAuthClient,
): Promise<OAuthClient> {
  const { clientId, clientSecret, clientMetadataUrl } = config;
  const offered = offeredMethods(metadata);
  if (clientId && keyOf(config)) return { id: clientId, method: 'private_key_jwt' };
  if (clientId && clientSecret)
    return { id: clientId, secret: clientSecret, method: withSecret(offered) };
  if (clientId || config.grant === 'workload') return { id: clientId ?? '', method: 'none' };
  if (clientMetadataUrl && metadata.client_id_metadata_document_supported === true)
    return { id: clientMetadataUrl, method: 'none' };
  const isGood = known?.redirectUri === redirectUri && (known?.expiresAt ?? Infinity) > Date.now();
  return known && isGood ? known : register(fetcher, metadata, redirectUri, scope);
}

/** In this order: a program on somebody's desk cannot keep a secret anyway. */
const METHODS = ['none', 'client_secret_basic', 'client_secret_post'];

function offeredMethods({ token_endpoint_auth_methods_supported: list }: Metadata): unknown[] {
  return Array.isArray(list) ? list : METHODS;
}

const withSecret = (offered: unknown[]) =>
  METHODS.slice(1).find((method) => offered.includes(method)) ?? 'client_secret_basic';

/** Dynamic client registration (RFC 7591): we introduce ourselves, and get an id. */
async function register(
  fetcher: Fetcher,
  metadata: Metadata,
  redirectUri: string,
  scope: string[],
): Promise<OAuthClient> {
  const { registration_endpoint: endpoint, issuer } = metadata;
  const byHand =
    `Register a client there by hand, and write into the server's entry: ` +
    `"oauth": { "clientId": "…", "redirectUri": "${redirectUri}" }`;
  if (endpoint === undefined)
    throw fetcher.error(`can be used by clients that ${issuer} knows. ${byHand}`);
  const wanted = METHODS.find((method) => offeredMethods(metadata).includes(method));
  if (!wanted)
    throw fetcher.error(
      `has an authorization server (${issuer}) that wants another proof than we have`,
    );
  const listed: unknown[] = Array.isArray(metadata.scopes_supported)
    ? metadata.scopes_supported
    : [];
  const about = {
    client_name: 'mcp-by-hand',
    application_type: 'native',
    redirect_uris: [redirectUri],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: wanted,
    // Some give a client only what it has named here; others register nobody who names what is not on their list.
    ...(scope.length > 0 &&
      scope.every((each) => listed.includes(each)) && { scope: scope.join(' ') }),
  };
  const headers = { 'content-type': 'application/json' };
  const { status, body = {} } = await fetcher.fetch(endpoint, {
    method: 'POST',
    headers,
    body: JSON.stringify(about),
  });
  const {
    client_id: id,
    client_secret: secret,
    client_secret_expires_at: end,
    token_endpoint_auth_method,
  } = body;
  const isId = status < 400 && typeof id === 'string' && id.length <= MAX_ID;
  if (!isId && metadata.isGuess)
    throw fetcher.error(
      'wants a login, but does not say where. If you have a key for it, put it into "headers"',
    );
  if (!isId) {
    const why = excerpt(body.error_description ?? body.error ?? `HTTP ${status}`);
    throw fetcher.error(
      `has an authorization server (${issuer}) that does not register us: ${why}. ${byHand}`,
    );
  }
  keepSecrets(issuer, typeof secret === 'string' ? secret : undefined);
  const endsAt = validSeconds(end);
  const usual = typeof secret === 'string' ? withSecret(offeredMethods(metadata)) : wanted;
  return {
    id,
    method: typeof token_endpoint_auth_method === 'string' ? token_endpoint_auth_method : usual,
    redirectUri,
    ...(typeof secret === 'string' && { secret }),
    ...(endsAt && { expiresAt: endsAt * 1000 }),
  };
}

const keyOf = ({ privateKey, privateKeyFile }: OAuthConfig) =>
  privateKey ?? (privateKeyFile ? readSmallFile(privateKeyFile) : undefined);

/** A configuration can name any file, also one that has no end. */
export function readSmallFile(file: string): string {
  const stat = statSync(file);
  if (!stat.isFile() || stat.size > MAX_FILE_BYTES)
    throw new Error(`${file} is not a file of the usual size`);
  return readFileSync(file, 'utf8');
}

type Texts = Record<string, string>;

/** A form, sent by us and nobody else: a secret, or a signature, is in it or beside it. The issuer is its only reader. */
export function signedForm(client: OAuthClient, config: OAuthConfig, issuer: string, form: Texts) {
  const { headers, form: added } = authentication(client, config, issuer);
  const type = { 'content-type': 'application/x-www-form-urlencoded' };
  return {
    method: 'POST',
    headers: { ...headers, ...type },
    body: `${new URLSearchParams({ ...form, ...added })}`,
  };
}

function authentication(
  client: OAuthClient,
  config: OAuthConfig,
  issuer: string,
): { headers: Texts; form: Texts } {
  const { id, secret = '', method } = client;
  const encoded = (text: string) => new URLSearchParams({ '': text }).toString().slice(1); // first as in a form
  const basic = `Basic ${Buffer.from(`${encoded(id)}:${encoded(secret)}`).toString('base64')}`;
  const none = { headers: {}, form: {} };
  keepSecrets(issuer, secret, basic.slice(6));
  if (method === 'client_secret_basic') return { ...none, headers: { authorization: basic } };
  if (method === 'client_secret_post')
    return { ...none, form: { client_id: id, client_secret: secret } };
  if (method !== 'private_key_jwt') return id ? { ...none, form: { client_id: id } } : none;
  const type = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';
  const assertion = clientAssertion(id, issuer, keyOf(config) ?? '', config.keyId);
  keepSecrets(issuer, assertion);
  return {
    ...none,
    form: { client_id: id, client_assertion_type: type, client_assertion: assertion },
  };
}
