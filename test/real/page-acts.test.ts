// What can be done on the live page of chapter 30, one by one: the program in a terminal has opened it
// in a real Chromium, and its servers are real processes.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { cleanUp, later, root, until } from '../help/basics.ts';
import { chromium, desktop, type Page } from '../help/chromium.ts';
import { jsonLines, place, Terminal, userServers } from '../help/terminal.ts';
import { flaws, screen, sticksOut } from '../help/viewer.ts';

after(cleanUp);

const skip = chromium ? false : 'there is no Chromium here (apt-get install chromium)';
const options = { skip, timeout: 120_000 }; // only ends a hang

type Running = { page: Page; terminal: Terminal; trace: () => any[]; cwd: string };
let running: Promise<Running> | undefined;

/** One program and one browser for all of this file. */
function opened(): Promise<Running> {
  running ??= begin();
  return running;
}

async function begin(): Promise<Running> {
  const node = (...args: string[]) => ({ command: process.execPath, args });
  const fixture = (name: string) => node(join(root, 'fixtures', name));
  const servers = {
    calculator: fixture('server.mjs'),
    workbench: fixture('workbench.mjs'),
    library: fixture('library.mjs'),
    asker: fixture('asker.mjs'),
  };
  const where = place({}, userServers(servers));
  const file = join(where.cwd, 'trace.jsonl');
  const browser = desktop();
  const args = ['--page', '--no-color', '--trace', file];
  const terminal = new Terminal(where, args, { ...browser.env, HOME: where.home });
  const page = await browser.page();
  await page.see(/it can act/);
  await page.see(/Tools ?10[^]*Prompts ?3/); // the lists are there, though nothing was asked of the model
  return { page, terminal, trace: () => jsonLines(readFileSync(file, 'utf8')), cwd: where.cwd };
}

/** Clicks what has these words on it, as soon as it can be clicked. */
async function click(page: Page, words: string, within = 'body'): Promise<void> {
  const center = `(() => {
    const fits = (each) => each.checkVisibility() && !each.disabled && each.textContent.startsWith(${JSON.stringify(words)});
    const it = [...document.querySelectorAll('${within} button')].find(fits);
    if (!it) return undefined;
    it.scrollIntoView({ block: 'center' });
    const { x, y, width, height } = it.getBoundingClientRect();
    return { x: x + width / 2, y: y + height / 2 };
  })()`;
  const mouse = { ...(await page.when(center)), button: 'left', clickCount: 1 };
  for (const type of ['mousePressed', 'mouseReleased'])
    await page.send('Input.dispatchMouseEvent', { type, ...mouse });
}

/** Puts this into a field, as typing does. */
async function fill(page: Page, name: string, value: string, within = '#thing'): Promise<void> {
  const field = `document.querySelector('${within} [data-name="${name}"]')`;
  await page.when(`!!${field}`);
  await page.evaluate(`(() => {
    const it = ${field};
    it.focus();
    const option = it.options && [...it.options].find((each) => each.text === ${JSON.stringify(value)});
    if (option) option.selected = true;
    else it.value = ${JSON.stringify(value)};
    it.dispatchEvent(new Event('input', { bubbles: true }));
  })()`);
}

async function pickThing(page: Page, tab: string, name: string): Promise<void> {
  await page.evaluate(`showTab('${tab}')`);
  await click(page, name, '#list');
}

const questions = (page: Page) => page.evaluate('$("questions").innerText');
const lastAct = ({ trace }: Running) => trace().findLast(({ type }) => type === 'page');

test(
  'a tool is picked, its form filled in, called: the gate asks on the page while the prompt waits for a line',
  options,
  async () => {
    const all = await opened();
    const { page, terminal, trace } = all;
    await pickThing(page, 'tools', 'add');
    await fill(page, 'a', '2');
    await fill(page, 'b', '40');
    await click(page, 'Call it');
    assert.match(
      await page.see(/The page wants to call/),
      /the tool "add" of the MCP server "calculator"[^]*a: 2[^]*b: 40/,
    );
    assert.doesNotMatch(await questions(page), /always/, 'nothing that lasts is agreed to here');
    await click(page, 'yes', '#questions');
    await page.see(/✓ worked\s+42/);
    await terminal.see('the page: call add of calculator: worked');
    const acts = trace().filter(({ type }) => type === 'page');
    assert.deepEqual(
      acts.map(({ act, outcome }) => [act, outcome]),
      [
        ['call', undefined],
        ['call', 'worked'],
      ],
    );
  },
);

