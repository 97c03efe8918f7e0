// add-dir.ts: one more folder to work in, said in the chat. Servers that know the roots hear of it.

import type { Command } from '../../19-the-terminal/host.ts';
import type { Roots } from '../../16-hands/paths.ts';
import type { Folders } from '../roots.ts';

export function addDir(roots: Roots, folders: Folders): Command {
  return {
    help: '/add-dir FOLDER           work in this folder too, and tell servers so',
    run: (words, { screen }) => {
      const folder = words.join(' ');
      if (folder !== '') {
        roots.add(folder);
        folders.changed();
      }
      for (const each of roots.folders) screen.print(each);
    },
  };
}
