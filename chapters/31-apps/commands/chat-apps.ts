// chat-apps.ts: apps in a chat: what they need of the program, and /apps.

import type { Command, Host, PrepareArguments } from '../../19-the-terminal/host.ts';
import { plain } from '../../17-the-gate/safe-text.ts';
import type { ChatPage } from '../../30-seeing/commands/page-command.ts';
import { Apps } from '../all-apps.ts';

/** Without a program, and so without a person who looks on, no server hears of apps. */
export function chatApps(host: Host, page: ChatPage, prepareArguments: PrepareArguments): Apps {
  const { program } = host;
  if (!program) return new Apps();
  const apps = new Apps({
    ...host,
    prepareArguments,
    gate: (...call) => program().gate.check(...call),
    trace: (record) => program().trace.write(record),
    prompt: (text, isDraft) => {
      const { input } = program().screen;
      if (isDraft) input.giveBack(text);
      else input.submit(text);
    },
    answerPage: {
      begin: () => page.begin(program()),
      address: async () => (await page.begin(program())).addressToAct,
      questions: () => page.questions?.list ?? [],
    },
  });
  page.onQuestions = () => apps.questionsChanged();
  return apps;
}

export function appsCommand(apps: Apps): Command {
  const find = (number?: string) => {
    const found = apps.list.find((app) => `${app.number}` === number);
    if (!found) throw new Error(`there is no app ${number ?? ''}; /apps lists them`);
    return found;
  };
  return {
    help: `/apps [N | close N]       the apps that servers have opened; show or close one`,
    run: async ([word, number], { screen, person }, signal) => {
      if (word === 'close') return find(number).close('closed by the user');
      if (word === undefined) {
        const rows = apps.list.map((app) => `${app.number}: ${plain(app.name)}`);
        return screen.printLines(rows.length > 0 ? rows : ['no app is open']);
      }
      const url = await apps.addressOf(find(word));
      screen.print(url.href);
      await person.open({ lines: [], url, isAgreed: true, signal }); // typed by the user
    },
    complete: (words) => [
      ...apps.list.map(({ number }) => `${number}`),
      ...(words.length > 1 ? [] : ['close']),
    ],
  };
}
