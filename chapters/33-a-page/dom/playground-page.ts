// playground-page.ts: the playground. The connection of this book in a web page, with servers that run in it, or
// any on the web that lets it in. Every message is drawn beside it by the page of chapter 30.

import { asList, asObject, show, textOf } from '../../../mcp.ts';
import type { Connection, Json, Tool } from '../../../mcp.ts';
import {
  completeArgument,
  getPrompt,
  listPrompts,
  listResources,
  listResourceTemplates,
  readResource,
  type Prompt,
} from '../../24-more-than-tools/offers.ts';
import { pageConnection } from '../page-connection.ts';
import { serverScript } from '../worker-process.ts';
import type { WorkerLike } from '../worker-transport.ts';
import { button, byId, make } from './elements.ts';
import { pageForm, type Complete } from './page-form.ts';
import { PagePerson } from './page-person.ts';

/** Put in when the page is made: the servers that run in it, and their sources. */
declare const SERVERS: Record<string, { file: string; args?: string[]; about: string }>;
declare const SOURCES: Record<string, string>;

const MAX_CARDS = 300; // of one kind; more are for the filter of the wire

// ─── The wire, drawn ────────────────────────────────────────────────────────────────────────────

const viewer = () => byId<HTMLIFrameElement>('wire').contentWindow!;
const startedAt = performance.now();
const early: string[] = [];
let isReady = false;

/** It says when it is ready; until then there is nobody to hear. */
function listenToViewer({ source, data }: MessageEvent): void {
  if (source !== viewer() || data !== 'ready') return;
  isReady = true;
  for (const line of early.splice(0)) draw(line);
}

function draw(line: string): void {
  if (!isReady) early.push(line);
  else viewer().postMessage({ line }, '*'); // a file has no origin to name
}

function record(facts: Json): void {
  const at = Math.round(performance.now() - startedAt);
  draw(JSON.stringify({ at, ...facts }));
}

function say(text: string, style?: string): void {
  byId('status').replaceChildren(make('span', text, style === 'warning' ? 'bad' : ''));
}

// ─── A server ───────────────────────────────────────────────────────────────────────────────────

function startWorker({ file, args }: Json): WorkerLike {
  const script = serverScript(SOURCES[`${file}`]!, asList(args).map(String));
  const address = URL.createObjectURL(new Blob([script], { type: 'text/javascript' }));
  const worker = new Worker(address);
  URL.revokeObjectURL(address);
  return worker;
}

const person = new PagePerson(say);
let current: Connection | undefined;

async function open(name: string, config: Json): Promise<void> {
  const connection = pageConnection(name, config, { startWorker, person, record, say });
  const last = current;
  current = connection;
  byId('offers').replaceChildren();
  say('connecting …');
  await last?.close();
  try {
    await connection.connect();
    const { protocolVersion, serverInfo, instructions } = await connection.initialize();
    record({ type: 'server', server: name, state: 'connected', protocolVersion });
    say(`${show(asObject(serverInfo).name ?? name)} speaks ${protocolVersion}`);
    if (typeof instructions === 'string') byId('offers').append(make('pre', instructions));
    await showOffers(connection);
  } catch (error) {
    const reason = reasonOf(error);
    record({ type: 'server', server: name, state: 'failed', reason });
    if (connection === current) say(reason, 'warning');
    await connection.close();
  }
}

/** A page may read the header that names its session only if the server says so in another. */
function reasonOf(error: unknown): string {
  const text = textOf(error);
  if (!/session/i.test(text)) return text;
  const header = 'Access-Control-Expose-Headers: Mcp-Session-Id';
  return `${text}\nA page can keep a session only if the server sends ${header}.`;
}

// ─── What it offers ─────────────────────────────────────────────────────────────────────────────

type Card = { kind: string; name: string; about: unknown; schema?: Json; verb: string; run: Act };
type Act = (args: Json, signal: AbortSignal) => Promise<Element[]>;

async function showOffers(connection: Connection): Promise<void> {
  const lists = [
    async () => (await connection.listTools()).map((tool) => toolCard(connection, tool)),
    async () => (await listResources(connection)).map((row) => resourceCard(connection, row)),
    async () =>
      (await listResourceTemplates(connection)).map((row) => resourceCard(connection, row)),
    async () => (await listPrompts(connection)).map((row) => promptCard(connection, row)),
  ];
  for (const list of lists) {
    const cards = await list().catch((error) => [make('p', reasonOf(error), 'bad')]);
    if (connection !== current) return; // another was opened meanwhile
    const more = cards.length - MAX_CARDS;
    byId('offers').append(...cards.slice(0, MAX_CARDS));
    if (more > 0) byId('offers').append(make('p', `and ${more} more, which the wire shows`));
  }
  if (byId('offers').childElementCount === 0) say('It offers nothing.');
}

function toolCard(connection: Connection, { name, title, description, inputSchema }: Tool) {
  const run: Act = async (args, signal) => {
    const result = await connection.callTool(name, args, { signal });
    const { content, isError, structuredContent } = result;
    const shown = content.length === 0 && structuredContent ? [structuredContent] : content;
    return blocks(shown, isError);
  };
  const about = description ?? title;
  return card({ kind: 'tool', name, about, schema: asObject(inputSchema), verb: 'Call', run });
}

