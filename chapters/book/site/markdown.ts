// markdown.ts: the parser of Markdown, which is fetched when a site is made: a parser of our own
// would be wrong in the rare cases. It is no dependency: nothing else needs it.

import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { installed } from '../../../test/help/installed.ts';

/** As much of markdown-it's as we use. */
export type Token = {
  type: string;
  tag: string;
  content: string;
  info: string;
  hidden: boolean;
  children: Token[] | null;
  meta: unknown;
  attrGet(name: string): string | null;
  attrSet(name: string, value: string): void;
};
type Rule = (tokens: Token[], at: number) => string;
export type Markdown = {
  parse(source: string, env: object): Token[];
  renderInline(source: string): string;
  renderer: {
    rules: Record<string, Rule>;
    render(tokens: Token[], options: object, env: object): string;
  };
  options: object;
};
type MarkdownIt = new (options: { html: boolean }) => Markdown;

const PACKAGE = 'markdown-it@15.0.3';

export async function loadMarkdown(): Promise<MarkdownIt> {
  const folder = join(installed(PACKAGE), 'node_modules', 'markdown-it');
  const file = pathToFileURL(join(folder, 'dist', 'markdown-it.mjs'));
  return (await import(file.href)).default;
}
