// protocol.ts: what chapters 7 to 11 promise: the handshake, tools, what a server asks, goodbye.

import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  calculator,
  failure,
  folder,
  habit,
  holds,
  isRunning,
  linesIn,
  NotTried,
  pause,
  pidFile,
  same,
  script,
  show,
  soon,
  until,
  type Bench,
  type Chapter,
} from './bench.ts';
import { callText, connect, heard, open } from './client.ts';

const REVISIONS = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'];
const CONNECTION = ['connect', 'request', 'initialize'].map((name) => `McpConnection.${name}`);

const handshake: Chapter = {
  n: 7,
  title: 'handshake',
  needs: CONNECTION,
  promises: [
    {
      id: 'handshake-order',
      promise: '"initialize" comes first, then "initialized", and nothing between',
      fault: '"initialize" and "initialized" are not the first two things said',
      play: async (bench) => {
        const { connection } = await open(bench, habit());
        const methods = (await heard(connection)).map(({ method }) => method);
        same(methods, ['initialize', 'notifications/initialized', 'tools/call']);
      },
    },
    {
      id: 'handshake-offer',
      promise: 'it offers a revision, its capabilities and its name',
      fault: 'it does not offer a revision, its capabilities and its name',
      play: async (bench) => {
        const { connection } = await open(bench, habit());
        const [{ params }] = await heard(connection);
        const { protocolVersion, capabilities, clientInfo } = params ?? {};
        holds(REVISIONS.includes(protocolVersion), `one of ${REVISIONS.join(', ')}`, params);
        holds(typeof capabilities === 'object', 'capabilities', params);
        holds(clientInfo?.name && clientInfo?.version, 'clientInfo with name and version', params);
      },
    },
    {
      id: 'every-revision',
      kind: 'courtesy',
      promise: 'every revision that has a handshake is accepted',
      fault: 'a revision that has a handshake is not accepted',
      play: async (bench) => {
        const shake = async (protocolVersion: string) => {
          const serverInfo = { name: 'x', version: '1' };
          const answer = { protocolVersion, capabilities: {}, serverInfo };
          await open(bench, habit('version', JSON.stringify(answer)));
        };
        await Promise.all(REVISIONS.map(shake));
      },
    },
    {
      id: 'unknown-revision',
      promise: 'a revision that we do not speak is refused by name',
      fault: 'a revision that we do not speak is not refused by name',
      play: async (bench) => {
        const file = join(folder(bench), 'heard');
        const stranger = script(
          `
          hear(({ id, method }) => {
            fs.appendFileSync(given[0], method + '\\n');
            const result = { protocolVersion: '9999-01-01', capabilities: {}, serverInfo: {} };
            if (id !== undefined) say({ jsonrpc: '2.0', id, result });
          });`,
          file,
        );
        const { message } = await failure(() => open(bench, stranger));
        holds(/9999-01-01/.test(message), 'an error that names 9999-01-01', message);
        await pause(100);
        same(linesIn(file), ['initialize'], 'no word after initialize');
      },
    },
    {
      id: 'description-kept',
      kind: 'courtesy',
      promise: 'what the server says of itself is kept',
      fault: 'what the server says of itself is not kept',
      play: async (bench) => {
        const { connection } = await connect(bench, habit());
        const returned = await soon(connection.initialize(), 'initialize() to end');
        const { serverInfo, instructions } = connection.server ?? returned ?? {};
        same([serverInfo?.name, instructions], ['habits', 'Be careful.']);
      },
    },
    {
      id: 'silent-handshake',
      kind: 'safety',
      promise: 'a server that never answers "initialize" does not keep us',
      fault: 'a server that never answers "initialize" keeps us',
      play: async (bench) => {
        const { connection } = await connect(bench, habit('mute'), { handshakeTimeoutMs: 200 });
        await failure(() => connection.initialize(), 'an error after 0.2 s');
      },
    },
    {
      id: 'refused-handshake',
      kind: 'courtesy',
      promise: 'a server that refuses the handshake is heard: its reason is in the error',
      fault: 'a server that refuses the handshake is not heard',
      play: async (bench) => {
        const { message } = await failure(() => open(bench, habit('refuses-initialize')));
        holds(/Not today/.test(message), 'an error with "Not today."', message);
      },
    },
  ],
};

