// The tabs of chapter 30's page in a real Chromium: what real servers have and do, beside their
// messages; pictures, sounds and PDFs as what they are; and hostile names in all of it.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { tasks } from '../../chapters/24-more-than-tools/tasks.ts';
import { McpConnection, type ConnectionOptions } from '../../mcp.ts';
import { cleanUp, later, root, until } from '../help/basics.ts';
import { chromium, type Page } from '../help/chromium.ts';
import {
  assertQuiet,
  browser,
  flaws,
  HOSTILE,
  lines,
  message,
  screen,
  sticksOut,
  viewed,
} from '../help/viewer.ts';

after(cleanUp);

const skip = chromium ? false : 'there is no Chromium here (apt-get install chromium)';
const options = { skip, timeout: 100_000 }; // only ends a hang
const TABS = ['messages', 'tools', 'resources', 'prompts', 'tasks', 'logs'];

/** A conversation with three servers of ours, as a trace. */
async function conversation(): Promise<string> {
  const records: unknown[] = [{ trace: 1 }];
  const write = (record: object) => records.push({ at: records.length, ...record });
  const open = async (file: string, args: string[] = [], more: ConnectionOptions = {}) => {
    const server = file.replace('.mjs', '');
    const config = { command: process.execPath, args: [`${root}/fixtures/${file}`, ...args] };
    const connection = new McpConnection(server, config, {
      onWire: (dir, msg) => write({ dir, server, msg }),
      onStderr: (stderr) => write({ server, stderr }),
      ...more,
    });
    later(() => connection.close());
    await connection.connect();
    await connection.initialize();
    write({ type: 'server', server, state: 'connected', transport: 'stdio' });
    await connection.listTools();
    return connection;
  };
  const bench = await open('workbench.mjs');
  const library = await open('library.mjs');
  const tasker = await open('tasker.mjs', ['stdio', '--old'], { extensions: [tasks()] });
  for (const kind of ['image', 'audio', 'pdf', 'liar']) await bench.callTool('show', { kind });
  await library.listAll('resources/list', 'resources');
  await library.listAll('resources/templates/list', 'resourceTemplates');
  await library.listAll('prompts/list', 'prompts');
  await library.callTool('log', { level: 'warning', data: 'it is late' });
  const done = { content: [{ type: 'text', text: 'done' }] };
  await tasker.callTool('run', { script: [{ status: 'completed', result: done }] });
  await until(() => JSON.stringify(records).includes('liar'), 'its line on stderr');
  return lines(records);
}

let made: Promise<string> | undefined;
/** The page of that conversation, made once. */
async function open(): Promise<{ page: Page; url: string }> {
  made ??= conversation().then((trace) => viewed(trace));
  const page = await browser();
  const url = await made;
  await page.goTo(url);
  await page.see(/4 parties/);
  return { page, url };
}

const names = (page: Page) =>
  page.evaluate(
    '[...document.querySelectorAll("#list .item")].map((each) => each.firstChild.data)',
  );
const beside = (page: Page): Promise<string> => page.evaluate('$("thing").innerText');

test(
  'tools with their schemas, resources, prompts, tasks and logs have tabs of their own',
  options,
  async () => {
    const { page, url } = await open();
    await page.click('#tab-tools');
    assert.deepEqual(await names(page), [
      ...['order', 'show', 'slow', 'fail'],
      ...['change', 'log', 'told'],
      ...['run', 'seen'],
    ]);
    assert.match(await beside(page), /order[^]*twice does no more than once[^]*"in a few words"/);
    await page.press('/', ...'sound');
    assert.deepEqual(await names(page), ['show'], 'the filter looks at descriptions, too');
    assert.match(await beside(page), /only reads/);
    await page.press('Escape');
    assert.equal(await page.evaluate('document.activeElement.id'), 'tab-tools');

    await page.press('ArrowRight');
    assert.equal((await names(page)).length, 10, 'two pages of resources, and the templates');
    assert.match(await beside(page), /library:\/\/rules[^]*House rules[^]*"text\/plain"/);
    await page.press('ArrowRight');
    assert.deepEqual(await names(page), ['explain', 'dialogue', 'ends with the assistant']);
    assert.match(await beside(page), /"what to explain"/);
    await page.press('ArrowRight');
    assert.match(await beside(page), /of tasker · completed/);
    await page.press('ArrowRight');
    assert.deepEqual(await names(page), ['workbench', 'library', 'tasker']);
    assert.match(await beside(page), /workbench: connected, stdio[^]*show {"kind":"liar"}/);
    await page.click('#list .item:nth-of-type(2)');
    assert.match(await beside(page), /warning {2}"it is late"/);
    assertQuiet(page, url);
  },
);

