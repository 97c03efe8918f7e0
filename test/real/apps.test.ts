// Chapter 31 in real browsers. First an app that tries everything, in Chromium and in Firefox: what it was told, and what came
// to a listener outside. Then the apps of the official servers from npm.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { Json } from '../../mcp.ts';
import { cleanUp, folder, later, pause, root, until } from '../help/basics.ts';
import { appsWith, fixture } from '../help/apps.ts';
import { ATTACKS, codeOf, codeOfAll, type Targets } from '../help/app-attacks.ts';
import { browse, chromium, desktop, type Page } from '../help/chromium.ts';
import { installed } from '../help/installed.ts';
import { place, Terminal, userServers } from '../help/terminal.ts';
import { lines, viewed } from '../help/viewer.ts';

after(cleanUp);

const skip = chromium ? false : 'there is no Chromium here (apt-get install chromium)';
const options = { skip, timeout: 300_000 }; // only ends a hang

// ─── A listener outside, and a browser ─────────────────────────────────────────────────────────

const reached: string[] = []; // what came there: the first line of it
let sink: Promise<number> | undefined;
/** Everything that reaches it was carried out of a frame. */
function listener(): Promise<number> {
  sink ??= new Promise((done) => {
    const server = createServer((socket) => {
      const noted = reached.push('a connection') - 1;
      socket
        .on('error', () => {})
        .on('data', (data) => {
          reached[noted] = data.toString('latin1').split('\r\n')[0]!;
          socket.end(
            'HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: *\r\nContent-Length: 0\r\nConnection: close\r\n\r\n',
          );
        });
    });
    server.listen(0, '127.0.0.1', () => done((server.address() as AddressInfo).port));
    later(() => server.close());
  });
  return sink;
}

let opened: Promise<Page> | undefined;
function browser(): Promise<Page> {
  opened ??= browse(
    '--host-resolver-rules=MAP *.example 127.0.0.1',
    '--use-fake-ui-for-media-stream',
  );
  return opened;
}

async function targets(ours: string): Promise<Targets> {
  const port = await listener();
  return { outside: `http://outside.example:${port}/`, here: `http://127.0.0.1:${port}/`, ours };
}

/** The hostile app, begun in the browser, with the code that it runs. */
async function attacked(
  code: (at: Targets) => string,
  { declared = {}, answers = [] as any[], inFirefox = false } = {},
) {
  const t = await appsWith([fixture('hostile-app.mjs'), '/dev/null', JSON.stringify(declared)], {
    answers,
  });
  const app = await t.open('show'); // its port has to be known before
  const url = await t.apps.addressOf(app);
  await app.close('for another');
  const again = await t.open('show', { code: code(await targets(`${url.origin}/`)) });
  const logs = () => t.messages('in', 'notifications/message').map(({ params }) => params.data);
  const said = async () => {
    await until(
      () => logs().length > 0,
      `a word of the app; the last was ${JSON.stringify(t.trace.at(-1))}`,
    );
    return logs().at(-1);
  };
  const address = (await t.apps.addressOf(again)).href;
  reached.length = 0;
  if (inFirefox) return { ...t, app: again, said, logs, address, page: undefined as never };
  const page = await browser();
  await page.watch();
  page.events.length = 0;
  await page.goTo(address);
  return { ...t, app: again, said, logs, address, page };
}

const leaks = (tried: Record<string, string>) =>
  Object.entries(tried).filter(([, given]) => !['refused', 'nothing'].includes(given));

// ─── The cases that need a browser ─────────────────────────────────────────────────────────────

for (const attack of ATTACKS)
  test(`Chromium: ${attack.name}`, options, async () => {
    const { said, page } = await attacked((at) => codeOf(attack, at));
    assert.deepEqual(leaks(await said()), []);
    assert.deepEqual(reached, []);
    assert.deepEqual(
      page.happened('Page.javascriptDialogOpening', 'Browser.downloadWillBegin', 'Page.windowOpen'),
      [],
    );
    assert.match(
      await page.address,
      /^http:\/\/127\.0\.0\.1:\d+\/[\da-f]{20}\/$/,
      'our page is still there',
    );
  });

