// J: the fuzz run. Random and repeated input for every parser of foreign text, and for every regular
// expression of the program: none may crash, and none may take the square of its input.
//
// In `npm test` it is short, and always the same. `npm run fuzz` takes minutes, and another seed each
// time. Both print the seed; FUZZ_SEED=… repeats a run, FUZZ_ROUNDS=… sets how long it is.

import {
  allLiterals,
  inputsFor,
  isRepeating,
  literalsIn,
  madeExpressions,
  slowness,
  textOf,
  type Expression,
} from './help/regular-expressions.ts'; // first: it notes what the others make
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { repair, Trust } from '../agent.ts';
import { globMatcher } from '../chapters/16-hands/more/glob.ts';
import { takeApart } from '../chapters/17-the-gate/shell-syntax.ts';
import { formFields, fillInForm, readFieldAnswer } from '../chapters/17-the-gate/form.ts';
import {
  commandsOfLine,
  matchesText,
  parseRules,
  readSettings,
} from '../chapters/17-the-gate/rules.ts';
import {
  changes,
  Masker,
  plain,
  printable,
  PrintableStream,
  quoted,
  spelledOut,
} from '../chapters/17-the-gate/safe-text.ts';
import { Anthropic } from '../chapters/18-minds/anthropic.ts';
import { ModelError } from '../chapters/18-minds/models.ts';
import { OpenAi } from '../chapters/18-minds/openai.ts';
import { problemIn } from '../chapters/18-minds/post.ts';
import { Rehearsal } from '../chapters/18-minds/rehearsal.ts';
import { EventParser } from '../chapters/18-minds/sse.ts';
import { keptConversations } from '../chapters/19-the-terminal/session-file.ts';
import { Session } from '../chapters/19-the-terminal/session-file.ts';
import { Sheets } from '../chapters/19-the-terminal/fold.ts';
import { Markdown } from '../chapters/19-the-terminal/markdown.ts';
import { wrap } from '../chapters/19-the-terminal/wrap.ts';
import { encode, mirrorsOf } from '../chapters/20-streamable-http/mirrored-headers.ts';
import { checkedAddress } from '../chapters/20-streamable-http/streamable.ts';
import { errorPageText } from '../chapters/20-streamable-http/reply.ts';
import { checkedOAuth } from '../chapters/21-authorization/clients.ts';
import { challengeIn, scopesIn } from '../chapters/21-authorization/discovery.ts';
import { TokenStore } from '../chapters/21-authorization/tokens.ts';
import { KeptVerdicts } from '../chapters/22-no-handshake/verdicts.ts';
import { parseFrontmatter } from '../chapters/24-more-than-tools/frontmatter.ts';
import { nobody } from '../chapters/17-the-gate/person.ts';
import { shellWords } from '../chapters/24-more-than-tools/prompt-arguments.ts';
import { Logs } from '../chapters/24-more-than-tools/logs.ts';
import { checkedSkill } from '../chapters/24-more-than-tools/skill-entry.ts';
import { expand, placeIn } from '../chapters/24-more-than-tools/template.ts';
import { codeChunks } from '../chapters/29-a-server/chunks.ts';
import { MessageReader, readClose, Violation } from '../chapters/25-other-pipes/frames.ts';
import {
  blocksToText,
  fillIn,
  LineBuffer,
  loadEntries,
  McpConnection,
  McpError,
  passOn,
  tooMuchIn,
  onNode,
  problemWithConfig,
  readJsonFile,
  RpcError,
  toolLabel,
  type Json,
  type Message,
  type Transport,
  type TransportEvents,
} from '../mcp.ts';
import { cleanUp, folder } from './help/basics.ts';
import { installed } from './help/installed.ts';
import { bare, transportTo } from './help/http-servers.ts';
import { hear, raw, startModelServer } from './help/model-server.ts';
import { harmDone, SPELLED_GIT, SPELLED_PROGRAMS } from './help/spellings.ts';

const MADE = await madeExpressions();

afterEach(cleanUp);

// ─── Chance ────────────────────────────────────────────────────────────────────────────────────

const isLong = process.argv.includes('--long');
const SEED = Number(process.env.FUZZ_SEED ?? (isLong ? Math.floor(Math.random() * 2 ** 32) : 1));
const ROUNDS = Number(process.env.FUZZ_ROUNDS ?? (isLong ? 30 : 1));
console.log(`fuzz: FUZZ_SEED=${SEED} FUZZ_ROUNDS=${ROUNDS}`);

