// seeing-cli.ts: `record`, `replay` and `trace`.

import { existsSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import {
  asRefusal,
  McpConnection,
  RpcError,
  textOf,
  type Json,
  type Message,
} from '../../../mcp.ts';
import { aside } from '../../16-hands/aside.ts';
import { EXIT, refused, usage } from '../../19-the-terminal/exit.ts';
import { forConnections, type LoadRows } from '../../19-the-terminal/host.ts';
import type { Run } from '../../19-the-terminal/own-verbs.ts';
import {
  atDashes,
  FLAG,
  isUrl,
  numberFlag,
  parseFlags,
  TEXT_FLAG,
} from '../../19-the-terminal/command-line/parse.ts';
import {
  readReach,
  serverNamed,
  talkAfterHandshake,
  type Reach,
  wayTo,
} from '../../19-the-terminal/command-line/one-server.ts';
import type { Screen } from '../../19-the-terminal/screen.ts';
import { checkedAddress } from '../../20-streamable-http/streamable.ts';
import { serveHttp } from '../../29-a-server/serve-http.ts';
import { LineTransport } from '../../29-a-server/protocol/line-transport.ts';
import type { checkTrace } from '../check.ts';
import { changeLine, compareOffers, type Offered } from '../compare/offers-diff.ts';
import { offeredNow, offeredIn } from '../compare/offered.ts';
import { Keeper, recordingPath } from '../more/keep.ts';
import { HttpRecorder } from '../record-http.ts';
import { recordBetween, type Write } from '../record.ts';
import { Replay, type ReplayOptions, type RecordedAnswer } from '../replay.ts';
import { PipeReplay, ReplayServer } from '../replay-wires.ts';
import { readTrace, serversOf, TRACE_VERSION, type Recording } from '../more/read-trace.ts';
import { requestsIn } from '../requests.ts';
import { pageWith } from '../view.ts';
import { seeingVerbs } from './seeing-verbs.ts';

const CHECK_MS = 60_000; // for a whole trace
const MAX_FINDINGS = 20; // one by one; --json has them all

/** The wrong words for one of them. */
const misused = (verb: keyof typeof seeingVerbs) =>
  usage(`${verb} is: ${verb} ${seeingVerbs[verb].help}`);

// ─── record [FILE] -- COMMAND ARGS, record [FILE] URL ───────────────────────────────────────────

export const recordVerb: Run = async (args, screen) => {
  const {
    before,
    command: [command, ...rest],
  } = atDashes(args);
  const { values, positionals } = parseFlags(before, { name: TEXT_FLAG, port: TEXT_FLAG });
  const address = positionals.find(isUrl);
  const [file, ...more] = positionals.filter((word) => word !== address);
  const program = command ?? (address && new URL(address).hostname);
  if (!program || (command && address) || more.length > 0) throw misused('record');
  const keeper = new Keeper(file ?? recordingPath(program), (why) => warnLost('record', why));
  const server = values.name ?? (command ? nameOf([command, ...rest]) : program);
  const write: Write = (line, size) => keeper.write(line, size);
  keeper.learn([...rest, address ?? '']);
  process.on('exit', () => keeper.flush());
  try {
    if (command) return await recordBetween(command, rest, server, write);
    const { url } = checkedAddress(server, { url: address });
    const learn = (words: string[]) => keeper.learn(words);
    const recorder = new HttpRecorder({ url, server, write, learn });
    const port = numberFlag('--port', values.port, 'a number', Number.isInteger);
    const local = await recorder.listen(port);
    screen.say(`${url.href} is recorded into ${keeper.file}, for clients of`);
    screen.say(`${local} until Ctrl-C`);
    await untilInterrupted(screen);
    recorder.close();
    return EXIT.done;
  } catch (error) {
    throw refused(`cannot record ${command ?? address}: ${textOf(error)}`);
  } finally {
    keeper.flush();
  }
};

const untilInterrupted = (screen: Screen) =>
  new Promise<void>((done) => {
    screen.onInterrupt = done;
  });

function warnLost(verb: string, why: Error): void {
  process.stderr.write(`${verb}: the trace ends here: ${textOf(why)}\n`);
}

/** A word for a server in its trace: the last part of what is started, without an ending. */
function nameOf(words: string[]): string {
  const isRunner = /^(node|npx|bun|deno|tsx|python3?|uvx?|docker)$/;
  const program = words.find((word) => !word.startsWith('-') && !isRunner.test(basename(word)));
  return basename(program ?? words[0]!).replace(/\.\w+$/, '') || 'server';
}

// ─── replay FILE [SERVER] ───────────────────────────────────────────────────────────────────────

export const replayVerb: Run = async (args, screen, rows) => {
  const { before, command } = atDashes(args);
  const { values, positionals } = parseFlags(before, {
    speed: TEXT_FLAG,
    http: FLAG,
    port: TEXT_FLAG,
    live: FLAG,
  });
  const [file, wanted, ...more] = positionals;
  if (!file || more.length > 0 || values.live !== command.length > 0) throw misused('replay');
  const recording = readFile(file, true);
  const server = serverIn(recording, wanted, file);
  let misses = 0;
  const options: ReplayOptions = {
    speed: numberFlag('--speed', values.speed, 'a number', Number.isFinite),
    onMiss: (text) => {
      misses++;
      process.stderr.write(`replay: ${text}\n`);
    },
  };
  if (values.live) options.live = await liveServer(command, server, file, rows);
  const newReplay = () => new Replay(recording, server, options);
  const port = numberFlag('--port', values.port, 'a number', Number.isInteger);
  if (values.http) await overHttp(new ReplayServer(newReplay, server), server, screen, port);
  else {
    const stdio = new LineTransport(process.stdin, process.stdout);
    await new Promise<void>((done) => void new PipeReplay(newReplay(), stdio).start(done));
  }
  return misses > 0 ? EXIT.unexpected : EXIT.done;
};

async function overHttp(played: ReplayServer, server: string, screen: Screen, port = 0) {
  const http = await serveHttp(played, { port });
  screen.say(`${server}, as recorded, is at ${http.url} until Ctrl-C`);
  await untilInterrupted(screen);
  await http.close();
}

function serverIn(recording: Recording, wanted: string | undefined, file: string): string {
  const servers = serversOf(recording);
  const isThere = wanted !== undefined && servers.includes(wanted);
  if (isThere) return wanted;
  if (wanted === undefined && servers.length === 1) return servers[0]!;
  const has = servers.length > 0 ? `it has ${servers.join(', ')}` : 'it has no messages';
  const what = wanted === undefined ? 'say which server' : `there is no server "${wanted}"`;
  throw refused(`${file}: ${what}; ${has}`);
}

/** Passes on to a real server what the recording does not have, and adds it to the file. */
async function liveServer(command: string[], server: string, file: string, rows: LoadRows) {
  const composition = await rows();
  const keeper = new Keeper(file, (why) => warnLost('replay', why), true);
  keeper.learn(command);
  process.on('exit', () => keeper.flush());
  const config = { command: command[0], args: command.slice(1) };
  const connection = new McpConnection(server, config, forConnections(composition));
  let opening: Promise<void> | undefined;
  let count = 0;
  const open = async () => {
    await connection.connect();
    await connection.initialize();
  };
  return async ({ method = '', params }: Message): Promise<RecordedAnswer> => {
    opening ??= open();
    await opening;
    const id = `live-${process.pid}-${++count}`;
    const write = (dir: string, msg: Json) =>
      keeper.write({ dir, server, msg: { jsonrpc: '2.0', id, ...msg } });
    write('out', { method, params });
    const said = await connection.request(method, params).then(
      (result): RecordedAnswer => ({ result }),
      (error): RecordedAnswer => {
        if (error instanceof RpcError) return { error: asRefusal(error) };
        throw error; // it is not the server's word
      },
    );
    write('in', said as Json);
    return said;
  };
}

// ─── trace check FILE, trace view FILE ──────────────────────────────────────────────────────────

export const traceVerb: Run = async (args, screen) => {
  const { values, positionals } = parseFlags(args, {
    json: FLAG,
    strict: FLAG,
  });
  const [what, file, ...more] = positionals;
  if (!file || more.length > 0) throw misused('trace');
  if (what === 'view') {
    process.stdout.write(pageWith(textIn(file), basename(file)));
    return EXIT.done;
  }
  if (what !== 'check') throw misused('trace');
  return check(file, screen, values.json, values.strict);
};

/** 0: nothing is wrong; 1: something is; 2: it could not be judged. Warnings count if asked to. */
async function check(
  file: string,
  screen: Screen,
  isJson: boolean,
  isStrict: boolean,
): Promise<number> {
  const recording = readFile(file);
  const job = { module: '30-seeing/check', name: 'checkTrace', timeoutMs: CHECK_MS };
  const findings = await aside<typeof checkTrace>(job, recording); // a trace may be a stranger's
  for (const [n, finding] of findings.entries()) {
    const { line, server, who, level, rule, text } = finding;
    if (isJson) screen.printJson(JSON.stringify({ file, ...finding }));
    else if (n < MAX_FINDINGS)
      screen.print(`${file}:${line}: ${level}: ${server}: the ${who}: ${text} [${rule}]`);
  }
  if (!isJson) for (const row of byRule(findings.slice(MAX_FINDINGS))) screen.print(row);
  const errors = findings.filter(({ level }) => isStrict || level === 'error');
  const { messages } = recording;
  const servers = serversOf(recording).length;
  const asked = [...requestsIn(recording)].length;
  const all = `${messages.length} messages of ${servers} servers, ${asked} requests to a model`;
  if (!isJson) screen.say(`${all}: ${errors.length} wrong, ${findings.length} found in all`, 'dim');
  return errors.length > 0 ? EXIT.unexpected : EXIT.done;
}

/** Of those that are too many to be told one by one. */
function byRule(findings: { rule: string; line: number }[]): string[] {
  const lines = new Map<string, number[]>();
  for (const { rule, line } of findings) lines.set(rule, [...(lines.get(rule) ?? []), line]);
  return [...lines].map(([rule, all]) => {
    const few = all.slice(0, 5).join(', ') + (all.length > 5 ? ', …' : '');
    return `and ${all.length} more of [${rule}], in lines ${few}`;
  });
}

// ─── diff A B ───────────────────────────────────────────────────────────────────────────────────

/** 0: a client of A works with B; 8: it may not. What is no file is a server. */
export const diffVerb: Run = async (args, screen, rows) => {
  const { reach } = readReach(args, {});
  const { server, typed, words, isJson } = reach;
  const isCommand = typed?.command !== undefined;
  const [first, second, ...more] = isCommand ? [...words, ''] : [server, ...words];
  if (first === undefined || second === undefined || more.length > 0) throw misused('diff');
  const composition = await rows();
  const offeredAt = async (side: string) => {
    if (side !== '' && !isUrl(side) && existsSync(side)) return offeredIn(textIn(side), side);
    const named = side === '' ? {} : serverNamed([side], [], reach.added);
    const wanted: Reach = { ...reach, typed: side === '' ? typed : undefined, ...named };
    const way = await wayTo(wanted, screen, composition, { isExamined: true });
    let found: Offered | undefined;
    await talkAfterHandshake(wanted, way, screen, async (connection) => {
      found = await offeredNow(connection);
      return EXIT.done;
    });
    return found!;
  };
  const changes = compareOffers(await offeredAt(first), await offeredAt(second));
  const breaking = changes.filter(({ isBreaking }) => isBreaking).length;
  if (isJson) screen.printJson(JSON.stringify({ changes, breaking }));
  else for (const change of changes) screen.print(changeLine(change));
  if (!isJson) screen.say(`${changes.length} changes, ${breaking} of them breaking`, 'dim');
  return breaking > 0 ? EXIT.breaking : EXIT.done;
};

/** A program that was killed may have left half a line, and the next one has written on behind it. A
 *  replay says so, and plays the rest. */
function readFile(file: string, mayBeBroken = false): Recording {
  const recording = readTrace(textIn(file));
  const isLater = recording.header.version > TRACE_VERSION;
  for (const { line, text } of recording.problems) {
    const problem = `${file}:${line}: ${text}`;
    if (!mayBeBroken || isLater || recording.messages.length === 0) throw usage(problem);
    process.stderr.write(`${problem}; it is left out\n`);
  }
  if (recording.messages.length === 0 && recording.happenings.length === 0)
    throw usage(`${file}: there is nothing in it; is it a trace?`);
  return recording;
}

function textIn(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw usage(`cannot read ${file}: ${textOf(error)}`);
  }
}
