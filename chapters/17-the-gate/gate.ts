// One gate for every tool, built in or not. Rules first (deny, ask, allow), then the mode; what
// nothing decides is asked; and where there is nobody to ask the answer is no.

import { homedir } from 'node:os';
import { posix, resolve } from 'node:path';
import type { GateKeeper, Tool, Touch, Verdict } from '../../agent.ts';
import type { Json } from '../../mcp.ts';
import { globMatcher, slashed } from '../16-hands/glob.ts';
import type { Location, Roots } from '../16-hands/paths.ts';
import { nobody, type Choice, type Person } from './person.ts';
import { commandsIn, folded, matchesText, namesOf, namesTool } from './rules.ts';
import type { Effect, Rule } from './rules.ts';
import { changes, quoted, spelledOut } from './safe-text.ts';
import { canonical, sha256, type Grant, type Trust } from './trust.ts';

export const MODES = ['ask', 'read-only', 'accept-edits', 'yolo'] as const;
/** read-only: built-in tools that read, and nothing else. accept-edits: changes to files in the
 *  folder need no question. yolo: nothing does, but what a rule denies stays denied, and what a
 *  rule asks about is asked. */
export type Mode = (typeof MODES)[number];

/** What the gate thinks of a call. */
type Judgement = {
  effect: Effect;
  why: string;
  location?: Location;
  grant?: Grant; // what "always" would allow, where that may be offered
  isOpen?: boolean; // nothing speaks against the call, only nothing allows it yet
};
/** What is known of a call before anything is decided. */
type Facts = {
  tool: Tool;
  touch?: Touch; // what it reads, writes or runs
  location?: Location; // where its path leads
  commands: string[]; // what its command line is made of
  build?: string; // it changes a file that runs with the next build: the reason to ask
};
export type GateOptions = {
  mode?: Mode;
  rules?: Rule[];
  roots: Roots;
  trust: Trust;
  person?: Person;
};

const MAX_SHOWN_DEFINITION = 16_384;
const MAX_LEVELS = 100; // of arguments: deeper ones nobody could judge

export class Gate {
  mode: Mode;
  private rules: Rule[];
  private roots: Roots;
  private trust: Trust;
  private person: Person;
  private hiding: Rule[]; // what a search must not show
  private patterns = new Map<Rule, (real: string) => boolean>(); // each is compiled once

  constructor({ mode = 'ask', rules = [], roots, trust, person = nobody }: GateOptions) {
    this.mode = mode;
    this.rules = rules;
    this.roots = roots;
    this.trust = trust;
    this.person = person;
    const search = namesOf({ definition: { name: 'grep' } });
    const hides = ({ effect, pattern }: Rule) => effect !== 'allow' && pattern !== undefined;
    this.hiding = rules.filter((rule) => hides(rule) && namesTool(rule, search, 'read'));
  }

  /** For the agent's option `gate`. */
  check: GateKeeper = async (tool, args, signal) => {
    // Explicitly: some versions of Node overflow when they write such a thing, and others do not.
    const deep = `its arguments have more than ${MAX_LEVELS} levels`;
    if (isDeeper(args, MAX_LEVELS)) return { allowed: false, reason: `Not allowed: ${deep}.` };
    const judgement = this.judge(tool, args);
    const { effect, why, isOpen, location, grant } = judgement;
    if (effect === 'allow') return { allowed: true };
    if (effect === 'deny') return { allowed: false, reason: `Not allowed: ${why}.` };
    if (this.person.isThere) return this.question(tool, args, judgement, signal);
    const what = isOpen || !location ? '' : `${tool.definition.name} ${quoted(location.shown)}: `;
    const how = isOpen || grant ? howToAllow(tool, args, location) : '';
    const reason = `Not allowed: ${what}${why}, and there is nobody to ask.${how}`;
    return { allowed: false, reason };
  };

