// blocks.ts: what a tool returns, as text.

import { type Json, asObject, excerpt, show } from '../01-a-pipe/messages.ts';

export type ToolResult = {
  text: string;
  content: unknown[];
  isError: boolean;
  structuredContent?: unknown;
};

/** A tool's blocks as text: text as it is, everything else by name and size. */
export function blocksToText(content: unknown[]): string {
  return content.map(blockToText).join('\n');
}

function blockToText(block: unknown): string {
  const { type, text, data, mimeType, name, uri, resource } = asObject(block);
  if (type === 'text' && typeof text === 'string') return text;
  if (type === 'image' || type === 'audio') return `[${type}: ${show(mimeType)}, ${bytes(data)}]`;
  if (type === 'resource_link') return `[link: ${show(name)} ${show(uri)}]`;
  if (type === 'resource') return resourceToText(asObject(resource));
  return `[a block that we cannot read: ${excerpt(block)}]`;
}

function resourceToText({ text, uri, mimeType, blob }: Json): string {
  if (typeof text === 'string') return text;
  return `[resource: ${show(uri)}, ${show(mimeType)}, ${bytes(blob)}]`;
}

/** Four characters of base64 are three bytes, but for the one or two `=` at the end. */
function bytes(base64: unknown): string {
  const text = show(base64 ?? '');
  const ending = text.slice(-2).replaceAll('=', '');
  const length = Math.max(text.length - 2, 0) + ending.length;
  return `${Math.floor((length * 3) / 4)} bytes`;
}
