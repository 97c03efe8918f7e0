// output.ts: a tool may say what its structured result looks like. If it does not keep its word,
// the result is still there, and the model may make something of it: so that is a warning.

import { isObject } from '../../mcp.ts';
import type { Extension, Json, McpConnection } from '../../mcp.ts';
import { problemsWith } from '../23-the-server-asks/schema.ts';

const MAX_KNOWN = 10_000; // tools: a server may list others every time
const MAX_WARNED = 20; // tools of one server

export const checkOutput: Extension = (connection) => {
  const schemas = new Map<unknown, Json>(); // by the name of the tool
  const warned = new Set<string>();
  return {
    layer: (call, next) => {
      if (call.method === 'tools/list')
        return next(call).then((result) => remember(result, schemas));
      const name = String(call.params?.name);
      const schema = call.method === 'tools/call' ? schemas.get(name) : undefined;
      if (!schema || warned.has(name) || warned.size >= MAX_WARNED) return next(call);
      return next(call).then((result) => {
        const problem = problemWith(result, schema);
        if (problem) warned.add(name);
        if (problem) tell(connection, name, problem);
        return result;
      });
    },
  };
};

function remember(result: Json, schemas: Map<unknown, Json>): Json {
  const tools = Array.isArray(result.tools) ? result.tools.filter(isObject) : [];
  for (const { name, outputSchema } of tools) {
    schemas.delete(name);
    if (isObject(outputSchema) && schemas.size < MAX_KNOWN) schemas.set(name, outputSchema);
  }
  return result;
}

/** A tool that failed owes nothing but its words, nor does one that is not done. */
function problemWith(result: Json, schema: Json): string | undefined {
  const { isError, structuredContent, resultType = 'complete' } = result;
  if (isError === true || resultType !== 'complete') return undefined;
  if (structuredContent === undefined) return 'there is none';
  const [first] = problemsWith(schema, structuredContent);
  return first && `${first.path || 'it'} ${first.message}`;
}

function tell(connection: McpConnection, name: string, problem: string): void {
  const what = `has a tool ${JSON.stringify(name)} whose structured result is not as it says`;
  connection.warn(`output of ${name}`, `${what}: ${problem}`);
}