  judge(tool: Tool, args: Json): Judgement {
    const { name } = tool.definition;
    const facts = this.factsOf(tool, args);
    const { touch, location, build } = facts;
    const grant = this.grantFor(tool, touch, location);
    const judge = (effect: Effect, why: string): Judgement => ({ effect, why, location, grant });
    const onlyReads = tool.readOnly && touch?.kind === 'read';
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

    if (onlyReads) return judge('allow', 'it only reads, and inside the folder');
    if (this.hit('allow', facts)) return judge('allow', 'a rule allows it');
    if (grant && this.trust.isGranted(grant)) return judge('allow', 'it was allowed for good');
    if (this.mode === 'yolo') return judge('allow', 'it is yolo');
    if (build) return judge('ask', build);
    if (this.mode === 'accept-edits' && isEdit) return judge('allow', 'it is accept-edits');
    return { ...judge('ask', `${name} needs your permission`), isOpen: true };
  }

  private factsOf(tool: Tool, args: Json): Facts {
    const touch = tool.touches?.(args);
    const location = touch && 'path' in touch ? this.roots.locate(touch.path) : undefined;
    const commands = touch?.kind === 'shell' ? commandsIn(touch.command) : [];
    const build = touch?.kind === 'write' ? location!.build : undefined;
    return { tool, touch, location, commands, build };
  }

  // ── Rules ──

  /** The first rule with this effect that means this call. */
  private hit(effect: Effect, facts: Facts): Rule | undefined {
    const { tool, touch, build } = facts;
    const names = namesOf(tool);
    const rules = this.rules.filter((rule) => rule.effect === effect);
    const meant = rules.filter((rule) => namesTool(rule, names, touch?.kind));
    // To allow a change that runs with the next build, a rule must name the file.
    const isEnough = (rule: Rule) => !build || effect !== 'allow' || isOneFile(rule);
    return meant.find((rule) => isEnough(rule) && this.applies(rule, facts));
  }

  /** Does a rule about this tool speak of this call? */
  private applies(rule: Rule, { tool, touch, location, commands }: Facts): boolean {
    // A rule in your settings means a server of yours, not one that a project gives the same name.
    const isForeign = tool.origin && this.trust.seen.get(tool.origin.server)?.authority !== 'user';
    if (rule.effect === 'allow' && isForeign && !rule.isHere) return false;
    if (rule.pattern === undefined) return rule.effect !== 'allow' || touch?.kind !== 'shell';
    if (location) return this.names(rule, location.real) || this.namesLink(rule, location);
    if (touch?.kind !== 'shell') return rule.effect !== 'allow'; // a pattern has no meaning here
    if (rule.effect === 'allow') return rule.pattern === touch.command;
    const pattern = rule.pattern.replace(/:\*$/, '*'); // so Claude Code writes it
    return commands.some((command) => matchesText(pattern, command));
  }

  /** To forbid, the name that the model gave counts as well: it may be a link, and lead elsewhere. */
  private namesLink(rule: Rule, { named }: Location): boolean {
    return rule.effect !== 'allow' && this.names(rule, named);
  }

  private names(rule: Rule, real: string): boolean {
    const isMeant = this.patterns.get(rule) ?? this.fileTest(rule);
    this.patterns.set(rule, isMeant);
    return isMeant(real);
  }

  /** ~/x and, as Claude Code writes it, //x are absolute. To forbid a folder forbids what is in it,
   *  /x may also mean x in this folder, * names that begin with a dot, and a link where it leads. */
  private fileTest({ pattern = '', effect }: Rule): (real: string) => boolean {
    const home = () => this.roots.locate(homedir()).real;
    const absolute = pattern.trim().replace(/^~(?=\/)/, home);
    const full = posix.normalize(absolute).replace(/(?<=.)\/$/, '');
    const namesOf = (real: string) => [real, this.roots.show(real)].map(slashed);
    if (effect === 'allow') {
      const matches = globMatcher(full);
      return (real) => namesOf(real).some(matches);
    }
    const everywhere = full.includes('/') ? full : `**/${full}`; // *.pem means in all folders
    const here = full.startsWith('/') ? [full.slice(1)] : [];
    const places = [full, ...here].flatMap((each) => [each, this.followed(each)]);
    const patterns = [everywhere, ...places, ...places.map((each) => `${each}/**`)].map(folded);
    const matchers = [...new Set(patterns)].map((each) => globMatcher(each, true));
    return (real) => {
      const names = namesOf(real).map(folded);
      return matchers.some((matches) => names.some(matches));
    };
  }

  /** The same pattern with the links in it followed, up to its first star: /etc/** is
   *  /private/etc/** on a Mac. */
  private followed(pattern: string): string {
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
    return {
      kind: 'mcp',
      server: tool.origin.server,
      fingerprint: server.fingerprint,
      ...signed(tool.origin.tool),
    };
  }

