// The page of chapter 33 in a real Chromium: servers in it and behind HTTP, in both eras; what they
// offer and ask; what fails, told apart; and servers that mean harm.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createServer, request as nodeRequest, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { put } from '../../chapters/book/files.ts';
import { playgroundFiles } from '../../chapters/book/playground.ts';
import { serveSite } from '../../chapters/book/site.ts';
import { serveHttp, type HttpOptions } from '../../chapters/29-a-server/serve-http.ts';
import { McpServer } from '../../chapters/29-a-server/server.ts';
import type { Json } from '../../mcp.ts';
import { cleanUp, folder, later } from '../help/basics.ts';
import { browse, chromium, type Page } from '../help/chromium.ts';
import { freePort } from '../help/nginx.ts';
import { browser, flaws, HOSTILE, screen, SCRIPT } from '../help/viewer.ts';

after(cleanUp);

const skip = chromium ? false : 'there is no Chromium here (apt-get install chromium)';
const options = { skip, timeout: 100_000 }; // only ends a hang

let served: Promise<string> | undefined;
/** The site on loopback, once for this file. */
function site(): Promise<string> {
  served ??= playgroundFiles().then(async (files) => {
    const { server, url } = await serveSite(files);
    later(() => server.close());
    return url;
  });
  return served;
}

async function playground(page?: Page): Promise<Page> {
  const here = page ?? (await browser());
  await here.goTo(`${await site()}playground.html`);
  await here.see(/Talk to a server/);
  await wireSays(here, /Nothing has been said yet/);
  return here;
}

const quote = (text: string) => JSON.stringify(text);

/** Waits for a fact of the page. */
async function fact(page: Page, expression: string, isSo: (value: any) => boolean): Promise<any> {
  let value: any;
  for (const begin = Date.now(); Date.now() - begin < 60_000; ) {
    value = await page.evaluate(expression).catch(() => undefined);
    if (isSo(value)) return value;
  }
  throw new Error(
    `waited a minute in vain: ${expression} is ${JSON.stringify(value)?.slice(-1500)}`,
  );
}

const wireSays = (page: Page, what: RegExp) =>
  fact(page, 'frames[0].document.body.innerText', (text) => what.test(text));
const says = (page: Page, what: RegExp) =>
  fact(page, 'document.body.innerText', (text) => what.test(text));

/** Begins a server of the page, by the name on its button. */
async function start(page: Page, name: string): Promise<void> {
  await page.evaluate(`[...document.querySelectorAll('#servers button')]
    .find((each) => each.textContent === ${quote(name)}).click()`);
  await says(page, /speaks 20/);
}

async function connect(page: Page, url: string, token = ''): Promise<void> {
  await page.evaluate(`url.value = ${quote(url)}; token.value = ${quote(token)};
    remote.requestSubmit()`);
}

const cardOf = (name: string) =>
  `[...document.querySelectorAll('.card')].find((each) => each.querySelector('b')?.textContent === ${quote(name)})`;

/** Opens a card, fills in its fields by their names, and presses its button. */
async function use(page: Page, name: string, fields: Record<string, string> = {}): Promise<string> {
  await fact(page, `Boolean(${cardOf(name)})`, Boolean);
  await page.evaluate(`${cardOf(name)}.open = true`);
  await fact(page, `Boolean(${cardOf(name)}.querySelector('form'))`, Boolean);
  for (const [field, value] of Object.entries(fields))
    await page.evaluate(
      `${cardOf(name)}.querySelector('form').elements[${quote(field)}].value = ${quote(value)}`,
    );
  await page.evaluate(`${cardOf(name)}.querySelector('form').requestSubmit()`);
  const button = `${cardOf(name)}.querySelector('[type=submit]').textContent`;
  await fact(page, button, (text) => text !== 'Stop');
  return page.evaluate(`${cardOf(name)}.querySelector('.result').innerText`);
}

/** No exception, and nothing on the console. */
function assertNoErrors(page: Page): void {
  const told = page.happened('Runtime.exceptionThrown', 'Log.entryAdded');
  assert.deepEqual(
    told.map(({ entry, exceptionDetails }) => entry?.text ?? exceptionDetails),
    [],
  );
}

// ─── 1. Servers in the page ─────────────────────────────────────────────────────────────────────

