// How the program ends: with a code, and with one line that says why.

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
