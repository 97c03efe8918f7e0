// Judges exercise 32: what does the small client make of each line? No process is started: lines go
// in, and what it says and settles is looked at. Behind each check is the id of its exhibit.

import type { Json } from '../../mcp.ts';
import type { Judge } from '../book.ts';

const random = () => Math.random().toString(36).slice(2, 8);
const text = (words: string) => ({ content: [{ type: 'text', text: words }] });

export const judge: Judge = async ({ load, see, expect }) => {
  const { SmallClient } = await load('chapters/32-other-peoples-bugs/small.mjs');

  /** A client with calls that wait under 1, 2, …; `fates` is what has become of each. */
  const waiting = (count = 1) => {
    const said: Json[] = [];
    const client = new SmallClient((message: Json) => {
      see('out', message);
      said.push(message);
    });
    const fates: string[] = Array(count).fill('waits');
    for (let n = 0; n < count; n++) {
      const call: Promise<any> = client.request('tools/call', { name: 'echo' });
      const fail = (error: any) => (fates[n] = `failed: ${error?.message}`);
      call.then((result) => (fates[n] = result?.content?.[0]?.text ?? `${result}`), fail);
    }
    said.length = 0; // our own requests
    const take = (message: unknown) => {
      const line = typeof message === 'string' ? message : JSON.stringify(message);
      see('in', line);
      client.take(line);
    };
    const after = async (...messages: unknown[]) => {
      let crash = '';
      try {
        for (const message of messages) take(message);
      } catch (error) {
        crash = `crashed: ${(error as Error).message}`;
      }
      await new Promise((done) => setTimeout(done, 0));
      return { fates: fates.join(', '), said, crash };
    };
    return { after };
  };
  type Came = { fates: string; said: Json[]; crash: string };
  const fatesAre = (wanted: string) => (came: Came) => came.crash === '' && came.fates === wanted;

  const answer = (id: unknown, words: string) => ({ jsonrpc: '2.0', id, result: text(words) });
  const words = random();

  // ── Answers ──

  await expect(
    'a result settles its call',
    `the call has got "${words}"`,
    waiting().after(answer(1, words)),
    fatesAre(words),
  );
  await expect(
    'each answer settles its own call, in any order',
    'a, b, c, each where it belongs',
    waiting(3).after(answer(3, 'c'), answer(1, 'a'), answer(2, 'b')),
    fatesAre('a, b, c'),
  );
  const strangers: [string, unknown][] = [
    ['1-x', '1-x'],
    ['a text that only looks like our number', '01'],
    ['null', null],
    ['a number of no call', 99],
    ['a list', [1]],
    ['a word that every object knows', 'constructor'],
  ];
  for (const [what, id] of strangers) {
    await expect(
      `wrong-id: an answer under ${what} is no one's`,
      'the call gets its own answer, which comes next',
      waiting().after(answer(id, 'of a stranger'), answer(1, 'its own')),
      fatesAre('its own'),
    );
  }
  await expect(
    'an answer without an id is no one’s',
    'the call gets its own answer, which comes next',
    waiting().after({ jsonrpc: '2.0', result: text('?') }, answer(1, 'its own')),
    fatesAre('its own'),
  );
  await expect(
    'a second answer changes nothing',
    'the first one counts, and nothing is thrown',
    waiting(2).after(answer(1, 'first'), answer(1, 'second'), answer(2, 'next')),
    fatesAre('first, next'),
  );
  await expect(
    'an error fails its call, with the words of the server',
    `failed: ${words}`,
    waiting().after({ jsonrpc: '2.0', id: 1, error: { code: -32000, message: words } }),
    fatesAre(`failed: ${words}`),
  );
  await expect(
    'an error under another id fails no call',
    'the call gets its own answer, which comes next',
    waiting().after(
      { jsonrpc: '2.0', id: 7, error: { code: -32000, message: 'no' } },
      answer(1, 'its own'),
    ),
    fatesAre('its own'),
  );
  await expect(
    'an empty result is a result',
    'the call is settled',
    waiting().after({ jsonrpc: '2.0', id: 1, result: {} }),
    fatesAre('[object Object]'),
  );

  // ── What is no message ──

  const noise: [string, unknown][] = [
    ['a line of text', 'Welcome to the server v1.2'],
    ['half a message', '{"jsonrpc":"2.0","id":1,'],
    ['JSON of a log', { level: 'info', id: 1, result: text('of a log') }],
    ['the revision of 1.0', { jsonrpc: '1.0', id: 1, result: text('old') }],
    ['null', 'null'],
    ['a number', '1'],
    ['a text', '"jsonrpc"'],
  ];
  for (const [what, line] of noise) {
    await expect(
      `banner: ${what} is passed over`,
      'no error, and the call gets its answer, which comes next',
      waiting().after(line, answer(1, words)),
      fatesAre(words),
    );
  }

  // ── What the server says by itself ──

  for (const id of [7, 'museum-1', 0]) {
    const key = JSON.stringify(id);
    await expect(
      `ping: asked under ${key}, it is answered`,
      `{"jsonrpc":"2.0","id":${key},"result":{}}`,
      waiting().after({ jsonrpc: '2.0', id, method: 'ping' }),
      ({ said: [first, ...more] }: Came) =>
        more.length === 0 &&
        first?.jsonrpc === '2.0' &&
        first.id === id &&
        JSON.stringify(first.result) === '{}',
    );
  }
  for (const method of ['roots/list', 'sampling/createMessage', `x/${random()}`]) {
    await expect(
      `asks-roots: ${method.replace(/\/.{6}$/, '/…')} is refused`,
      'one answer, under its id, with the error code -32601 and a message',
      waiting().after({ jsonrpc: '2.0', id: 'q', method, params: {} }),
      ({ said: [first, ...more] }: Came) => {
        const { code, message } = (first?.error ?? {}) as Json;
        const isRefusal = code === -32601 && typeof message === 'string';
        return more.length === 0 && first?.id === 'q' && isRefusal && !('result' in first);
      },
    );
  }
  await expect(
    'same-id: a ping under the id of a call does not settle the call',
    'the ping is answered, and the call gets its own answer',
    waiting().after({ jsonrpc: '2.0', id: 1, method: 'ping' }, answer(1, words)),
    (came: Came) => fatesAre(words)(came) && came.said.length === 1,
  );
  for (const method of ['notifications/message', 'notifications/cancelled', 'weather']) {
    await expect(
      `unknown-notice: ${method} is not answered`,
      'nothing is sent, nothing is settled, and the call gets its answer',
      waiting().after({ jsonrpc: '2.0', method, params: { requestId: 1 } }, answer(1, words)),
      (came: Came) => fatesAre(words)(came) && came.said.length === 0,
    );
  }
};
