// server-skills.ts: the skills of a folder, served: the other end of chapter 24, by the same rules.
// What a host would refuse there is not listed here.

import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { RpcError, textOf, type Json } from '../../mcp.ts';
import { Roots } from '../16-hands/paths.ts';
import { skillRoot, type Skill } from '../24-more-than-tools/skill-entry.ts';
import { EXTENSION, FolderSkills, type Listed } from '../24-more-than-tools/skill-sources.ts';
import { pageOf, stringParam, type ServerTemplate } from './protocol/server-rows.ts';
import type { ServerOptions } from './server.ts';

const PAGE = 20; // skills: every file of each is hashed
const SCHEME = 'skill://';
const FOLDER_TYPE = 'inode/directory';

/** What a server of these skills has beside its own rows. */
export function skillsOf(folder: string, warn: (text: string) => void = () => {}) {
  const skills = new ServedSkills(folder, warn);
  const template: ServerTemplate = {
    uriTemplate: `${SCHEME}{+path}`,
    name: 'A file of a skill',
    list: () => skills.resources(),
    read: ({ path }) => skills.read(`${path}`),
  };
  const methods: ServerOptions['methods'] = {
    'skills/list': (params) => skills.list(params),
    'skills/get': async (params) => ({ skill: await skills.named(stringParam(params, 'uri')) }),
    'resources/directory/read': (params) => skills.directory(params),
  };
  return { extensions: { [EXTENSION]: { directoryRead: true } }, templates: [template], methods };
}

class ServedSkills {
  private source: FolderSkills;
  private base: string;
  private warn: (text: string) => void;
  private told = new Set<string>();

  constructor(folder: string, warn: (text: string) => void) {
    const inside = new Roots(resolve(folder)); // a link must not lead out of it
    this.source = new FolderSkills({ kind: 'project', folder: inside.cwd, inside });
    this.base = `${pathToFileURL(inside.cwd)}/`;
    this.warn = warn;
  }

  /** Of a page, since whoever lists pays for hashing. One that cannot be served is told to us. */
  async list(params: Json): Promise<Json> {
    const page: Json = pageOf('skills', await this.listed(), params, PAGE);
    const { skills, ...more } = page;
    const entries = (skills as Listed[]).map((each) => {
      const left = (error: unknown) => this.leaveOut(`${this.ours(each.uri)}: ${textOf(error)}`);
      return this.entry(each).catch(left);
    });
    return { skills: (await Promise.all(entries)).filter((entry) => entry !== undefined), ...more };
  }

  /** The SKILL.md of each. Its other files are in its entry. */
  async resources(): Promise<Json[]> {
    return (await this.listed()).map(({ uri, frontmatter: { name, description } }) => {
      return { uri: this.ours(uri), name, description, mimeType: typeOf(uri) };
    });
  }

  async named(uri: string) {
    const skill = (await this.listed()).find((each) => this.ours(each.uri) === uri);
    if (!skill) throw new RpcError(-32602, `No skill is served at ${uri.slice(0, 200)}`, { uri });
    return this.entry(skill);
  }

  /** A file of a skill. The folder may hold more than skills. */
  async read(path: string): Promise<Json[] | undefined> {
    const uri = SCHEME + path.split('/').map(encodeURIComponent).join('/');
    if (!(await this.skillAround(uri))) return undefined;
    const there = this.base + uri.slice(SCHEME.length);
    const bytes = await this.source.read(there).catch(() => undefined); // a link, a secret, nothing
    if (!bytes) return undefined;
    const text = bytes.toString();
    const isText = Buffer.from(text).equals(bytes);
    const content = isText ? { text } : { blob: bytes.toString('base64') };
    return [{ uri, mimeType: isText ? typeOf(uri) : 'application/octet-stream', ...content }];
  }

  /** What is directly in a folder of a skill. */
  async directory(params: Json): Promise<Json> {
    const uri = stringParam(params, 'uri').replace(/\/$/, '');
    const skill = await this.skillAround(`${uri}/`);
    const files = skill ? filesOf(await this.entry(skill)) : [];
    const below = files.filter((file) => file.uri.startsWith(`${uri}/`));
    if (below.length === 0)
      throw new RpcError(-32602, `Not a folder: ${uri.slice(0, 200)}`, { uri });
    const children = new Map<string, Json>();
    for (const file of below) {
      const [name = '', ...rest] = file.uri.slice(uri.length + 1).split('/');
      const child = `${uri}/${name}`;
      const mimeType = rest.length > 0 ? FOLDER_TYPE : typeOf(child);
      children.set(child, { uri: child, name: decodeURIComponent(name), mimeType });
    }
    return pageOf('resources', [...children.values()], params);
  }

  private async skillAround(uri: string) {
    return (await this.listed()).find((each) =>
      uri.startsWith(`${skillRoot(this.ours(each.uri))}/`),
    );
  }

  private async listed() {
    const { skills, leftOut } = await this.source.list();
    leftOut.forEach((what) => this.leaveOut(what));
    return skills;
  }

  /** Under our addresses: a client need not know where on this disk they are. */
  private async entry({ uri }: Listed): Promise<Skill> {
    const { frontmatter, resources } = await this.source.get(uri);
    const files = filesOf({ resources } as Skill).map((file) => ({
      ...file,
      uri: this.ours(file.uri),
    }));
    return { uri: this.ours(uri), frontmatter, resources: files };
  }

  private ours(uri: string) {
    return SCHEME + uri.slice(this.base.length);
  }

  private leaveOut(what: string): undefined {
    if (!this.told.has(what)) this.warn(`a skill is not served: ${what}`);
    this.told.add(what);
  }
}

/** A folder's are never made when they are read. */
const filesOf = ({ resources }: Skill) => (resources === 'dynamic' ? [] : resources);
const typeOf = (uri: string) => (/\.md$/i.test(uri) ? 'text/markdown' : 'text/plain');
