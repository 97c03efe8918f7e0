// A login through a real browser: Chromium without a window, which we watch and click in by its DevTools protocol.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { assertClean } from '../help/agent-with-gate.ts';
import { strictCalculator, strictIssuer } from '../help/oauth-servers.ts';
import { chromium, desktop } from '../help/chromium.ts';
import { cleanUp } from '../help/basics.ts';
import { place, run, Terminal, userServers, type Place } from '../help/terminal.ts';

afterEach(cleanUp);

const skip = chromium ? false : 'there is no Chromium here (apt-get install chromium)';
const options = { skip, timeout: 120_000 }; // only ends a hang

/** The program at a terminal, up to the page that asks for consent. */
async function begin() {
  const { issuer, log } = await strictIssuer('--consent');
  const url = await strictCalculator(issuer);
  const where = place({}, userServers({ calc: { type: 'http', url } }));
  const { env, page: open } = desktop();
  const terminal = new Terminal(where, ['mcp', 'login', 'calc'], env);
  const page = await open();
  const consent = await page.see(/A program asks for access/);
  return { issuer, log, url, where, terminal, page, consent };
}

function stored({ home }: Place): any[] {
  return JSON.parse(readFileSync(join(home, '.mcp-by-hand', 'logins.json'), 'utf8')).rows;
}

// ─── What its user does ───────────────────────────────────────────────────────────────────────────────────────

/** Words are wrapped to the window: a message in one line again. */
const unwrapped = (text: string) => text.replace(/\n +/g, ' ');

test(
  'allow: the browser says so, the terminal says so, and the tools are there',
  options,
  async () => {
    const { url, log, where, terminal, page, consent } = await begin();
    assert.match(consent, /mcp-by-hand wants to use/);
    for (const words of [url, 'calculator:read', 'offline_access'])
      assert.ok(consent.includes(words), words);
    await terminal.see(/^Your browser was asked to open this address:$/);
    await page.click('#allow');
    assert.equal(
      (await page.see(/logged in/)).trim(),
      'You are logged in. You can close this page.',
    );
    assert.match(await page.address, /^http:\/\/127\.0\.0\.1:\d+\/callback\?code=/);
    assert.equal(await terminal.ended(), 0);
    assert.match(terminal.text, /^calc: you are logged in, 7 tools$/m);
    const [{ tokens }] = stored(where);
    for (const secret of [tokens.access, tokens.refresh])
      assert.ok(!terminal.bytes.includes(secret));
    assert.deepEqual(
      (await log('/token')).map(({ status }) => status),
      [200],
    );

    const listed = await run(where, ['mcp', 'list']);
    assert.match(listed.out, /^calc: connected · .* 7 tools/m);
    const called = await run(where, ['probe', 'calc', '--call', 'add', 'a=2', 'b=40']);
    assert.deepEqual(
      [called.code, /the call worked:\n    42\n/.test(called.out)],
      [0, true],
      called.out,
    );
  },
);

test(
  'deny: the terminal says so, no token is stored, and the server still wants a login',
  options,
  async () => {
    const { where, terminal, page } = await begin();
    await page.click('#deny');
    assert.equal(
      (await page.see(/did not work/)).trim(),
      'It did not work. The terminal says why.',
    );
    assert.equal(await terminal.ended(), 3);
    assert.match(unwrapped(terminal.text), /refused us: .*access_denied: the user said no/);
    assert.deepEqual(
      stored(where).map((row) => row.tokens),
      [undefined],
    ); // they know our name now, and that is all
    assert.match((await run(where, ['mcp', 'list'])).out, /^calc: needs-auth$/m);
  },
);

test(
  'whatever an answer says, no script of it runs; nor of what is not the answer',
  options,
  async () => {
    const { issuer, terminal, page } = await begin();
    const { redirect_uri = '', state = '' } = Object.fromEntries(
      new URL(await page.address).searchParams,
    );
    const scripts = `<script>alert(1);document.title='owned'</script><img src=x onerror="alert(2)"><svg onload=alert(3)>`;
    const evil = `"'></p>${scripts}`;
    const answer = (more: object) =>
      `${redirect_uri}?${new URLSearchParams({ error: 'access_denied', error_description: evil, iss: issuer, ...more })}`;
    const isHarmless = async (words: RegExp) => {
      assert.equal((await page.see(words)).trim().split('\n').length, 1);
      const found = await page.evaluate(
        '[document.title, document.querySelectorAll("script, img, svg").length]',
      );
      assert.deepEqual(found, ['mcp-by-hand', 0]);
    };
    await page.goTo(answer({ state: evil }));
    await isHarmless(/^This is not the answer that we wait for\.$/m);
    await page.goTo(`${redirect_uri}/${encodeURI(evil)}`);
    await isHarmless(/^This is not the answer that we wait for\.$/m);
    await page.goTo(answer({ state }));
    await isHarmless(/^It did not work\. The terminal says why\.$/m);
    assert.deepEqual(page.happened('Page.javascriptDialogOpening'), []);
    const responses = page.happened('Network.responseReceived').map(({ response }) => response);
    const ours = responses.filter((response) => response.url.startsWith(redirect_uri));
    assert.equal(ours.length, 3);
    for (const { headers } of ours) {
      const lower = Object.fromEntries(
        Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
      );
      assert.match(`${lower['content-security-policy']}`, /default-src 'none'/);
      assert.equal(lower['referrer-policy'], 'no-referrer');
    }
    assert.equal(await terminal.ended(), 3);
    assert.match(unwrapped(terminal.text), /refused us: .*access_denied: /);
    assertClean(terminal.text);
  },
);
