// notes.ts: what a project wants every agent to know, in AGENTS.md or CLAUDE.md. They steer the
// model, and whoever wrote the project wrote them: so they reach it only after the user has read them.

import { copyOf } from '../../mcp.ts';
import { changeOf } from '../16-hands/diff.ts';
import { openFile, type Roots } from '../16-hands/paths.ts';
import { changeLines } from './change.ts';
import { sha256 } from './digest.ts';
import { choice, NEVER, NOT_NOW } from './dialogue.ts';
import type { Person } from './person.ts';
import { plain, quoted, spelledOut } from './safe-text.ts';
import { PROGRAM, type Trust } from './trust.ts';

/** The first is the one that all agents know. */
export const NOTES_FILES = ['AGENTS.md', 'CLAUDE.md'];

const MAX_NOTES = 32_000; // characters: they are part of every request
const MAX_BYTES = 4 * MAX_NOTES; // no character takes more

/** The text as the model would get it: bounded, and without hidden characters. */
type Note = { file: string; text: string; hash: string };

// ─── Reading ───────────────────────────────────────────────────────────────────────────────────

/** The notes of a folder. What is there and cannot be used is told. */
export async function notesIn(roots: Roots, warn: (text: string) => void): Promise<Note[]> {
  const found: Note[] = [];
  for (const file of NOTES_FILES) {
    const note = await noteAt(file, roots, warn);
    // CLAUDE.md is often a link to the other, a copy of it, or the one word that refers to it.
    const isSame = found.some((other) => [other.text, `@${other.file}`].includes(note?.text ?? ''));
    if (note && !isSame) found.push(note);
  }
  return found;
}

export async function noteAt(
  file: string,
  roots: Roots,
  warn: (text: string) => void,
): Promise<Note | undefined> {
  const text = await readNotes(file, roots).catch((error: Error) => {
    warn(`${file} is not given to the model: ${error.message}`);
    return '';
  });
  return text === '' ? undefined : { file, text, hash: sha256(text) };
}

async function readNotes(file: string, roots: Roots) {
  const location = roots.locate(file);
  if (!location.inside) throw new Error('it is a link that leads out of this folder');
  if (location.secret) throw new Error(location.secret);
  const handle = await openFile(location).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (!handle) return '';
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(MAX_BYTES), 0, MAX_BYTES, 0);
    return boundedNote(buffer.toString('utf8', 0, bytesRead));
  } finally {
    await handle.close();
  }
}

export function boundedNote(text: string): string {
  const whole = plain(text.replaceAll('\r\n', '\n')).trim();
  if (text.length <= MAX_NOTES) return whole;
  return `${copyOf(whole.slice(0, MAX_NOTES))}\n[what comes behind ${MAX_NOTES} characters is left out]`;
}

// ─── Approving ─────────────────────────────────────────────────────────────────────────────────

const ANSWERS = [choice('[y]es, this exact text'), NOT_NOW, NEVER];

/** What is asked about a file, and how. */
type NoteWords = { what: string; prompt: string };
const NOTES_WORDS: NoteWords = {
  what: 'has notes of this project for the model, which follows them.',
  prompt: 'Give them to the model?',
};

/** In full, or what has changed since it was approved. */
export function describeNote(
  { file, text, hash }: Note,
  trust: Trust,
  what = NOTES_WORDS.what,
): string[] {
  const known = trust.noteOf(file);
  const isChanged = known?.verdict === 'allow' && known.hash !== hash;
  const shown = isChanged
    ? [
        '  They have changed since you approved them:',
        ...changeLines(changeIn(known.text, text), file),
      ]
    : spelledOut({ [file]: text });
  return [`${quoted(file)} ${what}`, ...shown, `  fingerprint: ${hash}`];
}

/** Both are without blanks at their ends, so neither ends with a line feed. */
const changeIn = (before: string, after: string) => changeOf(`${before}\n`, `${after}\n`);

type NotesOptions = {
  trust: Trust;
  person: Person;
  roots: Roots;
  warn: (text: string) => void;
};

/** The notes that the user has approved, for the system prompt. */
export class ProjectNotes {
  text = '';
  private options: NotesOptions;
  private putOff = new Set<string>(); // "not now" holds for this run

  constructor(options: NotesOptions) {
    this.options = options;
  }

  /** Looks at the files, and asks about those that are new or have changed. */
  async read(signal?: AbortSignal): Promise<void> {
    const { roots, warn } = this.options;
    const approved: Note[] = [];
    for (const note of await notesIn(roots, warn))
      if (await this.isApproved(note, NOTES_WORDS, signal)) approved.push(note);
    this.text = approved.map(inPrompt).join('\n\n');
  }

  /** What is put off is not asked about once more in this run. */
  async isApproved(
    note: Note,
    { what, prompt }: NoteWords,
    signal?: AbortSignal,
  ): Promise<boolean> {
    const { trust, person, warn } = this.options;
    const { file, hash } = note;
    const known = trust.noteOf(file);
    if (known?.hash === hash) return known.verdict === 'allow';
    if (this.putOff.has(hash)) return false;
    this.putOff.add(hash);
    if (!person.isThere) {
      warn(unapproved(file, known !== undefined));
      return false;
    }
    const lines = describeNote(note, trust, what);
    const answer = await person.choose({ lines, prompt, choices: ANSWERS, ifEmpty: 'n', signal });
    if (answer?.key === 'y') trust.decideNote(note, 'allow');
    if (answer?.key === 'v') trust.decideNote(note, 'never');
    return answer?.key === 'y';
  }
}

function unapproved(file: string, isKnown: boolean) {
  const why = `you have not approved it${isKnown ? ' as it is now' : ''}`;
  return `${file} is not given to the model: ${why}. To see and approve it: ${PROGRAM} trust allow ${file}`;
}

/** Not as a quotation, which would be data: the user has made them a part of the task. */
function inPrompt({ file, text }: Note) {
  const what = `Notes of this project, from its ${file}. The user has read and approved them`;
  return `${what}; what the user says in this conversation counts more.\n--- ${file} ---\n${text}\n---`;
}
