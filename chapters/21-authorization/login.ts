// login.ts: around every request of the HTTP transport. It adds a token; and if the server refuses the request, it gets
// another token and sends the request again. Above it, nobody notices but for the time that takes.

import {
  isExposed,
  isObject,
  McpError,
  textOf,
  type Json,
  type TransportFactory,
} from '../../mcp.ts';
import { unlessAborted } from '../15-the-loop/unless-aborted.ts';
import type { Person } from '../17-the-gate/person.ts';
import { hostsIn, keepSecrets } from '../17-the-gate/safe-text.ts';
import { PROGRAM } from '../17-the-gate/trust.ts';
import { checkedAddress, httpTransportsBy } from '../20-streamable-http/streamable.ts';
import {
  readStart,
  refusalText,
  timeoutSignal,
  type Fetch,
  type HeaderFields,
  type Reply,
} from '../20-streamable-http/reply.ts';
import { fetchHttp } from '../20-streamable-http/request.ts';
import { consentOf, throughBrowserOf } from './browser.ts';
import { checkedOAuth, type Idp, type OAuthConfig } from './clients.ts';
import { challengeIn, scopesIn, type Challenge } from './discovery.ts';
import { idpLogin, machineGrant } from './machines.ts';
import { OAuth, OAuthError, revokeToken, type ScopeConsent, type OpenUserAgent } from './oauth.ts';
import { KeyProof } from './proof.ts';
import { TokenStore, type StoredLogin } from './tokens.ts';

const MAX_TRIES = 4; // of one request, the first included
const MAX_REFUSAL_BYTES = 8192;
const REFUSAL_MS = 1000;

export type LoginOptions = {
  warn?: (text: string) => void;
  store?: TokenStore;
  openUserAgent?: OpenUserAgent; // if there is a browser for every login: nobody asks for it
  trustsAnyIssuer?: boolean; // our secrets go to whomever a server names
  idp?: Idp; // the identity provider, for entries that say "xaa"
  believes?: () => boolean; // may what a server said before be taken for its answer?
};

type TokenRenewal = 'refreshed' | 'new'; // a token

/** Whether we are logged in at one server, and how we get there. */
export class Login {
  readonly serverName: string;
  challenge?: Challenge; // what the server wants, if it wants something that only a person can give
  private refusal = ''; // what it said of that, in its own words
  readonly url: URL;
  private hasOwnHeader: boolean; // a key in the configuration: then that is how the user wants to be known
  private openUserAgent?: OpenUserAgent;
  private store: TokenStore;
  private oauth: OAuth;
  private row?: StoredLogin;
  private renewing?: Promise<TokenRenewal | undefined>;
  private isFirst = true;
  private believes: () => boolean;

  constructor(serverName: string, config: Json, options: LoginOptions = {}) {
    const {
      store = new TokenStore(),
      openUserAgent,
      trustsAnyIssuer,
      believes = () => true,
    } = options;
    const { url, headers } = checkedAddress(serverName, config);
    this.serverName = serverName;
    this.url = url;
    this.hasOwnHeader = headers.authorization !== undefined;
    const hasKey = Object.keys(headers).length > 0; // then the server may say something else now
    this.believes = () => !hasKey && believes();
    this.openUserAgent = openUserAgent;
    this.store = store;
    const oauth = checkedOAuth(serverName, config, options.idp);
    const { clientSecret, privateKey, assertion, idp } = oauth;
    const own = `the entry of ${serverName}`; // no token that the server gives can push these out
    keepSecrets(own, clientSecret, privateKey, assertion, idp?.clientSecret, idp?.idToken);
    this.oauth = new OAuth(serverName, url, oauth, store, { grant: machineGrant, trustsAnyIssuer });
  }

  // ── Around every request ──

