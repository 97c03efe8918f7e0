// Chapter 28: one tool whose schema a service refuses is found, told and left out.

import { afterEach, test } from 'node:test';
import assert from 'node:assert/strict';
import { Agent, type AgentEvent, type Model } from '../agent.ts';
import { Anthropic } from '../chapters/18-minds/anthropic.ts';
import { OpenAi } from '../chapters/18-minds/openai.ts';
import { McpManager } from '../mcp.ts';
import { cleanUp, folder, later } from './help/basics.ts';
import { fail, say, startModelServer, type Seen, type Step } from './help/model-server.ts';

afterEach(cleanUp);

const fixture = '../fixtures/catalogue.mjs';
const { services, madeUp } = await import(fixture);
const wait = async () => {};

const namesIn = ({ body }: Seen): string[] =>
  (body.tools ?? []).map((tool: any) => tool.name ?? tool.function.name);

/** A service that refuses these tools, and says so in its own words. */
function picky(bad: string[], words: (name: string, at: number) => string) {
  return (seen: Seen): Step => {
    const at = namesIn(seen).findIndex((name) => bad.includes(name));
    if (at === -1) return say('Done.');
    return fail(400, { type: 'invalid_request_error', message: words(namesIn(seen)[at]!, at) });
  };
}

async function chat(model: Model) {
  const entries = [...services()].filter(([name]) => ['diary', 'tracker'].includes(name));
  const mcp = new McpManager({ load: () => new Map(entries), transports: madeUp });
  later(() => mcp.disconnectAll());
  const events: AgentEvent[] = [];
  const emit = (event: AgentEvent) => void events.push(event);
  const agent = new Agent({ model, mcp, emit, resultsFolder: folder() });
  const notes = () => events.flatMap((event) => (event.type === 'note' ? event.text : []));
  const errors = () => events.flatMap((event) => (event.type === 'error' ? event.message : []));
  return { agent, notes, errors };
}

const BAD = 'mcp__diary__get_event';

test('by its number, as Anthropic says it; from then on it is left out', async () => {
  const step = picky([BAD], (_, at) => `tools.${at}.custom.input_schema: JSON schema is invalid`);
  const server = await startModelServer([step, step, step]);
  const { agent, notes } = await chat(
    new Anthropic({ model: 'm', key: 'k', baseUrl: server.url, wait }),
  );
  assert.equal((await agent.chat('Go.')).text, 'Done.');
  assert.equal((await agent.chat('Again.')).text, 'Done.');
  assert.equal(server.requests.length, 3, 'one refusal, and never again');
  assert.equal(namesIn(server.requests[1]!).length, 39);
  assert.match(
    notes()[0]!,
    new RegExp(`anthropic/m refuses the tool ${BAD}, so it is left out: .*JSON schema`),
  );
});

test('by its name, as OpenAI says it; two of them', async () => {
  const bad = [BAD, 'mcp__tracker__list_epic'];
  const step = picky(
    bad,
    (name) => `Invalid schema for function '${name}': array schema missing items.`,
  );
  const server = await startModelServer([step, step, step]);
  const { agent, notes } = await chat(
    new OpenAi({ model: 'm', baseUrl: `${server.url}/v1`, wait }),
  );
  assert.equal((await agent.chat('Go.')).text, 'Done.');
  assert.equal(namesIn(server.requests[2]!).length, 38);
  assert.equal(notes().filter((note) => note.includes('refuses the tool')).length, 2);
});

test('a service that does not say which is asked with halves', async () => {
  const step = picky([BAD], () => 'failed to parse grammar');
  const server = await startModelServer(Array.from({ length: 20 }, () => step));
  const { agent, notes } = await chat(
    new OpenAi({ model: 'm', baseUrl: `${server.url}/v1`, wait }),
  );
  assert.equal((await agent.chat('Go.')).text, 'Done.');
  assert.match(notes()[0]!, new RegExp(`refuses the tool ${BAD}`));
  assert.ok(server.requests.length <= 10, `${server.requests.length} requests for 40 tools`);
  assert.ok(server.requests.slice(1, -1).every(({ body }) => body.max_tokens === 16));
});

test('too many tools are not the fault of one: none is left out', async () => {
  const step = (seen: Seen): Step =>
    namesIn(seen).length > 30 ? fail(400, { message: 'too many tools' }) : say('Done.');
  const server = await startModelServer(Array.from({ length: 20 }, () => step));
  const { agent, notes, errors } = await chat(
    new OpenAi({ model: 'm', baseUrl: `${server.url}/v1`, wait }),
  );
  assert.equal((await agent.chat('Go.')).ending, 'error');
  assert.match(errors()[0]!, /too many tools/);
  assert.deepEqual([notes(), server.requests.length < 12], [[], true]);
});

test('what is not the fault of a tool stays an error', async () => {
  const always = fail(400, { message: 'messages.3: unexpected tool_use_id' });
  const server = await startModelServer([always, always, always]);
  const { agent, errors } = await chat(
    new OpenAi({ model: 'm', baseUrl: `${server.url}/v1`, wait }),
  );
  assert.equal((await agent.chat('Go.')).ending, 'error');
  assert.match(errors()[0]!, /unexpected tool_use_id/);
  assert.equal(server.requests.length, 2, 'one look without the tools of servers');
  const other = fail(401, { message: 'no such key, and no tool either' });
  const second = await startModelServer([other]);
  const { agent: denied } = await chat(
    new OpenAi({ model: 'm', baseUrl: `${second.url}/v1`, wait }),
  );
  assert.equal((await denied.chat('Go.')).ending, 'error');
  assert.equal(second.requests.length, 1);
});
