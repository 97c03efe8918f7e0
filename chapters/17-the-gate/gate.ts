// One gate for every tool, built in or not. Rules first (deny, ask, allow), then the mode; what
// nothing decides is asked; and where there is nobody to ask the answer is no.

import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { posix, resolve } from 'node:path';
import type { Change, GateKeeper, Meanwhile, Tool, Touch, Verdict } from '../../agent.ts';
import { asObject, copyOf, isDeeper, textOf, type Json } from '../../mcp.ts';
import { globMatcher, slashed } from '../16-hands/more/glob.ts';
import type { Location, Roots } from '../16-hands/paths.ts';
import { changeLines } from './change.ts';
import { agrees, choice, NO, YES } from './dialogue.ts';
import { takeApart, unwrapped, type SimpleCommand } from './shell-syntax.ts';
import { canonicalJson, sha256 } from './digest.ts';
import {
  changesNothing,
  filesOfFree,
  filesRead,
  isHarmless,
  programsOfProject,
} from './free-commands.ts';
import { folderPrograms } from './git-commands.ts';
import { modeAfter, type Mode } from './modes.ts';
import { nobody, Turns, type Choice, type Person } from './person.ts';
import { agreedRule, ruleLike, type ShellCall } from './rule-offer.ts';
import {
  commandsOfLine,
  foldCase,
  forbidsCommand,
  ruleNamesOf,
  namesTool,
  spells,
  type Effect,
  type Rule,
} from './rules.ts';
import { changes, quoted, spelledOut } from './safe-text.ts';
import type { Grant, Trust, WholeList } from './trust.ts';

export { MODES, type Mode } from './modes.ts';

/** What the gate thinks of a call. */
type Judgement = {
  effect: Effect;
  why: string;
  location?: Location;
  grant?: Grant; // what "always" would allow, where that may be offered
  isOpen?: boolean; // nothing speaks against the call, only nothing allows it yet
  isUnasked?: boolean; // allowed by a rule, or free: nobody looked at this very call
};
/** What is known of a call before anything is decided. */
type Facts = {
  tool: Tool;
  touch?: Touch; // what it reads, writes or runs
  location?: Location; // where its path leads
  commands: string[]; // what its command line may be made of: to forbid
  line?: SimpleCommand[]; // what it is made of for certain: to allow
  isFree?: boolean; // it only shows what may be read
  build?: string; // it changes a file that runs with the next build: the reason to ask
};
export type GateOptions = {
  mode?: Mode;
  rules?: Rule[];
  roots: Roots;
  trust: Trust;
  person?: Person;
  /** What all servers have at this moment, for "always this server". */
  offered?: () => readonly OfferedTool[];
  opinion?: (tool: Tool) => Opinion | undefined; // what speaks against a tool besides the rules
};
/** Why a tool needs a question, or must not run. */
export type Opinion = { effect: 'ask' | 'deny'; why: string };
type OfferedTool = { server: string; tool: Json };

/** The ways to write where a file is: absolute, and relative to the folder. */
type Paths = { real: string; names: string[]; folded: string[] };

const RANK: Record<Effect, number> = { allow: 0, ask: 1, deny: 2 };
const MAX_SHOWN_DEFINITION = 16_384;
const MAX_SHOWN_LIST = 65_536;
const MAX_OPENING = 100;
const MAX_WORDS = 20_000; // that may be files; the shell tool takes no longer line
const MAX_CAUTIONS = 5;
const MAX_LEVELS = 100; // of arguments: deeper ones nobody could judge

export class Gate {
  mode: Mode;
  rules: readonly Rule[] = [];
  private roots: Roots;
  private trust: Trust;
  private person: Person;
  private hiding: Rule[] = []; // what a search must not show
  private patterns = new Map<Rule, (paths: Paths) => boolean>(); // each is compiled once
  private paths?: Paths; // those of the last file: a thousand rules may ask for them

  private offered: () => readonly OfferedTool[];
  private opinion: (tool: Tool) => Opinion | undefined;
  private turns = new Turns(); // of those that ask
  // Each is made once.
  private lists?: { of: readonly OfferedTool[]; wholes: Map<string, WholeServer> };

