// Chromium without a window, which we watch, type and click in by its DevTools protocol: opened by the
// program itself as `xdg-open` does, or by a test.

import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { folder, later, until } from './basics.ts';

export const chromium = ['chromium', 'chromium-browser', 'google-chrome']
  .flatMap((name) => (process.env.PATH ?? '').split(':').map((folder) => join(folder, name)))
  .find((path) => existsSync(path));

const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--disable-dev-shm-usage',
  '--disable-breakpad',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-first-run',
  '--password-store=basic',
  '--remote-debugging-pipe',
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
const args = [...flags.split('\\n'), '--user-data-dir=' + profile, url];
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

/** The one page of a browser. */
export class Page {
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
    socket.on('close', () =>
      this.waiting.forEach((tell) => tell({ error: { message: 'the browser is gone' } })),
    );
  }

  private hear({ id, ...message }: any): void {
    if (id !== undefined) return this.waiting.get(id)?.(message);
    this.events.push(message);
    if (message.method === 'Target.attachedToTarget' && this.session)
      void this.watch(message.params.sessionId);
    // As long as one is open, a page answers nothing.
    const isDialog = message.method === 'Page.javascriptDialogOpening';
    if (isDialog) this.send('Page.handleJavaScriptDialog', { accept: false }).catch(() => {});
  }

  /** What is said in frames of other sites, too: each is a process of its own. */
  async watch(session = this.session): Promise<void> {
    const all = { autoAttach: true, waitForDebuggerOnStart: false, flatten: true };
    for (const [method, params] of [
      ['Log.enable', {}],
      ['Target.setAutoAttach', all],
    ] as const)
      await this.send(method, params, session).catch(() => {}); // a worker has no log
  }

  /** The same as `evaluate`, in the frame of this path; `undefined` if there is none yet. As if the user had clicked. */
  async inFrameAt(path: string, expression: string): Promise<any> {
    for (const { sessionId } of this.happened('Target.attachedToTarget').reverse()) {
      const params = { returnByValue: true, awaitPromise: true, userGesture: true };
      const run = (text: string) =>
        this.send('Runtime.evaluate', { ...params, expression: text }, sessionId).then(
          ({ result }) => result.value,
          () => undefined, // it is gone
        );
      if ((await run('location.pathname')) === path) return run(expression);
    }
    return undefined;
  }

  /** A command of the DevTools protocol. */
  async send(method: string, params: object = {}, session = this.session): Promise<any> {
    const id = ++this.lastId;
    const answered = new Promise<any>((done) => this.waiting.set(id, done));
    this.socket.write(`${JSON.stringify({ id, method, params, sessionId: session })}\0`);
    const { result, error } = await answered;
    if (error) throw new Error(`${method}: ${error.message}`);
    return result;
  }

  async attach(): Promise<void> {
    let target: any;
    const isPage = ({ type }: any) => type === 'page';
    while (!target) target = (await this.send('Target.getTargets')).targetInfos.find(isPage);
    const { targetId } = target;
    this.session = (
      await this.send('Target.attachToTarget', { targetId, flatten: true })
    ).sessionId;
    for (const domain of ['Page', 'Runtime', 'Log', 'Network']) await this.send(`${domain}.enable`);
  }

  async evaluate(expression: string): Promise<any> {
    return (
      await this.send('Runtime.evaluate', { expression, returnByValue: true, awaitPromise: true })
    ).result.value;
  }

  /** What is in the frame of a page that was opened as a file is not the page's to read: so from a world beside it. */
  async inFrame(expression: string): Promise<any> {
    const { frameTree } = await this.send('Page.getFrameTree');
    const frameId = frameTree.childFrames?.[0].frame.id;
    const { executionContextId: contextId } = await this.send('Page.createIsolatedWorld', {
      frameId,
    });
    const { result } = await this.send('Runtime.evaluate', { expression, contextId });
    return result.value;
  }

  /** Waits until the page says this, and gives back all that it says, as people see it. */
  async see(what: RegExp): Promise<string> {
    const words = 'document.readyState === "complete" && document.body.innerText';
    for (const begin = Date.now(); ; ) {
      const text = `${await this.evaluate(words).catch(() => '')}`;
      if (what.test(text)) return text;
      if (Date.now() - begin > 30_000)
        throw new Error(`waited 30 s in vain for ${what} on a page that says:\n${text}`);
    }
  }

  /** Waits until this is something there, and gives it back. */
  async when(expression: string): Promise<any> {
    for (const begin = Date.now(); ; ) {
      const value = await this.evaluate(expression).catch(() => undefined);
      if (value) return value;
      if (Date.now() - begin > 30_000) throw new Error(`waited 30 s in vain for ${expression}`);
    }
  }

  get address(): Promise<string> {
    return this.evaluate('location.href');
  }

  async goTo(url: string): Promise<void> {
    await this.send('Page.navigate', { url });
  }

  /** With the mouse, in the middle of it. */
  async click(selector: string): Promise<void> {
    const box = `JSON.stringify(document.querySelector(${JSON.stringify(selector)}).getBoundingClientRect())`;
    const { x, y, width, height } = JSON.parse(await this.evaluate(box));
    const at = { x: x + width / 2, y: y + height / 2, button: 'left', clickCount: 1 };
    for (const type of ['mousePressed', 'mouseReleased'])
      await this.send('Input.dispatchMouseEvent', { type, ...at });
  }

  /** With the keyboard: a character, or a key by its name. */
  async press(...keys: string[]): Promise<void> {
    for (const key of keys) {
      const text = key.length === 1 ? { text: key } : {};
      const code = CODES[key] ?? 0;
      await this.send('Input.dispatchKeyEvent', {
        type: 'keyDown',
        key,
        windowsVirtualKeyCode: code,
        ...text,
      });
      await this.send('Input.dispatchKeyEvent', {
        type: 'keyUp',
        key,
        windowsVirtualKeyCode: code,
      });
    }
  }

  /** A picture of what is to be seen, as a PNG. */
  async picture(): Promise<Buffer> {
    return Buffer.from((await this.send('Page.captureScreenshot')).data, 'base64');
  }

  happened(...methods: string[]): any[] {
    return this.events.filter(({ method }) => methods.includes(method)).map(({ params }) => params);
  }
}

