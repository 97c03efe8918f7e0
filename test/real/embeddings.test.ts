// An embedding server that somebody else wrote: @copilotkit/aimock, at a pinned version, in a process of its own. Its vectors
// mean nothing, but their number, their length and their order are an independent peer's.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Embeddings } from '../../chapters/29-a-server/embeddings.ts';
import { cleanUp, folder, later, until } from '../helpers.ts';
import { installed } from '../on-demand.ts';

const PACKAGE = '@copilotkit/aimock';
const program = join(installed(`${PACKAGE}@1.43.0`), 'node_modules', PACKAGE, 'dist', 'cli.js');
after(cleanUp);

test('vectors of aimock: one for each text, the same for the same text, in the order of the texts', async () => {
  const file = join(folder(), 'fixtures.json');
  writeFileSync(file, JSON.stringify({ fixtures: [] }));
  const child = spawn(process.execPath, [program, '-p', '0', '-h', '127.0.0.1', '-f', file, '--log-level', 'info']);
  later(() => child.kill());
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text));
  const found = () => /http:\/\/[\w.]+:\d+/.exec(output);
  await until(() => found() || child.exitCode !== null, 'the address of aimock');
  const embeddings = new Embeddings({ url: `${found()![0]}/v1`, model: 'text-embedding-3-small', key: 'any' });
  const { signal } = new AbortController();
  const texts = new Map(Array.from({ length: 40 }, (_, n) => [`key ${n}`, `function number${n}() { return ${n}; }`]));
  await embeddings.learn(texts, signal);
  for (const n of [0, 17, 39]) {
    const question = await embeddings.ofQuestion(texts.get(`key ${n}`)!, signal);
    assert.equal(question.length, 1536);
    const nearest = [...texts.keys()].sort((one, two) => embeddings.nearness(two, question)! - embeddings.nearness(one, question)!);
    assert.equal(nearest[0], `key ${n}`);
    assert.ok(embeddings.nearness(`key ${n}`, question)! > 0.98);
  }
});
