// skill-entry.ts: what a server says of a skill, and whether that can be one. An entry lists every
// file with its size and digest, so all of this is known before any file is fetched.

import { createHash } from 'node:crypto';
import { excerpt, isObject, type Json } from '../../mcp.ts';
import { canonicalJson, sha256 } from '../17-the-gate/digest.ts';
import { named } from '../17-the-gate/safe-text.ts';
import { parseFrontmatter } from './frontmatter.ts';

/** As the extension has them: a host must take skills up to here. */
export const MAX_SKILL_FILES = 512;
export const MAX_SKILL_BYTES = 16 * 2 ** 20;
const MAX_URI = 2048; // characters
const MAX_FIELDS = 65_536; // characters of the frontmatter
const SKILL_MD = '/SKILL.md';

export type SkillFields = Json & { name: string; description: string };
/** Without a size: Hugging Face's server tells none, against the rule. Its digests are enough. */
export type SkillFile = { uri: string; digest: string; size?: number };
export type Skill = {
  uri: string; // of its SKILL.md
  frontmatter: SkillFields;
  resources: SkillFile[] | 'dynamic'; // dynamic: it is made when it is read, so nothing can be checked
};

// ─── Is it one? ────────────────────────────────────────────────────────────────────────────────

/** The entry, with nothing in it but what we know. Throws with the reason if it is none. */
export function checkedSkill(value: unknown): Skill {
  if (!isObject(value)) throw new Error(`not an entry of a skill: ${excerpt(value)}`);
  const { uri, frontmatter, resources } = value;
  const root = skillRoot(uri);
  const fields = checkedFields(frontmatter, nameIn(root));
  if (resources === 'dynamic') return { uri: String(uri), frontmatter: fields, resources };
  if (!Array.isArray(resources)) throw new Error('it does not list its files ("resources")');
  if (resources.length > MAX_SKILL_FILES)
    throw new Error(`it has more than ${MAX_SKILL_FILES} files`);
  const files = resources.map((file) => checkedFile(file, root));
  mustBeWhole(files, String(uri), root);
  return { uri: String(uri), frontmatter: fields, resources: files };
}

