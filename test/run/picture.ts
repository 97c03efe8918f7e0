// npm run picture: draws .github/chat.svg, the picture of a chat in the README: the real program in a real terminal.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cleanUp, root } from '../help/basics.ts';
import { call, say, startModelServer } from '../help/model-server.ts';
import { place, Terminal } from '../help/terminal.ts';

const COLUMNS = 96;
const ROWS = 40;
const CHAR = 8.4; // pixels
const LINE = 19;
const MARGIN = 16;
const MUTED = '#8b949e';

const sum = `const a = 2;
const b = 4;
console.log(a + b);
`;
const where = place({ 'sum.js': sum });
const model = await startModelServer([
  call('read', { path: 'sum.js' }),
  call('edit', { path: 'sum.js', old: 'b = 4;', new: 'b = 40;' }),
  call('bash', { command: 'node sum.js' }),
  say('`b` was 4 where 40 was meant. sum.js prints **42** now.'),
]);
const env = { ANTHROPIC_API_KEY: 'none', ANTHROPIC_BASE_URL: model.url };
const terminal = new Terminal(where, ['--model', 'anthropic/scripted'], env, COLUMNS, ROWS);

await terminal.ready();
terminal.enter('2 and 40 are 42, but sum.js says 6. Please fix it, and run it.');
await terminal.see(/^  "sum\.js": .*\nAllow it\?.*: *$/);
terminal.enter('y');
await terminal.see(/^  command: .*\nAllow it\?.*: *$/);
terminal.enter('y');
await terminal.see(/tokens in/);
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
<title>A chat in a terminal, with a model that reads its lines from a script</title>
<rect width="100%" height="100%" rx="8" fill="#0d1117"/>
<g>
${rows.join('\n')}
</g>
</svg>
`;
}

/** What a person types, what is asked, a diff by its gutters, and the rest. */
function colourOf(line: string): string {
  if (line.startsWith('›')) return '#79c0ff';
  if (/^Allow it\?/.test(line)) return '#e3b341';
  if (/^✓|^  \+│/.test(line)) return '#7ee787';
  if (line.startsWith('  -│')) return '#ff7b72';
  if (line.startsWith('  @@')) return '#56d4dd';
  const isQuiet = /^(mcp-by-hand|\d+ tokens)/.test(line) || /^ /.test(line);
  return isQuiet ? MUTED : '#e6edf3';
}

function escaped(line: string): string {
  // Blanks that a browser does not take together.
  return line
    .replaceAll(' ', '\u00a0')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;');
}