test(
  'a server in a worker, with a handshake: list, call, an error as a result; the wire shows each',
  options,
  async () => {
    const page = await playground();
    await start(page, 'calculator');
    assert.match(await says(page, /greet/), /calculator-and-greeter speaks 2025-11-25/);
    assert.equal(await use(page, 'add', { a: '2', b: '40' }), '42');
    assert.equal(await use(page, 'greet', { name: '' }), 'name: an answer is needed');
    const wire = await wireSays(page, /42/);
    for (const row of ['initialize', 'notifications/initialized', 'tools/list', 'tools/call'])
      assert.match(wire, new RegExp(row));
    await start(page, 'workbench');
    assert.equal(await use(page, 'fail'), 'it could not be done');
    assert.match(await wireSays(page, /it could not be done/), /isError|fail/);
    assertNoErrors(page);
  },
);

test('one without a handshake: the wire has discover, and no initialize', options, async () => {
  const page = await playground();
  await start(page, 'library, no handshake');
  await says(page, /library speaks 2026-07-28/);
  const below = await wireSays(page, /prompts\/list/);
  await page.evaluate(`frames[0].document.querySelector('#chart').scrollTop = 0`);
  const above = await wireSays(page, /server\/discover/); // rows that are not seen are not drawn
  assert.doesNotMatch(above + below, /initialize/);
  assertNoErrors(page);
});

test('a list that comes in pages is whole', options, async () => {
  const page = await playground();
  await start(page, 'one tool a page');
  assert.equal(await use(page, 'greet', { name: 'Ada' }), 'Hello, Ada!');
  assert.equal(await page.evaluate('document.querySelectorAll(".card b").length'), 2);
});

// ─── 2. Questions ───────────────────────────────────────────────────────────────────────────────

const QUESTION = {
  message: 'Which colour?',
  requestedSchema: {
    type: 'object',
    properties: {
      colour: { type: 'string', title: 'Colour', enum: ['red', 'green'] },
      tags: { type: 'array', items: { type: 'string', enum: ['a', 'b', 'c'] } },
      mail: { type: 'string', format: 'email' },
      count: { type: 'integer', minimum: 1 },
      isSure: { type: 'boolean' },
    },
    required: ['colour'],
  },
};

/** Has the server ask, does something with its dialog, and returns what the server heard. */
async function asked(page: Page, params: Json, act: () => Promise<void>): Promise<string> {
  const fields = { method: 'elicitation/create', params: JSON.stringify(params) };
  const result = use(page, 'ask', fields);
  await fact(page, 'question.open', Boolean);
  await act();
  return result;
}
const inDialog = (code: string) => `(() => { const box = question; ${code} })()`;
const pressInDialog = (page: Page, label: string) =>
  page.evaluate(
    inDialog(
      `[...box.querySelectorAll('button')].find((each) => each.textContent === '${label}').click()`,
    ),
  );
const fillDialog = (page: Page, name: string, value: string) =>
  page.evaluate(inDialog(`box.querySelector('[name="${name}"]').value = ${JSON.stringify(value)}`));

for (const name of ['asker', 'asker, no handshake'])
  test(
    `a server asks (${name}): a form, accept, decline, Esc is cancel; what is missing is told and not sent`,
    options,
    async () => {
      const page = await playground();
      await start(page, name);
      const accepted = await asked(page, QUESTION, async () => {
        const words: string = await page.evaluate('question.innerText');
        for (const word of ['asker', 'Which colour?', 'Colour \\*', 'count'])
          assert.match(words, new RegExp(word));
        await pressInDialog(page, 'Accept');
        await fact(page, 'question.innerText', (text) => /colour: an answer is needed/.test(text));
        await fillDialog(page, 'colour', '1');
        await fillDialog(page, 'count', '0');
        await pressInDialog(page, 'Accept');
        await fact(page, 'question.innerText', (text) => /at least 1/.test(text));
        await fillDialog(page, 'count', '3');
        await page.evaluate(
          inDialog(
            'for (const n of [0, 2]) box.querySelector("[name=tags]").options[n].selected = true',
          ),
        );
        await page.evaluate(inDialog('box.querySelector("[name=isSure]").value = "1"'));
        await pressInDialog(page, 'Accept');
      });
      assert.deepEqual(JSON.parse(accepted), {
        action: 'accept',
        content: { colour: 'green', tags: ['a', 'c'], count: 3, isSure: false },
      });
      const declined = await asked(page, QUESTION, () => pressInDialog(page, 'Decline'));
      assert.deepEqual(JSON.parse(declined), { action: 'decline' });
      const left = await asked(page, QUESTION, () => page.press('Escape'));
      assert.deepEqual(JSON.parse(left), { action: 'cancel' });
      await wireSays(page, /Which colour\? → cancel/);
      assertNoErrors(page);
    },
  );

