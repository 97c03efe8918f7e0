// messages.ts: what a message is, and the small functions that look at one.

import type { TransportEvents } from './transport.ts';
import { McpError, RpcError } from '../03-three-shapes/errors.ts';
import { idOfAnswer, isShort, tooDeepFor, tooMuchIn } from '../05-death/bounds.ts';

export type Json = { [key: string]: unknown };
export type Id = number | string;
/** A request has `method` and `id`, a notification only `method`; an answer has `id` and either
 *  `result` or `error`. */
export type Message = {
  jsonrpc: '2.0';
  id?: Id;
  method?: string;
  params?: Json;
  result?: unknown;
  error?: Json;
};

export const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
export const asObject = (value: unknown): Json => (isObject(value) ? value : {});
export const asList = (value: unknown) => (Array.isArray(value) ? value : []);
/** Not what every object has: a server may call a thing "constructor". */
export const ownValue = <T>(table: Record<string, T>, key: string) =>
  Object.hasOwn(table, key) ? table[key] : undefined;
/** Milliseconds on a clock that never jumps, unlike Date.now(). */
export const now = () => performance.now();
/** What an error says. Anything can be thrown, even a string. */
export const textOf = (error: unknown) => (error instanceof Error ? error.message : String(error));

/** A foreign value that should be text. Not `${value}`: its toString may not be a function. */
export const show = (value: unknown) => (typeof value === 'string' ? value : excerpt(value));

/** A value for an error message: its JSON, cut short. */
export function excerpt(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > 200 ? `${copyOf(text.slice(0, 200))}…` : text;
}

/** What a refusal says besides its message, which is often no more than "Internal error". */
export function detailOf(data: unknown = null): string {
  if (data === null || data === '') return '';
  const text = typeof data === 'string' ? data : JSON.stringify(data);
  return `: ${copyOf(text.slice(0, 1000))}`;
}

/** For a part that is kept: a slice would keep the whole text in memory. */
export function copyOf(text: string): string {
  const bytes = new TextEncoder().encode(text);
  return new TextDecoder().decode(bytes);
}

/** The id of the call that an answer means. Some servers send our number back as a string: that is
 *  taken if it has exactly the digits of a call that waits. "01" and "1.0" mean no call. */
export function meantId(id: unknown, waiting: ReadonlyMap<unknown, unknown>): unknown {
  const number = typeof id === 'string' ? Number(id) : NaN;
  return id === `${number}` && waiting.has(number) ? number : id;
}

export const positive = (value: unknown) =>
  typeof value === 'number' && value > 0 ? value : undefined;

export function isPrintable(name: string, maxLength: number): boolean {
  const hasControl = /[\x00-\x1f\x7f-\x9f]/.test(name);
  return name !== '' && name.length <= maxLength && !hasControl;
}

/** Passes on the message in one text, for every transport that receives text. */
export function passOn(text: string, who: string, events: TransportEvents): void {
  const trimmed = text.trim(); // no CR, no byte order mark
  if (trimmed === '') return;
  const tooMuch = isShort(trimmed) ? undefined : tooMuchIn(trimmed);
  if (tooMuch) return drop(trimmed, tooMuch, who, events);
  const message = parseMessage(trimmed);
  const isText = typeof message === 'string'; // not JSON, but perhaps a million brackets
  const tooDeep = isText ? tooMuchIn(trimmed) : tooDeepFor(message);
  if (tooDeep) return drop(trimmed, tooDeep, who, events);
  const { result } = asObject(message);
  if (trimmed.length > LONG && isObject(result)) lengths.set(result, trimmed.length);
  events.message(message);
}

const LONG = 1000;
const lengths = new WeakMap<Json, number>();
/** As JSON. We know it of a long result that came as text: to write it again would take as long as
 *  to read it. */
export const jsonLength = (result: Json) => lengths.get(result) ?? JSON.stringify(result).length;

function drop(text: string, tooMuch: string, who: string, events: TransportEvents): void {
  const what = `sent a message with ${tooMuch}, which is dropped`;
  const why = new McpError('limit', `${who} ${what}`);
  events.dropped?.(why, idOfAnswer(text));
}

/** JSON, or the text itself, which the connection reports as noise. */
export function parseMessage(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

export function oddityOf({ jsonrpc, result = null, error = null }: Json): string | undefined {
  if (jsonrpc !== '2.0') return 'something that is not JSON-RPC 2.0';
  if (result === null && error === null) return 'neither result nor error';
  if (result !== null && error !== null) return 'a result and an error';
  if (error !== null || isObject(result)) return undefined;
  return `a result that is not an object: ${excerpt(result)}`;
}

export function asRefusal(error: unknown): Json {
  if (error instanceof RpcError) {
    const { code, message, data } = error;
    return { code, message, data };
  }
  return { code: -32603, message: textOf(error) };
}

export function withProgressToken(params: Json | undefined, progressToken: Id): Json {
  const meta = { ...asObject(params?._meta), progressToken };
  return { ...params, _meta: meta };
}
