// Which variables of yours the commands of `bash` get, besides the safe ones. You name them, with
// --env or under "shellEnv" in your settings. Their values come from your environment, so neither
// a file nor a command line has to hold one.

import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { isObject, readJsonFile } from '../../mcp.ts';
import { refused, usage } from './exit.ts';

const IS_WINDOWS = process.platform === 'win32';

/** The names, each once. */
export function shellEnvIn(options: string[]): string[] {
  options.forEach(mustBeSet);
  return [...new Set([...options, ...namesInSettings(homedir())])];
}

/** What was typed must work: a slip would be noticed only when a command fails. */
function mustBeSet(typed: string) {
  const [name = ''] = typed.split('=');
  const example = `${name || 'NAME'}=… mcp-by-hand --env ${name || 'NAME'}`;
  if (name !== typed || name === '')
    // the value itself may be a secret, so it is not repeated
    throw usage(`--env takes the name of a variable, and the value it has: write ${example}`);
  if (process.env[name] === undefined)
    throw usage(`--env ${name}: there is no such variable. Set it first: ${example}`);
}

/** What is written down for every day may be missing today: no agent of SSH, no virtual environment. */
function namesInSettings(home: string) {
  if (!isAbsolute(home)) return [];
  const { file, value: names = [] } = userSetting('shellEnv', home);
  const isName = (name: unknown) => typeof name === 'string' && /^[^=\0]+$/.test(name);
  if (Array.isArray(names) && names.every(isName)) return names;
  const form = 'a list of names of variables, such as ["SSH_AUTH_SOCK", "JAVA_HOME"]';
  throw refused(`${file}: "shellEnv" is not ${form}`);
}

/** A project's file has no say in these. */
export function userSetting(name: string, home = homedir()): { file: string; value?: unknown } {
  const file = join(home, '.claude', 'settings.json');
  try {
    const settings: unknown = isAbsolute(home) && readJsonFile(file);
    return { file, value: isObject(settings) ? settings[name] : undefined };
  } catch {
    return { file }; // a broken file is reported where its rules are read
  }
}

/** Commands are the model's, and what they print goes to the model. A key of its service has no
 *  business there, even if it was named by mistake. */
export function refuseKeys(names: string[], keys: string[]): void {
  const spelled = (name: string) => (IS_WINDOWS ? name.toUpperCase() : name);
  const hidden = new Set(keys.map(spelled));
  const key = names.find((name) => hidden.has(spelled(name)));
  const what = 'is the key of a model, which no command gets (--env, "shellEnv")';
  const how = 'If a program of yours needs one, give it its own, under another name';
  if (key) throw refused(`${key} ${what}. ${how}`);
}
