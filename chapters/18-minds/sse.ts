// sse.ts: server-sent events, the format in which answers are streamed. It is text in lines, and an
// empty line ends an event:
//
//   event: content_block_delta
//   data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}
//
// The standard:
//   https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation

import { joinBytes, joinSmall } from '../../mcp.ts';

/** `id` and `retry` are the latest of the stream: they stay in force for later events. */
export type ServerSentEvent = { event: string; data: string; id?: string; retry?: number };

/** Both are also written here, for a caller that needs those of an event without data. */
export type Latest = { id?: string; retry?: number };

type EventOptions = { maxEventBytes?: number; latest?: Latest };

const MAX_EVENT_BYTES = 16 * 1024 * 1024;
const LF = 0x0a;
const CR = 0x0d;
const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { ignoreBOM: true }); // one inside the stream is text

export async function* readEvents(
  body: AsyncIterable<Uint8Array>,
  options?: EventOptions,
): AsyncGenerator<ServerSentEvent> {
  const parser = new EventParser(options);
  for await (const chunk of body) yield* parser.parse(chunk);
}

/** Takes a stream apart as its chunks come. */
export class EventParser {
  private latest: Latest;
  private maxEventBytes: number;
  private lines: LineSplitter;
  private event = '';
  private data: string[] = [];
  private dataBytes = 0;
  private id?: string;

  constructor({ maxEventBytes = MAX_EVENT_BYTES, latest = {} }: EventOptions = {}) {
    this.latest = latest;
    this.maxEventBytes = maxEventBytes;
    this.lines = new LineSplitter(maxEventBytes);
    this.id = latest.id;
  }

  /** The events that end in this chunk. If the stream ends before the empty line, it was cut off
   *  there, and half an event is none. */
  *parse(chunk: Uint8Array): Generator<ServerSentEvent> {
    for (const line of this.lines.split(chunk)) {
      const { field, value } = fieldOf(line);
      if (field === 'event') this.event = value;
      if (field === 'id' && !value.includes('\0')) this.id = value;
      if (field === 'retry' && /^\d+$/.test(value)) this.latest.retry = Number(value);
      if (field === 'data') {
        this.data.push(value);
        this.dataBytes += encoder.encode(line).length;
        if (this.dataBytes > this.maxEventBytes) throw tooLarge(this.maxEventBytes);
      }
      if (line !== '') continue;
      const { event, data } = this;
      // The id counts from here on: an event that is cut off before must come again.
      if (this.id !== undefined) this.latest.id = this.id;
      this.event = '';
      this.data = [];
      this.dataBytes = 0;
      if (data.length > 0)
        yield { event: event || 'message', data: data.join('\n'), ...this.latest };
    }
  }
}

/** A comment begins with a colon, so its field has no name. */
function fieldOf(line: string) {
  const colon = line.indexOf(':');
  if (colon === -1) return { field: line, value: '' };
  const field = line.slice(0, colon);
  const rest = line.slice(colon + 1);
  const value = rest.startsWith(' ') ? rest.slice(1) : rest; // one space is not part of it
  return { field, value };
}

/** Cuts a stream into lines, which end in LF, CR LF or CR. */
class LineSplitter {
  private unfinished: Uint8Array[] = []; // as bytes: a chunk may end in the middle of a character
  private unfinishedBytes = 0;
  private isAtStart = true;
  private isAfterCr = false;
  private maxBytes: number;

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes;
  }

  split(chunk: Uint8Array): string[] {
    if (chunk.length === 0) return [];
    const isHalf = this.isAfterCr && chunk[0] === LF; // the LF of a CR LF
    const bytes = isHalf ? chunk.subarray(1) : chunk;
    this.isAfterCr = bytes.at(-1) === CR;
    const end = Math.max(bytes.lastIndexOf(LF), bytes.lastIndexOf(CR)) + 1;
    const lines = end > 0 ? this.takeLines(bytes.subarray(0, end)) : [];
    this.keep(bytes.subarray(end));
    return lines;
  }

  private takeLines(ends: Uint8Array) {
    let text = decoder.decode(joinBytes([...this.unfinished, ends]));
    this.unfinished = [];
    this.unfinishedBytes = 0;
    if (this.isAtStart && text.startsWith('\ufeff')) text = text.slice(1); // a byte order mark
    this.isAtStart = false;
    return text.split(/\r\n|\r|\n/).slice(0, -1); // after the last end there is nothing
  }

  private keep(rest: Uint8Array) {
    if (rest.length === 0) return;
    this.unfinished.push(rest);
    joinSmall(this.unfinished);
    this.unfinishedBytes += rest.length;
    if (this.unfinishedBytes > this.maxBytes) throw tooLarge(this.maxBytes);
  }
}

function tooLarge(maxBytes: number) {
  return new RangeError(`an event of the stream is larger than ${maxBytes} bytes`);
}
