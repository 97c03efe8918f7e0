// One name, one meaning; and a file lies where it says what it is.

import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, test } from 'node:test';
import { moveFiles, problemsOfHomes, wrongHomes } from '../chapters/book/homes.ts';
import { twinFiles, twinNames } from '../chapters/book/names.ts';
import { readBook } from '../chapters/book/pages.ts';
import { cleanUp, folder } from './help/basics.ts';

afterEach(cleanUp);

function bookOf(files: Record<string, string>): string {
  const at = folder();
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(at, name)), { recursive: true });
    writeFileSync(join(at, name), text);
  }
  return at;
}

test('what a page quotes lies in its chapter, what none quotes one level down, fewer than 40 in a folder', () => {
  assert.deepEqual(problemsOfHomes(readBook()), []);
});

test('files in the wrong place are named, both ways, and can be moved: every path still leads to them', () => {
  const quoted = (name: string) => `\`\`\`ts ${name}\nexport const a = 1;\n\`\`\`\n`;
  const at = bookOf({
    'mcp.ts': '',
    'chapters/16-hands/README.md': `# 16. Hands\n\n${quoted('more/up.ts')}\nSee [down](down.ts).\n`,
    'chapters/16-hands/more/up.ts': "import '../../../mcp.ts';\nexport const a = 1;\n",
    'chapters/16-hands/down.ts': "import { a } from './more/up.ts';\nexport const b = a;\n",
    'chapters/16-hands/stays.ts': 'export const a = 1;\n',
    'chapters/17-the-gate/README.md': `# 17. The gate\n\n${quoted('../16-hands/stays.ts')}`,
    'test/one.test.ts': "import { b } from '../chapters/16-hands/down.ts';\nb;\n'down.ts';\n",
  });
  const wrong = problemsOfHomes(readBook(at)).join('\n');
  assert.match(wrong, /^chapters\/16-hands\/down\.ts:1: no page quotes it, .*\/more\/down\.ts /m);
  assert.match(
    wrong,
    /^chapters\/16-hands\/more\/up\.ts:1: a page quotes it, .*\/16-hands\/up\.ts /m,
  );
  assert.doesNotMatch(wrong, /stays/);

  moveFiles(readBook(at), wrongHomes(readBook(at)));
  const read = (name: string) => readFileSync(join(at, name), 'utf8');
  assert.match(read('chapters/16-hands/up.ts'), /^import '\.\.\/\.\.\/mcp\.ts';/);
  assert.match(read('chapters/16-hands/more/down.ts'), /from '\.\.\/up\.ts';/);
  assert.match(read('chapters/16-hands/README.md'), /^```ts up\.ts$/m);
  assert.match(read('chapters/16-hands/README.md'), /\[down\]\(more\/down\.ts\)/);
  assert.match(
    read('test/one.test.ts'),
    /from '\.\.\/chapters\/16-hands\/more\/down\.ts';[^]*\n'down\.ts'/,
  );
  assert.ok(!existsSync(join(at, 'chapters/16-hands/down.ts')));
});

test('no two files of the program have one name', () => {
  assert.deepEqual(twinFiles(readBook()), []);
  const at = bookOf({
    'mcp.ts': '',
    'chapters/16-hands/README.md': '# 16. Hands\n',
    'chapters/16-hands/demo.ts': '',
    'chapters/16-hands/words.ts': '',
    'chapters/17-the-gate/README.md': '# 17. The gate\n',
    'chapters/17-the-gate/demo.ts': '',
    'chapters/17-the-gate/more/words.ts': '',
  });
  assert.deepEqual(twinFiles(readBook(at)), [
    'chapters/16-hands/words.ts and chapters/17-the-gate/more/words.ts',
  ]);
});

// What has two meanings, and why that is so.
const AGREED = [
  'Tool', // a tool as its server describes it (chapter 8), and as a row of the agent's table (15)
  'ToolDefinition', // what a model is told of a tool (15), and the same with its server (14)
];

test('what a file exports, and every type, has a name that no other file uses', () => {
  assert.deepEqual(twinNames(readBook(), AGREED), []);
  assert.deepEqual(
    twinNames(readBook())
      .map((twin) => twin.split(':')[0])
      .sort(),
    AGREED,
    'an exception that is no longer one goes',
  );
  const at = bookOf({
    'mcp.ts': '',
    'chapters/16-hands/README.md': '# 16. Hands\n',
    'chapters/16-hands/one.ts':
      'export const kindOf = 1;\ntype Place = 1;\nconst MAX = 1;\nfunction own() {}\n',
    'chapters/17-the-gate/README.md': '# 17. The gate\n',
    'chapters/17-the-gate/two.ts':
      'async function kindOf() {}\nclass Place {}\nconst MAX = 2;\nfunction own() {}\n',
  });
  const [one, two] = ['chapters/16-hands/one.ts', 'chapters/17-the-gate/two.ts'];
  assert.deepEqual(twinNames(readBook(at)), [
    `kindOf: ${one} and ${two}`,
    `Place: ${one} and ${two}`,
  ]);
});