  fetch: Fetch = async (who, url, options) => {
    if (this.hasOwnHeader) return fetchHttp(who, url, options);
    // A goodbye is not worth a new token, which would get lost if the program ends before it is written down.
    const isGoodbye = options.method === 'DELETE';
    let had: TokenRenewal | undefined; // what this request has had so far
    for (let tries = 1; ; tries++) {
      const row = isGoodbye ? this.row : await unlessAborted(this.current(), options.signal);
      const headers = { ...options.headers, ...this.headers(row, options.method, url) };
      const nonce = this.oauth.proof?.nonce(url);
      const reply = await fetchHttp(who, url, { ...options, headers });
      const challenge = challengeIn(reply.status, reply.headers['www-authenticate']);
      this.oauth.proof?.learn(url, reply.headers['dpop-nonce']);
      if (!challenge || isGoodbye || tries === MAX_TRIES) return reply;
      this.refusal = await saidIn(reply, challenge);
      const wantsNonce =
        challenge.params.get('error') === 'use_dpop_nonce' &&
        nonce !== this.oauth.proof?.nonce(url);
      if (wantsNonce) continue;
      had = (await unlessAborted(this.renew(challenge, row, had), options.signal)) ?? had;
    }
  };

  private headers(row: StoredLogin | undefined, method: string, url: URL): HeaderFields {
    if (!row?.tokens || url.origin !== this.url.origin) return {};
    const { access, type } = row.tokens;
    const authorization = `${type} ${access}`;
    return type === 'DPoP'
      ? { authorization, dpop: this.oauth.proof!.for(method, url, access) }
      : { authorization };
  }

  /** What we have for this server, renewed if its time is over. */
  private async current(): Promise<StoredLogin | undefined> {
    const { isFirst } = this;
    this.isFirst = false;
    if (isFirst) this.row = this.stored(); // later only when a request is refused: not a look at the file for each
    const { refresh, expiresAt = Infinity } = this.row?.tokens ?? {};
    // If that fails, the old one may do for a little longer; if not, the server will say what it wants.
    if (refresh && expiresAt <= Date.now())
      await this.once(() => this.refreshAlone(this.row)).catch(() => {});
    else if (!this.row && isFirst && this.believes()) this.remember();
    return this.row;
  }

  /** At the start of a program, what the server said a moment ago is as good as asking it again. */
  private remember(): void {
    const verdict = this.store.verdict(this.serverName, this.url.href);
    if (verdict?.status !== 401 || this.openUserAgent || this.canDoWithoutPerson) return;
    this.challenge = challengeIn(401, verdict.challenge);
    throw this.wanted(`said at ${new Date(verdict.at).toLocaleTimeString()} that it wants a login`);
  }

  private get canDoWithoutPerson(): boolean {
    const { config, isMachine } = this.oauth;
    return isMachine && (config.grant !== 'id-jag' || idpLogin(this.oauth) !== undefined);
  }

  /** From the file, unless it is for somebody else than the configuration names now. */
  private stored(): StoredLogin | undefined {
    const { issuer, clientId } = this.oauth.config;
    if (isExposed(this.url)) return undefined;
    const row = this.store.find(this.serverName, this.url.href, issuer);
    if (!row?.tokens || (clientId && clientId !== row.client.id)) return undefined;
    const isTooWide = this.oauth.beyondCeiling(row.tokens.scope).length > 0;
    if (isTooWide && this.oauth.isMachine) return undefined; // the configuration was wider then
    keepSecrets(this.serverName, row.tokens.access, row.tokens.refresh);
    if (row.key?.x !== this.oauth.proof?.jwk.x) this.oauth.proof = row.key && new KeyProof(row.key);
    return row;
  }

  // ── A new token, once for all who need it ──

  /** However many requests are refused at once, one of them does something about it, and the others wait for that. */
  private async renew(
    challenge: Challenge,
    used?: StoredLogin,
    had?: TokenRenewal,
  ): Promise<TokenRenewal | undefined> {
    const isOther = this.row?.tokens?.access !== used?.tokens?.access;
    if (isOther) return undefined; // there is another token by now, which was not refused yet
    return this.once(() => this.renewNow(challenge, used, had));
  }

