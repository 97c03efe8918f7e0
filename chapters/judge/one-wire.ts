// one-wire.ts: what chapters 1 to 6 promise: bytes, messages, ids, and the ends of things.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import {
  calculator,
  failure,
  folder,
  habit,
  holds,
  linesIn,
  Mismatch,
  pause,
  same,
  script,
  show,
  soon,
  until,
  type Bench,
  type Chapter,
} from './bench.ts';
import { callText, connect, heard, pipe } from './client.ts';

const REQUESTING = ['McpConnection.connect', 'McpConnection.request'];

const STORY = 'Zoë 🦊 ate 3 € of 日本 noodles\u2028and then\u2029slept';

const aPipe: Chapter = {
  n: 1,
  title: 'a pipe',
  needs: ['StdioTransport.start or McpConnection.request'],
  promises: [
    {
      id: 'answer-comes-back',
      promise: 'what is sent reaches the server, and its answer comes back',
      fault: 'a ping to the server brings no answer back',
      play: async (bench) => {
        const { request } = await pipe(bench, calculator());
        same(await request('ping'), {});
      },
    },
    {
      id: 'stderr-flood',
      kind: 'safety',
      promise: 'a server that floods its stderr is not blocked',
      fault: 'a server that floods its stderr is blocked',
      play: async (bench) => {
        const { request } = await pipe(bench, habit('floods-stderr', '2'));
        same(await request('ping'), {});
      },
    },
    {
      id: 'launch-as-written',
      kind: 'safety',
      promise: '"args", "cwd" and "env" arrive as they were written',
      fault: '"args", "cwd" and "env" do not arrive as they were written',
      play: async (bench) => {
        const cwd = folder(bench);
        const odd = 'two words; $HOME "quoted"';
        const config = { ...habit('good', odd), cwd, env: { COLOUR: 'blue' } };
        const { call } = await pipe(bench, config);
        const seen = JSON.parse(await call('where'));
        same(seen.argv, ['good', odd]);
        holds(seen.cwd.endsWith(cwd.slice(-6)), `cwd ${cwd}`, seen.cwd);
        same(seen.env.COLOUR, 'blue', 'COLOUR=blue in its environment');
      },
    },
    {
      id: 'keys-stay-here',
      kind: 'safety',
      promise: 'the keys in our environment do not reach the server',
      fault: 'the keys in our environment reach the server',
      play: async (bench) => {
        process.env.JUDGE_API_KEY = 'secret';
        bench.later(() => delete process.env.JUDGE_API_KEY);
        const { call } = await pipe(bench, habit());
        const { env } = JSON.parse(await call('where'));
        holds(!env.JUDGE_API_KEY, 'no JUDGE_API_KEY', `JUDGE_API_KEY=${env.JUDGE_API_KEY}`);
        holds(env.PATH ?? env.Path, 'a PATH', Object.keys(env));
      },
    },
    {
      id: 'no-shell',
      kind: 'safety',
      promise: 'no shell reads the configuration',
      fault: 'a shell reads the configuration',
      play: async (bench) => {
        const marker = join(folder(bench), 'marker');
        const args = [...habit().args, `$(echo > "${marker}")`, `; echo > "${marker}"`];
        const { request } = await pipe(bench, { ...habit(), args });
        await request('ping');
        holds(!existsSync(marker), 'no shell', 'what stands behind a ; was run');
      },
    },
  ],
};

