// Judges exercise 19: what does Ctrl-C do? The whole program runs as a child that takes our pipes for a terminal.
// "On the wire" are the keys, and the messages to the servers.

import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { stripVTControlCharacters } from 'node:util';
import type { Judge } from '../book.ts';

const [CTRL_C, ENTER] = ['\x03', '\r'];
const KEYS: Record<string, string> = { [CTRL_C]: 'Ctrl-C', [ENTER]: 'Enter' };
// Set before the program starts, so that it believes to be at a terminal.
const TERMINAL =
  'data:text/javascript,for (const each of [process.stdin, process.stderr]) each.isTTY = true;';

export const judge: Judge = async ({ see, expect }) => {
  const place = realpathSync(mkdtempSync(join(tmpdir(), 'ctrl-c-')));
  process.on('exit', () => rmSync(place, { recursive: true, force: true }));
  const [home, program] = [join(place, 'home'), resolve('agent.ts')];
  const number = { type: 'object', properties: { ms: { type: 'number' } }, required: ['ms'] };
  const tools = JSON.stringify([
    { name: 'sleep', inputSchema: number },
    { name: 'echo', inputSchema: { type: 'object' } },
  ]);
  const bed = { command: 'node', args: [resolve('fixtures/habits.mjs'), 'tools', tools] };
  const calculator = { command: 'node', args: [resolve('fixtures/server.mjs')] };
  mkdirSync(home);

  const start = (isTerminal: boolean, servers: object, ofProject = {}) => {
    const cwd = mkdtempSync(join(place, 'project-'));
    writeFileSync(join(cwd, '.mcp.json'), JSON.stringify({ mcpServers: ofProject }));
    const env = {
      PATH: process.env.PATH,
      HOME: home,
      USERPROFILE: home,
      TERM: 'xterm',
      NO_COLOR: '1',
    };
    const flags = [
      '--wire',
      '--mcp-config',
      JSON.stringify(servers),
      '--allow',
      'mcp__bed__sleep',
      '--allow',
      'mcp__calculator__greet',
    ];
    const imports = [import.meta.resolve('tsx'), ...(isTerminal ? [TERMINAL] : [])].flatMap(
      (each) => ['--import', each],
    );
    const child = spawn(process.execPath, [...imports, program, ...flags], { cwd, env });
    process.on('exit', () => child.kill());
    const news = { out: '', err: '' }; // what it wrote since we last looked
    let lastWords = ''; // the end of what it wrote to stderr
    let code: number | NodeJS.Signals | undefined;
    const hear = (stream: 'out' | 'err', written: string) => {
      const piece = stripVTControlCharacters(written);
      for (const [, arrow, message] of piece.matchAll(
        /^(→|←) \w+ (.*"(?:tools\/call|notifications\/cancelled|content)".*)$/gm,
      ))
        see(arrow === '→' ? 'out' : 'in', JSON.parse(message!));
      news[stream] += piece;
      if (stream === 'err') lastWords = (lastWords + piece).slice(-100);
    };
    child.stdout.setEncoding('utf8').on('data', (piece) => hear('out', piece));
    child.stderr.setEncoding('utf8').on('data', (piece) => hear('err', piece));
    child.stdin.on('error', () => {});
    child.on('close', (exitCode, signal) => (code = exitCode ?? signal ?? -1));
    /** Waits until it has written this to stderr, and that to stdout. If it does not, tells what it wrote instead. */
    const shows = async (err: RegExp, out = /^/, ms = 2500) => {
      const isThere = () => err.test(news.err) && out.test(news.out);
      for (const begin = Date.now(); Date.now() - begin < ms && code === undefined && !isThere(); )
        await wait(20);
      const lines = isThere()
        ? ['shown']
        : [
            ...`${news.out}\n${news.err}`
              .split(/[\r\n]+/)
              .filter((line) => /^(?![→←]| {4})./.test(line))
              .slice(-5),
          ];
      if (code !== undefined) lines.push(`(the program ended with exit code ${code})`);
      news.out = news.err = '';
      return lines.join('\n') || 'nothing';
    };
    /** Waits until it has said something like this, and tells where. */
    const says = async (words: RegExp) => {
      const where = () => [words.test(news.err) && 'stderr', words.test(news.out) && 'stdout'];
      for (const begin = Date.now(); Date.now() - begin < 2500 && code === undefined; ) {
        if (where().some(Boolean)) break;
        await wait(20);
      }
      const said = where().filter(Boolean).join(' and ');
      if (!said) return shows(words, /^/, 0);
      news.out = news.err = '';
      return `said on ${said}`;
    };
    const press = async (...keys: string[]) => {
      for (const key of keys) {
        see('out', KEYS[key] ?? `(typed) ${key}`);
        child.stdin.write(key);
        await wait(30); // as fingers do
      }
    };
    const ends = async () => {
      for (let n = 0; n < 100 && code === undefined; n++) await wait(20);
      if (code === undefined) return 'the program is still running';
      const isOnFreshLine = !isTerminal || lastWords.endsWith('\n');
      return `exit code ${code}${isOnFreshLine ? '' : `, and the shell's prompt comes behind "${lastWords.split('\n').at(-1)}"`}`;
    };
    const goesOn = async () => (
      await wait(300),
      code === undefined ? 'it goes on' : `the program ended with exit code ${code}`
    );
    return { child, shows, says, press, ends, goesOn, ready: () => shows(/› $/, /^/, 20_000) };
  };
  const isShown = (came: string) => came === 'shown';
  const QUIT = /again|exit|quit|leave/i;
  const isSaid = (came: string) => came.startsWith('said on');

  const chat = start(true, { bed, calculator });
  await chat.ready(); // the start takes its time
  await chat.press('sleep 60000', ENTER);
  await chat.shows(/"method":"tools\/call"/, /^/, 20_000);
  await chat.press(CTRL_C);
  await expect(
    'Ctrl-C stops the turn: the call is cancelled on the wire',
    'notifications/cancelled, and a prompt',
    chat.shows(/"method":"notifications\/cancelled"[^]*stopped[^]*› $/),
    isShown,
  );
  const stuck = start(true, {}, { one: calculator, two: calculator }); // these want to be approved // meanwhile
  const piped = start(false, { bed });
  await chat.press(CTRL_C);
  const said = await chat.says(QUIT);
  await expect(
    'the one that stopped a turn does not count: at the empty prompt the next says how to quit',
    'words such as (Ctrl-C again, or /exit, to quit)',
    said,
    isSaid,
  );
  await expect(
    'what you say is not among the answers',
    'it is on stderr, and not on stdout',
    said,
    /^said on stderr$/,
  );
  await chat.press('greet Ada', ENTER);
  await expect(
    'and the chat goes on',
    'the next prompt is answered: Hello, Ada!',
    chat.shows(/› $/, /Hello, Ada!/),
    isShown,
  );

  await chat.press('sleep 60000', ENTER);
  await chat.shows(/"method":"tools\/call"/);
  await chat.press('greet Dan', CTRL_C);
  await expect(
    'what is typed meanwhile does not keep Ctrl-C from stopping the turn',
    'notifications/cancelled, and a prompt',
    chat.shows(/"method":"notifications\/cancelled"[^]*stopped[^]*› /),
    isShown,
  );
  await chat.press(ENTER);
  await expect(
    'and it is still there: Enter sends it',
    'Hello, Dan!',
    chat.shows(/› $/, /Hello, Dan!/),
    isShown,
  );

  await chat.press('add 2 and 40', ENTER);
  await chat.shows(/Allow it\?[^]*: $/);
  await chat.press('ye', CTRL_C);
  await expect(
    'a question that is open goes with its turn',
    '"stopped", and a prompt',
    chat.shows(/stopped[^]*› $/),
    isShown,
  );
  await chat.press('greet Bob', ENTER);
  await expect(
    'nothing is left of the question, nor of what was typed there',
    'the next prompt is answered: Hello, Bob!',
    chat.shows(/› $/, /Hello, Bob!/),
    isShown,
  );

  await chat.press('rubbish', CTRL_C);
  await expect(
    'at the prompt it empties the line, and no more',
    'the program goes on, and says nothing about quitting',
    chat
      .goesOn()
      .then(
        async (goes) =>
          `${goes}${isShown(await chat.shows(QUIT, /^/, 0)) ? ', but says how to quit' : ''}`,
      ),
    /^it goes on$/,
  );
  await chat.press('greet Cleo', ENTER);
  await expect(
    'what was typed is gone',
    'the next prompt is "greet Cleo", and no more: Hello, Cleo!',
    chat.shows(/› $/, /Hello, Cleo!/),
    isShown,
  );

  await chat.press(CTRL_C);
  await expect(
    'at an empty prompt it says how to quit',
    'words such as (Ctrl-C again, or /exit, to quit)',
    chat.says(QUIT),
    isSaid,
  );
  await chat.press('x', CTRL_C);
  await expect(
    'if the user types in between, it empties the line',
    'it goes on',
    chat.goesOn(),
    /^it goes on$/,
  );
  await chat.press(CTRL_C);
  await expect(
    'and the one before is forgotten: the next says again how to quit',
    'words such as (Ctrl-C again, or /exit, to quit)',
    chat.says(QUIT),
    isSaid,
  );
  await wait(1100); // the user reads
  await chat.press(CTRL_C);
  await expect(
    'twice at an empty prompt it quits, and leaves the shell a line of its own',
    'exit code 130, and a line feed as the last character',
    chat.ends(),
    /^exit code 130$/,
  );

  await stuck.ready();
  await stuck.press('hello', ENTER);
  await stuck.shows(/one[^]*: $/, /^/, 20_000);
  await stuck.press(CTRL_C);
  await expect(
    'questions that do not belong to the turn are dismissed, too: two servers wanted to be approved',
    '"stopped", and a prompt',
    stuck.shows(/stopped[^]*› $/),
    isShown,
  );
  const beStuck = async () => {
    await stuck.press(`run "trap '' TERM; echo awake; sleep 60; sleep 60"`, ENTER);
    await stuck.shows(/Allow it\?[^]*: $/, /^/, 20_000);
    await stuck.press('y', ENTER);
    await stuck.shows(/│ awake/, /^/, 20_000); // it takes a second to be ended by force
  };
  await beStuck();
  await stuck.press(CTRL_C, 'x', CTRL_C);
  const told = await stuck.says(/stopping|still|once more|again/i);
  await expect(
    'twice during a turn it does not quit: the user is impatient, and is told, whatever is typed',
    'words such as (stopping… Ctrl-C once more quits at once)',
    told,
    isSaid,
  );
  await expect(
    'that, too, is not among the answers',
    'it is on stderr, and not on stdout',
    told,
    /^said on stderr$/,
  );
  await stuck.shows(/stopped[^]*› /, /^/, 20_000);
  await stuck.press(CTRL_C, CTRL_C); // the first empties the line, in which is an x
  await expect(
    'the turn has ended, and its Ctrl-Cs are forgotten: at the empty prompt the next says how to quit',
    'words such as (Ctrl-C again, or /exit, to quit)',
    stuck.says(QUIT),
    isSaid,
  );
  await beStuck();
  await stuck.press(CTRL_C, CTRL_C);
  await stuck.says(/stopping|still|once more|again/i);
  await stuck.press(CTRL_C);
  await expect(
    'the third quits, although the tool does not let go',
    'exit code 130',
    stuck.ends(),
    /^exit code 130/,
  );

  piped.child.stdin.write('sleep 60000\n');
  await piped.shows(/"method":"tools\/call"/, /^/, 20_000);
  piped.child.kill('SIGINT');
  await expect(
    'through a pipe, too, it stops a turn that is under way',
    'notifications/cancelled, and the program goes on',
    piped
      .shows(/"method":"notifications\/cancelled"[^]*no tokens/)
      .then(async (came) => (isShown(came) ? piped.goesOn() : came)),
    /^it goes on$/,
  );
  piped.child.kill('SIGINT');
  await expect(
    'between two lines of a pipe once is enough: there is no user to press it again',
    'exit code 130',
    piped.ends(),
    /^exit code 130$/,
  );
};
