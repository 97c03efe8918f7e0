// The book as a site in a real Chromium, opened from a folder: every page, in the light and in the
// dark, on a telephone and on paper; the wire of a run, the search, how the program grows, and
// slides.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { fencesIn, readBook, spineOf } from '../../chapters/book/pages.ts';
import { read } from '../../chapters/book/files.ts';
import { firstPages } from '../../chapters/book/limits.ts';
import { cut } from '../../chapters/book/program.ts';
import { siteFiles, writeSite } from '../../chapters/book/site.ts';
import { nameOfPage } from '../../chapters/book/site/shelf.ts';
import { cleanUp, folder } from '../help/basics.ts';
import { chromium, type Page } from '../help/chromium.ts';
import { browser, flaws, screen } from '../help/viewer.ts';

after(cleanUp);

const skip = chromium ? false : 'there is no Chromium here (apt-get install chromium)';
const options = { skip, timeout: 600_000 }; // only ends a hang
const book = readBook();
const pages = book.chapters.flatMap((chapter) => chapter.pages);
const OTHERS = [
  'index',
  'project',
  'reference',
  'security',
  'growth',
  'file-mcp.ts',
  'zh-02-framing',
];

let made: Promise<{ place: string; problems: string[] }> | undefined;
/** The whole site in a folder, once for this file. */
function site() {
  made ??= siteFiles(book).then(({ files, problems }) => {
    const place = folder();
    writeSite(place, files);
    return { place, problems };
  });
  return made;
}

async function open(name: string, hash = ''): Promise<Page> {
  const page = await browser();
  await page.goTo('about:blank');
  page.events.length = 0;
  const { place } = await site();
  await page.goTo(`${pathToFileURL(join(place, name)).href}${hash}`);
  await page.when(
    'document.readyState === "complete" && document.querySelector("main h1, .slide")',
  );
  return page;
}

/** No exception, nothing on the console, and nothing loaded but files of this folder. */
async function assertQuiet(page: Page, name: string): Promise<void> {
  const told = page.happened(
    'Runtime.exceptionThrown',
    'Log.entryAdded',
    'Runtime.consoleAPICalled',
  );
  assert.deepEqual(
    told.map(({ entry, exceptionDetails, args }) => entry?.text ?? exceptionDetails ?? args),
    [],
    name,
  );
  const { place } = await site();
  const ours = pathToFileURL(place).href;
  const urls = page.happened('Network.requestWillBeSent').map(({ request }) => request.url);
  const foreign = urls.filter((url) => !url.startsWith(ours) && url !== 'about:blank');
  assert.deepEqual(foreign, [], name);
}

const sticksOut = 'document.documentElement.scrollWidth > document.documentElement.clientWidth';

test('the four checks find nothing', options, async () => {
  assert.deepEqual((await site()).problems, []);
});

test(
  'every page opens from the folder, is quiet, has its blocks to the letter, and fits 390 px',
  options,
  async () => {
    await screen(await browser(), 390);
    try {
      for (const at of pages) {
        const name = nameOfPage(at);
        const page = await open(name);
        await assertQuiet(page, name);
        assert.equal(await page.evaluate(sticksOut), false, `${name} sticks out`);
        const shown = await page.evaluate(
          `[...document.querySelectorAll('main pre > code')].map((each) => each.textContent)`,
        );
        const blocks = fencesIn(read(book.root, at)).filter(
          ({ language }) => language !== 'mermaid',
        );
        assert.deepEqual(
          shown,
          blocks.map(({ body }) => body.join('\n')),
          name,
        );
      }
      for (const name of OTHERS) {
        const page = await open(`${name}.html`);
        await assertQuiet(page, name);
        assert.equal(await page.evaluate(sticksOut), false, `${name} sticks out`);
      }
    } finally {
      await screen(await browser());
    }
  },
);

test('axe finds nothing on any page in the light, nor on some in the dark', options, async () => {
  const seen = new Map<string, string[]>();
  const light = [...pages.map(nameOfPage), ...OTHERS.map((name) => `${name}.html`)];
  // Colours are the same everywhere: these pages have all of them.
  const dark = ['index', '02-framing', '05-death', '17-the-gate', 'growth'].map(
    (name) => `${name}.html`,
  );
  for (const [scheme, names] of [
    ['light', light],
    ['dark', dark],
  ] as const) {
    await screen(await browser(), undefined, scheme);
    for (const name of names) {
      const found = await flaws(await open(name));
      if (found.length > 0) seen.set(`${name} ${scheme}`, found);
    }
  }
  await screen(await browser());
  assert.deepEqual([...seen], []);
});

test(
  'without a script every page is there: text, code, pictures, solutions to unfold',
  options,
  async () => {
    const page = await browser();
    await page.send('Emulation.setScriptExecutionDisabled', { value: true });
    try {
      await open('05-death.html');
      const found = await page.evaluate(`({
      text: document.body.innerText.length,
      drawn: document.querySelectorAll('svg.drawn').length,
      dead: [...document.querySelectorAll('button, #search')].filter((each) => each.offsetParent).length,
    })`);
      assert.ok(found.text > 8000, `${found.text}`);
      assert.equal(found.drawn, 1);
      assert.equal(found.dead, 0, 'what would do nothing is not shown');
    } finally {
      await page.send('Emulation.setScriptExecutionDisabled', { value: false });
    }
  },
);

