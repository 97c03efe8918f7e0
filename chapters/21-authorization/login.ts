// login.ts: around every request of the HTTP transport. It adds a token; and if the server refuses the request, it gets
// another token and sends the request again. Above it, nobody notices but for the time that takes.

import { McpError, type Json, type TransportFactory } from '../../mcp.ts';
import { keepSecret } from '../17-the-gate/safe-text.ts';
import { PROGRAM } from '../17-the-gate/trust.ts';
import { checked, httpTransportsBy } from '../20-streamable-http/http.ts';
import { ask, type Asking, type Headers } from '../20-streamable-http/request.ts';
import { atTerminal, type Terminal } from './browser.ts';
import { checkedOAuth } from './clients.ts';
import { challengeIn, words, type Challenge } from './discovery.ts';
import { companyLogin } from './machines.ts';
import { OAuth, Refusal, revoke, type Visitor } from './oauth.ts';
import { KeyProof } from './proof.ts';
import { TokenStore, type Row } from './tokens.ts';

const MAX_TRIES = 4; // of one request, the first included
const NO_CHALLENGE: Challenge = { status: 401, scheme: 'bearer', params: new Map() };

export type LoginOptions = {
  store?: TokenStore;
  visitor?: Visitor; // if there is a browser for every login, so that nobody has to ask for it
  trustsAnyIssuer?: boolean; // our secrets go to whomever a server names
};

/** Whether we are logged in at one server, and how we get there. */
export class Login {
  readonly serverName: string;
  challenge?: Challenge; // what the server wants, if it wants something that only a person can give
  private url: URL;
  private hasOwnHeader: boolean; // a key in the configuration: then that is how the user wants to be known
  private visitor?: Visitor;
  private store: TokenStore;
  private oauth: OAuth;
  private row?: Row;
  private renewing?: Promise<void>;
  private unproven?: { access: string; isRefreshed: boolean }; // a token that the server has not accepted yet
  private isFirst = true;

  constructor(serverName: string, config: Json, { store = new TokenStore(), visitor, trustsAnyIssuer }: LoginOptions = {}) {
    const { url, headers } = checked(serverName, config);
    this.serverName = serverName;
    this.url = url;
    this.hasOwnHeader = headers.authorization !== undefined;
    this.visitor = visitor;
    this.store = store;
    const oauth = checkedOAuth(serverName, config);
    const { clientSecret, privateKey, assertion, company } = oauth;
    for (const secret of [clientSecret, privateKey, assertion, company?.clientSecret]) if (secret) keepSecret(secret);
    this.oauth = new OAuth(serverName, url, oauth, store, trustsAnyIssuer);
  }

  // ── Around every request ──

  asking: Asking = async (who, url, what) => {
    if (this.hasOwnHeader) return ask(who, url, what);
    // A goodbye is not worth a new token, which would get lost if the program ends before it is written down.
    const isGoodbye = what.method === 'DELETE';
    for (let tries = 1; ; tries++) {
      const row = isGoodbye ? this.row : await unlessAborted(this.current(), what.signal);
      const headers = { ...what.headers, ...this.headers(row, what.method, url) };
      const reply = await ask(who, url, { ...what, headers });
      const header = reply.headers['www-authenticate'];
      const challenge = challengeIn(reply.status, header);
      const isNewNonce = this.oauth.proof?.learn(url, reply.headers['dpop-nonce']);
      if (!challenge) this.unproven = undefined; // whatever it says, it is not about the token
      if (!challenge || isGoodbye || tries === MAX_TRIES) return reply;
      reply.body.destroy();
      const wantsNonce = challenge.params.get('error') === 'use_dpop_nonce';
      if (!isNewNonce || !wantsNonce) await unlessAborted(this.renew(challenge, row, header), what.signal);
    }
  };

  private headers(row: Row | undefined, method: string, url: URL): Headers {
    if (!row?.tokens || url.origin !== this.url.origin) return {};
    const { access, type } = row.tokens;
    const authorization = `${type} ${access}`;
    return type === 'DPoP' ? { authorization, dpop: this.oauth.proof!.for(method, url, access) } : { authorization };
  }

  /** What we have for this server, renewed if its time is over. */
  private async current(): Promise<Row | undefined> {
    this.row ??= this.stored();
    const { refresh, expiresAt = Infinity } = this.row?.tokens ?? {};
    // If that fails, the old one may do for a little longer; if not, the server will say so.
    if (refresh && expiresAt <= Date.now()) await this.renew(NO_CHALLENGE, this.row).catch(() => {});
    if (!this.row) this.remember();
    return this.row;
  }

  /** At the start of a program, what the server said a moment ago is as good as asking it again. */
  private remember(): void {
    const verdict = this.isFirst ? this.store.verdict(this.serverName, this.url.href) : undefined;
    this.isFirst = false;
    if (!verdict || this.visitor || this.canDoWithoutPerson) return;
    this.challenge = challengeIn(401, verdict.challenge);
    throw this.wanted(`said at ${new Date(verdict.at).toLocaleTimeString()} that it wants a login`);
  }

  private get canDoWithoutPerson(): boolean {
    const { grant = 'authorization_code' } = this.oauth.config;
    return grant === 'company' ? companyLogin(this.oauth) !== undefined : grant !== 'authorization_code';
  }

  /** From the file, unless it is for somebody else than the configuration names now. */
  private stored(): Row | undefined {
    const { issuer, clientId } = this.oauth.config;
    const row = this.store.find(this.serverName, this.url.href, issuer);
    if (!row?.tokens || (clientId && clientId !== row.client.id)) return undefined;
    for (const secret of [row.tokens.access, row.tokens.refresh]) if (secret) keepSecret(secret);
    if (row.key) this.oauth.proof ??= new KeyProof(row.key);
    return row;
  }

