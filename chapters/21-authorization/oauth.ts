// oauth.ts: OAuth 2.1, the way to a token. The MCP server gives out none; it says who does.
//
//   401 ──→ whom to ask ──→ who are we to them ──→ a browser, and a code ──→ a token
//           discovery.ts    clients.ts             browser.ts
//
// login.ts goes this way when a request is refused, and sends the request again.

import { createHash, randomBytes } from 'node:crypto';
import { excerpt, isExposed, McpError, show, type Json } from '../../mcp.ts';
import { keepSecrets, Masker } from '../17-the-gate/safe-text.ts';
import { chooseClient, signedForm, type OAuthConfig } from './clients.ts';
import {
  metadataAt,
  findIssuer,
  findResource,
  ownIssuer,
  scopesIn,
  type Challenge,
  type Metadata,
} from './discovery.ts';
import { KeyProof } from './proof.ts';
import { Fetcher } from './fetcher.ts';
import {
  validSeconds,
  type OAuthClient,
  type StoredLogin,
  type Tokens,
  type TokenStore,
} from './tokens.ts';

/** A way through somebody's browser. `go` opens an address, and gives back where the browser was sent in the end: an
 *  address of ours that carries `state`. `close` tells the person how it went. */
export type UserAgent = {
  redirectUri: string;
  go(url: URL, state: string): Promise<URL>;
  close(words: string): void;
};
/** Prepares one. The address of ours is a wish, unless it is fixed. */
export type OpenUserAgent = (
  redirectUri: string | undefined,
  isFixed: boolean,
) => Promise<UserAgent>;

/** May a server have rights that "scopes" in its configuration does not name? */
export type ScopeConsent = (beyond: string[]) => Promise<boolean>;

export type Form = Record<string, string>;
export type Discovery = {
  metadata: Metadata;
  resource: string;
  scopes: string[];
  isBound: boolean;
};
/** What differs: the address at which we would like to listen, who we are, and what the code is good for. */
type CodeGrant<T> = {
  wish?: string;
  choose: (redirectUri: string) => Promise<OAuthClient>;
  redeem: (client: OAuthClient, form: Form) => Promise<T>;
};
/** What we ask of the token endpoint without a browser. Nothing, if a person has to agree first. */
export type MachineGrant = (
  oauth: OAuth,
  found: Discovery,
  scope: string[],
  openUserAgent?: OpenUserAgent,
) => Promise<Form | undefined>;
type OAuthOptions = {
  grant?: MachineGrant; // machines.ts has them
  trustsAnyIssuer?: boolean;
};
type Endpoint = { issuer: string; tokenEndpoint: unknown; client: OAuthClient };

export const DONE = 'You are logged in. You can close this page.';
export const FAILED = 'It did not work. The terminal says why.';

const MAX_ADDRESS = 32_000; // characters: what a command on Windows may have
const MAX_TOKEN = 2 ** 16; // characters: no server takes a header that is longer

const PASSING = /^(temporarily_unavailable|server_error|slow_down|HTTP \d+)$/;

/** An authorization server said no. `code` is its word for why. */
export class OAuthError extends McpError {
  override name = 'OAuthError';
  code: unknown;
  isPassing: boolean; // it does not say no for ever

  constructor(code: unknown, message: string, status = 400) {
    super('auth', message);
    this.code = code;
    this.isPassing = status === 429 || status >= 500 || PASSING.test(`${code}`);
  }
}

/** Everything that one MCP server's authorization takes, but for the moment when it is needed. */
export class OAuth {
  readonly server: string;
  readonly config: OAuthConfig;
  readonly store: TokenStore;
  proof?: KeyProof; // if tokens are bound to a key
  private url: URL;
  private who: string;
  private fetcher: Fetcher;
  private grant?: MachineGrant;
  private trustsAnyIssuer: boolean;