const framing: Chapter = {
  n: 2,
  title: 'framing',
  needs: ['StdioTransport.start or McpConnection.request'],
  promises: [
    {
      id: 'byte-by-byte',
      promise: 'an answer that comes byte by byte is read',
      fault: 'an answer that comes byte by byte is not read',
      play: async (bench) => {
        const { call } = await pipe(bench, habit('drip'));
        same(JSON.parse(await call('echo', { a: 1 })), { a: 1 });
      },
    },
    {
      id: 'cut-character',
      promise: 'a character that is cut in two arrives whole',
      fault: 'a character that is cut in two does not arrive whole',
      play: async (bench) => {
        const { call } = await pipe(bench, habit('halves'));
        same(JSON.parse(await call('echo', { name: 'Zoë' })), { name: 'Zoë' });
      },
    },
    {
      id: 'separator-in-answer',
      promise: 'U+2028 in an answer does not end a line',
      fault: 'U+2028 in an answer is taken for the end of a line',
      play: async (bench) => {
        const { call } = await pipe(bench, habit());
        same(await call('result', { result: { content: [{ type: 'text', text: STORY }] } }), STORY);
      },
    },
    {
      id: 'separator-in-argument',
      kind: 'courtesy',
      promise: 'U+2028 in an argument arrives whole, also where readline reads it',
      fault: 'U+2028 in an argument does not arrive whole where readline reads it',
      play: async (bench) => {
        // In Node 24 readline ends a line there. This does so in every version.
        const splitting = script(`
          process.stdin.setEncoding('utf8').on('data', (text) => {
            for (const line of text.split(/[\\n\\u2028\\u2029]/).filter(Boolean)) {
              let message;
              try { message = JSON.parse(line); } catch { continue; }
              const content = [{ type: 'text', text: message.params.arguments.story }];
              say({ jsonrpc: '2.0', id: message.id, result: { content } });
            }
          });`);
        const { call } = await pipe(bench, splitting);
        same(await call('echo', { story: STORY }), STORY);
      },
    },
    {
      id: 'crlf-blank-bom',
      kind: 'safety',
      promise: 'CRLF, blank lines and a byte order mark do no harm',
      fault: 'CRLF, blank lines or a byte order mark do harm',
      play: async (bench) => {
        const windows = await pipe(bench, habit('crlf'));
        same(JSON.parse(await windows.call('echo', { story: STORY })), { story: STORY });
        const chatty = await pipe(bench, habit('chatty'));
        same(JSON.parse(await chatty.call('echo', { a: 1 })), { a: 1 });
      },
    },
    {
      id: 'line-feed-in-argument',
      promise: 'a line feed in an argument does not end the message',
      fault: 'a line feed in an argument ends the message',
      play: async (bench) => {
        const { call } = await pipe(bench, habit());
        const text = 'one\ntwo\r\nthree';
        same(JSON.parse(await call('echo', { text })), { text });
      },
    },
    {
      id: 'one-megabyte',
      promise: 'a message of a megabyte arrives whole',
      fault: 'a message of a megabyte does not arrive whole',
      play: async (bench) => {
        const { call } = await pipe(bench, habit());
        const { length } = await call('big', { bytes: 2 ** 20 });
        same(length, 2 ** 20);
      },
    },
  ],
};

/** A server that notes what it hears in a file. At the first line it says `lines`. */
function noting(bench: Bench, ...lines: string[]) {
  const file = join(folder(bench), 'heard');
  const server = script(
    `
    let isFirst = true;
    hear((message, line) => {
      if (isFirst) process.stdout.write(given[1]);
      isFirst = false;
      fs.appendFileSync(given[0], line + '\\n');
    });`,
    file,
    lines.map((line) => `${line}\n`).join(''),
  );
  const messages = () => linesIn(file).map((line) => JSON.parse(line));
  const hasHeard = (count: number) =>
    until(() => messages().length >= count, `${count} messages at the server`, messages);
  return { server, messages, hasHeard };
}

