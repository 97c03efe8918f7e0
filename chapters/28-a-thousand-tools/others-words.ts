// others-words.ts: what entries say that were written for other programs. What restricts is obeyed,
// in a way that is not looser than theirs. What grants is told, and never obeyed.

import { LIST_OF_TEXT, type EntryWord, type Json, type Words } from '../../mcp.ts';

/** As in `enabledTools`, and as in `enabled_tools`. */
const spelled = (verbs: string[], noun: string) =>
  verbs.flatMap((verb) => [`${verb}${noun[0]!.toUpperCase()}${noun.slice(1)}`, `${verb}_${noun}`]);

const PERMITTED = ['allowed', 'enabled', 'include', 'included'];
const FORBIDDEN = ['denied', 'disabled', 'exclude', 'excluded', 'blocked'];
const ONLY_TOOLS = spelled(PERMITTED, 'tools');
const NO_TOOLS = spelled(FORBIDDEN, 'tools');
const ONLY_RESOURCES = spelled(PERMITTED, 'resources');
const GRANTS = ['autoApprove', 'auto_approve', 'alwaysAllow', 'always_allow', 'trust', 'trusted'];

/** Codex: which tools want a question. */
const APPROVAL_MODES: EntryWord = {
  form: 'one of prompt, writes, auto, approve',
  fits: (value) => /^(prompt|writes|auto|approve)$/.test(String(value)),
};
/** VS Code: a server without it could do more than its entry says. */
const SANDBOX: EntryWord = {
  form: 'possible: no server has a sandbox here',
  fits: (value) => value === false,
};

export const OTHERS_WORDS: Words = {
  default_tools_approval_mode: APPROVAL_MODES,
  sandboxEnabled: SANDBOX,
};
for (const word of [...ONLY_TOOLS, ...NO_TOOLS, ...ONLY_RESOURCES])
  OTHERS_WORDS[word] = LIST_OF_TEXT;
for (const word of GRANTS) {
  const caution = `"${word}" grants nothing here: only a rule or an answer of yours does`;
  OTHERS_WORDS[word] = { form: '', fits: () => true, caution };
}

/** What the entry says about its tools, whichever word it says it by. */
export function listsOf(config: Json) {
  const said = (words: string[]) => words.filter((word) => config[word] !== undefined);
  return {
    onlyTools: said(ONLY_TOOLS),
    noTools: said(NO_TOOLS),
    onlyResources: said(ONLY_RESOURCES),
  };
}
