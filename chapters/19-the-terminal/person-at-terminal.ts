// The person at this terminal: every question to them, and the prompt of the chat, in one line.

import type { Page } from '../17-the-gate/dialogue.ts';
import { LineByLine } from '../17-the-gate/person.ts';
import { keepSecrets } from '../17-the-gate/safe-text.ts';
import { openBrowser } from './open-browser.ts';
import type { Screen } from './screen.ts';

export class PersonAtTerminal extends LineByLine {
  private screen: Screen;

  constructor(screen: Screen) {
    super(screen.turns);
    this.screen = screen;
  }

  get isThere(): boolean { return this.screen.isInteractive; }

  say(text: string, style?: 'note' | 'warning'): void {
    if (style === 'warning') this.screen.warn(text);
    else this.screen.say(text, style === 'note' ? 'dim' : undefined);
  }

  protected async readLine(page: Page, signal: AbortSignal): Promise<string | undefined> {
    const line = await this.screen.ask(page, signal);
    if (page.isSecret) keepSecrets(line); // it must not come up in a trace
    return line;
  }

  protected launch(url: URL): boolean { return openBrowser(url); }
}