test(
  'arguments that do not fit are told before anyone is asked; no is a no, with the reason',
  options,
  async () => {
    const all = await opened();
    const { page } = all;
    await pickThing(page, 'tools', 'add');
    await fill(page, 'a', 'two');
    await click(page, 'Call it');
    await page.see(/✗ unreadable[^]*a: [^]*number/);
    assert.equal(await questions(page), '');
    await fill(page, 'a', '3');
    await click(page, 'Call it');
    await page.when('document.querySelector(".why-not")');
    await page.evaluate('document.querySelector(".why-not").focus()');
    await page.press(...'not now', 'Enter');
    await page.see(/✗ denied\s+The user said no: not now/);
    assert.equal(lastAct(all).outcome, 'denied');
  },
);

test(
  'again, with other arguments: the form has those of the call that is picked',
  options,
  async () => {
    const { page } = await opened();
    await page.evaluate(
      `showTab('messages'); pick(rows.findLast((row) => row.method === 'tools/call' && row.kind === 'answer').i)`,
    );
    await click(page, 'again, with other arguments');
    assert.equal(await page.evaluate('document.querySelector("#thing [data-name=a]").value'), '2');
    await fill(page, 'b', '5');
    await click(page, 'Call it');
    await click(page, 'yes', '#questions');
    await page.see(/✓ worked\s+7/);
  },
);

test('a tool whose schema is no form is called with JSON', options, async () => {
  const { page } = await opened();
  await pickThing(page, 'tools', 'add');
  await click(page, 'as JSON');
  await page.evaluate(
    'document.querySelector("#thing textarea.code").value = "{\\"a\\": 20, \\"b\\": 1"',
  );
  await click(page, 'Call it');
  await page.see(/arguments is not JSON/);
  await page.evaluate('document.querySelector("#thing textarea.code").value += "}"');
  await click(page, 'Call it');
  await click(page, 'yes', '#questions');
  await page.see(/✓ worked\s+21/);
});

test('what is running is stopped, and its question is withdrawn', options, async () => {
  const all = await opened();
  const { page } = all;
  await pickThing(page, 'tools', 'add');
  await click(page, 'Call it');
  await page.see(/The page wants to call/);
  await click(page, 'Stop');
  await page.see(/✗ aborted/);
  await page.when('$("questions").hidden');
  assert.equal(lastAct(all).outcome, 'aborted');
});

test(
  'a question that comes up when another is answered is not answered by the same finger',
  options,
  async () => {
    const { page } = await opened();
    // A form and a question of the gate can be open at once. Here the program's list is ours.
    const held = `[...$('questions').querySelectorAll('button')].map((each) => each.disabled).join()`;
    const two = `window.left = ['a', 'b'].map((id) => ({ id, lines: [id], choices: [{ key: 'y', label: '[y]es' }] }));`;
    const ours = `window.fetched = fetch; window.fetch = async () => new Response(JSON.stringify({ questions: left }));`;
    await page.evaluate(`${two} ${ours} drawQuestions()`);
    await page.when(`${held} === 'false,false'`);
    await page.evaluate(`new MutationObserver(() => { window.isHeld ??= ${held}; })
      .observe($('questions'), { childList: true }); left.shift(); drawQuestions()`);
    await page.when(`$('questions').childElementCount === 1 && window.isHeld !== undefined`);
    assert.equal(await page.evaluate('window.isHeld'), 'true');
    await page.when(`${held} === 'false'`); // and then it can be answered
    await page.evaluate('window.fetch = fetched; drawQuestions()');
    await page.when('$("questions").hidden');
  },
);

