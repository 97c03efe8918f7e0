// What `record` adds to a call: `npm run bench record`. Two connections to the same real server, one of them through
// the proxy, are called in turn.

import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { McpConnection, type Json } from '../../mcp.ts';
import { installed, root } from '../help/installed.ts';

const GOAL = 1.1;
const PER_ROUND = 40;
const PACKAGE = '@modelcontextprotocol/server-filesystem';

/** The time that this share of the calls stayed below. The goal is judged by the median; the best tenth shows what the
 *  proxy itself costs, where a busy machine lets a process wait for its turn. */
const quantile = (times: number[], share: number) =>
  times.toSorted((a, b) => a - b)[Math.floor(times.length * share)]!;

async function open(name: string, [command, ...args]: string[]): Promise<McpConnection> {
  const connection = new McpConnection(
    name,
    { command, args },
    { onWarning: () => {}, handshakeTimeoutMs: 60_000 },
  );
  await connection.connect();
  await connection.initialize();
  return connection;
}

/** Prints a table of its own. Returns how many goals were missed. */
export async function benchRecord(rounds: number): Promise<number> {
  const { command: program } = await import('../help/terminal.ts'); // the program, packed, as it is installed
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'bench-record-')));
  const chapters = join(realpathSync(root), 'chapters');
  const file = join(folder, 'a.txt');
  writeFileSync(file, 'a line of a file\n'.repeat(600)); // 10 KB
  const entry = join(
    installed(`${PACKAGE}@2026.8.31`),
    'node_modules',
    PACKAGE,
    'dist',
    'index.js',
  );
  const server = [process.execPath, entry, folder, chapters];
  const direct = await open('direct', server);
  const recorded = await open('recorded', [
    ...program,
    'record',
    join(folder, 'trace.jsonl'),
    '--',
    ...server,
  ]);
  const calls: [what: string, tool: string, args: Json, hasGoal: boolean][] = [
    ['a file of 10 KB is read', 'read_text_file', { path: file }, false],
    [
      'a folder of files is searched',
      'search_files',
      { path: chapters, pattern: '**/*.mjs' },
      true,
    ],
    ['a tree of files is listed', 'directory_tree', { path: chapters }, true],
  ];
  let missed = 0;
  console.log(
    '\n| one call, server-filesystem | direct, median | recorded, median | ratio of medians | of the best tenths |',
  );
  console.log('| --- | --- | --- | --- | --- |');
  for (const [what, tool, args, hasGoal] of calls) {
    const times = { direct: [] as number[], recorded: [] as number[] };
    const call = async (connection: McpConnection, into: number[]) => {
      const since = performance.now();
      const { isError, text } = await connection.callTool(tool, args);
      into.push(performance.now() - since);
      if (isError) throw new Error(`${tool}: ${text}`);
    };
    for (let n = 0; n < rounds * PER_ROUND; n++) {
      await call(direct, times.direct);
      await call(recorded, times.recorded);
    }
    const ratioAt = (share: number) =>
      quantile(times.recorded, share) / quantile(times.direct, share);
    const ratio = ratioAt(0.5);
    if (hasGoal && ratio > GOAL) missed++;
    const verdict = hasGoal
      ? `${ratio <= GOAL ? '✓' : '✗'} ${ratio.toFixed(2)} ≤ ${GOAL}`
      : ratio.toFixed(2);
    const [own, through] = [times.direct, times.recorded].map(
      (each) => `${quantile(each, 0.5).toFixed(2)} ms`,
    );
    console.log(`| ${what} | ${own} | ${through} | ${verdict} | ${ratioAt(0.1).toFixed(2)} |`);
  }
  await Promise.all([direct.close(), recorded.close()]);
  rmSync(folder, { recursive: true, force: true });
  return missed;
}
