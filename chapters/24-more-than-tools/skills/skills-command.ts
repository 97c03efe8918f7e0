// skills-command.ts: /skills, for the person. What there is, whose it is, and what was decided.

import type { Turn } from '../../../agent.ts';
import { plain } from '../../17-the-gate/safe-text.ts';
import type { Command } from '../../19-the-terminal/host.ts';
import type { Program } from '../../19-the-terminal/program.ts';
import { cutToWidth } from '../../19-the-terminal/screen.ts';
import type { SkillStanding } from '../skill-consent.ts';
import type { Skills } from '../skills.ts';

const HELP = `/skills                   what the model can work by, whose it is, and what you have decided
/skills use NAME [WORDS]  have the model work by one now
/skills show NAME         its text and its files; allow asks you about it, revoke takes that back`;

const ACTIONS = ['use', 'show', 'allow', 'revoke'];

const WORDS: Record<SkillStanding, string> = {
  own: 'yours',
  approved: 'approved',
  never: 'you said never',
  changed: 'it has changed, so you will be asked again',
  new: 'you will be asked',
  dynamic: 'you will be asked each time',
};

export function skillsCommand(skills: Skills): Command {
  return {
    help: HELP,
    run: async ([action, label = '', ...words], program, signal) => {
      await program.agent.startUp.wait(signal);
      await skills.refresh();
      if (action === undefined) return list(skills, program);
      if (action === 'use' && label) return use(skills, label, words.join(' '), signal);
      await act(skills, { action, label }, program, signal);
    },
    complete: ([, ...labels]) =>
      labels.length === 0 ? ACTIONS : skills.all().map(({ label }) => label),
  };
}

function list(skills: Skills, { screen }: Program) {
  const all = skills.all();
  const { leftOut } = skills;
  for (const known of all) {
    const { description } = known.frontmatter;
    const line = `${known.label} (${WORDS[skills.standing(known)]}): ${plain(description)}`;
    screen.print(cutToWidth(line, screen.width - 1));
  }
  for (const each of leftOut) screen.print(`left out: ${plain(each)}`);
  if (all.length + leftOut.length > 0) return;
  screen.print('no server has skills, and there are none in .claude/skills, here or at home');
}

/** As a prompt: what the skill says, and what the user says. */
async function use(
  skills: Skills,
  label: string,
  words: string,
  signal: AbortSignal,
): Promise<Turn[]> {
  const text = await skills.use(label, signal);
  return [{ role: 'user', text: `${text}\n\n${words || 'Work by this skill now.'}` }];
}

type WantedSkill = { action: string; label: string };

async function act(
  skills: Skills,
  { action, label }: WantedSkill,
  { screen }: Program,
  signal: AbortSignal,
) {
  if (!ACTIONS.includes(action) || label === '')
    throw new Error('write /skills, or /skills and use, show, allow or revoke, and a NAME');
  if (action === 'show') return screen.printLines(await skills.show(label, signal));
  if (action === 'allow') {
    await skills.allow(label, signal);
    return screen.print(`the model may work by ${label}, as it is now`);
  }
  const isRevoked = await skills.revoke(label);
  screen.print(
    isRevoked ? `you will be asked about ${label} again` : `nothing was decided about ${label}`,
  );
}
