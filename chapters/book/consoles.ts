// consoles.ts: what a console block shows must be what a fresh run prints.

import { build } from 'esbuild';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify, stripVTControlCharacters } from 'node:util';
import { stageDemo } from './chapter.ts';
import { STOPPED } from './demo.ts';
import { isFile, linesOf, read, sideBySide } from './files.ts';
import { cached, remembered } from './program.ts';
import { stepBefore, stepOf, type Book, type Fence } from './pages.ts';

/** What a console block shows must be what a fresh run prints; blocks of the same commands, of which each may show another
 *  part, share one run. Some demos start their own source: so what differs is run once more, alone and as it is typed. */
export async function problemsOfConsoles(book: Book, chapters = book.chapters): Promise<string[]> {
  const fences = chapters.flatMap((chapter) => chapter.fences);
  const blocks = fences.filter(({ language }) => language === 'console');
  const alike = new Map<string, Fence[]>();
  for (const block of blocks) {
    const commands = commandsIn(block).join('\n');
    alike.set(commands, [...(alike.get(commands) ?? []), block]);
  }
  const odd: Fence[] = [];
  await sideBySide([...alike.values()], async (same) => {
    const printed = await runsOf(book, same[0]!, 'in one file');
    odd.push(...same.filter((block) => differences(block, printed).length > 0));
  });
  const problems: string[] = [];
  for (const block of odd) problems.push(...(await problemsOfConsole(book, block)));
  return problems;
}

type How = 'in one file' | 'as typed';
type Run = { command: string; printed: string[] };

async function problemsOfConsole(book: Book, block: Fence): Promise<string[]> {
  return differences(block, await runsOf(book, block, 'as typed'));
}

const commandsIn = ({ body }: Fence) =>
  body.filter((text) => text.startsWith('$ ')).map((text) => text.slice(2));

/** The commands of a block, one after the other in one home. */
async function runsOf(book: Book, block: Fence, how: How): Promise<Run[]> {
  const home = mkdtempSync(join(tmpdir(), 'book '));
  const runs: Run[] = [];
  for (const command of commandsIn(block))
    runs.push({ command, printed: await runShown(book, command, home, how, limitOf(block, how)) });
  rmSync(home, { recursive: true, force: true });
  return runs;
}

/** How long a demo may take. Only one that shows that it is stopped has to wait for that; where it did not come as far as
 *  it should in that time, the machine may have been busy. */
export function limitOf({ body }: Fence, how: How): number {
  if (!body.includes(`${STOPPED} it still waits.`)) return 60_000;
  return how === 'in one file' ? 5000 : 30_000;
}

/** Where a block shows something else than was printed. */
function differences({ page, line, body }: Fence, runs: Run[]): string[] {
  const starts = [...body.keys()].filter((n) => body[n]!.startsWith('$ '));
  return starts.flatMap((n, k) => {
    const { command, printed } = runs[k]!;
    const odd = firstDifference(body.slice(n + 1, starts[k + 1]), printed);
    if (odd === undefined) return [];
    const what = `a fresh run of "${command}" prints something else:\n${printed.join('\n')}`;
    return [`${page}:${line + n + 1 + odd}: ${what}`];
  });
}

/** Runs a command as the reader would type it, but without npm's own lines, and in a home of its own. */
async function runShown(
  book: Book,
  command: string,
  home: string,
  how: How,
  limitMs: number,
): Promise<string[]> {
  const { scripts } = JSON.parse(
    isFile(book.root, 'package.json') ? read(book.root, 'package.json') : '{}',
  );
  const script = (_: string, name = 'start') => `npx ${scripts[name]}`;
  const typed = command
    .replace(/^npm (.*?) -- /, 'npm $1 ') // npm takes that one away
    .replace(/^npm (?:run (\w+)|start)/, script)
    .replace(/^npx tsx /, 'node --import tsx ');
  const staged = await stagedDemo(book, command, how, limitMs);
  const start = how === 'in one file' ? await startInOneFile(book, typed) : typed;
  const direct = staged?.command ?? start;
  const env = envIn(home);
  const run = promisify(execFile)('sh', ['-c', `{ ${direct}\n} 2>&1`], {
    cwd: book.root,
    env,
    timeout: 90_000,
  });
  const output = await run.then(
    ({ stdout }) => stdout,
    ({ stdout }) => `${stdout}`,
  );
  return asShown(book, home, (staged?.title ?? '') + output);
}

