// page-command.ts: /page and --page: the conversation in a browser, while it goes on.

import type { Command } from '../../19-the-terminal/host.ts';
import type { Program } from '../../19-the-terminal/program.ts';
import type { LivePage } from '../view.ts';

/** One page for a program: a second /page tells its address again. */
export function pageCommand(): Command {
  let page: LivePage | undefined;
  return {
    help: '/page                     draw the conversation in the browser, live',
    run: async (_, program, signal) => {
      page ??= await begin(program);
      program.screen.print(`${page.url} shows every message until this program ends`);
      const url = new URL(page.url);
      await program.person.open({ lines: [], url, isAgreed: true, signal }); // typed by the user
    },
  };
}

async function begin(program: Program): Promise<LivePage> {
  const { LivePage } = await import('../view.ts');
  const page = new LivePage();
  await page.start();
  program.trace.follow((line) => page.write(line));
  program.traceStates();
  process.once('exit', () => page.close());
  return page;
}