const threeShapes: Chapter = {
  n: 3,
  title: 'three shapes',
  needs: ['McpConnection.connect', 'McpConnection.notify'],
  promises: [
    {
      id: 'notification-shape',
      promise: 'a notification has a method, and no id',
      fault: 'a notification does not arrive as a method without an id',
      play: async (bench) => {
        const { server, messages, hasHeard } = noting(bench);
        const { connection } = await connect(bench, server);
        await connection.notify('notifications/hello', { to: 'you' });
        await hasHeard(1);
        const hello = { jsonrpc: '2.0', method: 'notifications/hello', params: { to: 'you' } };
        same(messages(), [hello]);
      },
    },
    {
      id: 'not-a-message',
      kind: 'safety',
      promise: 'what is not a message does no harm',
      fault: 'what is not a message ends the program, or the connection',
      play: async (bench) => {
        const noise = ['Welcome!', '42', 'null', '"text"', '[]', '[null]', '{}', '{"id":1}', '{no'];
        const { server, hasHeard } = noting(bench, ...noise, '{"jsonrpc":"2.0","method":7}');
        const { connection } = await connect(bench, server);
        await connection.notify('notifications/one');
        await hasHeard(1);
        await pause(300); // until the noise has come
        await connection.notify('notifications/two');
        await hasHeard(2);
      },
    },
    {
      id: 'noise-reported',
      kind: 'courtesy',
      promise: 'noise on stdout is reported, once, and shown',
      fault: 'noise on stdout is not reported, once, by onWarning',
      play: async (bench) => {
        const noise = Array(50).fill('Welcome to Chatty 2.0!');
        const { server } = noting(bench, ...noise);
        const { connection, warnings } = await connect(bench, server);
        await connection.notify('notifications/one');
        const isTold = () => warnings.some((warning) => /Welcome to Chatty/.test(warning));
        await until(isTold, 'a warning that shows the noise', () => warnings);
        same(warnings.length, 1, 'one warning for fifty lines');
      },
    },
    {
      id: 'not-an-answer',
      promise: 'what a server asks or tells is not taken for an answer',
      fault: 'what a server asks or tells is taken for an answer',
      play: async (bench) => {
        const lines = [
          '{"jsonrpc":"2.0","id":1,"method":"roots/list"}',
          '{"jsonrpc":"2.0","method":"notifications/x"}',
          '{"jsonrpc":"2.0","id":77,"result":{"late":true}}',
        ];
        const { server } = noting(bench, ...lines);
        const { connection, warnings } = await connect(bench, server);
        await connection.notify('notifications/one');
        await until(
          () => warnings.length > 0,
          'a warning about the answer 77',
          () => warnings,
        );
        holds(/77|late/.test(warnings.join()), 'a warning about the answer 77 only', warnings);
        same(warnings.length, 1, 'a warning about the answer 77 only');
      },
    },
    {
      id: 'notify-too-early',
      kind: 'courtesy',
      promise: 'notify() before connect() fails, and says so',
      fault: 'notify() before connect() does not fail',
      play: async ({ subject }) => {
        const unused = new subject.McpConnection('judge', habit(), { onWarning() {} });
        const { message } = await failure(() => unused.notify('notifications/hello'));
        holds(/connect/i.test(message), 'an error that speaks of connect()', message);
      },
    },
  ],
};

/** Lines that the server writes in answer to a call, with $ID for its id. */
const raw = (connection: any, ...lines: string[]): Promise<any> => {
  const call = connection.request('tools/call', { name: 'raw', arguments: { lines } });
  return soon(call, 'the call to end');
};
const RIGHT = '{"jsonrpc":"2.0","id":$ID,"result":{"real":1}}';

