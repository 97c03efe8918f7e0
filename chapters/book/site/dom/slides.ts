// slides.ts: a page as slides, at #slides. A slide is one thing to look at: a diagram, a block, a
// console, a table, a list, with its heading and the sentence above it. Prose is for the speaker,
// and folds are left out. What is higher than a screen is cut into several.

const LARGEST = 28; // pixels
const SMALLEST = 18; // what the last row can still read; below it, a block is cut

type Slide = { heading?: HTMLElement; lead: string; thing?: HTMLElement };

export function openSlides(): void {
  if (document.body.classList.contains('slides')) return;
  const main = document.querySelector<HTMLElement>('main')!;
  const slides = slidesIn([...main.children] as HTMLElement[]);
  document.body.classList.add('slides');
  main.replaceChildren();
  const boxes = slides.flatMap((slide) => {
    const box = boxFor(slide);
    main.append(box);
    return fitting(box, slide);
  });
  const bar = document.createElement('div');
  bar.id = 'bar';
  document.body.append(bar);
  let at = -1;
  const goTo = (n: number) => {
    boxes[at]?.classList.remove('on');
    at = Math.max(0, Math.min(boxes.length - 1, n));
    boxes[at]!.classList.add('on');
    bar.textContent = `${at + 1} / ${boxes.length}`;
  };
  addEventListener('keydown', (event) => {
    const step = STEPS[event.key];
    if (step !== undefined) {
      event.preventDefault();
      goTo(at + step);
    }
    if (event.key === 'Escape') {
      history.replaceState(null, '', location.pathname);
      location.reload();
    }
  });
  main.addEventListener('click', () => goTo(at + 1));
  goTo(0);
}

const STEPS: Record<string, number> = {
  ArrowRight: 1,
  PageDown: 1,
  ' ': 1,
  ArrowLeft: -1,
  PageUp: -1,
  Home: Number.NEGATIVE_INFINITY,
  End: Number.POSITIVE_INFINITY,
};

// ─── Which slides ───────────────────────────────────────────────────────────────────────────────

const THINGS = 'FIGURE PRE UL OL DIV TABLE'.split(' ');

function slidesIn(elements: HTMLElement[]): Slide[] {
  const slides: Slide[] = [];
  let heading: HTMLElement | undefined;
  let lead = '';
  let isShown = true; // the heading
  const add = (thing?: HTMLElement) => {
    slides.push({ heading, lead, thing });
    isShown = true;
    lead = '';
  };
  for (const element of elements) {
    if (/^H[1-3]$/.test(element.tagName)) {
      if (!isShown) add();
      heading = element;
      isShown = false;
      lead = '';
    } else if (element.tagName === 'P') {
      if (element.querySelector('img')) add(element);
      else lead = leadIn(element.textContent, lead === '' && !isShown);
    } else if (isThing(element)) add(element);
  }
  if (!isShown) add();
  return slides;
}

const isThing = (element: HTMLElement) =>
  THINGS.includes(element.tagName) && !element.classList.contains('wire');

/** Of the first paragraph its first sentence, of others the last one, which leads to what is
 *  below. */
function leadIn(text: string, isFirst: boolean): string {
  const sentences = text.match(/[^.:?!]+(?:[.:?!](?!\s|$)[^.:?!]*)*[.:?!]*/g) ?? [text];
  const chosen = isFirst && !text.trimEnd().endsWith(':') ? sentences[0]! : sentences.at(-1)!;
  return chosen.trim();
}

function boxFor({ heading, lead, thing }: Slide): HTMLElement {
  const box = document.createElement('section');
  box.className = 'slide';
  if (heading) box.append(withoutId(heading));
  if (lead !== '') {
    const words = document.createElement('p');
    words.textContent = lead;
    box.append(words);
  }
  if (thing) box.append(thing);
  else box.classList.add('title');
  return box;
}

function withoutId(element: HTMLElement): HTMLElement {
  const copy = element.cloneNode(true) as HTMLElement;
  copy.removeAttribute('id');
  return copy;
}

// ─── As large as fits ───────────────────────────────────────────────────────────────────────────

/** The slide, or the slides that its block is cut into. */
function fitting(box: HTMLElement, slide: Slide): HTMLElement[] {
  if (shrunk(box)) return [box];
  const halves = slide.thing ? cutInTwo(slide.thing) : undefined;
  if (!halves) return [box];
  const boxes = halves.map((thing) => boxFor({ ...slide, thing }));
  box.replaceWith(...boxes);
  return boxes.flatMap((each, n) => fitting(each, { ...slide, thing: halves[n]! }));
}

function shrunk(box: HTMLElement): boolean {
  box.classList.add('on'); // else it has no size
  let size = LARGEST + 1;
  do box.style.setProperty('--size', `${--size}px`);
  while (isTooLarge(box) && size > SMALLEST);
  const isFine = !isTooLarge(box);
  box.classList.remove('on');
  return isFine;
}

function isTooLarge(box: HTMLElement): boolean {
  return box.scrollHeight > box.clientHeight || box.scrollWidth > box.clientWidth;
}

/** Lines, rows or items: half of them each. A long line is folded by the style. */
function cutInTwo(thing: HTMLElement): [HTMLElement, HTMLElement] | undefined {
  const code = codeIn(thing);
  if (code) {
    const lines = code.innerHTML.split('\n'); // a tag ends with its line
    if (lines.length < 2) return undefined;
    const middle = cutAt(lines);
    const withLines = (some: string[]) => {
      const copy = thing.cloneNode(true) as HTMLElement;
      codeIn(copy)!.innerHTML = some.join('\n');
      return copy;
    };
    return [withLines(lines.slice(0, middle)), withLines(lines.slice(middle))];
  }
  const holder = thing.querySelector('tbody') ?? thing;
  const items = [...holder.children];
  if (!/^(TBODY|UL|OL)$/.test(holder.tagName) || items.length < 2) return undefined;
  const middle = Math.ceil(items.length / 2);
  const copies = [thing.cloneNode(true), thing.cloneNode(true)] as [HTMLElement, HTMLElement];
  for (const [n, copy] of copies.entries()) {
    const inside = [...(copy.querySelector('tbody') ?? copy).children];
    for (const [k, item] of inside.entries()) if (k < middle !== (n === 0)) item.remove();
  }
  if (copies[1] instanceof HTMLOListElement) copies[1].start = middle + 1;
  return copies;
}

const codeIn = (thing: HTMLElement) =>
  thing.tagName === 'PRE' ? thing.querySelector('code') : thing.querySelector('pre code');

/** Near the middle, best at an empty line. */
function cutAt(lines: string[]): number {
  const middle = Math.ceil(lines.length / 2);
  for (let away = 0; away < lines.length / 4; away++)
    for (const at of [middle - away, middle + away])
      if (lines[at - 1]?.trim() === '' && at < lines.length) return at;
  return middle;
}
