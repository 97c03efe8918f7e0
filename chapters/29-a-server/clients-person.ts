// clients-person.ts: the person at the other end, for the gate. A question becomes a form with one
// box, which is empty at first.

import type { Json } from '../../mcp.ts';
import { nobody, type Chosen, type ChoiceQuestion, type Person } from '../17-the-gate/person.ts';
import { InputRequired, type ServerCall } from './server-call.ts';

const MAX_MESSAGE = 100_000; // characters; a longer question would not be read
const ALLOW: Json = {
  type: 'object',
  properties: { allow: { type: 'boolean', title: 'Allow it', default: false } },
  required: ['allow'],
};

/** Yes or no, once. "Always" is not offered: a client says that a person has answered, and we
 *  cannot see one. */
export class ClientsPerson implements Person {
  refusal?: string; // why there is no answer, for the model
  private call: ServerCall;
  private answerMs: number;

  constructor(call: ServerCall, answerMs: number) {
    this.call = call;
    this.answerMs = answerMs;
  }

  get isThere(): boolean {
    return this.call.can('elicitation', 'form');
  }

  /** Throws where persons do not: an InputRequired ends the call, which comes again with answers. */
  async choose({ lines, prompt }: ChoiceQuestion): Promise<Chosen | undefined> {
    const message = [...lines, prompt].join('\n');
    if (message.length > MAX_MESSAGE) {
      this.refusal = `Not allowed: it is too long to be shown in a question. Use smaller steps.`;
      return undefined;
    }
    try {
      const options = { isPermission: true, timeoutMs: this.answerMs };
      const { action, content } = await this.call.elicit(message, ALLOW, options);
      return { key: action === 'accept' && isYes(content) ? 'y' : 'n' };
    } catch (error) {
      if (error instanceof InputRequired || this.call.signal.aborted) throw error;
      const isLate = (error as Error).name === 'TimeoutError';
      const how = isLate ? `within ${this.answerMs / 1000} s` : 'in a way that counts';
      this.refusal = `Not allowed: the client did not answer the question ${how}.`;
      return undefined;
    }
  }

  say = nobody.say;
  ask = nobody.ask;
  form = nobody.form;
  open = nobody.open;
}

/** Exactly true: 1, "true" and a default that a client has filled in are not a person's yes. */
function isYes(content: unknown) {
  return (content as Json | undefined)?.allow === true;
}
