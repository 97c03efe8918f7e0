// The book as a site, as far as no browser is needed: its diagrams, its colours, how the program
// grows, and the checks that find what was lost on the way.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readBook, spineOf } from '../chapters/book/pages.ts';
import { cut } from '../chapters/book/program.ts';
import { deadLinksOf, lostBlocks } from '../chapters/book/site/checks.ts';
import { drawDiagram } from '../chapters/book/site/diagram.ts';
import { growthOf } from '../chapters/book/site/growth.ts';
import { highlight, textIn } from '../chapters/book/site/highlight.ts';
import { nameOfPage, Shelf } from '../chapters/book/site/shelf.ts';

const book = readBook();
const fences = book.chapters.flatMap((chapter) => chapter.fences);

test('every diagram of the book is drawn, and its words are in the picture', () => {
  const diagrams = fences.filter(({ language }) => language === 'mermaid');
  assert.ok(diagrams.length > 40, `${diagrams.length}`);
  for (const { page, body } of diagrams) {
    const svg = drawDiagram(body.join('\n'));
    const [, width = '0', height = '0'] = /viewBox="0 0 (\d+) (\d+)"/.exec(svg) ?? [];
    assert.ok(Number(width) > 50 && Number(width) < 1400, `${page}: ${width}`);
    assert.ok(Number(height) > 20 && Number(height) < 1200, `${page}: ${height}`);
    assert.doesNotMatch(svg, /NaN|undefined|Infinity/, page);
    const [, spoken = ''] = /aria-label="([^"]*)"/.exec(svg) ?? [];
    assert.ok(spoken.length > 20, page);
  }
});

test('nothing of a picture lies outside of it', () => {
  const diagrams = fences.filter(({ language }) => language === 'mermaid');
  for (const { page, body } of diagrams) {
    const svg = drawDiagram(body.join('\n'));
    const [, width, height] = /viewBox="0 0 (\d+) (\d+)"/.exec(svg)!;
    const boxes = svg.matchAll(
      /<rect [^>]*?x="([-\d.]+)" y="([-\d.]+)" width="([-\d.]+)" height="([-\d.]+)"/g,
    );
    for (const box of boxes) {
      const [x, y, w, h] = box.slice(1).map(Number) as [number, number, number, number];
      assert.ok(x >= 0 && y >= 0 && x + w <= Number(width) && y + h <= Number(height), page);
    }
  }
});

for (const [what, source] of [
  ['an arrow that is none', 'sequenceDiagram\n  A ~~> B: hello'],
  ['a word that is not known', 'sequenceDiagram\n  A->>B: hello\n  activate B'],
  ['a frame without an end', 'sequenceDiagram\n  loop twice\n  A->>B: hello'],
  ['an end without a frame', 'sequenceDiagram\n  A->>B: hello\n  end'],
  ['a shape that is not known', 'flowchart LR\n  A((round)) --> B'],
  ['half an edge', 'flowchart LR\n  A --> '],
  ['a style', 'flowchart LR\n  A --> B\n  classDef big font-size:20px'],
  ['a state with a note', 'stateDiagram-v2\n  a --> b\n  note right of a: x'],
  ['a task without a time', 'gantt\n  dateFormat X\n  section a\n  b: 2026-01-01, 3d'],
  ['another kind of diagram', 'pie\n  "a": 1'],
] as const)
  test(`what cannot be drawn throws, so that no picture lacks a line: ${what}`, () => {
    assert.throws(() => drawDiagram(source), /cannot be drawn|has no end/);
  });

test('words of a diagram are words, whatever is in them', () => {
  const svg = drawDiagram('sequenceDiagram\n  A->>B: <script>alert(1)</script> & "so"');
  assert.doesNotMatch(svg, /<script/);
  assert.match(svg, /&lt;script&gt;alert\(1\)&lt;\/script&gt; &amp; &quot;so&quot;/);
});

test('colours lose no letter of any block, and a tag ends with its line', () => {
  for (const { page, language, body } of fences) {
    const html = highlight(body.join('\n'), language);
    assert.equal(textIn(html), body.join('\n'), page);
    for (const line of html.split('\n'))
      assert.equal(line.split('<i').length, line.split('</i>').length, `${page}: ${line}`);
  }
});

test('how the program grows: at each step it is what `cut` gives, to the letter', () => {
  for (const file of spineOf(book)) {
    const lines = growthOf(book, file);
    for (const [n, step] of book.steps.entries()) {
      const there = lines.filter(({ since, until }) => since <= n && n < until);
      const text = there.map((line) => line.text).join('\n');
      assert.equal(text, cut(book, file, step).trim(), `${file} at ${step}`);
    }
  }
});

test('a link that leads nowhere, and an anchor that is not there, are named', () => {
  const page = (links: string) => `<h2 id="here">x</h2>${links}`;
  const files = new Map([
    ['a.html', page('<a href="b.html#here">b</a><a href="#here">a</a><a href="https://x">x</a>')],
    ['b.html', page('<a href="c.html">c</a><a href="a.html#there">a</a><img src="d.png">')],
  ]);
  assert.deepEqual(deadLinksOf(files), [
    'b.html: this link leads nowhere: c.html',
    'b.html: this link leads nowhere: a.html#there',
    'b.html: this link leads nowhere: d.png',
  ]);
});

test('a block that has lost a letter is named', () => {
  const source = '# A\n\n```ts\nconst a = 1 < 2;\n```\n\n```console\n$ ls\n```\n';
  const html = (code: string) =>
    `<pre tabindex="0"><code>${code}</code></pre><pre><code><i class="typed">$ ls</i></code></pre>`;
  assert.deepEqual(lostBlocks('a.md', source, html('const a = <i>1</i> &lt; 2;')), []);
  assert.deepEqual(lostBlocks('a.md', source, html('const a = 1 2;')), [
    'a.md:4: this block is not on the site to the letter',
  ]);
});

test('links of a page lead to names in one folder; what is not there leads nowhere', () => {
  const shelf = new Shelf(book, [
    { of: 'chapters/02-framing/README.md', language: 'zh-CN', text: '# 2' },
  ]);
  const from = shelf.pages.get('chapters/01-a-pipe/README.md')!;
  for (const [href, to] of [
    ['../02-framing/README.md#the-wire', '02-framing.html#the-wire'],
    ['2-what-a-server-may-know.md', '01-a-pipe-2-what-a-server-may-know.html'],
    ['../../README.md', 'project.html'],
    ['../../mcp.ts#L3', 'file-mcp.ts.html#L3'],
    ['../../fixtures/museum/', 'fixtures-museum.html'],
    ['https://example.com/a', 'https://example.com/a'],
    ['#here', '#here'],
    ['no-such-page.md', undefined],
  ] as const)
    assert.equal(shelf.follow(from, href), to, href);
  const chinese = shelf.translations[0]!;
  assert.equal(chinese.name, 'zh-02-framing.html');
  assert.equal(
    shelf.follow({ ...from, language: 'zh-CN' }, '../02-framing/README.md'),
    chinese.name,
  );
  assert.deepEqual(
    shelf.others(chinese).map(({ name }) => name),
    ['02-framing.html'],
  );
});

test('no two files have one name on the site', () => {
  const names = book.chapters.flatMap(({ pages }) => pages).map(nameOfPage);
  assert.equal(new Set(names).size, names.length);
});
