// Chapter 19: the person at the terminal. The screen is real; the keyboard and the glass are streams of the test.

import assert from 'node:assert/strict';
import { PassThrough, Writable } from 'node:stream';
import { afterEach, test } from 'node:test';
import { stripVTControlCharacters } from 'node:util';
import { Masker } from '../chapters/17-the-gate/safe-text.ts';
import type { DialoguePage } from '../chapters/17-the-gate/dialogue.ts';
import { fold, rowsOf, Sheets } from '../chapters/19-the-terminal/fold.ts';
import { helpText } from '../chapters/19-the-terminal/command-line/options.ts';
import { PersonAtTerminal } from '../chapters/19-the-terminal/person-at-terminal.ts';
import { Screen } from '../chapters/19-the-terminal/screen.ts';
import { widthOf } from '../chapters/19-the-terminal/wrap.ts';
import { models } from '../chapters/18-minds/models.ts';
import { cleanUp, later, until } from './help/basics.ts';

afterEach(cleanUp);

/** A terminal of streams: what is typed, and what is to be seen. */
function terminal({ isTTY = true } = {}) {
  const own = Object.getOwnPropertyDescriptors(process);
  const stdin = Object.assign(new PassThrough(), { isTTY, setRawMode: () => {} });
  let seen = '';
  const glass = () => {
    const stream = new Writable({
      decodeStrings: false,
      write: (text, _, done) => ((seen += text), done()),
    });
    return Object.assign(stream, { isTTY, columns: 100 });
  };
  const streams = { stdin, stdout: glass(), stderr: glass() };
  for (const [name, value] of Object.entries(streams))
    Object.defineProperty(process, name, { value, configurable: true });
  const screen = new Screen({ color: false });
  later(() => {
    screen.stop();
    for (const name of ['stdin', 'stdout', 'stderr'] as const)
      Object.defineProperty(process, name, own[name]!);
  });
  const person = new PersonAtTerminal(screen);
  const text = () => stripVTControlCharacters(seen).replaceAll('\r', '');
  const shows = (words: string) => until(() => text().includes(words), words);
  const type = (line: string) => void stdin.write(`${line}\r`);
  const ask = (prompt: string, signal?: AbortSignal) =>
    person.ask({ lines: [`about ${prompt}`], prompt, signal });
  const resize = (columns: number, rows: number) =>
    void Object.assign(streams.stderr, { columns, rows }).emit('resize');
  return { screen, person, stdin, text, shows, type, ask, resize };
}

test("trap 11: a login that is over takes back its own question; the gate's, behind it, is asked and answered", async () => {
  const { shows, type, ask, text } = terminal();
  const over = new AbortController();
  const login = ask('login', over.signal);
  const gate = ask('gate');
  await shows('login: ');
  over.abort();
  assert.equal(await login, undefined);
  await shows('gate: ');
  type('yes');
  assert.equal(await gate, 'yes');
  assert.equal(text().split('about login').length, 2, 'shown once');
});

test('a question that is taken back while it waits is never shown, and the open one stays as it is', async () => {
  const { shows, type, stdin, ask, text } = terminal();
  const over = new AbortController();
  const first = ask('first');
  const second = ask('second', over.signal);
  const third = ask('third');
  await shows('first: ');
  stdin.write('hal');
  await shows('first: hal');
  over.abort();
  assert.equal(await second, undefined);
  type('f');
  assert.equal(await first, 'half', 'what was typed is still there');
  await shows('third: ');
  type('3');
  assert.equal(await third, '3');
  assert.ok(!text().includes('second'));
});

test('what was typed for a question that is taken back is no answer to the next', async () => {
  const { shows, stdin, type, ask } = terminal();
  const over = new AbortController();
  const login = ask('login', over.signal);
  const gate = ask('gate');
  await shows('login: ');
  stdin.write('y');
  await shows('login: y');
  over.abort();
  assert.equal(await login, undefined);
  await shows('gate: ');
  type('n');
  assert.equal(await gate, 'n');
});

test("the chat's prompt stands in the same line: it comes back when the question is over", async () => {
  const { screen, shows, type, ask } = terminal();
  const over = new AbortController();
  const question = ask('question', over.signal);
  const prompt = screen.input.prompt();
  await shows('question: ');
  over.abort();
  assert.equal(await question, undefined);
  await shows('› ');
  type('go on');
  assert.equal(await prompt, 'go on');
});