  constructor(options: GateOptions) {
    const { mode = 'ask', rules = [], roots, trust, person = nobody } = options;
    this.offered = options.offered ?? (() => []);
    this.opinion = options.opinion ?? (() => undefined);
    this.mode = mode;
    this.useRules(rules);
    this.roots = roots;
    this.trust = trust;
    this.person = person;
  }

  /** From now on. */
  useRules(rules: readonly Rule[]): void {
    this.rules = rules;
    const search = ruleNamesOf({ definition: { name: 'grep' } });
    const hides = ({ effect, pattern }: Rule) => effect !== 'allow' && pattern !== undefined;
    this.hiding = rules.filter((rule) => hides(rule) && namesTool(rule, search, 'read'));
  }

  /** One more, which is kept for this folder. */
  keepRule(rule: Rule): void {
    this.trust.keepRule(rule);
    this.useRules([...this.rules, rule]);
  }

  /** For a key: ask, accept-edits, read-only, and ask again. */
  nextMode(): Mode {
    this.mode = modeAfter(this.mode);
    return this.mode;
  }

  /** For the agent's option `gate`. */
  check: GateKeeper = async (tool, args, signal) => {
    // Explicitly: some versions of Node overflow when they write such a thing, and others do not.
    const deep = `its arguments have more than ${MAX_LEVELS} levels`;
    if (isDeeper(args, MAX_LEVELS)) return { allowed: false, reason: `Not allowed: ${deep}.` };
    const verdict = await this.decide(tool, args, signal);
    if (!verdict.allowed || !tool.consent) return verdict;
    return tool.consent(args, signal, tool.caller);
  };

  private async decide(tool: Tool, args: Json, signal: AbortSignal): Promise<Verdict> {
    const { effect, why, isOpen, location, grant, isUnasked } = this.judgeAll(tool, args);
    if (effect === 'allow') return { allowed: true, isUnasked };
    if (effect === 'deny') return { allowed: false, reason: `Not allowed: ${why}.` };
    if (this.person.isThere) return this.askInTurn(tool, args, signal);
    const what = isOpen || !location ? '' : `${tool.definition.name} ${quoted(location.shown)}: `;
    const hint = isOpen || grant ? howToAllow(tool, args, location) : '';
    const how = [hint, ...this.commandCautions(tool, args).map((caution) => ` (${caution}.)`)].join(
      '',
    );
    const reason = `Not allowed: ${what}${why}, and there is nobody to ask.${how}`;
    return { allowed: false, reason };
  }

  /** What somebody else thinks of the tool can make it stricter, and never looser. */
  private judgeAll(tool: Tool, args: Json): Judgement {
    const judgement = this.judge(tool, args);
    const opinion = this.opinion(tool);
    const isLooser = !opinion || RANK[opinion.effect] < RANK[judgement.effect];
    if (isLooser || judgement.effect === 'deny') return judgement;
    // A question that it wants cannot be answered with "always": the next call would ask again.
    return { ...judgement, ...opinion, grant: undefined, isOpen: false };
  }