test('the listener would see it: a page without our walls does reach it', options, async () => {
  const page = await browser();
  const port = await listener();
  reached.length = 0;
  const html = `<img src="http://outside.example:${port}/control">`;
  const site = await serve((_, response) =>
    response.writeHead(200, { 'content-type': 'text/html' }).end(html),
  );
  await page.goTo(`http://127.0.0.1:${site}/`);
  await until(() => reached.includes('GET /control HTTP/1.1'));
});

const LEAVING: Record<string, (outside: string) => string> = {
  location: (o) => `location = '${o}l'`,
  form: (o) =>
    `document.body.insertAdjacentHTML('beforeend', '<form action="${o}form"></form>'); document.forms[0].submit()`,
  link: (o) =>
    `document.body.insertAdjacentHTML('beforeend', '<a href="${o}a">x</a>'); document.querySelector('a').click()`,
  'meta refresh': (o) =>
    `document.head.insertAdjacentHTML('beforeend', '<meta http-equiv="refresh" content="0;url=${o}meta">')`,
  'a blank frame': (o) =>
    `const f = document.createElement('iframe'); document.body.append(f); f.contentWindow.location = '${o}blank'`,
  'its own proxy': () => `location = '/'`,
};
for (const [how, code] of Object.entries(LEAVING))
  test(`Chromium: K6: it leaves by ${how}, and gets nowhere`, options, async () => {
    const { said, page } = await attacked(
      ({ outside }) => `setTimeout(() => { ${code(outside)} }, 200)`,
    );
    await said();
    const isRefused = () =>
      page
        .happened('Log.entryAdded')
        .some(({ entry }) => /Content Security Policy/.test(entry.text));
    await until(isRefused, 'the refusal of the browser');
    assert.deepEqual(reached, []);
    await page.see(/close the app/);
  });

test('Chromium: K9: the clipboard is written only where that was declared', options, async () => {
  const code = () => `return new Promise((done) => {
    document.body.onclick = () => navigator.clipboard.writeText('x').then(() => done('written'), () => done('refused'));
    log('ready');
  })`;
  for (const [declared, wanted] of [
    [{}, 'refused'],
    [{ permissions: { clipboardWrite: {} } }, 'written'],
  ] as const) {
    const { logs, page } = await attacked(code, { declared });
    await until(() => logs().includes('ready'));
    await page.click('iframe');
    await until(() => logs().length > 1);
    assert.equal(logs().at(-1), wanted);
  }
});

test(
  'Chromium: K10 K11: words past the proxy, and in its name, are not heard',
  options,
  async () => {
    const { said, trace, person } = await attacked(
      () => `
    const forged = { jsonrpc: '2.0', id: 99, method: 'tools/call', params: { name: 'act' } };
    top.postMessage(forged, '*');
    parent.parent.postMessage(forged, '*');
    for (const method of ['ui/notifications/sandbox-proxy-ready', 'ui/notifications/sandbox-resource-ready', 'ui/notifications/sandbox-x'])
      parent.postMessage({ jsonrpc: '2.0', method, params: { html: 'mine', sandbox: 'allow-same-origin', permissions: 'camera' } }, '*');
    await request('ping');
    return 'said';`,
    );
    assert.equal(await said(), 'said');
    const heard = trace.filter(({ dir }) => dir === 'in').map(({ msg }) => msg.id ?? msg.method);
    assert.deepEqual(heard, [0, 'ui/notifications/initialized', 1, 'notifications/message']);
    assert.deepEqual(person.questions, []);
  },
);

test(
  'Chromium: K17: another site gets neither our page nor the proxy into a frame',
  options,
  async () => {
    const t = await attacked(() => `return 'up'`);
    await t.said();
    const own = new URL(t.address);
    const frames = [
      `http://${own.host}${own.pathname}`,
      `http://${t.app.id}.localhost:${own.port}/`,
      `http://${t.app.id}.localhost:${own.port}/view`,
    ];
    const html = frames.map((url) => `<iframe src="${url}"></iframe>`).join('');
    const site = await serve((_, response) =>
      response.writeHead(200, { 'content-type': 'text/html' }).end(html),
    );
    t.page.events.length = 0;
    await t.page.goTo(`http://other.example:${site}/`);
    const refused = () =>
      t.page
        .happened('Log.entryAdded')
        .filter(({ entry }) => /frame-ancestors|X-Frame-Options/.test(entry.text));
    await until(() => refused().length >= 3, 'three refusals');
  },
);

