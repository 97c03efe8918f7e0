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

/** Takes an answer, or gives back what is wrong with it: then the question is still open. */
type Take = (given: Json) => Promise<string[]>;

export class OpenQuestions implements Elsewhere {
  onChange: () => void = () => {};
  private pending = new Map<string, { shown: Json; take: Take }>(); // by an id that is good once

  /** For a page that may answer: all that the terminal would show. */
  get list(): Json[] {
    return [...this.pending].map(([id, { shown }]) => ({ id, ...shown }));
  }

  choose(question: ChoiceQuestion, over: AbortSignal): Promise<Chosen> {
    const { prompt, comment, choices, elsewhere = [] } = question;
    const offered = choices.filter(({ key }) => elsewhere.includes(key));
    const shown = { lines: headed(question), prompt, comment, choices: offered };
    return this.put<Chosen>(shown, over, (settle) => async ({ key, words }) => {
      const isOffered = offered.some((choice) => choice.key === key);
      const isComment = comment !== undefined && typeof words === 'string' && words.trim() !== '';
      if (!isOffered && !isComment) return ['that is not one of the answers'];
      settle(isOffered ? { key: String(key) } : { words: String(words) });
      return [];
    });
  }

  form(question: FormQuestion, over: AbortSignal): Promise<Filled> {
    const { schema } = question;
    const shown = { lines: [...headed(question), ...overviewOf(schema)], schema };
    return this.put<Filled>(shown, over, (settle) => async ({ action, content: given, isSure }) => {
      if (action === 'decline' || action === 'cancel') {
        settle({ action });
        return [];
      }
      const { fields, content, problems } = await judgeFilled(question, asObject(given));
      const refusal = refusalIn(fields, content);
      if (problems.length === 0 && refusal !== undefined && isSure !== true)
        problems.push(
          `${refusal} is sent as an answer, and a server may take any for your consent`,
        );
      if (problems.length === 0) settle({ action: 'accept', content });
      return problems;
    });
  }

  private put<T>(
    shown: Json,
    over: AbortSignal,
    taking: (settle: (answer: T) => void) => Take,
  ): Promise<T> {
    return new Promise((done) => {
      const id = randomBytes(16).toString('hex');
      const end = () => {
        if (this.pending.delete(id)) this.onChange();
      };
      const settle = (answer: T) => {
        if (!this.pending.has(id)) throw tooLate(); // while it was judged
        done(answer);
        end();
      };
      this.pending.set(id, { shown, take: taking(settle) });
      over.addEventListener('abort', end, { once: true });
      this.onChange();
    });
  }

  async answer(id: unknown, given: Json): Promise<string[]> {
    const question = this.pending.get(String(id));
    if (!question) throw tooLate();
    return question.take(given);
  }
}

const tooLate = () => new TurnedAway(409, 'this question is answered already, or was withdrawn');
