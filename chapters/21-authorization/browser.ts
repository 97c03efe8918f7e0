// browser.ts: through the browser of the user, and back. The authorization server sends the browser
// to an address of this machine, where we listen for that one answer. A browser on another machine
// cannot come here; then its user pastes the address at which it ended.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { McpError } from '../../mcp.ts';
import { agrees } from '../17-the-gate/dialogue.ts';
import { mayBeOpened, type Person } from '../17-the-gate/person.ts';
import { quoted } from '../17-the-gate/safe-text.ts';
import { timeoutSignal } from '../20-streamable-http/reply.ts';
import {
  repeatsParameter,
  type ScopeConsent,
  type UserAgent,
  type OpenUserAgent,
} from './oauth.ts';

const WAIT_MS = 5 * 60_000;

// ─── Listening for the answer ──────────────────────────────────────────────────────────────────

const escaped = (text: string) => text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
const HEAD = '<!doctype html><meta charset="utf-8"><title>mcp-by-hand</title>';
const page = (text: string) => `${HEAD}<p>${escaped(text)}</p>\n`;
const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer', // the address holds the code
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
  connection: 'close',
};

const FREE = ['http://127.0.0.1/callback', 'http://[::1]/callback']; // one is on every machine

/** Waits at an address of this machine for the one request that carries our `state`. */
export class Callback {
  readonly redirectUri: string;
  private servers: Server[];
  private state?: string;
  private browser?: ServerResponse; // it waits until we know what to tell it
  private arrived!: (answer: URL) => void;
  readonly answer = new Promise<URL>((resolve) => (this.arrived = resolve));

  private constructor(redirectUri: string, servers: Server[]) {
    this.redirectUri = redirectUri;
    this.servers = servers;
    const hear = (request: IncomingMessage, response: ServerResponse) =>
      this.hear(request, response);
    for (const server of servers) server.on('request', hear);
  }

  /** At the wanted address; or, unless it is fixed, at one with a free port. */
  static async open(wanted = FREE[0]!, isFixed = false): Promise<Callback> {
    for (const address of isFixed ? [wanted] : [wanted, ...FREE]) {
      const url = new URL(address);
      const servers = await listenAt(url);
      if (servers) return new Callback(url.href, servers);
    }
    throw new Error(`another program waits at ${wanted}. Choose another "callbackPort" in "oauth"`);
  }

  expect(state: string): void {
    this.state = state;
  }

  /** Every program on this machine can come here, and every page that a browser has open. Only one
   *  has our `state`. */
  private hear(request: IncomingMessage, response: ServerResponse) {
    const { host, origin } = new URL(this.redirectUri);
    const { method, headers, url: path = '' } = request;
    const base = this.redirectUri;
    const answer = URL.canParse(path, base) ? new URL(path, base) : undefined;
    // A script that comes by itself says from where; a browser that was sent here does not.
    const isSent = headers.host === host && (headers.origin ?? origin) === origin;
    const isOurs = method === 'GET' && isSent && answer !== undefined && this.take(answer);
    if (isOurs) this.browser = response;
    else refuse(response);
  }

  /** One answer, and only the first. Is it the one? If not, the wait goes on: else anybody who
   *  knocks could end a login. */
  take(answer: URL): boolean {
    const { origin, pathname } = new URL(this.redirectUri);
    const isHere = answer.origin === origin && answer.pathname === pathname;
    const { searchParams } = answer;
    const isExpected = this.state !== undefined && searchParams.get('state') === this.state;
    if (!isHere || !isExpected || repeatsParameter(searchParams)) return false;
    this.state = undefined;
    this.arrived(answer);
    return true;
  }

  close(words: string): void {
    this.state = undefined;
    this.browser?.writeHead(200, PAGE_HEADERS).end(page(words));
    this.browser = undefined;
    for (const server of this.servers) {
      server.close();
      server.closeIdleConnections();
      setTimeout(() => server.closeAllConnections(), 1000).unref();
    }
  }
}

function refuse(response: ServerResponse) {
  const words = page('This is not the answer that we wait for.');
  response.writeHead(400, PAGE_HEADERS).end(words);
}