test(
  'from a call to its tool, from the tool to its calls, and to where it was listed',
  options,
  async () => {
    const { page } = await open();
    const pickedMethod = () => page.evaluate('rows[picked].method');
    await page.press('/', ...'tool:show');
    await page.see(/8 of \d+ rows/);
    const button = (words: string) =>
      page.evaluate(
        `[...document.querySelectorAll('button')].find((each) => each.textContent === ${JSON.stringify(words)}).click()`,
      );
    await button('the tool');
    assert.match(await beside(page), /^show/);
    await button('its calls');
    await page.see(/8 of \d+ rows/);
    assert.equal(await pickedMethod(), 'tools/call');
    await button('the tool');
    await button('where it was listed');
    assert.deepEqual(
      [await pickedMethod(), await page.evaluate('tab')],
      ['tools/list', 'messages'],
    );
  },
);

test(
  'a picture is seen, a sound can be heard, a PDF opens in a tab of its own, and what lies about itself is a file',
  options,
  async () => {
    const { page, url } = await open();
    const answerTo = async (kind: string) => {
      await page.evaluate(
        `pick(rows.findIndex(({ kind, record }) => kind === 'answer' && rows[record.msg && rows.find((row) => row.record === record).pair]?.record.msg.params?.arguments?.kind === '${kind}'))`,
      );
      return page.evaluate(`for (let n = 0; n < 3; n++)
      for (const each of document.querySelectorAll('#detail details')) { each.open = true; each.dispatchEvent(new Event('toggle')); }
      $("detail").innerText`);
    };
    const ready = (what: string) =>
      page.evaluate(`new Promise((done) => {
      const see = () => { const it = document.querySelector('.media'); return ${what} ? done(${what}) : setTimeout(see, 10); };
      see();
    })`);
    assert.doesNotMatch(await answerTo('image'), /iVBOR[^]{400}/);
    assert.equal(await ready('it.naturalWidth'), 1);
    assert.match(await answerTo('audio'), /\d+ characters of base64/);
    assert.equal(await ready('it.duration'), 0.1);
    assertQuietBut(page, url, /^data:/);

    assert.match(await answerTo('liar'), /Save the file, \d+ bytes/);
    assert.equal(await page.evaluate('document.querySelectorAll(".media").length'), 0);
    assert.notEqual(await page.evaluate('document.title'), 'owned');

    assert.match(await answerTo('pdf'), /Open the PDF, \d+ bytes/);
    await page.evaluate('document.querySelector(".out").scrollIntoView()');
    await page.click('.out'); // a tab opens for a hand only
    const tabs = async () => (await page.send('Target.getTargets')).targetInfos;
    let found: any;
    for (const start = Date.now(); !found; found = (await tabs()).find(isPdf))
      assert.ok(Date.now() - start < 30_000, 'waited in vain for the tab with the PDF');
    assert.equal(found.type, 'page');
    assert.equal(await page.address, url, 'this page stays');
    await page.send('Target.closeTarget', { targetId: found.targetId });
  },
);

const isPdf = ({ url }: { url: string }) => url.startsWith('blob:');

/** Nothing was loaded but the page, and what is in it. */
function assertQuietBut(page: Page, url: string, own: RegExp): void {
  const requests = page.happened('Network.requestWillBeSent').map(({ request }) => request.url);
  assert.deepEqual(
    requests.filter((each) => !own.test(each)),
    [url],
  );
  assert.deepEqual(page.happened('Runtime.exceptionThrown', 'Log.entryAdded'), []);
}

