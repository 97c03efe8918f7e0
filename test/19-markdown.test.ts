// Chapter 19: an answer on the screen. Markdown, words, and text in every script.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { endedRows } from '../chapters/19-the-terminal/show.ts';
import { Markdown } from '../chapters/19-the-terminal/markdown.ts';
import { columnsOf, graphemes, wrap } from '../chapters/19-the-terminal/wrap.ts';
import { cleanUp } from './help/basics.ts';
import { say, startModelServer } from './help/model-server.ts';
import { place, Terminal } from './help/terminal.ts';

afterEach(cleanUp);

/** Formats as tags, so that a test can be read. */
const tagged = (format: string, text: string) => `<${format}>${text}</${format}>`;

function render(text: string, { columns = 60, size = Infinity, isPainted = true } = {}): string {
  const markdown = new Markdown({ columns: () => columns, paint: isPainted ? tagged : undefined });
  const chars = [...text];
  let out = '';
  for (let at = 0; at < chars.length; at += size)
    out += markdown.take(chars.slice(at, at + size).join(''));
  return out + markdown.rest();
}

const RULE = '─'.repeat(40);
const SHOWN: [markdown: string, shown: string][] = [
  ['# One `x`', '<bold>One</bold> <cyan><bold>x</bold></cyan>'],
  [
    'a *b* **c** ***d*** _e_ `f`',
    'a <italic>b</italic> <bold>c</bold> <italic><bold>d</bold></italic> <italic>e</italic> <cyan>f</cyan>',
  ],
  [
    '**two words**, and (*one*).',
    '<bold>two</bold> <bold>words</bold>, and (<italic>one</italic>).',
  ],
  [
    '**with `code**` in it**',
    '<bold>with</bold> <cyan><bold>code**</bold></cyan> <bold>in</bold> <bold>it</bold>',
  ],
  ['``a`b`` and `` ` ``', '<cyan>a`b</cyan> and <cyan>`</cyan>'],
  ['- a\n* b\n+ c\n1. d\n  - e\n- [ ] f', '• a\n• b\n• c\n1. d\n  • e\n• [ ] f'],
  ['> a\n> > b', '<dim>│ </dim>a\n<dim>│ │ </dim>b'],
  [
    '```ts\n**a** _b_ `c`\n  # d\n```\n**e**',
    `<dim>─ ts ${'─'.repeat(35)}</dim>\n**a** _b_ \`c\`\n  # d\n<dim>${RULE}</dim>\n<bold>e</bold>`,
  ],
  ['~~~\n```\nx\n~~~', `<dim>${RULE}</dim>\n\`\`\`\nx\n<dim>${RULE}</dim>`],
  ['| **a** | _b_ |\nno table', '| **a** | _b_ |\nno table'],
  [
    '| n | **a** |\n|--:|---|\n| 10 | `x` |\n| 2 | a\\|b |\nbelow',
    ' <bold>n</bold><dim> │ </dim><bold>a</bold>\n<dim>───┼────</dim>\n10<dim> │ </dim><cyan>x</cyan>\n 2<dim> │ </dim>a|b\nbelow',
  ],
  [
    '[here](https://a.test/x_y_(z)) and [https://a.test](https://a.test)',
    'here (https://a.test/x_y_(z)) and https://a.test',
  ],
  ['**重点**内容', '<bold>重</bold><bold>点</bold>内容'],
  ['---\n\n***\n\n===', '---\n\n***\n\n==='],
  ['text\n\n    *code*', 'text\n\n    *code*'],
];
/** What looks like a mark, and is none. */
const LEFT = [
  'my_var_name and other_name_too',
  '__init__.py, __main__',
  '_private_name_',
  '/usr/lib/_x_/y and a_b/c_d',
  '*.ts and *.js',
  '**/*.ts, src/**/x',
  "'**/*.ts','**/*.js'",
  '**/node_modules/**',
  '2 * 3 * 4 and 2*3*4',
  'f(*args, **kwargs)',
  'int *a, *b; (*p) + (*q)',
  '2**3**4',
  '/* a */ and /** b */',
  '*/5 * * * *',
  'SELECT * FROM a',
  '$x_i * y_j$ and $a_{n}$',
  'an open ` and no more',
  'an open ** and no more',
  '[a] (b), list[0](x), [x](y z), [1](2)',
  '\\*not\\* \\_this\\_',
  'C:\\_a\\*b',
  '#hashtag and #!/bin/sh',
  '-5 and +3',
  '1.5 and 3) no',
  'a > b',
  'x ~~ y',
  '``` a `b` ```c',
  '* ',
  '_ _',
  '****',
  '`',
];

test('what Markdown means is shown: headings, emphasis, code, lists, quotations, links; code and tables stay as they are', () => {
  for (const [text, shown] of SHOWN) assert.equal(render(text), shown);
});

