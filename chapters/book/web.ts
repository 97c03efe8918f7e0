// web.ts: a part of the program as one script for a web page.

import { build, type BuildOptions, type Plugin } from 'esbuild';
import { root } from './pages.ts';

/** No module of ours does anything by being loaded, so what is not used can be left out; and what is
 *  left out takes its `import … from 'node:…'` along. */
const leaveOutUnused: Plugin = {
  name: 'leave out what is not used',
  setup({ onResolve, resolve }) {
    onResolve({ filter: /^node:/ }, ({ path }) => ({ path, external: true, sideEffects: false }));
    onResolve({ filter: /^\./ }, async ({ path, pluginData, kind, ...from }) => {
      if (pluginData) return undefined; // asked by ourselves, below
      return { ...(await resolve(path, { ...from, kind, pluginData: true })), sideEffects: false };
    });
  },
};

/** The lines of an entry, as if they were in a file at the top of the repository. */
export async function bundleForWeb(entry: string, more: BuildOptions = {}): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents: entry, resolveDir: root, loader: 'ts' },
    bundle: true,
    write: false,
    platform: 'browser',
    format: 'esm',
    plugins: [leaveOutUnused],
    logLevel: 'warning',
    ...more,
  });
  return outputFiles![0]!.text;
}
