// Chapter 17: what others wrote, made safe to show; and secrets, taken out of what is written down.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import {
  changes,
  keepSecrets,
  Masker,
  plain,
  printable,
  PrintableStream,
  quoted,
  spelledOut,
  withoutDisguise,
} from '../chapters/17-the-gate/safe-text.ts';
import { assertClean, prepareAgent, UNCLEAN } from './help/agent-with-gate.ts';
import { cleanUp, habit } from './help/basics.ts';

afterEach(cleanUp);

/** Every character there is, in pieces of a size that an error can show. (What lies between is not assigned.) */
function* allOfUnicode(): Generator<string> {
  for (const [from, to] of [
    [0, 0x34000],
    [0xe0000, 0xe1000],
    [0xf0000, 0xf0400],
    [0x10fc00, 0x110000],
  ] as const)
    for (let start = from; start < to; start += 0x400)
      yield Array.from({ length: 0x400 }, (_, n) => String.fromCodePoint(start + n)).join(' ');
}

/** Characters that do something, or that nobody can see, one of each kind. */
const DANGEROUS = {
  ESC: '\x1b',
  BEL: '\x07',
  BS: '\b',
  CR: '\r',
  DEL: '\x7f',
  NUL: '\0',
  CSI: '\x9b',
  OSC: '\x9d',
  DCS: '\x90',
  NEL: '\x85',
  'soft hyphen': '\xad',
  'line separator': '\u2028',
  'paragraph separator': '\u2029',
  RLO: '\u202e',
  RLI: '\u2067',
  ALM: '\u061c',
  'zero width space': '\u200b',
  'word joiner': '\u2060',
  BOM: '\ufeff',
  'reserved, not shown': '\u2065',
  tag: '\u{e0041}',
  'reserved tag': '\u{e0002}',
  'variation selector': '\ufe01',
  'variation selector 17': '\u{e0100}',
  'private use': '\ue000',
  'private plane': '\u{f0000}',
  'Hangul filler': '\u3164',
  'half filler': '\uffa0',
  Braille: '\u2800',
  CGJ: '\u034f',
  'Khmer vowel': '\u17b4',
  'Mongolian separator': '\u180e',
  'half of a pair': '\ud800',
  'other half': '\udc00',
  shorthand: '\u{1bca0}',
};

test('nothing unclean passes printable, quoted, spelledOut and changes: all of Unicode', () => {
  for (const text of allOfUnicode()) {
    assertClean([printable(text), quoted(text), ...changes('', text), ...changes(text, '')]);
    assertClean([...spelledOut({ [text]: text, list: [text], lines: `${text}\n${text}` })]);
    assert.doesNotMatch(plain(text), UNCLEAN);
  }
});

test('each kind is shown as what it is, and nothing else is touched', () => {
  for (const [name, char] of Object.entries(DANGEROUS)) {
    const shown = quoted(`a${char}b`);
    assert.match(shown, /^"a\\(x[0-9a-f]{2}|u\{[0-9a-f]+\})b"$/, name);
    assert.equal(printable(`a${char}b`), shown.slice(1, -1), name);
    assert.equal(plain(`a${char}b`), 'ab', name);
  }
  const innocent = 'Zürich, naïve, 東京, Привет, שלום, مرحبا, 😀, a\tb\nc, ½ × ∑';
  assert.equal(printable(innocent), innocent);
  assert.equal(plain(innocent), innocent);
  assert.equal(quoted('Zürich 東京 Привет 😀'), '"Zürich 東京 Привет 😀"');
});

test('printable: line ends of Windows are line ends, a lone CR is not', () => {
  assert.equal(printable('a\r\nb\rc'), 'a\nb\\x0dc');
});

