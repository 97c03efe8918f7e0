// consoles.ts: what a console block shows must be what a fresh run prints.

import { buildSync } from 'esbuild';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify, stripVTControlCharacters } from 'node:util';
import { stageDemo } from './chapter.ts';
import { isFile, linesOf, read, sideBySide } from './files.ts';
import { cached } from './program.ts';
import { stepBefore, stepOf, type Book, type Fence } from './pages.ts';

/** What a console block shows must be what a fresh run prints. A busy machine may be too slow for a demo, which is
 *  stopped after five seconds, and some demos start their own source: so what differs is run once more, alone and as
 *  it is typed. */
export async function problemsOfConsoles(book: Book, chapters = book.chapters): Promise<string[]> {
  const fences = chapters.flatMap((chapter) => chapter.fences);
  const odd: typeof fences = [];
  await sideBySide(
    fences.filter(({ language }) => language === 'console'),
    async (block) => {
      if ((await problemsOfConsole(book, block, 'in one file')).length > 0) odd.push(block);
    },
  );
  const problems: string[] = [];
  for (const block of odd) problems.push(...(await problemsOfConsole(book, block)));
  return problems;
}

type How = 'in one file' | 'as typed';

export async function problemsOfConsole(
  book: Book,
  { page, line, body }: Fence,
  how: How = 'as typed',
): Promise<string[]> {
  const problems: string[] = [];
  const home = mkdtempSync(join(tmpdir(), 'book '));
  for (const [n, text] of body.entries()) {
    if (!text.startsWith('$ ')) continue;
    const end = body.findIndex((other, k) => k > n && other.startsWith('$ '));
    const printed = await runShown(book, text.slice(2), home, how);
    const odd = firstDifference(body.slice(n + 1, end === -1 ? undefined : end), printed);
    if (odd === undefined) continue;
    const what = `a fresh run of "${text.slice(2)}" prints something else:\n${printed.join('\n')}`;
    problems.push(`${page}:${line + n + 1 + odd}: ${what}`);
  }
  rmSync(home, { recursive: true, force: true });
  return problems;
}

/** Runs a command as the reader would type it, but without npm's own lines, and in a home of its own. */
export async function runShown(
  book: Book,
  command: string,
  home: string,
  how: How = 'as typed',
): Promise<string[]> {
  const { scripts } = JSON.parse(
    isFile(book.root, 'package.json') ? read(book.root, 'package.json') : '{}',
  );
  const script = (_: string, name = 'start') => `npx ${scripts[name]}`;
  const typed = command
    .replace(/^npm (.*?) -- /, 'npm $1 ') // npm takes that one away
    .replace(/^npm (?:run (\w+)|start)/, script)
    .replace(/^npx tsx /, 'node --import tsx ');
  const staged = stagedDemo(book, command, how);
  const direct = staged?.command ?? (how === 'in one file' ? startInOneFile(book, typed) : typed);
  const path = `${dirname(process.execPath)}${delimiter}${process.env.PATH}`;
  const env = {
    PATH: path,
    HOME: home,
    USERPROFILE: home,
    WORK: join(home, 'work'),
    NO_COLOR: '1',
  };
  const run = promisify(execFile)('sh', ['-c', `{ ${direct}\n} 2>&1`], {
    cwd: book.root,
    env,
    timeout: 60_000,
  });
  const output = await run.then(
    ({ stdout }) => stdout,
    ({ stdout }) => `${stdout}`,
  );
  const whole = (staged?.title ?? '') + output;
  return linesOf(
    stripVTControlCharacters(whole).replaceAll(book.root, '').replaceAll(home, '~').trimEnd(),
  );
}

/** What `npm run chapter 4.1 before` does, without reading the book once more: most blocks show that command. (A test
 *  types it as a reader does.) */
function stagedDemo(
  book: Book,
  command: string,
  how: How,
): { title: string; command: string } | undefined {
  const [, which, before] = /^npm run chapter (\S+)( (?:-- --)?before)?$/.exec(command) ?? [];
  const step = which === undefined ? 0 : stepOf(which);
  if (!book.steps.includes(step)) return undefined;
  const on = before ? stepBefore(book, step) : step;
  if (on === 0) return undefined;
  const { title, folder, demo } = stageDemo(book, step, on);
  const runner = fileURLToPath(new URL('demo.ts', import.meta.url));
  const one = how === 'in one file' ? inOneFile(folder, demo) : undefined;
  const program = one
    ? [bundledRunner(book, runner), folder, one]
    : ['--import', 'tsx', runner, folder, demo];
  const words = ['node', ...program].map((word) => `'${word}'`);
  return { title: `${title}\n`, command: words.join(' ') };
}

/** What `npm start` does, but with the program as one file of JavaScript. */
function startInOneFile(book: Book, typed: string): string {
  const TYPED = 'node --import tsx agent.ts ';
  const file = join(cached(book, 'runner'), 'agent.mjs');
  if (!typed.startsWith(TYPED) || !bundle(join(book.root, 'agent.ts'), file)) return typed;
  return typed.replace(TYPED, `node '${file}' `);
}

/** A demo and its program as one file of JavaScript, beside the demo: it starts in half the time.
 *  Where a name is missing, which is what some demos show, there is no such file. */
function inOneFile(folder: string, demo: string): string | undefined {
  const file = demo.replace(/\.ts$/, '.mjs');
  return bundle(join(folder, demo), join(folder, file)) ? file : undefined;
}

function bundledRunner(book: Book, runner: string): string {
  const file = join(cached(book, 'runner'), 'demo.mjs');
  bundle(runner, file);
  return file;
}

function bundle(source: string, target: string): boolean {
  const imported = [...read(source).matchAll(/\bfrom '(\.[^']+)'/g)].map(([, path]) => path!);
  const missing = imported.filter((path) => !isFile(dirname(source), path)); // Node is to say so
  try {
    const { warnings } = buildSync({
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
