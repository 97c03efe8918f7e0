// shell.ts: one command in a shell of its own, which ends when we say so, with everything that it started.

import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, existsSync, writeSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { StringDecoder } from 'node:string_decoder';
import type { ToolContext, ToolOutput, WholeText } from '../../agent.ts';
import {
  leaveNoOrphan,
  living,
  MARK,
  marks,
  newMark,
  safeEnv,
  signalGroup,
  textOf,
  withSafePath,
} from '../../mcp.ts';
import { gitEnv } from './git-settings.ts';
import type { Roots } from './paths.ts';
import { inert, inWords, newFile } from './results.ts';

const MAX_TAIL_BYTES = 30 * 1024;
const MAX_TAIL_LINES = 2000;
const MAX_FILE_BYTES = 50 * 2 ** 20;
const MAX_COMMAND = 30_000;
const DEFAULT_TIMEOUT_S = 120;
const MAX_TIMEOUT_S = 600;
const LIVE_MS = 200; // between two looks at the output of a command that runs
const LIVE_LINES = 10;
const MAX_LIVE_BYTES = 4096;
const PIPE_GRACE_MS = 250;
const TERM_GRACE_MS = 1000;
const IS_WINDOWS = process.platform === 'win32';

/** `env` names variables of ours that commands get besides the safe ones. */
type ShellOptions = { roots: Roots; resultsFolder: string; env?: string[] };
type ShellArguments = { command: string; timeout?: number };

export async function bash(
  args: ShellArguments,
  options: ShellOptions,
  context: ToolContext,
): Promise<ToolOutput> {
  const { signal, onProgress } = context;
  const seconds = Math.min(args.timeout ?? DEFAULT_TIMEOUT_S, MAX_TIMEOUT_S);
  const output = new CommandOutput(options.resultsFolder);
  const child = start(args.command, options, context.isUnasked);
  const end = ended(child); // listens from now on, for a child that cannot be started says so very soon
  leaveNoOrphan(child);
  const dismiss = watch(child);
  child.stdin?.on('error', () => {}).end('\n'); // now it begins
  const live = throttled(() => onProgress({ output: output.lastLines() }));
  child.stdout?.on('data', (chunk: Buffer) => {
    output.add(chunk);
    live.call();
  });

  let why: string | undefined; // it did not end by itself
  const stop = (reason: string) => {
    why ??= reason;
    signalGroup(child, 'SIGTERM');
    clearTimeout(timer);
    timer = setTimeout(() => signalGroup(child, 'SIGKILL'), TERM_GRACE_MS);
  };
  let timer = setTimeout(() => stop(`timed out after ${seconds} s`), seconds * 1000);
  const onAbort = () => stop('stopped');
  signal.addEventListener('abort', onAbort);
  try {
    await end;
  } finally {
    clearTimeout(timer);
    live.stop();
    signal.removeEventListener('abort', onAbort);
    const wereLeft = signalGroup(child, 'SIGKILL');
    if (wereLeft && !why) output.note('[background processes of the command were ended with it]');
    living.delete(child);
    dismiss();
    child.stdout?.destroy(); // a process that left the group may still hold it
    output.close();
  }
  why ??= child.signalCode ? `ended by ${child.signalCode}` : `exit code ${child.exitCode}`;
  return { ...inWords(output.text() + why, why !== 'exit code 0'), whole: output.whole };
}

