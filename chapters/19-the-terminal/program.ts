// Puts the parts together: who may do what, which servers, which model, and who listens.

import { statSync } from 'node:fs';
import { homedir } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';
import {
  Agent,
  chooseModel,
  Gate,
  Roots,
  Trust,
  type AgentEvent,
  type Model,
  type ModelError,
  type Tool,
  type Turn,
} from '../../agent.ts';
import { McpManager, transportType, textOf, type Json, type ServerEntry } from '../../mcp.ts';
import type { Opinion } from '../17-the-gate/gate.ts';
import { Edits } from '../16-hands/undo.ts';
import { ProjectNotes } from '../17-the-gate/notes.ts';
import type { Mode } from '../17-the-gate/modes.ts';
import { keptRule } from '../17-the-gate/rule-offer.ts';
import {
  parseRules,
  readDefaultMode,
  readSettings,
  type Rule,
  type RuleReader,
} from '../17-the-gate/rules.ts';
import type { KeptRule } from '../17-the-gate/trust.ts';
import { Masker, plain } from '../17-the-gate/safe-text.ts';
import { apiKeyVariables } from '../18-minds/models.ts';
import { readPrices, Spending, type Limit } from '../18-minds/prices.ts';
import { toldModel } from '../18-minds/seen.ts';
import { Session, type Conversation } from './session-file.ts';
import { refused, usage } from './exit.ts';
import type { EndedCall } from './show.ts';
import {
  forTalks,
  givenServers,
  loadHere,
  type Compose,
  type Composition,
  type LoadServers,
  type WantedServers,
} from './host.ts';
import type { ProgramOptions } from './command-line/options.ts';
import { PersonAtTerminal } from './person-at-terminal.ts';
import { COPY, findConversation, NO_CONVERSATION } from './more/resume.ts';
import { History } from './history.ts';
import type { Screen } from './screen.ts';
import { Shortcuts } from './shortcuts.ts';
import { Trace } from './more/trace-file.ts';
import { refuseKeys, shellEnvIn, userSetting } from './shell-env.ts';

export class Program {
  readonly options: ProgramOptions;
  readonly screen: Screen;
  readonly person: PersonAtTerminal;
  readonly masker = new Masker();
  readonly trust: Trust;
  readonly notes: ProjectNotes;
  readonly gate: Gate;
  readonly started: { mode: Mode; from: string }; // the mode it began with, and who said so
  readonly session: Session;
  readonly roots: Roots;
  readonly history: History;
  readonly shortcuts = new Shortcuts(this);
  readonly edits = new Edits();
  readonly spending: Spending;
  readonly manager: McpManager;
  readonly composition: Composition;
  readonly agent: Agent;
  readonly trace: Trace;
  private hasReadNotes = false;
  onEvent: (event: AgentEvent) => void = () => {};
  lastCall?: EndedCall; // that was shown

