// Judges exercise 22: are the questions inside a result answered, and does the request go out again as it should?

import type { Judge } from '../book.ts';

const description = { resultType: 'complete', supportedVersions: ['2026-07-28'], capabilities: { tools: {} } };
const ask = (message: string) => ({ method: 'elicitation/create', params: { message } });
const done = { resultType: 'complete', content: [{ type: 'text', text: '42' }] };

export const judge: Judge = async ({ load, see, expect }) => {
  const { McpConnection } = await load('mcp.ts');
  const { inBothEras } = await load('chapters/22-no-handshake/era.ts');

  /** A server that lives in this process: it answers the calls of a tool with these results, one after the other. */
  const script = async (...results: object[]) => {
    const calls: any[] = [];
    const answered: string[] = [];
    const log: [string, unknown][] = [];
    const transport = () => {
      let events: any;
      return {
        start: async (given: unknown) => void (events = given),
        close: async () => {},
        send: async ({ id, method, params }: any) => {
          if (method === 'tools/call') calls.push({ id, ...JSON.parse(JSON.stringify(params)) });
          const result = method === 'server/discover' ? description : (results[calls.length - 1] ?? done);
          if (id !== undefined) setImmediate(() => events.message({ jsonrpc: '2.0', id, result }));
        },
      };
    };
    const answer = async ({ message }: any) => {
      answered.push(`${message}?`);
      await new Promise((after) => setTimeout(after, 20)); // the user thinks
      answered.push(`${message}!`);
      return message === 'No' ? { action: 'decline' } : { action: 'accept', content: { said: message } };
    };
    const connection = new McpConnection('demo', { type: 'script' }, {
      transports: { script: transport },
      extensions: [...inBothEras(), () => ({ capabilities: { elicitation: {} }, handlers: { 'elicitation/create': answer } })],
      onWire: (direction: string, message: unknown) => (log.push([direction, message]), see(direction, message)),
    });
    await connection.connect();
    await connection.initialize();
    const call = async (options = {}) => (await connection.callTool('add', { a: 2, b: 40 }, options)).text;
    /** A second look at what has come over this wire. */
    const expectToo: typeof expect = (...given) => (log.forEach((line) => see(...line)), expect(...given));
    return { calls, answered, call, connection, expectToo };
  };
  const wants = (inputRequests?: object, requestState?: unknown) => ({ resultType: 'input_required', inputRequests, requestState });
  const quietly = (promise: Promise<unknown>) => promise.catch(() => {}); // what came of it is looked at below
  const fields = (call: object = {}) => Object.keys(call).join(', ');
  const hasNo = (...names: string[]) => (came: string) => came.includes('name') && !names.some((name) => came.includes(name));
  const same = (wanted: unknown) => (came: unknown) => JSON.stringify(came) === JSON.stringify(wanted);

  const one = await script(wants({ sure: ask('Sure') }, 's1.9f2c'));
  await expect('a question in a result is answered, and the call goes on', '42', one.call(), /^42$/);
  await one.expectToo('by sending it again', 'two calls', one.calls.length, (came) => came === 2);
  const [first, again] = one.calls;
  await one.expectToo('under an id of its own', 'an id that is not the first one', again.id, (came) => came !== undefined && came !== first.id);
  await one.expectToo('with the same tool and arguments', '{"name":"add","arguments":{"a":2,"b":40}}', { name: again.name, arguments: again.arguments }, same({ name: 'add', arguments: { a: 2, b: 40 } }));
  await one.expectToo('and the answer under its key, without an envelope', '{"sure":{"action":"accept","content":{"said":"Sure"}}}', again.inputResponses, same({ sure: { action: 'accept', content: { said: 'Sure' } } }));
  await one.expectToo('and the state of the server', '"s1.9f2c"', again.requestState, (came) => came === 's1.9f2c');
  await one.expectToo('the first call had neither', 'no inputResponses, no requestState', fields(first), hasNo('inputResponses', 'requestState'));

  const json = '{ "step": 1.0, "a":"\\u00e9" }';
  const text = await script(wants({ q: ask('Yes') }, json));
  await quietly(text.call());
  await expect('a state that looks like JSON goes back as it came, to the letter', json, text.calls[1]?.requestState, (came) => came === json);
  const empty = await script(wants({ q: ask('Yes') }, ''));
  await quietly(empty.call());
  await expect('an empty state is a state', '""', empty.calls[1]?.requestState, (came) => came === '');
  const stateless = await script(wants({ q: ask('Yes') }));
  await quietly(stateless.call());
  await expect('no state is none', 'no requestState', fields(stateless.calls[1]), hasNo('requestState'));

  const two = await script(wants({ first: ask('Yes'), second: ask('No') }));
  await quietly(two.call());
  await expect('every question is answered, and a no is an answer, too', '{"first":{"action":"accept",…},"second":{"action":"decline"}}', two.calls[1]?.inputResponses,
    same({ first: { action: 'accept', content: { said: 'Yes' } }, second: { action: 'decline' } }));
  await two.expectToo('one question after the other: there is one user', 'Yes? Yes! No? No!', two.answered.join(' '), /^Yes\? Yes! No\? No!$/);

  const rounds = await script(wants({ a: ask('One') }, 'r1'), wants({ b: ask('Two') }));
  await quietly(rounds.call());
  await expect('in a second round only its own answers go out', '{"b":{"action":"accept","content":{"said":"Two"}}}', rounds.calls[2]?.inputResponses, same({ b: { action: 'accept', content: { said: 'Two' } } }));
  await rounds.expectToo('and not the state of the first', 'no requestState', fields(rounds.calls[2]), hasNo('requestState'));

  const patience = await script(wants(undefined, 'busy'));
  const startedAt = Date.now();
  await expect('a result without questions asks for patience', '42', patience.call(), /^42$/);
  await patience.expectToo('so there is a pause before the call is sent again', 'at least 50 ms', Date.now() - startedAt, (ms) => ms >= 50);
  await patience.expectToo('with the state, and without answers', 'requestState "busy", and no inputResponses', patience.calls[1], ({ requestState, inputResponses } = {}) => requestState === 'busy' && inputResponses === undefined);
  const bothNone = await script({ resultType: 'input_required', inputRequests: {} });
  await quietly(bothNone.call());
  await expect('no question in the list is no question', 'no inputResponses', fields(bothNone.calls[1]), hasNo('inputResponses'));

  const uninvited = await script(wants({ q: { method: 'sampling/createMessage', params: {} } }));
  await expect('what we have not offered is not answered', 'a McpError of kind "protocol"', uninvited.call(), (came) => came?.kind === 'protocol');
  await uninvited.expectToo('and the call is not sent again', 'one call', uninvited.calls.length, (came) => came === 1);

  const kept = await script(wants({ q: ask('Yes') }, 'mine'));
  const params = Object.freeze({ name: 'add', arguments: {} });
  await quietly(kept.connection.request('tools/call', params));
  await quietly(kept.connection.request('tools/call', params));
  await expect('the next call knows nothing of this one', 'no inputResponses, no requestState', fields(kept.calls[2]), hasNo('inputResponses', 'requestState'));
};