const listing = (tools: unknown) => habit('tools', JSON.stringify(tools));

async function namesOf(bench: Bench, config: object): Promise<string[]> {
  const { connection } = await open(bench, config);
  const tools: any = await soon(connection.listTools(), 'listTools() to end');
  holds(Array.isArray(tools), 'a list of tools', tools);
  return tools.map(({ name }: { name: string }) => name);
}

const discovery: Chapter = {
  n: 8,
  title: 'discovery',
  needs: [...CONNECTION, 'McpConnection.listTools'],
  promises: [
    {
      id: 'tools-listed',
      promise: 'tools come with their names, descriptions and schemas',
      fault: 'tools do not come with their names, descriptions and schemas',
      play: async (bench) => {
        const { connection } = await open(bench, calculator());
        const [add, greet]: any[] = await soon(connection.listTools(), 'listTools() to end');
        same([add?.name, greet?.name], ['add', 'greet']);
        same([add.description, add.inputSchema?.required], ['Adds two numbers.', ['a', 'b']]);
      },
    },
    {
      id: 'all-pages',
      promise: 'all pages are read',
      fault: 'not all pages are read',
      play: async (bench) =>
        same(await namesOf(bench, habit('pages')), ['t0', 't1', 't2', 't3', 't4']),
    },
    {
      id: 'odd-cursors',
      promise: 'an empty string is a cursor, and null is none',
      fault: 'an empty string is not taken for a cursor, or null is',
      play: async (bench) => {
        same(await namesOf(bench, habit('empty-cursor')), ['one', 'two']);
        same(await namesOf(bench, habit('null-cursor')), ['one']);
      },
    },
    {
      id: 'cursor-loop',
      kind: 'safety',
      promise: 'a cursor that comes again ends the search with an error',
      fault: 'a cursor that comes again does not end the search with an error',
      play: async (bench) => {
        const { connection } = await open(bench, habit('repeats-its-cursor'));
        await failure(() => connection.listTools());
      },
    },
    {
      id: 'odd-tool',
      kind: 'courtesy',
      promise: 'an odd tool costs itself only',
      fault: 'an odd tool costs others, or is taken along',
      play: async (bench) => {
        const unfit = { name: 'unfit', inputSchema: 'none' };
        const odd = [null, 7, {}, { name: 5 }, { name: '' }, unfit];
        const good = { name: 'good', inputSchema: { type: 'object' } };
        same(await namesOf(bench, listing([...odd, good])), ['good']);
      },
    },
    {
      id: 'list-no-list',
      kind: 'safety',
      promise: 'a list that is not a list is an error',
      fault: 'a list that is not a list is not an error',
      play: async (bench) => {
        const { connection } = await open(bench, listing('many'));
        await failure(() => connection.listTools());
      },
    },
    {
      id: 'no-tools-declared',
      promise: 'a server that declared no tools is not asked for any',
      fault: 'a server that declared no tools is asked for some',
      play: async (bench) => same(await namesOf(bench, habit('no-tools')), []), // it exits if asked
    },
  ],
};

const CALLING = [...CONNECTION, 'McpConnection.callTool'];

/** The result of a call to which the server answers exactly this. */
function resultOf(connection: any, result: unknown): Promise<any> {
  return soon(connection.callTool('result', { result }), 'callTool() to end');
}