test(
  'a server asks to visit a page: the whole address is shown, and opened only on a yes',
  options,
  async () => {
    const page = await playground();
    await start(page, 'asker');
    await page.evaluate('opened = []; globalThis.open = (...words) => void opened.push(words)');
    const url = 'https://good.example@evil.example/pay?x=1';
    const params = { mode: 'url', message: 'Pay here', url, elicitationId: 'a' };
    const answerTo = async (act: () => Promise<void>) => JSON.parse(await asked(page, params, act));
    const yes = await answerTo(async () => {
      assert.match(await page.evaluate('question.innerText'), /evil\.example/);
      await pressInDialog(page, 'yes');
    });
    assert.deepEqual(yes, { action: 'accept' });
    const opened = [['https://good.example@evil.example/pay?x=1', '_blank', 'noopener,noreferrer']];
    assert.deepEqual(await page.evaluate('opened'), opened);
    const no = await answerTo(() => pressInDialog(page, 'no'));
    assert.deepEqual(no, { action: 'decline' });
    assert.deepEqual(await answerTo(() => page.press('Escape')), { action: 'cancel' });
    assert.equal(await page.evaluate('opened.length'), 1);
  },
);

test(
  'a form that wants a secret says so, and an answer that reads like a no is doubted once',
  options,
  async () => {
    const page = await playground();
    await start(page, 'asker');
    const properties = {
      password: { type: 'string' },
      go: { type: 'string', enum: ['yes', 'reject'] },
    };
    const question = { message: 'Well?', requestedSchema: { type: 'object', properties } };
    const answer = await asked(page, question, async () => {
      await fact(page, 'question.innerText', (text) => /asks for a secret/.test(text));
      await fillDialog(page, 'go', '1');
      await pressInDialog(page, 'Accept');
      await fact(page, 'question.innerText', (text) => /taken for consent/.test(text));
      await pressInDialog(page, 'Accept');
    });
    assert.deepEqual(JSON.parse(answer), { action: 'accept', content: { go: 'reject' } });
  },
);

// ─── 3. Resources, prompts, pictures ────────────────────────────────────────────────────────────

test(
  'resources of all pages, a picture, prompts with arguments that are completed',
  options,
  async () => {
    const page = await playground();
    await start(page, 'library');
    await fact(page, `Boolean(${cardOf('ends with the assistant')})`, Boolean);
    const kinds = `[...document.querySelectorAll('.kind')].map((each) => each.textContent).join()`;
    assert.match(
      await page.evaluate(kinds),
      /^(tool,){3}(resource,){8}(template,){2}(prompt,?){3}$/,
    );
    assert.equal(await use(page, 'library://rules'), 'Be quiet.');
    await use(page, 'library://picture');
    const picture = `${cardOf('library://picture')}.querySelector('img')`;
    await fact(page, `${picture}?.naturalWidth`, (width) => width === 1);
    assert.match(
      await use(page, 'library://{shelf}/{item}', { uri: 'library://light/lamp' }),
      /lamp/,
    );
    await use(page, 'explain', { thing: '' });
    const thing = `${cardOf('explain')}.querySelector('[name=thing]')`;
    await page.evaluate(`${thing}.value = 'gra'; ${thing}.dispatchEvent(new Event('input'))`);
    const values = `[...${thing}.list.options].map((each) => each.value).join()`;
    await fact(page, values, (text) => text === 'gravity,grammar');
    const said = await use(page, 'explain', { thing: 'gravity', style: 'Grimm' });
    assert.match(said, /user\s+Explain gravity in the style of Grimm\./);
    assert.match(await use(page, 'dialogue'), /assistant\s+I see a pixel/);
    assertNoErrors(page);
  },
);

