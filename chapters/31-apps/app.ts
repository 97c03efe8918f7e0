// app.ts: one app. It is a client, and we are its server: this is the dialect that it speaks. What
// carries its messages is a page in a browser, which decides nothing.

import { randomBytes } from 'node:crypto';
import type { GateKeeper, Tool } from '../../agent.ts';
import {
  asList,
  asObject,
  Connection,
  RpcError,
  show,
  textOf,
  toolLabel,
  VERSION,
  type Extension,
  type Incoming,
  type Json,
  type Tool as ServerTool,
  type Transport,
  type TransportEvents,
} from '../../mcp.ts';
import { choice, NO } from '../17-the-gate/dialogue.ts';
import { canonicalJson } from '../17-the-gate/digest.ts';
import type { ChoiceQuestion, Person } from '../17-the-gate/person.ts';
import { quoted, told } from '../17-the-gate/safe-text.ts';
import type { PrepareArguments } from '../19-the-terminal/host.ts';
import { type Counts, whileAsking } from '../23-the-server-asks/asking.ts';
import { policyFor, type AppPolicy } from './app-policy.ts';

export const MIME = 'text/html;profile=mcp-app';
const DIALECT = '2026-01-26';
const DISPLAY_MODES = ['inline', 'fullscreen'];
const MAX_HTML = 16 * 2 ** 20; // characters
const MAX_TEXT = 20_000; // characters of a message, or of what the model should know
const MAX_HEIGHT = 4000; // pixels
const MAX_AT_ONCE = 20; // calls
const MAX_NOES = 3; // to one tool: then the person is not asked again
const FAREWELL_MS = 1000;
const WHILE_OPEN = choice('[w]hile this app is open');

/** The address of the app that belongs to a tool. Servers of the drafts have it in another place. */
export function appOf({ _meta }: Json): string | undefined {
  const meta = asObject(_meta);
  const uri = asObject(meta.ui).resourceUri ?? meta['ui/resourceUri'];
  return typeof uri === 'string' && uri.startsWith('ui://') ? uri : undefined;
}

/** By default a tool is for models and for apps. */
export function mayApp({ _meta }: Json): boolean {
  const { visibility } = asObject(asObject(_meta).ui);
  return !Array.isArray(visibility) || visibility.includes('app');
}

/** What an app needs of the program around it. */
export type AppSurroundings = {
  person: Person;
  gate: GateKeeper;
  prepareArguments: PrepareArguments;
  isOff: (server: string, tool: string) => boolean; // the user has switched it off
  prompt: (text: string, isDraft: boolean) => void; // into the chat, as the user's
  trace: (record: Json) => void;
  changed: (app: App) => void; // it is at work, or not; or it has ended
  counts: Counts; // how often apps may ask
  progressMs?: number; // how often one that waits hears that someone is there
};
/** A call of a tool that has an app. */
export type AppCall = { connection: Connection; tool: ServerTool; args: Json };
/** What the page does for us. */
export type PageOrder = Partial<{
  app: unknown; // a message, to be carried
  show: Json; // the frame
  height: number;
  mode: string;
  note: string;
  question: string; // that waits for the person; "" for none
  page: string; // the address of one, to be opened
  closed: string; // why
}>;

export class App {
  readonly id = randomBytes(10).toString('hex'); // nobody can guess it
  readonly number: number;
  readonly name: string;
  readonly call: AppCall;
  carry: (order: PageOrder) => void = () => {}; // to the page
  context = ''; // for the model
  isNews = false; // the model has not heard of it
  atWork = 0; // its calls
  ended?: string; // why
  private around: AppSurroundings;
  private host: Connection; // the host's end: we are the server here
  private events?: TransportEvents;
  private outcome?: [method: string, params: Json];
  private isReady = false;
  private mode = 'inline';
  private modes: unknown[] = [];
  private room: Json = {}; // what the page knows of itself
  private allowed = new Set<string>(); // tools, as they were when the user allowed them
  private known?: ServerTool[];
  private isAsking = false;
  private noes = new Map<string, number>();
  private loading?: Promise<{ html: string; policy: AppPolicy; allow: string }>;

  constructor(number: number, call: AppCall, around: AppSurroundings) {
    this.number = number;
    this.call = call;
    this.around = around;
    this.name = `${call.tool.name} of ${call.connection.serverName}`;
    this.host = new Connection(
      this.name,
      { type: 'page' },
      {
        transports: { page: () => this.transport },
        extensions: [this.dialect],
        onWire: (dir, msg) => this.around.trace({ app: this.name, dir, msg }),
      },
    );
  }

