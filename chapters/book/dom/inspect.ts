// inspect.ts: a value as Node shows it, in one line.

const DEPTH = 6;
const BYTES = 50;
const isPlainName = (name: string) => /^[A-Za-z_$][\w$]*$/.test(name);

export function inspect(value: unknown, _options?: object, around: unknown[] = []): string {
  if (typeof value === 'string') return `'${value}'`;
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'symbol') return String(value);
  if (typeof value === 'function') return `[Function: ${value.name || '(anonymous)'}]`;
  if (typeof value !== 'object' || value === null) return Object.is(value, -0) ? '-0' : `${value}`;
  if (around.includes(value)) return '[Circular *1]';
  if (value instanceof Error) return value.stack ?? String(value);
  if (value instanceof Date) return value.toISOString();
  if (value instanceof RegExp) return String(value);
  if (around.length > DEPTH) return Array.isArray(value) ? '[Array]' : '[Object]';
  const inner = (each: unknown) => inspect(each, undefined, [...around, value]);
  if (value instanceof Uint8Array) return bytes(value);
  if (Array.isArray(value)) return braced('', '[', value.map(inner), ']');
  if (value instanceof Set) return braced(`Set(${value.size}) `, '{', [...value].map(inner), '}');
  if (value instanceof Map) {
    const entries = [...value].map(([key, each]) => `${inner(key)} => ${inner(each)}`);
    return braced(`Map(${value.size}) `, '{', entries, '}');
  }
  const entries = Object.entries(value).map(
    ([name, each]) => `${isPlainName(name) ? name : `'${name}'`}: ${inner(each)}`,
  );
  const kind = value.constructor?.name ?? '[Object: null prototype]';
  return braced(kind === 'Object' ? '' : `${kind} `, '{', entries, '}');
}

const braced = (head: string, open: string, inside: string[], close: string) =>
  inside.length === 0 ? `${head}${open}${close}` : `${head}${open} ${inside.join(', ')} ${close}`;

const bytes = (value: Uint8Array) =>
  `<Buffer ${[...value.slice(0, BYTES)].map((byte) => byte.toString(16).padStart(2, '0')).join(' ')}>`;
