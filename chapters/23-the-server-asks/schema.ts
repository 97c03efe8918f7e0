// schema.ts: a value is judged by a stranger's schema (keywords.ts), within limits. Small work is done
// at once; all else in a thread that has so long (chapter 16). What cannot be judged within its
// limits is not judged.

import { createContext, Script } from 'node:vm';
import { asObject, isObject } from '../../mcp.ts';
import { aside } from '../16-hands/aside.ts';
import { problemsBy, type FindProblems, type SchemaProblem } from './keywords.ts';

const MAX_SMALL = 10_000; // names, values and characters of a schema, or of what is judged by it
const CHECK_MS = 5000; // in a thread

/** How long a check may take, and one text with one pattern: ^(a+)+$ takes years for some. */
type CheckLimits = { endsAt: number; patternMs: number };
const IN_THREAD: CheckLimits = { endsAt: Infinity, patternMs: 100 };
const atOnceLimits = (): CheckLimits => ({ endsAt: performance.now() + 20, patternMs: 5 });
let limits = IN_THREAD; // of the check at work: nothing here waits, so there is one

class OutOfTime extends Error {}

function mustBeInTime() {
  if (performance.now() > limits.endsAt) throw new OutOfTime();
}

/** Throws TooSlow. */
export const problemsFound: FindProblems = async (schema, value, signal) => {
  const job = { module: '23-the-server-asks/schema', name: 'problemsWith', timeoutMs: CHECK_MS };
  const found = atOnce(() => problemsWith(schema, value), schema, value);
  return found ?? aside<typeof problemsWith>({ ...job, signal }, schema, value);
};

/** Undefined if it is too much, or takes too long, to be done here. */
export function atOnce<T>(check: () => T, ...given: unknown[]): T | undefined {
  if (!given.every(isSmall)) return undefined;
  limits = atOnceLimits();
  try {
    return check();
  } catch (error) {
    if (error instanceof OutOfTime) return undefined;
    throw error;
  } finally {
    limits = IN_THREAD;
  }
}

const smallOnes = new WeakSet<object>(); // a schema stays, and is used for every call

function isSmall(value: unknown) {
  if (isObject(value) && smallOnes.has(value)) return true;
  const waiting = [value];
  for (let count = 0; waiting.length > 0; count++) {
    const next = waiting.pop();
    if (Array.isArray(next) && next.length > MAX_SMALL) return false; // without a look at each
    const parts = typeof next === 'object' && next !== null ? Object.entries(next) : [];
    count += typeof next === 'string' ? next.length : parts.length;
    if (count > MAX_SMALL) return false;
    for (const [name, part] of parts) waiting.push(part, Array.isArray(next) ? 0 : name);
  }
  if (isObject(value)) smallOnes.add(value);
  return true;
}

/** The same here, however long it takes. */
export function problemsWith(schema: unknown, value: unknown, root = schema): SchemaProblem[] {
  return problemsBy({ mustBeInTime, matches }, schema, value, root);
}

const context = createContext({ expression: /x/, text: '' });
const test = new Script('expression.test(text)');

/** Undefined where that cannot be said: the pattern is wrong, or takes too long. Node cannot stop a
 *  regular expression that has begun, but it can stop a script. */
function matches(source: string, text: string): boolean | undefined {
  mustBeInTime();
  try {
    context.expression = new RegExp(source, 'u');
    context.text = text;
    return test.runInContext(context, { timeout: limits.patternMs }) as boolean;
  } catch (error) {
    const isSlow = asObject(error).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT';
    if (isSlow && limits !== IN_THREAD) throw new OutOfTime();
    return undefined;
  }
}
