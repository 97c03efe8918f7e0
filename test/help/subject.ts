// The client under test. `SUBJECT=path/to/your/mcp.ts npm test` puts another one in its place.

import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const path = process.env.SUBJECT;
const subject: typeof import('../../mcp.ts') = path
  ? await import(pathToFileURL(resolve(path)).href)
  : await import('../../mcp.ts');

export const { McpConnection, McpManager, McpError, RpcError, StdioTransport } = subject;
export const { REVISIONS, blocksToText, fillIn, loadEntries, safeEnv, toolLabel, transportType } =
  subject;
