// agent.ts: `mcp-by-hand/agent`, the loop with its tools and models, as the package exports it.

export {
  Agent,
  chooseModel,
  Gate,
  hands,
  ModelError,
  Roots,
  Scripted,
  Trust,
} from '../../agent.ts';
export type {
  AgentEvent,
  AgentOptions,
  ChatEnd,
  Ending,
  GateKeeper,
  Model,
  ModelEvent,
  ModelRequest,
  Tool,
  ToolContext,
  ToolOutput,
  Turn,
  Verdict,
} from '../../agent.ts';
