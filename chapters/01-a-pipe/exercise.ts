// Judges exercise 1: does the server start as it should, and does its stderr do no harm?

import type { Judge } from '../book.ts';

export const judge: Judge = async ({ load, see, expect }) => {
  const { StdioTransport } = await load('mcp.ts');
  const start = async (config: object, look = see) => {
    const server = new StdioTransport('demo', { command: 'node', ...config }, 2 ** 26);
    const waiting: ((message: unknown) => void)[] = [];
    const message = (came: unknown) => (look('in', came), waiting.shift()?.(came));
    await server.start({ message, closed: () => {} });
    const ask = async (name: string, args: object): Promise<any> => {
      const question = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } };
      const heard = new Promise((done) => waiting.push(done));
      look('out', question);
      await server.send(question);
      return heard;
    };
    return { server, ask };
  };
  const add = async () => (await start({ args: ['fixtures/server.mjs'] })).ask('add', { a: 2, b: 40 });
  // What a server sees of its surroundings. Not for the record of the wire: it may hold the learner's own secrets.
  const where = async (config: object) => JSON.parse((await (await start(config, () => {})).ask('where', {})).result.content[0].text);
  const habits = 'fixtures/habits.mjs';

  await expect('what we write reaches its stdin, what it writes to stdout reaches us', 'the answer 42 under id 1, as an event `message`',
    add(), (came) => came?.id === 1 && came.result?.content?.[0]?.text === '42');
  await expect('a command that is not there is an error of start()', 'start() rejects, with ENOENT (a shell would start, and fail later)',
    start({ command: 'no-such-command' }).then(() => 'start() resolved'), (came) => came?.code === 'ENOENT' || came?.kind === 'start');
  const words = 'two words; $HOME "quoted"';
  await expect('no shell reads the arguments', `the server gets the argument ${words} as it is`,
    where({ args: [habits, 'good', words] }).then(({ argv }) => argv), (came) => came?.[1] === words);
  await expect('"cwd" is where it runs', 'a folder that ends in "fixtures"',
    where({ args: ['habits.mjs'], cwd: 'fixtures' }).then(({ cwd }) => cwd), /fixtures$/);
  process.env.ANTHROPIC_API_KEY = 'a secret';
  const keys = ['PATH', 'COLOUR', 'ANTHROPIC_API_KEY'];
  await expect('of our environment it gets the safe part, and what "env" names', 'of PATH, COLOUR and ANTHROPIC_API_KEY: PATH and COLOUR',
    where({ args: [habits], env: { COLOUR: 'blue' } }).then(({ env }) => keys.filter((name) => name in env)), (came) => `${came}` === 'PATH,COLOUR');
  const leads = async () => process.kill(-(await where({ args: [habits] })).pid, 0); // is there a group of this number?
  if (process.platform !== 'win32')
    await expect('the server leads a process group of its own', 'a group whose number is the server\'s pid', leads(), (came) => came === true);

  const { server: dying } = await start({ args: [habits, 'dies-at-once'] });
  const kept = async () => {
    for (let turn = 0; turn < 100 && dying.stderrTail === ''; turn++) await new Promise((done) => setTimeout(done, 20));
    return `stderrTail is ${JSON.stringify(dying.stderrTail)}`;
  };
  await expect('what it writes to stderr is kept, not shown', 'the text "cannot find my configuration" in stderrTail', kept(), /cannot find my configuration/);
  const flood = await start({ args: [habits, 'floods-stderr', '1'] });
  await expect('a megabyte on stderr does not stop the server', 'an answer, after the flood',
    flood.ask('echo', {}), (came) => came?.id === 1);
  await expect('of the flood only the end is kept', 'a stderrTail of a few thousand characters, not of a million',
    `a stderrTail of ${flood.server.stderrTail.length} characters`, () => flood.server.stderrTail.length <= 2 ** 16);
};