const correlation: Chapter = {
  n: 4,
  title: 'correlation',
  needs: REQUESTING,
  promises: [
    {
      id: 'request-shape',
      promise: 'requests say jsonrpc 2.0, and each has an id of its own',
      fault: 'requests do not say jsonrpc 2.0 with an id each',
      play: async (bench) => {
        const { connection } = await connect(bench, habit());
        const pings = [1, 2, 3].map(() => connection.request('ping'));
        await soon(Promise.all(pings), 'three answers');
        const sent = await heard(connection);
        same(
          sent.map(({ jsonrpc }) => jsonrpc),
          ['2.0', '2.0', '2.0', '2.0'],
        );
        const ids = new Set(sent.map(({ id }) => id));
        holds(ids.size === 4 && !ids.has(undefined) && !ids.has(null), 'four ids', [...ids]);
      },
    },
    {
      id: 'wrong-order',
      promise: 'two answers in the wrong order reach the right callers',
      fault: 'two answers in the wrong order do not reach the right callers',
      play: async (bench) => {
        const { connection } = await connect(bench, habit('backwards', '2'));
        const calls = ['Ann', 'Bob'].map((who) => callText(connection, 'echo', { who }));
        same(await Promise.all(calls), ['{"who":"Ann"}', '{"who":"Bob"}']);
      },
    },
    {
      id: 'hundred-at-once',
      promise: 'a hundred requests at once are all answered',
      fault: 'of a hundred requests at once some are not answered, or wrongly',
      play: async (bench) => {
        const { connection } = await connect(bench, habit());
        const numbers = Array.from({ length: 100 }, (_, n) => n);
        const calls = numbers.map((n) => callText(connection, 'echo', { n }));
        const answers = await Promise.all(calls);
        same(answers.filter((text, n) => text !== `{"n":${n}}`).length, 0, 'no wrong answer');
      },
    },
    {
      id: 'same-id-both-ways',
      promise: "a server's request is not our answer, though its id is the same",
      fault: "a server's request with the id of ours is taken for its answer",
      play: async (bench) => {
        const { connection } = await connect(bench, habit());
        const question = '{"jsonrpc":"2.0","id":$ID,"method":"roots/list"}';
        same(await raw(connection, question, RIGHT), { real: 1 });
      },
    },
    {
      id: 'foreign-ids',
      kind: 'safety',
      promise: 'answers under foreign ids settle nothing, and the right one counts once',
      fault: 'an answer under a foreign id settles a call',
      play: async (bench) => {
        const { connection } = await connect(bench, habit());
        // Not "$ID": to take exactly the digits of a call that waits is a courtesy, to refuse them is right.
        const ids = [
          '"0$ID"',
          '"$ID.0"',
          'null',
          '99',
          '"__proto__"',
          '"toString"',
          '{"a":1}',
          '[1]',
          'true',
        ];
        const forged = ids.map((id) => `{"jsonrpc":"2.0","id":${id},"result":{"forged":true}}`);
        const second = RIGHT.replace('1}', '2}');
        same(await raw(connection, ...forged, RIGHT, second), { real: 1 });
        same(await soon(connection.request('ping'), 'an answer to ping'), {});
      },
    },
    {
      id: 'refusal-kept',
      promise: 'what a server refuses keeps its code, its words and its data',
      fault: 'a refusal loses its code, its words or its data',
      play: async (bench) => {
        const { connection } = await connect(bench, habit());
        const body = '{"code":-32002,"message":"no such thing","data":{"uri":"x"}}';
        const line = `{"jsonrpc":"2.0","id":$ID,"error":${body}}`;
        const error = await failure(() => raw(connection, line));
        same([error.code, error.data], [-32002, { uri: 'x' }]);
        holds(/no such thing/.test(error.message), 'a message with "no such thing"', error);
      },
    },
    {
      id: 'no-result-no-error',
      kind: 'safety',
      promise: 'neither a result nor an error, or both, is an error for that call',
      fault: 'an answer with neither result nor error, or both, is taken for a good one',
      play: async (bench) => {
        const { connection } = await connect(bench, habit());
        const both = ',"result":{},"error":{"code":1,"message":"x"}';
        for (const rest of ['', ',"result":null', both, ',"result":"done"']) {
          const line = `{"jsonrpc":"2.0","id":$ID${rest}}`;
          await failure(() => raw(connection, line), `an error for ${line}`);
        }
        same(await soon(connection.request('ping'), 'an answer to ping'), {});
      },
    },
    {
      id: 'not-json',
      kind: 'safety',
      promise: 'arguments that JSON cannot hold fail their own call only',
      fault: 'arguments that JSON cannot hold do not fail their own call only',
      play: async (bench) => {
        const { connection } = await connect(bench, habit());
        const circle: Record<string, unknown> = {};
        circle.self = circle;
        await failure(() => connection.request('tools/call', { name: 'echo', arguments: circle }));
        same(await soon(connection.request('ping'), 'an answer to ping'), {});
      },
    },
  ],
};

