// output.ts: a tool may say what its structured result looks like. If it does not keep its word,
// the result is still there, and the model may make something of it: so that is a warning.

import {
  asList,
  isObject,
  textOf,
  type Extension,
  type Json,
  type McpConnection,
} from '../../../mcp.ts';
import { TooSlow } from '../../16-hands/aside.ts';
import { problemsFound } from '../../23-the-server-asks/schema.ts';

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
      return next(call).then(async (result) => {
        const problem = await problemWith(result, schema, call.options.signal);
        if (problem) warned.add(name);
        if (problem) tell(connection, name, problem);
        return result;
      });
    },
  };
};

function remember(result: Json, schemas: Map<unknown, Json>) {
  const tools = asList(result.tools).filter(isObject);
  for (const { name, outputSchema } of tools) {
    schemas.delete(name);
    if (isObject(outputSchema) && schemas.size < MAX_KNOWN) schemas.set(name, outputSchema);
  }
  return result;
}

/** A tool that failed owes nothing but its words, nor does one that is not done. */
async function problemWith(result: Json, schema: Json, signal?: AbortSignal) {
  const { isError, structuredContent, resultType = 'complete' } = result;
  if (isError === true || resultType !== 'complete') return undefined;
  if (structuredContent === undefined) return 'is not as it says: there is none';
  try {
    const [first] = await problemsFound(schema, structuredContent, signal);
    return first && `is not as it says: ${first.path || 'it'} ${first.message}`;
  } catch (error) {
    if (!(error instanceof TooSlow)) throw error;
    return `was not checked: by its outputSchema ${textOf(error)}. Ask its author for a simpler one`;
  }
}

function tell(connection: McpConnection, name: string, problem: string) {
  const what = `has a tool ${JSON.stringify(name)} whose structured result`;
  connection.warn(`output of ${name}`, `${what} ${problem}`);
}
