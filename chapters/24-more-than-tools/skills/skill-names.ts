// skill-names.ts: which skill is meant. A name is no identity: two servers may have skills of the
// same name, or even the same address, and a server may name one like a skill of the user's own.

import { nearest } from '../../16-hands/nearest.ts';
import { plain, quoted } from '../../17-the-gate/safe-text.ts';
import { skillRoot } from '../skill-entry.ts';
import type { Listed, SkillSource } from '../skill-sources.ts';

const MAX_SKILLS_LISTED = 6000; // characters of the list that goes along with every request
const MAX_DESCRIPTION = 240; // of one skill in it
const MAX_FOUND = 50;

/** A skill that can be loaded, and the label that means this one and no other. */
export type KnownSkill = Listed & { source: SkillSource; label: string };

/** Whose it is and where: what an approval is kept under. */
export function approvalKey({ source, uri }: KnownSkill): string {
  return `skill ${source.kind} ${JSON.stringify(source.label)} ${uri}`;
}

/** "docs/pdf". Two of one name in one list are told apart by their paths, and if need be by their
 *  addresses. Labels of different sources begin differently. */
export function labelled(source: SkillSource, skills: Listed[]): KnownSkill[] {
  const counts = new Map<string, number>();
  for (const { frontmatter } of skills)
    counts.set(frontmatter.name, (counts.get(frontmatter.name) ?? 0) + 1);
  const found = new Map<string, KnownSkill>();
  for (const listed of skills) {
    const { name } = listed.frontmatter;
    const isAlone = counts.get(name) === 1;
    const names = [isAlone ? name : pathOf(listed.uri), listed.uri];
    const labels = names.map((each) => `${source.label}/${each}`);
    const label = labels.find((each) => !found.has(each));
    if (label !== undefined) found.set(label, { ...listed, source, label });
  }
  return [...found.values()];
}

const pathOf = (uri: string) => skillRoot(uri).replace(/^[^:]*:\/*/, '');

/** Labels of the other skills with the same name: one could be taken for the other. */
export function namesakesOf({ label, frontmatter }: KnownSkill, all: KnownSkill[]): string[] {
  const isAlike = (each: KnownSkill) => each.frontmatter.name === frontmatter.name;
  return all.filter((each) => isAlike(each) && each.label !== label).map((each) => each.label);
}

/** A bare name means none of them, even if only one has it: whose it is must be said. */
export function unknownSkill(label: string, all: KnownSkill[]): Error {
  const named = all.filter(({ frontmatter }) => frontmatter.name === label);
  const labels = (each: KnownSkill[]) => each.map((known) => known.label);
  const close = named.length > 0 ? labels(named) : nearest(label, labels(all));
  const hint = close.length > 0 ? ` Did you mean ${close.map(plain).join(' or ')}?` : '';
  return new Error(`There is no skill ${quoted(label)}.${hint}`);
}

// ─── For the model ─────────────────────────────────────────────────────────────────────────────

const ORIGINS = {
  user: "the user's own",
  project: 'of this project',
  server: 'from an MCP server',
};

/** What it says of itself, in one line behind a mark: no part of it can pass for a line of ours.
 *  What a project says reaches the model after the user has agreed to it. */
export function skillLine({ label, source, frontmatter }: KnownSkill, isAgreed: boolean): string {
  if (source.kind === 'project' && !isAgreed)
    return `> ${label} (of this project; the user has not agreed to it yet)`;
  const words = plain(frontmatter.description).replace(/\s+/g, ' ').trim();
  const short = words.length > MAX_DESCRIPTION ? `${words.slice(0, MAX_DESCRIPTION)}…` : words;
  return `> ${plain(label)} (${ORIGINS[source.kind]}): ${short}`;
}

/** As many as fit, and how many more there are. */
export function shortList(lines: string[]): string[] {
  const shown: string[] = [];
  let size = 0;
  for (const line of lines) {
    size += line.length;
    if (size > MAX_SKILLS_LISTED) break;
    shown.push(line);
  }
  const more = lines.length - shown.length;
  return more > 0 ? [...shown, `and ${more} more: search with {"find": "words"}`] : shown;
}

export function matchingLines(lines: string[], words: string): string {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const isMeant = (line: string) => wanted.every((word) => line.toLowerCase().includes(word));
  const found = lines.filter(isMeant);
  if (found.length === 0) return `none of ${lines.length} skills has all of these words`;
  return found.slice(0, MAX_FOUND).join('\n');
}