// A long limit everywhere: whatever ends these calls, it is not a time-out.
const patient = { handshakeTimeoutMs: 1e8, callTimeoutMs: 1e8 };
const FOREVER_MS = 1e8;

const death: Chapter = {
  n: 5,
  title: 'death',
  needs: REQUESTING,
  promises: [
    {
      id: 'missing-command',
      kind: 'safety',
      promise: 'a command that is missing fails at once, and is named',
      fault: 'a command that is missing does not fail at once with its name',
      play: async (bench) => {
        const config = { command: 'no-such-command-here', args: [] };
        const { message } = await failure(() => connect(bench, config, patient));
        holds(/no-such-command-here/.test(message), 'an error that names the command', message);
      },
    },
    {
      id: 'dies-in-call',
      kind: 'safety',
      promise: 'a call to a server that dies fails at once, and says why',
      fault: 'a call to a server that dies does not fail at once and say why',
      play: async (bench) => {
        const { connection } = await connect(bench, habit(), patient);
        const waiting = failure(() => callText(connection, 'sleep', { ms: FOREVER_MS }));
        const asked = failure(() => callText(connection, 'exit', { code: 7 }));
        for (const { message } of await Promise.all([waiting, asked])) {
          holds(/\b7\b/.test(message), 'its exit code 7 in the error', message);
          holds(/I was told to leave/.test(message), 'its last words in the error', message);
        }
      },
    },
    {
      id: 'call-after-death',
      kind: 'safety',
      promise: 'a call after the death fails at once as well',
      fault: 'a call after the death waits, or the program ends',
      play: async (bench) => {
        const { connection } = await connect(bench, habit('dies-at-once'), patient);
        await failure(() => connection.request('initialize'));
        const calls = Array.from({ length: 20 }, () => failure(() => connection.request('ping')));
        const errors = await Promise.all(calls);
        holds(/configuration/.test(errors[0].message), 'the same reason', errors[0]);
      },
    },
    {
      id: 'last-answer',
      promise: 'the last answer of a dying server still counts',
      fault: 'the last answer of a dying server is lost',
      play: async (bench) => {
        const dying = script(`
          hear(({ id }) => {
            const answer = JSON.stringify({ jsonrpc: '2.0', id, result: { n: 1 } });
            process.stdout.write(answer + '\\n', () => process.exit(1));
          });`);
        const { connection } = await connect(bench, dying, patient);
        same(await soon(connection.request('ping'), 'its last answer'), { n: 1 });
      },
    },
    {
      id: 'closed-stdout',
      kind: 'safety',
      promise: 'a server that closes its stdout, and lives, is given up',
      fault: 'a server that closes its stdout keeps its callers waiting',
      play: async (bench) => {
        const { connection } = await connect(bench, habit('closes-stdout'), patient);
        await failure(() => callText(connection, 'echo'));
      },
    },
    {
      id: 'endless-line',
      kind: 'safety',
      promise: 'a line without end is refused',
      fault: 'a line without end is not refused at maxLineBytes',
      play: async (bench) => {
        const endless = script(`
          hear(() => process.stdout.write('x'.repeat(8 * 2 ** 20)));`);
        const options = { ...patient, maxLineBytes: 2 ** 20 };
        const { connection } = await connect(bench, endless, options);
        await failure(() => connection.request('ping'));
      },
    },
  ],
};

const cancellation = (messages: any[]) =>
  messages.find(({ method }) => method === 'notifications/cancelled')?.params?.requestId;

async function cancelled(connection: any): Promise<void> {
  const messages = await heard(connection);
  const { id } = messages.find(({ params }) => params?.name === 'sleep') ?? {};
  const expected = `notifications/cancelled for the id ${show(id)}`;
  const came = cancellation(messages);
  if (came === undefined || came !== id) throw new Mismatch(expected, came);
}

