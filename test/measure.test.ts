// What `npm run measure` counts, on texts so small that one can count along.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { basenamesTwice, cyclesIn, exportedTwice } from './measure/modules.ts';
import { classesIn, functionsIn, typesIn } from './measure/shapes.ts';
import { program } from './measure/sources.ts';
import { weigh } from './measure/tokens.ts';

const source = (text: string, file = 'x.ts') => ({ file, text });

const SAMPLE = `// A sample. const no = 'token';
export class Box extends Thing {
  static made = 0;
  private size = 1; // one, two
  readonly name?: string;
  onOpen?: (box: Box) => void;
  open = async (key: string) => {
    return key;
  };

  async close(
    why: string,
    { isLast = false }: Options = {},
  ): Promise<void> {
    if (isLast) {
      await this.empty(why, () => {
        return 1;
      });
    }
    const text = \`\${why}
  }
\`;
    this.tell(text);
  }
}

type Options = {
  isLast?: boolean;
  done(): void;
};

export function short(a: number) {
  return a / 2 > 1 ? /}"/ : "//";
}
`;

test('a token is a name, a number, a sign or a whole string; comments and blank lines do not count', () => {
  assert.deepEqual(weigh(source("const a = 'b c'; // no\n\n/* nor\n this */\nf(1.5, /x'/);\n")), {
    lines: 5,
    code: 2,
    tokens: 12, // const a = " ; and f ( 1.5 , " ) ;
    wide: 0,
  });
  assert.equal(weigh(source(`${'x'.repeat(101)}\n`)).wide, 1);
});

test('functions from the line with their name to their last bracket', () => {
  const found = functionsIn(source(SAMPLE)).map(({ name, line, size }) => [name, line, size]);
  assert.deepEqual(found, [
    ['Box.open', 7, 3],
    ['Box.close', 11, 14],
    ['Box.await', 16, 3],
    ['short', 32, 3],
  ]);
});

test('fields of a class without methods and statics; fields of a type', () => {
  const [box] = classesIn(source(SAMPLE));
  assert.deepEqual([box?.name, box?.size], ['Box', 3]);
  const [options] = typesIn(source(SAMPLE));
  assert.deepEqual([options?.name, options?.size], ['Options', 2]);
});

test('a cycle is one of values, by way of any number of files', () => {
  const sources = [
    source("import { b } from './b.ts';\nimport type { C } from './c.ts';", 'f/a.ts'),
    source("import {\n  c,\n} from '../g/c.ts';", 'f/b.ts'),
    source("export * from '../f/a.ts';\nimport { d } from './d.ts';", 'g/c.ts'),
    source("import type { a } from '../f/a.ts';", 'g/d.ts'),
  ];
  assert.deepEqual(cyclesIn(sources), [['f/a.ts', 'f/b.ts', 'g/c.ts']]);
});

test('names in several files', () => {
  const sources = [
    source('export const a = 1;\nexport type B = 1;\nconst c = 1;', 'x/one.ts'),
    source('export async function a() {}\nexport { c };\nconst c = 1;', 'y/one.ts'),
  ];
  assert.deepEqual(exportedTwice(sources), [['a', ['x/one.ts', 'y/one.ts']]]);
  assert.deepEqual(basenamesTwice(sources), [['one.ts', ['x/one.ts', 'y/one.ts']]]);
});

test('the program is what runs: no test, no demo, nothing of the book', () => {
  const files = program.map(({ file }) => file);
  for (const file of ['mcp.ts', 'agent.ts', 'chapters/composition.ts'])
    assert.ok(files.includes(file), file);
  const odd = files.filter((file) =>
    /^test|\/(demo|exercise)|^chapters\/(book|judge)|vitest/.test(file),
  );
  assert.deepEqual(odd, []);
});
