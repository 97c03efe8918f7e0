// Opens an address in the browser of the user.

import { spawn } from 'node:child_process';
import { findCommand, safeEnv, withSafePath } from '../../mcp.ts';
import { mayBeOpened } from '../17-the-gate/person.ts';

const OPENERS: Record<string, string[]> = {
  darwin: ['open'],
  win32: ['rundll32', 'url.dll,FileProtocolHandler'], // not `start`: that is a word of the shell
};
const DESKTOP = /^(DISPLAY|WAYLAND_DISPLAY|BROWSER|XAUTHORITY|XDG_\w+|DBUS_SESSION_BUS_ADDRESS)$/;

/** Without a shell: the address is data, whatever is in it. Was there something to open it with? */
export function openBrowser(url: URL): boolean {
  if (!mayBeOpened(url)) throw new Error(`a browser is not sent to ${url.protocol}//${url.host}`);
  return launch(url);
}

/** For addresses of our own making. */
export function launch(url: URL): boolean {
  const { DISPLAY, WAYLAND_DISPLAY, BROWSER } = process.env;
  const hasDesktop = Boolean(DISPLAY || WAYLAND_DISPLAY || BROWSER);
  const opener = OPENERS[process.platform];
  if (!opener && !hasDesktop) return false;
  const [command = '', ...args] = opener ?? ['xdg-open'];
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
