// The person at this terminal: every question to them, and the prompt of the chat, in one line.

import { isDeepStrictEqual } from 'node:util';
import { spawn } from 'node:child_process';
import { closeSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { findCommand, safeEnv, withSafePath } from '../../mcp.ts';
import type { DialoguePage } from '../17-the-gate/dialogue.ts';
import { LineByLine, mayBeOpened } from '../17-the-gate/person.ts';
import { keepTyped, withHosts } from '../17-the-gate/safe-text.ts';
import { newFile } from '../16-hands/results.ts';
import { Sheets } from './fold.ts';
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
  private words(page: DialoguePage, signal: AbortSignal) {
    const laidOut = () => new Sheets(page, this.screen.size).whole();
    return this.screen.input.ask(laidOut(), signal, laidOut);
  }

  /** What fits is shown, and the rest on demand. What was not seen is not agreed to in a hurry. In
   *  a window of another size it is laid out again, and seen is what is in sight there. */
  private async answer(page: DialoguePage, signal: AbortSignal) {
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

// ─── Their browser ───────────────────────────────────────────────────────────────────────────────

const OPENERS: Record<string, string[]> = {
  darwin: ['open'],
  win32: ['rundll32', 'url.dll,FileProtocolHandler'], // not `start`: that is a word of the shell
};
const DESKTOP = /^(DISPLAY|WAYLAND_DISPLAY|BROWSER|XAUTHORITY|XDG_\w+|DBUS_SESSION_BUS_ADDRESS)$/;
const LEADING_MS = 60_000; // a browser that is not up yet may take its time

/** An address may hold a token, and every user of the machine can read the arguments of a process.
 *  So the browser is given a file that only we can read, and that leads there. Was there one? */
export function openBrowser(url: URL): boolean {
  if (!mayBeOpened(url)) throw new Error(`a browser is not sent to ${url.protocol}//${url.host}`);
  return opener() !== undefined && launch(pathToFileURL(pageLeadingTo(url)));
}

function pageLeadingTo({ href }: URL) {
  const { path, fd } = newFile(join(homedir(), '.mcp-by-hand', 'open'), 'page', 'html');
  const target = href.replaceAll('&', '&amp;').replaceAll('"', '&quot;');
  const refresh = `<meta http-equiv="refresh" content="0;url=${target}">`;
  writeFileSync(fd, `<!doctype html><meta name="referrer" content="no-referrer">${refresh}\n`);
  closeSync(fd);
  const remove = () => {
    process.off('exit', remove);
    rmSync(path, { force: true });
  };
  process.once('exit', remove);
  setTimeout(remove, LEADING_MS).unref();
  return path;
}

/** What opens something on this desktop, if it is one. */
function opener() {
  const { DISPLAY, WAYLAND_DISPLAY, BROWSER } = process.env;
  const hasDesktop = Boolean(DISPLAY || WAYLAND_DISPLAY || BROWSER);
  return OPENERS[process.platform] ?? (hasDesktop ? ['xdg-open'] : undefined);
}

/** For addresses of our own making, without secrets. Without a shell: they are data. */
export function launch(url: URL): boolean {
  const [command, ...args] = opener() ?? [];
  if (command === undefined) return false;
  const env = withSafePath({ ...safeEnv(), ...desktopEnv() });
  const child = spawn(findCommand(command, env), [...args, url.href], {
    stdio: 'ignore',
    detached: true,
    windowsHide: true,
    env,
  });
  child.on('error', () => {}); // the address is on the screen, too
  child.unref(); // it is the user's browser, and outlives us
  return true;
}

function desktopEnv() {
  const variables = Object.entries(process.env).filter(([name]) => DESKTOP.test(name));
  return Object.fromEntries(variables);
}
