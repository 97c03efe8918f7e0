// A model on each of the two wires, against the server of model-server.ts.

import assert from 'node:assert/strict';
import type { Model } from '../../agent.ts';
import { Anthropic } from '../../chapters/18-minds/anthropic.ts';
import { OpenAi } from '../../chapters/18-minds/openai.ts';
import { startModelServer, type Script, type WireName } from './model-server.ts';

export const KEY = 'sk-secret-0123456789';

export const WIRES: WireName[] = ['anthropic', 'openai'];

/** A model that does not wait, and tells how long it would have. */
export function hasty(wire: WireName, url: string) {
  const pauses: number[] = [];
  const wait = async (ms: number) => void pauses.push(ms);
  const model =
    wire === 'anthropic'
      ? new Anthropic({ model: 'm', key: KEY, baseUrl: url, wait })
      : new OpenAi({ model: 'm', key: KEY, baseUrl: `${url}/v1`, wait });
  return { model, pauses };
}

/** Runs the script on each wire. */
export async function onBoth(
  script: Script,
  check: (model: Model, server: Awaited<ReturnType<typeof startModelServer>>) => Promise<void>,
) {
  for (const wire of WIRES) {
    const server = await startModelServer(script);
    await check(hasty(wire, server.url).model, server);
    assert.deepEqual(server.problems, []);
    await server.close();
  }
}
