// Rules that a person wrote: `allow`, `ask` and `deny`, in settings files and on the command line.
//
//   bash(npm test)     this command               mcp__github__search   this tool
//   bash(npm test:*)   with anything behind it    mcp__github__*        every tool of this server
//   bash               every command (ask, deny)  write(src/**)         files, by a pattern
//                                                 clock                 a tool of the program
//
// To deny, a rule may be as broad as it likes: one about `read` means whatever reads files, one
// about `edit` or `write` whatever writes them. To allow a command or an MCP tool, it must say
// exactly which.
//
// An MCP tool can be named by its label, or as its server and the configuration name it:
// mcp__db.prod__files.delete. A rule about a server that is not there forbids nothing today, and is
// kept: the server may come later, or be on another machine that shares these settings.

import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import type { Tool, Touch } from '../../agent.ts';
import { isObject, isSameFolder, readJsonFile, textOf, type Json } from '../../mcp.ts';
import { globMatcher } from '../16-hands/more/glob.ts';
import { firstOf } from '../16-hands/start-up.ts';
import {
  SHELL_KEYWORDS,
  takeApart,
  unwrapped,
  type SimpleCommand,
  type Word,
} from './shell-syntax.ts';
import { evaluates } from './free-commands.ts';
import type { Place } from './known-programs.ts';
import { MODES, modeNamed, type Mode } from './modes.ts';
import { named } from './safe-text.ts';
import { COMMAND_LAUNCHERS, isLauncher, isVague, reaches } from './reach.ts';
import { warnOnce } from './told.ts';

export type Effect = 'allow' | 'ask' | 'deny';
export type Rule = {
  effect: Effect;
  tool: string;
  pattern?: string;
  text: string;
  isHere: boolean; // given on the command line, and so by a user who sees this project
  source?: string; // a file, or --allow
};
type RuledTool = Pick<Tool, 'definition' | 'touches'>;
export type RuleReader = {
  tools: RuledTool[]; // of the program, for rules to name
  warn: (text: string) => void;
};
/** Where the rules come from. A project's broken rule is ignored: it is not ours to mend. */
type RuleSource = { name: string; isHere: boolean; isProject?: boolean };
/** As much of a row of the table as a rule can speak of. */
type NamedTool = { definition: { name: string }; origin?: Tool['origin'] };

/** What a rule of this name means besides the tool of this name, if it does not allow. */
const MEANT: Record<string, Touch['kind'] | undefined> = {
  read: 'read',
  write: 'write',
  edit: 'write',
};

// ─── Reading rules ─────────────────────────────────────────────────────────────────────────────

/** A rule that is too broad to allow anything is left out, with a warning. One that should forbid
 *  something must not be left out: if it cannot mean anything, it is an error. */
export function parseRules(
  effect: Effect,
  texts: unknown,
  source: RuleSource,
  reader: RuleReader,
): Rule[] {
  if (!Array.isArray(texts) || !texts.every((text) => typeof text === 'string'))
    throw new Error(`${source.name}: "${effect}" is not a list of strings`);
  if (source.isProject) mustBeFew(texts, source.name);
  const rules: Rule[] = [];
  const odd: string[] = [];
  const foreign: string[] = [];
  const vague: string[] = [];
  for (const text of texts) {
    const rule = parseRule(effect, text.trim(), source);
    const row = rule && find(rule.tool, reader.tools);
    if (rule && row) rule.tool = row.definition.name;
    const fitness = rule ? fitnessOf(rule, reader, row) : 'odd';
    if (fitness !== 'odd') rules.push(rule!);
    if (fitness === 'odd') odd.push(JSON.stringify(text));
    if (fitness === 'foreign') foreign.push(JSON.stringify(text));
    if (fitness === 'fit' && row && isVagueRule(rule!, row)) vague.push(JSON.stringify(text));
  }
  if (odd.length > 0) complain(effect, odd, source, reader);
  const what = `about tools that this program does not have, so they ${effect} nothing here`;
  if (foreign.length > 0) reader.warn(`${source.name}: ${what}: ${some(foreign)}`);
  if (vague.length > 0) reader.warn(`${source.name}: ${VAGUE}: ${some(vague)}`);
  return rules;
}

