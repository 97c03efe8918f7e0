// How soon the page of chapter 30 shows 20,000 rows: `npm run bench page`, and with `since 0866eeb` beside the page of
// that commit, in turn, in the same Chromium. It is a long chat: queries whose requests are told part by part, calls,
// answers.

import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { cleanUp, folder } from '../help/basics.ts';
import { browse, type Page } from '../help/chromium.ts';
import { root } from '../help/installed.ts';

const ROWS = 20_000;
const GOAL = 1.2; // of the page before
const VIEWER = 'chapters/30-seeing/viewer.html';
// With the layout of it, and without what the screen adds.
const timed = (what: string) =>
  `(() => { const begin = performance.now(); ${what}; document.body.offsetHeight; return performance.now() - begin; })()`;
const STEPS: Record<string, string> = {
  'the last row is picked': timed('pick(rows.length - 1)'),
  'a filter, of all rows': timed('$("filter").value = "id:777"; narrow()'),
  'no filter again': timed('$("filter").value = ""; narrow()'),
};

/** Prints a table of its own. Returns how many goals were missed. */
export async function benchPage(rounds: number, since?: string): Promise<number> {
  const now = readFileSync(join(root, VIEWER), 'utf8');
  const pages = new Map([['now', fileOf(now)]]);
  if (since) {
    const then = execFileSync('git', ['show', `${since}:${VIEWER}`], { cwd: root });
    pages.set(since, fileOf(then.toString()));
  }
  const times = new Map<string, number[]>();
  const page = await browse();
  for (let round = 0; round < rounds; round++)
    for (const [name, url] of pages)
      for (const [what, ms] of await measured(page, url)) {
        const key = `${what} ${name}`;
        times.set(key, [...(times.get(key) ?? []), ms]);
      }
  await cleanUp();
  console.log(`\nThe page of chapter 30 with ${ROWS} rows, the best of ${rounds} rounds\n`);
  print('what', ...pages.keys(), ...(since ? ['now / then'] : []));
  print(...Array.from({ length: since ? 4 : 2 }, () => '---'));
  let missed = 0;
  for (const what of ['the first row is there', ...Object.keys(STEPS)]) {
    const all = [...pages.keys()].map((name) => Math.min(...times.get(`${what} ${name}`)!));
    const ratio = all[0]! / (all[1] ?? all[0]!);
    if (ratio > GOAL) missed++;
    const sign = `${ratio > GOAL ? '✗' : '✓'} ${ratio.toFixed(2)} ≤ ${GOAL}`;
    print(what, ...all.map((ms) => `${ms.toFixed(1)} ms`), ...(since ? [sign] : []));
  }
  return missed;
}

const print = (...cells: string[]) => console.log(`| ${cells.join(' | ')} |`);

async function measured(page: Page, url: string): Promise<[string, number][]> {
  await page.goTo(url);
  await page.see(/20000 rows/);
  // Since the browser was told the address: the page's script draws before it ends.
  const first = await page.evaluate(
    'performance.getEntriesByType("navigation")[0].domContentLoadedEventStart',
  );
  const found: [string, number][] = [['the first row is there', first]];
  for (const [what, step] of Object.entries(STEPS)) found.push([what, await page.evaluate(step)]);
  return found;
}

function fileOf(viewer: string): string {
  const file = join(folder(), 'page.html');
  const trace = chat().replaceAll('<', '\\u003c');
  const data = `<script type="application/json" id="trace" data-name="chat">${trace}</script>`;
  writeFileSync(
    file,
    viewer.replace('<script>', () => `${data}\n<script>`),
  );
  return pathToFileURL(file).href;
}

/** Each turn has eight rows, and its request has the last fifty parts. */
function chat(): string {
  const records: object[] = [{ trace: 1 }];
  const of = 'prompts';
  for (let turn = 0; turn < ROWS / 8; turn++) {
    const at = turn * 10;
    const id = turn;
    const args = { a: turn, b: 1 };
    const known = Array.from({ length: Math.min(turn, 50) }, (_, n) => turn - n - 1).reverse();
    const part = { n: turn, of, size: 20, json: { role: 'user', content: `Prompt ${turn}` } };
    const request = { tools: [], system: [], messages: [...known, part] };
    const msg = { jsonrpc: '2.0', id };
    const call = { ...msg, method: 'tools/call', params: { name: 'add', arguments: args } };
    const result = { content: [{ type: 'text', text: `${turn + 1}` }] };
    records.push(
      { at, type: 'prompt', text: `Prompt ${turn}` },
      { at, type: 'query', id, model: 'a model', turns: 1, tools: 0, request },
      { at, type: 'answer', id, text: '', calls: [], usage: { input: 1000, cached: 900 } },
      { at, type: 'tool_start', id: `c${turn}`, name: 'add', args },
      { at, dir: 'out', server: 's', msg: call },
      { at, dir: 'in', server: 's', msg: { ...msg, result } },
      { at, type: 'tool_end', id: `c${turn}`, name: 'add', outcome: 'worked', text: '1' },
      { at, type: 'done', ending: 'done', text: 'done' },
    );
  }
  return records.map((record) => JSON.stringify(record)).join('\n');
}
