// from-code.ts: the words of VS Code, which other programs have taken over.

import { join } from 'node:path';
import { asObject, isObject, tooMuchIn, withoutComments, type Json } from '../../../mcp.ts';
import { withTexts } from '../../17-the-gate/safe-text.ts';
import type { Where } from '../importing.ts';
import type { AskFor } from './registry.ts';

const settingsOf = ({ home, platform, appData }: Where) =>
  platform === 'win32' ? appData : join(home, '.config');

/** What a path of the table begins with. */
const PLACES: Record<string, (where: Where) => string> = {
  '~': ({ home }) => home,
  '.': ({ cwd }) => cwd,
  settings: settingsOf,
  programs: (where) =>
    where.platform === 'darwin'
      ? join(where.home, 'Library', 'Application Support')
      : settingsOf(where),
};

/** Files, by paths with blanks between them. */
export const at = (paths: string) => (where: Where) =>
  paths.split(' ').map((path) => {
    const [place = '', ...names] = path.split('/');
    return join(PLACES[place]!(where), ...names);
  });

/** Editors take comments and a comma behind the last item. */
export function editorsJson(text: string): Json {
  const commas = /"(?:\\[^]|[^"\\])*(?:"|\\?$)|,(?=\s*[}\]])/g;
  const json = withoutComments(text).replace(commas, (found) => (found === ',' ? '' : found));
  const tooMuch = tooMuchIn(json);
  if (tooMuch) throw new Error(`it has ${tooMuch}`);
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
  return withTexts(rest, (text) => converted(text, where, values)) as Json;
}

function converted(text: string, { home }: Where, inputs: Map<string, string>) {
  return text
    .replace(/\$\{env:(\w+)\}/g, '${$1}')
    .replace(/\$\{workspaceFolder(?::[^{}]*)?\}/g, '${CLAUDE_PROJECT_DIR}')
    .replace(/\$\{userHome\}/g, () => home)
    .replace(/\$\{input:([^{}]+)\}/g, (_, id: string) => inputs.get(id) ?? '');
}
