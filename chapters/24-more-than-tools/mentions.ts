// mentions.ts: @server:uri in a prompt. Only what a person types is read: chapter 19 sees to that.

import { setTimeout as wait } from 'node:timers/promises';
import { textOf, type McpManager } from '../../mcp.ts';
import type { Attached, Completed, Mentions } from '../19-the-terminal/host.ts';
import { nameBefore } from '../19-the-terminal/entries.ts';
import type { Program } from '../19-the-terminal/program.ts';
import { addressesOf, attached, isForPeople, type Addressed } from './context.ts';
import { candidates, askForMissing } from './commands/fill-in.ts';
import { Offers, readResource, type Of, type ResourceTemplate } from './offers.ts';
import { serversWith } from './rows.ts';
import { expand, placeIn, variablesOf } from './template.ts';

const PATIENCE_MS = 2000;
const MAX_OFFERED = 200;

export const resourceMentions: Mentions = { attach, complete };

// ─── What is sent along ────────────────────────────────────────────────────────────────────────

async function attach(
  words: string[],
  program: Program,
  signal: AbortSignal,
): Promise<Attached | undefined> {
  const { agent, manager, screen } = program;
  if (!words[0]?.includes(':')) return undefined;
  await agent.startUp.wait(signal);
  const places = words.flatMap((word) => serverIn(word, manager) ?? []);
  if (places.length === 0) return undefined;
  const place = await meant(places, manager);
  const { server } = place;
  const tell = (what: string) => screen.say(`  @${server}:${place.uri}: ${what}`, 'dim');
  try {
    const uri = await wholeAddress(place, program, signal);
    if (uri === undefined) return undefined;
    const contents = await readResource(manager.of(server), uri, { signal });
    if (contents.length === 0) throw new Error('the server has nothing there');
    const found = attached(server, uri, contents, program.session.resultsFolder);
    const { length } = found.images;
    const images = length === 0 ? '' : ` and ${length === 1 ? 'an image' : `${length} images`}`;
    tell(`${found.text.length} characters${images} are sent`);
    return found;
  } catch (error) {
    tell(`only its name is sent: ${textOf(error)}`);
    return { text: '', images: [] };
  }
}

type ResourceAddress = { server: string; uri: string };

/** An address may end with a full stop, but a sentence does so more often. */
async function meant(places: ResourceAddress[], manager: McpManager) {
  const last = places.at(-1)!;
  if (places.length === 1) return last;
  const listed = await addressesOf(manager, last.server).catch(() => []);
  const isListed = ({ uri }: ResourceAddress) => listed.some(({ address }) => address === uri);
  return places.find(isListed) ?? last;
}

function serverIn(word: string, manager: McpManager): ResourceAddress | undefined {
  const server = nameBefore(':', word, serversWith(manager.status())) ?? '';
  const uri = word.slice(server.length + 1);
  return server === '' || uri === '' ? undefined : { server, uri };
}

/** Of a template the user is asked for what belongs into its holes. */
async function wholeAddress(
  { server, uri: given }: ResourceAddress,
  { manager, person }: Program,
  signal: AbortSignal,
) {
  if (!given.includes('{')) return given;
  const templates = await new Offers(manager).listResourceTemplates(server);
  const isMeant = ({ uriTemplate }: ResourceTemplate) => uriTemplate === given;
  if (!templates.some(isMeant)) return given;
  const holes = variablesOf(given).map((name) => ({ name, description: '', isRequired: true }));
  const ref = { type: 'ref/resource', uri: given } as const;
  const values = await askForMissing(
    holes,
    {},
    { person, manager, server, ref, what: given, signal },
  );
  return values && expand(given, values);
}

// ─── What Tab offers ───────────────────────────────────────────────────────────────────────────

/** Servers get two seconds, all of them together. */
function complete(typed: string, { manager }: Program): Promise<Completed> | undefined {
  if (serversWith(manager.status()).length === 0) return undefined;
  const patience = wait(PATIENCE_MS, { words: [] }, { ref: false });
  return Promise.race([find(typed, manager), patience]);
}

async function find(typed: string, manager: McpManager) {
  const place = serverIn(typed, manager);
  const rows = await addressesOf(manager, place?.server).catch(() => []);
  const filled = place && (await completeHole(place.server, place.uri, rows, manager));
  if (filled && filled.words.length > 0) return filled;
  const words = fitting(typed, rows.filter(isForPeople));
  return { words: words.filter(isTypeable).slice(0, MAX_OFFERED) };
}

/** Those that begin so; if there is none, those with all these letters in an address, name or title. */
function fitting(typed: string, rows: Of<Addressed>[]) {
  const candidates = rows.map(({ server, address, name, title }) => {
    return { word: `${server}:${address}`, names: [name, title] };
  });
  const begin = candidates.filter(({ word }) => word.startsWith(typed));
  const wanted = typed.toLowerCase();
  const alike = candidates.filter(({ word, names }) =>
    [word, ...names].some((each) => isAlike(String(each ?? '').toLowerCase(), wanted)),
  );
  return (begin.length > 0 ? begin : alike).map(({ word }) => word);
}

/** A server's address is put into the line that a person is typing. */
const isTypeable = (word: string) => /^[^\p{C}\p{Zl}\p{Zp}"]+$/u.test(word);

/** All letters of what is typed, in their order: "mkg" means memory:…knowledge-graph. */
function isAlike(name: string, typed: string) {
  let at = 0;
  for (const char of typed) {
    at = name.indexOf(char, at) + 1;
    if (at === 0) return false;
  }
  return true;
}

/** In a hole of a template the server is asked what may stand there. */
async function completeHole(
  server: string,
  typed: string,
  rows: Of<Addressed>[],
  manager: McpManager,
): Promise<Completed> {
  for (const { address } of rows) {
    const place = placeIn(address, typed);
    if (!place) continue;
    const { name, value, others, before, after, isLast } = place;
    const ref = { type: 'ref/resource', uri: address } as const;
    const values = await candidates({ manager, server, ref }, { name, value }, others);
    const words = values.map((each) => `${server}:${before}${encodeURIComponent(each)}${after}`);
    if (words.length > 0) return { words: words.filter(isTypeable), isOpen: !isLast };
  }
  return { words: [] };
}
