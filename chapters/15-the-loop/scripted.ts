// scripted.ts: a model that says what it was told to say. For tests and demos: the loop cannot tell
// it from a real one.

import { setTimeout as wait } from 'node:timers/promises';
import type { Model, ModelEvent, ModelRequest } from '../../agent.ts';
import type { StopReason, ToolCall, Usage } from '../../agent.ts';
import type { Json } from '../../mcp.ts';

/** An answer, or a function that makes one from the request. */
export type ScriptLine =
  | ScriptedAnswer
  | ((request: ModelRequest) => ScriptedAnswer | Promise<ScriptedAnswer>);

/** A text alone is an answer without calls. */
export type ScriptedAnswer =
  | string
  | { text?: string; calls?: ScriptedCall[]; stop?: StopReason; usage?: Usage };

export type ScriptedCall = {
  name: string;
  args?: Json;
  unreadable?: string;
  id?: string;
};

export class Scripted implements Model {
  readonly name = 'scripted';
  readonly requests: ModelRequest[] = [];
  private readonly script: ScriptLine[];
  private readonly delayMs: number;
  private callCount = 0;

  constructor(script: ScriptLine[], { delayMs = 0 } = {}) {
    this.script = script;
    this.delayMs = delayMs;
  }

  async *query(request: ModelRequest): AsyncGenerator<ModelEvent> {
    const { signal } = request;
    signal.throwIfAborted();
    const answer = await this.nextAnswer(request);
    const whole = typeof answer === 'string' ? { text: answer } : answer;
    const { text = '', calls = [], stop, usage } = whole;
    for (const piece of text.match(/[^]{1,20}/gu) ?? []) {
      await wait(this.delayMs, undefined, { signal }).catch(() => signal.throwIfAborted());
      yield { type: 'text', text: piece };
    }
    signal.throwIfAborted();
    yield {
      type: 'end',
      turn: { role: 'assistant', text, calls: calls.map((call) => this.withId(call)) },
      stop: stop ?? (calls.length > 0 ? 'tools' : 'done'),
      ...(usage ? { usage } : {}),
    };
  }

  private nextAnswer(request: ModelRequest): ScriptedAnswer | Promise<ScriptedAnswer> {
    const turns = structuredClone(request.turns); // the caller goes on to add turns
    this.requests.push({ ...request, turns });
    const line = this.script[this.requests.length - 1];
    if (line === undefined) throw this.outOfLines();
    return typeof line === 'function' ? line(request) : line;
  }

  private withId({ id, ...call }: ScriptedCall): ToolCall {
    if (id !== undefined) return { id, ...call };
    this.callCount++;
    return { id: `call_${this.callCount}`, ...call };
  }

  private outOfLines(): Error {
    const asked = this.requests.length;
    const known = this.script.length;
    const words = `the script is over: query ${asked} came, but it has ${known} answer(s); add one`;
    return Object.assign(new Error(words), { kind: 'config' });
  }
}
