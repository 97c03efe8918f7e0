// known-programs.ts: what is known to be harmless, program by program: the one table. A rule for a
// program that has a row reaches what the row says, and everything else is asked about. A list of
// the dangerous options would have to be complete, in every spelling, for every system.
//
//   -[nrs]       letters without a value, alone or together
//   -k:text      an option with a value, attached to it or as the next word
//   -l::file     as the next word only
//   --color=text one whose value can only be behind a "="
//   --quiet      a word as it is: --qui, which many programs take for it, is not known here
//   -#           a number with a dash before it
//   | file*      what the other words are, in this order; the last may come any number of times

import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { findCommand } from '../../mcp.ts';
import { canBeStarted } from '../16-hands/git-settings.ts';
import type { Location, Roots } from '../16-hands/paths.ts';
import type { Word } from './shell-syntax.ts';

/** These need no rule: they show what `read` and `glob` may show anyway. Not among them: what
 *  follows (tail -f), what reads a list (wc --files0-from), and `ls -R`, which would walk into
 *  folders that a rule hides. `ls -L` would look behind links. */
const FREE = `
  ls: -[1aAcCdFghiklmnopqrsStuUx] | file*
  cat: -[bensATuvtE] | file*
  pwd: -[LP]
  wc: -[clmwL] | file*
  head: -[qv] -# -n:number -c:number | file*
  tail: -[qv] -# -n:number -c:number | file*
  which: -a | name*`;

// Not among the options: what writes (sort -o, tar -x), what starts a program (sort
// --compress-program, find -exec), what reads a list of files or a script (grep -f), what follows
// links (grep -R), and what takes a value on one system and none on another (sed -l).
const RULED = `
  echo: | any
  printf: | any
  test: | any
  [: | any
  true: | any
  false: | any
  cd: -[LP] | folder
  sed: -[nErsuz] -e:sed --expression:sed --quiet --silent --regexp-extended | sed file*
  awk: -F:text -v:text | awk file*
  sort: -[bcCdfghiMmnrRsuVz] -k:text -t:text --reverse --unique --numeric-sort --version-sort
    --human-numeric-sort --ignore-case --stable --key:text --field-separator:text | file*
  uniq: -[cdui] -f:number -s:number --count --repeated --unique --ignore-case | input
  cut: -[s] -b:text -c:text -d:text -f:text --delimiter:text --fields:text | file*
  tr: -[cCds] | text*
  grep: -[EFGPHchilnoqsvwxr] -# -e:pattern -A:number -B:number -C:number -m:number --color
    --color=text --include:text --exclude:text --exclude-dir:text --line-number --ignore-case
    --word-regexp --count --only-matching --files-with-matches --fixed-strings --extended-regexp
    --no-messages | pattern tree*
  rg: -[niwlcvFxsSoHNIUPp] -e:pattern -A:number -B:number -C:number -m:number --pretty --count
    --line-number --ignore-case --smart-case --fixed-strings --no-heading --files-with-matches
    --color:text --max-count:number | pattern tree+
  find: -name:text -iname:text -path:text -ipath:text -regex:text -iregex:text -type:text
    -size:text -maxdepth:number -mindepth:number -mtime:text -mmin:text -newer:file
    -newermt:text -user:text -perm:text -empty -print -print0 -printf:text -ls -prune -not -and
    -or -o -a -true -false -xdev -depth -quit | file*
  fd: -[HIispag] -e:text -t:text -d:number --hidden --type:text --extension:text
    --max-depth:number | text file*
  diff: -[uqwbBisyadN] -U:number --unified=number --brief --color=text --ignore-all-space
    --ignore-blank-lines --side-by-side | one one
  cmp: -[bls] | file file
  comm: -[123] | file file
  tac: | file*
  rev: | file*
  nl: -b:text | file*
  stat: -c:text --format=text | file*
  file: -[b] | file*
  du: -[hsack] -d:number --max-depth=number --summarize --human-readable | file*
  realpath: | file*
  basename: | text*
  dirname: | text*
  seq: | text*
  md5sum: | file*
  sha1sum: | file*
  sha256sum: | file*
  xxd: -p -u -b -l:number -s:number -c:number -g:number | input
  od: -[bcx] -A:text -t:text -N:number -j:number | file*
  tar: tf:file tvf:file tzf:file tzvf:file tvzf:file tjf:file tJf:file -[tvzjJ] -f:file --list
    --verbose --gzip --file:file
  unzip: -l::file
  jq: -[rcesnSMCaj] --raw-output --compact-output --sort-keys --tab | jq file*
  mkdir: -[pv] | new*
  touch: -[acm] | new*`;

