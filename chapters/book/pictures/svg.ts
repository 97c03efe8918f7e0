// svg.ts: the few shapes that the pictures of the book are made of. A picture follows the reader's light or dark scheme by
// itself, has no script, and its text is text.

export type Shape = string;
type At = { x: number; y: number };
type Tone = 'plain' | 'ours' | 'theirs' | 'good' | 'bad' | 'quiet';

const FONT = 'font-family="system-ui, sans-serif"';
const STYLE = `
  .plain { fill: #f6f8fa; stroke: #57606a; } .ours { fill: #ddf4ff; stroke: #0969da; }
  .theirs { fill: #fff8c5; stroke: #9a6700; } .good { fill: #dafbe1; stroke: #1a7f37; }
  .bad { fill: #ffebe9; stroke: #cf222e; } .quiet { fill: none; stroke: #8c959f; }
  text { fill: #1f2328; } .small { fill: #57606a; } .line { stroke: #1f2328; fill: none; }
  .tip { fill: #1f2328; }
  @media (prefers-color-scheme: dark) {
    .plain { fill: #161b22; stroke: #8b949e; } .ours { fill: #0c2d6b; stroke: #58a6ff; }
    .theirs { fill: #3b2300; stroke: #d29922; } .good { fill: #033a16; stroke: #3fb950; }
    .bad { fill: #490202; stroke: #f85149; } .quiet { fill: none; stroke: #6e7681; }
    text { fill: #e6edf3; } .small { fill: #9198a1; } .line { stroke: #e6edf3; }
    .tip { fill: #e6edf3; }
  }`;

const escaped = (text: string) =>
  text.replace(/[&<>]/g, (mark) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;' })[mark]!);

export function picture(width: number, height: number, title: string, shapes: Shape[]): string {
  const tip =
    '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" ' +
    'orient="auto-start-reverse"><path class="tip" d="M0 0 L8 4 L0 8 z"/></marker>';
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" ${FONT} role="img">`,
    `<title>${escaped(title)}</title>`,
    `<style>${STYLE}\n</style>`,
    `<defs>${tip}</defs>`,
    ...shapes,
    '</svg>\n',
  ].join('\n');
}

export function text(
  { x, y }: At,
  words: string,
  { size = 14, anchor = 'middle', weight = 400, isSmall = false } = {},
): Shape {
  const look = isSmall ? ' class="small"' : '';
  return (
    `<text x="${x}" y="${y}" font-size="${size}" font-weight="${weight}" ` +
    `text-anchor="${anchor}"${look}>${escaped(words)}</text>`
  );
}

export const label = (at: At, words: string, anchor = 'middle') =>
  text(at, words, { size: 12, anchor, isSmall: true });

/** A box with lines of text in its middle. */
export function box(
  { x, y }: At,
  width: number,
  height: number,
  lines: string[],
  tone: Tone = 'plain',
): Shape {
  const first = y + height / 2 + 5 - (lines.length - 1) * 9;
  const words = lines.map((line, at) => {
    const place = { x: x + width / 2, y: first + at * 18 };
    return at === 0 ? text(place, line, { weight: 600 }) : label(place, line);
  });
  const shape = `<rect class="${tone}" x="${x}" y="${y}" width="${width}" height="${height}" rx="6" stroke-width="1.5"/>`;
  return [shape, ...words].join('\n');
}

export function arrow(from: At, to: At, isDashed = false): Shape {
  const dashes = isDashed ? ' stroke-dasharray="5 4"' : '';
  return (
    `<path class="line" d="M${from.x} ${from.y} L${to.x} ${to.y}" stroke-width="1.5" ` +
    `marker-end="url(#tip)"${dashes}/>`
  );
}
