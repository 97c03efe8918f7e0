// room.ts: a conversation that no longer fits its model. First its old results go; if that does not
// help, the model writes a summary.

import type { Agent } from '../../agent.ts';
import { textOf } from '../../mcp.ts';
import { textOfBlocks } from '../18-minds/compact.ts';
import { asBlocks, type Result } from './said.ts';

const REMOVED = '[removed to save room; call the tool again if needed]';

export class Room {
  mayCompact = true; // automatically, and not again before it has helped
  private agent: Agent;

  constructor(agent: Agent) {
    this.agent = agent;
  }

  /** Empties all results but the last, and leaves them in place: each call keeps its result. */
  forgetOldResults(): boolean {
    const answered = this.agent.turns.filter((turn) => turn.role === 'tools');
    const earlier = answered.slice(0, -1);
    const old = earlier.flatMap(({ results }) => results);
    const isBig = ({ blocks }: Result) => JSON.stringify(blocks).length > 200;
    const big = old.filter(isBig);
    if (big.length === 0) return false;
    for (const result of big) {
      result.cut = (result.cut ?? 0) + textOfBlocks(result.blocks).length;
      result.blocks = asBlocks(REMOVED);
    }
    this.agent.note(`the conversation is too long: ${big.length} old results removed`);
    return true;
  }

  /** Automatic, and once: what does not get shorter must not be summarised again and again. */
  async summarise(signal: AbortSignal): Promise<boolean> {
    const { agent } = this;
    if (!this.mayCompact || agent.turns.length < 2) return false;
    this.mayCompact = false;
    try {
      const { replaced } = await agent.compact('', signal);
      agent.note(`to make room in the model's context, ${replaced} turns have become a summary`);
      return true;
    } catch (error) {
      signal.throwIfAborted();
      agent.note(`the conversation is too long, and could not be summarised: ${textOf(error)}`);
      return false;
    }
  }
}
