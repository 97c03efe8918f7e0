// book.ts: what a page of the site does besides being read: a wire that plays, a search, a slider,
// slides. Without it every page is there as well.

import { growWith } from './growth-slider.ts';
import { openSlides } from './slides.ts';
import { searchWith } from './search.ts';
import { playWires } from './wire-player.ts';

export function beginBook(): void {
  playWires();
  growWith();
  searchWith();
  unfoldForPaper();
  foldMenu();
  for (const link of document.querySelectorAll<HTMLElement>('.as-slides')) link.hidden = false;
  openIfAsked();
  addEventListener('hashchange', openIfAsked);
}

function openIfAsked(): void {
  if (location.hash === '#slides') openSlides();
}

/** Paper has no folds: a solution is printed, too. */
function unfoldForPaper(): void {
  addEventListener('beforeprint', () => {
    for (const fold of document.querySelectorAll<HTMLDetailsElement>('details:not([open])')) {
      fold.open = true;
      fold.dataset.folded = '';
    }
  });
  addEventListener('afterprint', () => {
    for (const fold of document.querySelectorAll<HTMLDetailsElement>('details[data-folded]')) {
      fold.open = false;
      delete fold.dataset.folded;
    }
  });
}

/** On a small screen the chapters are above the page, and in the way. */
function foldMenu(): void {
  const menu = document.querySelector<HTMLDetailsElement>('.menu');
  if (menu && matchMedia('(max-width: 940px)').matches) menu.open = false;
}
