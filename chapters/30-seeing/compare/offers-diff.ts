// offers-diff.ts: what has changed between two lists of what a server offers, and whether a client
// of the first would still work with the second.

import { asList, asObject, isObject, show, type Json } from '../../../mcp.ts';
import { narrowed, widened } from './schema-diff.ts';

/** The kinds of things in a list, with what names one of them, and by which method they are listed. */
export const OFFERED_LISTS = [
  ['tools', 'tool', 'name', 'tools/list'],
  ['resources', 'resource', 'uri', 'resources/list'],
  ['resourceTemplates', 'resource template', 'uriTemplate', 'resources/templates/list'],
  ['prompts', 'prompt', 'name', 'prompts/list'],
] as const;

/** What a server said of itself at one time. */
export type Offered = { capabilities: Json } & Record<(typeof OFFERED_LISTS)[number][0], Json[]>;
export type OfferChange = {
  what: string; // "tool search", "capability prompts"
  how: 'gone' | 'new' | 'narrower' | 'wider' | 'changed';
  isBreaking: boolean; // for a client that was written for the first
  where?: string; // "limit: at most 10, was 100"
};

export function compareOffers(before: Offered, after: Offered): OfferChange[] {
  return [
    ...compareNames('capability', keysOf(before.capabilities), keysOf(after.capabilities)),
    ...OFFERED_LISTS.flatMap(([list, kind, key]) =>
      compareLists(kind, byKey(before[list], key), byKey(after[list], key)),
    ),
  ];
}

type ByKey = Map<string, Json>;

const keysOf = (record: Json): ByKey => new Map(Object.keys(record).map((key) => [key, {}]));

function byKey(list: Json[], key: string): ByKey {
  return new Map(list.filter(isObject).map((each) => [show(each[key]), each]));
}

function compareLists(kind: string, before: ByKey, after: ByKey): OfferChange[] {
  const inBoth = [...before].flatMap(([name, old]) => {
    const now = after.get(name);
    return now ? compareOne(`${kind} ${name}`, old, now) : [];
  });
  return [...compareNames(kind, before, after), ...inBoth];
}

function compareNames(kind: string, before: ByKey, after: ByKey) {
  const missing = (from: ByKey, other: ByKey) => [...from.keys()].filter((key) => !other.has(key));
  return [
    ...missing(before, after).map((name) => change(`${kind} ${name}`, 'gone', true)),
    ...missing(after, before).map((name) => change(`${kind} ${name}`, 'new', false)),
  ];
}

const change = (
  what: string,
  how: OfferChange['how'],
  isBreaking: boolean,
  where?: string,
): OfferChange => ({ what, how, isBreaking, ...(where !== undefined && { where }) });

/** What goes in may become wider, what comes out narrower: the other way round it breaks. */
function compareOne(what: string, old: Json, now: Json): OfferChange[] {
  const input = [inputOf(old), inputOf(now)] as const;
  const output = [asObject(old.outputSchema), asObject(now.outputSchema)] as const;
  const hadOutput = old.outputSchema !== undefined;
  const hasOutput = now.outputSchema !== undefined;
  const found = [
    ...narrowed(...input).map((where) => change(what, 'narrower', true, where)),
    ...widened(...input).map((where) => change(what, 'wider', false, where)),
  ];
  if (hadOutput && !hasOutput)
    found.push(change(what, 'wider', true, 'output: no schema any more'));
  if (hadOutput && hasOutput) {
    const isOutput = true;
    const lost = widened(...output, { isOutput });
    const gained = narrowed(...output, { isOutput });
    found.push(...lost.map((where) => change(what, 'wider', true, `output ${where}`)));
    found.push(...gained.map((where) => change(what, 'narrower', false, `output ${where}`)));
  }
  for (const key of ['title', 'description', 'annotations', 'mimeType'])
    if (JSON.stringify(old[key]) !== JSON.stringify(now[key]))
      found.push(change(what, 'changed', false, key));
  return found;
}

/** A prompt's arguments are a list of names: as a schema, they compare like those of a tool. */
function inputOf(offered: Json) {
  if (offered.inputSchema !== undefined) return asObject(offered.inputSchema);
  const list = asList(offered.arguments).filter(isObject);
  const required = list.filter((each) => each.required === true).map(({ name }) => show(name));
  const properties = Object.fromEntries(list.map(({ name }) => [show(name), { type: 'string' }]));
  return { type: 'object', properties, required, additionalProperties: false };
}

// ─── In words ───────────────────────────────────────────────────────────────────────────────────

const CHANGE_MARK = { gone: '-', new: '+', narrower: '<', wider: '>', changed: '~' };

export function changeLine({ what, how, isBreaking, where }: OfferChange): string {
  const detail = where === undefined ? '' : `: ${where}`;
  return `${CHANGE_MARK[how]} ${what} is ${how}${detail}${isBreaking ? '  (breaking)' : ''}`;
}
