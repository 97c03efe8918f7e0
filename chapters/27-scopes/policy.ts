// policy.ts: which servers may run, by `allowedMcpServers` and `deniedMcpServers`. An entry names a
// server by its address, its command or its name; and a name is what anybody may give a server.

import { isObject, transportType, type Json, type ServerEntry } from '../../mcp.ts';
import { launchWords } from '../17-the-gate/cautions.ts';
import { matchesText as isLike } from '../17-the-gate/rules.ts';
import { quoted } from '../17-the-gate/safe-text.ts';
import { filledIn } from './signature.ts';

export type PolicyFile = {
  file: string;
  root: Json;
  whose: 'managed' | 'user' | 'project';
};
type PolicyRule = { key: string; matches: (server: NamedServer) => boolean };
type NamedServer = { name: string; command?: string[]; url?: URL };
type List = { file: string; rules: PolicyRule[] };

const KEYS = ['serverName', 'serverCommand', 'serverUrl'];

export class Policy {
  /** What is wrong with the lists. */
  readonly problems: string[] = [];
  private denied: List[];
  private allowed: List[]; // one of these must have it; all of a project's narrow it further
  private narrowed: List[];
  private broken?: string; // nothing runs
  private env: NodeJS.ProcessEnv;

  /** `env` is that of the start: no settings file can change what a rule means. */
  constructor(files: PolicyFile[], env: NodeJS.ProcessEnv = process.env) {
    this.env = env;
    this.denied = files.flatMap((each) => this.listIn(each, 'deniedMcpServers'));
    const isManagedOnly = files.some(
      ({ whose, root }) => whose === 'managed' && root.allowManagedMcpServersOnly === true,
    );
    const counts = ({ whose }: PolicyFile) =>
      whose === 'managed' || (whose === 'user' && !isManagedOnly);
    const isProject = ({ whose }: PolicyFile) => whose === 'project';
    this.allowed = files.filter(counts).flatMap((each) => this.listIn(each, 'allowedMcpServers'));
    this.narrowed = files
      .filter(isProject)
      .flatMap((each) => this.listIn(each, 'allowedMcpServers'));
  }

  /** Why this server must not run. */
  verdict(entry: ServerEntry): string | undefined {
    if (this.broken) return this.broken;
    const server = this.named(entry);
    const denial = this.denied.find(({ rules }) => rules.some(({ matches }) => matches(server)));
    if (denial) return `blocked by policy: "deniedMcpServers" in ${denial.file}`;
    const lists = [this.allowed, ...this.narrowed.map((list) => [list])];
    const missing = lists.find(
      (each) =>
        each.length > 0 &&
        !isAllowed(
          each.flatMap((list) => list.rules),
          server,
        ),
    );
    if (!missing) return undefined;
    const files = missing.map(({ file }) => file).join(' and ');
    return `blocked by policy: "allowedMcpServers" in ${files} does not have it`;
  }

  private named(entry: ServerEntry): NamedServer {
    const { name } = entry;
    const config = filledIn(entry, this.env);
    const { url } = config;
    if (transportType(config) === 'stdio') return { name, command: launchWords(config) };
    const isAddress = typeof url === 'string' && URL.canParse(url);
    return { name, ...(isAddress && { url: new URL(url) }) };
  }

  private listIn({ file, root, whose }: PolicyFile, key: string): List[] {
    const given = root[key];
    if (given === undefined) return [];
    const isDeny = key === 'deniedMcpServers';
    const bad = (what: string) => {
      const problem = `${file}: ${what} in "${key}" is not like {"serverUrl": "https://…"}`;
      this.problems.push(problem);
      // What should forbid something, and cannot be read, must not be forgotten.
      if (whose === 'managed') this.broken ??= `blocked by policy: ${problem}`;
    };
    if (!Array.isArray(given)) {
      bad('what is');
      return [{ file, rules: [] }];
    }
    const rules = given.flatMap((each, n) => {
      const rule = this.ruleFrom(each, isDeny);
      if (!rule) bad(`entry ${n + 1}`);
      return rule ?? [];
    });
    return [{ file, rules }];
  }

