// environment.ts: which of our variables a child process gets.

export const isWindows = process.platform === 'win32';

// A child gets these of our variables. A server also gets those that its `env` names, but never a
// key that just happens to be set.
const SAFE_ENV = /^(HOME|LOGNAME|PATH|SHELL|TERM|USER|LANG|LC_\w+|TMPDIR|TZ)$/;
const SAFE_ENV_OF_WINDOWS = new RegExp(
  '^((LOCAL)?APPDATA|COMSPEC|HOME(DRIVE|PATH)|PATH(EXT)?|PROCESSOR_\\w+|PROGRAM\\w+' +
    '|SYSTEM(DRIVE|ROOT)|TE?MP|USER\\w+)$',
  'i',
);
// A server also gets these, to reach the network from behind a company's proxy.
export const NETWORK_ENV = /^((HTTPS?|ALL|NO)_PROXY|NODE_EXTRA_CA_CERTS|SSL_CERT_(FILE|DIR))$/i;

/** What any child process of ours may see. */
export function safeEnv(): NodeJS.ProcessEnv {
  return ourEnv(isWindows ? SAFE_ENV_OF_WINDOWS : SAFE_ENV);
}

export function ourEnv(names: RegExp): NodeJS.ProcessEnv {
  const found = Object.entries(process.env).filter(([name, value]) => {
    // A value that begins with () is a shell function, which old versions of bash would run.
    return names.test(name) && !value?.startsWith('()');
  });
  return Object.fromEntries(found);
}