test('a resource is read, also one by its template; a picture is seen', options, async () => {
  const { page } = await opened();
  await pickThing(page, 'resources', 'library://rules');
  await click(page, 'Read it');
  assert.match(
    await page.see(/The page wants to call/),
    /"resources\/read" of the MCP server "library"[^]*library:\/\/rules/,
  );
  await click(page, 'yes', '#questions');
  await page.see(/✓ worked[^]*"resources\/read"|✓ worked[^]*contents/);
  await pickThing(page, 'resources', 'library://picture');
  await click(page, 'Read it');
  await click(page, 'yes', '#questions');
  assert.ok(await page.when('document.querySelector("#thing img.media")?.naturalWidth'));
  await pickThing(page, 'resources', 'library://{shelf}/{item}');
  await fill(page, 'shelf', 'a b');
  await fill(page, 'item', 'one');
  await click(page, 'Read it');
  assert.match(await page.see(/The page wants to call/), /library:\/\/a%20b\/one/);
  await click(page, 'no', '#questions');
  await page.see(/✗ denied/);
});

test('a prompt is got, with what the server completes', options, async () => {
  const { page } = await opened();
  await pickThing(page, 'prompts', 'explain');
  await fill(page, 'thing', 'gram');
  const offered = 'document.querySelector("#thing datalist option")?.value';
  assert.equal(await page.when(offered), 'grammar');
  await fill(page, 'thing', 'a pipe');
  await click(page, 'Get it');
  assert.match(
    await page.see(/The page wants to call/),
    /"prompts\/get" of the MCP server "library"[^]*a pipe/,
  );
  await click(page, 'yes', '#questions');
  await page.see(/✓ worked/);
});

const FORM = {
  message: 'Where to?',
  requestedSchema: {
    type: 'object',
    properties: {
      city: { type: 'string', title: 'City', minLength: 2 },
      nights: { type: 'integer', minimum: 1 },
      isLate: { type: 'boolean' },
      room: { type: 'string', enum: ['small', 'large'] },
      extras: { type: 'array', items: { type: 'string', enum: ['bread', 'tea'] } },
    },
    required: ['city', 'nights'],
  },
};

/** The asker asks this, because the page has called it. */
async function beAsked(page: Page, method: string, params: object): Promise<void> {
  await pickThing(page, 'tools', 'ask');
  await page.when('document.querySelector("#thing .go")');
  if (await page.evaluate('!document.querySelector("#thing .fields > textarea.code")'))
    await click(page, 'as JSON');
  const args = JSON.stringify(JSON.stringify({ method, params }));
  await page.evaluate(`document.querySelector("#thing .fields > textarea.code").value = ${args}`);
  await click(page, 'Call it');
  await click(page, 'yes', '#questions');
}

test(
  'a form of a server is answered on the page; what does not fit is told beside it',
  options,
  async () => {
    const { page, trace } = await opened();
    await beAsked(page, 'elicitation/create', FORM);
    assert.match(
      await page.see(/"asker" asks:/),
      /The MCP server "asker" asks:[^]*while it runs "ask" for: The page/,
    );
    await fill(page, 'city', 'X', '#questions');
    await click(page, 'Send', '#questions');
    await page.see(/"City": it [^]*"nights": an answer is needed/);
    await fill(page, 'city', 'Xanten', '#questions');
    await fill(page, 'nights', '2', '#questions');
    await fill(page, 'isLate', 'yes', '#questions');
    await fill(page, 'room', 'large', '#questions');
    await fill(page, 'extras', 'tea', '#questions');
    await click(page, 'Send', '#questions');
    await page.see(/✓ worked/);
    const said = trace().findLast(({ dir, msg }) => dir === 'in' && msg?.result?.content)!;
    const { action, content } = JSON.parse(said.msg.result.content[0].text);
    assert.deepEqual(
      [action, content.nights, content.isLate, content.room, content.extras],
      ['accept', 2, true, 'large', ['tea']],
    );
    assert.doesNotMatch(
      JSON.stringify(trace()),
      /Xanten/,
      'what was typed into a form is in no trace',
    );
  },
);

