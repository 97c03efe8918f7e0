// The program itself, in a process of its own: through pipes, or in a real terminal.

import { spawn as spawnInPty, type IPty } from '@lydell/node-pty';
import xterm from '@xterm/headless';
import { buildSync, type BuildOptions } from 'esbuild';
import { spawn, spawnSync } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Json } from '../../mcp.ts';
import { compiled, repository } from './compiled.ts';
import { folder, later, root } from './basics.ts';

const isTypeScriptRead = Boolean((process.features as { typescript?: unknown }).typescript);
const tsx = () => pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href;

/** Starts the program from its source: Node reads TypeScript by itself, or with the help of tsx. */
export const fromSource = [
  process.execPath,
  ...(isTypeScriptRead ? ['--disable-warning=ExperimentalWarning'] : ['--import', tsx()]),
  join(root, 'agent.ts'),
];

export { repository };

// A program that was cut has no package, so agent.ts is all there is to start.
const entry = existsSync(join(root, 'chapters', 'start.ts')) ? 'chapters/start' : 'agent';

// What tests import by itself is a way in, too.
const modules = ['mcp', 'chapters/16-hands/shell', 'chapters/20-streamable-http/http'];

// Each start adds the functions that those before it have not needed.
const OFTEN = [
  ['-p', 'hello'],
  ['mcp', 'list'],
  ['call', 'add', 'a=2', 'b=40', '--', process.execPath, join(root, 'fixtures', 'server.mjs')],
];

/** It is started compiled, in one file that is not an ES module, as its package has it for one call,
 *  and with what V8 made of it at its first starts: in a sixth of the time, and we start it often. */
export const programFolder = compiled('bundled', compile);
const program = join(programFolder, entry === 'agent' ? 'agent.js' : `${entry}.cjs`);
export const command: [string, ...string[]] = [process.execPath, program];

