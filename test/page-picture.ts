// npm run picture: also makes .github/page.png, the page of chapter 30, from a real conversation in a
// real terminal: a scripted model, two servers, and a question that is answered.

import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { pageWith } from '../chapters/30-seeing/view.ts';
import { cleanUp, folder, goodServer, root } from './helpers.ts';
import { call, calls, say, startModelServer } from './model-server.ts';
import { place, Terminal, userServers } from './terminal.ts';

const library = { command: process.execPath, args: [join(root, 'fixtures', 'asker.mjs')] };
const calculator = { command: process.execPath, args: [goodServer] };
const broken = { command: 'weather-server' };
const form = {
  message: 'Reserve "Crafting Interpreters" for how many weeks?',
  requestedSchema: { type: 'object', properties: { weeks: { type: 'integer' } }, required: ['weeks'] },
};
const model = await startModelServer([
  calls([
    { name: 'mcp__calculator__add', args: { a: 2, b: 40 } },
    { name: 'mcp__library__ask', args: { method: 'elicitation/create', params: form } },
  ]),
  call('mcp__calculator__add', { a: 2, b: 'forty' }),
  say('2 and 40 are 42, and the book is yours for three weeks.'),
]);
const where = place({}, userServers({ calculator, library, weather: broken }));
const env = { ANTHROPIC_API_KEY: 'none', ANTHROPIC_BASE_URL: model.url };
const args = ['--model', 'anthropic/scripted', '--mode', 'yolo', '--trace', 'trace.jsonl'];
const terminal = new Terminal(where, args, env, 100, 40);
await terminal.ready();
terminal.enter('What are 2 and 40? And reserve the book.');
await terminal.see(/weeks/);
for (const line of ['y', '3', 'y']) {
  await new Promise((done) => setTimeout(done, 1500)); // only a picture: no need to watch the form
  terminal.enter(line);
}
await terminal.see(/three weeks/);
await terminal.ready();
terminal.enter('/exit');
await terminal.ended();

const file = join(folder(), 'page.html');
writeFileSync(file, pageWith(readFileSync(join(where.cwd, 'trace.jsonl'), 'utf8'), 'A chat'));
const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--hide-scrollbars', '--window-size=1280,860'];
const picture = join(root, '.github', 'page.png');
execFileSync('chromium', [...flags, `--screenshot=${picture}`, pathToFileURL(file).href], { stdio: 'ignore' });
await cleanUp();
process.exit();