  constructor(
    server: string,
    url: URL,
    config: OAuthConfig,
    store: TokenStore,
    { grant, trustsAnyIssuer = false }: OAuthOptions = {},
  ) {
    this.server = server;
    this.url = url;
    this.config = config;
    this.store = store;
    this.grant = grant;
    this.trustsAnyIssuer = trustsAnyIssuer;
    this.who = `MCP server "${server}" (${url.origin})`;
    this.fetcher = new Fetcher(this.who, url);
  }

  // ── The whole way ──

  /** From a challenge to a token: by what a machine has, or through somebody's browser. */
  async obtain(
    challenge: Challenge,
    openUserAgent?: OpenUserAgent,
    consent?: ScopeConsent,
  ): Promise<StoredLogin> {
    if (isExposed(this.url))
      throw this.error(
        'would get our token over http://, where everybody can read it; use https://',
      );
    const found = await this.discover(challenge);
    const { metadata, resource } = found;
    const before = this.store.find(this.server, this.url.href, metadata.issuer);
    const scope = this.scopeFor(challenge, found, before?.tokens?.scope);
    await this.keepBelowCeiling(scope, consent);
    const isBound = challenge.scheme === 'dpop' || found.isBound || this.config.dpop;
    if (isBound) this.proof ??= new KeyProof(before?.key);
    const asked = { resource, ...(scope.length > 0 && { scope: scope.join(' ') }) };
    const agreeing = scope.includes('offline_access') && { prompt: 'consent' }; // else OpenID providers leave it out
    const grant = await this.grant?.(this, found, scope, openUserAgent);
    const redeem = async (client: OAuthClient, form: Form) => {
      const row = this.rowFor(found, client);
      return this.withTokens(row, await this.token(row, { ...form, resource }), scope);
    };
    if (grant) {
      const client = await chooseClient(this.fetcher, metadata, this.config, '', scope);
      return redeem(client, { ...grant, ...asked });
    }
    try {
      const choose = async (redirectUri: string) => {
        const client = await chooseClient(
          this.fetcher,
          metadata,
          this.config,
          redirectUri,
          scope,
          before?.client,
        );
        const isRegistered = client.redirectUri && !before?.tokens; // they know us from now on, however this ends
        if (isRegistered) this.store.keep(this.rowFor(found, client));
        return client;
      };
      const ways = { wish: before?.client.redirectUri, choose, redeem };
      return await this.askPerson(openUserAgent!, metadata, { ...asked, ...agreeing }, ways);
    } catch (error) {
      // By the person, and not by the server.
      const isNo = error instanceof OAuthError && error.code === 'access_denied';
      // Maybe they have forgotten us, and told only the person, who then stopped it: next time we register again.
      const latest = before && this.store.find(this.server, this.url.href, metadata.issuer);
      if (latest && !isNo)
        this.store.keep({ ...latest, client: { ...latest.client, redirectUri: undefined } });
      throw error;
    }
  }

  private async discover(challenge: Challenge): Promise<Discovery> {
    const { fetcher, config, url } = this;
    if (config.authServerMetadataUrl) return this.discoverAt(config.authServerMetadataUrl);
    const found = await findResource(fetcher, url, challenge.params.get('resource_metadata'));
    const { resource = url.href, issuers = [], scopes = [], isBound = false } = found ?? {};
    const named = issuers.length > 0 ? issuers : [url.origin]; // until 2025 a server was its own authorization server
    const known = this.store.find(this.server, url.href)?.issuer;
    const issuer = config.issuer ?? named.find((each) => each === known) ?? named[0]!;
    // Else whoever the server names would get what we have for somebody else.
    if (!named.includes(issuer))
      throw this.error(
        `wants us to log in at ${excerpt(named)}, but "oauth" in its configuration is for ${issuer}`,
      );
    if (this.hasSecret && !config.issuer && !this.trustsAnyIssuer)
      throw this.error(
        `names ${excerpt(issuer)} as its authorization server. If the secret in its "oauth" is for that ` +
          `one, write beside it: "issuer": ${excerpt(issuer)}`,
      );
    const metadata = found ? await findIssuer(fetcher, issuer) : await ownIssuer(fetcher, url);
    if (!metadata)
      throw this.error(`names the authorization server ${excerpt(issuer)}, which has no metadata`);
    return { metadata, resource, scopes, isBound };
  }