/** The folder of a skill: its address without "/SKILL.md". */
export function skillRoot(uri: unknown): string {
  const isText = typeof uri === 'string' && uri.length <= MAX_URI;
  if (!isText || !/^[a-z][a-z\d+.-]*:/i.test(uri) || !uri.endsWith(SKILL_MD))
    throw new Error(`its address is not that of a SKILL.md: ${excerpt(uri)}`);
  const root = uri.slice(0, -SKILL_MD.length);
  const path = root.replace(/^[a-z][a-z\d+.-]*:(\/\/)?/i, '').replace(/^\//, '');
  if (!path.split('/').every(isSegment)) throw new Error(`its address is odd: ${excerpt(uri)}`);
  return root;
}

const nameIn = (root: string) =>
  root.slice(Math.max(root.lastIndexOf('/'), root.lastIndexOf(':')) + 1);

/** "references/FORMS.md" of "skill://pdf/references/FORMS.md"; undefined if it is not in there. */
export function pathIn(root: string, uri: string): string | undefined {
  if (uri.length > MAX_URI || !uri.startsWith(`${root}/`)) return undefined;
  const segments = uri.slice(root.length + 1).split('/');
  return segments.every(isSegment) ? segments.map(decodeURIComponent).join('/') : undefined;
}

/** A name of one file or folder, that stays one however often it is decoded. */
function isSegment(segment: string) {
  try {
    const name = decodeURIComponent(segment);
    const isPlain = !/[/\\?#\p{Cc}\p{Cf}\p{Zl}\p{Zp}]|%[\da-f]{2}/iu.test(name);
    return isPlain && !/[?#\s]/.test(segment) && !['', '.', '..'].includes(name);
  } catch {
    return false; // half of an escape
  }
}

function checkedFields(value: unknown, name: string) {
  if (!isObject(value)) throw new Error('it has no frontmatter');
  if (canonicalJson(value).length > MAX_FIELDS)
    throw new Error(`its frontmatter has more than ${MAX_FIELDS} characters`);
  const problem = problemWithFields(value, name);
  if (problem) throw new Error(problem);
  return value as SkillFields;
}

/** By the rules of agentskills.io. Its folder must have the same name: so an address tells it. */
export function problemWithFields({ name, description }: Json, folder: string): string | undefined {
  const isName = typeof name === 'string' && name.length <= 64;
  if (!isName || !/^[a-z\d]+(-[a-z\d]+)*$/.test(name))
    return `its name is not of small letters, digits and single hyphens: ${excerpt(name)}`;
  if (name !== folder) return `it is called ${name}, and its folder ${excerpt(folder)}`;
  const isDescribed = typeof description === 'string' && description.trim() !== '';
  return isDescribed ? undefined : 'it has no description';
}

function checkedFile(value: unknown, root: string): SkillFile {
  if (!isObject(value)) throw new Error(`not a file: ${excerpt(value)}`);
  const { uri, digest, size } = value;
  if (typeof uri !== 'string' || pathIn(root, uri) === undefined)
    throw new Error(`it lists a file that is not in its folder: ${excerpt(uri)}`);
  if (typeof digest !== 'string' || !/^sha256:[\da-f]{64}$/.test(digest))
    throw new Error(`the digest of ${excerpt(uri)} is none: ${excerpt(digest)}`);
  if (size === undefined) return { uri, digest };
  if (!Number.isSafeInteger(size) || Number(size) < 0)
    throw new Error(`the size of ${excerpt(uri)} is none: ${excerpt(size)}`);
  return { uri, digest, size: Number(size) };
}

function mustBeWhole(files: SkillFile[], uri: string, root: string) {
  const paths = files.map((file) => pathIn(root, file.uri)!.normalize('NFC'));
  const twice = paths.find((path, n) => paths.indexOf(path) !== n);
  if (twice !== undefined) throw new Error(`it lists ${excerpt(twice)} twice`);
  if (!files.some((file) => file.uri === uri)) throw new Error('it does not list its own SKILL.md');
  const bytes = totalSize(files);
  if (bytes > MAX_SKILL_BYTES)
    throw new Error(`it has ${bytes} bytes, more than ${MAX_SKILL_BYTES}`);
}

export const totalSize = (files: SkillFile[]) => files.reduce((sum, { size = 0 }) => sum + size, 0);

// ─── Is this what was promised? ────────────────────────────────────────────────────────────────

export const digestOf = (bytes: Buffer) =>
  `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

/** What came is not what the entry says. It must not be used. */
export class Mismatch extends Error {}

export function mustMatch(bytes: Buffer, { uri, digest, size }: SkillFile): void {
  const what = `${excerpt(uri)} is not what its skill's entry says`;
  const isAsLong = size === undefined || bytes.length === size;
  if (!isAsLong) throw new Mismatch(`${what}: ${bytes.length} bytes, not ${size}`);
  const found = digestOf(bytes);
  if (found !== digest) throw new Mismatch(`${what}: its digest is ${found}, not ${digest}`);
}

/** The text of a SKILL.md, if it says of itself what its entry says of it, field by field. */
export function mustSayTheSame(bytes: Buffer, { frontmatter }: Skill): string {
  const text = bytes.toString('utf8');
  let fields: Json;
  try {
    fields = parseFrontmatter(text).fields;
  } catch (error) {
    throw new Mismatch(
      `its SKILL.md cannot be compared with its entry: ${(error as Error).message}`,
    );
  }
  const names = [...new Set([...Object.keys(fields), ...Object.keys(frontmatter)])];
  const differs = (name: string) =>
    canonicalJson([own(fields, name)]) !== canonicalJson([own(frontmatter, name)]);
  const wrong = names.find(differs);
  if (wrong === undefined) return text;
  const [there, here] = [own(frontmatter, wrong), own(fields, wrong)].map(excerptOrNothing);
  throw new Mismatch(`its SKILL.md says of ${excerpt(wrong)} ${here}, and its entry says ${there}`);
}

const own = (fields: Json, name: string) => (Object.hasOwn(fields, name) ? [fields[name]] : []);
const excerptOrNothing = (found: unknown[]) => (found.length === 0 ? 'nothing' : excerpt(found[0]));

// ─── What is approved ──────────────────────────────────────────────────────────────────────────

/** All that an approval is bound to: whose it is, what it says of itself, and every file. */
export function printOf({ uri, frontmatter, resources }: Skill, origin: string): string {
  const byUri = (a: SkillFile, b: SkillFile) => (a.uri < b.uri ? -1 : 1);
  const files = resources === 'dynamic' ? resources : [...resources].sort(byUri);
  return sha256(canonicalJson({ origin, uri, frontmatter, files }));
}

/** The same, one thing a line, so that a change can be shown. */
export function manifestOf({ uri, frontmatter, resources }: Skill, origin: string): string {
  const fields = Object.keys(frontmatter).sort();
  const told = fields.map((name) => `${named(name)}: ${JSON.stringify(frontmatter[name])}`);
  return [origin, uri, ...told, ...fileLines(resources, skillRoot(uri))].join('\n');
}

export function fileLines(resources: Skill['resources'], root: string): string[] {
  if (resources === 'dynamic') return ['files: made when they are read, so nothing can be checked'];
  const lines = resources.map(({ uri, size, digest }) => {
    const length = size === undefined ? '' : `${size} bytes, `;
    return `${pathIn(root, uri)} (${length}${digest})`;
  });
  return lines.sort();
}
