// skill-sources.ts: where skills come from. A server has some, a project has some in
// .claude/skills, and so has the user. Each lists them, and gives one file when it is wanted.

import type { Dirent } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import {
  asList,
  asObject,
  excerpt,
  isObject,
  textOf,
  type Json,
  type McpConnection,
} from '../../mcp.ts';
import { openFile, Roots } from '../16-hands/paths.ts';
import { quoted } from '../17-the-gate/safe-text.ts';
import type { Trust } from '../17-the-gate/trust.ts';
import { parseFrontmatter } from './frontmatter.ts';
import {
  checkedSkill,
  digestOf,
  MAX_SKILL_BYTES,
  MAX_SKILL_FILES,
  Mismatch,
  pathIn,
  problemWithFields,
  skillRoot,
  type SkillFields,
  type Skill,
  type SkillFile,
} from './skill-entry.ts';

/** The name of the extension, on both sides of the wire. */
export const EXTENSION = 'io.modelcontextprotocol/skills';

const MAX_SKILLS = 1000; // of one source
const MAX_SKILL_MD = 2 ** 20; // bytes of which a folder's list looks for frontmatter
const MAX_CHILDREN = 1000;
const SKILL_MD = 'SKILL.md';

/** A server's list has whole entries. A folder's has not: its files are hashed when one is loaded. */
export type Listed = { uri: string; frontmatter: SkillFields; entry?: Skill };
export type Listing = { skills: Listed[]; leftOut: string[] };

export interface SkillSource {
  readonly kind: 'server' | 'project' | 'user';
  readonly label: string; // before the names of its skills
  readonly whose: string; // for a question, and for the model
  readonly origin: string; // what else an approval is bound to
  list(): Promise<Listing>;
  get(uri: string): Promise<Skill>;
  read(uri: string, signal?: AbortSignal): Promise<Buffer>;
  /** The addresses of what is in a folder, where that can be asked for. */
  children?(uri: string, signal?: AbortSignal): Promise<string[]>;
  /** Something was not as it was listed. */
  forget?(): void;
}

// ─── Of a server ───────────────────────────────────────────────────────────────────────────────

/** What a server said of the extension, if it has it. Without that, nothing of it is requested. */
export function offerOf({ server }: McpConnection): Json | undefined {
  const offer = asObject(asObject(server?.capabilities).extensions)[EXTENSION];
  return isObject(offer) ? offer : undefined;
}

/** So that no server can be called like the two folders. */
const labelFor = (server: string) =>
  /^(mcp:|user$|project$)/i.test(server) ? `mcp:${server}` : server;

export class ServerSkills implements SkillSource {
  readonly kind = 'server';
  readonly serverName: string;
  readonly label: string;
  readonly whose: string;
  private connection: McpConnection;
  private trust: Trust;
  isForgetting = false; // what we keep of it, so there is no news to look at

  constructor(connection: McpConnection, trust: Trust) {
    this.connection = connection;
    this.trust = trust;
    this.serverName = connection.serverName;
    this.label = labelFor(connection.serverName);
    this.whose = `the MCP server ${quoted(connection.serverName)}`;
  }

  isOf(connection: McpConnection): boolean {
    return this.connection === connection;
  }

  /** Another entry under the same name is another server. */
  get origin(): string {
    const print = this.trust.seen.get(this.serverName)?.fingerprint ?? 'not configured';
    return `server ${JSON.stringify(this.serverName)}: ${print}`;
  }

  async list(): Promise<Listing> {
    const found = await this.connection.listAll('skills/list', 'skills');
    const skills = new Map<string, Listed>();
    const leftOut: string[] = [];
    for (const each of found) {
      const { uri } = asObject(each);
      try {
        if (skills.size === MAX_SKILLS) throw new Error(`there are more than ${MAX_SKILLS}`);
        const entry = checkedSkill(each);
        if (skills.has(entry.uri)) throw new Error('it is listed twice');
        skills.set(entry.uri, { ...entry, entry });
      } catch (error) {
        leftOut.push(`${excerpt(uri)}: ${textOf(error)}`);
      }
    }
    return { skills: [...skills.values()], leftOut };
  }

  async get(uri: string): Promise<Skill> {
    const { skill } = await this.connection.request('skills/get', { uri });
    const entry = checkedSkill(skill);
    if (entry.uri === uri) return entry;
    throw new Error(`asked for ${excerpt(uri)}, it answered with ${excerpt(entry.uri)}`);
  }

  async read(uri: string, signal?: AbortSignal): Promise<Buffer> {
    const { contents } = await this.connection.request('resources/read', { uri }, { signal });
    const [content, ...more] = asList(contents);
    const { uri: its, text, blob } = asObject(content);
    const what = `${this.whose} answered a read of ${excerpt(uri)}`;
    if (more.length > 0 || its !== uri) throw new Mismatch(`${what} with something else`);
    if (typeof text === 'string') return Buffer.from(text);
    if (typeof blob !== 'string') throw new Mismatch(`${what} with neither text nor data`);
    // Before decoding.
    if (blob.length > 2 * MAX_SKILL_BYTES) throw new Mismatch(`${what} with too much`);
    return Buffer.from(blob, 'base64');
  }

  /** Only where the server says that it can be asked. */
  get children(): SkillSource['children'] {
    const isOffered = offerOf(this.connection)?.directoryRead === true;
    return isOffered ? (uri, signal) => this.directory(uri, signal) : undefined;
  }

