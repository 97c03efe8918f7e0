// What tests start often is compiled once, and kept until its source changes.

import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { basename, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { root } from './installed.ts';

const isCut = !existsSync(join(root, 'node_modules')); // by book.ts, into .cache/book/NAME

/** The root; for a program that was cut, that of what it was cut from. */
export const repository = isCut ? join(root, '..', '..', '..') : root;
const cache = join(repository, '.cache');

/** The folder that `compile` has filled from the sources as they are now. */
export function compiled(name: string, compile: (target: string) => void): string {
  const target = join(cache, `${name}-${fingerprint()}`);
  if (existsSync(target)) return target;
  const claim = `${target}.claim`;
  claimOrWait(claim, target);
  try {
    if (!existsSync(target)) make(target, compile);
  } finally {
    rmSync(claim, { recursive: true, force: true });
  }
  return target;
}

function make(target: string, compile: (target: string) => void): void {
  const unfinished = `${target}.${process.pid}`;
  mkdirSync(unfinished, { recursive: true });
  compile(unfinished);
  forgetOld();
  try {
    renameSync(unfinished, target);
  } catch {
    rmSync(unfinished, { recursive: true }); // another was faster
  }
}

const LONGEST_MS = 30_000; // whoever made the claim may have died

/** Several test files begin at once, and one of them is enough to compile: the others wait for it. */
function claimOrWait(claim: string, target: string): void {
  mkdirSync(cache, { recursive: true });
  const clock = new Int32Array(new SharedArrayBuffer(4));
  const begun = Date.now();
  while (!isFirst(claim) && !existsSync(target) && Date.now() - begun < LONGEST_MS)
    Atomics.wait(clock, 0, 0, 20);
}

function isFirst(claim: string): boolean {
  try {
    mkdirSync(claim);
    return true;
  } catch {
    return false; // it is there
  }
}

let known: string | undefined;

/** Changes with the program, and with what tests put around it. */
function fingerprint(): string {
  known ??= hashOf(['agent.ts', 'mcp.ts', ...sourcesIn('chapters'), ...sourcesIn('test')]);
  return known;
}

// The programs of the first chapters have only mcp.ts.
function sourcesIn(folder: string): string[] {
  if (!existsSync(join(root, folder))) return [];
  const names = readdirSync(join(root, folder), { recursive: true }) as string[];
  const sources = names.filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'));
  return sources.sort().map((name) => join(folder, name));
}

function hashOf(names: string[]): string {
  const hash = createHash('sha256').update(root);
  const paths = names.map((name) => join(root, name)).filter((path) => existsSync(path));
  for (const path of paths) hash.update(readFileSync(path));
  return hash.digest('hex').slice(0, 16);
}

function forgetOld(): void {
  const folders = readdirSync(cache).filter((name) =>
    /(program|bundled|programs)-[^/]*$/.test(name),
  );
  for (const path of folders.map((name) => join(cache, name))) {
    // Another test file may be taking it away just now.
    const stat = statSync(path, { throwIfNoEntry: false });
    const isOld = stat && Date.now() - stat.mtimeMs > 3_600_000;
    if (isOld) rmSync(path, { recursive: true, force: true });
  }
}

/** What Node is given to run a program, such as one of test/programs/: one file of JavaScript. A
 *  client that SUBJECT names is TypeScript, and imported later: then tsx reads all of it. */
export function programArgs(file: string): string[] {
  const { bun, deno } = process.versions;
  const preload = ['--preload', join(root, 'test', 'help', 'servers-on-node.ts'), file];
  if (bun) return preload;
  if (deno) return ['run', '-A', '--no-check', ...preload];
  const tsx = createRequire(import.meta.url).resolve('tsx'); // from here, wherever it is started
  const withTsx = ['--import', pathToFileURL(tsx).href, file];
  if (process.env.SUBJECT) return withTsx;
  const folder = compiled(`programs-${basename(file, '.ts')}`, (target) => bundle(file, target));
  const [bundled] = readdirSync(folder);
  return bundled ? [join(folder, bundled)] : withTsx;
}

/** The program of an early chapter may lack what it imports: then there is no such file. */
function bundle(file: string, target: string): void {
  // The programs import this module, too, and compile nothing.
  const { buildSync }: typeof import('esbuild') = createRequire(import.meta.url)('esbuild');
  try {
    buildSync({
      entryPoints: [file],
      outfile: join(target, 'program.mjs'),
      bundle: true,
      format: 'esm',
      platform: 'node',
      target: 'node20',
      logLevel: 'silent',
      // Where installed.ts is: it looks for the root from there.
      define: {
        'import.meta.url': JSON.stringify(pathToFileURL(join(root, 'test', 'help', 'x')).href),
      },
    });
  } catch {
    return;
  }
}