function compile(target: string): void {
  const pathOf = (name: string) => join(root, `${name}.ts`);
  const toNode: BuildOptions = {
    outdir: target,
    outbase: root,
    bundle: true,
    platform: 'node',
    target: 'node20',
    logLevel: 'warning',
  };
  const sources = ['agent', ...modules].map(pathOf).filter((path) => existsSync(path));
  // In a part of its own, agent.ts would not know that it was started.
  buildSync({ ...toNode, entryPoints: sources, format: 'esm', splitting: entry !== 'agent' });
  writeFileSync(join(target, 'package.json'), '{ "type": "module" }');
  if (entry === 'agent') return;
  const wrapped = {
    // No module in it is the one that was started, but for the first, which does not ask.
    banner: { js: '(function (require, module, exports, here) {' },
    footer: { js: '})' },
    define: { 'import.meta.url': 'here' },
  };
  buildSync({
    ...toNode,
    ...wrapped,
    entryPoints: { [`${entry}-itself`]: pathOf(entry) },
    format: 'cjs',
    outExtension: { '.js': '.cjs' },
    minifyWhitespace: true,
    keepNames: true,
    minifySyntax: true,
  });
  // esbuild leaves the characters in regular expressions as they are.
  const itself = join(target, `${entry}-itself.cjs`);
  const code = (letter: string) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`;
  writeFileSync(itself, readFileSync(itself, 'utf8').replace(/[^\0-\x7f]/g, code));
  const start = join(target, `${entry}.cjs`);
  copyFileSync(join(root, 'test', 'programs', 'start.cjs'), start);
  for (const args of OFTEN) learn(start, args);
  rmSync(join(target, 'home'), { recursive: true, force: true });
}

function learn(program: string, args: string[]): void {
  const cwd = join(dirname(program), '..', 'home');
  mkdirSync(cwd, { recursive: true });
  const env = { PATH: process.env.PATH, HOME: cwd, USERPROFILE: cwd, LEARN: 'yes' };
  const { status } = spawnSync(process.execPath, [program, ...args], { cwd, env });
  if (status !== 0) throw new Error(`the compiled program fails: ${program} ${args.join(' ')}`);
}

// ─── Where it runs ───────────────────────────────────────────────────────────────────────────────

export type Place = { home: string; cwd: string };
type Files = Record<string, string | Json>; // what is not text is written as JSON

/** A home and a project of its own, so that no test sees the files of the user who runs it. */
export function place(files: Files = {}, homeFiles: Files = {}): Place {
  const home = folder();
  const cwd = folder();
  write(cwd, files);
  write(home, homeFiles);
  return { home, cwd };
}

function write(where: string, files: Files): void {
  for (const [name, content] of Object.entries(files)) {
    const path = join(where, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  }
}

/** The user's own servers: they start without a question. */
export function userServers(mcpServers: Json): Files {
  return { '.claude/settings.json': { mcpServers } };
}

/** The variables that the program sees: of those around the tests only the PATH. */
function environment({ home }: Place, env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return {
    PATH: process.env.PATH,
    HOME: home,
    USERPROFILE: home,
    LANG: 'C.UTF-8',
    TERM: 'xterm',
    MCP_GRACE: '60000', // a busy machine may be slow to start a server
    ...env,
  };
}

// ─── Through pipes ───────────────────────────────────────────────────────────────────────────────

export type Ended = {
  code: number | null;
  signal: NodeJS.Signals | null;
  out: string;
  err: string;
};
type Options = { env?: NodeJS.ProcessEnv; input?: string | null }; // null: stdin stays open

/** Starts the program. What it writes can be watched in `seen`. */
export function start(where: Place, args: string[], { env = {}, input = '' }: Options = {}) {
  const [node, ...more] = command;
  const child = spawn(node, [...more, ...args], { cwd: where.cwd, env: environment(where, env) });
  later(() => child.kill('SIGKILL'));
  child.stdin.on('error', () => {}); // it may end without reading
  if (input !== null) child.stdin.end(input);
  const seen = { out: '', err: '' };
  child.stdout.setEncoding('utf8').on('data', (text) => (seen.out += text));
  child.stderr.setEncoding('utf8').on('data', (text) => (seen.err += text));
  const ended = new Promise<Ended>((done) => {
    child.on('close', (code, signal) => done({ code, signal, ...seen }));
  });
  return { child, seen, ended };
}

/** Runs the program to its end. */
export function run(where: Place, args: string[], options?: Options): Promise<Ended> {
  return start(where, args, options).ended;
}

// ─── In a terminal ───────────────────────────────────────────────────────────────────────────────

/** What a keyboard sends. */
export const KEYS = {
  enter: '\r',
  ctrlA: '\x01',
  ctrlC: '\x03',
  ctrlD: '\x04',
  ctrlE: '\x05',
  ctrlJ: '\n',
  ctrlU: '\x15',
  ctrlZ: '\x1a',
  altEnter: '\x1b\r',
  escape: '\x1b',
  up: '\x1b[A',
  down: '\x1b[B',
  left: '\x1b[D',
  right: '\x1b[C',
  home: '\x1b[H',
  end: '\x1b[F',
  tab: '\t',
  shiftTab: '\x1b[Z',
  backspace: '\x7f',
} as const;
const PASTE_BEGINS = '\x1b[200~';
const PASTE_ENDS = '\x1b[201~';
const LIMIT_MS = 30_000; // it only ends a hang

/** The program on a terminal of its own: a pty, as the kernel makes them for every terminal window,
 *  and a screen on which what the program writes is drawn. */
export class Terminal {
  /** Every byte that the program has written. */
  bytes = '';
  title = '';
  private pty: IPty;
  private screen: xterm.Terminal;
  private exitCode?: number;
  private changes = new EventEmitter();

  constructor(
    where: Place,
    args: string[] = [],
    env: NodeJS.ProcessEnv = {},
    width = 120,
    rows = 50,
    program = command,
  ) {
    const size = { cols: width, rows };
    const [node, ...more] = program;
    // Proposed: xterm.js may still change how its buffer is read.
    this.screen = new xterm.Terminal({ ...size, scrollback: 10_000, allowProposedApi: true });
    this.pty = spawnInPty(node, [...more, ...args], {
      ...size,
      cwd: where.cwd,
      env: environment(where, env),
    });
    later(() => this.end());
    this.connect();
  }

  private connect(): void {
    const changed = () => this.changes.emit('change');
    this.pty.onData((text) => {
      this.bytes += text;
      this.screen.write(text, changed);
    });
    this.pty.onExit(({ exitCode, signal }) => {
      // Queued behind all output: at the end everything is on the screen.
      this.screen.write('', () => {
        this.exitCode = signal ? 128 + signal : exitCode; // as a shell tells it
        changed();
      });
    });
    this.screen.onData((answer) => this.pty.write(answer)); // a program can ask where the cursor is
    this.screen.onTitleChange((title) => {
      this.title = title;
    });
  }

  // ── What it shows ──

  /** All lines so far; one that was too long for the window is one line again. */
  get text(): string {
    const { active } = this.screen.buffer;
    let text = '';
    for (let n = 0; n < active.length; n++) {
      const line = active.getLine(n)!;
      if (n > 0 && !line.isWrapped) text += '\n';
      text += line.translateToString(true);
    }
    const prompts = text.replace(/ *\n┆ /g, ' '); // one that we broke ourselves is one line, too
    return prompts.replace(/[ \n]+$/gm, '');
  }

  /** The lines as they are in the window. */
  get window(): string[] {
    const { active } = this.screen.buffer;
    const lines: string[] = [];
    for (let n = active.baseY; n < active.length; n++)
      lines.push(active.getLine(n)!.translateToString(true).trimEnd());
    return lines.join('\n').trimEnd().split('\n');
  }

  get pid(): number {
    return this.pty.pid;
  }

  // ── What its user does ──

  type(text: string): void {
    this.pty.write(text);
  }

  press(...keys: string[]): void {
    this.type(keys.join(''));
  }

  enter(line: string): void {
    this.type(line + KEYS.enter);
  }

  /** As from a clipboard, marked as such if the program has asked for it. */
  paste(text: string): void {
    const typed = text.replaceAll('\n', KEYS.enter);
    const isMarked = this.screen.modes.bracketedPasteMode;
    this.type(isMarked ? PASTE_BEGINS + typed + PASTE_ENDS : typed);
  }

  resize(width: number, rows = this.screen.rows): void {
    this.screen.resize(width, rows);
    this.pty.resize(width, rows);
  }

  /** As when its window is closed: the program hears SIGHUP, and has no terminal any more.
   *  The types of node-pty hide destroy(). Its kill() sends the signal, but keeps the pty open. */
  close(): void {
    (this.pty as IPty & { destroy(): void }).destroy();
  }

  // ── What a test waits for ──

  /** Waits until the terminal shows this, so many times. */
  async see(what: string | RegExp, times = 1): Promise<void> {
    const pattern = typeof what === 'string' ? words(what) : what.source;
    const all = new RegExp(pattern, 'gm');
    const isSeen = () => (this.text.match(all)?.length ?? 0) >= times;
    await this.until(isSeen, `${what} (${times}×)`);
  }

  /** Waits until the program is ready for the next prompt. */
  async ready(): Promise<void> {
    await this.see(/^(?:[a-z-]+ )?›$(?![^]*^\S)/);
  }

  /** Its exit code, as soon as there is one. */
  async ended(): Promise<number> {
    await this.until(() => this.exitCode !== undefined, 'its end');
    return this.exitCode!;
  }

  /** Looks whenever something was drawn, and no more when the program has ended. */
  private async until(condition: () => boolean, what: string): Promise<void> {
    const signal = AbortSignal.timeout(LIMIT_MS);
    while (!condition()) {
      if (this.exitCode !== undefined)
        throw new Error(`it ended with ${this.exitCode}, without ${what} in:\n${this.text}`);
      await once(this.changes, 'change', { signal }).catch(() => {
        throw new Error(`waited ${LIMIT_MS / 1000} s in vain for ${what} in:\n${this.text}`);
      });
    }
  }

  /** No program outlives its test. */
  private async end(): Promise<void> {
    this.close();
    try {
      await this.ended();
    } catch (error) {
      this.pty.kill('SIGKILL');
      throw error;
    }
  }
}

/** A shell with job control on a terminal, which starts the program as a user does. */
export function shell(where: Place, args: string[], env: NodeJS.ProcessEnv = {}): Terminal {
  const bash = ['bash', '--norc', '--noprofile', '-i'] as [string, ...string[]];
  const terminal = new Terminal(where, [], { PS1: 'shell> ', ...env }, 120, 50, bash);
  terminal.enter([...command, ...args].map((word) => `'${word}'`).join(' '));
  return terminal;
}

/** The same, where a row may end between two words. */
const words = (text: string) => escaped(text).replaceAll(' ', '(?: |\\n *)');

/** Text as a regular expression that matches it alone. */
function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}

// ─── What it leaves behind ───────────────────────────────────────────────────────────────────────

/** The JSON values in a text of one per line. A line that is still being written does not count. */
export function jsonLines(text: string): any[] {
  const lines = text.split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line));
}

export function readLines(file: string): any[] {
  return existsSync(file) ? jsonLines(readFileSync(file, 'utf8')) : [];
}
