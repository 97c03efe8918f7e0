// completion.ts: `completion`, for the Tab of a shell. The shell asks us for each word; we answer from
// the help of the commands, the configuration, and what servers offered when they were last seen.

import { asList, asObject, type KnownServer } from '../../../mcp.ts';
import { EXIT, usage } from '../exit.ts';
import { loadHere, type Composition } from '../host.ts';
import { ownVerbs, type Run, type Verb } from '../own-verbs.ts';
import { helpOfVerb, helpText } from './options.ts';
import { atDashes } from './parse.ts';

/** Nothing that a shell reads as more than a word: a server chooses the names of its tools. */
const IS_PLAIN = /^[\w.,:@%+/=-]{1,200}$/;

const SHELLS: Record<string, string> = {
  bash: `_mcp_by_hand() {
  mapfile -t COMPREPLY < <(mcp-by-hand completion words -- "\${COMP_WORDS[@]:1:COMP_CWORD}")
  if [[ "\${COMPREPLY[0]}" == *= ]]; then compopt -o nospace; fi
}
complete -o default -F _mcp_by_hand mcp-by-hand`,
  zsh: `_mcp_by_hand() {
  local -a found=("\${(@f)$(mcp-by-hand completion words -- "\${(@)words[2,CURRENT]}")}")
  compadd -S '' -- "\${(@M)found:#*=}"
  compadd -- "\${(@)found:#*=}"
  [[ -n "$found" ]] || _files
}
compdef _mcp_by_hand mcp-by-hand`,
  fish: `function __mcp_by_hand
  mcp-by-hand completion words -- (commandline -opc)[2..] (commandline -ct)
end
complete -c mcp-by-hand -k -a '(__mcp_by_hand)'`,
};

export const completionCommand: Run = async (args, screen, rows) => {
  const { before, command: words } = atDashes(args);
  const [shell = '', ...more] = before;
  if (shell === 'words') {
    const found = wordsFor(words, await rows());
    const fitting = found.filter((word) => word.startsWith(words.at(-1) ?? ''));
    for (const word of new Set(fitting)) if (IS_PLAIN.test(word)) screen.print(word);
    return EXIT.done;
  }
  if (!Object.hasOwn(SHELLS, shell) || more.length > 0)
    throw usage(`for which shell? ${Object.keys(SHELLS).join(', ')}`);
  screen.print(SHELLS[shell]!);
  return EXIT.done;
};

/** All that may come where the last word is. */
function wordsFor(words: string[], composition: Composition): string[] {
  const verbs = { ...ownVerbs, ...composition.verbs };
  const [name = '', ...said] = words.slice(0, -1);
  const last = words.at(-1) ?? '';
  const verb = Object.hasOwn(verbs, name) ? verbs[name] : undefined;
  const help = verb ? helpOfVerb(name, verb) : helpText({ ...composition, verbs });
  if (last.startsWith('-')) return [...help.matchAll(/--[a-z][a-z-]*/g)].map(([flag]) => flag);
  if (words.length < 2) return Object.keys(verbs);
  if (!verb || words.includes('--')) return [];
  const plain = said.filter((word) => !word.startsWith('-'));
  const forms = verb.help.split(/ \| |\n/);
  const form = plain[0] && forms.find((each) => each.startsWith(`${plain[0]} `));
  const isAction = (word: string) => forms.length > 1 && /^[a-z][a-z-]*$/.test(word);
  const actions = forms.map((each) => each.split(/[ ,]/)[0]!).filter(isAction);
  if (plain.length === 0 && actions.length > 0) return actions;
  if (!/^(?!\[?FILE).*\b(SERVER|NAME|A B)\b/m.test(form || verb.help)) return [];
  const entries = loadHere(composition, () => {});
  const server = plain.find((word) => entries.has(word));
  const known = server && composition.known?.find(entries.get(server)!);
  if (!server || !verb.offer) return [...entries.keys()];
  return known ? inCatalogue(known, verb.offer, plain.slice(plain.indexOf(server) + 1)) : [];
}

/** Of a server, when it was last seen: what can be called, or the names of its arguments. */
function inCatalogue(
  { tools, lists }: KnownServer,
  offer: Verb['offer'],
  [wanted, ...given]: string[],
): string[] {
  const all = offer === 'tools' ? tools : asList(lists?.prompts).map(asObject);
  if (wanted === undefined) return all.map(({ name }) => `${name}`);
  const { inputSchema, arguments: args } = asObject(all.find(({ name }) => name === wanted));
  const keys = Object.keys(asObject(asObject(inputSchema).properties));
  const named = asList(args).map((each) => `${asObject(each).name}`);
  const isOpen = (key: string) => !given.some((word) => word.startsWith(key));
  return [...keys, ...named].map((key) => `${key}=`).filter(isOpen);
}