// ─── git ───────────────────────────────────────────────────────────────────────────────────────

const DIFF = `-p -u -s -a -b -w -z -R -M -C -U:number -S:text -G:text
  --stat --stat=text --numstat --shortstat --summary --compact-summary --name-only --name-status --patch --no-patch --raw --color
  --no-color --color=text --color-words --word-diff --word-diff=text --ignore-all-space
  --ignore-space-change --ignore-blank-lines --unified=number --diff-filter=text --no-renames
  --find-renames --minimal --patience --histogram --check --full-index --relative
  --no-ext-diff --no-textconv --output-indicator-new=text --output-indicator-old=text`;
const LOG = `-# -n:number -L:text -i -E -F -g --oneline --graph --all --decorate --decorate=text
  --no-decorate --merges --no-merges --first-parent --reverse --follow --abbrev-commit --date=text
  --format=text --pretty=text --since=text --until=text --after=text --before=text --author=text
  --committer=text --grep=text --max-count=number --skip=number --branches --tags --remotes
  --left-right --cherry-pick --date-order --topo-order --full-history --ancestry-path --boundary
  --no-walk --count`;

/** By what they do with the folder. git has two hundred commands: many start what they are told to
 *  (bisect run, remote-ext) or set it up for later (config), so a rule must spell those. */