const deadlines: Chapter = {
  n: 6,
  title: 'deadlines',
  needs: REQUESTING,
  promises: [
    {
      id: 'call-limit',
      kind: 'safety',
      promise: 'a call without an answer ends by its limit',
      fault: 'a call without an answer does not end by its timeoutMs',
      play: async (bench) => {
        const { connection } = await connect(bench, habit());
        const call = callText(connection, 'sleep', { ms: FOREVER_MS }, { timeoutMs: 150 });
        await failure(() => call, 'an error after 0.15 s');
      },
    },
    {
      id: 'cancel-said',
      promise: 'giving up is said: the server hears notifications/cancelled',
      fault: 'the server does not hear notifications/cancelled when we give up',
      play: async (bench) => {
        const { connection } = await connect(bench, habit());
        const call = callText(connection, 'sleep', { ms: FOREVER_MS }, { timeoutMs: 150 });
        await failure(() => call, 'an error after 0.15 s');
        await cancelled(connection);
      },
    },
    {
      id: 'late-answer',
      promise: 'an answer that comes too late is ignored, and not reported',
      fault: 'an answer that comes too late is not ignored without a word',
      play: async (bench) => {
        const { connection, warnings } = await connect(bench, habit());
        const call = callText(connection, 'sleep', { ms: 400 }, { timeoutMs: 100 });
        await failure(() => call, 'an error after 0.1 s');
        await callText(connection, 'sleep', { ms: 600 }); // the late answer comes before this one
        same(warnings, [], 'no warning');
      },
    },
    {
      id: 'abort-signal',
      kind: 'courtesy',
      promise: 'an AbortSignal ends a call, and the server hears of it',
      fault: 'an AbortSignal does not end a call, or the server does not hear of it',
      play: async (bench) => {
        const { connection } = await connect(bench, habit());
        const { signal, abort } = abortable();
        const call = failure(() => callText(connection, 'sleep', { ms: FOREVER_MS }, { signal }));
        await soon(connection.request('ping'), 'an answer to ping');
        abort();
        await call;
        await cancelled(connection);
      },
    },
    {
      id: 'aborted-before',
      kind: 'courtesy',
      promise: 'a call whose signal was aborted before is not sent',
      fault: 'a call whose signal was aborted before is sent',
      play: async (bench) => {
        const { connection } = await connect(bench, habit());
        const options = { signal: AbortSignal.abort() };
        await failure(() => callText(connection, 'sleep', { ms: 1 }, options));
        const sent = await heard(connection);
        same(
          sent.filter(({ params }) => params?.name === 'sleep'),
          [],
          'nothing at the server',
        );
      },
    },
    {
      id: 'initialize-not-cancelled',
      needs: [...REQUESTING, 'McpConnection.notify'],
      promise: 'initialize is never cancelled on the wire',
      fault: 'initialize is cancelled on the wire',
      play: async (bench) => {
        const { server, messages, hasHeard } = noting(bench);
        const { connection } = await connect(bench, server);
        await failure(() => connection.request('initialize', {}, { timeoutMs: 1500 }));
        await connection.notify('notifications/after').catch(() => {}); // it may have been ended
        await hasHeard(1);
        await pause(100);
        same(cancellation(messages()), undefined, 'no notifications/cancelled');
      },
    },
    {
      id: 'timer-stopped',
      kind: 'courtesy',
      promise: 'the timer of a call that was answered is stopped',
      fault: 'the timer of a call that was answered goes on',
      play: async (bench) => {
        const { connection } = await connect(bench, habit());
        await soon(connection.request('ping'), 'an answer to ping');
        const timers = () => process.getActiveResourcesInfo().filter((each) => each === 'Timeout');
        const before = timers().length;
        const ping = () => connection.request('ping', {}, { timeoutMs: 1e6 });
        await soon(Promise.all([ping(), ping(), ping()]), 'three answers');
        holds(timers().length <= before, 'no timer left', `${timers().length - before} timers`);
      },
    },
  ],
};

function abortable() {
  const controller = new AbortController();
  return { signal: controller.signal, abort: () => controller.abort() };
}

export const oneWire: Chapter[] = [aPipe, framing, threeShapes, correlation, death, deadlines];
