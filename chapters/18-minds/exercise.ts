// Judges exercise 18: which events does a stream hold? "On the wire" are the pieces of the stream, and the events.
// Texts, names and sizes are different in every run.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Judge } from '../book.ts';

type Event = { event?: string; data?: string; id?: string; retry?: number };
type Options = { maxEventBytes?: number; latest?: { id?: string; retry?: number } };

/** In which order the fields of an event are written is a matter of taste. */
const plainly = (events: Event[]) =>
  JSON.stringify(events.map(({ event, data, id, retry }) => ({ event, data, id, retry })));

export const judge: Judge = async ({ load, see, expect }) => {
  const { readEvents } = await load('chapters/18-minds/sse.ts');
  const word = () => Math.random().toString(36).slice(2, 8);
  const count = (least: number, most: number) =>
    least + Math.floor(Math.random() * (most - least + 1));
  async function* pieces(...texts: (string | Uint8Array)[]) {
    for (const text of texts) {
      see('in', typeof text === 'string' ? text : Buffer.from(text).toString('latin1'));
      yield Buffer.from(text as string);
    }
  }
  const read = async (body: AsyncIterable<Uint8Array>, options?: Options) => {
    const events: Event[] = [];
    for await (const event of readEvents(body, options)) {
      see('out', event);
      events.push(event);
    }
    return plainly(events);
  };
  const whole = (stream: (string | Uint8Array)[]) =>
    Buffer.concat(stream.map((each) => Buffer.from(each as string))).toString();
  const given = (
    what: string,
    stream: (string | Uint8Array)[],
    options: Options,
    wanted: Event[],
  ) =>
    expect(
      what,
      `${plainly(wanted)}, of ${JSON.stringify(whole(stream))}`,
      read(pieces(...stream), options),
      (came) => came === plainly(wanted),
    );
  const holds = (what: string, stream: string, ...wanted: Event[]) =>
    given(what, [stream], {}, wanted);
  const message = (data: string): Event => ({ event: 'message', data });
  const [one, two, three] = [word(), word(), word()] as const;

  // ── 1: where an event ends ──
  await holds('an event ends at an empty line', `event: ${one}\ndata: ${two}\n\n`, {
    event: one,
    data: two,
  });
  const name = word();
  const called = (data: string): Event => ({ event: name, data });
  await holds('and not at its data', `data: ${one}\nevent: ${name}\n\n`, called(one));
  await holds(
    'half an event at the end is none',
    `event: ${name}\ndata: ${one}\n\nevent: ${name}\ndata: {"half":`,
    called(one),
  );
  await holds(
    'not even if only its empty line is missing',
    `event: ${name}\ndata: ${one}\n\nevent: ${name}\ndata: ${two}\n`,
    called(one),
  );
  await holds('without data there is no event', 'event: ping\n\n\n\n: hm\n\n');
  await holds('an empty line of data is data', `event: ${name}\ndata\n\n`, called(''));
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
  // ── 2: what is in it ──
  await holds('without a name it is a "message"', `data: ${one}\n\n`, message(one));
  await holds('an empty name is none', `event:\ndata: ${one}\n\n`, message(one));
  await holds(
    'a name counts for one event',
    `event: ${three}\ndata: ${one}\n\ndata: ${two}\n\n`,
    { event: three, data: one },
    message(two),
  );
  await holds(
    'a name is forgotten with its event, also if that has no data',
    `event: ping\n\ndata: ${one}\n\n`,
    message(one),
  );
  await holds(
    'of two names the last counts, also behind the data',
    `event: ${one}\ndata: ${two}\nevent: ${three}\n\n`,
    { event: three, data: two },
  );
  await holds(
    'several lines of data are joined by LF',
    `data: ${one}\ndata: ${two}\ndata:\ndata: ${three}\n\n`,
    message(`${one}\n${two}\n\n${three}`),
  );
  await holds(
    'empty lines of data count, also the first and the last of an event',
    `data:\ndata: ${one}\ndata:\n\ndata\ndata\n\n`,
    message(`\n${one}\n`),
    message('\n'),
  );
  await holds(
    'lines of data are joined, whatever is between them',
    `data: ${one}\n: hm\nother: x\ndata: ${two}\n\n`,
    message(`${one}\n${two}`),
  );
  await holds(
    'a line of blanks is not an empty line',
    `event: ${name}\n \ndata: ${one}\n\n`,
    called(one),
  );
  await holds(
    'one space behind the colon is not part of the value',
    'data:a\n\ndata: a\n\ndata:  a \n\n',
    message('a'),
    message('a'),
    message(' a '),
  );
  await holds(
    'what begins with a colon is a comment',
    `: are you there?\n\ndata: ${one}\n: still?\ndata: ${two}\n\n`,
    message(`${one}\n${two}`),
  );
  await holds(
    'fields that nobody knows are skipped, also names in large letters',
    `colour: red\ndata: ${one}\ndatax: 2\nDATA: 3\nEvent: x\nID: 4\nRetry: 5\n\n`,
    message(one),
  );
  await holds('a field that only begins like data is none', 'datax: 1\n\nxdata: 2\n\n');
  await holds(
    'and fields with the name of something that every object has, or with a blank in it',
    `constructor: x\n__proto__: x\ntoString: x\ndata : x\n data: x\ndata: ${one}\n\n`,
    message(one),
  );
  await holds(
    'a NUL in data is a character like any other',
    `data: a\0${one}\n\n`,
    message(`a\0${one}`),
  );
  await holds(
    'lines may end in CR LF, or in CR',
    'data: 1\r\n\r\ndata: 2\r\r',
    message('1'),
    message('2'),
  );

  async function* endless() {
    for (let n = 0; n < 200; n++) yield Buffer.from(`data: ${'x'.repeat(90)}\n`);
  }
  const isTooLarge = (came: unknown) => came instanceof RangeError;
  await expect(
    'an event that never ends is given up',
    'a RangeError, with maxEventBytes: 1000',
    read(endless(), { maxEventBytes: 1000 }),
    isTooLarge,
  );
  await expect(
    'bytes are counted, not letters: 600 letters à',
    'a RangeError, with maxEventBytes: 1000',
    read(pieces(`data: ${'à'.repeat(600)}\n\n`), { maxEventBytes: 1000 }),
    isTooLarge,
  );
  await expect(
    'the limit is for all lines of an event together',
    'a RangeError, with two lines of 66 bytes and maxEventBytes: 100',
    read(pieces(`data: ${'x'.repeat(60)}\n`, `data: ${'x'.repeat(60)}\n\n`), {
      maxEventBytes: 100,
    }),
    isTooLarge,
  );
  const most = count(50, 500);
  const lineOf = (bytes: number) => `data: ${'x'.repeat(bytes - 6)}\n`;
  const full = 'x'.repeat(most - 6);
  await given('exactly maxEventBytes are allowed', [`${lineOf(most)}\n`], { maxEventBytes: most }, [
    message(full),
  ]);
  await expect(
    'and not one more: the line counts as it came, with its "data: "',
    `a RangeError, with a line of ${most + 1} bytes and maxEventBytes: ${most}`,
    read(pieces(`${lineOf(most + 1)}\n`), { maxEventBytes: most }),
    isTooLarge,
  );
  const half = Math.floor(most / 2);
  await given(
    'exactly maxEventBytes are allowed, in two lines',
    [lineOf(half), `${lineOf(most - half)}\n`],
    { maxEventBytes: most },
    [message(`${'x'.repeat(half - 6)}\n${'x'.repeat(most - half - 6)}`)],
  );
  await expect(
    'with the "data: " of each line',
    `a RangeError, with lines of ${half} and ${most - half + 1} bytes and maxEventBytes: ${most}`,
    read(pieces(lineOf(half), `${lineOf(most - half + 1)}\n`), { maxEventBytes: most }),
    isTooLarge,
  );
  await given(
    'only lines of data count',
    [`: ${'x'.repeat(90)}\ncolour: ${'x'.repeat(90)}\nevent: ${'x'.repeat(90)}\ndata: 1\n\n`],
    { maxEventBytes: 100 },
    [{ event: 'x'.repeat(90), data: '1' }],
  );
  await given(
    'the limit is for one event, not for the stream',
    Array.from({ length: 50 }, () => `data: ${'x'.repeat(90)}\n\n`),
    { maxEventBytes: 1000 },
    Array.from({ length: 50 }, () => message('x'.repeat(90))),
  );

  // ── 3: what stays ──
  await holds(
    'an id stays in force for the events after it',
    `id: ${one}\ndata: 1\n\ndata: 2\n\nid: ${two}\ndata: 3\n\n`,
    { ...message('1'), id: one },
    { ...message('2'), id: one },
    { ...message('3'), id: two },
  );
  const ms = count(1, 9999);
  await holds(
    'so does retry, which is a number; else it is skipped',
    `retry: ${ms}\ndata: 1\n\nretry: soon\ndata: 2\n\n`,
    { ...message('1'), retry: ms },
    { ...message('2'), retry: ms },
  );
  await holds(
    'both may come behind the data of their event',
    `data: 1\nid: ${one}\nretry: ${ms}\n\n`,
    { ...message('1'), id: one, retry: ms },
  );
  await given(
    'what was in force before the stream began, is in force',
    ['data: 1\n\n'],
    { latest: { id: one, retry: ms } },
    [{ ...message('1'), id: one, retry: ms }],
  );
  await holds('digits are digits', 'retry: 007\ndata: 1\n\n', { ...message('1'), retry: 7 });
  await holds('a retry of 0 is a number, too', 'retry: 0\ndata: 1\n\n', {
    ...message('1'),
    retry: 0,
  });
  for (const odd of ['-5', '1.5', '1e3', '', '0x10', '+7', ' 7', '7 ', '700ms', 'Infinity'])
    await holds(
      `a retry that is not made of digits is skipped (${JSON.stringify(odd)})`,
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
  await holds('also where the same event has a better one', `id: ${one}\nid: \0\ndata: 1\n\n`, {
    ...message('1'),
    id: one,
  });
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

  const bytes = Buffer.from(
    `: hm\r\nid: ${one}\r\nevent: ${two}\r\ndata: Voilà\r\ndata: 42\r\n\r\ndata: 43\r\n\r\n`,
  );
  await given(
    'a stream may be cut anywhere, here behind each byte',
    [...bytes].map((byte) => Uint8Array.of(byte)),
    {},
    [
      { event: two, data: 'Voilà\n42', id: one },
      { ...message('43'), id: one },
    ],
  );
  const at = count(1, bytes.length - 1);
  await given('or in two pieces', [bytes.subarray(0, at), bytes.subarray(at)], {}, [
    { event: two, data: 'Voilà\n42', id: one },
    { ...message('43'), id: one },
  ]);

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
      signal: AbortSignal.timeout(20_000),
    }))
      if (event.type === 'end') return event.turn.text;
  };
  await expect("a model's answer arrives", 'It is 42.', answer(), /^It is 42\.$/);
};
