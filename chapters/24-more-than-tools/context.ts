// context.ts: what servers have besides tools, as something that a model can take. The same limits as
// for the results of tools: there are resources of four million characters.

import type { Block, Turn } from '../../agent.ts';
import { asObject, copyOf, isObject, show, type Json, type McpManager } from '../../mcp.ts';
import { fitResult, fromMcp } from '../16-hands/results.ts';
import { plain, quoted } from '../17-the-gate/safe-text.ts';
import type { Attached } from '../19-the-terminal/host.ts';
import { fenced } from '../19-the-terminal/shortcuts.ts';
import { Offers, type Of, type PromptMessage, type ResourceContents } from './offers.ts';

const MAX_CONTENTS = 100; // parts of one resource
const MAX_MESSAGES = 50; // of one prompt
const MAX_LINE = 300; // characters
const GO_ON = 'Go on.';
const IMAGE = '[the image is attached]';

/** Parts of a resource as blocks: pictures as pictures, other data in a file, texts as they are. */
export function blocksOf(contents: ResourceContents[], folder: string): Block[] {
  const several = contents.length > 1;
  const content = contents.slice(0, MAX_CONTENTS).flatMap((each) => {
    const heading = several ? [{ type: 'text', text: `${show(each.uri)}:` }] : [];
    return [...heading, asBlock(each)];
  });
  const left = contents.length - MAX_CONTENTS;
  const note = `[and ${left} more parts, which were left out]`;
  if (left > 0) content.push({ type: 'text', text: note });
  return fromMcp({ text: '', content, isError: false }, folder).blocks;
}

/** A block of chapter 9. By its bytes an image is one, whatever it is called. */
function asBlock(contents: ResourceContents): Json {
  const { mimeType, blob } = contents;
  const isImage = typeof blob === 'string' && show(mimeType ?? '').startsWith('image/');
  if (isImage) return { type: 'image', mimeType, data: blob };
  return { type: 'resource', resource: contents };
}

/** What goes along with a prompt: text, in a frame that says whose it is, and images. */
export function attached(
  server: string,
  uri: string,
  contents: ResourceContents[],
  folder: string,
): Attached {
  const { blocks } = fitResult(
    { blocks: blocksOf(contents, folder), isError: false },
    folder,
    server,
  );
  const types = new Set(contents.map(({ mimeType }) => show(mimeType ?? 'no type')));
  const what = `The resource ${quoted(uri)} of the MCP server ${quoted(server)}`;
  const { text, images } = split(blocks);
  const frame = `${what} (${quoted([...types].join(', '))}), as data:`;
  return { text: `${frame}\n${fenced(text)}`, images };
}

function split(blocks: Block[]): Attached {
  const images = blocks.filter((block) => block.type === 'image');
  const texts = blocks.map((block) => (block.type === 'text' ? plain(block.text) : IMAGE));
  return { text: texts.join('\n'), images };
}

// ─── Prompts ───────────────────────────────────────────────────────────────────────────────────

/** The messages of a prompt as turns of a conversation, each in its role. A model has to be told
 *  something last, so after the words of an assistant the user says: go on. */
export function turnsOf(messages: PromptMessage[], folder: string, name: string): Turn[] {
  const turns = messages.slice(0, MAX_MESSAGES).map(({ role, content }): Turn => {
    const said = { text: '', content: content.map(asContent), isError: false };
    const { text, images } = split(fitResult(fromMcp(said, folder), folder, name).blocks);
    if (role === 'assistant') return { role, text, calls: [] };
    return { role, text, ...(images.length > 0 && { images }) };
  });
  if (turns.at(-1)?.role === 'assistant') turns.push({ role: 'user', text: GO_ON });
  return turns;
}

/** Some servers write the text itself; and a resource may be a picture. */
function asContent(block: unknown) {
  if (typeof block === 'string') return { type: 'text', text: block };
  const { type, resource } = asObject(block);
  return type === 'resource' && isObject(resource) ? asBlock(resource) : block;
}

// ─── Lists ─────────────────────────────────────────────────────────────────────────────────────

/** A resource by its address, or many by a template. */
export type Addressed = Json & { address: string };

/** What a server, or each of them, can be asked for. Not widgets: they are pages for a program that
 *  draws them. */
export async function addressesOf(manager: McpManager, server?: string): Promise<Of<Addressed>[]> {
  const offers = new Offers(manager);
  const [resources, templates] = await Promise.all([
    offers.listResources(server),
    offers.listResourceTemplates(server),
  ]);
  const rows = [
    ...resources.map((row) => ({ ...row, address: row.uri })),
    ...templates.map((row) => ({ ...row, address: row.uriTemplate })),
  ];
  return rows.filter(({ mimeType }: Json) => !show(mimeType ?? '').includes('profile=mcp-app'));
}

/** For people: not what a server means for its own assistant. */
export function isForPeople({ annotations }: Json): boolean {
  const { audience } = asObject(annotations);
  return !Array.isArray(audience) || audience.includes('user');
}

/** "uri  name: what it is", in one line. */
export function addressLine(address: string, row: Json): string {
  const { name, title, description } = row;
  const called = show(title ?? name ?? '');
  const words = [called === address ? '' : called, show(description ?? '')];
  const text = plain(`${address}  ${words.filter(Boolean).join(': ')}`);
  const line = text
    .split('\n')
    .map((each) => each.trim())
    .join(' ')
    .trimEnd();
  return line.length > MAX_LINE ? `${copyOf(line.slice(0, MAX_LINE))}…` : line;
}
