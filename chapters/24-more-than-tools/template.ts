// template.ts: addresses with holes in them, `shop://{department}/{item}`, by RFC 6570 up to level 3.

import { copyOf } from '../../mcp.ts';
import { percentDecoded } from '../18-minds/proxy.ts';

type Operator = { first: string; between: string; isNamed: boolean; keeps: boolean };
type Expression = { names: string[]; operator: Operator };
type TemplatePart = string | Expression;

const SIMPLE = { first: '', between: ',', isNamed: false, keeps: false };
/** What stands before the first value and between two; whether each is `name=value`; and whether
 *  characters that mean something in an address are kept. */
const OPERATORS: Record<string, Operator> = {
  '': SIMPLE,
  '+': { ...SIMPLE, keeps: true },
  '#': { ...SIMPLE, first: '#', keeps: true },
  '.': { ...SIMPLE, first: '.', between: '.' },
  '/': { ...SIMPLE, first: '/', between: '/' },
  ';': { ...SIMPLE, first: ';', between: ';', isNamed: true },
  '?': { ...SIMPLE, first: '?', between: '&', isNamed: true },
  '&': { ...SIMPLE, first: '&', between: '&', isNamed: true },
};
const EXPRESSION = /\{([+#./;?&]?)([^{}]+)\}/g;

function partsOf(template: string) {
  const parts: TemplatePart[] = [];
  let end = 0;
  for (const { 0: whole, 1: sign = '', 2: list = '', index } of template.matchAll(EXPRESSION)) {
    if (index > end) parts.push(template.slice(end, index));
    const names = list.split(',').map((name) => name.replace(/(\*|:\d+)$/, '').trim());
    parts.push({ names, operator: OPERATORS[sign]! });
    end = index + whole.length;
  }
  if (end < template.length) parts.push(template.slice(end));
  return parts;
}

/** The names of the holes, each once, in their order. */
export function variablesOf(template: string): string[] {
  const names = partsOf(template).flatMap((part) => (typeof part === 'string' ? [] : part.names));
  return [...new Set(names)];
}

/** Fills the holes. One without a value is left out, with what belongs to it. */
export function expand(template: string, values: Record<string, string>): string {
  const filled = partsOf(template).map((part) => {
    if (typeof part === 'string') return part;
    const { names, operator } = part;
    const given = names.filter((name) => Object.hasOwn(values, name));
    const texts = given.map((name) => valueIn(operator, name, values[name]!));
    return texts.length === 0 ? '' : operator.first + texts.join(operator.between);
  });
  return filled.join('');
}

function valueIn(operator: Operator, name: string, value: string) {
  const text = encoded(value, operator.keeps);
  if (!operator.isNamed) return text;
  const isBare = text === '' && operator.first === ';';
  return isBare ? name : `${name}=${text}`;
}

/** encodeURIComponent leaves five characters that RFC 6570 does not. */
function encoded(value: string, keeps: boolean) {
  const wellFormed = copyOf(value); // half a character cannot be encoded
  if (keeps) {
    const whole = encodeURI(wellFormed).replace(/%25([0-9a-f]{2})/gi, '%$1'); // what was encoded
    return whole.replaceAll('%5B', '[').replaceAll('%5D', ']');
  }
  const spell = (char: string) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`;
  return encodeURIComponent(wellFormed).replace(/[!'()*]/g, spell);
}

// ─── Half an address ───────────────────────────────────────────────────────────────────────────

/** Where somebody is who types an address that fits a template. */
type TemplateCursor = {
  name: string; // the hole in which the cursor is
  value: string; // what is typed of it
  others: Record<string, string>; // the holes before it
  before: string; // all that is typed before it
  after: string; // what follows it in the template, up to the next hole
  isLast: boolean; // nothing else is to be filled in
};

/** Where `typed` ends in a template. Only holes with one name can be told apart. */
export function placeIn(template: string, typed: string): TemplateCursor | undefined {
  const parts = partsOf(template);
  const others: Record<string, string> = {};
  let at = 0;
  for (const [n, part] of parts.entries()) {
    if (typeof part === 'string') {
      if (!typed.startsWith(part, at)) return undefined;
      at += part.length;
      continue;
    }
    const [name = '', ...more] = part.names;
    const { first, isNamed } = part.operator;
    const opening = isNamed ? `${first}${name}=` : first;
    if (more.length > 0 || !typed.startsWith(opening, at)) return undefined;
    const start = at + opening.length;
    const end = endOf(parts[n + 1], typed, start);
    const text = typed.slice(start, end);
    if (end === undefined || text === `{${name}}`) {
      const value = text === `{${name}}` ? '' : percentDecoded(text);
      const after = typeof parts[n + 1] === 'string' ? (parts[n + 1] as string) : '';
      const isLast = n + (after === '' ? 1 : 2) >= parts.length;
      return { name, value, others, before: typed.slice(0, start), after, isLast };
    }
    others[name] = percentDecoded(text);
    at = end;
  }
  return undefined;
}

/** A value ends where what follows it begins; without an end it is still being typed. */
function endOf(next: TemplatePart | undefined, typed: string, start: number) {
  const sign = typeof next === 'string' ? next[0]! : (next?.operator.first ?? '');
  const at = sign === '' ? -1 : typed.indexOf(sign, start);
  return at === -1 ? undefined : at;
}
