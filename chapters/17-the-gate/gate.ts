// One gate for every tool, built in or not. Rules first (deny, ask, allow), then the mode; what nothing decides is
// asked; and where nobody can be asked the answer is no.

import { homedir } from 'node:os';
import { posix, resolve } from 'node:path';
import type { GateKeeper, Tool, Verdict } from '../../agent.ts';
import type { Json } from '../../mcp.ts';
import { globMatcher, matches } from '../16-hands/glob.ts';
import type { Location, Roots } from '../16-hands/paths.ts';
import { commandsIn, matchesText, namesTool, type Effect, type Rule } from './rules.ts';
import { changes, quoted, spelledOut } from './safe-text.ts';
import { canonical, sha256, type Asker, type Grant, type Trust } from './trust.ts';

export const MODES = ['ask', 'read-only', 'accept-edits', 'yolo'] as const;
/** read-only: built-in tools that read, and nothing else. accept-edits: changes to files in the folder need no
 *  question. yolo: nothing does, but what a rule denies stays denied, and what a rule asks about is asked. */
export type Mode = (typeof MODES)[number];

/** What the gate thinks of a call. `grant` is what "always" would allow, where that may be offered; `isOpen`: nothing
 *  speaks against the call, only nothing allows it yet. */
type Judgement = { effect: Effect; why: string; location?: Location; grant?: Grant; isOpen?: boolean };
export type GateOptions = { mode?: Mode; rules?: Rule[]; roots: Roots; trust: Trust; ask?: Asker };

const SOUNDS_LIKE_YES = /^(ok|okay|sure|yep|yeah)$/i;
const MAX_SHOWN_DEFINITION = 16_384;

export class Gate {
  mode: Mode;
  ask?: Asker; // absent where nobody can be asked
  private rules: Rule[];
  private roots: Roots;
  private trust: Trust;

  constructor({ mode = 'ask', rules = [], roots, trust, ask }: GateOptions) {
    this.mode = mode;
    this.rules = rules;
    this.roots = roots;
    this.trust = trust;
    this.ask = ask;
  }

  /** For the agent's option `gate`. */
  check: GateKeeper = async (tool, args, signal) => {
    const judgement = this.judge(tool, args);
    const { effect, why, isOpen, location } = judgement;
    if (effect === 'allow') return { allowed: true };
    if (effect === 'deny') return { allowed: false, reason: `Not allowed: ${why}.` };
    const what = isOpen || !location ? '' : `${tool.definition.name} ${quoted(location.shown)}: `;
    const how = isOpen ? howToAllow(tool, args, location) : '';
    if (!this.ask) return { allowed: false, reason: `Not allowed: ${what}${why}, and there is nobody to ask.${how}` };
    return this.question(tool, args, judgement, signal);
  };

  judge(tool: Tool, args: Json): Judgement {
    const { name } = tool.definition;
    const touch = tool.touches?.(args);
    const location = touch && 'path' in touch ? this.roots.locate(touch.path) : undefined;
    const grant = this.grantFor(tool, args, location);
    const judge = (effect: Effect, why: string): Judgement => ({ effect, why, location, grant });
    const hit = (effect: Effect) =>
      this.rules.find((rule) => rule.effect === effect && this.applies(rule, tool, args, location));

    const denied = hit('deny');
    if (denied) return judge('deny', `the rule deny ${quoted(denied.text)} forbids ${name}`);
    if (touch?.kind === 'write' && !location!.inside)
      return judge('deny', `${quoted(touch.path)} is outside the folder (${quoted(location!.real)})`);
    if (this.mode === 'read-only' && !tool.readOnly)
      return judge('deny', `the mode is read-only, and ${name} may change something`);
    const asked = hit('ask');
    const wanted = asked && judge('ask', `the rule ask ${quoted(asked.text)} wants a question before ${name}`);
    if (wanted) return { ...wanted, grant: undefined }; // an "always" would change nothing: the rule asks again
    const delicate = location && delicacy(location, touch!.kind === 'write');
    if (delicate) return { ...judge(this.mode === 'yolo' ? 'allow' : 'ask', delicate), grant: undefined };
    if (tool.readOnly) return judge('allow', 'it only reads, and inside the folder');
    if (hit('allow')) return judge('allow', 'a rule allows it');
    if (grant && this.trust.isGranted(grant)) return judge('allow', 'it was allowed for good');
    const isEdit = touch?.kind === 'write';
    if (this.mode === 'yolo' || (this.mode === 'accept-edits' && isEdit)) return judge('allow', `it is ${this.mode}`);
    return { ...judge('ask', `${name} needs your permission`), isOpen: true };
  }

  private applies(rule: Rule, tool: Tool, args: Json, location?: Location): boolean {
    if (!namesTool(rule, tool.definition.name)) return false;
    // A rule in your settings means a server of yours, not one that a project gives the same name.
    const isForeign = tool.origin && this.trust.seen.get(tool.origin.server)?.scope !== 'user';
    if (rule.effect === 'allow' && isForeign && !rule.isHere) return false;
    if (rule.pattern === undefined) return true;
    if (location) return this.names(rule.pattern, location.real, rule.effect);
    const touch = tool.touches?.(args);
    if (touch?.kind !== 'shell') return rule.effect !== 'allow'; // nobody knows what the pattern means here
    if (rule.effect === 'allow') return rule.pattern === touch.command;
    const pattern = rule.pattern.replace(/:\*$/, '*'); // so Claude Code writes it
    return commandsIn(touch.command).some((command) => matchesText(pattern, command));
  }

