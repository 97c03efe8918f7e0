// Judges exercise 18: which events does a stream hold? "On the wire" are the pieces of the stream, and the events.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Judge } from '../book.ts';

export const judge: Judge = async ({ load, see, expect }) => {
  const { readEvents } = await load('chapters/18-minds/sse.ts');
  const read = async (
    body: AsyncIterable<Uint8Array>,
    options?: { maxEventBytes?: number; latest?: object },
  ) => {
    const events: unknown[] = [];
    for await (const event of readEvents(body, options)) {
      see('out', event);
      events.push(event);
    }
    return JSON.stringify(events);
  };
  async function* pieces(...texts: (string | Uint8Array)[]) {
    for (const text of texts) {
      see('in', typeof text === 'string' ? text : Buffer.from(text).toString('latin1'));
      yield Buffer.from(text as string);
    }
  }
  const holds = (what: string, stream: string, ...wanted: object[]) =>
    expect(
      `${what}: ${JSON.stringify(stream)}`,
      JSON.stringify(wanted),
      read(pieces(stream)),
      (came) => came === JSON.stringify(wanted),
    );
  const message = (data: string) => ({ event: 'message', data });

  await holds('an event ends at an empty line', 'event: greeting\ndata: hello\n\n', {
    event: 'greeting',
    data: 'hello',
  });
  await holds('without a name it is a "message"', 'data: hello\n\n', message('hello'));
  await holds(
    'a name counts for one event',
    'event: a\ndata: 1\n\ndata: 2\n\n',
    { event: 'a', data: '1' },
    message('2'),
  );
  await holds(
    'several lines of data are joined by LF',
    'data: one\ndata: two\ndata:\ndata: four\n\n',
    message('one\ntwo\n\nfour'),
  );
  await holds(
    'one space behind the colon is not part of the value',
    'data:a\n\ndata: a\n\ndata:  a \n\n',
    message('a'),
    message('a'),
    message(' a '),
  );
  await holds(
    'without data there is no event, and its name is forgotten',
    'event: ping\n\n\n\ndata: 1\n\n',
    message('1'),
  );
  await holds(
    'what begins with a colon is a comment',
    ': are you there?\n\ndata: yes\n: still?\ndata: yes\n\n',
    message('yes\nyes'),
  );
  await holds('an empty line of data is data', 'data\n\n', message(''));
  await holds(
    'fields that nobody knows are skipped',
    'colour: red\ndata: 1\ndatax: 2\nDATA: 3\n\n',
    message('1'),
  );
  await holds(
    'lines may end in CR LF, or in CR',
    'data: 1\r\n\r\ndata: 2\r\r',
    message('1'),
    message('2'),
  );
  await holds('half an event at the end is none', 'data: 1\n\ndata: {"half":', message('1'));
  await holds('not even if only its empty line is missing', 'data: 1\n\ndata: 2\n', message('1'));
  await holds(
    'an id stays in force for the events after it',
    'id: 7\ndata: 1\n\ndata: 2\n\nid: 8\ndata: 3\n\n',
    { ...message('1'), id: '7' },
    { ...message('2'), id: '7' },
    { ...message('3'), id: '8' },
  );
  await holds(
    'so does retry, which is a number; else it is skipped',
    'retry: 100\ndata: 1\n\nretry: soon\ndata: 2\n\n',
    { ...message('1'), retry: 100 },
    { ...message('2'), retry: 100 },
  );
  await holds('a retry of 0 is a number, too', 'retry: 0\ndata: 1\n\n', {
    ...message('1'),
    retry: 0,
  });
  for (const odd of ['-5', '1.5', '1e3', '', '0x10'])
    await holds(
      'a retry that is not made of digits is skipped',
      `retry: 100\nretry: ${odd}\ndata: 1\n\n`,
      { ...message('1'), retry: 100 },
    );
  await holds(
    'an empty id is an id',
    'id: 7\ndata: 1\n\nid\ndata: 2\n\n',
    { ...message('1'), id: '7' },
    { ...message('2'), id: '' },
  );
  await holds(
    'an id with a NUL in it is skipped, and the one before it stays',
    'id: 7\ndata: 1\n\nid: a\0b\ndata: 2\n\n',
    { ...message('1'), id: '7' },
    { ...message('2'), id: '7' },
  );
  await holds('an id with a NUL in it is skipped', 'id: a\0b\ndata: 1\n\n', message('1'));
  const latest: { id?: string; retry?: number } = {};
  const kept = read(pieces('id: 9\nretry: 50\n\n'), { latest }).then(
    (events) => `${events} id ${latest.id}, retry ${latest.retry}`,
  );
  await expect(
    'who passes `latest` finds both there, also of an event without data: "id: 9\\nretry: 50\\n\\n"',
    '[] id 9, retry 50',
    kept,
    (came) => came === '[] id 9, retry 50',
  );
  const cutOff = read(pieces('id: 10\ndata: half'), { latest }).then(() => `id ${latest.id}`);
  await expect(
    'the id of an event that was cut off does not count: "id: 10\\ndata: half"',
    'id 9, as before',
    cutOff,
    (came) => came === 'id 9',
  );

  const early = read(pieces('retry: 70\ndata: half'), { latest }).then(
    () => `retry ${latest.retry}`,
  );
  await expect(
    'a retry counts at once, also of an event that was cut off: "retry: 70\\ndata: half"',
    'retry 70',
    early,
    (came) => came === 'retry 70',
  );

  const bytes = Buffer.from('event: a\r\ndata: Voilà\r\ndata: 42\r\n\r\n');
  await expect(
    'a stream may be cut anywhere, here behind each byte',
    '[{"event":"a","data":"Voilà\\n42"}]',
    read(pieces(...[...bytes].map((byte) => Uint8Array.of(byte)))),
    (came) => came === '[{"event":"a","data":"Voilà\\n42"}]',
  );

  async function* slowly(isSeen: Promise<unknown>) {
    yield* pieces('data: first\n\n');
    await isSeen; // nothing more comes before somebody has the first
    yield* pieces('data: second\n\n');
  }
  const inTime = async () => {
    let tell = (_: unknown) => {};
    const events = readEvents(slowly(new Promise((done) => (tell = done))));
    const first = await events.next();
    tell(first);
    return `${first.value?.data}, ${(await events.next()).value?.data}`;
  };
  setInterval(() => {}, 1000); // so that a reader which waits for ever is seen to do so
  await expect(
    'an event is there as soon as its empty line is',
    'first, second',
    inTime(),
    /^first, second$/,
  );

  async function* endless() {
    for (let n = 0; n < 100_000; n++) yield Buffer.from(`data: ${'x'.repeat(90)}\n`);
  }
  await expect(
    'an event that never ends is given up',
    'a RangeError, with maxEventBytes: 1000',
    read(endless(), { maxEventBytes: 1000 }),
    (came) => came instanceof RangeError,
  );
  const wide = read(pieces(`data: ${'à'.repeat(600)}\n\n`), { maxEventBytes: 1000 });
  await expect(
    'bytes are counted, not letters: 600 letters à',
    'a RangeError, with maxEventBytes: 1000',
    wide,
    (came) => came instanceof RangeError,
  );
  const two = read(pieces(`data: ${'x'.repeat(60)}\n`, `data: ${'x'.repeat(60)}\n\n`), {
    maxEventBytes: 100,
  });
  await expect(
    'the limit is for all lines of an event together',
    'a RangeError, with two lines of 66 bytes and maxEventBytes: 100',
    two,
    (came) => came instanceof RangeError,
  );
  const full = read(pieces(`data: ${'x'.repeat(94)}\n\n`), { maxEventBytes: 100 }).then(
    (events) => JSON.parse(events).length,
  );
  await expect(
    'exactly maxEventBytes are allowed',
    'one event, with a line of 100 bytes and maxEventBytes: 100',
    full,
    (came) => came === 1,
  );
  const over = read(pieces(`data: ${'x'.repeat(95)}\n\n`), { maxEventBytes: 100 });
  await expect(
    'and not one more: the line counts as it came, with its "data: "',
    'a RangeError, with a line of 101 bytes and maxEventBytes: 100',
    over,
    (came) => came instanceof RangeError,
  );
  const both = read(pieces(`data: ${'x'.repeat(44)}\n`, `data: ${'x'.repeat(45)}\n\n`), {
    maxEventBytes: 100,
  });
  await expect(
    'with the "data: " of each line',
    'a RangeError, with lines of 50 and 51 bytes and maxEventBytes: 100',
    both,
    (came) => came instanceof RangeError,
  );
  const chatty = read(pieces(`: ${'x'.repeat(200)}\ncolour: ${'x'.repeat(200)}\ndata: 1\n\n`), {
    maxEventBytes: 100,
  });
  await expect(
    'only lines of data count',
    'one event, with a comment and an unknown field of 200 bytes and maxEventBytes: 100',
    chatty,
    (came) => came === JSON.stringify([message('1')]),
  );
  const oneByOne = async () => {
    const latest: { id?: string } = {};
    const stream = `id: 1\ndata: first\n\nid: 2\ndata: second\n\ndata: ${'x'.repeat(200)}\n\n`;
    const came: string[] = [];
    try {
      for await (const event of readEvents(pieces(stream), { maxEventBytes: 100, latest }))
        came.push(`${event.data} (latest.id ${latest.id})`);
    } catch (error) {
      came.push((error as Error).name);
    }
    return came.join(', ');
  };
  const inTurn = 'first (latest.id 1), second (latest.id 2), RangeError';
  await expect(
    'each event is handed over at its empty line, before the rest of the chunk is read',
    `of one chunk: ${inTurn}`,
    oneByOne(),
    (came) => came === inTurn,
  );
  const many = Array.from({ length: 50 }, () => `data: ${'x'.repeat(90)}\n\n`);
  await expect(
    'the limit is for one event, not for the stream',
    '50 events, with maxEventBytes: 1000',
    read(pieces(...many), { maxEventBytes: 1000 }),
    (came) => typeof came === 'string' && JSON.parse(came).length === 50,
  );

  const { chooseModel } = await load('agent.ts');
  const lines = [
    '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}',
    '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"It is 42."}}',
    '{"type":"message_stop"}',
  ];
  const server = createServer((request, response) => {
    request.resume();
    for (const line of lines) see('in', line);
    response
      .writeHead(200, { 'content-type': 'text/event-stream' })
      .end(
        lines
          .map((line) => `event: ${JSON.parse(line).type}\ndata: ${line}\n\n`)
          .join(': ping\n\n'),
      );
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const answer = async () => {
    const model = chooseModel('anthropic/exercise', {
      baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      env: { ANTHROPIC_API_KEY: 'no-real-key' },
    });
    for await (const event of model.query({
      system: '',
      turns: [{ role: 'user', text: 'How much?' }],
      tools: [],
      signal: AbortSignal.timeout(2500),
    }))
      if (event.type === 'end') return event.turn.text;
  };
  await expect("a model's answer arrives", 'It is 42.', answer(), /^It is 42\.$/);
};
