// What the model saw, on chapter 30's page in a real Chromium: every request of a long chat, with what its
// parts take of what the model has counted.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { cleanUp } from '../help/basics.ts';
import { chromium, type Page } from '../help/chromium.ts';
import { fiftyPrompts } from '../help/fifty-prompts.ts';
import type { WireName } from '../help/model-server.ts';
import {
  assertQuiet,
  browser,
  flaws,
  HOSTILE,
  lines,
  screen,
  sticksOut,
  viewed,
} from '../help/viewer.ts';

after(cleanUp);

const skip = chromium ? false : 'there is no Chromium here (apt-get install chromium)';
const options = { skip, timeout: 200_000 }; // only ends a hang

type Chat = Awaited<ReturnType<typeof fiftyPrompts>>;
const chats = new Map<WireName, Promise<Chat>>();

/** A chat of fifty prompts on the page. */
async function drawn(wire: WireName) {
  const chat = chats.get(wire) ?? fiftyPrompts(wire);
  chats.set(wire, chat);
  const { text, counts } = await chat;
  const page = await browser();
  const url = viewed(text);
  await page.goTo(url);
  await page.see(/Model ?64/);
  await page.evaluate(`showTab('model')`);
  return { page, url, counts };
}

const pick = (page: Page, n: number) =>
  page.evaluate(`document.querySelectorAll('#list .item')[${n}].click()`);
const beside = (page: Page): Promise<string> => page.evaluate('$("thing").innerText');
const numbersOf = (page: Page, selector: string): Promise<number[]> =>
  page.evaluate(
    `[...document.querySelectorAll('#thing ${selector}')].map((each) => Number(each.textContent.trim().replaceAll(',', '')))`,
  );
const sum = (numbers: number[]) => numbers.reduce((all, each) => all + each, 0);

for (const wire of ['anthropic', 'openai'] as const)
  test(
    `${wire}: each request of fifty prompts is drawn, and its parts are together what the model has counted`,
    options,
    async () => {
      const { page, url, counts } = await drawn(wire);
      for (const [n, { input, cached }] of counts.entries()) {
        await pick(page, n);
        assert.equal(sum(await numbersOf(page, '.shares .size')), input, `request ${n + 1}`);
        assert.equal(sum(await numbersOf(page, '.piece .tokens')), input, `request ${n + 1}`);
        const kept = 'sum(piecesOf(reader.requests[INDEX]).map((each) => each.kept))';
        assert.equal(await page.evaluate(kept.replace('INDEX', `${n}`)), cached);
        assert.match(await beside(page), new RegExp(`had ${cached.toLocaleString('en')} of them`));
      }
      assertQuiet(page, url);
    },
  );

test(
  'what is new since the request before, what is gone, what was left out; and from a row to what the model saw',
  options,
  async () => {
    const { page } = await drawn('anthropic');
    const seen = async (n: number) => (await pick(page, n - 1), beside(page));
    assert.match(await seen(1), /It is the first of its conversation/);
    assert.match(
      await seen(2),
      /The first 15 of its 17 parts are as they were\.\s+\+ answers, prompts: 1?\d\d tokens/,
    );
    const purposes = 'reader.requests.flatMap(({ record }, n) => (record.purpose ? [n + 1] : []))';
    const [summary] = await page.evaluate(purposes);
    assert.match(await seen(summary), /for a summary[^]*the first of its conversation/);
    const after = await seen(summary + 1);
    assert.match(after, /\+ summary, [^]*− [^]*Left out\s+\d+ turns: a summary is in their place/);
    await page.evaluate('showTab("messages"); pick(rows.findLast((row) => row.request).i)');
    await page.evaluate(
      '[...document.querySelectorAll("button")].find((each) => each.textContent === "what the model saw").click()',
    );
    assert.match(await beside(page), /^request 64: /);
    await page.evaluate('document.querySelector(".piece:last-of-type").open = true');
    assert.match(await page.see(/All of it, in order/), /mcp__calculator__add/);
  },
);

/** Two requests: the second names a part of the first. */
const query = (request: object, more: object = {}) => ({ type: 'query', at: 1, request, ...more });

test(
  'what no model has counted is an estimate; a part whose line is missing is told; another program counts again',
  options,
  async () => {
    const page = await browser();
    const records = [
      query({ messages: [{ n: 0, of: 'prompts', size: 30, json: { content: 'Look.' } }, 7] }),
      query({ messages: [{ n: 1, of: 'x', size: -7, json: null }, 0, -1, null, {}] }),
      query({ tools: 'none', messages: [] }, { left: [{ list: 'shelf', of: '', count: -3 }, 5] }),
      query({ messages: [{ n: 0, of: 'prompts', size: 5, json: { content: 'Once more.' } }] }),
    ];
    await page.goTo(viewed(lines([{ trace: 1 }, ...records])));
    await page.see(/Model ?4/);
    await page.evaluate('showTab("model")');
    assert.match(await beside(page), /about 5 tokens[^]*the first of its[^]*Once more\./);
    await pick(page, 2);
    assert.match(await beside(page), /about 0 tokens[^]*Left out\s+0 tools of the agent/);
    await pick(page, 0);
    const first = await beside(page);
    assert.match(first, /about 30 tokens[^]*An estimate[^]*prompts 30 Look\.[^]*missing 0/);
    await pick(page, 1);
    assert.match(await beside(page), /x 0[^]*prompts 30/);
  },
);

test(`${HOSTILE.length} hostile strings in requests stay text`, options, async () => {
  const page = await browser();
  const records = HOSTILE.flatMap((evil, n) => {
    const part = (more: object) => ({ n: evil, of: evil, size: evil, json: evil, ...more });
    const parts = [part({}), part({ json: { role: evil, content: [{ text: evil }, evil] } }), evil];
    const request = { tools: parts, system: parts, messages: parts, [evil]: evil };
    const left = ['shelf', 'budget', 'compaction', evil].map((list) => ({ list, of: evil }));
    const about = { at: n, model: evil, purpose: evil, marked: [evil, 0], left };
    return [
      { type: 'query', request, ...about },
      { type: 'answer', at: n, usage: { input: evil, cached: evil } },
      query({ tools: evil, messages: { [evil]: evil } }),
    ];
  });
  const url = viewed(lines([{ trace: 1 }, ...records]));
  await page.goTo(url);
  await page.see(/Model ?68/);
  const walk = `(async () => {
    showTab('model');
    for (let n = 0; n < document.querySelectorAll('#list .item').length; n++) {
      document.querySelectorAll('#list .item')[n].click();
      for (const each of document.querySelectorAll('#thing details')) each.open = true;
      await new Promise(requestAnimationFrame);
    }
  })()`;
  await page.evaluate(walk);
  assert.equal(await page.evaluate('document.querySelectorAll("script").length'), 3);
  assert.notEqual(await page.evaluate('document.title'), 'owned');
  assertQuiet(page, url);
});

test(
  'axe-core finds nothing in it, light and dark; at 360 pixels nothing sticks out',
  options,
  async () => {
    const { page } = await drawn('openai');
    for (const width of [360, undefined])
      for (const scheme of ['light', 'dark']) {
        await screen(page, width, scheme);
        await page.evaluate(
          'for (const each of document.querySelectorAll(".piece")) each.open = true',
        );
        assert.deepEqual(await flaws(page), [], `${width} ${scheme}`);
        assert.deepEqual(await sticksOut(page), [], `${width} ${scheme}`);
      }
    await screen(page);
  },
);