  constructor(options: ProgramOptions, screen: Screen, compose: Compose) {
    const warn = (text: string) => screen.warn(this.masker.text(text));
    const person = new PersonAtTerminal(screen);
    this.options = options;
    this.spending = spendingWithin(options.limit);
    this.screen = screen;
    this.person = person;
    this.trace = new Trace(screen, this.masker, options.trace);
    options.mcpConfig.forEach(givenServers); // a mistake there is told at once, before any prompt
    this.trust = new Trust({ warn, person, allowServers: options.allowServer });
    this.session = new Session(this.trust, this.masker, options.print ? 'print' : 'chat');
    this.session.onCopy = () => screen.warn(COPY);
    process.once('exit', () => this.session.close());
    const { resultsFolder } = this.session;
    const roots = new Roots(process.cwd(), options.addDir.map(folder), [resultsFolder]);
    this.roots = roots;
    this.history = new History(this.trust, this.masker);
    this.notes = new ProjectNotes({ trust: this.trust, person, roots, warn });
    const isHidden = (real: string) => this.gate.isHidden(real);
    const shellEnv = shellEnvIn(options.env);
    const emit = (event: AgentEvent) => this.tell(event);
    const model = () => toldModel(this.agent.model, emit, 'a server'); // not yet, but when one asks
    const manager = () => this.manager;
    this.composition = compose({
      person,
      warn,
      emit,
      roots,
      model,
      manager,
      trust: this.trust,
      resultsFolder,
      isHidden,
      shellEnv,
      kept: this.session,
      program: () => this,
      edits: this.edits,
      gate: () => this.gate,
    });
    const { tools, models, shelf } = this.composition;
    refuseKeys(shellEnv, apiKeyVariables(models));
    const rules = gateRules(options, { tools, warn }, this.trust.list().rules);
    this.started = startMode(options);
    this.gate = new Gate({
      mode: this.started.mode,
      rules,
      roots,
      trust: this.trust,
      person,
      offered: () => this.manager.getToolDefinitions(),
      opinion: (tool) => this.opinionOf(tool),
    });
    this.manager = this.makeManager(warn);
    this.agent = new Agent({
      model: this.makeModel(options.model, options.baseUrl),
      tools,
      shelf,
      gate: this.gate.check,
      mcp: this.manager,
      switchedOff: () => this.trust.list().disabled,
      resultsFolder,
      notes: () => this.notes.text,
      prepare: this.composition.prepare,
      turns: this.turnsBefore(options),
      maxTurns: options.maxTurns,
      graceMs: graceFor(screen, options),
      emit: (event) => this.tell(event),
      record: (turn) => this.session.record(turn),
      recordCompacted: (turns) => this.session.compact(turns),
      contextWindow: options.contextWindow,
    });
  }

  /** What was said before, if this goes on with a conversation. */
  private turnsBefore({ continue: isLast, resume }: ProgramOptions): Turn[] {
    if (resume) return this.session.resume(this.found(resume));
    const last = isLast ? this.session.last() : undefined;
    if (isLast && !last) this.screen.warn(`${NO_CONVERSATION}; this is a new one`);
    return last ? this.session.resume(last) : [];
  }

  private found(wanted: string): Conversation {
    try {
      return findConversation(this.session.list(), wanted);
    } catch (error) {
      throw usage(textOf(error));
    }
  }

  /** Before a prompt: what the project wants the model to know. Once in each conversation, because
   *  the beginning of a request should stay the same. */
  async readNotes(signal: AbortSignal): Promise<void> {
    const isNew = !this.hasReadNotes || this.agent.turns.length === 0;
    this.hasReadNotes = true;
    if (isNew) await this.notes.read(signal);
  }

  /** Before a prompt: what the rows of the program have for the model. */
  async news(signal: AbortSignal): Promise<string[]> {
    const all = (this.composition.news ?? []).map((tell) => tell(signal));
    return (await Promise.all(all)).flat().map(plain);
  }

  makeModel(name?: string, baseUrl?: string): Model {
    try {
      const { maxTokens } = this.options;
      const { models } = this.composition;
      return this.spending.limited(chooseModel(name, { baseUrl, maxTokens, models }));
    } catch (error) {
      throw refused((error as ModelError).message);
    }
  }

  private makeManager(warn: (text: string) => void): McpManager {
    const { composition } = this;
    const { sources } = composition;
    return new McpManager({
      ...forTalks(composition, warn),
      approve: (entry) => this.approve(entry),
      load: this.loadServers,
      prepare: () => sources?.prepare?.(),
      known: composition.known,
      onWire: (direction, message, server) => this.seeWire(direction, message, server),
      onStderr: (stderr, server) => this.trace.write({ server, stderr }),
      onWarning: warn,
      onState: (server, state, reason) => {
        this.traceState(server, state, reason);
        if (state === 'needs-auth' && reason) warn(reason); // the chat goes on without it
        if (state === 'connected') this.agent.startUp.tellReady(server);
      },
    });
  }

  /** In a first chat, with neither a key nor a server, the one that is built in can be tried. */
  private loadServers: LoadServers = (report) => {
    const { options, screen, composition } = this;
    const found = () => loadHere(composition, report, this.wantedServers());
    const { demo } = composition;
    if (options.demo && demo) return demo(found)(report);
    const servers = found();
    const isFirst = servers.size === 0 && screen.isInteractive && !options.strictMcpConfig;
    const isRehearsed = this.agent.model.name === 'rehearsal';
    return isFirst && isRehearsed && demo ? demo(() => servers)(report) : servers;
  };

