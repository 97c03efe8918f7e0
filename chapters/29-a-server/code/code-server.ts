// code-server.ts: six tools and two resources over a folder of code. Everything only
// reads, and only inside of the folder.

import { lstatSync } from 'node:fs';
import { readdir, readFile as readWhole } from 'node:fs/promises';
import { basename, dirname, join, relative, sep } from 'node:path';
import { textOf, VERSION, type Json } from '../../../mcp.ts';
import { GitIgnore } from '../../16-hands/gitignore.ts';
import { openFile, type Location, type Roots } from '../../16-hands/paths.ts';
import type { ServerCall } from '../server-call.ts';
import { codeChunks } from '../chunks.ts';
import { CodeIndex } from './code-index.ts';
import type { Embeddings } from '../embeddings.ts';
import type { ServerResource, ServerTool } from '../protocol/server-rows.ts';
import { findPlain } from '../plain-search.ts';
import { McpServer, type ServerOptions } from '../server.ts';
import { CodeTree } from '../tree.ts';

const MAX_FILE = 10 * 2 ** 20;
const MAX_RESULTS = 1000;
const MAX_FILES = 100; // of one chunk_files
const MAX_LINES = 2000;
const MAX_ENTRIES = 10_000;

export type CodeOptions = {
  roots: Roots;
  isHidden?: (real: string) => boolean; // files that a rule forbids to read
  embeddings?: Embeddings;
  tools?: readonly string[]; // only these; and then no resources
  searchTimeoutMs?: number; // for a pattern
  server?: Partial<ServerOptions>;
};

/** One folder, its texts and its index: what all tools share. */
class CodeFolder {
  readonly roots: Roots;
  readonly tree: CodeTree;
  readonly index: CodeIndex;
  readonly searchTimeoutMs?: number;
  private isHidden: (real: string) => boolean;

  constructor(options: CodeOptions, onChange?: () => void) {
    const { roots, isHidden = () => false, embeddings, searchTimeoutMs } = options;
    this.roots = roots;
    this.isHidden = isHidden;
    this.tree = new CodeTree({ roots, isHidden, onChange });
    this.searchTimeoutMs = searchTimeoutMs;
    this.index = new CodeIndex(this.tree, { embeddings });
  }

  /** Where a path leads, if a client may see it. */
  locate(path: string): Location {
    const location = this.roots.locate(path);
    const { shown, real, inside, secret } = location;
    if (!inside) throw new Error(`${shown} is outside of the folder; give a path inside of it`);
    if (secret) throw new Error(`${shown} is not shown: ${secret}`);
    if (this.isHidden(real)) throw new Error(`${shown} is not shown: a rule forbids to read it`);
    return location;
  }

  /** The rules of .gitignore for what is in a folder. What is ignored is not searched, so it is not
   *  listed or read either: it is where keys and the settings of one machine are kept. */
  private async rulesIn(folder: string, shown: string) {
    const isIn = (root: string) => `${folder}${sep}`.startsWith(`${root}${sep}`);
    const root = this.roots.folders.find(isIn);
    if (!root) return undefined;
    const rules = await GitIgnore.from(root, this.roots.topOf(root));
    let at = root;
    for (const name of relative(root, folder)
      .split(sep)
      .filter((each) => each !== '')) {
      at = join(at, name);
      if (rules.leavesOut(at, true)) throw ignored(shown);
      await rules.enter(at);
    }
    return rules;
  }

  async list(path: string): Promise<Json[]> {
    const { real, shown } = this.locate(path);
    const rules = await this.rulesIn(real, shown);
    const found = await readdir(real, { withFileTypes: true }).catch((error) => {
      const why = error.code === 'ENOTDIR' ? 'it is a file' : error.code;
      throw new Error(`${shown} cannot be listed: ${why}`);
    });
    const kept = found.filter(
      (entry) => !rules?.leavesOut(join(real, entry.name), entry.isDirectory()),
    );
    const names = kept.map(({ name }) => name).sort();
    return names.slice(0, MAX_ENTRIES + 1).map((name) => entryOf(join(real, name)));
  }

  async read(path: string) {
    const location = this.locate(path);
    const { real, shown } = location;
    const rules = await this.rulesIn(dirname(real), shown);
    if (rules?.leavesOut(real, false)) throw ignored(shown);
    const file = await openFile(location);
    try {
      const { size } = await file.stat();
      if (size > MAX_FILE) throw new Error(`${path} has more than ${MAX_FILE} bytes`);
      const bytes = await file.readFile();
      if (bytes.includes(0)) throw new Error(`${path} is not text (it has NUL bytes)`);
      return bytes.toString();
    } finally {
      await file.close();
    }
  }
}

