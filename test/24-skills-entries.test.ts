// Chapter 24: what servers say of their skills: entries that are none, dynamic ones, and the
// server's part of the conversation.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { inBothEras } from '../chapters/22-no-handshake/era.ts';
import { cleanUp, until } from './help/basics.ts';
import { files, FORMS, forms, root, uri } from './help/pdf-skill.ts';
import {
  digest,
  entryOf,
  EXTENSION,
  filesOf,
  prepareSkills,
  skillMd,
} from './help/skill-server.ts';

afterEach(cleanUp);

// ── Entries that are none ──

const odd: [what: string, entry: (honest: any) => unknown, reason: RegExp][] = [
  ['no object', () => 7, /not an entry/],
  ['no resources', ({ resources, ...rest }) => rest, /does not list its files/],
  [
    'resources of another kind',
    (entry) => ({ ...entry, resources: 'static' }),
    /does not list its files/,
  ],
  ['no frontmatter', ({ frontmatter, ...rest }) => rest, /no frontmatter/],
  ['no description', (entry) => ({ ...entry, frontmatter: { name: 'pdf' } }), /no description/],
  [
    'a name that its address does not have',
    (entry) => ({ ...entry, frontmatter: { name: 'git', description: 'x' } }),
    /called git/,
  ],
  [
    'a name in capitals',
    () => ({
      uri: 'skill://PDF/SKILL.md',
      frontmatter: { name: 'PDF', description: 'x' },
      resources: 'dynamic',
    }),
    /small letters/,
  ],
  [
    'an address of another file',
    (entry) => ({ ...entry, uri: `${root}/README.md` }),
    /not that of a SKILL.md/,
  ],
  ['an address with ..', (entry) => ({ ...entry, uri: 'skill://a/../pdf/SKILL.md' }), /odd/],
  [
    'an address with %2e%2e',
    (entry) => ({ ...entry, uri: 'skill://a/%2e%2e/pdf/SKILL.md' }),
    /odd/,
  ],
  [
    'an address with %252e',
    (entry) => ({ ...entry, uri: 'skill://a/%252e%252e/pdf/SKILL.md' }),
    /odd/,
  ],
  ['an address with a query', (entry) => ({ ...entry, uri: 'skill://a?x=/pdf/SKILL.md' }), /odd/],
  [
    'no SKILL.md among the files',
    (entry) => ({ ...entry, resources: entry.resources.slice(1) }),
    /own SKILL.md/,
  ],
  [
    'a file twice',
    (entry) => ({ ...entry, resources: [...entry.resources, entry.resources[1]] }),
    /twice/,
  ],
  [
    'a file twice, spelled otherwise',
    (entry) => ({
      ...entry,
      resources: [
        ...entry.resources,
        { ...entry.resources[1], uri: `${root}/references/FORMS%2emd` },
      ],
    }),
    /twice/,
  ],
  [
    'a file of a folder beside',
    (entry) => ({
      ...entry,
      resources: [...entry.resources, { ...entry.resources[1], uri: 'skill://pdf-evil/x' }],
    }),
    /not in its folder/,
  ],
  [
    'a file with ..',
    (entry) => ({
      ...entry,
      resources: [...entry.resources, { ...entry.resources[1], uri: `${root}/../x` }],
    }),
    /not in its folder/,
  ],
  [
    'a file with an encoded slash',
    (entry) => ({
      ...entry,
      resources: [...entry.resources, { ...entry.resources[1], uri: `${root}/a%2f..%2f..%2fx` }],
    }),
    /not in its folder/,
  ],
  [
    'a file with a backslash',
    (entry) => ({
      ...entry,
      resources: [...entry.resources, { ...entry.resources[1], uri: `${root}/..\\x` }],
    }),
    /not in its folder/,
  ],
  [
    'a file with an escape',
    (entry) => ({
      ...entry,
      resources: [...entry.resources, { ...entry.resources[1], uri: `${root}/a%1b[2J` }],
    }),
    /not in its folder/,
  ],
  [
    'a file of another origin',
    (entry) => ({
      ...entry,
      resources: [...entry.resources, { ...entry.resources[1], uri: 'file:///etc/passwd' }],
    }),
    /not in its folder/,
  ],
  [
    'a digest in capitals',
    (entry) => ({
      ...entry,
      resources: entry.resources.map((each: any) => ({
        ...each,
        digest: each.digest.toUpperCase(),
      })),
    }),
    /digest/,
  ],
  [
    'no digest',
    (entry) => ({
      ...entry,
      resources: entry.resources.map(({ digest: _, ...rest }: any) => rest),
    }),
    /digest/,
  ],
  [
    'no number for a size',
    (entry) => ({
      ...entry,
      resources: entry.resources.map((each: any) => ({ ...each, size: '9' })),
    }),
    /size/,
  ],
  [
    'a size below zero',
    (entry) => ({
      ...entry,
      resources: entry.resources.map((each: any) => ({ ...each, size: -1 })),
    }),
    /size/,
  ],
  [
    '513 files',
    (entry) => ({
      ...entry,
      resources: [
        ...entry.resources,
        ...Array.from({ length: 511 }, (_, n) => ({ ...entry.resources[1], uri: `${root}/${n}` })),
      ],
    }),
    /more than 512/,
  ],
  [
    'more than 16 MiB',
    (entry) => ({
      ...entry,
      resources: entry.resources.map((each: any) => ({ ...each, size: 2 ** 23 + 1 })),
    }),
    /16777218 bytes, more than/,
  ],
  [
    'a frontmatter of 100 KB',
    (entry) => ({ ...entry, frontmatter: { ...entry.frontmatter, x: 'x'.repeat(100_000) } }),
    /more than 65536/,
  ],
];

