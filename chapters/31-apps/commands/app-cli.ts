// app-cli.ts: `app TOOL a=1 -- COMMAND`: calls the tool, shows its app in a browser, and every message
// of it here, until Ctrl-C. What the app calls is asked about as in a chat.

import { Gate } from '../../17-the-gate/gate.ts';
import { PersonAtTerminal } from '../../19-the-terminal/person-at-terminal.ts';
import { Trust } from '../../17-the-gate/trust.ts';
import { Roots } from '../../16-hands/paths.ts';
import { readCall } from '../../19-the-terminal/command-line/call-words.ts';
import { talkAfterHandshake, wayTo } from '../../19-the-terminal/command-line/one-server.ts';
import { callArguments, findTool } from '../../19-the-terminal/calling.ts';
import { EXIT, usage } from '../../19-the-terminal/exit.ts';
import type { LoadRows } from '../../19-the-terminal/host.ts';
import { gateRules } from '../../19-the-terminal/program.ts';
import type { Screen } from '../../19-the-terminal/screen.ts';
import { preparedArguments } from '../../28-a-thousand-tools/tool-arguments.ts';
import { appOf } from '../app.ts';
import { Apps } from '../all-apps.ts';

const MAX_SHOWN = 500; // characters of a message

export async function appCommand(args: string[], screen: Screen, rows: LoadRows): Promise<number> {
  const wanted = readCall(args);
  const person = new PersonAtTerminal(screen);
  if (!person.isThere) throw usage('an app is for a person at a terminal; `call` has its text');
  const composition = await rows();
  const warn = (text: string) => screen.warn(text);
  const trust = new Trust({ warn, person });
  const rules = gateRules({ allow: [], deny: [] }, { tools: [], warn }, trust.list().rules);
  const gate = new Gate({ roots: new Roots(process.cwd()), trust, person, rules });
  const apps = new Apps({
    person,
    warn,
    trust,
    gate: gate.check,
    prepareArguments: preparedArguments,
    prompt: (text) => screen.print(text),
    trace: ({ dir, msg, policy }) => {
      if (policy) screen.say(`  ${String(policy)}`, 'dim');
      else screen.say(`${dir === 'in' ? '←' : '→'} ${brief(msg)}`);
    },
  });
  const way = await wayTo(wanted, screen, composition);
  way.config = { ...way.config, apps: 'open' }; // that is what the command is for
  const { extensions = [] } = way.options;
  way.options.extensions = [apps.extension, ...extensions.filter(({ name }) => name !== 'apps')];
  return talkAfterHandshake(wanted, way, screen, async (connection, { signal }) => {
    const tool = findTool(wanted.tool, await connection.listTools(), wanted.server);
    if (!appOf(tool)) throw usage(`${tool.name} has no app`);
    const given = await callArguments(
      wanted,
      tool,
      wanted.isChecked ? preparedArguments : undefined,
    );
    const { text, isError } = await connection.callTool(tool.name, given, { signal, tool });
    screen.print(text);
    if (isError) return EXIT.failed;
    const over = new Promise((done) => signal!.addEventListener('abort', done, { once: true }));
    screen.input.open();
    await over;
    return EXIT.done;
  });
}

function brief(message: unknown): string {
  const text = JSON.stringify(message);
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}