/** Each test has its own, so that one alone does what it does among the others. */
function chance(seed = SEED) {
  let state = seed >>> 0;
  const random = () => {
    state = (state + 0x6d2b79f5) >>> 0; // mulberry32
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (n: number) => Math.floor(random() * n);
  const pick = <T>(list: readonly T[]): T => list[below(list.length)]!;
  return { random, below, pick };
}
type Chance = ReturnType<typeof chance>;

const ODD = [
  '\0',
  '\u001b[2J',
  '\r',
  '\n',
  '\r\n',
  '\ufeff',
  '\u2028',
  '\ud800',
  '\udc00',
  '😀',
  '\u202e',
  '"',
  '\\',
  '{',
  '}',
  '[',
  ']',
  ':',
  ',',
  '=',
  '<',
  '>',
  '*',
  '(',
  ')',
  '/',
  '1e999',
  '-0',
  '9'.repeat(40),
  'null',
  '{}',
  '[]',
  '"__proto__"',
  '{"toString":1}',
  '__proto__',
  'constructor',
  'toString',
  '${HOME}',
  '${',
  '..',
];

/** A sound text with some damage: cut, doubled, swapped, or with something odd in it. */
function damaged(text: string, { below, pick }: Chance): string {
  let result = text;
  for (let n = below(4); n >= 0; n--) {
    const [a, b] = [below(result.length + 1), below(result.length + 1)].sort((x, y) => x - y) as [
      number,
      number,
    ];
    result = pick([
      () => result.slice(0, a) + pick(ODD) + result.slice(a),
      () => result.slice(0, a) + pick(ODD) + result.slice(Math.min(b, a + 8)),
      () => result.slice(0, a) + result.slice(Math.min(b, a + 20)),
      () => result.slice(0, b) + result.slice(a),
      () => result.slice(0, a),
    ])();
  }
  return result;
}

/** A sound value in which one part has become something else. */
function odd(value: unknown, { below, pick }: Chance): unknown {
  const others: unknown[] = [
    null,
    true,
    0,
    -1,
    1e308,
    Infinity,
    '',
    'x',
    '\0',
    [],
    {},
    [null],
    { toString: 1 },
    '🙂'.repeat(50),
  ];
  const isParent = typeof value === 'object' && value !== null && Object.keys(value).length > 0;
  if (!isParent || below(6) === 0) return pick(others);
  const key = pick(Object.keys(value));
  const copy: any = Array.isArray(value) ? [...value] : { ...value };
  copy[key] = odd(copy[key], { below, pick } as Chance);
  return copy;
}

/** The same bytes, in pieces. */
function* pieces(bytes: Buffer, { below }: Chance): Generator<Buffer> {
  for (let at = 0; at < bytes.length; ) {
    const size = 1 + below(below(2) ? 4 : 200);
    yield bytes.subarray(at, at + size);
    at += size;
  }
}

function times(count: number, work: (round: number) => void): void {
  for (let n = 0; n < count * ROUNDS; n++) work(n);
}

/** A refusal in words is fine; that something is not a function, or a stack overflow, is not. */
function refuses(
  work: () => unknown,
  ...kinds: (abstract new (
    ...given: any
  ) => Error)[]
): unknown {
  try {
    return work();
  } catch (error) {
    const isExpected = kinds.some((kind) => error instanceof kind);
    if (isExpected && !(error instanceof TypeError) && !/call stack/.test(`${error}`))
      return undefined;
    throw error;
  }
}

// ─── J1: regular expressions ───────────────────────────────────────────────────────────────────

// Those that see no more than so many characters of foreign text, and where that is checked.
const BOUNDED = new Map([
  [String.raw`\\[^]|\[[!^]?\]?[^\]]*\]|[^]`, 1000], // MAX_PATTERN in glob.ts
]);

function slowInput({ source, flags }: Expression, random: () => number, more: number) {
  const regex = new RegExp(source, flags.includes('g') ? flags : `${flags}g`);
  for (const input of inputsFor(source, random, more)) {
    const work = (size: number) => textOf(input, size).replace(regex, '');
    const slow = slowness(work, BOUNDED.get(source));
    if (slow) return `${JSON.stringify(input)}: ${slow}`;
  }
  return undefined;
}

test('J1: the search for regular expressions finds them, and a slow one is noticed', () => {
  const text = [
    '#!/usr/bin/env node',
    'const a = b / c / d; // not /this/',
    "const e = '/nor/' + `${f / g} /nor/ ${/one/.test(h)}`;",
    'if (/[/]two/.test(x)) return /three\\//g;',
    'x = { y: /four/u, z: [/five/, 6 / 7 / 8] }; /* /no/ */',
  ].join('\n');
  const found = literalsIn(text).map(({ source, flags }) => source + flags);
  assert.deepEqual(found, ['one', '[/]two', 'three\\/g', 'fouru', 'five']);
  const { random } = chance();
  const slow = ['(a+)+$', '\\s+$', '<[^>]*>', '(?:a+){1,3}b'];
  for (const source of slow)
    assert.ok(slowInput({ where: '', source, flags: '' }, random, 10), source);
  for (const source of ['^\\s+', '<[^<>]*>', '[^a]', 'a{3}', '^(?:"[^"]*"|[^"])*$', '\\s+'])
    assert.equal(slowInput({ where: '', source, flags: '' }, random, 10), undefined, source);
});

test('J1: every regular expression of the program takes a time that grows with its text', () => {
  const all = [...allLiterals(), ...MADE];
  assert.ok(all.length > 100, `${all.length} were found`);
  for (const file of [
    'mcp.ts',
    'chapters/20-streamable-http/reply.ts',
    'chapters/18-minds/rehearsal.ts',
  ])
    assert.ok(
      all.some(({ where }) => where.startsWith(file)),
      file,
    );
  const { random } = chance();
  const slow = all.filter(isRepeating).flatMap((each) => {
    const why = slowInput(each, random, 4 * ROUNDS);
    return why ? [`${each.where} /${each.source}/${each.flags} ${why}`] : [];
  });
  assert.deepEqual(slow, []);
});

// Where the judge sees a square, and what bounds the text: by the module, and how it begins.
const AGREED = [
  ['17-the-gate/safe-text.ts', '\\b(?:(?:https?', 'at most 21 characters are looked at twice'],
  ['17-the-gate/safe-text.ts', '(?![', 'at most 30 letters are looked at twice'],
  ['16-hands/delicate.ts', '\\/(?:', 'a path has 4,096 characters'],
  ['19-the-terminal/more/complete.ts', '(?:^|', 'a line that the user is typing'],
  ['27-scopes/packages/from-code.ts', '\\$\\{input:', 'at most 200 characters are looked at twice'],
  ['27-scopes/importing.ts', '^[^A-Za-z0-9]+|-+$', 'a name has 1,000 characters there'],
];

/** Only in `npm run fuzz`: it takes minutes, and a package that npm must fetch. */
test('J1: recheck finds no regular expression of the program that takes the square', {
  skip: !isLong,
}, () => {
  const recheck = join(installed('recheck@4.5.0'), 'node_modules', 'recheck');
  const { checkSync } = createRequire(import.meta.url)(recheck);
  const all = new Map(
    [...allLiterals(), ...MADE].map((each) => [`${each.source}/${each.flags}`, each]),
  );
  const slow = [...all.values()].flatMap(({ where, source, flags }) => {
    const { status, complexity } = checkSync(source, flags, { timeout: 60_000 });
    const isAgreed = AGREED.some(([file, start]) => {
      return where.startsWith(`chapters/${file}`) && source.startsWith(start!);
    });
    const isFine = status !== 'vulnerable' || isAgreed;
    return isFine ? [] : [`${where} /${source}/${flags} ${complexity?.summary}`];
  });
  assert.deepEqual(slow, []);
});

// ─── J1: what is done around them ──────────────────────────────────────────────────────────────

const PUMPS = [
  '<',
  '<title',
  '<title>',
  '"',
  '\\',
  '\\"',
  '[',
  '{',
  '{"a":',
  '\n',
  '\r',
  ' ',
  ' x',
  'data:',
  'data: x\n',
  'id\n',
  'a=',
  'a="',
  'a=b,',
  ',',
  '(',
  '/',
  './',
  '*',
  '**/',
  '{a,b}',
  '{',
  '[a',
  'é',
  '\u200b',
  '漢a',
  'Bearer ',
  'sk-',
  'http://a:',
  'x:',
  '\0',
  '//',
  '/*',
  '${',
  '${A',
  '${A:-',
  '"\\',
  '=/[',
  'env ',
  'a=b ',
  'ab.',
  '-',
  '1',
  'ü',
  '\ud800',
  "'",
  '`',
  ';',
  '. ',
];

const rows = { tools: [], warn: () => {} };
const here = { name: 'here', isHere: false };
const quietly = (work: () => unknown) => refuses(work, Error);
const silent: TransportEvents = { message: () => {}, dropped: () => {}, closed: () => {} };
const field = (schema: Json) => formFields({ properties: { a: schema } })[0]!;

function inPieces(text: string): string {
  const stream = new PrintableStream();
  let shown = '';
  for (let at = 0; at < text.length; at += 50) shown += stream.take(text.slice(at, at + 50));
  return shown + stream.end();
}

function asMarkdown(text: string): string {
  const markdown = new Markdown({ columns: () => 80, paint: (_, words) => words });
  let shown = '';
  for (let at = 0; at < text.length; at += 50) shown += markdown.take(text.slice(at, at + 50));
  return shown + markdown.rest();
}

const LINEAR: Record<string, (text: string) => unknown> = {
  Markdown: asMarkdown,
  'a line of ours': (text) => wrap(text, 40),
  'error page': errorPageText,
  'rows of a question': (text) =>
    new Sheets({ lines: ['a', `${text}x`], prompt: 'y?' }, { columns: 80, rows: 24 }).first(),
  'problem of a model': problemIn,
  challenge: (text) => challengeIn(401, `Bearer ${text}`),
  scopes: scopesIn,
  'one message': (text) => passOn(text, 'it', silent),
  depth: (text) => tooMuchIn(`[${text}`),
  events: (text) => [...new EventParser().parse(Buffer.from(text))],
  blocks: (text) => blocksToText([{ type: 'text', text }]),
  label: (text) => toolLabel(text, text),
  header: (text) => encode(text),
  plain,
  quoted,
  printable: (text) => printable(text),
  'printable in pieces': inPieces,
  spelledOut: (text) => spelledOut({ [text]: text }),
  changes: (text) => changes(`a\n${text}`, `b\n${text}`),
  mask: (text) => new Masker({}).text(text),
  'masked JSON': (text) => new Masker({}).json({ [text]: text }),
  'command line': commandsOfLine,
  'command line taken apart': takeApart,
  'rule with stars': (text) => matchesText('a*b*c*', text),
  rule: (text) => quietly(() => parseRules('deny', [`bash(${text})`], here, rows)),
  glob: (text) => quietly(() => globMatcher('**/*a*b')(text)),
  chunks: (text) => codeChunks('a.ts', text),
  'braces of a glob': (text) => quietly(() => globMatcher(`{a,b}{a,b}{a,b}${text}`)),
  'number in a form': (text) => readFieldAnswer(text, field({ type: 'number' })),
  'text in a form': (text) => readFieldAnswer(text, field({ type: 'string', format: 'email' })),
  'filled in': (text) => quietly(() => fillIn(entryOf({ command: text }))),
  address: (text) => quietly(() => checkedAddress('s', { url: `http://h.example/${text}` })),
  frontmatter: (text) => quietly(() => parseFrontmatter(`---\na: ${text}\n---\n`)),
  'frontmatter in lines': (text) => quietly(() => parseFrontmatter(`---\n${text}\n---\n`)),
  'frontmatter in brackets': (text) => quietly(() => parseFrontmatter(`---\na: [${text}]\n---\n`)),
  'words of a prompt': (text) => shellWords(text),
  'an address with holes': (text) => [
    expand(text, { x: text }),
    placeIn(text, text),
    placeIn('a://{x}/{y}', `a://${text}`),
  ],
  'a log': (text) =>
    new Logs({ person: nobody, warn: () => {} }).take('s', {
      level: text,
      logger: text,
      data: text,
    }),
  'a skill': (text) =>
    quietly(() =>
      checkedSkill({
        uri: `skill://${text}/SKILL.md`,
        frontmatter: { name: text, description: text },
      }),
    ),
};

function entryOf(config: Json) {
  return { name: 's', config, file: 'f', scope: 'user', authority: 'user' } as const;
}

// They measure each character, so that 8,000 of them would take most of this test's time.
const MOST: Record<string, number> = { 'rows of a question': 1000, 'a line of ours': 2000 };

test('J1: what takes foreign text apart takes a time that grows with it', () => {
  const { pick } = chance();
  for (const [name, work] of Object.entries(LINEAR)) {
    const pairs = Array.from({ length: 5 * ROUNDS }, () => pick(PUMPS) + pick(PUMPS));
    for (const pump of [...PUMPS, ...pairs]) {
      const input = { prefix: '', pump, suffix: pick(['', '\u0001', '\n']) };
      const slow = slowness((size) => work(textOf(input, size)), MOST[name]);
      assert.equal(slow, undefined, `${name}: ${JSON.stringify(input)}`);
    }
  }
});

// ─── J2: the wires ─────────────────────────────────────────────────────────────────────────────

const MESSAGES = [
  { jsonrpc: '2.0', id: 1, result: { protocolVersion: '2025-11-25', capabilities: { tools: {} } } },
  {
    jsonrpc: '2.0',
    id: 2,
    result: { tools: [{ name: 'a', inputSchema: { type: 'object' } }], nextCursor: 'c' },
  },
  { jsonrpc: '2.0', id: 3, result: { content: [{ type: 'text', text: 'é😀' }], isError: false } },
  { jsonrpc: '2.0', id: 4, error: { code: -32601, message: 'no', data: { a: [1] } } },
  {
    jsonrpc: '2.0',
    method: 'notifications/progress',
    params: { progressToken: 1, progress: 1, total: 2 },
  },
  { jsonrpc: '2.0', id: 'x', method: 'ping' },
];
const LINES = MESSAGES.map((message) => JSON.stringify(message)).join('\n');

test('J2: lines: whatever comes, and in whatever pieces, the same lines are read', () => {
  const luck = chance();
  times(300, () => {
    const bytes = Buffer.from(`${damaged(LINES, luck)}\n`);
    const heard = (chunks: Iterable<Buffer>) => {
      const buffer = new LineBuffer();
      const said: unknown[] = [];
      const message = (each: unknown) => said.push(each);
      for (const chunk of chunks)
        for (const line of buffer.takeWhole(chunk).toString().split('\n'))
          passOn(line, 'it', { ...silent, message });
      return JSON.stringify(said);
    };
    assert.equal(heard(pieces(bytes, luck)), heard([bytes]));
  });
});

const MARKDOWN = [
  '# Head *of* `it`',
  '**bold _and_ italic** and `code`, [a](https://b.test/c_(d)), 漢字**重点**。「引」e\u0301 👩\u200d👧 می\u200cخ',
  '',
  '- item **one**',
  '  1. two of several words that have to be wrapped',
  '> > quoted *twice* and long enough to be wrapped',
  '```ts',
  'a **b** `c`',
  '```',
  '| a | b |',
  '    code',
  'my_var_name *.ts **/x',
  '---',
  '\u200b\xad\ufe0f x\u001b[2Jy',
].join('\n');
const OUR_STYLE = /\u001b\[(1|2|3|36|22|23|39)m/g;

test('J2: Markdown: in whatever pieces, the same is shown, and no escape code but our own', () => {
  const luck = chance();
  const style = { bold: [1, 22], dim: [2, 22], italic: [3, 23], cyan: [36, 39] } as const;
  const paint = (format: keyof typeof style, text: string) =>
    `\u001b[${style[format][0]}m${text}\u001b[${style[format][1]}m`;
  times(300, () => {
    const text = damaged(damaged(MARKDOWN, luck), luck);
    const columns = luck.pick([20, 40, 80]);
    const shown = (chunks: Iterable<string>) => {
      const clean = new PrintableStream();
      const markdown = new Markdown({ columns: () => columns, paint });
      let out = '';
      for (const chunk of chunks) out += markdown.take(clean.take(chunk));
      return out + markdown.take(clean.end()) + markdown.rest();
    };
    const sizes = Array.from({ length: text.length }, () => 1 + luck.below(luck.below(2) ? 3 : 60));
    let at = 0;
    const cut = sizes.map((size) => text.slice(at, (at += size)));
    const whole = shown([text]);
    assert.equal(shown(cut), whole, JSON.stringify(text));
    assert.doesNotMatch(
      whole.replaceAll(OUR_STYLE, ''),
      /[^\P{Cc}\n\t]|[\u202a-\u202e\u2066-\u2069\p{Cs}]/u,
    );
  });
});

test('J2: events: whatever comes, and in whatever pieces, the same events are read', () => {
  const luck = chance();
  const sound = `\ufeff: hello\n\nid: 1\nevent: message\nretry: 10\ndata: ${LINES.replaceAll('\n', '\ndata: ')}\n\n`;
  times(300, () => {
    const bytes = Buffer.from(damaged(sound, luck));
    const heard = (chunks: Iterable<Buffer>) => {
      const parser = new EventParser();
      return JSON.stringify([...chunks].flatMap((chunk) => [...parser.parse(chunk)]));
    };
    assert.equal(heard(pieces(bytes, luck)), heard([bytes]));
  });
});

test('J2: frames: bytes are messages or a violation, in whatever pieces', () => {
  const luck = chance();
  const frame = (opcode: number, text: string) =>
    Buffer.from([0x80 | opcode, text.length, ...Buffer.from(text)]);
  const sound = Buffer.concat([
    frame(1, '{"id":1}'),
    frame(9, 'ping'),
    frame(1, 'x'.repeat(100)),
    frame(8, '\u0003èbye'),
  ]);
  times(400, () => {
    const bytes = Buffer.from(sound);
    for (let n = luck.below(6); n > 0; n--) bytes[luck.below(bytes.length)] = luck.below(256);
    const heard = (chunks: Iterable<Buffer>) => {
      const reader = new MessageReader(1000);
      const found: string[] = [];
      try {
        for (const chunk of chunks)
          for (const { opcode, payload } of reader.read(chunk)) {
            found.push(`${opcode} ${payload.toString('hex')}`);
            if (opcode === 8) refuses(() => readClose(payload), Violation);
          }
      } catch (error) {
        if (!(error instanceof Violation)) throw error;
        found.push(error.message);
      }
      return found;
    };
    assert.deepEqual(heard(pieces(bytes, luck)), heard([bytes]));
  });
});

test('J2: messages: a connection survives every answer, and every call of it ends', async () => {
  const luck = chance();
  for (let round = 0; round < 40 * ROUNDS; round++) {
    let events!: TransportEvents;
    const transport: Transport = {
      start: async (given) => void (events = given),
      send: async ({ id, method }: Message) => {
        const sound = { ...luck.pick(MESSAGES), ...(id !== undefined && { id }) };
        const hello = { jsonrpc: '2.0', id, result: MESSAGES[0]!.result };
        const isHello = method === 'initialize';
        queueMicrotask(() => events.message(isHello ? hello : odd(sound, luck)));
      },
      close: async () => {},
    };
    const config = { type: 'fuzz' };
    const options = {
      transports: { fuzz: () => transport },
      callTimeoutMs: 5,
      onWarning: () => {},
    };
    const connection = new McpConnection('fuzz', config, { ...options, handshakeTimeoutMs: 5 });
    await connection.connect();
    const calls = [
      connection.initialize(),
      connection.listTools(),
      connection.callTool('a'),
      connection.request('x'),
    ];
    for (const outcome of await Promise.allSettled(calls)) {
      if (outcome.status === 'fulfilled') continue;
      const { reason } = outcome;
      assert.ok(reason instanceof McpError || reason instanceof RpcError, `${reason?.stack}`);
    }
    await connection.close();
  }
});

test('J2: HTTP: whatever a server answers, byte for byte, each request ends with an answer or an error', async () => {
  const luck = chance();
  const body = JSON.stringify(MESSAGES[2]).replace('3', '1');
  const head = (type: string, more = '') =>
    `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\n${more}\r\n`;
  const sound = [
    head('application/json', `content-length: ${Buffer.byteLength(body)}\r\n`) + body,
    `${head('text/event-stream')}id: 1\nretry: 1\ndata: ${body}\n\n`,
    `HTTP/1.1 401 No\r\nwww-authenticate: Bearer a="b", scope="c d"\r\ncontent-length: 0\r\n\r\n`,
    `HTTP/1.1 429 Busy\r\nretry-after: 1e999\r\ncontent-length: 4\r\n\r\n<p>x`,
    `HTTP/1.1 303 Over there\r\nlocation: /x\r\n\r\n`,
    head('application/json', 'content-encoding: gzip\r\n') + body,
  ];
  const { url } = await bare((socket) => socket.end(damaged(luck.pick(sound), luck), 'latin1'));
  const { call, messages } = await transportTo(url);
  for (let n = 1; n <= 40 * ROUNDS; n++) {
    const before = messages.length;
    const error = await call(1, 'tools/call').then(
      () => undefined,
      (reason) => reason,
    );
    assert.ok(error === undefined || error instanceof McpError, `${error?.stack}`);
    assert.ok(error || messages.length >= before);
  }
});

test('J2: models: a damaged answer is an answer or an error of the model, on both wires', async () => {
  const luck = chance();
  const line = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;
  const tool = { index: 0, id: 'c', function: { name: 'add', arguments: '{"a":1}' } };
  const choice = (delta: Json, finish_reason: unknown = null) => ({
    choices: [{ index: 0, delta, finish_reason }],
  });
  const block = { type: 'tool_use', id: 't', name: 'add', input: {} };
  const json = { type: 'input_json_delta', partial_json: '{"a":1}' };
  const sound = {
    openai: [
      choice({ content: 'Hi' }),
      choice({ tool_calls: [tool] }),
      { usage: { prompt_tokens: 1 } },
      choice({}, 'stop'),
    ],
    anthropic: [
      { type: 'message_start', message: { usage: { input_tokens: 5 } } },
      { type: 'content_block_start', index: 0, content_block: block },
      { type: 'content_block_delta', index: 0, delta: json },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 9 } },
      { type: 'message_stop' },
    ],
  };
  const count = 30 * ROUNDS;
  for (const wire of ['openai', 'anthropic'] as const) {
    const answer = () => {
      const isText = luck.below(2) === 0;
      const lines = sound[wire]
        .map((each) => line(!isText && luck.below(3) === 0 ? odd(each, luck) : each))
        .join('');
      return raw(wire, isText ? damaged(lines, luck) : lines);
    };
    const server = await startModelServer(Array.from({ length: count * 4 }, () => answer));
    const options = { model: 'm', key: 'a-test-key', baseUrl: server.url };
    const model =
      wire === 'openai'
        ? new OpenAi({ ...options, baseUrl: `${server.url}/v1` })
        : new Anthropic(options);
    for (let n = 0; n < count; n++) {
      const signal = AbortSignal.timeout(20); // else it would ask again, after a pause
      const query = hear(model, { turns: [{ role: 'user', text: 'x' }], signal } as any);
      const error = await query.then(
        () => undefined,
        (reason) => reason,
      );
      const isFine = error === undefined || error instanceof ModelError || signal.aborted;
      assert.ok(isFine || /broke off|end/.test(error.message), error?.stack);
    }
  }
});

