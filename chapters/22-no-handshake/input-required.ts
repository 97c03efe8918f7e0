// input-required.ts: since 2026-07-28 a server asks inside its results. We answer, and send the
// request again with the answers, until the result is complete.

import {
  asObject,
  excerpt,
  isStateless,
  show,
  type Call,
  type Extension,
  type Json,
  type McpConnection,
  type Next,
} from '../../mcp.ts';
import type { EraOptions } from './era.ts';
import { sleep, withEither, type Pause } from '../20-streamable-http/pause.ts';

const MAX_ROUNDS = 10;
const MAX_PAUSE_MS = 5000;
const MAY_ASK = ['tools/call', 'prompts/get', 'resources/read'];

export function answerWithin({ pause }: EraOptions = {}): Extension {
  return function answerWithin(connection) {
    const rounds = new Rounds(connection, pause);
    return {
      layer: (call, next) =>
        isStateless(connection.server) ? rounds.untilComplete(call, next) : next(call),
    };
  };
}

class Rounds {
  private connection: McpConnection;
  private pause: Pause;

  constructor(connection: McpConnection, pause: Pause = sleep) {
    this.connection = connection;
    this.pause = pause;
  }

  async untilComplete(call: Call, next: Next): Promise<Json> {
    const { method } = call;
    let result = await next(call);
    for (let round = 1; wantsInput(method, result); round++) {
      if (round > MAX_ROUNDS) {
        const what = `asked back more than ${MAX_ROUNDS} times in ${method}`;
        throw this.connection.error('limit', what);
      }
      result = await next(await this.withAnswers(call, result, round));
    }
    const { resultType: type = 'complete' } = result;
    if (type === 'complete') return result;
    const what = `answered ${method} with a result of type ${excerpt(type)}`;
    throw this.connection.error('protocol', what);
  }

  /** The same call with the answers to one result's questions. */
  private async withAnswers(call: Call, result: Json, round: number): Promise<Call> {
    const { inputRequests, requestState } = result;
    const questions = Object.entries(asObject(inputRequests));
    const answers: [key: string, answer: unknown][] = [];
    for (const [key, question] of questions) {
      const answer = await this.answerTo(key, asObject(question), call); // one after the other
      answers.push([key, answer]);
    }
    if (questions.length === 0) {
      // It wants nothing but patience. If the call is cancelled meanwhile, `next` says so.
      await this.pause(Math.min(100 * 2 ** round, MAX_PAUSE_MS), call.options.signal);
    }
    const added = {
      ...(questions.length > 0 && { inputResponses: Object.fromEntries(answers) }),
      ...(requestState !== undefined && { requestState }), // the server's own: back as it came
    };
    return { ...call, params: { ...call.params, ...added } };
  }

  private answerTo(key: string, question: Json, call: Call) {
    return answerByHandler(this.connection, key, question, call);
  }
}

/** The answer of the handler that serves the same request in the handshake era. */
export async function answerByHandler(
  connection: McpConnection,
  key: string,
  { method, params }: Json,
  call: Call,
): Promise<unknown> {
  const name = show(method);
  const capability = name.split('/')[0]!;
  const isOffered = Object.hasOwn(connection.capabilities, capability) && connection.handles(name);
  if (!isOffered) {
    const what = `asks for ${excerpt(name)}, which we have not offered`;
    throw connection.error('protocol', what);
  }
  // The call's signal alone would leave a question on the screen when the server is gone.
  return withEither([call.options.signal, connection.signal], (signal) =>
    connection.handle(name, asObject(params), { id: key, signal, call }),
  );
}

const wantsInput = (method: string, { resultType }: Json) =>
  resultType === 'input_required' && MAY_ASK.includes(method);
