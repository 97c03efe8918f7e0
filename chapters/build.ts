// npm run build: what the package holds. `npm run package` runs it, and packs it.
//
// All code is joined into a few files, because a start costs about a millisecond for each. The
// program's first file is not an ES module but a CommonJS one: Node reads it in fewer steps, and it
// holds all that one call of a tool needs.

import { build, type BuildOptions, type Plugin } from 'esbuild';
import { execFileSync } from 'node:child_process';
import { copyFileSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const START = 'chapters/start.ts';
// What programs import, and what start.ts loads for everything but one call.
const MODULES = [
  'chapters/connect.ts',
  'chapters/package/mcp.ts',
  'chapters/package/agent.ts',
  'chapters/package/server.ts',
  'chapters/package/composition.ts',
  'chapters/composition.ts',
  'chapters/19-the-terminal/main.ts',
  // What one call needs only at a terminal, with a flag, or for an odd schema.
  'chapters/16-hands/results.ts',
  'chapters/19-the-terminal/screen.ts',
  'chapters/19-the-terminal/show.ts',
  'chapters/19-the-terminal/more/trace-file.ts',
  // What `aside` runs in a thread.
  'chapters/16-hands/more/matching.ts',
  'chapters/23-the-server-asks/schema.ts',
  'chapters/28-a-thousand-tools/tool-arguments.ts',
  'chapters/29-a-server/code/find-lines.ts',
  'chapters/30-seeing/check.ts',
];
const TYPES =
  '--ignoreConfig --outDir dist --target es2022 --lib es2023 --module nodenext ' +
  '--types node --strict --skipLibCheck --rewriteRelativeImportExtensions ' +
  '--declaration --emitDeclarationOnly';

const common: BuildOptions = {
  absWorkingDir: root,
  bundle: true,
  platform: 'node',
  target: 'node20',
  outdir: 'dist',
  outbase: '.',
  keepNames: true, // an extension is known by its name
  sourcemap: 'linked', // for `node --enable-source-maps`; without it Node does not read them
  sourcesContent: false, // they name file and line; the files are in the repository
  logLevel: 'warning',
};

/** What start.ts loads late from MODULES is there already. Node looks at every letter of the first
 *  file before it runs the first line: 200 kB are 5 ms. */
const fromModules: Plugin = {
  name: 'from-modules',
  setup: ({ onResolve }) => {
    onResolve({ filter: /\.ts$/ }, ({ path, resolveDir, kind }) => {
      const name = relative(root, join(resolveDir, path)).replaceAll('\\', '/');
      if (kind !== 'dynamic-import' || !MODULES.includes(name)) return undefined;
      const file = name.replace(/^chapters/, '.').replace('.ts', '.js');
      return { path: file, external: true };
    });
  },
};

process.chdir(root);
rmSync('dist', { recursive: true, force: true });
const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
execFileSync(process.execPath, [tsc, ...MODULES, ...TYPES.split(' ')], { stdio: 'inherit' });
await build({
  ...common,
  entryPoints: MODULES,
  format: 'esm',
  splitting: true, // not minified: of an error that is not caught Node prints the whole line
  chunkNames: 'parts/[name]-[hash]',
});
await build({
  ...common,
  entryPoints: [START],
  minifyWhitespace: true,
  minifySyntax: true,
  format: 'cjs',
  minifyIdentifiers: true, // a third less to read; keepNames keeps what a trace shows
  outExtension: { '.js': '.cjs' },
  plugins: [fromModules],
});
const read = [
  '30-seeing/viewer.html',
  '30-seeing/shapes.json',
  '31-apps/app-page.html',
  '31-apps/app-frame.html',
];
for (const file of read) {
  mkdirSync(`dist/chapters/${dirname(file)}`, { recursive: true });
  copyFileSync(`chapters/${file}`, `dist/chapters/${file}`);
}

// What is packed has a README of its own, and nothing in its package.json that only a clone needs.
const packed = join('.cache', 'package');
rmSync(packed, { recursive: true, force: true });
mkdirSync(packed, { recursive: true });
const { scripts, devDependencies, overrides, ...manifest } = JSON.parse(
  readFileSync('package.json', 'utf8'),
);
writeFileSync(join(packed, 'package.json'), `${JSON.stringify(manifest, undefined, 2)}\n`);
cpSync('dist', join(packed, 'dist'), { recursive: true });
copyFileSync('LICENSE', join(packed, 'LICENSE'));
copyFileSync(join('chapters', 'package', 'README.md'), join(packed, 'README.md'));
