// skills.ts: instructions for a kind of task, with files, that a model loads when it needs them. Of
// all that a server can send us this steers the model most. So nothing of a skill is used before the
// user has agreed to exactly these files, and nothing that came before it was checked.

import { join } from 'node:path';
import type { Tool, ToolContext, Verdict } from '../../agent.ts';
import { textOf, type Extension, type Json, type McpConnection } from '../../mcp.ts';
import type { Roots } from '../16-hands/paths.ts';
import { inWords } from '../16-hands/results.ts';
import { agrees } from '../17-the-gate/dialogue.ts';
import { Turns, type Person } from '../17-the-gate/person.ts';
import { quoted, told } from '../17-the-gate/safe-text.ts';
import type { Trust } from '../17-the-gate/trust.ts';
import { SkillConsent, type Agreed, type SkillStanding } from './skill-consent.ts';
import {
  approvalKey,
  labelled,
  skillLine,
  matchingLines,
  namesakesOf,
  shortList,
  unknownSkill,
  type KnownSkill,
} from './skills/skill-names.ts';
import {
  EXTENSION,
  FolderSkills,
  offerOf,
  ServerSkills,
  type Listing,
  type SkillSource,
} from './skill-sources.ts';
import { SkillWindow } from './skill-window.ts';

const PATIENCE_MS = 2000; // for lists, before a prompt

type SkillsOptions = {
  person: Person;
  trust: Trust;
  roots: Roots; // of the project
  home: string;
  resultsFolder: string; // for files that are neither text nor image
  warn: (text: string) => void;
};

export class Skills {
  private options: SkillsOptions;
  private sources = new Map<string, SkillSource>(); // by label: the folders, then the servers
  private lists = new Map<SkillSource, Listing>();
  private listing = new Map<SkillSource, Promise<void>>();
  private ofProject = new Map<string, SkillStanding>(); // by label: found out by hashing files
  private isWanted = false; // until somebody wants to know, no server is asked
  private told = new Set<string>();
  private consenting: SkillConsent;
  private window: SkillWindow;
  private agreed = new WeakMap<Json, Agreed>(); // by the arguments of the call
  private turns = new Turns(); // two calls must not ask about the same skill

  constructor(options: SkillsOptions) {
    const { person, trust, roots, home, resultsFolder } = options;
    this.options = options;
    this.window = new SkillWindow({ resultsFolder, outdated: (known) => this.lookAgain(known) });
    this.consenting = new SkillConsent({
      person,
      trust,
      namesakes: (known) => namesakesOf(known, this.all()),
      text: (agreed, signal) => this.window.text(agreed, signal),
    });
    const own = join(home, '.claude', 'skills');
    const folder = join(roots.cwd, '.claude', 'skills');
    this.sources.set('user', new FolderSkills({ kind: 'user', folder: own }));
    if (roots.locate(folder).real !== roots.locate(own).real)
      this.sources.set('project', new FolderSkills({ kind: 'project', folder, inside: roots }));
  }

  // ── Where they come from ──

  /** For every connection. */
  get extension(): Extension {
    const join = (connection: McpConnection) => this.join(connection);
    const leave = (connection: McpConnection) => this.leave(connection);
    return function skills(connection) {
      return {
        capabilities: { extensions: { [EXTENSION]: {} } },
        opened: () => join(connection),
        changed: async (what) => {
          if (what === 'resources' && connection.server) await join(connection);
        },
        closed: () => leave(connection),
      };
    };
  }

  private async join(connection: McpConnection): Promise<void> {
    if (!offerOf(connection)) return this.leave(connection);
    const fresh = new ServerSkills(connection, this.options.trust);
    const before = this.sources.get(fresh.label);
    const isSame = before instanceof ServerSkills && before.isOf(connection);
    const source = isSame ? before : fresh;
    this.sources.set(source.label, source);
    if (this.isWanted && !source.isForgetting) await this.look(source);
  }

  private leave(connection: McpConnection): void {
    for (const [label, source] of this.sources) {
      const isMeant = source instanceof ServerSkills && source.isOf(connection);
      if (!isMeant) continue;
      this.sources.delete(label);
      this.lists.delete(source);
    }
  }

  /** Lists the skills of a source. No file of a server is read for that. */
  private look(source: SkillSource): Promise<void> {
    const looking = this.list(source);
    this.listing.set(source, looking);
    return looking.finally(() => {
      if (this.listing.get(source) === looking) this.listing.delete(source);
    });
  }

