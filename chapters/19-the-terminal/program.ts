// Puts the parts together: who may do what, which servers, which model, and who listens.

import { statSync } from 'node:fs';
import { homedir } from 'node:os';
import { resolve } from 'node:path';
import {
  Agent, chooseModel, Gate, Roots, Trust, type AgentEvent, type Model, type ModelError,
} from '../../agent.ts';
import {
  isObject, loadEntries, McpManager, readJsonFile, serversIn as mappingIn, type Json,
  type ServerEntry,
} from '../../mcp.ts';
import { parseRules, readSettings, type Rule, type RuleReader } from '../17-the-gate/rules.ts';
import { Masker } from '../17-the-gate/safe-text.ts';
import { forConnections, type Compose, type Composition, type Load } from './host.ts';
import { refused, type Options } from './options.ts';
import { PersonAtTerminal } from './person-at-terminal.ts';
import type { Screen } from './screen.ts';
import { appendPrivately, Session } from './session.ts';

export class Program {
  readonly options: Options;
  readonly screen: Screen;
  readonly person: PersonAtTerminal;
  readonly masker = new Masker();
  readonly trust: Trust;
  readonly gate: Gate;
  readonly session: Session;
  readonly manager: McpManager;
  readonly composition: Composition;
  readonly agent: Agent;
  trace?: string;
  isTraceLost = false; // it was asked for, and ends before its time
  onEvent: (event: AgentEvent) => void = () => {};

  constructor(options: Options, screen: Screen, compose: Compose) {
    const warn = (text: string) => screen.warn(this.masker.text(text));
    const person = new PersonAtTerminal(screen);
    this.options = options;
    this.screen = screen;
    this.person = person;
    this.setTrace(options.trace);
    options.mcpConfig.forEach(serversIn); // a mistake there is told at once, before any prompt
    this.trust = new Trust({ warn, person, allowServers: options.allowServer });
    this.session = new Session(this.trust, this.masker);
    const { resultsFolder } = this.session;
    const roots = new Roots(process.cwd(), options.addDir.map(folder), [resultsFolder]);
    const isHidden = (real: string) => this.gate.isHidden(real);
    this.composition = compose({ person, warn, roots, resultsFolder, isHidden });
    const { tools } = this.composition;
    this.gate = new Gate({
      mode: options.mode,
      rules: rulesIn(options, { tools, warn }),
      roots,
      trust: this.trust,
      person,
    });
    this.manager = this.makeManager(warn);
    this.agent = new Agent({
      model: this.makeModel(options.model, options.baseUrl),
      tools,
      gate: this.gate.check,
      mcp: this.manager,
      switchedOff: () => this.trust.list().disabled,
      resultsFolder,
      turns: options.continue ? this.session.resume() : [],
      maxTurns: options.maxTurns,
      graceMs: graceFor(screen),
      emit: (event) => this.tell(event),
      record: (turn) => this.session.record(turn),
    });
  }

  makeModel(name?: string, baseUrl?: string): Model {
    try {
      return chooseModel(name, { baseUrl, models: this.composition.models });
    } catch (error) {
      throw refused((error as ModelError).message);
    }
  }

  private makeManager(warn: (text: string) => void): McpManager {
    const { options, composition } = this;
    const load: Load = (report) => entries(options, report);
    const { demo } = composition;
    return new McpManager({
      ...forConnections(composition),
      approve: (entry) => this.approve(entry),
      load: options.demo && demo ? demo(load) : load,
      onWire: (direction, message, server) => this.seeWire(direction, message, server),
      onWarning: warn,
      onState: (server, state, reason) => {
        this.traceState(server, state, reason);
        if (state === 'needs-auth' && reason) warn(reason); // the chat goes on without it
      },
    });
  }

  private traceState(server: string, state: string, reason?: string): void {
    const { protocolVersion, because } = this.manager.connection(server)?.server ?? {};
    this.writeTrace({ type: 'server', server, state, reason, protocolVersion, because });
  }

  private async approve(entry: ServerEntry) {
    const approval = await this.trust.approve(entry);
    // Not before, and of a project only what looks like one: it could call any words a secret, and
    // so hide them from what is shown.
    for (const secrets of [entry.config.env, entry.config.headers, entry.config.oauth])
      if (approval === true && isObject(secrets)) this.masker.learn(secrets, entry.authority);
    return approval;
  }

  private tell(event: AgentEvent): void {
    this.writeTrace(event);
    this.onEvent(event);
  }

  private seeWire(direction: 'out' | 'in', message: unknown, server: string): void {
    this.writeTrace({ dir: direction, server, msg: message });
    if (this.options.wire) this.screen.wire(direction, `${server} ${this.masker.json(message)}`);
  }

  private writeTrace(record: Json): void {
    if (this.trace === undefined) return;
    try {
      appendPrivately(this.trace, this.masker.json({ t: new Date().toISOString(), ...record }));
    } catch (error) {
      this.trace = undefined; // a full disk must not end the conversation
      this.isTraceLost = true;
      this.screen.warn(`the trace ends here: ${(error as Error).message}`);
    }
  }

  setTrace(file?: string): void {
    const path = file && resolve(file);
    try {
      const first = { t: new Date().toISOString(), type: 'trace' };
      if (path) appendPrivately(path, JSON.stringify(first));
    } catch (error) {
      throw refused(`cannot write the trace: ${(error as Error).message}`);
    }
    this.trace = path;
  }

  async close(): Promise<void> { await this.manager.disconnectAll(); }
}

/** A script cannot ask again when a server is there at last, so it waits longer. */
function graceFor({ isInteractive }: Screen): number {
  const wanted = Number(process.env.MCP_GRACE);
  const usual = isInteractive ? 3000 : 5000;
  return wanted > 0 ? wanted : usual;
}

function folder(path: string): string {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return path;
  throw refused(`--add-dir ${path}: there is no such folder`);
}

/** A settings file that cannot be read might have held a rule that forbids: so nothing runs. */
function rulesIn(options: Options, reader: RuleReader): Rule[] {
  const here = (name: string) => ({ name, isHere: true });
  try {
    return [
      ...readSettings(homedir(), process.cwd(), reader),
      ...parseRules('allow', options.allow, here('--allow'), reader),
      ...parseRules('deny', options.deny, here('--deny'), reader),
    ];
  } catch (error) {
    const why = 'It may hold rules that forbid something';
    const what = 'so nothing is done before it can be read.';
    throw refused(`${(error as Error).message}. ${why}, ${what}`);
  }
}

/** The servers of the files and, above them, those of --mcp-config, which the user has approved by
 *  typing it. */
function entries(
  { mcpConfig, strictMcpConfig }: Options, report: (problem: string) => void,
): Map<string, ServerEntry> {
  const found = strictMcpConfig
    ? new Map<string, ServerEntry>()
    : loadEntries(homedir(), process.cwd(), report);
  for (const [name, config] of mcpConfig.flatMap((given) => Object.entries(serversIn(given)))) {
    const shadows = found.get(name)?.file;
    const entry = { name, config: config as Json, file: '--mcp-config', shadows };
    found.set(name, { ...entry, scope: 'dynamic', authority: 'user' });
  }
  return found;
}

function serversIn(given: string): Json {
  const isJson = given.trimStart().startsWith('{');
  try {
    const root: unknown = isJson ? JSON.parse(given) : readJsonFile(given);
    if (root === undefined) throw new Error('there is no such file');
    if (!isObject(root)) throw new Error('it holds no servers');
    return mappingIn(root, true);
  } catch (error) {
    throw refused(`--mcp-config ${isJson ? 'JSON' : given}: ${(error as Error).message}`);
  }
}