async function serve(answer: RequestListener): Promise<number> {
  const server = createHttpServer(answer).listen(0, '127.0.0.1');
  later(() => (server.close(), server.closeAllConnections()));
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

test(
  'Chromium: K18: a flood closes the app, a huge message is dropped, an endless loop stops nobody else',
  options,
  async () => {
    const flood = await attacked(
      () =>
        `for (let n = 0; n < 20000; n++) post({ method: 'notifications/message', params: { n } }); return 'flooded'`,
    );
    await flood.page.see(/it has sent too much at once/);
    assert.match(flood.app.ended!, /too much/);
    const huge = await attacked(
      () =>
        `post({ method: 'notifications/message', params: { data: 'x'.repeat(40 * 2 ** 20) } }); const a = {}; a.a = a; post({ method: 'x', params: a }); return 'still here'`,
    );
    assert.equal(await huge.said(), 'still here');
    await huge.page.see(/a message of the app was too long/);
    const loop = await attacked(() => `setTimeout(() => { for (;;); }, 100); return 'looping'`);
    assert.equal(await loop.said(), 'looping');
    await pause(500);
    await loop.page.click('#close');
    await loop.page.see(/closed by the user/);
  },
);

test('Chromium: trap 3: 1,800 messages at once come all, in order', options, async () => {
  const t = await attacked(
    () =>
      `for (let n = 0; n < 900; n++) post({ method: 'notifications/message', params: { n } }); await request('ping'); for (let n = 900; n < 1800; n++) post({ method: 'notifications/message', params: { n } }); return 'done'`,
  );
  await until(() => t.logs().includes('done'));
  const numbers = t.messages('in', 'notifications/message').flatMap(({ params }) => params.n ?? []);
  assert.deepEqual(
    numbers,
    Array.from({ length: 1800 }, (_, n) => n),
  );
});

test(
  'Chromium: K19: WebRTC and preconnect send nothing; without our header they do',
  options,
  async () => {
    const packets: unknown[] = [];
    const udp = createSocket('udp4').on('message', (data) => packets.push(data));
    udp.bind(0, '0.0.0.0');
    later(() => udp.close());
    await once(udp, 'listening');
    const own = ownAddress();
    const code = `const rtc = new RTCPeerConnection({ iceServers: [{ urls: 'stun:${own}:${udp.address().port}' }] });
    rtc.createDataChannel('x');
    const gathered = new Promise((done) => { rtc.onicegatheringstatechange = () => rtc.iceGatheringState === 'complete' && done(); setTimeout(done, 4000); });
    await rtc.setLocalDescription(await rtc.createOffer());
    await gathered;`;
    const connect = (outside: string) =>
      `document.head.append(Object.assign(document.createElement('link'), { rel: 'preconnect', href: '${outside}' }));`;
    const { said } = await attacked(
      ({ outside }) => `${connect(outside)} try { ${code} } catch {} return 'tried'`,
    );
    await said();
    assert.deepEqual([packets.length, reached], [0, []]);
    const port = await listener();
    const bare = await serve((_, response) =>
      response
        .writeHead(200, {
          'content-type': 'text/html',
          'content-security-policy':
            "default-src 'none'; script-src 'unsafe-inline'; sandbox allow-scripts",
        })
        .end(
          `<body><script type=module>${connect(`http://outside.example:${port}/`)} ${code}</script>`,
        ),
    );
    await (await browser()).goTo(`http://127.0.0.1:${bare}/`);
    await until(() => packets.length > 0 && reached.length > 0, 'what a policy does not stop');
  },
);

/** Of this machine, but not loopback: to that WebRTC would not go. */
function ownAddress(): string {
  const words = execFileSync('hostname', ['-I']).toString().trim().split(/\s+/);
  return words.find((word) => /^\d/.test(word)) ?? '127.0.0.1';
}

test(
  'Chromium: K20 K21: it can take the focus, and there is nothing to be gained: no field, and no button that agrees',
  options,
  async () => {
    const { said, page } = await attacked(
      () =>
        `document.body.insertAdjacentHTML('beforeend', '<input id=i>'); document.getElementById('i').focus(); return document.hasFocus()`,
    );
    assert.equal(await said(), true, 'if this is false one day, the page need not be so careful');
    const made = `[...document.querySelectorAll('input, textarea, select, button, a')].map(({ id }) => id).join()`;
    assert.equal(await page.evaluate(made), 'close,answer');
  },
);

test(
  'Chromium: traps 4, 5: loaded again the app begins anew with the same key; a second window takes it',
  options,
  async () => {
    const t = await attacked(() => `return 'begun'`);
    await t.said();
    const begun = () => t.messages('in', 'ui/initialize').length;
    await t.page.send('Page.reload');
    await until(
      () => begun() === 2 && t.messages('out', 'ui/notifications/tool-result').length === 2,
    );
    const { targetId } = await t.page.send('Target.createTarget', {
      url: (await t.apps.addressOf(t.app)).href,
    });
    await t.page.see(/it is open in another window now/);
    await until(() => begun() === 3);
    await t.page.send('Target.closeTarget', { targetId });
  },
);

test(
  'Chromium: traps 7, 8: a form calls its handler and goes nowhere; a link within, pushState and document.open do not end it',
  options,
  async () => {
    const t = await attacked(
      () => `
    document.body.insertAdjacentHTML('beforeend', '<form><button>x</button></form><a href="#there">y</a>');
    const submitted = new Promise((done) => (document.forms[0].onsubmit = (event) => (event.preventDefault(), done('submitted'))));
    document.querySelector('form button').click();
    document.querySelector('a').click();
    history.pushState({}, '', '#pushed');
    return [await submitted, location.hash];`,
    );
    assert.deepEqual(await t.said(), ['submitted', '#pushed']);
    const again = await attacked(
      () =>
        `const say = log; document.open(); document.write('<p>written</p>'); document.close(); return 'rewritten'`,
    );
    assert.equal(await again.said(), 'rewritten');
    assert.equal(again.messages('in', 'ui/initialize').length, 1);
  },
);

test(
  'Chromium: traps 10, 15: it grows to what it says, and no further; a dark theme is told as it changes',
  options,
  async () => {
    const t = await attacked(
      () => `
    const size = (height) => post({ method: 'ui/notifications/size-changed', params: { width: 9999, height } });
    size(700); size(1e9); size(640); log('sized');
    return new Promise((done) => addEventListener('message', ({ data }) => data.method?.includes('host-context') && done(data.params)));`,
    );
    await until(() => t.logs().includes('sized'));
    await t.page.when(`document.querySelector('iframe').style.height === '642px'`);
    assert.ok(
      (await t.page.evaluate(`document.documentElement.scrollWidth <= innerWidth`)) === true,
    );
    await t.page.send('Emulation.setEmulatedMedia', {
      features: [{ name: 'prefers-color-scheme', value: 'dark' }],
    });
    await until(() => t.logs().length > 1);
    assert.equal(t.logs().at(-1).theme, 'dark');
    await t.page.send('Emulation.setEmulatedMedia', { features: [] });
  },
);

// ─── In Firefox ────────────────────────────────────────────────────────────────────────────────

const firefox = ['firefox-esr', 'firefox']
  .flatMap((name) => (process.env.PATH ?? '').split(':').map((each) => join(each, name)))
  .find((path) => existsSync(path));
const inFirefox = {
  skip: firefox ? false : 'there is no Firefox here (apt-get install firefox-esr)',
  timeout: 300_000,
};

/** Another browser, without a window, at this address. It ends with `cleanUp`. */
function browseWithFirefox(url: string): void {
  const profile = folder();
  const settings = {
    'network.dns.localDomains': 'outside.example', // it leads to this machine
    'datareporting.policy.dataSubmissionEnabled': false,
    'network.captive-portal-service.enabled': false,
    'browser.shell.checkDefaultBrowser': false,
    'toolkit.cosmeticAnimations.enabled': false,
  };
  const lines = Object.entries(settings).map(
    ([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});`,
  );
  writeFileSync(join(profile, 'user.js'), lines.join('\n'));
  const args = ['--headless', '--no-remote', '--profile', profile, url];
  const child = spawn(firefox!, args, {
    stdio: 'ignore',
    detached: true,
    env: { ...process.env, HOME: profile },
  });
  later(async () => {
    const over = once(child, 'exit');
    process.kill(-child.pid!, 'SIGKILL');
    await over;
  });
}

test(
  'Firefox: K1 K2 K3 K4 K5 K7 K8: all of it in one app; what is asked past the walls reaches nobody',
  inFirefox,
  async () => {
    const { said, address, trace } = await attacked(codeOfAll, { inFirefox: true });
    browseWithFirefox(address);
    await until(() => trace.length > 1, 'a browser that has started').catch(() => {});
    const found: Record<string, Record<string, string>> = await said();
    for (const { name } of ATTACKS) assert.deepEqual(leaks(found[name]!), [], name);
    assert.deepEqual(reached, []);
  },
);

test(
  'Firefox: K6 K10 K11 K18: it leaves for nowhere; words past the proxy are not heard; a flood closes it',
  inFirefox,
  async () => {
    const forged = await attacked(
      () => `top.postMessage({ jsonrpc: '2.0', id: 99, method: 'tools/call', params: { name: 'act' } }, '*');
    parent.postMessage({ jsonrpc: '2.0', method: 'ui/notifications/sandbox-proxy-ready', params: {} }, '*');
    await request('ping');
    return 'said'`,
      { inFirefox: true },
    );
    browseWithFirefox(forged.address);
    assert.equal(await forged.said(), 'said');
    const heard = forged.trace
      .filter(({ dir }) => dir === 'in')
      .map(({ msg }) => msg.id ?? msg.method);
    assert.deepEqual(heard, [0, 'ui/notifications/initialized', 1, 'notifications/message']);
    const gone = await attacked(
      ({ outside }) =>
        `addEventListener('pagehide', () => log('left')); setTimeout(() => { location = '${outside}l'; }, 200)`,
      { inFirefox: true },
    );
    browseWithFirefox(gone.address);
    await gone.said();
    const flood = await attacked(
      () =>
        `for (let n = 0; n < 20000; n++) post({ method: 'notifications/message', params: { n } }); return 'flooded'`,
      { inFirefox: true },
    );
    browseWithFirefox(flood.address);
    await until(() => flood.app.ended, 'the end of the app');
    assert.match(flood.app.ended!, /too much/);
    assert.deepEqual(reached, []);
  },
);

// ─── The official servers ──────────────────────────────────────────────────────────────────────

const VERSION: Record<string, string> = { pdf: '2.0.4' };
const SHADER = 'void mainImage(out vec4 c, in vec2 p) { c = vec4(p / iResolution.xy, 0.5, 1.0); }';
const TUNE = 'X:1\nT:Needle\nK:C\nCDEF GABc|';
/** What is called, and what is to be seen then: words in its frame, or a picture of more than a few colours. */
const SHOWN: Record<string, [tool: string, args: object, words: RegExp | 'a picture']> = {
  'basic-vanillajs': ['get-time', {}, /Server Time:\s+20\d\d-/],
  'basic-react': ['get-time', {}, /Server Time:\s+20\d\d-/],
  'basic-preact': ['get-time', {}, /Server Time:\s+20\d\d-/],
  'basic-solid': ['get-time', {}, /Server Time:\s+20\d\d-/],
  'basic-svelte': ['get-time', {}, /Server Time:\s+20\d\d-/],
  'basic-vue': ['get-time', {}, /Server Time:\s+20\d\d-/],
  threejs: ['show_threejs_scene', {}, 'a picture'],
  shadertoy: ['render-shadertoy', { fragmentShader: SHADER }, 'a picture'],
  'cohort-heatmap': ['get-cohort-data', {}, /Cohort Retention[^]*M11[^]*100/],
  'customer-segmentation': ['get-customer-data', {}, /Enterprise\s+\(\d+\)/],
  'budget-allocator': ['get-budget-data', {}, /Allocated: \$100,000/],
  'scenario-modeler': ['get-scenario-data', {}, /Total Revenue/],
  'sheet-music': ['play-sheet-music', { abcNotation: TUNE }, /Needle/],
  transcript: ['transcribe', {}, /Your speech will appear here/],
  'wiki-explorer': [
    'get-first-degree-links',
    { url: 'https://en.wikipedia.org/wiki/Needle' },
    'a picture',
  ],
};

function official(name: string, ...args: string[]): string[] {
  const home = installed(`@modelcontextprotocol/server-${name}@${VERSION[name] ?? '2.0.3'}`);
  const file = join(
    home,
    'node_modules',
    '@modelcontextprotocol',
    `server-${name}`,
    'dist',
    'index.js',
  );
  return [file, '--stdio', ...args];
}

/** Yes to all of its questions. */
const yes = ({ prompt }: { prompt: string }) =>
  /Send it/.test(prompt) ? 's' : /Open it/.test(prompt) ? 'y' : 'w';

async function shown(name: string, tool: string, args: object, ...files: string[]) {
  const t = await appsWith(official(name, ...files), { answers: Array(100).fill(yes), name });
  const app = await t.open(tool, args as Json);
  const page = await browser();
  await page.watch();
  page.events.length = 0;
  const size = { width: 1000, height: 760, deviceScaleFactor: 1, mobile: false };
  await page.send('Emulation.setDeviceMetricsOverride', size);
  await page.goTo((await t.apps.addressOf(app)).href);
  await until(
    () => t.messages('out', 'ui/notifications/tool-result').length > 0,
    `${name} to be ready`,
  );
  const view = (expression: string) => page.inFrameAt('/view', expression);
  const sees = async (words: RegExp) => {
    for (const begin = Date.now(); ; await pause(100)) {
      const text = `${await view('document.body.innerText + [...document.querySelectorAll("svg text")].map((each) => each.textContent).join(" ")')}`;
      if (words.test(text)) return text;
      if (Date.now() - begin > 30_000)
        throw new Error(`waited 30 s in vain for ${words} in ${text}`);
    }
  };
  return { ...t, app, page, view, sees };
}

/** For whoever wants to look: APPS_PICTURES=folder npm run test:real */
async function keepPicture(page: Page, name: string): Promise<void> {
  const { APPS_PICTURES: where } = process.env;
  if (!where) return;
  mkdirSync(where, { recursive: true });
  writeFileSync(join(where, `${name}.png`), await page.picture());
}

/** A canvas or a drawing that is not of one colour: what the browser has painted, in small. */
const PAINTED = `(async () => {
  await new Promise(requestAnimationFrame);
  const canvas = document.querySelector('canvas');
  if (!canvas) return document.querySelectorAll('svg *').length;
  const small = Object.assign(document.createElement('canvas'), { width: 32, height: 32 });
  await new Promise(requestAnimationFrame);
  const pen = small.getContext('2d');
  pen.drawImage(canvas, 0, 0, 32, 32);
  return new Set(new Uint32Array(pen.getImageData(0, 0, 32, 32).data.buffer)).size;
})()`;

for (const [name, [tool, args, words]] of Object.entries(SHOWN))
  test(`the app of ${name} shows what it should`, options, async () => {
    const { page, app, sees, view, person, trace } = await shown(name, tool, args);
    if (words instanceof RegExp) await sees(words);
    else
      for (const begin = Date.now(); !((await view(PAINTED)) > 2); await pause(100))
        if (Date.now() - begin > 30_000) throw new Error(`${name} has painted nothing`);
    const height = await page.evaluate(`document.querySelector('iframe').offsetHeight`);
    assert.ok(height > 50 && height <= 4002, `${height} pixels`);
    if (name === 'transcript') {
      await view(
        `[...document.querySelectorAll('button')].find((each) => /Start/.test(each.innerText)).click()`,
      );
      await sees(/denied|not|error|failed|allow|Start/i); // the microphone is not given
    }
    await keepPicture(page, name);
    await app.close('seen');
    assert.ok(trace.some(({ msg }) => msg?.method === 'ui/resource-teardown'));
    assert.ok(person.questions.length < 3);
  });

test('the app of debug: every button', options, async () => {
  const { view, messages, person, prompts, app, page, sees } = await shown(
    'debug',
    'debug-tool',
    {},
  );
  await sees(/ontoolresult/);
  const names: string[] = await view(
    `[...document.querySelectorAll('button')].map(({ id }) => id)`,
  );
  assert.equal(names.length, 19);
  const answered = () =>
    messages('out').filter(({ id, method }) => id !== undefined && !method).length;
  const asked = () => messages('in').filter(({ id, method }) => id !== undefined && method).length;
  for (const id of names) {
    await view(`document.getElementById('${id}').click()`);
    await pause(100);
    await until(() => asked() === answered(), `answers to ${id}`);
  }
  await until(() => messages('in', 'ui/open-link').length === 1);
  const errors = messages('out').flatMap(({ error }) => error?.message ?? []);
  assert.deepEqual(
    errors,
    ['only text can be sent', 'only text can be told'],
    'pictures were not declared',
  );
  assert.deepEqual(
    prompts.map(([text]) => text.split('\n').at(-1)),
    ['Hello from debug app!'],
  );
  assert.deepEqual(
    person.opened.map(({ href }) => href),
    ['https://modelcontextprotocol.io/'],
  );
  assert.match(app.context, /debugState/);
  const levels = messages('in', 'notifications/message').map(({ params }) => params.level);
  assert.deepEqual(levels, ['debug', 'info', 'warning', 'error']);
  const modes = messages('in', 'ui/request-display-mode').map(({ params }) => params.mode);
  assert.deepEqual(modes, ['inline', 'fullscreen', 'pip']);
  await keepPicture(page, 'debug');
});

test(
  'the app of system-monitor polls a tool for apps alone, and the user is asked once',
  options,
  async () => {
    const { messages, person, page, sees } = await shown('system-monitor', 'get-system-info', {});
    await sees(/CPU USAGE/i);
    await until(() => messages('in', 'tools/call').length >= 3, 'three polls');
    assert.deepEqual(
      person.questions.map(({ prompt }) => prompt.slice(0, 9)),
      ['Allow it?'],
    );
    await keepPicture(page, 'system-monitor');
  },
);

test(
  'the app of pdf: the model reads through the viewer while the viewer polls',
  options,
  async () => {
    const file = join(folder(), 'needle.pdf');
    writeFileSync(file, pdfOf('needle one', 'needle two', 'needle three'));
    const { call, messages, page, view, app } = await shown(
      'pdf',
      'display_pdf',
      { url: file },
      file,
    );
    await until(() =>
      messages('in', 'tools/call').some(({ params }) => params.name === 'poll_pdf_commands'),
    );
    const { _meta } = messages('out', 'ui/notifications/tool-result')[0].params;
    const { viewUUID } = _meta;
    const intervals = [{ start: 1, end: 3 }];
    const { text } = await call('interact', { viewUUID, action: 'get_text', intervals });
    assert.match(text, /needle one[^]*needle two[^]*needle three/);
    await until(() => /needle\.pdf/.test(app.context), 'the page that is open, for the model');
    assert.ok((await view('document.querySelectorAll("canvas").length')) > 0);
    await keepPicture(page, 'pdf');
  },
);

test(
  'our own app (chapter 29) in our own host: a result is opened, the gate asks, the model hears of it',
  options,
  async () => {
    const files = folder();
    writeFileSync(join(files, 'a.ts'), 'one\ntwo\nneedle\nfour\n');
    const code = [...process.execArgv, join(root, 'chapters/29-a-server/code/code.ts'), files];
    const t = await appsWith(code, { answers: ['w'], name: 'code' });
    const app = await t.open('search_code', { query: 'needle' });
    const page = await browser();
    await page.watch();
    page.events.length = 0;
    await page.goTo((await t.apps.addressOf(app)).href);
    await until(() => t.messages('out', 'ui/notifications/tool-result').length > 0);
    const view = (expression: string) => page.inFrameAt('/view', expression);
    for (
      const begin = Date.now();
      !(await view(`/1 found/.test(document.body.innerText)`));
      await pause(100)
    )
      if (Date.now() - begin > 30_000) throw new Error('nothing was found');
    await view(`document.querySelector('summary').click()`);
    await until(() => app.context !== '', 'what the model should know');
    assert.match(await view('document.body.innerText'), /one[^]*needle[^]*four/);
    assert.match(t.person.questions[0]!.text, /wants to call the tool "read_file"/);
    assert.match(app.context, /opened a\.ts, line 3/);
  },
);

/** The smallest that has pages of text. */
function pdfOf(...pages: string[]): string {
  const objects = ['<< /Type /Catalog /Pages 2 0 R >>', ''];
  const kids: string[] = [];
  const font = '<< /Font << /F << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >>';
  for (const text of pages) {
    const stream = `BT /F 24 Tf 72 720 Td (${text}) Tj ET`;
    objects.push(`<< /Length ${stream.length} >>\nstream\n${stream}\nendstream`);
    objects.push(
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources ${font} /Contents ${objects.length} 0 R >>`,
    );
    kids.push(`${objects.length} 0 R`);
  }
  objects[1] = `<< /Type /Pages /Kids [${kids.join(' ')}] /Count ${kids.length} >>`;
  let file = '%PDF-1.4\n';
  const places = objects.map((object, n) => {
    const at = file.length;
    file += `${n + 1} 0 obj\n${object}\nendobj\n`;
    return `${String(at).padStart(10, '0')} 00000 n \n`;
  });
  const at = file.length;
  return `${file}xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${places.join('')}trailer\n<< /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${at}\n%%EOF\n`;
}

