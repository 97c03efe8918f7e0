// A login through a real browser: Chromium without a window, which we watch and click in by its DevTools protocol.

import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { assertClean } from '../agents.ts';
import { strictCalculator, strictIssuer } from '../auth-peers.ts';
import { cleanUp, folder, later, until } from '../helpers.ts';
import { place, run, Terminal, userServers, type Place } from '../terminal.ts';

afterEach(cleanUp);

const chromium = ['chromium', 'chromium-browser', 'google-chrome']
  .flatMap((name) => (process.env.PATH ?? '').split(':').map((folder) => join(folder, name)))
  .find((path) => existsSync(path));
const skip = chromium ? false : 'there is no Chromium here (apt-get install chromium)';
const options = { skip, timeout: 120_000 }; // only ends a hang

const FLAGS = [
  '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--disable-dev-shm-usage', '--disable-breakpad',
  '--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run',
  '--password-store=basic', '--remote-debugging-pipe',
];

/** What the program finds as `xdg-open`. It starts the browser with the address, and connects our socket with the pipes
 *  by which the browser is driven. When we leave, or die, it ends all of the browser, and takes its profile away. */
const OPENER = `
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
const [, , command, place, flags, url] = process.argv;
const socket = connect(join(place, 'socket'));
const profile = mkdtempSync(join(place, 'profile-'));
const args = [...flags.split(' '), '--user-data-dir=' + profile, url];
const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'], detached: true });
const end = () => { try { process.kill(-child.pid, 'SIGKILL'); } catch {} };
for (const stream of [socket, child.stdio[3], child.stdio[4]]) stream.on('error', end);
socket.pipe(child.stdio[3]);
child.stdio[4].pipe(socket);
socket.on('close', end);
child.on('error', end).on('close', () => {
  end(); // whoever of its group is left
  rmSync(profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  socket.destroy();
  process.exit();
});
`;

// ─── The browser ──────────────────────────────────────────────────────────────────────────────────────────────

type Event = { method: string; params: any };

/** The one page of the browser that the program has opened. */
class Page {
  readonly events: Event[] = []; // dialogs, what pages wrote to their console, and where the browser went
  private socket: Socket;
  private session?: string;
  private waiting = new Map<number, (answer: any) => void>();
  private lastId = 0;

  constructor(socket: Socket) {
    this.socket = socket;
    let rest = '';
    socket.setEncoding('utf8').on('data', (text: string) => {
      const messages = (rest + text).split('\0');
      rest = messages.pop()!;
      for (const message of messages) this.hear(JSON.parse(message));
    });
    socket.on('close', () => this.waiting.forEach((tell) => tell({ error: { message: 'the browser is gone' } })));
  }

  private hear({ id, ...message }: any): void {
    if (id !== undefined) return this.waiting.get(id)?.(message);
    this.events.push(message);
    // As long as one is open, a page answers nothing.
    const isDialog = message.method === 'Page.javascriptDialogOpening';
    if (isDialog) this.send('Page.handleJavaScriptDialog', { accept: false }).catch(() => {});
  }

  private async send(method: string, params: object = {}): Promise<any> {
    const id = ++this.lastId;
    const answered = new Promise<any>((done) => this.waiting.set(id, done));
    this.socket.write(`${JSON.stringify({ id, method, params, sessionId: this.session })}\0`);
    const { result, error } = await answered;
    if (error) throw new Error(`${method}: ${error.message}`);
    return result;
  }

  async attach(): Promise<void> {
    let target: any;
    const isPage = ({ type }: any) => type === 'page';
    while (!target) target = (await this.send('Target.getTargets')).targetInfos.find(isPage);
    const { targetId } = target;
    this.session = (await this.send('Target.attachToTarget', { targetId, flatten: true })).sessionId;
    for (const domain of ['Page', 'Runtime', 'Log', 'Network']) await this.send(`${domain}.enable`);
  }

