// code-rows.ts: the code server, built into the agent. Our model has grep, glob and read already;
// what it gets from here is search by meaning, and chunks. Each row calls the server over a linked
// pair: the same messages as for any client, without a process.

import type { Tool, ToolOutput } from '../../../agent.ts';
import { McpConnection, type CallOptions, type Json } from '../../../mcp.ts';
import { fromMcp } from '../../16-hands/results.ts';
import type { Host } from '../../19-the-terminal/host.ts';
import { builtIn } from '../../25-other-pipes/in-process.ts';
import { codeServer } from './code-server.ts';
import { Embeddings } from '../embeddings.ts';
import { describedTool, type ServerTool } from '../protocol/server-rows.ts';
import { overPipe } from '../pipe.ts';

/** Nothing else may have this name: see `reserved` in the composition. */
export const CODE_SERVER = 'code';
const NEW_TO_OUR_MODEL = ['search_by_embedding', 'chunk_file', 'chunk_files'];

type CodeRowsHost = Pick<Host, 'roots' | 'isHidden' | 'resultsFolder'>;

export function codeRows(
  { roots, isHidden, resultsFolder }: CodeRowsHost,
  env = process.env,
): Tool[] {
  const tools = NEW_TO_OUR_MODEL;
  const { server } = codeServer({ roots, isHidden, tools, embeddings: Embeddings.from(env) });
  let connection: Promise<McpConnection> | undefined; // a chat that never searches pays nothing
  const call = async (name: string, args: Json, { signal, onProgress }: CallOptions) => {
    connection ??= connectTo(server);
    return (await connection).callTool(name, args, { signal, onProgress });
  };
  return [...server.tools.values()].map(
    (tool): Tool => ({
      definition: { ...definitionOf(tool), name: `mcp__${CODE_SERVER}__${tool.name}` },
      readOnly: true,
      // The gate allows what only reads, inside the folder, and asks about the rest.
      touches: ({ file_path = '.' }) => ({ kind: 'read', path: `${file_path}` }),
      run: async (args, options): Promise<ToolOutput> =>
        fromMcp(await call(tool.name, args, options), resultsFolder),
    }),
  );
}

function definitionOf(tool: ServerTool): { description: string; inputSchema: Json } {
  const { description, inputSchema } = describedTool(tool);
  return { description: `${description}`, inputSchema: inputSchema as Json };
}

async function connectTo(server: Parameters<typeof overPipe>[0]) {
  const config = { type: 'in-process', name: CODE_SERVER };
  const transports = { 'in-process': builtIn(overPipe(server)) };
  const connection = new McpConnection(CODE_SERVER, config, { transports });
  await connection.connect();
  await connection.initialize();
  return connection;
}
