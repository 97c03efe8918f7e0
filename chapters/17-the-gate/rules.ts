// Rules that a person wrote: `allow`, `ask` and `deny`, in settings files and on the command line.
//
//   bash(npm test)   this command, to the letter   mcp__github__search   this tool
//   write(src/**)    files, by a pattern           mcp__github__*        every tool of this server
//   bash             every command (ask, deny)     clock                 a tool of the program
//
// To deny, a rule may be as broad as it likes: one about `read` means whatever reads files, one
// about `edit` or `write` whatever writes them. To allow a command or an MCP tool, it must say
// exactly which.

import { realpathSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import type { Tool, Touch } from '../../agent.ts';
import { isObject, readJsonFile, type Json } from '../../mcp.ts';

export type Effect = 'allow' | 'ask' | 'deny';
export type Rule = {
  effect: Effect;
  tool: string;
  pattern?: string;
  text: string;
  isHere: boolean; // given on the command line, and so by a user who sees this project
};
export type RuleReader = {
  tools: Pick<Tool, 'definition' | 'touches'>[]; // the rows of the program that rules may name
  warn: (text: string) => void;
};
type Source = { name: string; isHere: boolean }; // where the rules come from

/** What a rule of this name means besides the tool of this name, if it does not allow. */
const MEANT: Record<string, Touch['kind'] | undefined> = {
  read: 'read',
  write: 'write',
  edit: 'write',
};

// ─── Reading rules ─────────────────────────────────────────────────────────────────────────────

/** A rule that is too broad to allow anything is left out, with a warning. One that should forbid
 *  something must not be left out: it is an error. */
export function parseRules(
  effect: Effect, texts: unknown, source: Source, reader: RuleReader,
): Rule[] {
  if (!Array.isArray(texts) || !texts.every((text) => typeof text === 'string'))
    throw new Error(`${source.name}: "${effect}" is not a list of strings`);
  const rules: Rule[] = [];
  const odd: string[] = [];
  for (const text of texts) {
    const rule = parseRule(effect, text.trim(), source, reader);
    if (rule) rules.push(rule);
    else odd.push(JSON.stringify(text));
  }
  if (odd.length > 0) complain(effect, odd, source, reader);
  return rules;
}

function complain(effect: Effect, odd: string[], { name }: Source, { warn }: RuleReader): void {
  const example = `Write ${effect} rules like bash or read(secrets/**)`;
  if (effect !== 'allow') throw new Error(`${name}: ${odd[0]} is no rule. ${example}`);
  const some = odd.slice(0, 10).join(', ');
  const more = odd.length > 10 ? ` and ${odd.length - 10} more` : '';
  const why = 'too broad to allow anything, or no rules, and so ignored';
  const how = 'Write mcp__server__tool, mcp__server__* or bash(exact command)';
  warn(`${name}: ${why}: ${some}${more}. ${how}`);
}

function parseRule(
  effect: Effect, text: string, { isHere }: Source, { tools }: RuleReader,
): Rule | undefined {
  const [, name = '', , pattern] = /^([^()\s]+)(\(([^]*)\))?$/.exec(text) ?? [];
  const row = find(name, tools);
  const tool = row?.definition.name ?? name;
  const rule = { effect, tool, ...(pattern !== undefined && { pattern }), text, isHere };
  if (effect === 'allow') return mayAllow(rule, row) ? rule : undefined;
  // Settings may speak of tools that another program has. On the command line it is a mistake.
  const isKnown = row !== undefined || tool.startsWith('mcp__') || tool.includes('*');
  return name !== '' && (isKnown || !isHere) ? rule : undefined;
}

/** By its name, or as Claude Code writes it: Bash. */
function find(name: string, tools: RuleReader['tools']) {
  const nameOf = ({ definition }: RuleReader['tools'][number]) => definition.name;
  const exact = tools.find((row) => nameOf(row) === name);
  return exact ?? tools.find((row) => nameOf(row).toLowerCase() === name.toLowerCase());
}

function mayAllow({ tool, pattern }: Rule, row?: RuleReader['tools'][number]): boolean {
  const isLabel = /^mcp___?[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*__([\w-]+|\*)$/.test(tool);
  if (!row) return isLabel && pattern === undefined;
  const kind = kindOf(row);
  if (kind === undefined) return pattern === undefined; // a pattern has no meaning for this tool
  // Every command would be too much, and one that ends in a star lets `git -c …` in.
  if (kind === 'shell') return Boolean(pattern) && !pattern!.endsWith('*');
  return true;
}

/** What calls of this tool touch, if it says so. */
function kindOf({ touches }: RuleReader['tools'][number]): Touch['kind'] | undefined {
  try {
    return touches?.({}).kind;
  } catch {
    return 'shell'; // it has something to tell, but not without arguments: be careful
  }
}

// ─── What a rule means ─────────────────────────────────────────────────────────────────────────

/** Does the rule speak of this tool? A server's part of a label has no "__" in it, so the prefix is
 *  unambiguous. */
export function namesTool(rule: Rule, tool: string, kind?: Touch['kind']): boolean {
  if (rule.tool === tool) return true;
  if (rule.effect === 'allow')
    return rule.tool.endsWith('__*') && tool.startsWith(rule.tool.slice(0, -1));
  const meant = Object.hasOwn(MEANT, rule.tool) ? MEANT[rule.tool] : undefined;
  if (meant !== undefined && meant === kind) return true;
  if (matchesText(rule.tool, tool)) return true;
  return rule.tool.startsWith('mcp__') && tool.startsWith(`${rule.tool}__`);
}

/** `*` stands for anything. Only for `ask` and `deny`. */
export function matchesText(pattern: string, text: string): boolean {
  const [first = '', ...rest] = pattern.split('*');
  if (rest.length === 0) return pattern === text;
  if (!text.startsWith(first)) return false;
  const last = rest.pop()!;
  let at = first.length;
  for (const part of rest) {
    const found = text.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return text.length - last.length >= at && text.endsWith(last);
}

/** A command line and the commands in it. Bash has more ways to spell a command than any list
 *  knows: this finds the ordinary ones, so that a deny rule stops an accident. What was not allowed
 *  to the letter is asked about anyway. */
export function commandsIn(line: string): string[] {
  const parts = line.split(/[;&|\n()`{}<>]/).map((part) => part.trim());
  const unquoted = parts.map((part) => part.replace(/["'\\]/g, '').replace(/\s+/g, ' ').trim());
  const before = /^((\w+=\S*|env|command|exec|sudo|nohup|time|then|do|else|!) )+/;
  const bare = unquoted.map((part) => part.replace(before, ''));
  const named = bare.map((part) => part.replace(/^[^ ]*\//, '')); // /bin/rm is rm
  return [line.trim(), ...parts, ...unquoted, ...bare, ...named].filter(Boolean);
}

// ─── Settings files ────────────────────────────────────────────────────────────────────────────

/** The rules of both settings files. The user's file must be sound: a rule that is lost is a door
 *  left open. A project's file can only tighten; what it tries to loosen is ignored, and named. */
export function readSettings(home: string, cwd: string, reader: RuleReader): Rule[] {
  const rules = userRules(home, reader);
  if (isSameFolder(home, cwd)) return rules;
  return [...rules, ...projectRules(join(cwd, '.claude', 'settings.json'), reader)];
}

function userRules(home: string, reader: RuleReader): Rule[] {
  if (!isAbsolute(home)) {
    const folder = JSON.stringify(home);
    reader.warn(`the home folder ${folder} is no absolute path: your rules are not read`);
    return [];
  }
  const file = join(home, '.claude', 'settings.json');
  const { permissions } = permissionsIn(file);
  const source = { name: file, isHere: false };
  return (['allow', 'ask', 'deny'] as const).flatMap((effect) =>
    parseRules(effect, permissions[effect] ?? [], source, reader),
  );
}

function isSameFolder(a: string, b: string): boolean {
  try {
    return realpathSync(a) === realpathSync(b);
  } catch {
    return false; // one of them is not there
  }
}

const LOOSENING = ['enableAllProjectMcpServers', 'enabledMcpjsonServers', 'env'];

function projectRules(file: string, reader: RuleReader): Rule[] {
  try {
    const { permissions, settings } = permissionsIn(file);
    const others = Object.keys(permissions).filter((key) => key !== 'ask' && key !== 'deny');
    const loosening = [
      ...LOOSENING.filter((key) => Object.hasOwn(settings, key)),
      ...others.map((key) => `permissions.${key}`),
    ];
    const why = 'a project cannot loosen anything, so these are ignored';
    if (loosening.length > 0) reader.warn(`${file}: ${why}: ${loosening.join(', ')}`);
    const source = { name: file, isHere: false };
    return (['ask', 'deny'] as const).flatMap((effect) =>
      parseRules(effect, permissions[effect] ?? [], source, reader),
    );
  } catch (error) {
    reader.warn(`${(error as Error).message} (its rules do not count)`);
    return [];
  }
}

function permissionsIn(file: string): { settings: Json; permissions: Json } {
  try {
    const settings = readJsonFile(file) ?? {};
    const { permissions = {} } = settings;
    if (!isObject(permissions)) throw new Error('its "permissions" is not an object');
    return { settings, permissions };
  } catch (error) {
    throw new Error(`${file} cannot be read: ${(error as Error).message}`);
  }
}
