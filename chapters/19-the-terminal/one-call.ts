// One call of a tool, its result on stdout, and nothing else there.

import {
  McpConnection,
  textOf,
  type CallOptions,
  type ConnectionOptions,
  type Json,
} from '../../mcp.ts';
import { Masker } from '../17-the-gate/safe-text.ts';
import type { WantedCall, WantedServer } from './command-line/call-words.ts';
import { callArguments, exitCodeFor, findTool, errorKind } from './calling.ts';
import { EXIT, Stop } from './exit.ts';
import type { PlainOutput } from './more/plain-screen.ts';

/** How its server is reached. */
export type Reached = { config: Json; options: ConnectionOptions };

export async function call(
  wanted: WantedCall,
  reached: Reached,
  screen: PlainOutput,
): Promise<number> {
  const { server } = wanted;
  const masker = maskerFor(wanted, reached);
  const trace = await traceFor(wanted, screen, masker);
  const options: ConnectionOptions = {
    ...reached.options,
    onWire: (dir, message) => trace?.wire(dir, message, server),
    onStderr: (stderr) => trace?.write({ server, stderr }),
    onWarning: (text) => trace?.write({ type: 'warning', text }),
  };
  const work: ServerWork = (connection, signal) => callTool(connection, wanted, screen, signal);
  const code = await withServer(wanted, { ...reached, options }, screen, work, masker);
  return code === EXIT.done && trace?.isLost ? EXIT.refused : code; // it was to be kept
}

function maskerFor({ typed }: WantedServer, { config }: Reached): Masker {
  const masker = new Masker();
  masker.learnEntry(config, typed ? 'user' : 'project');
  return masker;
}

type ServerWork = (connection: McpConnection, signal: AbortSignal) => Promise<number>;

/** Whatever a command does with one server: how it ends, and with which exit code. */
export async function withServer(
  wanted: WantedServer,
  reached: Reached,
  screen: PlainOutput,
  work: ServerWork,
  masker = maskerFor(wanted, reached),
): Promise<number> {
  const { server = '', timeoutMs } = wanted;
  const limits = timeoutMs && { handshakeTimeoutMs: timeoutMs, callTimeoutMs: timeoutMs };
  const options = { onWarning: () => {}, ...reached.options, ...limits };
  const connection = new McpConnection(server, reached.config, options);
  const stop = interruptible(connection, screen);
  try {
    return await work(connection, stop);
  } catch (error) {
    if (stop.aborted) return EXIT.interrupted;
    if (error instanceof Stop) throw error;
    for (const warning of connection.warnings.values()) screen.warn(masker.text(warning));
    const kind = errorKind(error);
    throw new Stop(exitCodeFor(kind), masker.text(textOf(error)), kind);
  } finally {
    screen.stopSpinning();
    await connection.close();
  }
}

async function traceFor({ trace: file }: WantedCall, screen: PlainOutput, masker: Masker) {
  if (file === undefined) return undefined;
  const { Trace } = await import('./more/trace-file.ts');
  return new Trace(screen, masker, file);
}

/** The first Ctrl-C cancels the call on the wire; the second leaves at once. */
function interruptible(connection: McpConnection, screen: PlainOutput): AbortSignal {
  const abort = new AbortController();
  screen.onInterrupt = () => {
    if (abort.signal.aborted) process.exit(EXIT.interrupted);
    abort.abort();
    void connection.close(); // it may still be starting
  };
  return abort.signal;
}

// ─── The call ─────────────────────────────────────────────────────────────────────────────────

async function callTool(
  connection: McpConnection,
  { server, tool: name, words, isJson }: WantedCall,
  screen: PlainOutput,
  signal: AbortSignal,
): Promise<number> {
  let state = name;
  screen.spin(() => [state]);
  const onProgress = ({ progress, total, message }: Json) => {
    state = [name, message ?? [progress, total].filter(Boolean).join(' of ')].join(' ');
  };
  const options: CallOptions = { signal, onProgress };
  await connection.connect();
  await connection.initialize();
  const tool = findTool(name, await connection.listTools(), server);
  const args = callArguments(words, tool);
  if (isJson) {
    const result = await connection.request('tools/call', { name, arguments: args }, options);
    screen.printJson(JSON.stringify(result));
    return result.isError === true ? EXIT.failed : EXIT.done;
  }
  const { text, isError } = await connection.callTool(name, args, options);
  const line = text.replace(/\r?\n$/, ''); // print() ends it
  if (isError) screen.say(line, 'red');
  else if (text !== '') screen.print(line);
  return isError ? EXIT.failed : EXIT.done;
}