  private async directory(uri: string, signal?: AbortSignal) {
    const found: string[] = [];
    let cursor: unknown;
    do {
      const params = { uri, ...(cursor !== undefined && { cursor }) };
      const page = await this.connection.request('resources/directory/read', params, { signal });
      const { resources, nextCursor } = page;
      if (!Array.isArray(resources)) throw new Error(`${this.whose} cannot list ${excerpt(uri)}`);
      for (const { uri: child, mimeType } of resources.map(asObject))
        found.push(`${child}${mimeType === 'inode/directory' ? '/' : ''}`);
      cursor = nextCursor ?? undefined;
    } while (cursor !== undefined && found.length < MAX_CHILDREN);
    return found.slice(0, MAX_CHILDREN);
  }

  forget(): void {
    this.isForgetting = true;
    this.connection.changed('resources');
    this.isForgetting = false;
  }
}

// ─── Of a folder ───────────────────────────────────────────────────────────────────────────────

type SkillsFolder = {
  kind: 'project' | 'user';
  folder: string; // .claude/skills of the project or of the user
  inside?: Roots; // where a project's must really be
};

export class FolderSkills implements SkillSource {
  readonly kind;
  readonly label;
  readonly whose;
  readonly origin;
  private place: SkillsFolder;

  constructor(place: SkillsFolder) {
    this.place = place;
    this.kind = place.kind;
    this.label = place.kind;
    const isOwn = place.kind === 'user';
    this.whose = isOwn ? 'you (~/.claude/skills)' : 'this project (.claude/skills)';
    this.origin = isOwn ? 'your own' : 'of this project';
  }

  async list(): Promise<Listing> {
    const skills: Listed[] = [];
    const leftOut: string[] = [];
    for (const name of await foldersIn(this.place.folder)) {
      try {
        if (skills.length === MAX_SKILLS) throw new Error(`there are more than ${MAX_SKILLS}`);
        skills.push(await this.listed(name));
      } catch (error) {
        const isNone = (error as NodeJS.ErrnoException).code === 'ENOENT'; // some other folder
        if (!isNone) leftOut.push(`${this.label}/${name}: ${textOf(error)}`);
      }
    }
    return { skills, leftOut };
  }

  private async listed(name: string): Promise<Listed> {
    const bytes = await readWhole(this.roots(name), SKILL_MD, MAX_SKILL_MD);
    const { fields } = parseFrontmatter(bytes.toString('utf8'));
    const frontmatter = { name, ...fields } as SkillFields; // without a name, the folder's
    const problem = problemWithFields(frontmatter, name);
    if (problem) throw new Error(problem);
    return { uri: this.uriOf(name), frontmatter };
  }

  private uriOf(name: string) {
    return pathToFileURL(join(this.place.folder, name, SKILL_MD)).href;
  }

  /** The folder of a skill, as the only one that its files may really be in. */
  private roots(name: string) {
    const { folder, inside } = this.place;
    const path = join(folder, name);
    if (inside && !inside.locate(path).inside)
      throw new Error('it is a link that leads out of this folder');
    return new Roots(path);
  }

  /** Hashes every file: the entry that a server would have sent. */
  async get(uri: string): Promise<Skill> {
    const name = basename(fileURLToPath(skillRoot(uri)));
    const { frontmatter } = await this.listed(name);
    const roots = this.roots(name);
    const resources: SkillFile[] = [];
    let left = MAX_SKILL_BYTES;
    for (const path of await filesIn(roots.cwd)) {
      const bytes = await readWhole(roots, path, left);
      left -= bytes.length;
      const its = `${skillRoot(uri)}/${path.split('/').map(encodeURIComponent).join('/')}`;
      resources.push({ uri: its, digest: digestOf(bytes), size: bytes.length });
    }
    return checkedSkill({ uri, frontmatter, resources });
  }

  async read(uri: string): Promise<Buffer> {
    const root = pathToFileURL(this.place.folder).href;
    const path = pathIn(root, uri);
    const [name = '', ...rest] = (path ?? '').split('/');
    if (rest.length === 0) throw new Error(`${excerpt(uri)} is not a file of a skill`);
    return readWhole(this.roots(name), rest.join('/'), MAX_SKILL_BYTES);
  }
}

async function foldersIn(folder: string) {
  const entries = await readdir(folder, { withFileTypes: true }).catch((): Dirent[] => []);
  const isFolder = (each: Dirent) => each.isDirectory() || each.isSymbolicLink();
  return entries
    .filter(isFolder)
    .map(({ name }) => name)
    .sort();
}

/** All files below, by their paths. What is neither a file nor a folder is refused when it is read. */
async function filesIn(folder: string, path = '') {
  const found: string[] = [];
  for (const entry of await readdir(join(folder, path), { withFileTypes: true })) {
    const its = path === '' ? entry.name : `${path}/${entry.name}`;
    found.push(...(entry.isDirectory() ? await filesIn(folder, its) : [its]));
    if (found.length > MAX_SKILL_FILES)
      throw new Error(`it has more than ${MAX_SKILL_FILES} files`);
  }
  return found.sort();
}

/** A file that is really in its skill's folder, and not longer than this. */
async function readWhole(roots: Roots, path: string, most: number): Promise<Buffer> {
  const location = roots.locate(path);
  if (!location.inside)
    throw new Error(`its ${quoted(path)} is a link that leads out of the skill`);
  if (location.secret) throw new Error(`its ${quoted(path)} is not read: ${location.secret}`);
  const file = await openFile(location);
  try {
    const { size } = await file.stat();
    if (size > most)
      throw new Error(`with ${quoted(path)} it has more bytes than ${MAX_SKILL_BYTES}`);
    return await file.readFile();
  } finally {
    await file.close();
  }
}
