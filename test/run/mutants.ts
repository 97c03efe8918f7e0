// npm run mutants: bugs, one at a time, put into the server of chapter 29. For each a case of server-cases.ts must fail. The
// first thirty are those of which the official suite's scored sets notice four; the others are of our own.

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import { root } from '../help/installed.ts';
import { cases } from '../help/server-cases.ts';
import type { Subject } from '../help/server-fixture.ts';

type Mutant = { bug: string; file: string; from: string; to: string };

const mutants: Mutant[] = [
  {
    bug: 'neither Host nor Origin is checked',
    file: 'serve-http',
    from: '    checkOrigin(headers, this.door);\n',
    to: '',
  },
  {
    bug: 'a session id is demanded, but never given',
    file: 'serve-http',
    from: "{ 'mcp-session-id': visit.id }",
    to: '{}',
  },
  { bug: 'resultType is missing', file: 'server', from: "      resultType: 'complete',\n", to: '' },
  {
    bug: 'list_changed goes to streams that did not ask for it',
    file: 'subscriptions',
    from: 'if (wanted[WATCHED[what]] === true) tell',
    to: 'tell',
  },
  {
    bug: 'an unknown session id is accepted',
    file: 'serve-http',
    from: "if (!visit) throw new Refused(404, 'This session has ended, or never was');",
    to: 'if (!visit) { const made = this.newVisit(); made.session.isOpen = true; return made; }',
  },
  {
    bug: 'DELETE is ignored',
    file: 'serve-http',
    from: '      this.forget(visit);\n      response',
    to: '      response',
  },
  {
    bug: 'Mcp-Name is not checked',
    file: 'mirror',
    from: "if (key) same('Mcp-Name'",
    to: "if (key && method === 'never') same('Mcp-Name'",
  },
  {
    bug: 'Mcp-Param-* is not checked',
    file: 'mirror',
    from: 'for (const { path, header } of mirrors) {',
    to: 'for (const { path, header } of mirrors.slice(1e6)) {',
  },
  {
    bug: 'base64 is read leniently',
    file: 'mirror',
    from: "if (bytes.toString('base64') === base64) return",
    to: 'return',
  },
  {
    bug: 'there is no priming event',
    file: 'stream',
    from: 'if (isNew && this.isPrimed) this.write',
    to: 'if (false as boolean) this.write',
  },
  {
    bug: 'no serverInfo in _meta',
    file: 'server',
    from: '{ [SERVER_INFO_KEY]: this.serverInfo(), ...asObject(result._meta) }',
    to: '{ ...asObject(result._meta) }',
  },
  {
    bug: '-32002 in the stateless era',
    file: 'server',
    from: 'call.isStateless ? -32602 : NOT_FOUND',
    to: 'NOT_FOUND',
  },
  {
    bug: 'only Host is checked',
    file: 'guard',
    from: 'if (origin === undefined) return; // not a browser',
    to: 'return;',
  },
  {
    bug: 'only Origin is checked',
    file: 'guard',
    from: "if (!hostnames.has(hostnameOf(`http://${host}`))) throw new Refused(403, 'Host is not allowed');",
    to: 'void host;',
  },
  {
    bug: 'Content-Type is not checked',
    file: 'guard',
    from: "if (type.trim().toLowerCase() !== 'application/json') {",
    to: 'if (type === "never") {',
  },
  {
    bug: 'Accept is not checked',
    file: 'guard',
    from: 'if (wanted.every(isRead)) return;',
    to: 'return;',
  },
  {
    bug: 'a body has no limit',
    file: 'serve-http',
    from: 'if (size <= most) return',
    to: 'if (size <= Infinity) return',
  },
  {
    bug: 'a batch is swallowed',
    file: 'serve-http',
    from: 'Array.isArray(message) && visit.session.mayBatch',
    to: 'Array.isArray(message)',
  },
  {
    bug: 'events are not replayed after Last-Event-ID',
    file: 'stream',
    from: '    if (!isNew) this.replay(after);\n',
    to: '',
  },
  { bug: 'no X-Accel-Buffering', file: 'stream', from: "  'x-accel-buffering': 'no',", to: '' },
  {
    bug: 'a closed connection does not cancel',
    file: 'serve-http',
    from: "if (!response.writableFinished) control.abort(new Error('the client is gone'));",
    to: '',
  },
  {
    bug: 'any revision is agreed on',
    file: 'server',
    from: 'REVISIONS.find((ours) => ours === theirs) ?? REVISIONS[0]!',
    to: 'theirs',
  },
  {
    bug: 'a second initialize is accepted',
    file: 'server',
    from: "    if (session.isOpen) throw new RpcError(-32600, 'Already initialized');\n",
    to: '',
  },
  {
    bug: 'work without initialize',
    file: 'server',
    from: "    if (!session.isOpen) throw new RpcError(-32600, 'Not initialized: send initialize first');\n",
    to: '',
  },
  {
    bug: 'the log level is ignored',
    file: 'server-call',
    from: 'if (!isLevel(least) || LEVELS.indexOf(level) < LEVELS.indexOf(least as string)) return;',
    to: 'void least;',
  },
  {
    bug: 'requestState is good for another request',
    file: 'request-state',
    from: 'if (of !== lastingPart(request)) {',
    to: 'if (of === undefined) {',
  },
  {
    bug: 'requestState never expires',
    file: 'request-state',
    from: "    if (Number(until) < this.clock()) throw new RpcError(-32602, 'requestState has expired');\n",
    to: '',
  },
  {
    bug: 'an unknown tool is a result with isError',
    file: 'server',
    from: 'if (!tool) throw new RpcError(-32602, `Unknown tool: ${name.slice(0, 128)}`);',
    to: "if (!tool) return failed('unknown');",
  },
  {
    bug: 'resources/subscribe does nothing',
    file: 'server',
    from: "          session!.watch(stringParam(params, 'uri'));\n",
    to: '',
  },
  {
    bug: 'an error has its stack in its message',
    file: 'server',
    from: 'throw new RpcError(-32603, `Internal error in ${request.method}`);',
    to: 'throw new RpcError(-32603, (error as Error).stack ?? "");',
  },
];

