// sse.ts: server-sent events, the format in which answers are streamed. Text in lines, an event ends at an empty line:
//
//   event: content_block_delta
//   data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}
//
// The standard: https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation

/** `id` and `retry` are the latest that the stream has named: they stay in force for the events after them. Whoever
 *  passes `latest` can read them there, also those of an event without data, which is told to nobody. */
export type ServerSentEvent = { event: string; data: string; id?: string; retry?: number };

const MAX_EVENT_BYTES = 16 * 1024 * 1024;

export async function* readEvents(
  body: AsyncIterable<Uint8Array>,
  { maxEventBytes = MAX_EVENT_BYTES, latest = {} as { id?: string; retry?: number } } = {},
): AsyncGenerator<ServerSentEvent> {
  let event = '';
  let data: string[] = [];
  let size = 0;
  let { id } = latest; // counts with the end of its event: one that was cut off must come again
  for await (const line of readLines(body, maxEventBytes)) {
    if (line === '') {
      if (id !== undefined) latest.id = id;
      if (data.length > 0) yield { event: event || 'message', data: data.join('\n'), ...latest };
      event = '';
      data = [];
      size = 0;
      continue;
    }
    const { field, value } = split(line);
    if (field === 'event') event = value;
    if (field === 'data') data.push(value);
    if (field === 'id' && !value.includes('\0')) id = value;
    if (field === 'retry' && /^\d+$/.test(value)) latest.retry = Number(value);
    if (field === 'data') size += Buffer.byteLength(line);
    if (size > maxEventBytes) throw tooLarge(maxEventBytes);
  }
  // What has no empty line behind it is half an event. The stream was cut off there, so nobody gets to see it.
}

/** A line that begins with a colon is a comment: its field has no name. A space after the colon is not the value's. */
function split(line: string): { field: string; value: string } {
  const colon = line.indexOf(':');
  if (colon === -1) return { field: line, value: '' };
  return { field: line.slice(0, colon), value: line.slice(colon + 1).replace(/^ /, '') };
}

/** Lines end in LF, CR LF or CR. */
async function* readLines(body: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<string> {
  const decoder = new TextDecoder(); // keeps half a character for the next chunk, takes away a byte order mark
  let unfinished = '';
  let afterCr = false;
  for await (const chunk of body) {
    let text = decoder.decode(chunk, { stream: true });
    if (text === '') continue;
    if (afterCr && text.startsWith('\n')) text = text.slice(1); // that CR LF was cut in two, it is one end of line
    afterCr = text.endsWith('\r');
    const lines = text.split(/\r\n|\r|\n/);
    lines[0] = unfinished + lines[0];
    unfinished = lines.pop() ?? '';
    yield* lines;
    if (unfinished.length > maxBytes) throw tooLarge(maxBytes);
  }
}

function tooLarge(maxBytes: number): RangeError {
  return new RangeError(`an event of the stream is larger than ${maxBytes} bytes`);
}