// ─── In the program ────────────────────────────────────────────────────────────────────────────

test(
  'in a chat: a dim line, a question while the prompt waits, answered on a page where no app is',
  options,
  async () => {
    const servers = { hostile: { command: process.execPath, args: [fixture('hostile-app.mjs')] } };
    const where = place({}, userServers(servers));
    const desk = desktop();
    const terminal = new Terminal(where, ['--no-color'], { ...desk.env, HOME: where.home });
    await terminal.ready();
    const code = `return (await request('tools/call', { name: 'act', arguments: { n: 7 } })).content[0].text`;
    terminal.enter(`call mcp__hostile__show ${JSON.stringify({ code })}`);
    await terminal.see('Allow it?');
    terminal.enter('y');
    await terminal.see(/app: http:\/\/127\.0\.0\.1:\d+/);
    await terminal.ready();
    terminal.enter('/apps 1');
    const page = await desk.page();
    await page.see(
      /The app "show" of the MCP server "hostile" wants to call the tool "act"[^]*n: 7/,
    );
    await terminal.see('waits for you');
    await page.click('#answer');
    const tabs = async () => (await page.send('Target.getTargets')).targetInfos;
    const isAnswerPage = ({ type, url, title }: any) =>
      type === 'page' && /\/[\da-f]{32}\/$/.test(url) && title;
    let tab: any;
    await until(() => {
      void tabs().then((all) => (tab = all.find(isAnswerPage)));
      return tab;
    }, 'the other page');
    const { sessionId } = await page.send('Target.attachToTarget', {
      targetId: tab.targetId,
      flatten: true,
    });
    const there = async (expression: string) =>
      (await page.send('Runtime.evaluate', { expression, returnByValue: true }, sessionId)).result
        .value;
    for (
      const begin = Date.now();
      !(await there(`/wants to call the tool "act"/.test(document.body.innerText)`));
      await pause(100)
    )
      if (Date.now() - begin > 30_000) throw new Error('the question is not on the other page');
    assert.equal(await there('document.querySelectorAll("iframe").length'), 0);
    await pause(700); // its buttons do nothing at first
    await there(
      `[...document.querySelectorAll('#questions button')].find((each) => /while this app/.test(each.textContent)).click()`,
    );
    await terminal.see('answered on the page');
    await page.when(`document.getElementById('question').hidden`);
    await terminal.ready();
    terminal.enter('/apps close 1');
    await page.see(/closed by the user/);
  },
);

