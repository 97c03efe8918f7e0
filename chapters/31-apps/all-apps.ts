// all-apps.ts: the apps of all servers: which are open, where they are to be seen, and what the model
// hears of them. Only where there is a person who could look at one.

import {
  asObject,
  reads,
  textOf,
  type Connection,
  type EntryWord,
  type Extension,
  type Parts,
} from '../../mcp.ts';
import { plain, quoted } from '../17-the-gate/safe-text.ts';
import type { Host, News } from '../19-the-terminal/host.ts';
import { fenced } from '../19-the-terminal/shortcuts.ts';
import { Counts } from '../23-the-server-asks/asking.ts';
import type { OpenQuestions } from '../30-seeing/open-questions.ts';
import { App, appOf, MIME, type AppCall, type AppSurroundings } from './app.ts';
import { AppServer } from './app-server.ts';

const UI = 'io.modelcontextprotocol/ui';
const MAX_OPEN = 10;
const APPS: EntryWord = {
  form: 'false or "open"',
  fits: (value) => value === false || value === 'open',
};

/** The program in which apps are. */
export type AppProgram = Pick<
  AppSurroundings,
  'gate' | 'prompt' | 'trace' | 'prepareArguments' | 'progressMs'
> &
  Pick<Host, 'person' | 'warn' | 'trust'> & {
    answerPage?: AnswerPage; // where a question can be answered besides the terminal
  };
export type AnswerPage = {
  begin: () => Promise<unknown>;
  address: () => Promise<string>; // with a code for one page
  questions: () => OpenQuestions['list'];
};

export class Apps {
  private program?: AppProgram; // none: nobody could look at an app
  private around?: AppSurroundings;
  private open = new Set<App>(); // the oldest first
  private told = new Set<App>(); // whose question is told in the chat
  private count = 0;
  private server?: Promise<AppServer>;

  constructor(program?: AppProgram) {
    if (!program) return;
    const { trust } = program;
    this.program = program;
    this.around = {
      ...program,
      isOff: (server, tool) => trust.isDisabled(server, tool),
      changed: (app) => this.changed(app),
      counts: new Counts(),
    };
  }

  get list(): App[] {
    return [...this.open];
  }

  // ── Around a connection ──

  get extension(): Extension {
    const parts = (connection: Connection) => this.partsFor(connection);
    return reads({ apps: APPS }, function apps(connection) {
      return parts(connection);
    });
  }

  /** With nobody there, a server had better answer with all that it has to say as text. */
  private partsFor(connection: Connection): Parts {
    const { apps: wanted } = connection.config;
    const { program } = this;
    if (!program?.person.isThere || wanted === false) return {};
    const own = () => this.list.filter(({ call }) => call.connection === connection);
    return {
      capabilities: { extensions: { [UI]: { mimeTypes: [MIME] } } },
      layer: (call, next) => {
        const { tool, isFromApp } = call.options;
        const isMeant = call.method === 'tools/call' && tool && !isFromApp && appOf(tool);
        if (!isMeant) return next(call);
        const args = asObject(call.params?.arguments);
        const app = this.add({ connection, tool, args }, wanted === 'open');
        const answer = next(call);
        answer.then(
          (result) => app.finish(result),
          (error) => app.cancel(textOf(error)),
        );
        return answer;
      },
      changed: () => own().forEach((app) => app.forgetTools()),
      closed: (why) => {
        for (const app of connection.isAsleep ? [] : own())
          if (connection.isClosed) void app.close(textOf(why));
          else app.carry({ note: textOf(why) });
      },
    };
  }

  private add(call: AppCall, isWanted: boolean): App {
    const app = new App(++this.count, call, this.around!);
    this.open.add(app);
    const [oldest] = this.open;
    if (this.open.size > MAX_OPEN) void oldest!.close('there are too many of them');
    this.tell(app, isWanted).catch((error) => {
      this.program!.warn(`the app ${quoted(app.name)} cannot be shown: ${textOf(error)}`);
    });
    return app;
  }

  /** A line in the chat. A browser is opened only if the user has asked for it. */
  private async tell(app: App, isWanted: boolean): Promise<void> {
    const { person } = this.program!;
    const url = await this.addressOf(app);
    person.say(`  app: ${url.href} (${plain(app.name)}; /apps ${app.number} opens it)`, 'note');
    if (isWanted) await person.open({ lines: [], url, isAgreed: true });
  }

  /** With a code for one page. */
  async addressOf(app: App): Promise<URL> {
    this.server ??= this.startServer();
    return (await this.server).addressOf(app);
  }

  private async startServer(): Promise<AppServer> {
    const { warn, answerPage } = this.program!;
    const server = new AppServer(warn, answerPage?.address);
    await server.start();
    await answerPage?.begin();
    return server;
  }

  // ── Questions ──

  /** Any question that is open while an app is at work may be one of those that it caused. */
  questionsChanged(): void {
    const [first] = this.program?.answerPage?.questions() ?? [];
    const words = first ? (first.lines as string[]).join('\n') : '';
    for (const app of this.open) {
      const isAsking = words !== '' && app.atWork > 0;
      app.carry({ question: isAsking ? words : '' });
      if (isAsking && !this.told.has(app)) this.tellQuestion(app);
      if (isAsking) this.told.add(app);
      else this.told.delete(app);
    }
  }

  /** At a prompt a question waits for the line that is typed there. */
  private tellQuestion({ name }: App): void {
    const how = 'Enter brings its question, and its page has it, too';
    this.program!.person.say(`  app: ${plain(name)} waits for you; ${how}`, 'note');
  }

  private changed(app: App): void {
    if (app.ended !== undefined) {
      this.open.delete(app);
      void this.server?.then((server) => server.forget(app));
    }
    this.questionsChanged();
  }

  // ── For the model ──

  /** What has happened in apps since it was told last. */
  readonly news: News = async () => {
    const fresh = this.list.filter((app) => app.isNews && app.context !== '');
    return fresh.map((app) => {
      app.isNews = false;
      const { connection, tool } = app.call;
      const whose = `The app ${quoted(tool.name)} of the MCP server ${quoted(connection.serverName)}`;
      return `${whose} says, as data:\n${fenced(app.context)}`;
    });
  };
}