test('a secret is asked for without being shown, and no masker lets it through', async () => {
  const { screen, person, shows, stdin, type, ask, text } = terminal();
  const secret = person.ask({ lines: ['For the vault:'], prompt: 'passphrase', isSecret: true });
  await shows('passphrase: ');
  stdin.write('correct-');
  type('horse-42');
  assert.equal(await secret, 'correct-horse-42');
  assert.ok(!text().includes('correct') && !text().includes('horse'), text());
  assert.match(text(), /passphrase: \n/);
  assert.equal(new Masker({}).text('it is correct-horse-42'), 'it is ***');
  const next = ask('next');
  await shows('next: ');
  type('visible');
  assert.equal(await next, 'visible');
  assert.match(text(), /next: visible/, 'what comes after it is shown again');
  screen.stop();
});

test('a form, at the terminal', async () => {
  const { person, shows, type, text } = terminal();
  const properties = {
    name: { type: 'string' },
    color: { type: 'string', enum: ['red', 'green'] },
  };
  const filled = person.form({
    lines: ['"Who?"'],
    from: 's',
    schema: { properties, required: ['name'] },
  });
  for (const [words, line] of [
    ['Fill it in? [y]es / [n]o / cancel (x): ', 'y'],
    ['"name" (text): ', 'Ada'],
    ['"color" (1 to 2), empty to leave it out: ', '2'],
    ['Send it?', 'y'],
  ] as const) {
    await shows(words);
    type(line);
  }
  assert.deepEqual(await filled, { action: 'accept', content: { name: 'Ada', color: 'green' } });
  assert.match(text(), /^The MCP server "s" asks:\n"Who\?"\n {2}"name": text\n/m);
});

const YES = { key: 'y', word: 'yes', label: '[y]es' };
const NO = { key: 'n', word: 'no', label: '[n]o', isNo: true };

test('D10: a window that has shrunk since the question was drawn shows it again before a letter counts', async () => {
  const { person, shows, type, text, resize } = terminal();
  resize(80, 24);
  const lines = Array.from({ length: 15 }, (_, n) => `  line ${n}`);
  const chosen = person.choose({ lines, prompt: 'Well?', choices: [YES, NO] });
  await shows('[n]o: ');
  assert.ok(!text().includes('⋮'));
  resize(80, 10);
  type('y');
  await shows('another size');
  assert.match(text(), /line 0\n[^]*⋮ \d+ rows\n[^]*line 14\n.*another size/);
  await shows('m shows the rest.\nWell? [y]es / [n]o: ');
  type('m');
  await shows('── 1 to');
  resize(80, 24);
  type('y');
  await until(() => text().split('another size').length === 3);
  await until(() => text().endsWith('[n]o: '));
  type('y');
  assert.deepEqual(await chosen, { key: 'y' }, 'now all of it is in sight');
});

test('D10: an answer that is none shows the question again, and a no counts from the start', async () => {
  const { person, shows, type, resize } = terminal();
  resize(80, 12);
  const lines = Array.from({ length: 30 }, (_, n) => `  line ${n}`);
  const chosen = person.choose({ lines, prompt: 'Well?', choices: [YES, NO] });
  await shows('[n]o: ');
  type('what?');
  await shows('Please answer y or n.');
  type('y');
  await shows('type the whole word');
  type('n');
  assert.deepEqual(await chosen, { key: 'n' });
});

