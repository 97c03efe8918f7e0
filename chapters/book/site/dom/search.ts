// search.ts: words of all pages, which come with the first letter that is typed.

import { loadScript } from './wire-player.ts';

declare global {
  interface Window {
    FINDINGS?: Record<string, Finding[]>;
  }
}
type Finding = [page: string, heading: string, id: string, text: string];
type Scored = { finding: Finding; score: number };

const MOST = 12;
const HEADING = 8; // a word in a heading counts as much as so many in a text

export function searchWith(): void {
  const field = document.querySelector<HTMLInputElement>('#search');
  const list = document.querySelector<HTMLElement>('#found');
  if (!field || !list) return;
  field.parentElement!.hidden = false;
  let loaded: Promise<void> | undefined;
  const language = document.documentElement.lang;
  field.addEventListener('input', async () => {
    loaded ??= loadScript(`search-${language}.js`);
    await loaded;
    show(field.value, list, window.FINDINGS?.[language] ?? []);
  });
  field.addEventListener('keydown', ({ key }) => {
    if (key === 'Escape') show((field.value = ''), list, []);
    if (key === 'ArrowDown') list.querySelector('a')?.focus();
    if (key === 'Enter') list.querySelector('a')?.click();
  });
}

function show(typed: string, list: HTMLElement, findings: Finding[]): void {
  const words = typed
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  list.hidden = words.length === 0;
  const found = words.length === 0 ? [] : best(findings, words);
  list.replaceChildren(...found.map(({ finding }) => rowFor(finding, words[0]!)));
  if (found.length > 0) return;
  const nothing = document.createElement('li');
  nothing.textContent = 'nothing found';
  list.append(nothing);
}

function best(findings: Finding[], words: string[]): Scored[] {
  return findings
    .map((finding) => ({ finding, score: scoreOf(finding, words) }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score)
    .slice(0, MOST);
}

/** Every word has to be there; a short section is more about its words than a long one. */
function scoreOf([, heading, , text]: Finding, words: string[]): number {
  let score = 0;
  for (const word of words) {
    const inText = text.toLowerCase().split(word).length - 1;
    const inHeading = heading.toLowerCase().includes(word);
    if (inText === 0 && !inHeading) return 0;
    score += (inHeading ? HEADING : 0) + Math.log(1 + inText);
  }
  return score / Math.log(30 + text.length);
}

const AROUND = 40; // characters before the word

function rowFor([page, heading, id, text]: Finding, word: string): HTMLElement {
  const link = document.createElement('a');
  link.href = `${page}#${id}`;
  link.textContent = heading;
  const hint = document.createElement('small');
  const at = Math.max(0, text.toLowerCase().indexOf(word) - AROUND);
  hint.textContent = `${page.replace('.html', '')}: …${text.slice(at, at + 2.5 * AROUND)}…`;
  const row = document.createElement('li');
  row.append(link, hint);
  return row;
}
