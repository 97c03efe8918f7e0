// Judges exercise 17: what runs, what is asked about, what is refused? "On the wire" are the calls and what became of them.

import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Judge } from '../book.ts';

type Rules = { allow?: string[]; ask?: string[]; deny?: string[] };

export const judge: Judge = async ({ load, see, expect }) => {
  const { Gate } = await load('chapters/17-the-gate/gate.ts');
  const { Trust } = await load('chapters/17-the-gate/trust.ts');
  const { parseRules } = await load('chapters/17-the-gate/rules.ts');
  const { ScriptedPerson } = await load('chapters/17-the-gate/person.ts');
  const { Roots } = await load('chapters/16-hands/paths.ts');
  const { hands } = await load('chapters/16-hands/tools.ts');
  const place = realpathSync(mkdtempSync(join(tmpdir(), 'gate-')));
  process.on('exit', () => rmSync(place, { recursive: true }));
  const [home, cwd] = [join(place, 'home'), join(place, 'project')];
  for (const folder of [home, cwd]) mkdirSync(folder);
  const links = {
    'link.txt': 'elsewhere.txt',
    'secret.txt': '.env',
    'out.txt': '../out.txt',
    'build.txt': 'Makefile',
  };
  for (const [name, target] of Object.entries(links)) symlinkSync(target, join(cwd, name));
  const roots = new Roots(cwd);
  const trust = new Trust({ home, cwd });
  const start = (server: string, args: string[]) =>
    trust.approve({
      name: server,
      scope: 'user',
      authority: 'user',
      file: 'settings.json',
      config: { command: 'node', args },
    });
  await start('notes', ['notes.mjs']);

  const clock = {
    definition: { name: 'clock', description: 'Tells the time.', inputSchema: {} },
    readOnly: true,
    run: async () => ({ blocks: [], isError: false }),
  };
  const rebuild = {
    ...clock,
    definition: { ...clock.definition, name: 'rebuild' },
    readOnly: false,
    touches: () => ({ kind: 'read' as const, path: 'a.txt' }),
  };
  const scribe = {
    ...clock,
    definition: { ...clock.definition, name: 'scribe' },
    touches: ({ path }: any) => ({ kind: 'write' as const, path }),
  };
  const runner = {
    ...clock,
    definition: { ...clock.definition, name: 'runner' },
    touches: ({ command }: any) => ({ kind: 'shell' as const, command }),
  };
  const builtIn = [
    ...hands({ roots, resultsFolder: join(place, 'results') }),
    clock,
    rebuild,
    scribe,
    runner,
  ];
  const row = (name: string, description: string) => {
    const [, server, own] = /^mcp__(.+)__(.+)$/.exec(name) ?? [];
    const tool = {
      name: own,
      description,
      inputSchema: { type: 'object' },
      annotations: { readOnlyHint: true },
    }; // so it says
    const mine = {
      definition: { name, description, inputSchema: {} },
      readOnly: false,
      origin: { server, tool },
      run: async () => ({ blocks: [], isError: false }),
    };
    return server ? mine : builtIn.find(({ definition }: any) => definition.name === name);
  };
  const parsedFrom = (rules: Rules) =>
    (['allow', 'ask', 'deny'] as const).flatMap((effect) =>
      parseRules(
        effect,
        rules[effect] ?? [],
        { name: 'the exercise', isHere: false },
        { tools: builtIn, warn: () => {} },
      ),
    );
  /** "runs", "asked" (with "always" or without) or "refused", and the words that go with it. */
  const judged = async (
    name: string,
    args: object,
    rules: Rules = {},
    mode = 'ask',
    { says = 'n', isAlone = false, description = 'Does it.' } = {},
  ) => {
    const parsed = parsedFrom(rules);
    const person = new ScriptedPerson([says]);
    see('out', { call: name, args, mode, ...rules });
    const gate = new Gate({
      mode,
      rules: parsed,
      roots,
      trust,
      person: isAlone ? undefined : person,
    });
    const whole = name === 'write' ? { content: 'new\n', ...args } : args; // the question shows the change
    const { allowed, reason } = await gate.check(
      row(name, description),
      whole,
      new AbortController().signal,
    );
    const question = person.questions[0]?.text;
    const came = question
      ? `asked, ${question.includes('[a]lways') ? 'with' : 'without'} "always":\n${question}`
      : allowed
        ? 'runs'
        : `refused: ${reason}`;
    see('in', came);
    return came;
  };
  /** What is missing in the judgement itself, or too much in it, whatever becomes of it. */
  const faultsOf = (name: string, args: any, rules: Rules, mode: string, isLast: boolean) => {
    see('out', { call: name, args, mode, ...rules });
    const { effect, why, location, isOpen } = new Gate({
      mode,
      rules: parsedFrom(rules),
      roots,
      trust,
    }).judge(row(name, 'Does it.'), args);
    const real = args.path && roots.locate(args.path).real;
    const faults = [
      !/\w/.test(why ?? '') && `why is ${JSON.stringify(why)}`,
      location?.real !== real &&
        `location is ${location ? JSON.stringify(location.real) : location}`,
      Boolean(isOpen) !== isLast && `isOpen is ${isOpen}`,
    ].filter(Boolean);
    return faults.length > 0 ? `the effect ${effect}, but ${faults.join(', ')}` : 'all of it';
  };
  const file = (path: string) => ({ path });
  const sh = (command: string) => ({ command });
  const asked = /^asked/,
    refused = /^refused: .*\w/,
    runs = /^runs$/;
  const modes = ['ask', 'read-only', 'accept-edits', 'yolo'];

  await expect(
    'a file in the folder may be read',
    'it runs, and nobody is asked',
    judged('read', file('a.txt')),
    runs,
  );
  for (const [name, args] of [
    ['write', file('a.txt')],
    ['bash', sh('npm test')],
    ['mcp__notes__add', {}],
  ] as const)
    await expect(
      `${name} is asked about, if nothing else decides`,
      'a question, with "always" among its answers',
      judged(name, args),
      /^asked, with "always"/,
    );
  await expect(
    'a tool that says of itself that it only reads (readOnlyHint) is asked about all the same',
    'a question',
    judged('mcp__notes__read', {}),
    asked,
  );

  await expect(
    'a tool of the program that says so (readOnly), but not what it touches, is asked about',
    'a question, with "always" among its answers',
    judged('clock', {}),
    /^asked, with "always"/,
  );
  await expect(
    'a rule may allow a tool that does not tell what it touches',
    'it runs',
    judged('clock', {}, { allow: ['clock'] }),
    runs,
  );
  await expect(
    'in the mode read-only a tool that does not tell what it touches is refused',
    'refused, and nobody is asked',
    judged('clock', {}, {}, 'read-only'),
    refused,
  );

  for (const [tool, does, args] of [
    ['scribe', 'writes', file('a.txt')],
    ['runner', 'runs a command', sh('npm test')],
  ] as const) {
    await expect(
      `a tool that says that it only reads (readOnly), but ${does} (its touch), is asked about`,
      'a question, with "always" among its answers',
      judged(tool, args),
      /^asked, with "always"/,
    );
    await expect(
      `in the mode read-only a tool that says that it only reads, but ${does}, is refused`,
      'refused, and nobody is asked',
      judged(tool, args, {}, 'read-only'),
      refused,
    );
  }

  await expect(
    "in the mode read-only a server's tool is refused",
    'refused, and nobody is asked',
    judged('mcp__notes__add', {}, {}, 'read-only'),
    refused,
  );
  await expect(
    'in the mode read-only commands are refused, whatever a rule allows',
    'refused, and nobody is asked',
    judged('bash', sh('npm test'), { allow: ['bash(npm test)'] }, 'read-only'),
    refused,
  );
  await expect(
    'in the mode read-only reading goes on',
    'it runs',
    judged('read', file('a.txt'), {}, 'read-only'),
    runs,
  );
  await expect(
    'in the mode accept-edits a change to a file needs no question',
    'it runs',
    judged('edit', file('a.txt'), {}, 'accept-edits'),
    runs,
  );
  await expect(
    'in the mode accept-edits a command needs a question',
    'a question',
    judged('bash', sh('npm test'), {}, 'accept-edits'),
    asked,
  );
  await expect(
    "in the mode accept-edits a server's tool needs a question",
    'a question',
    judged('mcp__notes__add', {}, {}, 'accept-edits'),
    asked,
  );
  for (const [name, args] of [
    ['bash', sh('npm test')],
    ['mcp__notes__add', {}],
  ] as const)
    await expect(
      `in the mode yolo ${name} needs none`,
      'it runs',
      judged(name, args, {}, 'yolo'),
      runs,
    );

  await expect(
    'what a rule allows, runs',
    'it runs',
    judged('mcp__notes__add', {}, { allow: ['mcp__notes__*'] }),
    runs,
  );
  await expect(
    'a rule for one command does not allow another behind it',
    'a question',
    judged('bash', sh('npm test; rm -r .'), { allow: ['bash(npm test)'] }),
    asked,
  );
  for (const mode of modes)
    await expect(
      `deny beats allow, in the mode ${mode}`,
      'refused, and nobody is asked',
      judged(
        'mcp__notes__erase',
        {},
        { allow: ['mcp__notes__*'], deny: ['mcp__notes__erase'] },
        mode,
      ),
      refused,
    );
  await expect(
    'deny beats ask',
    'refused, and nobody is asked',
    judged('bash', sh('rm -r .'), { ask: ['bash'], deny: ['bash(rm *)'] }),
    refused,
  );
  await expect(
    'deny holds for reading, too',
    'refused, and nobody is asked',
    judged('read', file('a.txt'), { deny: ['read(*.txt)'] }),
    refused,
  );
  await expect(
    'ask beats allow',
    'a question',
    judged('mcp__notes__add', {}, { allow: ['mcp__notes__add'], ask: ['mcp__notes__*'] }),
    asked,
  );
  await expect(
    'ask beats yolo',
    'a question',
    judged('bash', sh('npm publish'), { ask: ['bash(npm publish*)'] }, 'yolo'),
    asked,
  );
  await expect(
    'ask holds for reading, too',
    'a question',
    judged('read', file('a.txt'), { ask: ['read'] }),
    asked,
  );

  await expect(
    'a file that may hold secrets is asked about before it is read',
    'a question, without "always"',
    judged('read', file('.env')),
    /^asked, without "always"/,
  );
  await expect(
    'a file outside is asked about before it is read',
    'a question, without "always"',
    judged('read', file('../a.txt')),
    /^asked, without "always"/,
  );
  await expect(
    'a file that steers agents is asked about before it is written, in accept-edits as well, and though a rule allows to write',
    'a question, without "always"',
    judged('write', file('.mcp.json'), { allow: ['write'] }, 'accept-edits'),
    /^asked, without "always"/,
  );
  await expect(
    'in the mode yolo a file that steers agents may be written without a question',
    'it runs',
    judged('write', file('.mcp.json'), {}, 'yolo'),
    runs,
  );
  for (const mode of modes)
    await expect(
      `nothing is written outside the folder, in the mode ${mode}`,
      'refused, and nobody is asked',
      judged('write', file('../a.txt'), { allow: ['write'] }, mode),
      refused,
    );

  const withoutAlways = /^asked, without "always"/;
  const withAlways = /^asked, with "always"/;
  const noHint = /^refused: (?!.*--allow)/;
  await expect(
    'where a rule wants the question, "always" is not offered: it would not stop the rule',
    'a question, without "always"',
    judged('mcp__notes__add', {}, { ask: ['mcp__notes__add'] }),
    withoutAlways,
  );
  await expect(
    'nor is it offered for a command that a rule asks about',
    'a question, without "always"',
    judged('bash', sh('npm publish'), { ask: ['bash(npm publish*)'] }),
    withoutAlways,
  );
  await expect(
    'read-only beats ask',
    'refused, and nobody is asked',
    judged('bash', sh('npm test'), { ask: ['bash'] }, 'read-only'),
    refused,
  );
  await expect(
    'outside the folder nothing is written, also where a rule would ask',
    'refused, and nobody is asked',
    judged('write', file('../a.txt'), { ask: ['write'] }),
    refused,
  );
  await expect(
    'in the mode read-only a file that may hold secrets is still asked about',
    'a question, without "always"',
    judged('read', file('.env'), {}, 'read-only'),
    withoutAlways,
  );
  await expect(
    'a rule that allows reading does not open a file that may hold secrets',
    'a question, without "always"',
    judged('read', file('.env'), { allow: ['read'] }),
    withoutAlways,
  );
  await expect(
    'a rule that asks beats yolo for a file that may hold secrets, too',
    'a question',
    judged('read', file('.env'), { ask: ['read'] }, 'yolo'),
    asked,
  );
  await expect(
    'in the mode yolo a file outside may be read',
    'it runs',
    judged('read', file('../a.txt'), {}, 'yolo'),
    runs,
  );
  await expect(
    'in the mode yolo a change that runs with the next build needs no question',
    'it runs',
    judged('write', file('package.json'), {}, 'yolo'),
    runs,
  );
  await expect(
    'in the mode accept-edits a change that runs with the next build (package.json) is asked about, with "always" among the answers',
    'a question, with "always"',
    judged('write', file('package.json'), {}, 'accept-edits'),
    withAlways,
  );
  await expect(
    'a pattern that allows all files does not mean package.json',
    'a question, with "always"',
    judged('write', file('package.json'), { allow: ['write(**)'] }, 'accept-edits'),
    withAlways,
  );
  await expect(
    'a rule that names package.json allows it',
    'it runs',
    judged('write', file('package.json'), { allow: ['write(package.json)'] }),
    runs,
  );
  await expect(
    'a question about a file that runs with the next build says why',
    'a question with a reason in parentheses (isOpen hides it: only the last step sets it)',
    judged('write', file('package.json')),
    /^asked[^]*\(.*\w.*\):/,
  );
  await expect(
    'the question shows where a link leads (the location goes along)',
    'a question with "that is really …elsewhere.txt"',
    judged('write', file('link.txt')),
    /^asked[^]*really.*elsewhere\.txt/,
  );
  await expect(
    'a tool that touches a file only to read it, and does not say that it only reads (readOnly: false), is asked about',
    'a question',
    judged('rebuild', {}),
    asked,
  );
  await expect(
    'in the mode read-only such a tool is refused',
    'refused, and nobody is asked',
    judged('rebuild', {}, {}, 'read-only'),
    refused,
  );
  for (const mode of ['ask', 'yolo'])
    await expect(
      `a tool that says that it only reads, but writes, writes nothing outside the folder, in the mode ${mode}`,
      'refused, and nobody is asked',
      judged('scribe', file('../a.txt'), {}, mode),
      refused,
    );
  await expect(
    'nor a file that steers agents without a question',
    'a question, without "always"',
    judged('scribe', file('AGENTS.md'), {}, 'accept-edits'),
    withoutAlways,
  );
  await expect(
    'a file that steers agents (AGENTS.md) may be read',
    'it runs',
    judged('read', file('AGENTS.md')),
    runs,
  );
  await expect(
    'but not written without a question, not even in accept-edits',
    'a question, without "always"',
    judged('edit', file('AGENTS.md'), {}, 'accept-edits'),
    withoutAlways,
  );
  await expect(
    'a tool that does not say what it touches needs a question in accept-edits',
    'a question',
    judged('clock', {}, {}, 'accept-edits'),
    asked,
  );

  await expect(
    'where nobody can be asked, the answer is no',
    'refused: …nobody to ask. The user can allow it with --allow …',
    judged('mcp__notes__add', {}, {}, 'ask', { isAlone: true }),
    /^refused: .*nobody to ask.*--allow 'mcp__notes__add'/,
  );
  await expect(
    'where a rule asks, a refusal gives no hint how to get around it (isOpen is not set)',
    'refused: …nobody to ask, and no word of --allow',
    judged('mcp__notes__add', {}, { ask: ['mcp__notes__add'] }, 'ask', { isAlone: true }),
    /^refused: (?!.*--allow)/,
  );

  await expect(
    'nor does a refusal for a file that may hold secrets',
    'refused: …nobody to ask, and no word of --allow',
    judged('read', file('.env'), {}, 'ask', { isAlone: true }),
    noHint,
  );
  await expect(
    'a question about a rule says which',
    'a question with a reason in parentheses (isOpen hides it: only the last step sets it)',
    judged('mcp__notes__add', {}, { ask: ['mcp__notes__add'] }),
    /^asked[^]*\(.*\w.*\):/,
  );
  await expect(
    'where nothing but your word is missing, the question needs no reason (isOpen)',
    'a question without parentheses',
    judged('mcp__notes__add', {}),
    /^asked, with "always":\n[^(]*$/m,
  );

  await expect(
    'somebody says always to a file',
    'a question',
    judged('write', file('b.txt'), {}, 'ask', { says: 'a' }),
    withAlways,
  );
  await expect(
    'after "always" this file may be written',
    'it runs',
    judged('write', file('b.txt')),
    runs,
  );
  await expect(
    '"always" for a file means no other file',
    'a question',
    judged('write', file('c.txt')),
    asked,
  );
  await expect(
    'after "always" a rule still denies the file',
    'refused, and nobody is asked',
    judged('write', file('b.txt'), { deny: ['write(b.txt)'] }),
    refused,
  );

  await expect(
    'somebody says always to package.json',
    'a question',
    judged('write', file('package.json'), {}, 'ask', { says: 'a' }),
    withAlways,
  );
  await expect(
    'after "always" package.json may be written, though it runs with the next build',
    'it runs',
    judged('write', file('package.json')),
    runs,
  );

  const steps: [string, string, object, Rules?, string?][] = [
    ['where a rule denies', 'read', file('link.txt'), { deny: ['read'] }],
    ['where it would write outside', 'write', file('out.txt')],
    ['where the mode is read-only', 'write', file('link.txt'), {}, 'read-only'],
    ['where a rule asks', 'write', file('link.txt'), { ask: ['write'] }],
    ['for a link to a file that may hold secrets', 'read', file('secret.txt')],
    ['for a link that leads outside', 'read', file('out.txt')],
    ['for a delicate file in yolo', 'read', file('secret.txt'), {}, 'yolo'],
    ['where it only reads', 'read', file('link.txt')],
    ['where a rule allows', 'write', file('link.txt'), { allow: ['write'] }],
    ['after "always"', 'write', file('b.txt')],
    ['in yolo', 'write', file('link.txt'), {}, 'yolo'],
    [
      'for a link to a file that runs with the next build',
      'edit',
      file('build.txt'),
      {},
      'accept-edits',
    ],
    ['in accept-edits', 'write', file('link.txt'), {}, 'accept-edits'],
    ['where nothing has decided', 'write', file('link.txt')],
    ['where nothing has decided, and there is no file', 'bash', sh('npm test')],
  ];
  for (const [when, name, args, rules = {}, mode = 'ask'] of steps) {
    const isLast = when.startsWith('where nothing');
    const wanted = `a why with words in it, the location if there is a path, and isOpen ${isLast ? 'set' : 'not set'}`;
    await expect(
      `the judgement has all that belongs to it, ${when}`,
      wanted,
      faultsOf(name, args, rules, mode, isLast),
      /^all of it$/,
    );
  }

  await expect(
    'somebody answers a(lways)',
    'a question',
    judged('mcp__notes__add', {}, {}, 'ask', { says: 'a' }),
    asked,
  );
  await expect(
    'after "always" the tool runs, and nobody is asked',
    'it runs',
    judged('mcp__notes__add', {}),
    runs,
  );
  await expect(
    'after "always" a rule still denies it',
    'refused, and nobody is asked',
    judged('mcp__notes__add', {}, { deny: ['mcp__notes__add'] }),
    refused,
  );
  await expect(
    'after "always" the mode read-only still refuses it',
    'refused, and nobody is asked',
    judged('mcp__notes__add', {}, {}, 'read-only'),
    refused,
  );
  await expect(
    'after "always" a rule that asks still asks',
    'a question',
    judged('mcp__notes__add', {}, { ask: ['mcp__notes__add'] }),
    asked,
  );
  await expect(
    'after "always" it is asked about again if its description has changed',
    'a question that shows the change',
    judged('mcp__notes__add', {}, {}, 'ask', { description: 'Does more.' }),
    /^asked[^]*has changed since[^]*Does more/,
  );
  await start('notes', ['others.mjs']);
  await expect(
    'after "always" it is asked about again if another server has come to its name',
    'a question',
    judged('mcp__notes__add', {}),
    asked,
  );

  for (const path of ['.mcp.json', '../a.txt'])
    trust.grant({ kind: 'write', path: roots.locate(path).real });
  await expect(
    '"always" does not help against a step above it: a file that steers agents is asked about',
    'a question, without "always"',
    judged('write', file('.mcp.json')),
    withoutAlways,
  );
  await expect(
    'nor does it help to write outside the folder',
    'refused, and nobody is asked',
    judged('write', file('../a.txt')),
    refused,
  );
  for (const mode of ['ask', 'read-only'])
    await expect(
      'a command line that only shows files of the folder (isFree) needs no question',
      'it runs',
      judged('bash', sh('ls'), {}, mode),
      runs,
    );
  await expect(
    'a rule still denies it',
    'refused, and nobody is asked',
    judged('bash', sh('ls'), { deny: ['bash'] }),
    refused,
  );

  // ── Every call, in every mode, under every rule, before and after "always" ──
  const some = `${Math.random().toString(36).slice(2, 8)}.txt`;
  writeFileSync(join(cwd, some), 'text\n');
  const command = `npm run ${some.slice(0, 6)}`;
  type Sample = { name: string; args: any; allow: string } & Partial<
    Record<'onlyReads' | 'isEdit' | 'isOutside' | 'isDelicate' | 'isBuild' | 'noGrant', boolean>
  >;
  const reads = { onlyReads: true, noGrant: true };
  const samples: Sample[] = [
    { name: 'read', args: file(some), allow: `read(${some})`, ...reads },
    { name: 'read', args: file('.env'), allow: 'read(.env)', ...reads, isDelicate: true },
    { name: 'read', args: file(`../${some}`), allow: 'read', ...reads, isDelicate: true },
    { name: 'write', args: file(some), allow: `write(${some})`, isEdit: true },
    { name: 'edit', args: file('AGENTS.md'), allow: 'edit', isEdit: true, isDelicate: true },
    { name: 'write', args: file(`../${some}`), allow: 'write', isEdit: true, isOutside: true },
    {
      name: 'write',
      args: file('package.json'),
      allow: 'write(package.json)',
      isEdit: true,
      isBuild: true,
    },
    { name: 'scribe', args: file(some), allow: 'scribe', isEdit: true },
    ...['ls', 'pwd', `cat ${some}`, `head -n 3 ${some} | wc -l`].map((line) => ({
      name: 'bash',
      args: sh(line),
      allow: `bash(${line})`,
      onlyReads: true,
    })),
    { name: 'bash', args: sh(command), allow: `bash(${command})` },
    { name: 'runner', args: sh(command), allow: `runner(${command})` },
    { name: 'clock', args: {}, allow: 'clock' },
    { name: 'rebuild', args: {}, allow: 'rebuild', noGrant: true },
    { name: 'mcp__notes__add', args: {}, allow: 'mcp__notes__add' },
  ];
  type Case = Sample & {
    deny: boolean;
    ask: boolean;
    rule: boolean;
    mode: string;
    always: boolean;
  };
  type Expected = { effect: string; grant?: boolean; isOpen?: boolean; isUnasked?: boolean };
  const [no, yes] = [{ effect: 'deny' }, { effect: 'allow', isUnasked: false }];
  /** The rules of the exercise, one by one: whether each decides, and how. */
  const rulesInOrder: [string, (each: Case) => boolean, (each: Case) => Expected][] = [
    ['a rule denies', ({ deny }) => deny, () => no],
    ['it would write outside', ({ isOutside }) => isOutside === true, () => no],
    [
      'the mode is read-only',
      ({ mode, onlyReads }) => mode === 'read-only' && !onlyReads,
      () => no,
    ],
    ['a rule asks', ({ ask }) => ask, () => ({ effect: 'ask', grant: false, isUnasked: false })],
    [
      'the file is delicate',
      ({ isDelicate }) => isDelicate === true,
      ({ mode }) =>
        mode === 'yolo' ? { effect: 'allow' } : { effect: 'ask', grant: false, isUnasked: false },
    ],
    ['it only reads', ({ onlyReads }) => onlyReads === true, () => ({ ...yes, isUnasked: true })],
    ['a rule allows it', ({ rule }) => rule, () => ({ ...yes, isUnasked: true })],
    ['you said "always"', ({ always, noGrant }) => always && !noGrant, () => yes],
    ['the mode is yolo', ({ mode }) => mode === 'yolo', () => yes],
    [
      'it runs with the next build',
      ({ isBuild }) => isBuild === true,
      () => ({ effect: 'ask', grant: true, isUnasked: false }),
    ],
    [
      'the mode is accept-edits',
      ({ mode, isEdit }) => mode === 'accept-edits' && isEdit === true,
      () => yes,
    ],
    [
      'nothing has decided',
      () => true,
      ({ noGrant }) => ({ effect: 'ask', grant: !noGrant, isOpen: true, isUnasked: false }),
    ],
  ];
  const choices = [false, true];
  const cases = samples.flatMap((sample) =>
    choices.flatMap((deny) =>
      choices.flatMap((ask) =>
        choices.flatMap((rule) =>
          modes.flatMap((mode) =>
            choices.map((always): Case => ({ ...sample, deny, ask, rule, mode, always })),
          ),
        ),
      ),
    ),
  );
  /** What is wrong with the judgement of one of them. */
  const faultOf = (each: Case, wanted: Expected): string => {
    const { name, args, deny, ask, rule, mode, always, allow } = each;
    const rules = {
      deny: deny ? [name] : [],
      ask: ask ? [name] : [],
      allow: rule ? [allow] : [],
    };
    const agreed = Object.create(trust, {
      isGranted: { value: (grant: any) => always && !!grant },
    });
    const gate = new Gate({ mode, rules: parsedFrom(rules), roots, trust: agreed });
    const { effect, grant, isOpen, isUnasked, why } = gate.judge(row(name, 'Does it.'), args);
    const faults = [
      effect !== wanted.effect && `the effect is ${effect}, not ${wanted.effect}`,
      !/\w/.test(why ?? '') && 'there is no why',
      wanted.grant === false && grant && 'there is a grant',
      wanted.grant === true && !grant && 'there is no grant',
      Boolean(isOpen) !== Boolean(wanted.isOpen) && `isOpen is ${isOpen}`,
      wanted.isUnasked !== undefined &&
        Boolean(isUnasked) !== wanted.isUnasked &&
        `isUnasked is ${isUnasked}`,
    ].filter(Boolean);
    if (faults.length === 0) return '';
    const said = Object.entries(rules).flatMap(([kind, [text]]) => (text ? `${kind} ${text}` : []));
    const when = [`mode ${mode}`, ...said, ...(always ? ['after "always"'] : [])].join(', ');
    return `${name} ${JSON.stringify(args)} (${when}): ${faults.join(', ')}`;
  };
  for (const [when, , expected] of rulesInOrder) {
    const decided = cases.filter(
      (each) => rulesInOrder.find(([, decides]) => decides(each))![0] === when,
    );
    const faults = decided.map((each) => faultOf(each, expected(each))).filter(Boolean);
    await expect(
      `of all calls, in all modes, under all rules: where ${when}, and no line above decides`,
      `the judgement that the rules of the exercise say, ${decided.length} times`,
      faults[0] ?? 'all of them',
      /^all of them$/,
    );
  }
};