  /** --mcp-config: the user has approved it by typing it. */
  wantedServers(): WantedServers {
    const { mcpConfig, strictMcpConfig: isStrict, ide: isIde } = this.options;
    const dynamic = mcpConfig.flatMap((given) => Object.entries(givenServers(given)));
    return { dynamic: dynamic as [string, Json][], isStrict, isIde };
  }

  private opinionOf({ origin }: Tool): Opinion | undefined {
    if (!origin) return undefined;
    const { config = {} } = this.manager.entry(origin.server) ?? {};
    return this.composition.opinion?.(origin.tool, config);
  }

  /** For a page that is opened in the midst of a chat: how the servers are now. */
  traceStates(): void {
    const settled = this.manager.status().filter(({ state }) => state !== 'connecting');
    for (const { name, state, reason } of settled) this.traceState(name, state, reason);
  }

  private traceState(server: string, state: string, reason?: string) {
    const { protocolVersion, because } = this.manager.connection(server)?.server ?? {};
    const entry = this.manager.entry(server);
    const transport = entry && transportType(entry.config);
    this.trace.write({
      type: 'server',
      server,
      state,
      reason,
      transport,
      protocolVersion,
      because,
    });
  }

  private async approve(entry: ServerEntry) {
    const approval = await this.trust.approve(entry);
    // Not before, and of a project only what looks like one: it could call any words a secret, and
    // so hide them from what is shown.
    if (approval === true) this.masker.learnEntry(entry.config, entry.authority);
    return approval;
  }

  private tell(event: AgentEvent) {
    this.spending.hear(event);
    this.trace.event(event);
    this.onEvent(event);
  }

  private seeWire(direction: 'out' | 'in', message: unknown, server: string) {
    this.trace.wire(direction, message, server);
    if (this.options.wire) this.screen.wire(direction, `${server} ${this.masker.json(message)}`);
  }

  async close(): Promise<void> {
    this.session.close();
    const { goodbyeMs } = this.composition;
    const all = this.manager.disconnectAll();
    // What is left then ends with us, and not gently.
    const limit = goodbyeMs === undefined ? [] : [wait(goodbyeMs, undefined, { ref: false })];
    await Promise.race([all, ...limit]);
  }
}

function spendingWithin(limit: Limit): Spending {
  const { file, value = {} } = userSetting('prices');
  try {
    return new Spending(readPrices(value), limit);
  } catch (error) {
    throw refused(`${file}: ${textOf(error)}`);
  }
}

/** A script cannot ask again when a server is there at last, so it waits longer. */
function graceFor({ isInteractive }: Screen, { wait }: ProgramOptions) {
  if (wait !== undefined) return wait * 1000;
  const wanted = Number(process.env.MCP_GRACE);
  const usual = isInteractive ? 2000 : 5000;
  return wanted > 0 ? wanted : usual;
}

function folder(path: string) {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return path;
  throw refused(`--add-dir ${path}: there is no such folder`);
}

function startMode({ mode }: ProgramOptions): Program['started'] {
  if (mode) return { mode, from: '--mode' };
  const usual = readDefaultMode(homedir());
  return usual ? { mode: usual, from: 'your settings' } : { mode: 'ask', from: 'by default' };
}

/** A settings file that cannot be read might have held a rule that forbids: so nothing runs. */
export function gateRules(
  options: Pick<ProgramOptions, 'allow' | 'deny'>,
  reader: RuleReader,
  kept: KeptRule[],
): Rule[] {
  const here = (name: string) => ({ name, isHere: true });
  try {
    return [
      ...readSettings(homedir(), process.cwd(), reader),
      ...parseRules('allow', options.allow, here('--allow'), reader),
      ...parseRules('deny', options.deny, here('--deny'), reader),
      ...kept.flatMap((each) => keptRule(each, reader) ?? []),
    ];
  } catch (error) {
    const why = 'It may hold rules that forbid something';
    const what = 'so nothing is done before it can be read.';
    throw refused(`${textOf(error)}. ${why}, ${what}`);
  }
}
