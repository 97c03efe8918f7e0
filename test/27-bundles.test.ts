// Chapter 27: .mcpb bundles, unpacked by hand; and archives that lie.

import assert from 'node:assert/strict';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, test } from 'node:test';
import { deflateRawSync } from 'node:zlib';
import { bundledStdio, bundles } from '../chapters/27-scopes/packages/bundle.ts';
import { Scopes } from '../chapters/27-scopes/scopes.ts';
import { filesInZip } from '../chapters/27-scopes/zip.ts';
import { McpConnection, McpManager, needsApproval, type Json } from '../mcp.ts';
import { cleanUp, folder, later, rejection, root } from './help/basics.ts';
import { place, run, Terminal } from './help/terminal.ts';

afterEach(cleanUp);

type File = {
  name: string;
  content?: string | Buffer;
  mode?: number;
  method?: number;
  size?: number;
  flags?: number;
  crc?: number;
};

const checksum = (bytes: Buffer) => {
  let crc = ~0;
  for (const byte of bytes)
    for (let bit = 0, c = (crc ^= byte); bit < 8; bit++)
      crc = c = (c >>> 1) ^ (c & 1 ? 0xedb88320 : 0);
  return ~crc >>> 0;
};

/** An archive, true or not. */
function zip(files: File[], count = files.length): Buffer {
  const local: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const { name, content = '', mode = 0o100644, method = 8, size, flags = 0, crc } of files) {
    const bytes = Buffer.from(content);
    const packed = method === 8 ? deflateRawSync(bytes) : bytes;
    const head = Buffer.alloc(30);
    head.writeUInt32LE(0x04034b50, 0);
    head.writeUInt16LE(Buffer.byteLength(name), 26);
    const row = Buffer.alloc(46);
    row.writeUInt32LE(0x02014b50, 0);
    row[5] = 3;
    row.writeUInt16LE(flags, 8);
    row.writeUInt16LE(method, 10);
    row.writeUInt32LE(crc ?? checksum(bytes), 16);
    row.writeUInt32LE(packed.length, 20);
    row.writeUInt32LE(size ?? bytes.length, 24);
    row.writeUInt16LE(Buffer.byteLength(name), 28);
    row.writeUInt32LE((mode << 16) >>> 0, 38);
    row.writeUInt32LE(offset, 42);
    local.push(head, Buffer.from(name), packed);
    directory.push(row, Buffer.from(name));
    offset += head.length + Buffer.byteLength(name) + packed.length;
  }
  const rows = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(count, 10);
  end.writeUInt32LE(rows.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...local, rows, end]);
}

const BOUNDS = { maxFiles: 100, maxBytes: 2 ** 20 };
const manifest = (more: object = {}) => ({
  name: 'manifest.json',
  content: JSON.stringify({
    manifest_version: '0.3',
    name: 'calc',
    version: '1.0.0',
    server: {
      type: 'node',
      entry_point: 'server.mjs',
      mcp_config: {
        command: 'node',
        args: ['${__dirname}/server.mjs', '--key=${user_config.key}'],
        platform_overrides: { win32: { command: 'node.exe' } },
      },
    },
    user_config: { key: { type: 'string', title: 'Key', default: 'none' } },
    ...more,
  }),
});

test('an archive that is true: stored and deflated, folders, an executable', () => {
  const files = filesInZip(
    zip([
      { name: 'a/' },
      { name: 'a/b.txt', content: 'hello '.repeat(100) },
      { name: 'run', content: 'x', mode: 0o100755, method: 0 },
    ]),
    BOUNDS,
  );
  assert.deepEqual(
    files.map(({ name, isExecutable, content }) => [name, isExecutable, content().length]),
    [
      ['a/b.txt', false, 600],
      ['run', true, 1],
    ],
  );
});

