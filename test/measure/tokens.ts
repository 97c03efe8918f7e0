// tokens.ts: how much there is to read. Lines can be made long or short; tokens cannot.

import type { Source } from './sources.ts';

export type Weight = { lines: number; code: number; tokens: number; wide: number };

const WIDTH = 100; // columns

const TOKEN =
  /[\p{L}_$][\p{L}\d_$]*|\d[\w.]*|=>|\?\?=?|\?\.|\.\.\.|[=!<>]==?|&&|\|\||[-+*/]=|\+\+|--|[^\s]/gu;

const REGEX_MAY_FOLLOW = /(?<=[(,=:[!&|?{};]\s*|return\s+|^\s*)/;
const REGEX = /\/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/[dgimsuvy]*/;
const STRING = /"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`/;
const COMMENT = /\/\*[^]*?\*\/|(?:^|\s)\/\/.*$/;
const LITERAL_OR_COMMENT = new RegExp(
  `(${REGEX_MAY_FOLLOW.source}${REGEX.source}|${STRING.source})|${COMMENT.source}`,
  'gm',
);

/** Without comments, each literal as one sign, every line where it was. */
export function bareCode(text: string): string {
  return text.replace(LITERAL_OR_COMMENT, (found, literal?: string) => {
    const lineFeeds = '\n'.repeat(found.split('\n').length - 1);
    if (literal) return `"${lineFeeds}`;
    return lineFeeds;
  });
}

export function weigh({ text }: Source): Weight {
  const lines = text.split('\n');
  const code = bareCode(text)
    .split('\n')
    .filter((line) => line.trim());
  return {
    lines: lines.length - 1,
    code: code.length,
    tokens: code.reduce((sum, line) => sum + (line.match(TOKEN)?.length ?? 0), 0),
    wide: lines.filter((line) => line.length > WIDTH).length,
  };
}

export function weighAll(sources: Source[]): Weight {
  const all: Weight = { lines: 0, code: 0, tokens: 0, wide: 0 };
  for (const source of sources) {
    const weight = weigh(source);
    for (const key of Object.keys(all) as (keyof Weight)[]) all[key] += weight[key];
  }
  return all;
}
