// Judges exercise 3: does whatever a server says reach the right drawer, and never break anything?

import { randomBytes, randomInt } from 'node:crypto';
import type { Judge } from '../book.ts';

const word = () => `w${randomBytes(4).toString('hex')}`; // nothing here is known before

export const judge: Judge = async ({ load, see, expect }) => {
  const { McpConnection, excerpt } = await load('mcp.ts');
  /** A connection whose server is here: `say` is what it writes. Tells which kinds of warnings there are, and all that was said. */
  const open = async () => {
    let say!: (message: unknown) => void;
    const said: string[] = [];
    const sent: unknown[] = [];
    const transport = {
      start: async (events: any) => void (say = events.message),
      send: async (message: unknown) => void sent.push(message),
      close: async () => {},
    };
    const options = {
      transports: { here: () => transport },
      onWire: see,
      onWarning: (warning: string) => said.push(warning),
    };
    const connection = new McpConnection('demo', { type: 'here' }, options);
    await connection.connect();
    const after = async (...messages: unknown[]) => {
      try {
        messages.forEach((message) => say(message));
      } catch (error) {
        return `it threw ${error}`;
      }
      return [...connection.warnings.keys()];
    };
    return { after, said, sent };
  };
  const warningsAfter = async (...messages: unknown[]) => (await open()).after(...messages);
  const is =
    (...wanted: string[]) =>
    (came: unknown) =>
      Array.isArray(came) && `${came}` === `${wanted}`;

  await expect(
    'text is noise',
    'one warning, of the kind "noise"',
    warningsAfter(`Welcome to ${word()}!`),
    is('noise'),
  );
  const noises: unknown[] = [
    null,
    randomInt(1e6),
    true,
    [1],
    {},
    { toString: null },
    { level: 'info', msg: 'up' },
  ];
  noises.push(JSON.stringify({ jsonrpc: '2.0', id: 1, result: {} }), '', false, { constructor: 1 });
  for (const value of noises)
    await expect(
      `${JSON.stringify(value)} is noise`,
      'one warning, of the kind "noise", and no exception',
      warningsAfter(value),
      is('noise'),
    );
  await expect(
    'a question without jsonrpc is noise, too',
    'one warning, of the kind "noise"',
    warningsAfter({ id: 1, method: 'GET', path: '/' }),
    is('noise'),
  );
  const inherited = JSON.parse('{"__proto__":{"jsonrpc":"2.0","method":"ping"}}');
  await expect(
    'what only looks as if it were inherited is noise',
    'one warning, of the kind "noise", for {"__proto__":{"jsonrpc":"2.0","method":"ping"}}',
    warningsAfter(inherited),
    is('noise'),
  );
  const answer = { jsonrpc: '2.0', id: 7 + randomInt(1e6), result: {} };
  await expect(
    'an answer is a stray, because no call waits for it',
    'one warning, of the kind "stray"',
    warningsAfter(answer),
    is('stray'),
  );
  await expect(
    'a notification gives no warning',
    'no warning',
    warningsAfter({ jsonrpc: '2.0', method: `notifications/${word()}` }),
    is(),
  );
  await expect(
    'nor does a request, though its id could be one of ours',
    'no warning',
    warningsAfter(
      { jsonrpc: '2.0', id: 1, method: 'ping' },
      { jsonrpc: '2.0', id: 2, method: word(), result: {} },
      { jsonrpc: '2.0', id: 3, method: word(), hasOwnProperty: 1, toString: 2, constructor: null },
    ),
    is(),
  );
  await expect(
    'another version of JSON-RPC is noise',
    'one warning, of the kind "noise"',
    warningsAfter({ ...answer, jsonrpc: '1.0' }),
    is('noise'),
  );
  await expect(
    'a question of another version is noise, too',
    'one warning, of the kind "noise"',
    warningsAfter({ jsonrpc: '1.0', id: 1, method: 'ping' }),
    is('noise'),
  );
  for (const jsonrpc of [2, ['2.0'], '2.0 ', { toString: null }])
    await expect(
      `"jsonrpc": ${JSON.stringify(jsonrpc)} is noise, too: only the text "2.0" counts`,
      'one warning, of the kind "noise", and no exception',
      warningsAfter({ ...answer, jsonrpc }, { jsonrpc, method: 'notifications/hello' }),
      is('noise'),
    );
  await expect(
    'an answer with an error is a stray, too',
    'one warning, of the kind "stray"',
    warningsAfter({ jsonrpc: '2.0', id: 7, error: { code: 1, message: 'no' } }),
    is('stray'),
  );
  await expect(
    'a message with neither id nor method is a stray',
    'one warning, of the kind "stray"',
    warningsAfter({ jsonrpc: '2.0' }),
    is('stray'),
  );
  await expect(
    'a method that is not a string is no method',
    'one warning, of the kind "stray"',
    warningsAfter({ jsonrpc: '2.0', id: 1, method: 7 }),
    is('stray'),
  );
  for (const method of [null, ['ping'], { toString: null }])
    await expect(
      `nor is ${JSON.stringify(method)}`,
      'one warning, of the kind "stray", and no exception',
      warningsAfter({ jsonrpc: '2.0', id: 1, method }),
      is('stray'),
    );
  await expect(
    'a method that is an empty string is one',
    'no warning',
    warningsAfter({ jsonrpc: '2.0', method: '' }, { jsonrpc: '2.0', id: 1, method: '' }),
    is(),
  );
  for (const id of [{ toString: null }, null, [1], true])
    await expect(
      `an answer whose id is ${JSON.stringify(id)} is a stray`,
      'one warning, of the kind "stray", and no exception',
      warningsAfter({ ...answer, id }),
      is('stray'),
    );
  await expect(
    'a request whose id is 0 or a text is a request',
    'no warning',
    warningsAfter(
      { jsonrpc: '2.0', id: 0, method: 'ping' },
      { jsonrpc: '2.0', id: 'a', method: 'ping' },
    ),
    is(),
  );
  const told = await open();
  await expect(
    'a notification, noise and a stray are not answered',
    'nothing is sent',
    told
      .after({ jsonrpc: '2.0', method: 'notifications/hello' }, 'noise', answer)
      .then(() => told.sent),
    is(),
  );

  const both = await open();
  await expect(
    'each kind is said once',
    'two warnings, of the kinds "noise" and "stray"',
    both.after('a', answer, 'b', answer, null).then(() => both.said),
    (came) => came?.length === 2 && both.said.length === 2,
  );
  await expect(
    'a warning names the server, and shows what came',
    'both have "demo" in them; the first the text "a" in quotes, the second the answer as JSON, with its id',
    both.said,
    ([noise, stray]) =>
      /"demo".*"a"/.test(noise) && /"demo"/.test(stray) && stray.includes(`"id":${answer.id}`),
  );
  const logs = await open();
  await expect(
    'noise is shown as JSON, too',
    'a warning with {"level":"info"} in it',
    logs.after({ level: 'info' }).then(() => logs.said[0]),
    /"demo".*\{"level":"info"\}/,
  );
  for (const size of [150, 190, 300, 1e6]) {
    const long = await open();
    const noise = 'x'.repeat(size);
    const stray = { ...answer, result: { text: noise } };
    await long.after(noise, stray);
    const shows = ([first = '', second = '']: string[]) =>
      first.includes(excerpt(noise)) && second.includes(excerpt(stray));
    const least = [noise, stray].map((each) => excerpt(each).length);
    await expect(
      'a warning shows what came, cut short by `excerpt`: no more and no less',
      `the words of excerpt(message), which has ${least.join(' and ')} characters here, in two warnings`,
      long.said.length === 2 ? [...long.said] : `${long.said.length} warnings`,
      (came) => Array.isArray(came) && shows(came) && came.every(({ length }) => length < 500),
    );
  }
  const longer = await open();
  const odd = [{ jsonrpc: 'x'.repeat(1e6) }, { jsonrpc: '2.0', id: 'x'.repeat(1e6), result: {} }];
  await expect(
    'whatever part of it is long',
    'warnings of less than 500 characters, for a long "jsonrpc" and for a long "id"',
    longer
      .after(...odd)
      .then(
        () => `warnings of ${longer.said.map(({ length }) => length).join(' and ')} characters`,
      ),
    () => longer.said.length === 2 && longer.said.every(({ length }) => length < 500),
  );

  const config = { command: 'node', args: ['fixtures/habits.mjs', 'chatty'] };
  const onWarning = () => {}; // it is looked up below; by default it would go to stderr, among the verdicts
  const chatty = new McpConnection('chatty', config, { onWire: see, onWarning });
  await chatty.connect();
  const warned = async () => {
    for (let turn = 0; turn < 100 && !chatty.warnings.has('noise'); turn++)
      await new Promise((done) => setTimeout(done, 20));
    return chatty.warnings.get('noise');
  };
  await expect(
    'a real server with noise on its stdout is heard to the end',
    'a warning of the kind "noise"',
    warned(),
    /"chatty"/,
  );
};