const OF_OUR_OWN: Mutant[] = [
  {
    bug: 'a yes counts as often as it is sent',
    file: 'request-state',
    from: 'if (this.used.has(nonce) || this.used.size',
    to: 'if (this.used.size',
  },
  {
    bug: 'used yeses are remembered without a limit',
    file: 'request-state',
    from: ' || this.used.size >= MAX_USED',
    to: '',
  },
  {
    bug: 'used yeses are never forgotten',
    file: 'request-state',
    from: '      this.used.delete(old);\n',
    to: '',
  },
  {
    bug: 'a yes of an earlier round is good for other words',
    file: 'server-call',
    from: 'earlier?.of === of ? earlier.answer',
    to: 'earlier ? earlier.answer',
  },
  {
    bug: 'a yes is good for other words',
    file: 'server-call',
    from: 'const isAsked = asked[place] === of;',
    to: 'const isAsked = asked[place] !== undefined;',
  },
  {
    bug: 'the first answer of a handler answers its second question',
    file: 'server-call',
    from: 'return count === 1 ? key : `${key}#${count}`;',
    to: 'return key;',
  },
  { bug: 'a handler speaks after its result', file: 'server', from: '      call.end();\n', to: '' },
  {
    bug: 'names are found anywhere in Host and Origin',
    file: 'guard',
    from: "  if (!/^[a-z]+:\\/\\/[^\\s/?#@\\\\]+$/.test(address)) return '';\n",
    to: '',
  },
  {
    bug: 'two Hosts are accepted',
    file: 'serve-http',
    from: '    checkOneHost(rawHeaders);\n',
    to: '',
  },
  {
    bug: 'a token is good if ours begins with it',
    file: 'guard',
    from: 'if (isSameSecret(given, token)) return;',
    to: 'if (given && token.startsWith(given)) return;',
  },
  {
    bug: 'a token is good if it begins with ours',
    file: 'guard',
    from: 'if (isSameSecret(given, token)) return;',
    to: 'if (given.startsWith(token)) return;',
  },
  { bug: 'q=0 is a yes', file: 'guard', from: '.filter((wish) => !NEVER.test(wish))', to: '' },
  {
    bug: 'GET and DELETE of any revision',
    file: 'serve-http',
    from: "    if (!isOfSessions(headers)) throw new Refused(400, 'MCP-Protocol-Version is not of a session');\n",
    to: '',
  },
  {
    bug: 'DELETE leaves the streams open',
    file: 'serve-http',
    from: '      stream.end();\n      this.open',
    to: '      this.open',
  },
  {
    bug: 'cancels calls of other sessions',
    file: 'server',
    from: 'session.cancel(asObject(params).requestId);',
    to: 'for (const each of this.sessions) each.cancel(asObject(params).requestId);',
  },
  {
    bug: 'answers questions of other sessions',
    file: 'serve-http',
    from: 'visit.session.answered(message as Message);',
    to: 'for (const each of this.visits.values()) each.session.answered(message as Message);',
  },
  {
    bug: 'a session that works goes first',
    file: 'serve-http',
    from: '    for (const visit of this.visits.values()) if (isIdle(visit)) return visit;\n',
    to: '',
  },
  {
    bug: 'a session that is listened to is idle',
    file: 'serve-http',
    from: 'session.busy === 0 && !listening?.isConnected;',
    to: 'session.busy === 0 || !listening;',
  },
  {
    bug: 'an empty batch is no mistake',
    file: 'serve-http',
    from: 'messages.length === 0 || messages',
    to: 'messages',
  },
  {
    bug: 'a batch has no end',
    file: 'serve-http',
    from: 'messages.length > MAX_BATCH',
    to: 'messages.length > 1e6',
  },
  {
    bug: 'half of a bad batch is done',
    file: 'serve-http',
    from: '  for (const each of messages) shapeOf(each);\n',
    to: '',
  },
  {
    bug: 'one bad id spoils a batch',
    file: 'serve-http',
    from: '.catch((error) => refusal(request.id!, error))',
    to: '',
  },
  {
    bug: 'any stream of the session is resumed',
    file: 'serve-http',
    from: 'event && visit.streams.get(event.name)',
    to: '[...visit.streams.values()][0] as Stream',
  },
  {
    bug: 'what was heard is said again',
    file: 'stream',
    from: 'if (number > after) this',
    to: 'if (number >= after) this',
  },
  {
    bug: 'a stream remembers everything',
    file: 'stream',
    from: 'this.events.length > MAX_EVENTS || ',
    to: '',
  },
  {
    bug: 'streams are kept without a limit',
    file: 'serve-http',
    from: 'if (n >= tooMany && time',
    to: 'if (time',
  },
  {
    bug: 'an id in use is used again',
    file: 'client-session',
    from: '    if (this.running.has(id)) throw new RpcError(-32600, `The id ${excerpt(id)} is in use`);\n',
    to: '',
  },
  {
    bug: 'resources are watched without a limit',
    file: 'client-session',
    from: 'this.watched.size >= MAX_WATCHED',
    to: 'this.watched.size < 0',
  },
  {
    bug: 'subscriptions without a limit',
    file: 'subscriptions',
    from: 'this.open.size >= MAX_OPEN',
    to: 'this.open.size < 0',
  },
  {
    bug: 'calls on a pipe without a limit',
    file: 'pipe',
    from: 'session.busy >= MAX_RUNNING',
    to: 'session.busy < 0',
  },
  {
    bug: 'an empty header is 0',
    file: 'mirror',
    from: "typeof value === 'number' && `${header}`.trim() !== ''",
    to: "typeof value === 'number'",
  },
  {
    bug: 'a header for an argument that is not there',
    file: 'mirror',
    from: 'if (isAbsent && header === undefined) return;',
    to: 'if (isAbsent) return;',
  },
  {
    bug: 'completes with what every object has',
    file: 'server',
    from: 'Object.hasOwn(complete, argument) ? complete[argument] : undefined',
    to: 'complete[argument]',
  },
  {
    bug: 'ids may be fractions',
    file: 'message-shapes',
    from: 'Number.isSafeInteger(id)',
    to: "typeof id === 'number'",
  },
];

