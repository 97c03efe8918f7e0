// An agent with a scripted model, real tools, a real gate and real servers, in a home and a project of its own.

import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Gate, hands, Roots, Trust, type AgentOptions } from '../../agent.ts';
import type { DialoguePage } from '../../chapters/17-the-gate/dialogue.ts';
import { ScriptedPerson, type PersonAnswer } from '../../chapters/17-the-gate/person.ts';
import { parseRules, readSettings, type Rule } from '../../chapters/17-the-gate/rules.ts';
import type { GateOptions } from '../../chapters/17-the-gate/gate.ts';
import type { ScriptLine } from '../../chapters/15-the-loop/scripted.ts';
import { McpManager, type Json, type ManagerOptions } from '../../mcp.ts';
import { folder, later } from './basics.ts';
import { prepareLoop } from './agent-alone.ts';

export { calls } from './agent-alone.ts';

/** What a terminal must never be sent: C0 but LF and TAB, DEL, C1, bidi, zero width, tags, lone surrogates. */
export const UNCLEAN =
  /[^\P{Cc}\n\t]|[\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e0fff}\p{Cs}]/u;

export function assertClean(lines: string | string[]): void {
  for (const line of [lines].flat()) assert.doesNotMatch(line, UNCLEAN, JSON.stringify(line));
}

/** A user who gives these answers, one after the other. What is asked must be clean; one question too many is an error. */
class CarefulPerson extends ScriptedPerson {
  protected override readLine(
    page: DialoguePage,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    assertClean([...page.lines, page.prompt]);
    return super.readLine(page, signal);
  }
}

export function person(...answers: PersonAnswer[]) {
  const user = new CarefulPerson(answers);
  return { user, questions: user.questions };
}

type Options = Omit<Partial<AgentOptions>, 'gate'> & {
  script?: ScriptLine[];
  files?: Record<string, string>; // of the project
  settings?: Json; // of the user
  project?: Json; // its MCP servers
  servers?: Json; // the user's MCP servers
  rules?: Partial<Record<Rule['effect'], string[]>>; // as on the command line
  answers?: PersonAnswer[]; // without them nobody can be asked
  home?: string;
  cwd?: string;
  manager?: ManagerOptions;
} & Pick<GateOptions, 'mode' | 'opinion'> & { gate?: AgentOptions['gate'] | 'none' };

/** Puts the parts together as the program does. */
export function prepareAgent({
  script = [],
  files = {},
  settings,
  project,
  servers,
  rules,
  answers,
  mode,
  opinion,
  gate,
  manager,
  ...more
}: Options) {
  const { home = folder(), cwd = folder(), ...rest } = more;
  const put = (name: string, content: string) => {
    mkdirSync(dirname(join(cwd, name)), { recursive: true });
    writeFileSync(join(cwd, name), content);
  };
  for (const [name, content] of Object.entries(files)) put(name, content);
  if (project) put('.mcp.json', JSON.stringify({ mcpServers: project }));
  if (settings || servers) {
    mkdirSync(join(home, '.claude'), { recursive: true });
    writeFileSync(
      join(home, '.claude', 'settings.json'),
      JSON.stringify({ ...settings, ...(servers && { mcpServers: servers }) }),
    );
  }
  const warnings: string[] = [];
  const warn = (text: string) => void warnings.push(text);
  const { user, questions } = person(...(answers ?? []));
  const trust = new Trust({ home, cwd, warn, person: answers && user });
  const resultsFolder = join(folder(), 'results');
  const roots = new Roots(cwd, [], [resultsFolder]);
  const tools =
    rest.tools ?? hands({ roots, resultsFolder, isHidden: (real) => guard.isHidden(real) });
  const reader = { tools, warn };
  const given = (effect: Rule['effect']) =>
    parseRules(effect, rules?.[effect] ?? [], { name: `--${effect}`, isHere: true }, reader);
  const allRules = [
    ...readSettings(home, cwd, reader),
    ...given('allow'),
    ...given('ask'),
    ...given('deny'),
  ];
  const guard: Gate = new Gate({
    mode,
    opinion,
    rules: allRules,
    roots,
    trust,
    person: answers && user,
    offered: () => mcp.getToolDefinitions(),
  });
  const mcp = new McpManager({
    home,
    cwd,
    approve: (entry) => trust.approve(entry),
    onWarning: warn,
    ...manager,
  });
  later(() => mcp.disconnectAll());
  const loop = prepareLoop({
    script,
    tools,
    gate: gate === 'none' ? undefined : (gate ?? guard.check),
    mcp,
    switchedOff: () => trust.list().disabled,
    resultsFolder,
    cwd: roots.cwd,
    ...rest,
  });
  const file = (name: string) =>
    existsSync(join(cwd, name)) ? readFileSync(join(cwd, name), 'utf8') : undefined;
  return {
    ...loop,
    mcp,
    trust,
    gate: guard,
    roots,
    home,
    cwd: roots.cwd,
    put,
    file,
    warnings,
    questions,
  };
}