  judge(tool: Tool, args: Json): Judgement {
    const { name } = tool.definition;
    const facts = this.factsOf(tool, args);
    const { touch, location, build, isFree } = facts;
    const grant = this.grantFor(tool, touch, location);
    const judge = (effect: Effect, why: string): Judgement => ({ effect, why, location, grant });
    const onlyReads = isFree || (tool.readOnly && touch?.kind === 'read');
    const isEdit = touch?.kind === 'write';

    const denied = this.hit('deny', facts);
    if (denied) return judge('deny', `the rule deny ${quoted(denied.text)} forbids ${name}`);
    if (isEdit && !location!.inside) {
      const { shown, real } = location!;
      return judge('deny', `${quoted(shown)} is outside the folder (${quoted(real)})`);
    }
    if (this.mode === 'read-only' && !onlyReads)
      return judge('deny', `the mode is read-only, and ${name} may change something`);

    const asked = this.hit('ask', facts);
    if (asked) {
      const why = `the rule ask ${quoted(asked.text)} wants a question before ${name}`;
      return { ...judge('ask', why), grant: undefined }; // "always" would not stop the rule
    }
    const delicate = location && delicacy(location, isEdit);
    if (delicate) {
      const effect = this.mode === 'yolo' ? 'allow' : 'ask';
      return { ...judge(effect, delicate), grant: undefined };
    }

    const unasked = (why: string) => ({ ...judge('allow', why), isUnasked: true });
    if (this.trust.isUnreadable) return judge('ask', 'what you decided here cannot be read');
    if (onlyReads) return unasked('it only reads, and inside the folder');
    if (this.hit('allow', facts)) return unasked('a rule allows it');
    if (grant && this.trust.isGranted(grant)) return judge('allow', 'it was allowed for good');
    if (tool.meanwhile?.isAllowed()) return judge('allow', 'it was allowed for a while');
    if (this.mode === 'yolo') return judge('allow', 'it is yolo');
    if (build) return judge('ask', build);
    if (this.mode === 'accept-edits' && isEdit) return judge('allow', 'it is accept-edits');
    return { ...judge('ask', `${name} needs your permission`), isOpen: true };
  }

  private factsOf(tool: Tool, args: Json): Facts {
    const touch = tool.touches?.(args);
    const location = touch && 'path' in touch ? this.roots.locate(touch.path) : undefined;
    const build = touch?.kind === 'write' ? location!.build : undefined;
    const asksItself = tool.readOnly && tool.consent !== undefined;
    const isIdle = asksItself || touch?.kind === 'nothing';
    const facts = { tool, touch, location, commands: [], build, isFree: isIdle };
    if (touch?.kind !== 'shell') return facts;
    const line = takeApart(touch.command);
    const spelled = line?.map(({ words }) => words.map(({ text }) => text).join(' ')) ?? [];
    const commands = [touch.command, ...spelled].flatMap(commandsOfLine);
    const isOurs = tool.definition.name === 'bash'; // of another we know neither folder nor PATH
    const isFree = isOurs && line?.length !== 0 && line?.every((part) => this.isFree(part));
    return { ...facts, commands, line, isFree };
  }

  private isFree(part: SimpleCommand, mayNameFiles = true) {
    const isCommand = part.words.length > 0;
    if (!isCommand && part.assigns) return false;
    const files = isCommand ? filesOfFree(part, this.roots) : filesRead(part, this.roots);
    return files?.every(({ real }) => mayNameFiles || real === this.roots.cwd) ?? false;
  }

  // ── Rules ──

  /** The first rule with this effect that means this call. */
  private hit(effect: Effect, facts: Facts, all = this.rules): Rule | undefined {
    const { tool, touch, build } = facts;
    const names = ruleNamesOf(tool);
    const rules = all.filter((rule) => rule.effect === effect);
    const meant = rules.filter((rule) => namesTool(rule, names, touch?.kind));
    // To allow a change that runs with the next build, a rule must name the file.
    const isEnough = (rule: Rule) => !build || effect !== 'allow' || isOneFile(rule);
    const found = meant.find((rule) => isEnough(rule) && this.applies(rule, facts));
    if (found || touch?.kind !== 'shell') return found;
    return effect === 'allow' ? this.hitOfParts(meant, facts) : this.hitOfFiles(rules, facts);
  }

