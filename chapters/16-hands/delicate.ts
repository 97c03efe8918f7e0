// delicate.ts: files that are more than text, in one table, each row with its reason. The reason is
// part of the question, so that a person can judge.
//
//   secret   it may hold keys or passwords: what is read goes to a model, and from there anywhere
//   fence    a change runs programs by itself, or frees an agent: on the next commit, in the next
//            shell, when a folder is opened, when the next agent starts
//   build    a change runs with the next build, test or install
//
// Reading is free but for secrets. Writing asks for all three, in accept-edits as well. But build
// files are edited every day, and a question that comes every time is answered without reading. So
// there "always this file" is an answer, and a rule that names the file allows it. A fence is asked
// about each time.
//
// It is a list of names, and so never complete. What it misses is still inside the folder, and runs
// only when somebody runs it.

import { sep } from 'node:path';

export type Delicacy = 'secret' | 'fence' | 'build';
/** `names` are parts of a path: `*` is any run of characters in a name, and a `/` at the end means
 *  the folder and everything in it. `but` are names that are harmless all the same. */
type DelicateFiles = { kind: Delicacy; reason: string; names: string; but?: string };

const TABLE: DelicateFiles[] = [
  {
    kind: 'secret',
    reason: 'environment files hold secrets',
    names: '*.env .env.* .env-* .env_* .env~ .envrc .flaskenv .dev.vars .dev.vars.*',
    but: '.env*example .env*sample .env*template .env*dist',
  },
  {
    kind: 'secret',
    reason: 'it may be a key',
    names: `
      *.pem *.key *.p12 *.pfx *.p8 *.pkcs12 *.jks *.keystore *.kdb *.kdbx *.ppk *.ovpn
      *.agekey *.asc *.gpg id_rsa* id_dsa* id_ecdsa* id_ed25519* *_rsa *_ed25519 wallet.dat`,
    but: '*.pub',
  },
  {
    kind: 'secret',
    reason: 'it may hold passwords',
    names: `
      .npmrc .pypirc .netrc _netrc .git-credentials .pgpass pgpass.conf .htpasswd .vault-token
      etc/shadow* etc/gshadow* .my.cnf .mylogin.cnf .s3cfg .boto .dockercfg .docker/config.json .kube/ kubeconfig
      *.kubeconfig .credentials.json credentials.json credentials.toml credentials.yml
      credentials.yaml auth.json client_secret*.json service-account*.json
      service_account*.json serviceaccount*.json *firebase-adminsdk*.json
      application_default_credentials.json .databrickscfg .terraformrc *.tfrc.json *.tfvars
      *.tfvars.json *.tfstate *.tfstate.* secret.y*ml secrets.y*ml secrets.json secrets.toml
      secrets.properties *.secrets .secrets .secrets/ .git/config .m2/settings.xml
      settings-security.xml .cargo/credentials .gem/credentials .subversion/auth/ .*_history
      .yarnrc.yml .bundle/config bunfig.toml pip.conf pip.ini nuget.config .condarc
      local.settings.json .authinfo .vault_pass* .sentryclirc wp-config.php rclone.conf
      .rclone.conf .kaggle/ .cache/huggingface/token .huggingface/ .config/hub
      .config/glab-cli/`,
  },
  {
    kind: 'secret',
    reason: 'it may hold the tokens of MCP servers',
    names: `
      .mcp.json mcp.json mcp_config.json mcp_settings.json claude_desktop_config.json
      .claude.json .claude/settings*.json .gemini/settings.json .codex/config.toml`,
  },
  {
    kind: 'secret',
    reason: 'keys and passwords are kept there',
    names: `
      .ssh/ .gnupg/ .aws/ .azure/ .oci/ .password-store/ .mcp-by-hand/ .config/gh/
      .config/gcloud/ .config/op/ .config/doctl/ .config/rclone/ .config/git/credentials
      .local/share/keyrings/ library/keychains/ .mozilla/ .config/google-chrome/
      .config/chromium/`,
  },
  {
    kind: 'fence',
    reason: 'git runs it',
    names: `
      .git/ .hg/ .husky/ .githooks/ .gitconfig .gitmodules .gitattributes .config/git/ head
      .huskyrc* .pre-commit-config.y*ml .pre-commit-hooks.y*ml .overcommit.yml lefthook.* .lefthook/
      .lefthook.* lefthook-local.* .lefthook-local.* .lintstagedrc* lint-staged.config.*
      .bare/ *.git/ .jj/ .sl/ hooks/pre-commit hooks/pre-push hooks/pre-rebase
      hooks/pre-merge-commit hooks/pre-receive hooks/prepare-commit-msg hooks/commit-msg
      hooks/post-commit hooks/post-checkout hooks/post-merge hooks/post-rewrite
      hooks/post-update hooks/update`,
  },
  {
    kind: 'fence',
    reason: 'editors run programs that it names',
    names: `
      .vscode/ .idea/ .vs/ .zed/ .fleet/ .devcontainer/ .devcontainer.json devcontainer.json
      *.code-workspace *.sublime-project .vim/ .vimrc _vimrc .gvimrc .exrc .nvimrc .nvim.lua
      .emacs .emacs.d/ .dir-locals.el .config/nvim/ .lvimrc .local.vimrc .ycm_extra_conf.py
      .gdbinit .lldbinit .gitpod.yml .gitpod.dockerfile devfile.y*ml .devfile.y*ml .replit
      .codesandbox/ .stackblitzrc .idx/`,
  },
  {
    kind: 'fence',
    reason: 'it steers agents',
    names: `
      .claude/ .claude.json claude.md claude.local.md agents.md agents.override.md gemini.md
      qwen.md warp.md skill.md .mcp-by-hand/ .mcp.json mcp.json .mcp/ mcp_config.json
      mcp_settings.json claude_desktop_config.json .agents/ .agent/ .codex/ .gemini/ .qwen/
      .cursor/ .cursorrules .cursorignore .windsurf/ .windsurfrules .clinerules .clinerules/
      .roo/ .roorules* .roomodes .kiro/ .amazonq/ .aider* .continue/ .continuerc.json .junie/
      .opencode/ opencode.json* .goosehints .goose/ .trae/ .augment/ .augment-guidelines
      .factory/ .rules .github/copilot-instructions.md .github/instructions/ .github/prompts/
      .github/chatmodes/ .github/agents/`,
  },
  {
    kind: 'fence',
    reason: 'package managers obey it',
    names: `
      .npmrc .yarnrc .yarnrc.yml .yarn/ .pnpmfile.* .pnp.* bunfig.toml pip.conf pip.ini
      .pypirc .condarc .gemrc .bundle/ .cargo/ .mvn/ nuget.config`,
  },
  {
    kind: 'fence',
    reason: 'shells and other programs run it when they start',
    names: `
      .bashrc .bash_* .zshrc .zshenv .zlogin .zlogout .zprofile .profile .login .logout .kshrc
      .cshrc .tcshrc .tshrc .envrc .inputrc config.fish .config/fish/ .config/autostart/
      .config/systemd/ library/launchagents/ .xinitrc .xprofile .xsession .xsessionrc
      .pam_environment *profile.ps1 autorun.inf .tmux.conf .screenrc .wgetrc .curlrc .psqlrc
      .sqliterc .irbrc .pryrc .rprofile .renviron sitecustomize.py usercustomize.py *.pth
      .pdbrc .ghci .ocamlinit .iex.exs .local/bin/ *.desktop
      .htaccess .user.ini`,
  },
  {
    kind: 'fence',
    reason: 'build machines run it',
    names: `
      .github/workflows/ .github/actions/ action.y*ml .gitlab-ci.y*ml *.gitlab-ci.y*ml
      .gitlab/ .gitea/ .forgejo/ .circleci/ jenkinsfile jenkinsfile.* azure-pipelines*.y*ml
      .azure-pipelines/ .buildkite/ bitbucket-pipelines.yml .travis.yml .appveyor.yml
      appveyor.yml .drone.* .woodpecker/ .woodpecker.y*ml .cirrus.* .teamcity/ .semaphore/
      .ci/ codemagic.yaml cloudbuild.y*ml buildspec.y*ml netlify.toml vercel.json procfile
      procfile.* renovate.json* .renovaterc* dangerfile dangerfile.*`,
  },
  {
    kind: 'build',
    reason: 'a package manager runs what it names',
    names: `
      package.json package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml
      pnpm-workspace.yaml bun.lock deno.json deno.jsonc deno.lock composer.json composer.lock
      cargo.toml cargo.lock build.rs rust-toolchain rust-toolchain.toml pyproject.toml
      setup.py setup.cfg requirements*.txt constraints*.txt pipfile pipfile.lock poetry.lock
      uv.lock uv.toml environment.yml gemfile gemfile.lock *.gemspec podfile *.podspec
      package.swift mix.exs go.mod go.work *.nix flake.lock *.cabal stack.yaml brewfile
      .tool-versions mise.toml mise.*.toml .mise.toml .mise.*.toml .mise/ .sdkmanrc
      devbox.json global.json build.zig.zon project.clj deps.edn rebar.config`,
  },
  {
    kind: 'build',
    reason: 'a build or a test runs it',
    names: `
      makefile gnumakefile *.mk *.mak justfile .justfile *.just taskfile.* rakefile *.rake
      cmakelists.txt *.cmake cmakepresets.json cmakeuserpresets.json meson.build configure
      configure.ac build build.bazel workspace workspace.bazel module.bazel *.bzl .bazelrc
      sconstruct sconscript wscript *.gradle *.gradle.kts gradle.properties gradle/ gradlew
      gradlew.bat mvnw mvnw.cmd pom.xml build.xml *.sbt *.csproj *.fsproj *.vbproj *.vcxproj
      *.props *.targets *.gyp *.gypi gulpfile.* gruntfile.* jakefile.* conftest.py noxfile.py
      tox.ini pytest.ini fastfile fastlane/ earthfile tiltfile vagrantfile build.zig dune
      dune-project guardfile tasks.py fabfile.py dodo.py snakefile .bazeliskrc .bazelversion`,
  },
  {
    kind: 'build',
    reason: 'a tool loads it as a program, or runs what it names',
    names: `
      *.config.js *.config.ts *.config.mjs *.config.cjs *.config.mts *.config.cts *.conf.js *.conf.ts
      .eslintrc* .prettierrc* .babelrc* .swcrc .stylelintrc* .commitlintrc* .mocharc*
      .releaserc* tsconfig.json tsconfig.*.json jsconfig.json nodemon.json turbo.json nx.json
      lerna.json rush.json angular.json .pylintrc pylintrc mypy.ini .mypy.ini .rubocop.yml
      .rspec phpunit.xml* .php-cs-fixer*.php .air.toml ansible.cfg .eleventy.js .storybook/
      knexfile.* .vscode-test.*`,
  },
  {
    kind: 'build',
    reason: 'containers are made of it',
    names: `
      dockerfile dockerfile.* *.dockerfile containerfile containerfile.* docker-compose*.y*ml
      compose.y*ml compose.*.y*ml docker-bake.* skaffold.y*ml`,
  },
  {
    kind: 'build',
    reason: 'programs are loaded from there',
    names: 'node_modules/ .venv/ venv/ site-packages/ __pycache__/',
  },
];