test('A34: archives that lie: each is refused, and by its fault', () => {
  const long = Buffer.alloc(2 ** 20 + 1);
  const cases: [string, Buffer, RegExp][] = [
    ['no archive', Buffer.from('x'.repeat(100)), /not a ZIP archive/],
    ['empty', Buffer.alloc(0), /not a ZIP archive/],
    ['a way up', zip([{ name: '../evil' }]), /a file with the name "\.\.\/evil"/],
    ['a way up in the middle', zip([{ name: 'a/../../evil' }]), /a file with the name/],
    ['a whole path', zip([{ name: '/etc/passwd' }]), /a file with the name/],
    ['a drive', zip([{ name: 'C:/x' }]), /a file with the name/],
    ['a backslash', zip([{ name: 'a\\..\\evil' }]), /a file with the name/],
    ['a NUL', zip([{ name: 'a\0b' }]), /a file with the name/],
    ['a dot at the end, which Windows forgets', zip([{ name: 'a./b' }]), /a file with the name/],
    ['twice', zip([{ name: 'a' }, { name: 'A' }]), /"A" twice/],
    ['a link', zip([{ name: 'a', content: '/etc/passwd', mode: 0o120777 }]), /it holds a link/],
    ['encrypted', zip([{ name: 'a', flags: 1 }]), /encrypted/],
    [
      'too many files',
      zip(Array.from({ length: 101 }, (_, n) => ({ name: `f${n}` }))),
      /101 files/,
    ],
    ['more files than there are', zip([{ name: 'a' }], 5), /its directory is broken/],
    ['too big', zip([{ name: 'a', content: long }]), /unpacks to more than/],
    [
      'too big together',
      zip([
        { name: 'a', content: long.subarray(2 ** 19) },
        { name: 'b', content: long.subarray(2 ** 19) },
      ]),
      /unpacks to more than/,
    ],
  ];
  for (const [what, bytes, why] of cases) assert.throws(() => filesInZip(bytes, BOUNDS), why, what);
  const broken: [string, File][] = [
    ['a bomb that says it is small', { name: 'a', content: long, size: 10 }],
    ['another content', { name: 'a', content: 'x', crc: 1 }],
    ['another method', { name: 'a', content: 'x', method: 12 }],
  ];
  for (const [what, file] of broken)
    assert.throws(
      () => filesInZip(zip([file]), BOUNDS).map(({ content }) => content()),
      /in it is (broken|packed)/,
      what,
    );
});

test("an archive of another hand (Python's zipfile, with a comment) is read", () => {
  const bytes =
    'UEsDBBQAAAAIAAAAIVzRidJCCgAAAGQAAAAFAAAAYS50eHTLSM3Jyc+gLQEAUEsBAhQDFAAAAAgAAAAhXNGJ0kIKAAAAZAAAAAUAAAAAAAAAAAAAAIABAAAAAGEudHh0UEsFBgAAAAABAAEAMwAAAC0AAAAJAGEgY29tbWVudA==';
  const [file] = filesInZip(Buffer.from(bytes, 'base64'), BOUNDS);
  assert.deepEqual([file!.name, file!.content().toString()], ['a.txt', 'hello'.repeat(20)]);
});

test('mcp import FILE: a bundle by its content is shown, its values are asked for, and it is called', async () => {
  const server = readFileSync(join(root, 'fixtures', 'server.mjs'));
  const where = place();
  const file = join(where.cwd, 'downloaded'); // whatever it is called
  writeFileSync(file, zip([manifest(), { name: 'server.mjs', content: server }]));
  const bundlesFolder = join(where.home, '.mcp-by-hand', 'bundles');
  const script = await run(where, ['mcp', 'import', file, '--yes']);
  assert.deepEqual([script.code, existsSync(bundlesFolder)], [3, false]);
  const refused = new Terminal(where, ['mcp', 'import', file]);
  await refused.see(/^key: *$/);
  refused.enter('mine');
  await refused.see(/--key=mine[^]*^Add it\?.*: *$/);
  refused.enter('n');
  assert.equal(await refused.ended(), 3);
  assert.ok(!existsSync(bundlesFolder), 'nothing is unpacked before the yes');
  const terminal = new Terminal(where, ['mcp', 'import', file]);
  await terminal.see(/^key: *$/);
  terminal.enter('mine');
  await terminal.see(/^Add it\?.*: *$/);
  terminal.enter('y');
  assert.equal(await terminal.ended(), 0, terminal.text);
  const { out, err } = await run(where, ['call', 'calc', 'add', 'a=2', 'b=40']);
  assert.equal(out, '42\n', err);
});