/** Whatever this machine has set, a page does not depend on it. */
export function envIn(home: string): NodeJS.ProcessEnv {
  return {
    PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH}`,
    HOME: home,
    USERPROFILE: home,
    WORK: join(home, 'work'),
    NO_COLOR: '1',
  };
}

/** The lines of a page for what was printed. */
export function asShown(book: Book, home: string, printed: string): string[] {
  const plain = stripVTControlCharacters(printed);
  return linesOf(plain.replaceAll(book.root, '').replaceAll(home, '~').trimEnd());
}

/** What `npm run chapter 4.1 before` does, without reading the book once more: most blocks show that command. (A test
 *  types it as a reader does.) */
async function stagedDemo(
  book: Book,
  command: string,
  how: How,
  limitMs: number,
): Promise<{ title: string; command: string } | undefined> {
  const [, which, before] = /^npm run chapter (\S+)( (?:-- --)?before)?$/.exec(command) ?? [];
  const step = which === undefined ? 0 : stepOf(which);
  if (!book.steps.includes(step)) return undefined;
  const on = before ? stepBefore(book, step) : step;
  if (on === 0) return undefined;
  const { title, folder, demo } = stageDemo(book, step, on);
  const runner = fileURLToPath(new URL('demo.ts', import.meta.url));
  const one = how === 'in one file' ? await inOneFile(folder, demo) : undefined;
  const program = one
    ? [await bundledOnce(book, runner), folder, one]
    : ['--import', 'tsx', runner, folder, demo];
  const words = ['node', ...program, limitMs].map((word) => `'${word}'`);
  return { title: `${title}\n`, command: words.join(' ') };
}

/** What `npm start` does, but with the program as one file of JavaScript. */
async function startInOneFile(book: Book, typed: string): Promise<string> {
  const TYPED = 'node --import tsx agent.ts ';
  if (!typed.startsWith(TYPED)) return typed;
  const file = await bundledOnce(book, join(book.root, 'agent.ts'));
  return typed.replace(TYPED, `node '${file}' `);
}

/** A demo and its program as one file of JavaScript, beside the demo: it starts in half the time.
 *  Where a name is missing, which is what some demos show, there is no such file. */
async function inOneFile(folder: string, demo: string): Promise<string | undefined> {
  const file = demo.replace(/\.ts$/, '.mjs');
  const isWhole = await bundle(join(folder, demo), join(folder, file));
  return isWhole ? file : undefined;
}

/** Many blocks need it. */
function bundledOnce(book: Book, source: string): Promise<string> {
  return remembered(book, `bundle ${source}`, async () => {
    const file = join(cached(book, 'runner'), `${basename(source, '.ts')}.mjs`);
    await bundle(source, file);
    return file;
  });
}

async function bundle(source: string, target: string): Promise<boolean> {
  const imported = [...read(source).matchAll(/\bfrom '(\.[^']+)'/g)].map(([, path]) => path!);
  const missing = imported.filter((path) => !isFile(dirname(source), path)); // Node is to say so
  try {
    const { warnings } = await build({
      entryPoints: [source],
      outfile: target,
      bundle: true,
      format: 'esm',
      platform: 'node',
      external: missing,
      target: 'node20',
      keepNames: true,
      packages: 'external',
      logLevel: 'silent',
    });
    return warnings.length === 0;
  } catch {
    return false;
  }
}

/** The first line that differs. `…` alone on a line stands for any number of lines; times may differ. */
export function firstDifference(shown: string[], printed: string[]): number | undefined {
  const even = (text = '') => text.replace(/\b\d+(\.\d+)? (ms|s)\b/g, 'N $2');
  let at = 0;
  for (const [n, text] of shown.entries()) {
    const next = shown[n + 1];
    if (text !== '…') {
      if (at === printed.length || even(text) !== even(printed[at++])) return n;
    } else if (next === undefined) return undefined;
    else while (at < printed.length && even(printed[at]) !== even(next)) at++;
  }
  return at < printed.length ? shown.length : undefined;
}
