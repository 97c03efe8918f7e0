// composition.ts: what the program is made of. One row per line, in order; each chapter adds its
// own, and quotes it on its page. A program of your own is another file like this one: own.ts.

import { homedir } from 'node:os';
import { hands } from './16-hands/tools.ts';
import { planRows } from './17-the-gate/plan.ts';
import { models } from './18-minds/models.ts';
import type { Compose } from './19-the-terminal/host.ts';
import { ownCommands } from './19-the-terminal/own-commands.ts';
import { commands } from './19-the-terminal/slash.ts';
import { httpTransports } from './20-streamable-http/http.ts';
import { Logins } from './21-authorization/login.ts';
import { declareGrant } from './21-authorization/machines.ts';
import { inBothEras } from './22-no-handshake/era.ts';
import { KeptVerdicts } from './22-no-handshake/verdicts.ts';
import { addDir } from './23-the-server-asks/more/add-dir.ts';
import { elicitation } from './23-the-server-asks/elicitation.ts';
import { Folders, roots } from './23-the-server-asks/roots.ts';
import { sampling } from './23-the-server-asks/sampling.ts';
import { problemsFound } from './23-the-server-asks/schema.ts';
import { Background } from './24-more-than-tools/background.ts';
import { contextCommands } from './24-more-than-tools/commands/context-commands.ts';
import { keepLogs, Logs } from './24-more-than-tools/logs.ts';
import { resourceMentions } from './24-more-than-tools/mentions.ts';
import { promptCommands } from './24-more-than-tools/prompts.ts';
import { resourceRows } from './24-more-than-tools/rows.ts';
import { skillsCommand } from './24-more-than-tools/skills/skills-command.ts';
import { Skills } from './24-more-than-tools/skills.ts';
import { subscribeInBothEras } from './24-more-than-tools/subscribe.ts';
import { tasksCommand } from './24-more-than-tools/commands/tasks-command.ts';
import { contextVerbs } from './24-more-than-tools/commands/context-verbs.ts';
import { Watches, watchResources } from './24-more-than-tools/watched-resources.ts';
import { calculator } from './25-other-pipes/calculator.ts';
import { inProcess, withBuiltIns } from './25-other-pipes/in-process.ts';
import { WebSocketTransport } from './25-other-pipes/websocket.ts';
import { Attempts, stayAlive } from './26-staying-alive/alive.ts';
import { bundledStdio } from './27-scopes/packages/bundle.ts';
import { addFrom, importing } from './27-scopes/packages/import-commands.ts';
import { bearerTransport, withHelpers } from './27-scopes/headers-helper.ts';
import { heartbeat } from './27-scopes/heartbeat.ts';
import { editorNotices, ideCommand, ideTransports } from './27-scopes/ide.ts';
import { Scopes } from './27-scopes/scopes.ts';
import { goodbyeIn, inTurn } from './27-scopes/turns.ts';
import { delegate } from './28-a-thousand-tools/delegate.ts';
import { entryOpinion, entryRules } from './28-a-thousand-tools/entry-rules.ts';
import { inOrder } from './28-a-thousand-tools/order.ts';
import { checkOutput } from './28-a-thousand-tools/results/output.ts';
import { KnownTools } from './28-a-thousand-tools/known-tools.ts';
import { sleepUntilNeeded } from './28-a-thousand-tools/sleep.ts';
import { preparedArguments } from './28-a-thousand-tools/tool-arguments.ts';
import { ToolShelf } from './28-a-thousand-tools/tool-shelf.ts';
import { throughUp } from './29-a-server/attach.ts';
import { CODE_SERVER, codeRows } from './29-a-server/code/code-rows.ts';
import { serveVerbs } from './29-a-server/more/serve-verbs.ts';
import { traceContextOf } from './29-a-server/more/trace-context.ts';
import { contextCommand } from './30-seeing/commands/context-command.ts';
import { ChatPage } from './30-seeing/commands/page-command.ts';
import { seeingVerbs } from './30-seeing/commands/seeing-verbs.ts';
import { appVerb } from './31-apps/commands/app-verb.ts';
import { appsCommand, chatApps } from './31-apps/commands/chat-apps.ts';

