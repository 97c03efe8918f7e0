// open-questions.ts: what the person is asked at this moment, for a page that shows it and takes the
// answer. The same question is at the terminal; the first answer counts, and the other place is told.

import { randomBytes } from 'node:crypto';
import { asObject, type Json } from '../../mcp.ts';
import { headed } from '../17-the-gate/dialogue.ts';
import { judgeFilled, overviewOf, refusalIn } from '../17-the-gate/form.ts';
import type {
  ChoiceQuestion,
  Chosen,
  Elsewhere,
  Filled,
  FormQuestion,
} from '../17-the-gate/person.ts';
import { TurnedAway } from './door.ts';

/** An answer, or what is wrong with it. */
type Judged<T> = { answer: T } | { problems: string[] };
type Pending = { shown: Json; take: (given: Json) => Promise<string[]> };

export class OpenQuestions implements Elsewhere {
  onChange: () => void = () => {};
  private pending = new Map<string, Pending>(); // by an id that is good once

  /** For a page that may answer: all that the terminal would show. */
  get list(): Json[] {
    return [...this.pending].map(([id, { shown }]) => ({ id, ...shown }));
  }

  choose(question: ChoiceQuestion, over: AbortSignal): Promise<Chosen> {
    const { prompt, comment, choices, elsewhere = [] } = question;
    const offered = choices.filter(({ key }) => elsewhere.includes(key));
    const shown = { lines: headed(question), prompt, comment, choices: offered };
    return this.put(shown, over, async ({ key, words }): Promise<Judged<Chosen>> => {
      const isOffered = offered.some((choice) => choice.key === key);
      if (isOffered) return { answer: { key: String(key) } };
      const isComment = comment !== undefined && typeof words === 'string' && words.trim() !== '';
      return isComment ? { answer: { words } } : { problems: ['that is not one of the answers'] };
    });
  }

  form(question: FormQuestion, over: AbortSignal): Promise<Filled> {
    const { schema } = question;
    const shown = { lines: [...headed(question), ...overviewOf(schema)], schema };
    return this.put(shown, over, async ({ action, content, isSure }): Promise<Judged<Filled>> => {
      if (action === 'decline' || action === 'cancel') return { answer: { action } };
      const filled = await judgeFilled(question, asObject(content));
      const { problems } = filled;
      const refusal = refusalIn(filled.fields, filled.content);
      if (problems.length === 0 && refusal !== undefined && isSure !== true)
        problems.push(
          `${refusal} is sent as an answer, and a server may take any for your consent`,
        );
      if (problems.length > 0) return { problems };
      return { answer: { action: 'accept', content: filled.content } };
    });
  }

  private put<T>(
    shown: Json,
    over: AbortSignal,
    judge: (given: Json) => Promise<Judged<T>>,
  ): Promise<T> {
    return new Promise((done) => {
      const id = randomBytes(16).toString('hex');
      const end = () => {
        if (this.pending.delete(id)) this.onChange();
      };
      const take = async (given: Json) => {
        const judged = await judge(given);
        if ('problems' in judged) return judged.problems;
        if (!this.pending.has(id)) throw tooLate(); // while it was judged
        done(judged.answer);
        end();
        return [];
      };
      this.pending.set(id, { shown, take });
      over.addEventListener('abort', end, { once: true });
      this.onChange();
    });
  }

  /** What is wrong with it: then the question is still open. */
  async answer(id: unknown, given: Json): Promise<string[]> {
    const question = this.pending.get(String(id));
    if (!question) throw tooLate();
    return question.take(given);
  }
}

const tooLate = () => new TurnedAway(409, 'this question is answered already, or was withdrawn');
