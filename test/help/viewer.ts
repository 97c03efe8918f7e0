// The page of chapter 30 in a browser: traces as pages, and what a test looks at in one.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { folder, root } from './basics.ts';
import { browse, type Page } from './chromium.ts';
import { installed } from './installed.ts';

let opened: Promise<Page> | undefined;
/** One browser for all of this file; what it has told so far is forgotten. */
export async function browser(): Promise<Page> {
  opened ??= browse();
  const page = await opened;
  page.events.length = 0;
  return page;
}

export const lines = (records: unknown[]) =>
  records.map((record) => `${JSON.stringify(record)}\n`).join('');

/** A trace as a page, made by the program itself. */
export function viewed(trace: string, name = 'trace.jsonl'): string {
  const place = folder();
  const file = join(place, name);
  writeFileSync(file, trace);
  const tsx = join(root, 'node_modules', '.bin', 'tsx');
  const page = execFileSync(tsx, [join(root, 'agent.ts'), 'trace', 'view', file], {
    maxBuffer: 2 ** 30,
  });
  const html = join(place, 'page.html');
  writeFileSync(html, page);
  return pathToFileURL(html).href;
}

/** Nothing was loaded but the page itself, no dialog was opened, nothing failed. */
export function assertQuiet(page: Page, url: string): void {
  const requests = page.happened('Network.requestWillBeSent').map(({ request }) => request.url);
  assert.deepEqual(requests, [url], 'requests');
  const others = [
    'Page.javascriptDialogOpening',
    'Runtime.exceptionThrown',
    'Runtime.consoleAPICalled',
    'Log.entryAdded',
  ];
  assert.deepEqual(page.happened(...others, 'Page.windowOpen', 'Page.downloadWillBegin'), []);
}

export const message = (at: number, dir: string, server: string, msg: object) => ({
  at,
  dir,
  server,
  msg: { jsonrpc: '2.0', ...msg },
});

/** As on a telephone of that width, in one of the two schemes; or as it was. */
export async function screen(page: Page, width?: number, scheme?: string): Promise<void> {
  const metrics = { width, height: 740, deviceScaleFactor: 1, mobile: true };
  if (width) await page.send('Emulation.setDeviceMetricsOverride', metrics);
  else await page.send('Emulation.clearDeviceMetricsOverride');
  const features = scheme ? [{ name: 'prefers-color-scheme', value: scheme }] : [];
  await page.send('Emulation.setEmulatedMedia', { features });
}

/** What axe-core finds wrong with the page as it is now. */
export async function flaws(page: Page): Promise<string[]> {
  const folder = join(installed('axe-core@4.14.0'), 'node_modules', 'axe-core');
  await page.evaluate(readFileSync(join(folder, 'axe.min.js'), 'utf8'));
  const found = `axe.run({ resultTypes: ['violations'] }).then(({ violations }) => violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => id + ' ' + target + ' ' + failureSummary)))`;
  return page.evaluate(found);
}

/** What reaches over the right edge, besides what scrolls by itself. */
export const sticksOut = (page: Page): Promise<string[]> =>
  page.evaluate(`[...document.querySelectorAll('body *')].filter((each) =>
    !each.closest('#chart, .item, .said, select') && each.checkVisibility() &&
    (each.getBoundingClientRect().right > innerWidth + 1 ||
      (getComputedStyle(each).overflowX !== 'hidden' && each.scrollWidth > innerWidth + 1))
  ).map(({ id, tagName }) => tagName + id)`);

/** What a page must not run. */
export const SCRIPT = 'alert(1);document.title="owned"';
export const HOSTILE = [
  `<script>${SCRIPT}</script>`,
  `</script><script>${SCRIPT}</script>`,
  `<!--<script>${SCRIPT}//-->`,
  `--><script>${SCRIPT}</script>`,
  `]]><script>${SCRIPT}</script>`,
  `<img src=x onerror='${SCRIPT}'>`,
  `<svg onload='${SCRIPT}'><animate onbegin='${SCRIPT}'></svg>`,
  `" onmouseover='${SCRIPT}' autofocus onfocus='${SCRIPT}' x="`,
  `' onclick=${SCRIPT} '`,
  `javascript:${SCRIPT}`,
  `JaVaScRiPt&colon;${SCRIPT}`,
  `data:text/html,<script>${SCRIPT}</script>`,
  '<iframe src="http://127.0.0.1:9/frame"></iframe>',
  '<link rel=stylesheet href="http://127.0.0.1:9/style.css">',
  '<meta http-equiv="refresh" content="0;url=http://127.0.0.1:9/">',
  '<base href="http://127.0.0.1:9/"><form action="http://127.0.0.1:9/"><button>Open…</button></form>',
  '<style>@import "http://127.0.0.1:9/import.css"; body { background: url(http://127.0.0.1:9/b.png) }</style>',
  '</style><style>* { display: none !important }</style>',
  '</title><textarea><noscript>',
  'url(http://127.0.0.1:9/url.png)',
  `\${${SCRIPT}}`,
  `{{constructor.constructor('${SCRIPT}')()}}`,
  `<%= ${SCRIPT} %> #{${SCRIPT}} \`${SCRIPT}\``,
  '__proto__',
  'constructor',
  'toString',
  '\u202egnp.exe\u2066 \u2069\u200f\u061c',
  '\u0000\u0007\u001b[2J\u001b]0;owned\u0007\u009b31m',
  '\u2028\u2029\ufeff\ud800 \udfff\u{e0041}\u{e007f}',
  'Z͑ͫ̓ͪ'.repeat(300),
  `${'A'.repeat(1_000_000)}<b>`,
  '%00%3Cscript%3Ealert(1)%3C/script%3E',
  '<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=alert(1)&gt;">',
  `<a href="javascript:${SCRIPT}" id=trace name=chart>x</a><input name=body id=rows>`,
];