export const compose: Compose = (host) => {
  const { person, warn, emit, model } = host;
  const folders = new Folders(() => host.roots.folders);
  const logins = new Logins({ warn: host.warn });
  const logs = new Logs(host);
  const watches = new Watches(host);
  const background = new Background(host);
  const isNeeded = (server: string) => background.waitsFor(server);
  const skills = new Skills({ ...host, home: homedir() });
  const shelf = new ToolShelf();
  const attempts = new Attempts();
  const sources = new Scopes();
  const page = new ChatPage();
  const apps = chatApps(host, page, preparedArguments);
  sources.reserve(CODE_SERVER);
  logins.idp = () => sources.userSetting('xaaIdp'); // one login there for all servers
  return {
    transports: {
      stdio: bundledStdio, // a server in a bundle is unpacked when it starts
      ...httpTransports,
      ...logins.transports, // the same, with a login around each request
      ws: (...given) => new WebSocketTransport(...given),
      ...withHelpers(logins.transports), // all of these, with headers that a command prints
      ...ideTransports(sources.owners),
      'claudeai-proxy': bearerTransport(() => sources.userSetting('claudeaiProxy', 'tokenCommand')),
      'in-process': inProcess({ calculator }),
    },
    extensions: [
      sleepUntilNeeded({ isNeeded }), // outermost: for all others the server is awake
      apps.extension, // behind it a call may be sent twice, and that is one app
      stayAlive({ attempts }), // it sees what the caller requested, and may repeat it
      heartbeat(),
      editorNotices({ edits: host.edits, logs }),
      entryRules({ person }),
      elicitation({ person, warn, emit, problemsFound }),
      sampling({ person, model }),
      roots(folders),
      skills.extension,
      declareGrant,
      ...traceContextOf(process.env),
      keepLogs(logs),
      subscribeInBothEras(),
      watchResources(watches),
      checkOutput, // outside of tasks: it looks at what comes in the end
      ...inBothEras({
        verdicts: new KeptVerdicts(),
        inside: [
          background.extension, // a task becomes the result of its call
          inOrder, // neither a person who thinks nor a task holds up the next call
        ],
      }), // last: it completes every request
    ],
    tools: [
      ...hands(host),
      ...planRows(host),
      ...resourceRows(host, (...read) => skills.mayRead(...read)),
      skills.row(),
      shelf.findTools,
      delegate(),
      ...codeRows(host),
    ],
    shelf: shelf.arrange,
    known: new KnownTools({ isNeeded }),
    commands: {
      ...commands,
      'add-dir': addDir(host.roots, folders),
      ...contextCommands(logs, watches),
      tasks: tasksCommand(background),
      skills: skillsCommand(skills),
      ide: ideCommand(sources),
      page: page.command,
      context: contextCommand,
      apps: appsCommand(apps),
    },
    moreCommands: [ownCommands, promptCommands],
    mentions: [resourceMentions],
    news: [
      watches.news,
      background.news,
      apps.news, // what the user did there
    ],
    prepare: (signal) => skills.ready(signal),
    prepareArguments: preparedArguments,
    verbs: {
      ...contextVerbs,
      ...serveVerbs,
      ...seeingVerbs,
      app: appVerb,
    },
    through: throughUp, // servers that live already
    models: {
      ...models,
    },
    logins,
    opinion: entryOpinion,
    notes: (server) => folders.notes(server),
    demo: (load) => withBuiltIns({ calculator }, load),
    sources,
    mcp: { import: importing(), 'add-from': addFrom },
    inTurn: inTurn(),
    goodbyeMs: goodbyeIn(process.env),
    attempts: (server) => attempts.of(server),
  };
};
