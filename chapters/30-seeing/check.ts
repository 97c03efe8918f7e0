// check.ts: judges a recording by the protocol's rules. It looks at one server at a time, message by
// message, and remembers what was agreed and what is still open.

import { asObject, excerpt, isObject, REVISIONS, type Json } from '../../mcp.ts';
import { VERSION_KEY } from '../20-streamable-http/mirrored-headers.ts';
import { CAPABILITIES_KEY, STATELESS } from '../22-no-handshake/era.ts';
import { problemsWith } from '../23-the-server-asks/schema.ts';
import {
  idKey,
  isResponse,
  isNotification,
  isRequest,
  serversOf,
  tokenOf,
  word,
  type Happening,
  type Recording,
  type Sighting,
} from './more/read-trace.ts';
import { problemsWithRequests } from './requests.ts';
import { misfits, shapeAt } from './more/shapes.ts';

type Finding = {
  line: number;
  server: string;
  who: 'client' | 'server';
  level: 'error' | 'warning'; // a rule was broken; or something that deserves a look
  rule: string; // a word for it, to be searched for
  text: string;
};

/** Everything that is wrong with a recording, in the order of its lines. */
export function checkTrace(recording: Recording): Finding[] {
  const findings = serversOf(recording).flatMap((server) =>
    connectionsOf(recording, server).flatMap((messages) => {
      const judge = new Judge(server);
      for (const message of messages) judge.see(message);
      judge.end();
      return judge.findings;
    }),
  );
  for (const { line, server, record } of recording.happenings) {
    if (record.noise === undefined || !server) continue;
    const text = `is not a message: ${excerpt(record.noise)}`;
    const who = record.dir === 'out' ? 'client' : 'server';
    findings.push({ line, server, who, level: 'error', rule: 'noise', text });
  }
  for (const problem of problemsWithRequests(recording))
    findings.push({ who: 'client', level: 'error', ...problem });
  return findings.sort((a, b) => a.line - b.line);
}

/** The messages of one server, connection by connection: a new one begins a new conversation. */
function connectionsOf({ header, messages, happenings }: Recording, server: string): Sighting[][] {
  const isStart = ({ record }: Happening) =>
    record.type === 'server' && STARTS.includes(word(record.state));
  const starts = happenings.filter((each) => each.server === server && isStart(each));
  const own = messages.filter((message) => message.server === server);
  const lines = [...header.lines, ...starts.map(({ line }) => line)].sort((a, b) => a - b);
  const borders = [0, ...lines, Infinity];
  const between = (from: number, to: number) => own.filter(({ line }) => line > from && line < to);
  const parts = borders.slice(1).map((to, i) => between(borders[i]!, to));
  return parts.filter((part) => part.length > 0);
}

const STARTS = ['started', 'connecting', 'reconnecting'];

type Party = Finding['who'];
type SeenCall = {
  message: Sighting;
  isOpen: boolean;
  isCancelled?: boolean;
  lastProgress?: number;
};

const NEWEST = STATELESS[0]!;
const KNOWN = [...STATELESS, ...REVISIONS];

/** What it needs that the other side has declared: of `client` and `server`, to request this. */
function needFor(who: Party | 'notice', method: string): string | undefined {
  const need = shapeAt('mcp', 'needs', who)[method];
  return typeof need === 'string' ? need : undefined;
}

/** Some of it needs more than the word for it. */
function needOf(method: string, params: Json): string | undefined {
  if (method === 'elicitation/create' && params.mode === 'url') return 'elicitation.url';
  if (method === 'sampling/createMessage' && params.tools !== undefined) return 'sampling.tools';
  return needFor('server', method);
}

/** Judges the messages between one server and its client. */
class Judge {
  readonly findings: Finding[] = [];
  private server: string;
  private at!: Sighting; // the message at hand
  private requests: Record<Party, Map<string, SeenCall>> = { client: new Map(), server: new Map() };
  private state: 'new' | 'opening' | 'open' = 'new';
  private supported?: unknown[]; // the revisions that a stateless server named
  private hasToldInitialized = false;
  private version?: string;
  private can: { [who in Party]?: Json } = {}; // unknown until it has said so
  private tools = new Map<string, Json>();
  private hasAllTools = false;

  constructor(server: string) {
    this.server = server;
  }

  see(message: Sighting): void {
    this.at = message;
    const { msg } = message;
    this.mustFit(msg, 'message');
    if (isResponse(msg)) this.answer(msg);
    else if (isRequest(msg)) this.request(msg);
    else if (isNotification(msg)) this.notification(msg);
  }

  end(): void {
    for (const who of ['client', 'server'] as const) {
      for (const { message, isOpen, isCancelled } of this.requests[who].values()) {
        const { method } = message.msg;
        if (!isOpen || isCancelled || method === 'subscriptions/listen') continue;
        this.at = message;
        this.report('unanswered', `${word(method)} was never answered`, other(who), 'warning');
      }
    }
  }

  // ─── Every message ──────────────────────────────────────────────────────────────────────────

  private get who(): Party {
    return this.at.dir === 'out' ? 'client' : 'server';
  }

