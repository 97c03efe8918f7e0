// bundle.ts: an .mcpb bundle, which is a ZIP archive with a server and a manifest. Only the manifest is
// read before its server is approved. When that starts, the bundle is unpacked, once, into a folder
// of ours that is named by its content.

import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import {
  asObject,
  isObject,
  STDIO_WORDS,
  StdioTransport,
  tooMuchIn,
  type Json,
  type Transport,
  type TransportFactory,
} from '../../../mcp.ts';
import { withTexts } from '../../17-the-gate/safe-text.ts';
import type { Plugin, Unpack } from '../plugins.ts';
import { filesInZip, type Packed } from '../zip.ts';

const MAX_BUNDLE = 128 * 2 ** 20;
const BOUNDS = { maxFiles: 20_000, maxBytes: 512 * 2 ** 20 };
const MAX_MANIFEST = 2 ** 20;

type BundleOptions = {
  home: string;
  platform?: NodeJS.Platform;
  config?: (plugin: Plugin, server: string) => Json; // what the user has set for it
};

const waiting = new Map<string, string>(); // the folder to be → the bundle

/** For the option `unpack`: the servers of a bundle, to be started from its folder. */
export function bundles({
  home,
  platform = process.platform,
  config = () => ({}),
}: BundleOptions): Unpack {
  return (file, plugin) => {
    const { manifest, hash } = bundleManifest(file);
    const folder = join(home, '.mcp-by-hand', 'bundles', hash);
    if (!existsSync(folder)) waiting.set(folder, file);
    const name = `${manifest.name ?? plugin.name}`;
    return { [name]: entryFrom(manifest, folder, platform, config(plugin, name)) };
  };
}

/** What it says of its server. */
export function bundleManifest(file: string): { manifest: Json; hash: string } {
  const { files, hash } = readBundle(file);
  const packed = files.find(({ name }) => name === 'manifest.json');
  if (!packed) throw new Error(`${file} has no manifest.json`);
  return { manifest: manifestIn(packed), hash };
}

function readBundle(file: string) {
  const stat = statSync(file);
  if (!stat.isFile() || stat.size > MAX_BUNDLE)
    throw new Error(`${file} is not a file of at most ${MAX_BUNDLE} bytes`);
  const zip = readFileSync(file);
  return { files: filesInZip(zip, BOUNDS), hash: createHash('sha256').update(zip).digest('hex') };
}

/** A child process, as ever; if its server is in a bundle, that is unpacked first. */
export const bundledStdio: TransportFactory = (serverName, config, maxBytes) => {
  const transport = new StdioTransport(serverName, config, maxBytes);
  const start: Transport['start'] = (events) => {
    unpackFor(JSON.stringify(config));
    return StdioTransport.prototype.start.call(transport, events);
  };
  return Object.assign(transport, { start });
};
bundledStdio.words = STDIO_WORDS;

/** What was approved names the folder, and the folder the content: another content is refused. */
export function unpackFor(config: string): void {
  for (const [folder, file] of waiting) {
    if (!config.includes(basename(folder))) continue;
    const { files, hash } = readBundle(file);
    if (hash !== basename(folder))
      throw new Error(`${file} has changed since it was looked at; start again`);
    if (!existsSync(folder)) unpackInto(folder, files);
    waiting.delete(folder);
  }
}

function manifestIn({ size, content }: Packed) {
  const text = size > MAX_MANIFEST ? '' : content().toString('utf8');
  if (size > MAX_MANIFEST || tooMuchIn(text)) throw new Error('its manifest.json is too big');
  const manifest: unknown = JSON.parse(text);
  if (!isObject(manifest)) throw new Error('its manifest.json is not an object');
  return manifest;
}

/** Whole or not at all: another program may look at the same moment. */
function unpackInto(folder: string, files: ReturnType<typeof filesInZip>) {
  const unfinished = `${folder}.${process.pid}`;
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(unfinished, { recursive: true, mode: 0o700 });
  try {
    for (const { name, content, isExecutable } of files) {
      const path = join(unfinished, name);
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      writeFileSync(path, content(), { flag: 'wx', mode: isExecutable ? 0o700 : 0o600 });
    }
    renameSync(unfinished, folder);
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true });
    if (!existsSync(folder)) throw error; // another was faster
  }
}

function entryFrom(manifest: Json, folder: string, platform: NodeJS.Platform, set: Json): Json {
  const { mcp_config: given } = asObject(manifest.server);
  if (!isObject(given)) throw new Error('its manifest.json has no "mcp_config"');
  const { platform_overrides: overrides, ...usual } = given;
  const config = { ...usual, ...asObject(asObject(overrides)[platform]) };
  const values = userValues(asObject(manifest.user_config), set);
  const fill = (text: string) =>
    text
      .replaceAll('${__dirname}', folder)
      .replaceAll('${/}', platform === 'win32' ? '\\' : '/')
      .replace(/\$\{user_config\.(\w+)\}/g, (whole, key: string) => values.get(key) ?? whole);
  const filled = withTexts(config, fill) as Json;
  const missing = /\$\{user_config\.(\w+)\}/.exec(JSON.stringify(filled))?.[1];
  if (missing)
    throw new Error(
      `it wants a value for "${missing}": write it into "pluginConfigs" of your settings`,
    );
  return { ...filled, cwd: filled.cwd ?? folder };
}

function userValues(wanted: Json, set: Json) {
  const found = Object.entries(wanted).flatMap(([key, about]): [string, string][] => {
    const value = Object.hasOwn(set, key) ? set[key] : asObject(about).default;
    return ['string', 'number', 'boolean'].includes(typeof value) ? [[key, `${value}`]] : [];
  });
  return new Map(found);
}