  private once(work: () => Promise<TokenRenewal | undefined>): Promise<TokenRenewal | undefined> {
    return (this.renewing ??= work()
      .catch((error) => {
        // Whatever fails on the way to a token means that we are not logged in, and not that the server is away.
        const isClear =
          error instanceof McpError && ['auth', 'config', 'aborted'].includes(error.kind);
        throw isClear ? error : this.oauth.error(`cannot be logged into: ${textOf(error)}`);
      })
      .finally(() => (this.renewing = undefined)));
  }

  private async renewNow(
    challenge: Challenge,
    used?: StoredLogin,
    had?: TokenRenewal,
  ): Promise<TokenRenewal | undefined> {
    this.challenge = challenge; // from now on, somebody may log in
    const { status, params } = challenge;
    if (status === 401 && had === 'new')
      throw this.oauth.error(`does not accept the token that ${used?.issuer} has given us for it`);
    if (status === 401 && !had && (await this.refreshAlone(used))) return 'refreshed';
    const latest = status === 403 ? this.stored() : used;
    if (latest?.tokens?.access !== used?.tokens?.access) return this.adopt(latest);
    const asked = used?.tokens?.scope ?? [];
    const missing = scopesIn(params.get('scope')).filter((scope) => !asked.includes(scope));
    if (status === 403 && missing.length === 0)
      throw this.oauth.error(
        `forbids it, although we have asked for everything it wants (${asked.join(' ')})`,
      );
    const isPossible = this.canDoWithoutPerson || this.openUserAgent;
    if (isPossible) return this.keep(await this.oauth.obtain(challenge, this.openUserAgent), 'new');
    this.store.judge(this.serverName, this.url.href, challenge);
    throw this.wanted(
      status === 401 ? 'wants a login' : `wants a login with more rights (${missing.join(' ')})`,
    );
  }

  /** Is there a new token, without anybody having to do anything? */
  private refreshAlone(used?: StoredLogin): Promise<TokenRenewal | undefined> {
    return this.store.alone(async () => {
      const latest = this.stored(); // another program may have been faster, or have logged us out
      if (latest?.tokens?.access !== used?.tokens?.access) return this.adopt(latest);
      if (!latest?.tokens?.refresh) return undefined;
      try {
        return this.keep(await this.oauth.refresh(latest), 'refreshed');
      } catch (error) {
        const isFinal = error instanceof OAuthError && !error.isPassing;
        if (!isFinal) throw error; // it may be of use yet
        const isForgotten = /client/.test(`${error.code}`); // and will not know our registration next time either
        if (isForgotten) this.store.drop(latest);
        else this.store.keep({ ...latest, tokens: undefined });
        return (this.row = undefined);
      }
    });
  }

  private adopt(row?: StoredLogin): TokenRenewal | undefined {
    this.row = row;
    if (row) this.challenge = undefined;
    return row && 'refreshed';
  }

  private keep(row: StoredLogin, got: TokenRenewal): TokenRenewal {
    this.adopt(row);
    this.store.keep(row, got === 'new');
    return got;
  }

  /** Where we are logged in, if we are. */
  get where(): string | undefined {
    const { tokens, issuer } = this.row ?? {};
    const scope = tokens?.scope.length ? ` (${tokens.scope.join(' ')})` : '';
    return tokens && `logged in at ${issuer}${hostsIn(`${issuer}`)}${scope}`;
  }

  /** What the server wants of a person. That it wants more rights is known from one program to the next. */
  get wish(): Challenge | undefined {
    const verdict = this.store.verdict(this.serverName, this.url.href);
    return (
      this.challenge ?? (verdict?.status === 403 ? challengeIn(403, verdict.challenge) : undefined)
    );
  }