test(
  'the command `app`: calls the tool, opens its app, shows every message, and says goodbye at Ctrl-C',
  options,
  async () => {
    const where = place({}, {});
    const desk = desktop();
    const server = [process.execPath, fixture('hostile-app.mjs')];
    const code = `return (await request('tools/call', { name: 'act', arguments: { n: 7 } })).content[0].text`;
    const args = [
      'app',
      '--no-check',
      '--no-color',
      'show',
      JSON.stringify({ code }),
      '--',
      ...server,
    ];
    const terminal = new Terminal(where, args, { ...desk.env, HOME: where.home });
    await desk.page();
    await terminal.see('Allow it?');
    terminal.enter('y');
    await terminal.see(/"data":"act\s+was\s+called"/);
    terminal.press('\u0003');
    assert.equal(await terminal.ended(), 0);
    await terminal.see('ui/resource-teardown');
  },
);

test(
  'the page of chapter 30 draws an app as a party of its own, whose requests we answer',
  options,
  async () => {
    const t = await attacked(() => `return 'begun'`);
    await t.said();
    const at = t.trace.map((record, n) => ({ at: n, ...record }));
    await t.page.goTo(viewed(lines([{ trace: 1 }, ...at])));
    await t.page.see(/app show of server[^]*ui\/initialize[^]*answer[^]*tool-result/);
    const flaws = await t.page.evaluate(`rows.filter(({ look }) => look === 'bad').length`);
    assert.equal(flaws, 0);
  },
);
