// Judges exercise 2: is every line a message, in whatever pieces its bytes come?

import type { Judge } from '../book.ts';

export const judge: Judge = async ({ load, see, expect }) => {
  const { StdioTransport } = await load('mcp.ts');
  /** What a server says that writes these pieces, a tenth of a second apart. Waits for so many messages, but not for ever. */
  const heard = async (args: string[], count: number, question?: object) => {
    const server = new StdioTransport('demo', { command: 'node', args }, 2 ** 26);
    const messages: any[] = [];
    await server.start({ message: (message: unknown) => (see('in', message), messages.push(message)), closed: () => {} });
    if (question) await server.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: question });
    for (let turn = 0; turn < 130 && messages.length < count; turn++) await new Promise((done) => setTimeout(done, 20));
    await new Promise((done) => setTimeout(done, 150)); // one too many would come now
    return messages;
  };
  const pieces = (...parts: (string | Buffer)[]) => {
    const encoded = JSON.stringify(parts.map((part) => Buffer.from(part as string).toString('base64')));
    const pause = 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100)';
    return ['-e', `for (const part of ${encoded}) fs.writeSync(1, Buffer.from(part, 'base64')), ${pause}`];
  };
  const hello = (id: number, more = '') => `{"jsonrpc":"2.0","id":${id},"result":{"text":"hello${more}"}}`;
  const ids = (messages: any[]) => (messages.some((message) => message?.id === undefined) ? messages : messages.map(({ id }) => id));
  const is = (...wanted: number[]) => (came: unknown) => `${came}` === `${wanted}`;

  await expect('a line in one piece is a message', 'the message with the id 1', heard(pieces(`${hello(1)}\n`), 1).then(ids), is(1));
  await expect('a line in two pieces is one message', 'the message with the id 1, whole, and once',
    heard(pieces(hello(1).slice(0, 20), `${hello(1).slice(20)}\n`), 1).then(ids), is(1));
  await expect('a line ends at its line feed, also when that comes alone', 'the messages with the ids 1 and 2, each once',
    heard(pieces(hello(1), '\n', hello(2), '\n'), 2).then(ids), is(1, 2));
  const [first, fourth] = [hello(1), hello(4)];
  const mixed = pieces(first.slice(0, 9), `${first.slice(9)}\n${hello(2)}\n${hello(3)}\n${fourth.slice(0, 9)}`, fourth.slice(9), `\n${hello(5)}\n`);
  await expect('one piece can hold the end of a line, whole lines, and a beginning', 'the messages with the ids 1, 2, 3, 4 and 5, in this order',
    heard(mixed, 5).then(ids), is(1, 2, 3, 4, 5));
  const bytes = Buffer.from(`${hello(1, ', Zürich €')}\n`);
  const [u, euro] = [bytes.indexOf('ü') + 1, bytes.indexOf('€') + 2];
  await expect('a cut inside a character does no harm', 'the text "hello, Zürich €"',
    heard(pieces(bytes.subarray(0, u), bytes.subarray(u, euro), bytes.subarray(euro)), 1).then(([message]) => message?.result?.text ?? message), /^hello, Zürich €$/);
  await expect('only LF ends a line', 'one message, with the U+2028 in its text',
    heard(pieces(`${hello(1, '\u2028')}\r\n`), 1).then((messages) => messages.map((message) => message?.result?.text ?? message)), (came) => came?.length === 1 && came[0] === 'hello\u2028');
  const big = heard(['fixtures/habits.mjs'], 1, { name: 'big', arguments: { bytes: 4e6 } });
  await expect('a big message comes whole', 'one message with 4000000 characters of text',
    big.then((messages) => messages[0]?.result?.content[0].text.length ?? `${messages.length} pieces that are no message`), (came) => came === 4e6);
};
