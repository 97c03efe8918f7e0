// Judges exercise 31: what may an app load? Headers are read as a browser reads them: each directive, its
// sources as words, in any order. The hosts are drawn by lot.

import { randomUUID } from 'node:crypto';
import type { Json } from '../../mcp.ts';
import type { Judge } from '../book.ts';

const KINDS = ['connectDomains', 'resourceDomains', 'frameDomains', 'baseUriDomains'] as const;
const LOADING = ['script-src', 'style-src', 'img-src', 'font-src', 'media-src'];
const WHERE = {
  connectDomains: ['connect-src'],
  resourceDomains: LOADING,
  frameDomains: ['frame-src'],
  baseUriDomains: ['base-uri'],
};
const CLOSED = ['default-src', 'object-src', 'form-action', 'manifest-src'];

/** What is found in an answer: words by directive, the list of connections, and the two others. */
type Read = { found: Map<string, string[]>; connections: string[]; allowed: any; refused: any };

const host = () => `h${randomUUID().slice(0, 8)}.example`;

export const judge: Judge = async ({ load, see, expect }) => {
  const { policyFor } = await load('chapters/31-apps/app-policy.ts');

  const read = (csp: unknown): Read => {
    see('in', `declared: ${JSON.stringify(csp)}`);
    const { header, connections, allowed, refused } = policyFor(csp);
    see('out', `header: ${header}`);
    see('out', `connections: ${connections}`);
    see('out', `refused: ${JSON.stringify(refused)}`);
    const found = new Map<string, string[]>();
    for (const directive of `${header}`.split(';')) {
      const [name = '', ...sources] = directive.trim().split(/\s+/);
      if (!found.has(name)) found.set(name, sources); // of two a browser takes the first
    }
    const [, inner = ''] = /^\((.*)\)$/s.exec(`${connections}`) ?? [];
    return { found, connections: inner.split(/\s+/), allowed, refused };
  };
  const words = ({ found }: Read, name: string) => (found.get(name) ?? ['(missing)']).toSorted();
  const having = ({ found }: Read, source: string) =>
    [...found].filter(([, sources]) => sources.includes(source)).map(([name]) => name);
  const attempt = async <T>(work: () => T) => work();
  const check = (what: string, wanted: string, work: () => unknown) =>
    expect(what, wanted, attempt(work), (came) => came === true || `${came}` === wanted);
  const list = (all: unknown[]) => all.toSorted().join(' ');

  // What nothing is declared for.
  for (const [what, csp] of [
    ['nothing', undefined],
    ['an empty object', {}],
    ['a text', 'https://a.example'],
    ['null for a list', { connectDomains: null }],
    ['a text for a list', { resourceDomains: 'https://a.example' }],
  ] as const) {
    await check(`${what} is declared: it gets headers all the same`, 'a header', () => {
      const { refused } = read(csp);
      return Array.isArray(refused) && refused.length === 0;
    });
  }
  for (const name of [...CLOSED, 'frame-src', 'base-uri'])
    await check(`without a declaration ${name} is closed`, "'none'", () =>
      list(words(read({}), name)),
    );
  for (const name of ['connect-src', 'img-src', 'font-src', 'media-src'])
    await check(`${name}: what the app brings along works`, 'blob: data:', () =>
      list(words(read({}), name)),
    );
  await check('worker-src: what the app brings along works', 'blob: data:', () =>
    list(words(read({}), 'worker-src')),
  );
  await check('style-src: styles in the page work, too', "'unsafe-inline' blob: data:", () =>
    list(words(read({}), 'style-src')),
  );
  await check(
    'script-src: scripts in the page, and made of text',
    "'unsafe-eval' 'unsafe-inline' blob: data:",
    () => list(words(read({}), 'script-src')),
  );
  await check('nothing else is said: no other directive', list(ALL), () =>
    list([...read({}).found.keys()]),
  );

  // Each where it belongs.
  for (const kind of KINDS) {
    const source = `https://${host()}`;
    await check(
      `a source of ${kind} is where it belongs, and nowhere else`,
      list(WHERE[kind]),
      () => list(having(read({ [kind]: [source] }), source)),
    );
    await check(`${kind}: what was there without it stays, but for 'none'`, 'the same', () => {
      const before = read({});
      const after = read({ [kind]: [source] });
      return [...before.found].every(([name, sources]) => {
        const kept = sources.filter((each) => each !== "'none'");
        const now = words(after, name);
        const isOpen = now.length === 1 || !now.includes("'none'");
        return isOpen && kept.every((each) => now.includes(each));
      });
    });
  }
  await check('two sources of one kind are both there', 'both', () => {
    const two = [`https://${host()}`, `wss://${host()}:8443`];
    const answer = read({ connectDomains: two });
    return two.every((each) => having(answer, each).includes('connect-src'));
  });
  for (const kind of ['connectDomains', 'resourceDomains', 'frameDomains'] as const) {
    const source = `https://${host()}`;
    await check(
      `connections has the sources of ${kind}, in quotes`,
      `"${source}" response-origin`,
      () => list(read({ [kind]: [source] }).connections),
    );
  }
  await check('and not those of baseUriDomains', 'response-origin', () =>
    list(read({ baseUriDomains: [`https://${host()}`] }).connections),
  );
  await check('without a source connections is our own answer alone', 'response-origin', () =>
    list(read({}).connections),
  );
  await check('allowed has the four lists as they count', 'those four lists', () => {
    const csp = Object.fromEntries(KINDS.map((kind) => [kind, [`https://${host()}`]]));
    return JSON.stringify(sorted(read(csp).allowed)) === JSON.stringify(sorted(csp));
  });

  // What counts.
  for (const kind of KINDS) {
    const isBare = (csp: Json) => {
      const [answer, bare] = [read(csp), read({})];
      const same = [...bare.found].every(
        ([name]) => list(words(answer, name)) === list(words(bare, name)),
      );
      return same && list(answer.connections) === 'response-origin';
    };
    const counts = (what: string, source: unknown) =>
      check(`${kind}: ${what} does not count`, 'the headers of nothing', () =>
        isBare({ [kind]: [source] }),
      );
    const name = host();
    await counts('two words', `https://${name} *`);
    await counts('a semicolon', `https://${name}; script-src *`);
    await counts('a line feed at the end', `https://${name}\n`);
    await counts('a path', `https://${name}/path`);
    await counts('a source without encryption', `http://${name}`);
    await counts('a star', '*');
    await counts("'self'", "'self'");
    await counts('a private number', 'https://10.1.2.3');
    await counts('this machine', 'https://localhost:3000');
    await counts('a name of this house', 'https://printer.local');
    await counts('a star below one label', 'https://*.example');
    await counts('a number', 7);
    await counts('a list with a source in it', [`https://${name}`]);
    await counts('null', null);
    const long = `https://${'a.'.repeat(120)}example`;
    await check(`${kind}: 255 characters are as many as may be`, 'it is there', () => {
      const longest = long.slice(0, 8) + long.slice(8 + long.length - 255);
      const answer = read({ [kind]: [longest] });
      return longest.length === 255 && having(answer, longest).length === WHERE[kind].length;
    });
    await counts('a source of 256 characters', `https://a${'a.'.repeat(120)}example`);
  }
  await check('a source that does not count spoils none beside it', 'the good one', () => {
    const good = `https://*.${host()}`;
    const answer = read({ connectDomains: ['https://a b', good, 7] });
    return (
      having(answer, good).join() === 'connect-src' && answer.allowed.connectDomains.join() === good
    );
  });

  // What is told.
  await check('what does not count is in refused', '["*"]', () =>
    JSON.stringify(read({ frameDomains: ['*'] }).refused),
  );
  await check('and what counts is not', '[]', () =>
    JSON.stringify(read({ frameDomains: [`https://${host()}`] }).refused),
  );
  await check('refused has those of one list in their order', '["http://b","http://a"]', () =>
    JSON.stringify(read({ frameDomains: ['http://b', `https://${host()}`, 'http://a'] }).refused),
  );
  await check('refused has those of all four kinds', 'a b c d', () => {
    const csp = Object.fromEntries(KINDS.map((kind, n) => [kind, ['abcd'[n]]]));
    return list(read(csp).refused);
  });
  await check('a number is told as text', 'a text', () => {
    const [told] = read({ frameDomains: [7] }).refused;
    return told === '7';
  });
  await check(
    '100 characters of it are enough',
    'x'.repeat(100),
    () => `${read({ frameDomains: ['x'.repeat(3000)] }).refused[0]}`,
  );
  await check('two apps have two policies', '[]', () => {
    read({ frameDomains: ['*'] });
    return JSON.stringify(read({}).refused);
  });
};

const ALL = [...CLOSED, ...LOADING, 'connect-src', 'worker-src', 'frame-src', 'base-uri'];

const sorted = (lists: Json) => Object.entries(lists).sort(([a], [b]) => (a < b ? -1 : 1));