const CODES: Record<string, number> = {
  Enter: 13,
  Escape: 27,
  ' ': 32,
  PageUp: 33,
  PageDown: 34,
  End: 35,
  Home: 36,
  ArrowLeft: 37,
  ArrowUp: 38,
  ArrowRight: 39,
  ArrowDown: 40,
  Tab: 9,
};

/** A browser of the test's own, with an empty page. It ends with `cleanUp`. */
export function browse(...flags: string[]): Promise<Page> {
  const { opener, page } = desktop(flags);
  spawn(opener, ['about:blank'], { stdio: 'ignore' });
  return page();
}

/** A desktop on which `xdg-open` opens Chromium; `page` is there when it has. */
export function desktop(flags: string[] = []) {
  const ours = folder();
  const opener = join(ours, 'opener.mjs');
  const sockets = new Set<Socket>();
  writeFileSync(opener, OPENER);
  const words = [process.execPath, opener, chromium!, ours, [...FLAGS, ...flags].join('\n')]
    .map((word) => `'${word}'`)
    .join(' ');
  writeFileSync(join(ours, 'xdg-open'), `#!/bin/sh\nexec ${words} "$1"\n`, { mode: 0o755 });
  const server = createServer();
  const opened = new Promise<Socket>((done) =>
    server.on('connection', (socket) => {
      sockets.add(socket.on('error', () => {}));
      done(socket);
    }),
  );
  server.listen(join(ours, 'socket'));
  later(async () => {
    server.close();
    sockets.forEach((socket) => socket.destroy());
    await until(() => processesIn(ours).length === 0, 'the end of the browser');
    await until(
      () => !readdirSync(ours).some((name) => name.startsWith('profile-')),
      'the end of its profile',
    );
  });
  const page = async () => {
    const found = new Page(await opened);
    await found.attach();
    return found;
  };
  const env = { PATH: `${ours}:${process.env.PATH}`, DISPLAY: ':0' };
  return { env, opener: join(ours, 'xdg-open'), page };
}

/** The processes that have to do with a folder, by what they were started with. */
function processesIn(path: string): string[] {
  const pids = existsSync('/proc/self/cmdline')
    ? readdirSync('/proc').filter((name) => /^\d+$/.test(name))
    : [];
  return pids.filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(path);
    } catch {
      return false; // it has just ended
    }
  });
}
