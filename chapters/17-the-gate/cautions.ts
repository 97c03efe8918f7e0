// cautions.ts: what a person should look at twice before they approve a server. An entry can say in
// an innocent place what its program really does. The tables say where, and why it matters; to be
// warned once too often is better than once too seldom.

import { asList, asObject, type Json } from '../../mcp.ts';
import { quoted } from './safe-text.ts';

export function cautions(config: Json): string[] {
  return [
    ...secretsSent(config),
    ...headersPrinted(config),
    ...variablesRead(config),
    ...variablesSet(config),
    ...programsStarted(config),
  ];
}

function secretsSent({ oauth }: Json) {
  const { assertionFile, privateKeyFile, issuer } = asObject(oauth);
  const to = quoted(`${issuer ?? 'whoever it names'}`);
  const fileOf = (path: unknown) => quoted(String(path));
  const found: string[] = [];
  if (assertionFile) found.push(`it sends what is in ${fileOf(assertionFile)} to ${to}`);
  if (privateKeyFile) found.push(`it signs with the key in ${fileOf(privateKeyFile)} for ${to}`);
  return found;
}

/** An entry with an address looks as if nothing ran on this machine. */
function headersPrinted({ headersHelper }: Json) {
  if (headersHelper === undefined) return [];
  const line = [headersHelper]
    .flat()
    .map((word) => quoted(String(word)))
    .join(' ');
  return [`it runs ${line} on this machine, as you, and sends what that prints`];
}