test('C24: entries that are none are left out, each with its reason, and the others stay', async () => {
  const entries = odd.map(([, change]) => change(entryOf(root, files)));
  const good = entryOf('skill://git', filesOf('skill://git'));
  const { skills, listed, warnings, peers } = await prepareSkills({
    servers: { docs: { skills: [...entries, good] } },
  });
  assert.deepEqual(listed(), ['> docs/git (from an MCP server): What git is for']);
  assert.equal(skills.leftOut.length, odd.length);
  for (const [n, [what, , reason]] of odd.entries()) assert.match(skills.leftOut[n]!, reason, what);
  assert.equal(warnings.length, 1);
  assert.deepEqual(peers.docs!.reads, []);
});

test('as many files, and as many bytes, as the extension demands', async () => {
  const others = Object.fromEntries(Array.from({ length: 510 }, (_, n) => [`f${n}`, 'x']));
  const all = filesOf(root, undefined, others);
  const big = {
    uri: `${root}/big`,
    digest: digest('big'),
    size: 2 ** 24 - Object.values(all).reduce((sum, each) => sum + each.length, 0),
  };
  const entry: any = entryOf(root, all);
  entry.resources.push(big);
  const { call, skills, peers } = await prepareSkills({
    servers: { docs: { files: all, skills: [entry] } },
    answers: ['y'],
  });
  assert.match(await call({ name: 'docs/pdf' }), /^The skill/);
  assert.match(await call({ name: 'docs/pdf', file: 'f509' }), /x$/);
  big.size++;
  await skills.refresh();
  assert.match(skills.leftOut.join(), /16777217 bytes, more than/);
  assert.ok(peers.docs);
});

test('a list that fails, or never ends, is told, and costs nothing else', async () => {
  const fails = {
    on: {
      'skills/list': () => {
        throw new Error('not today');
      },
    },
  };
  let page = 0;
  const endless = { on: { 'skills/list': () => ({ skills: [], nextCursor: `${page++}` }) } };
  const { warnings, listed } = await prepareSkills({
    servers: { a: fails, b: endless, c: { files } },
  });
  assert.equal(listed().length, 1);
  assert.match(warnings.join('\n'), /MCP server "a" could not be listed: .*not today/);
  assert.match(warnings.join('\n'), /MCP server "b" could not be listed: .*more than 1000 pages/);
});

