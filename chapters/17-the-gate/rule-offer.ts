// rule-offer.ts: a rule made from a question. What it would allow is judged by the tables that will
// judge it later, so it is never wider than what is shown, and does not ask again.

import type { Tool } from '../../agent.ts';
import { NO, YES } from './dialogue.ts';
import type { Person } from './person.ts';
import { reachInWords, wordsLike } from './reach.ts';
import { parseRules, type Rule, type RuleReader } from './rules.ts';
import { quoted } from './safe-text.ts';
import type { SimpleCommand } from './shell-syntax.ts';
import type { KeptRule } from './trust.ts';

/** A call of the shell, and whether a rule would allow it. */
export type ShellCall = {
  tool: Tool;
  line: SimpleCommand[];
  isCovered: (rule: Rule) => boolean;
};

/** As it counts in this folder. It means servers of the user only: a project's may be another tomorrow. */
export function keptRule({ effect, text }: KeptRule, reader: RuleReader): Rule | undefined {
  return parseRules(effect, [text], { name: KEPT, isHere: false }, reader)[0];
}

export const KEPT = 'kept for this folder';
const MAX_PARTS = 20; // of a line that are tried

/** One that would allow this call, and others that begin like it. */
export function ruleLike(call: ShellCall): Rule | undefined {
  const beginnings = call.line.slice(0, MAX_PARTS).map((part) => wordsLike(part).join(' '));
  const rules = beginnings.map((words) => ruleOf(words, call));
  return rules.find((rule) => rule !== undefined);
}

function ruleOf(words: string, { tool, isCovered }: ShellCall) {
  let isFit = words !== '';
  const text = `${tool.definition.name}(${words}:*)`;
  const warn = () => (isFit = false);
  const rule = keptRule({ effect: 'allow', text }, { tools: [tool], warn });
  return isFit && rule && isCovered(rule) ? rule : undefined;
}

/** The rule is shown, and may be made another, before it is kept. Nothing: it is not to be kept. */
export async function agreedRule(
  rule: Rule,
  call: ShellCall,
  { person, signal, note = [] }: { person: Person; signal: AbortSignal; note?: string[] },
): Promise<Rule | undefined> {
  const words = rule.pattern!.replace(/:\*$/, '');
  const answer = await person.choose({
    lines: [
      'This rule would be kept for this folder, until you take it back with /permissions revoke:',
      `  allow ${rule.text}`,
      `It means ${quoted(words)} with ${reachInWords(words.split(' '))}.`,
      ...note,
    ],
    prompt: 'Keep it?',
    choices: [YES, NO],
    ifEmpty: 'n',
    comment: 'or the words that it should begin with',
    signal,
  });
  signal.throwIfAborted();
  if (!answer?.words) return answer?.key === 'y' ? rule : undefined;
  const other = ruleOf(answer.words.replace(/:\*$/, ''), call);
  const why = `${quoted(answer.words)} is too broad, or would not allow this call.`;
  return agreedRule(other ?? rule, call, { person, signal, note: other ? [] : [why] });
}
