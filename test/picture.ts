// npm run picture: draws .github/chat.svg, the picture of a chat in the README: the real program in a real terminal.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cleanUp, root } from './helpers.ts';
import { place, Terminal } from './terminal.ts';

const COLUMNS = 132;
const ROWS = 40;
const CHAR = 8.4; // pixels
const LINE = 19;
const MARGIN = 16;
const MUTED = '#8b949e';

const server = readFileSync(join(root, 'fixtures', 'server.mjs'), 'utf8');
const mcpServers = { demo: { command: 'node', args: ['server.mjs'] } };
const where = place({ 'server.mjs': server, '.mcp.json': { mcpServers } });
const terminal = new Terminal(where, [], {}, COLUMNS, ROWS);

await terminal.ready();
terminal.enter('add 2 and 40');
await terminal.see('Start it?');
terminal.enter('y');
await terminal.see('Allow it?');
terminal.enter('y');
await terminal.see('no tokens');
await terminal.ready();

const lines = terminal.window.map((line) => line.replaceAll(where.cwd, '~/project')).slice(0, -1);
mkdirSync(join(root, '.github'), { recursive: true });
writeFileSync(join(root, '.github', 'chat.svg'), drawn(lines));
await cleanUp();
process.exit();

function drawn(all: string[]): string {
  const width = Math.round(COLUMNS * CHAR + 2 * MARGIN);
  const height = all.length * LINE + 2 * MARGIN;
  const rows = all.map((line, n) => {
    const y = MARGIN + (n + 0.8) * LINE;
    return `<text x="${MARGIN}" y="${y.toFixed(1)}" fill="${colourOf(line)}">${escaped(line)}</text>`;
  });
  const font = 'ui-monospace, SFMono-Regular, Menlo, Consolas, monospace';
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" font-family="${font}" font-size="14">
<title>A chat in a terminal</title>
<rect width="100%" height="100%" rx="8" fill="#0d1117"/>
<g>
${rows.join('\n')}
</g>
</svg>
`;
}

/** What a person types, what is asked, and the rest. */
function colourOf(line: string): string {
  if (line.startsWith('›')) return '#79c0ff';
  if (/^(Start|Allow) it\?/.test(line)) return '#e3b341';
  if (line.startsWith('✓')) return '#7ee787';
  const isQuiet = /^(mcp-by-hand|rehearsal|no tokens)/.test(line) || /^ /.test(line);
  return isQuiet ? MUTED : '#e6edf3';
}

function escaped(line: string): string {
  // Blanks that a browser does not take together.
  return line.replaceAll(' ', '\u00a0').replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