  async evaluate(expression: string): Promise<any> {
    return (await this.send('Runtime.evaluate', { expression, returnByValue: true })).result.value;
  }

  /** Waits until the page says this, and gives back all that it says, as people see it. */
  async see(what: RegExp): Promise<string> {
    const words = 'document.readyState === "complete" && document.body.innerText';
    for (const begin = Date.now(); ; ) {
      const text = `${await this.evaluate(words).catch(() => '')}`;
      if (what.test(text)) return text;
      if (Date.now() - begin > 30_000) throw new Error(`waited 30 s in vain for ${what} on a page that says:\n${text}`);
    }
  }

  get address(): Promise<string> { return this.evaluate('location.href'); }

  async goTo(url: string): Promise<void> { await this.send('Page.navigate', { url }); }

  /** With the mouse, in the middle of it. */
  async click(selector: string): Promise<void> {
    const box = `JSON.stringify(document.querySelector(${JSON.stringify(selector)}).getBoundingClientRect())`;
    const { x, y, width, height } = JSON.parse(await this.evaluate(box));
    const at = { x: x + width / 2, y: y + height / 2, button: 'left', clickCount: 1 };
    for (const type of ['mousePressed', 'mouseReleased']) await this.send('Input.dispatchMouseEvent', { type, ...at });
  }

  happened(...methods: string[]): any[] {
    return this.events.filter(({ method }) => methods.includes(method)).map(({ params }) => params);
  }
}

/** A desktop on which `xdg-open` opens Chromium; `page` is there when it has. */
function desktop() {
  const ours = folder();
  const opener = join(ours, 'opener.mjs');
  const sockets = new Set<Socket>();
  writeFileSync(opener, OPENER);
  const words = [process.execPath, opener, chromium!, ours, FLAGS.join(' ')].map((word) => `'${word}'`).join(' ');
  writeFileSync(join(ours, 'xdg-open'), `#!/bin/sh\nexec ${words} "$1"\n`, { mode: 0o755 });
  const server = createServer();
  const opened = new Promise<Socket>((done) => server.on('connection', (socket) => {
    sockets.add(socket.on('error', () => {}));
    done(socket);
  }));
  server.listen(join(ours, 'socket'));
  later(async () => {
    server.close();
    sockets.forEach((socket) => socket.destroy());
    await until(() => processesIn(ours).length === 0, 'the end of the browser');
    await until(() => !readdirSync(ours).some((name) => name.startsWith('profile-')), 'the end of its profile');
  });
  const page = async () => {
    const found = new Page(await opened);
    await found.attach();
    return found;
  };
  return { env: { PATH: `${ours}:${process.env.PATH}`, DISPLAY: ':0' }, page };
}

/** The processes that have to do with a folder, by what they were started with. */
function processesIn(path: string): string[] {
  const pids = existsSync('/proc/self/cmdline') ? readdirSync('/proc').filter((name) => /^\d+$/.test(name)) : [];
  return pids.filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(path);
    } catch {
      return false; // it has just ended
    }
  });
}

/** The program at a terminal, up to the page that asks for consent. */
async function begin() {
  const { issuer, log } = await strictIssuer('--consent');
  const url = await strictCalculator(issuer);
  const where = place({}, userServers({ calc: { type: 'http', url } }));
  const { env, page: open } = desktop();
  const terminal = new Terminal(where, ['mcp', 'login', 'calc'], env);
  const page = await open();
  const consent = await page.see(/A program asks for access/);
  return { issuer, log, url, where, terminal, page, consent };
}

function stored({ home }: Place): any[] {
  return JSON.parse(readFileSync(join(home, '.mcp-by-hand', 'logins.json'), 'utf8')).rows;
}

// ─── What its user does ───────────────────────────────────────────────────────────────────────────────────────

/** Words are wrapped to the window: a message in one line again. */
const unwrapped = (text: string) => text.replace(/\n +/g, ' ');