function start(command: string, options: ShellOptions, isUnasked?: boolean): ChildProcess {
  const { roots, env = [] } = options;
  const { cwd } = roots;
  if (command.length > MAX_COMMAND)
    // systems have a limit, and its message helps nobody
    throw new Error(
      `the command has more than ${MAX_COMMAND} characters; write it to a file and run that`,
    );
  if (!existsSync(cwd))
    throw new Error(`the working folder ${cwd} is gone; nothing can be run in it`);
  const shell = findShell();
  const named = Object.fromEntries(env.map((name) => [name, process.env[name]]));
  // It waits for a line from us, and not one moment is left in which it runs and nobody would end it. One pipe takes
  // all its output, so the order is as it was written. What asks something reads the end of its input, and goes on.
  const script = 'read -r _ && exec "$0" -c "$1" </dev/null 2>&1';
  // An editor would wait for a person: a merge takes the message that git proposes, a commit needs its -m.
  const quiet = {
    PAGER: 'cat',
    GIT_PAGER: 'cat',
    GIT_EDITOR: 'true',
    NO_COLOR: '1',
    TERM: 'dumb',
    CI: '1',
    SHLVL: '1', // else bash takes our pipe for a network connection, and reads ~/.bashrc, which may set another PATH
  };
  const mark = newMark(); // by which those are found that leave the group
  const all = { ...safeEnv(), ...quiet, ...named, ...gitEnv(command, cwd), [MARK]: mark };
  const child = spawn(shell, ['-c', script, shell, command], {
    cwd,
    env: isUnasked ? withoutProjects(all, roots) : all,
    stdio: ['pipe', 'pipe', 'ignore'],
    detached: !IS_WINDOWS, // a process group of its own, so that it can be ended with all its children
    windowsHide: true,
  });
  marks.set(child, mark);
  return child;
}

/** Where nobody looked, a name means a program of the system, as for servers: `npx`, `npm run` and an active `.venv` put
 *  folders of the project on the PATH. Who was asked keeps theirs. */
function withoutProjects(env: NodeJS.ProcessEnv, { folders }: Roots): NodeJS.ProcessEnv {
  const { CLAUDE_PROJECT_DIR: project } = env;
  const without = (safe: NodeJS.ProcessEnv, folder: string) =>
    withSafePath({ ...safe, CLAUDE_PROJECT_DIR: folder });
  return { ...folders.reduce(without, env), CLAUDE_PROJECT_DIR: project };
}

function findShell() {
  const { PATH = '' } = withSafePath({ PATH: process.env.PATH }); // a project may have a bash of its own
  const folders = PATH.split(delimiter);
  // The bash in Windows' own folder belongs to WSL: another system, with other paths.
  const gitBash = [
    'C:\\Program Files\\Git\\bin',
    ...folders.filter((folder) => /git/i.test(folder)),
  ];
  const [places, names] = IS_WINDOWS
    ? [gitBash, ['bash.exe']]
    : [
        [...folders, '/bin'],
        ['bash', 'sh'],
      ];
  const found = names
    .flatMap((name) => places.map((folder) => join(folder, name)))
    .find((path) => existsSync(path));
  const hint = IS_WINDOWS
    ? 'install Git Bash, from https://git-scm.com'
    : 'there is neither bash nor sh on the PATH';
  if (!found) throw new Error(`no shell was found: ${hint}`);
  return found;
}

/** The pipe closes when nobody holds it any more. A background process may hold it for ever: after the shell has
 *  ended, what is still in the pipe gets a moment, and not more. */
function ended(child: ChildProcess): Promise<void> {
  return new Promise((done, fail) => {
    child.once('error', (error) =>
      fail(new Error(`the shell could not be started: ${error.message}`)),
    );
    child.once('close', () => done());
    child.once('exit', () => setTimeout(done, PIPE_GRACE_MS));
  });
}

/** Calls a function soon, and not more often than a person can look. */
function throttled(call: () => void) {
  let timer: NodeJS.Timeout | undefined;
  const now = () => {
    timer = undefined;
    call();
  };
  return { call: () => (timer ??= setTimeout(now, LIVE_MS)), stop: () => clearTimeout(timer) };
}

// ─── Output ───────────────────────────────────────────────────────────────────────────────────────────────────

/** Keeps the end, where the errors are. As soon as that is not all, everything goes to a file as well. */
class CommandOutput {
  private folder: string;
  private tail: Buffer[] = [];
  private tailBytes = 0;
  private total = 0;
  private lines = 0;
  private file?: { path: string; fd: number };
  private fileBytes = 0;
  private decoder = new StringDecoder(); // a character may begin in one chunk and end in the next
  private notes: string[] = [];