// ─── J2: files ─────────────────────────────────────────────────────────────────────────────────

test('J2: files of configuration: each is read, or refused in words', () => {
  const luck = chance();
  const cwd = folder();
  const home = folder();
  const file = join(cwd, '.mcp.json');
  const config = {
    type: 'http',
    url: 'https://h.example/a?b=c',
    headers: { 'X-A': '${HOME:-x}' },
    timeout: 5,
    oauth: {
      clientId: 'c',
      scopes: 'a b',
      callbackPort: 80,
      company: { issuer: 'https://i', clientId: 'x' },
    },
  };
  const sound = {
    mcpServers: { a: config, b: { command: 'x', args: ['${HOME}'], env: { A: 'b' }, cwd: '/' } },
  };
  const text = `// a comment\n${JSON.stringify(sound, null, 1)}/* and another */`;
  times(150, () => {
    const isText = luck.below(2) === 0;
    writeFileSync(file, isText ? damaged(text, luck) : JSON.stringify(odd(sound, luck)));
    refuses(() => readJsonFile(file), Error);
    const warn = () => {};
    for (const entry of loadEntries(home, cwd, warn).values()) {
      problemWithConfig(entry.config, onNode({}));
      const filled = refuses(() => fillIn(entry), McpError) as Json | undefined;
      refuses(() => filled && checkedAddress('s', filled), McpError);
      refuses(() => filled && checkedOAuth('s', filled), McpError);
    }
    mkdirSync(join(cwd, '.claude'), { recursive: true });
    const rules = JSON.stringify(
      odd({ permissions: { deny: ['bash(rm *)', 'read(**/a)'], ask: ['x'] } }, luck),
    );
    writeFileSync(join(cwd, '.claude', 'settings.json'), rules);
    refuses(() => readSettings(home, cwd, { tools: [], warn }), Error);
  });
});