  /** By the one document that the configuration names: then what the server says of itself does not matter. */
  private async discoverAt(address: string): Promise<Discovery> {
    const metadata = await metadataAt(this.fetcher, address);
    if (!metadata)
      throw this.error(
        `has no metadata of an authorization server at ${excerpt(address)}, as its "oauth" says`,
      );
    const { issuer = metadata.issuer } = this.config;
    if (issuer !== metadata.issuer)
      throw this.error(
        `has metadata of ${excerpt(metadata.issuer)} at ${excerpt(address)}, but "oauth" in its configuration is for ${issuer}`,
      );
    if (
      this.hasSecret &&
      !this.config.issuer &&
      !this.trustsAnyIssuer &&
      new URL(issuer).origin !== new URL(address).origin
    )
      throw this.error(
        `has metadata at ${excerpt(address)} that names ${excerpt(issuer)}; if your secret is for that one, write "issuer" beside it`,
      );
    return {
      metadata,
      resource: this.url.href,
      scopes: scopesIn([metadata.scopes_supported ?? []].flat().join(' ')),
      isBound: false,
    };
  }

  get isMachine(): boolean {
    return (this.config.grant ?? 'authorization_code') !== 'authorization_code';
  }

  private get hasSecret(): boolean {
    const { clientSecret, privateKey, privateKeyFile, assertion, assertionFile } = this.config;
    return (
      (clientSecret ?? privateKey ?? privateKeyFile ?? assertion ?? assertionFile) !== undefined
    );
  }

  /** What the server asks for counts. What we had asked for before is kept, for it need not be part of that. */
  private scopeFor(challenge: Challenge, { metadata, scopes }: Discovery, before: string[] = []) {
    const challenged = scopesIn(challenge.params.get('scope'));
    const own = scopesIn(this.config.scopes);
    const first = own.length > 0 ? own : challenged.length > 0 ? challenged : scopes;
    const wanted = challenge.status === 403 ? [...before, ...challenged] : first;
    const all = metadata.scopes_supported;
    // It means: with a refresh token. Alone it would mean: and with nothing else.
    const mayStay =
      wanted.length > 0 && Array.isArray(all) && all.includes('offline_access') && !this.isMachine;
    return [...new Set([...wanted, ...(mayStay ? ['offline_access'] : [])])];
  }

  /** The scopes that the configuration does not name, if it names any. */
  beyondCeiling(scope: string[]): string[] {
    const ceiling = scopesIn(this.config.scopes);
    const mayStay = !this.isMachine; // a person says so in the browser
    const isAllowed = (each: string) =>
      ceiling.includes(each) || (mayStay && each === 'offline_access');
    return ceiling.length > 0 ? scope.filter((each) => !isAllowed(each)) : [];
  }

  /** A server may ask for more than the configuration names, and a person may grant it. Without
   *  one, what a machine may do would be for its servers to say. */
  private async keepBelowCeiling(scope: string[], consent: ScopeConsent = async () => false) {
    const beyond = this.beyondCeiling(scope);
    const isAgreed = beyond.length === 0 || (!this.isMachine && (await consent(beyond)));
    if (isAgreed) return;
    const more = beyond.map((each) => excerpt(each)).join(' ');
    throw this.error(
      `wants more rights (${more}) than "scopes" in its "oauth" has. ` +
        'If it shall have them, add them there',
    );
  }

  private rowFor({ metadata, resource }: Discovery, client: OAuthClient): StoredLogin {
    const { issuer, token_endpoint, revocation_endpoint: revocationEndpoint } = metadata;
    const tokenEndpoint = this.fetcher.checked(token_endpoint).href;
    const { idp } = this.config;
    return {
      server: this.server,
      url: this.url.href,
      issuer,
      client,
      resource,
      tokenEndpoint,
      ...(typeof revocationEndpoint === 'string' && { revocationEndpoint }),
      ...(idp && { company: { issuer: idp.issuer, client: idp.clientId } }),
    };
  }

  // ── Through somebody's browser ──

