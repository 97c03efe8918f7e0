// entry.ts: what the entry of a server may say. Whoever reads a word of it declares the word.

import { type Json, asObject, excerpt, isObject, positive } from '../01-a-pipe/messages.ts';
import { transportType } from '../01-a-pipe/transport.ts';
import { McpError } from '../03-three-shapes/errors.ts';
import type { ServerEntry } from './config.ts';
import type { ConnectionOptions, Extension } from '../../mcp.ts';

/** What the value of a word must be: `"timeout" is not …`. */
export type EntryWord = {
  form: string;
  fits: (value: unknown, config: Json) => boolean;
  isNeeded?: boolean;
  caution?: string; // to be told where an entry says it
};
export type Words = Record<string, EntryWord>;
type Readers = Pick<ConnectionOptions, 'transports' | 'extensions'>;

const isText = (value: unknown) => typeof value === 'string' && !value.includes('\0');
const isTexts = (value: unknown) => Array.isArray(value) && value.every(isText);
const isMapping = (value: unknown) => isObject(value) && isTexts(Object.entries(value).flat());

export const TRUE_OR_FALSE: EntryWord = {
  form: 'true or false',
  fits: (value) => typeof value === 'boolean',
};
export const ANY_TEXT: EntryWord = { form: 'a string', fits: isText };
export const LIST_OF_TEXT: EntryWord = { form: 'a list of strings', fits: isTexts };
export const MAPPING: EntryWord = { form: 'a mapping of strings', fits: isMapping };
export const MILLISECONDS: EntryWord = {
  form: 'a number of milliseconds above 0',
  fits: (value) => positive(value) !== undefined,
};
const COMMAND: EntryWord = {
  form: 'the name of a program',
  fits: (value) => isText(value) && value !== '',
  isNeeded: true,
};
const WISH: EntryWord = { form: 'true or false, or both are true', fits: isWish };

/** Every entry may say these. */
const COMMON: Words = {
  type: ANY_TEXT,
  timeout: MILLISECONDS,
  disabled: TRUE_OR_FALSE,
  enabled: TRUE_OR_FALSE, // as others write it
  alwaysLoad: WISH,
  deferred: WISH,
  description: { form: '', fits: () => true }, // for people
};
export const STDIO_WORDS: Words = {
  command: COMMAND,
  args: LIST_OF_TEXT,
  env: MAPPING,
  cwd: ANY_TEXT,
};

/** An extension that declares the words it reads. */
export function reads(words: Words, extension: Extension): Extension {
  return Object.assign(extension, { words });
}

export function problemWithConfig(config: unknown, readers: Readers): string | undefined {
  if (!isObject(config)) return 'its entry is not an object';
  const { type = '' } = config;
  if (!isText(type)) return '"type" is not a string';
  const { transports = {} } = readers;
  const wanted = transportType(config);
  if (!Object.hasOwn(transports, wanted)) {
    const known = Object.keys(transports).join(', ');
    return `its type is ${excerpt(wanted)}, but we have transports only for ${known}`;
  }
  const known = wordsReadBy(readers, config);
  const unread = unreadIn(config, known);
  for (const [word, { form, fits, isNeeded }] of known) {
    const { [word]: value } = config;
    const isMissing = value === undefined && isNeeded;
    if (isMissing) return `"${word}" is missing${unread && `; what is ${unread}?`}`;
    if (value !== undefined && !fits(value, config)) return `"${word}" is not ${form}`;
  }
  return undefined;
}

function wordsReadBy({ transports = {}, extensions = [] }: Readers, config: Json) {
  const { words } = transports[transportType(config)]!;
  const added = extensions.map((extension) => extension.words ?? {});
  return new Map(Object.entries(Object.assign({}, COMMON, words, ...added) as Words));
}

const unreadIn = (config: Json, known: Map<string, EntryWord>) =>
  Object.keys(config)
    .filter((word) => !known.has(word))
    .map(excerpt)
    .join(', ');

/** What an entry says in vain: a misspelt word is a wish that nobody hears. A transport that
 *  declares no words may read any. */
export function cautionAbout(config: Json, readers: Readers): string | undefined {
  const known = wordsReadBy(readers, config);
  const said = Object.keys(config);
  const isOpen = !readers.transports?.[transportType(config)]?.words;
  const unread = isOpen ? '' : unreadIn(config, known);
  const isSaid = (word: string) => !['false', '[]'].includes(JSON.stringify(config[word]));
  const cautions = said.filter(isSaid).flatMap((word) => known.get(word)?.caution ?? []);
  if (unread) cautions.push(`nobody here reads ${unread}`);
  if (cautions.length > 0) return `has an entry to look at: ${cautions.join('; ')}`;
  return undefined;
}

export function isSwitchedOff(config: unknown): boolean {
  const { disabled, enabled } = asObject(config);
  return disabled === true || enabled === false;
}

export function configError({ name, file }: ServerEntry, problem: string): McpError {
  return new McpError('config', `MCP server ${excerpt(name)} in ${file}: ${problem}`);
}

export function loading(config: Json): { load?: 'always' | 'deferred' } {
  const { alwaysLoad, deferred } = config;
  if (alwaysLoad === true) return { load: 'always' };
  return deferred === true ? { load: 'deferred' } : {};
}

/** Whether a model should see its tools at once, or only when it looks for them: not both. */
function isWish(value: unknown, { alwaysLoad, deferred }: Json): boolean {
  return typeof value === 'boolean' && !(alwaysLoad && deferred);
}