test('J2: files that we keep: a damaged one is never a crash', () => {
  const luck = chance();
  const home = folder();
  const kept = join(home, '.mcp-by-hand');
  const [trust, masker] = [new Trust({ home, cwd: folder() }), new Masker({})];
  const session = new Session(trust, masker);
  const store = new TokenStore({ home });
  const row = {
    server: 's',
    url: 'u',
    issuer: 'i',
    client: { id: 'c', method: 'none' },
    resource: 'r',
    tokenEndpoint: 't',
    tokens: { access: 'a', type: 'Bearer' as const, scope: ['x'], expiresAt: 5 },
  };
  store.keep(row);
  const grant = { project: trust.project, kind: 'shell', command: 'x' };
  const server = {
    project: trust.project,
    name: 'n',
    fingerprint: 'f',
    verdict: 'allow',
    config: {},
  };
  const turns = [
    { role: 'user', text: 'x' },
    { role: 'assistant', text: '', calls: [{ id: 'c', name: 'n', args: { a: 1 } }] },
    {
      role: 'tools',
      results: [{ id: 'c', name: 'n', blocks: [{ type: 'text', text: 'y' }], isError: false }],
    },
  ];
  const files: [name: string, sound: Json][] = [
    ['logins.json', { version: 1, rows: [row], verdicts: [], company: [] }],
    ['trust.json', { version: 1, servers: [server], grants: [grant], disabled: [] }],
    ['eras.json', { version: 1, eras: { a: 'stateless' } }],
  ];
  session.record(turns[0] as any);
  const SESSION = `2026-01-31T12-00-00.000Z-${session.id}.jsonl`;
  times(100, () => {
    for (const [name, sound] of files) {
      const text = JSON.stringify(odd(sound, luck));
      writeFileSync(join(kept, name), luck.below(3) === 0 ? damaged(text, luck) : text, {
        mode: 0o600,
      });
    }
    const fresh = new TokenStore({ home });
    fresh.keep({ ...row, server: 'another' });
    assert.equal(fresh.find('another', 'u')?.issuer, 'i');
    fresh.verdict('s', 'u');
    const again = new Trust({ home, cwd: trust.project });
    again.isGranted({ kind: 'shell', command: 'x' });
    again.grant({ kind: 'write', path: 'p' });
    again.list();
    const eras = new KeptVerdicts(home);
    eras.set('b', 'handshake');
    eras.get('a');
    const lines = turns.map((turn) => JSON.stringify(luck.below(2) ? odd(turn, luck) : turn));
    writeFileSync(join(session.folder, SESSION), damaged(lines.join('\n'), luck), { mode: 0o600 });
    for (const each of keptConversations(session.folder)) repair(each.turns);
  });
});

