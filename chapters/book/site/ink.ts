// ink.ts: what all diagrams are drawn with. A text's width is estimated, so no browser is needed;
// colours are those of the page, by the names of classes.

export type Point = { x: number; y: number };

const HTML: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
export const escapeHtml = (text: string) => text.replace(/[&<>"]/g, (char) => HTML[char]!);

export const LINE = 17; // pixels from one line of text to the next, at 13px

const NARROW = /[ilj.,:;'|!()[\]{} tfrI]/;
const WIDE = /[mwMW@%—→←…_]/;
const CJK = /[\u2e80-\u9fff\uff00-\uffef]/;

/** In pixels at 13px, a little more than it is. A Chinese character is as wide as it is high. */
export function widthOf(text: string): number {
  let sum = 0;
  for (const char of text) {
    if (CJK.test(char)) sum += 13.5;
    else if (NARROW.test(char)) sum += 4.8;
    else sum += WIDE.test(char) ? 12 : 7.8;
  }
  return sum;
}

/** In lines of at most that width, if its words are not wider. */
export function wrapped(text: string, most: number): string[] {
  const lines = [''];
  for (const word of text.split(/(?<= )|(?<=[\u2e80-\u9fff\uff00-\uffef])/)) {
    const longer = lines.at(-1)! + word;
    if (lines.at(-1) !== '' && widthOf(longer.trimEnd()) > most) lines.push(word);
    else lines[lines.length - 1] = longer;
  }
  return lines.map((line) => line.trim());
}

export const widest = (lines: string[]) => Math.max(0, ...lines.map(widthOf));

/** Lines of text around a point. */
export function textAt({ x, y }: Point, lines: string[], name = ''): string {
  const top = y - ((lines.length - 1) * LINE) / 2 + 4.5;
  const spans = lines.map(
    (line, n) => `<tspan x="${round(x)}" y="${round(top + n * LINE)}">${escapeHtml(line)}</tspan>`,
  );
  const kind = name && ` class="${name}"`;
  return `<text${kind} text-anchor="middle">${spans.join('')}</text>`;
}

/** The head of an arrow that ends here and comes from there. */
export function headAt(tip: Point, from: Point): string {
  const angle = Math.atan2(tip.y - from.y, tip.x - from.x);
  const corner = (turn: number) => {
    const x = tip.x - 9 * Math.cos(angle + turn);
    const y = tip.y - 9 * Math.sin(angle + turn);
    return `${round(x)} ${round(y)}`;
  };
  const start = `M${round(tip.x)} ${round(tip.y)}`;
  return `<path class="head" d="${start}L${corner(0.45)}L${corner(-0.45)}z"/>`;
}

export const round = (n: number) => Math.round(n * 10) / 10;

/** A whole picture. `spoken` is what it says, for readers who hear the page. */
export function svg(width: number, height: number, spoken: string, shapes: string[]): string {
  const [w, h] = [Math.ceil(width), Math.ceil(height)];
  const label = escapeHtml(spoken);
  const size = `viewBox="0 0 ${w} ${h}" width="${w}" height="${h}"`;
  return `<svg class="drawn" ${size} role="img" aria-label="${label}">${shapes.join('')}</svg>`;
}