const ignored = (shown: string) => new Error(`${shown} is not shown: .gitignore leaves it out`);

/** The server, for any transport. */
export function codeServer(options: CodeOptions): { server: McpServer; folder: CodeFolder } {
  const folder = new CodeFolder(options, () => server.updated('codebase://files'));
  const all = [
    searchCode(folder),
    searchByEmbedding(folder),
    listDirectory(folder),
    readFile(folder),
    chunkFile(folder),
    chunkFiles(folder),
  ];
  const { tools: names } = options;
  const offers = names
    ? { tools: all.filter(({ name }) => names.includes(name)) }
    : { tools: all.map(withApp), resources: [help(), filesOf(folder), app()], extensions: UI };
  const server: McpServer = new McpServer({
    name: 'code',
    version: VERSION,
    instructions: 'search_by_embedding finds code by what it does, search_code by what is written.',
    ...offers,
    ...options.server,
  });
  return { server, folder };
}

// ─── Schemas ───────────────────────────────────────────────────────────────────────────────────

const READS = { readOnlyHint: true, openWorldHint: false };
const text = (description: string) => ({ type: 'string', description });
const flag = (description: string) => ({ type: 'boolean', description });
const count = (description: string, maximum?: number) => {
  return { type: 'integer', description, minimum: 1, ...(maximum && { maximum }) };
};
const STRING = { type: 'string' };

/** Clients have thrown away whole lists for a root that is not an object, or has a $schema. */
function object(properties: Json, required = Object.keys(properties)): Json {
  return { type: 'object', properties, required, additionalProperties: false };
}

// ─── Tools ─────────────────────────────────────────────────────────────────────────────────────

const searchCode = (folder: CodeFolder): ServerTool => ({
  name: 'search_code',
  title: 'Search for text',
  description:
    'Finds the lines that contain a text, or match a regular expression. It skips what ' +
    '.gitignore names, binary files and files that may hold secrets.',
  inputSchema: object(
    {
      query: text('the text'),
      regex: flag('the query is a JavaScript regular expression'),
      ignore_case: flag('upper and lower case are the same'),
      glob: text('only files like this: *.ts or src/**/*.{js,ts}'),
      max_results: count('by default 50', MAX_RESULTS),
    },
    ['query'],
  ),
  annotations: READS,
  run: async ({ query, max_results = 50, regex, ignore_case, glob }, { signal }) => {
    const { tree, searchTimeoutMs } = folder;
    const wanted = {
      query: `${query}`,
      max_results: Number(max_results),
      regex: regex === true,
      ignore_case: ignore_case === true,
      ...(glob !== undefined && { glob: `${glob}` }),
    };
    const { matches, isCut } = await findPlain(tree, wanted, signal, searchTimeoutMs);
    return { structuredContent: { results: matches, is_cut: isCut, notes: tree.notes } };
  },
});

const searchByEmbedding = (folder: CodeFolder): ServerTool => ({
  name: 'search_by_embedding',
  title: 'Search by meaning',
  description:
    'Finds functions and other pieces of code by what they do, in your own words: ' +
    '"where are sessions closed". The best first, with file and lines.',
  inputSchema: object(
    {
      query: text('what you look for, in words'),
      max_results: count('by default 10', 100),
    },
    ['query'],
  ),
  annotations: READS,
  run: async ({ query, max_results = 10 }, call) => {
    const progress = (done: number, all: number) => call.progress(done, all, 'indexing');
    await folder.index.update(call.signal, progress);
    const found = await folder.index.search(`${query}`, Number(max_results), call.signal);
    return { structuredContent: found };
  },
});

const listDirectory = (folder: CodeFolder): ServerTool => ({
  name: 'list_directory',
  title: 'List a folder',
  description: 'Names what is in a folder: files with their sizes, folders, links.',
  inputSchema: object({ path: text('a folder, by default the top') }, []),
  annotations: READS,
  run: async ({ path = '.' }) => {
    const found = await folder.list(`${path}`);
    const entries = found.slice(0, MAX_ENTRIES);
    return { structuredContent: { entries, is_cut: found.length > MAX_ENTRIES } };
  },
});

