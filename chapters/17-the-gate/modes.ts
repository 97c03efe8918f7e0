// modes.ts: how much is asked.

export const MODES = ['ask', 'read-only', 'accept-edits', 'yolo'] as const;
/** read-only: built-in tools that read, and nothing else. accept-edits: changes to files in the
 *  folder need no question. yolo: nothing does, but what a rule denies stays denied, and what a
 *  rule asks about is asked. */
export type Mode = (typeof MODES)[number];

export const MEANING: Record<Mode, string> = {
  ask: 'reading in the folder is free, everything else asks',
  'read-only': 'reading only; everything else is refused',
  'accept-edits': 'changes to files in the folder need no question, commands and servers do',
  yolo: 'nothing asks any more: commands, calls and changes just run; only your rules still count',
};

/** As Claude Code calls them. */
const CLAUDE = new Map<string, Mode>([
  ['default', 'ask'],
  ['plan', 'read-only'],
  ['acceptEdits', 'accept-edits'],
  ['bypassPermissions', 'yolo'],
]);

/** By our names, or by those of Claude Code. */
export function modeNamed(word: string): Mode | undefined {
  return MODES.find((mode) => mode === word) ?? CLAUDE.get(word);
}

/** What a key goes through. yolo has to be called by its name, and the key leads out of it. */
const ROUND: Mode[] = ['ask', 'accept-edits', 'read-only'];

export function modeAfter(mode: Mode): Mode {
  return ROUND[(ROUND.indexOf(mode) + 1) % ROUND.length]!;
}
