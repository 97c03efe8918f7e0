// The loop with a whole table: the built-in tools, in a folder of their own, and the tools of real servers.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { hands, Roots } from '../../agent.ts';
import type { Json, ManagerOptions } from '../../mcp.ts';
import { folder } from './basics.ts';
import { prepareLoop } from './agent-alone.ts';
import { prepare } from './manager.ts';

type Options = Parameters<typeof prepareLoop>[0] & {
  files?: Record<string, string | Buffer>;
  servers?: Json;
  manager?: ManagerOptions;
};

export function prepareTable({ files = {}, servers = {}, manager, ...more }: Options) {
  const { manager: mcp, cwd } = prepare(servers, undefined, manager);
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(cwd, name)), { recursive: true });
    writeFileSync(join(cwd, name), content);
  }
  const resultsFolder = join(folder(), 'results');
  const roots = new Roots(cwd, [], [resultsFolder]);
  const loop = prepareLoop({
    tools: hands({ roots, resultsFolder }),
    mcp,
    resultsFolder,
    cwd: roots.cwd,
    ...more,
  });
  const file = (name: string) =>
    existsSync(join(cwd, name)) ? readFileSync(join(cwd, name), 'utf8') : undefined;
  return { ...loop, mcp, cwd: roots.cwd, file };
}
