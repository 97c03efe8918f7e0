// Skills of a server of others: Hugging Face's, which has the extension. And YAML as others read it.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer, type AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { afterEach, test } from 'node:test';
import { Gate, Roots, Trust } from '../../agent.ts';
import { ScriptedPerson } from '../../chapters/17-the-gate/person.ts';
import { httpTransports } from '../../chapters/20-streamable-http/http.ts';
import { inBothEras } from '../../chapters/22-no-handshake/era.ts';
import { parseFrontmatter } from '../../chapters/24-more-than-tools/frontmatter.ts';
import { Skills } from '../../chapters/24-more-than-tools/skills.ts';
import { McpConnection, type Json } from '../../mcp.ts';
import { cleanUp, folder, later, until } from '../help/basics.ts';
import { installed } from '../help/installed.ts';
import { digest } from '../help/skill-server.ts';

afterEach(cleanUp);

const FILES = {
  'pdf-processing/SKILL.md':
    '---\nname: pdf-processing\ndescription: >-\n  Extract text\n  from PDFs\nmetadata:\n  version: "1.0"\n---\n\n# PDF\n\nSee references/FORMS.md.\n',
  'pdf-processing/references/FORMS.md': 'Forms have fields.\n',
  'acme/billing/refunds/SKILL.md':
    '---\nname: refunds\ndescription: Refunds, by the book\nallowed-tools: Bash\n---\nAsk first.\n',
};
const MANIFEST = [
  {
    root: 'pdf-processing',
    frontmatter: {
      name: 'pdf-processing',
      description: 'Extract text from PDFs',
      metadata: { version: '1.0' },
    },
  },
  {
    root: 'acme/billing/refunds',
    frontmatter: { name: 'refunds', description: 'Refunds, by the book', 'allowed-tools': 'Bash' },
  },
];

async function startServer(): Promise<string> {
  const home = folder();
  for (const [path, text] of Object.entries(FILES)) {
    mkdirSync(dirname(join(home, path)), { recursive: true });
    writeFileSync(join(home, path), text);
  }
  const skills = MANIFEST.map(({ root, frontmatter }) => ({
    uri: `skill://${root}/SKILL.md`,
    frontmatter,
    resources: Object.entries(FILES)
      .filter(([path]) => path.startsWith(`${root}/`))
      .map(([path, text]) => ({ uri: `skill://${path}`, digest: digest(text) })),
  }));
  writeFileSync(join(home, 'skills.json'), JSON.stringify({ skills }));
  const free = createServer().listen(0, '127.0.0.1');
  await once(free, 'listening');
  const { port } = free.address() as AddressInfo;
  free.close();
  const program = join(
    installed('@llmindset/hf-mcp-server@0.4.23'),
    'node_modules',
    '@llmindset',
    'hf-mcp-server',
    'dist',
    'server',
    'streamableHttp.js',
  );
  const child = spawn(process.execPath, [program, '-p', `${port}`], {
    env: { PATH: process.env.PATH, HOME: home, HF_SKILLS_DIR: home },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  later(() => child.kill('SIGKILL'));
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text) => (output += text));
  await until(
    () => output.includes('Server running at') || child.exitCode !== null,
    'the server of Hugging Face',
  );
  assert.equal(child.exitCode, null, output);
  return `http://127.0.0.1:${port}/mcp`;
}

test("Hugging Face's server: listed, approved, read and checked, in the stateless era", {
  timeout: 120_000,
}, async () => {
  const url = await startServer();
  const home = folder();
  const person = new ScriptedPerson(['y', 'y']);
  const trust = new Trust({ home, cwd: home, person });
  const roots = new Roots(home);
  const skills = new Skills({
    person,
    trust,
    roots,
    home,
    resultsFolder: join(home, 'results'),
    warn: (text) => assert.fail(text),
  });
  const gate = new Gate({ roots, trust, person });
  const sent: string[] = [];
  const connection = new McpConnection(
    'hf',
    { type: 'http', url },
    {
      transports: httpTransports,
      extensions: [skills.extension, ...inBothEras()],
      onWire: (direction, message) =>
        void (direction === 'out' && sent.push(String((message as Json).method))),
    },
  );
  later(() => connection.close());
  await connection.connect();
  assert.equal((await connection.initialize()).protocolVersion, '2026-07-28');
  await skills.ready();
  assert.deepEqual(
    skills
      .all()
      .map(({ label }) => label)
      .sort(),
    ['hf/pdf-processing', 'hf/refunds'],
  );
  assert.ok(!sent.includes('resources/read'));
  const row = skills.row();
  const { signal } = new AbortController();
  const call = async (args: Json) => {
    assert.deepEqual(await gate.check(row, args, signal), { allowed: true });
    const { blocks } = await row.run(args, { signal, onProgress: () => {} });
    return blocks.map((block) => (block.type === 'text' ? block.text : '')).join('\n');
  };
  assert.match(await call({ name: 'hf/pdf-processing' }), /See references\/FORMS.md/);
  assert.match(
    await call({ name: 'hf/pdf-processing', file: 'references/FORMS.md' }),
    /Forms have fields/,
  );
  assert.equal(
    await call({ name: 'hf/pdf-processing', file: 'references/' }),
    'references/FORMS.md',
  );
  assert.match(await call({ name: 'hf/refunds' }), /Ask first/);
  assert.match(person.questions[1]!.text, /allowed-tools\): "Bash"; not granted/);
  assert.deepEqual(
    trust.list().notes.map(({ verdict }) => verdict),
    ['allow', 'allow'],
  );
});

// Pieces that YAML is made of, put together at random: what we read must be what a whole parser reads.
const PIECES = [
  'a',
  'b',
  ':',
  ': ',
  ' ',
  '  ',
  '    ',
  '\n',
  '\n',
  '\n  ',
  '\n    ',
  '-',
  '- ',
  '#',
  ' #',
  '"',
  "'",
  '\\',
  '[',
  ']',
  '{',
  '}',
  ',',
  ', ',
  '|',
  '>',
  '|-',
  '>-',
  '>+',
  '1',
  '0x1',
  '1.5',
  'true',
  'null',
  '~',
  '&',
  '*',
  '!',
  '?',
  '%',
  '@',
  '`',
  'x y',
  '\t',
  '.inf',
  'é',
  "''",
  '\\n',
  '\\u0041',
  ': |\n  x',
  ': >\n  x\n  y',
  'key: ',
  '\nkey: ',
  '\nk2: ',
  '\n- ',
  '\n  - ',
];

test('YAML that we read means the same to the package "yaml"', () => {
  const modules = join(installed('yaml@2.9.0'), 'node_modules');
  const { parseDocument } = createRequire(join(modules, 'x.js'))('yaml');
  const pick = (n: number) => Math.floor(Math.random() * n);
  let read = 0;
  for (let n = 0; n < 100_000; n++) {
    const start = pick(2) ? 'k: ' : '';
    const text =
      start + Array.from({ length: 1 + pick(14) }, () => PIECES[pick(PIECES.length)]).join('');
    let ours: Json;
    try {
      ours = parseFrontmatter(`---\n${text}\n---\n`).fields;
    } catch {
      continue; // refused: that is always right
    }
    read++;
    const document = parseDocument(`${text}\n`, {
      uniqueKeys: true,
      version: '1.2',
      schema: 'core',
      logLevel: 'silent',
    });
    assert.deepEqual(document.errors, [], text);
    assert.deepEqual(ours, JSON.parse(JSON.stringify(document.toJSON())), JSON.stringify(text));
  }
  assert.ok(read > 1000, `only ${read} were read`);
});