  constructor(folder: string) {
    this.folder = folder;
  }

  note(text: string): void {
    this.notes.push(text);
  }

  add(chunk: Buffer) {
    this.total += chunk.length;
    for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, at + 1)) this.lines++;
    this.tail.push(chunk);
    this.tailBytes += chunk.length;
    if (this.file) this.write(chunk);
    else if (this.total > MAX_TAIL_BYTES || this.lines > MAX_TAIL_LINES) this.spill();
    while (this.tailBytes - this.tail[0]!.length >= MAX_TAIL_BYTES)
      this.tailBytes -= this.tail.shift()!.length;
  }

  /** For a person who watches. */
  lastLines() {
    const end = Buffer.concat(this.tail).subarray(-MAX_LIVE_BYTES).toString();
    const lines = end.replace(/\n$/, '').split('\n');
    return lines.slice(-LIVE_LINES).join('\n');
  }

  private spill() {
    try {
      this.file = newFile(this.folder, 'bash', 'txt');
      for (const chunk of this.tail) this.write(chunk);
    } catch (error) {
      this.file = { path: '', fd: -1 };
      this.note(`[the whole output could not be saved: ${textOf(error)}]`);
    }
  }

  /** Waits for the disk, on purpose: a command that writes faster than the disk has to wait too. */
  private write(chunk: Buffer) {
    if (this.file!.fd === -1) return;
    const text = inert(this.decoder.write(chunk));
    const piece = Buffer.from(text).subarray(0, MAX_FILE_BYTES - this.fileBytes);
    try {
      for (let done = 0; done < piece.length; ) done += writeSync(this.file!.fd, piece, done);
      this.fileBytes += piece.length;
      if (this.fileBytes < MAX_FILE_BYTES) return;
      this.note(`[the file ends after ${MAX_FILE_BYTES} bytes, the command wrote more]`);
    } catch (error) {
      this.note(`[the file is not complete: ${textOf(error)}]`);
    }
    this.close();
  }

  close() {
    if (!this.file || this.file.fd === -1) return;
    closeSync(this.file.fd);
    this.file.fd = -1;
  }

  get whole(): WholeText | undefined {
    return this.file?.path ? { lines: this.lines, path: this.file.path } : undefined;
  }

  /** What the model reads, up to the line that tells how the command ended. */
  text() {
    const kept = Buffer.concat(this.tail).subarray(-MAX_TAIL_BYTES);
    const lines = kept.toString().split('\n');
    if (kept.length < this.total && lines.length > 1) lines.shift(); // it was cut, maybe inside of a character
    const text = lines.slice(-MAX_TAIL_LINES - 1).join('\n'); // one more, because behind the last LF there is nothing
    const whole = this.whole ? `; the whole is in ${this.whole.path}` : '';
    const head = this.file
      ? `[${this.total} bytes in ${this.lines} lines, of which this is the end${whole}]\n`
      : '';
    const notes = this.notes.map((note) => `${note}\n`).join('');
    return head + text + (text === '' || text.endsWith('\n') ? '' : '\n') + notes;
  }
}

// ─── The end ──────────────────────────────────────────────────────────────────────────────────────────────────

/** After kill -9 we can do nothing any more. So a little shell waits for a line from us, and ends the group when
 *  our side of the pipe closes without one: that happens however we end. */
function watch({ pid }: ChildProcess): () => void {
  if (IS_WINDOWS || pid === undefined) return () => {};
  const script = 'read -r _ || kill -s KILL -- "-$0"';
  const watcher = spawn(findShell(), ['-c', script, `${pid}`], {
    // detached: a Ctrl-C is not meant for it
    cwd: '/',
    env: {},
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  // It is a help, and no condition. (Where too many files are open, it has no stdin.)
  for (const each of [watcher, watcher.stdin]) each?.on('error', () => {});
  watcher.unref();
  return () => watcher.stdin?.end('\n');
}
