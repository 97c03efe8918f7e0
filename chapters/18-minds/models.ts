// models.ts: which model answers. Keys come from the environment only: what stands on a command line, everybody on the
// machine can read.

import type { Model } from '../../agent.ts';
import { Anthropic } from './anthropic.ts';
import { OPENAI_URL, OpenAi } from './openai.ts';
import { ModelError } from './post.ts';
import { Rehearsal } from './rehearsal.ts';

export { ModelError };

const FORMS = 'rehearsal, anthropic/<model> or openai/<model>';

export type ChooseOptions = { baseUrl?: string; env?: NodeJS.ProcessEnv };

/** The model of that name. Without a name: the one that there is a key for, else the one that needs none. */
export function chooseModel(name?: string, { baseUrl, env = process.env }: ChooseOptions = {}): Model {
  const [vendor, id] = cut(name ?? defaultName(env));
  if (vendor === 'anthropic' && id !== '') return anthropic(id, baseUrl, env);
  if (vendor === 'openai' && id !== '') return openai(id, baseUrl, env);
  if (vendor !== 'rehearsal' || id !== '')
    throw new ModelError('config', `there is no model "${name}"; write ${FORMS}`);
  if (baseUrl) throw new ModelError('config', `a base URL needs a model to go with; name one: ${FORMS}`);
  return new Rehearsal();
}

/** The names of models may have slashes of their own. */
function cut(name: string): [vendor: string, id: string] {
  const slash = name.indexOf('/');
  return slash === -1 ? [name, ''] : [name.slice(0, slash), name.slice(slash + 1)];
}

// `||` and not `??` from here on: a variable that is set to nothing is not set.
function defaultName(env: NodeJS.ProcessEnv): string {
  if (env.ANTHROPIC_API_KEY || env.ANTHROPIC_AUTH_TOKEN) return `anthropic/${env.ANTHROPIC_MODEL || 'claude-sonnet-5'}`;
  if (env.OPENAI_API_KEY) return `openai/${env.OPENAI_MODEL || 'gpt-5'}`;
  return 'rehearsal';
}

function anthropic(model: string, option: string | undefined, env: NodeJS.ProcessEnv): Model {
  const key = env.ANTHROPIC_API_KEY?.trim() || env.ANTHROPIC_AUTH_TOKEN?.trim();
  if (!key) throw keyless(`anthropic/${model}`, 'ANTHROPIC_API_KEY');
  const baseUrl = option || env.ANTHROPIC_BASE_URL;
  return new Anthropic({
    model,
    key,
    bearer: !env.ANTHROPIC_API_KEY?.trim(),
    ...(baseUrl ? { baseUrl } : {}),
    ...(env.ANTHROPIC_VERSION ? { version: env.ANTHROPIC_VERSION } : {}),
  });
}

function openai(model: string, option: string | undefined, env: NodeJS.ProcessEnv): Model {
  const key = env.OPENAI_API_KEY?.trim();
  const baseUrl = option || env.OPENAI_BASE_URL || OPENAI_URL;
  if (!key && baseUrl.startsWith(OPENAI_URL)) throw keyless(`openai/${model}`, 'OPENAI_API_KEY');
  return new OpenAi({ model, baseUrl, ...(key ? { key } : {}) });
}

function keyless(name: string, variable: string): ModelError {
  return new ModelError('config', `${name} needs a key: set ${variable} in the environment, or use --model rehearsal`);
}
