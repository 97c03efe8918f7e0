// plan.ts: first look, then agree, then change. Two tools of the model: one makes the mode read-only
// for it, and the other shows the person a plan. Only their answer ends it.

import type { Tool, Verdict } from '../../agent.ts';
import { inWords } from '../16-hands/results.ts';
import { choice, NO, YES } from './dialogue.ts';
import { MEANING, type Mode } from './modes.ts';
import type { Person } from './person.ts';
import { told } from './safe-text.ts';

/** `gate` is that of the program, which is made after its tools. */
type PlanHost = { person: Person; gate?: () => { mode: Mode } };

const ENTERED =
  'The mode is read-only from now on. Look at what you need, then call exit_plan_mode with your plan.';
const failing = (reason: string): Verdict => ({ allowed: false, reason, outcome: 'failed' });
const NO_PLAN = failing('The mode is not read-only, so there is nothing to agree to. Go on.');
const NOT_YOURS = failing('Only the agent that the user talks to may plan. Report what you see.');
const EDITS = choice('[e]dits without a question');

const ENTER = {
  name: 'enter_plan_mode',
  description:
    'Makes the mode read-only, to look around before a change that is large or could be meant in ' +
    'more than one way. Ends with exit_plan_mode.',
  inputSchema: { type: 'object', properties: {}, additionalProperties: false },
};
const EXIT_PLAN = {
  name: 'exit_plan_mode',
  description:
    'When the mode is read-only: shows the user what you plan to do, step by step. If they agree, ' +
    'you may change things again.',
  inputSchema: {
    type: 'object',
    properties: { plan: { type: 'string', minLength: 1 } },
    required: ['plan'],
    additionalProperties: false,
  },
};

/** Where somebody can agree to a plan. */
export function planRows({ person, gate }: PlanHost): Tool[] {
  if (!gate || !person.isThere) return [];
  let before: Mode = 'ask'; // where it leads back to

  const agreed = async (plan: string, signal: AbortSignal): Promise<Verdict> => {
    if (gate().mode !== 'read-only') return NO_PLAN;
    const answer = await person.choose({
      lines: [
        'The model has a plan:',
        ...told(plan),
        `If you agree, the mode is ${before} again: ${MEANING[before]}.`,
      ],
      prompt: 'Do you agree?',
      choices: [YES, EDITS, NO],
      ifEmpty: 'n',
      comment: 'or say what to change',
      signal,
    });
    signal.throwIfAborted();
    const words = answer?.words ? `: ${answer.words}` : '.';
    if (answer?.key !== 'y' && answer?.key !== 'e')
      return { allowed: false, reason: `The user does not agree to the plan${words}` };
    gate().mode = answer.key === 'y' ? before : 'accept-edits';
    before = 'ask';
    return { allowed: true, isAsked: true };
  };

  /** Both ask in words of their own, or not at all, in every mode. */
  const row = { touches: () => ({ kind: 'nothing' as const }) };
  return [
    {
      ...row,
      definition: ENTER,
      readOnly: false, // alone: what comes behind it is judged by the new mode
      consent: async (_, __, caller) => (caller ? NOT_YOURS : { allowed: true }),
      run: async () => {
        const now = gate();
        if (now.mode !== 'read-only') before = now.mode;
        now.mode = 'read-only';
        return inWords(ENTERED);
      },
    },
    {
      ...row,
      definition: EXIT_PLAN,
      readOnly: true,
      consent: async ({ plan }, signal, caller) =>
        caller ? NOT_YOURS : agreed(String(plan), signal),
      run: async () => inWords(`The user agrees. The mode is ${gate().mode} now: go on.`),
    },
  ];
}