  /** Sends a person to the authorization server, redeems the code with which they come back, and tells them. */
  async askPerson<T>(
    openUserAgent: OpenUserAgent,
    metadata: Metadata,
    asked: Form,
    ways: CodeGrant<T>,
  ): Promise<T> {
    const { wish, choose, redeem } = ways;
    const methods = metadata.code_challenge_methods_supported;
    if (!Array.isArray(methods) || !methods.includes('S256'))
      throw this.error(
        `has an authorization server (${metadata.issuer}) without PKCE: others could use our code`,
      );
    const { redirectUri, callbackPort } = this.config;
    const fixed =
      redirectUri ?? (callbackPort ? `http://127.0.0.1:${callbackPort}/callback` : undefined);
    const { url } = await this.fetcher.allowed(metadata.authorization_endpoint);
    const userAgent = await openUserAgent(fixed ?? wish, fixed !== undefined);
    try {
      const client = await choose(userAgent.redirectUri);
      const [verifier, state] = [
        randomBytes(32).toString('base64url'),
        randomBytes(32).toString('base64url'),
      ];
      keepSecrets(this.server, verifier, state);
      const question = {
        response_type: 'code',
        client_id: client.id,
        redirect_uri: userAgent.redirectUri,
        state,
        code_challenge: createHash('sha256').update(verifier).digest('base64url'),
        code_challenge_method: 'S256',
        ...asked,
      };
      for (const [name, value] of Object.entries(question)) url.searchParams.set(name, value);
      if (url.href.length > MAX_ADDRESS) throw this.tooLong(url);
      const code = this.codeIn((await userAgent.go(url, state)).searchParams, metadata);
      keepSecrets(this.server, code);
      const grant = { grant_type: 'authorization_code', code, code_verifier: verifier };
      const redeemed = await redeem(client, { ...grant, redirect_uri: userAgent.redirectUri });
      userAgent.close(DONE);
      return redeemed;
    } catch (error) {
      userAgent.close(FAILED);
      throw error;
    }
  }

  private tooLong({ href, searchParams }: URL) {
    const { length } = scopesIn(searchParams.get('scope'));
    return this.error(
      `wants your browser to open an address of ${href.length} characters, with ` +
        `${length} scopes. To log in with a few of them, name them by "scopes" in its "oauth"`,
    );
  }

  /** The answer must come from whom we asked. If not, it is of no interest what it says, not even as an error. */
  private codeIn(answer: URLSearchParams, metadata: Metadata): string {
    const { issuer, authorization_response_iss_parameter_supported: saysWho } = metadata;
    if (repeatsParameter(answer))
      throw this.error(
        `was to be logged into at ${issuer}, but the answer says one thing twice. ` +
          'Nothing was sent',
      );
    const iss = answer.get('iss');
    if (iss === null ? saysWho === true : iss !== issuer)
      throw this.error(
        `was to be logged into at ${issuer}, but the answer does not come from there. Nothing was sent. ` +
          'Do not try again before you know why',
      );
    const error = answer.get('error');
    if (error !== null) throw this.refusal(issuer, error, answer.get('error_description'));
    const code = answer.get('code');
    if (!code)
      throw this.error(
        `was to be logged into at ${issuer}, which sent your browser back without a code`,
      );
    return code;
  }

  // ── The token endpoint ──

  async token({ issuer, tokenEndpoint, client }: Endpoint, form: Form): Promise<Json> {
    const url = this.fetcher.checked(tokenEndpoint);
    for (let tries = 1; ; tries++) {
      const what = signedForm(client, this.config, issuer, form); // each time: an assertion is good once
      if (this.proof) Object.assign(what.headers, { dpop: this.proof.for('POST', url) });
      const answer = await this.fetcher.fetch(tokenEndpoint, what);
      const { error = null, error_description: description } = answer.body ?? {};
      this.proof?.learn(url, answer.headers['dpop-nonce']);
      if (error === 'use_dpop_nonce' && tries === 1) continue;
      if (answer.status < 300 && answer.body && error === null) return answer.body;
      throw this.refusal(issuer, error ?? `HTTP ${answer.status}`, description, answer.status);
    }
  }

