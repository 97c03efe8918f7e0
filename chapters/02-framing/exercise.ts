// Judges exercise 2: is every line a message, in whatever pieces its bytes come?

import { randomBytes, randomInt } from 'node:crypto';
import type { Judge } from '../book.ts';

const LF = 0x0a;

export const judge: Judge = async ({ load, see, expect }) => {
  const { LineBuffer, StdioTransport } = await load('mcp.ts');
  /** What `takeWhole` returns for each of these pieces. */
  const given = (...pieces: (string | Buffer)[]): unknown[] => {
    const buffer = new LineBuffer();
    return pieces.map((piece) => buffer.takeWhole(Buffer.from(piece as string)));
  };
  const shown = (parts: unknown[]) =>
    parts.map((part) => (Buffer.isBuffer(part) ? `${part}` : ['not a Buffer', part]));
  const is =
    (...wanted: unknown[]) =>
    (came: unknown) =>
      Array.isArray(came) && JSON.stringify(came) === JSON.stringify(wanted);
  const word = () => `w${randomBytes(randomInt(2, 9)).toString('hex')}`;
  const [one, two, three, four] = [word(), word(), word(), word()];
  const inWords = (parts: string[]) => parts.map((part) => JSON.stringify(part)).join(', then ');
  /** Each piece, and what is to be returned for it. */
  const pieces = (what: string, ...rows: [string | Buffer, string][]) => {
    const wanted = rows.map(([, returned]) => returned);
    return expect(
      what,
      inWords(wanted),
      Promise.resolve().then(() => shown(given(...rows.map(([piece]) => piece)))),
      is(...wanted),
    );
  };

  // ── Rule 1: what is returned ──
  await pieces('a line in one piece is returned, with its line feed', [`${one}\n`, `${one}\n`]);
  await pieces('all whole lines of a piece are returned, at once and in order', [
    `${one}\n${two}\n\n${three}\n`,
    `${one}\n${two}\n\n${three}\n`,
  ]);
  const none = given(one)[0];
  await expect(
    'if no line is whole, an empty buffer is returned',
    'a Buffer of 0 bytes',
    Buffer.isBuffer(none) ? `a Buffer of ${none.length} bytes` : none,
    /^a Buffer of 0 bytes$/,
  );
  await pieces('an empty piece brings nothing', ['', ''], [`${one}\n`, `${one}\n`], ['', '']);

  // ── Rule 3: what is left over ──
  await pieces(
    'a line in pieces is returned with the last of them',
    [one, ''],
    [two, ''],
    [`${three}\n`, `${one}${two}${three}\n`],
  );
  await pieces(
    'what is behind the last line feed is kept, and put before the next piece',
    [`${one}\n${two}`, `${one}\n`],
    [`${three}\n`, `${two}${three}\n`],
  );
  await pieces(
    'what was returned is not returned again',
    [`${one}\n${two}`, `${one}\n`],
    ['\n', `${two}\n`],
    ['\n', '\n'],
    [`${three}\n`, `${three}\n`],
  );
  await expect(
    'however the bytes are cut, nothing is lost, late or there twice',
    'after each piece, all that has come up to the last line feed',
    everyCut(LineBuffer, 'a\n\nbc\nd\n\ne'),
    /^all is well$/,
  );

  // ── Rule 2: when a line is whole ──
  const json = `{"jsonrpc":"2.0","id":${randomInt(1e6)},"result":{}}`;
  await pieces(
    'without its line feed no line is whole, though it may be JSON',
    [json, ''],
    ['\n', `${json}\n`],
  );
  await pieces('what looks whole may go on', ['4', ''], ['2\n', '42\n']);
  await expect(
    'no other byte ends a line',
    'for each byte but 0x0A: an empty buffer, and then, with the line feed, the line',
    otherBytes(LineBuffer),
    /^all is well$/,
  );
  const odd = `${one}\u2028${two}\u2029${three}\u0085${four}`;
  await pieces(
    'no other character ends a line',
    [odd, ''],
    ['\r', ''],
    [`\n${one}\r`, `${odd}\r\n`],
    ['\n', `${one}\r\n`],
  );

  // ── Rule 3, once more: bytes ──
  await expect(
    'a cut inside a character does no harm: bytes stay bytes',
    'the same bytes, though each came alone, and not all of them are text',
    inSingleBytes(LineBuffer),
    /^all is well$/,
  );
  await expect(
    'bytes that wait are not joined again with every piece',
    'at most 10 MB copied for a line of 1 MB that comes in 1000 pieces',
    copied(() => {
      const long = new LineBuffer();
      for (let n = 0; n < 1000; n++) long.takeWhole(Buffer.alloc(1000, 'x'));
      long.takeWhole(Buffer.from('\n'));
    }),
    (came) => Number.parseInt(came, 10) <= 10,
  );
  const [here, there] = [new LineBuffer(), new LineBuffer()];
  here.takeWhole(Buffer.from(one));
  await expect(
    'each connection keeps its own rest',
    `"${two}\\n" from another server`,
    shown([there.takeWhole(Buffer.from(`${two}\n`))]),
    is(`${two}\n`),
  );

  // ── And all of it in the pipe ──
  const size = 3_000_000 + randomInt(1_000_000);
  const config = { command: 'node', args: ['fixtures/habits.mjs'] };
  const server = new StdioTransport('demo', config, 2 ** 26);
  const big = async () => {
    const came = new Promise<any>((done) => {
      const message = (each: unknown) => (see('in', each), done(each));
      const params = { name: 'big', arguments: { bytes: size } };
      void server
        .start({ message, closed: () => {} })
        .then(() => server.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }));
    });
    return (await came)?.result?.content[0].text.length ?? 'a piece that is not a message';
  };
  await expect(
    'a big message of a real server comes whole',
    `one message with ${size} characters of text`,
    big(),
    (came) => came === size,
  );
};