/** Invisible characters where they are part of what is written. */
const WRITTEN = {
  Persian: 'می\u200cخواهم، کتاب\u200cها، ه\u200d.ش.',
  Hindi: 'क्\u200dष र\u094d\u200dय',
  Sinhala: 'ශ්\u200dරී ලංකා',
  Khmer: 'ភាសា\u200bខ្មែរ',
  Hebrew: 'שלום!\u200f',
  Mongolian: 'ᠠ\u180eᠨ\u180bᠠ',
  Quran: '\u06dd١',
  German: 'Donau\xaddampf\xadschiff',
  Japanese: '葛\u{e0100}城市 辻\u{e0101}',
  mathematics: '∩\ufe00',
  keys: '1\ufe0f\u20e3 #\ufe0f\u20e3',
  hearts: '❤\ufe0f ❤\ufe0e ©\ufe0f',
  family: '👩\u200d👩\u200d👧\u200d👦',
  couple: '👩🏽\u200d❤\ufe0f\u200d💋\u200d👨🏿',
  rainbow: '🏳\ufe0f\u200d🌈',
  mending: '❤\ufe0f\u200d🩹',
  England: '🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}',
};
/** The same characters where they hide something. */
const SMUGGLED = {
  'a joiner between Latin letters': 'pay\u200dpal',
  'a run of joiners': 'م\u200c\u200d\u200c\u200cخ',
  'at the start of a line': 'a\n\u200cb',
  'bytes behind an emoji': '😀\ufe01\u{e0151}\u{e0152}',
  'bytes behind a letter': 'x\u{e0100}y\ufe0f',
  'a run of soft hyphens': 'so\xad\xad\xadft',
  'an invisible word': '🏴\u{e0068}\u{e0069}\u{e007f}',
  'a flag without its end': '🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}',
  'a joiner at the end of an emoji': '👩\u200d',
  'a blank of no width': 'rm\u200b-rf',
  'a mark of direction': 'abc\u200fdef',
  'an override': 'שלום\u202eabc',
  'an isolate': 'שלום\u2067abc\u2069',
  'a digit in disguise': '1\ufe0f2',
};