  // ── A new token, once for all who need it ──

  /** However many requests are refused at once, one of them does something about it, and the others wait for that. */
  private renew(challenge: Challenge, used?: Row, header?: string): Promise<void> {
    if (this.row !== used) return Promise.resolve(); // there is another by now, which was not refused yet
    return (this.renewing ??= this.once(() => this.renewNow(challenge, used, header)));
  }

  private async once(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      // Whatever fails on the way to a token means that we are not logged in, and not that the server is away.
      const isClear = error instanceof McpError && ['auth', 'config', 'aborted'].includes(error.kind);
      throw isClear ? error : this.oauth.error(`cannot be logged into: ${(error as Error).message}`);
    } finally {
      this.renewing = undefined;
    }
  }

  private async renewNow(challenge: Challenge, used?: Row, header?: string): Promise<void> {
    const isUnproven = used?.tokens !== undefined && this.unproven?.access === used.tokens.access;
    if (challenge.status === 401 && isUnproven && !this.unproven!.isRefreshed)
      throw this.oauth.error(`does not accept the token that ${used.issuer} has given us for it`);
    const mayRefresh = challenge.status === 401 && !isUnproven;
    if (mayRefresh && (await this.store.alone(() => this.isRefreshed(used)))) return;
    const asked = used?.tokens?.scope ?? [];
    const missing = words(challenge.params.get('scope')).filter((scope) => !asked.includes(scope));
    if (challenge.status === 403 && missing.length === 0)
      throw this.oauth.error(`forbids it, although we have asked for everything it wants (${asked.join(' ')})`);
    if (this.canDoWithoutPerson || this.visitor) return this.keep(await this.oauth.obtain(challenge, this.visitor));
    this.challenge = challenge;
    if (challenge.status === 401) this.store.judge(this.serverName, this.url.href, header);
    throw this.wanted(challenge.status === 401 ? 'wants a login' : `wants a login with more rights (${missing.join(' ')})`);
  }

  /** Is there a new token, without anybody having to do anything? */
  private async isRefreshed(used?: Row): Promise<boolean> {
    const latest = (this.row = this.stored()); // another program may have been faster, or have logged us out
    if (latest?.tokens?.access !== used?.tokens?.access) return latest !== undefined;
    if (!latest?.tokens?.refresh) return false;
    try {
      this.keep(await this.oauth.refresh(latest), true);
      return true;
    } catch (error) {
      if (!(error instanceof Refusal && error.code === 'invalid_grant')) throw error; // it may be of use yet
      this.store.keep({ ...latest, tokens: undefined });
      this.row = undefined;
      return false;
    }
  }

  private keep(row: Row, isRefreshed = false): void {
    this.row = row;
    this.unproven = { access: row.tokens!.access, isRefreshed };
    this.challenge = undefined;
    for (const secret of [row.tokens!.access, row.tokens!.refresh]) if (secret) keepSecret(secret);
    this.store.keep(row);
  }

  /** Somebody wants to log in now. If they change their mind, nothing is kept. */
  async logIn(visitor: Visitor, signal?: AbortSignal): Promise<void> {
    await this.renewing?.catch(() => {});
    this.renewing = this.once(async () => {
      const row = await this.oauth.obtain(this.challenge ?? NO_CHALLENGE, visitor);
      signal?.throwIfAborted();
      this.keep(row);
    });
    await this.renewing;
  }

  forget(): void { this.row = this.unproven = this.oauth.proof = undefined; }

  private wanted(what: string): McpError {
    const name = /^\w[\w-]*$/.test(this.serverName) ? this.serverName : 'NAME'; // a project may have chosen it
    const how = `/mcp login ${name} in a chat, or ${PROGRAM} mcp login ${name}`;
    return Object.assign(this.oauth.error(`${what}. To log in: ${how}`), { status: this.challenge?.status });
  }
}

function unlessAborted<T>(work: Promise<T>, signal?: AbortSignal): Promise<T> {
  if (!signal) return work;
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}

// ─── All servers ──────────────────────────────────────────────────────────────────────────────────────────────

/** The logins of a program: the transports that use them, and each of them by the name of its server. */
export class Logins {
  readonly transports: Record<string, TransportFactory>;
  private options: LoginOptions;
  private store: TokenStore;
  private all = new Map<string, Login>(); // the one that was used last is the last

  constructor({ store = new TokenStore(), ...options }: LoginOptions = {}) {
    this.store = store;
    this.options = { ...options, store };
    this.transports = httpTransportsBy((serverName, config) => this.of(serverName, config).asking);
  }

  /** A server that is started again keeps what was learned about it, as long as it is the same. */
  private of(serverName: string, config: Json): Login {
    const key = JSON.stringify([serverName, config]);
    const login = this.all.get(key) ?? new Login(serverName, config, this.options);
    this.all.delete(key);
    this.all.set(key, login);
    return login;
  }

  private find(serverName: string): Login | undefined {
    return [...this.all.values()].findLast((login) => login.serverName === serverName);
  }

  isWanted(serverName: string): boolean { return this.find(serverName)?.challenge !== undefined; }

  async logIn(serverName: string, terminal: Terminal, signal: AbortSignal): Promise<void> {
    await this.find(serverName)?.logIn(atTerminal(terminal, signal), signal);
  }

  /** Forgets what a server was given, here and, if it can be told, there. Was there anything? */
  async logOut(serverName: string): Promise<boolean> {
    const rows = this.store.forget(serverName);
    for (const login of this.all.values()) if (login.serverName === serverName) login.forget();
    await Promise.all(rows.map(revoke));
    return rows.length > 0;
  }
}
