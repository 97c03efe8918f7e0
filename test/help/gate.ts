// A gate with real tools and two servers, and whoever answers its questions.

import { join } from 'node:path';
import { Gate, hands, Roots, Trust, type Tool } from '../../agent.ts';
import type { Mode } from '../../chapters/17-the-gate/gate.ts';
import { parseRules, type Effect } from '../../chapters/17-the-gate/rules.ts';
import type { Json, ServerEntry } from '../../mcp.ts';
import { person, prepareAgent } from './agent-with-gate.ts';
import { folder } from './basics.ts';

type Rules = Partial<Record<Effect, string[]>>;
const entry = (
  name: string,
  authority: ServerEntry['authority'],
  config: Json = { command: 'x' },
): ServerEntry => ({ name, scope: authority, authority, config, file: '.mcp.json' });
export const signal: AbortSignal = new AbortController().signal;

/** A gate with real tools, and two servers: `mine` from the user's settings, `theirs` from the project. */
type Given = {
  mode?: Mode;
  settings?: Rules;
  here?: Rules;
  answers?: Parameters<typeof person>;
  more?: Tool[];
};
export async function prepareGate({
  mode,
  settings = {},
  here = {},
  answers,
  more = [],
}: Given = {}) {
  const [home, cwd] = [folder(), folder()];
  const warnings: string[] = [];
  const warn = (text: string) => void warnings.push(text);
  const tools = [...hands({ roots: new Roots(cwd), resultsFolder: home }), ...more];
  const parse = (rules: Rules, isHere: boolean) =>
    (['allow', 'ask', 'deny'] as const).flatMap((effect) =>
      parseRules(effect, rules[effect] ?? [], { name: 'test', isHere }, { tools, warn }),
    );
  const resultsFolder = join(home, 'results');
  const roots = new Roots(cwd, [], [resultsFolder]);
  const { user, questions } = person(...(answers ?? []));
  const trust = new Trust({ home, cwd, warn, person: person('y').user });
  await trust.approve(entry('mine', 'user'));
  await trust.approve(entry('theirs', 'project'));
  const gate = new Gate({
    mode,
    rules: [...parse(settings, false), ...parse(here, true)],
    roots,
    trust,
    person: answers && user,
  });
  const mcp = (server: string, name: string, more: Json = {}): Tool => ({
    definition: { name: `mcp__${server}__${name}`, description: '', inputSchema: {} },
    readOnly: false,
    origin: {
      server,
      tool: { name, description: 'does it', inputSchema: { type: 'object' }, ...more },
    },
    run: async () => ({ blocks: [], isError: false }),
  });
  const tool = (name: string): Tool => {
    const [, server, last] = /^mcp__(.*?)__(.*)$/.exec(name) ?? [];
    return server ? mcp(server, last!) : tools.find(({ definition }) => definition.name === name)!;
  };
  const effect = (name: string, args: Json = {}) => gate.judge(tool(name), args).effect;
  const check = (name: string | Tool, args: Json = {}) =>
    gate.check(typeof name === 'string' ? tool(name) : name, args, signal);
  return {
    gate,
    home,
    cwd: roots.cwd,
    roots,
    trust,
    tool,
    mcp,
    effect,
    check,
    questions,
    warnings,
  };
}

/** What the gate thinks of command lines, without running any. */
export function judges(options: Parameters<typeof prepareAgent>[0]) {
  const { gate, agent, ...rest } = prepareAgent(options);
  const bash = agent.table.get('bash')!;
  return { ...rest, effect: (command: string) => gate.judge(bash, { command }).effect };
}