// ── Dynamic ones ──

const dynamic = (more: object = {}) => ({
  files,
  skills: [entryOf(root, files, { resources: 'dynamic' })],
  ...more,
});

test('C24: a dynamic skill is asked about each time, and no answer to it is kept', async () => {
  const { call, asked, trust } = await prepareSkills({
    servers: { docs: dynamic() },
    answers: ['y', 'y', 'n'],
  });
  assert.match(await call({ name: 'docs/pdf' }), /^The skill/);
  assert.match(await call({ name: 'docs/pdf' }), /^The skill/);
  assert.match(await call({ name: 'docs/pdf' }), /^denied/);
  assert.match(asked()[0]!, /nobody can tell what it will be/);
  assert.deepEqual(trust.list().notes, []);
});

test('C24: its frontmatter is compared all the same', async () => {
  const lie = dynamic({ files: { ...files, [uri]: skillMd('pdf', 'hooks: x\n') } });
  const { call } = await prepareSkills({ servers: { docs: lie }, answers: ['y'] });
  assert.match(await call({ name: 'docs/pdf' }), /^failed: Nothing of the skill/);
});

test('its folders are read where that is offered, page by page; what leads out of it is not shown, nor read', async () => {
  const page = ({ uri: at, cursor }: any) => {
    if (at !== root) throw new Error('not a directory');
    if (!cursor)
      return {
        resources: [
          { uri: FORMS, name: 'FORMS.md' },
          { uri: 'skill://other/x' },
          { uri: 'file:///etc/passwd' },
        ],
        nextCursor: '2',
      };
    return {
      resources: [
        { uri: `${root}/templates`, mimeType: 'inode/directory' },
        { uri: `${root}/../x` },
      ],
    };
  };
  const serving = dynamic({
    offer: { directoryRead: true },
    on: { 'resources/directory/read': page },
  });
  const { call, peers } = await prepareSkills({
    servers: { docs: serving, plain: dynamic() },
    answers: ['y', 'y'],
  });
  await call({ name: 'docs/pdf' });
  assert.equal(await call({ name: 'docs/pdf', file: './' }), 'references/FORMS.md\ntemplates/');
  assert.match(await call({ name: 'docs/pdf', file: forms }), /forms\n$/);
  for (const file of ['../other/x', 'a/../../x', 'a//b', '..'])
    assert.match(await call({ name: 'docs/pdf', file }), /not among the files/, file);
  assert.deepEqual(peers.docs!.reads, [uri, FORMS]);
  await call({ name: 'plain/pdf' });
  assert.equal(await call({ name: 'plain/pdf', file: './' }), 'nothing is known of this folder');
  assert.equal(peers.plain!.of('resources/directory/read').length, 0, 'it was not offered');
});

test('C24: an endless folder, and more bytes than a skill may have', async () => {
  let n = 0;
  const page = () => ({
    resources: Array.from({ length: 100 }, () => ({ uri: `${root}/f${n++}` })),
    nextCursor: `${n}`,
  });
  const read = ({ uri: at }: any) => ({
    contents: [{ uri: at, text: at === uri ? String(files[uri]) : 'x'.repeat(2 ** 23) }],
  });
  const serving = dynamic({
    offer: { directoryRead: true },
    on: { 'resources/directory/read': page, 'resources/read': read },
  });
  const { call } = await prepareSkills({ servers: { docs: serving }, answers: ['y'] });
  await call({ name: 'docs/pdf' });
  assert.equal((await call({ name: 'docs/pdf', file: './' })).split('\n').length, 1000);
  for (const file of ['f1', 'f2'])
    assert.match(await call({ name: 'docs/pdf', file }), /^f\d of the skill/);
  assert.match(
    await call({ name: 'docs/pdf', file: 'f3' }),
    /more than 16777216 bytes. It is put away/,
  );
  assert.match(await call({ name: 'docs/pdf', file: 'f1' }), /is not loaded/);
});

