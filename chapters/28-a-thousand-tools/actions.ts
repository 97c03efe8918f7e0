// actions.ts: what is to be done. A user who asks a question does not want a tool that deletes
// something, however well the other words fit.

import { stemOf } from './lexicon.ts';

export type Action = 'read' | 'create' | 'update' | 'delete' | 'run';

const VERBS: Record<Action, string> = {
  read:
    'get list show read view fetch find search query describe retrieve look see check display ' +
    'browse count inspect explain lookup tell give compare analyze examine watch discover whoami ' +
    'validate verify recall grep download export poll monitor open explore track',
  create:
    'create add make insert generate new write upload register invite schedule post publish send ' +
    'attach append reply draft import comment clone duplicate copy fork save store remember note ' +
    'build scaffold init initialize start begin launch book order put',
  update:
    'update edit change modify set rename move patch adjust replace fix correct mark assign enable ' +
    'disable resize scale convert merge reorder restore archive let turn switch raise lower pause ' +
    'resume reopen rotate',
  delete:
    'delete remove drop clear erase purge destroy discard wipe cancel revoke uninstall unassign ' +
    'throw forget kill stop close dismiss detach unlink',
  run: 'run execute call click press type fill navigate go hover scroll select drag trigger invoke',
};
const QUESTIONS =
  'what which who whose where when why how is are was were am do does did has have can could will ' +
  'any all every';
const CHINESE_QUESTION = /什么|哪|吗|怎么|多少|看/;

const ACTIONS = new Map<string, Action>();
for (const [action, verbs] of Object.entries(VERBS))
  for (const verb of verbs.split(' ')) ACTIONS.set(stemOf(verb), action as Action);

const QUESTION_WORDS = new Set(QUESTIONS.split(' ').map(stemOf));

/** A question wants to read; an order begins with its verb. */
export function actionWanted(need: string, stems: readonly string[]): Action | undefined {
  const [first = ''] = stems;
  if (QUESTION_WORDS.has(first) || CHINESE_QUESTION.test(need)) return 'read';
  return ACTIONS.get(first);
}

/** By the first verb of its name. */
export function actionOf(name: readonly string[]): Action | undefined {
  const verb = name.find((word) => ACTIONS.has(word));
  return verb === undefined ? undefined : ACTIONS.get(verb);
}

/** What is left of a tool's score if it does something else, or does not say what it does. */
export function fitOf(action: Action | undefined, wanted: Action | undefined): number {
  if (!wanted || action === wanted) return 1;
  return action ? 0.8 : 0.9;
}