test('what only looks like a mark stays: names, paths, globs, products, pointers', () => {
  for (const text of LEFT) {
    const shown = render(text)
      .replaceAll(/<\/?cyan>/g, '`')
      .trimEnd();
    const isItem = text.startsWith('* ');
    if (!isItem && text !== '``` a `b` ```c') assert.equal(shown, text.trimEnd());
  }
});

test('without colours every sign stays, and words are wrapped all the same', () => {
  const text =
    '# One\n\n**a** `b` [c](https://d.test) and some more words\n- an item of several words\n> a quotation of several words';
  const shown = render(text, { columns: 31, isPainted: false });
  const rows = [
    '# One',
    '',
    '**a** `b` [c](https://d.test)',
    'and some more words',
    '- an item of several words',
    '> a quotation of several words',
  ];
  assert.deepEqual(shown.split('\n'), rows);
  const narrow = render(text, { columns: 24, isPainted: false }).split('\n');
  assert.deepEqual(narrow.slice(-4), [
    '- an item of several',
    '  words',
    '> a quotation of',
    '> several words',
  ]);
});

test('wherever the pieces are cut, the same is shown; and what is known is shown at once', () => {
  const texts = [...SHOWN.map(([text]) => text), ...LEFT];
  for (const text of [...texts, texts.join('\n'), texts.join(' '), texts.join('\n').repeat(3)])
    for (const size of [1, 2, 3, 7, 50])
      for (const isPainted of [true, false])
        assert.equal(render(text, { size, isPainted }), render(text, { isPainted }), text);
  const markdown = new Markdown({ columns: () => 80, paint: tagged });
  assert.equal(markdown.take('some words and an unfin'), 'some words and an');
  assert.equal(markdown.take('ished one, **bo'), ' unfinished one,');
  assert.equal(markdown.take('ld** '), ' <bold>bold</bold>');
  assert.equal(markdown.take('\n```\nco'), `\n<dim>${RULE}</dim>\nco`, 'code letter by letter');
});

test('hostile: of a line without end only so much is held', () => {
  const pumps = [
    'a',
    '*',
    '`',
    '[',
    '_',
    '#',
    '>',
    '- ',
    '\\',
    'a*',
    '*a',
    '[a](',
    '漢',
    '\u0301',
    '👩\u200d',
    ' ',
    '\t',
    '**a',
    '`a',
    '``',
    'a`',
  ];
  for (const pump of pumps) {
    const markdown = new Markdown({ columns: () => 80, paint: (_, text) => text });
    for (let n = 0; n < 5000; n++) markdown.take(pump);
    const held = markdown.rest().length;
    assert.ok(held < 1500, `${JSON.stringify(pump)}: ${held}`);
  }
});

test('no word is broken, whatever the width; the rows that we begin are indented', () => {
  const text =
    '! The project wants to start a server that you have not approved; run mcp-by-hand trust allow NAME, then try again';
  for (const columns of [20, 40, 80, 120]) {
    const rows = wrap(text, columns).split('\n');
    assert.equal(rows.map((row) => row.trim()).join(' '), text);
    assert.ok(
      rows.every((row) => columnsOf(row) < columns),
      `${columns}: ${rows}`,
    );
    assert.ok(rows.slice(1).every((row) => row.startsWith('  ')));
  }
  assert.equal(
    wrap('/mcp reconnect NAME       start a server again', 40),
    '/mcp reconnect NAME\n    start a server again',
  );
  assert.equal(
    wrap('/mcp   one two three four five six seven', 30),
    '/mcp   one two three four\n       five six seven',
  );
  const token = wrap(`! ${'x'.repeat(50)}!\u00a0evil`, 40).split('\n');
  assert.deepEqual(
    token,
    [`! ${'x'.repeat(37)}`, `  ${'x'.repeat(13)}!\u00a0evil`],
    'a word without end is cut by columns',
  );
  const address = `https://example.com/${'a'.repeat(60)}`;
  assert.equal(
    wrap(`! see ${address} there`, 40),
    `! see ${address} there`,
    'an address can be copied',
  );
});

test('advice is never cut in the middle: a refusal at 40 columns has all its words, and a long text of others its end', () => {
  const advice =
    'Not allowed: mcp__some_server__some_tool needs your permission, and there is nobody to ask. The user can allow it ' +
    "with --allow 'mcp__some_server__some_tool', or for all tools of the server with --allow 'mcp__some_server__*'.";
  const call = {
    name: 'x',
    kind: 'other',
    args: {},
    startedAt: 0,
    outcome: 'denied',
    ms: 1,
  } as const;
  const shown = ({ rows }: { rows: string[] }) =>
    rows.map((row) => row.trim().replace(/^┆ /, '')).join(' ');
  assert.equal(
    shown(endedRows({ ...call, text: advice } as any, 39)).replaceAll('  ', ' '),
    advice,
  );
  const long = endedRows(
    { ...call, text: `${'words of a server '.repeat(500)}: ${advice}` } as any,
    39,
  ).rows;
  assert.ok(long.length <= 12 && long.some((row) => row.startsWith('⋮ ')), long.join('\n'));
  assert.ok(shown({ rows: long }).endsWith("with --allow 'mcp__some_server__*'."), long.join('\n'));
});

