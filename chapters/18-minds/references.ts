// references.ts: tools that were found in mid-conversation, on a wire that knows such a thing
// (chapter 28). Their definitions are marked, and stay out of the beginning that a provider caches;
// the result that found them names them, and there the model reads them.

import type { Result, ToolDefinition, Turn } from '../../agent.ts';
import type { Json } from '../../mcp.ts';

// The generations before 4.5 do not know it.
const OLDER = /^claude-(instant|[123]\b|(opus|sonnet|haiku)-(3|4-[01]\b|4-20\d{6}|4$))/;

/** Most proxies and other servers of this wire drop references, or refuse them. */
export function knowsReferences(url: URL, model: string): boolean {
  return url.host === 'api.anthropic.com' && !OLDER.test(model);
}

/** The tools that were found and are still there. A reference to one that is gone would be refused,
 *  with every later request of the conversation. */
export function referencedIn(turns: Turn[], tools: ToolDefinition[]): Set<string> {
  const results = turns.flatMap((turn) => (turn.role === 'tools' ? turn.results : []));
  const found = new Set(results.flatMap(({ loads = [] }) => loads));
  const left = tools.map(({ name }) => name).filter((name) => found.has(name));
  return new Set(left.length < tools.length ? left : []); // one must not be deferred
}

/** The content of a result that found tools. Nothing else may be in it. */
export function referencesFor({ loads = [] }: Result, referenced: Set<string>): Json[] {
  const there = loads.filter((name) => referenced.has(name));
  return there.map((name) => ({ type: 'tool_reference', tool_name: name }));
}

/** For a result whose tools are all gone: its text says that they can be called. */
export function goneReferencesText({ loads = [] }: Result): string {
  return `[Found: ${loads.join(', ')}. These tools are no longer there.]`;
}

/** A service that turns out not to know references is told everything in words from then on. */
export function isAboutReferences(error: unknown): boolean {
  return error instanceof Error && /defer_loading|tool_reference/.test(error.message);
}
