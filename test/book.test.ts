// The book is true, and its machinery would notice if it were not.

import assert from 'node:assert/strict';
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, test } from 'node:test';
import { captionOf, fixCaptions, problemsOfCaptions } from '../chapters/book/captions.ts';
import { check, MAX_STEP, problemsOnPages } from '../chapters/book/check.ts';
import { firstDifference, problemsOfConsoles } from '../chapters/book/consoles.ts';
import { fixContents } from '../chapters/book/contents.ts';
import { exerciseOf, exercisesOf, withHole } from '../chapters/book/exercise.ts';
import { fix } from '../chapters/book/fix.ts';
import { problemsOfInstructor } from '../chapters/book/instructor.ts';
import { fixLimits, problemsOfLimits, sizeOf, tellLimits } from '../chapters/book/limits.ts';
import { owners, nameOf, readBook, stepOf, type Book } from '../chapters/book/pages.ts';
import {
  cut,
  diff,
  filesOfProgram,
  linesForLearner,
  writeProgram,
} from '../chapters/book/program.ts';
import { tellShares } from '../chapters/book/shares.ts';
import { problemsOfTypes } from '../chapters/book/types.ts';
import { cleanUp, folder, root } from './help/basics.ts';

afterEach(cleanUp);

test('the book is true: quotations, cover, cuts, consoles, imports, hints, links', {
  timeout: 900_000, // it only ends a hang: beside five other files it takes minutes
}, async () => {
  assert.deepEqual(await check(readBook()), []);
});

// ─── A small book, for its faults to be found ─────────────────────────────────────────────────────────────────

const SOURCE = `import { homedir } from 'node:os';

export function greet(name: string): string {
  const home = homedir();
  let text = 'Hello';
  text += name;
  return text + home.slice(0, 0);
}

export const twice = (n: number) => n * 2;
`;
const RULES = '1. It returns a text (any).';
const HINTS = [1, 2, 3]
  .map((n) => `<details><summary>Hint ${n}</summary>\n\nTry ${n}.\n</details>\n`)
  .join('\n');
const SOLUTION = '<details><summary>Our solution</summary>';
const ONE = `# 1. Hello

## Exercise: greet

${RULES}

${HINTS}
${SOLUTION}

\`\`\`ts mcp.ts exercise
export function greet(name: string): string {
  // …
  let text = 'Hello';
  // …
}
\`\`\`
</details>

\`\`\`ts mcp.ts
  return text + home.slice(0, 0);
\`\`\`

[next](../02-world/README.md#2-world)
`;
const TWO = `# 2. World

\`\`\`ts mcp.ts
import { homedir } from 'node:os';
// …
export function greet(name: string): string {
  const home = homedir();
  // …
  text += name;
  // …
}

export const twice = (n: number) => n * 2;
\`\`\`

## Exercise: add the name

${RULES}

${HINTS}
${SOLUTION}

\`\`\`ts mcp.ts exercise
export function greet(name: string): string {
  // …
  text += name;
  // …
}
\`\`\`
</details>

\`\`\`console
$ echo one; echo two
one
two
\`\`\`
`;
const WRONG = Array.from(
  { length: 20 },
  (_, n) => `## mistake ${n}\n\n\`\`\`ts\n  return '';\n\`\`\`\nRule: 1\nVerdict: \`empty\`\n`,
).join('\n');

/** A book of two chapters in a folder of its own, with these files changed. */
function small(changed: Record<string, string> = {}): Book {
  const at = folder();
  const files = {
    'mcp.ts': SOURCE,
    'agent.ts': '',
    'README.md': '',
    'tsconfig.json': readFileSync(join(root, 'tsconfig.json'), 'utf8'),
    'fixtures/server.mjs': '',
    'chapters/01-hello/README.md': ONE,
    'chapters/02-world/README.md': TWO,
    ...Object.fromEntries(
      ['01-hello', '02-world']
        .flatMap((slug) => [`${slug}/demo.ts`, `${slug}/exercise.ts`])
        .map((name) => [`chapters/${name}`, '']),
    ),
    ...Object.fromEntries(
      ['01-hello', '02-world'].map((slug) => [`chapters/${slug}/wrong.md`, WRONG]),
    ),
    ...changed,
  };
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(at, name)), { recursive: true });
    writeFileSync(join(at, name), text);
  }
  symlinkSync(join(root, 'node_modules'), join(at, 'node_modules'), 'junction');
  fixCaptions(readBook(at));
  return readBook(at);
}

test('a line belongs to the first chapter that quotes it, a blank one goes with the line below it', () => {
  const { chapters } = small();
  assert.deepEqual(
    chapters.map(({ n, title }) => [n, title]),
    [
      [1, 'Hello'],
      [2, 'World'],
    ],
  );
  assert.deepEqual(owners(small(), 'mcp.ts'), [1, 1, 1, 2, 1, 2, 1, 1, 2, 2, 0]);
  assert.deepEqual(problemsOnPages(small()), []);
});

test('a chapter may have a second page: its quotations count, and what is wrong there names it', async () => {
  const [first, second] = TWO.split('\nexport const twice = (n: number) => n * 2;');
  const more = `# More of it\n\n${fence('mcp.ts', 'export const twice = (n: number) => n * 2;')}\n\n\`\`\`console\n$ echo three\nthree\n\`\`\`\n`;
  const files = {
    'chapters/02-world/README.md': first! + second!,
    'chapters/02-world/2-more.md': more,
  };
  const book = small(files);
  assert.deepEqual(
    book.chapters.map(({ pages }) => pages.length),
    [1, 2],
  );
  assert.deepEqual(problemsOnPages(book), []);
  assert.deepEqual(owners(book, 'mcp.ts'), owners(small(), 'mcp.ts'));
  const page = 'chapters/02-world/2-more.md';
  assert.deepEqual(
    await problemsOfConsoles(small({ ...files, [page]: more.replace('\nthree', '\nfour') })).then(
      (all) => all.map((each) => each.split(': ')[0]),
    ),
    [`${page}:10`],
  );
  const wrong = small({ ...files, [page]: more.replace('n * 2', 'n * 3') });
  assert.match(
    problemsOnPages(wrong).join(),
    /^chapters\/02-world\/2-more\.md:5: this is not in mcp\.ts/,
  );
  assert.match(
    fix(wrong).join(),
    /^chapters\/02-world\/2-more\.md:5: could not be found in mcp\.ts/,
  );
});

