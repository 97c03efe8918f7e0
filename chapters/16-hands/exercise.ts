// Judges exercise 16: is every path judged by where it leads? "On the wire" are the paths, and what was made of them.
// Names are different in every run, so that only what follows links can know where they lead.

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
import { dirname, join } from 'node:path';
import type { Judge } from '../book.ts';

export const judge: Judge = async ({ load, see, expect }) => {
  const { Roots } = await load('chapters/16-hands/paths.ts');
  const { hands } = await load('chapters/16-hands/tools.ts');
  const place = realpathSync(mkdtempSync(join(tmpdir(), 'paths-')));
  process.on('exit', () => rmSync(place, { recursive: true }));
  const at = (name: string) => join(place, name);
  const tag = Math.random().toString(36).slice(2, 6);
  const named = (name: string) => `${name}-${tag}`;
  const out = named('outside');
  for (const folder of [`project/${named('deep')}/er`, out, 'answer'])
    mkdirSync(at(folder), { recursive: true });
  for (const file of ['project/a.txt', `${out}/old.txt`]) writeFileSync(at(file), 'old');
  const link = (name: string, target: string) => {
    mkdirSync(dirname(at(`project/${name}`)), { recursive: true });
    symlinkSync(target, at(`project/${name}`));
    return name;
  };
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
      what,
      `${path} leads to ${wanted} (the folder is ~/project)`,
      locate(path),
      (came) => came === wanted,
    );
  const isCircle = (came: unknown) =>
    came instanceof Error && /link|circle|loop/i.test(came.message);
  const later = `~/${out}/later.txt, outside`;

  // ── What exists ──
  await leads('a file', 'a.txt', '~/project/a.txt, inside');
  await leads('a path with ..', `../${out}/old.txt`, `~/${out}/old.txt, outside`);
  const docs = link(named('docs'), `../${out}`);
  await leads('a file behind a link to a folder', `${docs}/old.txt`, `~/${out}/old.txt, outside`);
  // Whatever a system has that no walk of ours knows: other spellings of a name, other file systems.
  const system = realpathSync.native;
  const withSystem = <T>(answer: (path: string) => string | undefined, act: () => T): T => {
    realpathSync.native = ((path: string) => answer(path) ?? system(path)) as typeof system;
    try {
      return act();
    } finally {
      realpathSync.native = system;
    }
  };
  const told = withSystem(
    (path) => (path === at('project/a.txt') ? at('answer/a.txt') : undefined),
    () => locate('a.txt'),
  );
  await expect(
    'what the system says of a file that exists (realpathSync.native), is the answer',
    'a.txt leads to ~/answer/a.txt, outside: this once the system was made to say so',
    told,
    (came) => came === '~/answer/a.txt, outside',
  );

  // ── What is missing ──
  await leads(
    'a file that is not there yet, in folders that are not there yet',
    `${named('new')}/folder/b.txt`,
    `~/project/${named('new')}/folder/b.txt, inside`,
  );
  await leads(
    'a new file behind a link to a folder',
    `${docs}/new.txt`,
    `~/${out}/new.txt, outside`,
  );
  await leads(
    'a new file in a new folder behind that link',
    `${docs}/new/b.txt`,
    `~/${out}/new/b.txt, outside`,
  );
  await leads(
    'a path through a file, as if it were a folder (ENOTDIR)',
    'a.txt/b/c.txt',
    '~/project/a.txt/b/c.txt, inside',
  );
  for (const code of ['EACCES', 'EIO', 'ENAMETOOLONG']) {
    const path = named('closed');
    const fail = (asked: string) => {
      if (asked !== at(`project/${path}`)) return undefined;
      throw Object.assign(new Error(`${code}: as the judge wants it`), { code });
    };
    await expect(
      `a failure that does not mean "something is missing" (${code}) is not guessed at`,
      `an error: this once the system was made to fail with ${code}`,
      withSystem(fail, () => locate(path)),
      (came) => came instanceof Error,
    );
  }
  await expect(
    'nor is one of the system itself, for a name of 300 letters',
    'an error',
    locate('x'.repeat(300)),
    (came) => came instanceof Error,
  );

  // ── Links to what is missing ──
  const notes = link(named('notes'), `../${out}/later.txt`);
  await leads('a link to a file that is not there yet', notes, later);
  await leads('a link to such a link', link(named('one'), notes), later);
  const gone = link(named('gone'), `../${out}/none`);
  await leads(
    'a path through a link that leads to a missing folder',
    `${gone}/b.txt`,
    `~/${out}/none/b.txt, outside`,
  );
  await leads(
    'a path through two such links',
    `${link(named('farther'), `${gone}/deep`)}/b/c.txt`,
    `~/${out}/none/deep/b/c.txt, outside`,
  );
  await leads(
    'a link to a missing file behind a link to a folder',
    link(named('behind'), `${docs}/later.txt`),
    later,
  );
  await leads(
    'a link to a path through a file',
    link(named('through'), `../${out}/old.txt/b.txt`),
    `~/${out}/old.txt/b.txt, outside`,
  );
  await leads(
    'a link that stays inside',
    link(named('alias'), 'later.txt'),
    '~/project/later.txt, inside',
  );
  await leads('a link with an absolute target', link(named('far'), at(`${out}/later.txt`)), later);
  await leads(
    'a path through a link with an absolute target',
    `${link(named('farm'), at(`${out}/none`))}/b.txt`,
    `~/${out}/none/b.txt, outside`,
  );
  const short = link(named('short'), `${named('deep')}/er`);
  link(`${named('deep')}/er/up`, `../../../${out}/later.txt`);
  await leads('a relative link, in a folder that is reached by another', `${short}/up`, later);
  link(`${named('deep')}/er/here`, 'later.txt');
  await leads(
    'a relative link there that stays beside itself',
    `${short}/here`,
    `~/project/${named('deep')}/er/later.txt, inside`,
  );

  // ── How many ──
  /** A row of links. With `around` the system does not follow it, because nowhere is not there. */
  const row = (name: string, length: number, around = '') => {
    for (let n = 1; n <= length; n++) {
      const next = n === length ? `../${out}/later.txt` : `${around}${named(name)}${n + 1}`;
      link(`${named(name)}${n}`, next);
    }
    return `${named(name)}1`;
  };
  const AROUND = 'nowhere/../';
  const some = 5 + Math.floor(Math.random() * 20);
  await leads(`${some} links in a row`.replace(/^\d+/, 'some'), row('hop', some), later);
  const deep = Array.from({ length: 60 }, () => 'f').join('/');
  await leads(
    'sixty folders that are not there: only links are counted',
    `${named('new')}/${deep}`,
    `~/project/${named('new')}/${deep}, inside`,
  );
  const forty = row('forty', 40, AROUND);
  await leads('forty links that the system does not follow are not too many', forty, later);
  await leads(
    'nor are they with sixty missing folders behind them',
    `${forty}/${deep}`,
    `~/${out}/later.txt/${deep}, outside`,
  );
  for (const path of [row('more', 41, AROUND), `${row('most', 41, AROUND)}/b.txt`])
    await expect(
      'more than forty links that the system does not follow are too many: 41',
      'an error',
      locate(path),
      (came) => came instanceof Error,
    );

  // ── Circles ──
  const round = link(named('round'), named('trip'));
  link(named('trip'), round);
  for (const path of [round, `${round}/b.txt`])
    await expect(
      'links in a circle (round → trip → round)',
      'an error that says so (link, circle or loop), and no endless search',
      locate(path),
      isCircle,
    );
  const spin = link(named('spin'), `${AROUND}${named('spin')}`);
  await expect(
    'a circle that the system does not see (spin → nowhere/../spin): the links are counted',
    'an error that says so (link, circle or loop), and no endless search',
    locate(spin),
    isCircle,
  );
  const left = link(named('left'), `${AROUND}${named('right')}/x`);
  link(named('right'), `${AROUND}${named('left')}/y`);
  await expect(
    'a circle through folders (left → nowhere/../right/x, right → nowhere/../left/y)',
    'an error that says so (link, circle or loop), and no endless search',
    locate(left),
    isCircle,
  );

  const tools = hands({ roots, resultsFolder: at('results') });
  const write = tools.find(({ definition }: any) => definition.name === 'write');
  const { isError } = await write.run(
    { path: notes, content: 'hello' },
    { signal: new AbortController().signal, onProgress() {} },
  );
  await expect(
    'write does not go through the link',
    `an error, and no file ~/${out}/later.txt`,
    { isError, isThere: existsSync(at(`${out}/later.txt`)) },
    (came) => came.isError && !came.isThere,
  );
};
