// models.ts: which model answers. One row for each kind of model; all else follows from the rows.
// Keys come from the environment only: a command line can be read by every user of the machine.

import type { Model } from '../../agent.ts';
import { orList } from '../17-the-gate/dialogue.ts';
import { Anthropic } from './anthropic.ts';
import { OPENAI_URL, OpenAi } from './openai.ts';
import { ModelError } from './post.ts';
import { Rehearsal } from './rehearsal.ts';

export { ModelError };

type Environment = NodeJS.ProcessEnv;
type MakeOptions = {
  baseUrl?: string; // another server that speaks the same wire
  maxTokens?: number; // of one answer
  env: Environment;
};
export type ModelRow = {
  keys: string[]; // the variables that may hold its key, the usual one first; [] if it needs none
  make(id: string, options: MakeOptions): Model; // throws a ModelError that says what is missing
  defaultId?(env: Environment): string; // absent: there is one model of this kind, without an id
  window?(id: string): number | undefined; // tokens that it can read, as far as we know
  note?: string; // for the help
};

// By how the id begins. Others that speak this wire do not tell, so neither can we.
const OPENAI_WINDOWS: [begin: string, tokens: number][] = [
  ['gpt-5', 272_000],
  ['gpt-4.1', 1_000_000],
  ['gpt-4o', 128_000],
  ['o3', 200_000],
  ['o4', 200_000],
];

export const models: Record<string, ModelRow> = {
  rehearsal: {
    keys: [],
    make: () => new Rehearsal(),
    note: 'offline, the default without a key',
  },
  anthropic: {
    keys: ['ANTHROPIC_API_KEY', 'ANTHROPIC_AUTH_TOKEN'],
    make: anthropic,
    defaultId: (env) => env.ANTHROPIC_MODEL || 'claude-sonnet-5',
    window: (id) => (id.startsWith('claude-') ? 200_000 : undefined),
  },
  openai: {
    keys: ['OPENAI_API_KEY'],
    make: openai,
    defaultId: (env) => env.OPENAI_MODEL || 'gpt-5',
    window: (id) => OPENAI_WINDOWS.find(([begin]) => id.startsWith(begin))?.[1],
  },
};

/** The variables that hold keys of models: no server of a project gets to see them. */
export function apiKeyVariables(rows: Record<string, ModelRow>): string[] {
  return Object.values(rows).flatMap(({ keys }) => keys);
}

/** How models are named: `rehearsal, anthropic/<model>, …`. */
export function formsOf(rows: Record<string, ModelRow>, id = '<model>'): string[] {
  return Object.entries(rows).map(([name, { defaultId }]) => (defaultId ? `${name}/${id}` : name));
}

type ChooseOptions = {
  models?: Record<string, ModelRow>;
  baseUrl?: string;
  maxTokens?: number;
  env?: Environment;
};

/** The model of that name. Without a name: the one that there is a key for, else the one that needs
 *  none. */
export function chooseModel(name?: string, options: ChooseOptions = {}): Model {
  const { models: rows = models, baseUrl, maxTokens, env = process.env } = options;
  const forms = orList(formsOf(rows));
  const chosen = name ?? defaultName(rows, env);
  const [kind, id] = cut(chosen);
  const row = Object.hasOwn(rows, kind) ? rows[kind] : undefined;
  const isComplete = row && (row.defaultId !== undefined) === (id !== '');
  if (!isComplete) throw new ModelError('config', `there is no model "${chosen}"; write ${forms}`);
  if (baseUrl && !row.defaultId)
    throw new ModelError('config', `a base URL needs a model to go with; name one: ${forms}`);
  const model = row.make(id, { baseUrl, maxTokens, env });
  model.contextWindow ??= row.window?.(id);
  return model;
}

/** The names of models may have slashes of their own. */
function cut(name: string): [kind: string, id: string] {
  const slash = name.indexOf('/');
  return slash === -1 ? [name, ''] : [name.slice(0, slash), name.slice(slash + 1)];
}

function defaultName(rows: Record<string, ModelRow>, env: Environment) {
  const all = Object.entries(rows);
  const withKey = all.find(([, { keys }]) => keys.some((key) => env[key]));
  const found = withKey ?? all.find(([, { keys }]) => keys.length === 0);
  if (!found) throw new ModelError('config', `no key is set: ${orList(apiKeyVariables(rows))}`);
  const [name, { defaultId }] = found;
  return defaultId ? `${name}/${defaultId(env)}` : name;
}

// `||` and not `??` from here on: a variable that is set to nothing is not set.
function anthropic(model: string, { baseUrl: option, maxTokens, env }: MakeOptions): Model {
  const ownKey = env.ANTHROPIC_API_KEY?.trim();
  const key = ownKey || env.ANTHROPIC_AUTH_TOKEN?.trim();
  if (!key) throw keyless('anthropic', model);
  const baseUrl = option || env.ANTHROPIC_BASE_URL;
  return new Anthropic({
    model,
    key,
    bearer: !ownKey,
    maxTokens,
    ...(baseUrl ? { baseUrl } : {}),
  });
}

function openai(model: string, { baseUrl: option, maxTokens, env }: MakeOptions): Model {
  const key = env.OPENAI_API_KEY?.trim();
  const baseUrl = option || env.OPENAI_BASE_URL || OPENAI_URL;
  const isTheirs = baseUrl.startsWith(OPENAI_URL); // others, on your own machine say, need no key
  if (!key && isTheirs) throw keyless('openai', model);
  return new OpenAi({ model, baseUrl, maxTokens, ...(key ? { key } : {}) });
}

function keyless(kind: 'anthropic' | 'openai', model: string) {
  const [variable] = models[kind]!.keys;
  const what = `needs a key: set ${variable} in the environment, or use --model rehearsal`;
  return new ModelError('config', `${kind}/${model} ${what}`);
}
