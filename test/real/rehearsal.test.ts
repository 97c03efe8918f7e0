// The rehearsal model before the tools of four real servers, the demo server and the built-in ones, all at once.
// What it does not read, it asks about.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import type { ToolDefinition } from '../../agent.ts';
import { Roots } from '../../chapters/16-hands/paths.ts';
import { hands } from '../../chapters/16-hands/tools.ts';
import { Rehearsal } from '../../chapters/18-minds/rehearsal.ts';
import { cleanUp, folder, goodServer, root } from '../help/basics.ts';
import { manage } from '../help/manager.ts';
import { server } from '../help/third-party.ts';

afterEach(cleanUp);

const entities = [{ name: 'Ada', entityType: 'person', observations: ['writes programs'] }];
const relations = [{ from: 'Ada', to: 'Grace', relationType: 'inspires' }];
const observations = [{ entityName: 'Ada', contents: ['likes horses'] }];
const edits = [{ oldText: 'a', newText: 'b' }];
const thought = { thought: 'First.', nextThoughtNeeded: true, thoughtNumber: 1, totalThoughts: 2 };

type Row = [prompt: string, ...calls: [tool: string, args: object][]];

const ROWS: Row[] = [
  ['echo hello', ['everything__echo', { message: 'hello' }]],
  ['echo "hello world"', ['everything__echo', { message: 'hello world' }]],
  ['what is the sum of 2 and 40?', ['everything__get-sum', { a: 2, b: 40 }]],
  ['sum 3 and 4', ['everything__get-sum', { a: 3, b: 4 }]],
  ['get-sum a=2 b=40', ['everything__get-sum', { a: 2, b: 40 }]],
  ['add 2 and 40', ['demo__add', { a: 2, b: 40 }]],
  ['greet Ada', ['demo__greet', { name: 'Ada' }]],
  ['greet Grace then echo bye', ['demo__greet', { name: 'Grace' }]],
  ['get the tiny image', ['everything__get-tiny-image', {}]],
  ['show me the tiny image', ['everything__get-tiny-image', {}]],
  ['get env', ['everything__get-env', {}]],
  [
    'get structured content for Chicago',
    ['everything__get-structured-content', { location: 'Chicago' }],
  ],
  [
    'get structured content for "New York"',
    ['everything__get-structured-content', { location: 'New York' }],
  ],
  ['get annotated message: error', ['everything__get-annotated-message', { messageType: 'error' }]],
  ['get resource links count=5', ['everything__get-resource-links', { count: 5 }]],
  ['toggle simulated logging', ['everything__toggle-simulated-logging', {}]],
  ['toggle logging', ['everything__toggle-simulated-logging', {}]],
  ['toggle the subscriber updates', ['everything__toggle-subscriber-updates', {}]],
  [
    'trigger a long running operation with duration=2 and steps=4',
    ['everything__trigger-long-running-operation', { duration: 2, steps: 4 }],
  ],
  [
    'simulate a research query about "tidal power"',
    ['everything__simulate-research-query', { topic: 'tidal power' }],
  ],
  [
    'get a resource reference with resourceType=Blob and resourceId=2',
    ['everything__get-resource-reference', { resourceType: 'Blob', resourceId: 2 }],
  ],
  [
    'gzip-file-as-resource name=readme.gz',
    ['everything__gzip-file-as-resource', { name: 'readme.gz' }],
  ],
  ['read the text file notes.txt', ['files__read_text_file', { path: 'notes.txt' }]],
  ['read_file notes.txt head=5', ['files__read_file', { path: 'notes.txt', head: 5 }]],
  ['read the media file logo.png', ['files__read_media_file', { path: 'logo.png' }]],
  [
    'read multiple files paths=["a.txt","b.txt"]',
    ['files__read_multiple_files', { paths: ['a.txt', 'b.txt'] }],
  ],
  ['create directory build/out', ['files__create_directory', { path: 'build/out' }]],
  ['list the directory src', ['files__list_directory', { path: 'src' }]],
  ['list directory with sizes: src', ['files__list_directory_with_sizes', { path: 'src' }]],
  ['show the directory tree of src', ['files__directory_tree', { path: 'src' }]],
  ['move a.txt to old/a.txt', ['files__move_file', { source: 'a.txt', destination: 'old/a.txt' }]],
  [
    'move notes.txt into archive/',
    ['files__move_file', { source: 'notes.txt', destination: 'archive/' }],
  ],
  ['search files in src for *.ts', ['files__search_files', { path: 'src', pattern: '*.ts' }]],
  ['get file info for package.json', ['files__get_file_info', { path: 'package.json' }]],
  ['give me the file info of a.txt', ['files__get_file_info', { path: 'a.txt' }]],
  ['list allowed directories', ['files__list_allowed_directories', {}]],
  ['write_file path=a.txt content="x"', ['files__write_file', { path: 'a.txt', content: 'x' }]],
  [
    `edit_file ${JSON.stringify({ path: 'a.txt', edits })}`,
    ['files__edit_file', { path: 'a.txt', edits }],
  ],
  ['read graph', ['memory__read_graph', {}]],
  ['print the knowledge graph', ['memory__read_graph', {}]],
  ['search nodes for "Ada"', ['memory__search_nodes', { query: 'Ada' }]],
  ['search the memory for "horses"', ['memory__search_nodes', { query: 'horses' }]],
  ['open nodes names=["Ada","Grace"]', ['memory__open_nodes', { names: ['Ada', 'Grace'] }]],
  [
    'delete entities {"entityNames": ["Ada", "Grace"]}',
    ['memory__delete_entities', { entityNames: ['Ada', 'Grace'] }],
  ],
  [`create entities ${JSON.stringify({ entities })}`, ['memory__create_entities', { entities }]],
  [
    `create relations ${JSON.stringify({ relations })}`,
    ['memory__create_relations', { relations }],
  ],
  [
    `add observations ${JSON.stringify({ observations }, null, 2)}`,
    ['memory__add_observations', { observations }],
  ],
  [
    'sequentialthinking thought="First." nextThoughtNeeded=true thoughtNumber=1 totalThoughts=2',
    ['thinking__sequentialthinking', thought],
  ],
  ['read README.md', ['read', { path: 'README.md' }]],
  ['show me package.json', ['read', { path: 'package.json' }]],
  ['grep TODO path=src', ['grep', { pattern: 'TODO', path: 'src' }]],
  ['run `npm test`', ['bash', { command: 'npm test' }]],
  ['run git status', ['bash', { command: 'git status' }]],
  ['find **/*.ts', ['glob', { pattern: '**/*.ts' }]],
  ['write "hello" to notes.txt', ['write', { path: 'notes.txt', content: 'hello' }]],
  ['replace "a" with "b" in notes.txt', ['edit', { path: 'notes.txt', old: 'a', new: 'b' }]],
];