const GIT = {
  /** They change nothing, so no hook runs. */
  looks: `
    status: -[sbvz] -uno -uall --short --branch --porcelain --porcelain=text --long --ignored
      --untracked-files=text --show-stash | ref*
    diff: ${DIFF} --cached --staged --merge-base --quiet --exit-code | ref*
    log: ${DIFF} ${LOG} | ref*
    show: ${DIFF} ${LOG} | ref*
    shortlog: -[sne] --all --no-merges --since=text --until=text | ref*
    rev-list: -# --all --count --oneline --no-merges --since=text --max-count=number | ref*
    blame: -w -s -l -f -t -e -M -L:text --date=text --porcelain --show-email | ref*
    grep: -[niwlLcvEFPGohHIpq] -# -e:pattern -A:number -B:number -C:number --cached --and --or --not
      --count --line-number --ignore-case --word-regexp --all-match | pattern ref*
    ls-files: -[cdmoskuzt] --others --exclude-standard --cached --modified --deleted --stage | ref*
    ls-tree: -[rdtlz] --name-only --full-tree --long | ref*
    rev-parse: --short --short=number --abbrev-ref --verify --show-toplevel --git-dir
      --is-inside-work-tree --symbolic-full-name | ref*
    cat-file: -[tspe] | ref*
    show-ref: -[dqs] --heads --tags --head --verify | ref*
    name-rev: --name-only --tags | ref*
    merge-base: --all --is-ancestor --fork-point | ref*`,
  /** They take in what is in the folder, or talk of it, and set up nothing that would run later. */
  adds: `
    add: -[AuvnN] --all --update --dry-run --verbose --intent-to-add | ref*
    commit: -[aqvsn] -m:text -F:file --message:text --file:file --all --amend --no-edit --no-verify
      --signoff --quiet --verbose --allow-empty --author:text --date:text --dry-run | ref*
    rm: -[rqn] --cached --quiet --dry-run | ref*
    tag: -[la] -m:text -F:file --message:text --file:file --list --annotate --sort=text
      --format=text --contains --merged --points-at | ref*
    branch: -[avrqmd] -vv --all --list --show-current --verbose --remotes --merged --no-merged
      --contains --sort=text --format=text | ref*
    fetch: -[qvpt] --all --prune --tags --no-tags --quiet --verbose --dry-run --depth:number
      | remote ref*
    push: -[uqvn] --set-upstream --tags --follow-tags --dry-run --quiet --verbose --porcelain
      --no-verify | remote sent*`,
  /** So do these, but another branch brings other files. */
  moves: `
    restore: -[qSW] -s:ref --staged --worktree --source=ref --quiet | ref*
    reset: -[q] --soft --mixed --quiet | ref*
    checkout: -[qt] -b:ref --quiet --track --detach --ours --theirs | ref*
    switch: -[qtd] -c:ref --create:ref --quiet --track --detach | ref*
    merge: -[qvn] -m:text --ff --no-ff --ff-only --squash --no-commit --no-edit --abort --continue
      --quiet --stat | ref*
    rebase: -[q] --onto:ref --abort --continue --skip --autostash --quiet | ref*
    cherry-pick: -[xn] --no-commit --abort --continue --skip | ref*
    revert: -[n] --no-edit --no-commit --abort --continue --skip | ref*
    stash: -[uqakp] -m:text --include-untracked --message:text --keep-index --quiet | ref*
    pull: -[qvr] --rebase --no-rebase --ff-only --no-edit --autostash --prune --tags --quiet
      | remote ref*`,
  others: `
    describe: --tags --always --dirty --all --long --exact-match --abbrev=number --match=text | ref*
    reflog: ${LOG} | ref*
    for-each-ref: --sort=text --format=text --count=number --merged --contains | ref*
    remote: -[v] get-url:name
    ls-remote: -[hqt] --heads --tags --quiet | remote ref*
    mv: -[nvk] | new*
    clean: -n -nd -ndx --dry-run
    worktree: list
    version:`,
};

export type GitManner = keyof typeof GIT;

// ─── Reading the table ─────────────────────────────────────────────────────────────────────────

type Row = {
  options: Map<string, string>; // the kind of its value: "" if it has none
  attached: Map<string, string>; // the same for those whose value can only be behind a "="
  letters: Set<string>;
  operands: string[];
};

function programRows(table: string, before = ''): [name: string, row: Row][] {
  const rows: { name: string; words: string[] }[] = [];
  for (const word of table.trim().split(/\s+/))
    if (word.endsWith(':')) rows.push({ name: before + word.slice(0, -1), words: [] });
    else rows.at(-1)!.words.push(word);

  return rows.map(({ name, words }) => [name, rowOf(words)]);
}

function rowOf(words: string[]) {
  const end = words.includes('|') ? words.indexOf('|') : words.length;
  const row: Row = {
    options: new Map(),
    attached: new Map(),
    letters: new Set(),
    operands: words.slice(end + 1),
  };
  for (const word of words.slice(0, end)) {
    const [, name = word, sign, kind = ''] = /^([^:=]+)([:=])(.+)$/.exec(word) ?? [];
    const letters = /^-\[(.*)\]$/.exec(word)?.[1] ?? '';
    for (const letter of letters) row.letters.add(`-${letter}`);
    if (letters === '') (sign === '=' ? row.attached : row.options).set(name, kind);
  }
  return row;
}

const FREE_ROWS = programRows(FREE);
const ROWS = new Map([
  ...FREE_ROWS,
  ...programRows(RULED),
  ...Object.values(GIT).flatMap((rows) => programRows(rows, 'git ')),
]);
const MANNERS = new Map(
  Object.entries(GIT).flatMap(([manner, rows]) =>
    programRows(rows).map(([name]) => [name, manner as GitManner] as const),
  ),
);

