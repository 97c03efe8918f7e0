// hooks.ts: a command of yours that answers a server's question before you are asked, and sees or
// changes the answer before it leaves. In your own settings, as Claude Code has them:
//
//   "hooks": { "Elicitation": [
//     { "matcher": "server", "hooks": [{ "type": "command", "command": "…" }] }
//   ] }

import { spawn } from 'node:child_process';
import { join } from 'node:path';
import {
  asObject, isObject, leaveNoOrphan, living, readJsonFile, safeEnv, signalGroup, textOf, type Json,
} from '../../mcp.ts';
import type { Answer, Elicitation } from './elicitation.ts';

/** Functions of a program, or commands of the settings. What they return takes the place of the
 *  question, or of the answer; `undefined` leaves it alone. */
export type ElicitationHooks = {
  before?: (asked: Elicitation, signal: AbortSignal) => Promise<Answer | undefined>;
  after?: (asked: Elicitation, answer: Answer, signal: AbortSignal) => Promise<Answer | undefined>;
};

type Command = { matcher: string; command: string; timeoutMs: number };
type Event = 'Elicitation' | 'ElicitationResult';
type Configured = { event: Event; commands: Command[] };

const DEFAULT_TIMEOUT_S = 60;
const MAX_OUTPUT = 1_000_000; // characters
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
): Promise<Answer | undefined> {
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

function commandsFor(event: Event, file: string, warn: (text: string) => void): Configured {
  try {
    const { hooks } = readJsonFile(file) ?? {};
    const groups = asObject(hooks)[event];
    const commands = Array.isArray(groups) ? groups.filter(isObject).flatMap(commandsIn) : [];
    return { event, commands };
  } catch (error) {
    warn(`${file}: its hooks are not read: ${textOf(error)}`);
    return { event, commands: [] };
  }
}

function commandsIn({ matcher, hooks }: Json): Command[] {
  const rows = Array.isArray(hooks) ? hooks.filter(isObject) : [];
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

type Work = { input: Json; cwd: string; timeoutMs: number; signal: AbortSignal };

/** What a command wants to be answered. One that fails is told of, and decides nothing. */
async function answerOf(
  command: string, work: Work, warn: (text: string) => void,
): Promise<Answer | undefined> {
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

function readAnswer(output: unknown): Answer | undefined {
  const { action, content } = asObject(asObject(output).hookSpecificOutput);
  if (action === 'accept') return { action, content: asObject(content) };
  return action === 'decline' || action === 'cancel' ? { action } : undefined;
}

function run(
  command: string, { input, cwd, timeoutMs, signal }: Work,
): Promise<{ code: number | null; output: string }> {
  const child = spawn(command, {
    shell: true, // the user wrote it for one
    cwd,
    env: { ...safeEnv(), CLAUDE_PROJECT_DIR: cwd },
    stdio: ['pipe', 'pipe', 'ignore'],
    detached: process.platform !== 'win32',
  });
  leaveNoOrphan(child);
  child.stdin.on('error', () => {}).end(JSON.stringify(input)); // it need not read it
  return new Promise((done, fail) => {
    let output = '';
    const stop = (why: string) => {
      signalGroup(child, 'SIGKILL');
      fail(new Error(why));
    };
    const timer = setTimeout(() => stop(`no answer within ${timeoutMs / 1000} s`), timeoutMs);
    const onAbort = () => stop('the question was withdrawn');
    signal.addEventListener('abort', onAbort);
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      if (output.length > MAX_OUTPUT) stop('it wrote too much');
    });
    child.on('error', fail);
    child.on('close', (code) => {
      living.delete(child);
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
      done({ code, output });
    });
  });
}