test('allow: the browser says so, the terminal says so, and the tools are there', options, async () => {
  const { url, log, where, terminal, page, consent } = await begin();
  assert.match(consent, /mcp-by-hand wants to use/);
  for (const words of [url, 'calculator:read', 'offline_access']) assert.ok(consent.includes(words), words);
  await terminal.see(/^Your browser was asked to open this address:$/);
  await page.click('#allow');
  assert.equal((await page.see(/logged in/)).trim(), 'You are logged in. You can close this page.');
  assert.match(await page.address, /^http:\/\/127\.0\.0\.1:\d+\/callback\?code=/);
  assert.equal(await terminal.ended(), 0);
  assert.match(terminal.text, /^calc: you are logged in, 7 tools$/m);
  const [{ tokens }] = stored(where);
  for (const secret of [tokens.access, tokens.refresh]) assert.ok(!terminal.bytes.includes(secret));
  assert.deepEqual((await log('/token')).map(({ status }) => status), [200]);

  const listed = await run(where, ['mcp', 'list']);
  assert.match(listed.out, /^calc: connected · .* 7 tools/m);
  const called = await run(where, ['probe', 'calc', '--call', 'add', 'a=2', 'b=40']);
  assert.deepEqual([called.code, /the call worked:\n    42\n/.test(called.out)], [0, true], called.out);
});

test('deny: the terminal says so, no token is stored, and the server still wants a login', options, async () => {
  const { where, terminal, page } = await begin();
  await page.click('#deny');
  assert.equal((await page.see(/did not work/)).trim(), 'It did not work. The terminal says why.');
  assert.equal(await terminal.ended(), 3);
  assert.match(unwrapped(terminal.text), /refused us: .*access_denied: the user said no/);
  assert.deepEqual(stored(where).map((row) => row.tokens), [undefined]); // they know our name now, and that is all
  assert.match((await run(where, ['mcp', 'list'])).out, /^calc: needs-auth$/m);
});

test('whatever an answer says, no script of it runs; nor of what is not the answer', options, async () => {
  const { issuer, terminal, page } = await begin();
  const { redirect_uri = '', state = '' } = Object.fromEntries(new URL(await page.address).searchParams);
  const scripts = `<script>alert(1);document.title='owned'</script><img src=x onerror="alert(2)"><svg onload=alert(3)>`;
  const evil = `"'></p>${scripts}`;
  const answer = (more: object) =>
    `${redirect_uri}?${new URLSearchParams({ error: 'access_denied', error_description: evil, iss: issuer, ...more })}`;
  const isHarmless = async (words: RegExp) => {
    assert.equal((await page.see(words)).trim().split('\n').length, 1);
    const found = await page.evaluate('[document.title, document.querySelectorAll("script, img, svg").length]');
    assert.deepEqual(found, ['mcp-by-hand', 0]);
  };
  await page.goTo(answer({ state: evil }));
  await isHarmless(/^This is not the answer that we wait for\.$/m);
  await page.goTo(`${redirect_uri}/${encodeURI(evil)}`);
  await isHarmless(/^This is not the answer that we wait for\.$/m);
  await page.goTo(answer({ state }));
  await isHarmless(/^It did not work\. The terminal says why\.$/m);
  assert.deepEqual(page.happened('Page.javascriptDialogOpening'), []);
  const responses = page.happened('Network.responseReceived').map(({ response }) => response);
  const ours = responses.filter((response) => response.url.startsWith(redirect_uri));
  assert.equal(ours.length, 3);
  for (const { headers } of ours) {
    const lower = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
    assert.match(`${lower['content-security-policy']}`, /default-src 'none'/);
    assert.equal(lower['referrer-policy'], 'no-referrer');
  }
  assert.equal(await terminal.ended(), 3);
  assert.match(unwrapped(terminal.text), /refused us: .*access_denied: /);
  assertClean(terminal.text);
});