test('the program of a chapter is its lines and those before; the difference is what it adds', () => {
  assert.equal(
    cut(small(), 'mcp.ts', 1),
    `export function greet(name: string): string {
  let text = 'Hello';
  return text + home.slice(0, 0);
}
`,
  );
  assert.equal(cut(small(), 'mcp.ts', 2), SOURCE);
  const added = diff(small(), 2).filter((line) => line.startsWith('+'));
  assert.deepEqual(added, [
    '+   const home = homedir();',
    '+   text += name;',
    '+',
    '+ export const twice = (n: number) => n * 2;',
  ]);
});

test('a program is not written through a link, nor is what is behind one cleared away', () => {
  const [outside, target] = [folder(), folder()];
  writeFileSync(join(outside, 'mine.txt'), 'mine');
  symlinkSync(outside, join(target, 'node_modules'), 'junction');
  assert.throws(() => writeProgram(small(), 1, target), /node_modules is a link.*move it away/);
  assert.throws(
    () => writeProgram(small(), 1, join(target, 'node_modules')),
    /node_modules is a link/,
  );
  assert.deepEqual(readdirSync(outside), ['mine.txt']);
});

test('a quotation that is not in its file, or not in this order, is named by page and line', () => {
  const page = (text: string) => problemsOnPages(small({ 'chapters/02-world/README.md': text }));
  assert.match(
    page(TWO.replace('text += name;', 'text += names;')).join(),
    /^chapters\/02-world\/README\.md:10: this is not in mcp\.ts.*text \+= names;/,
  );
  assert.match(
    page(
      TWO.replace("import { homedir } from 'node:os';\n// …\n", '').replace(
        '\n\nexport const twice',
        "\n// …\nimport { homedir } from 'node:os';\nexport const twice",
      ),
    ).join(),
    /not in mcp\.ts/,
  );
  assert.match(
    page(TWO.replace('```ts mcp.ts\n', '```ts gone.ts\n')).join(),
    /02-world\/README\.md:5: there is no file gone\.ts/,
  );
});

test('a line that no chapter quotes is named by file and number', () => {
  const problems = problemsOnPages(small({ 'mcp.ts': `${SOURCE}export const thrice = 3;\n` }));
  assert.deepEqual(problems, ['mcp.ts:11: no chapter quotes this line']);
});

test('missing hints, exercises, demos, dead links and sections, imports of what comes later, unknown messages', () => {
  const problems = problemsOnPages(
    small({
      'chapters/01-hello/README.md': `${ONE.replace('Hint 3', 'A word')}\n[nowhere](../03/README.md) [no part](../02-world/README.md#gone)\n`,
      'chapters/02-world/README.md': TWO.replace('mcp.ts exercise', 'mcp.ts'),
      'chapters/16-own/early.ts': "import { x } from '../17-other/late.ts';\nexport { x };\n",
      'chapters/TROUBLESHOOTING.md': '## `Hel…`\n\n## `Bye, …`\n',
    }),
  );
  const wanted = [
    /01-hello.*has 2 hints/,
    /02-world.*no quotation is marked as the exercise/,
    /leads nowhere: \.\.\/03/,
    /leads nowhere: .*#gone/,
    /early\.ts.*comes later/,
    /no message of the program says: Bye,/,
  ];
  for (const each of wanted) assert.match(problems.join('\n'), each);
  assert.equal(problems.length, wanted.length, problems.join('\n'));
});

test('an exercise comes before its solution, which is folded, and has its wrong solutions', () => {
  const page = (text: string) => problemsOnPages(small({ 'chapters/01-hello/README.md': text }));
  assert.match(
    page(ONE.replace(SOLUTION, '').replace('```\n</details>', '```')).join(),
    /^chapters\/01-hello\/README\.md:\d+: the solution should be folded/,
  );
  const [, head, exercise, rest] = /^([^]*?)(## Exercise[^]*?)(<details><summary>Our[^]*)$/.exec(
    ONE,
  )!;
  assert.match(
    page(`${head}${rest}\n${exercise}`).join(),
    /the heading "## Exercise: …" should be above the solution/,
  );
  const few = (text: string) => problemsOnPages(small({ 'chapters/01-hello/wrong.md': text }));
  const seven = WRONG.split('## mistake 7')[0]!;
  assert.match(few(seven).join(), /wrong\.md has 7 wrong solutions of the exercise, not 8/);
  const nineteen = WRONG.replace('## mistake 0', '');
  assert.match(few(nineteen).join(), /wrong\.md:1: it has 19 wrong solutions .* not 20/);
});

