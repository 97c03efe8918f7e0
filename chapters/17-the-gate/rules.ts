// Rules that a person wrote: `allow`, `ask` and `deny`, in settings files and on the command line.
//
//   bash(npm test)      this command, to the letter          mcp__github__search   this tool
//   write(src/**)       files, by a pattern                  mcp__github__*        every tool of this server
//   bash                every command (only in ask and deny)
//
// To deny, a rule may be as broad as it likes: one about `read` means grep and glob too, one about `edit` means write,
// and the other way round. To allow a command or an MCP tool, it must say exactly which.

import { realpathSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { isObject, readJsonFile, type Json } from '../../mcp.ts';

type Warn = (text: string) => void;
export type Effect = 'allow' | 'ask' | 'deny';
/** `isHere`: given on the command line, for this run in this folder, and so by somebody who sees this project. */
export type Rule = { effect: Effect; tool: string; pattern?: string; text: string; isHere: boolean };

const BUILT_IN = ['read', 'write', 'edit', 'grep', 'glob', 'bash'];
const ALSO_MEANT: Record<string, string[] | undefined> = { read: ['grep', 'glob'], write: ['edit'], edit: ['write'] };

/** Reads rules; one that is too broad to allow anything is left out and named. One that should forbid something must
 *  not be left out: it is an error. */
export function parseRules(effect: Effect, texts: unknown, source: string, isHere: boolean, warn: Warn): Rule[] {
  if (!Array.isArray(texts) || !texts.every((text) => typeof text === 'string'))
    throw new Error(`${source}: "${effect}" is not a list of strings`);
  const parsed = texts.map((text: string) => ({ text, rule: parseRule(effect, text.trim(), isHere) }));
  const odd = parsed.filter(({ rule }) => !rule || (isHere && !mayBeTool(rule))).map(({ text }) => JSON.stringify(text));
  if (odd.length > 0 && effect !== 'allow')
    throw new Error(`${source}: ${odd[0]} is no rule. Write ${effect} rules like bash or read(secrets/**)`);
  if (odd.length > 0)
    warn(`${source}: too broad to allow anything, or no rules, and so ignored: ${someOf(odd)}. ` +
      'Write mcp__server__tool, mcp__server__* or bash(exact command)');
  return parsed.flatMap(({ rule }) => rule ?? []);
}

/** Settings may speak of tools that another program has; who types a name for this one has made a mistake. */
const mayBeTool = ({ tool }: Rule) => BUILT_IN.includes(tool) || tool.startsWith('mcp__') || tool.includes('*');
const someOf = (texts: string[]) =>
  texts.slice(0, 10).join(', ') + (texts.length > 10 ? ` and ${texts.length - 10} more` : '');

function parseRule(effect: Effect, text: string, isHere: boolean): Rule | undefined {
  const [, name = '', , pattern] = /^([^()\s]+)(\(([^]*)\))?$/.exec(text) ?? [];
  const tool = BUILT_IN.includes(name.toLowerCase()) ? name.toLowerCase() : name; // Claude Code writes Bash
  const rule = { effect, tool, ...(pattern !== undefined && { pattern }), text, isHere };
  if (effect !== 'allow') return name === '' ? undefined : rule;
  if (tool === 'bash') return pattern && !pattern.endsWith('*') ? rule : undefined; // that would let `git -c …` in
  const isTool = /^mcp___?[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*__([\w-]+|\*)$/.test(tool) && pattern === undefined;
  return BUILT_IN.includes(tool) || isTool ? rule : undefined;
}

/** Does the rule speak of this tool? A server's part of a label has no "__" in it, so the prefix is unambiguous. */
export function namesTool(rule: Rule, tool: string): boolean {
  if (rule.tool === tool) return true;
  if (rule.effect === 'allow') return rule.tool.endsWith('__*') && tool.startsWith(rule.tool.slice(0, -1));
  if (Object.hasOwn(ALSO_MEANT, rule.tool) && ALSO_MEANT[rule.tool]!.includes(tool)) return true;
  return matchesText(rule.tool, tool) || (rule.tool.startsWith('mcp__') && tool.startsWith(`${rule.tool}__`));
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

/** A command line and the commands in it. Bash has more ways to spell a command than any list knows: this finds the
 *  ordinary ones, so that a deny rule stops an accident. What was not allowed to the letter is asked about anyway. */
export function commandsIn(line: string): string[] {
  const parts = line.split(/[;&|\n()`{}<>]/).map((part) => part.trim());
  const unquoted = parts.map((part) => part.replace(/["'\\]/g, '').replace(/\s+/g, ' ').trim());
  const before = /^((\w+=\S*|env|command|exec|sudo|nohup|time|then|do|else|!) )+/;
  const bare = unquoted.map((part) => part.replace(before, ''));
  const named = bare.map((part) => part.replace(/^[^ ]*\//, '')); // /bin/rm is rm
  return [line.trim(), ...parts, ...unquoted, ...bare, ...named].filter(Boolean);
}

/** The rules of both settings files. The user's file must be sound: a rule that is lost is a door left open.
 *  A project's file can only tighten; what it tries to loosen is ignored, and named once. */
export function readSettings(home: string, cwd: string, warn: Warn): Rule[] {
  if (!isAbsolute(home)) warn(`the home folder ${JSON.stringify(home)} is no absolute path: your rules are not read`);
  const user = isAbsolute(home) ? permissionsIn(join(home, '.claude', 'settings.json')) : undefined;
  const rules = (['allow', 'ask', 'deny'] as const).flatMap((effect) =>
    parseRules(effect, user?.permissions[effect] ?? [], user?.file ?? '', false, warn),
  );
  return isSameFolder(home, cwd) ? rules : [...rules, ...projectRules(join(cwd, '.claude', 'settings.json'), warn)];
}

function isSameFolder(a: string, b: string): boolean {
  try {
    return realpathSync(a) === realpathSync(b);
  } catch {
    return false; // one of them is not there
  }
}

function projectRules(file: string, warn: Warn): Rule[] {
  try {
    const { permissions, settings } = permissionsIn(file);
    const loosening = [
      ...['enableAllProjectMcpServers', 'enabledMcpjsonServers', 'env'].filter((key) => Object.hasOwn(settings, key)),
      ...Object.keys(permissions).filter((key) => key !== 'ask' && key !== 'deny').map((key) => `permissions.${key}`),
    ];
    if (loosening.length > 0)
      warn(`${file}: a project cannot loosen anything, so these are ignored: ${loosening.join(', ')}`);
    const rules = (effect: 'ask' | 'deny') => parseRules(effect, permissions[effect] ?? [], file, false, warn);
    return [...rules('ask'), ...rules('deny')];
  } catch (error) {
    warn(`${(error as Error).message} (its rules do not count)`);
    return [];
  }
}

function permissionsIn(file: string): { file: string; settings: Json; permissions: Json } {
  try {
    const settings = readJsonFile(file) ?? {};
    const { permissions = {} } = settings;
    if (!isObject(permissions)) throw new Error('its "permissions" is not an object');
    return { file, settings, permissions };
  } catch (error) {
    throw new Error(`${file} cannot be read: ${(error as Error).message}`);
  }
}