function variablesRead(config: Json) {
  const names = [...JSON.stringify(config).matchAll(/\$\{(\w+)/g)].map(([, name]) => name!);
  return names.length > 0 ? [`it reads your variables ${[...new Set(names)].join(', ')}`] : [];
}

// ─── Variables ─────────────────────────────────────────────────────────────────────────────────

const CODE = 'decides what code is loaded';
const COMMANDS = 'names commands that other programs run';
const PACKAGES = 'decides where packages come from';
const CERTIFICATES = 'decides whose certificates are believed';
const SETTINGS = 'decides whose settings programs read';
const TRAFFIC = 'decides where its traffic goes';

/** What a variable decides, by its name in capitals. The first row that fits counts. */
const VARIABLES: [name: RegExp, why: string][] = [
  [/^(PATH|PATHEXT|COMSPEC|SHELL)$/, CODE], // which file a command means
  [/^(LD|DYLD|_RLD|GCONV|GLIBC)_|^(LIB|SHLIB_)PATH$/, CODE], // the system's own loader
  [/^BASH_|^(BASHOPTS|SHELLOPTS|ENV|ZDOTDIR|PS4|PROMPT_COMMAND|IFS|FPATH)$/, CODE], // shells
  [/^NODE_TLS_REJECT_UNAUTHORIZED$|^GIT_SSL_|^PYTHONHTTPSVERIFY$/, CERTIFICATES],
  [/^(SSL_CERT_\w+|NODE_EXTRA_CA_CERTS|\w+_CA_BUNDLE|\w*CAFILE|OPENSSL_\w+)$/, CERTIFICATES],
  [/^(NODE|BUN|DENO|TSX|TS_NODE|ELECTRON)_/, CODE],
  [/^(PYTHON\w+|VIRTUAL_ENV|CONDA_\w+|PYENV_\w+)$/, CODE],
  [/^(PERL\w*|RUBY(OPT|LIB)|GEM_(HOME|PATH)|BUNDLE_\w+)$/, CODE],
  [/^(\w*JAVA_(TOOL_|)OPTIONS|JAVA_(OPTS|HOME)|CLASSPATH)$/, CODE],
  [/^(MAVEN|GRADLE|JRUBY|SBT|ANT)_(OPTS|ARGS)$|^(GTK|QT|GIO|GST)_\w+$/, CODE],
  [/^(DOTNET|CORECLR|COR|COMPLUS)_/, CODE],
  [/^(PHPRC|PHP_INI_SCAN_DIR|R_(PROFILE|ENVIRON|LIBS)\w*)$|^(LUA|JULIA|ERL|ELIXIR)_/, CODE],
  [/^(GOFLAGS|GOROOT|GOTOOLCHAIN|GOENV|RUSTC\w*|RUSTFLAGS|(CARGO|RUSTUP)_\w+)$/, CODE],
  [/^(MAKEFLAGS|CC|CXX|VIMINIT|EXINIT|(NVM|VOLTA|ASDF|MISE|FNM)_\w+)$/, CODE],
  [/^NPM_CONFIG_|^(YARN|PNPM|COREPACK|PIP|PIPX|UV|POETRY|HOMEBREW)_/, PACKAGES],
  [/(_INDEX_URLS?|_INDEX|_REGISTRY|_MIRROR)$|^(GOPROXY|GOPRIVATE|GONOSUM\w+|GOSUMDB)$/, PACKAGES],
  [/^GIT_(?!(AUTHOR|COMMITTER)_)/, COMMANDS], // GIT_SSH_COMMAND, GIT_PAGER, GIT_CONFIG_KEY_0 …
  [/_(ASKPASS|RSH)$|PAGER$|^(SVN_SSH|HGRCPATH|EDITOR|VISUAL|LESSOPEN|BROWSER)$/, COMMANDS],
  [/^TAR_OPTIONS$|_CONFIG(_FILE|_DIR)?$|^(GNUPGHOME|CURL_HOME|WGETRC|INPUTRC)$/, SETTINGS],
  [/^(HOME|HOMEDRIVE|HOMEPATH|USERPROFILE|(LOCAL)?APPDATA|XDG_\w+)$/, SETTINGS],
  [/_(PROXY|BASE_URL|API_URL|API_BASE|ENDPOINT(_URL)?)$|^KUBECONFIG$|^HOSTALIASES$/, TRAFFIC],
  [/^(DOCKER|OLLAMA)_HOST$|^DOCKER_CONTEXT$/, TRAFFIC],
];

/** In `env`, and in arguments: `env NODE_OPTIONS=… node`, `docker run --env=LD_PRELOAD=…`. */
function variablesSet(config: Json) {
  const inArguments = launchWords(config).flatMap(
    (word) => /^(?:-e|--env=?)?([A-Za-z_]\w*)=/.exec(word)?.[1] ?? [],
  );
  const names = [...Object.keys(asObject(config.env)), ...inArguments];
  const reasons = new Map<string, Set<string>>();
  for (const name of names) {
    const why = VARIABLES.find(([pattern]) => pattern.test(name.toUpperCase()))?.[1];
    if (why) reasons.set(why, (reasons.get(why) ?? new Set()).add(quoted(name)));
  }
  return [...reasons].map(([why, which]) => `it sets ${[...which].join(', ')}, which ${why}`);
}

// ─── Programs ──────────────────────────────────────────────────────────────────────────────────

/** A program, and what makes it worth a look: a word that comes after it, if there is a pattern. */
type ProgramCaution = [program: RegExp, why: string, word?: RegExp];

const IN_ARGUMENTS = 'it runs code that is in the arguments, or that they name';
const OTHER = 'it starts another program: which one is in the arguments';
const CONTAINER = 'it reaches out of its container';

/** By the name of a program without its folder and its ending. */
const PROGRAMS: ProgramCaution[] = [
  [/^(sudo|doas|su|pkexec|runas|gsudo)$/, 'it asks for the rights of another user (sudo)'],
  [
    /^(r?(ba|z|da|a|fi|k|mk|ya|c|tc|pow)?sh[\d.-]*|cmd|powershell|pwsh|busybox|nu|xonsh)$/,
    'it starts a shell: what that runs is in the arguments',
  ],
  [/^(env|cross-env|xargs|nohup|setsid|nice|timeout|stdbuf|dotenvx?|ssh|script|chroot)$/, OTHER],
  [/^(strace|ltrace|unshare|nsenter|systemd-run|flatpak-spawn|firejail|bwrap|proot|wsl)$/, OTHER],
  [/^find$/, OTHER, /^-(exec|ok)/],
  [/^rsync$/, OTHER, /^-\w*e|^--rsh/],
  [/^tar$/, OTHER, /^-\w*[FI]|^--(checkpoint|use-|to-command|info-s)/],
  [/^(bundle|poetry|pdm|rye|hatch|conda|mise)$/, OTHER, /^(exec|run|x)$/],
  [/^(g?make|just|task|rake|ninja|invoke)$/, OTHER],
  [
    /^(node(js)?[\d.]*|bun|tsx|ts-node|electron)$/,
    IN_ARGUMENTS,
    /^-\w*[epr]|^--(eval|print|require|import|preload|\w*-?loader|env.file|inspect|run)/i,
  ],
  [/^deno$/, IN_ARGUMENTS, /^(eval|repl|task)$|^--(preload|import-map)|^(https?|npm|jsr|data):/],
  [/^uvx?$/, IN_ARGUMENTS, /^--(with|script)/],
  [/^(jbang|dnx)$/, IN_ARGUMENTS],
  [/^nix(-shell)?$/, IN_ARGUMENTS, /^(run|shell|develop)$|^-\w*p|^--run/],
  [/^(python|pypy|ipython|py)w?[\d.]*$/, IN_ARGUMENTS, /^-\w*c/],
  [
    /^(perl|ruby|lua|luajit|php|julia|r|rscript|elixir|groovy|osascript)[\d.]*$/,
    IN_ARGUMENTS,
    /^-\w*[erim]|^--eval/i,
  ],
  [/^(g|m|n)?awk$|^(tclsh|wscript|cscript|mshta|rundll32)$/, IN_ARGUMENTS],
  [/^javaw?$/, IN_ARGUMENTS, /^-(javaagent|agent|Xbootclasspath)/i],
  [/^p?np[mx]$/, IN_ARGUMENTS, /^-\w*c|^--(cal|shell-mode|node-opt)/],
  [/^git$/, IN_ARGUMENTS, /^-c|^--(exec-path|upload-pack|config)|^ext::/],
  [
    /^(p?np[mx]|bunx?|yarn|uvx?|pipx?)$/,
    'it says where packages come from, or whose settings count',
    /^--(\S+:)?reg|^--[\w-]*index|^--(prefix|find-l|(user|global)c)|^-i$/,
  ],
  [
    /^(npm|pnpm|yarn|bun)$/,
    'it runs a package, or a script of package.json',
    /^(run|run-script|start|test|exec|x|dlx|create|init)$/,
  ],
  [
    /^(docker|podman|nerdctl)$/,
    CONTAINER,
    /^-\w*v|^--(volume|mount|privileged|device|cap-add|security-opt|use-api-socket|env-file)/,
  ],
  [
    /^(docker|podman|nerdctl)$/,
    CONTAINER,
    /^(--(pid|ipc|uts|userns|net|network)=)?host$|docker\.sock|^compose$/,
  ],
];

const NO_VERSION = 'no version is named: what runs is whatever is published under that name';

function programsStarted(config: Json) {
  const words = launchWords(config);
  // Every word, because `env sh -c …` starts a shell, too.
  const names = words.map(programName);
  const fits = ([program, , word]: ProgramCaution) => {
    const at = names.findIndex((name) => program.test(name));
    return at >= 0 && (!word || words.slice(at + 1).some((each) => word.test(each)));
  };
  const found = PROGRAMS.filter(fits).map(([, why]) => why);
  const isOpen = names.some((_, at) => startsUnpinned(words.slice(at, at + MAX_LINE)));
  return [...new Set([...found, ...(isOpen ? [NO_VERSION] : [])])];
}

/** The command and its arguments. */
export const launchWords = ({ command = '', args }: Json) => [command, ...asList(args)].map(String);

/** /usr/bin/NODE.EXE is node. */
function programName(word: string) {
  const name = word.split(/[/\\]/).at(-1)!.toLowerCase();
  return name.replace(/\.(exe|cmd|bat|com|ps1)$/, '');
}

// ─── Versions ──────────────────────────────────────────────────────────────────────────────────

/** What fetches a package and runs it: the program, and the words behind it. */
const LAUNCHERS = [
  /^(npx|bunx|pnpx|uvx) /,
  /^npm (exec|x|create|init) /,
  /^(pnpm|yarn) (dlx|create) /,
  /^bun (x|create) /,
  /^pipx run /,
  /^uv tool run /,
  /^go run /,
];
const CONTAINERS = /^(docker|podman|nerdctl) (container )?(run|create) /;
const PINNED = /.@v?\d+(\.\d+){2}[\w.+-]*$|.===?\d[\w.]*$|@sha256:[\da-f]{64}$|#[\da-f]{40}$/;
const TAGGED = /.:(?!latest$)\w[\w.-]*$|@sha256:[\da-f]{64}$/;
const SWITCH = /^-[itdqP]+$|^--(rm|init|interactive|tty|detach|privileged|read-only|quiet)$/;
const MAX_LINE = 64; // words; a package that comes later counts as one without a version

/** Do these words begin with a launcher, and with a package whose version is open? */
function startsUnpinned(words: string[]) {
  const line = `${words.slice(0, 4).map(programName).join(' ')} `;
  const isContainer = CONTAINERS.test(line);
  const launcher = [CONTAINERS, ...LAUNCHERS].find((pattern) => pattern.test(line));
  if (!launcher) return false;
  const launch = launcher.exec(line)![0].trim().split(' ');
  const rest = words.slice(launch.length);
  if (isContainer) return !TAGGED.test(imageIn(rest));
  return packagesIn(rest).some((name) => !PINNED.test(name));
}

/** What `--package` and its like name; else the first word that is not a flag. */
function packagesIn(words: string[]) {
  const flag = /^(-p|--package|--from|--with|--spec)(=|$)/;
  const named = words.flatMap((word, at) => {
    if (!flag.test(word)) return [];
    return word.includes('=') ? word.slice(word.indexOf('=') + 1) : (words[at + 1] ?? '');
  });
  return named.length > 0 ? named : [words.find((word) => !word.startsWith('-')) ?? ''];
}

/** The first word that is neither a flag nor the value of one. */
function imageIn(words: string[]) {
  let at = 0;
  while (words[at]?.startsWith('-')) {
    const isWhole = words[at]!.includes('=') || SWITCH.test(words[at]!);
    at += isWhole ? 1 : 2;
  }
  return words[at] ?? '';
}
