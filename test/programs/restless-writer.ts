// Writes on and on: a turn of a conversation, an approval, a login. HOME CWD PREFIX ROUNDS DIES_AT. After each it says so, on a
// line. It kills itself, as kill -9 may do at any moment: with DIES_AT 7 at the seventh touch of a file, with -7 in the middle
// of the seventh writing.

import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

const [home = '', cwd = '', prefix = '', rounds = '0', diesAt = '0'] = process.argv.slice(2);
const say = fs.writeSync; // the line must be out before the next thing happens
let touches = 0;
let writings = 0;

function die(): never {
  process.kill(process.pid, 'SIGKILL');
  for (;;);
}

/** How much of a text has reached the disk when the process dies. */
const part = (text: string) => text.slice(0, [7, text.length / 2, text.length - 1][touches % 3]);

type Write = typeof fs.writeFileSync;
function mortal(name: 'writeFileSync' | 'appendFileSync'): void {
  const write = fs[name] as Write;
  fs[name] = ((file: number | string, text: string, options: object) => {
    if (++touches === Number(diesAt)) die();
    if (++writings !== -Number(diesAt)) return write(file, text, options);
    write(file, part(`${text}`), options);
    die();
  }) as Write;
}

mortal('writeFileSync');
mortal('appendFileSync');
const others = [
  'openSync',
  'linkSync',
  'renameSync',
  'rmSync',
  'mkdirSync',
  'closeSync',
  'lstatSync',
  'readdirSync',
  'fchmodSync',
] as const;
for (const name of others) {
  const call = fs[name] as (...args: unknown[]) => unknown;
  (fs as any)[name] = (...args: unknown[]) => {
    if (++touches === Number(diesAt)) die();
    return call(...args);
  };
}
syncBuiltinESMExports();

const { Trust } = await import('../../agent.ts');
const { Masker } = await import('../../chapters/17-the-gate/safe-text.ts');
const { Session } = await import('../../chapters/19-the-terminal/session-file.ts');
const { TokenStore } = await import('../../chapters/21-authorization/tokens.ts');

const warn = (text: string) => {
  say(1, `! ${text}\n`);
  process.exit(1);
};
touches = 0; // from here on
writings = 0;
const startedAt = performance.now();
const trust = new Trust({ home, cwd, warn });
const logins = new TokenStore({ home, warn });
const session = new Session(trust, new Masker({}));
session.onCopy = () => warn('the conversation is taken');
const kept = session.last();
if (kept) session.resume(kept);
const issuer = 'https://as.example';
const rest = {
  url: 'https://mcp.example/',
  issuer,
  resource: 'https://mcp.example/',
  tokenEndpoint: `${issuer}/token`,
};

for (let n = 0; n < Number(rounds); n++) {
  const name = `${prefix}-${n}`;
  session.record({ role: 'user', text: `${name} ${'x'.repeat((n * 997) % 5000)}` });
  say(1, `session ${name}\n`);
  trust.allow({
    name,
    config: { command: prefix },
    file: '.mcp.json',
    scope: 'project',
    authority: 'project',
  });
  say(1, `trust ${name}\n`);
  logins.keep({
    ...rest,
    server: name,
    client: { id: prefix, method: 'none' },
    tokens: { access: name, type: 'Bearer', scope: [] },
  });
  say(1, `logins ${name}\n`);
  if (n === 0) say(1, `waited ${Math.round(performance.now() - startedAt)}\n`);
}
session.close();