test('each sentence of the rules on a page is broken alone by a wrong solution', () => {
  const rules = (text: string, wrong = WRONG) =>
    problemsOnPages(
      small({
        'chapters/01-hello/README.md': ONE.replace(RULES, text),
        'chapters/01-hello/wrong.md': wrong,
      }),
    ).join('\n');
  const first = (rule: string) => WRONG.replace('Rule: 1', `Rule: ${rule}`);
  assert.match(rules('- a list without numbers'), /README\.md has no numbered rules/);
  assert.match(rules('1. a\n2. b\n3. c\n4. d'), /has 4 rules, not 3 at most/);
  assert.match(rules('1. One.\n2. Two.'), /breaks this sentence of rule 2 alone: Two\./);
  assert.match(rules(RULES, first('2')), /"mistake 0" names no rule of the page: "2"/);
  assert.equal(rules(RULES, first('taught')), '', 'what only the judge teaches needs no rule');
  const two = '1. It is a text. It is not\n   empty (an empty one says less). `x` stays.';
  const words = (...all: string[]) =>
    WRONG.replace(/Rule: 1/g, () => `Rule: ${all.shift() ?? 'taught'}`);
  assert.match(rules(two), /"mistake 0": 3 sentences of rule 1 have its words/);
  const most = rules(two, words('1: is a text', '1: is not empty'));
  assert.match(most, /^chapters\/01-hello\/wrong\.md:1: no wrong .* rule 1 alone: `x` stays\.$/);
  assert.equal(rules(two, words('1: a text', '1: not empty', '1: `x`')), '');
  assert.match(
    rules('1. One.\n2. Two.', words('1', '2')),
    /"mistake 0" and "mistake 1" break two rules, and have one verdict/,
  );
  const apart = words('1', '2').replace('`empty`', '`other`');
  assert.equal(rules('1. One.\n2. Two.', apart), '');
});

const QUESTION = 'What comes?\n\n<details><summary>Answer</summary>\n\nThis.\n</details>\n\n';
/** A page with a question above its exercise and one at its end, and with minutes. */
const whole = (page: string, minutes = 'Reading 1 minutes, doing 5.') =>
  `${page.replace('\n\n', `\n\n${minutes}\n\n`).replace('## Exercise', `${QUESTION}## Exercise`)}\n${QUESTION}`;
const LESS = TWO.replace("import { homedir } from 'node:os';\n// …\n", ''); // one gap less
const CONTENTS = `| chapter | the one idea | exercise | idea | what makes it hold | quoted |
|---|---|---|---|---|---|
| [1. Hello](01-hello/README.md) | greeting | greet | 1 + 5 | | |
| [2. World](02-world/README.md) | \`twice\` | add the name | 1 + 5 | | |

<!-- minutes: by fix -->
-
<!-- end of minutes -->
`;

/** A small book with contents, so that its pages have limits. */
const withContents = (changed: Record<string, string> = {}): Book =>
  small({
    'chapters/README.md': CONTENTS,
    'chapters/01-hello/README.md': whole(ONE),
    'chapters/02-world/README.md': whole(LESS),
    ...changed,
  });
const contentsOf = ({ root: at }: Book) => readFileSync(join(at, 'chapters/README.md'), 'utf8');