  private async list(source: SkillSource): Promise<void> {
    try {
      const list = await source.list();
      this.lists.set(source, list);
      const [first, ...more] = list.leftOut;
      const others = more.length > 0 ? ` (and ${more.length} more: /skills)` : '';
      if (first) this.tell(`${source.whose} has skills that we leave out: ${first}${others}`);
    } catch (error) {
      const isGone = this.sources.get(source.label) !== source;
      if (!isGone) this.tell(`the skills of ${source.whose} could not be listed: ${textOf(error)}`);
    }
  }

  /** Once. */
  private tell(words: string): void {
    if (!this.told.has(words)) this.options.warn(words);
    this.told.add(words);
  }

  /** Before a prompt: looks at the folders, and waits a moment for the lists of servers. */
  async ready(signal?: AbortSignal): Promise<void> {
    const isNew = (source: SkillSource) => !this.lists.has(source) && !this.listing.has(source);
    const sources = [...this.sources.values()];
    const folders = sources.filter(({ kind }) => kind !== 'server');
    this.isWanted = true;
    for (const source of sources)
      if (source.kind === 'server' && isNew(source)) void this.look(source);
    await Promise.all(folders.map((source) => this.look(source)));
    await this.lookAtProject();
    let timer: NodeJS.Timeout | undefined;
    const patience = new Promise<void>((done) => {
      timer = setTimeout(done, PATIENCE_MS);
      signal?.addEventListener('abort', () => done(), { once: true });
    });
    await Promise.race([Promise.all(this.listing.values()), patience]);
    clearTimeout(timer);
  }

  /** For a person who wants to see all of them as they are now. */
  async refresh(): Promise<void> {
    this.isWanted = true;
    await Promise.all([...this.sources.values()].map((source) => this.look(source)));
    await this.lookAtProject();
  }

  private async lookAtProject() {
    this.ofProject.clear();
    for (const known of this.all().filter(({ source }) => source.kind === 'project')) {
      if (!this.options.trust.noteOf(approvalKey(known))) continue; // so it need not be hashed
      const standing = await this.entryOf(known).then(
        (entry) => this.consenting.standingOf({ known, entry }),
        () => 'changed' as const, // into something that is no skill
      );
      this.ofProject.set(known.label, standing);
    }
  }

  /** What came is not what was listed. So the entry is fetched again, and what is kept of reads is
   *  forgotten: another set of files is another question. */
  private async lookAgain({ source, uri }: KnownSkill) {
    if (source.kind !== 'server') return this.look(source);
    source.forget?.();
    const entry = await source.get(uri).catch(() => undefined);
    const list = this.lists.get(source);
    if (!entry || !list) return;
    const others = list.skills.filter((each) => each.uri !== uri);
    this.lists.set(source, { ...list, skills: [...others, { ...entry, entry }] });
  }

  // ── Which one ──

  all(): KnownSkill[] {
    const of = (source: SkillSource) => labelled(source, this.lists.get(source)?.skills ?? []);
    return [...this.sources.values()].flatMap(of);
  }

  get leftOut(): string[] {
    const of = (source: SkillSource) => this.lists.get(source)?.leftOut ?? [];
    return [...this.sources.values()].flatMap(of);
  }

  /** An address that is not in the list is asked for at the server that is named before it, and at
   *  no other: a list need not be complete. */
  private async find(label: string) {
    const all = this.all();
    const known = all.find((each) => each.label === label);
    if (known) return known;
    const source = this.sourceOf(label);
    const uri = label.slice((source?.label ?? '').length + 1);
    const isAddress = /^[a-z][a-z\d+.-]*:.*\/SKILL\.md$/i.test(uri);
    if (source?.kind !== 'server' || !isAddress) throw unknownSkill(label, all);
    const entry = await source.get(uri);
    return { ...entry, entry, source, label };
  }

  private sourceOf(label: string) {
    return [...this.sources.values()].find((source) => label.startsWith(`${source.label}/`));
  }

  private async entryOf({ entry, source, uri }: KnownSkill) {
    return entry ?? source.get(uri);
  }

  private async agreedOf(label: string): Promise<Agreed> {
    const known = await this.find(label);
    return { known, entry: await this.entryOf(known) };
  }

  standing(known: KnownSkill): SkillStanding {
    const { source, entry } = known;
    if (source.kind === 'project') return this.ofProject.get(known.label) ?? 'new';
    return entry ? this.consenting.standingOf({ known, entry }) : 'own';
  }

  // ── For the model ──

  /** The row of the table. What it says depends on what there is. */
  row(): Tool {
    const description = () => [ABOUT, ...shortList(this.lines())].join('\n');
    const row: Tool = {
      get definition() {
        return { name: 'skill', description: description(), inputSchema: SCHEMA };
      },
      readOnly: true,
      isOffered: () => this.lines().length > 0,
      forCall: ({ name }) => ({ ...row, origin: this.originOf(name) }),
      consent: (args, signal) => this.consent(args, signal),
      run: (args, context) => this.run(args, context),
    };
    return row;
  }

