// The person at this terminal: every question to them, and the prompt of the chat, in one line.

import { isDeepStrictEqual } from 'node:util';
import type { DialoguePage } from '../17-the-gate/dialogue.ts';
import { LineByLine } from '../17-the-gate/person.ts';
import { keepTyped, withHosts } from '../17-the-gate/safe-text.ts';
import { Sheets } from './fold.ts';
import { openBrowser } from './open-browser.ts';
import type { Screen } from './screen.ts';

export class PersonAtTerminal extends LineByLine {
  private screen: Screen;

  constructor(screen: Screen) {
    super(screen.input.turns);
    this.screen = screen;
  }

  get isThere(): boolean {
    return this.screen.isInteractive;
  }

  say(text: string, style?: 'note' | 'warning'): void {
    if (style === 'warning') this.screen.warn(text);
    else this.screen.say(text, style === 'note' ? 'dim' : undefined);
  }

  protected async readLine(given: DialoguePage, signal: AbortSignal): Promise<string | undefined> {
    // Before it is measured: what is added to a row later pushes another one out of sight.
    const page = { ...given, lines: given.lines.map(withHosts) };
    const isConsent = page.onlyIfSeen !== undefined;
    const line = await (isConsent ? this.answer(page, signal) : this.words(page, signal));
    if (page.isSecret) keepTyped(line); // it must not come up in a trace
    return line;
  }

  /** Any words are an answer. */
  private words(page: DialoguePage, signal: AbortSignal): Promise<string | undefined> {
    const laidOut = () => new Sheets(page, this.screen.size).whole();
    return this.screen.input.ask(laidOut(), signal, laidOut);
  }

  /** What fits is shown, and the rest on demand. What was not seen is not agreed to in a hurry. In
   *  a window of another size it is laid out again, and seen is what is in sight there. */
  private async answer(page: DialoguePage, signal: AbortSignal): Promise<string | undefined> {
    let { size } = this.screen;
    let sheets = new Sheets(page, size);
    let shown = sheets.first();
    const laidOut = (note?: 'resized') => {
      size = this.screen.size;
      sheets = new Sheets(page, size);
      return sheets.first(note);
    };
    for (;;) {
      const typed = await this.screen.input.ask(shown, signal, laidOut);
      if (typed === undefined) return undefined;
      const word = typed.trim().toLowerCase();
      const isMore = !sheets.isSeen && /^m(ore)?$/.test(word);
      const isResized = !isDeepStrictEqual(size, this.screen.size); // a moment ago
      const isEarly = page.onlyIfSeen?.includes(word) && (isResized || !sheets.isSeen);
      if (!isMore && !isEarly) return typed;
      if (isResized) shown = laidOut('resized');
      else shown = isMore ? sheets.turn() : sheets.first('not seen');
    }
  }

  protected launch(url: URL): boolean {
    return openBrowser(url);
  }
}