const calling: Chapter = {
  n: 9,
  title: 'calling',
  needs: CALLING,
  promises: [
    {
      id: 'call-text',
      promise: 'a call goes out with its arguments, and its text comes back',
      fault: 'a call does not bring back its text and whether it failed',
      play: async (bench) => {
        const { connection } = await open(bench, calculator());
        const sum: any = await soon(connection.callTool('add', { a: 2, b: 40 }), 'an answer');
        same([sum.text, sum.isError], ['42', false]);
      },
    },
    {
      id: 'tool-failed',
      promise: 'a tool that failed is a result with isError, and says why',
      fault: 'a tool that failed is not a result with isError that says why',
      play: async (bench) => {
        const { connection } = await open(bench, calculator());
        const result: any = await soon(connection.callTool('add', { a: 2 }), 'a result');
        same([result.isError, result.text], [true, 'a and b must be numbers']);
      },
    },
    {
      id: 'odd-is-error',
      kind: 'courtesy',
      promise: 'what is not true is no failure: the text "false", for instance',
      fault: 'an isError that is not true, such as the text "false", is taken for a failure',
      play: async (bench) => {
        const { connection } = await open(bench, habit());
        const content = [{ type: 'text', text: 'fine' }];
        for (const isError of ['false', 1, {}, null]) {
          const result = await resultOf(connection, { content, isError });
          same(result.isError, false, `isError false for ${JSON.stringify(isError)}`);
        }
      },
    },
    {
      id: 'unknown-tool',
      promise: 'a tool that does not exist is an error with the code of the server',
      fault: 'a tool that does not exist is not an error with the code of the server',
      play: async (bench) => {
        const { connection } = await open(bench, calculator());
        const error = await failure(() => connection.callTool('subtract'));
        same(error.code, -32602);
        holds(/subtract/.test(error.message), 'an error that names the tool', error);
      },
    },
    {
      id: 'all-blocks',
      promise: 'no block of a result vanishes',
      fault: 'a block of a result vanishes',
      play: async (bench) => {
        const content = [
          { type: 'text', text: 'first' },
          { type: 'image', data: 'AAAA', mimeType: 'image/png' },
          { type: 'resource_link', uri: 'file:///a.txt', name: 'a.txt' },
          { type: 'resource', resource: { uri: 'file:///b.txt', text: 'inside b' } },
          { type: 'hologram', beams: 3 },
        ];
        const { connection } = await open(bench, habit());
        const result = await resultOf(connection, { content });
        same(result.content, content, 'all five blocks in "content"');
        for (const word of ['first', 'image/png', 'a.txt', 'inside b', 'hologram']) {
          holds(result.text.includes(word), `${word} in the text`, result.text);
        }
      },
    },
    {
      id: 'structured-content',
      promise: 'structured content is kept, and is the text where there is no other',
      fault: 'structured content is not kept, or not the text where there is no other',
      play: async (bench) => {
        const { connection } = await open(bench, habit());
        const structuredContent = { sky: 'blue' };
        const block = { type: 'text', text: 'sunny' };
        const both = await resultOf(connection, { content: [block], structuredContent });
        same([both.text, both.structuredContent], ['sunny', structuredContent]);
        const alone = await resultOf(connection, { structuredContent });
        same(alone.text, '{"sky":"blue"}');
      },
    },
    {
      id: 'content-no-list',
      kind: 'safety',
      promise: 'content that is not a list is an error for that call',
      fault: 'content that is not a list is not an error for that call',
      play: async (bench) => {
        const { connection } = await open(bench, habit());
        await failure(() => connection.callTool('result', { result: { content: 'text' } }));
        same((await resultOf(connection, { content: [] })).text, '');
      },
    },
  ],
};

const ASK_MS = 3000; // an answer takes no work, only a busy machine

/** What our client answers when the server requests this. */
async function answerTo(connection: any, id: unknown, method: string): Promise<any> {
  const expected = method === 'ping' ? 'an answer {}' : 'an answer';
  const asked = connection.callTool('ask', { id, method });
  const { text }: any = await soon(asked, expected, ASK_MS);
  return JSON.parse(text);
}

const answering = (handlers: object) => ({ extensions: [() => ({ handlers })] });