test('what only calls itself a picture is none, and a call can be stopped', options, async () => {
  const page = await playground();
  await start(page, 'workbench');
  await fact(page, `Boolean(${cardOf('show')})`, Boolean);
  await use(page, 'show', { kind: '0' });
  await fact(page, `${cardOf('show')}.querySelector('img')?.naturalWidth`, (width) => width === 1);
  await use(page, 'show', { kind: '3' });
  await fact(page, `${cardOf('show')}.querySelector('img')?.complete`, Boolean);
  assert.equal(await page.evaluate('document.title'), 'Talk to a server');
  const stopped = use(page, 'slow');
  await fact(
    page,
    `${cardOf('slow')}?.querySelector('[type=submit]')?.textContent`,
    (text) => text === 'Stop',
  );
  await page.evaluate(`${cardOf('slow')}.querySelector('form').requestSubmit()`);
  assert.match(await stopped, /abort|cancel|stop/i);
  await wireSays(page, /notifications\/cancelled/);
});

// ─── 4. Over HTTP ───────────────────────────────────────────────────────────────────────────────

const add = {
  name: 'add',
  description: 'adds',
  inputSchema: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } } },
  run: ({ a, b }: Json) => `${Number(a) + Number(b)} ☃`,
};

async function ours(more: HttpOptions = {}) {
  const server = new McpServer({ name: 'adder', version: '1', tools: [add] });
  const http = await serveHttp(server, more);
  later(() => http.close());
  return http;
}
const origin = async () => (await site()).slice(0, -1);

test('our server over HTTP lets the page in by its origin, and by a token', options, async () => {
  const page = await playground();
  const { url } = await ours({ origins: [await origin()] });
  await connect(page, url);
  await says(page, /adder speaks 2026-07-28/);
  assert.equal(await use(page, 'add', { a: '2', b: '40' }), '42 ☃');
  const locked = await ours({ token: 'let-me-in' });
  await connect(page, locked.url, 'let-me-in');
  await says(page, /adder speaks/);
  assert.equal(await use(page, 'add', { a: '1', b: '1' }), '2 ☃');
  assertNoErrors(page);
  await connect(page, locked.url, 'wrong');
  await says(page, /HTTP 401|login|token/);
  assert.doesNotMatch(await wireSays(page, /./), /let-me-in/);
});

test(
  'a server that others wrote lets pages in: a session, a sum, a picture, a question',
  options,
  async () => {
    const { server } = await import('../help/third-party.ts'); // it may have to be fetched
    const { command, args } = server('everything', 'streamableHttp');
    const PORT = `${await freePort()}`;
    const child = spawn(command, args, {
      env: { ...process.env, PORT },
      stdio: ['ignore', 2, 'pipe'],
    });
    later(() => child.kill());
    for await (const text of child.stderr!) if (/listening on port/.test(`${text}`)) break;
    const page = await playground();
    await connect(page, `http://127.0.0.1:${PORT}/mcp`);
    await says(page, /speaks 2025-11-25/);
    assert.match(await use(page, 'get-sum', { a: '2', b: '40' }), /\b42\b/);
    await use(page, 'get-tiny-image');
    assert.equal(
      await page.evaluate(`${cardOf('get-tiny-image')}.querySelectorAll('img').length`),
      1,
    );
    const answer = use(page, 'trigger-elicitation-request');
    await fact(page, 'question.open', Boolean);
    await pressInDialog(page, 'Decline');
    assert.match(await answer, /declined/i);
  },
);

type Headers = Record<string, any>;

/** In front of a server: what it hears, and what it answers, with other headers. */
async function inFront(
  url: string,
  change: (headers: Headers) => void,
  refuse: (headers: Headers) => boolean = () => false,
): Promise<string> {
  const server: Server = createServer((asked, response) => {
    const { method, headers } = asked;
    const host = new URL(url).host;
    const isRefused = refuse(headers);
    const passed = nodeRequest(url, { method, headers: { ...headers, host } }, (reply) => {
      const changed: Headers = { ...reply.headers };
      change(changed);
      if (!isRefused) return void reply.pipe(response.writeHead(reply.statusCode!, changed));
      reply.resume();
      delete changed['content-length'];
      response.writeHead(400, changed).end('{"error":"Bad Request: no valid session ID"}');
    });
    response.on('close', () => passed.destroy());
    passed.on('error', () => response.destroy());
    asked.pipe(passed);
  });
  return listening(server);
}

