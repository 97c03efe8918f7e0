// npm run bench context: how far off is what we say a part of a request takes? Held against two real
// tokenizers, which are installed on demand: GPT's (o200k_base), and the last one that was published
// for Claude. The corpus of 2,307 tools is not part of the repository: see tools.ts.

import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { apportioned, tokensOf } from '../../chapters/18-minds/seen.ts';
import type { SearchableTool } from '../../chapters/28-a-thousand-tools/tool-search.ts';
import { installed, root } from '../help/installed.ts';

const GOALS = { half: 0.06, nineOfTen: 0.12 }; // of all parts are less off than that

type Part = { of: string; text: string };
type Counter = (text: string) => number;
type Case = { what: string; parts: Part[]; measured: (part: Part) => boolean };

/** How many goals are missed. */
export function benchContext(): number {
  const file = process.env.TOOL_CORPUS ?? join(root, '../shared/data/tool-corpus.json');
  if (!existsSync(file)) {
    console.log(`\ncontext: there is no ${file}; TOOL_CORPUS may name another`);
    return 0;
  }
  const { tools } = JSON.parse(readFileSync(file, 'utf8')) as { tools: SearchableTool[] };
  let missed = 0;
  console.log(`\n${tools.length} tools, each as a part of a request; how far off its share is\n`);
  print(
    'request',
    'tokenizer',
    'estimate / real',
    'median',
    'nine of ten',
    'worst',
    'by characters / 4',
  );
  print(...Array.from({ length: 7 }, () => '---'));
  for (const [name, count] of Object.entries(tokenizers()))
    for (const each of casesOf(tools)) missed += benchCase(each, name, count);
  console.log('\nOther texts, alone: the estimate divided by what it is\n');
  print('text', 'tokenizer', 'estimate / real', 'characters / 4 / real');
  print(...Array.from({ length: 4 }, () => '---'));
  for (const [what, text] of Object.entries(oddTexts()))
    for (const [name, count] of Object.entries(tokenizers())) {
      const real = count(text);
      print(what, name, (tokensOf(text) / real).toFixed(2), (text.length / 4 / real).toFixed(2));
    }
  return missed;
}

/** Where words and signs tell least. */
function oddTexts(): Record<string, string> {
  const digests = Array.from({ length: 50 }, (_, n) => createHash('sha256').update(`${n}`));
  const bytes = digests.map((digest) => digest.digest());
  return {
    'ids, in hexadecimal': bytes.map((some) => some.toString('hex')).join('\n'),
    base64: Buffer.concat(bytes).toString('base64'),
    Chinese: '这个工具可以搜索文件并返回结果。今天天气很好，我们一起去公园散步吧。'.repeat(5),
    Russian: 'Этот инструмент ищет файлы и возвращает результат. Сегодня хорошая погода. '.repeat(
      5,
    ),
  };
}

const print = (...cells: string[]) => console.log(`| ${cells.join(' | ')} |`);

function tokenizers(): Record<string, Counter> {
  const folder = installed('gpt-tokenizer@4.0.0', '@anthropic-ai/tokenizer@0.0.4');
  const require = createRequire(join(folder, 'package.json'));
  const gpt = require('gpt-tokenizer/encoding/o200k_base');
  const claude = require('@anthropic-ai/tokenizer').getTokenizer();
  return {
    'GPT, o200k_base': (text) => gpt.countTokens(text),
    'Claude, 2023': (text) => claude.encode(text.normalize('NFKC'), 'all').length,
  };
}

/** The tools alone, by themselves and by server; and beside what a chat has besides: prose, and code. */
function casesOf(tools: SearchableTool[]): Case[] {
  const one = tools.map(({ label: name, description, inputSchema, server }) => {
    return { of: server, text: JSON.stringify({ name, description, input_schema: inputSchema }) };
  });
  const byServer = [...grouped(one)].map(([of, some]) => ({
    of,
    text: some.map(({ text }) => text).join(),
  }));
  const isTool = ({ of }: Part) => of !== 'messages';
  const beside = (ending: string) => [...byServer, ...messagesOf(ending)];
  return [
    { what: 'tool by tool', parts: one, measured: isTool },
    { what: 'tools of a server', parts: byServer, measured: isTool },
    { what: 'the same, beside the pages of this book', parts: beside('.md'), measured: isTool },
    { what: 'the same, beside its code', parts: beside('.ts'), measured: isTool },
  ];
}

function grouped(parts: Part[]): Map<string, Part[]> {
  const groups = new Map<string, Part[]>();
  for (const part of parts) groups.set(part.of, [...(groups.get(part.of) ?? []), part]);
  return groups;
}

/** Files of this book, as messages. */
function messagesOf(ending: string): Part[] {
  const folder = join(root, 'chapters');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  const some = files.filter((file) => file.endsWith(ending)).sort();
  return some.map((file) => ({
    of: 'messages',
    text: JSON.stringify({ role: 'user', content: readFileSync(join(folder, file), 'utf8') }),
  }));
}

function benchCase({ what, parts, measured }: Case, name: string, count: Counter): number {
  const real = parts.map(({ text }) => count(text));
  const total = sum(real);
  const off = (sizes: number[]) => {
    const shares = apportioned(sizes, total);
    const errors = parts.map((_, n) => Math.abs(shares[n]! - real[n]!) / real[n]!);
    return errors.filter((_, n) => measured(parts[n]!)).sort((a, b) => a - b);
  };
  const sizes = parts.map(({ text }) => tokensOf(JSON.parse(`[${text}]`)));
  const errors = off(sizes);
  const simple = off(parts.map(({ text }) => text.length / 4));
  const half = at(errors, 0.5);
  const isMet = half <= GOALS.half && at(errors, 0.9) <= GOALS.nineOfTen;
  const ratio = (sum(sizes) / total).toFixed(2);
  const [nine, worst, byCharacters] = [at(errors, 0.9), at(errors, 1), at(simple, 0.5)].map(
    percent,
  );
  print(what, name, ratio, `${isMet ? '✓' : '✗'} ${percent(half)}`, nine!, worst!, byCharacters!);
  return isMet ? 0 : 1;
}

const sum = (numbers: number[]) => numbers.reduce((all, each) => all + each, 0);
const at = (sorted: number[], share: number) => sorted[Math.floor((sorted.length - 1) * share)]!;
const percent = (share: number) => `${(share * 100).toFixed(1)} %`;
