// shapes.ts: what messages look like, on the servers' wire and on both wires of models: shapes.json, in
// JSON Schema. What it does not say is what came before: that is for the judges.

import { readFileSync } from 'node:fs';
import { asObject, type Json } from '../../../mcp.ts';
import { fileOfOurs } from '../../16-hands/aside.ts';
import { problemsWith } from '../../23-the-server-asks/schema.ts';

const SHAPES = JSON.parse(readFileSync(fileOfOurs('30-seeing/shapes.json'), 'utf8'));

/** What is at the end of these keys; nothing if there is none. */
export function shapeAt(...keys: string[]): Json {
  return keys.reduce((at, key) => (Object.hasOwn(at, key) ? asObject(at[key]) : {}), SHAPES);
}

/** Of each rule there is a schema. */
export function misfits(rules: Json, value: unknown) {
  return Object.entries(rules).flatMap(([rule, schema]) =>
    problemsWith(schema, value, SHAPES).map(({ path, message }): [string, string] => [
      rule,
      `${path || 'the whole'} ${message}`,
    ]),
  );
}
