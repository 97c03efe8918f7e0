// Chapter 19: the program as a script would start it. It runs in this process, but with streams of ours in place of its
// own: what it writes to stdout is marked 1│, to stderr 2│.

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { PassThrough, Writable } from 'node:stream';

const place = realpathSync(mkdtempSync(join(tmpdir(), 'terminal-')));
process.on('exit', () => (process.chdir('/'), rmSync(place, { recursive: true })));
const [home, folder] = [join(place, 'home'), join(place, 'project')];
for (const name of [join(home, '.claude'), folder]) mkdirSync(name, { recursive: true });
for (const name of Object.keys(process.env))
  if (!/^(path|systemroot)$/i.test(name)) delete process.env[name]; // no keys, no colours
Object.assign(process.env, { HOME: home, USERPROFILE: home });
const fixtures = resolve('fixtures');
const server = (name: string, ...args: string[]) => ({
  command: 'node',
  args: [join(fixtures, name), ...args],
});
writeFileSync(
  join(home, '.claude', 'settings.json'),
  JSON.stringify({ mcpServers: { calculator: server('server.mjs') } }),
);

/** Runs the program to its end. When it writes `stopAt`, it gets the signal that Ctrl-C sends. */
async function run(args: string[], { input = '', stopAt = 'never' } = {}): Promise<void> {
  const { main } = await import('./main.ts');
  const { compose } = await import('../composition.ts');
  let lines = '';
  const sink = (mark: string) =>
    new Writable({
      decodeStrings: false,
      write(text: string, _, done) {
        lines += text.replaceAll(/^(?=.)/gm, (_, at) =>
          at === 0 && /.$/.test(lines) ? '' : `${mark} `,
        ); // an answer comes in pieces
        if (text.includes(stopAt)) process.kill(process.pid, 'SIGINT');
        done();
      },
    });
  const stdin = new PassThrough().end(input);
  const [own, { exit }] = [Object.getOwnPropertyDescriptors(process), process];
  for (const [name, value] of Object.entries({ stdin, stdout: sink('1│'), stderr: sink('2│') }))
    Object.defineProperty(process, name, { value, configurable: true });
  const code = await new Promise(
    (ended) => ((process.exit = ended as typeof exit), main(args, async () => compose)),
  );
  for (const name of ['stdin', 'stdout', 'stderr'] as const)
    Object.defineProperty(process, name, own[name]!);
  process.exit = exit;
  const typed = args
    .map((arg) => (/^[\w-]+$/.test(arg) ? arg : arg.startsWith('{') ? `'{…}'` : `'${arg}'`))
    .join(' ');
  const isNews = (line: string) =>
    !/"(initialize|tools\/list)"|initialized"|"protocolVersion"|"tools":/.test(line); // we know those
  const shown = lines
    .replaceAll(place, '~')
    .replaceAll(/\d[\d.]* m?s\b/g, '… ms')
    .replaceAll(/"ms":\d+(?=,"(text|model)")/g, '"ms":…')
    .replaceAll(/"context":\{.*\}(?=,"ms")/g, '"context":{…}')
    .replaceAll(/"id":"[\da-f-]{36}","version":"[^"]*"/g, '"id":"…","version":"…"');
  console.log(`> ${input && `printf '${input.replaceAll('\n', '\\n')}' | `}mcp-by-hand ${typed}`);
  console.log(
    [...shown.split('\n').filter(isNews), `exit code ${code}\n`].filter(Boolean).join('\n'),
  );
}

/** Before this chapter there is no `main`. What does a user see who starts the program by its name? */
function startByName(): void {
  const args = ['--import', import.meta.resolve('tsx'), resolve('agent.ts'), '-p', 'add 2 and 40'];
  const { stdout, stderr, status } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  console.log(`> mcp-by-hand -p 'add 2 and 40'\n${stdout}${stderr}exit code ${status}`);
}

async function startEachWay(): Promise<void> {
  process.chdir(folder);
  const allow = ['--allow', 'mcp__calculator__*'];
  console.log('One answer, and nobody has allowed the call:');
  await run(['-p', 'add 2 and 40']);

  console.log('Ctrl-C, while a tool is at work:');
  const sleep = {
    name: 'sleep',
    inputSchema: { type: 'object', properties: { ms: { type: 'number' } }, required: ['ms'] },
  };
  const bed = JSON.stringify({ bed: server('habits.mjs', 'tools', JSON.stringify([sleep])) });
  await run(
    [
      '-p',
      'sleep 60000',
      '--wire',
      '--allow',
      'mcp__bed__sleep',
      '--strict-mcp-config',
      '--mcp-config',
      bed,
    ],
    { stopAt: 'tools/call' },
  );

  console.log('A chat through a pipe. One server does not start:');
  const weather = JSON.stringify({ weather: server('habits.mjs', 'dies-at-once', 'API key') });
  await run(['--mcp-config', weather, ...allow], { input: 'add 2 and 40\n/mcp\ngreet\n' });

  console.log('Events for a script, in the same conversation:');
  await run(['--json', '--continue', 'Ada', ...allow]);
}

if (existsSync('chapters/19-the-terminal/cli.ts')) await startEachWay();
else startByName();
