// Judges exercise 1: does the server start as it should, and does its stderr do no harm?

import { execFile } from 'node:child_process';
import { randomBytes, randomInt } from 'node:crypto';
import {
  existsSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import type { Judge } from '../book.ts';

const word = () => `w${randomBytes(4).toString('hex')}`; // nothing here is known before
const TAIL = 16_384;

/** Tells in a file what a server sees of its surroundings, and then lives until its stdin ends. */
const TELLS = `
  const { argv, env, pid } = process;
  require('fs').appendFileSync(argv[1], JSON.stringify({ argv: argv.slice(1), env, pid, cwd: process.cwd() }) + '\\n');
  process.stdin.resume();`;
/** For each line that comes: a log of its own on stderr, and then an answer. */
const LOUD = `
  let n = 0;
  process.stdin.on('data', () => {
    process.stderr.write('x'.repeat(1_000_000) + ++n);
    console.log(JSON.stringify({ jsonrpc: '2.0', id: n, result: {} }));
  });`;

export const judge: Judge = async ({ load, see, expect }) => {
  const { StdioTransport } = await load('mcp.ts');
  type Change = (server: any) => void;
  const start = async (config: object, change: Change = () => {}, look = see) => {
    const server = new StdioTransport('demo', { command: 'node', ...config }, 2 ** 26);
    change(server);
    const heard: any[] = [];
    const waiting: ((message: unknown) => void)[] = [];
    const message = (came: unknown) => {
      look('in', came);
      heard.push(came);
      waiting.shift()?.(came);
    };
    await server.start({ message, closed: () => {} });
    const ask = async (name: string, args: object): Promise<any> => {
      const params = { name, arguments: args };
      const question = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
      const answer = new Promise((done) => waiting.push(done));
      look('out', question);
      await server.send(question);
      return answer;
    };
    return { server, ask, heard };
  };
  const habits = resolve('fixtures/habits.mjs');
  const silent = () => {}; // what a server sees may be the learner's own secrets: not for the record of the wire

  // ── Rule 2: when it resolves ──
  const outcome = (config: object) =>
    start(config).then(
      () => 'start() resolved',
      (error) =>
        `${error}\n(its code: ${error?.code}, its syscall: ${error?.syscall}, its path: ${error?.path})`,
    );
  await expect(
    'start() resolves as soon as the process runs',
    'start() resolved, though the server says nothing before it is asked',
    outcome({ args: [habits, 'mute'] }),
    /^start\(\) resolved$/,
  );
  await expect(
    'a configuration need not have "args"',
    'start() resolved, of a command without arguments',
    outcome({}),
    /^start\(\) resolved$/,
  );
  // ── Rule 1: what is started, and how ──
  const missing = word();
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'exercise ')));
  const odd = ['two words; $HOME', '$(echo hello)', '*', `it's "quoted"`, '%PATH%', '', word()];
  const place = realpathSync(mkdtempSync(join(tmpdir(), 'exercise cwd ')));
  const [colour, ours, secret] = [word(), word(), word()];
  process.env[ours] = 'harmless';
  process.env.ANTHROPIC_API_KEY = secret;
  /** What the server tells. */
  const told = async (file: string) => {
    for (let turn = 0; turn < 140 && !isWhole(file); turn++) await pause(20);
    if (!isWhole(file)) return 'it was not started with its arguments: it has told nothing';
    return JSON.parse(readFileSync(file, 'utf8').split('\n')[0]!);
  };
  const isWhole = (file: string) => existsSync(file) && /\n/.test(readFileSync(file, 'utf8'));
  const given = join(folder, 'first');
  const config = { args: ['-e', TELLS, given, ...odd], cwd: place, env: { [colour]: 'blue' } };
  await expect(
    'it is started with its "args"',
    'a server that writes a file, because its arguments say so',
    start(config, undefined, silent).then(() => told(given)),
    (came) => typeof came === 'object' && came?.argv?.[0] === given,
  );
  const seen = await told(given);
  await expect(
    'no shell reads the arguments',
    `the server gets them as they are: ${JSON.stringify(odd)}`,
    seen.argv.slice(1),
    (came) => JSON.stringify(came) === JSON.stringify(odd),
  );
  await expect('"cwd" is where it runs', `the folder ${place}`, seen.cwd, (came) => came === place);
  const names = ['PATH', colour, ours, 'ANTHROPIC_API_KEY'];
  await expect(
    'of our environment it gets the safe part, and what "env" names',
    `of ${names.join(', ')} only PATH and ${colour}, as this.childEnv() has it`,
    names.filter((name) => name in seen.env || name.toUpperCase() in seen.env),
    (came) => `${came}` === `PATH,${colour}`,
  );
  const second = join(folder, 'second');
  const methods: Change = (server) => {
    server.program = () => process.execPath;
    server.childEnv = () => ({ PATH: process.env.PATH, ONLY: secret });
  };
  await expect(
    'this.program() is what is started, and this.childEnv() is its environment',
    'what these two methods return, whatever the configuration says (here they have been replaced)',
    start({ command: missing, args: ['-e', TELLS, second] }, methods, silent)
      .then(() => told(second))
      .then(({ env }) => `it ran, and ONLY is ${env.ONLY === secret ? 'there' : 'missing'}`),
    /^it ran, and ONLY is there/,
  );
  const leads = () => {
    try {
      return process.kill(-seen.pid, 0); // is there a group of this number?
    } catch {
      return `the server has the pid ${seen.pid}, and there is no such group`;
    }
  };
  if (process.platform !== 'win32')
    await expect(
      'the server leads a process group of its own',
      "a group whose number is the server's pid",
      leads(),
      (came) => came === true,
    );
  // A second process would take a moment: as long as others that are started now, one after the other.
  for (let n = 0; n < 3; n++) await promisify(execFile)(process.execPath, ['-e', '']);
  const processes = readFileSync(given, 'utf8').trim().split('\n').length;
  await expect('start() starts one process', '1 process(es)', `${processes} process(es)`, /^1 /);

  // ── Rule 2: when it rejects ──
  await expect(
    'a command that is not there is an error of start()',
    "start() rejects with Node's own error: its `code` is ENOENT, and its `path` names the command (a shell would start, and fail later)",
    outcome({ command: missing }),
    (came) =>
      new RegExp(`code: ENOENT, its syscall: spawn ${missing}, its path: ${missing}`).test(came),
  );
  const nowhere = join(folder, word());
  await expect(
    'a folder that is not there is an error of start(), too',
    "start() rejects with Node's own error, whose `code` is ENOENT",
    outcome({ args: [habits], cwd: nowhere }),
    /code: ENOENT, its syscall: spawn/,
  );
  const plain = join(folder, word());
  writeFileSync(plain, 'no program', { mode: 0o644 });
  if (process.platform !== 'win32')
    await expect(
      'and so is a file that may not be run',
      "start() rejects with Node's own error, whose `code` is EACCES",
      outcome({ command: plain }),
      /code: EACCES, its syscall: spawn/,
    );

  // ── Rule 3: stdout ──
  const firstScreen = watchScreen();
  const calculator = await start({ args: ['fixtures/server.mjs'] });
  const [a, b] = [randomInt(1000), randomInt(1000)];
  const isSum = (sum: number) => (came: any) => came?.result?.content?.[0]?.text === `${sum}`;
  await expect(
    'what we write reaches its stdin, what it writes to stdout reaches us',
    `the answer ${a + b} to ${a} + ${b}, as an event \`message\``,
    calculator.ask('add', { a, b }),
    isSum(a + b),
  );
  const QUESTIONS = 20;
  for (let more = 1; more < QUESTIONS; more++)
    await expect(
      'stdout is read for as long as the server lives',
      `an answer to the next question, ${a + more}`,
      calculator.ask('add', { a, b: more }),
      isSum(a + more),
    );
  await settle();
  const shown = firstScreen.end().includes('jsonrpc') ? 'it is shown' : 'nothing is shown';
  const kept = calculator.server.stderrTail.includes('jsonrpc')
    ? 'it is in stderrTail'
    : 'nothing of it is in stderrTail';
  await expect(
    'stdout goes to `read`, once, and nowhere else',
    'twenty answers came as 20 messages, nothing is shown, nothing of it is in stderrTail',
    `twenty answers came as ${calculator.heard.length} messages, ${shown}, ${kept}`,
    /as 20 messages, nothing is shown, nothing of it/,
  );
  const bytes = randomBytes(200_000);
  const file = join(folder, 'bytes');
  writeFileSync(file, bytes);
  const chunks: unknown[] = [];
  const SPEAKS = `process.stdout.write(require('fs').readFileSync(process.argv[1])); process.stdin.resume()`;
  await start({ args: ['-e', SPEAKS, file] }, (server) => {
    server.read = (chunk: unknown) => void chunks.push(chunk);
  });
  const length = () => chunks.reduce((sum: number, chunk: any) => sum + chunk.length, 0);
  for (let turn = 0; turn < 140 && length() < bytes.length; turn++) await pause(20);
  const isBytes = chunks.every((chunk) => chunk instanceof Uint8Array);
  const isSame = isBytes && Buffer.concat(chunks as Buffer[]).equals(bytes);
  await expect(
    'this.read(chunk) gets every chunk of stdout as it came, in bytes',
    'the 200000 bytes that the server wrote, as Buffers',
    `${length()} ${isBytes ? 'bytes' : 'characters'}${isSame ? '' : ', and not what it wrote'}`,
    /^200000 bytes$/,
  );

  // ── Rule 3: stderr ──
  const screen = watchScreen();
  const [early, late] = [`cannot find my ${word()}`, word()];
  const script = `console.error(process.argv[1]); process.stdin.once('data', () => console.error(process.argv[2]))`;
  const talker = await start({ args: ['-e', script, early, late] });
  const tailWith = async (text: string, server = talker.server) => {
    for (let turn = 0; turn < 140 && !`${server.stderrTail}`.includes(text); turn++)
      await pause(20);
    return `stderrTail is ${JSON.stringify(`${server.stderrTail}`.slice(-100))}`;
  };
  await expect(
    'what it writes to stderr is kept',
    `the text "${early}" in stderrTail`,
    tailWith(early),
    new RegExp(early),
  );
  await talker.server.send({ jsonrpc: '2.0', method: 'go on' });
  await expect(
    'stderr comes in pieces, and all of them count',
    `a stderrTail with "${early}" and then "${late}"`,
    tailWith(late),
    new RegExp(`${early}.*${late}`),
  );
  const isShown = screen.end().includes(early);
  await expect(
    'stderr is kept, not shown',
    'nothing of it on our own screen',
    isShown ? 'it was shown' : 'nothing was shown',
    /^nothing/,
  );
  await expect(
    'nothing of stderr arrives as a message',
    'no message: it has written to stderr only',
    talker.heard,
    (came) => came.length === 0,
  );
  const log = Array.from({ length: 20_000 }, () => randomInt(10)).join('');
  const atEnd = word();
  for (const [size, what] of [
    [TAIL, 'a log of 16384 characters is kept whole'],
    [log.length, 'of a longer log the last 16384 characters are kept, no more and no fewer'],
  ] as const) {
    const text = log.slice(0, size - atEnd.length) + atEnd;
    writeFileSync(file, text);
    const WRITES = `process.stderr.write(require('fs').readFileSync(process.argv[1])); process.stdin.resume()`;
    const { server } = await start({ args: ['-e', WRITES, file] });
    await tailWith(atEnd, server);
    const tail = `${server.stderrTail}`;
    const isEnd = text.endsWith(tail) ? 'the end of the log' : 'not the end of the log';
    await expect(
      what,
      `a stderrTail of 16384 characters, the end of the log`,
      `a stderrTail of ${tail.length} characters, ${isEnd}`,
      /of 16384 characters, the end/,
    );
  }
  const flood = await start({ args: [habits, 'floods-stderr', '1'] });
  await expect(
    'a megabyte on stderr does not stop the server',
    'an answer, after the flood',
    flood.ask('echo', {}),
    (came) => came?.id === 1,
  );
  const loud = await start({ args: ['-e', LOUD] });
  for (const n of [1, 2, 3])
    await expect(
      'stderr is read all the time, not only at the start',
      `the end of the log that it writes before its answer ${n}, "x${n}", in stderrTail`,
      loud.ask('echo', {}).then(() => tailWith(`x${n}`, loud.server)),
      new RegExp(`x${n}"$`),
    );
  for (const each of [folder, place]) rmSync(each, { recursive: true, force: true });
};

const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));
/** What has come is heard. */
const settle = () => pause(20);

/** What this process writes to its own stdout and stderr, until `end`. */
function watchScreen(): { end: () => string } {
  let shown = '';
  const undo = [process.stdout, process.stderr].map((stream) => {
    const { write } = stream;
    stream.write = (text: any, ...more: any[]) => {
      if (!`${text}`.startsWith('✓')) shown += text; // that was the judge
      return (write as any).call(stream, text, ...more);
    };
    return () => void (stream.write = write);
  });
  return { end: () => (undo.forEach((each) => each()), shown) };
}
