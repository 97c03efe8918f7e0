// readme.ts: the README's figures are in one place, between two comments, and come from here.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { chapterFolders, parts, program, root, type Source, tests } from './sources.ts';
import { weighAll } from './tokens.ts';

const README = join(root, 'README.md');
const BLOCK = /(<!-- figures: .*? -->\n)([^]*?)(\n<!-- end of figures -->)/;

/** What stands between the two comments, as it should be now. */
export function figures(): string {
  const named = (file: string) => program.filter((source) => source.file === file);
  const columns: [head: string, of: Source[]][] = [
    ['`mcp.ts`', named('mcp.ts')],
    ['`agent.ts`', named('agent.ts')],
    [`their ${parts.length} parts, in chapters 1 to 15`, parts],
    [`the whole program, ${chapterFolders.length} chapters`, program],
  ];
  const weights = columns.map(([, sources]) => weighAll(sources));
  const rows = [
    ['', ...columns.map(([head]) => head)],
    ['---', ...columns.map(() => '---')],
    ['lines', ...weights.map(({ lines }) => shown(lines))],
    ['tokens, about', ...weights.map(({ tokens }) => shown(Number(tokens.toPrecision(3))))],
  ];
  const table = rows.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
  const tests = `\`npm test\` had ${testsOfLastRun() ?? testsTold()} tests in its last full run`;
  return `${table}\n\n${tests}, ${scenarios()}, \`npm run mutants\` ${mutants()} bugs.`;
}

/** What the README says at present. */
export function figuresTold(): string {
  return BLOCK.exec(readFileSync(README, 'utf8'))?.[2] ?? '';
}

export function writeFigures(): void {
  const text = readFileSync(README, 'utf8');
  if (!BLOCK.test(text)) throw new Error('README.md has no place for figures');
  const now = figures();
  writeFileSync(
    README,
    text.replace(BLOCK, (_, begin, _old, end) => `${begin}${now}${end}`),
  );
}

const shown = (n: number) => n.toLocaleString('en');

/** The report of `npm test`, if it is about all test files, and all of them were green. */
function testsOfLastRun(): string | undefined {
  const file = join(root, '.cache', 'tests.json');
  if (!existsSync(file)) return undefined;
  const report = JSON.parse(readFileSync(file, 'utf8'));
  const isWhole = report.testResults.length === tests.filter(isRunByTest).length;
  if (!isWhole || !report.success) return undefined;
  return shown(report.numTotalTests);
}

const isRunByTest = ({ file }: Source) => /^test\/[^/]+\.test\.ts$/.test(file);

const testsTold = () => / had ([\d,]+) tests/.exec(figuresTold())?.[1] ?? '';

/** `npm run conformance` fails if there are fewer than its files say. */
function scenarios(): string {
  const wanted = (file: string) => {
    const { text } = tests.find((source) => source.file === `test/conformance/${file}`)!;
    return [...text.matchAll(/\bscenarios: (\d+)/g)].map(([, n]) => n).join(', ');
  };
  const [client, server] = [wanted('run.ts'), wanted('server.ts')];
  return `\`npm run conformance\` has scenarios for clients (${client}) and servers (${server})`;
}

function mutants(): number {
  const { text } = tests.find(({ file }) => file.endsWith('/mutants.ts'))!;
  return [...text.matchAll(/\bbug: '/g)].length;
}