test('a form is declined; an answer that reads like a no is asked about', options, async () => {
  const { page } = await opened();
  await beAsked(page, 'elicitation/create', FORM);
  await page.see(/"asker" asks:/);
  await click(page, 'Decline', '#questions');
  await page.see(/✓ worked[^]*decline/);
  const requestedSchema = {
    type: 'object',
    properties: { go: { type: 'string', enum: ['yes', 'no'] } },
    required: ['go'],
  };
  await beAsked(page, 'elicitation/create', { message: 'Delete it?', requestedSchema });
  await page.see(/"asker" asks:/);
  await fill(page, 'go', 'no', '#questions');
  await click(page, 'Send', '#questions');
  await page.see(/a server may take any for your consent/);
  await click(page, 'Decline', '#questions');
  await page.see(/✓ worked[^]*decline/);
});

test(
  'the first answer counts: given in the terminal, the page takes its question back',
  options,
  async () => {
    const { page, terminal } = await opened();
    await pickThing(page, 'tools', 'add');
    await click(page, 'Call it');
    await page.see(/The page wants to call/);
    terminal.press('\r'); // the prompt had the line
    await terminal.see('Allow it?');
    terminal.enter('y');
    await page.see(/✓ worked/);
    await page.when('$("questions").hidden');
  },
);

test(
  'eight calls wait for an answer, more than a browser has connections: it gets through',
  options,
  async () => {
    const { page, trace } = await opened();
    const ended = () => trace().filter(({ type, outcome }) => type === 'page' && outcome).length;
    const before = ended();
    await page.evaluate(`for (let n = 0; n < 8; n++)
    act(make('p'), 'call', { server: 'calculator', name: 'greet', args: { name: 'N' + n } })`);
    for (let n = 1; n <= 8; n++) {
      await click(page, 'yes', '#questions');
      await until(() => ended() === before + n, `the end of ${n}`);
    }
  },
);

test(
  'a question of the model’s call is on the page, too; answered there, the terminal goes on',
  options,
  async () => {
    const { page, terminal } = await opened();
    terminal.enter('add 2 and 40');
    await terminal.see(/The model wants to call the tool "add"/);
    assert.match(
      await page.see(/The model wants to call/),
      /the tool "add" of the MCP server "calculator"/,
    );
    await click(page, 'yes', '#questions');
    await terminal.see('answered on the page');
    await terminal.see(/42/);
    await page.when('rows.at(-1).method === "done"'); // as long as the last row is picked, the page follows
  },
);

test('a call is saved as a test file, and the test passes', options, async () => {
  const { page, cwd } = await opened();
  await page.send('Browser.setDownloadBehavior', {
    behavior: 'allow',
    downloadPath: cwd,
    eventsEnabled: true,
  });
  await page.evaluate(
    `showTab('messages'); pick(rows.findLast((row) => row.method === 'tools/call' && row.kind === 'answer' && row.server === 'calculator').i)`,
  );
  await click(page, 'save as a test');
  const file = join(cwd, 'add.test.mjs');
  await until(() => existsSync(file), 'the file');
  await until(() => readFileSync(file, 'utf8').includes('});\n'), 'all of it');
  const text = readFileSync(file, 'utf8').replace(
    "'mcp-by-hand'",
    JSON.stringify(pathToFileURL(join(root, 'chapters', 'connect.ts')).href),
  );
  writeFileSync(file, text);
  const run = (broken: string) => {
    writeFileSync(file, broken);
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    return spawnSync(process.execPath, ['--import', import.meta.resolve('tsx'), '--test', file], {
      cwd,
      env,
      encoding: 'utf8',
    });
  };
  const passed = run(text);
  assert.equal(passed.status, 0, passed.stdout + passed.stderr);
  assert.notEqual(run(text.replace('"42"', '"41"')).status, 0);
});