const MAX_IN_ALL = 50_000; // characters of the patterns of a project, which nobody has approved

/** A few braces can stand for a thousand patterns, and a file can have many: this is the most. */
function mustBeFew(texts: string[], file: string) {
  let size = 0;
  for (const text of texts)
    size += text.length * text.split(',').length ** (text.split('{').length - 1);
  if (size > MAX_IN_ALL) throw new Error(`${file}: its rules stand for too many patterns`);
}

const VAGUE =
  'nothing is known here of these programs, so such a rule means the program with options that have ' +
  'no value and files of the folder that are no programs; spell more, bash(make test:*), to allow more';

function complain(effect: Effect, odd: string[], source: RuleSource, { warn }: RuleReader) {
  const { name, isProject } = source;
  const example = `Write ${effect} rules like bash, read(secrets/**) or mcp__server__tool`;
  if (effect === 'allow') {
    const why = 'too broad to allow anything, or no rules, and so ignored';
    const how = 'Write mcp__server__tool, mcp__server__*, bash(exact command) or bash(command:*)';
    warn(`${name}: ${why}: ${some(odd)}. ${how}`);
    return;
  }
  if (!isProject) throw new Error(`${name}: ${odd[0]} is no rule. ${example}`);
  warn(`${name}: no rules, and so ignored: ${some(odd)}. ${example}`);
}

const some = (texts: string[]) => firstOf(texts, 10);

/** A name, and perhaps a pattern in parentheses. */
function parseRule(effect: Effect, text: string, source: RuleSource): Rule | undefined {
  const { isHere, name } = source;
  const at = text.endsWith(')') ? text.indexOf('(') : -1;
  const tool = at === -1 ? text : text.slice(0, at);
  const rule = { effect, tool: tool.trim(), text, isHere, source: name };
  if (!isMcp(tool) && !/^[^()\s]+$/.test(tool)) return undefined;
  // A server's name may hold blanks and parentheses, but half a pair is a slip.
  if (isMcp(tool) && text.split('(').length !== text.split(')').length) return undefined;
  return at === -1 ? rule : { ...rule, pattern: text.slice(at + 1, -1) };
}

/** `odd`: it can never mean anything, or allows too much. `foreign`: it can mean nothing here. */
function fitnessOf(rule: Rule, { tools }: RuleReader, row?: RuledTool): 'fit' | 'odd' | 'foreign' {
  const { effect, tool, pattern, isHere } = rule;
  const isAboutFiles = row && ['read', 'write'].includes(kindOf(row) ?? '');
  if (isAboutFiles && !isSound(pattern ?? '')) return 'odd';
  // Settings may speak of tools that another program has, and Claude Code's begin with a capital
  // letter. Anything else is a slip of the keyboard, and would forbid nothing.
  const isOthers = !isHere && !isMcp(tool) && /^\p{Lu}/u.test(tool);
  const unknown = isOthers ? 'foreign' : 'odd';
  if (effect === 'allow' && !mayAllow(rule, row)) return row ? 'odd' : unknown;
  if (row || effect === 'allow') return 'fit';
  if (isMcp(tool)) return isPossible(tool) ? 'fit' : 'odd';
  if (tools.some((each) => matchesText(foldCase(tool), foldCase(each.definition.name))))
    return 'fit';
  const [start = '', ...rest] = tool.split('*');
  if (rest.length > 0 && 'mcp__'.startsWith(start)) return 'fit';
  return unknown;
}

const isMcp = (tool: string) => /^mcp__/i.test(tool);
/** mcp__server__resources/read: not a tool, which cannot have a slash here, but a request to it. */
const METHOD = /resources\/(?:read|list)$(?<=^mcp__.+__resources\/....)/;
const partsOf = (tool: string) => tool.replace(METHOD, 'method').slice('mcp__'.length).split('__');

/** Could a server have such a tool? Names of servers have no slash and no control character, names
 *  of tools that we offer are of letters, digits, "_", "." and "-". */
function isPossible(tool: string) {
  const parts = partsOf(tool);
  const isTool = parts.length === 1 || /^[\w.*-]+$/.test(parts.at(-1)!);
  return isTool && /^[^/\\\p{Cc}]{6,263}$/u.test(tool.replace(METHOD, 'method'));
}