const source = join(root, 'chapters', '29-a-server');
const LIMIT_MS = 20_000; // for a case that waits for what a bug has taken away

/** The modules of the chapter with one bug. They use the rest of the program as it is. */
async function withBug({ file, from, to }: Mutant, folder: string): Promise<Subject> {
  const names = readdirSync(source, { recursive: true }) as string[];
  for (const name of names.filter((each) => each.endsWith('.ts'))) {
    const text = readFileSync(join(source, name), 'utf8');
    const isHere = basename(name) === `${file}.ts`;
    if (isHere && text.split(from).length !== 2)
      throw new Error(`${name} does not have this once: ${from}`);
    const bad = isHere ? text.replace(from, () => to) : text;
    const far = bad.replace(/from '(\.\.\/[^']+)'/g, (whole, path) => {
      const target = join(source, dirname(name), path);
      return target.startsWith(source + sep) ? whole : `from '${pathToFileURL(target).href}'`;
    });
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), far);
  }
  const load = (name: string) => import(pathToFileURL(join(folder, `${name}.ts`)).href);
  return {
    ...(await load('serve-http')),
    ...(await load('pipe')),
    ...(await load('request-state')),
    ...(await load('server')),
  };
}

/** The first case that fails, and how many did. */
async function killer(subject: Subject): Promise<string | undefined> {
  for (const [name, run] of Object.entries(cases)) {
    const cleaners: (() => unknown)[] = [];
    const late = new Promise((_, fail) =>
      setTimeout(() => fail(new Error('it waits in vain')), LIMIT_MS).unref(),
    );
    try {
      await Promise.race([run(subject, (clean) => cleaners.push(clean)), late]);
    } catch {
      return name;
    } finally {
      for (const clean of cleaners.reverse()) void clean();
    }
  }
  return undefined;
}

const base = mkdtempSync(join(root, '.cache', 'mutants-'));
process.on('exit', () => rmSync(base, { recursive: true, force: true }));
process.on('unhandledRejection', () => {}); // of a case that was given up
process.on('uncaughtException', () => {}); // a bug may break anything
let alive = 0;
const [word = ''] = process.argv.slice(2); // only the bugs with this word
const all = [...mutants, ...OF_OUR_OWN].filter(({ bug }) => bug.includes(word));
for (const [n, mutant] of all.entries()) {
  const killedBy = await killer(await withBug(mutant, join(base, `${n}`)));
  if (!killedBy) alive++;
  console.log(
    killedBy ? `✓ ${mutant.bug}: found by "${killedBy}"` : `✗ ${mutant.bug}: no case notices`,
  );
}
console.log(`${all.length - alive} of ${all.length} bugs are found.`);
process.exit(alive === 0 ? 0 : 1);