  private transport: Transport = {
    start: async (events) => void (this.events = events),
    send: async (message) => this.carry({ app: message }),
    close: async () => {},
  };

  // ── What it is made of ──

  /** Its page and what that may do, fetched when somebody wants to see it. */
  load() {
    this.loading ??= this.fetchPage();
    return this.loading;
  }

  private async fetchPage() {
    const { connection, tool } = this.call;
    const uri = appOf(tool)!;
    const { contents } = await connection.request('resources/read', { uri });
    const [found, ...more] = asList(contents).map(asObject);
    const { mimeType, text, blob } = found ?? {};
    if (!found || more.length > 0 || mimeType !== MIME)
      throw new Error(`${quoted(uri)} is no app: ${quoted(show(mimeType ?? 'nothing'))}`);
    const html = typeof text === 'string' ? text : Buffer.from(show(blob), 'base64').toString();
    if (html.length > MAX_HTML) throw new Error(`${quoted(uri)} has ${html.length} characters`);
    const { csp, permissions } = asObject(asObject(found._meta).ui ?? (await this.listed(uri)));
    const policy = policyFor(csp);
    const { header, refused } = policy;
    this.around.trace({ app: this.name, policy: header, refused });
    const allow = Object.hasOwn(asObject(permissions), 'clipboardWrite') ? 'clipboard-write' : '';
    return { html, policy, allow };
  }

  /** Some servers say it in their list of resources. */
  private async listed(uri: string): Promise<unknown> {
    const all = await this.call.connection.listAll('resources/list', 'resources').catch(() => []); // it has none
    const entry = all.map(asObject).find((each) => each.uri === uri);
    return asObject(entry?._meta).ui;
  }

  /** For the bar of the page. */
  async described(): Promise<Json> {
    const { policy, allow } = await this.load();
    const { allowed, refused } = policy;
    const out = [...new Set(Object.values(allowed).flat())];
    const notes = [
      `of the MCP server ${this.call.connection.serverName}, which wrote all that is in the frame`,
      ...(out.length > 0 ? [`may reach ${out.join(', ')}`] : []),
      ...(refused.length > 0 ? [`may not reach ${refused.join(', ')}`] : []),
    ];
    return { title: this.call.tool.name, note: notes.join('; '), allow };
  }

  // ── Its life ──

  /** The page was loaded, perhaps once more: then the app begins from the start. */
  async begin(room: Json): Promise<void> {
    this.room = room;
    this.isReady = false;
    this.mode = 'inline';
    await this.host.reopen();
  }

  hear(message: unknown): void {
    this.events?.message(message);
  }

  /** The window, or the theme, is another. */
  rearrange(room: Json): void {
    const before = this.hostContext();
    this.room = room;
    const changed = Object.entries(this.hostContext()).filter(
      ([key, value]) => canonicalJson(value) !== canonicalJson(before[key]),
    );
    if (changed.length > 0)
      this.tell('ui/notifications/host-context-changed', Object.fromEntries(changed));
  }

  /** How the call has ended. */
  finish(result: Json): void {
    this.settle('ui/notifications/tool-result', result);
  }
  cancel(reason: string): void {
    this.settle('ui/notifications/tool-cancelled', { reason });
  }

  private settle(...outcome: [string, Json]): void {
    this.outcome = outcome;
    this.tell(...outcome);
  }

  /** Only answers come before it is ready. */
  private tell(method: string, params: Json): void {
    if (this.isReady) this.host.notify(method, params).catch(() => {}); // it may be gone
  }

  async close(why: string): Promise<void> {
    if (this.ended !== undefined) return;
    this.ended = why;
    const farewell = { timeoutMs: FAREWELL_MS };
    if (this.isReady)
      await this.host.request('ui/resource-teardown', { reason: why }, farewell).catch(() => {});
    await this.host.close(); // its calls end, and so do their questions
    this.carry({ closed: why });
    this.around.changed(this);
  }

  // ── What it says ──

