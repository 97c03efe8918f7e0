// hooks.ts: a command of yours that answers a server's question before you are asked, and sees or
// changes the answer before it leaves. In your own settings, as Claude Code has them:
//
//   "hooks": { "Elicitation": [
//     { "matcher": "server", "hooks": [{ "type": "command", "command": "…" }] }
//   ] }

import { spawn, type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import {
  asList,
  asObject,
  isObject,
  leaveNoOrphan,
  living,
  readJsonFile,
  safeEnv,
  signalGroup,
  textOf,
  type Json,
} from '../../../mcp.ts';
import type { ElicitResult, Elicitation } from '../elicitation.ts';

/** Functions of a program, or commands of the settings. What they return takes the place of the
 *  question, or of the answer; `undefined` leaves it alone. */
export type ElicitationHooks = {
  before?: (asked: Elicitation, signal: AbortSignal) => Promise<ElicitResult | undefined>;
  after?: (
    asked: Elicitation,
    answer: ElicitResult,
    signal: AbortSignal,
  ) => Promise<ElicitResult | undefined>;
};

type HookCommand = { matcher: string; command: string; timeoutMs: number };
type HookEvent = 'Elicitation' | 'ElicitationResult';
type Configured = { event: HookEvent; commands: HookCommand[] };

const DEFAULT_TIMEOUT_S = 60;
const MAX_OUTPUT = 2 ** 20; // characters
const DECLINE = 2; // the exit code that says no

/** The hooks of the user's settings. A project's are not read: it would answer its own questions. */
export function configuredHooks(home: string, warn: (text: string) => void): ElicitationHooks {
  const file = join(home, '.claude', 'settings.json');
  const first = commandsFor('Elicitation', file, warn);
  const last = commandsFor('ElicitationResult', file, warn);
  return {
    before: (asked, signal) => firstAnswer(first, asked, wordsOf(asked), signal, warn),
    after: (asked, answer, signal) =>
      firstAnswer(last, asked, { ...idsOf(asked), ...answer }, signal, warn),
  };
}

/** Of the commands that are meant for this server, the first that has something to say. */
async function firstAnswer(
  { event, commands }: Configured,
  { server }: Elicitation,
  facts: Json,
  signal: AbortSignal,
  warn: (text: string) => void,
): Promise<ElicitResult | undefined> {
  const cwd = process.cwd();
  const input = { hook_event_name: event, cwd, mcp_server_name: server, ...facts };
  for (const { command, timeoutMs } of commands.filter(({ matcher }) => isMeant(matcher, server))) {
    const answer = await answerOf(command, { input, cwd, timeoutMs, signal }, warn);
    if (answer) return answer;
  }
  return undefined;
}

function idsOf({ mode, id }: Elicitation): Json {
  return id === undefined ? { mode } : { mode, elicitation_id: id };
}

function wordsOf(asked: Elicitation): Json {
  const { message } = asked;
  const what = asked.mode === 'form' ? { requested_schema: asked.schema } : { url: asked.url.href };
  return { ...idsOf(asked), message, ...what };
}

function commandsFor(event: HookEvent, file: string, warn: (text: string) => void): Configured {
  try {
    const { hooks } = readJsonFile(file) ?? {};
    const groups = asObject(hooks)[event];
    const commands = asList(groups).filter(isObject).flatMap(commandsIn);
    return { event, commands };
  } catch (error) {
    warn(`${file}: its hooks are not read: ${textOf(error)}`);
    return { event, commands: [] };
  }
}

function commandsIn({ matcher, hooks }: Json): HookCommand[] {
  const rows = asList(hooks).filter(isObject);
  const isUsable = ({ type, command }: Json) => type === 'command' && typeof command === 'string';
  return rows.filter(isUsable).map(({ command, timeout }) => ({
    matcher: typeof matcher === 'string' ? matcher : '',
    command: String(command),
    timeoutMs: 1000 * (typeof timeout === 'number' && timeout > 0 ? timeout : DEFAULT_TIMEOUT_S),
  }));
}

/** The name of a server, several with | between them, or * for all. */
function isMeant(matcher: string, server: string): boolean {
  return matcher === '' || matcher === '*' || matcher.split('|').includes(server);
}

type HookRun = { input: Json; cwd: string; timeoutMs: number; signal: AbortSignal };

/** What a command wants to be answered. One that fails is told of, and decides nothing. */
async function answerOf(
  command: string,
  work: HookRun,
  warn: (text: string) => void,
): Promise<ElicitResult | undefined> {
  try {
    const { code, output } = await run(command, work);
    if (code === DECLINE) return { action: 'decline' };
    if (code !== 0) throw new Error(`exit code ${code}`);
    return output.trim() === '' ? undefined : readAnswer(JSON.parse(output));
  } catch (error) {
    if (!work.signal.aborted) warn(`the hook ${JSON.stringify(command)} failed: ${textOf(error)}`);
    return undefined;
  }
}

function readAnswer(output: unknown): ElicitResult | undefined {
  const { action, content } = asObject(asObject(output).hookSpecificOutput);
  if (action === 'accept') return { action, content: asObject(content) };
  return action === 'decline' || action === 'cancel' ? { action } : undefined;
}

function run(command: string, { input, cwd, timeoutMs, signal }: HookRun): Promise<CommandEnd> {
  const child = spawn(command, {
    shell: true, // the user wrote it for one
    cwd,
    env: { ...safeEnv(), CLAUDE_PROJECT_DIR: cwd },
    stdio: ['pipe', 'pipe', 'ignore'],
    detached: process.platform !== 'win32',
  });
  child.stdin.on('error', () => {}).end(JSON.stringify(input)); // it need not read it
  return commandEnd(child, timeoutMs, signal);
}

type CommandEnd = { code: number | null; killedBy: string | null; output: string };

/** Waits for a command that leads a group of its own. An error says nothing that it printed. */
export function commandEnd(
  child: ChildProcess & { stdout: Readable },
  timeoutMs: number,
  signal?: AbortSignal,
): Promise<CommandEnd> {
  leaveNoOrphan(child);
  return new Promise((done, fail) => {
    let output = '';
    const stop = (why: string) => {
      signalGroup(child, 'SIGKILL');
      fail(new Error(why));
    };
    const timer = setTimeout(() => stop(`it took longer than ${timeoutMs / 1000} s`), timeoutMs);
    const onAbort = () => stop('the question was withdrawn');
    signal?.addEventListener('abort', onAbort);
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      if (output.length > MAX_OUTPUT) stop(`it printed more than ${MAX_OUTPUT} characters`);
    });
    child.on('error', ({ code }: NodeJS.ErrnoException) =>
      fail(new Error(`it could not be started (${code})`)),
    );
    child.on('close', (code, killedBy) => {
      living.delete(child);
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
      done({ code, killedBy, output });
    });
  });
}
