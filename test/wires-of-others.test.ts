// Chapter 32 draws wires beside each other. What it shows is what `npm run museum wire ID` prints.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { root } from './help/basics.ts';

const folder = join(root, 'chapters/32-other-peoples-bugs');
const pages = readdirSync(folder).filter((name) => /^(README|\d.*)\.md$/.test(name));
const drawn = pages.flatMap((name) => [
  ...readFileSync(join(folder, name), 'utf8').matchAll(/^```text ([\w-]+)\n([^]*?)^```$/gm),
]);

test('a dozen stories have the wires that the museum draws', {
  skip: process.platform === 'win32', // groups of processes are not there
}, async () => {
  const { wires } = await import(pathToFileURL(join(root, 'fixtures/museum/wire.mjs')).href);
  assert.ok(drawn.length >= 12);
  const real = await Promise.all(drawn.map(([, id]) => wires(id)));
  for (const [n, [, id, shown]] of drawn.entries()) assert.equal(shown, `${real[n]}\n`, id);
});