/** Of a template, what is in braces is filled in by hand. */
function resourceCard(connection: Connection, row: Json) {
  const { uri, uriTemplate, name, title, description } = row;
  const isTemplate = uri === undefined;
  const address = `${uri ?? uriTemplate}`;
  const run: Act = async (given, signal) => {
    const contents = await readResource(connection, `${given.uri ?? address}`, { signal });
    return blocks(contents.map((resource) => ({ type: 'resource', resource })));
  };
  const field = { uri: { type: 'string', default: address } };
  const schema = isTemplate ? { properties: field } : undefined;
  const kind = isTemplate ? 'template' : 'resource';
  const about = description ?? title ?? name;
  return card({ kind, name: address, about, schema, verb: 'Read', run });
}

function promptCard(connection: Connection, prompt: Prompt) {
  const { name, title, description } = prompt;
  const args = asList(prompt.arguments).map(asObject);
  const rows = args.map((arg) => [
    show(arg.name),
    { type: 'string', description: arg.description },
  ]);
  const required = args.filter((arg) => arg.required === true).map((arg) => arg.name);
  const schema = args.length > 0 ? { properties: Object.fromEntries(rows), required } : undefined;
  const run: Act = async (given, signal) => {
    const said = await getPrompt(connection, name, given as Record<string, string>, { signal });
    return said.flatMap(({ role, content }) => [make('b', role), ...blocks(content)]);
  };
  const complete: Complete = (argument, value, others) => {
    const ref = { type: 'ref/prompt', name } as const;
    return completeArgument(connection, ref, { name: argument, value }, others);
  };
  const canComplete = connection.server?.capabilities?.completions !== undefined;
  const about = description ?? title;
  const all = { kind: 'prompt', name, about, schema, verb: 'Get', run };
  return card(all, canComplete ? complete : undefined);
}

/** Its form is made when it is opened: there may be hundreds. */
function card({ kind, name, about, schema, verb, run }: Card, complete?: Complete): HTMLElement {
  const box = make('details', '', 'card');
  const summary = make('summary');
  summary.append(make('span', kind, 'kind'), make('b', name));
  box.append(summary);
  const fill = () => {
    const fields = schema && pageForm(schema, complete);
    const form = make('form');
    form.noValidate = true; // to see what the server says of a wrong value is what this page is for
    if (fields) form.append(fields.element);
    addRunner(form, verb, (signal) => run(fields?.read() ?? {}, signal));
    box.append(...(about === undefined ? [] : [make('p', show(about))]), form);
  };
  box.addEventListener('toggle', fill, { once: true });
  return box;
}

/** A button that runs, and while it runs stops; below it what came. */
function addRunner(
  form: HTMLFormElement,
  verb: string,
  run: (signal: AbortSignal) => Promise<Element[]>,
): void {
  const result = make('div', '', 'result');
  result.setAttribute('aria-live', 'polite');
  let running: AbortController | undefined;
  const go = Object.assign(make('button', verb), { type: 'submit' });
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    if (running) return running.abort();
    running = new AbortController();
    go.textContent = 'Stop';
    try {
      result.replaceChildren(...(await run(running.signal)));
    } catch (error) {
      result.replaceChildren(make('pre', reasonOf(error), 'bad'));
    }
    running = undefined;
    go.textContent = verb;
  });
  form.append(go, result);
}

const IMAGE = /^image\/(png|jpeg|gif|webp)$/;
const MAX_BLOCKS = 200;

function blocks(content: unknown[], isError = false): Element[] {
  return content.slice(0, MAX_BLOCKS).map((each) => {
    const block = asObject(each);
    const { blob, mimeType, ...inside } = asObject(block.resource);
    const picture = block.type === 'image' ? block : { data: blob, mimeType };
    const isPicture = typeof picture.data === 'string' && IMAGE.test(`${picture.mimeType}`);
    if (isPicture) {
      const src = `data:${picture.mimeType};base64,${picture.data}`;
      return Object.assign(make('img'), { src, alt: 'a picture that the server sent' });
    }
    const text = block.text ?? inside.text ?? JSON.stringify(each, null, 2);
    return make('pre', show(text), isError ? 'bad' : '');
  });
}

// ─── The beginning ──────────────────────────────────────────────────────────────────────────────

export function beginPlayground(): void {
  addEventListener('message', listenToViewer);
  for (const [name, { about, ...config }] of Object.entries(SERVERS)) {
    const start = button(name, () => open(name, { type: 'worker', ...config }));
    start.title = about;
    byId('servers').append(start);
  }
  byId('remote').addEventListener('submit', (event) => {
    event.preventDefault();
    const token = byId<HTMLInputElement>('token').value.trim();
    const url = byId<HTMLInputElement>('url').value.trim();
    const headers = token ? { authorization: `Bearer ${token}` } : {};
    void open(URL.canParse(url) ? new URL(url).host : 'server', { type: 'http', url, headers });
  });
}