  /** A rule that forbids a server forbids its skills. */
  private originOf(label: unknown): Tool['origin'] {
    const source = this.sourceOf(`${label}`);
    if (!(source instanceof ServerSkills)) return undefined;
    return { server: source.serverName, tool: { name: 'skills/get' } };
  }

  private lines() {
    const standings = this.all().map((known) => ({ known, standing: this.standing(known) }));
    const wanted = standings.filter(({ standing }) => standing !== 'never');
    return wanted.map(({ known, standing }) => skillLine(known, standing === 'approved'));
  }

  /** What is agreed to here is what is loaded, whatever its server says a moment later. */
  private async consent(args: Json, signal: AbortSignal): Promise<Verdict> {
    const { name, file, find } = args;
    if (typeof name !== 'string' || file !== undefined || find !== undefined)
      return { allowed: true };
    const endTurn = await this.turns.take(signal);
    try {
      const agreed = await this.agreedOf(name);
      const reason = await this.consenting.refusal(agreed, signal);
      if (reason) return { allowed: false, reason };
      this.agreed.set(args, agreed);
      return { allowed: true };
    } catch (error) {
      return { allowed: false, reason: textOf(error), outcome: 'failed' };
    } finally {
      endTurn();
    }
  }

  private async run(args: Json, { signal }: ToolContext) {
    const { name, file, find } = args;
    if (typeof name === 'string' && typeof file === 'string')
      return { blocks: await this.window.file(name, file, signal), isError: false };
    return inWords(await this.words(args, name ?? find, signal));
  }

  private async words(args: Json, given: unknown, signal: AbortSignal) {
    if (given === undefined || args.find !== undefined)
      return matchingLines(this.lines(), `${args.find ?? ''}`);
    const agreed = this.agreed.get(args);
    if (!agreed) throw new Error('no gate has asked the user about this skill');
    return this.window.open(agreed, signal);
  }

  /** While the model works by a skill of one server, it reads nothing of another without a yes that
   *  names both, whatever rules allow: the skill might have told it to. */
  async mayRead(server: string, uri: string, signal: AbortSignal): Promise<void> {
    const others = this.window.sources.filter(
      (source) => source instanceof ServerSkills && source.serverName !== server,
    );
    if (others.length === 0) return;
    const whose = others.map((source) => source.whose).join(' and ');
    const lines = [
      `The model works by a skill of ${whose}, and now wants to read from ${quoted(server)}:`,
      `  ${quoted(uri)}`,
    ];
    if (await agrees(this.options.person, { lines, prompt: 'Let it?', signal })) return;
    throw new Error(
      `The user has not agreed that you read from ${server} while you work by a skill of ${whose}.`,
    );
  }

  // ── For a person ──

  async show(label: string, signal: AbortSignal): Promise<string[]> {
    const agreed = await this.agreedOf(label);
    const text = await this.window.text(agreed, signal);
    const [, , ...facts] = this.consenting.describe(agreed);
    return [...facts, '  SKILL.md:', ...told(text, '    ')];
  }

  /** Asks about a skill before the model wants it. */
  async allow(label: string, signal: AbortSignal): Promise<void> {
    await this.agreedTo({ name: label }, signal);
  }

  /** The text for the model, because the user wants it so. */
  async use(label: string, signal: AbortSignal): Promise<string> {
    return this.window.open(await this.agreedTo({ name: label }, signal), signal);
  }

  private async agreedTo(args: Json, signal: AbortSignal) {
    const verdict = await this.consent(args, signal);
    await this.lookAtProject();
    if (!verdict.allowed) throw new Error(verdict.reason);
    return this.agreed.get(args)!;
  }

  /** Was there a decision? */
  async revoke(label: string): Promise<boolean> {
    const known = await this.find(label);
    this.window.close(known);
    const count = this.options.trust.revoke(approvalKey(known));
    await this.lookAtProject();
    return count > 0;
  }
}

const ABOUT = `Loads a skill: instructions for a kind of task. If one fits, load it before you begin.
{"name": "user/x"} loads it; {"name": "user/x", "file": "a/b.md"} reads one of its files, and "a/"
lists a folder. The skills, and what each says of itself:`;

const text = (description: string) => ({ type: 'string', description });
const SCHEMA: Json = {
  type: 'object',
  properties: {
    name: text('the whole name, with what is before the slash'),
    file: text('of a loaded skill: the path of a file, or of a folder with a slash at its end'),
    find: text('instead of a name: words, to search all skills'),
  },
};