function entryOf(path: string): Json {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  const name = basename(path);
  if (stats?.isDirectory()) return { name, type: 'directory' };
  if (stats?.isFile()) return { name, type: 'file', size: stats.size };
  return { name, type: stats?.isSymbolicLink() ? 'link' : 'other' };
}

const readFile = (folder: CodeFolder): ServerTool => ({
  name: 'read_file',
  title: 'Read a file',
  description: `Reads a text file, at most ${MAX_LINES} lines at once.`,
  inputSchema: object(
    {
      file_path: text('relative to the folder'),
      offset: count('first line, from 1'),
      limit: count('number of lines', MAX_LINES),
    },
    ['file_path'],
  ),
  annotations: READS,
  run: async ({ file_path, offset = 1, limit = MAX_LINES }) => {
    const whole = await folder.read(`${file_path}`);
    const lines = whole.split('\n');
    if (lines.at(-1) === '') lines.pop();
    const first = Number(offset) - 1;
    const page = lines.slice(first, first + Number(limit));
    const last = first + page.length;
    if (first > 0 && first >= lines.length)
      throw new Error(`${file_path} has only ${lines.length} lines`);
    const more = last < lines.length ? `\n[lines ${first + 1} to ${last} of ${lines.length}]` : '';
    return page.join('\n') + more;
  },
});

const chunkFile = (folder: CodeFolder): ServerTool => ({
  name: 'chunk_file',
  title: 'Cut a file into chunks',
  description: 'Cuts a file at its functions and classes. Every line is in exactly one chunk.',
  inputSchema: object({ file_path: text('relative to the folder') }),
  annotations: READS,
  run: async ({ file_path }) => ({ structuredContent: await chunked(folder, `${file_path}`) }),
});

const chunkFiles = (folder: CodeFolder): ServerTool => ({
  name: 'chunk_files',
  title: 'Cut files into chunks',
  description:
    'The same for several files. One that cannot be read has an error, the others chunks.',
  inputSchema: object({
    file_paths: { type: 'array', items: STRING, minItems: 1, maxItems: MAX_FILES },
  }),
  annotations: READS,
  run: async ({ file_paths }, { signal }) => {
    const files: Json[] = [];
    for (const file_path of file_paths as string[]) {
      signal.throwIfAborted();
      const file = await chunked(folder, file_path).catch((error): Json => {
        return { file_path, error: textOf(error) };
      });
      files.push(file);
    }
    return { structuredContent: { files } };
  },
});

async function chunked(folder: CodeFolder, file_path: string): Promise<Json> {
  return { file_path, chunks: codeChunks(file_path, await folder.read(file_path)) };
}

// ─── The app ───────────────────────────────────────────────────────────────────────────────────

const UI = { 'io.modelcontextprotocol/ui': {} };
const APP = 'ui://code/results';
const SHOWN_IN_APP = ['search_code', 'search_by_embedding'];

/** A host that can shows the results in it. Others have the text, and the model has only that. */
function withApp(tool: ServerTool) {
  if (!SHOWN_IN_APP.includes(tool.name)) return tool;
  const older = { 'ui/resourceUri': APP }; // as it was called at first
  return { ...tool, _meta: { ui: { resourceUri: APP }, ...older } };
}

const app = (): ServerResource => ({
  uri: APP,
  name: 'What was found',
  mimeType: 'text/html;profile=mcp-app',
  read: () => readWhole(new URL('../results.html', import.meta.url), 'utf8'),
});

// ─── Resources ─────────────────────────────────────────────────────────────────────────────────

const HELP = `search_code            a text or, with regex, a pattern: file, line, column
search_by_embedding    a question in words: functions that answer it, the best first
list_directory         what is in a folder
read_file              a file, or some of its lines
chunk_file, chunk_files    a file cut at its functions and classes
codebase://files       all files, as JSON`;

const help = (): ServerResource => ({
  uri: 'codebase://search',
  name: 'How to search this code',
  mimeType: 'text/plain',
  read: () => HELP,
});

const filesOf = (folder: CodeFolder): ServerResource => ({
  uri: 'codebase://files',
  name: 'All files of this folder',
  mimeType: 'application/json',
  read: async ({ signal }: ServerCall) => {
    await folder.tree.refresh(signal);
    const files = folder.tree.list().map(({ path, bytes }) => ({ path, size: bytes.length }));
    return JSON.stringify({ files, notes: folder.tree.notes });
  },
});