test(
  'paper has the solutions: every fold is open while it prints, and closed again after it',
  options,
  async () => {
    const page = await open('02-framing.html');
    await page.evaluate(`addEventListener('beforeprint', () => {
    window.printed = document.querySelectorAll('details:not([open])').length;
  })`);
    const sheets = async () => {
      const { data } = await page.send('Page.printToPDF', { preferCSSPageSize: false });
      return Buffer.from(data, 'base64').toString('latin1').split('/Type /Page\n').length - 1;
    };
    const unfolded = await sheets();
    assert.equal(await page.evaluate('window.printed'), 0);
    const folded = `document.querySelectorAll('details:not([open])').length`;
    assert.ok((await page.evaluate(folded)) > 3);
    await page.evaluate(`document.querySelectorAll('details').forEach((each) => each.remove())`);
    assert.ok(unfolded > (await sheets()), 'without its folds it needs less paper');
  },
);

test(
  'the wire of a run plays below its console: the messages of the trace, in the page of chapter 30',
  options,
  async () => {
    const page = await open('04-correlation.html');
    await page.evaluate(`document.querySelector('.wire button').click()`);
    await page.when(`document.querySelector('.wire iframe')`);
    let text = '';
    const isDrawn = () => /tools\/call[^]*tools\/call/.test(text);
    for (const begin = Date.now(); !isDrawn() && Date.now() - begin < 60_000; )
      text = `${await page.inFrame('document.body.innerText').catch(() => '')}`;
    assert.ok(isDrawn(), text);
    assert.match(text, /npm run chapter 4/);
    await assertQuiet(page, 'the wire of chapter 4');
  },
);

test(
  'the search finds "waiter" in chapter 4, and says so when there is nothing',
  options,
  async () => {
    const page = await open('index.html');
    const type = (text: string) =>
      page.evaluate(
        `search.value = ${JSON.stringify(text)}; search.dispatchEvent(new Event('input'))`,
      );
    await type('waiter');
    const links = await page.when(
      `found.querySelector('a') && [...found.querySelectorAll('a')].map((each) => each.getAttribute('href'))`,
    );
    assert.ok(
      links.some((link: string) => link.startsWith('04-correlation')),
      links.join(' '),
    );
    const target = await page.evaluate(`found.querySelector('a').click(), 1`);
    assert.equal(target, 1);
    await page.when(`location.href.includes('#') && document.querySelector(location.hash)`);
    await open('index.html');
    await type('xyzzy-nothing');
    await page.when(`/nothing found/.test(found.innerText)`);
    await assertQuiet(page, 'search');
  },
);

test(
  'the slider shows at each step the program that is cut for it, and marks what is new',
  options,
  async () => {
    const page = await open('growth.html');
    for (const [n, step] of book.steps.entries()) {
      const shown: Record<string, string> = await page.evaluate(`
      step.value = ${n};
      step.dispatchEvent(new Event('input'));
      Object.fromEntries([...document.querySelectorAll('.grows')].map((each) => [
        each.querySelector('h2').textContent,
        [...each.querySelectorAll('code:not([hidden])')].map((line) => line.textContent).join(''),
      ]))`);
      for (const file of spineOf(book))
        assert.equal(shown[file]!.trim(), cut(book, file, step).trim(), `${file} at ${step}`);
      const fresh = await page.evaluate(`document.querySelectorAll('.grows .new').length`);
      assert.match(
        await page.evaluate(`document.querySelector('#step-name').textContent`),
        new RegExp(` ${fresh} of them new$`),
      );
    }
  },
);

test(
  'slides of first pages: none is empty, none is larger than the screen, and the keys lead through them',
  options,
  async () => {
    const page = await browser();
    await page.send('Emulation.setDeviceMetricsOverride', {
      width: 1280,
      height: 720,
      deviceScaleFactor: 1,
      mobile: false,
    });
    const names = book.chapters.flatMap(firstPages).map(nameOfPage);
    for (const name of names) {
      await open(name, '#slides');
      const slides =
        await page.when(`document.querySelector('#bar') && [...document.querySelectorAll('.slide')].map((slide) => {
      document.querySelector('.slide.on')?.classList.remove('on');
      slide.classList.add('on');
      const things = [...slide.querySelectorAll('pre, table, svg, img, li, p, h1, h2, h3')];
      return {
        words: slide.innerText.trim().length,
        size: parseInt(slide.style.getPropertyValue('--size')),
        isHigher: slide.scrollHeight > slide.clientHeight || slide.scrollWidth > slide.clientWidth,
        lowest: Math.max(...things.map((each) => each.getBoundingClientRect().bottom)),
        seen: things.some((each) => each.getBoundingClientRect().height > 5),
      };
    })`);
      assert.ok(slides.length > 8, `${name}: ${slides.length}`);
      for (const [n, slide] of slides.entries()) {
        const which = `${name}, slide ${n + 1}: ${JSON.stringify(slide)}`;
        assert.ok(slide.words > 3 && slide.seen, which);
        assert.ok(!slide.isHigher && slide.lowest <= 720, which);
        assert.ok(slide.size >= 18, which);
      }
      await assertQuiet(page, name);
    }
    await open('02-framing.html', '#slides');
    const bar = () => page.evaluate(`document.querySelector('#bar').textContent.split(' ')[0]`);
    await page.press('ArrowRight', ' ', 'ArrowLeft');
    assert.equal(await bar(), '2');
    await page.press('End', 'Home');
    assert.equal(await bar(), '1');
    await page.press('Escape');
    await page.when(`document.querySelector('nav') && !document.body.classList.contains('slides')`);
    await screen(page);
  },
);

test(
  'the playground opens from the same folder, and a call of a server in it works',
  options,
  async () => {
    const { place } = await site();
    const page = await browser();
    await page.goTo(pathToFileURL(join(place, 'playground.html')).href);
    await page.see(/Talk to a server/);
    await page.evaluate(`document.querySelector('#servers button').click()`);
    await page.see(/speaks 2025-11-25/);
  },
);
