// from-code.ts: the words of VS Code, which other programs have taken over.

import { join } from 'node:path';
import { asObject, isObject, withoutComments, type Json } from '../../../mcp.ts';
import type { Where } from '../importing.ts';
import type { AskFor } from './registry.ts';

/** The folder where a system keeps the files of programs. */
export function ofPrograms({ home, platform, appData }: Where): string {
  if (platform === 'darwin') return join(home, 'Library', 'Application Support');
  return platform === 'win32' ? appData : join(home, '.config');
}

/** Editors take comments and a comma behind the last item. */
export function editorsJson(text: string): Json {
  const commas = /"(?:\\[^]|[^"\\])*(?:"|\\?$)|,(?=\s*[}\]])/g;
  const json = withoutComments(text).replace(commas, (found) => (found === ',' ? '' : found));
  return asObject(JSON.parse(json));
}

/** Its variables: ${env:X}, ${workspaceFolder}, ${userHome}, and ${input:X}, which it asks for. */
export async function fromCode(config: Json, where: Where, root: Json, ask: AskFor): Promise<Json> {
  const { envFile, dev, gallery, version, ...rest } = config;
  if (envFile !== undefined)
    throw new Error(
      'it reads variables from a file ("envFile"), which we do not; write them into its "env"',
    );
  const inputs = [root.inputs ?? asObject(root.mcp).inputs ?? []].flat().filter(isObject);
  const wanted = [...JSON.stringify(rest).matchAll(/\$\{input:([^}"\\]{1,200})\}/g)].map(
    ([, id]) => id!,
  );
  const values = new Map<string, string>();
  for (const id of new Set(wanted)) {
    const {
      description = '',
      password,
      default: usual,
      options,
    } = inputs.find((each) => each.id === id) ?? {};
    const value = await ask({
      name: id,
      description: `${description}`,
      isSecret: password === true,
      isRequired: true,
      choices: Array.isArray(options)
        ? options.map((each) => `${isObject(each) ? each.value : each}`)
        : [],
      ...(typeof usual === 'string' && { usual }),
    });
    if (value === undefined) throw new Error(`it needs a value for "${id}"`);
    values.set(id, value);
  }
  const convert = (_: string, value: unknown) =>
    typeof value === 'string' ? converted(value, where, values) : value;
  return JSON.parse(JSON.stringify(rest), convert) as Json;
}

function converted(text: string, { home }: Where, inputs: Map<string, string>): string {
  return text
    .replace(/\$\{env:(\w+)\}/g, '${$1}')
    .replace(/\$\{workspaceFolder(?::[^{}]*)?\}/g, '${CLAUDE_PROJECT_DIR}')
    .replace(/\$\{userHome\}/g, () => home)
    .replace(/\$\{input:([^{}]+)\}/g, (_, id: string) => inputs.get(id) ?? '');
}