  /** Every part of a line must be allowed: by a rule that spells it, or because it is free. */
  private hitOfParts(rules: Rule[], { tool, line = [] }: Facts): Rule | undefined {
    const mayBeFree = tool.definition.name === 'bash' && line.every(isHarmless);
    const isAlone = line.length === 1 && line[0]!.redirections.length === 0;
    // An exact rule for a command alone is one to the letter, and that was tried before.
    const usable = rules.filter(({ pattern }) => !isAlone || pattern?.endsWith('*'));
    const used: Rule[] = [];
    let mayNameFiles = mayBeFree; // after `cd` a path means another file; after `git checkout`, perhaps
    let isSettled = true; // no part has been there yet that could do so
    for (const part of line) {
      if (mayBeFree && this.isFree(part, mayNameFiles)) continue;
      const mayRead = mayNameFiles || part.redirections.length === 0;
      if (part.assigns || !mayRead || !filesRead(part, this.roots)) return undefined;
      if (part.words.length === 0) continue; // only < file, or the end of a ( )
      const place = { roots: this.roots, isHidden: this.isHidden, isSettled };
      const rule = usable.find((each) => spells(each, part, place));
      if (!rule) return undefined;
      used.push(rule);
      if (!changesNothing(part)) mayNameFiles = isSettled = false;
    }
    return used.length > 0 && !this.runsMore(line) && !this.runsOwn(line) ? used[0] : undefined;
  }

  /** Would git run programs that the folder has named? A rule for git does not mean them. */
  private runsMore(line: SimpleCommand[] = []) {
    return folderPrograms(line, this.roots.cwd).length > 0;
  }

  /** Does it start a program of the project by its name? A rule means the system's. */
  private runsOwn(line: SimpleCommand[] = []) {
    const names = line.map(({ words }) => unwrapped(words)[0]?.text ?? '');
    return programsOfProject(names, this.roots).length > 0;
  }

  /** What may not be read may not be shown by a command, either, where it can be seen to be named. */
  private hitOfFiles(rules: Rule[], facts: Facts): Rule | undefined {
    const about = (kind: 'read' | 'write') => {
      const names = ruleNamesOf({ definition: { name: kind } });
      return rules.filter((rule) => namesTool(rule, names, kind));
    };
    const reading = about('read');
    const writing = about('write');
    if (reading.length + writing.length === 0) return undefined;
    const bare = reading.find(({ pattern }) => pattern === undefined);
    if (bare && facts.isFree) return bare;
    const isMeant = (all: Rule[], file: Location) =>
      all.find((rule) => rule.pattern !== undefined && this.isAbout(rule, file));
    const files = this.filesNamed(facts);
    for (const { kind, file } of files) {
      const found = isMeant(kind === 'read' ? reading : writing, file);
      if (found) return found;
    }
    return undefined;
  }

  /** To forbid, the name that the model gave counts as well: it may be a link, and lead elsewhere. */
  private isAbout(rule: Rule, file: Location) {
    return this.names(rule, file.real) || (rule.effect !== 'allow' && this.names(rule, file.named));
  }

  /** The files that a line names in so many words. A line that cannot be taken apart has words, too. */
  private filesNamed({ line, commands }: Facts): { kind: 'read' | 'write'; file: Location }[] {
    const opened = (line ?? []).flatMap(({ redirections }) => redirections);
    const said = [
      ...(line ?? []).flatMap(({ words }) => words.slice(1).map(({ text }) => text)),
      ...commands.flatMap((command) => command.split(/\s+/)),
    ];
    const bare = said.flatMap((word) => [word, word.replace(/^[^=]*=|^@/, '')]);
    const named = [...new Set(bare)].filter(Boolean).slice(0, MAX_WORDS);
    const located = named
      .flatMap((word) => this.located(word))
      .filter(({ real }) => existsSync(real));
    return [
      ...located.map((file) => ({ kind: 'read' as const, file })),
      ...opened.flatMap(({ kind, file }) =>
        this.located(file.text).map((at) => ({ kind, file: at })),
      ),
    ];
  }

  private located(path: string): Location[] {
    try {
      return [this.roots.locate(path)];
    } catch {
      return []; // it is no path
    }
  }