async function listening(server: Server): Promise<string> {
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  later(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
}

test(
  'a server with sessions: with its header exposed it works, without that is said',
  options,
  async () => {
    const page = await playground();
    const { url } = await ours({ origins: [await origin()] });
    const isLater = (headers: Headers) => headers['mcp-method'] !== undefined;
    await connect(page, await inFront(url, () => {}, isLater));
    await says(page, /adder speaks 2025-11-25/);
    assert.equal(await use(page, 'add', { a: '2', b: '2' }), '4 ☃');
    const hide = (headers: Headers) => delete headers['access-control-expose-headers'];
    await connect(page, await inFront(url, hide, isLater));
    await says(page, /Access-Control-Expose-Headers: Mcp-Session-Id/);
  },
);

// ─── 5. What fails ──────────────────────────────────────────────────────────────────────────────

test('no CORS, nobody there, and a redirect are told apart', options, async () => {
  const page = await playground();
  const closed = await ours();
  await connect(page, closed.url);
  await says(page, /is there, and does not let http:\/\/127\.0\.0\.1:\d+ in \(CORS\)/);
  const { url } = closed;
  await closed.close();
  await connect(page, url);
  await says(page, /cannot be reached: no server answers there$/m);
  const moved = await listening(
    createServer(({ headers, method }, response) => {
      const allowed = {
        'access-control-allow-origin': headers.origin,
        'access-control-allow-headers': '*',
      };
      const isAsking = method === 'OPTIONS';
      response.writeHead(isAsking ? 204 : 307, { ...allowed, location: url }).end();
    }),
  );
  await connect(page, moved);
  await says(page, /sends us elsewhere/);
});

/** A site on the web, as far as the browser can tell. */
async function onTheWeb(page: Page): Promise<void> {
  const files = await playgroundFiles();
  await page.send('Fetch.enable', { patterns: [{ urlPattern: 'https://pages.example/*' }] });
  const paused = new Set<string>();
  const serve = setInterval(() => {
    for (const { requestId, request } of page.happened('Fetch.requestPaused')) {
      if (paused.has(requestId)) continue;
      paused.add(requestId);
      const text = files.get(new URL(request.url).pathname.slice(1));
      const body = Buffer.from(text ?? '').toString('base64');
      const responseHeaders = [{ name: 'content-type', value: 'text/html; charset=utf-8' }];
      const responseCode = text === undefined ? 404 : 200;
      page
        .send('Fetch.fulfillRequest', { requestId, responseCode, responseHeaders, body })
        .catch(() => {});
    }
  }, 10);
  later(() => clearInterval(serve));
  await page.goTo('https://pages.example/playground.html');
  await says(page, /Talk to a server/);
}

test(
  'a page on the web: http:// elsewhere is refused before anything is sent',
  options,
  async () => {
    const page = await browse();
    await onTheWeb(page);
    page.events.length = 0;
    await connect(page, 'http://192.168.7.7/mcp');
    await says(page, /came by https may use no http:\/\/ address but those of this machine/);
    const sent = page.happened('Network.requestWillBeSent').map(({ request }) => request.url);
    assert.deepEqual(sent, []);
    await connect(page, 'http://192.168.7.7/mcp', 'a-token');
    await says(page, /holds a secret/);
  },
);

test(
  'a page on the web and a server on this machine: the browser asks the person, and a no is named',
  options,
  async () => {
    const at = await site();
    const { url } = await ours({ origins: [await origin()] });
    const page = await browse(`--ip-address-space-overrides=127.0.0.1:${new URL(at).port}=public`);
    const allow = (setting: string) => {
      const names = ['local-network-access', 'loopback-network'];
      const each = names.map((name) =>
        page.send('Browser.setPermission', {
          permission: { name },
          setting,
          origin: at.slice(0, -1),
        }),
      );
      return Promise.allSettled(each);
    };
    await allow('denied');
    await playground(page);
    await connect(page, url);
    await says(page, /keeps the page from machines near you/);
    await allow('granted');
    await connect(page, url);
    await says(page, /adder speaks/);
  },
);

// ─── 6. As a file ───────────────────────────────────────────────────────────────────────────────

test(
  'opened as a file: servers in the page work, the wire is drawn, and HTTP says how it would',
  options,
  async () => {
    const place = folder();
    for (const [name, text] of await playgroundFiles()) put(join(place, name), text);
    const page = await browser();
    await page.goTo(pathToFileURL(join(place, 'playground.html')).href);
    await says(page, /Talk to a server/);
    await start(page, 'asker, no handshake');
    const answer = await asked(page, QUESTION, () => pressInDialog(page, 'Decline'));
    assert.deepEqual(JSON.parse(answer), { action: 'decline' });
    while (!/server\/discover[^]*question/.test(await page.inFrame('document.body.innerText')));
    const { url } = await ours({ origins: [await origin()] });
    await connect(page, url);
    await says(page, /opened as a file has no address .*npm run site serve/);
  },
);

// ─── 7. Servers that mean harm ──────────────────────────────────────────────────────────────────

test(
  'hostile: HTML in every name, javascript: in links, a thousand fields, an endless list, 5 MB',
  options,
  async () => {
    const many = Object.fromEntries(
      Array.from({ length: 1000 }, (_, n) => [`field ${n}`, { type: 'string' }]),
    );
    const evil = (n: number) => HOSTILE[n % HOSTILE.length]!.slice(0, 5000);
    const heard: string[] = [];
    const answers: Record<string, (params: Json) => object> = {
      initialize: () => ({
        protocolVersion: '2025-11-25',
        capabilities: { tools: {}, resources: {}, prompts: {}, completions: {} },
        serverInfo: { name: evil(0), version: evil(1) },
        instructions: HOSTILE.join('\n'),
      }),
      'tools/list': () => ({
        tools: [
          { name: 'wide', inputSchema: { type: 'object', properties: many } },
          { name: 'big', inputSchema: { type: 'object' } },
          ...HOSTILE.map((text, n) => ({
            name: `t${n} ${text.slice(0, 50)}`,
            title: text,
            description: text,
            inputSchema: {
              type: 'object',
              properties: {
                [text.slice(0, 1000)]: {
                  type: text,
                  title: text,
                  description: text,
                  enum: [text],
                  default: text,
                },
              },
            },
          })),
        ],
      }),
      'tools/call': ({ name }) => ({
        content:
          name === 'big'
            ? [{ type: 'text', text: 'x'.repeat(5 * 2 ** 20) }]
            : HOSTILE.flatMap((text) => [
                { type: 'text', text },
                { type: 'image', data: text, mimeType: 'image/png' },
                { type: 'image', data: text, mimeType: 'image/svg+xml' },
                { type: 'resource_link', uri: `javascript:${SCRIPT}`, name: text },
                { type: 'resource', resource: { uri: text, text } },
              ]),
      }),
      'resources/list': ({ cursor }) => ({
        resources: [{ uri: `javascript:${SCRIPT}//${cursor}`, name: evil(Number(cursor ?? 0)) }],
        nextCursor: `${Number(cursor ?? 0) + 1}`,
      }),
      'resources/templates/list': () => ({ resourceTemplates: [] }),
      'prompts/list': () => ({ prompts: [{ name: evil(5), description: evil(6) }] }),
    };
    const url = await listening(
      createServer((asked, response) => {
        let body = '';
        asked.setEncoding('utf8').on('data', (text) => (body += text));
        asked.on('end', () => {
          const allowed = {
            'access-control-allow-origin': '*',
            'access-control-allow-headers': '*',
          };
          const { id, method = '', params = {} } = body ? JSON.parse(body) : {};
          heard.push(`${asked.method} ${method}`);
          const result = answers[method]?.(params);
          if (id === undefined) return void response.writeHead(202, allowed).end();
          const error = { code: -32601, message: 'not here' };
          response.writeHead(200, { ...allowed, 'content-type': 'application/json' });
          response.end(
            JSON.stringify({ jsonrpc: '2.0', id, ...(result ? { result } : { error }) }),
          );
        });
      }),
    );
    const page = await playground();
    await connect(page, url);
    page.events.length = 0;
    await fact(page, `Boolean(${cardOf('big')})`, Boolean);
    // An endless list ends, with a reason.
    await says(
      page,
      /more than 1000 pages of resources|did not answer all of resources\/list within 15 s/,
    );
    await page.evaluate('document.querySelectorAll(".card").forEach((each) => (each.open = true))');
    await fact(page, `Boolean(${cardOf('wide')}.querySelector('form'))`, Boolean);
    assert.ok(
      (await page.evaluate(`${cardOf('wide')}.querySelectorAll('input, textarea').length`)) < 200,
    );
    assert.match(await use(page, 'big'), /x+…\s+\(5242880 characters/);
    const calls = `for (const form of [...document.querySelectorAll('.card form')].slice(0, 5)) form.requestSubmit()`;
    await page.evaluate(calls);
    await fact(
      page,
      '[...document.querySelectorAll("[type=submit]")].some((each) => each.textContent === "Stop")',
      (value) => !value,
    );
    assert.equal(await page.evaluate('document.title'), 'Talk to a server');
    assert.equal(
      await page.evaluate(
        'document.querySelectorAll("main a, main iframe, main script, main link, main style").length',
      ),
      0,
    );
    const there = page.happened('Network.requestWillBeSent').map(({ request }) => request.url);
    const others = there.filter((each) => each !== url && !each.startsWith('data:'));
    assert.deepEqual(others, [], 'nothing else is loaded');
    const bad = [
      'Page.javascriptDialogOpening',
      'Page.windowOpen',
      'Page.downloadWillBegin',
      'Runtime.exceptionThrown',
    ];
    assert.deepEqual(page.happened(...bad), []);
    await start(page, 'calculator'); // and it is still usable
    assert.equal(await use(page, 'add', { a: '2', b: '40' }), '42');
  },
);

// ─── 8. Workers that end ────────────────────────────────────────────────────────────────────────

const ANSWERING = `
const answer = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n');
process.stdin.on('data', (text) => {
  const { id, method } = JSON.parse(text);
  if (method === 'initialize') answer(id, { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'odd' } });
  if (method === 'tools/list') answer(id, { tools: [{ name: 'end', inputSchema: { type: 'object', properties: {} } }] });
  if (method === 'tools/call') end();
  if (method === 'server/discover') process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: 'no' } }) + '\\n');
});
`;

test(
  'a worker that throws, rejects, exits or loops: the call fails once, and the next server starts',
  options,
  async () => {
    const ends: [string, string, RegExp][] = [
      ['throws', "throw new Error('out of fuel')", /broke down: .*out of fuel/],
      ['rejects', "Promise.reject(new Error('out of fuel'))", /ended with code 1/],
      ['exits', 'process.exit(3)', /ended with code 3/],
      ['loops', 'for (;;);', /abort|stop/],
    ];
    const sources = Object.fromEntries(
      ends.map(([name, code]) => [name, `const end = () => { ${code} };\n${ANSWERING}`]),
    );
    const { server, url } = await serveSite(await playgroundFiles(sources));
    later(() => server.close());
    const page = await browser();
    await page.goTo(`${url}playground.html`);
    await says(page, /Talk to a server/);
    for (const [name, , reason] of ends) {
      await start(page, name);
      const came = use(page, 'end');
      if (name === 'loops') {
        const button = `${cardOf('end')}?.querySelector('[type=submit]')?.textContent`;
        await fact(page, button, (text) => text === 'Stop');
        await page.evaluate(`${cardOf('end')}.querySelector('form').requestSubmit()`);
      }
      assert.match(await came, reason, name);
      await start(page, 'calculator');
      assert.equal(await use(page, 'add', { a: '2', b: '40' }), '42');
    }
  },
);

// ─── How it looks ───────────────────────────────────────────────────────────────────────────────

test(
  'axe finds nothing in the light and in the dark; 390 px wide nothing sticks out',
  options,
  async () => {
    const page = await playground();
    await start(page, 'workbench');
    await fact(page, `Boolean(${cardOf('fail')})`, Boolean);
    await page.evaluate('document.querySelectorAll(".card").forEach((each) => (each.open = true))');
    await use(page, 'show', { kind: '0' });
    for (const scheme of ['light', 'dark']) {
      await screen(page, undefined, scheme);
      const found = (await flaws(page)).filter((each) => !each.includes('#wire')); // has tests of its own
      assert.deepEqual(found, [], scheme);
    }
    await screen(page, 390, 'light');
    assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 390);
    await screen(page);
  },
);
