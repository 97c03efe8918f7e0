// A server with skills, in this process, that does what a test wants; and skills of ours around it.

import { createHash } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Gate, Roots, Trust } from '../../agent.ts';
import { Skills } from '../../chapters/24-more-than-tools/skills.ts';
import { nobody, type PersonAnswer } from '../../chapters/17-the-gate/person.ts';
import { McpConnection } from '../../mcp.ts';
import type { Extension, Json, TransportEvents, TransportFactory } from '../../mcp.ts';
import { person } from './agent-with-gate.ts';
import { folder, later } from './basics.ts';

export const EXTENSION = 'io.modelcontextprotocol/skills';
export const digest = (text: string | Buffer) =>
  `sha256:${createHash('sha256').update(text).digest('hex')}`;
export const skillMd = (name: string, more = '', body = '# How\n\nRead references/FORMS.md.\n') =>
  `---\nname: ${name}\ndescription: What ${name} is for\n${more}---\n\n${body}`;

/** Files by their addresses. */
export type Files = Record<string, string | Buffer>;
/** One file beside SKILL.md, unless others are given. */
export function filesOf(
  root: string,
  text?: string,
  others: Files = { 'references/FORMS.md': 'forms\n' },
): Files {
  const name = root.split('/').at(-1)!;
  const beside = Object.entries(others).map(([path, content]) => [`${root}/${path}`, content]);
  return { [`${root}/SKILL.md`]: text ?? skillMd(name), ...Object.fromEntries(beside) };
}

/** The entry that an honest server has for these files. */
export function entryOf(root: string, files: Files, more: Json = {}): Json {
  const own = Object.entries(files).filter(([uri]) => uri.startsWith(`${root}/`));
  const name = root.split('/').at(-1)!;
  return {
    uri: `${root}/SKILL.md`,
    frontmatter: { name, description: `What ${name} is for` },
    resources: own.map(([uri, content]) => ({
      uri,
      digest: digest(content),
      size: Buffer.byteLength(content),
    })),
    ...more,
  };
}

export type Serving = {
  skills?: unknown[]; // what skills/list answers; by default an honest entry for each SKILL.md in `files`
  files?: Files;
  offer?: Json | null; // what it says of the extension
  on?: Record<string, (params: Json) => unknown>; // other answers, by method; what they throw is an error
};

export class SkillServer {
  readonly seen: { method: string; params: Json }[] = [];
  serving: Serving;

  constructor(serving: Serving) {
    this.serving = serving;
  }

  /** The addresses that were read. */
  get reads(): unknown[] {
    return this.of('resources/read').map(({ uri }) => uri);
  }
  of(method: string): Json[] {
    return this.seen.filter((each) => each.method === method).map(({ params }) => params);
  }

  get entries(): unknown[] {
    const { skills, files = {} } = this.serving;
    const roots = Object.keys(files)
      .filter((uri) => uri.endsWith('/SKILL.md'))
      .map((uri) => uri.slice(0, -9));
    return skills ?? roots.map((root) => entryOf(root, files));
  }

  /** Its end of a wire without a process: each message is answered a moment later. */
  readonly transport: TransportFactory = () => {
    let events: TransportEvents | undefined;
    return {
      start: async (given) => void (events = given),
      send: async (message) =>
        queueMicrotask(() => {
          const { id, method, params = {} } = message;
          if (!method || id === undefined) return;
          this.seen.push({ method, params });
          events?.message({ jsonrpc: '2.0', id, ...this.outcome(method, params) });
        }),
      close: async () => events?.closed(new Error('closed')),
    };
  };

  private outcome(method: string, params: Json): Json {
    try {
      return { result: structuredClone(this.answer(method, params)) };
    } catch (error) {
      return { error: { code: -32602, message: (error as Error).message } };
    }
  }