test('text in every script stays whole; out of their place the same characters can be seen', () => {
  for (const [name, text] of Object.entries(WRITTEN)) {
    assert.equal(printable(text), text, name);
    assert.equal(printable(text, { isPipe: true }), text, name);
    assert.doesNotMatch(
      quoted(text),
      /[\xad\u200b-\u200f\ufe00-\ufe0f\u{e0000}-\u{e0fff}]/u,
      `in a question: ${name}`,
    );
  }
  for (const [name, text] of Object.entries(SMUGGLED))
    assert.match(printable(text), /\\(x|u\{)/, name);
  const family = printable(SMUGGLED['bytes behind an emoji']);
  assert.equal(family, '😀\\u{fe01}\\u{e0151}\\u{e0152}', 'all of them');
});

test('in a pipe joiners, soft hyphens and variants are kept everywhere, and nothing else that is hidden', () => {
  const kept = 'a\u200cb\u200d c\xadd x\ufe0f\ufe01 y\u{e0100}';
  assert.equal(printable(kept, { isPipe: true }), kept);
  for (const char of [
    '\x1b',
    '\x9b',
    '\r',
    '\b',
    '\u202e',
    '\u2066',
    '\u200b',
    '\ufeff',
    '\u{e0041}',
    '\u{e007f}',
  ])
    assert.match(printable(`a${char}b`, { isPipe: true }), /^a\\(x|u\{)/);
});

test('in pieces it is the same as in one, wherever they are cut', () => {
  const texts = [
    ...Object.values(WRITTEN),
    ...Object.values(SMUGGLED),
    'a\r\nb\rc\td',
    `x${'\u200d'.repeat(60)}y`,
  ];
  for (const text of [...texts, texts.join(''), texts.join('\n')])
    for (const isPipe of [false, true])
      for (const size of [1, 2, 3, 7]) {
        const stream = new PrintableStream({ isPipe });
        let shown = '';
        for (let at = 0; at < text.length; at += size)
          shown += stream.take(text.slice(at, at + size));
        assert.equal(shown + stream.end(), printable(text, { isPipe }), JSON.stringify(text));
      }
  const plain = new PrintableStream();
  assert.equal(plain.take('what can be seen'), 'what can be seen', 'is not held back');
});

test('quoted: one line, in quotes that nothing inside can end', () => {
  assert.equal(quoted('a"b\\c\nd\te'), '"a\\"b\\\\c\\nd\\te"');
  assert.equal(
    quoted('\\u{202e}'),
    '"\\\\u{202e}"',
    'what is written out is told from what is escaped',
  );
  assert.notEqual(quoted('\\u{202e}'), quoted('\u202e'));
  assert.equal(
    quoted('x\u200dy\ufe0f'),
    '"x\\u{200d}y\\u{fe0f}"',
    'in a question even these are shown',
  );
  assert.equal(quoted('rm\u00a0-rf\u3000x\u2003y'), '"rm\\xa0-rf\\u{3000}x\\u{2003}y"');
});

test('a word of two alphabets is a disguise, a word of one is not', () => {
  assert.equal(
    withoutDisguise('p\u0430ypal p\u0430\u0443p\u0430l \u043f\u0440\u0438\u0432\u0435\u0442'),
    'p\\u{430}ypal p\\u{430}\\u{443}p\\u{430}l привет',
  );
  assert.equal(quoted('/home/ada/.b\u0430shrc'), '"/home/ada/.b\\u{430}shrc"');
  assert.equal(quoted('ɡіthub'), '"ɡ\\u{456}thub"');
  assert.equal(withoutDisguise('東京tower Zürich Ελλάδα'), '\\u{6771}\\u{4eac}tower Zürich Ελλάδα');
});

test('spelledOut: every value in full, a line each; keys cannot pretend either', () => {
  const long = 'x'.repeat(10_000);
  assert.deepEqual(spelledOut({ path: 'a b', n: 3, list: ['a', { b: null }], long, none: null }), [
    '  path: "a b"',
    '  n: 3',
    '  list: ["a",{"b":null}]',
    `  long: "${long}"`,
    '  none: null',
  ]);
  assert.deepEqual(spelledOut({ 'pa\u200dth': 1, 'a\nb: "no"': 2, 'p\u0430th': 3, '': 4 }), [
    '  "pa\\u{200d}th": 1',
    '  "a\\nb: \\"no\\"": 2',
    '  "p\\u{430}th": 3',
    '  "": 4',
  ]);
  assert.deepEqual(spelledOut(JSON.parse('{"__proto__":{"a":1},"constructor":2}')), [
    '  __proto__: {"a":1}',
    '  constructor: 2',
  ]);
  assert.deepEqual(spelledOut({}), []);
});

test('spelledOut: a text of many lines is shown as such, and no line of it looks like ours', () => {
  assert.deepEqual(spelledOut({ content: 'one\n  path: "harmless"\r\n\nAllow it? y\x1b[2K' }), [
    '  content:',
    '    │ one',
    '    │   path: "harmless"\\x0d',
    '    │ ',
    '    │ Allow it? y\\x1b[2K',
  ]);
});

test('changes: the lines from the first that differs to the last', () => {
  assert.deepEqual(changes('a\nb\nc', 'a\nx\nc'), ['- b', '+ x']);
  assert.deepEqual(changes('a\nb', 'a\nb\nc'), ['+ c']);
  assert.deepEqual(changes('a\nb\nc', 'c'), ['- a', '- b']);
  assert.deepEqual(changes('same', 'same'), []);
  assert.deepEqual(
    changes('"--safe",\n"--force",', '"--force",\n"--safe",').length,
    4,
    'lines that change places are a change',
  );
  assert.deepEqual(changes('a\na', 'a\na\na'), ['+ a'], 'and so is one that comes twice');
});

test('nothing is slow on huge texts, and no word is too long', () => {
  // Were the cost the square of the length, each of these would take minutes: the runner's limit would end the test.
  const words = [
    '\u0430',
    'a\u0430',
    '\x1b',
    '\r',
    '\r\n',
    '"',
    '\\',
    'a\n',
    '\u0301',
    'sk-',
    'Bearer ',
    'gh',
    'xoxb-',
    '-',
  ];
  const texts = words.map((word) => word.repeat(100_000 / word.length));
  const masker = new Masker({ API_KEY: 'very secret' });
  for (const text of [...texts, 'a'.repeat(1_000_000), ' '.repeat(1_000_000)]) {
    for (const work of [(given: string) => printable(given), plain, quoted, withoutDisguise])
      work(text);
    assert.ok(spelledOut({ text }).join('').length >= text.length);
    assert.ok(changes(text, `b${text}`).length > 0);
    masker.text(text);
  }
  assert.equal(quoted('漢'.repeat(1_000_000)).length, 1_000_002);
  const lines = (offset: number) =>
    Array.from({ length: 100_000 }, (_, n) => `line ${n * 2 + offset}`).join('\n');
  assert.equal(changes(lines(0), lines(1)).length, 200_000);
});

test('what a server says of itself is in the system prompt, under its name, and bounded', async () => {
  const { agent, model } = prepareAgent({
    servers: { s: habit(), long: habit('instructs-at-length', '100000') },
    script: ['hi'],
  });
  await agent.chat('go');
  const { system } = model.requests[0]!;
  assert.match(system, /The MCP server "s" says of itself:\n> Be careful\./);
  assert.match(system, /x{2048}… \[97952 characters more\]/);
  assert.ok(system.length < 4500);
});

// ─── Secrets ───

test('the masker takes out the values of variables that sound secret, and no short words', () => {
  const masker = new Masker({
    ANTHROPIC_API_KEY: 'value-of-key',
    GITHUB_TOKEN: 'value-of-token',
    DB_PASSWORD: 'value-of-password',
    AWS_SECRET: 'value-of-secret',
    MY_AUTH: 'value-of-auth',
    GOOGLE_CREDENTIALS: 'value-of-credentials',
    SSH_PASSPHRASE: 'value-of-phrase',
    EMPTY_KEY: '',
    SHORT_KEY: 'yes',
    HOME: '/home/somebody',
  });
  const text =
    'value-of-key value-of-token value-of-password value-of-secret value-of-auth value-of-credentials value-of-phrase yes /home/somebody';
  assert.equal(masker.text(text), '*** *** *** *** *** *** *** yes /home/somebody');
  masker.learn({ LATER_TOKEN: 'learned later', OTHER: 'not secret', N_TOKEN: 12345678 });
  assert.equal(masker.text('learned later, not secret'), '***, not secret');
});

/** Words of ours that others would like to see blanked. */
const OUR_WORDS = [
  'permission',
  'approved:',
  '(disabled)',
  'is not started',
  'you have not approved it',
  'trust.json',
  ' '.repeat(40),
  'needs your permission, and there is nobody to ask.',
  'settings.json',
  '2025-11-25',
  '127.0.0.1',
  '--allow-server',
  '────────────',
  'The MCP server',
  '.mcp-by-hand',
];

test('F7: a project or a server cannot call our own words a secret, and so blank them', () => {
  const masker = new Masker({});
  for (const [n, words] of OUR_WORDS.entries()) {
    keepSecrets('s', words);
    masker.learn({ [`X${n}_TOKEN`]: words, Authorization: `Bearer ${words}` }, 'project');
  }
  const text = `${OUR_WORDS.join(' | ')}${' '.repeat(40)}`;
  assert.equal(masker.text(text), text);
  assert.equal(JSON.parse(masker.json({ text })).text, text);
});

test('F7: but what looks like a secret is one, also behind a word and over several lines', () => {
  const masker = new Masker({});
  masker.learn({ A_TOKEN: 'Basic dXNlcjpwYXNzd29yZA==', B_KEY: 'hunter22-and-more' }, 'project');
  keepSecrets(
    's',
    '-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\n-----END PRIVATE KEY-----\n',
    'eyJhbGciOiJub25lIn0.e30.',
  );
  keepSecrets('s', 'abcdefghijklmnopqrstuvwxyz');
  const text =
    'Basic dXNlcjpwYXNzd29yZA== hunter22-and-more MIIEvQIBADANBgkqhkiG9w0B eyJhbGciOiJub25lIn0.e30.';
  assert.equal(masker.text(`${text} abcdefghijklmnopqrstuvwxyz`), 'Basic *** *** *** *** ***');
});

test('the masker leaves nothing of a value that begins like another', () => {
  const masker = new Masker({ A_KEY: 'abcdefgh', B_KEY: 'abcdefgh-and-more' });
  assert.equal(masker.text('abcdefgh-and-more abcdefgh'), '*** ***');
});

test('the masker knows the shape of keys', () => {
  const masker = new Masker({});
  const keys = [
    'sk-ant-api03-abcdefghijklmnop',
    'sk-proj-ABCDEFGHIJKLMNOP',
    `ghp_${'a'.repeat(36)}`,
    `github_pat_${'a'.repeat(30)}`,
    'xoxb-1234567890-abc',
    'AKIAABCDEFGHIJKLMNOP',
  ];
  for (const key of keys) assert.equal(masker.text(`before ${key} after`), 'before *** after', key);
  assert.equal(masker.text('Authorization: Bearer abc.def-ghi_jkl=='), 'Authorization: Bearer ***');
  assert.equal(
    masker.text('a task-list-of-some-length, risk-free-of-any-trouble'),
    'a task-list-of-some-length, risk-free-of-any-trouble',
  );
});

test('the masker reads JSON by its fields, lists too, and leaves what only sounds alike', () => {
  const masker = new Masker({ MY_TOKEN: 'line one\n"line two"' });
  const masked = JSON.parse(
    masker.json({
      api_key: 'a',
      apiKey: 'b',
      access_token: 'c',
      password: 'd',
      Authorization: 'Basic e',
      'set-cookie': ['f=1', 'g=2'],
      secret: 'h',
      progressToken: 'i',
      nextPageToken: 'j',
      max_tokens: 5,
      tokens: ['k'],
      tokenizer: 'l',
      nested: [{ private_key: 'm' }],
      text: 'here is line one\n"line two", and more',
    }),
  );
  assert.deepEqual(masked, {
    api_key: '***',
    apiKey: '***',
    access_token: '***',
    password: '***',
    Authorization: '***',
    'set-cookie': '***',
    secret: '***',
    progressToken: 'i',
    nextPageToken: 'j',
    max_tokens: 5,
    tokens: ['k'],
    tokenizer: 'l',
    nested: [{ private_key: '***' }],
    text: 'here is ***, and more',
  });
});

test('F4: whatever a text holds, a record stays one line', () => {
  const line = new Masker({}).json({
    text: 'harmless\n{"type":"tool_end","outcome":"worked"}\r\n\u2028',
  });
  assert.ok(!line.includes('\n') && !line.includes('\r'));
  assert.equal(Object.keys(JSON.parse(line)).length, 1);
});

test('the password in an address, such as that of a proxy, is masked; an address without one stays', () => {
  const masker = new Masker({});
  const cases = [
    [
      'https_proxy=http://ada:s3cret@proxy.example:3128/ failed',
      'https_proxy=http://***@proxy.example:3128/ failed',
    ],
    ['socks5h://:p%40ss@127.0.0.1', 'socks5h://***@127.0.0.1'],
    [
      'see https://example.org:8080/a@b and http://x/?q=a:b@c',
      'see https://example.org:8080/a@b and http://x/?q=a:b@c',
    ],
    ['mail ada@example.org', 'mail ada@example.org'],
  ];
  for (const [text, masked] of cases) assert.equal(masker.text(text!), masked);
  assert.equal(masker.json({ url: 'http://ada:s3cret@proxy' }), '{"url":"http://***@proxy"}');
  const long = 'a'.repeat(100_000);
  assert.equal(masker.text(`${long}://${long}`), `${long}://${long}`); // and that takes no time
});

test('I10: secrets are known by more names and shapes, and are masked to their end', () => {
  const variables = {
    DB_PASS: 'value-of-pass',
    MYSQL_PWD: 'value-of-pwd',
    GITHUB_PAT: 'value-of-pat',
    API_KEY_2: 'value-of-2',
    PWD: '/home/somebody',
    OLDPWD: '/home/some-other',
    COMPASS: 'north-by-north',
  };
  const masker = new Masker(variables);
  const shown = Object.values(variables).map((value) => masker.text(value));
  assert.deepEqual(shown, [
    '***',
    '***',
    '***',
    '***',
    '/home/somebody',
    '/home/some-other',
    'north-by-north',
  ]);
  const shapes = [
    'glpat-abcdefghij0123456789',
    `npm_${'a1'.repeat(18)}`,
    `AIza${'b2'.repeat(17)}c`,
    `hf_${'a'.repeat(34)}`,
    'sk_live_abcdefghijklmnop1234',
    'ASIAABCDEFGHIJKLMNOP',
    'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.SflKxwRJSMeKKF2QT4',
  ];
  for (const shape of shapes) assert.equal(masker.text(`<${shape}>`), '<***>', shape);
  assert.equal(masker.text('postgres://u:p@ss@h/db'), 'postgres://***@h/db');
  for (const plain of ['https://h/a@b', 'https://h:80/@scope/pkg', 'mailto:a@b.c', 'ssh://git@h/x'])
    assert.equal(masker.text(plain), plain);
});

test('all that may be secret in an entry is masked where a server repeats it: variables, headers, arguments, the address', () => {
  const masker = new Masker({});
  masker.learnEntry(
    {
      env: { DB_PASSWORD: 'hunter22pass', PLAIN: 'plainvalue' },
      headers: {
        Authorization: 'Basic dXNlcjpwYXNzd29yZA==',
        Cookie: 'sid=abcdef123456; theme=dark',
        'X-Api-Key': 'xkeyvalue123',
      },
      oauth: { clientSecret: 'oauthsecret99' },
      args: [
        '--api-key',
        'argsecret123',
        '--token=tokensecret1',
        '-e',
        'GH_TOKEN=dockersecret',
        '--header',
        'X-Auth-Token: headersecret',
        'https://h.test/?api_key=urlsecretvalue',
        'auth',
        '/home/me/project',
      ],
      url: 'https://h.test/mcp?token=addrsecret12',
    },
    'user',
  );
  const repeated = (text: string) =>
    masker.json({ text: `you sent ${text}, I see` }).includes(text);
  const hidden = [
    'hunter22pass',
    'dXNlcjpwYXNzd29yZA==',
    'abcdef123456',
    'xkeyvalue123',
    'oauthsecret99',
    'argsecret123',
    'tokensecret1',
    'dockersecret',
    'headersecret',
    'urlsecretvalue',
    'addrsecret12',
  ];
  assert.deepEqual(hidden.filter(repeated), []);
  const shown = ['plainvalue', '/home/me/project', 'dark'];
  assert.deepEqual(shown.filter(repeated), shown, 'and no more than that');
});
