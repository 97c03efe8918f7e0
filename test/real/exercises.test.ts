// Exercises of the site, opened as files in a real Chromium: green when solved, red as handed out, and
// refused as in Node when they are wrong. `npm run wrong` tries all of the wrong ones, this every tenth.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, test } from 'node:test';
import { exercisesInPage, IN_PAGE } from '../../chapters/book/site/exercises.ts';
import { cleanUp, later } from '../help/basics.ts';
import { chromium, type Page } from '../help/chromium.ts';
import {
  book,
  oddVerdict,
  openExercise,
  verdictIn,
  wrongOnes,
  type PageTrial,
} from '../help/exercise-page.ts';
import { browser, flaws, screen } from '../help/viewer.ts';

after(cleanUp);

const skip = chromium ? false : 'there is no Chromium here (apt-get install chromium)';
const options = { skip, timeout: 300_000 }; // only ends a hang

async function opened(name: string): Promise<Page> {
  const page = await browser();
  await openExercise(page, name);
  return page;
}

const isJudged = (page: Page) => page.when('/green|red/.test(verdict.dataset.state)');

test('each exercise is red as it is handed out, and green with our lines', options, async () => {
  assert.deepEqual(
    exercisesInPage(book).map(({ name }) => name),
    IN_PAGE,
  );
  for (const name of IN_PAGE) {
    const page = await opened(name);
    const before = await verdictIn(page);
    assert.equal(before.isGreen, false, name);
    assert.match(before.output, new RegExp(`exercise ${name} is not solved yet`));
    assert.equal(await page.evaluate('ours.hidden'), true);
    const { isGreen, output } = await verdictIn(page, await page.evaluate('EXERCISE.ours'));
    assert.ok(isGreen, `${name}: ${output}`);
    assert.match(output, /^✓ /m);
    assert.equal(await page.evaluate('ours.hidden'), false);
  }
});

test(
  'every tenth wrong solution is refused with the words that it has in Node',
  options,
  async () => {
    const some = wrongOnes([]).filter((_, n) => n % 10 === 0);
    assert.ok(some.length > 30);
    const odd: string[] = [];
    let at: PageTrial | undefined;
    for (const trial of some) {
      const { name } = trial.exercise;
      const page = at?.exercise === trial.exercise ? await browser() : await opened(name);
      at = trial;
      const problem = oddVerdict(trial, await verdictIn(page, trial.inside));
      if (problem) odd.push(`${name}, ${trial.mistake}: ${problem}`);
    }
    assert.deepEqual(odd, []);
  },
);

test(
  'a solution reaches no network, nor does the page; it says what it cannot judge',
  options,
  async () => {
    let knocks = 0;
    const server = createServer((_, response) => response.end());
    server.on('connection', () => knocks++);
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    later(() => server.close());
    const to = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    const page = await opened('2');
    const { output } = await verdictIn(
      page,
      `new WebSocket('ws://${to}').onerror = () => {};
    fetch('http://${to}', { mode: 'no-cors' }).catch(() => {});
    importScripts('http://${to}');`,
    );
    assert.match(output, /importScripts/); // it came so far
    assert.equal(knocks, 0);
    const urls = page.happened('Network.requestWillBeSent').map(({ request }) => request.url);
    assert.deepEqual(
      urls.filter((url) => !/^(file|blob):/.test(url)),
      [],
    );
    const note = await page.see(/unchanged/);
    assert.match(note, /does not check types[^]*the command\s+has the last word/);
  },
);

test('a loop without an end is ended, and the page can judge again', options, async () => {
  const page = await opened('2');
  const { isGreen, output } = await verdictIn(page, '    for (;;);');
  assert.equal(isGreen, false);
  assert.match(output, /came: {5}none; for 10 s nothing else has run/);
  assert.match((await verdictIn(page, '    throw new Error("again");')).output, /again/);
});

test('what leaves, cannot be read, or says that all is well is not solved', options, async () => {
  const page = await opened('3');
  const leaves = await verdictIn(page, '    process.exit(0);');
  assert.deepEqual(
    [leaves.isGreen, /left before it was judged/.test(leaves.output)],
    [false, true],
  );
  for (const inside of ['    const = 1;', '    let a; let a;', "    yield 'x'; }}}"]) {
    const { isGreen, output } = await verdictIn(page, inside);
    assert.equal(isGreen, false);
    assert.match(output, /✗ Node can load the program\n {2}expected: no error\n {2}came: .*Error/);
  }
  const lies = "    postMessage({ out: new TextEncoder().encode('all is well'), exit: 0 });";
  assert.equal((await verdictIn(page, lies)).isGreen, false);
});

test(
  'what was written stays, Ctrl-Enter checks, and the beginning can be had again',
  options,
  async () => {
    const page = await opened('4');
    const start = await page.evaluate('yours.value = EXERCISE.start'); // another test was here
    await page.evaluate('yours.focus(), yours.setSelectionRange(0, 0)');
    await page.press('/', '/', ' ', 'm', 'i', 'n', 'e');
    assert.equal(await page.evaluate('yours.value'), `// mine${start}`);
    await page.send('Input.dispatchKeyEvent', {
      type: 'keyDown',
      key: 'Enter',
      windowsVirtualKeyCode: 13,
      modifiers: 2,
    });
    await isJudged(page);
    await opened('4');
    assert.equal(await page.evaluate('yours.value'), `// mine${start}`);
    await page.evaluate('again.click()');
    assert.equal(await page.evaluate('yours.value'), start);
    await page.evaluate('again.click()');
    assert.equal(await page.evaluate('yours.value'), `// mine${start}`);
  },
);

test('it can be read: light, dark, on a telephone', options, async () => {
  const page = await opened('22');
  for (const scheme of ['light', 'dark']) {
    await screen(page, undefined, scheme);
    assert.deepEqual(await flaws(page), [], scheme);
  }
  await screen(page, 390);
  const width = 'document.documentElement.scrollWidth';
  assert.ok((await page.evaluate(width)) <= 390, await page.evaluate(width));
  await screen(page);
});
