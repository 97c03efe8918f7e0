// elements.ts: how this page makes an element. A server chose the words: they are text, never HTML.

import { plain } from '../../17-the-gate/safe-text.ts';

const MAX_WORDS = 1000; // characters: a browser takes minutes to lay out a label of 100,000
const MAX_RESULT = 100_000;

export function make<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  text = '',
  className = '',
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  const most = tag === 'pre' ? MAX_RESULT : MAX_WORDS;
  const rest = text.length > most ? `…\n(${text.length} characters; the wire has them)` : '';
  element.textContent = plain(text.slice(0, most)) + rest;
  if (className) element.className = className;
  return element;
}

export const byId = <T extends HTMLElement>(id: string) => document.getElementById(id) as T;

export function button(label: string, act: (event: Event) => unknown, type = 'button') {
  const element = Object.assign(make('button', label), { type });
  element.addEventListener('click', act);
  return element;
}
