// app-policy.ts: what an app may load, from what its server declares. The browser keeps it to that.

import { asList, asObject, show } from '../../mcp.ts';

const MAX_SOURCE = 255; // characters
const MAX_TOLD = 100; // of a source that is refused
// Nothing else can be in it: no path, no user, no second word, no quotes.
const ORIGIN = /^(?:https|wss):\/\/(?:\*\.)?([a-z\d.-]+)(?::\d{1,5})?$/i;
const LABEL = /^[a-z\d](?:[a-z\d-]*[a-z\d])?$/i;
const HERE = /^(localhost|local|localdomain|internal|intranet|lan|home|corp|private|arpa)$/i;

export type AppPolicy = {
  header: string; // Content-Security-Policy
  connections: string; // Connection-Allowlist: what a policy does not stop, such as WebRTC
  allowed: Record<
    'connectDomains' | 'resourceDomains' | 'frameDomains' | 'baseUriDomains',
    string[]
  >;
  refused: string[]; // what was declared and does not count
};

/** A name that leads out of this machine and this house. A number is no name, and one label is none
 *  of the whole world. */
export function isPublicName(host: string): boolean {
  const labels = host.split('.');
  const last = labels.at(-1)!;
  if (labels.length < 2 || !labels.every((label) => LABEL.test(label))) return false;
  return !/^(\d|0x)/i.test(last) && !HERE.test(last);
}

export function policyFor(csp: unknown): AppPolicy {
  const refused: string[] = [];
  const isGood = (source: unknown): source is string => {
    const [, host] = typeof source === 'string' ? (ORIGIN.exec(source) ?? []) : [];
    const isPublic = host !== undefined && isPublicName(host);
    return isPublic && String(source).length <= MAX_SOURCE;
  };
  const take = (kind: keyof AppPolicy['allowed']) => {
    const all = asList(asObject(csp)[kind]);
    const bad = all.filter((each) => !isGood(each));
    refused.push(...bad.map((each) => show(each).slice(0, MAX_TOLD)));
    return all.filter(isGood);
  };
  const connectDomains = take('connectDomains');
  const resourceDomains = take('resourceDomains');
  const frameDomains = take('frameDomains');
  const baseUriDomains = take('baseUriDomains');
  const loads = ['data:', 'blob:', ...resourceDomains];
  const directives: Record<string, string[]> = {
    'default-src': [],
    'script-src': ["'unsafe-inline'", "'unsafe-eval'", ...loads],
    'style-src': ["'unsafe-inline'", ...loads],
    'img-src': loads,
    'font-src': loads,
    'media-src': loads,
    'connect-src': ['data:', 'blob:', ...connectDomains],
    'worker-src': ['data:', 'blob:'],
    'frame-src': frameDomains,
    'base-uri': baseUriDomains,
    'object-src': [],
    'form-action': [],
    'manifest-src': [],
  };
  const header = Object.entries(directives).map(
    ([name, sources]) => `${name} ${sources.join(' ') || "'none'"}`,
  );
  const reached = [...connectDomains, ...resourceDomains, ...frameDomains];
  const connections = ['response-origin', ...reached.map((source) => `"${source}"`)];
  return {
    header: header.join('; '),
    connections: `(${connections.join(' ')})`,
    allowed: { connectDomains, resourceDomains, frameDomains, baseUriDomains },
    refused,
  };
}
