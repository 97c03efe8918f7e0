// tools.ts: the six built-in tools, as rows of the agent's table.

import type { Tool, ToolContext, ToolOutput } from '../../agent.ts';
import { textOf, type Json } from '../../mcp.ts';
import {
  carryOut,
  plannedChange,
  edited,
  fingerprintOf,
  planEdit,
  planWrite,
  readForModel,
  written,
  type FileAccess,
  type Plan,
} from './file-tools.ts';
import type { Location, Roots } from './paths.ts';
import { inWords } from './results.ts';
import { glob, grep } from './search.ts';
import { bash } from './shell.ts';
import type { Edits } from './undo.ts';

// ─── What the model is told ───────────────────────────────────────────────────────────────────────────────────

type Property = { type: 'string' | 'integer' | 'boolean'; description: string; minimum?: number };
type Schema = {
  type: 'object';
  properties: Record<string, Property>;
  required: string[];
  additionalProperties: false;
};

const text = (description: string): Property => ({ type: 'string', description });
const flag = (description: string): Property => ({ type: 'boolean', description });
const whole = (description: string, minimum = 1): Property => ({
  type: 'integer',
  description,
  minimum,
});

function define(
  name: string,
  description: string,
  required: string[],
  properties: Schema['properties'],
) {
  const inputSchema: Schema = { type: 'object', properties, required, additionalProperties: false };
  return { name, description, inputSchema };
}

const path = text('a file, relative to the working folder or absolute');
const ignored = flag('search what .gitignore names, too');
const place = text('where to search, by default the working folder');

const READ = define(
  'read',
  'Reads a text file or an image, at most 2,000 lines or 50 KB at once; says how to go on.',
  ['path'],
  { path, offset: whole('first line, from 1'), limit: whole('number of lines') },
);

const WRITE = define(
  'write',
  'Writes a whole file, with the folders it needs. A file that exists must have been ' +
    'read before. To change a part of one, use edit.',
  ['path', 'content'],
  { path, content: text('the whole content') },
);

const EDIT = define(
  'edit',
  'Replaces a text in a file that has been read before. The text must occur exactly once.',
  ['path', 'old', 'new'],
  {
    path,
    old: text('the exact text to replace, white space included'),
    new: text('what to put in its place'),
    all: flag('replace it wherever it occurs'),
  },
);

const GREP = define(
  'grep',
  'Searches files for a JavaScript regular expression, line by line: file:line:text. ' +
    'In a folder it skips .git, node_modules, what .gitignore names, binary files and files that may hold secrets.',
  ['pattern'],
  {
    pattern: text('regular expression'),
    path: place,
    glob: text('search only files like this: *.ts or src/**/*.{js,ts}'),
    ignoreCase: flag('upper and lower case are the same'),
    literal: flag('the pattern is plain text'),
    context: whole('lines to show around each match, at most 10', 0),
    limit: whole('number of matches to show, by default 100, at most 1,000'),
    ignored,
  },
);

const GLOB = define(
  'glob',
  'Finds files by a pattern like src/**/*.{ts,tsx}, the last changed first.',
  ['pattern'],
  {
    pattern: text('made of * ** ? [a-z] {a,b}, relative to path'),
    path: place,
    limit: whole('number of files to show, by default 100, at most 1,000'),
    ignored,
  },
);

const BASH = define(
  'bash',
  'Runs a command in bash, in the working folder, without input. Answers with the end of ' +
    'its output and the exit code. What it leaves in the background is ended with it.',
  ['command'],
  {
    command: text('the command'),
    timeout: whole('seconds, by default 120, at most 600'),
  },
);

// ─── The rows ─────────────────────────────────────────────────────────────────────────────────────────────────

export type HandsOptions = {
  roots: Roots;
  resultsFolder: string; // for output that is too long to show
  isHidden?: (real: string) => boolean; // files that a search through a folder must not show
  shellEnv?: string[]; // names of our variables that commands get besides the safe ones
  searchTimeoutMs?: number; // for grep and glob
  edits?: Edits; // remembers what changes replace
};

/** read, write, edit, grep, glob and bash. What the model has read is remembered as long as these rows live. */
export function hands(options: HandsOptions): Tool[] {
  const { roots, resultsFolder, isHidden = () => false, shellEnv } = options;
  const { searchTimeoutMs: timeoutMs = 10_000 } = options;
  const desk: FileAccess = { roots, seen: new Map(), edits: options.edits };
  const search = { roots, isHidden, timeoutMs };
  const shell = { roots, resultsFolder, env: shellEnv };
  return [
    fileRow(roots, READ, (location, args, { signal }) =>
      readForModel(location, args, desk, signal),
    ),
    changeRow(desk, WRITE, planWrite, written),
    changeRow(desk, EDIT, planEdit, edited),
    fileRow(roots, GREP, (location, args, { signal }) => grep(location, args, search, signal)),
    fileRow(roots, GLOB, (location, args, { signal }) => glob(location, args, search, signal)),
    {
      definition: BASH,
      readOnly: false,
      touches: ({ command = '' }) => ({ kind: 'shell', command: `${command}` }),
      run: careful(BASH, (args, context) => bash(args, shell, context)),
    },
  ];
}