  private report(rule: string, text: string, who = this.who, level: Finding['level'] = 'error') {
    this.findings.push({ line: this.at.line, server: this.server, who, level, rule, text });
  }

  private warn(rule: string, text: string): void {
    this.report(rule, text, this.who, 'warning');
  }

  /** By the schemas of these rules. */
  private mustFit(value: unknown, ...keys: string[]): void {
    for (const [rule, text] of misfits(shapeAt('mcp', ...keys), value)) this.report(rule, text);
  }

  // ─── Requests ───────────────────────────────────────────────────────────────────────────────

  private request(msg: Json): void {
    const { who } = this;
    const id = idKey(msg.id);
    this.mustFit(asObject(msg.params), 'params', word(msg.method));
    if (this.requests[who].has(id)) this.report('id', `the id ${excerpt(msg.id)} was used before`);
    this.requests[who].set(id, { message: this.at, isOpen: true });
    if (who === 'client') this.requestOfClient(msg);
    else this.requestOfServer(msg);
  }

  private requestOfClient(msg: Json): void {
    const method = word(msg.method);
    const meta = asObject(asObject(msg.params)._meta);
    const isStateless = typeof meta[VERSION_KEY] === 'string';
    if (method === 'initialize') this.opening(msg);
    else if (isStateless) this.statelessRequest(method, meta);
    else if (this.state === 'new' && method !== 'ping')
      this.report('handshake', `${method} before initialize`);
    // These two are a SHOULD of the specification.
    else if (this.state === 'opening' && method !== 'ping')
      this.warn('handshake', `${method} before the answer to initialize`);
    else if (this.version !== NEWEST && !this.hasToldInitialized && method !== 'ping')
      this.warn('handshake', `${method} before notifications/initialized`);
    // The first revision had completion, and no word for it.
    const isOld = method === 'completion/complete' && this.version === '2024-11-05';
    if (!isOld) this.mustBeDeclared(needFor('client', method), `${method} is requested`);
    if (method === 'tools/call') this.call(asObject(msg.params));
  }

  private opening(msg: Json): void {
    if (this.state === 'open') this.report('handshake', 'initialize a second time');
    if (this.state === 'opening')
      this.warn('handshake', 'initialize again, before it was answered');
    if (this.state === 'new') this.state = 'opening';
    const { protocolVersion, capabilities } = asObject(msg.params);
    this.knownVersion(protocolVersion);
    this.can.client = asObject(capabilities);
  }

  private statelessRequest(method: string, meta: Json): void {
    this.knownVersion(meta[VERSION_KEY]);
    if (this.supported && !this.supported.includes(meta[VERSION_KEY]))
      this.report('version', `the server does not speak ${excerpt(meta[VERSION_KEY])}`);
    // A client of both eras asks first: until the server describes itself, nothing is agreed.
    if (method !== 'server/discover') {
      this.state = 'open';
      this.version = `${meta[VERSION_KEY]}`;
    }
    this.can.client = asObject(meta[CAPABILITIES_KEY]);
    if (!isObject(meta[CAPABILITIES_KEY]))
      this.report('handshake', `_meta has no ${CAPABILITIES_KEY}`);
  }

  private knownVersion(version: unknown): void {
    if (!KNOWN.includes(word(version)))
      this.warn('version', `there is no revision ${excerpt(version)}`);
  }

  private requestOfServer(msg: Json): void {
    const method = word(msg.method);
    if (this.version === NEWEST && method !== 'ping')
      this.report(
        'era',
        `a server of ${NEWEST} sends no requests; ${method} belongs into a result`,
      );
    if (!this.hasToldInitialized && this.version !== NEWEST && method !== 'ping')
      this.warn('handshake', `${method} before notifications/initialized`);
    this.asked(msg);
  }

  /** The server asks the client, by a request or inside a result. */
  private asked({ method: asked, params }: Json): void {
    const method = word(asked);
    const need = needOf(method, asObject(params));
    this.mustBeDeclared(need, `${method} is asked for`, 'client');
  }

  private mustBeDeclared(need: string | undefined, what: string, by: Party = 'server'): void {
    const can = this.can[by];
    if (!need || !can) return;
    const [offer = '', part] = need.split('.');
    const has = can[offer] !== undefined && (!part || Boolean(asObject(can[offer])[part]));
    if (!has) this.report('capability', `${what}, and the ${by} did not declare ${need}`);
  }

  // ─── Answers ────────────────────────────────────────────────────────────────────────────────

  private answer(msg: Json): void {
    const asker = other(this.who);
    const id = idKey(msg.id);
    const asked = this.requests[asker].get(id);
    if (!asked?.isOpen) {
      if (msg.id === null) return;
      const what = asked ? 'a second time' : 'but there was no such request';
      return this.report('answer', `${excerpt(msg.id)} is answered ${what}`);
    }
    asked.isOpen = false;
    const request = asked.message.msg;
    const isRefusal = msg.error !== undefined && request.method === 'initialize';
    if (isRefusal && this.state === 'opening') this.state = 'new'; // it may be tried in another way
    if (asked.isCancelled) this.warn('late', `${word(request.method)} was cancelled before`);
    if (this.who === 'server' && msg.error === undefined) this.result(request, msg.result);
  }

