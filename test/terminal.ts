// The program itself, in a process of its own: through pipes, or in a real terminal, which tmux lends us.

import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Json } from '../mcp.ts';
import { folder, later, pause, root } from './helpers.ts';

/** Starts the program from its source: Node reads TypeScript by itself, or with the help of tsx. */
export const fromSource = [
  process.execPath,
  ...((process.features as { typescript?: unknown }).typescript
    ? ['--disable-warning=ExperimentalWarning']
    : ['--import', pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href]),
  join(root, 'agent.ts'),
];

/** The root; for a program that book.ts has cut, into .cache/book/NAME, that of what it was cut from. */
export const repository = existsSync(join(root, 'node_modules')) ? root : join(root, '..', '..', '..');

/** Starts it as its package has it, compiled: that takes a third of the time, and these tests start it often. */
export const command = [process.execPath, join(compiled(), 'agent.js')];

function compiled(): string {
  const names = readdirSync(join(root, 'chapters'), { recursive: true }) as string[];
  const chapters = names.filter((name) => name.endsWith('.ts')).map((name) => join('chapters', name));
  const hash = createHash('sha256');
  for (const name of ['agent.ts', 'mcp.ts', ...chapters.sort()]) hash.update(readFileSync(join(root, name)));
  const target = join(repository, '.cache', `program-${hash.digest('hex').slice(0, 16)}`);
  if (existsSync(target)) return target;
  const unfinished = `${target}.${process.pid}`; // renamed when it is whole: several test files begin at once
  const tsc = join(repository, 'node_modules', 'typescript', 'bin', 'tsc');
  const flags = '--ignoreConfig --noCheck --target es2022 --module nodenext --rewriteRelativeImportExtensions'.split(' ');
  execFileSync(process.execPath, [tsc, 'agent.ts', '--outDir', unfinished, ...flags], { cwd: root });
  writeFileSync(join(unfinished, 'package.json'), '{ "type": "module" }');
  forgetOldPrograms();
  try {
    renameSync(unfinished, target);
  } catch {
    rmSync(unfinished, { recursive: true }); // another was faster
  }
  return target;
}

function forgetOldPrograms(): void {
  const paths = readdirSync(join(repository, '.cache')).map((name) => join(repository, '.cache', name));
  for (const path of paths.filter((each) => /program-\w+$/.test(each))) {
    const stat = statSync(path, { throwIfNoEntry: false }); // another test file may be taking it away just now
    if (stat && Date.now() - stat.mtimeMs > 3_600_000) rmSync(path, { recursive: true, force: true });
  }
}

// ─── Where it runs ────────────────────────────────────────────────────────────────────────────────────────────

export type Place = { home: string; cwd: string };
type Files = Record<string, string | Json>; // what is no text is written as JSON

/** A home and a project of its own, so that no test sees the files of whoever runs it. */
export function place(files: Files = {}, homeFiles: Files = {}): Place {
  const [home, cwd] = [folder(), folder()];
  const put = (where: string, [name, content]: [string, string | Json]) => {
    mkdirSync(dirname(join(where, name)), { recursive: true });
    writeFileSync(join(where, name), typeof content === 'string' ? content : JSON.stringify(content));
  };
  for (const file of Object.entries(files)) put(cwd, file);
  for (const file of Object.entries(homeFiles)) put(home, file);
  return { home, cwd };
}

/** The user's own servers: they start without a question. */
export const userServers = (mcpServers: Json): Files => ({ '.claude/settings.json': { mcpServers } });

/** The variables that the program sees: none of whoever runs the tests but the PATH. */
function environment({ home }: Place, env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, HOME: home, USERPROFILE: home, LANG: 'C.UTF-8', TERM: 'xterm', ...env };
}

// ─── Through pipes ────────────────────────────────────────────────────────────────────────────────────────────

export type Ended = { code: number | null; signal: NodeJS.Signals | null; out: string; err: string };
type Options = { env?: NodeJS.ProcessEnv; input?: string | null }; // null: stdin stays open

/** Starts the program. What it writes can be watched in `seen`. */
export function start(where: Place, args: string[], { env = {}, input = '' }: Options = {}) {
  const [node = '', ...more] = command;
  const child = spawn(node, [...more, ...args], { cwd: where.cwd, env: environment(where, env) });
  later(() => child.kill('SIGKILL'));
  child.stdin.on('error', () => {}); // it may end without reading
  if (input !== null) child.stdin.end(input);
  const seen = { out: '', err: '' };
  child.stdout.setEncoding('utf8').on('data', (text) => (seen.out += text));
  child.stderr.setEncoding('utf8').on('data', (text) => (seen.err += text));
  const ended = new Promise<Ended>((done) => child.on('close', (code, signal) => done({ code, signal, ...seen })));
  return { child, seen, ended };
}

