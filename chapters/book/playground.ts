// playground.ts: the page of chapter 33 and what it needs beside it, as files of a folder that opens without a server.

import { build } from 'esbuild';
import { bundleForWeb } from './web.ts';
import { read } from './files.ts';
import { root } from './pages.ts';
import { sealed } from '../30-seeing/view.ts';

/** Servers that run in the page, as they are. */
const FIXTURES = ['server.mjs', 'workbench.mjs', 'library.mjs', 'asker.mjs'];
const SERVERS = {
  calculator: { file: 'server.mjs', about: 'adds and greets' },
  'one tool a page': {
    file: 'server.mjs',
    args: ['--page', '1'],
    about: 'its list comes in pages',
  },
  workbench: {
    file: 'workbench.mjs',
    about: 'every kind of field; pictures; a call that never ends',
  },
  library: { file: 'library.mjs', about: 'resources, and prompts with completion' },
  'library, no handshake': { file: 'library.mjs', args: ['modern'], about: 'revision 2026-07-28' },
  asker: { file: 'asker.mjs', args: ['', 'example'], about: 'asks you in the middle of a call' },
  'asker, no handshake': {
    file: 'asker.mjs',
    args: ['modern', 'example'],
    about: 'asks in its result',
  },
};

export const ENTRY = `import { beginPlayground } from './chapters/33-a-page/dom/playground-page.ts'; beginPlayground();`;

/** By name: the page, and the page of chapter 30, which it has in a frame. `more`: servers of a test. */
export async function playgroundFiles(more: Record<string, string> = {}) {
  const sources = { ...more };
  const others = Object.keys(more).map((file) => [file, { file, about: 'of a test' }]);
  const servers = { ...SERVERS, ...Object.fromEntries(others) };
  for (const name of FIXTURES) {
    // Without comments, blanks and the names of what is local; the program is the same.
    const { outputFiles } = await build({
      stdin: { contents: read(root, 'fixtures', name), loader: 'js' },
      minify: true,
      write: false,
    });
    sources[name] = outputFiles[0]!.text;
  }
  const script = await bundleForWeb(ENTRY, {
    format: 'iife',
    minify: true,
    target: 'es2022',
    define: { SERVERS: JSON.stringify(servers), SOURCES: JSON.stringify(sources) },
  });
  const page = read(root, 'chapters/33-a-page/page.html');
  const whole = page.replace(
    '<script>SCRIPT</script>',
    () => `<script>${inScript(script)}</script>`,
  );
  return new Map<string, string>([
    ['playground.html', sealed(whole)],
    ['viewer.html', sealed(read(root, 'chapters/30-seeing/viewer.html'))],
  ]);
}

/** A script ends at the first `</script`, even inside a string. */
const inScript = (script: string) => script.replace(/<(?=\/script|!--)/gi, '\\x3c');
