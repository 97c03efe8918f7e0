// Judges exercise 17: what runs, what is asked about, what is refused? "On the wire" are the calls and what became of them.

import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
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
  const roots = new Roots(cwd);
  const trust = new Trust({ home, cwd });
  const start = (server: string, args: string[]) => trust.approve({ name: server, scope: 'user', authority: 'user', file: 'settings.json', config: { command: 'node', args } });
  await start('notes', ['notes.mjs']);

  const clock = { definition: { name: 'clock', description: 'Tells the time.', inputSchema: {} }, readOnly: true, run: async () => ({ blocks: [], isError: false }) };
  const builtIn = [...hands({ roots, resultsFolder: join(place, 'results') }), clock];
  const row = (name: string, description: string) => {
    const [, server, own] = /^mcp__(.+)__(.+)$/.exec(name) ?? [];
    const tool = { name: own, description, inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } }; // so it says
    const mine = { definition: { name, description, inputSchema: {} }, readOnly: false, origin: { server, tool }, run: async () => ({ blocks: [], isError: false }) };
    return server ? mine : builtIn.find(({ definition }: any) => definition.name === name);
  };
  /** "runs", "asked" (with "always" or without) or "refused", and the words that go with it. */
  const judged = async (name: string, args: object, rules: Rules = {}, mode = 'ask', { says = 'n', isAlone = false, description = 'Does it.' } = {}) => {
    const parsed = (['allow', 'ask', 'deny'] as const).flatMap((effect) => parseRules(effect, rules[effect] ?? [], { name: 'the exercise', isHere: false }, { tools: builtIn, warn: () => {} }));
    const person = new ScriptedPerson([says]);
    see('out', { call: name, args, mode, ...rules });
    const gate = new Gate({ mode, rules: parsed, roots, trust, person: isAlone ? undefined : person });
    const { allowed, reason } = await gate.check(row(name, description), args, new AbortController().signal);
    const question = person.questions[0]?.text;
    const came = question ? `asked, ${question.includes('[a]lways') ? 'with' : 'without'} "always":\n${question}` : allowed ? 'runs' : `refused: ${reason}`;
    see('in', came);
    return came;
  };
  const file = (path: string) => ({ path });
  const sh = (command: string) => ({ command });
  const asked = /^asked/, refused = /^refused: .*\w/, runs = /^runs$/;
  const modes = ['ask', 'read-only', 'accept-edits', 'yolo'];

  await expect('a file in the folder may be read', 'it runs, and nobody is asked', judged('read', file('a.txt')), runs);
  for (const [name, args] of [['write', file('a.txt')], ['bash', sh('npm test')], ['mcp__notes__add', {}]] as const)
    await expect(`${name} is asked about, if nothing else decides`, 'a question, with "always" among its answers', judged(name, args), /^asked, with "always"/);
  await expect('a tool that says of itself that it only reads (readOnlyHint) is asked about all the same', 'a question', judged('mcp__notes__read', {}), asked);

  await expect('nor does it help a tool of the program to say so (readOnly), if it does not tell what it touches', 'a question, with "always" among its answers', judged('clock', {}), /^asked, with "always"/);
  await expect('but a rule may allow it', 'it runs', judged('clock', {}, { allow: ['clock'] }), runs);
  await expect('and in the mode read-only it is refused', 'refused, and nobody is asked', judged('clock', {}, {}, 'read-only'), refused);

  await expect('in the mode read-only a server\'s tool is refused', 'refused, and nobody is asked', judged('mcp__notes__add', {}, {}, 'read-only'), refused);
  await expect('and so are commands, whatever a rule allows', 'refused, and nobody is asked', judged('bash', sh('npm test'), { allow: ['bash(npm test)'] }, 'read-only'), refused);
  await expect('but reading goes on', 'it runs', judged('read', file('a.txt'), {}, 'read-only'), runs);
  await expect('in the mode accept-edits a change to a file needs no question', 'it runs', judged('edit', file('a.txt'), {}, 'accept-edits'), runs);
  await expect('but a command does', 'a question', judged('bash', sh('npm test'), {}, 'accept-edits'), asked);
  await expect('and a server\'s tool does', 'a question', judged('mcp__notes__add', {}, {}, 'accept-edits'), asked);
  for (const [name, args] of [['bash', sh('npm test')], ['mcp__notes__add', {}]] as const)
    await expect(`in the mode yolo ${name} needs none`, 'it runs', judged(name, args, {}, 'yolo'), runs);

  await expect('what a rule allows, runs', 'it runs', judged('mcp__notes__add', {}, { allow: ['mcp__notes__*'] }), runs);
  await expect('a rule for one command does not allow another behind it', 'a question', judged('bash', sh('npm test; rm -r .'), { allow: ['bash(npm test)'] }), asked);
  for (const mode of modes)
    await expect(`deny beats allow, in the mode ${mode}`, 'refused, and nobody is asked', judged('mcp__notes__erase', {}, { allow: ['mcp__notes__*'], deny: ['mcp__notes__erase'] }, mode), refused);
  await expect('deny beats ask', 'refused, and nobody is asked', judged('bash', sh('rm -r .'), { ask: ['bash'], deny: ['bash(rm *)'] }), refused);
  await expect('deny holds for reading, too', 'refused, and nobody is asked', judged('read', file('a.txt'), { deny: ['read(*.txt)'] }), refused);
  await expect('ask beats allow', 'a question', judged('mcp__notes__add', {}, { allow: ['mcp__notes__add'], ask: ['mcp__notes__*'] }), asked);
  await expect('ask beats yolo', 'a question', judged('bash', sh('npm publish'), { ask: ['bash(npm publish*)'] }, 'yolo'), asked);
  await expect('ask holds for reading, too', 'a question', judged('read', file('a.txt'), { ask: ['read'] }), asked);

  await expect('a file that may hold secrets is asked about before it is read', 'a question, without "always"', judged('read', file('.env')), /^asked, without "always"/);
  await expect('a file outside is, too', 'a question, without "always"', judged('read', file('../a.txt')), /^asked, without "always"/);
  await expect('a file that steers agents is asked about before it is written, in accept-edits as well, and though a rule allows to write', 'a question, without "always"', judged('write', file('.mcp.json'), { allow: ['write'] }, 'accept-edits'), /^asked, without "always"/);
  await expect('in the mode yolo not even that', 'it runs', judged('write', file('.mcp.json'), {}, 'yolo'), runs);
  for (const mode of modes)
    await expect(`nothing is written outside the folder, in the mode ${mode}`, 'refused, and nobody is asked', judged('write', file('../a.txt'), { allow: ['write'] }, mode), refused);

  await expect('where nobody can be asked, the answer is no', 'refused: …nobody to ask. The user can allow it with --allow …', judged('mcp__notes__add', {}, {}, 'ask', { isAlone: true }), /^refused: .*nobody to ask.*--allow 'mcp__notes__add'/);
  await expect('but no hint how to get around a rule', 'refused: …nobody to ask, and no word of --allow', judged('mcp__notes__add', {}, { ask: ['mcp__notes__add'] }, 'ask', { isAlone: true }), /^refused: (?!.*--allow)/);

  await expect('somebody answers a(lways)', 'a question', judged('mcp__notes__add', {}, {}, 'ask', { says: 'a' }), asked);
  await expect('from then on it runs', 'it runs', judged('mcp__notes__add', {}), runs);
  await expect('unless a rule denies it', 'refused, and nobody is asked', judged('mcp__notes__add', {}, { deny: ['mcp__notes__add'] }), refused);
  await expect('or the mode does', 'refused, and nobody is asked', judged('mcp__notes__add', {}, {}, 'read-only'), refused);
  await expect('or a rule wants the question', 'a question', judged('mcp__notes__add', {}, { ask: ['mcp__notes__add'] }), asked);
  await expect('or its description has changed', 'a question that shows the change', judged('mcp__notes__add', {}, {}, 'ask', { description: 'Does more.' }), /^asked[^]*has changed since[^]*Does more/);
  await start('notes', ['others.mjs']);
  await expect('or another server has come to its name', 'a question', judged('mcp__notes__add', {}), asked);
};
