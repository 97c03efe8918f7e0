// npm run picture: also makes .github/page.png and page-model.png, the page of chapter 30, from a real
// conversation in a real terminal: a scripted model, two servers, and a question that is answered.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { pageWith } from '../../chapters/30-seeing/view.ts';
import { browse } from '../help/chromium.ts';
import { cleanUp, folder, goodServer, root } from '../help/basics.ts';
import { counting } from '../help/counting.ts';
import { call, calls, say, startModelServer } from '../help/model-server.ts';
import { place, Terminal, userServers } from '../help/terminal.ts';

const library = { command: process.execPath, args: [join(root, 'fixtures', 'asker.mjs')] };
const calculator = { command: process.execPath, args: [goodServer] };
const broken = { command: 'weather-server' };
const form = {
  message: 'Reserve "Crafting Interpreters" for how many weeks?',
  requestedSchema: {
    type: 'object',
    properties: { weeks: { type: 'integer' } },
    required: ['weeks'],
  },
};
const { answering } = counting();
const script = [
  calls([
    { name: 'mcp__calculator__add', args: { a: 2, b: 40 } },
    { name: 'mcp__library__ask', args: { method: 'elicitation/create', params: form } },
  ]),
  call('mcp__calculator__add', { a: 2, b: 'forty' }),
  say('2 and 40 are 42, and the book is yours for three weeks.'),
];
const model = await startModelServer(script.map((step) => answering(step)));
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
const page = await browse();
await page.send('Emulation.setDeviceMetricsOverride', {
  width: 1280,
  height: 780,
  deviceScaleFactor: 1,
  mobile: false,
});
await page.goTo(pathToFileURL(file).href);
await page.see(/rows/);
// From the prompt on; the handshakes before it are less of a picture.
const from = 'rows.findIndex(({ method }) => method === "prompt")';
const question = 'rows.findIndex(({ method }) => method === "elicitation/create")';
await page.evaluate(
  `pick(${question}); $('chart').blur(); $('chart').scrollTop = (${from} - 1) * rowHeight()`,
);
const save = async (name: string) => {
  await page.evaluate(
    'new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))',
  );
  writeFileSync(join(root, '.github', name), await page.picture());
};
await save('page.png');
await page.evaluate("showTab('model')");
await save('page-model.png');
await cleanUp();
process.exit();
