// `mcp login` and `mcp logout`.

import { McpError, type Json } from '../../../mcp.ts';
import { Masker, quoted } from '../../17-the-gate/safe-text.ts';
import { PROGRAM } from '../../17-the-gate/trust.ts';
import { approved, findEntry, toolsOf } from '../entries.ts';
import { EXIT, EXIT_FOR, refused, Stop } from '../exit.ts';
import type { Composition, ServerLogins } from '../host.ts';
import { PersonAtTerminal } from '../person-at-terminal.ts';
import type { Screen } from '../screen.ts';

export const NO_TERMINAL = 'a login needs a terminal: somebody has to agree to it in a browser';

export async function loginCommand(
  name: string,
  screen: Screen,
  composition: Composition,
): Promise<number> {
  await findEntry(name, screen, composition); // without it a terminal would not help
  if (!screen.isInteractive) throw refused(NO_TERMINAL, 'auth');
  const person = new PersonAtTerminal(screen);
  const { config } = await approved(name, screen, composition, person);
  const stopping = new AbortController();
  const stopped = new Promise<never>((_, reject) => {
    screen.onInterrupt = () => {
      stopping.abort();
      reject(new McpError('aborted', 'the login was stopped'));
    };
  });
  screen.input.open(); // from now on Ctrl-C is a key, and no "^C" on the screen
  try {
    const login = logInAt(name, config, screen, composition, stopping.signal);
    screen.print(await Promise.race([login, stopped]));
    return EXIT.done;
  } catch (error) {
    const { kind, message } = error as McpError;
    throw new Stop(EXIT_FOR[kind] ?? EXIT.failed, new Masker().text(message), kind);
  }
}

/** Logs in if the server wants it, and tells how it is now. */
async function logInAt(
  name: string,
  config: Json,
  screen: Screen,
  composition: Composition,
  signal: AbortSignal,
): Promise<string> {
  const { logins } = composition;
  if (logins) logins.believesVerdicts = false;
  const before = await countTools(name, config, composition).catch((error) => error as Error);
  if (logins?.isWanted(name)) {
    await logins.logIn(name, new PersonAtTerminal(screen), signal);
    const tools = toolsIn(await countTools(name, config, composition));
    mustBeKept(logins, `${name}: you are logged in`);
    return `${name}: you are logged in, ${tools}`;
  }
  if (before instanceof Error) throw before; // it has other troubles
  const another = `for another account, first: ${PROGRAM} mcp logout ${name}`;
  const isKnown = logins?.where(name) !== undefined;
  const state = isKnown ? `you were logged in before (${another})` : 'it wants no login';
  return `${name}: ${state}, ${toolsIn(before)}`;
}

const toolsIn = (count: number) => (count === 1 ? '1 tool' : `${count} tools`);

/** How many tools the server offers to us as we are. */
const countTools = async (name: string, config: Json, composition: Composition) =>
  (await toolsOf(name, config, composition)).length;

/** Was there a login, at that address or at any? Throws if it is still there. */
export async function logOutOf(
  name: string,
  logins?: ServerLogins,
  url?: string,
): Promise<boolean> {
  const wasLoggedIn = await logins?.logOut(name, url);
  if (wasLoggedIn) mustBeKept(logins!, `${name}: you are logged out`);
  return wasLoggedIn ?? false;
}

/** The store has warned, and said how to mend it. A command must not end as if all were well. */
function mustBeKept(logins: ServerLogins, what: string): void {
  if (logins.isKept) return;
  throw refused(`${what} for this run only: that was not written down`, 'auth');
}

export async function logoutCommand(
  name: string,
  screen: Screen,
  logins?: ServerLogins,
): Promise<number> {
  const wasLoggedIn = await logOutOf(name, logins);
  if (!wasLoggedIn) throw refused(`you are not logged in at ${quoted(name)}`, 'auth');
  screen.print(`logged out of ${name}`);
  return EXIT.done;
}
