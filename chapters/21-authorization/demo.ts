// Chapter 21: the sum, behind a login. Shown are the HTTP requests of our program and, as "the browser", those of a user who
// agrees to everything. Addresses and random values have names here, so that every run looks the same.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import http, { type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { McpConnection, McpManager, type Json, type ServerEntry } from '../../mcp.ts';
import { Logins } from './login.ts';

// ─── What is shown ────────────────────────────────────────────────────────────────────────────────────────────

const names = new Map<string, string>(); // what differs from run to run → what it is called here
const say = (text: string) =>
  console.log([...names].reduce((all, [value, name]) => all.replaceAll(value, name), text));
const RANDOM =
  /\b(access_token|refresh_token|code_verifier|code_challenge|code|state|client_id)[=": ]+([\w-]{12,})/g;
const SHOWN = new Set([
  'resource',
  'authorization_servers',
  'issuer',
  'authorization_endpoint',
  'token_endpoint',
  'registration_endpoint',
  'scopes_supported',
  'code_challenge_methods_supported',
  'authorization_response_iss_parameter_supported',
  'client_name',
  'client_id',
  'application_type',
  'redirect_uris',
  'token_endpoint_auth_method',
  'access_token',
  'token_type',
  'expires_in',
  'refresh_token',
  'scope',
  'error',
  'error_description',
]);

/** The lines of a form, of a JSON object as far as they matter here, or of a message. */
function linesOf(text: string): string[] {
  if (/^\w+=/.test(text))
    return [...new URLSearchParams(text)].map(([name, value]) => `${name}=${value}`);
  if (!text.startsWith('{') || text.includes('jsonrpc'))
    return text.split('\n').filter((line) => /^(data: )?\{/.test(line));
  const fields = Object.entries(JSON.parse(text) as Json).filter(([name]) => SHOWN.has(name));
  return fields.map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
}
let isShown = true;
let refreshes = 0;
function show(head: string, text: string, headers: Json = {}): void {
  const told = ['authorization', 'www-authenticate']
    .filter((name) => headers[name])
    .map((name) => `${name}: ${headers[name]}`);
  const lines = [head, ...told, ...linesOf(text)].join('\n    ');
  for (const [, kind = '', value = ''] of lines.matchAll(RANDOM)) {
    const known = [...names.values()].filter((name) => name.startsWith(`<${kind} `)).length;
    if (!names.has(value)) names.set(value, `<${kind} ${known + 1}>`);
  }
  if (text.includes('grant_type=refresh_token')) refreshes++;
  if (isShown) say(lines);
}

/** Every request of our program passes here. */
const { request } = http;
http.request = ((url: URL, options: http.RequestOptions) => {
  const asked = request(url, options);
  const { end } = asked;
  asked.end = ((body = '') => (
    show(`→ ${options.method} ${url.href}`, body, { ...(options.headers as Json) }),
    end.call(asked, body, 'utf8')
  )) as typeof end;
  asked.prependListener('response', (response: IncomingMessage) => {
    const { push } = response;
    let text = '';
    response.push = (chunk) => {
      if (chunk === null) show(`← ${response.statusCode}`, text, response.headers);
      text += chunk ?? '';
      return push.call(response, chunk);
    };
  });
  return asked;
}) as typeof request;

// ─── A browser, a home, and the servers ───────────────────────────────────────────────────────────────────────────

let pages = 0;
const go = async (url: URL) => {
  pages++;
  const { status, headers } = await fetch(url, { redirect: 'manual' });
  const answer = new URL(headers.get('location')!);
  show(`→ the browser: GET ${url.origin}${url.pathname}`, url.search.slice(1));
  show(`← ${status} to ${answer.origin}${answer.pathname}`, answer.search.slice(1));
  return answer;
};
const openUserAgent = async () => ({
  redirectUri: 'http://127.0.0.1:7777/callback',
  go,
  close: () => {},
});

const home = mkdtempSync(join(tmpdir(), 'logins-'));
process.on('exit', () => rmSync(home, { recursive: true, force: true }));
const isKept = existsSync(new URL('tokens.ts', import.meta.url)); // the simplest login keeps no tokens
const { TokenStore } = isKept ? await import('./tokens.ts') : {};
const store = () => TokenStore && new TokenStore({ home });
const transportsOf = (given = {}) => new Logins({ store: store(), ...given }).transports;

async function start(name: string, ...args: string[]): Promise<string> {
  const child = spawn('node', args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const url = `${(await once(child.stdout, 'data'))[0]}`.trim();
  names.set(new URL(url).origin, name);
  return url;
}
const issuer = await start('http://login', 'fixtures/authorization.mjs');
const url = await start('http://calculator', 'fixtures/remote.mjs', 'http', '--login', issuer);
const open = async (address: string) => {
  const connection = new McpConnection(
    'calculator',
    { type: 'http', url: address },
    { transports: transportsOf({ openUserAgent }) },
  );
  await connection.connect();
  return connection;
};
const call = async (connection: McpConnection, tool: string, args: Json) =>
  say(
    `  = ${await connection.callTool(tool, args).then(
      ({ text }) => text,
      ({ kind, message }) => `${kind}: ${message}`,
    )}`,
  );

// ─── What happens ─────────────────────────────────────────────────────────────────────────────────────────────

say('The sum, at a server that wants to know who we are:');
const calculator = await open(url);
await call(calculator, 'add', { a: 2, b: 40 });

await fetch(`${issuer}/expire`, { method: 'POST' });
isShown = false;
pages = 0;
const sums = await Promise.allSettled(
  Array.from({ length: 50 }, () => calculator.callTool('add', { a: 2, b: 40 })),
);
const good = sums.filter(({ status }) => status === 'fulfilled').length;
say(
  '\nThe token has expired, and there are 50 calls at once. ' +
    `Refreshes: ${refreshes}, login pages: ${pages}, answers: ${good}`,
);
isShown = true;

say('\nA tool that needs more rights:');
await call(calculator, 'greet', { name: 'Ada' });

for (const [what, document] of Object.entries({
  'A server that wants a token for another one:': {
    resource: 'https://calc.example/mcp',
    authorization_servers: [issuer],
  },
  'A server that sends us where only we can go:': {
    resource: 'HERE/mcp',
    authorization_servers: ['https://169.254.169.254/latest'],
  },
})) {
  const server = http
    .createServer(({ url: path }, response) => {
      if (path === '/mcp')
        return void response.writeHead(401, { 'www-authenticate': 'Bearer' }).end();
      response.end(JSON.stringify(document).replace('HERE', here));
    })
    .listen(0, '127.0.0.1');
  await once(server, 'listening');
  const here = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  names.set(here, 'http://stranger');
  say(`\n${what}`);
  await call(await open(`${here}/mcp`), 'add', { a: 2, b: 40 });
}

say('\nThe calculator in an agent in which nobody has logged in; and in another, a moment later:');
rmSync(join(home, '.mcp-by-hand'), { recursive: true, force: true });
for (let starts = 1; starts <= 2; starts++) {
  const entry: ServerEntry = {
    name: 'calculator',
    config: { type: 'http', url },
    file: 'demo.ts',
    scope: 'user',
    authority: 'user',
  };
  const onState = (_: string, state: string, reason = '') =>
    say(`  [${state}] ${reason.replace(/at \d.*? that/, 'at <time> that')}`);
  const manager = new McpManager({
    load: () => new Map([['calculator', entry]]),
    transports: transportsOf(),
    onState,
  });
  await manager.loadAndConnect();
  await manager.disconnectAll();
}
