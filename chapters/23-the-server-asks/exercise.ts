// Judges exercise 23: what leaves for the server? Answers come from a hook, so that they can be as
// odd as a script of a user's may be; the server is a script that asks and keeps what it hears.

import type { Json, Transport, TransportEvents } from '../../mcp.ts';
import type { Judge } from '../book.ts';

const SCHEMA = {
  type: 'object',
  properties: { city: { type: 'string', minLength: 2 }, floor: { type: 'integer' } },
  required: ['city'],
};
const FORM = { message: 'Where to?', requestedSchema: SCHEMA };
const BARE = { message: 'Delete it?', requestedSchema: { type: 'object', properties: {} } };
const PAGE = { message: 'Log in', mode: 'url', url: 'https://shop.example/login' };

export const judge: Judge = async ({ load, see, expect }) => {
  const { McpConnection } = await load('mcp.ts');
  const { ScriptedPerson } = await load('chapters/17-the-gate/person.ts');
  const { elicitation } = await load('chapters/23-the-server-asks/elicitation.ts');

  /** What the server hears if it asks this, and a hook answers that; and what the user is told. */
  const ask = async (params: Json, answer: unknown): Promise<{ heard: unknown; told: string }> => {
    const warnings: string[] = [];
    let heard: unknown = 'nothing';
    const script = (): Transport => {
      let events: TransportEvents;
      const say = (message: Json) =>
        setImmediate(() => events.message({ jsonrpc: '2.0', ...message }));
      return {
        start: async (given) => {
          events = given;
        },
        close: async () => {},
        send: async ({ id, method, result, error }) => {
          if (method === 'initialize') {
            say({ id, result: { protocolVersion: '2025-11-25', capabilities: { tools: {} } } });
          } else if (method === 'tools/call') {
            say({ id: 'q', method: 'elicitation/create', params });
            later = () => say({ id, result: { content: [] } });
          } else if (id === 'q') {
            heard = error ?? result;
            later();
          }
        },
      };
    };
    let later = () => {};
    const hooks = { before: async () => answer };
    const person = new ScriptedPerson();
    const extension = elicitation({ person, hooks, warn: (text: string) => warnings.push(text) });
    const connection = new McpConnection(
      'shop',
      { type: 'script' },
      {
        transports: { script },
        extensions: [extension],
        onWire: see,
        callTimeoutMs: 3000,
      },
    );
    await connection.connect();
    await connection.initialize();
    await connection.callTool('order').catch((error: Error) => warnings.push(error.message));
    await connection.close();
    return { heard, told: warnings.join('\n') };
  };

  const is = (wanted: unknown) => (came: unknown) =>
    JSON.stringify(came) === JSON.stringify(wanted);
  const hears = async (what: string, params: Json, answer: unknown, wanted: Json) => {
    const { heard } = await ask(params, answer);
    await expect(what, JSON.stringify(wanted), heard, is(wanted));
  };

  const good = { city: 'Graz', floor: 3 };
  await hears(
    'an answer that fits is sent as it is',
    FORM,
    { action: 'accept', content: good },
    { action: 'accept', content: good },
  );
  await hears(
    'a no has no content',
    FORM,
    { action: 'decline', content: good },
    { action: 'decline' },
  );
  await hears('nor has a cancel', FORM, { action: 'cancel', content: good }, { action: 'cancel' });
  await hears(
    'a yes to a form without fields has an empty content',
    BARE,
    { action: 'accept' },
    { action: 'accept', content: {} },
  );
  await hears(
    'a yes to an address has none',
    PAGE,
    { action: 'accept', content: good },
    { action: 'accept' },
  );

  const misfits: [what: string, content: unknown, path: RegExp][] = [
    ['a required field is missing', { floor: 3 }, /city/],
    ['a text is too short', { city: 'G' }, /city/],
    ['a number is a text', { city: 'Graz', floor: '3' }, /floor/],
    ['nothing at all was given', undefined, /city/],
    ['the content is a list', ['Graz'], /city/],
  ];
  for (const [what, content, path] of misfits) {
    const { heard, told } = await ask(FORM, { action: 'accept', content });
    await expect(
      `what does not fit is not sent: ${what}`,
      '{"action":"cancel"}',
      heard,
      is({ action: 'cancel' }),
    );
    await expect(
      `and the user is told which field, and whose form: ${what}`,
      'a warning that names both',
      told,
      (text: string) => path.test(text) && text.includes('"shop"'),
    );
  }
};
