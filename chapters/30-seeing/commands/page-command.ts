// page-command.ts: /page and --page: the conversation in a browser, while it goes on.

import type { Command } from '../../19-the-terminal/host.ts';
import type { Program } from '../../19-the-terminal/program.ts';
import type { OpenQuestions } from '../open-questions.ts';
import type { LivePage } from '../view.ts';

/** One page for a program: a second /page tells its address again, with another code. Without a
 *  person to ask, it can only show. */
export class ChatPage {
  onQuestions: () => void = () => {};
  questions?: OpenQuestions; // once it is there
  private page?: Promise<LivePage>;

  begin(program: Program): Promise<LivePage> {
    this.page ??= this.start(program);
    return this.page;
  }

  private async start(program: Program): Promise<LivePage> {
    const { LivePage } = await import('../view.ts');
    const page = new LivePage((text) => program.screen.warn(text));
    await page.start();
    if (program.person.isThere) {
      const { PageActs } = await import('../page-acts.ts');
      const acts = new PageActs(program, (record) => page.write(program.masker.json(record)));
      this.questions = acts.questions;
      acts.questions.onChange = () => {
        page.nudge();
        this.onQuestions();
      };
      page.act = (wanted) => acts.take(wanted);
    }
    program.trace.follow((line) => page.write(line));
    program.traceStates();
    process.once('exit', () => page.close());
    return page;
  }

  readonly command: Command = {
    help: '/page                     draw the conversation in the browser, live, and act there',
    run: async (_, program, signal) => {
      const { screen, person } = program;
      const page = await this.begin(program);
      const url = new URL(person.isThere ? page.addressToAct : page.url);
      screen.print(`${url.href} shows every message until this program ends`);
      const how =
        'what is behind # works once: the page that opens it first may call tools, and asks you';
      if (person.isThere) screen.say(how, 'dim');
      await person.open({ lines: [], url, isAgreed: true, signal }); // typed by the user
    },
  };
}