test('titles, exercises, minutes and shares in the contents are those of the pages, and `fix` writes them', () => {
  const own = whole(LESS.replace('# 2. World', '# 16. Own'), 'Reading 7 minutes,\ndoing 3.');
  const book = withContents({
    'chapters/README.md': CONTENTS.replace(
      '\n\n<!--',
      '\n| [16. Own](16-own/README.md) | owning |\n\n<!--',
    ),
    'chapters/16-own/README.md': `${own}\n${fence('own.ts', 'export const b = 2;')}\n`,
    'chapters/16-own/2-more.md': `# Own, continued: more of it\n\n${'word '.repeat(500)}\n`,
    'chapters/16-own/own.ts': 'export const a = 1;\n\nexport const b = 2;\nexport const c = 3;\n',
    'chapters/16-own/demo.ts': '',
    'chapters/16-own/exercise.ts': '',
    'chapters/16-own/wrong.md': WRONG,
  });
  const { root: at } = book;
  assert.deepEqual(tellShares(book), ['16. Own quotes 33 % of its files: own.ts 33 %']);
  const row =
    '| [16. Own](16-own/README.md) | owning | add the name | 1 + 3 | [more of it](16-own/2-more.md) 3 | 33 % |';
  assert.deepEqual(problemsOnPages(book), [
    'chapters/16-own/README.md:1: it should say "Reading 1 minutes" (npm run book fix)',
    'chapters/16-own/2-more.md:1: it should say "Reading 3 minutes" (npm run book fix)',
    `chapters/README.md:5: here should be: ${row} (npm run book fix)`,
  ]);
  fixLimits(book);
  fixContents(book);
  assert.deepEqual(problemsOnPages(readBook(at)), []);
  assert.ok(contentsOf(book).includes(row));
  assert.match(contentsOf(book), /read in 0\.1 hours, the second pages in 0\.1 hours/);
  assert.match(contentsOf(book), /\| 0 to 9, 13, 15 \| 2 \| 10 \|/); // chapters 1 and 2
  const page = (name: string) => readFileSync(join(at, 'chapters/16-own', name), 'utf8');
  assert.match(page('README.md'), /\nReading 1 minutes,\ndoing 3\.\n/);
  assert.match(page('2-more.md'), /^# Own, continued: more of it\n\nReading 3 minutes\.\n\nword/);
});

test('what only a person can write in the contents is asked for', () => {
  const text = CONTENTS.replace(/^\| \[2.*\n/m, '').replace('minutes: by fix', 'gone');
  assert.deepEqual(problemsOnPages(withContents({ 'chapters/README.md': text })), [
    'chapters/README.md:1: no row has 2. World and its one idea',
    'chapters/README.md:1: there is no place for the minutes: <!-- minutes: … -->',
  ]);
});

/** What is said of the sizes of the pages of chapter 1, which has this first page, and maybe others. */
function limitsOf(page: string, others: Record<string, string> = {}, notYet = {}): string[] {
  const book = withContents({ 'chapters/01-hello/README.md': page, ...others });
  fixLimits(book);
  return problemsOfLimits(readBook(book.root), notYet);
}
const HELLO = 'chapters/01-hello/README.md';

test('a first page has at most 2,000 words, 150 lines and two gaps a block, and 2,500 words a second one', () => {
  const bare = whole(ONE);
  const words = (n: number) => `${bare}\n${'word '.repeat(n - wordsOf(bare))}\n`;
  const wordsOf = (page: string) => sizeOf(withContents({ [HELLO]: page }), HELLO).words;
  assert.deepEqual(limitsOf(words(2000)), []);
  assert.deepEqual(limitsOf(words(2001)), [`${HELLO}:1: 2001 words, and at most 2000 are allowed`]);
  const lines = (n: number) => `${bare}\n${fence('', ...Array(n - 4).fill('x();\n'))}\n`;
  assert.deepEqual(limitsOf(lines(150)), []);
  assert.match(limitsOf(lines(151)).join(), /:1: 151 lines of code, and at most 150/);
  const gaps = (n: number) => `${bare}\n${fence('', ...Array(n).fill('x();\n// …'))}\n`;
  assert.deepEqual(limitsOf(`${gaps(2)}${gaps(2).split('</details>').at(-1)}`), []);
  assert.match(limitsOf(gaps(3)).join(), /:1: 3 gaps in one block, and at most 2/);
  const second = (n: number) =>
    limitsOf(bare, { 'chapters/01-hello/2-more.md': `# More\n\n${'word '.repeat(n - 4)}` });
  assert.deepEqual(second(2500), []);
  assert.match(second(2501).join(), /2-more\.md:1: 2501 words, and at most 2500/);
});

test('an exercise is in the first half of its page, with a question above and one below', () => {
  const page = whole(ONE);
  const late = page.replace('## Exercise', `${'word '.repeat(200)}\n\n## Exercise`);
  assert.match(limitsOf(late).join(), /:1: the exercise begins after [78]\d % of the words/);
  const one = page.replace(QUESTION, '');
  assert.match(limitsOf(one).join(), /:1: 1 questions with a folded answer, and at least 2/);
  assert.match(limitsOf(one + QUESTION).join(), /one question belongs above the exercise/);
  const asked = QUESTION.replace('Answer', 'And why?');
  assert.deepEqual(limitsOf(page.replace(QUESTION, asked)), []);
});

test('a page that does not hold yet is on a list, and one that holds must not be', () => {
  const long = `${whole(ONE)}\n${'word '.repeat(2000)}\n`;
  assert.deepEqual(limitsOf(long, {}, { [HELLO]: ['words'] }), []);
  assert.deepEqual(limitsOf(long, {}, { [HELLO]: ['words', 'lines'] }), [
    `${HELLO}:1: its lines hold: take it off the list in limits.ts (npm run book fix)`,
  ]);
  assert.match(limitsOf(long, {}, { [HELLO]: ['lines'] }).join(), /\d words, and at most 2000/);
  assert.match(limitsOf(whole(ONE), {}, { 'chapters/x.md': ['words'] }).join(), /no such page/);
  const book = withContents({ [HELLO]: long });
  const told = (list = {}) => tellLimits(book, '1', list).join('\n');
  assert.match(told(), /01-hello\/README\.md .* breaks: words\n/);
  assert.match(told({ [HELLO]: ['words'] }), / not yet: words\n[^]*Not yet: 1 pages/);
});

test('only chapters 14 and 15 may have two first pages; they come before the second ones', () => {
  const more = { 'chapters/01-hello/1-b.md': `# B\n\n${QUESTION.repeat(2)}` };
  const last = { 'chapters/01-hello/2-a.md': '# A\n' };
  const book = withContents({ ...more, ...last });
  assert.deepEqual(
    book.chapters[0]!.pages.map((page) => page.split('/').at(-1)),
    ['README.md', '1-b.md', '2-a.md'],
  );
  assert.deepEqual(limitsOf(whole(ONE), { ...more, ...last }), [
    'chapters/01-hello/1-b.md:1: only chapters 14 and 15 have two first pages',
  ]);
  fixContents(book);
  assert.ok(
    contentsOf(book).includes(
      '| [1. Hello](01-hello/README.md), [B](01-hello/1-b.md) | greeting |',
    ),
  );
});

// ─── Lines for a while, and stops ─────────────────────────────────────────────────────────────────────────────

const LATER = `export function greet(name: string): string {
  return \`Good day, \${name}\`;
}

export const twice = (n: number) => n * 2;
`;
const fence = (words: string, ...lines: string[]) => ['```ts ' + words, ...lines, '```'].join('\n');
const console_ = (command: string) => ['```console', `$ ${command}`, '```'].join('\n');
const HEAD = 'export function greet(name: string): string {';
const EARLY = fence('mcp.ts until 2', HEAD, '  return name;', '}');
const REST = fence('mcp.ts exercise', 'export const twice = (n: number) => n * 2;');
const REPLACED = fence('mcp.ts', HEAD, '  return `Good day, ${name}`;', '}');

/** A book whose first chapter has a simple version of a function. */
const growing = (one = EARLY, two = REPLACED): Book =>
  small({
    'mcp.ts': LATER,
    'chapters/01-hello/README.md': `# 1. Hello\n\n${one}\n\n## Exercise: x\n\n${RULES}\n\n${HINTS}`,
    'chapters/02-world/README.md': `# 2. World\n\n${two}\n\n## Exercise: y\n\n${RULES}\n\n${HINTS}\n${SOLUTION}\n\n${REST}\n</details>\n`,
    'chapters/01-hello/demo-1.ts': '',
  });

test('lines that others replace later are in the program until then, and the difference shows both', () => {
  const book = growing();
  assert.equal(cut(book, 'mcp.ts', 1), `${HEAD}\n  return name;\n}\n`);
  assert.equal(cut(book, 'mcp.ts', 2), LATER);
  const changed = diff(book, 2).filter((line) => /^[-+]/.test(line));
  assert.deepEqual(changed, [
    '-   return name;',
    '+   return `Good day, ${name}`;',
    '+',
    '+ export const twice = (n: number) => n * 2;',
  ]);
  assert.match(diff(book, 2)[0]!, /mcp\.ts: 3 lines, in the place of 1$/);
});

test('a line for a while says where it is by its neighbours, and what is wrong with that is named', () => {
  const problems = (one: string, two?: string) => problemsOnPages(growing(one, two)).join('\n');
  assert.match(
    problems(EARLY.replace(HEAD, `${HEAD} `.replace('greet', 'meet'))),
    /first line must be in mcp\.ts exactly once/,
  );
  assert.match(
    problems(EARLY.replace('\n}\n', '\n};\n')),
    /last line is not in mcp\.ts below the first/,
  );
  assert.match(problems(EARLY.replace('until 2', 'until 3')), /there is no later step 3/);
  assert.match(problems(EARLY.replace('until 2', 'until 1')), /there is no later step 1/);
  assert.match(
    problems(`${EARLY}\n\n${REPLACED}`),
    /mcp\.ts:2 is quoted before 2, and would be there twice/,
  );
  const hole = fence('mcp.ts exercise', HEAD, '  // …', '}');
  assert.match(problems(`${EARLY}\n\n${hole}`), /an exercise is to write these lines/);
  assert.match(
    problems(EARLY.replace('  return name;', Array(201).fill('  name += name;').join('\n'))),
    /201 lines are there only for a while/,
  );
  const twice = EARLY.replace('return name', 'return name.trim()');
  assert.match(
    problems(`${EARLY}\n\n${twice}`),
    /01-hello\/README\.md:5 still stands in for the same lines, until 2/,
  );
  const lost = fix(growing(EARLY.replace('greet', 'meet')));
  assert.match(
    lost.join('\n'),
    /must be in mcp\.ts too, to say where the others go: export function meet/,
  );
});

const GATE = `import { isFree } from './more/free.ts';

export const mayRun = (tool: string) => isFree(tool) || tool.startsWith('git ');
`;
const SIMPLE = fence('gate.ts until 16', "export const mayRun = (tool: string) => tool !== 'rm';");
const REAL = fence(
  'gate.ts exercise',
  "export const mayRun = (tool: string) => isFree(tool) || tool.startsWith('git ');",
);

/** A book whose chapter 16 has a simple version of its module first. */
const withModule = (simple = SIMPLE, real = REAL, stop = '16.1'): Book =>
  small({
    'chapters/composition.ts':
      "import { mayRun, reason } from './16-door/gate.ts';\n\nexport const table = [{ reason: mayRun }];\nexport const why = [reason];\n",
    'chapters/16-door/README.md': [
      `# 16. Door\n\n${simple}`,
      fence('chapters/composition.ts', 'export const table = [{ reason: mayRun }];'),
      console_(`npm run chapter ${stop}`),
      `## Exercise: z\n\n${RULES}\n\n${HINTS}\n${SOLUTION}\n\n${real}\n</details>\n`,
      fence('chapters/composition.ts', 'export const why = [reason];'),
    ].join('\n\n'),
    'chapters/16-door/gate.ts': `${GATE}export const reason = 'no';\n`,
    'chapters/16-door/more/free.ts': "export const isFree = (tool: string) => tool === 'ls';\n",
    'chapters/16-door/wrong.md': WRONG,
    ...Object.fromEntries(
      ['demo', 'demo-1', 'exercise'].map((name) => [`chapters/16-door/${name}.ts`, '']),
    ),
  });

test('a module that is not cut by line may have a simple version until the end of its chapter', async () => {
  const book = withModule();
  assert.deepEqual(problemsOnPages(book), []);
  const at = (step: string) => filesOfProgram(book, stepOf(step));
  const first = at('16.1');
  assert.equal(
    first.get('chapters/16-door/gate.ts'),
    "export const mayRun = (tool: string) => tool !== 'rm';\n",
  );
  assert.equal(
    first.has('chapters/16-door/more/free.ts'),
    false,
    'the simple version does not need it',
  );
  assert.match(first.get('chapters/composition.ts')!, /^import \{ mayRun \} from/);
  const whole = at('16');
  assert.match(whole.get('chapters/16-door/gate.ts')!, /isFree\(tool\)[^]*reason/);
  assert.equal(whole.has('chapters/16-door/more/free.ts'), true);
  const chapter = book.chapters.at(-1)!;
  const captions = chapter.quotations
    .filter(({ file }) => file.endsWith('gate.ts'))
    .map((each) => captionOf(book, chapter, each));
  assert.deepEqual(captions, [
    '*`gate.ts`, the whole file, until the end of this chapter*',
    '*`gate.ts`, replaces 1 line*',
  ]);
  const odd = withModule(SIMPLE.replace("tool !== 'rm'", 'tool.size'));
  assert.match(
    (await problemsOfTypes(odd)).join('\n'),
    /the program of chapter 16\.1\/chapters\/16-door\/gate\.ts/,
  );
});

test('what a module of a stop imports from its folder comes along', () => {
  const book = withModule(fence('gate.ts', "export const reason = 'no';"));
  const files = filesOfProgram(book, stepOf('16.1'));
  assert.equal(files.has('chapters/16-door/more/free.ts'), true);
});

test('what is wrong with a simple version is named', () => {
  const problems = (simple: string) => problemsOnPages(withModule(simple)).join('\n');
  assert.match(problems(SIMPLE.replace('until 16', 'until 17')), /there is no later step 17/);
  assert.match(problems(SIMPLE.replace('until 16', 'until 16.1')), /there is no later step 16\.1/);
  assert.match(
    problems(SIMPLE.replace('gate.ts', '../16-door/demo.ts')),
    /a simple version is one of a module in the folder chapters\/16-door/,
  );
  assert.match(
    problems(SIMPLE.replace("=> tool !== 'rm';", '=>\n// …\ntrue;')),
    /a simple version is the whole file, without gaps/,
  );
  const long = Array(51).fill('export {};');
  assert.match(problems(fence('gate.ts until 16', ...long)), /51 lines, more than 50/);
  const early = fence('gate.ts', "export const reason = 'no';");
  assert.match(
    problems(`${SIMPLE}\n\n${early}`),
    /16-door\/README\.md:\d+ quotes chapters\/16-door\/gate\.ts before 16$/m,
  );
  const twice = SIMPLE.replace('rm', 'mv');
  assert.match(
    problems(`${SIMPLE}\n\n${twice}`),
    /README\.md:\d+ still stands in for the same lines, until 16/,
  );
});

test('a page may stop on the way: what is quoted before it is a program of its own', () => {
  const stop = console_('npm run chapter 1.1');
  const book = growing(
    `${EARLY}\n\n${stop}\n\n${REST}`,
    REPLACED.replace('mcp.ts', 'mcp.ts exercise'),
  );
  assert.deepEqual(book.steps.map(nameOf), ['1.1', '1', '2']);
  assert.deepEqual(['1.1', '1', '2'].map(stepOf), book.steps);
  assert.doesNotMatch(cut(book, 'mcp.ts', stepOf('1.1')), /twice/);
  assert.match(cut(book, 'mcp.ts', 1), /return name;[^]*twice/);
  assert.deepEqual(
    problemsOnPages(book).filter((each) => /stop|demo/.test(each)),
    [],
  );
  const wrong = growing(`${EARLY}\n\n${stop.replace('1.1', '1.2')}\n\n${REST}`);
  assert.match(problemsOnPages(wrong).join('\n'), /the stop 1\.2 should be 1\.1/);
});

test('no step is too big', () => {
  const many = Array.from({ length: MAX_STEP + 1 }, (_, n) => `export const n${n} = ${n};`).join(
    '\n',
  );
  const page = ONE.replace(
    '```ts mcp.ts exercise',
    `${fence('mcp.ts', many)}\n\n\`\`\`ts mcp.ts exercise`,
  );
  const book = small({ 'mcp.ts': `${many}\n${SOURCE}`, 'chapters/01-hello/README.md': page });
  assert.match(
    problemsOnPages(book).join('\n'),
    new RegExp(`01-hello/README.md:1: the step 1 adds \\d+ lines, more than ${MAX_STEP}`),
  );
});

test('above each block is written where it goes, and `fix` writes it', () => {
  const [one, two] = growing().chapters as [any, any];
  assert.equal(captionOf(growing(), one, one.quotations[0]), '*`mcp.ts`, until chapter 2*');
  assert.equal(captionOf(growing(), two, two.quotations[0]), '*`mcp.ts`, replaces 1 line*');
  const book = small({
    'mcp.ts': SOURCE.replace('greet(', 'meet('),
    'chapters/01-hello/README.md': ONE.replace('greet(', 'meet('),
    'chapters/02-world/README.md': TWO.replaceAll('greet(', 'meet('),
  });
  const inside = book.chapters[0]!.quotations[1]!; // return text + …
  assert.equal(captionOf(book, book.chapters[0]!, inside), '*`mcp.ts`, in `meet`*');
  const page = join(book.root, 'chapters/01-hello/README.md');
  const text = readFileSync(page, 'utf8');
  writeFileSync(page, text.replace('in `meet`', 'in `greet`'));
  assert.match(
    problemsOfCaptions(readBook(book.root)).join(),
    /README\.md:\d+: above this block should be: \*`mcp\.ts`, in `meet`\*/,
  );
  fixCaptions(readBook(book.root));
  assert.equal(readFileSync(page, 'utf8'), text);
});

test('a cut that does not pass the type-checker is named', async () => {
  const problems = await problemsOfTypes(small());
  assert.match(problems.join('\n'), /the program of chapter 01\/mcp\.ts.*Cannot find name 'home'/);
  const good = small({
    'chapters/01-hello/README.md': ONE.replace(
      '\n  // …\n  let',
      '\n  const home = homedir();\n  let',
    ).replace(
      '```ts mcp.ts exercise',
      "```ts mcp.ts\nimport { homedir } from 'node:os';\n```\n\n```ts mcp.ts exercise",
    ),
  });
  assert.deepEqual(await problemsOfTypes(good), []);
});

test('a file that has not changed is checked once more where something that it imports has', async () => {
  const early = fence('mcp.ts until 2', HEAD, '  return name.length;', '}').replace(
    ': string {',
    ' {',
  );
  const mcp = LATER.replace(': string {', ' {');
  const book = small({
    'mcp.ts': mcp,
    'chapters/01-hello/README.md': [
      `# 1. Hello\n\n${early}`,
      fence('own.ts', "export const length: number = greet('Ann');"),
      fence('user.ts', 'export const text: number = length;'),
    ].join('\n\n'),
    'chapters/02-world/README.md': `# 2. World\n\n${fence('mcp.ts', ...mcp.trimEnd().split('\n'))}\n`,
    'chapters/01-hello/own.ts':
      "import { greet } from '../../mcp.ts';\nexport const length: number = greet('Ann');\n",
    'chapters/01-hello/user.ts':
      "import { length } from './own.ts';\nexport const text: number = length;\n",
  });
  const problems = await problemsOfTypes(book);
  assert.equal(problems.length, 1, problems.join('\n'));
  assert.match(
    problems[0]!,
    /^the program of chapter 02\/chapters\/01-hello\/own\.ts\(2,14\): .*'string' is not assignable to type 'number'/,
  );
});

test('a console block that a fresh run does not confirm is named, with what came', async () => {
  assert.deepEqual(await problemsOfConsoles(small()), []);
  const problems = await problemsOfConsoles(
    small({ 'chapters/02-world/README.md': TWO.replace('one\ntwo', 'one\nthree') }),
  );
  assert.equal(problems.length, 1);
  assert.match(
    problems[0]!,
    /^chapters\/02-world\/README\.md:\d+: a fresh run of "echo one; echo two" prints something else:\none\ntwo$/,
  );
});

test('in a console block times may differ, `…` stands for left out lines, and nothing else', () => {
  const same = (shown: string[], printed: string[]) =>
    firstDifference(shown, printed) === undefined;
  assert.ok(same(['a', 'took 12 ms'], ['a', 'took 8.5 ms']));
  assert.ok(same(['a', '…', 'z'], ['a', 'b', 'c', 'z']));
  assert.ok(same(['a', '…'], ['a', 'b', 'c']));
  assert.ok(!same(['a'], ['a', 'b']));
  assert.ok(!same(['a', 'b'], ['a']));
  assert.ok(!same(['a', '…', 'z'], ['a', 'b']));
  assert.ok(!same(['12 files'], ['13 files']));
});

test('the hole of an exercise keeps the first and last line of its quotation, in the program of its chapter', () => {
  const { chapters, ...rest } = small();
  const first = exerciseOf({ chapters, ...rest }, chapters[0]!)!;
  const holed = withHole({ chapters, ...rest }, first);
  assert.match(
    holed,
    /string \{\n {2}\/\/ Exercise 1: greet\n {2}throw new Error\('exercise 1 is not solved yet'\);\n\}/,
  );
  assert.doesNotMatch(holed, /Hello|home|twice/);
});

test('a second page may have an exercise of its own, with its own judge and wrong solutions', () => {
  const second =
    `# Hello, continued\n\n## Exercise: twice\n\n${RULES}\n\n${HINTS}\n${SOLUTION}\n\n\`\`\`ts chapters/01-hello/more.ts exercise\n` +
    `export function thrice(n: number) {\n  return n * 3;\n}\n\`\`\`\n</details>\n`;
  const book = small({
    'chapters/01-hello/2-more.md': second,
    'chapters/01-hello/more.ts': 'export function thrice(n: number) {\n  return n * 3;\n}\n',
  });
  const exercises = exercisesOf(book, book.chapters[0]!);
  assert.deepEqual(
    exercises.map(({ name, title, judge, wrong }) => [name, title, judge, wrong]),
    [
      ['1', 'greet', 'exercise.ts', 'wrong.md'],
      ['1.2', 'twice', 'exercise-2.ts', 'wrong-2.md'],
    ],
  );
  assert.equal(exerciseOf(book, book.chapters[0]!)!.name, '1');
  assert.match(withHole(book, exercises[1]!), /exercise 1\.2 is not solved yet/);
  const problems = problemsOnPages(book).join('\n');
  assert.match(problems, /wrong-2\.md has 0 wrong solutions/);
  assert.match(problems, /exercise-2\.ts is missing/);
  assert.doesNotMatch(problems, /wrong\.md|exercise\.ts/);
});

test("`fix` puts the source's new words into quotations, and names what it cannot find", () => {
  const changed = SOURCE.replace('text += name;', 'text += `, ${name}`;').replace(
    "'Hello'",
    "'Good day'",
  );
  const { root: at } = small({ 'mcp.ts': changed });
  const page = () => readFileSync(join(at, 'chapters/02-world/README.md'), 'utf8');
  const lost = fix(readBook(at));
  assert.deepEqual(
    lost.map((line) => line.replace(/:\d+:/, ':')),
    [
      "chapters/01-hello/README.md: could not be found in mcp.ts: let text = 'Hello';",
      'chapters/02-world/README.md: could not be found in mcp.ts: text += name;',
      'chapters/02-world/README.md: could not be found in mcp.ts: text += name;',
    ],
  );
  writeFileSync(
    join(at, 'chapters/02-world/README.md'),
    page().replaceAll(
      '  // …\n  text += name;\n  // …\n}',
      "  let text = 'Hello';\n  text += name;\n  return text + home.slice(0, 0);\n}",
    ),
  );
  assert.equal(fix(readBook(at)).filter((line) => line.includes('02-world')).length, 0);
  assert.match(page(), /let text = 'Good day';\n {2}text \+= `, \$\{name\}`;\n {2}return/);
});

// ─── Parts: modules of chapters 1 to 15, cut by line like mcp.ts ──────────────────────────────────────────────

const PART = `// part.ts: what greets.

import { homedir } from 'node:os';
import { type Name, upper } from './names.ts';

export const greet = (name: Name) => \`Hello \${name}\`;

export const loud = (name: Name) => upper(greet(name) + homedir().slice(0, 0));
`;
const NAMES = `// names.ts: what is greeted.

export type Name = string;

export const upper = (name: Name) => name.toUpperCase();
`;
const MCP = `// mcp.ts

import { greet, loud } from './chapters/01-hello/part.ts';

export * from './chapters/01-hello/names.ts';
export * from './chapters/01-hello/part.ts';

export const hello = () => greet('you'); // not loud

export const hey = () => loud('you');
`;

/** Two chapters: the first quotes some lines of three files, the second the rest. */
function parted(changed: Record<string, string> = {}): Book {
  return small({
    'mcp.ts': MCP,
    'chapters/01-hello/part.ts': PART,
    'chapters/01-hello/names.ts': NAMES,
    'chapters/01-hello/README.md': [
      '# 1. Hello',
      fence('names.ts', 'export type Name = string;'),
      fence('part.ts', 'export const greet = (name: Name) => `Hello ${name}`;'),
      fence('mcp.ts', "export const hello = () => greet('you'); // not loud"),
    ].join('\n\n'),
    'chapters/02-world/README.md': [
      '# 2. World',
      fence('names.ts', 'export const upper = (name: Name) => name.toUpperCase();'),
      fence(
        'part.ts',
        'export const loud = (name: Name) => upper(greet(name) + homedir().slice(0, 0));',
      ),
      fence('mcp.ts', "export const hey = () => loud('you');"),
    ].join('\n\n'),
    ...changed,
  });
}

const faults = (book: Book) =>
  problemsOnPages(book).filter((each) => !/is marked as the exercise/.test(each));

test('imports need no quotation: a program has those of its names that it uses, and its parts have', async () => {
  const book = parted();
  fixCaptions(book);
  assert.deepEqual(faults(readBook(book.root)), []);
  assert.equal(
    cut(book, 'chapters/01-hello/part.ts', 1),
    "// part.ts: what greets.\n\nimport { type Name } from './names.ts';\n\nexport const greet = (name: Name) => `Hello ${name}`;\n",
  );
  assert.match(cut(book, 'mcp.ts', 1), /import \{ greet \} from/);
  assert.equal(cut(book, 'mcp.ts', 2), MCP);
  assert.equal(cut(book, 'chapters/01-hello/part.ts', 2), PART);
  assert.deepEqual(await problemsOfTypes(book), []);
});

test('a statement goes where its file is not in the program yet, and a part lies where it is quoted first', () => {
  const upper = 'export const upper = (name: string) => name.toUpperCase();';
  const late = parted({
    'chapters/01-hello/names.ts': 'export type Name = string;\n',
    'chapters/02-world/upper.ts': `${upper}\n`,
    'chapters/02-world/README.md': [
      '# 2. World',
      fence('upper.ts', upper),
      fence(
        'part.ts',
        'export const loud = (name: Name) => upper(greet(name) + homedir().slice(0, 0));',
      ),
      fence('mcp.ts', "export const hey = () => loud('you');"),
    ].join('\n\n'),
    'chapters/01-hello/part.ts': PART.replace(
      "import { type Name, upper } from './names.ts';",
      "import type { Name } from './names.ts';\nimport { upper } from '../02-world/upper.ts';",
    ),
  });
  assert.doesNotMatch(cut(late, 'chapters/01-hello/part.ts', 1), /02-world/);
  assert.match(cut(late, 'chapters/01-hello/part.ts', 2), /02-world\/upper\.ts/);
  const stray = parted();
  const page = join(stray.root, 'chapters/01-hello/README.md');
  writeFileSync(page, '# 1. Hello\n');
  assert.match(
    faults(readBook(stray.root)).join('\n'),
    /part\.ts:1: it should lie in the folder of chapter 2/,
  );
});

test('lines that others replace later get the imports that they need; a learner gets all that the parts have', () => {
  const MIDDLE = 'export function hello() {';
  const mcp = `${MCP}\n${MIDDLE.replace('hello', 'hi')}\n  return loud('you');\n}\n`;
  const book = parted({
    'mcp.ts': mcp.replace("export const hello = () => greet('you'); // not loud\n\n", ''),
    'chapters/01-hello/README.md': [
      '# 1. Hello',
      fence('names.ts', 'export type Name = string;'),
      fence('part.ts', 'export const greet = (name: Name) => `Hello ${name}`;'),
      fence('mcp.ts', 'export function hi() {', '// …', '}'),
      fence('mcp.ts until 2', 'export function hi() {', "  return greet('you');", '}'),
    ].join('\n\n'),
  });
  const first = cut(book, 'mcp.ts', 1);
  assert.match(first, /import \{ greet \} from '\.\/chapters\/01-hello\/part\.ts';/);
  assert.match(first, /return greet\('you'\)/);
  const forLearner = linesForLearner(book, 'mcp.ts', 1).map(({ text }) => text);
  assert.ok(forLearner.includes("import { greet } from './chapters/01-hello/part.ts';"));
  const later = linesForLearner(book, 'mcp.ts', 2).map(({ text }) => text);
  assert.ok(later.includes("import { greet, loud } from './chapters/01-hello/part.ts';"));
});

test('a part of another chapter is quoted by its last name, and the caption is a link to it', () => {
  const [, two] = parted().chapters as [any, any];
  assert.equal(captionOf(parted(), two, two.quotations[0]), '*[`names.ts`](../01-hello/names.ts)*');
});

test('INSTRUCTOR has the present rules of each exercise, and rows for where people get stuck', () => {
  assert.deepEqual(problemsOfInstructor(readBook()), []);
  const at = folder();
  cpSync(join(root, 'chapters'), join(at, 'chapters'), { recursive: true });
  for (const name of ['mcp.ts', 'agent.ts']) cpSync(join(root, name), join(at, name));
  const page = join(at, 'chapters', 'INSTRUCTOR.md');
  const text = readFileSync(page, 'utf8');
  writeFileSync(page, text.replace('| 4 ask, and wait | 1. ', '| 4 ask, and wait | 1. Never. '));
  assert.match(problemsOfInstructor(readBook(at)).join('\n'), /rules have changed/);
  writeFileSync(page, text.replace(/^\| 4 ask, and wait \| `await.*$/m, ''));
  assert.match(problemsOfInstructor(readBook(at)).join('\n'), /stuck at 4 ask, and wait/);
});