  /** Does a rule about this tool speak of this call? */
  private applies(rule: Rule, facts: Facts) {
    const { tool, touch, location, commands, line } = facts;
    // A rule in your settings means a server of yours, not one that a project gives the same name.
    const isForeign = tool.origin && this.trust.seen.get(tool.origin.server)?.authority !== 'user';
    if (rule.effect === 'allow' && isForeign && !rule.isHere) return false;
    if (rule.pattern === undefined) return rule.effect !== 'allow' || touch?.kind !== 'shell';
    if (location) return this.isAbout(rule, location);
    if (touch?.kind !== 'shell') return rule.effect !== 'allow'; // a pattern has no meaning here
    const isExact = rule.pattern === touch.command && !rule.pattern.endsWith('*');
    if (rule.effect === 'allow')
      return isExact && !this.runsOwn(line) && (rule.isHere || !this.runsMore(line));
    return forbidsCommand(rule, commands);
  }

  private names(rule: Rule, real: string) {
    const isMeant = this.patterns.get(rule) ?? this.fileTest(rule);
    this.patterns.set(rule, isMeant);
    if (this.paths?.real !== real) {
      const names = [real, this.roots.show(real)].map(slashed);
      this.paths = { real, names, folded: names.map(foldCase) };
    }
    return isMeant(this.paths);
  }

  /** ~/x and, as Claude Code writes it, //x are absolute. To forbid a folder forbids what is in it,
   *  /x may also mean x in this folder, * names that begin with a dot, and a link where it leads. */
  private fileTest({ pattern = '', effect }: Rule): (paths: Paths) => boolean {
    const home = () => this.roots.locate(homedir()).real;
    const absolute = pattern.trim().replace(/^~(?=\/)/, home);
    const full = posix.normalize(absolute).replace(/(?<=.)\/$/, '');
    if (effect === 'allow') {
      const matches = globMatcher(full);
      return ({ names }) => names.some(matches);
    }
    const everywhere = full.includes('/') ? full : `**/${full}`; // *.pem means in all folders
    const here = full.startsWith('/') ? [full.slice(1)] : [];
    const places = [full, ...here].flatMap((each) => [each, this.followed(each)]);
    const patterns = [everywhere, ...places, ...places.map((each) => `${each}/**`)].map(foldCase);
    const matchers = [...new Set(patterns)].map(quickMatcher);
    return ({ folded }) => matchers.some((matches) => folded.some(matches));
  }

