// How the program ends: with a code, and with one line that says why.

import type { PlainScreen } from './more/plain-screen.ts';
import type { Screen } from './screen.ts';

/** Exit codes, so that a script can tell what went wrong. */
export const EXIT = {
  done: 0,
  unexpected: 1,
  usage: 2,
  refused: 3,
  unreachable: 4,
  failed: 5,
  turns: 6,
  length: 7,
  breaking: 8,
  interrupted: 130,
};

/** And what the kinds of an McpError mean. */
export const EXIT_FOR: Record<string, number> = {
  config: EXIT.refused,
  auth: EXIT.refused,
  start: EXIT.unreachable,
  closed: EXIT.unreachable,
  timeout: EXIT.unreachable,
  unreachable: EXIT.unreachable,
  lost: EXIT.unreachable,
  expired: EXIT.unreachable,
  aborted: EXIT.interrupted,
  unexpected: EXIT.unexpected,
};

/** Ends the program with one line on stderr and this exit code. */
export class Stop extends Error {
  override name = 'Stop';
  code: number;
  kind: string;
  constructor(code: number, message: string, kind = 'usage') {
    super(message);
    this.code = code;
    this.kind = kind;
  }
}
export const usage = (message: string) => new Stop(EXIT.usage, message);
export const refused = (message: string, kind = 'config') => new Stop(EXIT.refused, message, kind);

// ─── A command as a program of its own ───────────────────────────────────────────────────────────

// Like the shells: 128 and the number of the signal.
const SIGNALS = { SIGTERM: 128 + 15, SIGHUP: 128 + 1, SIGQUIT: 128 + 3 };

/** Ends the process when `work` is done, with the exit code that it returns. */
export async function asProgram(
  argv: string[],
  screen: PlainScreen,
  work: () => Promise<number>,
): Promise<void> {
  const isJson = flagsIn(argv).includes('--json');
  const fail = (error: Error) => {
    screen.stop();
    report(error, isJson, screen);
    return error instanceof Stop ? error.code : EXIT.unexpected;
  };
  // With a listener of ours these end by process.exit, which ends servers and commands, too.
  for (const [signal, code] of Object.entries(SIGNALS))
    process.on(signal, () => process.exit(code));
  process.on('SIGINT', () => screen.onInterrupt());
  process.on('uncaughtException', (error) => {
    try {
      process.exitCode = fail(error);
    } finally {
      process.exit(); // whatever else goes wrong: only so are servers and commands ended
    }
  });
  const code = await work().catch(fail);
  await screen.close();
  process.exit(code); // also if something is still open: a socket that is kept alive, say
}

/** Looked at before they are parsed: a mistake in them is reported as they say. What comes after --
 *  is data. */
export function flagsIn(argv: string[]): string[] {
  return argv.includes('--') ? argv.slice(0, argv.indexOf('--')) : argv;
}

export async function fullScreen(argv: string[]): Promise<Screen> {
  const { Screen } = await import('./screen.ts');
  return new Screen({ color: !flagsIn(argv).includes('--no-color') });
}

function report(error: Error, isJson: boolean, screen: PlainScreen) {
  const { kind = 'unexpected', message } = error as Stop;
  if (isJson) screen.printJson(JSON.stringify({ type: 'error', kind, message }), process.stderr);
  else screen.say(kind === 'unexpected' ? (error.stack ?? message) : message, 'red');
}
