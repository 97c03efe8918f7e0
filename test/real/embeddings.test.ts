// An embedding server that somebody else wrote: @copilotkit/aimock, at a pinned version, in a process of its own. Its vectors
// mean nothing, but their number, their length and their order are an independent peer's.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Embeddings } from '../../chapters/29-a-server/embeddings.ts';
import { startAimock } from '../help/aimock.ts';
import { cleanUp } from '../help/basics.ts';

after(cleanUp);

test('vectors of aimock: one for each text, the same for the same text, in the order of the texts', async () => {
  const embeddings = new Embeddings({
    url: `${await startAimock([])}/v1`,
    model: 'text-embedding-3-small',
    key: 'any',
  });
  const { signal } = new AbortController();
  const texts = new Map(
    Array.from({ length: 40 }, (_, n) => [`key ${n}`, `function number${n}() { return ${n}; }`]),
  );
  await embeddings.learn(texts, signal);
  for (const n of [0, 17, 39]) {
    const question = await embeddings.ofQuestion(texts.get(`key ${n}`)!, signal);
    assert.equal(question.length, 1536);
    const nearest = [...texts.keys()].sort(
      (one, two) => embeddings.nearness(two, question)! - embeddings.nearness(one, question)!,
    );
    assert.equal(nearest[0], `key ${n}`);
    assert.ok(embeddings.nearness(`key ${n}`, question)! > 0.98);
  }
});