export const FREE_COMMANDS = FREE_ROWS.map(([name]) => name);
/** By its name; of git by both, `git log`. */
export const isKnownProgram = (name: string) => ROWS.has(name);
export const gitMannerOf = (subcommand: string) => MANNERS.get(subcommand);

// ─── Reading words by a row ────────────────────────────────────────────────────────────────────

/** A word, or the value in it, and what it is to the program. */
export type Meaning = { kind: string; word: Word; isSpelled: boolean };

/** What the words behind a program mean; nothing if one of them is not known. Those that a rule
 *  has spelled need not be. */
export function meaningsOf(name: string, words: Word[], spelled = 0): Meaning[] | undefined {
  const row = ROWS.get(name)!;
  if (row.operands[0] === 'any') return words.some(listsOutside) ? undefined : [];
  const values: Meaning[] = [];
  const others: Omit<Meaning, 'kind'>[] = [];
  let isEnded = false; // by "--"
  for (let at = 0; at < words.length; at++) {
    const word = words[at]!;
    const isSpelled = at < spelled;
    const option = isEnded ? undefined : optionIn(row, word.text);
    if (!isEnded && word.text === '--') isEnded = true;
    else if (!option) {
      // A variable or a glob may be any option; and to find, "--" is not the end of them.
      const isDoubtful = (!isEnded && !word.isPlain) || /^[-+]./.test(word.text);
      if (isDoubtful && !isSpelled) return undefined;
      if (!isDoubtful) others.push({ word, isSpelled });
    } else if (option.kind !== '') {
      const value = option.value === undefined ? words[++at] : { ...word, text: option.value };
      if (!value) return undefined;
      // If the program takes no value there, it is an option.
      if (option.kind !== 'pattern' && /^-[^\d\s]/.test(value.text)) return undefined;
      values.push({ kind: option.kind, word: value, isSpelled: at < spelled });
    } else if (others.length > 0) {
      if (row.operands[0] === 'input') return undefined;
      values.push({ kind: 'late', word, isSpelled });
    }
    if (option && !word.isPlain && !isSpelled) return undefined;
  }
  const isDeep = words.some(({ text }) => /^-\w*r/.test(text)) && name === 'grep';
  return withOperands(row.operands, values, others, isDeep);
}

function withOperands(
  kinds: string[],
  values: Meaning[],
  others: Omit<Meaning, 'kind'>[],
  isDeep: boolean,
) {
  const isGiven = values.some(({ kind }) => kind === kinds[0]); // sed -e: the script is no operand
  const rest = isGiven ? kinds.slice(1) : kinds;
  if (rest[0] === 'folder' && others.length === 0) return undefined; // cd goes home
  const all = [...values];
  for (const [n, other] of others.entries()) {
    const last = rest.at(-1) ?? '';
    const kind = rest[n] ?? (/[*+]$/.test(last) ? last : undefined);
    if (kind === undefined && !other.isSpelled) return undefined;
    if (kind !== undefined) all.push({ kind: kind.replace(/[*+]$/, ''), ...other });
  }
  // Without a folder it searches this one.
  const isHere = isDeep || kinds.at(-1) === 'tree+';
  if (isHere && !all.some(({ kind }) => kind === 'tree'))
    all.push({ kind: 'tree', word: { text: '.', isPlain: true }, isSpelled: false });
  return all;
}

type ReadOption = { kind: string; value?: string };

function optionIn(row: Row, text: string): ReadOption | undefined {
  const { options, attached, letters } = row;
  const whole = options.get(/^-\d{1,9}$/.test(text) ? '-#' : text);
  if (whole !== undefined) return { kind: whole.replace(':', '') };
  if (letters.has(text)) return { kind: '' };
  const at = text.indexOf('=');
  if (text.startsWith('--')) {
    const name = text.slice(0, Math.max(at, 0));
    const kind = attached.get(name) ?? options.get(name);
    return kind ? { kind, value: text.slice(at + 1) } : undefined;
  }
  const [first, rest] = [text.slice(0, 2), text.slice(2)];
  const kind = /^-[A-Za-z]$/.test(first) ? options.get(first) : undefined;
  if (kind && !kind.startsWith(':')) return { kind, value: rest };
  return letters.has(first) && /^[A-Za-z]/.test(rest) ? optionIn(row, `-${rest}`) : undefined;
}

