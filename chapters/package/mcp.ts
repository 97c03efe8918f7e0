// mcp.ts: `mcp-by-hand/mcp`, the bare spine, as the package exports it.

export { McpConnection, McpError, McpManager, RpcError, StdioTransport } from '../../mcp.ts';
export type {
  Call,
  CallOptions,
  ConnectionOptions,
  ErrorKind,
  Extension,
  Handler,
  Incoming,
  Json,
  Layer,
  ManagerOptions,
  Message,
  Next,
  Parts,
  ServerDescription,
  ServerEntry,
  ServerStatus,
  Tool,
  ToolDefinition,
  ToolResult,
  Transport,
  TransportEvents,
  TransportFactory,
} from '../../mcp.ts';
