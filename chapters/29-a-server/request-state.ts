// request-state.ts: what a server without memory gives its client to keep. Between two rounds of a
// question the client holds our notes (`requestState`); the seal tells whether they are still ours.

import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { asObject, isObject, RpcError, type Json } from '../../mcp.ts';
import { canonicalJson, sha256 } from '../17-the-gate/digest.ts';

const STATE_MS = 10 * 60_000; // a person may take this long to answer
const MAX_USED = 10_000; // states that are remembered

/** What is in a state: the answers of earlier rounds, each with the fingerprint of its question,
 *  and the fingerprints of the questions that were open. */
export type Notes = {
  answers: Record<string, { answer: Json; of: string }>;
  asked: Record<string, string>;
  nonce?: string; // of the state that they came in
  task?: string; // work that waits here for the answers
};

export class Seal {
  private key: Uint8Array;
  private clock: () => number;
  private used = new Map<string, number>(); // nonces, until when; in the order of their use

  constructor(key: Uint8Array = randomBytes(32), clock: () => number = Date.now) {
    this.key = key;
    this.clock = clock;
  }

  /** `request` is what these notes are good for: the same question about another file is another
   *  question. */
  close(notes: Notes, request: Json): string {
    const inside = {
      ...notes,
      until: this.clock() + STATE_MS,
      of: lastingPart(request),
      nonce: randomBytes(9).toString('base64url'), // no two states are alike
    };
    const text = Buffer.from(JSON.stringify(inside)).toString('base64url');
    return `${text}.${this.mac(text)}`;
  }

  open(state: string, request: Json): Notes {
    const dot = state.lastIndexOf('.');
    const text = state.slice(0, dot);
    // As texts: base64 is read leniently, so that other letters may mean the same bytes.
    if (!isSameSecret(state.slice(dot + 1), this.mac(text)))
      throw new RpcError(-32602, 'requestState is not one of ours');

    const inside = asObject(JSON.parse(`${Buffer.from(text, 'base64url')}`));
    const { until, of, ...notes } = inside;
    if (Number(until) < this.clock()) throw new RpcError(-32602, 'requestState has expired');
    if (of !== lastingPart(request))
      throw new RpcError(-32602, 'requestState belongs to another request');

    return notes as Notes;
  }

  /** True once for each state: a yes is for one call. What was used is remembered here, for as long
   *  as it could be used again, so another process with the same key does not know of it. */
  isFirstUse(nonce: string): boolean {
    const time = this.clock();
    for (const [old, until] of this.used) {
      if (until > time) break;
      this.used.delete(old);
    }
    // With no room left a yes does not count: to forget one would let it count twice.
    if (this.used.has(nonce) || this.used.size >= MAX_USED) return false;
    this.used.set(nonce, time + STATE_MS);
    return true;
  }

  private mac(text: string) {
    return createHmac('sha256', this.key).update(text).digest('base64url');
  }
}

/** Takes the same time wherever they differ. */
export function isSameSecret(one: string, two: string): boolean {
  const a = Buffer.from(one);
  const b = Buffer.from(two);
  return a.length === b.length && timingSafeEqual(a, b);
}

/** The request without what differs from round to round. */
function lastingPart({ method, params }: Json) {
  const { inputResponses, requestState, _meta, ...lasting } = asObject(params);
  return sha256(canonicalJson({ method, lasting }));
}

/** An answer is an object, and one to a form says what the person did. */
export function isInputResponse(method: unknown, answer: unknown): answer is Json {
  if (!isObject(answer)) return false;
  if (method === 'elicitation/create') return typeof answer.action === 'string';
  if (method === 'roots/list') return Array.isArray(answer.roots);
  return true;
}