const talkingBack: Chapter = {
  n: 10,
  title: 'talking back',
  needs: CALLING,
  promises: [
    {
      id: 'ping-answered',
      promise: 'a ping is answered',
      fault: 'a ping is not answered',
      play: async (bench) => {
        const { connection } = await open(bench, habit());
        same((await answerTo(connection, 'p', 'ping')).result, {}, 'an answer {}');
      },
    },
    {
      id: 'ping-odd-id',
      promise: 'a ping is answered under the id 0, and under an id like our own',
      fault: 'a ping under the id 0, or under an id like our own, is not answered',
      play: async (bench) => {
        const { connection } = await open(bench, habit());
        for (const id of [0, 1, 2, 3]) {
          const answer = await answerTo(connection, id, 'ping');
          same([answer.id, answer.result], [id, {}]);
        }
      },
    },
    {
      id: 'unknown-request',
      promise: 'a request that we do not know is refused with -32601',
      fault: 'a request that we do not know is not refused with -32601',
      play: async (bench) => {
        const { connection } = await open(bench, habit());
        for (const method of ['sampling/createMessage', 'toString', '__proto__']) {
          const { error } = await answerTo(connection, `q-${method}`, method);
          same(error?.code, -32601);
        }
      },
    },
    {
      id: 'notification-unanswered',
      promise: 'a notification gets no answer, known or not',
      fault: 'a notification is answered',
      play: async (bench) => {
        const { connection } = await open(bench, habit());
        for (const method of ['notifications/x', 'notifications/message', 'x']) {
          await soon(connection.callTool('tell', { method }), 'an answer to the call');
        }
        const answers = (await heard(connection)).filter(({ method }) => method === undefined);
        same(answers, [], 'no answer to a notification');
      },
    },
    {
      id: 'handler-answers',
      kind: 'courtesy',
      promise: "an extension's handler answers, and what it throws is the refusal",
      fault: "an extension's handler does not answer, or what it throws is no refusal",
      play: async (bench) => {
        const handlers = {
          'roots/list': async () => ({ roots: [] }),
          'break/me': () => Promise.reject(new Error('my mistake')),
        };
        const { connection } = await open(bench, habit(), answering(handlers));
        same((await answerTo(connection, 'r', 'roots/list')).result, { roots: [] });
        same(typeof (await answerTo(connection, 'b', 'break/me')).error?.code, 'number');
      },
    },
    {
      id: 'handlers-in-order',
      kind: 'courtesy',
      promise: 'notifications reach the handlers, in order',
      fault: 'notifications do not reach the handlers in order',
      play: async (bench) => {
        const seen: unknown[] = [];
        const handlers = { 'notifications/message': (params: unknown) => seen.push(params) };
        const { connection } = await open(bench, habit(), answering(handlers));
        for (const n of [1, 2, 3]) {
          const note = { method: 'notifications/message', params: { n } };
          await soon(connection.callTool('tell', note), 'an answer to the call');
        }
        same(seen, [{ n: 1 }, { n: 2 }, { n: 3 }]);
      },
    },
    {
      id: 'progress',
      kind: 'courtesy',
      promise: 'progress reaches the caller, and starts the wait again',
      fault: 'progress does not reach the caller, or does not start the wait again',
      play: async (bench) => {
        const { connection } = await open(bench, habit());
        const steps: unknown[] = [];
        // Nine steps are longer than the limit, but no silence is.
        const options = { timeoutMs: 2500, onProgress: (step: any) => steps.push(step.progress) };
        const work = connection.callTool('work', { everyMs: 300, times: 9 }, options);
        const { text }: any = await work;
        same([text, steps.length], ['worked', 9]);
      },
    },
  ],
};

async function pidOf(connection: any): Promise<number> {
  return JSON.parse(await callText(connection, 'where')).pid;
}

/** SIGTERM, process groups and /proc: there is no such thing on Windows. */
function onUnix(): void {
  if (process.platform === 'win32') throw new NotTried('there are no signals on Windows');
}

