// Judges exercise 23: what leaves for the server? Answers come from a hook, so that they can be as
// odd as a script of a user's may be; the server is a script that asks and keeps what it hears.
// Names and values are drawn by lot, and in the end whole forms are.

import { randomInt, randomUUID } from 'node:crypto';
import type { Json, Transport, TransportEvents } from '../../mcp.ts';
import type { Judge } from '../book.ts';

const word = (role: string) => `${role}_${randomUUID().slice(0, 8)}`;
const one = <T>(list: T[]): T => list[randomInt(list.length)]!;

type Heard = { heard: unknown; told: string };

export const judge: Judge = async ({ load, see, expect }) => {
  const { McpConnection } = await load('mcp.ts');
  const { ScriptedPerson } = await load('chapters/17-the-gate/person.ts');
  const { elicitation } = await load('chapters/23-the-server-asks/elicitation.ts');
  const { problemsFound } = await load('chapters/23-the-server-asks/schema.ts');
  const shop = word('shop');

  /** What the server hears if it asks this, and a hook answers that; and what the user is told. */
  const ask = async (params: Json, answer: unknown): Promise<Heard> => {
    const warnings: string[] = [];
    let heard: unknown = 'nothing';
    let later = () => {};
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
    const warn = (text: string) => warnings.push(text);
    const hooks = { before: async () => answer };
    const person = new ScriptedPerson();
    const extension = elicitation({ person, problemsFound, hooks, warn });
    const connection = new McpConnection(
      shop,
      { type: 'script' },
      { transports: { script }, extensions: [extension], onWire: see },
    );
    await connection.connect();
    await connection.initialize();
    await connection.callTool('order').catch((error: Error) => warnings.push(error.message));
    await connection.close();
    return { heard, told: warnings.join('\n') };
  };

  const isSame = (one: unknown, two: unknown) => JSON.stringify(one) === JSON.stringify(two);
  const hears = (what: string, params: Json, answer: unknown, wanted: Json) =>
    expect(what, JSON.stringify(wanted), ask(params, answer), ({ heard }) => isSame(heard, wanted));

  const [city, floor, gift] = [word('city'), word('floor'), word('gift')];
  const form = (more: Json = {}): Json => ({
    message: 'Where to?',
    requestedSchema: {
      type: 'object',
      properties: {
        [city]: { type: 'string', minLength: 2 },
        [floor]: { type: 'integer', minimum: -2, default: 3 },
        [gift]: { type: 'boolean', default: true },
      },
      ...more,
    },
  });
  const needsCity = form({ required: [city] });
  const bare = { message: 'Delete it?', requestedSchema: { type: 'object', properties: {} } };
  const page = { message: 'Log in', mode: 'url', url: `https://shop.example/${word('login')}` };
  const good = { [city]: word('Graz'), [floor]: randomInt(9) };

  // A no, and a yes to an address.
  for (const action of ['decline', 'cancel']) {
    const answer = { action, content: good };
    await hears(`a ${action} has no content`, needsCity, answer, { action });
    await hears(`a ${action} that came without one goes out`, needsCity, { action }, { action });
    const misfit = { action, content: { [floor]: 'x' } };
    await hears(`a ${action} is not checked`, needsCity, misfit, { action });
    await hears(`a ${action} has no content: of an address`, page, answer, { action });
  }
  await hears(
    'a yes to an address has none',
    page,
    { action: 'accept', content: good },
    { action: 'accept' },
  );
  await hears(
    'a yes to an address that came without one goes out',
    page,
    { action: 'accept' },
    { action: 'accept' },
  );

  // A yes to a form.
  const accepted = (content: Json) => ({ action: 'accept', content });
  await hears('an answer that fits is sent as it is', needsCity, accepted(good), accepted(good));
  const falsy = { [city]: word('Wien'), [floor]: 0, [gift]: false };
  await hears('sent as it is: also 0 and false', needsCity, accepted(falsy), accepted(falsy));
  const least = { [city]: 'Ob' };
  await hears('sent as it is: no default is added', needsCity, accepted(least), accepted(least));
  const more = { note: '', [city]: word('Linz'), list: [1, { a: null }] };
  await hears(
    'sent as it is: what the form does not forbid stays',
    needsCity,
    accepted(more),
    accepted(more),
  );
  await hears(
    'a yes without a content has an empty one: a form without fields',
    bare,
    { action: 'accept' },
    accepted({}),
  );
  await hears(
    'a yes without a content has an empty one: all fields may be left out',
    form(),
    { action: 'accept' },
    accepted({}),
  );
  await expect(
    'and of what is sent the user is told nothing',
    'no warning',
    ask(needsCity, accepted(good)),
    ({ told }) => told === '',
  );

  // What does not fit.
  const cancel = { action: 'cancel' };
  const misfits: [what: string, content: unknown, path?: string][] = [
    ['a required field is missing', { [floor]: 3 }, city],
    ['nothing at all was given, and a field is required', undefined, city],
    ['a text is too short', { [city]: 'G' }, city],
    ['a number is a text', { [city]: 'Graz', [floor]: '3' }, floor],
    ['a whole number is none', { [city]: 'Graz', [floor]: 2.5 }, floor],
    ['a number is too small', { [city]: 'Graz', [floor]: -3 }, floor],
    ['yes or no is a text', { [city]: 'Graz', [gift]: 'false' }, gift],
    ['the content is a list', ['Graz']], // as a whole, or for want of a field
  ];
  for (const [what, content] of misfits)
    await hears(
      `what does not fit is not sent: ${what}`,
      needsCity,
      { action: 'accept', content },
      cancel,
    );
  await hears(
    'what does not fit is not sent: a field that may be left out',
    form(),
    accepted({ [floor]: 'three' }),
    cancel,
  );
  await hears(
    'what does not fit is not sent: the form forbids other fields',
    form({ additionalProperties: false }),
    accepted({ ...good, other: 1 }),
    cancel,
  );
  for (const [what, content, path] of misfits) {
    if (path === undefined) continue;
    const said = ask(needsCity, { action: 'accept', content });
    await expect(
      `and the user is told which field: ${what}`,
      `a warning with ${path}`,
      said,
      ({ told }) => told.includes(path),
    );
    await expect(
      `and the user is told whose form it is: ${what}`,
      `a warning with "${shop}"`,
      said,
      ({ told }) => told.includes(`"${shop}"`),
    );
  }
  const both = { [city]: 'G', [floor]: 'x' };
  const first = (await firstPath(load, needsCity.requestedSchema, both)) ?? city;
  await expect(
    'of two problems the first is told',
    `a warning with ${first}`,
    ask(needsCity, accepted(both)),
    ({ told }) => told.includes(first),
  );
  const secret = `sk-${randomUUID()}`;
  await expect(
    'a warning does not repeat what was typed: it may be a secret',
    'a warning without it',
    ask(needsCity, accepted({ [city]: secret, [floor]: secret })),
    ({ told }) => told !== '' && !told.includes(secret),
  );

  for (let n = 0; n < 40; n++) {
    const { params, content, odd } = someForm();
    const wanted = odd === undefined ? accepted(content) : cancel;
    await expect(
      'forms and answers at random',
      `${JSON.stringify(wanted)}${odd === undefined ? '' : `, and a warning with ${odd}`}`,
      ask(params, accepted(content)),
      ({ heard, told }) => isSame(heard, wanted) && (odd === undefined || told.includes(odd)),
    );
  }
};