/** Listens at the address, and puts the port that was free into it. Nothing: it is taken. */
async function listenAt(url: URL): Promise<Server[] | undefined> {
  // `localhost` is both, and browsers try either of them first.
  const isBoth = url.hostname === 'localhost';
  const hosts = isBoth ? ['127.0.0.1', '::1'] : [url.hostname.replace(/[[\]]/g, '')];
  const servers: Server[] = [];
  let isTaken = false;
  for (const host of hosts) {
    try {
      const server = await listen(host, Number(url.port));
      servers.push(server);
      url.port = `${(server.address() as AddressInfo).port}`;
    } catch (error) {
      // By a program that would get our answer. Any other error: there is no such host here.
      if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') isTaken = true;
    }
  }
  if (servers.length > 0 && !isTaken) return servers;
  for (const server of servers) server.close();
  return undefined;
}

function listen(host: string, port: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(port, host, () => resolve(server));
  });
}

// ─── With the person at the terminal ───────────────────────────────────────────────────────────

/** Shows the address, opens it, and waits for the answer: at our address, or pasted. */
export function throughBrowserOf(person: Person, signal: AbortSignal): OpenUserAgent {
  return async (redirectUri, isFixed): Promise<UserAgent> => {
    if (signal.aborted) throw stop(signal);
    const callback = await Callback.open(redirectUri, isFixed);
    const go = (url: URL, state: string) => {
      callback.expect(state);
      return answerAtCallback(url, callback, person, signal);
    };
    return { redirectUri: callback.redirectUri, go, close: (words) => callback.close(words) };
  };
}

async function answerAtCallback(
  url: URL,
  callback: Callback,
  person: Person,
  signal: AbortSignal,
): Promise<URL> {
  if (!mayBeOpened(url))
    throw new McpError('auth', `a browser is not sent to ${url.protocol}//${url.host}`);
  // Without a question: the user has just asked for this login.
  const opened = await person.open({ lines: [], url, isAgreed: true, signal });
  const isOpened = opened.action === 'accept' && opened.isOpened;
  const limit = timeoutSignal(WAIT_MS, signal);
  const isOver = new AbortController(); // takes back our question, and no other
  const stopped = new Promise<never>((_, reject) => {
    limit.addEventListener('abort', () => reject(stop(signal)));
    if (limit.aborted) reject(stop(signal));
  });
  stopped.catch(() => {}); // it may never be waited for
  const pasted = pasteInto(callback, url, isOpened, person, isOver.signal);
  try {
    return await Promise.race([callback.answer, pasted, stopped]);
  } finally {
    isOver.abort();
  }
}

const stop = ({ aborted }: AbortSignal) =>
  aborted
    ? new McpError('aborted', 'the login was stopped')
    : new McpError('auth', `nobody came back from the browser within ${WAIT_MS / 60_000} minutes`);

/** For a browser on another machine: it ends at an address that it cannot reach, and that has the
 *  code in it. */
async function pasteInto(
  callback: Callback,
  url: URL,
  isOpened: boolean,
  person: Person,
  signal: AbortSignal,
) {
  const prompt = 'waiting for the browser, or paste the address';
  let lines = [
    isOpened ? 'Your browser was asked to open this address:' : 'Open this address in a browser:',
    `  ${url.href}`,
    'If it ends at a page that cannot be reached, paste the address of that page here.',
  ];
  for (;;) {
    const text = (await person.ask({ lines, prompt, signal }))?.trim();
    if (signal.aborted) return callback.answer;
    if (text === undefined) throw new McpError('aborted', 'the login was stopped');
    const answer = URL.canParse(text) ? new URL(text) : undefined;
    if (answer && callback.take(answer)) return answer;
    lines = [whyNot(text, callback)];
  }
}

function whyNot(text: string, { redirectUri }: Callback) {
  if (!text.startsWith(redirectUri))
    return `That is not it: the address of that page begins with ${redirectUri}`;
  const what = 'Open the address above, and paste where it ends this time.';
  return `That is the answer to another login. ${what}`;
}

// ─── More rights than the configuration names ──────────────────────────────────────────────────

export function consentOf(person: Person, serverName: string, signal: AbortSignal): ScopeConsent {
  return async (beyond) => {
    const rights = beyond.map(quoted).join(' ');
    const lines = [`It wants rights that "scopes" in its configuration does not name: ${rights}`];
    const prompt = 'Log in with these, too?';
    return agrees(person, { from: serverName, lines, prompt, signal });
  };
}
