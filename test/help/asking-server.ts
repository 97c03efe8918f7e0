// What the tests of chapter 23 share: fixtures/asker.mjs in either era, and somebody to ask.

import { join } from 'node:path';
import type { Person } from '../../chapters/17-the-gate/person.ts';
import { eitherEra } from '../../chapters/22-no-handshake/era.ts';
import { answerWithin } from '../../chapters/22-no-handshake/input-required.ts';
import { Counts } from '../../chapters/23-the-server-asks/asking.ts';
import { problemsFound } from '../../chapters/23-the-server-asks/schema.ts';
import {
  elicitation,
  type ElicitationOptions,
} from '../../chapters/23-the-server-asks/elicitation.ts';
import { Folders, roots } from '../../chapters/23-the-server-asks/roots.ts';
import { sampling } from '../../chapters/23-the-server-asks/sampling.ts';
import type { Model } from '../../agent.ts';
import type { CallOptions, Json } from '../../mcp.ts';
import { open, root } from './basics.ts';

export const ERAS = ['handshake', 'modern'] as const;
export type Era = (typeof ERAS)[number];
export const asker = (era: Era): Json => ({
  command: process.execPath,
  args: [join(root, 'fixtures', 'asker.mjs'), ...(era === 'modern' ? ['modern'] : [])],
});

export const echo: Model = {
  name: 'echo',
  async *query({ turns, maxTokens }) {
    const text = `${turns.map((turn) => ('text' in turn ? turn.text : '')).join('|')} (${maxTokens})`;
    yield { type: 'end', stop: 'done', turn: { role: 'assistant', text, calls: [] } };
  },
};

/** As often as it likes. */
export const often = { counts: new Counts(Infinity, Infinity) };

/** A connection to the server that asks, with everything that chapter 23 offers. */
export async function connected(
  era: Era,
  person: Person,
  more: Partial<ElicitationOptions> = {},
  config: Json = {},
) {
  const warnings: string[] = [];
  const folders = new Folders(() => ['/tmp/one', '/tmp/two']);
  const extensions = [
    elicitation({ person, problemsFound, warn: (text) => warnings.push(text), ...more }),
    sampling({ person, model: () => echo }),
    roots(folders),
    answerWithin(),
    eitherEra(),
  ];
  const opened = await open({ ...asker(era), ...config }, { extensions });
  const ask = async (method: string, params: Json, args: Json = {}, options?: CallOptions) => {
    const { text } = await opened.connection.callTool('ask', { method, params, ...args }, options);
    return JSON.parse(text);
  };
  /** What we sent as an answer, in either era. */
  const sent = (): Json[] =>
    opened.wire.flatMap(([way, { result, params }]) => {
      if (way === 'in') return [];
      return [
        ...(result?.action ? [result] : []),
        ...Object.values<Json>(params?.inputResponses ?? {}),
      ];
    });
  return { ...opened, warnings, folders, ask, sent };
}

export const form = (properties: Json, required: string[] = []) => ({
  message: 'Where shall the parcel go?',
  requestedSchema: { type: 'object', properties, required },
});
export const at = (url: string, more: Json = {}) => ({
  mode: 'url',
  message: 'Link your calendar',
  url,
  ...more,
});
