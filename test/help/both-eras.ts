// One client for both eras, against peers that follow a script, on stdio and on HTTP.

import { test } from 'node:test';
import { httpTransports } from '../../chapters/20-streamable-http/http.ts';
import { keepAnswers } from '../../chapters/22-no-handshake/cache.ts';
import { eitherEra, type Verdicts } from '../../chapters/22-no-handshake/era.ts';
import { answerWithin } from '../../chapters/22-no-handshake/input-required.ts';
import { doze, type Pause } from '../../chapters/20-streamable-http/pause.ts';
import { listenForChanges } from '../../chapters/22-no-handshake/listen-for-changes.ts';
import { mirrorArguments } from '../../chapters/20-streamable-http/mirrored-headers.ts';
import type { ConnectionOptions, Extension, Json, Parts } from '../../mcp.ts';
import { connect, later, type Opened } from './basics.ts';
import { mount, type Act, type Script, type WireName } from './scripted-peer.ts';

export const BOTH: WireName[] = ['stdio', 'http'];
export const LATER = '2026-07-28';
export const META = 'io.modelcontextprotocol/';
export const description = {
  supportedVersions: [LATER],
  capabilities: { tools: {} },
  _meta: { [`${META}serverInfo`]: { name: 'peer' } },
};
export const modern: Script = { 'server/discover': { result: description } };
export const legacy: Script = {
  initialize: { result: { protocolVersion: '2025-06-18', capabilities: { tools: {} } } },
};
export const refusing = (code: number, data?: Json): Act => ({
  error: { code, message: 'No.', data },
});

const transports: ConnectionOptions['transports'] = {
  http: httpTransports.http,
};
/** What the client waits for: until silence is an answer, and before it tries again. */
export const pauses: Record<'silence' | 'retry', Pause> = { silence: doze, retry: doze };
type Options = ConnectionOptions & { parts?: Parts; verdicts?: Verdicts };

/** As `inBothEras`, but with pauses that a test can replace. */
export const withEras = ({ parts = {}, verdicts, ...options }: Options = {}): ConnectionOptions => {
  const silence: Pause = (...given) => pauses.silence(...given);
  const retry: Pause = (...given) => pauses.retry(...given);
  const test: Extension = () => parts;
  const extensions = [
    answerWithin({ pause: retry }),
    keepAnswers,
    mirrorArguments,
    listenForChanges({ pause: retry }),
    eitherEra({ verdicts, pause: silence }),
    test,
  ];
  return { transports, ...options, extensions };
};

/** Mounts a peer on a wire and opens a connection to it. */
export async function openOn(wire: WireName, script: Script, options?: Options): Promise<Opened> {
  const opened = await connect((await mount[wire](script)).config, withEras(options));
  await opened.connection.initialize();
  return opened;
}

/** One test for each wire. */
export function onBoth(
  name: string,
  body: (
    wire: WireName,
    open: (script: Script, options?: Options) => Promise<Opened>,
  ) => Promise<void>,
): void {
  for (const wire of BOTH)
    test(`${wire}: ${name}`, () => body(wire, (...given) => openOn(wire, ...given)));
}

export const sent = ({ wire }: Pick<Opened, 'wire'>): string[] =>
  wire.filter(([direction]) => direction === 'out').map(([, { method = '(answer)' }]) => method);

/** What has arrived at the peer; of one method, if one is named. */
export async function seen({ connection }: Opened, method?: string): Promise<any[]> {
  const { seen } = (await connection.request('peer/seen')) as { seen: any[] };
  return method === undefined ? seen : seen.filter((message) => message.method === method);
}

/** Puts something else in the place of one of our pauses, until the test is over. */
export function replacePause(which: keyof typeof pauses, wait: Pause): void {
  const before = pauses[which];
  later(() => (pauses[which] = before));
  pauses[which] = wait;
}

/** Nobody waits in these tests: the pauses are written down, and after `most` of them time stands still. */
export function notePauses(most = Infinity): number[] {
  const noted: number[] = [];
  replacePause('retry', (ms) => {
    noted.push(ms);
    return new Promise<void>((done) => void (noted.length < most && setImmediate(done)));
  });
  return noted;
}

export const HANDSHAKE = ['initialize', 'notifications/initialized'];
export const AFTER_PROBE = ['server/discover', ...HANDSHAKE];

export const accept = () => ({ action: 'accept', content: { ok: true } });
export const user = (answer: (params: Json) => unknown = accept): Options => ({
  parts: { capabilities: { elicitation: {} }, handlers: { 'elicitation/create': answer } },
});

export const watching = (
  script: Script,
  capabilities: Json = {
    tools: { listChanged: true },
    prompts: {},
    resources: { listChanged: true },
  },
): Script => ({
  'server/discover': { result: { supportedVersions: [LATER], capabilities } },
  ...script,
});
/** Acknowledges, and keeps the subscription open. */
export const subscribe: Act = ({ notifications }, peer, memory) => {
  const _meta = { 'io.modelcontextprotocol/subscriptionId': peer.id };
  memory.listener = peer;
  peer.send({
    method: 'notifications/subscriptions/acknowledged',
    params: { notifications, _meta },
  });
};
export const isSubscribed = ({ wire }: Opened) =>
  wire.some(([, { method }]) => method === 'notifications/subscriptions/acknowledged');