test('D10: whatever is asked, and whatever the size: it fits, with its head and its end', () => {
  const pages: Record<string, DialoguePage> = {
    'ten thousand arguments': {
      lines: ['"f" wants to start', ...Array.from({ length: 10_000 }, (_, n) => `  argument ${n}`)],
      prompt: 'Start it? [y]es, this exact entry / [n]ot now / ne[v]er',
    },
    'a list in one line': {
      lines: ['The model wants:', `  list: ${JSON.stringify(Array(10_000).fill('x'))}`, '  end'],
      prompt: 'Allow it?',
    },
    'a diff of empty lines': {
      lines: ['head', ...Array(5000).fill('  + '), '  + evil', ...Array(5000).fill('  + '), 'end'],
      prompt: 'Allow it?',
    },
    'wide letters, tabs and line feeds': {
      lines: ['head', `  │ ${'漢字\t\n🎉'.repeat(2000)}`, 'end'],
      prompt: 'Allow it?',
    },
  };
  for (const [columns, rows] of [
    [120, 40],
    [80, 24],
    [40, 12],
    [30, 10],
  ] as const)
    for (const [name, page] of Object.entries(pages)) {
      const sheets = new Sheets(page, { columns, rows });
      const first = sheets.first();
      const prompt = rowsOf(`${first.prompt}: yes`, columns).length;
      const where = `${name} at ${columns}x${rows}`;
      assert.ok(!sheets.isSeen, where);
      assert.ok(1 + first.lines.length + prompt <= rows, where);
      assert.ok(
        first.lines.some((line) => line.startsWith('⋮ ')),
        where,
      );
      assert.equal(first.lines[0], page.lines[0]!.slice(0, columns - 1), where);
      const widest = Math.max(
        ...first.lines.map((row) => [...row].reduce((sum, c) => sum + widthOf(c), 0)),
      );
      assert.ok(widest < columns, where);
      const foreign = first.lines.filter((line) => /^[^ ⋮┆"NTehm]/.test(line)); // begins a row
      assert.deepEqual(foreign, [], where);
    }
});

test('D10: a fold counts what it hides, to the character', () => {
  const line = `  list: ${'x'.repeat(3000)}`;
  const rows = fold([line, ...Array(30).fill('  more')], { columns: 80, rows: 20 });
  const [folded] = rows.filter((row) => row.endsWith('characters'));
  const shown = rows.slice(0, 4).join('').replace(/[^x]/g, '').length;
  assert.equal(Number(/[\d,]+/.exec(folded!)![0].replace(',', '')), 3000 - shown);
});

test('D10: an address is in one piece where it fits, so that it can be copied', async () => {
  const { person, shows, type, text, resize } = terminal();
  resize(80, 24);
  const url = new URL(`https://example.com/${'a'.repeat(300)}`);
  const opened = person.open({ lines: ['"Pay here"'], url });
  await shows('[n]o: ');
  assert.ok(text().includes(`\n  ${url.href}\n`));
  type('n');
  assert.deepEqual(await opened, { action: 'decline' });
});

test('without a terminal nobody is there, and nothing is read', async () => {
  const { person, stdin, ask, text } = terminal({ isTTY: false });
  stdin.write('y\n');
  assert.equal(person.isThere, false);
  assert.equal(await ask('question'), undefined);
  assert.deepEqual(
    await person.open({ lines: [], url: new URL('https://example.com'), isAgreed: true }),
    { action: 'cancel' },
  );
  assert.equal(text(), '');
  person.say('a note', 'note');
  person.say('careful', 'warning');
  assert.equal(text(), 'a note\n! careful\n', 'but what is said is said');
});

test('the help names the commands and models that the program has, and their keys', () => {
  const text = helpText({ models });
  assert.match(
    text,
    /--model NAME +rehearsal \(offline, the default without a key\), anthropic\/ID, openai\/ID$/m,
  );
  assert.match(
    text,
    /Keys come from ANTHROPIC_API_KEY or OPENAI_API_KEY, and from nowhere else\.$/m,
  );
  const mine = { ...models.openai!, keys: ['MY_KEY'] };
  const brew = { help: '[--strong] tea\n[--cold] water', load: () => Promise.reject() };
  const more = helpText({ models: { ...models, mine }, verbs: { brew } });
  assert.match(more, /openai\/ID, mine\/ID$/m);
  assert.match(more, /ANTHROPIC_API_KEY, OPENAI_API_KEY or MY_KEY/);
  assert.match(more, /^  mcp-by-hand trust … {13}list \| allow NAME/m);
  assert.match(more, /^  mcp-by-hand brew … {14}\[--strong\] tea\n {34}\[--cold\] water$/m);
});

test('D12: what newer terminals draw in two columns takes two', () => {
  for (const char of ['☰', '☷', '⚊', '⚏', '\u{1d300}', '\u{1d376}', '䷀'])
    assert.equal(widthOf(char), 2, char);
});
