// npm run picture: also makes .github/playground.png, the page of chapter 33: a server in it asks something.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { playgroundFiles } from '../../chapters/book/playground.ts';
import { writeSite } from '../../chapters/book/site.ts';
import { browse } from '../help/chromium.ts';
import { cleanUp, folder, root } from '../help/basics.ts';

const place = folder();
writeSite(place, await playgroundFiles());
const page = await browse();
await page.send('Emulation.setDeviceMetricsOverride', {
  width: 1280,
  height: 720,
  deviceScaleFactor: 1,
  mobile: false,
});
await page.goTo(pathToFileURL(join(place, 'playground.html')).href);
await page.see(/Talk to a server/);
const press = (name: string) =>
  page.evaluate(`[...document.querySelectorAll('button')]
    .find((each) => each.textContent === ${JSON.stringify(name)}).click()`);
await press('asker, no handshake');
await page.when(`document.querySelector('.card')`);
await page.evaluate(`document.querySelector('.card').open = true`);
await page.when(`document.querySelector('.card form')`);
await press('Call');
await page.when('question.open');
await page.evaluate('question.querySelector("select").value = "0"');
await page.evaluate(
  'new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))',
);
writeFileSync(join(root, '.github', 'playground.png'), await page.picture());
await cleanUp();
process.exit();
