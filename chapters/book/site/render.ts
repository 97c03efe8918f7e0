// render.ts: a page of the book as HTML. It says what the page says and no sentence more: captions
// become captions, diagrams are drawn, links lead to pages of the site, and headings keep the
// anchors that they have on GitHub.

import { anchor } from '../check.ts';
import { drawDiagram } from './diagram.ts';
import { highlight } from './highlight.ts';
import { escapeHtml } from './ink.ts';
import type { Markdown, Token } from './markdown.ts';
import type { Shelf, SitePage } from './shelf.ts';

export type Heading = { id: string; text: string; level: number };
/** What can be found: below which heading which words are. */
export type Finding = { page: string; heading: string; id: string; text: string };
export type Rendered = { html: string; title: string; headings: Heading[]; findings: Finding[] };

const CAPTION = /^\*((?:`[\w./-]+`|\[`[\w./-]+`\]\([^)]*\)).*)\*$/;

/** `ids`: the anchors of its headings, in their order, if they are those of another language's. */
export function render(
  md: Markdown,
  shelf: Shelf,
  page: SitePage,
  source: string,
  ids: string[] = [],
): Rendered {
  const tokens = md.parse(source, {});
  const headings = headingsOf(tokens, ids);
  for (const token of tokens) for (const child of token.children ?? []) relink(child);
  for (const [at, token] of tokens.entries()) {
    if (token.type === 'fence') takeCaption(tokens, at);
    // A column without a name: the corner of a table is no heading of anything.
    if (token.type === 'th_open' && tokens[at + 1]!.content === '')
      token.tag = tokens[at + 2]!.tag = 'td';
  }
  const { rules } = md.renderer;
  rules.fence = (all, at) => figure(md, all[at]!);
  rules.table_open = () => '<div class="table" tabindex="0"><table>';
  rules.table_close = () => '</table></div>';
  const html = md.renderer.render(tokens, md.options, {});
  const title = headings.find(({ level }) => level === 1)?.text ?? page.name;
  return { html, title, headings, findings: findingsOf(tokens, page.name) };

  function relink(token: Token): void {
    const name = token.type === 'image' ? 'src' : 'href';
    if (token.type !== 'image' && token.type !== 'link_open') return;
    const href = token.attrGet(name) ?? '';
    const to = shelf.follow(page, href);
    if (to === undefined) throw new Error(`${page.page}: this link leads nowhere: ${href}`);
    token.attrSet(name, to);
    if (token.type === 'image') token.attrSet('loading', 'lazy');
  }
}

/** Each gets its anchor; of two that are alike, the second has a number, as on GitHub. */
function headingsOf(tokens: Token[], ids: string[]): Heading[] {
  let n = 0;
  const seen = new Map<string, number>();
  return tokens.flatMap((token, at) => {
    if (token.type !== 'heading_open') return [];
    const inside = tokens[at + 1]!;
    const plain = anchor(`# ${inside.content}`);
    const count = seen.get(plain) ?? 0;
    seen.set(plain, count + 1);
    const id = ids[n++] ?? (count === 0 ? plain : `${plain}-${count}`);
    token.attrSet('id', id);
    return [{ id, text: wordsOf(inside), level: Number(token.tag.slice(1)) }];
  });
}

/** The paragraph above a block that says where it goes becomes its caption. */
function takeCaption(tokens: Token[], at: number): void {
  const above = tokens[at - 2];
  const [, caption] = CAPTION.exec(above?.content ?? '') ?? [];
  if (caption === undefined || tokens[at - 1]?.type !== 'paragraph_close') return;
  tokens[at]!.meta = above!.children;
  above!.children = [];
  for (const token of tokens.slice(at - 3, at)) token.hidden = true;
}

function figure(md: Markdown, { info, content, meta }: Token): string {
  const [language = '', ...words] = info.split(' ');
  if (language === 'mermaid')
    return `<figure class="diagram" tabindex="0">${drawDiagram(content)}</figure>\n`;
  const [, which] = /^\$ npm run chapter ([\d.]+)$/m.exec(content) ?? [];
  const wire = language === 'console' && which ? ` data-wire="${which}"` : '';
  const inside = highlight(content.replace(/\n$/, ''), language);
  const block = `<pre tabindex="0"${wire}><code>${inside}</code></pre>\n`;
  if (!meta) return block;
  const kind = words.includes('until') ? 'code until' : 'code';
  const caption = md.renderer.render(withoutStars(meta as Token[]), md.options, {});
  return `<figure class="${kind}"><figcaption>${caption}</figcaption>${block}</figure>\n`;
}

const withoutStars = (caption: Token[]) => caption.filter(({ type }) => !type.startsWith('em_'));

/** The words of a line, without what makes them bold or a link. */
const wordsOf = ({ children, content }: Token) =>
  children?.map((child) => (child.type === 'softbreak' ? ' ' : child.content)).join('') ?? content;

function findingsOf(tokens: Token[], page: string): Finding[] {
  const findings: Finding[] = [];
  for (const [at, token] of tokens.entries()) {
    const before = tokens[at - 1];
    if (token.type !== 'inline') continue;
    if (before?.type === 'heading_open') {
      const id = before.attrGet('id')!;
      findings.push({ page, heading: wordsOf(token), id, text: '' });
    } else if (findings.length > 0) findings.at(-1)!.text += ` ${wordsOf(token)}`;
  }
  return findings;
}

/** A source that a page links. Its lines have the anchors that they have on GitHub. */
export function renderSource(file: string, text: string): string {
  const language = /\.(ts|mjs|js|json|jsonc)$/.exec(file)?.[1]?.replace('jsonc', 'json') ?? '';
  const lines = highlight(text.replace(/\n$/, ''), language).split('\n');
  const rows = lines.map((line, n) => `<span id="L${n + 1}">${line}</span>`).join('\n');
  const title = `<h1><code>${escapeHtml(file)}</code></h1>`;
  return `${title}\n<pre class="source" tabindex="0"><code>${rows}</code></pre>\n`;
}

export function renderFolder(folder: string, names: string[]): string {
  const rows = names.map((name) => `<li><code>${escapeHtml(name)}</code></li>`).join('\n');
  return `<h1><code>${escapeHtml(folder)}/</code></h1>\n<ul>\n${rows}\n</ul>\n`;
}