test(
  `${HOSTILE.length} hostile strings as names, addresses, tasks and log lines: each tab shows them as text`,
  options,
  async () => {
    const page = await browser();
    const trace = HOSTILE.flatMap((evil, n) => {
      const server = `${evil.slice(0, 300)} ${n}`;
      const list = (id: number, method: string, result: object) => [
        message(n, 'out', server, { id, method }),
        message(n, 'in', server, { id, result }),
      ];
      const item = { title: evil, description: evil, [evil]: { [evil]: evil }, annotations: evil };
      return [
        ...list(1, 'tools/list', {
          tools: [{ name: evil, ...item, inputSchema: evil }, evil, null],
        }),
        ...list(2, 'resources/list', { resources: [{ uri: evil, name: evil, ...item }] }),
        ...list(3, 'resources/templates/list', { resourceTemplates: [{ uriTemplate: evil }] }),
        ...list(4, 'prompts/list', { prompts: [{ name: { [evil]: evil }, ...item }] }),
        ...list(5, 'tools/call', { task: { taskId: evil, status: evil, statusMessage: evil } }),
        ...list(6, 'tools/call', {
          content: [
            { type: 'image', mimeType: evil, data: evil },
            { type: 'audio', data: `${evil.slice(0, 30)}`.repeat(50) },
            { type: 'resource', resource: { blob: evil, mimeType: evil } },
          ],
        }),
        { at: n, server, stderr: evil },
        { at: n, type: 'server', server, state: evil },
      ];
    });
    const url = viewed(lines([{ trace: 1 }, ...trace]));
    await page.goTo(url);
    await page.see(/rows/);
    const visits = `(async () => {
    let count = 0;
    for (const tab of ${JSON.stringify(TABS)}) {
      showTab(tab);
      for (let n = 0; n < document.querySelectorAll('#list .item').length; n++) {
        document.querySelectorAll('#list .item')[n].click();
        count++;
      }
    }
    showTab('messages');
    for (let i = 0; i < rows.length; i++) pick(i);
    return count;
  })()`;
    assert.ok((await page.evaluate(visits)) > 5 * HOSTILE.length - 5);
    assert.equal(await page.evaluate('document.querySelectorAll("script").length'), 3);
    assert.notEqual(await page.evaluate('document.title'), 'owned');
    assertQuiet(page, url);
  },
);

test(
  'axe-core finds nothing in any tab, in both schemes and widths; at 360 pixels nothing sticks out',
  options,
  async () => {
    const { page } = await open();
    for (const width of [360, undefined])
      for (const scheme of ['light', 'dark']) {
        await screen(page, width, scheme);
        for (const tab of TABS) {
          await page.click(`#tab-${tab}`).catch(() => {}); // out of sight at 360: by the next line
          await page.evaluate(`showTab('${tab}')`);
          assert.deepEqual(await flaws(page), [], `${tab} ${width} ${scheme}`);
          assert.deepEqual(await sticksOut(page), [], `${tab} ${width}`);
        }
      }
    await screen(page);
  },
);

test(
  'ten thousand tools: the list is cut and the filter finds the last; what is picked stays in sight',
  options,
  async () => {
    const page = await browser();
    const tools = Array.from({ length: 10_000 }, (_, n) => ({
      name: `tool ${n}`,
      inputSchema: {},
    }));
    const records = [
      message(1, 'out', 's', { id: 1, method: 'tools/list' }),
      message(2, 'in', 's', { id: 1, result: { tools } }),
      message(3, 'out', 's', { id: 2, method: 'tools/call', params: { name: 'tool 9000' } }),
    ];
    await page.goTo(viewed(lines([{ trace: 1 }, ...records])));
    await page.see(/3 rows/);
    await page.click('#tab-tools');
    assert.equal((await names(page)).length, 500);
    await page.press('/', ...'tool 9999');
    assert.deepEqual(await names(page), ['tool 9999']);
    await page.evaluate('showTab("messages"); pick(2)');
    await page.evaluate(
      '[...document.querySelectorAll("button")].find((each) => each.textContent === "the tool").click()',
    );
    assert.match(await beside(page), /^tool 9000/);
    assert.ok((await names(page)).includes('tool 9000'));
  },
);