test(
  'with forms, results and a question open: axe-core finds nothing, light and dark; at 360 pixels nothing sticks out',
  options,
  async () => {
    const all = await opened();
    const { page } = all;
    await pickThing(page, 'tools', 'ask');
    await beAsked(page, 'elicitation/create', FORM);
    await page.see(/"asker" asks:/);
    for (const width of [360, undefined])
      for (const scheme of ['light', 'dark']) {
        await screen(page, width, scheme);
        for (const tab of ['messages', 'tools', 'resources', 'prompts']) {
          await page.evaluate(`showTab('${tab}')`);
          assert.deepEqual(await flaws(page), [], `${tab} ${width} ${scheme}`);
          assert.deepEqual(await sticksOut(page), [], `${tab} ${width}`);
        }
      }
    await screen(page);
    await click(page, 'Cancel', '#questions');
    await page.when('$("questions").hidden');
    await until(() => lastAct(all).outcome === 'worked', 'the end of the call');
  },
);

// ─── A hostile page in another tab ───────────────────────────────────────────────────────────────

/** Serves the attack, on a port of its own, under any name; and hears how it went. */
async function hostile(target: string) {
  const told: Record<string, string>[] = [];
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const piece of request) text += piece;
    if (request.method === 'POST') told.push(JSON.parse(text));
    const attack = readFileSync(join(root, 'test', 'help', 'hostile-page.html'), 'utf8');
    response.setHeader('content-type', 'text/html').end(attack.replaceAll('TARGET', target));
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  later(() => server.close());
  later(() => server.closeAllConnections());
  return { port: (server.address() as AddressInfo).port, told };
}

test(
  'a hostile page in another tab, of another origin and of another port, gets nothing and causes nothing',
  options,
  async () => {
    const all = await opened();
    const { page, terminal, trace } = all;
    const target = await page.address;
    const { port, told } = await hostile(target);
    const before = trace().length;
    const warned = terminal.text;
    for (const name of ['evil.localhost', '127.0.0.1']) {
      const { targetId } = await page.send('Target.createTarget', {
        url: `http://${name}:${port}/`,
      });
      await until(() => told.length > 0, `the attack from ${name}`);
      const [said = {}] = told.splice(0);
      assert.equal(Object.keys(said).length, 17);
      const got = Object.entries(said).filter(([, how]) => how.startsWith('got '));
      // Without CORS a request can be sent blindly; its answer is a 403, and empty for who sent it.
      assert.deepEqual(
        got.filter(([what, how]) => !(what.startsWith('blind ') && how === 'got ')),
        [],
        name,
      );
      await page.send('Target.closeTarget', { targetId });
    }
    assert.deepEqual(trace().slice(before), [], 'nothing was asked of a server, or of the gate');
    assert.equal(terminal.text, warned);
    assert.equal(await questions(page), '');
    await page.send('Page.bringToFront'); // and it still is the one that may
    await pickThing(page, 'tools', 'add');
    await click(page, 'Call it');
    await click(page, 'no', '#questions');
    await page.see(/✗ denied/);
  },
);

test(
  'loaded again the page only shows; its address is told once more with another code, and the old key is void',
  options,
  async () => {
    const { page, terminal } = await opened();
    const url = await page.address;
    const key = await page.evaluate('key');
    await page.evaluate('location.reload()');
    await page.see(/it only shows/);
    assert.equal(await page.evaluate('document.querySelectorAll(".go").length'), 0);
    terminal.enter('/page');
    await terminal.see(/#\w{32} shows every message/, 2);
    const address = terminal.text.match(/http:\S+#\w{32}/g)!.at(-1)!;
    await page.goTo(address);
    await page.see(/it can act/);
    assert.equal(await page.address, url, 'the code is out of the address');
    const post = `fetch('act', { method: 'POST', headers: { 'content-type': 'application/json', authorization: 'Bearer ${key}' }, body: '{"act":"list"}' }).then(({ status }) => status)`;
    assert.equal(await page.evaluate(post), 401);
    const second = new URL(address).hash.slice(1);
    const again = `fetch('key', { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"code":"${second}"}' }).then(({ status }) => status)`;
    assert.equal(await page.evaluate(again), 403);
    await terminal.see('used a second time');
  },
);