test("a plugin's bundle: unpacked once, into a folder of ours; it starts from there, after approval", async () => {
  const base = realpathSync(folder());
  const [home, cwd] = [join(base, 'home'), join(base, 'app')];
  const plugin = join(home, '.claude/plugins/p');
  mkdirSync(plugin, { recursive: true });
  mkdirSync(cwd);
  const server = readFileSync(join(root, 'fixtures', 'server.mjs'));
  writeFileSync(
    join(plugin, 'calc.mcpb'),
    zip([
      manifest(),
      { name: 'server.mjs', content: server },
      { name: 'run', content: 'x', mode: 0o100755 },
    ]),
  );
  writeFileSync(
    join(plugin, 'plugin.json'),
    JSON.stringify({ name: 'p', mcpServers: './calc.mcpb' }),
  );
  writeFileSync(
    join(home, '.claude/plugins/installed_plugins.json'),
    JSON.stringify({ plugins: { 'p@shop': { installPath: plugin } } }),
  );
  const pluginConfigs = { 'p@shop': { mcpServers: { calc: { key: 'mine' } } } };
  writeFileSync(
    join(home, '.claude/settings.json'),
    JSON.stringify({ enabledPlugins: { 'p@shop': true }, pluginConfigs }),
  );
  const scopes = new Scopes({ home, cwd, managed: { folder: join(base, 'etc'), owner: 0 } });
  const told: string[] = [];
  const entry = scopes.load({}, (problem) => told.push(problem)).get('plugin:p:calc')!;
  assert.deepEqual(told, []);
  assert.deepEqual([entry.file, needsApproval(entry)], [join(plugin, 'calc.mcpb'), true]);
  const unpacked = `${entry.config.cwd}`;
  assert.deepEqual(
    [entry.config.command, entry.config.args, dirname(unpacked)],
    ['node', [`${unpacked}/server.mjs`, '--key=mine'], join(home, '.mcp-by-hand/bundles')],
  );
  const start = async (approve: () => boolean) => {
    const load = () => scopes.load({}, () => {});
    const transports = { stdio: bundledStdio };
    const manager = new McpManager({ home, cwd, load, approve, transports, onWarning: () => {} });
    later(() => manager.disconnectAll());
    await manager.loadAndConnect();
    return manager;
  };
  await start(() => false);
  assert.ok(!existsSync(unpacked), 'A34: nothing is unpacked before the yes');
  const manager = await start(() => true);
  assert.deepEqual(
    ['run', 'server.mjs'].map((each) => statSync(join(unpacked, each)).mode & 0o777),
    [0o700, 0o600],
  );
  assert.equal(readdirSync(join(home, '.mcp-by-hand/bundles')).length, 1);
  assert.deepEqual(
    manager.status().map(({ state, reason }) => [state, reason]),
    [['connected', undefined]],
  );
});

test("bundles, an attacker's view: nothing is left of one that is refused; what it wants and has not is named", () => {
  const home = realpathSync(folder());
  const plugin = { id: 'p@shop', name: 'p', root: home };
  const unpack = bundles({ home, platform: 'linux' });
  const tried = (files: File[]) => {
    const file = join(home, 'x.mcpb');
    writeFileSync(file, zip(files));
    return () => unpack(file, plugin);
  };
  assert.throws(tried([{ name: 'a', content: 'x' }]), /has no manifest\.json/);
  assert.throws(tried([manifest(), { name: '../../evil', content: 'x' }]), /a file with the name/);
  assert.throws(
    tried([manifest({ user_config: { key: { type: 'string', required: true } } })]),
    /wants a value for "key": write it into "pluginConfigs"/,
  );
  assert.throws(tried([manifest({ server: {} })]), /no "mcp_config"/);
  assert.throws(tried([{ name: 'manifest.json', content: '[]' }]), /not an object/);
  assert.throws(tried([{ name: 'manifest.json', content: '['.repeat(5000) }]), /too big|JSON/);
  const big = { name: 'manifest.json', content: Buffer.alloc(2 ** 20 + 1) };
  assert.throws(tried([big]), /manifest\.json is too big/);
  assert.ok(!existsSync(join(home, '..', 'evil')));
  const left = existsSync(join(home, '.mcp-by-hand/bundles'))
    ? readdirSync(join(home, '.mcp-by-hand/bundles'))
    : [];
  assert.deepEqual(
    left.filter((name) => name.includes('.')),
    [],
  );
});

test('a bundle whose content is broken, or another than was approved, does not start, and nothing of it is left', async () => {
  const home = realpathSync(folder());
  const file = join(home, 'x.mcpb');
  const unpack = bundles({ home, platform: 'linux' });
  const started = async (files: File[], instead?: File[]) => {
    writeFileSync(file, zip(files));
    const { calc } = unpack(file, { id: 'p@shop', name: 'p', root: home });
    if (instead) writeFileSync(file, zip(instead));
    const transports = { stdio: bundledStdio };
    const connection = new McpConnection('calc', calc as Json, { transports });
    return (await rejection(connection.connect())).message;
  };
  const broken = { name: 'a', content: 'x', crc: 7 };
  assert.match(await started([manifest(), broken]), /"a" in it is broken/);
  const other = [manifest(), { name: 'server.mjs', content: 'other' }];
  assert.match(await started([manifest()], other), /has changed since it was looked at/);
  assert.deepEqual(readdirSync(join(home, '.mcp-by-hand/bundles')), []);
});
