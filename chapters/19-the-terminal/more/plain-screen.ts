// The screen of a program that draws nothing and asks nothing, such as one call in a script: lines,
// each safe to show. screen.ts, with all that it loads, would take longer than the call.

import { inertJson, printable, withHosts } from '../../17-the-gate/safe-text.ts';
import type { ScreenLine, Style } from '../screen.ts';

/** What a command uses of a screen if it neither asks nor draws. */
export class PlainScreen {
  onInterrupt: () => void = () => process.exit(130);

  constructor() {
    stopAtBrokenPipes();
  }

  print(text: string): void {
    process.stdout.write(`${printable(text, { isPipe: !process.stdout.isTTY })}\n`);
  }

  printJson(json: string, stream: NodeJS.WriteStream = process.stdout): void {
    stream.write(`${inertJson(json)}\n`);
  }

  say(text: string, _style?: Style): void {
    process.stderr.write(`${printable(withHosts(text), { isPipe: !process.stderr.isTTY })}\n`);
  }

  /** Its other lines are indented, so that none of them can pass for a warning of its own. */
  warn(text: string): void {
    this.say(`! ${text.replaceAll('\n', '\n  ')}`, 'yellow');
  }

  spin(_rows: () => [string, ...ScreenLine[]]): void {}
  stopSpinning(): void {}
  stop(): void {}

  close(): Promise<void> {
    return flushAll();
  }
}

/** Resolves when all that was written has left the program. */
export async function flushAll(): Promise<void> {
  const flush = (stream: NodeJS.WriteStream) => new Promise((done) => stream.write('', done));
  await Promise.all([process.stdout, process.stderr].map(flush));
}

/** What is written to a reader that has left, such as `head`, ends the program without an error. */
export function stopAtBrokenPipes(): void {
  for (const stream of [process.stdout, process.stderr])
    stream.on('error', (error: NodeJS.ErrnoException) => {
      const isClosed = error.code === 'EPIPE' || error.code === 'EIO'; // EIO: the terminal is
      if (!isClosed) throw error;
      if (stream === process.stdout) process.exit(0); // our reader, such as `head`, has enough
    });
}