  private driftLines(grant?: Grant): string[] {
    if (grant?.kind !== 'mcp' && grant?.kind !== 'tool') return [];
    const before = this.trust.drift(grant);
    if (before === undefined) return [];
    const differing = changes(before, grant.shown).map((line) => `  ${line}`);
    if (differing.length === 0)
      differing.push(`  (behind the first ${MAX_SHOWN_DEFINITION} characters)`);
    return ['You had allowed this tool for good. It has changed since:', ...differing];
  }

  // ── The question ──

  private async question(
    tool: Tool, args: Json, judgement: Judgement, signal: AbortSignal,
  ): Promise<Verdict> {
    const { grant, why, isOpen } = judgement;
    const answer = await this.person.choose({
      lines: [...this.describe(tool, args, judgement), ...this.driftLines(grant)],
      prompt: 'Allow it?',
      choices: grant ? [YES, NO, always(grant)] : [YES, NO],
      ifEmpty: 'n',
      comment: 'or say why not',
      signal,
    });
    signal.throwIfAborted(); // too late: the call will not be made, and so nothing is granted
    if (answer?.key === 'a') this.trust.grant(grant!);
    if (answer?.key === 'a' || answer?.key === 'y') return { allowed: true };
    if (answer?.words) return { allowed: false, reason: `The user said no: ${answer.words}` };
    return { allowed: false, reason: `The user said no${isOpen ? '' : ` (${why})`}.` };
  }

  /** The tool, whose it is, and every argument in full. A link is shown with where it leads. */
  private describe(tool: Tool, args: Json, { why, location, isOpen }: Judgement): string[] {
    const isElsewhere = location && location.real !== resolve(this.roots.cwd, location.shown);
    return [
      `The model wants to call ${whose(tool)}${isOpen ? '' : ` (${why})`}:`,
      ...(Object.keys(args).length > 0 ? spelledOut(args) : ['  (no arguments)']),
      ...(isElsewhere ? [`  ! that is really ${quoted(location.real)}`] : []),
    ];
  }
}

const YES: Choice = { key: 'y', word: 'yes', label: '[y]es' };
const NO: Choice = { key: 'n', word: 'no', label: '[n]o', isNo: true };

function always(grant: Grant): Choice {
  return { key: 'a', word: 'always', label: `[a]lways ${scopeOf(grant)}` };
}

function scopeOf({ kind }: Grant): string {
  if (kind === 'shell') return 'this exact command in this folder';
  return kind === 'write' ? 'this file' : 'this tool, as it is now, in this folder';
}

function whose({ definition, origin }: Tool): string {
  if (!origin) return definition.name;
  return `the tool ${quoted(String(origin.tool.name))} of the MCP server ${quoted(origin.server)}`;
}

/** A tool as it describes itself now. Another description makes it another tool. */
function signed({ name, description, inputSchema, annotations }: Json) {
  const shown = canonical({ name, description, inputSchema, annotations }, 2);
  return {
    tool: String(name),
    definition: sha256(shown),
    shown: shown.slice(0, MAX_SHOWN_DEFINITION),
  };
}

function delicacy({ readable, secret, fence }: Location, isWrite: boolean): string | undefined {
  if (!readable) return 'it is outside the folder';
  if (isWrite && fence) return fence;
  return secret;
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((inner) => isDeeper(inner, levels - 1));
}

const isOneFile = ({ pattern }: Rule) => pattern !== undefined && !/[*?[{]/.test(pattern);

function howToAllow(tool: Tool, args: Json, location?: Location): string {
  const rule = ruleFor(tool, args, location);
  const isQuotable = !/['\n]|\*\)$/.test(rule);
  return isQuotable ? ` The user can allow it with --allow '${rule}'.` : '';
}

function ruleFor(tool: Tool, args: Json, location?: Location): string {
  const { name } = tool.definition;
  const touch = tool.touches?.(args);
  if (touch?.kind === 'shell') return `${name}(${touch.command})`;
  const isPlain = location && /^[\w./-]+$/.test(location.shown); // else it would have to be escaped
  return isPlain ? `${name}(${location.shown})` : name;
}