  private ruleFrom(given: unknown, isDeny: boolean): PolicyRule | undefined {
    if (!isObject(given)) return undefined;
    const [key = '', ...others] = Object.keys(given);
    const value = given[key];
    if (others.length > 0 || !KEYS.includes(key)) return undefined;
    if (key === 'serverName')
      return isText(value) ? { key, matches: ({ name }) => name === value } : undefined;
    if (key === 'serverCommand') {
      if (!Array.isArray(value) || value.length === 0 || !value.every(isText)) return undefined;
      const words = value.map((word) => this.expanded(word));
      return { key, matches: ({ command }) => isEqual(command, words) };
    }
    return isText(value) ? this.urlRule(value, isDeny) : undefined;
  }

  private urlRule(pattern: string, isDeny: boolean): PolicyRule | undefined {
    const expanded = this.expanded(pattern);
    // A variable may be a part of a name. With a slash in it, it would move the rule to another host.
    const isMoved = expanded.replace(/[^/:?#@*]/g, '') !== bare(pattern).replace(/[^/:?#@*]/g, '');
    const fits = addressMatcher(expanded);
    if (!fits || (isMoved && !isDeny)) return undefined;
    return { key: 'serverUrl', matches: ({ url }) => url !== undefined && fits(url) };
  }

  private expanded(text: string) {
    return text.replace(
      VARIABLE,
      (whole, name: string, fallback?: string) =>
        (Object.hasOwn(this.env, name) && this.env[name]) || (fallback ?? whole),
    );
  }
}

const VARIABLE = /\$\{(\w+)(?::-([^{}]*))?\}/g;
const bare = (text: string) => text.replace(VARIABLE, '');
const isText = (value: unknown): value is string => typeof value === 'string' && value !== '';
const isEqual = (one: string[] | undefined, two: string[]) =>
  one?.length === two.length && two.every((word, n) => word === one[n]);

/** A name counts only where no rule of the list says more about servers of that kind. */
function isAllowed(rules: PolicyRule[], server: NamedServer): boolean {
  const better = server.command ? 'serverCommand' : 'serverUrl';
  const isDecided = rules.some(({ key }) => key === better);
  const counts = ({ key }: PolicyRule) => key === better || (key === 'serverName' && !isDecided);
  return rules.some((rule) => counts(rule) && rule.matches(server));
}

// ─── Addresses ─────────────────────────────────────────────────────────────────────────────────

/** Part by part: `*` for a host must not reach into the path, where "evil.org/.example.com" is.
 *  Exported for the judge of exercise 27. */
export function addressMatcher(pattern: string): ((url: URL) => boolean) | undefined {
  const parts = /^([\w*+.-]+):\/\/([^/?#:@\s]+)(?::([\d*]+))?(\/[^#\s]*)?$/.exec(pattern);
  if (!parts) return undefined;
  const [, scheme = '', host = '', port, path = '/*'] = parts;
  return (url) => {
    const isPort =
      port === undefined ? url.port === '' : isLike(port, url.port || defaultPort(url));
    const isHost = isLike(lowerHost(host), lowerHost(url.hostname));
    const isPath = isLike(path, url.pathname + url.search);
    return isLike(scheme.toLowerCase(), url.protocol.slice(0, -1)) && isHost && isPort && isPath;
  };
}

const lowerHost = (host: string) => host.toLowerCase().replace(/\.$/, '');
const defaultPort = ({ protocol }: URL) => (/^(https|wss):$/.test(protocol) ? '443' : '80');

export const blockedAll = (file: string, why: string) =>
  `blocked by policy: ${quoted(file)} cannot be used (${why}), and it may forbid this server`;