/** Runs the program to its end. */
export function run(where: Place, args: string[], options?: Options): Promise<Ended> {
  return start(where, args, options).ended;
}

// ─── In a terminal ────────────────────────────────────────────────────────────────────────────────────────────

export const KEYS = { enter: 'Enter', ctrlC: 'C-c', ctrlD: 'C-d', up: 'Up' } as const;

/** A tmux lives on by itself. So it is ended with us, also when a runner stops us in the midst of a test. */
const openTerminals = new Set<Terminal>();
function endWithUs(terminal: Terminal): void {
  if (openTerminals.size === 0) {
    process.once('exit', () => openTerminals.forEach((each) => each.close()));
    process.once('SIGTERM', () => process.exit(143));
  }
  openTerminals.add(terminal);
}

export class Terminal {
  private socket: string;
  private record: string;
  private code: string;

  constructor(where: Place, args: string[] = [], env: NodeJS.ProcessEnv = {}, width = 120) {
    const ours = folder();
    this.socket = join(ours, 'tmux');
    this.record = join(ours, 'bytes');
    this.code = join(ours, 'code');
    const settings = join(ours, 'tmux.conf');
    writeFileSync(settings, 'set -g remain-on-exit on\nset -g history-limit 10000\n');
    writeFileSync(this.record, '');
    // It waits for a line before it starts, so that the record of its bytes misses none.
    const program = [...command, ...args].map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ');
    // tmux knows the exit code too, but 3.3 sometimes never hears of it.
    const shell = `read -r _; trap : INT; ${program}; echo $? > '${this.code}'`;
    const size = ['-x', `${width}`, '-y', '50'];
    later(() => this.close());
    endWithUs(this);
    this.tmux(['-f', settings, 'new-session', '-d', ...size, '-c', where.cwd, shell], environment(where, env));
    this.tmux(['pipe-pane', '-o', `cat > '${this.record}'`]);
    this.press(KEYS.enter);
  }

  private tmux(args: string | string[], env = process.env): string {
    try {
      const all = ['-u', '-S', this.socket, ...[args].flat()];
      return execFileSync('tmux', all, { env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      throw new Error('these tests need a terminal, and borrow one from tmux: install it (apt-get install tmux)');
    }
  }

  /** All lines so far; one that was too long for the window is one line again. */
  get text(): string { return this.tmux(['capture-pane', '-p', '-J', '-S', '-']).replace(/[ \n]+$/gm, ''); }
  /** The lines as they stand in the window. */
  get window(): string[] { return this.tmux(['capture-pane', '-p']).trimEnd().split('\n'); }
  /** Every byte that the program has written. */
  get bytes(): string { return readFileSync(this.record, 'utf8'); }

  get title(): string { return this.tmux(['display-message', '-p', '#{pane_title}']); }

  type(text: string): void { this.tmux(['send-keys', '-l', '--', text]); }
  /** As from a clipboard, marked as such if the program has asked for it. */
  paste(text: string): void {
    this.tmux(['set-buffer', '--', text]);
    this.tmux(['paste-buffer', '-p']);
  }
  press(...keys: string[]): void { this.tmux(['send-keys', ...keys]); }
  enter(line: string): void {
    this.type(line);
    this.press(KEYS.enter);
  }

  /** Waits until the terminal shows this, so many times. */
  async see(what: string | RegExp, times = 1): Promise<void> {
    const pattern = typeof what === 'string' ? what.replace(/[.*+?^${}()|[\]\\]/g, '\\$&') : what.source;
    for (const begin = Date.now(); [...this.text.matchAll(new RegExp(pattern, 'gm'))].length < times; await pause(30))
      if (Date.now() - begin > 30_000) throw new Error(`waited 30 s in vain for ${what} (${times}×) in:\n${this.text}`);
  }

  /** Waits until the program is ready for the next prompt. */
  async ready(): Promise<void> { await this.see(/^›$(?![^]*^\S)/); }

  /** As when somebody closes the window. */
  close(): void {
    try {
      this.tmux('kill-server');
    } catch {} // it is closed, or was never open
  }

  /** Its exit code, as soon as there is one. */
  async ended(): Promise<number> {
    const code = () => (existsSync(this.code) ? readFileSync(this.code, 'utf8') : '');
    for (const begin = Date.now(); !code().endsWith('\n'); await pause(30))
      if (Date.now() - begin > 30_000) throw new Error(`it did not end within 30 s:\n${this.text}`);
    return Number(code());
  }
}

// ─── What it leaves behind ────────────────────────────────────────────────────────────────────────────────────

/** The JSON values in a text of one per line. A line that is still being written does not count. */
export const jsonLines = (text: string): any[] => text.split('\n').slice(0, -1).map((line) => JSON.parse(line));
export const readLines = (file: string): any[] => (existsSync(file) ? jsonLines(readFileSync(file, 'utf8')) : []);