  private result(request: Json, result: unknown): void {
    const method = word(request.method);
    const object = asObject(result);
    this.mustFit(object, 'result', method);
    if (method === 'initialize') this.opened(object);
    if (method === 'server/discover') this.discovered(object);
    if (this.version === NEWEST && object.resultType === undefined)
      this.report('result', `the result of ${method} has no resultType`);
    if (method === 'tools/list')
      this.toolList(object, asObject(request.params).cursor === undefined);
    if (object.resultType === 'input_required')
      for (const question of Object.values(asObject(object.inputRequests)))
        this.asked(asObject(question));
    if (method === 'tools/call' && object.resultType !== 'input_required')
      this.callResult(asObject(request.params), object);
  }

  private opened(result: Json): void {
    this.state = 'open';
    const { protocolVersion, capabilities } = result;
    this.version = word(protocolVersion);
    this.knownVersion(protocolVersion);
    this.can.server = asObject(capabilities);
  }

  private discovered(result: Json): void {
    if (!Array.isArray(result.supportedVersions)) return;
    this.state = 'open';
    this.version = NEWEST;
    this.supported = result.supportedVersions;
    this.can.server = asObject(result.capabilities);
  }

  // ─── Tools ──────────────────────────────────────────────────────────────────────────────────

  private toolList({ tools, nextCursor }: Json, isFirstPage: boolean): void {
    if (!Array.isArray(tools)) return;
    if (isFirstPage) this.tools.clear();
    for (const tool of tools.map(asObject)) this.tools.set(word(tool.name), tool);
    this.hasAllTools = nextCursor === undefined || nextCursor === null;
  }

  private call({ name: called, arguments: args }: Json): void {
    const name = word(called);
    const tool = this.tools.get(name);
    if (!tool) {
      if (this.hasAllTools) this.report('tool', `there is no tool ${excerpt(name)}`);
      return;
    }
    this.mustSatisfy(tool.inputSchema, args ?? {}, 'arguments', name);
  }

  /** A schema of the server's own. */
  private mustSatisfy(schema: unknown, value: unknown, rule: string, name: string): void {
    for (const { path, message } of problemsWith(schema, value))
      this.report(rule, `of ${name}: ${path || 'the whole'} ${message}`);
  }

  private callResult({ name: called }: Json, result: Json): void {
    const name = word(called);
    const { isError, structuredContent } = result;
    if (result.resultType === 'task') return;
    const schema = this.tools.get(name)?.outputSchema;
    if (!isObject(schema) || isError === true) return;
    if (structuredContent === undefined)
      return this.report('output', `${name} has an outputSchema, and no structuredContent came`);
    this.mustSatisfy(schema, structuredContent, 'output', name);
  }

  // ─── Notifications ──────────────────────────────────────────────────────────────────────────

  private notification(msg: Json): void {
    const method = word(msg.method);
    const params = asObject(msg.params);
    this.mustFit(params, 'params', method);
    if (!method.startsWith('notifications/'))
      this.warn('method', `${method} has no id, and is not called notifications/…`);
    if (method === 'notifications/initialized') this.initialized();
    if (method === 'notifications/cancelled') this.cancelled(params);
    if (method === 'notifications/progress') this.progress(params);
    if (method === 'notifications/tools/list_changed') this.hasAllTools = false;
    if (this.who === 'server') this.mustBeDeclared(needFor('notice', method), `${method} is sent`);
  }

  private initialized(): void {
    if (this.who === 'server')
      return this.report('handshake', 'a server does not send initialized');
    if (this.state !== 'open')
      this.report('handshake', 'notifications/initialized before the answer to initialize');
    this.hasToldInitialized = true;
  }

  private cancelled({ requestId }: Json): void {
    const id = idKey(requestId);
    const asked = this.requests[this.who].get(id);
    if (asked) asked.isCancelled = true;
    if (asked?.isOpen && asked.message.msg.method === 'initialize')
      this.report('cancelled', 'initialize must not be cancelled');
    // In the newest revision a server ends a subscription of the client in this way.
    const isStream = this.requests.client.get(id)?.isOpen;
    if (!asked && !isStream) this.warn('cancelled', `there is no request ${excerpt(requestId)}`);
  }

  private progress({ progressToken, progress }: Json): void {
    const asked = [...this.requests[other(this.who)].values()];
    const isOwner = ({ isOpen, message }: SeenCall) =>
      isOpen && tokenOf(message.msg.params) === progressToken;
    const owner = asked.find(isOwner);
    if (!owner)
      return this.warn('progress', `no open request has the token ${excerpt(progressToken)}`);
    if (typeof progress !== 'number') return;
    if (owner.lastProgress !== undefined && progress <= owner.lastProgress)
      this.report('progress', `${progress} is not more than ${owner.lastProgress}`);
    owner.lastProgress = progress;
  }
}

const other = (who: Party): Party => (who === 'client' ? 'server' : 'client');