/** To allow, the server must be beyond doubt: its name ends at the first "__". */
function isExact(tool: string) {
  const [server = '', ...more] = partsOf(tool);
  const isServer = /^[^*/\\\p{Cc}]+$/u.test(server);
  return tool.startsWith('mcp__') && isServer && /^(\*|[\w.-]+)$/.test(more.join('__'));
}

function isSound(pattern: string) {
  try {
    return Boolean(globMatcher(`${homedir()}/${pattern}/**`)); // as long as it can become
  } catch {
    return false; // too long, or its braces stand for too many
  }
}

/** By its name, or as Claude Code writes it: Bash. */
function find(name: string, tools: RuledTool[]) {
  const exact = tools.find(({ definition }) => definition.name === name);
  return exact ?? tools.find(({ definition }) => foldCase(definition.name) === foldCase(name));
}

function mayAllow({ tool, pattern }: Rule, row?: RuledTool) {
  if (!row) return isExact(tool) && pattern === undefined;
  const kind = kindOf(row);
  if (kind === undefined) return pattern === undefined; // a pattern has no meaning for this tool
  // Every command would be too much, and `git*` would let `git-evil` in.
  if (kind === 'shell') return Boolean(pattern) && (!pattern!.endsWith('*') || hasPrefix(pattern!));
  return true;
}

/** What calls of this tool touch, if it says so. */
function kindOf({ touches }: RuledTool): Touch['kind'] | undefined {
  try {
    return touches?.({}).kind;
  } catch {
    return 'shell'; // it has something to tell, but not without arguments: be careful
  }
}

// ─── What a rule means ─────────────────────────────────────────────────────────────────────────

/** The ways to write a tool: in a rule that forbids, and in one that allows. */
type Names = { forbidden: string[]; allowed: string[] };

/** To forbid, it may be written by its label, as it is really called, or as Claude Code would write
 *  it: a + b__c and a__b + c are one text then, and what forbids one forbids both. To allow, one
 *  text must mean one tool, so a server with "__" in its name counts by its label only. */
export function ruleNamesOf({ definition, origin }: NamedTool): Names {
  const { name } = definition;
  if (!origin) return { forbidden: [foldCase(name)], allowed: [name] };
  const { server, tool } = origin;
  const real = `mcp__${server}__${tool.name}`;
  const claude = [server, String(tool.name)].map((part) => part.replace(/[^\w-]/g, '_'));
  const isDoubtful = /__|_$/.test(server);
  return {
    forbidden: [name, real, `mcp__${claude.join('__')}`].map(foldCase),
    allowed: isDoubtful ? [name] : [name, real],
  };
}

/** Does the rule speak of a tool with these names? */
export function namesTool(rule: Rule, names: Names, kind?: Touch['kind']): boolean {
  if (rule.effect === 'allow') return names.allowed.some((name) => allows(rule.tool, name));
  const meant = Object.hasOwn(MEANT, rule.tool) ? MEANT[rule.tool] : undefined;
  if (meant !== undefined && meant === kind) return true;
  // mcp__s(x) may be about the server "s(x)".
  const texts = [foldCase(rule.tool)];
  if (isMcp(rule.tool) && rule.pattern !== undefined) texts.push(foldCase(rule.text));
  return names.forbidden.some((name) => texts.some((text) => forbids(text, name)));
}

/** A server's part of a name has no "__" in it here, so the prefix is unambiguous. */
function allows(rule: string, name: string) {
  const isWholeServer = rule.startsWith('mcp__') && rule.endsWith('__*');
  return isWholeServer ? name.startsWith(rule.slice(0, -1)) : name === rule;
}

/** `mcp__s` means all tools of the server s. */
function forbids(rule: string, name: string) {
  return matchesText(rule, name) || (isMcp(rule) && name.startsWith(`${rule}__`));
}

/** On many disks, and in many heads, A and a are one letter, ü is one however it is composed, and
 *  what has no width is not there. */
export function foldCase(text: string): string {
  return text
    .normalize('NFC')
    .replace(/\p{Cf}/gu, '')
    .toLowerCase();
}

