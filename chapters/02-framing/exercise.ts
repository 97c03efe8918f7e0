// Judges exercise 2: is every line a message, in whatever pieces its bytes come?

import type { Judge } from '../book.ts';

export const judge: Judge = async ({ load, see, expect }) => {
  const { LineBuffer, StdioTransport } = await load('mcp.ts');
  /** What we hear of these pieces, had a server written them. */
  const heard = async (...pieces: (string | Buffer)[]) => {
    const messages: any[] = [];
    const server = new StdioTransport('demo', { command: 'node' }, 2 ** 26);
    server.events = {
      message: (message: unknown) => (see('in', message), messages.push(message)),
      closed: () => {},
    };
    for (const piece of pieces) server.read(Buffer.from(piece as string));
    return messages;
  };
  const hello = (id: number, more = '') =>
    `{"jsonrpc":"2.0","id":${id},"result":{"text":"hello${more}"}}`;
  const ids = (messages: any[]) =>
    messages.some((message) => message?.id === undefined) ? messages : messages.map(({ id }) => id);
  const is =
    (...wanted: unknown[]) =>
    (came: unknown) =>
      Array.isArray(came) && JSON.stringify(came) === JSON.stringify(wanted);

  await expect(
    'a line in one piece is a message',
    'the message with the id 1',
    heard(`${hello(1)}\n`).then(ids),
    is(1),
  );
  await expect(
    'a line in two pieces is one message',
    'the message with the id 1, whole, and once',
    heard(hello(1).slice(0, 20), `${hello(1).slice(20)}\n`).then(ids),
    is(1),
  );
  await expect(
    'without its line feed nothing is a message, though it may be JSON',
    'no message: its line feed has not come',
    heard(hello(1)),
    is(),
  );
  await expect(
    'what looks whole may go on',
    'one message, 42, of the pieces "4" and "2" and a line feed',
    heard('4', '2\n'),
    is(42),
  );
  await expect(
    'a line ends at its line feed, also when that comes alone',
    'the messages with the ids 1 and 2, each once',
    heard(hello(1), '\n', hello(2), '\n').then(ids),
    is(1, 2),
  );
  await expect(
    'all whole lines of a piece are messages',
    'the messages with the ids 1, 2 and 3, without waiting for more',
    heard(`${hello(1)}\n${hello(2)}\n${hello(3)}\n`).then(ids),
    is(1, 2, 3),
  );
  const [first, fourth] = [hello(1), hello(4)];
  await expect(
    'one piece can hold the end of a line, whole lines, and a beginning',
    'the messages with the ids 1, 2, 3, 4 and 5, in this order',
    heard(
      first.slice(0, 9),
      `${first.slice(9)}\n${hello(2)}\n${hello(3)}\n${fourth.slice(0, 9)}`,
      fourth.slice(9),
      `\n${hello(5)}\n`,
    ).then(ids),
    is(1, 2, 3, 4, 5),
  );
  const bytes = Buffer.from(`${hello(1, ', Zürich €')}\n`);
  const alone = Array.from(bytes, (byte) => Buffer.from([byte]));
  await expect(
    'a cut inside a character does no harm',
    'the text "hello, Zürich €", though every byte came alone',
    heard(...alone).then(([message]) => message?.result?.text ?? message),
    /^hello, Zürich €$/,
  );
  const texts = (messages: any[]) => messages.map((message) => message?.result?.text ?? message);
  await expect(
    'only LF ends a line',
    'one message, with the U+2028 in its text',
    heard(`${hello(1, '\u2028')}\r\n`).then(texts),
    is('hello\u2028'),
  );
  await expect(
    'CR alone ends nothing',
    'no message before the LF, and then one, with a CR between two of its keys',
    heard(`${hello(1)}\r`, `\n${hello(2).replace(',', ',\r')}\n`, `${hello(3)}\r`).then(ids),
    is(1, 2),
  );
  await expect(
    'each connection keeps its own rest',
    'the message with the id 2, from another server',
    Promise.all([heard(hello(1)), heard(`${hello(2)}\n`)]).then(([, two]) => ids(two)),
    is(2),
  );

  const buffer = new LineBuffer();
  const given = [
    buffer.takeWhole(Buffer.from('one\ntwo\nthr')),
    buffer.takeWhole(Buffer.from('ee')),
    buffer.takeWhole(Buffer.from('\n')),
  ];
  await expect(
    'what is returned are lines with their line feeds, or an empty buffer',
    '"one\\ntwo\\n", then "", then "three\\n"',
    given.map((part) => `${part}`),
    is('one\ntwo\n', '', 'three\n'),
  );
  await expect(
    'however the bytes are cut, nothing is lost, late or there twice',
    'after each piece, all that has come up to the last line feed',
    everyCut(LineBuffer, 'a\n\nbc\nd\n\ne'),
    /^all is well$/,
  );
  await expect(
    'bytes that wait are not joined again with every piece',
    'at most 20 MB copied for a line of 1 MB that comes in 1000 pieces',
    copied(() => {
      const long = new LineBuffer();
      for (let n = 0; n < 1000; n++) long.takeWhole(Buffer.alloc(1000, 'x'));
      long.takeWhole(Buffer.from('\n'));
    }),
    (came) => Number.parseInt(came, 10) <= 20,
  );

  const server = new StdioTransport(
    'demo',
    { command: 'node', args: ['fixtures/habits.mjs'] },
    2 ** 26,
  );
  const big = async () => {
    const came = new Promise<any>(
      (message) =>
        void server.start({ message, closed: () => {} }).then(() =>
          server.send({
            jsonrpc: '2.0',
            id: 1,
            method: 'tools/call',
            params: { name: 'big', arguments: { bytes: 4e6 } },
          }),
        ),
    );
    return (await came)?.result?.content[0].text.length ?? 'a piece that is not a message';
  };
  await expect(
    'a big message of a real server comes whole',
    'one message with 4000000 characters of text',
    big(),
    (came) => came === 4e6,
  );
};

/** Cuts the text in every way there is, and tells the first that goes wrong. */
function everyCut(LineBuffer: any, text: string): string {
  for (let cuts = 0; cuts < 2 ** (text.length - 1); cuts++) {
    const pieces = [''];
    for (const [at, letter] of [...text].entries()) {
      pieces[pieces.length - 1] += letter;
      if (cuts & (1 << at)) pieces.push('');
    }
    const buffer = new LineBuffer();
    let given = '';
    let taken = '';
    for (const piece of pieces) {
      given += piece;
      taken += buffer.takeWhole(Buffer.from(piece));
      const wanted = given.slice(0, given.lastIndexOf('\n') + 1);
      if (taken === wanted) continue;
      return `of the pieces ${JSON.stringify(pieces)}, after ${JSON.stringify(piece)}: ${JSON.stringify(taken)}, and not ${JSON.stringify(wanted)}`;
    }
  }
  return 'all is well';
}

/** How much Buffer.concat has copied meanwhile. */
function copied(work: () => void): string {
  const { concat } = Buffer;
  let bytes = 0;
  Buffer.concat = ((list: Uint8Array[], ...more: []) => {
    bytes += list.reduce((sum, { length }) => sum + length, 0);
    return concat.call(Buffer, list, ...more);
  }) as typeof concat;
  try {
    work();
  } finally {
    Buffer.concat = concat;
  }
  return `${Math.ceil(bytes / 1e6)} MB copied`;
}