  /** Uses up the token that was given to us for this purpose. Some give a new one of that kind, too. */
  async refresh(row: StoredLogin): Promise<StoredLogin> {
    const { refresh, scope } = row.tokens!;
    const client = withSecret(row.client, this.config);
    const form = { grant_type: 'refresh_token', refresh_token: refresh!, resource: row.resource };
    const answer = await this.token({ ...row, client }, form);
    return this.withTokens(
      row,
      { ...answer, refresh_token: answer.refresh_token || refresh },
      scope,
    );
  }

  private withTokens(row: StoredLogin, answer: Json, scope: string[]): StoredLogin {
    const { access_token: access, token_type: type, refresh_token: refresh, expires_in } = answer;
    const seconds = validSeconds(expires_in);
    const kind = (['Bearer', 'DPoP'] as const).find(
      (each) => each.toLowerCase() === `${type}`.toLowerCase(),
    );
    const isText = typeof access === 'string' && /^[\x21-\x7e]+$/.test(access);
    const isLong = [access, refresh].some((each) => show(each ?? '').length > MAX_TOKEN);
    const isToken = isText && !isLong && kind;
    const isBoundToNothing = kind === 'DPoP' && !this.proof;
    if (!isToken || isBoundToNothing)
      throw this.error(
        `has an authorization server (${row.issuer}) that gives no token we can use`,
      );
    const tokens: Tokens = {
      access,
      type: kind,
      scope,
      ...(typeof refresh === 'string' && { refresh }),
      // A tenth earlier than they say: the way takes time.
      ...(seconds && { expiresAt: Date.now() + seconds * 900 }),
    };
    keepSecrets(this.server, tokens.access, tokens.refresh);
    const { secret, ...client } = row.client;
    const isOurs = this.config.clientId !== undefined; // then the secret is in the configuration, and stays there
    return {
      ...row,
      client: isOurs ? client : row.client,
      tokens,
      ...(this.proof && { key: this.proof.jwk }),
    };
  }

  // ── Words ──

  error(what: string): McpError {
    return new McpError('auth', `${this.who} ${what}`);
  }

  /** An authorization server may repeat in its error what we have sent it. */
  private refusal(issuer: string, code: unknown, description?: unknown, status?: number) {
    const words = excerpt(
      new Masker({}).text([code, description].filter(Boolean).map(show).join(': ')),
    );
    return new OAuthError(
      code,
      `${this.who}: the authorization server ${issuer} refused us: ${words}`,
      status,
    );
  }
}

const ONCE = ['state', 'code', 'iss', 'error', 'error_description'];

/** Of two values we would check one, and another reader would take the other (RFC 6749, 3.1). */
export const repeatsParameter = (answer: URLSearchParams): boolean =>
  ONCE.some((name) => answer.getAll(name).length > 1);

/** A secret that stands in the configuration is kept nowhere else. */
const withSecret = (
  client: OAuthClient,
  { clientId, clientSecret: secret }: OAuthConfig,
): OAuthClient => (clientId && secret ? { ...client, secret } : client);

/** Tells an authorization server that a token is of no use any more (RFC 7009). If it does not hear it, so be it. */
export async function revokeToken(row: StoredLogin, config: OAuthConfig = {}): Promise<void> {
  const { server, url, issuer, tokens, revocationEndpoint } = row;
  const isForThem = config.issuer === issuer && config.clientId === row.client.id;
  const client = isForThem ? withSecret(row.client, config) : row.client;
  const hasKey = isForThem && client.method === 'private_key_jwt'; // and it is in the configuration
  const canSayWho = client.method === 'none' || client.secret || hasKey; // from another program, perhaps not
  if (!tokens || !revocationEndpoint || !canSayWho) return;
  try {
    const what = signedForm(client, config, issuer, { token: tokens.refresh ?? tokens.access });
    await new Fetcher(`MCP server "${server}"`, new URL(url)).fetch(revocationEndpoint, what);
  } catch {}
}