/** `*` stands for anything: of rules, only in `ask` and `deny`. Not by a regular expression: a
 *  project may write a pattern, and of twenty stars one makes hours. */
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

// ─── Commands ──────────────────────────────────────────────────────────────────────────────────

/** `npm test:*` and `npm test *` mean these words, with anything behind them or nothing. */
const PREFIX = /^([^]*?)(:\*| \*)$/;

/** Does the rule say which command it means? */
function hasPrefix(pattern: string) {
  const words = wordsIn(pattern.replace(PREFIX, '$1'));
  return words !== undefined && !isLauncher(words);
}

/** Does it allow a program of which nothing is known, and spell no more than its name? */
function isVagueRule({ effect, pattern = '' }: Rule, row: RuledTool) {
  if (effect !== 'allow' || kindOf(row) !== 'shell' || !PREFIX.test(pattern)) return false;
  return isVague(wordsIn(pattern.replace(PREFIX, '$1')) ?? []);
}

/** The words of a rule, if it spells one command and nothing that only a shell could tell. */
function wordsIn(pattern: string) {
  const [part, ...more] = takeApart(pattern) ?? [];
  if (!part || more.length > 0 || part.assigns || part.redirections.length > 0) return undefined;
  const isSpelled = part.words.every(({ isPlain }) => isPlain) && part.words[0]?.text;
  return isSpelled ? part.words.map(({ text }) => text) : undefined;
}

/** Does a rule that allows spell this command? Word by word: `npm test` does not begin `npm testing`. */
export function spells({ pattern = '' }: Rule, part: SimpleCommand, place: Place): boolean {
  const { words } = part;
  const isPrefix = PREFIX.test(pattern);
  const spelled = wordsIn(pattern.replace(PREFIX, '$1'));
  if (!spelled || evaluates(part)) return false;
  const begins = (given: Word[]) =>
    (isPrefix || given.length === spelled.length) &&
    spelled.every((text, n) => given[n]?.isPlain && given[n].text === text);
  const inner = unwrapped(words);
  const isInner = begins(inner);
  if (!isInner && !begins(words)) return false;
  // Of the command itself, without `timeout 60` before it.
  const count = spelled.length - (isInner ? 0 : words.length - inner.length);
  return count > 0 && reaches(part, count, place);
}

/** To forbid, a rule means any command of a line that looks like it: `git push *` is `git push`, too. */
export function forbidsCommand({ pattern = '' }: Rule, commands: string[]): boolean {
  const stars = pattern.replace(/:\*$/, '*'); // so Claude Code writes it
  const isMeant = (command: string) =>
    matchesText(stars, command) || (stars.endsWith(' *') && matchesText(stars, `${command} `));
  return commands.some(isMeant);
}

/** A command line and the commands in it. Bash has more ways to spell a command than any list
 *  knows: this finds the ordinary ones, so that a deny rule stops an accident. What was not allowed
 *  to the letter is asked about anyway. */
