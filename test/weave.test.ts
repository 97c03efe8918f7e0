// The book in another language: words below the English that they say, and everything else from its page.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { join } from 'node:path';
import { put, read } from '../chapters/book/files.ts';
import { fencesIn, readBook } from '../chapters/book/pages.ts';
import {
  filesOfWeaving,
  keyOf,
  problemsOfWeaving,
  tellWeaving,
  weave,
  wovenPages,
} from '../chapters/book/weave.ts';
import { cleanUp, folder } from './help/basics.ts';

afterEach(cleanUp);

const ZH = 'chapters/book/zh';
const PAGE = `# 2. Framing

Wrapped
in two lines, with \`code\` and a [link](../README.md). Reading 10 minutes. <!-- b32f -->

*\`mcp.ts\`*
\`\`\`ts mcp.ts
const words = 'stay'; // as they are
\`\`\`

| word | |
|---|---|
| \`code\` | a cell |

> A quotation
> of two lines.

<details><summary>Really?</summary>

1. One thing,
   and more of it.
</details>

\`\`\`mermaid
sequenceDiagram
    participant C as client
    C->>S: a label
\`\`\`
`;
const said = (en: string, words: string) => `<!-- en ${keyOf(en)}: ${en} -->\n${words}\n`;
const FIRST = 'Wrapped\nin two lines, with `code` and a [link](../README.md). Reading 10 minutes.';
const WORDS = [
  said('2. Framing', '2. 分帧'),
  said(FIRST, '分成两行，有 `code` 和一个[链接](../README.md)。阅读 10 分钟。'),
  said('word', '词'),
  said('a cell', '一格'),
  said('A quotation\nof two lines.', '两行的引文。'),
  said('Really?', '真的吗？'),
  said('One thing,\nand more of it.', '一件事，还有更多。'),
  said('client', '客户端'),
  said('a label', '标签'),
];
const GLOSSARY = '[{ "en": "framing", "words": ["分帧"], "never": ["成帧"] }]';

/** A book of one page and its words. */
function bookOf(page = PAGE, words = WORDS.join('\n'), glossary = GLOSSARY) {
  const at = folder();
  const files = {
    'mcp.ts': '',
    'chapters/02-framing/README.md': page,
    [`${ZH}/02-framing.md`]: words,
    [`${ZH}/glossary.json`]: glossary,
    [`${ZH}/note.md`]: '说明。\n还差 # 段。\n',
  };
  for (const [name, text] of Object.entries(files)) put(join(at, name), text);
  return readBook(at);
}

test('words are woven into the page; code, captions and the shapes of diagrams are its own', () => {
  const [page] = wovenPages(bookOf());
  assert.equal(
    page!.text,
    `# 2. 分帧

> 说明。

分成两行，有 \`code\` 和一个[链接](../README.md)。阅读 10 分钟。 <!-- b32f -->

*\`mcp.ts\`*
\`\`\`ts mcp.ts
const words = 'stay'; // as they are
\`\`\`

| 词 | |
|---|---|
| \`code\` | 一格 |

> 两行的引文。

<details><summary>真的吗？</summary>

1. 一件事，还有更多。
</details>

\`\`\`mermaid
sequenceDiagram
    participant C as 客户端
    C->>S: 标签
\`\`\`
`,
  );
  assert.deepEqual([page!.stale, page!.said], [[], page!.words]);
  assert.deepEqual(problemsOfWeaving(bookOf()), []);
});

test('wrapping anew changes nothing, figures follow, and a changed sentence is shown in English', () => {
  const wrapped = PAGE.replace('Wrapped\nin two', 'Wrapped in\ntwo');
  assert.deepEqual(wovenPages(bookOf(wrapped))[0]!.stale, []);

  const minutes = wovenPages(bookOf(PAGE.replace('10 minutes', '12 minutes')))[0]!;
  assert.deepEqual(minutes.stale, []);
  assert.match(minutes.text, /阅读 12 分钟。/);

  const book = bookOf(PAGE.replace('a cell', 'another cell'));
  const changed = wovenPages(book)[0]!;
  assert.deepEqual(changed.stale, ['another cell']);
  assert.match(changed.text, /\| <span lang="en" class="stale">another cell<\/span> \|/);
  assert.match(changed.text, /^> 说明。 还差 1 段。$/m);
  assert.equal(changed.words - changed.said, 2);
  assert.match(tellWeaving(book).join(), /^zh-CN: 9\d %.*; 1 paragraphs are in English/);
  assert.deepEqual(weave(book, 'todo'), [], 'who mends the English is not held up');
  const todo = read(book.root, ZH, '02-framing.md');
  assert.match(todo, new RegExp(`<!-- en ${keyOf('another cell')}: another cell -->\n\n`));
  assert.ok(todo.trimEnd().endsWith('一格'), 'the old words are at the end');
});

test('figures that cannot be told apart are not guessed', () => {
  const page = 'From 1 to 1.\n';
  const words = said('From 1 to 1.', '从 1 到 1。');
  assert.match(wovenPages(bookOf(page, words))[0]!.text, /从 1 到 1。/);
  assert.deepEqual(wovenPages(bookOf('From 1 to 2.\n', words))[0]!.stale, ['From 1 to 2.']);
});

test('too little is not published', () => {
  const half = bookOf(PAGE, WORDS.slice(0, 1).join('\n'));
  assert.match(weave(half, 'publish').join(), /is said, less than 95 %: not to be published/);
  assert.deepEqual(weave(half), []);
  assert.deepEqual(weave(bookOf(), 'publish'), []);
});

test('code, links and figures are those of the English, and the words those of the glossary', () => {
  const problems = (en: string, words: string) =>
    problemsOfWeaving(bookOf(`${en}\n`, said(en, words)))
      .map((problem) => problem.split('…": ')[1])
      .join();
  assert.equal(
    problems('Take `one` of 2.', '取 `two`，共 3 个。'),
    'code: `two`, not `one`,numbers: 3, not 2',
  );
  assert.equal(problems('See [it](a.md).', '看[它](b.md)。'), 'links: ](b.md), not ](a.md)');
  assert.equal(
    problems('Framing helps.', '成帧有用。'),
    '"framing" is 分帧,it says 成帧; "framing" is 分帧',
  );
  assert.match(problems('**Goal:** see.', '**目标：**看。'), /emphasis would show its stars/);
  assert.equal(problems('**Goal:** see `framing`.', '**目标**：看 `framing`。'), '');
});

test('each file of words belongs to a page, and what is said of ours is true', () => {
  const book = readBook();
  assert.deepEqual(problemsOfWeaving(book), []);
  const pages = wovenPages(book);
  const words = filesOfWeaving(book).filter((file) => !/\/(note\.md|glossary\.json)$/.test(file));
  assert.equal(words.length, pages.length);
  for (const { of, text } of pages) {
    const fences = (page: string) =>
      fencesIn(page)
        .filter(({ language }) => language !== 'mermaid')
        .map(({ body }) => body.join('\n'));
    assert.deepEqual(fences(text), fences(read(book.root, of)), of);
    const heads = (page: string) => page.replace(/^```[^]*?^```$/gm, '').match(/^#+ /gm);
    assert.deepEqual(heads(text), heads(read(book.root, of)), of);
    assert.match(text, /还没有母语读者/, of);
  }
});
