// told-requests.ts: requests to a model, for a trace. A chat sends its beginning again with every
// request, so a part that an earlier line has is told by its number.
//
//   tools: [0, 1, 2], system: [3], messages: [4, 5, 6, { n: 7, of: 'prompts', size: 9, json: … }]

import type { AgentEvent } from '../../agent.ts';
import type { Json } from '../../mcp.ts';
import type { ModelQuery } from '../15-the-loop/events.ts';
import { sha256 } from '../17-the-gate/digest.ts';
import { partsIn, type RequestPart } from './seen.ts';

const MAX_TEXT = 20_000; // characters of one text of a part

export class ToldRequests {
  private numbers = new Map<string, number>(); // by the digest of a part

  /** Who reads on has none of the lines before. */
  forget(): void {
    this.numbers.clear();
  }

  /** An event as a trace has it. */
  told(event: AgentEvent): Json {
    if (event.type === 'agent') return { ...event, event: this.told(event.event) };
    return event.type === 'query' ? this.query(event) : event;
  }

  private query({ seen, ...event }: ModelQuery) {
    const request = seen();
    const { fields, tools, system, messages, left } = request;
    const marked = partsIn(request).flatMap(({ isMarked }, n) => (isMarked ? [n] : []));
    const [offer, prompt, said] = [tools, system, messages].map((list) => this.listed(list));
    const told = { ...fields, tools: offer, system: prompt, messages: said };
    return { ...event, request: told, marked, left };
  }

  private listed(parts: RequestPart[]) {
    return parts.map(({ of, size, json }) => {
      const digest = sha256(JSON.stringify([of, json]));
      const known = this.numbers.get(digest);
      if (known !== undefined) return known;
      const n = this.numbers.size;
      this.numbers.set(digest, n);
      return { n, of, size, json: bounded(json) };
    });
  }
}

/** A copy whose texts are cut where they are too long. */
function bounded(json: unknown) {
  const cut = (_: string, text: unknown) => {
    if (typeof text !== 'string' || text.length <= MAX_TEXT) return text;
    return `${text.slice(0, MAX_TEXT)}… [${text.length - MAX_TEXT} characters left out]`;
  };
  return JSON.parse(JSON.stringify(json, cut));
}