export function commandsOfLine(line: string): string[] {
  const parts = line.split(/[;&|\n()`{}<>]/).map((part) => part.trim());
  const unquoted = parts.map((part) =>
    part
      .replace(/["'\\]/g, '')
      .replace(/\s+/g, ' ')
      .trim(),
  );
  const bare = unquoted.map(withoutKeywords);
  const named = bare
    .map((part) => part.replace(FIND_EXEC, ''))
    .map((part) => part.replace(/^[^ ]*\//, '')); // /bin/rm is rm
  const launched = [...unquoted, ...bare].flatMap(launchedIn);
  const git = named.map((part) => part.replace(GIT_OPTIONS, 'git '));
  return [line.trim(), ...parts, ...unquoted, ...bare, ...named, ...launched, ...git].filter(
    Boolean,
  );
}

const BEFORE = new Set([...SHELL_KEYWORDS, 'env', 'command', 'exec', 'sudo', 'nohup', 'time']);

/** `if ! FOO=x rm y` runs rm. */
function withoutKeywords(part: string) {
  const words = part.split(' ');
  const at = words.findIndex((word) => !BEFORE.has(word) && !/^\w+=/.test(word));
  return words.slice(Math.max(at, 0)).join(' ');
}

const FIND_EXEC = /^find .* -(?:exec|ok)(?:dir)? /;
/** git -C x push is git push. */
const GIT_OPTIONS = /^git (?:(?:-[Cc]|--(?:git-dir|work-tree)) \S+ |-{1,2}[\w-]+(?:=\S+)? )+/;
const MAX_LAUNCHED = 20;

/** `sudo -u me rm x`, `bash -c 'rm x'`: to forbid, every word behind a launcher may be the command. */
function launchedIn(part: string) {
  const [first = ''] = part.split(' ', 1);
  const found: string[] = [];
  if (!COMMAND_LAUNCHERS.has(first.replace(/^.*\//, ''))) return found;
  for (let at = part.indexOf(' '); at !== -1; at = part.indexOf(' ', at + 1)) {
    found.push(part.slice(at + 1).replace(/^[^ ]*\//, ''));
    if (found.length === MAX_LAUNCHED) break;
  }
  return found;
}

// ─── Settings files ────────────────────────────────────────────────────────────────────────────

/** The rules of both settings files. The user's file must be sound: a rule that is lost is a door
 *  left open. A project's file can only tighten; what it tries to loosen is ignored, and named. */
export function readSettings(home: string, cwd: string, reader: RuleReader): Rule[] {
  const rules = userRules(home, reader);
  if (isSameFolder(home, cwd)) return rules;
  const file = join(cwd, '.claude', 'settings.json');
  const texts: string[] = [];
  const more = projectRules(file, { ...reader, warn: (text) => texts.push(text) });
  warnOnce({ home, file }, texts, reader.warn);
  return [...rules, ...more];
}

/** The mode of the user's settings, permissions.defaultMode. A project has no say in it. */
export function readDefaultMode(home: string): Mode | undefined {
  if (!isAbsolute(home)) return undefined;
  const { defaultMode } = permissionsIn(userFile(home)).permissions;
  return modeNamed(String(defaultMode));
}

const userFile = (home: string) => join(home, '.claude', 'settings.json');

function userRules(home: string, reader: RuleReader) {
  if (!isAbsolute(home)) {
    const folder = JSON.stringify(home);
    reader.warn(`the home folder ${folder} is no absolute path: your rules are not read`);
    return [];
  }
  const file = userFile(home);
  const texts: string[] = [];
  const warn = (text: string) => texts.push(text);
  const { permissions } = permissionsIn(file);
  const { defaultMode } = permissions;
  const source = { name: file, isHere: false };
  const rules = (['allow', 'ask', 'deny'] as const).flatMap((effect) =>
    parseRules(effect, permissions[effect] ?? [], source, { ...reader, warn }),
  );
  const isKnown = defaultMode === undefined || modeNamed(String(defaultMode));
  const odd = `there is no mode ${JSON.stringify(defaultMode)}, so defaultMode is ignored`;
  if (!isKnown) warn(`${file}: ${odd}; the modes are ${MODES.join(', ')}`);
  warnOnce({ home, file }, texts, reader.warn);
  return rules;
}

const LOOSENING = ['enableAllProjectMcpServers', 'enabledMcpjsonServers', 'env', 'shellEnv'];

function projectRules(file: string, reader: RuleReader) {
  try {
    const { permissions, settings } = permissionsIn(file);
    const others = Object.keys(permissions).filter((key) => key !== 'ask' && key !== 'deny');
    const loosening = [
      ...LOOSENING.filter((key) => Object.hasOwn(settings, key)),
      ...others.map((key) => `permissions.${named(key)}`),
    ];
    const why = 'a project cannot loosen anything, so these are ignored';
    if (loosening.length > 0) reader.warn(`${file}: ${why}: ${loosening.join(', ')}`);
    const source = { name: file, isHere: false, isProject: true };
    return (['ask', 'deny'] as const).flatMap((effect) =>
      parseRules(effect, permissions[effect] ?? [], source, reader),
    );
  } catch (error) {
    reader.warn(`${textOf(error)} (its rules do not count)`);
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
    throw new Error(`${file} cannot be read: ${textOf(error)}`);
  }
}