  /** ~/x and, as Claude Code writes it, //x are absolute. To forbid a folder forbids what is in it, and there * also
   *  means names that begin with a dot. */
  private names(pattern: string, real: string, effect: Effect): boolean {
    const absolute = pattern.trim().replace(/^~(?=\/)/, () => this.roots.locate(homedir()).real);
    const full = posix.normalize(absolute).replace(/(?<=.)\/$/, '');
    const paths = [real, this.roots.show(real)];
    if (effect === 'allow') return paths.some(globMatcher(full));
    const everywhere = full.includes('/') ? full : `**/${full}`; // *.pem means in all folders
    return paths.some((path) => [full, `${full}/**`, everywhere].some((each) => matches(each, path)));
  }

  /** For a search through a folder: a file that a rule forbids, or wants a question about, is not for it. */
  isHidden = (real: string): boolean => {
    const tightening = this.rules.filter((rule) => rule.effect !== 'allow' && namesTool(rule, 'grep'));
    return tightening.some(({ pattern, effect }) => pattern !== undefined && this.names(pattern, real, effect));
  };

  private grantFor(tool: Tool, args: Json, location?: Location): Grant | undefined {
    const touch = tool.touches?.(args);
    if (touch?.kind === 'shell') return { kind: 'shell', command: touch.command };
    if (touch?.kind === 'write') return { kind: 'write', path: location!.real };
    const server = tool.origin && this.trust.seen.get(tool.origin.server);
    if (!tool.origin || !server) return undefined;
    const { name, description, inputSchema, annotations } = tool.origin.tool;
    const shown = canonical({ name, description, inputSchema, annotations }, 2);
    return {
      kind: 'mcp',
      server: tool.origin.server,
      fingerprint: server.fingerprint,
      tool: String(name),
      definition: sha256(shown),
      shown: shown.slice(0, MAX_SHOWN_DEFINITION),
    };
  }

  private async question(tool: Tool, args: Json, judgement: Judgement, signal: AbortSignal): Promise<Verdict> {
    const { grant, why, isOpen } = judgement;
    const lines = [...this.describe(tool, args, judgement), ...this.driftLines(grant)];
    const choices = `Allow it? [y]es / [n]o${grant ? ` / [a]lways ${scopeOf(grant)}` : ''} / or say why not`;
    for (;; lines.splice(0, Infinity, 'Please answer y or n, or say why not.')) {
      const answer = (await this.ask!(lines, choices, signal))?.trim() ?? '';
      signal.throwIfAborted(); // too late: the call will not be made, and so nothing is allowed for good
      if (/^y(es)?$/i.test(answer)) return { allowed: true };
      if (/^(no?)?$/i.test(answer)) return { allowed: false, reason: `The user said no${isOpen ? '' : ` (${why})`}.` };
      const isAlways = /^a(lways)?$/i.test(answer);
      if (!isAlways && !SOUNDS_LIKE_YES.test(answer)) return { allowed: false, reason: `The user said no: ${answer}` };
      if (!isAlways || !grant) continue; // a yes, perhaps, but none of those that were offered
      this.trust.grant(grant);
      return { allowed: true };
    }
  }

  private driftLines(grant?: Grant): string[] {
    const before = grant?.kind === 'mcp' ? this.trust.drift(grant) : undefined;
    if (before === undefined || grant?.kind !== 'mcp') return [];
    const differing = changes(before, grant.shown).map((line) => `  ${line}`);
    if (differing.length === 0) differing.push(`  (behind the first ${MAX_SHOWN_DEFINITION} characters)`);
    return ['You had allowed this tool for good. It has changed since:', ...differing];
  }

  /** The tool, whose it is, and every argument in full. A link is shown with where it leads. */
  private describe(tool: Tool, args: Json, { why, location, isOpen }: Judgement): string[] {
    const { definition, origin } = tool;
    const theirs = origin && `the tool ${quoted(String(origin.tool.name))} of the MCP server ${quoted(origin.server)}`;
    const isElsewhere = location && location.real !== resolve(this.roots.cwd, location.shown);
    return [
      `The model wants to call ${theirs ?? definition.name}${isOpen ? '' : ` (${why})`}:`,
      ...(Object.keys(args).length > 0 ? spelledOut(args) : ['  (no arguments)']),
      ...(isElsewhere ? [`  ! that is really ${quoted(location.real)}`] : []),
    ];
  }
}

function delicacy({ readable, secret, fence }: Location, isWrite: boolean): string | undefined {
  if (!readable) return 'it is outside the folder';
  if (secret) return secret;
  return isWrite && fence ? fence : undefined;
}

function scopeOf(grant: Grant): string {
  if (grant.kind === 'shell') return 'this exact command in this folder';
  return grant.kind === 'write' ? 'this file' : 'this tool, as it is now, in this folder';
}

function howToAllow(tool: Tool, args: Json, location?: Location): string {
  const { name } = tool.definition;
  const touch = tool.touches?.(args);
  const isPlain = location && /^[\w./-]+$/.test(location.shown); // else it would have to be escaped
  const rule = touch?.kind === 'shell' ? `bash(${touch.command})` : isPlain ? `${name}(${location.shown})` : name;
  return /['\n]|\*\)$/.test(rule) ? '' : ` The user can allow it with --allow '${rule}'.`;
}
