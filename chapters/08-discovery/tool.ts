// tool.ts: a tool as its server describes it.

import { type Json, isObject, isPrintable } from '../01-a-pipe/messages.ts';

export type Tool = Json & {
  name: string;
  description?: string;
  inputSchema: Json;
};

export function problemWithTool(tool: unknown): string | undefined {
  if (!isObject(tool)) return 'it is not an object';
  const { name, description, inputSchema } = tool;
  if (typeof name !== 'string' || !isPrintable(name, 256)) {
    return 'its name is not 1 to 256 printable characters';
  }
  if (typeof (description ?? '') !== 'string') return 'its description is not text';
  return isObject(inputSchema ?? {}) ? undefined : 'its inputSchema is not an object';
}

export function withSchema(tool: Tool): Tool {
  if (tool.inputSchema) return tool;
  return { ...tool, inputSchema: { type: 'object' } };
}

/** With another description it is another tool. The order of its keys does not matter. */
export function isSameTool(one: Tool, two: Tool): boolean {
  return areEqualIn(['name', 'description', 'inputSchema', 'annotations'], one, two);
}

export function areEqualIn<T>(keys: (keyof T)[], one: T, two: T): boolean {
  return keys.every((key) => isSameJson(one[key], two[key]));
}

function isSameJson(one: unknown, two: unknown): boolean {
  if (Array.isArray(one) !== Array.isArray(two)) return false;
  const [a, b] = [one, two].map((each) => (isTree(each) ? each : undefined));
  if (!a || !b) return one === two;
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  return keys.every((key) => Object.hasOwn(b, key) && isSameJson(a[key], b[key]));
}

/** An object or a list. */
const isTree = (value: unknown): value is Json => typeof value === 'object' && value !== null;