/** Package managers link one copy into many projects, and compilers their results: two names of one
 *  file mean nothing there. */
const LINKED = /\/(node_modules|\.venv|venv|site-packages|target|\.git)\//;
const HARD_LINK = 'it has a second name (a hard link), which may be that of a secret';

type Test = { kind: Delicacy; reason: string; pattern: RegExp; but?: RegExp };
const TESTS = TABLE.map(({ kind, reason, names, but }): Test => {
  return { kind, reason, pattern: patternOf(names), but: but === undefined ? but : patternOf(but) };
});

/** One regular expression for a row: it is asked of every file that a search comes across. */
function patternOf(names: string) {
  const one = (name: string) => {
    const plain = name.replace(/[.+^$()|[\]{}\\]/g, '\\$&').replaceAll('*', '[^/]*');
    return plain.endsWith('/') ? `${plain.slice(0, -1)}(?:/.*)?` : plain;
  };
  return new RegExp(`/(?:${names.trim().split(/\s+/).map(one).join('|')})$`, 's');
}

/** Why to be careful with files of this name, if there is a reason. */
export function reasonFor(kind: Delicacy, path: string): string | undefined {
  const plain = path.split(sep).map(plainName).join('/');
  const isMeant = (test: Test) => test.kind === kind && test.pattern.test(plain);
  if (kind === 'secret' && /^\/proc\/.*\/(environ|mem)$/.test(plain))
    return 'it shows the memory of a program';
  return TESTS.find((test) => isMeant(test) && !test.but?.test(plain))?.reason;
}

/** The same bytes can have two names, and nothing tells the other one. It is rare in a project, so
 *  it is asked about. (To write is harmless: a new file takes the place of this name only.) */
export function reasonForLinks(path: string, links: number): string | undefined {
  if (links <= 1) return undefined;
  const plain = path.split(sep).map(plainName).join('/');
  return LINKED.test(plain) ? undefined : HARD_LINK;
}

/** Many disks take .Git, ".git " and .g<zero width>it for .git, and one of them "x:stream" for a
 *  part of x. */
function plainName(name: string) {
  if (/^[\w.-]*[\w-]$/.test(name)) return name.toLowerCase(); // most are, and a search asks of all
  const visible = name
    .normalize('NFKC')
    .replace(/\p{Cf}/gu, '')
    .toLowerCase();
  const stream = visible.indexOf(':', 1);
  let end = stream === -1 ? visible.length : stream;
  // By hand: [. ]+$ tries again at every dot, and takes the square of their number.
  while (visible[end - 1] === '.' || visible[end - 1] === ' ') end--;
  return visible.slice(0, end);
}
