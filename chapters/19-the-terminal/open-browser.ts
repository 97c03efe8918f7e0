// Opens an address in the browser of the user.

import { spawn } from 'node:child_process';
import { closeSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { findCommand, safeEnv, withSafePath } from '../../mcp.ts';
import { newFile } from '../16-hands/results.ts';
import { mayBeOpened } from '../17-the-gate/person.ts';

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

function pageLeadingTo({ href }: URL): string {
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
function opener(): string[] | undefined {
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

function desktopEnv(): NodeJS.ProcessEnv {
  const variables = Object.entries(process.env).filter(([name]) => DESKTOP.test(name));
  return Object.fromEntries(variables);
}
