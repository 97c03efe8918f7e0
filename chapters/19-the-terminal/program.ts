// Puts the parts together: who may do what, which servers, which model, and who listens.

import { statSync } from 'node:fs';
import { homedir } from 'node:os';
import { resolve } from 'node:path';
import { Agent, chooseModel, extras, Gate, hands, Roots, Trust, type AgentEvent, type ModelError } from '../../agent.ts';
import { isObject, loadEntries, McpManager, readJsonFile, type Json, type ServerEntry } from '../../mcp.ts';
import { parseRules, readSettings, type Rule } from '../17-the-gate/rules.ts';
import { Masker } from '../17-the-gate/safe-text.ts';
import { refused, type Options } from './options.ts';
import type { Screen } from './screen.ts';
import { appendPrivately, Session } from './session.ts';

export class Program {
  readonly options: Options;
  readonly screen: Screen;
  readonly masker = new Masker();
  readonly trust: Trust;
  readonly gate: Gate;
  readonly session: Session;
  readonly manager: McpManager;
  readonly agent: Agent;
  trace?: string;
  onEvent: (event: AgentEvent) => void = () => {};

  constructor(options: Options, screen: Screen) {
    const warn = (text: string) => screen.warn(this.masker.text(text));
    const ask = screen.isInteractive ? screen.ask.bind(screen) : undefined;
    this.options = options;
    this.screen = screen;
    this.setTrace(options.trace);
    options.mcpConfig.forEach(serversIn); // a mistake there is told at once, and not with the first prompt
    this.trust = new Trust({ warn, ask, allowServers: options.allowServer });
    this.session = new Session(this.trust, this.masker);
    const { resultsFolder } = this.session;
    const roots = new Roots(process.cwd(), options.addDir.map(folder), [resultsFolder]);
    this.gate = new Gate({ mode: options.mode, rules: rules(options, warn), roots, trust: this.trust, ask });
    const load = (report: (problem: string) => void) => entries(options, report);
    this.manager = new McpManager({
      ...extras,
      approve: (entry) => this.approve(entry),
      load: options.demo && extras.demo ? extras.demo(load) : load,
      onWire: (direction, message, server) => this.seeWire(direction, message, server),
      onWarning: warn,
      onState: (server, state, reason) => {
        const { protocolVersion, because } = this.manager.status().find(({ name }) => name === server) ?? {};
        this.writeTrace({ type: 'server', server, state, reason, protocolVersion, because });
        if (state === 'needs-auth' && reason) warn(reason); // the talk goes on without it
      },
    });
    if (extras.logins) extras.logins.onWarning = warn;
    this.agent = new Agent({
      model: model(options.model, options.baseUrl),
      tools: hands({ roots, resultsFolder, isHidden: this.gate.isHidden }),
      gate: this.gate.check,
      mcp: this.manager,
      switchedOff: () => this.trust.list().disabled,
      resultsFolder,
      turns: options.continue ? this.session.resume() : [],
      maxTurns: options.maxTurns,
      emit: (event) => this.tell(event),
      record: (turn) => this.session.record(turn),
    });
  }

  private async approve(entry: ServerEntry) {
    const approval = await this.trust.approve(entry);
    // Not before: a project could name any words as secret, and so have them left out of what you are shown.
    for (const secrets of [entry.config.env, entry.config.headers, entry.config.oauth])
      if (approval === true && isObject(secrets)) this.masker.learn(secrets);
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
      this.screen.warn(`the trace ends here: ${(error as Error).message}`);
    }
  }

  setTrace(file?: string): void {
    const path = file && resolve(file);
    try {
      if (path) appendPrivately(path, JSON.stringify({ t: new Date().toISOString(), type: 'trace' }));
    } catch (error) {
      throw refused(`cannot write the trace: ${(error as Error).message}`);
    }
    this.trace = path;
  }

  async close(): Promise<void> { await this.manager.disconnectAll(); }
}

export function model(name?: string, baseUrl?: string) {
  try {
    return chooseModel(name, { baseUrl });
  } catch (error) {
    throw refused((error as ModelError).message);
  }
}

function folder(path: string): string {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return path;
  throw refused(`--add-dir ${path}: there is no such folder`);
}

/** A settings file that cannot be read might have held a rule that forbids: so nothing runs. */
function rules(options: Options, warn: (text: string) => void): Rule[] {
  try {
    return [
      ...readSettings(homedir(), process.cwd(), warn),
      ...parseRules('allow', options.allow, '--allow', true, warn),
      ...parseRules('deny', options.deny, '--deny', true, warn),
    ];
  } catch (error) {
    const why = 'It may hold rules that forbid something, so nothing is done before it can be read.';
    throw refused(`${(error as Error).message}. ${why}`);
  }
}

/** The servers of the files and, above them, those of --mcp-config, which whoever typed it has approved thereby. */
function entries({ mcpConfig, strictMcpConfig }: Options, report: (problem: string) => void): Map<string, ServerEntry> {
  const found = strictMcpConfig ? new Map<string, ServerEntry>() : loadEntries(homedir(), process.cwd(), report);
  for (const [name, config] of mcpConfig.flatMap((given) => Object.entries(serversIn(given)))) {
    const shadows = found.get(name)?.file;
    found.set(name, { name, config: config as Json, file: '--mcp-config', scope: 'user', authority: 'user', shadows });
  }
  return found;
}

function serversIn(given: string): Json {
  const isJson = given.trimStart().startsWith('{');
  try {
    const root: unknown = isJson ? JSON.parse(given) : readJsonFile(given);
    if (root === undefined) throw new Error('there is no such file');
    const servers = isObject(root) && isObject(root.mcpServers) ? root.mcpServers : root;
    if (!isObject(servers)) throw new Error('it holds no servers');
    return servers;
  } catch (error) {
    throw refused(`--mcp-config ${isJson ? 'JSON' : given}: ${(error as Error).message}`);
  }
}