  /** Somebody wants to log in now. If they change their mind, nothing is kept. */
  async logIn(
    openUserAgent: OpenUserAgent,
    signal?: AbortSignal,
    consent?: ScopeConsent,
  ): Promise<void> {
    while (this.renewing) await this.renewing.catch(() => {});
    await this.once(async () => {
      const row = await this.oauth.obtain(this.wish ?? challengeIn(401)!, openUserAgent, consent);
      if (signal?.aborted) throw new McpError('aborted', 'the login was stopped');
      return this.keep(row, 'new');
    });
  }

  get config(): OAuthConfig {
    return this.oauth.config;
  }

  forget(): void {
    this.row = this.oauth.proof = undefined;
  }

  private wanted(what: string): McpError {
    const name = /^\w[\w-]*$/.test(this.serverName) ? this.serverName : 'NAME'; // a project may have chosen it
    const known = `/mcp login ${name} in a chat, or ${PROGRAM} mcp login ${name}`;
    const typed = `${PROGRAM} mcp add NAME URL, then ${PROGRAM} mcp login NAME`;
    const how = URL.canParse(this.serverName) ? typed : known;
    const said = this.refusal && `: ${this.refusal}`;
    return Object.assign(this.oauth.error(`${what}${said}. To log in: ${how}`), {
      status: this.challenge?.status,
    });
  }
}

/** Its own words, if they come at once: a body might never end. */
async function saidIn({ body }: Reply, { header }: Challenge) {
  const start = readStart(body, MAX_REFUSAL_BYTES);
  const text = await unlessAborted(start, timeoutSignal(REFUSAL_MS)).catch(() => '');
  body.destroy();
  return refusalText(text, header);
}

// ─── All servers ──────────────────────────────────────────────────────────────────────────────────────────────

/** The logins of a program: the transports that use them, and each of them by the name of its server. */
export class Logins {
  readonly transports: Record<string, TransportFactory>;
  private options: LoginOptions;
  private store: TokenStore;
  private all = new Map<string, Login>();
  private latest = new Map<string, Login>(); // by the name of the server, the one that was used last
  believesVerdicts = true;
  idp?: Idp; // by default the one of the options

  constructor({ warn, store = new TokenStore({ warn }), ...options }: LoginOptions = {}) {
    this.store = store;
    const idp = () => (this.idp ?? options.idp)?.();
    this.options = { believes: () => this.believesVerdicts, ...options, idp, store };
    this.transports = httpTransportsBy((serverName, config) => this.of(serverName, config).fetch);
    const oauth = { form: 'an object', fits: isObject }; // checkedOAuth looks at the rest
    for (const each of Object.values(this.transports)) each.words = { ...each.words, oauth };
  }

  /** A server that is started again keeps what was learned about it, as long as it is the same. */
  private of(serverName: string, config: Json): Login {
    const key = JSON.stringify([serverName, config]);
    const login = this.all.get(key) ?? new Login(serverName, config, this.options);
    this.all.set(key, login);
    this.latest.set(serverName, login);
    return login;
  }

  get isKept(): boolean {
    return this.store.isKept;
  }

  isWanted(serverName: string): boolean {
    return this.latest.get(serverName)?.wish !== undefined;
  }

  where(serverName: string): string | undefined {
    return this.latest.get(serverName)?.where;
  }

  async logIn(serverName: string, person: Person, signal: AbortSignal): Promise<void> {
    const consent = consentOf(person, serverName, signal);
    await this.latest.get(serverName)?.logIn(throughBrowserOf(person, signal), signal, consent);
  }

  /** Forgets what a server was given, here and, if it can be told, there. Was there anything? */
  async logOut(serverName: string, url?: string): Promise<boolean> {
    const rows = await this.store.alone(async () => this.store.forget(serverName, url)); // and not while one is renewed
    const isMeant = (login: Login) =>
      login.serverName === serverName && login.url.href === (url ?? login.url.href);
    const logins = [...this.all.values()].filter(isMeant);
    for (const login of logins) login.forget();
    await Promise.all(
      rows.map((row) => revokeToken(row, logins.find(({ url }) => url.href === row.url)?.config)),
    );
    return rows.some(({ tokens }) => tokens !== undefined);
  }
}
