// Tasks of a real server: in the form of 2025-11-25, where a tool may run as a task only.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { ScriptedPerson } from '../../chapters/17-the-gate/person.ts';
import { inBothEras } from '../../chapters/22-no-handshake/era.ts';
import { elicitation } from '../../chapters/23-the-server-asks/elicitation.ts';
import { problemsFound } from '../../chapters/23-the-server-asks/schema.ts';
import { tasks } from '../../chapters/24-more-than-tools/tasks.ts';
import { cleanUp, open, rejection, until } from '../help/basics.ts';
import { server } from '../help/third-party.ts';

afterEach(cleanUp);

async function everything(person: ScriptedPerson) {
  const [rounds, ...others] = inBothEras();
  const pause = () => new Promise<void>((done) => setTimeout(done, 20)); // its own pace is a second
  const opened = await open(server('everything'), {
    extensions: [elicitation({ person, problemsFound }), rounds!, tasks({ pause }), ...others],
  });
  await opened.connection.listTools(); // which tells that the tool needs a task
  return opened;
}

test('server-everything: a tool that runs as a task only, with its question, its result and its end', async () => {
  const person = new ScriptedPerson(['y', '1', 'y']);
  const { connection, wire } = await everything(person);
  const said: unknown[] = [];
  const research = (args: object, options = {}) =>
    connection.callTool('simulate-research-query', { topic: 'tea', ...args }, options);
  const { text, isError } = await research(
    {},
    { onProgress: ({ message }: { message?: unknown }) => said.push(message) },
  );
  assert.deepEqual([isError, /tea/.test(text)], [false, true]);
  assert.ok(said.length > 1);
  assert.match((await research({ ambiguous: true })).text, /tea/);
  assert.match(person.questions[0]!.text, /^The MCP server "demo" asks:/);
  const stop = new AbortController();
  const stopped = rejection(research({}, { signal: stop.signal }));
  await until(
    () => wire.filter(([way, { method }]) => way === 'out' && method === 'tasks/get').length > 0,
  );
  await until(() => wire.filter(([, { result }]) => result?.task).length === 3);
  stop.abort();
  assert.equal((await stopped).kind, 'aborted');
  await until(() => wire.some(([way, { method }]) => way === 'out' && method === 'tasks/cancel'));
});