  private dialect: Extension = () => ({
    handlers: {
      'ui/initialize': (params) => this.initialize(params),
      'ui/notifications/initialized': () => this.initialized(),
      'ui/notifications/size-changed': ({ height }) => this.grow(Number(height)),
      'ui/notifications/request-teardown': () => void this.close('it has closed itself'),
      'tools/list': async () => ({
        tools: (await this.tools()).filter((tool) => this.mayCall(tool)),
      }),
      'tools/call': (params, incoming) => this.callTool(params, incoming),
      'resources/list': async () => ({
        resources: await this.call.connection.listAll('resources/list', 'resources'),
      }),
      'resources/read': ({ uri }, incoming) => this.ask('resources/read', { uri }, incoming),
      'ui/open-link': (params, incoming) => this.openLink(params, incoming),
      'ui/message': (params, incoming) => this.message(params, incoming),
      'ui/update-model-context': (params) => this.noteContext(params),
      'ui/request-display-mode': ({ mode }) => this.display(mode),
    },
  });

  private async initialize({ appCapabilities }: Json): Promise<Json> {
    const { policy, allow } = await this.load();
    this.modes = asList(asObject(appCapabilities).availableDisplayModes);
    return {
      protocolVersion: DIALECT,
      hostInfo: { name: 'mcp-by-hand', version: VERSION },
      hostCapabilities: {
        openLinks: {},
        serverTools: {},
        serverResources: {},
        logging: {},
        message: { text: {} },
        updateModelContext: { text: {}, structuredContent: {} },
        sandbox: { csp: policy.allowed, permissions: allow ? { clipboardWrite: {} } : {} },
      },
      hostContext: this.hostContext(),
    };
  }

  private hostContext(): Json {
    const { theme, width, height, locale, timeZone } = this.room;
    const isFull = this.mode === 'fullscreen';
    return {
      toolInfo: { tool: this.call.tool },
      theme,
      displayMode: this.mode,
      availableDisplayModes: DISPLAY_MODES,
      containerDimensions: isFull ? { width, height } : { width, maxHeight: MAX_HEIGHT },
      locale,
      timeZone,
      platform: 'web',
      userAgent: `mcp-by-hand/${VERSION}`,
    };
  }

  private initialized(): void {
    if (this.isReady) return;
    this.isReady = true;
    this.tell('ui/notifications/tool-input', { arguments: this.call.args });
    if (this.outcome) this.tell(...this.outcome);
  }

  /** Its width is the page's. */
  private grow(height: number): void {
    if (height > 0) this.carry({ height: Math.min(height, MAX_HEIGHT) });
  }

  private display(mode: unknown): Json {
    const isPossible = DISPLAY_MODES.some((each) => each === mode) && this.modes.includes(mode);
    if (isPossible && mode !== this.mode) {
      this.mode = String(mode);
      this.carry({ mode: this.mode });
      const { displayMode, containerDimensions } = this.hostContext();
      this.tell('ui/notifications/host-context-changed', { displayMode, containerDimensions });
    }
    return { mode: this.mode };
  }

  // ── What it may ask of its own server ──

  private async tools(): Promise<ServerTool[]> {
    this.known ??= await this.call.connection.listTools();
    return this.known;
  }

  /** The server has others now. */
  forgetTools(): void {
    this.known = undefined;
  }

  private mayCall(tool: ServerTool): boolean {
    return mayApp(tool) && !this.around.isOff(this.call.connection.serverName, tool.name);
  }

  /** The way of a call of the model: is there such a tool, do the arguments fit, does the gate let it
   *  pass? And the whole result goes back, for it is the server's own. */
  private async callTool(params: Json, incoming: Incoming): Promise<Json> {
    const { name, arguments: given } = params;
    const tool = (await this.tools()).find((each) => each.name === name);
    if (!tool || !this.mayCall(tool)) throw invalid(`no tool ${quoted(show(name))} for apps`);
    if (this.atWork >= MAX_AT_ONCE) throw declined('too many calls at once');
    const { args, refusal } = await this.prepared(given, tool, incoming);
    if (refusal) throw invalid(refusal);
    this.work(1);
    try {
      return await this.waiting(params, this.allowedCall(tool, args, incoming));
    } finally {
      this.work(-1);
    }
  }

  private prepared(given: unknown, { inputSchema }: ServerTool, { signal }: Incoming) {
    return this.around.prepareArguments(asObject(given), inputSchema, signal);
  }

  private work(more: number): void {
    this.atWork += more;
    this.around.changed(this);
  }

  private async allowedCall(tool: ServerTool, args: Json, incoming: Incoming): Promise<Json> {
    const { name } = tool;
    const noes = this.noes.get(name) ?? 0;
    if (noes >= MAX_NOES) throw declined(`the user has said no to ${name} ${noes} times`);
    const verdict = await this.around.gate(this.row(tool), args, incoming.signal);
    if (!verdict.allowed) this.noes.set(name, noes + 1);
    if (!verdict.allowed) throw declined(verdict.reason);
    return this.ask('tools/call', { name, arguments: args }, incoming, tool);
  }