// It asks about these: a word that a person would understand is in the way, or unknown.
const QUESTIONS = [
  'get structured content for New York',
  'get an annotated message of type error',
  'get 5 resource links',
  'trigger a long running operation with duration 2 and steps 4',
  'read multiple files a.txt and b.txt',
  'create a directory named build',
  'list directory src with sizes',
  'rename draft.md to final.md',
  'search files in src matching *.ts',
  'which directories are allowed?',
  'search the knowledge graph for Ada',
  'delete entities "Ada", "Grace"',
  'grep TODO in src',
  'list files matching *.ts',
  'get the tiny image and toggle simulated logging',
  'read a.txt and b.txt',
  'what files are in src?',
  'get',
];

async function toolsOfAll(): Promise<ToolDefinition[]> {
  const { manager } = await manage({
    everything: server('everything'),
    files: server('filesystem', folder()),
    memory: { ...server('memory'), env: { MEMORY_FILE_PATH: join(folder(), 'memory.jsonl') } },
    thinking: server('sequential-thinking'),
    demo: { command: process.execPath, args: [goodServer] },
  });
  const builtIn = hands({ roots: new Roots(root), resultsFolder: root }).map(
    ({ definition }) => definition,
  );
  return [...builtIn, ...manager.getToolDefinitions()];
}

async function callsFor(
  prompt: string,
  tools: ToolDefinition[],
): Promise<[string, object | undefined][]> {
  const { signal } = new AbortController();
  for await (const event of new Rehearsal().query({
    system: '',
    turns: [{ role: 'user', text: prompt }],
    tools,
    signal,
  }))
    if (event.type === 'end')
      return event.turn.calls.map(({ name, args }) => [name.replace(/^mcp__/, ''), args]);
  throw new Error('no end');
}

test('prompts in plain words find their tool among those of real servers, or are asked about', async () => {
  const tools = await toolsOfAll();
  assert.ok(tools.length >= 45, `${tools.length}`);
  for (const [prompt, ...calls] of ROWS)
    assert.deepEqual(await callsFor(prompt, tools), calls, prompt);
  for (const prompt of QUESTIONS) assert.deepEqual(await callsFor(prompt, tools), [], prompt);
});
