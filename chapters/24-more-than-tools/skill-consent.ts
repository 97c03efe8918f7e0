// skill-consent.ts: may the model work by this skill? The answer is bound to every file of it, by
// address and digest, and to the server that has it. Any other set of files is another question.

import { changeOf } from '../16-hands/diff.ts';
import { changeLines } from '../17-the-gate/change.ts';
import { choice, NEVER, NOT_NOW } from '../17-the-gate/dialogue.ts';
import type { Person } from '../17-the-gate/person.ts';
import { line, quoted, spelledOut, told } from '../17-the-gate/safe-text.ts';
import type { Trust } from '../17-the-gate/trust.ts';
import { fileLines, manifestOf, printOf, skillRoot, totalSize, type Skill } from './skill-entry.ts';
import { approvalKey, type KnownSkill } from './skills/skill-names.ts';

const MAX_MANIFEST = 65_536; // characters that are kept, to show what changes

/** `changed`: it is not as it was when the user agreed. `own`: the user's, so nothing is asked. */
export type SkillStanding = 'own' | 'approved' | 'never' | 'changed' | 'new' | 'dynamic';
/** A skill, and the entry that the user was asked about. */
export type Agreed = { known: KnownSkill; entry: Skill };

type ConsentOptions = {
  person: Person;
  trust: Trust;
  namesakes: (known: KnownSkill) => string[];
  text: (agreed: Agreed, signal: AbortSignal) => Promise<string>; // of its SKILL.md
};

export class SkillConsent {
  private options: ConsentOptions;

  constructor(options: ConsentOptions) {
    this.options = options;
  }

  standingOf({ known, entry }: Agreed): SkillStanding {
    if (known.source.kind === 'user') return 'own';
    const before = this.options.trust.noteOf(approvalKey(known));
    if (before?.verdict === 'never') return 'never';
    if (entry.resources === 'dynamic') return 'dynamic';
    if (!before) return 'new';
    return before.hash === printOf(entry, known.source.origin) ? 'approved' : 'changed';
  }

  /** Why not, if not. */
  async refusal(agreed: Agreed, signal: AbortSignal): Promise<string | undefined> {
    const { label } = agreed.known;
    const standing = this.standingOf(agreed);
    if (standing === 'own' || standing === 'approved') return undefined;
    if (standing === 'never') return `The user never wants the skill ${label}.`;
    if (!this.options.person.isThere) return nobodyToAsk(label, standing);
    const key = await this.ask(agreed, standing, signal);
    this.write(agreed, key, standing);
    return key === 'y' ? undefined : `The user does not want the skill ${label} now.`;
  }

  /** What cannot be bound to its content cannot be agreed to once and for all. */
  private write({ known, entry }: Agreed, key: string | undefined, standing: SkillStanding) {
    const { origin } = known.source;
    const text = manifestOf(entry, origin).slice(0, MAX_MANIFEST);
    const row = { file: approvalKey(known), hash: printOf(entry, origin), text };
    if (key === 'v') this.options.trust.decideNote(row, 'never');
    if (key === 'y' && standing !== 'dynamic') this.options.trust.decideNote(row, 'allow');
  }

  /** No file is fetched for the question. The text is, if the user wants to see it first. */
  private async ask(agreed: Agreed, standing: SkillStanding, signal: AbortSignal) {
    let shown: string[] = [];
    for (;;) {
      const answer = await this.options.person.choose({
        lines: [...this.describe(agreed), ...shown],
        prompt: 'Let the model work by it?',
        choices: [standing === 'dynamic' ? THIS_TIME : THESE_FILES, NOT_NOW, NEVER, SHOW],
        ifEmpty: 'n',
        signal,
      });
      signal.throwIfAborted(); // too late: nothing is loaded, and so nothing is agreed to
      if (answer?.key !== 's') return answer?.key;
      shown = ['  SKILL.md:', ...told(await this.options.text(agreed, signal), '    ')];
    }
  }

  /** All that it says of itself, and its files, or what has changed about them. */
  describe(agreed: Agreed): string[] {
    const { known, entry } = agreed;
    const { name, description, 'allowed-tools': tools, ...others } = entry.frontmatter;
    return [
      `The model wants to work by the skill ${quoted(name)} of ${known.source.whose}.`,
      '  It is text that steers the model. Each call that it leads to is still asked about.',
      `  address: ${quoted(entry.uri)}`,
      '  It says of itself:', // so that none of its fields can pass for a line of ours
      ...spelledOut({ description, ...others }, '    '),
      ...this.cautions(agreed, tools),
      ...(this.standingOf(agreed) === 'changed' ? this.changes(agreed) : filesOf(entry)),
    ];
  }

  private cautions({ known, entry }: Agreed, tools: unknown) {
    const namesakes = this.options.namesakes(known).map(quoted).join(', ');
    const cautions: string[] = [];
    if (tools !== undefined)
      cautions.push(
        `it wants tools without questions (allowed-tools): ${line(JSON.stringify(tools))}; not granted`,
      );
    if (namesakes !== '') cautions.push(`other skills have the same name: ${namesakes}`);
    if (entry.resources === 'dynamic')
      cautions.push('its content is made when it is read: nobody can tell what it will be');
    return cautions.map((caution) => `  ! ${caution}`);
  }

  private changes({ known, entry }: Agreed) {
    const before = this.options.trust.noteOf(approvalKey(known))?.text ?? '';
    const now = manifestOf(entry, known.source.origin).slice(0, MAX_MANIFEST);
    const change = changeOf(`${before}\n`, `${now}\n`);
    return ['  It has changed since you agreed to it:', ...changeLines(change, known.label)];
  }
}

function filesOf({ uri, resources }: Skill) {
  const lines = fileLines(resources, skillRoot(uri)).map((each) => `  ${line(each)}`);
  if (resources === 'dynamic') return lines;
  const count = resources.length === 1 ? '1 file' : `${resources.length} files`;
  const isCounted = resources.every(({ size }) => size !== undefined);
  const bytes = isCounted ? `, ${totalSize(resources)} bytes` : '';
  return [`  It has ${count}${bytes}:`, ...lines];
}

function nobodyToAsk(label: string, standing: SkillStanding) {
  const why = standing === 'changed' ? 'has changed since it was approved' : 'is not approved';
  const how = `The user can look at it in a terminal, with /skills allow ${label}.`;
  return `The skill ${label} ${why}, and there is nobody to ask. ${how}`;
}

const THESE_FILES = choice('[y]es, exactly these files');
const THIS_TIME = choice('[y]es, this time');
const SHOW = choice('[s]how its text', true);
