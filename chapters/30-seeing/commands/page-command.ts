// page-command.ts: /page and --page: the conversation in a browser, while it goes on.

import type { Command } from '../../19-the-terminal/host.ts';
import type { Program } from '../../19-the-terminal/program.ts';
import type { LivePage } from '../view.ts';

/** One page for a program: a second /page tells its address again, with another code. Without a
 *  person to ask, it can only show. */
export function pageCommand(): Command {
  let page: LivePage | undefined;
  return {
    help: '/page                     draw the conversation in the browser, live, and act there',
    run: async (_, program, signal) => {
      const { screen, person } = program;
      page ??= await begin(program);
      const url = new URL(person.isThere ? page.addressToAct : page.url);
      screen.print(`${url.href} shows every message until this program ends`);
      const how =
        'what is behind # works once: the page that opens it first may call tools, and asks you';
      if (person.isThere) screen.say(how, 'dim');
      await person.open({ lines: [], url, isAgreed: true, signal }); // typed by the user
    },
  };
}

async function begin(program: Program): Promise<LivePage> {
  const { LivePage } = await import('../view.ts');
  const page = new LivePage((text) => program.screen.warn(text));
  await page.start();
  if (program.person.isThere) {
    const { PageActs } = await import('../page-acts.ts');
    const acts = new PageActs(program, (record) => page.write(program.masker.json(record)));
    acts.questions.onChange = () => page.nudge();
    page.act = (wanted) => acts.take(wanted);
  }
  program.trace.follow((line) => page.write(line));
  program.traceStates();
  process.once('exit', () => page.close());
  return page;
}