  /** For the gate. What the user allows for a while ends with this app, or when the tool changes. */
  private row(tool: ServerTool): Tool {
    const { serverName } = this.call.connection;
    const key = canonicalJson(tool);
    const { inputSchema } = tool;
    const name = toolLabel(serverName, tool.name);
    return {
      definition: { name, description: '', inputSchema },
      readOnly: false,
      origin: { server: serverName, tool },
      caller: this.title,
      meanwhile: {
        choice: WHILE_OPEN,
        isAllowed: () => this.allowed.has(key),
        allow: () => this.allowed.add(key),
      },
      run: async () => ({ blocks: [], isError: false }), // it is called below, for its whole result
    };
  }

  /** In a question. */
  private get title(): string {
    return `The app ${quoted(this.call.tool.name)} of the MCP server ${quoted(this.call.connection.serverName)}`;
  }

  private async ask(method: string, params: Json, { signal }: Incoming, tool?: ServerTool) {
    const { connection } = this.call;
    const options = { signal, tool, caller: this.title, isFromApp: true };
    try {
      return await connection.request(method, params, options);
    } catch (error) {
      throw error instanceof RpcError ? error : declined(textOf(error));
    }
  }

  // ── What it may ask of the person ──

  /** One question at a time, and not too many: who is asked too often says yes to anything. */
  private async asking<T>(params: Json, ask: () => Promise<T>): Promise<T> {
    const { counts } = this.around;
    const mayAsk = !this.isAsking && counts.mayAsk(this.call.connection.serverName);
    if (!mayAsk) throw declined('too many questions');
    this.isAsking = true;
    this.work(1);
    try {
      return await this.waiting(params, ask());
    } finally {
      this.work(-1);
      this.isAsking = false;
    }
  }

  /** The libraries of apps give up after a minute, unless they hear of progress. */
  private waiting<T>(params: Json, work: Promise<T>): Promise<T> {
    return whileAsking(this.host, params, work, this.around.progressMs, 'not done yet');
  }

  private async openLink(params: Json, { signal }: Incoming): Promise<Json> {
    const { url: wanted } = params;
    const url = typeof wanted === 'string' && URL.canParse(wanted) ? new URL(wanted) : undefined;
    if (!url || !/^https?:$/.test(url.protocol)) throw invalid('no address of the web');
    const lines = [`${this.title} wants to open:`];
    const { person } = this.around;
    const { action } = await this.asking(params, () => person.open({ lines, url, signal }));
    if (action !== 'accept') throw declined('the user did not open it');
    return {};
  }

  private async message(params: Json, { signal }: Incoming): Promise<Json> {
    const text = textIn(params.content);
    if (text === '') throw invalid('only text can be sent');
    const { person, prompt } = this.around;
    const question: ChoiceQuestion = {
      lines: [`${this.title} wants this to be sent to the model:`, ...told(text)],
      prompt: 'Send it?',
      choices: [choice('[s]end'), choice('[e]dit'), NO],
      ifEmpty: 'n',
      elsewhere: ['s', 'n'],
      signal,
    };
    const answer = await this.asking(params, () => person.choose(question));
    if (answer?.key !== 's' && answer?.key !== 'e') throw declined('the user did not send it');
    // Words in front of it: it is no command of the chat, whatever it begins with.
    const framed = `${this.title} says, and I have read it:\n\n${text}`;
    prompt(framed, answer.key === 'e');
    return {};
  }

  private noteContext({ content, structuredContent }: Json): Json {
    const data = structuredContent === undefined ? '' : JSON.stringify(structuredContent);
    const words = [textIn(content), data].filter(Boolean).join('\n').slice(0, MAX_TEXT);
    if (words === '' && asList(content).length > 0) throw invalid('only text can be told');
    this.isNews = words !== this.context;
    this.context = words;
    return {};
  }
}

const invalid = (why: string) => new RpcError(-32602, why);
const declined = (why: string) => new RpcError(-32000, why);

/** One block in the specification, a list of them in the library. */
function textIn(content: unknown): string {
  const blocks = Array.isArray(content) ? content : [content];
  const texts = blocks.map((block) => asObject(block).text);
  return texts
    .filter((text) => typeof text === 'string')
    .join('\n')
    .slice(0, MAX_TEXT);
}
