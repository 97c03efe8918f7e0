// body.ts: what comes back from a request over HTTP, whoever has sent it. Nothing here is Node's: in
// a web page it may be `fetch`.

import { joinBytes } from '../../mcp.ts';

export type HeaderFields = Record<string, string>;

/** Unpacked, and still to come. Node's Readable is one. */
export type Body = AsyncIterable<Uint8Array> & {
  destroy(): unknown; // the rest is not wanted
  resume(): unknown; // the rest is read, and forgotten
};

export type Reply = {
  status: number;
  statusText: string;
  headers: Partial<HeaderFields>;
  body: Body;
};

/** Milliseconds until another try is welcome: `Retry-After` is in seconds, or a date. */
export function wantedWait(headers: Partial<HeaderFields>): number | undefined {
  const { 'retry-after': after = '', 'retry-after-ms': ms = NaN } = headers;
  const candidates = [
    Number(ms),
    after === '' ? NaN : Number(after) * 1000,
    Date.parse(after) - Date.now(),
  ];
  return candidates.find((candidate) => candidate >= 0);
}

/** The beginning of a body that only explains: half of it is better than none. */
export async function readStart(body: Body, maxBytes: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of body) {
      chunks.push(chunk);
      size += chunk.length;
      if (size > maxBytes) break;
    }
  } catch {} // it was cut off
  return new TextDecoder().decode(joinBytes(chunks).subarray(0, maxBytes));
}