async function firstPath(
  load: (file: string) => Promise<any>,
  schema: unknown,
  value: unknown,
): Promise<string | undefined> {
  const { problemsFound } = await load('chapters/23-the-server-asks/schema.ts');
  const [problem] = await problemsFound(schema, value);
  return problem?.path;
}

/** A form of some fields, and an answer that fits, or in which one field does not. */
function someForm() {
  const kinds = [
    { schema: { type: 'string', maxLength: 5 }, fits: 'short', fails: 'too long' },
    { schema: { type: 'string', enum: ['a', 'b'] }, fits: 'b', fails: 'c' },
    { schema: { type: 'string', pattern: '^\\d+$' }, fits: '42', fails: 'x42' },
    { schema: { type: 'number', maximum: 10 }, fits: 9.5, fails: 10.5 },
    { schema: { type: 'integer' }, fits: -7, fails: 7.5 },
    { schema: { type: 'boolean' }, fits: false, fails: 'no' },
    {
      schema: { type: 'array', items: { type: 'string', enum: ['x', 'y'] } },
      fits: ['y'],
      fails: 'y',
    },
  ];
  const fields = Array.from({ length: 1 + randomInt(4) }, () => ({
    name: word('f'),
    ...one(kinds),
  }));
  const odd = randomInt(2) === 0 ? one(fields).name : undefined;
  const isRequired = randomInt(2) === 0;
  const requestedSchema = {
    type: 'object',
    properties: Object.fromEntries(fields.map(({ name, schema }) => [name, schema])),
    required: isRequired ? fields.map(({ name }) => name) : [],
  };
  const rows = fields.map(({ name, fits, fails }) => [name, name === odd ? fails : fits]);
  return {
    params: { message: 'Well?', requestedSchema },
    content: Object.fromEntries(rows) as Json,
    odd,
  };
}
