// Judges exercise 1: does the server start as it should, and does its stderr do no harm?

import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import type { Judge } from '../book.ts';

export const judge: Judge = async ({ load, see, expect }) => {
  const { StdioTransport } = await load('mcp.ts');
  const start = async (config: object, look = see) => {
    const server = new StdioTransport('demo', { command: 'node', ...config }, 2 ** 26);
    const waiting: ((message: unknown) => void)[] = [];
    const message = (came: unknown) => (look('in', came), waiting.shift()?.(came));
    await server.start({ message, closed: () => {} });
    const ask = async (name: string, args: object): Promise<any> => {
      const question = {
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name, arguments: args },
      };
      const heard = new Promise((done) => waiting.push(done));
      look('out', question);
      await server.send(question);
      return heard;
    };
    return { server, ask };
  };
  const calculator = async () =>
    start({ args: ['fixtures/server.mjs'] }, (direction, ...more) => {
      if (direction === 'in') answers++;
      see(direction, ...more);
    });
  const habits = 'fixtures/habits.mjs';

  let server: Awaited<ReturnType<typeof start>> | undefined;
  let answers = 0;
  const add = async (b: number) => {
    server ??= await calculator();
    return server.ask('add', { a: 2, b });
  };
  const isSum = (sum: string) => (came: any) =>
    came?.id === 1 && came.result?.content?.[0]?.text === sum;
  const firstScreen = watchScreen();
  await expect(
    'what we write reaches its stdin, what it writes to stdout reaches us',
    'the answer 42 under id 1, as an event `message`',
    add(40),
    isSum('42'),
  );
  await expect(
    'stdout is read for as long as the server lives',
    'a second answer, 43, to a second question',
    add(41),
    isSum('43'),
  );
  await pause(20);
  const shown = firstScreen.end().includes('jsonrpc') ? 'it is shown' : 'nothing is shown';
  const kept = server!.server.stderrTail.includes('jsonrpc')
    ? 'it is in stderrTail'
    : 'nothing of it is in stderrTail';
  await expect(
    'stdout goes to `read`, once, and to nobody else',
    'two answers came as 2 messages, nothing is shown, nothing of it is in stderrTail',
    `two answers came as ${answers} messages, ${shown}, ${kept}`,
    /as 2 messages, nothing is shown, nothing of it/,
  );
  const noCommand = start({ command: 'no-such-command' }).then(
    () => 'start() resolved',
    (error) => `${error}\n(its code: ${error?.code}, its kind: ${error?.kind})`,
  );
  await expect(
    'a command that is not there is an error of start()',
    "start() rejects, with Node's own error, whose `code` is ENOENT (a shell would start, and fail later)",
    noCommand,
    /code: ENOENT|kind: start/,
  );

  // One server for the next five: it is run elsewhere, notes its pid in a file, and tells what it sees of its surroundings.
  // That is not for the record of the wire: it may hold the learner's own secrets.
  process.env.ANTHROPIC_API_KEY = 'a secret';
  const folder = mkdtempSync(join(tmpdir(), 'exercise '));
  const given = join(folder, 'two words; $HOME');
  const config = {
    args: [resolve('fixtures/habits.mjs'), 'notes-its-pid', given],
    cwd: 'fixtures',
    env: { COLOUR: 'blue' },
  };
  const where = async () =>
    JSON.parse((await (await start(config, () => {})).ask('where', {})).result.content[0].text);
  const seen = where();
  await expect(
    'no shell reads the arguments',
    `the server gets the argument ${given} as it is`,
    seen.then(({ argv }) => argv),
    (came) => came?.[1] === given,
  );
  await expect(
    '"cwd" is where it runs',
    'a folder that ends in "fixtures"',
    seen.then(({ cwd }) => cwd),
    /fixtures$/,
  );
  const keys = ['PATH', 'COLOUR', 'ANTHROPIC_API_KEY'];
  await expect(
    'of our environment it gets the safe part, and what "env" names',
    'of PATH, COLOUR and ANTHROPIC_API_KEY: PATH and COLOUR',
    seen.then(({ env }) => keys.filter((name) => name in env)),
    (came) => `${came}` === 'PATH,COLOUR',
  );
  const leads = async () => {
    const { pid } = await seen;
    try {
      return process.kill(-pid, 0); // is there a group of this number?
    } catch {
      return `the server has the pid ${pid}, and there is no such group`;
    }
  };
  if (process.platform !== 'win32')
    await expect(
      'the server leads a process group of its own',
      "a group whose number is the server's pid",
      leads(),
      (came) => came === true,
    );
  // A second process would take a moment: as long as another one that is started now, and a little more.
  await promisify(execFile)(process.execPath, ['-e', '']);
  await pause(200);
  const pids = readFileSync(given, 'utf8').trim().split('\n');
  rmSync(folder, { recursive: true });
  await expect('start() starts one process', '1 process(es)', `${pids.length} process(es)`, /^1 /);

  const screen = watchScreen();
  const script =
    "console.error('cannot find my configuration'); setTimeout(() => console.error('second'), 200); process.stdin.resume()";
  const heard: unknown[] = [];
  const { server: talker } = await start(
    { args: ['-e', script] },
    (_, message) => void heard.push(message),
  );
  const tailWith = async (text: string) => {
    for (let turn = 0; turn < 100 && !talker.stderrTail.includes(text); turn++) await pause(20);
    return `stderrTail is ${JSON.stringify(talker.stderrTail)}`;
  };
  await expect(
    'what it writes to stderr is kept',
    'the text "cannot find my configuration" in stderrTail',
    tailWith('configuration'),
    /cannot find my configuration/,
  );
  const pieces = 'a stderrTail with "cannot find my configuration" and then "second"';
  await expect(
    'stderr comes in pieces, and all of them count',
    pieces,
    tailWith('second'),
    /configuration.*second/,
  );
  const isShown = screen.end().includes('cannot find my configuration');
  await expect(
    'stderr is kept, not shown',
    'nothing of it on our own screen',
    isShown ? 'it was shown' : 'nothing was shown',
    /^nothing/,
  );
  await expect(
    'nothing of stderr arrives as a message',
    'no message: it has written to stderr only',
    heard,
    (came) => came.length === 0,
  );

  const flood = await start({ args: [habits, 'floods-stderr', '1'] });
  await expect(
    'a megabyte on stderr does not stop the server',
    'an answer, after the flood',
    flood.ask('echo', {}),
    (came) => came?.id === 1,
  );
  await expect(
    'of the flood only the end is kept',
    'a stderrTail of at most 16384 characters, not of a million',
    `a stderrTail of ${flood.server.stderrTail.length} characters`,
    () => flood.server.stderrTail.length <= 16_384,
  );
  const end = JSON.stringify(flood.server.stderrTail.slice(-60));
  await expect(
    'it is the end that is kept, not the beginning',
    'a stderrTail that ends with "last line of the flood"',
    `one that ends with ${end}`,
    /last line of the flood/,
  );
};

const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));

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
