// import-commands.ts: `mcp import PROGRAM` and `mcp add --from server.json`. What they bring was
// written by others, so a person sees it before it is written down; and nothing starts.

import { closeSync, existsSync, openSync, readSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { asObject, readJsonFile, serversIn, textOf, type Json } from '../../../mcp.ts';
import { nearest } from '../../16-hands/nearest.ts';
import { agrees, choice, oneOfFew } from '../../17-the-gate/dialogue.ts';
import type { Person } from '../../17-the-gate/person.ts';
import { printable, quoted } from '../../17-the-gate/safe-text.ts';
import { launchLines, PROGRAM } from '../../17-the-gate/trust.ts';
import { EXIT, refused, usage } from '../../19-the-terminal/exit.ts';
import type { McpAction } from '../../19-the-terminal/host.ts';
import { add, type CommandContext } from '../../19-the-terminal/command-line/mcp-add.ts';
import {
  fitServerName,
  importers,
  offeredBy,
  type Importer,
  type ImportableServer,
  type Where,
} from '../importing.ts';
import { bundles, bundleManifest, unpackFor } from './bundle.ts';
import { fromCode } from './from-code.ts';
import { shortServerName, waysIn, type AskFor, type RegistryInput } from './registry.ts';

const TERMINAL = 'that needs a terminal, where you can look at it first';

// ─── Values ────────────────────────────────────────────────────────────────────────────────────

/** Asks for values one by one. A secret is not written into a file that others read: there, and if
 *  nothing is typed, its place is taken by a variable of the environment. */
function asker(person: Person, isShared: boolean): AskFor {
  return async (wanted) => {
    const { name, isSecret, isRequired, choices, usual } = wanted;
    const variable = `\${${name.replace(/\W+/g, '_').toUpperCase()}}`;
    if (isSecret && isShared) {
      person.say(
        `${quoted(name)} is a secret, and the file is for everybody who has the project: it says ${variable}`,
        'note',
      );
      return variable;
    }
    for (;;) {
      const answer = await person.ask({
        lines: about(wanted, variable),
        prompt: printable(name),
        isSecret,
      });
      if (answer === undefined) throw refused('nothing was added');
      const value = answer.trim() === '' ? usual : answer.trim();
      if (value === undefined && isSecret && isRequired) return variable;
      if (value === undefined && !isRequired) return undefined;
      if (value !== undefined && (choices.length === 0 || choices.includes(value))) return value;
    }
  };
}

function about(
  { name, description, isRequired, isSecret, choices, usual }: RegistryInput,
  variable: string,
): string[] {
  const words = description === '' ? [] : [`  ${printable(description)}`];
  const some = choices.length > 0 ? [`  one of ${choices.map(quoted).join(', ')}`] : [];
  const empty = usual !== undefined ? `an empty line means ${quoted(usual)}` : 'it may be left out';
  const rest =
    isRequired && usual === undefined
      ? isSecret
        ? `an empty line means ${variable}, from your environment`
        : 'it must have a value'
      : empty;
  return [`It wants to know ${quoted(name)}:`, ...words, ...some, `  ${rest}`];
}

const isSharedIn = ({ composition }: CommandContext, scope = 'project') =>
  composition.sources?.places().findLast((place) => place.scope === scope)?.authority === 'project';

// ─── mcp add --from server.json ────────────────────────────────────────────────────────────────

export const addFrom: McpAction = async ([file = '', given], desk, person, scope) => {
  const root = readOrRefuse(file);
  const name = given ?? shortServerName(asObject(root.server ?? root));
  const ways = waysIn(root);
  if (ways.length === 0) throw refused(`${file}: it has neither packages nor remotes`);
  if (!person.isThere)
    throw refused(`${file} is added after you have answered what it asks: ${TERMINAL}`);
  const title = `${quoted(file)} has several ways to have the server:`;
  const way =
    ways.length === 1 ? ways[0] : await oneOfFew(person, title, ways, ({ label }) => label);
  if (!way) throw refused('nothing was added');
  let config: Json;
  try {
    config = await way.make(asker(person, isSharedIn(desk, scope) ?? true));
  } catch (error) {
    throw refused(`${file}: ${textOf(error)}`);
  }
  const lines = [`${quoted(file)} describes ${quoted(name)}:`, ...launchLines(config)];
  if (!(await agrees(person, { lines, prompt: 'Add it?' }))) throw refused('nothing was added');
  return add(desk, name, config, scope);
};

function readOrRefuse(file: string): Json {
  if (file === '') throw usage('where is it? Write: mcp add --from server.json [NAME]');
  try {
    const root = readJsonFile(file);
    if (root) return root;
  } catch (error) {
    throw refused(`${file}: ${textOf(error)}`);
  }
  throw refused(`${file}: there is no such file`);
}

// ─── mcp import ────────────────────────────────────────────────────────────────────────────────

const thisMachine = (): Where => ({
  home: homedir(),
  cwd: process.cwd(),
  platform: process.platform,
  appData: process.env.APPDATA ?? join(homedir(), 'AppData', 'Roaming'),
});

const HOW = [choice('[y]es, all'), choice('[e]ach by itself'), choice('[n]one', true)];

/** The command, for a table of programs: one of them, or all that have servers here. */
export function importing(
  table: Record<string, Importer> = importers,
  where = thisMachine,
): McpAction {
  return async (words, desk, person, scope = 'user') => {
    const isAgreed = words.includes(AGREED);
    const [program] = words.filter((word) => word !== AGREED);
    const known = Object.keys(table);
    if (program !== undefined && !known.includes(program)) {
      if (existsSync(program)) return fromFile(program, words, desk, person, scope);
      const meant = nearest(program, known, 1)[0] ?? known.join(' | ');
      const form = `write mcp import ${meant}, or the path of a file`;
      throw usage(`"mcp import" does not know ${quoted(program)}; ${form}`);
    }
    const here = where();
    const found = foundBy(program === undefined ? known : [program], table, here, desk);
    if (found.length === 0) return EXIT.done;
    const lines = found.flatMap(({ name, file, config, from }) => [
      `${quoted(name)} of ${from}, in ${quoted(file)}`,
      ...launchLines(config),
    ]);
    if (isAgreed || !person.isThere) for (const line of lines) desk.screen.print(line);
    if (!isAgreed && !person.isThere)
      throw refused(`nothing was imported: ${TERMINAL}, or --yes for a script`);
    const { taken, left } = isAgreed ? inOwnFiles(found, table, here) : { taken: found, left: [] };
    for (const { name, file } of left)
      desk.screen.warn(`${quoted(name)} was left out: look at it, then mcp import ${quoted(file)}`);
    const prompt = `Take over into ${scope} scope?`;
    const question = { lines, prompt, choices: HOW, ifEmpty: 'n' };
    const how = isAgreed ? 'y' : (await person.choose(question))?.key;
    if (how !== 'y' && how !== 'e') throw refused('nothing was imported');
    const ask = asker(person, isSharedIn(desk, scope) ?? false);
    for (const each of taken) {
      const about = { lines: [quoted(each.name), ...launchLines(each.config)] };
      const isWanted = how === 'y' || (await agrees(person, { ...about, prompt: 'This one?' }));
      const importer = table[each.from]!;
      if (isWanted) await takeOver(each, { importer, here, ask, desk, scope });
    }
    return EXIT.done;
  };
}

/** A server of the user starts without a question, so --yes takes none that this folder brings. */
function inOwnFiles(found: FoundServer[], table: Record<string, Importer>, here: Where) {
  const isOwn = ({ file, from }: FoundServer) =>
    table[from]!.files({ ...here, cwd: here.home }).includes(file);
  return { taken: found.filter(isOwn), left: found.filter((each) => !isOwn(each)) };
}

/** As a word: an action gets no flags. */
const AGREED = '--yes';

// ─── mcp import FILE ───────────────────────────────────────────────────────────────────────────

/** What is in it decides: a bundle, a server.json, or a mapping of servers. */
async function fromFile(
  file: string,
  words: string[],
  desk: CommandContext,
  person: Person,
  scope: string,
): Promise<number> {
  if (readStartOf(file) === 'PK') return addBundle(file, desk, person, scope);
  const root = readOrRefuse(file);
  if (root.packages ?? root.remotes ?? root.server) return addFrom([file], desk, person, scope);
  const servers = (found: Json) => serversIn(found, true);
  const table = { [file]: { files: () => [file], servers, convert: fromCode } };
  return importing(table)(words, desk, person, scope);
}

function readStartOf(file: string): string {
  const bytes = Buffer.alloc(2);
  const fd = openSync(file, 'r');
  readSync(fd, bytes);
  closeSync(fd);
  return bytes.toString();
}

/** It is unpacked below our own folder, and the entry says where. */
async function addBundle(file: string, desk: CommandContext, person: Person, scope: string) {
  if (!person.isThere) throw refused(`${file} is a bundle: ${TERMINAL}`);
  const { manifest } = bundleManifest(file);
  const ask = asker(person, isSharedIn(desk, scope) ?? true);
  const values: Json = {};
  for (const [name, about] of Object.entries(asObject(manifest.user_config))) {
    const { description = '', sensitive, required, default: usual } = asObject(about);
    values[name] = await ask({
      name,
      description: `${description}`,
      isSecret: sensitive === true,
      isRequired: required === true,
      choices: [],
      ...(usual !== undefined && { usual: `${usual}` }),
    });
  }
  const plugin = { id: file, name: basename(file), root: '' };
  const made = bundles({ home: homedir(), config: () => values })(resolve(file), plugin);
  const [[name, config]] = Object.entries(made) as [[string, Json]];
  const lines = [`${quoted(file)} is a bundle of ${quoted(name)}:`, ...launchLines(config)];
  if (!(await agrees(person, { lines, prompt: 'Add it?' }))) throw refused('nothing was added');
  unpackFor(JSON.stringify(config));
  return add(desk, fitServerName(name), config, scope);
}

type FoundServer = ImportableServer & { from: string };

function foundBy(
  programs: string[],
  table: Record<string, Importer>,
  here: Where,
  { screen }: CommandContext,
): FoundServer[] {
  const found = programs.flatMap((from) => {
    const { offered, problems } = offeredBy(table[from]!, here);
    for (const problem of problems) screen.warn(problem);
    return offered.map((each) => ({ ...each, from }));
  });
  const isUsed = ({ from }: FoundServer) => table[from]!.isUsed === true;
  for (const { name, from, file } of found.filter(isUsed))
    screen.print(`${quoted(name)} of ${from}, in ${quoted(file)}: it counts here as it is`);
  if (found.length > 0) return found.filter((each) => !isUsed(each));
  const files = programs.flatMap((from) => table[from]!.files(here));
  const whose = programs.length === 1 ? `${programs[0]} has` : 'other programs have';
  throw refused(`${whose} no servers. We looked in:\n  ${files.join('\n  ')}`);
}

type Taking = { importer: Importer; here: Where; ask: AskFor; desk: CommandContext; scope: string };

/** One that cannot be taken over stops none of the others. */
async function takeOver(
  { name, config, root }: ImportableServer,
  { importer, here, ask, desk, scope }: Taking,
): Promise<void> {
  const own = fitServerName(name);
  try {
    const ours = (await importer.convert?.(config, here, root, ask)) ?? config;
    add(desk, own, ours, scope);
  } catch (error) {
    desk.screen.warn(`${quoted(name)} was left out: ${textOf(error)}`);
  }
  if (own !== name)
    desk.screen.print(`${quoted(name)} is called ${own} here; ${PROGRAM} mcp get ${own} shows it`);
}