// ─── What a word may be ────────────────────────────────────────────────────────────────────────

/** Where a command runs. */
export type Place = {
  roots: Roots;
  isHidden: (real: string) => boolean; // a rule forbids to read it, or asks
  isSettled: boolean; // nothing before it in the line can have put another file there
};
const FILES = new Set(['file', 'input', 'folder', 'one', 'new', 'tree']);

/** To many a program, the "/" in /[/]/ is not the end: then what looks like text is a command. */
const REGEX = String.raw`/([^/\\[\n]|\[\^?(\[:[a-z]+:\]|[^\]^/\\[\n])+\])*/`;
/** One sed script that prints, deletes or replaces: `w` and `e` write files and run commands, and
 *  can be at many places of a longer one. */
const SED_PLACE = String.raw`(\d+|\$|${REGEX})`;
const SED_PIECE = String.raw`(\\.|(?!\k<cut>)[^\\\n])*`;
const SED_REPLACING = String.raw`s(?<cut>[/|#,])${SED_PIECE}\k<cut>${SED_PIECE}\k<cut>[gpI\d]*`;
const PLAIN_SED = new RegExp(`^(${SED_PLACE}(,${SED_PLACE})?)?([pdq=]|${SED_REPLACING})$`);
/** One awk script that prints: no ">", "|", "system" or "getline". A "/" that is not at the very
 *  beginning may be a division, and then what looks like a pattern is a command. */
