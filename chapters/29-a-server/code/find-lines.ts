// find-lines.ts: the lines of many texts that match a pattern, as work for a thread. The texts are
// in memory that both threads see.

type LineSearch = {
  source: string;
  flags: string;
  literals: string[]; // what every line that matches has in it
  most: number;
};
/** In which of the texts, counted from 0, and where in it, counted from 1. */
type LineHit = { text: number; line_number: number; column: number; line: string };

const MAX_LINE = 500; // characters of one that is shown

/** Made of letters, \w, \d, \b, .* and such: it matches a line of UTF-8 if and only if it matches
 *  its bytes, so that no text has to be decoded to look for it. Each character can be read in one
 *  way only: when the ? of .*? could be two things, forty of them took years. */
const PLAIN =
  /^(?:\\[wdb.()[\]{}$^*+?|\\/-]|\.[*+]|\[(?!\^)[\x20-\x5b\x5e-\x7e]*\]|[^\\.[\x7f-\uffff])*$/;

export function linesInTexts(texts: Uint8Array[], search: LineSearch): LineHit[] {
  const { source, flags } = search;
  const pattern = new RegExp(source, flags);
  // A text without a match has no line with one, unless the pattern looks around itself.
  const anywhere = /\(\?[=!<]/.test(source) ? /^/ : new RegExp(source, `${flags}m`);
  const encoding = PLAIN.test(source) ? 'latin1' : 'utf8'; // the first takes a third of the time
  const hits: LineHit[] = [];
  for (const [text, { buffer, length }] of texts.entries()) {
    const bytes = Buffer.from(buffer, 0, length);
    if (!search.literals.every((one) => bytes.includes(one))) continue; // to decode takes longer
    if (!anywhere.test(bytes.toString(encoding))) continue;
    const lines = bytes.toString().split(/\r?\n/);
    if (lines.at(-1) === '') lines.pop(); // behind the last line
    for (const [n, line] of lines.entries()) {
      const at = line.search(pattern);
      if (at === -1) continue;
      hits.push({ text, line_number: n + 1, column: at + 1, line: around(line, at) });
      if (hits.length === search.most) return hits;
    }
  }
  return hits;
}

/** A line of a minified file is a megabyte: only what is around the match is shown. */
function around(line: string, at: number) {
  if (line.length <= MAX_LINE) return line;
  const from = Math.max(0, Math.min(at - 100, line.length - MAX_LINE));
  const shown = Buffer.from(line.slice(from, from + MAX_LINE)).toString(); // no half characters
  return `${from > 0 ? '…' : ''}${shown}… (${line.length} characters)`;
}
