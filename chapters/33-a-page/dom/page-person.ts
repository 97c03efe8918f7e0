// page-person.ts: the person in front of a page, behind the same interface as the one at a terminal.

import { textOf } from '../../../mcp.ts';
import { formFields, refusalIn } from '../../17-the-gate/form.ts';
import { addressLines, mayBeOpened, nobody, Turns } from '../../17-the-gate/person.ts';
import type { Filled, Person, Question } from '../../17-the-gate/person.ts';
import { headed, NO, YES } from '../../17-the-gate/dialogue.ts';
import { button, byId, make } from './elements.ts';
import { pageForm } from './page-form.ts';

const SECRET = 'It asks for a secret. Do not give one to a form: any server can draw one.';
type Answer<T> = (answer: T | undefined) => void;

/** One dialog at a time. Esc, and a question that is withdrawn, are no answer. */
export class PagePerson implements Person {
  readonly isThere = true;
  readonly say: Person['say'];
  readonly ask = nobody.ask; // no question of a page's is answered by a line
  private turns = new Turns();

  constructor(say: Person['say']) {
    this.say = say;
  }

  private async dialog<T>(
    question: Question,
    fill: (answer: Answer<T>) => (HTMLElement | string)[],
  ): Promise<T | undefined> {
    const { signal } = question;
    const endTurn = await this.turns.take(signal);
    const box = byId<HTMLDialogElement>('question');
    const over = new AbortController();
    try {
      if (signal?.aborted) return undefined;
      return await new Promise<T | undefined>((answer) => {
        const leave = () => answer(undefined);
        signal?.addEventListener('abort', leave, { signal: over.signal });
        box.addEventListener('cancel', leave, { signal: over.signal });
        box.replaceChildren(make('pre', headed(question).join('\n')), ...fill(answer));
        box.showModal();
      });
    } finally {
      over.abort();
      box.close();
      endTurn();
    }
  }

  choose(question: Parameters<Person['choose']>[0]) {
    return this.dialog<{ key: string }>(question, (answer) => [
      make('p', question.prompt),
      ...question.choices.map(({ key, word }) => button(word, () => answer({ key }))),
    ]);
  }

  async form(question: Parameters<Person['form']>[0]): Promise<Filled> {
    const { schema, check } = question;
    const fields = formFields(schema);
    const given = await this.dialog<Filled>(question, (answer) => {
      const { element, read } = pageForm(schema);
      const problem = make('p', '', 'bad');
      problem.setAttribute('role', 'alert');
      let warned = ''; // an answer like this was about to be sent
      const tryToSend = async () => {
        const content = read();
        for (const { name, title, schema } of fields) {
          const [problem] = (name in content && (await check?.(schema, content[name]))) || [];
          if (problem) throw new Error(`${title}: ${problem}`);
        }
        const refusal = refusalIn(fields, content);
        const isNew = refusal !== undefined && warned !== refusal;
        warned = refusal ?? '';
        if (isNew) throw new Error(`${refusal} may be taken for consent all the same: decline?`);
        answer({ action: 'accept', content });
      };
      const send = () => tryToSend().catch((error) => (problem.textContent = textOf(error)));
      return [
        ...(fields.some(({ isSecret }) => isSecret) ? [make('p', SECRET, 'bad')] : []),
        element,
        problem,
        button('Accept', send),
        button('Decline', () => answer({ action: 'decline' })),
        button('Cancel', () => answer(undefined)),
      ];
    });
    return given ?? { action: 'cancel' };
  }

  async open(question: Parameters<Person['open']>[0]) {
    const { url } = question;
    if (!mayBeOpened(url)) return { action: 'decline' } as const;
    const lines = [...question.lines, ...addressLines(url)];
    const answer = await this.choose({
      ...question,
      lines,
      prompt: 'Open it?',
      choices: [YES, NO],
    });
    if (answer?.key !== YES.key) return { action: answer ? 'decline' : 'cancel' } as const;
    globalThis.open(url.href, '_blank', 'noopener,noreferrer');
    return { action: 'accept', isOpened: true } as const;
  }
}
