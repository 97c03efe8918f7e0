// Judges exercise 16: is every path judged by where it leads? "On the wire" are the paths, and what was made of them.

import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Judge } from '../book.ts';

export const judge: Judge = async ({ load, see, expect }) => {
  const { Roots } = await load('chapters/16-hands/paths.ts');
  const { hands } = await load('chapters/16-hands/tools.ts');
  const place = realpathSync(mkdtempSync(join(tmpdir(), 'paths-')));
  process.on('exit', () => rmSync(place, { recursive: true }));
  const at = (name: string) => join(place, name);
  for (const folder of ['project/deep/er', 'outside']) mkdirSync(at(folder), { recursive: true });
  for (const file of ['project/a.txt', 'outside/old.txt']) writeFileSync(at(file), 'old');
  const links = {
    docs: '../outside', // a folder
    notes: '../outside/later.txt', // nothing is there yet
    one: 'two',
    two: '../outside/later.txt',
    gone: '../outside/none', // a folder that is not there
    alias: 'later.txt', // inside, and not there
    short: 'deep/er',
    'deep/er/up': '../../../outside/later.txt',
    round: 'trip',
    trip: 'round',
    spin: 'nowhere/../spin', // a circle that the system does not see: nowhere is not there
    absolute: at('outside/later.txt'),
    ...Object.fromEntries(
      Array.from({ length: 12 }, (_, n) => [
        `hop${n}`,
        n === 11 ? '../outside/later.txt' : `hop${n + 1}`,
      ]),
    ),
  };
  // Rows that the system does not follow to their end, because nowhere is not there.
  for (const length of [40, 41])
    for (let n = 1; n <= length; n++) {
      const target = n === length ? '../outside/later.txt' : `nowhere/../row${length}-${n + 1}`;
      Object.assign(links, { [`row${length}-${n}`]: target });
    }
  for (const [name, target] of Object.entries(links)) symlinkSync(target, at(`project/${name}`));
  const roots = new Roots(at('project'));
  const locate = (path: string) => {
    see('out', path);
    try {
      const { real, inside } = roots.locate(path);
      const came = `${real.replace(place, '~')}, ${inside ? 'inside' : 'outside'}`;
      see('in', came);
      return came;
    } catch (error) {
      see('in', `${error}`);
      return error;
    }
  };
  const leads = (what: string, path: string, wanted: string) =>
    expect(
      `${what}: ${path}`,
      `it leads to ${wanted} (the folder is ~/project)`,
      locate(path),
      (came) => came === wanted,
    );

  await leads('a file', 'a.txt', '~/project/a.txt, inside');
  await leads('a path with ..', '../outside/old.txt', '~/outside/old.txt, outside');
  await leads(
    'a file that is not there yet, in folders that are not there yet',
    'new/folder/b.txt',
    '~/project/new/folder/b.txt, inside',
  );
  await leads(
    'a file behind a link (docs → ../outside)',
    'docs/old.txt',
    '~/outside/old.txt, outside',
  );
  await leads('a new file behind that link', 'docs/new.txt', '~/outside/new.txt, outside');
  await leads(
    'a new file in a new folder behind that link',
    'docs/new/b.txt',
    '~/outside/new/b.txt, outside',
  );
  await leads(
    'a link to a file that is not there yet (notes → ../outside/later.txt)',
    'notes',
    '~/outside/later.txt, outside',
  );
  await leads(
    'a link to such a link (one → two → ../outside/later.txt)',
    'one',
    '~/outside/later.txt, outside',
  );
  await leads(
    'a path through a link that leads nowhere (gone → ../outside/none)',
    'gone/b.txt',
    '~/outside/none/b.txt, outside',
  );
  await leads(
    'a link that stays inside (alias → later.txt)',
    'alias',
    '~/project/later.txt, inside',
  );
  await leads(
    'a relative link, seen through another (short → deep/er, and in there up → ../../../outside/later.txt)',
    'short/up',
    '~/outside/later.txt, outside',
  );
  await leads(
    'a link with an absolute target (absolute → ~/outside/later.txt)',
    'absolute',
    '~/outside/later.txt, outside',
  );
  await leads(
    'twelve links in a row (hop0 → hop1 → … → ../outside/later.txt)',
    'hop0',
    '~/outside/later.txt, outside',
  );
  const deep = Array.from({ length: 60 }, () => 'f').join('/');
  await leads(
    'sixty folders that are not there: only links are counted',
    `new/${deep}`,
    `~/project/new/${deep}, inside`,
  );
  await leads(
    'forty links in a row are not too many (row40-1 → nowhere/../row40-2 → … → ../outside/later.txt)',
    'row40-1',
    '~/outside/later.txt, outside',
  );
  await leads(
    'a path through a file, as if it were a folder',
    'a.txt/b.txt',
    '~/project/a.txt/b.txt, inside',
  );
  await expect(
    'a failure that does not mean "nothing is there" (here a name of 300 letters) is not guessed at',
    'an error',
    locate('x'.repeat(300)),
    (came) => came instanceof Error,
  );
  const isCircle = (came: unknown) =>
    came instanceof Error && /link|circle|loop/i.test(came.message);
  for (const path of ['round', 'round/b.txt'])
    await expect(
      `links in a circle (round → trip → round): ${path}`,
      'an error that says so (link, circle or loop), and no endless search',
      locate(path),
      (came) => isCircle(came),
    );

  await expect(
    'a circle that the system does not see (spin → nowhere/../spin): the links are counted',
    'an error that says so (link, circle or loop), and no endless search',
    locate('spin'),
    (came) => isCircle(came),
  );

  await expect(
    'more than forty links in a row are too many: 41 (row41-1 → nowhere/../row41-2 → …)',
    'an error that says so (link, circle or loop)',
    locate('row41-1'),
    isCircle,
  );

  const tools = hands({ roots, resultsFolder: at('results') });
  const write = tools.find(({ definition }: any) => definition.name === 'write');
  const { isError } = await write.run(
    { path: 'notes', content: 'hello' },
    { signal: new AbortController().signal, onProgress() {} },
  );
  await expect(
    'write does not go through the link',
    'an error, and no file ~/outside/later.txt',
    { isError, isThere: existsSync(at('outside/later.txt')) },
    (came) => came.isError && !came.isThere,
  );
};