type DefinedTool = ReturnType<typeof define>;
type Checked = any; // arguments that checkArguments has let pass
type ToolWork = (location: Location, args: Checked, context: ToolContext) => Promise<ToolOutput>;

function fileRow(roots: Roots, definition: DefinedTool, work: ToolWork): Tool {
  const paths = new JudgedPaths(roots);
  return {
    definition,
    readOnly: true,
    touches: (args) => ({ kind: 'read', path: paths.judge(args) }),
    run: careful(definition, (args, context, original) =>
      work(paths.locate(original), args, context),
    ),
  };
}

/** The gate judges a path, and a user may think for minutes about its question. By then a link can lead elsewhere. */
class JudgedPaths {
  private roots: Roots;
  private judged = new WeakMap<Json, string>(); // where it led, by the arguments of the call

  constructor(roots: Roots) {
    this.roots = roots;
  }

  judge(args: Json) {
    try {
      if (!this.judged.has(args)) this.judged.set(args, this.roots.locate(pathOf(args)).real);
    } catch {} // a path that cannot be one: the gate will find out too, and so will locate
    return pathOf(args);
  }

  locate(args: Json): Location {
    const location = this.roots.locate(pathOf(args));
    const { shown, real } = location;
    const before = this.judged.get(args) ?? real;
    if (before === real) return location;
    throw new Error(
      `${shown} led to ${before} when it was judged, and now it leads to ${real}; try again`,
    );
  }
}

const pathOf = (args: Json) => `${args.path ?? '.'}`;

type MakePlan = (location: Location, args: Checked, desk: FileAccess) => Promise<Plan>;
/** For the model, once it is done. */
type ChangeReport = (location: Location, plan: Plan, diff: string) => string;

/** A row that makes a plan, and carries out that very plan: what a person has agreed to, to the byte. */
function changeRow(
  desk: FileAccess,
  definition: DefinedTool,
  makePlan: MakePlan,
  answer: ChangeReport,
): Tool {
  const paths = new JudgedPaths(desk.roots);
  const agreed = new WeakMap<Json, string>(); // the fingerprint of the plan, by the arguments of the call
  return {
    definition,
    readOnly: false,
    touches: (args) => ({ kind: 'write', path: paths.judge(args) }),
    preview: async (args) => {
      const checked = checkArguments(args, definition.inputSchema);
      const plan = await makePlan(paths.locate(args), checked, desk);
      agreed.set(args, fingerprintOf(plan));
      return plannedChange(plan);
    },
    run: careful(definition, async (args, context, original) => {
      const location = paths.locate(original); // once: a second look might find another place
      const plan = await makePlan(location, args, desk);
      const shown = agreed.get(original);
      if (shown !== undefined && shown !== fingerprintOf(plan))
        throw new Error(
          `${location.shown} has changed while the user was asked about it; read it again first`,
        );
      context.signal.throwIfAborted();
      return carryOut(location, plan, desk, answer);
    }),
  };
}

/** A tool never throws: what goes wrong is an answer too, and the model may know what to do about it. */
function careful(
  { inputSchema }: DefinedTool,
  run: (args: Checked, context: ToolContext, original: Json) => Promise<ToolOutput>,
): Tool['run'] {
  return async (args, context) => {
    try {
      context.signal.throwIfAborted();
      return await run(checkArguments(args, inputSchema), context, args);
    } catch (error) {
      return inWords(context.signal.aborted ? 'stopped' : textOf(error), true);
    }
  };
}

/** The arguments, if they are what the schema wants. Models send null for what they leave out. What is unknown is
 *  refused: a model that sends `replace_all` must hear that it is called `all`. */
function checkArguments(args: Json, { properties, required }: Schema): Json {
  const names = Object.keys(properties)
    .map((name) => (required.includes(name) ? name : `${name}?`))
    .join(', ');
  const given = Object.entries(args).filter(([, value]) => value !== null && value !== undefined);
  for (const [name, value] of given) {
    if (!Object.hasOwn(properties, name))
      throw new Error(`there is no argument "${name}"; there are: ${names}`);
    const expected = whatIsExpected(value, properties[name]!);
    const shown = JSON.stringify(value).slice(0, 100);
    if (expected) throw new Error(`the argument "${name}" must be ${expected}, not ${shown}`);
  }
  const missing = required.find((name) => !given.some(([other]) => other === name));
  if (missing) throw new Error(`the argument "${missing}" is missing; the arguments are: ${names}`);
  return Object.fromEntries(given);
}

/** Nothing, if the value is right. */
function whatIsExpected(value: unknown, { type, minimum = 0 }: Property) {
  if (type === 'integer')
    return Number.isSafeInteger(value) && Number(value) >= minimum
      ? undefined
      : `a whole number, ${minimum} or more`;
  if (typeof value === type) return undefined;
  return type === 'boolean' ? 'true or false' : 'a string';
}