// ─── J2: what people and servers write ─────────────────────────────────────────────────────────

test('J2: patterns, rules, commands, forms and schemas are read, or refused in words', async () => {
  const luck = chance();
  const text = () =>
    damaged('mcp__a__b(x) {a,b}/**/[!a-z]*.\\{ts,js} sk-0123456789abcdef0 https://u:p@h', luck);
  const form = {
    required: ['a'],
    properties: {
      a: { type: 'string', title: 'A', format: 'date-time', minLength: 1, default: 'x' },
      b: { type: 'integer', minimum: 1, maximum: 5 },
      c: { enum: ['x', 'y'], enumNames: ['X'] },
      d: { oneOf: [{ const: 1, title: 'one' }] },
      e: { type: 'boolean' },
    },
  };
  for (let n = 0; n < 200 * ROUNDS; n++) {
    refuses(() => globMatcher(text())(text()), Error);
    for (const effect of ['allow', 'ask', 'deny'] as const)
      refuses(() => parseRules(effect, [text()], here, rows), Error);
    commandsOfLine(text());
    takeApart(text());
    matchesText(text(), text());
    new Masker({}).json(odd({ a: { token: text() } }, luck));
    spelledOut({ a: odd({ b: text() }, luck) as Json });
    refuses(
      () => mirrorsOf(odd({ properties: { a: { type: 'string', 'x-mcp-header': 'A' } } }, luck)),
      Error,
    );
    const schema = odd(form, luck);
    const answers = Array.from({ length: 8 }, text);
    const read = async () => answers.pop();
    if (typeof schema === 'object' && schema)
      await fillInForm(read, { lines: [], schema: schema as Json, from: 's' });
  }
  const yaml =
    '---\nname: a\ndescription: >-\n  b c\n\n  d\nm:\n  - "x\\n": [1, {a: b}]\n    y: \'z\'\n---\n';
  const file = { uri: 'skill://a/SKILL.md', digest: `sha256:${'0'.repeat(64)}`, size: 1 };
  const skill = {
    uri: file.uri,
    frontmatter: { name: 'a', description: 'b' },
    resources: [file, { ...file, uri: 'skill://a/b' }],
  };
  for (let n = 0; n < 2000 * ROUNDS; n++) {
    refuses(() => parseFrontmatter(damaged(yaml, luck)), Error);
    refuses(() => checkedSkill(odd(skill, luck)), Error);
  }
  const model = new Rehearsal();
  for (let n = 0; n < 20 * ROUNDS; n++)
    await hear(model, { turns: [{ role: 'user', text: text() }] } as any).catch(() => {});
});

test('D19: rules: of all spellings of all options of real programs, what is let through does no harm', () => {
  const dice = chance();
  const { pick } = dice;
  const some = (list: string[], n: number) =>
    isLong ? list : Array.from({ length: n }, () => pick(list));
  const programs = some(SPELLED_PROGRAMS, 12);
  const gits = some(SPELLED_GIT, 3).map((name) => `git ${name}`);
  const found = harmDone(programs, 40 * ROUNDS, dice);
  assert.deepEqual(found.harm, []);
  assert.ok(found.allowed > 10, `${found.allowed} lines were let through`); // else nothing was tried
  assert.deepEqual(harmDone(gits, 8 * ROUNDS, dice).harm, []);
});