const AWK_WORD = 'print|printf|NR|NF|FNR|FS|OFS|BEGIN|END|length|substr|tolower|toupper|if|[a-z]';
const PLAIN_AWK = new RegExp(
  String.raw`^(${REGEX})?([\s{}(),;$+*=!~&?:%\d-]|"[^"\\\n]*"|\b(${AWK_WORD})\b)*$`,
);
/** `import` and `include`, which read other files, can only come first. */
const PLAIN_JQ = /^([.[{(]|(keys|length|type|map|select|to_entries)\b)/;

/** Which words a kind takes. */
const KINDS: Record<string, (word: Word, place: Place) => boolean> = {
  text: () => true,
  pattern: () => true,
  number: ({ text }) => /^[+-]?\d{1,9}$/.test(text),
  name: ({ text }) => /^[\w.][\w.+-]*$/.test(text),
  sed: ({ text }) => PLAIN_SED.test(text),
  awk: ({ text }) => PLAIN_AWK.test(text),
  jq: ({ text }) => PLAIN_JQ.test(text),
  file: isReadableWord,
  input: isReadableWord, // a second word would be written
  folder: (word, place) => word.text !== '-' && isReadableWord(word, place), // the one before
  one: (word, { roots }) => isFolder(readable(word, roots)) === false, // diff shows all that is in a folder
  new: (word, { roots }) => isFreeToWrite(readable(word, roots)),
  tree: (word, place) => word.text === '-' || isFreeToRead(word, place),
  remote: ({ text }) => /^\w[\w.-]*$/.test(text), // and is it one? see git-commands.ts
  ref: isRef,
  sent: (word, place) => !word.text.startsWith(':') && isRef(word, place), // :main deletes main there
  // On some systems, an option behind a file is the name of another file.
  late: ({ text }, place) => isNoSecret(text, place),
};

/** Is this word what its kind says, for certain? */
export function isAsItsKind({ kind, word, isSpelled }: Meaning, place: Place): boolean {
  if (isSpelled) return true;
  if (FILES.has(kind) && !place.isSettled && word.text !== '-') return false;
  // Behind "--", git makes nothing but paths of the folder of a glob.
  const isSure = word.isPlain || (kind === 'ref' && word.isGlob === true);
  return isSure && KINDS[kind]!(word, place);
}

function isReadableWord(word: Word, { roots, isHidden }: Place) {
  const file = readable(word, roots);
  return word.text === '-' || (file !== undefined && !isHidden(file.real));
}

/** Where a path leads, if it may be read without a question. The program opens it by its name, and
 *  not what we have judged: so no "..", which means another folder behind a link. */
export function readable({ text, isPlain }: Word, roots: Roots): Location | undefined {
  if (!isPlain || text === '' || /[\\:]|(^|\/)\.\.(\/|$)/.test(text)) return undefined;
  try {
    const location = roots.locate(`./${text}`.replace(/^\.\/(?=\/)/, ''));
    const stats = statSync(location.real, { throwIfNoEntry: false });
    const isUsual = !stats || stats.isFile() || stats.isDirectory(); // a FIFO would never end
    return location.readable && !location.secret && isUsual ? location : undefined;
  } catch {
    return undefined; // it leads nowhere
  }
}

const isFolder = (file?: Location) =>
  file && statSync(file.real, { throwIfNoEntry: false })?.isDirectory() === true;
const isFreeToWrite = (file?: Location) => file?.inside === true && !file.fence && !file.build;

/** A file, or a folder of which every file may be read. Of a large one we do not see the end. */
function isFreeToRead(word: Word, { roots, isHidden }: Place) {
  const paths = [word.text];
  const endsAt = performance.now() + MAX_LOOK_MS;
  for (const path of paths) {
    const file = readable({ text: path, isPlain: true }, roots);
    if (!file || isHidden(file.real) || paths.length > MAX_ENTRIES) return false;
    if (performance.now() > endsAt) return false; // a project may forbid a thousand names
    if (isFolder(file))
      for (const entry of readdirSync(file.real, { withFileTypes: true }))
        if (!entry.isSymbolicLink()) paths.push(join(path, entry.name)); // those are not followed
  }
  return true;
}

const MAX_ENTRIES = 5000;
const MAX_LOOK_MS = 500;

/** `git diff /dev/null /etc/passwd` compares any two files. */
const leadsOut = (text: string) => /^([\\/]|[a-z]:[\\/]|~)|(^|[\\/=:])\.\.([\\/]|$)/i.test(text);

function isRef({ text }: Word, place: Place) {
  const names = [text, text.replace(/^.*:/, '')];
  return !leadsOut(text) && names.every((each) => isNoSecret(each, place));
}

/** `echo /etc/*` would show what is in another folder. */
const listsOutside = ({ text, isPlain }: Word) =>
  !isPlain && /[*?[]/.test(text) && /(^|[{,])[~/]|\.\./.test(text);

/** If it is a file, now or in some commit. */
function isNoSecret(text: string, { roots, isHidden }: Place) {
  try {
    const file = roots.locate(text);
    return file.readable && !file.secret && !isHidden(file.real);
  } catch {
    return text.length > 255; // too long for a name, or else a link that leads nowhere
  }
}

// ─── Programs without a row ────────────────────────────────────────────────────────────────────

/** Nothing is known of the program. What starts another one is told which: by a word, by the value
 *  of an option, or by what comes in. So a rule that spells no more than its name means options
 *  without a value, and files of the folder that cannot be started, nor are named like a command. */
export function isModest(word: Word, { roots, isSettled }: Place): boolean {
  const { text, isPlain } = word;
  if (isPlain && /^(-[A-Za-z]|--[A-Za-z][\w-]*)$/.test(text)) return true;
  const isName = isSettled && /^[\p{L}\d_./][\p{L}\d_./+-]*$/u.test(text);
  const file = isName ? readable(word, roots) : undefined;
  const isFile = file && statSync(file.real, { throwIfNoEntry: false })?.isFile();
  return isFile === true && !canBeStarted(file.real) && findCommand(text) === text;
}
