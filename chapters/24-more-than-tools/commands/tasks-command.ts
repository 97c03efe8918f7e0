// tasks-command.ts: /tasks, what runs in the background.

import type { Command } from '../../19-the-terminal/host.ts';
import type { Background } from '../background.ts';

export function tasksCommand(background: Background): Command {
  return {
    help: '/tasks [cancel NUMBER]    calls that run on in the background; end one',
    run: async ([action, number], { screen }) => {
      if (action === 'cancel') return screen.print(await background.cancel(Number(number)));
      if (action !== undefined) throw new Error('write /tasks, or /tasks cancel NUMBER');
      const { lines } = background;
      screen.printLines(lines.length > 0 ? lines : ['no call runs in the background']);
    },
    complete: (words) => (words.length > 1 ? [...background.jobs.keys()].map(String) : ['cancel']),
  };
}
