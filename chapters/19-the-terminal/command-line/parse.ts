// Flags of the program and of its commands.

import { parseArgs, type ParseArgsConfig } from 'node:util';
import { nearestHint } from '../../16-hands/nearest.ts';
import { usage } from '../exit.ts';

export const TEXT_FLAG = { type: 'string' } as const;
export const TEXTS_FLAG = { type: 'string', multiple: true, default: [] as string[] } as const;
export const FLAG = { type: 'boolean', default: false } as const;

export type Flags = NonNullable<ParseArgsConfig['options']>;
type Strict<T extends Flags> = { options: T; allowPositionals: true; strict: true };
type Values<T extends Flags> = ReturnType<typeof parseArgs<Strict<T>>>['values'];
type Camel<S> = S extends `${infer A}-${infer B}` ? `${A}${Capitalize<Camel<B> & string>}` : S;
type Parsed<T extends Flags> = {
  values: { [Name in keyof Values<T> as Camel<Name> & string]: Values<T>[Name] };
  positionals: string[];
};

/** Parses flags: --max-turns is maxTurns. A wrong one is answered with the nearest right one. */
export function parseFlags<T extends Flags>(args: string[], options: T): Parsed<T> {
  const camel = (name: string) => name.replace(/-(.)/g, (_, letter) => letter.toUpperCase());
  try {
    const { values, positionals } = parseArgs({ args, options, allowPositionals: true });
    const named = Object.entries(values).map(([name, value]) => [camel(name), value]);
    return { values: Object.fromEntries(named), positionals };
  } catch (error) {
    const { message } = error as Error;
    const unknown = /^Unknown option '([^']+)'/.exec(message)?.[1];
    if (unknown === undefined) throw usage(`${message.split('. ')[0]} (see --help)`);
    const known = Object.keys(options).map((name) => `--${name}`);
    const otherwise = 'if it is a text, or belongs to another command, put -- before it';
    const hint = nearestHint(unknown, known, otherwise);
    throw usage(`there is no option ${unknown}; ${hint} (see --help)`);
  }
}

/** The number that a flag brings, if it was given. */
export function numberFlag(
  flag: string,
  text: string | undefined,
  form: string,
  isGood: (number: number) => boolean,
): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d+(\.\d+)?$/.test(text) && isGood(Number(text))) return Number(text);
  throw usage(`${flag} is ${form}, not ${text}`);
}

/** The words before and behind the lone `--`. */
export function atDashes(args: string[]): { before: string[]; command: string[] } {
  const end = args.includes('--') ? args.indexOf('--') : args.length;
  return { before: args.slice(0, end), command: args.slice(end + 1) };
}

/** "Name: value" or NAME=VALUE, each as a key and a value. */
export function pairs(texts: string[], mark: string, form: string): Record<string, string> {
  const split = (text: string) => {
    const at = text.indexOf(mark);
    if (at < 1) throw usage(`${form}, not ${text}`);
    return [text.slice(0, at).trim(), text.slice(at + 1).trim()];
  };
  return Object.fromEntries(texts.map(split));
}

/** NAME=VALUE, or NAME alone: with the value that it has here. */
export function variables(texts: string[]): Record<string, string> {
  const withValue = (text: string) => {
    if (text.includes('=')) return text;
    const value = process.env[text];
    if (value === undefined) throw usage(`--env ${text}: it is not set here; write ${text}=VALUE`);
    return `${text}=${value}`;
  };
  return pairs(texts.map(withValue), '=', '--env is NAME or NAME=VALUE');
}

/** What is written like localhost:9/mcp may be meant as an address. */
export function schemeHint(word: string): string | undefined {
  const [, host] = /^([\w.-]+)(:\d{1,5})(\/|$)/.exec(word) ?? [];
  if (host === undefined) return undefined;
  const scheme = /^(localhost|127\.)/.test(host) ? 'http' : 'https';
  return `an address has its scheme in front: ${scheme}://${word}`;
}

/** A file, or a line for a shell, may be meant as a program to start. */
export function programHint(word: string): string | undefined {
  if (!/[\s/\\]|\.[cm]?js$/.test(word)) return undefined;
  const words = word.trim().split(/\s+/);
  const [command, ...args] = /\.[cm]?js$/.test(words[0]!) ? ['node', ...words] : words;
  const entry = JSON.stringify({ command, args });
  return `a program is started by ${entry}; on the command line its words come last, behind --`;
}

/** An address is never taken for `key=value`, whatever is in its query. */
export const isUrl = (word = '') => /^(https?|wss?):\/\//.test(word);