/** Bytes that do not end a line, each alone, then followed by the one that does. */
function otherBytes(LineBuffer: any): string {
  for (let byte = 0; byte < 256; byte++) {
    if (byte === LF) continue;
    const buffer = new LineBuffer();
    const parts = [[byte], [LF]].map((bytes) => buffer.takeWhole(Buffer.from(bytes)));
    const isRight = parts[0]?.length === 0 && parts[1]?.at(-1) === LF;
    if (!isRight)
      return `of the byte 0x${byte.toString(16)} and then 0x0a: ${JSON.stringify(parts.map((part) => [...part]))}`;
  }
  return 'all is well';
}

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

/** Text, and bytes that are none, one by one. */
function inSingleBytes(LineBuffer: any): string {
  const bytes = Buffer.concat([Buffer.from('Zürich €\r\n'), randomBytes(2000), Buffer.from('\n')]);
  const buffer = new LineBuffer();
  const parts = Array.from(bytes, (byte) => buffer.takeWhole(Buffer.from([byte])));
  const came = Buffer.concat(parts);
  if (came.equals(bytes)) return 'all is well';
  const at = bytes.findIndex((byte, n) => byte !== came[n]);
  return `${came.length} of ${bytes.length} bytes; the first that differs is number ${at}: ${came[at]}, not ${bytes[at]}`;
}

/** How much has been copied meanwhile, by whatever copies bytes. */
function copied(work: () => void): string {
  let bytes = 0;
  const undo: (() => void)[] = [];
  const watch = (owner: any, name: string, sizeOf: (args: any[]) => number) => {
    const original = owner[name];
    owner[name] = function (this: unknown, ...args: unknown[]) {
      bytes += sizeOf(args);
      return original.apply(this, args);
    };
    undo.push(() => void (owner[name] = original));
  };
  const lengthOf = (value: any) => (typeof value === 'object' ? (value?.length ?? 0) : 0);
  watch(Buffer, 'concat', ([list]) =>
    list.reduce((sum: number, each: any) => sum + each.length, 0),
  );
  watch(Buffer, 'from', ([from]) => lengthOf(from));
  watch(Buffer.prototype, 'copy', ([target]) => lengthOf(target));
  watch(Uint8Array.prototype, 'set', ([from]) => lengthOf(from));
  try {
    work();
  } finally {
    for (const each of undo) each();
  }
  return `${Math.ceil(bytes / 1e6)} MB copied`;
}