test('a character is what a reader takes for one', () => {
  assert.deepEqual(graphemes('e\u0301👩\u200d👩\u200d👧🏴\u200d☠\ufe0fक्षि'), [
    'e\u0301',
    '👩\u200d👩\u200d👧',
    '🏴\u200d☠\ufe0f',
    ...graphemes('क्षि'),
  ]);
  const widths = { 'e\u0301': 1, 'می\u200cخواهم': 7, 漢字: 4, '❤\ufe0f': 2, שָׁלוֹם: 4, abc: 3 };
  for (const [text, columns] of Object.entries(widths))
    assert.equal(columnsOf(text), columns, text);
});

const ANSWER = `# Überschrift

Persisch: می‌خواهم به خانه بروم و کتاب‌هایم را بخوانم، زیرا هوا سرد است.
Hindi: मैं घर जाना चाहता हूँ और क्‍षमा माँगता हूँ, क्योंकि ठंड है।
Arabisch: أريد أن أذهب إلى البيت وأقرأ كتبي لأن الجو بارد اليوم.
Familie 👩‍👩‍👧‍👦, Flagge 🏳️‍🌈, **Herz** ❤️ und \`my_var_name\`.
中文：我想回家读书，因为今天天气很冷，外面还在下雨。
Die Rindfleischetikettierungsüberwachungsaufgabe und die Donaudampfschifffahrt.

| a | b |
|---|---|
| eine Zelle, die länger ist als vierzig Spalten | x_y_z |

\`\`\`sh
echo **not bold** && echo a line that is longer than forty columns
\`\`\`
- Ende`;

test('a terminal of 40, 80 and 120 columns: every script arrives whole, and no word is broken', async () => {
  const model = await startModelServer([say(ANSWER), say(ANSWER), say(ANSWER)]);
  const env = { ANTHROPIC_API_KEY: 'a-key-for-tests', ANTHROPIC_BASE_URL: model.url };
  const sizes = [40, 80, 120];
  const terminals = sizes.map((columns) => new Terminal(place(), ['go on'], env, columns));
  for (const [n, terminal] of terminals.entries()) {
    const columns = sizes[n]!;
    await terminal.see('• Ende');
    const words = ANSWER.replace(/^[#-] |\*\*(?!n)(?<!\w t)|`(?=m)|(?<=e)`/gm, '').split(/\s+/);
    const shown = terminal.bytes.replace(/\x1b\[\d*[a-zA-Z]/g, '').replace(/\r/g, '');
    const isChinese = (word: string) => /[\u4e00-\u9fff]/.test(word);
    for (const word of words.filter((each) => !isChinese(each) && !/[*|]|```/.test(each)))
      assert.ok(shown.includes(word), `${word} in ${shown}`);
    assert.ok(shown.replaceAll('\n', '').includes('因为今天天气很冷，外面还在下雨。'));
    const rows = terminal.window.join('\n');
    if (columns > 60)
      assert.match(
        rows,
        /^a +│ b\n─+┼─+\neine Zelle, die länger ist als vierzig Spalten │ x_y_z$/m,
      );
    else assert.match(rows, /^a +│ b\n─+┼─+\neine Zelle, die länger ist als +│ x_y_z$/m);
    assert.match(rows, /^─ sh ─+$/m);
    assert.ok(shown.includes('echo **not bold** && echo a line that is longer than forty columns'));
    assert.match(terminal.bytes, /\x1b\[1mÜberschrift\x1b\[22m/);
    assert.match(terminal.bytes, /\x1b\[1mHerz\x1b\[22m[^]*\x1b\[36mmy_var_name\x1b\[39m/);
  }
});

test('a table that does not fit side by side is told row by row; one without end is not held back', () => {
  const table = '| name | what | who |\n|---|---|---|\n| a | long words in it | x |\n| b | | y |\n';
  const wide = table.replaceAll('long', 'a cell that is long and has many ');
  const of = (text: string, columns: number) => render(text, { columns }).replace(/<[^>]*>/g, '');
  assert.equal(
    of(wide.replaceAll('name', 'n'.repeat(30)).replaceAll('who', 'w'.repeat(30)), 40),
    `${'n'.repeat(30)}: a
what: a cell that is long and has many
words in it
${'w'.repeat(30)}: x
────────────────────
${'n'.repeat(30)}: b
${'w'.repeat(30)}: y
`,
  );
  for (const columns of [30, 40, 80, 120])
    for (const line of of(wide, columns).split('\n')) assert.ok(columnsOf(line) < columns, line);
  const long = `${table}${'| c | d | e |\n'.repeat(5000)}`;
  const markdown = new Markdown({ columns: () => 80, paint: tagged });
  assert.ok(markdown.take(long).length > 20_000, 'what is long comes before its end');
  assert.equal(render(table, { isPainted: false }), table, 'without a style all signs stay');
});