test('without sizes, as one real server has it, digests are checked all the same', async () => {
  const all = filesOf(root, undefined, { a: 'a', b: 'b' });
  const entry: any = entryOf(root, all);
  entry.resources = entry.resources.map(({ size: _, ...rest }: any) => rest);
  const { call, asked, peers } = await prepareSkills({
    servers: { docs: { files: all, skills: [entry] } },
    answers: ['y'],
  });
  assert.match(await call({ name: 'docs/pdf' }), /^The skill/);
  assert.match(asked()[0]!, /It has 3 files:\n  SKILL.md \(sha256:/);
  assert.match(await call({ name: 'docs/pdf', file: 'a' }), /^a of/);
  peers.docs!.serving.files![`${root}/b`] = 'B';
  assert.match(await call({ name: 'docs/pdf', file: 'b' }), /its digest is/);
});

// ── The server's part of the conversation ──

test('C24: an answer about another file is not taken', async () => {
  const swaps: ((params: any) => unknown)[] = [
    () => ({ contents: [{ uri: FORMS, text: String(files[uri]) }] }),
    ({ uri: at }) => ({
      contents: [
        { uri: at, text: String(files[uri]) },
        { uri: FORMS, text: 'forms\n' },
      ],
    }),
    ({ uri: at }) => ({ contents: [{ uri: at }] }),
    () => ({ contents: 'x' }),
    ({ uri: at }) => ({ contents: [{ uri: at, blob: 'A'.repeat(2 ** 25 + 4) }] }),
  ];
  for (const swap of swaps) {
    const { call } = await prepareSkills({
      servers: { docs: { files, on: { 'resources/read': swap } } },
      answers: ['y'],
    });
    assert.match(
      await call({ name: 'docs/pdf' }),
      /^failed: Nothing of the skill docs\/pdf was used: the MCP server "docs" answered/,
    );
  }
});

test('skills of a server that is gone are gone, and those of one that changes are listed again', async () => {
  const { peers, connections, listed, call } = await prepareSkills({
    servers: { docs: { files }, b: { files } },
    answers: ['y'],
  });
  await call({ name: 'b/pdf' });
  peers.docs!.serving = { files: filesOf('skill://git') };
  connections.docs!.changed('resources');
  await until(() => listed().some((each) => each.startsWith('> docs/git')));
  await connections.docs!.close();
  await connections.b!.close();
  assert.deepEqual(listed(), []);
  assert.match(await call({ name: 'b/pdf' }), /There is no skill/);
});

test('in the stateless era it is the same, and what a cache keeps of an old text is forgotten', async () => {
  const discover = () => ({
    resultType: 'complete',
    supportedVersions: ['2026-07-28'],
    ttlMs: 0,
    cacheScope: 'private',
    capabilities: { resources: {}, extensions: { [EXTENSION]: {} } },
  });
  const forLong = { resultType: 'complete', ttlMs: 1e9, cacheScope: 'private' };
  const read = ({ uri: at }: any) => ({
    ...forLong,
    contents: [{ uri: at, text: peers.docs!.serving.files![at] }],
  });
  const on = { 'server/discover': discover, 'resources/read': read };
  const { call, peers, asked } = await prepareSkills({
    servers: { docs: { files, on } },
    answers: ['y', 'y'],
    extensions: inBothEras(),
  });
  assert.match(await call({ name: 'docs/pdf' }), /Read references/);
  assert.ok(peers.docs!.of('skills/list').every((params: any) => params._meta));
  peers.docs!.serving = {
    on,
    files: filesOf(root, skillMd('pdf', '', 'A newer text.'), { 'references/FORMS.md': 'newer' }),
  };
  assert.match(
    await call({ name: 'docs/pdf', file: forms }),
    /Nothing of the skill/,
    'it is not what was agreed to',
  );
  assert.match(await call({ name: 'docs/pdf' }), /A newer text/);
  assert.match(await call({ name: 'docs/pdf', file: forms }), /newer$/);
  assert.equal(asked().length, 2);
});