  private answer(method: string, params: Json): Json {
    const { offer = {}, files = {}, on = {} } = this.serving;
    if (on[method]) return on[method](params) as Json;
    if (method === 'initialize') {
      const extensions = offer ? { extensions: { [EXTENSION]: offer } } : {};
      return {
        protocolVersion: '2025-11-25',
        capabilities: { resources: {}, ...extensions },
        serverInfo: { name: 'x', version: '1' },
      };
    }
    if (method === 'skills/list') return { skills: this.entries };
    const uri = String(params.uri);
    const entry = this.entries.find((each) => (each as Json).uri === uri);
    if (method === 'skills/get' && entry) return { skill: entry };
    const content = files[uri];
    if (method !== 'resources/read' || content === undefined) throw new Error(`nothing at ${uri}`);
    return {
      contents: [
        {
          uri,
          ...(typeof content === 'string'
            ? { text: content }
            : { blob: content.toString('base64') }),
        },
      ],
    };
  }
}

export type Around = {
  servers?: Record<string, Serving>;
  answers?: PersonAnswer[];
  home?: string;
  cwd?: string;
  extensions?: Extension[]; // more of them
};

/** The program's parts that skills need, in a home and a project of their own. */
export async function prepareSkills({
  servers = {},
  answers,
  home = folder(),
  cwd = folder(),
  extensions = [],
}: Around) {
  const warnings: string[] = [];
  const warn = (text: string) => void warnings.push(text);
  const { user, questions } = person(...(answers ?? []));
  const trust = new Trust({ home, cwd, warn, person: answers && user });
  const roots = new Roots(cwd);
  const resultsFolder = join(folder(), 'results');
  const skills = new Skills({
    person: answers ? user : nobody,
    trust,
    roots,
    home,
    resultsFolder,
    warn,
  });
  const gate = new Gate({ roots, trust, person: answers && user });
  const peers: Record<string, SkillServer> = {};
  const connections: Record<string, McpConnection> = {};
  for (const [name, serving] of Object.entries(servers)) {
    const peer = new SkillServer(serving);
    const connection = new McpConnection(
      name,
      { type: 'peer' },
      {
        transports: { peer: peer.transport },
        extensions: [...extensions, skills.extension],
        onWarning: warn,
      },
    );
    later(() => connection.close());
    trust.seen.set(name, { authority: 'user', fingerprint: `sha256:${name}` });
    await connection.connect();
    await connection.initialize();
    peers[name] = peer;
    connections[name] = connection;
  }
  await skills.ready();
  const row = skills.row();
  const { signal } = new AbortController();
  setMaxListeners(0, signal); // as the agent does
  /** As the loop does it: the gate first. The text of the result, or why there is none. */
  const call = async (args: Json): Promise<string> => {
    const verdict = await gate.check(row, args, signal);
    if (!verdict.allowed) return `${verdict.outcome ?? 'denied'}: ${verdict.reason}`;
    const run = row.run(args, { signal, onProgress: () => {} });
    const output = await run.catch((error: Error) => ({
      blocks: [{ type: 'text' as const, text: `failed: ${error.message}` }],
    }));
    return output.blocks
      .map((block) => (block.type === 'text' ? block.text : `[${block.mimeType}]`))
      .join('\n');
  };
  const asked = () => questions.map(({ text }) => text);
  const listed = () =>
    row.definition.description.split('\n').filter((each) => each.startsWith('> '));
  return {
    skills,
    row,
    call,
    asked,
    listed,
    peers,
    connections,
    trust,
    gate,
    warnings,
    home,
    cwd,
    roots,
    resultsFolder,
  };
}

/** A skill in a folder. */
export function putSkill(
  base: string,
  name: string,
  files: Files = { 'SKILL.md': skillMd(name) },
): string {
  const path = join(base, '.claude', 'skills', name);
  for (const [file, content] of Object.entries(files)) {
    mkdirSync(dirname(join(path, file)), { recursive: true });
    writeFileSync(join(path, file), content);
  }
  return path;
}
