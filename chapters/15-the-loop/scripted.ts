// scripted.ts: a model that says what it was told to say. For tests and demos: the loop cannot tell it from a real one.

import { setTimeout as wait } from 'node:timers/promises';
import type { Model, ModelEvent, ModelRequest, Stop, ToolCall, Usage } from '../../agent.ts';
import type { Json } from '../../mcp.ts';

export type ScriptedCall = { name: string; args?: Json; unreadable?: string; id?: string };
export type ScriptedAnswer = string | { text?: string; calls?: ScriptedCall[]; stop?: Stop; usage?: Usage };
export type ScriptLine = ScriptedAnswer | ((request: ModelRequest) => ScriptedAnswer | Promise<ScriptedAnswer>);

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

  async *ask(request: ModelRequest): AsyncGenerator<ModelEvent> {
    request.signal.throwIfAborted();
    this.requests.push({ ...request, turns: structuredClone(request.turns) }); // the caller will go on to add turns
    const line = this.script[this.requests.length - 1];
    if (line === undefined) throw this.outOfLines();
    const answer = typeof line === 'function' ? await line(request) : line;
    const { text = '', calls = [], stop, usage } = typeof answer === 'string' ? { text: answer } : answer;
    for (const piece of text.match(/[^]{1,20}/gu) ?? []) {
      await wait(this.delayMs, undefined, { signal: request.signal }).catch(() => request.signal.throwIfAborted());
      yield { type: 'text', text: piece };
    }
    request.signal.throwIfAborted();
    const called = calls.map(({ id = `call_${++this.callCount}`, ...call }): ToolCall => ({ id, ...call }));
    yield {
      type: 'end',
      turn: { role: 'assistant', text, calls: called },
      stop: stop ?? (called.length > 0 ? 'tools' : 'done'),
      ...(usage ? { usage } : {}),
    };
  }

  private outOfLines(): Error {
    const [asked, known] = [this.requests.length, this.script.length];
    const words = `the script is over: question ${asked} came, but it has ${known} answer(s); add one`;
    return Object.assign(new Error(words), { kind: 'config' });
  }
}