const GOODBYE = [...CONNECTION, 'McpConnection.close'];
const CALL_AND_CLOSE = [...GOODBYE, 'McpConnection.callTool'];
const goodbye: Chapter = {
  n: 11,
  title: 'goodbye',
  needs: GOODBYE,
  promises: [
    {
      id: 'close-waits',
      promise: 'close() waits for a server that leaves by itself',
      fault: 'close() does not wait for a server that leaves by itself',
      play: async (bench) => {
        const file = join(folder(bench), 'left');
        const { connection } = await open(bench, habit('leaves-late', file));
        const pid = await pidOf(connection);
        await soon(connection.close(), 'close() to end');
        holds(!isRunning(pid), 'the server to be gone', 'it is running');
        same(linesIn(file), ['left'], 'time to tidy up');
      },
    },
    {
      id: 'close-sigterm',
      promise: 'a server that ignores the end of its stdin gets SIGTERM, and may save',
      fault: 'a server that ignores the end of its stdin is not ended by SIGTERM',
      play: async (bench) => {
        onUnix();
        const file = join(folder(bench), 'saved');
        const { connection } = await open(bench, habit('ends-on-sigterm', file));
        const pid = await pidOf(connection);
        bench.later(() => isRunning(pid) && process.kill(pid, 'SIGKILL'));
        await soon(connection.close(), 'close() to end');
        await until(
          () => !isRunning(pid),
          'the server to be gone',
          () => 'it is running',
        );
        same(linesIn(file), ['saved'], 'a SIGTERM, so that it saves its work');
      },
    },
    {
      id: 'close-whole-group',
      kind: 'safety',
      promise: 'one that ignores that too is ended, with what it started',
      fault: 'a server that ignores SIGTERM, or what it started, goes on running',
      play: async (bench) => {
        onUnix();
        const file = pidFile(bench);
        const { connection } = await open(bench, habit('stubborn', file));
        await until(() => linesIn(file).length === 2, 'two processes');
        await soon(connection.close(), 'close() to end', 8000);
        await allGone(file);
      },
    },
    {
      id: 'call-while-closing',
      needs: CALL_AND_CLOSE,
      kind: 'safety',
      promise: 'a call that waits when we close fails at once',
      fault: 'a call that waits when we close does not fail at once',
      play: async (bench) => {
        const { connection } = await open(bench, habit(), { callTimeoutMs: 1e8 });
        const call = failure(() => connection.callTool('sleep', { ms: 1e8 }));
        await soon(connection.close(), 'close() to end');
        await call;
      },
    },
    {
      id: 'close-twice',
      needs: CALL_AND_CLOSE,
      kind: 'courtesy',
      promise: 'closing twice does no harm, and calls afterwards fail',
      fault: 'closing twice does harm, or a call afterwards does not fail',
      play: async (bench) => {
        const { connection } = await open(bench, habit());
        const both = Promise.all([connection.close(), connection.close()]);
        await soon(both, 'close() to end');
        await soon(connection.close(), 'close() to end');
        await failure(() => connection.callTool('echo'));
      },
    },
    {
      id: 'sent-before-close',
      needs: ['McpConnection.connect', 'McpConnection.notify', 'McpConnection.close'],
      kind: 'courtesy',
      promise: 'what was sent just before close() still arrives',
      fault: 'what was sent just before close() is lost',
      play: async (bench) => {
        const file = join(folder(bench), 'heard');
        const server = script(`hear((_, line) => fs.appendFileSync(given[0], line + '\\n'))`, file);
        const { connection } = await connect(bench, server);
        const sent = connection.notify('notifications/last-words');
        await soon(connection.close(), 'close() to end');
        await Promise.resolve(sent).catch(() => {}); // it may have been told of the end
        const [line = 'nothing'] = linesIn(file);
        holds(/last-words/.test(line), 'notifications/last-words', line);
      },
    },
    {
      id: 'no-orphan',
      kind: 'safety',
      promise: 'no server is left when the program exits or is ended by SIGTERM',
      fault: 'a server is left when the program exits or is ended by SIGTERM',
      limitMs: 30_000,
      play: async (bench) => {
        onUnix();
        await Promise.all(['exit', 'SIGTERM'].map((way) => leaves(bench, way)));
      },
    },
  ],
};

const allGone = (file: string) =>
  until(
    () => linesIn(file).every((pid) => !isRunning(Number(pid))),
    'no process left',
    () => `${linesIn(file).filter((pid) => isRunning(Number(pid))).length} still running`,
  );

/** A program with this client and a stubborn server ends; the server must not outlive it. */
async function leaves(bench: Bench, way: string): Promise<void> {
  const file = pidFile(bench);
  const program = fileURLToPath(new URL('leaver.ts', import.meta.url));
  const args = [...process.execArgv, program, bench.file, way, file];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  bench.later(() => child.kill('SIGKILL'));
  let said = '';
  child.stderr.on('data', (text) => (said += text));
  const over = new Promise((done) => child.once('close', done));
  child.stdout.once('data', () => way === 'exit' || child.kill('SIGTERM'));
  await soon(over, `the program to end by ${way}`, 15_000);
  same(linesIn(file).length, 2, `two processes${said && `, ${show(said)}`}`);
  await allGone(file);
}

export const protocol: Chapter[] = [handshake, discovery, calling, talkingBack, goodbye];