  /** The same pattern with the links in it followed, up to its first star: /etc/** is
   *  /private/etc/** on a Mac. */
  private followed(pattern: string) {
    const names = pattern.split('/');
    const at = names.findIndex((name) => /[*?[{\\]/.test(name));
    const plain = at === -1 ? names : names.slice(0, at);
    const rest = names.slice(plain.length);
    try {
      const real = slashed(this.roots.locate(plain.join('/') || '.').real);
      return [real.replace(/[*?[\]{}\\]/g, '\\$&'), ...rest].join('/');
    } catch {
      return pattern; // it leads nowhere
    }
  }

  /** For a search through a folder: it leaves out files that a rule forbids, or asks about. */
  isHidden = (real: string): boolean => {
    return this.hiding.some((rule) => this.names(rule, real));
  };

  // ── What "always" means ──

  private grantFor(tool: Tool, touch?: Touch, location?: Location): Grant | undefined {
    if (touch?.kind === 'shell') return { kind: 'shell', command: touch.command };
    if (touch?.kind === 'write') return { kind: 'write', path: location!.real };
    if (touch) return undefined; // reading inside the folder needs none
    if (!tool.origin) return { kind: 'tool', ...signed(tool.definition) };
    const server = this.trust.seen.get(tool.origin.server);
    if (!server) return undefined;
    const whole = this.wholeOf(tool.origin.server);
    // "Always this server" shows its tools, and means nothing that is not among them.
    const isShown = whole?.tools.some(({ name }) => name === tool.origin!.tool.name);
    return {
      kind: 'mcp',
      server: tool.origin.server,
      fingerprint: server.fingerprint,
      whole: isShown ? whole?.list : undefined,
      ...signed(tool.origin.tool),
    };
  }

  /** All that a server has at this moment. */
  private wholeOf(server: string): WholeServer | undefined {
    const of = this.offered();
    if (this.lists?.of !== of) this.lists = { of, wholes: new Map() };
    const { wholes } = this.lists;
    if (!wholes.has(server)) {
      const tools = of.filter((each) => each.server === server).map(({ tool }) => tool);
      wholes.set(server, wholeList(tools));
    }
    const whole = wholes.get(server)!;
    return whole.tools.length > 1 ? whole : undefined; // of one tool, "always this tool" says it all
  }

  private driftLines(grant?: Grant) {
    if (grant?.kind !== 'mcp' && grant?.kind !== 'tool') return [];
    const before = this.trust.drift(grant);
    const whole = this.trust.driftOfServer(grant);
    const now = grant.kind === 'mcp' ? (grant.whole ?? grant).shown : '';
    return [
      ...(before === undefined ? [] : drifted('this tool', before, grant.shown)),
      ...(whole === undefined ? [] : drifted('all tools of this server', whole, now)),
    ];
  }

  // ── The question ──

  /** One after the other: calls run side by side, and "always" to one may be the answer to the next. */
  private async askInTurn(tool: Tool, args: Json, signal: AbortSignal): Promise<Verdict> {
    const end = await this.turns.take(signal);
    try {
      signal.throwIfAborted();
      const judgement = this.judgeAll(tool, args);
      const { effect, why, isUnasked } = judgement;
      if (effect === 'allow') return { allowed: true, isUnasked };
      if (effect === 'deny') return { allowed: false, reason: `Not allowed: ${why}.` };
      return await this.question(tool, args, judgement, signal);
    } finally {
      end();
    }
  }

  private async question(
    tool: Tool,
    args: Json,
    judgement: Judgement,
    signal: AbortSignal,
  ): Promise<Verdict> {
    const { grant, why, isOpen } = judgement;
    const foreseen = await foresee(tool, args);
    const shell = grant?.kind === 'shell' ? this.shellCall(tool, args) : undefined;
    const like = shell && ruleLike(shell);
    // Of a file that may be delicate the model learns nothing, not even this, before a person agrees.
    if (foreseen.failure !== undefined && grant)
      return { allowed: false, reason: foreseen.failure, outcome: 'failed' };
    const answer = await this.person.choose({
      lines: [...this.describe(tool, args, judgement, foreseen), ...this.driftLines(grant)],
      prompt: 'Allow it?',
      choices: tool.meanwhile ? briefChoices(tool.meanwhile, isOpen) : choicesFor(grant, like),
      ifEmpty: 'n',
      comment: 'or say why not',
      elsewhere: ['y', 'n', 'w'], // what lasts is agreed to at the terminal
      signal,
    });
    signal.throwIfAborted(); // too late: the call will not be made, and so nothing is granted
    if (answer?.key === 's' && !(await this.grantsServer(grant!, signal)))
      return this.question(tool, args, judgement, signal); // it was not meant so
    if (answer?.key === 'p') {
      const rule = await agreedRule(like!, shell!, { person: this.person, signal });
      if (!rule) return this.question(tool, args, judgement, signal);
      this.keepRule(rule);
    }
    if (answer?.key === 'a') this.trust.grant(grant!);
    if (answer?.key === 'w') tool.meanwhile?.allow();
    if (['y', 'a', 's', 'p', 'w'].includes(answer?.key ?? ''))
      return { allowed: true, isAsked: true };
    if (answer?.words) return { allowed: false, reason: `The user said no: ${answer.words}` };
    return { allowed: false, reason: `The user said no${isOpen ? '' : ` (${why})`}.` };
  }

  /** For a rule that would allow it. */
  private shellCall(tool: Tool, args: Json): ShellCall {
    const facts = this.factsOf(tool, args);
    const isCovered = (rule: Rule) => this.hit('allow', facts, [...this.rules, rule]) !== undefined;
    return { tool, line: facts.line ?? [], isCovered };
  }

  /** "Always this server" counts after its tools were shown. */
  private async grantsServer(grant: Grant, signal: AbortSignal) {
    if (grant.kind !== 'mcp') return false;
    const { server, fingerprint } = grant;
    const { list, tools } = this.wholeOf(server) ?? wholeList([]);
    const isAgreed = await agrees(this.person, {
      lines: [
        `The MCP server ${quoted(server)} has ${tools.length} tools now:`,
        ...tools.map(
          ({ name, description = '' }) => `  ${quoted(`${name}`)} ${opening(description)}`,
        ),
        'None of them would ask any more in this folder, until one changes or another one comes.',
      ],
      prompt: 'Allow all of them?',
      signal,
    });
    signal.throwIfAborted();
    if (!isAgreed) return false;
    this.trust.grant({ kind: 'server', server, fingerprint, ...list });
    return true;
  }

  /** The tool, whose it is, and every argument in full, or what would become of the file. A link is
   *  shown with where it leads. */
  private describe(
    tool: Tool,
    args: Json,
    { why, location, isOpen }: Judgement,
    { change, failure }: Foreseen,
  ) {
    const isElsewhere = location && location.real !== resolve(this.roots.cwd, location.shown);
    const path = location?.shown ?? '';
    const known = change ? { path } : args;
    return [
      `${tool.caller ?? 'The model'} wants to call ${whose(tool)}${isOpen ? '' : ` (${why})`}:`,
      ...ownWords(tool),
      ...(Object.keys(known).length > 0 ? spelledOut(known) : ['  (no arguments)']),
      ...(change ? changeLines(change, path) : []),
      ...(failure === undefined ? [] : [`  ! as things are, it will fail: ${quoted(failure)}`]),
      ...(isElsewhere ? [`  ! that is really ${quoted(location.real)}`] : []),
      ...this.commandCautions(tool, args).map((caution) => `  ! ${caution}`),
    ];
  }

  /** What a person should know of a command before they agree to it. */
  private commandCautions(tool: Tool, args: Json) {
    const touch = tool.touches?.(args);
    if (touch?.kind !== 'shell') return [];
    const programs = folderPrograms(takeApart(touch.command) ?? [], this.roots.cwd);
    const why = 'git may do more in this folder than the line says, so no rule for git covers it';
    const names = commandsOfLine(touch.command).map((part) => part.split(' ', 1)[0]!);
    const own = programsOfProject(names, this.roots);
    return [
      ...(programs.length > 0 ? [`${why}: ${few(programs)}`] : []),
      ...(own.length > 0 ? [`it starts what this project has put on your PATH: ${few(own)}`] : []),
    ];
  }
}

const few = (texts: string[]) => texts.slice(0, MAX_CAUTIONS).map(quoted).join(', ');

/** A search asks of every file, and a project may have written a thousand patterns. Most have a word
 *  in them that the path lacks, which is soon seen. */
function quickMatcher(pattern: string): (path: string) => boolean {
  const matches = globMatcher(pattern, true);
  const open = pattern.replace(/^(\.\/)+/, '').replace(/\[[^[\]]*\]|\{[^{}]*\}/g, '*');
  if (/[[\]{}\\]/.test(open)) return matches;
  const words = open.split(/[*?/]+/).sort((a, b) => b.length - a.length);
  return (path) => words.every((word) => path.includes(word)) && matches(path);
}

/** What a call would do, as far as its row can tell. */
type Foreseen = { change?: Change; failure?: string };

async function foresee(tool: Tool, args: Json): Promise<Foreseen> {
  try {
    return { change: await tool.preview?.(args) };
  } catch (error) {
    return { failure: textOf(error) };
  }
}

const SERVER = choice('[s]erver: always');

function choicesFor(grant?: Grant, like?: Rule): Choice[] {
  if (!grant) return [YES, NO];
  const isWhole = grant.kind === 'mcp' && grant.whole !== undefined;
  const always = choice(`[a]lways ${scopeOf(grant)}`);
  const prefix = like ? [choice(`[p]refix ${quoted(like.pattern!)}`)] : [];
  return [YES, NO, always, ...(isWhole ? [SERVER] : []), ...prefix];
}

/** Nothing that an app has asked for outlives it. */
function briefChoices({ choice }: Meanwhile, isOpen = false): Choice[] {
  return isOpen ? [YES, NO, choice] : [YES, NO];
}

/** What has changed since it was allowed. */
function drifted(what: string, before: string, now: string) {
  const differing = changes(before, now).map((line) => `  ${line}`);
  if (differing.length === 0)
    differing.push(`  (behind the first ${MAX_SHOWN_DEFINITION} characters)`);
  const verb = what === 'this tool' ? 'It has' : 'They have';
  return [`You had allowed ${what} for good. ${verb} changed since:`, ...differing];
}

/** The tools of a server, and what "always this server" would be bound to. */
type WholeServer = { tools: Json[]; list: WholeList };

function wholeList(tools: Json[]): WholeServer {
  const all = tools.map(signed).sort((a, b) => (a.tool < b.tool ? -1 : 1));
  const hashes = all.map(({ tool, definition }) => `${tool} ${definition}`);
  const shown = all
    .map((each) => each.shown)
    .join('\n')
    .slice(0, MAX_SHOWN_LIST);
  return { tools, list: { definition: sha256(hashes.join('\n')), shown } };
}

/** The first words of a description. */
function opening(description: unknown) {
  return quoted(cut(String(description)));
}

const cut = (text: string) =>
  text.length > MAX_OPENING ? `${copyOf(text.slice(0, MAX_OPENING))}…` : text;

function scopeOf({ kind }: Grant) {
  if (kind === 'shell') return 'this exact command in this folder';
  return kind === 'write' ? 'this file' : 'this tool, as it is now, in this folder';
}

function whose({ definition, origin }: Tool) {
  if (!origin) return definition.name;
  return `the tool ${quoted(String(origin.tool.name))} of the MCP server ${quoted(origin.server)}`;
}

/** What a server says of its tool, marked as such: it decides nothing, but a person may want to know. */
function ownWords({ origin }: Tool) {
  const { title, annotations } = origin?.tool ?? {};
  const hints = asObject(annotations);
  const name = title ?? hints.title;
  const isNamed = typeof name === 'string' && name !== '';
  const said = Object.entries(HINTS).filter(([hint]) => hints[hint] === true);
  const words = [...(isNamed ? [quoted(cut(name))] : []), ...said.map(([, word]) => word)];
  return words.length > 0 ? [`  it says of itself: ${words.join(', ')}`] : [];
}

const HINTS = {
  destructiveHint: 'destructive',
  openWorldHint: 'open world',
  readOnlyHint: 'only reads',
  idempotentHint: 'twice does no more than once',
};

/** A tool as it describes itself now. Another description makes it another tool. */
function signed({ name, description, inputSchema, annotations }: Json) {
  const shown = canonicalJson({ name, description, inputSchema, annotations }, 2);
  return {
    tool: String(name),
    definition: sha256(shown),
    shown: copyOf(shown.slice(0, MAX_SHOWN_DEFINITION)),
  };
}

function delicacy({ readable, secret, fence }: Location, isWrite: boolean) {
  if (!readable) return 'it is outside the folder';
  if (isWrite && fence) return fence;
  return secret;
}

const isOneFile = ({ pattern }: Rule) => pattern !== undefined && !/[*?[{]/.test(pattern);

function howToAllow(tool: Tool, args: Json, location?: Location) {
  const rule = ruleFor(tool, args, location);
  const isQuotable = !/['\n]|\*\)$/.test(rule);
  return isQuotable ? ` The user can allow it with --allow '${rule}'.` : '';
}

function ruleFor(tool: Tool, args: Json, location?: Location) {
  const { name } = tool.definition;
  const touch = tool.touches?.(args);
  if (touch?.kind === 'shell') return `${name}(${touch.command})`;
  // A row for all servers: the rule means the one that was asked about.
  const { origin } = tool;
  if (origin && !name.startsWith('mcp__')) return `mcp__${origin.server}__${origin.tool.name}`;
  const isPlain = location && /^[\w./-]+$/.test(location.shown); // else it would have to be escaped
  return isPlain ? `${name}(${location.shown})` : name;
}
